#include "tools/analyzer/suppressions/suppress.h"

#include <stdlib.h>

#include "ipc/wire/event.h"

/* 1 + the first rule that matches one of the texts; 0: none. */
static uint32_t
rule_of(const struct ml_suppressions *rules, const char *const *texts, size_t count) {
    for (size_t rule = 0; rule < rules->count; rule++) {
        for (size_t i = 0; i < count; i++) {
            if (texts[i] && ml_suppression_matches(rules->rules[rule].pattern, texts[i])) {
                return (uint32_t)rule + 1;
            }
        }
    }
    return 0;
}

/* Threads, scopes and the like are no functions. */
static bool is_of_code(const struct ml_place *place) {
    return place->kind == ML_FRAME_ADDRESS || place->kind == ML_FRAME_SCRIPT ||
           place->kind == ML_PLACE_FUNCTION;
}

static uint32_t rule_of_place(
    const struct ml_suppressions *rules,
    const struct ml_stacks *stacks,
    const struct ml_place *place
) {
    const char *const own[] = {
        place->file == ML_STACKS_NONE ? NULL : stacks->files[place->file].path.bytes,
        place->name.bytes};
    uint32_t rule = 0;

    if (!is_of_code(place)) {
        return 0;
    }
    for (size_t i = 0; rule == 0 && i < place->symbols_count; i++) {
        const struct ml_symbol *symbol = &stacks->symbols[place->first_symbol + i];
        const char *const texts[] = {
            symbol->function, symbol->linkage, symbol->obfuscated, symbol->file};
        rule = rule_of(rules, texts, sizeof texts / sizeof texts[0]);
    }
    return rule != 0 ? rule : rule_of(rules, own, sizeof own / sizeof own[0]);
}

/* False: no memory. */
static bool find_nodes(const struct ml_stacks *stacks, struct ml_suppressed *suppressed) {
    uint32_t *places = calloc(stacks->places_count + 1, sizeof *places);

    suppressed->nodes = calloc(stacks->nodes_count + 1, sizeof *suppressed->nodes);
    suppressed->nodes_count = stacks->nodes_count;
    if (!places || !suppressed->nodes) {
        free(places);
        return false;
    }
    for (size_t i = 0; i < stacks->places_count; i++) {
        places[i] = rule_of_place(suppressed->rules, stacks, &stacks->places[i]);
    }
    /* Callers come first. */
    for (size_t i = 0; i < stacks->nodes_count; i++) {
        const struct ml_stack_node *node = &stacks->nodes[i];
        suppressed->nodes[i] = places[node->place];
        if (suppressed->nodes[i] == 0 && node->parent != ML_STACKS_NONE) {
            suppressed->nodes[i] = suppressed->nodes[node->parent];
        }
    }
    free(places);
    return true;
}

static uint64_t less(uint64_t from, uint64_t by) {
    return from > by ? from - by : 0;
}

static double less_spread(double from, double by) {
    return from > by ? from - by : 0;
}

static void take_live(struct ml_profile_totals *from, const struct ml_profile_totals *one) {
    from->live_bytes = less(from->live_bytes, one->live_bytes);
    from->live_blocks = less(from->live_blocks, one->live_blocks);
    from->variances.live_bytes = less_spread(from->variances.live_bytes, one->variances.live_bytes);
    from->variances.live_blocks =
        less_spread(from->variances.live_blocks, one->variances.live_blocks);
    from->pages.resident_bytes = less(from->pages.resident_bytes, one->pages.resident_bytes);
    from->pages.alone_bytes = less(from->pages.alone_bytes, one->pages.alone_bytes);
    from->pages.waste_bytes = less(from->pages.waste_bytes, one->pages.waste_bytes);
}

