#include "service/session/guard.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "service/session/internal.h"
#include "service/session/session.h"
#include "service/session/top_stacks.h"

enum { LIMIT_BYTES = 40, GROWTH_DIVISOR = 4 /* of a live map */ };

/* What all clients use, but those that are lost, of what they may. */
struct use {
    uint64_t used_bytes, percent_bytes;
    struct ml_client *largest; /* NULL: nobody can give up anything */
};

uint64_t ml_session_quota_bytes(const struct ml_session *session) {
    const uint64_t max_bytes = session->budget.max_bytes;
    if (session->max_client_bytes != 0) {
        return session->max_client_bytes;
    }
    return max_bytes == UINT64_MAX ? max_bytes : max_bytes / 100 * ML_GUARD_CLIENT_PERCENT;
}

static bool can_pay(const struct ml_client *client) {
    return client->phase == ML_CLIENT_RUNNING && client->lost == ML_OK &&
           !client->tracker.totals_only;
}

static bool holds_more(const struct ml_client *client, const struct ml_client *than) {
    return than == NULL || client->budget.used_bytes > than->budget.used_bytes;
}

/* The client that holds most of those that can still give up something. NULL: none, or one that has
 * ended holds more and gives it back soon. */
static struct ml_client *largest_of(struct ml_session *session) {
    struct ml_client *largest = NULL;
    struct ml_client *ended = NULL;
    for (struct ml_client *client = session->first_active; client != NULL;
         client = client->next_active) {
        if (client->phase == ML_CLIENT_ENDED && holds_more(client, ended)) {
            ended = client;
        } else if (can_pay(client) && holds_more(client, largest)) {
            largest = client;
        }
    }
    return largest != NULL && ended != NULL && holds_more(ended, largest) ? NULL : largest;
}

static bool drop_blocks(struct ml_client *client, const char *trouble) {
    if (client->tracker.totals_only) {
        return false;
    }
    ml_tracker_keep_totals(&client->tracker);
    ml_client_trouble(client, trouble);
    return true;
}

bool ml_client_pay(struct ml_client *client) {
    char trouble[ML_TROUBLE_MAX_BYTES];
    if (client->tracker.totals_only || !client->budget.over) {
        return drop_blocks(client, ML_GUARD_DROPPED_TROUBLE);
    }
    client->over_quota = true;
    ml_client_quota_text(
        client, "what is live is as of then, what was freed since is not known", trouble
    );
    return drop_blocks(client, trouble);
}

static void set_stuck(struct ml_client *client, uint64_t stuck_bytes) {
    _Atomic uint64_t *sum = &client->session->stuck_bytes;
    atomic_fetch_add_explicit(sum, stuck_bytes - client->stuck_bytes, memory_order_relaxed);
    client->stuck_bytes = stuck_bytes;
}

void ml_client_relieve(struct ml_client *client) {
    struct ml_budget *own = &client->budget;
    struct ml_budget *whole = &client->session->budget;
    if (client->lost != ML_ENV_MEMORY || client->relieved) {
        return;
    }
    ml_client_end_timeline(client, client->session->timelines.noted_ns);
    client->relieved = true;
    if (client->timeline != NULL) {
        /* Their nodes have the ids of the tables that go. */
        ml_timeline_drop_stacks(client->timeline, &client->session->timelines.budget);
    }
    /* The smaller tables are made before the others are freed. */
    const uint64_t own_bytes = own->max_bytes;
    const uint64_t whole_bytes = whole->max_bytes;
    own->max_bytes = UINT64_MAX;
    whole->max_bytes = UINT64_MAX;
    /* Without memory the tables stay. */
    (void)!ml_top_stacks_keep(&client->stacks, &client->tracker);
    own->max_bytes = own_bytes;
    whole->max_bytes = whole_bytes;
    set_stuck(client, own->used_bytes);
}

/* A client that has lost its live blocks, which the host does not know yet. */
static struct ml_client *untold(struct ml_session *session) {
    for (struct ml_client *client = session->first_active; client != NULL;
         client = client->next_active) {
        if (client->tracker.totals_only && client->told != ML_GUARD_DROPPED) {
            return client;
        }
    }
    return NULL;
}

