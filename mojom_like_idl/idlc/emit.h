/* The tree as C. Room: mojom_like_idl (idlc).
 *
 * One rule: the output is struct definitions, tables and one-line wrappers. All logic is
 * hand-written, in mojom_like_idl/runtime/{encode,decode}.c. */
#ifndef MEMLOG_MOJOM_LIKE_IDL_IDLC_EMIT_H
#define MEMLOG_MOJOM_LIKE_IDL_IDLC_EMIT_H

#include <stdio.h>

#include "mojom_like_idl/idlc/syntax.h"

/* Stands in every output. Rises when the same contract gives another output. */
#define IDLC_VERSION "2"

/* Write the header; `include_path` is how others include it ("mojom_like_idl/x_mojom.h"). A name
 * that would be defined twice sets source->failed. */
void emit_header(
    struct source *source, const struct contract *contract, const char *include_path, FILE *out
);

/* Write the tables behind it. */
void emit_tables(
    struct source *source, const struct contract *contract, const char *include_path, FILE *out
);

#endif
