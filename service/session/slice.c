/* Applies a slice of time: everything that is ready up to a moment, of all clients.
 *
 * The order between processes matters only for the tree's peak. There are four ways to apply a
 * slice, and all give the same figures:
 *
 *   alone    one client has events: in its own order
 *   apart    the tree's peak cannot be reached in any order: each client by itself, on several
 *            cores if there are several
 *   noted    it may be reached: each client by itself as well, with its changes noted
 *            (change_log.h). The notes then show where the maximum was. This is faster on one core,
 *            too: many events of one client in a row find more in the cache
 *   merged   by one thread in the order of stamps: where a client leaves the tree or returns to it,
 *            and for few events
 *
 * Clients that are applied apart do not touch each other: neither the tree's sums (each hand has
 * its own, which are added afterwards), nor a parent's list of children, nor the children that they
 * have reaped. */
#include <stdlib.h>

#include "service/heap/change_log.h"
#include "service/session/internal.h"

enum {
    /* Events that are noted at once: at most 48 bytes each, 3 MiB. More events are noted in further
     * pieces. */
    PIECE_EVENTS = 1 << 16,
    /* Between two moments at which a client leaves the tree lies a piece that may be noted. After
     * so many of them the rest is merged. */
    CUTS_MAX = 8,
    /* Advances without notes until their memory is freed. */
    NOTES_IDLE_ROUNDS = 64
};

struct slice {
    struct ml_session *session;
    struct ml_client **clients; /* ready ones */
    uint32_t count;
    uint64_t until;
    ml_wide_sum most_bytes; /* the tree's sum stays at or below this */
    uint64_t events;        /* that are queued up to `until` */
    uint64_t first_turn;    /* no client leaves or enters the tree before this moment */
    bool can_note;
};

/* ---- who is ready */

bool ml_client_follows(const struct ml_client *client) {
    return client->phase == ML_CLIENT_RUNNING && client->lost == ML_OK && client->staging.asked;
}

/* Whether it has events up to `until`, all of which are here. */
static bool ready(const struct ml_client *client, uint64_t until) {
    uint64_t first = 0;
    if (ml_client_follows(client)) {
        return client->known_ticks >= until && ml_sequencer_first(&client->sequencer, &first) &&
               first <= until;
    }
    return ml_sequencer_first(&client->sequencer, &first) && first <= until &&
           (client->phase != ML_CLIENT_RUNNING || client->lost != ML_OK);
}

static uint64_t first_of(const struct ml_client *client) {
    uint64_t first = UINT64_MAX;
    return ml_sequencer_first(&client->sequencer, &first) ? first : UINT64_MAX;
}

/* Find its first queued event that takes a client out of the tree; the former first one was
 * applied. */
static void find_turn(struct ml_client *client) {
    const struct ml_sequencer *sequencer = &client->sequencer;
    client->first_turn = UINT64_MAX;
    for (uint32_t i = 0; i < sequencer->heap_count; i++) {
        const struct ml_lane_queue *queue = ml_sequencer_queue(sequencer, sequencer->heap[i].lane);
        for (uint32_t k = queue->head; k < queue->count; k++) {
            const struct ml_timed *timed = &queue->events[k];
            if ((timed->kind == ML_EVENT_END || timed->kind == ML_EVENT_REAPED) &&
                timed->time < client->first_turn) {
                client->first_turn = timed->time;
            }
            k += timed->kind == ML_TIMED_ALLOC_WIDE ? 1 : 0;
        }
    }
}

/* The first queued event that takes a client out of the tree: its own, or one of the host's, which
 * are in a lane of their own. */
static uint64_t next_turn(struct ml_client *client) {
    const struct ml_sequencer *sequencer = &client->sequencer;
    uint64_t turn = UINT64_MAX;
    if (client->turns_queued > 0) {
        if (client->first_turn < first_of(client)) {
            find_turn(client);
        }
        turn = client->first_turn;
    }
    const struct ml_lane_queue *host = ml_sequencer_queue(sequencer, ML_SEQUENCER_HOST_LANE);
    for (uint32_t i = host != NULL ? host->head : 0; host != NULL && i < host->count; i++) {
        /* A reading, also of the host, takes no client out of the tree. */
        if (host->events[i].kind == ML_TIMED_LEAVE) {
            return host->events[i].time < turn ? host->events[i].time : turn;
        }
    }
    return turn;
}

