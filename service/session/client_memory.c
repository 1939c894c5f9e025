/* What the host saw of a client's memory, and the client's live blocks laid over it.
 *
 * Blocks are laid as soon as they are known up to the moment of the view. What is allocated between
 * the reading of the pages and the laying is the uncertainty of the figures. */
#include <stdlib.h>

#include "service/session/internal.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"

/* Blocks laid between two rests: some 100 us. */
enum { BLOCKS_A_REST = 1024 };

struct laying {
    struct ml_client *client;
    struct ml_overlay *overlay;
    const struct ml_rest *rest; /* NULL: none */
    uint32_t blocks;
    bool has_failed;
};

/* False: its blocks may be gone. */
static bool take_rest(struct laying *laying) {
    if (laying->rest != NULL && ++laying->blocks % BLOCKS_A_REST == 0) {
        laying->rest->take(laying->rest->context);
    }
    return laying->client->lost == ML_OK;
}

/* The blocks of any other heap than malloc's lie in blocks of malloc's. */
static bool
add_block(void *context, uint64_t address, unsigned heap, const struct ml_live_block *block) {
    struct laying *laying = context;
    const struct ml_cells *cells = &laying->client->tracker.cells;
    const uint32_t node = ml_cell_node(cells->cells[block->cell].key);
    laying->has_failed =
        heap == 0 &&
        !ml_overlay_add(laying->overlay, address, block->size_bytes, block->cell, node);
    return !laying->has_failed && take_rest(laying);
}

static bool
share_block(void *context, uint64_t address, unsigned heap, const struct ml_live_block *block) {
    struct laying *laying = context;
    if (heap == 0) {
        ml_overlay_share(laying->overlay, address, block->size_bytes, block->cell);
    }
    return take_rest(laying);
}

static bool is_fine(const struct laying *laying) {
    return !laying->has_failed && laying->client->lost == ML_OK;
}

static void lay(struct laying *laying) {
    const struct ml_live_map *live = &laying->client->tracker.live;
    ml_live_map_walk(live, add_block, laying);
    if (is_fine(laying)) {
        ml_live_map_walk(live, share_block, laying);
    }
    while (is_fine(laying) && ml_overlay_settle(laying->overlay)) {
        laying->blocks = BLOCKS_A_REST - 1; /* which takes as long as so many blocks */
        (void)take_rest(laying);
    }
}

/* Of a sampled client only some blocks are known. */
static bool has_all_blocks(const struct ml_client *client) {
    return client->phase == ML_CLIENT_RUNNING && client->lost == ML_OK && !client->sampled &&
           !client->tracker.totals_only && client->leaving == ML_LEAVING_NOT;
}

static void lay_blocks(struct laying *laying, const struct ml_host_view *view) {
    const uint32_t cells = laying->client->tracker.cells.count;
    if (has_all_blocks(laying->client) &&
        ml_overlay_init(laying->overlay, &view->message->view, &laying->client->budget, cells) ==
            ML_OK) {
        lay(laying);
        if (!is_fine(laying)) {
            ml_overlay_fini(laying->overlay);
        }
    }
}

/* What the client itself has mapped, and who mapped the rest. */
static void give_to_mappers(struct laying *laying, struct ml_host_view *view) {
    struct ml_client *client = laying->client;
    for (uint32_t i = 0; i < ML_STAGING_OWN; i++) {
        const struct ml_staging_own *own = &client->staging.header.own[i];
        ml_mappings_note_own(&client->mappings, own->start, own->bytes);
    }
    struct ml_mapping *pieces = ml_mappings_list(&client->mappings);
    struct ml_holdings_work work = {
        .view = &view->message->view,
        .overlay = laying->overlay->heaps != NULL ? laying->overlay : NULL,
        .pieces = pieces,
        .pieces_count = pieces != NULL ? client->mappings.count : 0};
    while (ml_holdings_add(&view->holdings, &work)) {
        laying->blocks = BLOCKS_A_REST - 1;
        (void)take_rest(laying);
    }
    free(pieces);
}

void ml_client_lay(
    struct ml_client *client, struct ml_host_view *view, const struct ml_rest *rest
) {
    struct laying laying = {.client = client, .overlay = &view->overlay, .rest = rest};
    ml_session_hold(client->session);
    lay_blocks(&laying, view);
    give_to_mappers(&laying, view);
    ml_session_release(client->session);
    ml_host_view_count_files(view);
    ml_overlay_end(laying.overlay);
    view->bytes +=
        ml_overlay_bytes(laying.overlay) + view->holdings.capacity * sizeof(*view->holdings.items);
}