static void take_held(struct ml_profile_holding *from, const struct ml_profile_totals *one) {
    from->bytes = less(from->bytes, one->live_bytes);
    from->blocks = less(from->blocks, one->live_blocks);
    from->bytes_variance = less_spread(from->bytes_variance, one->variances.live_bytes);
    from->blocks_variance = less_spread(from->blocks_variance, one->variances.live_blocks);
}

static void take_from_heap(struct ml_profile_process *process, const struct ml_profile_cell *cell) {
    for (size_t i = 0; i < process->heaps_count; i++) {
        if (process->heaps[i].id == cell->heap) {
            take_live(&process->heaps[i].own, &cell->own);
        }
    }
}

static void count(
    struct ml_suppressed *suppressed, uint32_t node, const struct ml_profile_totals *one, bool *seen
) {
    struct ml_suppressed_part *const parts[] = {
        &suppressed->all, &suppressed->by[suppressed->nodes[node] - 1]};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        parts[i]->bytes += one->live_bytes;
        parts[i]->blocks += one->live_blocks;
        parts[i]->stacks += seen[node] ? 0 : 1;
    }
    seen[node] = true;
}

/* Leave them out of the cells of a process, and of all sums of these. */
static void take_from_process(
    struct ml_suppressed *suppressed,
    struct ml_profile *profile,
    const struct ml_stacks *stacks,
    size_t number,
    bool *seen
) {
    struct ml_profile_process *process = &profile->processes[number];

    for (size_t i = 0; i < process->cells_count + process->apart_count; i++) {
        struct ml_profile_cell *cell = &process->cells[i];
        const size_t at = ml_profile_node_at(process, cell->node);
        const uint32_t node = at == SIZE_MAX ? ML_STACKS_NONE : stacks->merged[number][at];
        const bool is_of_sums = i < process->cells_count; /* the others' heaps stand beside */

        if (!ml_suppressed_has(suppressed, node) || cell->own.live_blocks == 0) {
            continue;
        }
        count(suppressed, node, &cell->own, seen);
        if (is_of_sums) {
            take_live(&process->totals, &cell->own);
            take_held(process->left_tree ? &profile->left : &profile->running, &cell->own);
        }
        take_from_heap(process, cell);
        ml_profile_totals_forget_live(&cell->own);
    }
}

static void take_from_list(const struct ml_suppressed *suppressed, struct ml_stack_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        if (ml_suppressed_has(suppressed, list->stacks[i].node)) {
            ml_profile_totals_forget_live(&list->stacks[i].own);
        }
    }
    ml_stack_list_finish(list);
}

enum ml_status ml_suppress(
    const struct ml_suppressions *rules,
    struct ml_profile *profile,
    struct ml_stacks *stacks,
    struct ml_suppressed *out_suppressed
) {
    bool *seen = calloc(stacks->nodes_count + 1, sizeof *seen);

    *out_suppressed = (struct ml_suppressed
    ){.rules = rules, .by = calloc(rules->count + 1, sizeof *out_suppressed->by)};
    if (!seen || !out_suppressed->by || !find_nodes(stacks, out_suppressed)) {
        free(seen);
        return ML_ENV_MEMORY;
    }
    for (size_t i = 0; i < profile->processes_count; i++) {
        take_from_process(out_suppressed, profile, stacks, i, seen);
    }
    ml_profile_show_ended(profile, profile->is_ended_shown ? ML_ENDED_SHOWN : ML_ENDED_HIDDEN);
    for (size_t i = 0; i < ml_stacks_lists(stacks); i++) {
        take_from_list(out_suppressed, ml_stacks_list(stacks, i));
    }
    free(seen);
    return ML_OK;
}

bool ml_suppressed_has(const struct ml_suppressed *suppressed, uint32_t node) {
    return suppressed && node < suppressed->nodes_count && suppressed->nodes[node] != 0;
}

void ml_suppressed_fini(struct ml_suppressed *suppressed) {
    free(suppressed->by);
    free(suppressed->nodes);
    *suppressed = (struct ml_suppressed){.rules = NULL};
}