static void add_client(struct slice *slice, struct ml_client *client) {
    const uint64_t turn = next_turn(client);
    slice->clients[slice->count++] = client;
    slice->most_bytes += client->queued_bytes + client->resizing_bytes;
    slice->first_turn = turn < slice->first_turn ? turn : slice->first_turn;
    /* Sampled blocks have variances, which notes do not hold. A client outside the tree returns
     * with its next event, unless that is a turn. */
    const bool steady = client->tracker.in_tree && client->leaving == ML_LEAVING_NOT;
    slice->can_note = slice->can_note && !client->sampled && !client->has_heaps &&
                      (steady || turn <= first_of(client));
}

static struct slice slice_until(struct ml_session *session, uint64_t until) {
    struct slice slice = {
        .session = session,
        .clients = session->merge,
        .until = until,
        .first_turn = UINT64_MAX,
        .can_note = true};
    for (struct ml_client *client = session->first_active; client != NULL;
         client = client->next_active) {
        const bool moves = ready(client, until);
        if (moves) {
            add_client(&slice, client);
        }
        if (moves || client->tracker.in_tree) {
            slice.most_bytes += client->tracker.totals.live_bytes;
        }
    }
    for (uint32_t i = 0; i < slice.count; i++) {
        slice.events += ml_sequencer_count(&slice.clients[i]->sequencer, until);
    }
    return slice;
}

/* ---- merged */

static bool earlier(const struct ml_client *a, const struct ml_client *b) {
    const uint64_t time_a = first_of(a);
    const uint64_t time_b = first_of(b);
    return time_a != time_b ? time_a < time_b : a->order < b->order;
}

static void sift(struct ml_client **heap, uint32_t count, uint32_t at) {
    for (;;) {
        uint32_t least = 2 * at + 1;
        if (least >= count) {
            return;
        }
        if (least + 1 < count && earlier(heap[least + 1], heap[least])) {
            least++;
        }
        if (!earlier(heap[least], heap[at])) {
            return;
        }
        struct ml_client *client = heap[at];
        heap[at] = heap[least];
        heap[least] = client;
        at = least;
    }
}

/* How far heap[0] may go before another client's event. */
static uint64_t alone_until(struct ml_client *const *heap, uint32_t count, uint64_t until) {
    for (uint32_t i = 1; i < 3 && i < count; i++) {
        const uint64_t other = first_of(heap[i]);
        if (heap[0]->order < heap[i]->order) {
            until = other < until ? other : until;
        } else if (other <= until) {
            until = other - 1; /* heap[0] comes first, so other > 0 */
        }
    }
    return until;
}

/* In the order of stamps over all clients. */
static void apply_merged(const struct slice *slice) {
    struct ml_client **heap = slice->clients;
    const uint64_t until = slice->until;
    uint32_t count = slice->count;
    for (uint32_t i = count; i-- > 0;) {
        sift(heap, count, i);
    }
    while (count > 0) {
        ml_client_apply(heap[0], alone_until(heap, count, until));
        if (first_of(heap[0]) > until || heap[0]->sequencer.queued == 0) {
            heap[0] = heap[--count];
        }
        sift(heap, count, 0);
    }
}

/* ---- apart */

/* Each hand gets a tree for its changes alone, whose peak is out of reach. */
static void lend_trees(struct ml_session *session) {
    for (unsigned i = 0; i <= ml_workers_count(session->workers); i++) {
        session->hands[i].tree = session->tree;
        session->hands[i].tree.live_bytes = 0;
        session->hands[i].tree.live_blocks = 0;
        session->hands[i].tree.peak_bytes = UINT64_MAX;
    }
}

