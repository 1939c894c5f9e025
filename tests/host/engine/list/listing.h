/* An engine that has a list and nothing else, and programs for it to list. Room: tests. */
#ifndef MEMLOG_TESTS_HOST_ENGINE_LIST_LISTING_H
#define MEMLOG_TESTS_HOST_ENGINE_LIST_LISTING_H

#include "host/engine/list/list.h"

struct listing {
    struct ml_engine engine;
    struct ml_list list;
    struct ml_options options;
};

/* No events come, and no walk is made. */
void listing_init(struct listing *listing);
void listing_fini(struct listing *listing);

/* A child that runs `argv`; it has made its exec when this returns. */
pid_t listing_start(char *const *argv);

/* The entry of a child, as of a process that a walk finds: read by /proc. */
struct ml_unrecorded *listing_add(struct listing *listing, pid_t pid);

#endif