void ml_client_take_words(
    struct ml_client *client,
    const struct memlog_service_process_view *view,
    const struct ml_rest *rest
) {
    if (!view->words_were_read || client->phase != ML_CLIENT_RUNNING || client->lost != ML_OK) {
        return;
    }
    ml_session_hold(client->session);
    ml_first_words_begin(&client->first_words, &client->tracker, view);
    for (uint32_t from = 0; from < view->words.count; from += BLOCKS_A_REST) {
        const uint32_t left = view->words.count - from;
        ml_first_words_add(
            &client->first_words,
            &client->tracker,
            &view->words.items[from],
            left < BLOCKS_A_REST ? left : BLOCKS_A_REST
        );
        if (rest != NULL) {
            rest->take(rest->context);
        }
    }
    ml_session_release(client->session);
}

/* Where it keeps views; one may be in several places. */
enum { PLACES = 5 };

static const struct ml_host_view *view_at(const struct ml_client *client, uint32_t place) {
    const struct ml_host_view *const views[PLACES] = {
        client->view,
        client->largest_view,
        client->dumped_view,
        client->tree_view,
        client->next_tree_view};
    return views[place];
}

/* In how many of the places before `end` it is. */
static uint32_t
times_kept(const struct ml_client *client, const struct ml_host_view *view, uint32_t end) {
    uint32_t times = 0;
    for (uint32_t i = 0; i < end; i++) {
        times += view_at(client, i) == view ? 1 : 0;
    }
    return times;
}

void ml_client_drop_view(struct ml_client *client, struct ml_host_view **view) {
    if (*view != NULL) {
        if (!client->views_are_returned && times_kept(client, *view, PLACES) == 1) {
            ml_budget_count_out(&client->budget, (*view)->bytes);
        }
        ml_host_view_free(*view);
        *view = NULL;
    }
}

/* What finds no room is not kept: the heap's own figures are worth more. */
static void keep(struct ml_client *client, struct ml_host_view *view, struct ml_host_view **at) {
    if (view == *at) {
        return;
    }
    ml_client_drop_view(client, at);
    if (times_kept(client, view, PLACES) > 0 || ml_budget_count_in(&client->budget, view->bytes)) {
        *at = ml_host_view_keep(view);
    }
}

/* A larger one whose blocks are known is not given up for one of which they are not. */
static bool is_larger(const struct ml_host_view *view, const struct ml_host_view *before) {
    return before == NULL || (view->private_kb > before->private_kb &&
                              (view->overlay.heaps != NULL || before->overlay.heaps == NULL));
}

bool ml_client_return_views(struct ml_client *client) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < PLACES; i++) {
        const struct ml_host_view *view = view_at(client, i);
        bytes += view != NULL && times_kept(client, view, i) == 0 ? view->bytes : 0;
    }
    if (bytes == 0 || client->views_are_returned) {
        return false;
    }
    ml_budget_count_out(&client->budget, bytes);
    client->views_are_returned = true;
    return true;
}

void ml_client_free_returned(struct ml_client *client) {
    if (client->views_are_returned) {
        ml_client_show_nothing(client);
    }
}

void ml_client_show(struct ml_client *client, struct ml_host_view *take_view) {
    ml_client_free_returned(client);
    keep(client, take_view, &client->view);
    if (client->dumped_view == NULL) {
        keep(client, take_view, &client->dumped_view);
    }
    if (is_larger(take_view, client->largest_view)) {
        keep(client, take_view, &client->largest_view);
    }
    struct ml_host_view **of_tree =
        ml_client_tree_place(client, take_view->message->view.tree_reading);
    if (of_tree != NULL) {
        keep(client, take_view, of_tree);
    }
    struct ml_host_view *brief = client->view == NULL || client->largest_view == NULL ||
                                         (of_tree != NULL && *of_tree == NULL)
                                     ? ml_host_view_brief(take_view)
                                     : NULL;
    if (brief != NULL && client->view == NULL) {
        keep(client, brief, &client->view);
    }
    if (brief != NULL && client->largest_view == NULL) {
        keep(client, brief, &client->largest_view);
    }
    if (brief != NULL && of_tree != NULL && *of_tree == NULL) {
        keep(client, brief, of_tree);
    }
    ml_host_view_free(brief);
    ml_host_view_free(take_view);
}

void ml_client_note_dumped(struct ml_client *client, struct ml_host_view *view) {
    ml_client_free_returned(client);
    keep(client, view, &client->dumped_view);
}

void ml_client_show_nothing(struct ml_client *client) {
    ml_client_drop_view(client, &client->view);
    ml_client_drop_view(client, &client->largest_view);
    ml_client_drop_view(client, &client->dumped_view);
    ml_client_forget_tree(client);
    client->views_are_returned = false;
}
