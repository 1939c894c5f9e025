#include "host/policy/revival.h"

struct ml_revival_verdict
ml_revival_died(struct ml_revival *revival, uint64_t served_ms, uint32_t client) {
    static const uint32_t delays_ms[ML_REVIVAL_DEATHS_MAX] = {
        0, 50, 200, 1000, 2000, 5000, 5000, 5000};
    struct ml_revival_verdict verdict = {.again = false};
    if (served_ms >= ML_REVIVAL_HEALTHY_MS) {
        *revival = (struct ml_revival){.deaths = 0};
    }
    if (client != 0 && client == revival->suspect) {
        revival->suspect_deaths++;
    } else {
        revival->suspect = client;
        revival->suspect_deaths = client != 0 ? 1 : 0;
    }
    if (revival->suspect_deaths >= ML_REVIVAL_POISON_DEATHS) {
        /* It explains the deaths: without it the next one starts with a clean record. */
        verdict.poison = client;
        *revival = (struct ml_revival){.deaths = 0};
    }
    if (revival->deaths < ML_REVIVAL_DEATHS_MAX) {
        verdict.again = true;
        verdict.delay_ms = delays_ms[revival->deaths];
        revival->deaths++;
    }
    return verdict;
}
