#include "service/history/fork_wait.h"

#include <string.h>

static void remove_at(struct ml_fork_wait *wait, uint32_t at) {
    wait->count--;
    memmove(
        &wait->forks[at], &wait->forks[at + 1], (wait->count - at) * sizeof(struct ml_fork_wait_one)
    );
}

void ml_fork_wait_add(struct ml_fork_wait *wait, uint64_t serial, uint64_t ticks) {
    if (wait->count == ML_FORK_WAIT_MAX) {
        remove_at(wait, 0);
    }
    wait->forks[wait->count++] = (struct ml_fork_wait_one){.serial = serial, .ticks = ticks};
}

void ml_fork_wait_come(struct ml_fork_wait *wait, uint64_t serial) {
    for (uint32_t i = 0; i < wait->count; i++) {
        if (serial == 0 || wait->forks[i].serial == serial) {
            remove_at(wait, i);
            return;
        }
    }
}

/* No child of that fork with an event from before this moment is missing. */
static uint64_t clear_until(const struct ml_fork_wait *wait, const struct ml_fork_wait_one *fork) {
    return wait->heard_ticks > fork->ticks ? wait->heard_ticks : fork->ticks;
}

static bool is_given_up(const struct ml_fork_wait *wait, uint64_t now_ticks, uint64_t lag_ticks) {
    const struct ml_fork_wait_one *oldest = &wait->forks[0];
    const uint64_t clear_ticks = clear_until(wait, oldest);
    return clear_ticks - oldest->ticks >= lag_ticks ||
           (now_ticks > clear_ticks && now_ticks - clear_ticks >= lag_ticks);
}

uint64_t ml_fork_wait_until(
    struct ml_fork_wait *wait, uint64_t now_ticks, uint64_t lag_ticks, uint64_t until
) {
    while (wait->count > 0 && is_given_up(wait, now_ticks, lag_ticks)) {
        remove_at(wait, 0);
    }
    if (wait->count == 0) {
        return until;
    }
    const uint64_t clear_ticks = clear_until(wait, &wait->forks[0]);
    return clear_ticks < until ? clear_ticks : until;
}

bool ml_fork_wait_ask(struct ml_fork_wait *wait) {
    const bool ask = wait->count > 0 && !wait->asked;
    wait->asked = wait->asked || ask;
    return ask;
}

void ml_fork_wait_heard(struct ml_fork_wait *wait, uint64_t ticks) {
    wait->asked = false;
    wait->heard_ticks = ticks > wait->heard_ticks ? ticks : wait->heard_ticks;
}
