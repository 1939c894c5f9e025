#include "client/hooks/ask_pace.h"

#include <stdatomic.h>

bool ml_ask_may(struct ml_ask_pace *pace, uint64_t now_ns) {
    const uint64_t ahead_ns = (uint64_t)ML_ASK_INTERVAL_NS * (ML_ASK_BURST - 1);
    uint64_t to_ns = atomic_load(&pace->asked_to_ns);
    uint64_t next_ns = 0;
    do {
        if (to_ns > now_ns + ahead_ns) {
            (void)atomic_fetch_add(&pace->passed_over, 1);
            return false;
        }
        next_ns = (to_ns > now_ns ? to_ns : now_ns) + ML_ASK_INTERVAL_NS;
    } while (!atomic_compare_exchange_weak(&pace->asked_to_ns, &to_ns, next_ns));
    return true;
}
