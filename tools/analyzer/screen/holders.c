#include "tools/analyzer/screen/holders.h"

#include <stdlib.h>
#include <string.h>

enum {
    STACKS_MAX = 20000, /* only so many are told apart by their callers, the largest */
    CALLERS_BYTES = 4 * ML_TOLD_NAME_BYTES
};

/* One stack. The told frames are texts: two stacks with equal ones are one way to a reader. */
struct entry {
    char name[ML_TOLD_NAME_BYTES];
    char file[ML_TOLD_NAME_BYTES];
    char callers[CALLERS_BYTES];
    uint32_t line;
    uint32_t node;
    uint64_t bytes, blocks;
};

static int order_names(const void *left, const void *right) {
    const struct entry *a = left;
    const struct entry *b = right;
    const int by_name = strcmp(a->name, b->name);

    if (by_name != 0) {
        return by_name;
    }
    return a->bytes != b->bytes ? (a->bytes < b->bytes) - (a->bytes > b->bytes)
                                : (a->node > b->node) - (a->node < b->node);
}

static int order_places(const void *left, const void *right) {
    const struct entry *a = left;
    const struct entry *b = right;
    const int by_file = strcmp(a->file, b->file);

    return by_file != 0 ? by_file : (a->line > b->line) - (a->line < b->line);
}

static int order_callers(const void *left, const void *right) {
    return strcmp(((const struct entry *)left)->callers, ((const struct entry *)right)->callers);
}

static int order_holders(const void *left, const void *right) {
    const struct ml_screen_holder *a = left;
    const struct ml_screen_holder *b = right;

    if (a->bytes != b->bytes) {
        return a->bytes < b->bytes ? 1 : -1;
    }
    return strcmp(a->name, b->name);
}

static void
fill(const struct ml_report_page *page, const struct ml_stack *stack, struct entry *out) {
    struct ml_told told;
    size_t at = 0;

    ml_report_tell(page, stack->node, &told);
    snprintf(out->name, sizeof out->name, "%s", told.frames[told.asker].name);
    snprintf(out->file, sizeof out->file, "%s", told.frames[told.asker].file);
    out->line = told.frames[told.asker].line;
    out->node = stack->node;
    out->callers[0] = '\0';
    for (size_t i = told.asker + 1; i < told.count && at < sizeof out->callers; i++) {
        at += (size_t
        )snprintf(out->callers + at, sizeof out->callers - at, " < %s", told.frames[i].name);
    }
}

/* Keep the largest, sorted. */
static void keep_place(struct ml_screen_holder *holder, const struct ml_holder_place *place) {
    size_t at = ML_HOLDER_PLACES;

    holder->places_count++;
    while (at > 0 && holder->places[at - 1].bytes < place->bytes) {
        at--;
    }
    if (at < ML_HOLDER_PLACES) {
        memmove(
            &holder->places[at + 1],
            &holder->places[at],
            (ML_HOLDER_PLACES - 1 - at) * sizeof *holder->places
        );
        holder->places[at] = *place;
    }
}

static void keep_way(struct ml_screen_holder *holder, const struct ml_holder_way *way) {
    size_t at = ML_HOLDER_WAYS;

    holder->ways_count++;
    while (at > 0 && holder->ways[at - 1].bytes < way->bytes) {
        at--;
    }
    if (at < ML_HOLDER_WAYS) {
        memmove(
            &holder->ways[at + 1],
            &holder->ways[at],
            (ML_HOLDER_WAYS - 1 - at) * sizeof *holder->ways
        );
        holder->ways[at] = *way;
    }
}

/* The entries of one name, the largest first, become a holder. Changes their order. */
static void merge(struct entry *entries, size_t count, struct ml_screen_holder *out) {
    *out = (struct ml_screen_holder){.node = entries[0].node};
    snprintf(out->name, sizeof out->name, "%s", entries[0].name);
    for (size_t i = 0; i < count; i++) {
        out->bytes += entries[i].bytes;
        out->blocks += entries[i].blocks;
    }
    qsort(entries, count, sizeof *entries, order_places);
    for (size_t i = 0, end = 0; i < count; i = end) {
        struct ml_holder_place place = {.line = entries[i].line};
        snprintf(place.file, sizeof place.file, "%s", entries[i].file);
        for (end = i; end < count && order_places(&entries[i], &entries[end]) == 0; end++) {
            place.bytes += entries[end].bytes;
        }
        keep_place(out, &place);
    }
    qsort(entries, count, sizeof *entries, order_callers);
    for (size_t i = 0, end = 0; i < count; i = end) {
        struct ml_holder_way way = {.node = entries[i].node};
        uint64_t most_bytes = entries[i].bytes;
        for (end = i; end < count && order_callers(&entries[i], &entries[end]) == 0; end++) {
            way.bytes += entries[end].bytes;
            way.node = entries[end].bytes > most_bytes ? entries[end].node : way.node;
            most_bytes = entries[end].bytes > most_bytes ? entries[end].bytes : most_bytes;
        }
        keep_way(out, &way);
    }
}

