/* --dump-at-peak: a dump whenever the tree holds a step more than ever before. Room: host.
 *
 * One rule: each step is of the peak itself, as the service knows it, not of what a look happens to
 * see: a peak between two looks has its dump, too, and that tells who held it, to the byte. */
#ifndef MEMLOG_HOST_ENGINE_TRIGGERS_PEAK_H
#define MEMLOG_HOST_ENGINE_TRIGGERS_PEAK_H

#include <ev.h>

#include "host/engine/state.h"

struct ml_peak {
    ev_timer look_timer;
    bool is_asking;        /* the service */
    bool is_dumping;       /* no second one meanwhile */
    uint64_t dumped_bytes; /* the tree's peak at the last of these dumps */
    uint64_t asked_ns;     /* when that was asked for; CLOCK_MONOTONIC */
    uint64_t free_ns;      /* no other before then */
};

void ml_peak_init(struct ml_engine *engine);
void ml_peak_fini(struct ml_engine *engine);

#endif
