/* Names for the frames of our own Chrome traces that have none: "pc:ADDRESS" becomes functions, by
 * the build id and load bias that stand with the process's regions. Room: tools. Context: one
 * thread; hostile bytes (jansson reads them).
 *
 * One rule: only names are added. Everything else in the trace, above all its figures, is
 * unchanged. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_CHROME_SYMBOLIZE_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_CHROME_SYMBOLIZE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/symbols/symbolizer.h"

/* Called for a file without names, once for each process. Texts live during the call. */
typedef void
ml_chrome_nameless(void *context, const char *path, const char *build_id_hex, const char *trouble);

/* Read the trace at `path`, gzipped or not; write it with names to `out`, in the same form.
 * *out_places says how many frames got names.
 *
 * Errors: ML_ENV_SYSTEM (see errno) it cannot be read or `out` not written; ML_PEER_FORM no JSON;
 * ML_PEER_LIMIT over 256 MiB of text, or 2 GiB of memory; ML_ENV_MISSING no heaps_v2 in it;
 * ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_chrome_symbolize(
    const char *path,
    struct ml_symbolizer *symbolizer,
    ml_chrome_nameless *nameless,
    void *context,
    FILE *out,
    size_t *out_places
);

#endif