/* The differences may be negative: unsigned sums wrap to the right value. */
static void take_trees_back(struct ml_session *session) {
    for (unsigned i = 0; i <= ml_workers_count(session->workers); i++) {
        session->tree.live_bytes += session->hands[i].tree.live_bytes;
        session->tree.live_blocks += session->hands[i].tree.live_blocks;
    }
}

static void apply_one_apart(void *context, uint32_t item, unsigned worker) {
    const struct slice *slice = context;
    struct ml_client *client = slice->clients[item];
    client->hand = ml_session_hand(slice->session, worker);
    client->tracker.tree = &client->hand->tree;
    ml_client_apply(client, slice->until);
    client->tracker.tree = &slice->session->tree;
    client->hand = &slice->session->hands[0];
}

/* Clients [0, count) of the slice, each by itself. */
static void run_apart(const struct slice *slice, uint32_t count, ml_work *work, void *context) {
    struct ml_session *session = slice->session;
    lend_trees(session);
    session->apart = true;
    ml_workers_run(session->workers, work, context, count);
    session->apart = false;
    take_trees_back(session);
    for (uint32_t i = 0; i < count; i++) {
        if (slice->clients[i]->leaving == ML_LEAVING_APART) {
            ml_client_left(slice->clients[i]);
        }
    }
}

/* The client with most events comes first, so that no worker starts on it last. */
static void put_largest_first(const struct slice *slice, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        struct ml_client *client = slice->clients[i];
        if (client->sequencer.queued > slice->clients[0]->sequencer.queued) {
            slice->clients[i] = slice->clients[0];
            slice->clients[0] = client;
        }
    }
}

/* A client that has reaped children touches them, so it is applied after the others, one at a
 * time. */
static void apply_apart(struct slice *slice) {

    uint32_t apart = 0;
    for (uint32_t i = 0; i < slice->count; i++) {
        struct ml_client *client = slice->clients[i];
        if (client->reaps_queued == 0) {
            slice->clients[i] = slice->clients[apart];
            slice->clients[apart++] = client;
        }
    }
    put_largest_first(slice, apart);
    run_apart(slice, apart, apply_one_apart, slice);
    for (uint32_t i = apart; i < slice->count; i++) {
        ml_client_apply(slice->clients[i], slice->until);
    }
}

/* ---- noted */

struct noted {
    struct slice slice;
    struct ml_change_log *logs; /* of the slice's clients */
};

static void apply_one_noted(void *context, uint32_t item, unsigned worker) {
    struct noted *noted = context;
    struct ml_tracker *tracker = &noted->slice.clients[item]->tracker;
    tracker->log = &noted->logs[item];
    apply_one_apart(&noted->slice, item, worker);
    tracker->log = NULL;
}

static void notice_one(void *context, uint32_t item, unsigned worker) {
    const struct noted *noted = context;
    (void)worker;
    ml_tracker_notice_late(&noted->slice.clients[item]->tracker, &noted->logs[item]);
}

/* At most two: the former block at the address, and the new one. */
enum { CHANGES_EACH = 2 };

static void free_logs(struct ml_notes *notes, struct ml_budget *budget) {
    ml_budget_free(budget, notes->logs, notes->logs_capacity * sizeof(*notes->logs));
    ml_budget_free(budget, notes->heap, notes->logs_capacity * sizeof(struct ml_change_log *));
    notes->logs = NULL;
    notes->heap = NULL;
    notes->logs_capacity = 0;
}

/* Make room for the notes of a piece. False: no notes are made. */
static bool reserve_notes(struct ml_session *session) {
    struct ml_budget *budget = &session->budget;
    struct ml_notes *notes = &session->notes;
    notes->idle_rounds = 0;
    if (notes->changes == NULL) {
        notes->capacity = PIECE_EVENTS * CHANGES_EACH;
        notes->changes = ml_budget_new_table(budget, notes->capacity * sizeof(*notes->changes));
    }
    if (notes->logs_capacity < session->merge_capacity) {
        free_logs(notes, budget);
        notes->logs_capacity = session->merge_capacity;
        notes->logs = ml_budget_new(budget, notes->logs_capacity * sizeof(*notes->logs));
        notes->heap = ml_budget_new(budget, notes->logs_capacity * sizeof(struct ml_change_log *));
    }
    if (notes->changes != NULL && notes->logs != NULL && notes->heap != NULL) {
        return true;
    }
    ml_notes_fini(notes, budget);
    return false;
}

