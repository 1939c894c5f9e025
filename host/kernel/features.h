/* What memlog uses of the kernel where it is there, and what is lost without it. Room: host.
 * Context: any; asks the kernel by calls that change nothing.
 *
 * One rule: what a seccomp filter refuses is missing, too, as far as that can be told. */
#ifndef MEMLOG_HOST_KERNEL_FEATURES_H
#define MEMLOG_HOST_KERNEL_FEATURES_H

#include <stdbool.h>
#include <stddef.h>

struct ml_kernel_feature {
    const char *name;
    const char *since;   /* the first Linux that has it */
    const char *without; /* what becomes of memlog */
    bool is_needed;      /* without it nothing is recorded */
    bool is_wall;        /* of the sandboxes */
    bool (*is_there)(void);
};

const struct ml_kernel_feature *ml_kernel_features(size_t *out_count);

#endif
