/* A client's figures: its sums, where its events have gone, and why they are incomplete. */
#include <string.h>

#include "service/session/figures.h"
#include "service/session/fold.h"
#include "service/session/internal.h"

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static struct ml_accounting accounting_of(const struct ml_client *client) {
    const struct ml_lane_sums sums = ml_staging_reader_sums(&client->staging);
    const struct ml_staging_header *header = &client->staging.header;
    /* Staging's counters and LOSS records count the same losses. */
    const struct ml_accounting_facts facts = {
        .looked = client->staging.asked,
        .ended = client->phase != ML_CLIENT_RUNNING,
        .refused = client->lost != ML_OK,
        .produced = sums.produced,
        .received = client->events,
        .overrun = larger(sums.lost_events, client->loss[ML_LOSS_OVERRUN]),
        .no_lane = larger(header->lost_no_lane, client->loss[ML_LOSS_NO_LANE]),
        .nested = larger(header->lost_nested, client->loss[ML_LOSS_NESTED]),
        .no_pipe = header->lost_no_pipe,
        .busy_lanes = sums.busy_lanes,
        .waits = sums.waits,
        .waited_ns = sums.waited_ns,
        .longest_wait_ns = sums.longest_wait_ns,
        .stream_bytes = client->stream.decoded_bytes,
    };
    return ml_accounting_of(&facts);
}

/* Dropped chunks: the client counts them, and the service misses them when the lane goes on. */
static uint64_t lost_chunks_of(const struct ml_client *client) {
    return larger(client->stream.lost_chunks, ml_staging_reader_sums(&client->staging).lost_chunks);
}

/* An address was allocated again before its free was seen, and the free came later or is still in
 * flight. Nothing is lost, but live figures in between are inexact. (A free that never comes went
 * past memlog: coverage_of.) */
static bool came_too_late(const struct ml_client *client, const struct ml_accounting *accounting) {
    return client->tracker.has_reused &&
           (client->tracker.missed_frees == 0 || accounting->in_flight > 0);
}

static bool complete(const struct ml_client *client, const struct ml_accounting *accounting) {
    return client->lost == ML_OK && client->trouble[0] == 0 && lost_chunks_of(client) == 0 &&
           client->staging.header.lost_messages == 0 && client->staging.header.lost_no_node == 0 &&
           !came_too_late(client, accounting) && accounting->balanced &&
           ml_accounting_lost(accounting) == 0;
}

/* The calls that bypass memlog, as its staging says: the process's own words, cut to their room. */
static struct ml_coverage_past past_of(const struct ml_staging_header *header) {
    struct ml_coverage_past past = {
        .calls = (header->past & ML_PAST_CALLS) != 0,
        .several = (header->past & ML_PAST_SEVERAL) != 0,
        .second_libc = (header->past & ML_PAST_SECOND_LIBC) != 0,
        .inlined = (header->past & ML_PAST_INLINED) != 0};
    memcpy(past.file, header->past_file, sizeof(header->past_file));
    past.file[sizeof(header->past_file) - 1] = 0;
    return past;
}
_Static_assert((int)ML_COVERAGE_NAME_BYTES >= (int)ML_PAST_FILE_BYTES, "it fits");

/* Likewise. */
static struct ml_coverage_entries entries_of(const struct ml_staging_header *header) {
    struct ml_coverage_entries entries = {.functions = header->entries};
    memcpy(entries.refused, header->entries_refused, sizeof(header->entries_refused));
    entries.refused[sizeof(header->entries_refused) - 1] = 0;
    return entries;
}
_Static_assert((int)ML_COVERAGE_REFUSED_BYTES >= (int)ML_ENTRIES_REFUSED_BYTES, "it fits");

/* The view that a dump has. NULL: none. */
static const struct ml_host_view *view_of(const struct ml_client *client) {
    return client->phase == ML_CLIENT_RUNNING ? client->view : client->largest_view;
}

bool ml_client_is_from_startup(const struct ml_client *client) {
    return client->setup.from_startup && (client->staging.header.past & ML_PAST_LATE) == 0;
}

/* Frees without a block, in a process whose events are all here: either the alloc or the free of
 * these blocks went past memlog. No event was lost. A forked child also frees what it inherited. */
static struct ml_coverage_told
coverage_of(const struct ml_client *client, bool is_complete, uint64_t unknown_frees) {
    const struct ml_host_view *view = view_of(client);
    const struct ml_coverage_facts facts = {
        .running = client->phase == ML_CLIENT_RUNNING,
        .from_startup = ml_client_is_from_startup(client),
        /* A hooked executable has blocks from before its entries were. */
        .past_is_sure = is_complete && ml_client_is_from_startup(client) &&
                        !client->tracker.totals_only && client->staging.header.entries == 0,
        .total_blocks = client->tracker.totals.total_blocks,
        .unknown_frees = client->setup.forked ? 0 : unknown_frees,
        .missed_frees = client->tracker.missed_frees,
        .past = past_of(&client->staging.header),
        .entries = entries_of(&client->staging.header),
        .mapped_bytes = view != NULL ? view->holdings.private_bytes : 0,
        .allocator_bytes = view != NULL ? view->holdings.allocator_bytes : 0,
        .files_bytes = view != NULL ? view->files_bytes : 0,
        .view_private_bytes = view != NULL ? view->private_kb * UINT64_C(1024) : 0,
        .shared_files_bytes = view != NULL ? view->shared_files_bytes : 0};
    struct ml_coverage_told told;
    ml_coverage_tell(&client->coverage, &facts, &told);
    return told;
}