void ml_notes_fini(struct ml_notes *notes, struct ml_budget *budget) {
    ml_budget_free_table(budget, notes->changes, notes->capacity * sizeof(*notes->changes));
    free_logs(notes, budget);
    *notes = (struct ml_notes){.changes = NULL};
}

void ml_notes_round(struct ml_notes *notes, struct ml_budget *budget) {
    notes->idle_rounds++;
    if (notes->idle_rounds > NOTES_IDLE_ROUNDS) {
        ml_notes_fini(notes, budget);
    }
}

static void open_logs(const struct slice *slice, struct ml_notes *notes) {
    uint64_t used = 0;
    for (uint32_t i = 0; i < slice->count; i++) {
        const struct ml_client *client = slice->clients[i];
        const uint64_t most = ml_sequencer_count(&client->sequencer, slice->until) * CHANGES_EACH;
        if (most > notes->capacity - used) {
            abort(); /* take_piece counted wrongly */
        }
        notes->logs[i] = (struct ml_change_log
        ){.changes = notes->changes + used, .capacity = (uint32_t)most, .order = client->order};
        used += most;
    }
}

static void apply_noted(const struct slice *slice) {
    struct ml_session *session = slice->session;
    struct noted noted = {.slice = *slice, .logs = session->notes.logs};
    struct ml_tree tree = session->tree;
    put_largest_first(slice, slice->count);
    open_logs(slice, &session->notes);
    run_apart(slice, slice->count, apply_one_noted, &noted);
    if (!ml_change_logs_stay_below(noted.logs, slice->count, &tree) &&
        ml_change_logs_merge(noted.logs, slice->count, session->notes.heap, &tree)) {
        session->tree = tree;
        ml_workers_run(session->workers, notice_one, &noted, slice->count);
    }
}

/* ---- the way that is taken */

static bool pays(const struct slice *slice) {
    return slice->count > 1 && slice->events >= slice->session->least_events;
}

/* In any order. */
static void apply_each(struct slice *slice) {
    if (pays(slice)) {
        apply_apart(slice);
        return;
    }
    for (uint32_t i = 0; i < slice->count; i++) {
        ml_client_apply(slice->clients[i], slice->until);
    }
}

static uint64_t first_of_all(const struct slice *slice) {
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < slice->count; i++) {
        const uint64_t own = first_of(slice->clients[i]);
        first = own < first ? own : first;
    }
    return first;
}

/* The slice's first piece. False: it can be noted. True: it has to be merged before more can be
 * noted. */
static bool take_piece(const struct slice *slice, struct slice *out_piece) {
    const uint64_t first = first_of_all(slice);
    if (slice->first_turn <= first) {
        *out_piece = slice_until(slice->session, first);
        return true;
    }
    const uint64_t last = slice->first_turn - 1;
    *out_piece = slice_until(slice->session, last < slice->until ? last : slice->until);
    while (out_piece->events > PIECE_EVENTS && out_piece->until > first) {
        *out_piece = slice_until(slice->session, first + (out_piece->until - first) / 2);
    }
    return out_piece->events > PIECE_EVENTS;
}

void ml_session_apply_ready(struct ml_session *session, uint64_t until) {
    uint32_t cuts = 0;
    for (;;) {
        struct slice slice = slice_until(session, until);
        if (slice.count < 2 || slice.most_bytes <= session->tree.peak_bytes) {
            apply_each(&slice);
            return;
        }
        if (cuts == CUTS_MAX || !pays(&slice) || !slice.can_note || !reserve_notes(session)) {
            apply_merged(&slice);
            return;
        }
        struct slice piece;
        if (take_piece(&slice, &piece)) {
            cuts++;
            apply_merged(&piece);
        } else {
            apply_noted(&piece);
        }
    }
}
