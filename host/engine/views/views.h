/* The kernel's view of each process's memory, on its way to the service. Room: host. Context: the
 * loop's thread.
 *
 * One rule: a dump waits for the views of the processes that run, but not for ever: who cannot be
 * read in time has the view that was read before. */
#ifndef MEMLOG_HOST_ENGINE_VIEWS_VIEWS_H
#define MEMLOG_HOST_ENGINE_VIEWS_VIEWS_H

#include "host/engine/state.h"
#include "host/engine/views/holder.h"

struct ml_view_reader;

struct ml_views {
    struct ml_view_reader *reader;            /* NULL: nothing was read yet */
    struct ml_holder holder;                  /* the reader's, once there is one */
    uint64_t asked_serial, told_serial;       /* of the last one */
    void (*on_all)(struct ml_engine *engine); /* a dump that waits; NULL: none */
    ev_timer patience;
    ev_timer look_timer; /* host/engine/views/peaks.h */
    uint64_t next_ns;    /* CLOCK_MONOTONIC: no reading before that nobody waits for */
};

void ml_views_init(struct ml_engine *engine);
void ml_views_fini(struct ml_engine *engine);

/* Whether it runs, is recorded, and --whole permits it. */
bool ml_views_may_be_seen(const struct ml_engine *engine, const struct ml_member *member);

/* Have its threads and its memory read, and tell the service. */
void ml_views_want(struct ml_engine *engine, struct ml_member *member);

/* The same for all that run; then, perhaps before this returns, `on_all` is called once. */
void ml_views_want_all(struct ml_engine *engine, void (*on_all)(struct ml_engine *engine));

#endif
