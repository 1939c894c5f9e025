/* What both walkers ask of a table. Room: mojom_like_idl, private. Context: any; pure functions. */
#ifndef MEMLOG_MOJOM_LIKE_IDL_RUNTIME_LAYOUT_INTERNAL_H
#define MEMLOG_MOJOM_LIKE_IDL_RUNTIME_LAYOUT_INTERNAL_H

#include "mojom_like_idl/runtime/layout.h"

/* The number at `from`, which has layout->size_bytes bytes. */
uint64_t ml_layout_load_uint(const struct ml_layout *layout, const void *from);
int64_t ml_layout_load_int(const struct ml_layout *layout, const void *from);

/* Is `value` one of the enum's? */
bool ml_layout_enum_has(const struct ml_layout *layout, int64_t value);

/* Order of two map keys: below, equal, above 0. Strings by byte, a prefix first. */
int ml_layout_key_compare(const struct ml_layout *layout, const void *a, const void *b);

/* The member of a union with this tag; NULL: none. */
const struct ml_layout_field *ml_layout_member(const struct ml_layout *layout, uint64_t tag);

#endif
