#include "service/session/session.h"

#include <stdlib.h>
#include <string.h>

#include "service/session/figures.h"
#include "service/session/fold.h"
#include "service/session/internal.h"

struct ml_session *ml_session_new(const struct ml_timestamp *start, uint64_t max_memory_bytes) {
    /* The hands need cache lines of their own. */
    struct ml_session *session = aligned_alloc(_Alignof(struct ml_session), sizeof(*session));
    if (session == NULL) {
        return NULL;
    }
    memset(session, 0, sizeof(*session));
    session->start = *start;
    for (unsigned i = 0; i <= ML_WORKERS_MAX; i++) {
        session->hands[i].words = &session->hands[i].own_words;
    }
    session->least_events = ML_SESSION_LEAST_EVENTS;
    session->budget.max_bytes = max_memory_bytes == 0 ? UINT64_MAX : max_memory_bytes;
    session->keep_processes = UINT32_MAX;
    ml_tree_init(&session->tree);
    session->timelines.budget.max_bytes = ML_TIMELINE_MAX_BYTES;
    ml_series_init(&session->timelines.tree, &ml_timeline_sums_shape);
    return session;
}

void ml_session_free(struct ml_session *take_session) {
    if (take_session == NULL) {
        return;
    }
    struct ml_client *client = take_session->first;
    while (client != NULL) {
        struct ml_client *next = client->next;
        ml_fold_free(client->fold, &take_session->budget);
        ml_client_free(client);
        client = next;
    }
    ml_notes_fini(&take_session->notes, &take_session->budget);
    ml_series_fini(&take_session->timelines.tree, &take_session->timelines.budget);
    ml_budget_free(
        &take_session->budget,
        take_session->merge,
        take_session->merge_capacity * sizeof(struct ml_client *)
    );
    ml_budget_free(
        &take_session->budget,
        take_session->folded_into,
        take_session->folded_into_count * sizeof(*take_session->folded_into)
    );
    free(take_session);
}

struct ml_client *ml_session_find(struct ml_session *session, uint32_t id) {
    struct ml_client *client = session->by_id[id % ML_SESSION_BUCKETS];
    while (client != NULL && client->setup.id != id) {
        client = client->next_by_id;
    }
    return client;
}

static enum ml_status reserve_merge(struct ml_session *session) {
    if (session->clients_count < session->merge_capacity) {
        return ML_OK;
    }
    const uint32_t old = session->merge_capacity;
    const uint32_t wanted = old == 0 ? 16 : old * 2;
    struct ml_client **merge = ml_budget_resize(
        &session->budget, session->merge, old * sizeof(*merge), wanted * sizeof(*merge)
    );
    if (merge == NULL) {
        return ML_ENV_MEMORY;
    }
    session->merge = merge;
    session->merge_capacity = wanted;
    return ML_OK;
}

void ml_session_say(struct ml_session *session, struct ml_last_words *words) {
    session->hands[0].words = words;
}

void ml_session_workers(
    struct ml_session *session, struct ml_workers *workers, uint64_t least_events
) {
    session->workers = workers;
    session->least_events = least_events;
}

void ml_session_apart(struct ml_session *session) {
    session->apart = true;
}

void ml_client_take(struct ml_client *client, unsigned worker) {
    client->hand = ml_session_hand(client->session, worker);
}

void ml_session_together(struct ml_session *session) {
    session->apart = false;
}

void ml_client_give_back(struct ml_client *client) {
    client->hand = &client->session->hands[0];
    ml_client_digest(client);
}

void ml_session_limit(struct ml_session *session, uint64_t max_memory_bytes) {
    session->budget.max_bytes = max_memory_bytes == 0 ? UINT64_MAX : max_memory_bytes;
}

void ml_session_quota(struct ml_session *session, uint64_t max_client_bytes) {
    session->max_client_bytes = max_client_bytes;
}

void ml_session_keep(struct ml_session *session, uint32_t processes) {
    session->keep_processes = processes;
}

void ml_session_patience(struct ml_session *session, uint64_t ticks) {
    session->patience_ticks = ticks;
}

/* The kernel gives a pid to one process at a time, so its earlier owner has left by exec or
 * death. */
static void replace_namesake(struct ml_session *session, struct ml_client *client) {
    struct ml_client **link = &session->by_pid[client->setup.pid % ML_SESSION_BUCKETS];
    for (struct ml_client *other = *link; other != NULL; other = other->next_by_pid) {
        if (other->setup.pid == client->setup.pid && other->phase == ML_CLIENT_RUNNING &&
            client->setup.pid != 0 && client->setup.start.ticks != 0) {
            ml_client_queue_leave(other, client->setup.start.ticks);
        }
    }
    client->next_by_pid = *link;
    *link = client;
}

