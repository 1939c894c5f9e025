#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/session/internal.h"

/* ---- birth and death */

/* All parts of a profile, empty. */
static void init_profile(struct ml_client *client) {
    struct ml_session *session = client->session;
    const struct ml_stream_sink sink = ml_client_sink(client);
    const uint64_t seed =
        (uintptr_t)client ^ session->start.ticks ^ client->setup.start.ticks << 20;
    ml_stack_store_init(&client->stacks, &client->budget);
    ml_tracker_init(&client->tracker, &client->budget, &session->tree, &client->stacks, seed);
    ml_sequencer_init(&client->sequencer, &client->budget);
    ml_stream_reader_init(&client->stream, &client->budget, &sink, client->setup.profile);
    ml_staging_reader_init(&client->staging, &client->budget, &client->stream);
    client->staging.patience_ticks = session->patience_ticks;
    ml_fork_log_init(&client->forks, &client->budget);
    ml_mappings_init(&client->mappings, &client->budget);
    client->first_words = (struct ml_first_words){.budget = &client->budget};
}

static void fini_profile(struct ml_client *client) {
    ml_client_free_timeline(client);
    ml_tracker_fini(&client->tracker);
    ml_stack_store_fini(&client->stacks);
    ml_sequencer_fini(&client->sequencer);
    ml_staging_reader_fini(&client->staging);
    ml_stream_reader_fini(&client->stream);
    ml_fork_log_fini(&client->forks);
    ml_mappings_fini(&client->mappings);
    ml_first_words_fini(&client->first_words);
}

struct ml_client *ml_client_new(struct ml_session *session, const struct ml_client_setup *setup) {
    struct ml_client *client = ml_budget_new(&session->budget, sizeof(*client));
    if (client == NULL) {
        return NULL;
    }
    client->session = session;
    client->budget =
        (struct ml_budget){.max_bytes = ml_session_quota_bytes(session), .whole = &session->budget};
    client->setup = *setup;
    client->role = setup->role;
    client->sampling.longest_bytes = setup->sampling_bytes; /* until its START record says it */
    client->hand = &session->hands[0];
    client->first_turn = UINT64_MAX;
    client->profile_ns = setup->start.monotonic_ns;
    init_profile(client);
    return client;
}

void ml_client_free(struct ml_client *take_client) {
    if (take_client == NULL) {
        return;
    }
    free(take_client->command_line);
    free(take_client->executable);
    ml_client_show_nothing(take_client);
    ml_client_drop_code(take_client);
    fini_profile(take_client);
    atomic_fetch_sub_explicit(
        &take_client->session->stuck_bytes, take_client->stuck_bytes, memory_order_relaxed
    );
    ml_budget_free(&take_client->session->budget, take_client, sizeof(*take_client));
}

/* Reset what is counted of queued events. */
static void forget_queued(struct ml_client *client) {
    client->queued_bytes = 0;
    client->resizing_bytes = 0;
    client->reaps_queued = 0;
    client->turns_queued = 0;
    client->first_turn = UINT64_MAX;
}

void ml_client_drop_queue(struct ml_client *client) {
    ml_sequencer_fini(&client->sequencer);
    forget_queued(client);
}

void ml_client_quota_text(
    const struct ml_client *client, const char *outcome, char out_text[ML_TROUBLE_MAX_BYTES]
) {
    (void)snprintf(
        out_text,
        ML_TROUBLE_MAX_BYTES,
        "it is over its quota of memory in memlog-service, %" PRIu64 " MiB (--client-memory): %s",
        client->budget.max_bytes >> 20,
        outcome
    );
}

void ml_client_lose(struct ml_client *client, enum ml_status status) {
    char reason[ML_TROUBLE_MAX_BYTES];
    if (client->lost != ML_OK) {
        return;
    }
    client->lost = status;
    if (client->tracker.totals_only) {
        client->trouble[0] = 0; /* a worse trouble replaces that of the guard */
    }
    if (status == ML_ENV_MEMORY && client->budget.over) {
        client->over_quota = true;
        ml_client_quota_text(client, "recording it stopped, its largest stacks stay", reason);
        ml_client_trouble(client, reason);
    }
    snprintf(
        reason,
        sizeof(reason),
        ml_status_family(status) == ML_FAMILY_PEER ? "its event stream broke the contract: %s (%s)"
                                                   : "recording it stopped: %s (%s)",
        ml_status_text(status),
        ml_status_name(status)
    );
    ml_client_trouble(client, reason);
    if (status == ML_ENV_MEMORY) {
        /* This makes room for the others; its cells stay. */
        ml_client_drop_queue(client);
        ml_tracker_drop_blocks(&client->tracker);
        client->stuck_bytes = client->budget.used_bytes;
        atomic_fetch_add_explicit(
            &client->session->stuck_bytes, client->stuck_bytes, memory_order_relaxed
        );
    }
}

