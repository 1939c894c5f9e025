#include "tests/host/engine/list/listing.h"

#include <stdlib.h>
#include <unistd.h>

#include <check.h>

#include "base/descriptor.h"
#include "host/engine/list/walk.h"
#include "host/process/clock.h"

void listing_init(struct listing *listing) {
    *listing = (struct listing){.list = {.events_fd = -1}};
    struct ml_engine *engine = &listing->engine;
    engine->list = &listing->list;
    engine->options = &listing->options;
    engine->loop = ev_loop_new(EVFLAG_AUTO);
    ck_assert_ptr_nonnull(engine->loop);
    ml_members_init(&engine->members, engine);
    ml_list_init(engine);
    ml_descriptor_close(&listing->list.events_fd);
}

void listing_fini(struct listing *listing) {
    ml_list_fini(&listing->engine);
    ml_members_fini(&listing->engine.members);
    ev_loop_destroy(listing->engine.loop);
}

pid_t listing_start(char *const *argv) {
    const struct ml_image_mark own = ml_process_facts(getpid()).image;
    const pid_t pid = fork();
    if (pid == 0) {
        execv(argv[0], argv);
        _exit(127);
    }
    ck_assert_int_gt(pid, 0);
    while (true) {
        const struct ml_process_facts facts = ml_process_facts(pid);
        ck_assert(!facts.has_ended);
        if (ml_image_mark_differs(&own, &facts.image)) {
            return pid;
        }
        usleep(1000);
    }
}

struct ml_unrecorded *listing_add(struct listing *listing, pid_t pid) {
    const uint64_t now_ns = ml_clock_timestamp(listing->engine.clock).monotonic_ns;
    const struct ml_list_somebody nobody = {.gone_id = 0};
    struct ml_unrecorded *one = ml_list_add(&listing->engine, pid, getpid(), nobody, false, now_ns);
    ck_assert_ptr_nonnull(one);
    return one;
}
