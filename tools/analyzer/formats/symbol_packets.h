/* Names as Perfetto's ModuleSymbols packets, to stand behind a dump: what `memlog symbolize` adds.
 * Room: tools. Context: one thread.
 *
 * One rule: names belong to a file (path and build id) and an ELF address, so the packets may be
 * anywhere in the trace: `cat DUMP SYMBOLS` is a dump with names, for us
 * (tools/analyzer/model/trace_symbols.h) and for trace_processor. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_SYMBOL_PACKETS_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_SYMBOL_PACKETS_H

#include <stddef.h>
#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/string_table.h"
#include "tools/analyzer/stacks/stacks.h"

/* Write packets with the names of all places whose names are not in the dump already. *out_places
 * says how many.
 *
 * Errors: ML_ENV_MEMORY. Errors of the file stay with the file. */
ML_NODISCARD enum ml_status
ml_symbol_packets_write(const struct ml_stacks *stacks, FILE *out, size_t *out_places);

/* The same for a trace of several dumps: the names of all places but those that are in `told`,
 * which are in it then. */
ML_NODISCARD enum ml_status ml_symbol_packets_write_new(
    const struct ml_stacks *stacks, struct ml_string_table *told, FILE *out
);

/* Write packets that say of files without names why they have none, as far as processes' files were
 * asked for and the dump does not say it. */
void ml_symbol_packets_write_lacks(const struct ml_stacks *stacks, FILE *out);

#endif
