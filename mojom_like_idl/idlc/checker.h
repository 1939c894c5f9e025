/* Checks the tree's meaning. Room: mojom_like_idl (idlc). */
#ifndef MEMLOG_MOJOM_LIKE_IDL_IDLC_CHECKER_H
#define MEMLOG_MOJOM_LIKE_IDL_IDLC_CHECKER_H

#include "mojom_like_idl/idlc/syntax.h"

/* Highest permitted limit of a string, bytes, array or map: bounds the memory of one message. */
enum { CHECKER_LIMIT_MAX = 1 << 24 };

/* Longest message that a contract may permit: its length stands in 32 bits of a packet's header,
 * and nobody wants more. */
#define CHECKER_MESSAGE_BYTES_MAX (UINT64_C(1) << 30)

/* Resolve names and limits, compute sizes, refuse what has no meaning; source->failed on error. */
void checker_run(struct source *source, struct contract *contract);

#endif
