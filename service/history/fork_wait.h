/* Forks whose children may stream soon: how far the tree may go without them. Room: service.
 * Context: whoever works on the parent; pure.
 *
 * One rule: a forked child tells the host of itself before its first event. So when the host has
 * read what its children sent up to a moment, and passed it on, every child with an event from
 * before that moment has come. A child that execs at once, or ends, never comes. */
#ifndef MEMLOG_SERVICE_HISTORY_FORK_WAIT_H
#define MEMLOG_SERVICE_HISTORY_FORK_WAIT_H

#include <stdbool.h>
#include <stdint.h>

enum { ML_FORK_WAIT_MAX = 64 /* beyond that the oldest are not waited for */ };

/* All zero: nobody is waited for. Times are in ticks. */
struct ml_fork_wait {
    struct ml_fork_wait_one {
        uint64_t serial, ticks;
    } forks[ML_FORK_WAIT_MAX]; /* the oldest first */
    uint32_t count;
    bool asked;           /* the host is to say how far it has read, and has not yet */
    uint64_t heard_ticks; /* so far it had read when it last said so; 0: it never has */
};

/* A fork is about to happen. */
void ml_fork_wait_add(struct ml_fork_wait *wait, uint64_t serial, uint64_t ticks);

/* Its child has come. Serial 0: that of the oldest one has, by an exec at once. */
void ml_fork_wait_come(struct ml_fork_wait *wait, uint64_t serial);

/* The moment, at most `until`, up to which no child is missing. It is `now_ticks`; a child that
 * does not stream for lag_ticks is waited for no more, nor is a host that does not answer for so
 * long. */
uint64_t ml_fork_wait_until(
    struct ml_fork_wait *wait, uint64_t now_ticks, uint64_t lag_ticks, uint64_t until
);

/* Whether the host is to be asked now how far it has read; from then on it is. */
bool ml_fork_wait_ask(struct ml_fork_wait *wait);

/* It answered. 0: it could not. */
void ml_fork_wait_heard(struct ml_fork_wait *wait, uint64_t ticks);

#endif
