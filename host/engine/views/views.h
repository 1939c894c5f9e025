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
    uint64_t next_ns;    /* CLOCK_MONOTONIC: no reading of one before that nobody waits for */
    /* Readings of all that run. */
    uint32_t tree_reading; /* the last one's number; 0: there was none */
    uint64_t tree_serial;  /* of its last question */
    uint64_t tree_cost_ns; /* of its questions so far */
    uint64_t tree_next_ns; /* CLOCK_MONOTONIC: no next one before that nobody waits for */
    uint64_t tree_bytes;   /* the largest private memory of all together at which they were read */
};

void ml_views_init(struct ml_engine *engine);
void ml_views_fini(struct ml_engine *engine);

/* Whether it runs, is recorded, and --whole permits it. */
bool ml_views_may_be_seen(const struct ml_engine *engine, const struct ml_member *member);

/* Have its threads and its memory read, and tell the service. */
void ml_views_want(struct ml_engine *engine, struct ml_member *member);

/* The same for all that run, since together they have most private memory. */
void ml_views_want_tree(struct ml_engine *engine);

/* The same for a dump; then, perhaps before this returns, `on_all` is called once. */
void ml_views_want_all(struct ml_engine *engine, void (*on_all)(struct ml_engine *engine));

#endif
