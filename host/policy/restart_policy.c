#include "host/policy/restart_policy.h"

struct ml_restart_verdict ml_restart_policy_died(
    struct ml_restart_policy *restart_policy, uint64_t served_ms, uint32_t client
) {
    static const uint32_t delays_ms[ML_RESTART_DEATHS_MAX] = {
        0, 50, 200, 1000, 2000, 5000, 5000, 5000};
    struct ml_restart_verdict verdict = {.again = false};
    if (served_ms >= ML_RESTART_HEALTHY_MS) {
        *restart_policy = (struct ml_restart_policy){.deaths = 0};
    }
    if (client != 0 && client == restart_policy->suspect) {
        restart_policy->suspect_deaths++;
    } else {
        restart_policy->suspect = client;
        restart_policy->suspect_deaths = client != 0 ? 1 : 0;
    }
    if (restart_policy->suspect_deaths >= ML_RESTART_POISON_DEATHS) {
        /* This client explains the deaths. Without it the count starts again. */
        verdict.poison = client;
        *restart_policy = (struct ml_restart_policy){.deaths = 0};
    }
    if (restart_policy->deaths < ML_RESTART_DEATHS_MAX) {
        verdict.again = true;
        verdict.delay_ms = delays_ms[restart_policy->deaths];
        restart_policy->deaths++;
    }
    return verdict;
}
