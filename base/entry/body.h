/* Does anything in a function lead back into its first bytes? Room: base (private to base/entry).
 * Context: any; pure.
 *
 * One rule: a doubt is a yes. The body is decoded from its beginning to its end. From the first
 * instruction on that is not known (data in the text, say) each offset is looked at as if an
 * instruction began there. Distances of 4 bytes are looked at so at every offset anyway: by chance
 * none leads to four certain addresses. Code behind the function's end may be looked at as well:
 * what is no part of the function does not lead there. */
#ifndef MEMLOG_BASE_ENTRY_BODY_H
#define MEMLOG_BASE_ENTRY_BODY_H

#include <stdint.h>

#include "base/entry/plan.h"

enum {
    /* Looked at where the size is not known; functions of an allocator that are written in
     * assembly, without a size, are far shorter. */
    ML_ENTRY_BODY_UNKNOWN_BYTES = 16 * 1024,
    /* Of one that is known: no allocator's function has a tenth of it. */
    ML_ENTRY_BODY_BYTES_MAX = 1024 * 1024,
    /* Looked at from where a branch leads out of the function on: .cold parts are shorter, and have
     * several such places. */
    ML_ENTRY_BODY_ASIDE_BYTES = 512,
    ML_ENTRY_BODY_ASIDES_MAX = 256,
};

/* What was found: bits. */
enum {
    ML_ENTRY_BODY_LEADS_INTO = 1,  /* behind the first patched byte */
    ML_ENTRY_BODY_LEADS_BACK = 2,  /* to the entry, or to the first patched byte */
    ML_ENTRY_BODY_HAS_SWITCH = 4,  /* an indirect jump whose targets are in a table */
    ML_ENTRY_BODY_IS_TOO_LARGE = 8 /* not looked at to its end */
};

/* Look at the whole body but the `moved_bytes` from `at` on, which the planner has looked at. */
uint32_t
ml_entry_body_look(const struct ml_entry_function *function, uint64_t at, uint32_t moved_bytes);

#endif
