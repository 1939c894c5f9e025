/* The seccomp filter, from the table that service/policy/generate.py makes of
 * service/policy/syscalls.policy. */
#include <errno.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "service/host_fd.h"
#include "service/policy/policy.h"
#include "service/sandbox_internal.h"

static uint64_t value_of(const struct ml_policy_condition *condition) {
    if (condition->value == ML_POLICY_SELF) {
        return (uint64_t)getpid();
    }
    return condition->value == ML_POLICY_HOST ? ML_SERVICE_HOST_FD : condition->value;
}

static int permit(scmp_filter_ctx filter, const struct ml_policy_line *line) {
    struct scmp_arg_cmp compared[ML_POLICY_CONDITIONS_MAX];
    for (uint32_t i = 0; i < line->conditions_count; i++) {
        const struct ml_policy_condition *condition = &line->conditions[i];
        compared[i] = (struct scmp_arg_cmp
        ){.arg = condition->argument,
          .op = SCMP_CMP_MASKED_EQ,
          .datum_a = condition->mask,
          .datum_b = value_of(condition)};
    }
    return seccomp_rule_add_array(
        filter, SCMP_ACT_ALLOW, line->number, line->conditions_count, compared
    );
}

static int load(uint32_t left_out_line) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
    if (filter == NULL) {
        return -ENOMEM;
    }
    /* 32-bit and x32 calls have other numbers: kill them too, and the whole process. */
    int answer = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (answer == 0) {
        answer = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    }
    if (answer == 0) {
        /* Over all threads, or over none. */
        answer = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    }
    for (size_t i = 0; answer == 0 && i < ml_policy_lines_count; i++) {
        const struct ml_policy_line *line = &ml_policy_lines[i];
        /* Negative: this architecture has no such call, so nobody can make it. */
        if (line->number >= 0 && line->line != left_out_line) {
            answer = permit(filter, line);
        }
    }
    if (answer == 0) {
        answer = seccomp_load(filter);
    }
    seccomp_release(filter);
    return answer;
}

bool ml_sandbox_filter(uint32_t left_out_line, struct ml_sandbox_report *report) {
    const int answer = load(left_out_line);
    if (answer != 0) {
        ml_sandbox_miss(report, "seccomp filter", -answer);
        return false;
    }
    return true;
}
