#include "service/session/internal.h"
#include "service/session/session.h"

/* When the series have grown to the first part of their bound, they are cut to the second, so that
 * room is not sought at each turn. */
enum { FULL_EIGHTHS = 7, FREED_EIGHTHS = 6 };

void ml_client_free_timeline(struct ml_client *client) {
    ml_timeline_free(client->timeline, &client->session->timelines.budget);
    client->timeline = NULL;
}

/* Nothing more is noted of a process that has ended, or whose tables were cut. */
static bool is_over(const struct ml_client *client) {
    return client->phase >= ML_CLIENT_DONE || client->relieved;
}

/* Free series of ended processes until there is room. */
static void make_room(struct ml_session *session) {
    struct ml_budget *budget = &session->timelines.budget;
    if (budget->used_bytes < budget->max_bytes / 8 * FULL_EIGHTHS) {
        return;
    }
    for (struct ml_client *client = session->first;
         client != NULL && budget->used_bytes > budget->max_bytes / 8 * FREED_EIGHTHS;
         client = client->next) {
        if (is_over(client)) {
            ml_client_free_timeline(client);
        }
    }
}

static void begin(struct ml_client *client, uint64_t ns) {
    struct ml_budget *budget = &client->session->timelines.budget;
    client->timeline = ml_timeline_new(budget);
    if (client->timeline != NULL) {
        const struct ml_series_now nothing = {0};
        const uint64_t from_ns = client->profile_ns < ns ? client->profile_ns : ns;
        ml_series_note(&client->timeline->sums, budget, from_ns, &nothing);
    }
}

static void note(struct ml_client *client, uint64_t ns, bool is_exact) {
    struct ml_timelines *timelines = &client->session->timelines;
    if (client->timeline == NULL) {
        begin(client, ns);
    }
    struct ml_timeline_log *timeline = client->timeline;
    if (timeline != NULL) {
        const uint64_t bytes = timeline->noted_bytes;
        const uint64_t blocks = timeline->noted_blocks;
        ml_timeline_note(timeline, &timelines->budget, &client->tracker, ns, is_exact);
        timelines->total_bytes += timeline->noted_bytes - bytes;
        timelines->total_blocks += timeline->noted_blocks - blocks;
    }
}

void ml_client_end_timeline(struct ml_client *client, uint64_t ns) {
    const uint64_t noted_ns = client->session->timelines.noted_ns;
    if (noted_ns != 0 && !is_over(client)) {
        note(client, ns, true);
    }
}

void ml_session_note_time(struct ml_session *session, uint64_t monotonic_ns, bool is_exact) {
    struct ml_timelines *timelines = &session->timelines;
    if (!is_exact && timelines->noted_ns != 0 &&
        monotonic_ns < timelines->noted_ns + ml_timeline_sums_shape.slot_ns) {
        return;
    }
    timelines->noted_ns = monotonic_ns;
    make_room(session);
    for (struct ml_client *client = session->first_active; client != NULL;
         client = client->next_active) {
        if (!is_over(client)) {
            note(client, monotonic_ns, is_exact);
        }
    }
    const struct ml_series_now now = {
        .live_bytes = session->tree.live_bytes,
        .most_bytes =
            session->tree.peak_bytes > timelines->noted_peak_bytes ? session->tree.peak_bytes : 0,
        .total_bytes = timelines->total_bytes,
        .total_blocks = timelines->total_blocks};
    timelines->noted_peak_bytes = session->tree.peak_bytes;
    ml_series_note(&timelines->tree, &timelines->budget, monotonic_ns, &now);
}
