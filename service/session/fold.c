#include "service/session/fold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/session/figures.h"
#include "service/session/internal.h"

/* ---- who belongs together */

static bool same_text(const char *a, const char *b) {
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

/* The same program, role and end: one line of the report describes both. */
static bool is_alike(const struct ml_client *a, const struct ml_client *b) {
    return a->role == b->role && a->end.state == b->end.state &&
           a->sampling.longest_bytes == b->sampling.longest_bytes && same_text(a->name, b->name) &&
           same_text(a->executable, b->executable);
}

/* The entries of one round of folding, and processes that may become one. */
struct entries {
    struct ml_client *list[ML_FOLD_PROGRAMS_MAX];
    uint32_t count;
};

/* The entry for a process. Itself: it is the first of its program. NULL: it is the first beyond the
 * limit of programs. */
static struct ml_client *
entry_for(struct ml_session *session, struct entries *entries, struct ml_client *client) {
    for (uint32_t i = 0; i < entries->count; i++) {
        if (is_alike(entries->list[i], client)) {
            return entries->list[i];
        }
    }
    if (entries->count < ML_FOLD_PROGRAMS_MAX) {
        entries->list[entries->count++] = client;
        return client;
    }
    return session->others;
}

/* ---- adding up */

static void add_accounting(struct ml_accounting *sum, const struct ml_accounting *one) {
    ml_add_saturating(&sum->produced, one->produced);
    ml_add_saturating(&sum->received, one->received);
    ml_add_saturating(&sum->in_flight, one->in_flight);
    ml_add_saturating(&sum->overrun, one->overrun);
    ml_add_saturating(&sum->no_lane, one->no_lane);
    ml_add_saturating(&sum->nested, one->nested);
    ml_add_saturating(&sum->no_pipe, one->no_pipe);
    ml_add_saturating(&sum->refused, one->refused);
    ml_add_saturating(&sum->unaccounted, one->unaccounted);
    ml_add_saturating(&sum->waits, one->waits);
    ml_add_saturating(&sum->waited_ns, one->waited_ns);
    ml_add_saturating(&sum->stream_bytes, one->stream_bytes);
    sum->balanced = sum->balanced && one->balanced;
    if (one->longest_wait_ns > sum->longest_wait_ns) {
        sum->longest_wait_ns = one->longest_wait_ns;
    }
}

/* The reading with most private memory; the first reason. */
static void add_coverage(struct ml_coverage_told *sum, const struct ml_coverage_told *one) {
    if (one->was_read && (!sum->was_read || one->private_bytes > sum->private_bytes)) {
        sum->was_read = true;
        sum->private_bytes = one->private_bytes;
        sum->heap_bytes = one->heap_bytes;
    }
    if (one->hooked_functions > sum->hooked_functions) {
        sum->hooked_functions = one->hooked_functions;
    }
    if (sum->unseen[0] == 0) {
        memcpy(sum->unseen, one->unseen, sizeof(sum->unseen));
    }
}

static void add_figures(struct ml_fold *fold, const struct ml_client *client) {
    const struct ml_client_figures one = ml_client_figures(client);
    struct ml_client_figures *sum = &fold->figures;
    add_accounting(&sum->accounting, &one.accounting);
    ml_add_saturating(&sum->events, one.events);
    ml_add_saturating(&sum->lost_events, one.lost_events);
    ml_add_saturating(&sum->unknown_frees, one.unknown_frees);
    ml_add_saturating(&sum->late_events, one.late_events);
    ml_add_saturating(&sum->truncated_stacks, one.truncated_stacks);
    ml_add_saturating(&sum->broken_stacks, one.broken_stacks);
    ml_add_saturating(&sum->inherited_bytes, one.inherited_bytes);
    ml_add_saturating(&sum->inherited_blocks, one.inherited_blocks);
    ml_add_saturating(&sum->missed_frees, one.missed_frees);
    ml_add_saturating(&sum->lost_chunks, one.lost_chunks);
    sum->complete = sum->complete && one.complete;
    add_coverage(&sum->coverage, &one.coverage);
    ml_add_saturating(&fold->unwind_checked, client->staging.header.unwind_checked);
    ml_add_saturating(&fold->unwind_differed, client->staging.header.unwind_differed);
    sum->folded_processes++;
    sum->folded_failed += client->end.exit_code != 0 || client->end.signal != 0;
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Its description covers all of them: from the first start to the last end, with the largest
 * footprint. Of its end it keeps what all have in common. */
static void widen(struct ml_client *entry, const struct ml_client *client) {
    if (client->setup.start.ticks < entry->setup.start.ticks) {
        entry->setup.start = client->setup.start;
    }
    if (client->end.end.ticks > entry->end.end.ticks) {
        entry->end.end = client->end.end;
    }
    if (client->end.exit_code != entry->end.exit_code) {
        entry->end.exit_code = -1;
    }
    if (client->end.signal != entry->end.signal) {
        entry->end.signal = 0;
    }
    entry->footprint_bytes = later(entry->footprint_bytes, client->footprint_bytes);
    entry->resident_bytes = later(entry->resident_bytes, client->resident_bytes);
    if (strcmp(
            ml_coverage_allocator(&entry->coverage.allocator),
            ml_coverage_allocator(&client->coverage.allocator)
        ) != 0) {
        entry->coverage.allocator = (struct ml_allocator){.owner = "several"};
    }
    entry->setup.from_startup = entry->setup.from_startup && ml_client_is_from_startup(client);
    const struct ml_client_figures one = ml_client_figures(client);
    if (!one.complete && entry->trouble[0] == 0) {
        (void)snprintf(entry->trouble, sizeof(entry->trouble), "%s", one.trouble);
    }
}

/* An ended process becomes an entry that stands for itself. */
static enum ml_status make_entry(struct ml_client *client) {
    ml_client_show_nothing(client); /* one of many has no view */
    struct ml_budget *budget = &client->session->budget;
    struct ml_fold *fold = ml_budget_new(budget, sizeof(*fold));
    if (fold == NULL) {
        return ML_ENV_MEMORY;
    }
    const enum ml_status status =
        ml_fold_tables_init(&fold->tables, &client->stacks, &client->tracker);
    if (status != ML_OK) {
        ml_budget_free(budget, fold, sizeof(*fold));
        return status;
    }
    fold->figures.complete = true;
    fold->figures.accounting.balanced = true;
    add_figures(fold, client);
    if (!fold->figures.complete && client->trouble[0] == 0) {
        /* This may be the static text for its counters. */
        (void)snprintf(
            client->trouble, sizeof(client->trouble), "%s", ml_client_figures(client).trouble
        );
    }
    client->fold = fold;
    client->budget.max_bytes = UINT64_MAX; /* from now on it holds the tables of many */
    client->session->done_count--;         /* an entry does not count among those that are kept */
    return ML_OK;
}

void ml_fold_free(struct ml_fold *take_fold, struct ml_budget *budget) {
    if (take_fold != NULL) {
        ml_fold_tables_fini(&take_fold->tables);
        ml_budget_free(budget, take_fold, sizeof(*take_fold));
    }
}

/* Make the entry of programs without one of their own. None of them is its main program. */
static void become_others(struct ml_client *client) {
    if (make_entry(client) != ML_OK) {
        return;
    }
    const struct memlog_service_process_facts facts = {
        .role = client->role,
        .name = {ML_FOLD_OTHERS, sizeof(ML_FOLD_OTHERS) - 1},
        .footprint_bytes = client->footprint_bytes,
        .resident_bytes = client->resident_bytes};
    struct ml_stack_store *stacks = &client->stacks;
    for (uint32_t id = 1; id < stacks->modules_end && client->executable != NULL; id++) {
        const struct ml_stored_module *module = stacks->modules[id];
        if (module != NULL && module->path_bytes == 0) {
            (void)!ml_stack_store_name_module(stacks, id, client->executable);
        }
    }
    if (ml_client_take_name(client, &facts)) {
        free(client->executable);
        client->executable = NULL;
    }
    client->session->others = client;
}

/* ---- leaving the session */

uint32_t ml_session_where(const struct ml_session *session, uint32_t id) {
    return id < session->folded_into_count && session->folded_into[id] != 0
               ? session->folded_into[id]
               : id;
}

/* Make room for the entry of that id. */
static enum ml_status reserve_where(struct ml_session *session, uint32_t id) {
    if (id < session->folded_into_count) {
        return ML_OK;
    }
    if (id > 2 * ML_SESSION_CLIENTS_MAX) {
        return ML_PEER_LIMIT; /* the host gives no such id */
    }
    uint32_t wanted = session->folded_into_count < 1024 ? 1024 : session->folded_into_count * 2;
    wanted = wanted <= id ? id + 1 : wanted;
    uint32_t *grown = ml_budget_resize(
        &session->budget,
        session->folded_into,
        session->folded_into_count * sizeof(*grown),
        wanted * sizeof(*grown)
    );
    if (grown == NULL) {
        return ML_ENV_MEMORY;
    }
    memset(
        grown + session->folded_into_count,
        0,
        (wanted - session->folded_into_count) * sizeof(*grown)
    );
    session->folded_into = grown;
    session->folded_into_count = wanted;
    return ML_OK;
}

static void forget_id(struct ml_session *session, const struct ml_client *client) {
    struct ml_client **link = &session->by_id[client->setup.id % ML_SESSION_BUCKETS];
    while (*link != client) {
        link = &(*link)->next_by_id;
    }
    *link = client->next_by_id;
}

/* The children of a folded process know by now what they inherited, or never will. */
static void let_go(struct ml_session *session) {
    for (struct ml_client *client = session->first; client != NULL; client = client->next) {
        if (client->parent != NULL && client->parent->phase == ML_CLIENT_FOLDED) {
            ml_client_inherit(client);
            client->parent = NULL;
        }
    }
    struct ml_client **link = &session->first;
    struct ml_client *last = NULL;
    while (*link != NULL) {
        struct ml_client *client = *link;
        if (client->phase == ML_CLIENT_FOLDED) {
            *link = client->next;
            forget_id(session, client);
            session->clients_count--;
            ml_client_free(client);
        } else {
            last = client;
            link = &client->next;
        }
    }
    session->last = last;
}

/* ---- folding */

/* Whether its end is so long ago that all of its children are known. */
static bool is_settled(const struct ml_session *session, const struct ml_client *client) {
    return session->running_count == 0 ||
           client->end.end.ticks + session->patience_ticks * ML_SESSION_PATIENCES <=
               session->known_ticks;
}

static uint64_t life_of(const struct ml_client *client) {
    return client->end.end.ticks - client->setup.start.ticks;
}

static int by_life(const void *a, const void *b) {
    const struct ml_client *const one = *(struct ml_client *const *)a;
    const struct ml_client *const other = *(struct ml_client *const *)b;
    const bool is_of_peak = one->tree_view != NULL || one->next_tree_view != NULL;
    if (is_of_peak != (other->tree_view != NULL || other->next_tree_view != NULL)) {
        return is_of_peak ? 1 : -1; /* those of the tree's peak stay longest */
    }
    const uint64_t life = life_of(one);
    const uint64_t other_life = life_of(other);
    if (life != other_life) {
        return life < other_life ? -1 : 1;
    }
    return one->order < other->order ? -1 : one->order > other->order;
}

/* Add the process to the entry. False: it stays what it is. */
static bool fold_into(struct ml_client *entry, struct ml_client *client) {
    struct ml_session *session = client->session;
    if (entry->fold == NULL) {
        ml_client_name_code(entry, NULL);
    }
    const char *main_path =
        same_text(entry->executable, client->executable) ? NULL : client->executable;
    if (reserve_where(session, client->setup.id) != ML_OK ||
        (entry->fold == NULL && make_entry(entry) != ML_OK) ||
        ml_fold_tables_add(
            &entry->fold->tables, &client->stacks, &client->tracker, main_path, NULL
        ) != ML_OK) {
        return false;
    }
    add_figures(entry->fold, client);
    widen(entry, client);
    session->folded_into[client->setup.id] = entry->setup.id;
    session->done_count--;
    client->phase = ML_CLIENT_FOLDED;
    return true;
}

/* The processes that may be folded, the shortest-lived first, then NULL; also finds the present
 * entries. The caller frees the list. NULL without memory. */
static struct ml_client **candidates_of(struct ml_session *session, struct entries *entries) {
    uint32_t count = 0;
    struct ml_client **list =
        calloc((size_t)session->clients_count + 1, sizeof(struct ml_client *));
    for (struct ml_client *client = session->first; client != NULL && list != NULL;
         client = client->next) {
        if (client->fold != NULL && client != session->others) {
            entries->list[entries->count++] = client;
        } else if (client->fold == NULL && client->phase == ML_CLIENT_DONE && is_settled(session, client)) {
            list[count++] = client;
        }
    }
    if (count > 0) {
        qsort(list, count, sizeof(struct ml_client *), by_life);
    }
    return list;
}

void ml_session_fold(struct ml_session *session, bool exactly) {
    const uint32_t keep = session->guard.fold_all ? 0 : session->keep_processes;
    const uint32_t slack = keep / 4 > ML_FOLD_SLACK_MIN ? keep / 4 : ML_FOLD_SLACK_MIN;
    if (session->done_count <= keep || (!exactly && session->done_count - keep <= slack)) {
        return;
    }
    struct entries *entries = calloc(1, sizeof(*entries));
    if (entries == NULL) {
        return;
    }
    struct ml_client **list = candidates_of(session, entries);
    bool gone = false;
    for (uint32_t i = 0; list != NULL && list[i] != NULL && session->done_count > keep; i++) {
        struct ml_client *client = list[i];
        ml_client_name_code(client, NULL); /* an address means nothing beside another process's */
        struct ml_client *entry = entry_for(session, entries, client);
        if (entry == NULL) {
            become_others(client);
        } else if (entry != client) {
            gone = fold_into(entry, client) || gone;
        }
    }
    free(list);
    free(entries);
    if (gone) {
        let_go(session);
    }
}
