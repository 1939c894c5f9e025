/* The seccomp filter, from the table that service/policy/generate.py makes of
 * service/policy/syscalls.policy. */
#include <errno.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "service/policy/policy.h"
#include "service/sandbox_internal.h"

static int add_rule(scmp_filter_ctx filter, const struct ml_policy_rule *rule) {
    if (rule->argument < 0) {
        return seccomp_rule_add(filter, SCMP_ACT_ALLOW, rule->number, 0);
    }
    return seccomp_rule_add(
        filter,
        SCMP_ACT_ALLOW,
        rule->number,
        1,
        SCMP_CMP((unsigned)rule->argument, SCMP_CMP_MASKED_EQ, rule->mask, rule->value)
    );
}

static int load(const char *without_rule) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    if (filter == NULL) {
        return -ENOMEM;
    }
    /* 32-bit and x32 calls have other numbers: kill them too, and the whole process. */
    int answer = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (answer == 0) {
        answer = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    }
    for (size_t i = 0; answer == 0 && i < ml_policy_rules_count; i++) {
        const struct ml_policy_rule *rule = &ml_policy_rules[i];
        /* Negative: this architecture has no such call, so nobody can make it. */
        if (rule->number >= 0 && (without_rule == NULL || strcmp(rule->name, without_rule) != 0)) {
            answer = add_rule(filter, rule);
        }
    }
    if (answer == 0) {
        answer = seccomp_load(filter);
    }
    seccomp_release(filter);
    return answer;
}

bool ml_sandbox_filter(const char *without_rule, struct ml_sandbox_report *report) {
    const int answer = load(without_rule);
    if (answer != 0) {
        ml_sandbox_miss(report, "seccomp filter", -answer);
        return false;
    }
    return true;
}
