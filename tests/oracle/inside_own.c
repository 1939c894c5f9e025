/* An allocator by libc's names. */
#include <malloc.h>
#include <stdlib.h>

#include "tests/oracle/inside.h"

INSIDE_FAMILY();
