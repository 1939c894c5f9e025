/* Timers and descriptors on a libev loop. Room: host. Context: the loop's thread. */
#ifndef MEMLOG_HOST_PROCESS_LOOP_H
#define MEMLOG_HOST_PROCESS_LOOP_H

#include <ev.h>

typedef void ml_on_timer(struct ev_loop *loop, ev_timer *watcher, int events);
typedef void ml_on_ready(struct ev_loop *loop, ev_io *watcher, int events);

/* A timer that runs once ml_timer_start says for how long; `data` becomes watcher->data. */
static inline void ml_timer_init(ev_timer *timer, ml_on_timer *on_timer, void *data) {
    ev_init(timer, on_timer);
    timer->data = data;
}

/* Run it once, after so long from now; what it waited for before is off. */
static inline void ml_timer_start(struct ev_loop *loop, ev_timer *timer, double seconds) {
    ev_timer_stop(loop, timer);
    ev_timer_set(timer, seconds, 0.);
    ev_timer_start(loop, timer);
}

/* A timer that runs again and again; ev_timer_again starts it. */
static inline void
ml_timer_init_every(ev_timer *timer, ml_on_timer *on_timer, double seconds, void *data) {
    ev_timer_init(timer, on_timer, seconds, seconds);
    timer->data = data;
}

/* Call `on_ready` whenever the descriptor can be read. */
static inline void
ml_watch_readable(struct ev_loop *loop, ev_io *watcher, ml_on_ready *on_ready, int fd, void *data) {
    ev_io_init(watcher, on_ready, fd, EV_READ);
    watcher->data = data;
    ev_io_start(loop, watcher);
}

#endif