static void forget_pid(struct ml_session *session, const struct ml_client *client) {
    struct ml_client **link = &session->by_pid[client->setup.pid % ML_SESSION_BUCKETS];
    while (*link != NULL && *link != client) {
        link = &(*link)->next_by_pid;
    }
    if (*link != NULL) {
        *link = client->next_by_pid;
    }
}

static void link_client(struct ml_session *session, struct ml_client *client) {
    client->order = session->orders_count++;
    session->clients_count++;
    session->running_count++;
    if (session->last == NULL) {
        session->first = client;
    } else {
        session->last->next = client;
    }
    session->last = client;
    client->next_active = session->first_active;
    session->first_active = client;
    struct ml_client **by_id = &session->by_id[client->setup.id % ML_SESSION_BUCKETS];
    client->next_by_id = *by_id;
    *by_id = client;
    if (client->parent != NULL) {
        client->next_sibling = client->parent->first_child;
        client->parent->first_child = client;
    }
    replace_namesake(session, client);
}

enum ml_status ml_session_add(
    struct ml_session *session, const struct ml_client_setup *setup, struct ml_client **out_client
) {
    if (session->clients_count >= ML_SESSION_CLIENTS_MAX) {
        return ML_PEER_LIMIT;
    }
    if (ml_session_find(session, setup->id) != NULL) {
        return ML_PEER_STATE;
    }
    const enum ml_status status = reserve_merge(session);
    if (status != ML_OK) {
        return status;
    }
    struct ml_client *client = ml_client_new(session, setup);
    if (client == NULL) {
        return ML_ENV_MEMORY;
    }
    client->parent = setup->parent_id == 0 ? NULL : ml_session_find(session, setup->parent_id);
    if (client->parent != NULL) {
        ml_fork_wait_come(&client->parent->fork_wait, setup->forked ? setup->fork_serial : 0);
    }
    client->tree_ticks = session->known_ticks;
    link_client(session, client);
    ml_client_inherit(client);
    *out_client = client;
    return ML_OK;
}

/* ---- time */

static uint64_t lane_last_time(const void *context, uint32_t lane) {
    const struct ml_lane_queue *queue = ml_sequencer_queue(context, lane);
    return queue != NULL ? queue->last_time : 0;
}

/* Finished clients leave the list that an advance looks at. */
static void finish_reached(struct ml_session *session, uint64_t until) {
    struct ml_client **link = &session->first_active;
    while (*link != NULL) {
        struct ml_client *client = *link;
        if (client->phase == ML_CLIENT_ENDED && client->end.end.ticks <= until) {
            ml_client_apply(client, UINT64_MAX);
            ml_client_finish(client);
            session->done_count++;
            *link = client->next_active;
        } else {
            link = &client->next_active;
        }
    }
}

/* Children that ended before their parent's FORK record came are no longer active. */
static void inherit_all(struct ml_session *session) {
    for (struct ml_client *client = session->first; client != NULL; client = client->next) {
        ml_client_inherit(client);
    }
}

uint64_t ml_client_known(const struct ml_client *client, uint64_t ticks) {
    if (client->phase == ML_CLIENT_RUNNING && client->lost == ML_OK && !client->staging.asked) {
        return 0;
    }
    return ml_client_follows(client)
               ? ml_staging_reader_known(
                     &client->staging, ticks, lane_last_time, &client->sequencer
                 )
               : ticks;
}

uint64_t ml_session_known(const struct ml_session *session) {
    return session->known_ticks;
}

/* Who lags by more than that is left behind. */
static uint64_t lag_ticks(const struct ml_session *session) {
    return session->patience_ticks * ML_SESSION_PATIENCES;
}

/* The moment up to which all clients are known, but for those that are left behind. */
static uint64_t known_of_all(struct ml_session *session, uint64_t ticks) {
    const uint64_t lag = lag_ticks(session);
    const uint64_t horizon = lag > 0 && lag < ticks ? ticks - lag : 0;
    uint64_t until = ticks;
    for (struct ml_client *client = session->first_active; client != NULL;
         client = client->next_active) {
        if (ml_client_follows(client)) {
            client->known_ticks = ml_client_known(client, ticks);
            client->followed_ticks = client->followed_ticks == 0 ? ticks : client->followed_ticks;
            const bool left_behind =
                client->known_ticks < horizon && client->followed_ticks < horizon;
            if (!left_behind && client->known_ticks < until) {
                until = client->known_ticks;
            }
        }
        until = ml_fork_wait_until(&client->fork_wait, ticks, lag, until);
    }
    return until;
}