/* Whether every event that its threads have counted is here. Then the dropped chunks had been read
 * from staging. Their other records are not known. */
static bool all_came(const struct ml_client *client) {
    return ml_staging_reader_sums(&client->staging).produced == client->events;
}

/* Why it is not complete. A reason that was noted goes before the counters. */
static const char *
trouble_of(const struct ml_client *client, const struct ml_accounting *accounting) {
    if (client->trouble[0] != 0) {
        return client->trouble;
    }
    if (accounting->no_lane > 0) {
        return "more threads at once than memlog has room for (8,192, fewer under its limits): "
               "events were lost";
    }
    if (accounting->no_pipe > 0) {
        return "the program closed its pipe, or its own sandbox forbids to write to it: events "
               "were lost";
    }
    if (accounting->overrun > 0 || lost_chunks_of(client) > 0) {
        return all_came(client) ? "its pipe stayed full: no event was lost, but what else the "
                                  "dropped chunks held may be"
                                : "its pipe stayed full: events were lost";
    }
    if (accounting->nested > 0) {
        return "signal handlers interrupted each other in the allocator, or forked in it: events "
               "were lost";
    }
    if (client->staging.header.lost_messages > 0) {
        return "the host could not be asked (it stood still, ulimit -n leaves no descriptor free, "
               "or a sandbox is in the way): "
               "forked children of it, or programs it became, are missing";
    }
    if (came_too_late(client, accounting)) {
        return "an event came after its address had been given out again: a peak may be too high";
    }
    if (client->staging.header.lost_no_node > 0) {
        return "no memory for all call paths under its limits or its sandbox: some stacks are "
               "cut short, no event was lost";
    }
    return complete(client, accounting) ? "" : "its events do not add up: see \"accounting\"";
}

/* Its figures in the tree. */
static void put_tree(const struct ml_client *client, struct ml_client_figures *out_figures) {
    const struct ml_amount held = ml_tracker_tree_held(&client->tracker);
    out_figures->held_at_tree_peak_bytes = held.bytes;
    out_figures->held_at_tree_peak_blocks = held.blocks;
    out_figures->left_tree = !client->tracker.in_tree;
}

/* The sums of an entry that stands for several. */
static struct ml_client_figures figures_of_fold(const struct ml_client *client) {
    struct ml_client_figures figures = client->fold->figures;
    figures.totals = client->tracker.totals;
    figures.nodes_count = client->stacks.nodes_count;
    figures.trouble = client->trouble;
    put_tree(client, &figures);
    figures.coverage.allocator = ml_coverage_allocator(&client->coverage.allocator);
    return figures;
}

/* What its client says of its own cost. */
static void put_cost(const struct ml_client *client, struct ml_client_figures *out_figures) {
    enum { PART = 256 };
    const struct ml_staging_header *header = &client->staging.header;
    const uint64_t parts = header->passed_calls / PART;
    uint64_t passing = 0;
    if (__builtin_mul_overflow(parts, header->pass_ticks_256, &passing)) {
        passing = UINT64_MAX;
    }
    out_figures->recording_ticks = header->recording_ticks;
    out_figures->passing_ticks = passing;
    out_figures->passed_calls = header->passed_calls;
}

struct ml_client_figures ml_client_figures(const struct ml_client *client) {
    if (client->fold != NULL) {
        return figures_of_fold(client);
    }
    const struct ml_tracker *tracker = &client->tracker;
    const struct ml_accounting accounting = accounting_of(client);
    struct ml_client_figures figures = {
        .totals = tracker->totals,
        .events = client->events,
        .accounting = accounting,
        .lost_events = ml_accounting_lost(&accounting),
        .unknown_frees = tracker->unknown_frees > client->unsure_frees
                             ? tracker->unknown_frees - client->unsure_frees
                             : 0,
        .late_events = client->late_events,
        .truncated_stacks = client->staging.header.truncated_stacks,
        .broken_stacks = client->staging.header.broken_stacks,
        .inherited_bytes = client->inherited_bytes,
        .inherited_blocks = client->inherited_blocks,
        .missed_frees = tracker->missed_frees,
        .lost_chunks = lost_chunks_of(client),
        .nodes_count = client->stacks.nodes_count,
        .sampling_bytes = ml_sampling_log_latest(&client->sampling),
        .exact_blocks = tracker->live.count - tracker->sampled_blocks +
                        (client->resizing_bytes > 0 ? 1 : 0), /* may come back */
        .complete = complete(client, &accounting),
        .trouble = trouble_of(client, &accounting),
    };
    ml_add_saturating(&figures.broken_stacks, tracker->undefined_nodes);
    put_tree(client, &figures);
    put_cost(client, &figures);
    figures.coverage = coverage_of(client, figures.complete, figures.unknown_frees);
    return figures;
}
