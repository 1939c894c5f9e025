/* --dump-at-peak: a dump whenever the tree holds a step more than ever before. Room: host.
 *
 * One rule: each step is of the exact peak, as the service knows it, and not of what a look sees. A
 * peak between two looks has its dump, too, which tells to the byte who held it. */
#ifndef MEMLOG_HOST_ENGINE_TRIGGERS_PEAK_H
#define MEMLOG_HOST_ENGINE_TRIGGERS_PEAK_H

#include <ev.h>

#include "host/engine/state.h"

struct ml_peak {
    ev_timer look_timer;
    bool is_asking;        /* the service */
    bool is_dumping;       /* a dump is being taken */
    uint64_t dumped_bytes; /* the tree's peak at the last of these dumps */
    uint64_t asked_ns;     /* when it was asked for; CLOCK_MONOTONIC */
    uint64_t free_ns;      /* no other dump before then */
};

void ml_peak_init(struct ml_engine *engine);
void ml_peak_fini(struct ml_engine *engine);

#endif
