/* Descriptors that may not be there: -1. Room: base. Context: any. */
#ifndef MEMLOG_BASE_DESCRIPTOR_H
#define MEMLOG_BASE_DESCRIPTOR_H

#include <unistd.h>

/* Close it if it is there; it is not any more then. */
static inline void ml_descriptor_close(int *fd) {
    if (*fd >= 0) {
        (void)close(*fd);
    }
    *fd = -1;
}

#endif
