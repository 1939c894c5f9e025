/* An allocator by libc's names. */
#include "tests/oracle/inside.h"

INSIDE_FAMILY();
