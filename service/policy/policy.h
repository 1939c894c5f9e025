/* The syscalls that the service may make. Room: service (:policy). Context: constant data.
 *
 * One rule: the table is generated from service/policy/syscalls.policy, where each line has its
 * reason. */
#ifndef MEMLOG_SERVICE_POLICY_POLICY_H
#define MEMLOG_SERVICE_POLICY_POLICY_H

#include <stddef.h>
#include <stdint.h>

/* Values that are known only at run time. */
#define ML_POLICY_SELF UINT64_C(0xffffffff00000001) /* the service's pid */
#define ML_POLICY_HOST UINT64_C(0xffffffff00000002) /* ML_SERVICE_HOST_FD */

enum {
    ML_POLICY_CONDITIONS_MAX = 2 /* as the longest line has */
};

/* (argument & mask) == value */
struct ml_policy_condition {
    uint32_t argument; /* 0 .. 5 */
    uint64_t mask;
    uint64_t value;
};

/* Permitted when all conditions hold; lines of one call are alternatives. */
struct ml_policy_line {
    const char *name;
    int number;    /* negative: this architecture does not have the call */
    uint32_t line; /* in the policy's file */
    uint32_t conditions_count;
    struct ml_policy_condition conditions[ML_POLICY_CONDITIONS_MAX];
    const char *exercise; /* of tests/service/exercise.c: it dies without this line */
};

extern const struct ml_policy_line ml_policy_lines[];
extern const size_t ml_policy_lines_count;

#endif
