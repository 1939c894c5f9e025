/* The sandboxed service: started, spoken to, and its end noticed. Room: host. Context: the host's
 * one thread, on its loop.
 *
 * One rule: a link that is down drops every message, and a request always gets an answer. The
 * program that is profiled never waits for the service. */
#ifndef MEMLOG_HOST_ENGINE_SERVICE_LINK_H
#define MEMLOG_HOST_ENGINE_SERVICE_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error_message.h"
#include "host/engine/processes/member.h"
#include "host/memory/pages.h"
#include "host/memory/words.h"
#include "host/memory/hold.h"
#include "host/memory/regions.h"
#include "host/memory/status.h"
#include "host/policy/options.h"
#include "host/process/launcher.h"
#include "host/process/threads.h"
#include "ipc/channel/channel.h"
#include "ipc/wire/ml_status.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"

struct ev_loop;

/* The descriptors at which the service finds its socket, and the page for its last words. */
enum { ML_SERVICE_FD = 3, ML_SERVICE_WORDS_FD = 4 };

struct ml_service_events {
    /* The service serves. `missing_sandbox` says what its sandbox lacks; "": nothing. */
    void (*on_ready)(void *context, const char *missing_sandbox);
    /* It is gone, and `why` says why. Called once, but not by ml_service_link_close. */
    void (*on_gone)(void *context, const char *why);
    /* This client's stream broke its contract and is not read any more. */
    void (*on_client_lost)(void *context, uint32_t id, const char *reason);
    /* The service is short of memory: what it asks for, or has done. */
    void (*on_memory_short
    )(void *context, const struct memlog_service_memory_short_request *request);
    /* Add the children of that member that have reported themselves. The answer is a moment, in
     * ticks, before which none has that is not added. */
    uint64_t (*on_hear)(void *context, uint32_t id);
    void *context;
};

struct ml_service_link {
    struct ml_channel *channel; /* NULL: down */
    pid_t pid;                  /* of the service; 0: never started */
    int pidfd;                  /* of the service; -1: none */
    struct ml_service_events events;
    bool told; /* on_gone was called */
};

struct ml_service_start {
    const char *path;
    enum ml_sandbox sandbox;
    const struct ml_inherited *inherited;
    int words_fd;    /* ipc/wire/last_words.h; borrowed; -1: none */
    bool one_worker; /* on one core, so that it can say whose data it reads
                        on */
    struct memlog_service_setup setup;
};

/* Start the service and configure it. If the service ends at once, on_gone is called, perhaps
 * before this returns.
 *
 * Errors: ML_ENV_* with an error message.
 * Owner:  `link` stays where it is until ml_service_link_close. */
ML_NODISCARD enum ml_status ml_service_link_open(
    struct ml_service_link *link,
    struct ev_loop *loop,
    const struct ml_service_start *start,
    const struct ml_service_events *events,
    struct ml_error_message *error
);

/* Close the socket, and wait at most two seconds for the service to end. Then end it. */
void ml_service_link_close(struct ml_service_link *link);

bool ml_service_link_up(const struct ml_service_link *link);

/* Messages without an answer. */
void ml_service_link_add(
    struct ml_service_link *link, const struct ml_member *member, uint64_t sampling_bytes
);
void ml_service_link_update(struct ml_service_link *link, const struct ml_member *member);

/* The same, with the reason why its profile cannot be complete. */
void ml_service_link_trouble(
    struct ml_service_link *link, const struct ml_member *member, const char *trouble
);

/* What the kernel says of a process for a dump. Its moment is when the reading began. */
struct ml_process_view {
    struct memlog_service_moment seen;
    struct ml_process_threads threads;
    struct ml_memory_regions regions;
    struct ml_memory_pages pages;
    struct ml_memory_words words; /* with --types */
    struct ml_memory_status status;
    uint64_t cost_ns;            /* of a processor, to read it */
    uint64_t held_ns;            /* it was stopped for so long until then; 0: it ran */
    char why[ML_HOLD_WHY_BYTES]; /* it was to be stopped, and was not; "" */
    int regions_error;     /* why its mappings cannot be read, an errno; 0: nothing is known */
    uint32_t tree_reading; /* of all processes, to which it belongs; 0: it was read alone */
};

/* As the contract has it. */
struct memlog_service_memory_status ml_service_link_status(const struct ml_memory_status *status);

/* `on_shown` is called once, perhaps before this returns: its blocks are laid over it, or will not
 * be. */
typedef void ml_on_shown(
    void *context, enum ml_status status, const struct memlog_service_show_process_reply *reply
);
void ml_service_link_show(
    struct ml_service_link *link,
    const struct ml_member *member,
    const struct ml_process_view *view,
    ml_on_shown *on_shown,
    void *context
);

/* A file in which the member's run-time tells of its code, as it is at that moment; borrowed. */
void ml_service_link_code(
    struct ml_service_link *link,
    const struct ml_member *member,
    enum memlog_service_code_file_kind kind,
    const struct memlog_service_moment *now,
    int file_fd
);
void ml_service_link_end(struct ml_service_link *link, const struct ml_member *member);

/* Take the status of a send. A failed one means that the service is gone. A full queue means that
 * it has read nothing for 128 MiB of messages: it hangs. */
void ml_service_link_sent(struct ml_service_link *link, enum ml_status status);

/* Send a request of the contract by its function. `on_reply` is called exactly once, with a status
 * other than ML_OK and NULL when there is no answer. */
#define ML_SERVICE_ASK(link, send, request, on_reply, context)                                     \
    do {                                                                                           \
        enum ml_status ask_status = ML_PEER_CLOSED;                                                \
        if ((link)->channel != NULL) {                                                             \
            ask_status = send(ml_channel_port((link)->channel), request, on_reply, context);       \
        }                                                                                          \
        if (ask_status != ML_OK) {                                                                 \
            on_reply(context, ask_status, NULL);                                                   \
            ml_service_link_sent(link, ask_status);                                                \
        }                                                                                          \
    } while (false)

#endif
