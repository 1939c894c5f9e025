/* Names inside a dump: Perfetto's ModuleSymbols packets. Room: tools.
 * Context: one thread; hostile bytes.
 *
 * One rule: a name belongs to a file (path and build id) and an ELF address in it, as a frame does.
 * So symbols may be anywhere in the trace, and `cat DUMP SYMBOLS` is a dump with names. */
#ifndef MEMLOG_TOOLS_ANALYZER_MODEL_TRACE_SYMBOLS_H
#define MEMLOG_TOOLS_ANALYZER_MODEL_TRACE_SYMBOLS_H

#include <pb_decode.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/profile.h"

/* Add one ModuleSymbols message to the profile's names. Errors: ML_PEER_FORM, ML_PEER_LIMIT,
 * ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_trace_symbols_decode(struct ml_profile_symbols *symbols, pb_istream_t *stream);

/* Sort them; needed once before _find. */
void ml_trace_symbols_finish(struct ml_profile_symbols *symbols);

void ml_trace_symbols_fini(struct ml_profile_symbols *symbols);

/* The file with the dump's word on why it has no names; NULL: it has none. */
const struct ml_profile_symbol_file *ml_trace_symbols_lack(
    const struct ml_profile_symbols *symbols,
    struct ml_profile_text path,
    struct ml_profile_text build_id
);

/* The lines at an ELF address of a file, innermost inlined one first; *out_count 0: none. */
const struct ml_profile_line *ml_trace_symbols_find(
    const struct ml_profile_symbols *symbols,
    struct ml_profile_text path,
    struct ml_profile_text build_id,
    uint64_t address,
    size_t *out_count
);

#endif
