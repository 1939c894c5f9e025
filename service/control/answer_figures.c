#include <stdlib.h>
#include <string.h>

#include "service/control/answer.h"

#include "service/session/client.h"
#include "service/session/figures.h"
#include "service/session/session.h"

static struct memlog_service_totals totals_of(const struct ml_totals *totals) {
    return (struct memlog_service_totals
    ){.live_bytes = totals->live_bytes,
      .live_blocks = totals->live_blocks,
      .peak_bytes = totals->peak_bytes,
      .peak_blocks = totals->peak_blocks,
      .total_bytes = totals->total_bytes,
      .total_blocks = totals->total_blocks};
}

/* Texts that are neither static nor the client's, kept until the answer is sent. */
struct texts {
    char unseen[ML_COVERAGE_UNSEEN_BYTES];
};

static struct memlog_service_client_figures figures_of(
    const struct ml_answer_scene *scene, const struct ml_client *client, struct texts *out_texts
) {
    const struct ml_client_figures figures = ml_client_figures(client);
    memcpy(out_texts->unseen, figures.coverage.unseen, sizeof(out_texts->unseen));
    const uint32_t id = ml_client_face(client).id;
    const bool read = ml_readers_client_known(scene->readers, id, scene->target_ticks);
    const char *trouble =
        figures.complete && !read ? "not all of it could be read in time" : figures.trouble;
    return (struct memlog_service_client_figures
    ){.id = id,
      .totals = totals_of(&figures.totals),
      .events = figures.events,
      .lost_events = figures.lost_events,
      .unknown_frees = figures.unknown_frees,
      .truncated_stacks = figures.truncated_stacks,
      .inherited_bytes = figures.inherited_bytes,
      .inherited_blocks = figures.inherited_blocks,
      .nodes = figures.nodes_count,
      .complete = figures.complete && read,
      .trouble = ml_string_cut(trouble, MEMLOG_SERVICE_CLIENT_FIGURES_TROUBLE_LIMIT),
      .waits = figures.accounting.waits,
      .waited_ns = figures.accounting.waited_ns,
      .longest_wait_ns = figures.accounting.longest_wait_ns,
      .folded_processes = figures.folded_processes,
      .sampling_bytes = figures.sampling_bytes,
      .exact_blocks = figures.exact_blocks,
      .recording_ticks = figures.recording_ticks,
      .passing_ticks = figures.passing_ticks,
      .passed_calls = figures.passed_calls,
      .held_at_tree_peak_bytes = figures.held_at_tree_peak_bytes,
      .held_at_tree_peak_blocks = figures.held_at_tree_peak_blocks,
      .left_tree = figures.left_tree,
      .allocator =
          ml_string_cut(figures.coverage.allocator, MEMLOG_SERVICE_CLIENT_FIGURES_ALLOCATOR_LIMIT),
      .coverage_was_read = figures.coverage.was_read,
      .coverage_heap_bytes = figures.coverage.heap_bytes,
      .coverage_private_bytes = figures.coverage.private_bytes,
      .unseen = ml_string_cut(out_texts->unseen, MEMLOG_SERVICE_CLIENT_FIGURES_UNSEEN_LIMIT)};
}

enum ml_status ml_answer_figures(const struct ml_answer_scene *scene, const struct ml_call *call) {
    uint32_t count = 0;
    for (struct ml_client *client = ml_session_next(scene->session, NULL); client != NULL;
         client = ml_session_next(scene->session, client)) {
        count++;
    }
    if (count > MEMLOG_SERVICE_MAX_CLIENTS) {
        count = MEMLOG_SERVICE_MAX_CLIENTS;
    }
    struct memlog_service_client_figures *clients = calloc((size_t)count + 1, sizeof(*clients));
    struct texts *texts = calloc((size_t)count + 1, sizeof(*texts));
    if (clients == NULL || texts == NULL) {
        free(clients);
        free(texts);
        return ML_ENV_MEMORY;
    }
    uint32_t at = 0;
    for (struct ml_client *client = ml_session_next(scene->session, NULL);
         client != NULL && at < count;
         client = ml_session_next(scene->session, client)) {
        clients[at] = figures_of(scene, client, &texts[at]);
        at++;
    }
    const struct ml_totals tree = ml_session_totals(scene->session);
    const struct ml_amount left = ml_session_left(scene->session);
    const struct memlog_service_figures_reply reply = {
        .tree = totals_of(&tree),
        .clients = {.items = clients, .count = at},
        .left_bytes = left.bytes,
        .left_blocks = left.blocks};
    const enum ml_status status = memlog_service_figures_answer(call, &reply);
    free(clients);
    free(texts);
    return status;
}
