#include "client/hooks/ask_limit.h"

#include <stdatomic.h>

bool ml_ask_may(struct ml_ask_limit *limit, uint64_t now_ns) {
    const uint64_t ahead_ns = (uint64_t)ML_ASK_INTERVAL_NS * (ML_ASK_BURST - 1);
    uint64_t to_ns = atomic_load(&limit->asked_to_ns);
    uint64_t next_ns = 0;
    do {
        if (to_ns > now_ns + ahead_ns) {
            (void)atomic_fetch_add(&limit->passed_over, 1);
            return false;
        }
        next_ns = (to_ns > now_ns ? to_ns : now_ns) + ML_ASK_INTERVAL_NS;
    } while (!atomic_compare_exchange_weak(&limit->asked_to_ns, &to_ns, next_ns));
    return true;
}
