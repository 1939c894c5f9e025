#include "base/seccomp/policy.h"

#include <errno.h>
#include <seccomp.h>
#include <unistd.h>

/* The level of libseccomp's for Linux 4.14, which can kill a whole process. */
enum { API_WITH_KILL_PROCESS = 3 };

static int add(scmp_filter_ctx filter, const struct ml_seccomp_line *line, uint32_t action) {
    struct scmp_arg_cmp compared[ML_SECCOMP_CONDITIONS_MAX];
    for (uint32_t i = 0; i < line->conditions_count; i++) {
        const struct ml_seccomp_condition *condition = &line->conditions[i];
        const uint64_t value = condition->value;
        compared[i] = (struct scmp_arg_cmp
        ){.arg = condition->argument,
          .op = SCMP_CMP_MASKED_EQ,
          .datum_a = condition->mask,
          .datum_b = value == ML_SECCOMP_SELF ? (uint64_t)getpid() : value};
    }
    return seccomp_rule_add_array(filter, action, line->number, line->conditions_count, compared);
}

int ml_seccomp_load(
    const struct ml_seccomp_policy *policy, const struct ml_seccomp_choice *choice
) {
    scmp_filter_ctx filter = seccomp_init(choice->refused);
    if (filter == NULL) {
        return seccomp_api_get() < API_WITH_KILL_PROCESS ? -ENOSYS : -ENOMEM;
    }
    /* 32-bit and x32 calls have other numbers: kill them too, and the whole process. */
    int answer = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (answer == 0) {
        answer = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    }
    if (answer == 0) {
        answer = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    }
    if (answer == 0) { /* the kernel's own errno */
        answer = seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
    }
    for (size_t i = 0; answer == 0 && i < policy->lines_count; i++) {
        const struct ml_seccomp_line *line = &policy->lines[i];
        const uint32_t action = choice->action(choice->context, line);
        /* Negative: this architecture has no such call, so nobody can make it. */
        if (line->number >= 0 && action != choice->refused) {
            answer = add(filter, line, action);
        }
    }
    if (answer == 0) {
        answer = seccomp_load(filter);
    }
    seccomp_release(filter);
    return answer;
}