static bool tell(
    const struct ml_session *session,
    enum ml_guard_step step,
    struct ml_client *client,
    struct ml_guard_event *out_event
) {
    const struct ml_budget *budget = client->over_quota ? &client->budget : &session->budget;
    *out_event = (struct ml_guard_event
    ){.step = step,
      .client = client->setup.id,
      .sampling_bytes = client->guard_sampling_bytes,
      .used_bytes = budget->used_bytes,
      .max_bytes = budget->max_bytes == UINT64_MAX ? 0 : budget->max_bytes,
      .quota = client->over_quota};
    client->told = step;
    return true;
}

static bool tell_dropped(struct ml_session *session, struct ml_guard_event *out_event) {
    struct ml_client *client = untold(session);
    if (client == NULL) {
        return false;
    }
    session->guard.dropped_count += !client->over_quota;
    return tell(session, ML_GUARD_DROPPED, client, out_event);
}

bool ml_client_awaits_sampling(const struct ml_client *client) {
    const struct ml_session *session = client->session;
    const uint64_t hold_ticks = session->patience_ticks * ML_GUARD_HOLD_PATIENCES;
    return client->awaits_sampling && session->advanced_ticks - client->coarser_ticks < hold_ticks;
}

void ml_session_sampled(struct ml_session *session, uint32_t client_id) {
    struct ml_client *client = ml_session_find(session, client_id);
    if (client != NULL) {
        client->awaits_sampling = false;
    }
}