void ml_client_stop(struct ml_client *client, uint64_t ticks) {
    if (client->phase != ML_CLIENT_RUNNING || client->lost != ML_OK || client->cut_ticks != 0) {
        return;
    }
    /* What is applied already stays, and is complete up to there. */
    client->cut_ticks = ticks > client->applied_ticks ? ticks : client->applied_ticks;
    ml_client_queue_leave(client, client->cut_ticks);
}

enum ml_status ml_client_begin(struct ml_client *client, uint32_t profile) {
    if (client->phase != ML_CLIENT_RUNNING || client->lost != ML_OK) {
        return ML_PEER_STATE;
    }
    ml_tracker_forget(&client->tracker, client->session->known_ticks);
    fini_profile(client);
    client->setup.profile = profile;
    client->setup.from_startup = false;
    client->profile_ns = client->session->timelines.noted_ns;
    init_profile(client);
    if (client->leaving == ML_LEAVING_LEFT && client->parent != NULL) {
        client->next_sibling = client->parent->first_child;
        client->parent->first_child = client;
    }
    client->leaving = ml_leaving_next(client->leaving, ML_LEAVING_ON_PROFILE);
    client->trouble[0] = 0;
    client->guard_sampling_bytes = 0;
    client->told = ML_GUARD_NOTHING;
    client->coarser_ticks = 0;
    client->awaits_sampling = false;
    client->over_quota = false;
    client->sampling = (struct ml_sampling_log){.longest_bytes = client->setup.sampling_bytes};
    client->fork_wait.count = 0;
    client->tree_ticks = 0;
    client->known_ticks = 0;
    client->followed_ticks = 0;
    client->cut_ticks = 0;
    client->has_late = false;
    client->sampled = false;
    client->has_heaps = false;
    forget_queued(client);
    client->inherited_known = true; /* nothing: what it had at its fork is not this profile's */
    client->inherited_bytes = 0;
    client->inherited_blocks = 0;
    client->events = 0;
    client->late_events = 0;
    memset(client->loss, 0, sizeof(client->loss));
    client->coverage.last = (struct ml_coverage_reading){.private_bytes = 0};
    client->coverage.largest = client->coverage.last; /* the heap beside it was another profile's */
    return ML_OK;
}

void ml_client_finish(struct ml_client *client) {
    ml_client_relieve(client);
    ml_client_end_timeline(client, client->end.end.monotonic_ns);
    client->phase = ML_CLIENT_DONE;
    ml_client_left(client);
    ml_client_drop_queue(client);
    ml_staging_reader_fini(&client->staging);
    ml_stream_reader_fini(&client->stream);
    ml_first_words_settle(&client->first_words, &client->tracker);
    ml_tracker_drop_blocks(&client->tracker);
    if (client->first_child == NULL) { /* nobody will ask what it inherits */
        ml_mappings_fini(&client->mappings);
    }
}

/* ---- what the connection feeds */

/* Apart nothing is applied, as it would change the tree; nor while a snapshot is copied. */
static bool must_wait(const struct ml_client *client) {
    return client->session->apart || client->session->held;
}

/* Late events, and a queue that has grown too long, are applied at once. */
void ml_client_digest(struct ml_client *client) {
    if (must_wait(client)) {
        return;
    }
    if (client->sequencer.queued > ML_SESSION_QUEUE_MAX_EVENTS) {
        ml_client_apply(client, UINT64_MAX);
        for (uint32_t i = 0; i < client->sequencer.lanes_count; i++) {
            const struct ml_lane_queue *queue = client->sequencer.lanes[i];
            if (queue != NULL && queue->last_time > client->applied_ticks) {
                client->applied_ticks = queue->last_time;
            }
        }
    } else if (client->has_late) {
        ml_client_apply(client, client->applied_ticks);
    }
    client->has_late = false;
}

