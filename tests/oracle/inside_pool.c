/* An allocator by names that nobody knows. */
#include "tests/oracle/inside.h"

INSIDE_FAMILY(pool_);
