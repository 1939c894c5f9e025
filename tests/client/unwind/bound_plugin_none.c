/* What bound_test opens: it asks for no allocator. */
#include <unistd.h>

int ml_bound_group(void);
int ml_bound_group(void) {
    return getpgrp();
}