static enum ml_status digest(struct ml_client *client, enum ml_status status) {
    ml_client_digest(client);
    if (status != ML_OK) {
        ml_client_lose(client, status);
    }
    return client->lost;
}

bool ml_client_stuffed(const struct ml_client *client) {
    return must_wait(client) && client->sequencer.queued > ML_SESSION_QUEUE_MAX_EVENTS;
}

/* Whether the client takes more bytes. Fork children hold their parent's pipe, so bytes after its
 * end belong to no client. */
static enum ml_status open_for_more(const struct ml_client *client) {
    if (client->lost != ML_OK) {
        return client->lost;
    }
    return client->phase == ML_CLIENT_RUNNING ? ML_OK : ML_PEER_STATE;
}

enum ml_status ml_client_feed(struct ml_client *client, const uint8_t *bytes, size_t count_bytes) {
    enum ml_status status = open_for_more(client);
    if (status != ML_OK) {
        return status;
    }
    const uint32_t before = ml_hand_work_on(client->hand, client->setup.id);
    /* In parts, so that the queue keeps its bound however much is fed. */
    enum { PART_BYTES = 1 << 20 };
    while (status == ML_OK && count_bytes > 0) {
        const size_t part = count_bytes < PART_BYTES ? count_bytes : PART_BYTES;
        status = digest(client, ml_stream_reader_feed(&client->stream, bytes, part));
        bytes += part;
        count_bytes -= part;
    }
    (void)ml_hand_work_on(client->hand, before);
    return status;
}

void ml_client_pipe_over(struct ml_client *client) {
    ml_staging_reader_pipe_over(&client->staging);
}

enum ml_status ml_client_lanes(
    struct ml_client *client,
    const struct ml_staging_header *header,
    const struct ml_staging_lane *lanes,
    uint32_t lanes_count,
    struct ml_client_want *wants,
    size_t wants_capacity,
    size_t *out_wants_count
) {
    *out_wants_count = 0;
    enum ml_status status = open_for_more(client);
    if (status != ML_OK) {
        return status;
    }
    const uint32_t before = ml_hand_work_on(client->hand, client->setup.id);
    status = ml_staging_reader_look(
        &client->staging, header, lanes, lanes_count, wants, wants_capacity, out_wants_count
    );
    status = digest(client, status);
    (void)ml_hand_work_on(client->hand, before);
    return status;
}

enum ml_status ml_client_tail(
    struct ml_client *client,
    const struct ml_client_want *want,
    const uint8_t *bytes,
    const struct ml_staging_lane *lane_after
) {
    enum ml_status status = open_for_more(client);
    if (status != ML_OK) {
        return status;
    }
    const uint32_t before = ml_hand_work_on(client->hand, client->setup.id);
    status = digest(client, ml_staging_reader_take(&client->staging, want, bytes, lane_after));
    (void)ml_hand_work_on(client->hand, before);
    return status;
}

void ml_client_pipe(struct ml_client *client, uint64_t pipe_bytes) {
    client->pipe_bytes = pipe_bytes;
}

uint64_t ml_client_full_events(const struct ml_client *client) {
    const uint64_t events =
        ml_budget_left(&client->budget) / ML_SESSION_QUEUE_PART / sizeof(struct ml_timed);
    return events < ML_SESSION_QUEUE_FULL_EVENTS ? events : ML_SESSION_QUEUE_FULL_EVENTS;
}

size_t ml_client_part_bytes(const struct ml_client *client) {
    const size_t bytes = ml_client_full_events(client) * ML_SESSION_EVENT_LEAST_BYTES;
    return bytes > ML_FRAME_MAX_BYTES ? bytes : ML_FRAME_MAX_BYTES;
}

bool ml_client_full(const struct ml_client *client) {
    return ml_client_awaits_sampling(client) ||
           client->sequencer.queued > ml_client_full_events(client);
}

bool ml_client_settled(const struct ml_client *client) {
    return client->lost != ML_OK || client->phase != ML_CLIENT_RUNNING ||
           ml_staging_reader_settled(&client->staging);
}

enum ml_status ml_client_status(const struct ml_client *client) {
    return client->lost;
}

const char *ml_client_loss(const struct ml_client *client) {
    if (client->lost == ML_OK) {
        return NULL;
    }
    return client->lost == ML_ENV_MEMORY && client->over_quota ? client->trouble
                                                               : ml_status_text(client->lost);
}
