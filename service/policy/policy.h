/* The syscalls that the service may make. Room: service (:sandbox). Context: constant data.
 *
 * One rule: the table is generated from service/policy/syscalls.policy, where each line has its
 * reason. */
#ifndef MEMLOG_SERVICE_POLICY_POLICY_H
#define MEMLOG_SERVICE_POLICY_POLICY_H

#include <stddef.h>
#include <stdint.h>

/* A call is permitted when (argument & mask) == value; a call may have several rules. */
struct ml_policy_rule {
    const char *name;
    int number;   /* negative: this architecture does not have the call */
    int argument; /* from 0; -1: without condition */
    uint64_t mask, value;
};

extern const struct ml_policy_rule ml_policy_rules[];
extern const size_t ml_policy_rules_count;

#endif
