#include "client/stream/lane.h"

enum {
    EVICT_TRIES = 64,
    PAUSE_MIN = 64, /* events of a lane before it tries to take the lease ... */
    PAUSE_MAX = 1 << 20,
    WORTH_EVENTS = 4096 /* ... twice as many after each time that it held it for fewer */
};

void ml_lease_init(struct ml_lease *lease, uint32_t lane) {
    *lease = (struct ml_lease){
        .self = ml_lease_self(ml_process.lease_number, lane),
        .wait = PAUSE_MIN,
        .pause = PAUSE_MIN,
    };
}

__attribute__((noinline)) uint64_t ml_lease_evict(uint64_t self) {
    uint64_t holder = ml_lease_holder();
    /* The exchange fails only if another lane has evicted the holder or taken the lease. Only a
     * hostile process does that again and again. */
    for (int i = 0; i < EVICT_TRIES && holder != 0 && holder != self; i++) {
        if (__atomic_compare_exchange_n(
                &ml_process.lease->holder, &holder, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED
            )) {
            break;
        }
    }
    return ml_process_ticks_ordered();
}

/* The lane was evicted. Where other threads record all the time, each try costs them a cache
 * miss. */
static void lost(struct ml_lease *lease, uint64_t produced) {
    const bool was_worth = produced - lease->since_produced >= WORTH_EVENTS;
    if (was_worth) {
        lease->pause = PAUSE_MIN;
    } else if (lease->pause < PAUSE_MAX) {
        lease->pause *= 2;
    }
    lease->since_ticks = 0;
    lease->wait = lease->pause;
}

/* `since_ticks` is set before `holder`, and `again` is 0: a lane left here by siglongjmp continues
 * as one that has just got the lease. */
static void try_for_it(struct ml_lease *lease, uint64_t produced) {
    uint64_t nobody = 0;
    lease->since_produced = produced;
    lease->since_ticks = ml_process_ticks_ordered();
    lease->wait = 1;
    atomic_signal_fence(memory_order_seq_cst);
    if (!__atomic_compare_exchange_n(
            &ml_process.lease->holder,
            &nobody,
            lease->self,
            false,
            __ATOMIC_SEQ_CST,
            __ATOMIC_RELAXED
        )) {
        lease->since_ticks = 0;
        lease->wait = lease->pause;
    }
}

__attribute__((noinline)) uint64_t ml_lease_step(struct ml_lane *lane) {
    struct ml_lease *lease = &lane->lease;
    lease->again = 0;
    lease->wait = 1;
    if (ml_lease_holder() == lease->self) {
        const uint64_t now = ml_lane_stamp(lane);
        const bool proven = now - lease->since_ticks >= ML_LEASE_PROOF_TICKS;
        lease->again = proven ? ML_LEASE_EVENTS - 1 : 0;
        return now;
    }
    if (lease->since_ticks != 0) {
        lost(lease, lane->header->produced);
    } else {
        try_for_it(lease, lane->header->produced);
    }
    return ml_lane_stamp(lane);
}