/* Sample a step coarser. False: it is at the coarsest, or the last step has had no effect yet. */
static bool make_coarser(
    struct ml_session *session, struct ml_client *client, struct ml_guard_event *out_event
) {
    const uint64_t pause_ticks = session->patience_ticks * ML_SESSION_PATIENCES;
    const uint64_t said = ml_sampling_log_latest(&client->sampling);
    const uint64_t present =
        said > client->guard_sampling_bytes ? said : client->guard_sampling_bytes;
    uint64_t next = present * ML_GUARD_SAMPLING_STEP;
    next = next < ML_GUARD_SAMPLING_FIRST_BYTES ? ML_GUARD_SAMPLING_FIRST_BYTES : next;
    if (present >= ML_GUARD_SAMPLING_LAST_BYTES ||
        (client->coarser_ticks != 0 && session->advanced_ticks < client->coarser_ticks + pause_ticks
        )) {
        return false;
    }
    client->coarser_ticks = session->advanced_ticks;
    client->awaits_sampling = true;
    session->guard.coarser_count += client->told == ML_GUARD_NOTHING;
    client->guard_sampling_bytes =
        next < ML_GUARD_SAMPLING_LAST_BYTES ? next : ML_GUARD_SAMPLING_LAST_BYTES;
    return tell(session, ML_GUARD_COARSER, client, out_event);
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* What the host has seen of processes is worth less than their heaps. */
static bool return_views(struct ml_session *session) {
    bool any = false;
    for (struct ml_client *client = session->first; client != NULL; client = client->next) {
        any = ml_client_return_views(client) || any;
        ml_client_free_returned(client);
    }
    return any;
}

static void free_returned(struct ml_session *session) {
    for (struct ml_client *client = session->first_active; client != NULL;
         client = client->next_active) {
        ml_client_free_returned(client);
    }
}

/* Blocks that a client may have sent before the guard looks again: those that may wait, and what is
 * read at once before they are counted. */
static uint64_t blocks_a_look(const struct ml_client *client) {
    const uint64_t events = ml_client_full_events(client);
    return events + ml_client_part_bytes(client) / ML_GUARD_ALLOC_LEAST_BYTES;
}

/* Blocks that it may send before it samples: what its pipe and its staging hold. */
static uint64_t blocks_under_way(const struct ml_client *client) {
    const struct ml_staging_reader *staging = &client->staging;
    const uint64_t staging_bytes =
        (uint64_t)staging->lanes_count * staging->slots * ML_FRAME_MAX_BYTES;
    return (client->pipe_bytes + staging_bytes) / ML_GUARD_ALLOC_LEAST_BYTES;
}

/* What is used, with what the client takes for so many more blocks. */
static uint64_t with_blocks(uint64_t used_bytes, const struct ml_client *client, uint64_t blocks) {
    return used_bytes + ml_live_map_more_bytes(&client->tracker.live, blocks);
}

/* Take the next step of the largest client. */
static bool
make_pay(struct ml_session *session, const struct use *use, struct ml_guard_event *out_event) {
    struct ml_client *client = use->largest;
    const uint64_t look_blocks = blocks_a_look(client);
    /* What comes before the question, before the first look behind it, and what a look then needs.
     */
    const uint64_t before_blocks = blocks_under_way(client) + 2 * look_blocks;
    const bool is_asked = client->told != ML_GUARD_NOTHING;
    if (use->used_bytes < use->percent_bytes * ML_GUARD_COARSER_FROM_PERCENT ||
        with_blocks(use->used_bytes, client, before_blocks) <
            use->percent_bytes * ML_GUARD_COARSER_PERCENT) {
        return false;
    }
    if (return_views(session)) {
        return ml_session_guard(session, out_event); /* that may have been enough */
    }
    if (is_asked && !ml_client_awaits_sampling(client) &&
        with_blocks(use->used_bytes, client, look_blocks) >=
            use->percent_bytes * ML_GUARD_DROP_PERCENT &&
        drop_blocks(client, ML_GUARD_DROPPED_TROUBLE)) {
        return tell_dropped(session, out_event);
    }
    return make_coarser(session, client, out_event);
}

bool ml_session_guard(struct ml_session *session, struct ml_guard_event *out_event) {
    free_returned(session);
    if (tell_dropped(session, out_event)) {
        return true;
    }
    /* Memory that lost clients keep is neither room for the others nor their use. */
    const uint64_t bound_bytes = smaller(session->budget.used_bytes, session->budget.max_bytes);
    const uint64_t stuck_bytes = smaller(session->stuck_bytes, bound_bytes);
    const struct use use = {
        .used_bytes = session->budget.used_bytes - stuck_bytes,
        .percent_bytes = (session->budget.max_bytes - stuck_bytes) / 100 + 1,
        .largest = largest_of(session)};
    if (session->budget.max_bytes == UINT64_MAX ||
        use.used_bytes < use.percent_bytes * ML_GUARD_QUIET_PERCENT) {
        session->guard.fold_all = false;
        return false;
    }
    const struct ml_live_map *map = use.largest != NULL ? &use.largest->tracker.live : NULL;
    const uint64_t growth_bytes = map != NULL ? ml_live_map_bytes(map) / GROWTH_DIVISOR : 0;
    session->guard.fold_all =
        use.used_bytes + growth_bytes >= use.percent_bytes * ML_GUARD_FOLD_PERCENT;
    return use.largest != NULL && make_pay(session, &use, out_event);
}

static uint32_t over_quota_count(const struct ml_session *session) {
    uint32_t count = 0;
    for (const struct ml_client *client = session->first; client != NULL; client = client->next) {
        count += client->over_quota;
    }
    return count;
}

/* Add a part to the line. */
static void __attribute__((format(printf, 3, 4)))
say(char *text, uint32_t text_bytes, const char *format, ...) {
    const size_t said_bytes = strlen(text);
    va_list values;
    va_start(values, format);
    (void)snprintf(text + said_bytes, text_bytes - said_bytes, "%s", said_bytes > 0 ? "; " : "");
    const size_t before_bytes = strlen(text);
    (void)vsnprintf(text + before_bytes, text_bytes - before_bytes, format, values);
    va_end(values);
}

void ml_session_guard_text(const struct ml_session *session, char *text, uint32_t text_bytes) {
    const struct ml_guard *guard = &session->guard;
    const uint32_t over_quota = over_quota_count(session);
    const uint32_t late = atomic_load_explicit(&session->late_children, memory_order_relaxed);
    char limit[LIMIT_BYTES] = "";
    text[0] = 0;
    if (session->budget.max_bytes != UINT64_MAX) {
        (void
        )snprintf(limit, sizeof(limit), " of %" PRIu64 " MiB", session->budget.max_bytes >> 20);
    }
    if (guard->coarser_count + guard->dropped_count > 0) {
        say(text,
            text_bytes,
            "its memory%s ran short; processes sampled: %" PRIu32 ", kept as totals: %" PRIu32,
            limit,
            guard->coarser_count,
            guard->dropped_count);
    }
    if (over_quota > 0) {
        say(text, text_bytes, "processes over their quota of memory in it: %" PRIu32, over_quota);
    }
    if (late > 0) {
        say(text,
            text_bytes,
            "forked processes that it heard of too late to put them in order with the others: "
            "%" PRIu32 "; the peak of all may be wrong",
            late);
    }
}