static void apply_left_behind(struct ml_session *session, uint64_t until) {
    for (struct ml_client *client = session->first_active; client != NULL;
         client = client->next_active) {
        if (ml_client_follows(client) && client->known_ticks < until) {
            ml_client_apply(client, client->known_ticks);
        }
    }
}

enum ml_status ml_session_advance(struct ml_session *session, uint64_t ticks) {
    const uint64_t until = known_of_all(session, ticks);
    session->advanced_ticks = ticks;
    session->known_ticks = until;
    apply_left_behind(session, until);
    ml_session_apply_ready(session, until);
    for (struct ml_client *client = session->first_active; client != NULL;
         client = client->next_active) {
        if (ml_client_follows(client)) {
            const uint64_t own = client->known_ticks < until ? client->known_ticks : until;
            client->applied_ticks = own > client->applied_ticks ? own : client->applied_ticks;
            ml_staging_reader_round(&client->staging, ticks);
            ml_sequencer_round(&client->sequencer);
            ml_live_map_trim(&client->tracker.live);
        }
    }
    bool relieved = false;
    for (struct ml_client *client = session->first_active; client != NULL;
         client = client->next_active) {
        ml_client_inherit(client);
        relieved = relieved || (client->lost == ML_ENV_MEMORY && !client->relieved);
        ml_client_relieve(client);
    }
    const uint32_t done_before = session->done_count;
    finish_reached(session, until);
    ml_session_give_back(session, relieved || session->done_count != done_before);
    ml_notes_round(&session->notes, &session->budget);
    ml_session_fold(session, false);
    return ML_OK;
}

/* Nobody runs as far as is known, and children may be missing still. */
static bool waits_for_forks(const struct ml_session *session) {
    for (struct ml_client *client = session->first_active; client != NULL;
         client = client->next_active) {
        const uint64_t until = ml_fork_wait_until(
            &client->fork_wait, session->advanced_ticks, lag_ticks(session), UINT64_MAX
        );
        if (until != UINT64_MAX) {
            return true;
        }
    }
    return false;
}

bool ml_session_ask(struct ml_session *session, uint32_t *out_id) {
    for (struct ml_client *client = session->first_active; client != NULL;
         client = client->next_active) {
        if (ml_fork_wait_ask(&client->fork_wait)) {
            *out_id = client->setup.id;
            return true;
        }
    }
    return false;
}

void ml_session_heard(struct ml_session *session, uint32_t id, uint64_t ticks) {
    struct ml_client *client = ml_session_find(session, id);
    if (client != NULL) {
        ml_fork_wait_heard(&client->fork_wait, ticks);
    }
}

enum ml_status ml_client_ended(struct ml_client *client, const struct ml_client_end *end) {
    struct ml_session *session = client->session;
    if (client->phase != ML_CLIENT_RUNNING) {
        return ML_PEER_STATE;
    }
    client->phase = ML_CLIENT_ENDED;
    client->end = *end;
    session->running_count--;
    forget_pid(session, client);
    ml_client_queue_leave(client, end->end.ticks);
    if (session->running_count == 0 && !waits_for_forks(session)) {
        ml_session_apply_ready(session, UINT64_MAX);
        finish_reached(session, UINT64_MAX);
        inherit_all(session);
    }
    return ML_OK;
}

void ml_session_flush_ended(struct ml_session *session) {
    finish_reached(session, UINT64_MAX);
    inherit_all(session);
}

/* ---- the whole */

struct ml_client *ml_session_next(struct ml_session *session, struct ml_client *client) {
    return client == NULL ? session->first : client->next;
}

struct ml_totals ml_session_totals(const struct ml_session *session) {
    struct ml_totals sum = {
        .live_bytes = session->tree.live_bytes,
        .live_blocks = session->tree.live_blocks,
        .peak_bytes = session->tree.peak_bytes,
        .peak_blocks = session->tree.peak_blocks,
    };
    for (const struct ml_client *client = session->first; client != NULL; client = client->next) {
        const struct ml_totals *totals = &client->tracker.totals;
        ml_add_saturating(&sum.total_bytes, totals->total_bytes);
        ml_add_saturating(&sum.total_blocks, totals->total_blocks);
    }
    return sum;
}

struct ml_amount ml_session_left(const struct ml_session *session) {
    struct ml_amount sum = {0};
    for (const struct ml_client *client = session->first; client != NULL; client = client->next) {
        if (!client->tracker.in_tree) {
            sum.bytes += client->tracker.totals.live_bytes; /* bounded each: ML_LIVE_MAX_BYTES */
            sum.blocks += client->tracker.totals.live_blocks;
        }
    }
    return sum;
}