/* Which of the shown holders each node belongs to: 1 + its number; 0: none. NULL: no memory. */
static uint32_t *owners_of(
    const struct ml_holders *holders, const struct entry *entries, size_t count, size_t nodes_count
) {
    uint32_t *owners = calloc(nodes_count + 1, sizeof *owners);

    for (size_t i = 0; owners && i < count; i++) {
        for (size_t h = 0; h < holders->shown; h++) {
            if (entries[i].node < nodes_count &&
                strcmp(entries[i].name, holders->holders[h].name) == 0) {
                owners[entries[i].node] = (uint32_t)h + 1;
            }
        }
    }
    return owners;
}

static void find_processes(
    struct ml_holders *holders,
    const struct ml_stacks *stacks,
    enum ml_metric metric,
    const uint32_t *owners
) {
    uint64_t *bytes = calloc(holders->shown + 1, sizeof *bytes);

    for (size_t p = 0; bytes && p < stacks->processes_count; p++) {
        const struct ml_profile_process *process = &stacks->profile->processes[p];
        const struct ml_stack_list *list = &stacks->processes[p];
        const bool is_shown = ml_profile_is_shown(stacks->profile, process);

        memset(bytes, 0, (holders->shown + 1) * sizeof *bytes);
        for (size_t s = 0; s < list->count; s++) {
            const struct ml_stack stack = ml_stack_in_tree(list->stacks[s], is_shown);
            if (stack.node < stacks->nodes_count) {
                bytes[owners[stack.node]] += ml_metric_bytes(&stack.own, metric);
            }
        }
        for (size_t h = 0; h < holders->shown; h++) {
            struct ml_screen_holder *holder = &holders->holders[h];
            holder->processes_count += bytes[h + 1] > 0;
            if (bytes[h + 1] > holder->process_bytes) {
                holder->process_bytes = bytes[h + 1];
                holder->process = process;
            }
        }
    }
    free(bytes);
}

bool ml_holders_init(
    struct ml_holders *holders,
    const struct ml_report_page *page,
    enum ml_metric metric,
    size_t shown
) {
    size_t count = 0;
    struct ml_stack *stacks = ml_report_sorted(page, metric, ML_ORDER_SELF, &count);
    struct entry *entries = NULL;
    uint32_t *owners = NULL;

    *holders = (struct ml_holders){.holders = NULL};
    count = count < STACKS_MAX ? count : STACKS_MAX;
    entries = calloc(count + 1, sizeof *entries);
    holders->holders = calloc(count + 1, sizeof *holders->holders);
    if (!stacks || !entries || !holders->holders) {
        free(stacks);
        free(entries);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        fill(page, &stacks[i], &entries[i]);
        entries[i].bytes = ml_metric_bytes(&stacks[i].own, metric);
        entries[i].blocks = ml_metric_blocks(&stacks[i].own, metric);
    }
    free(stacks);
    qsort(entries, count, sizeof *entries, order_names);
    for (size_t i = 0, end = 0; i < count; i = end) {
        for (end = i; end < count && strcmp(entries[i].name, entries[end].name) == 0;) {
            end++;
        }
        merge(&entries[i], end - i, &holders->holders[holders->count++]);
    }
    qsort(holders->holders, holders->count, sizeof *holders->holders, order_holders);
    holders->shown = shown < holders->count ? shown : holders->count;
    owners = owners_of(holders, entries, count, page->report->stacks->nodes_count);
    free(entries);
    if (!owners) {
        return false;
    }
    find_processes(holders, page->report->stacks, metric, owners);
    free(owners);
    return true;
}

void ml_holders_fini(struct ml_holders *holders) {
    free(holders->holders);
    *holders = (struct ml_holders){.holders = NULL};
}
