/* Heaps that programs report themselves; tools/analyzer/model/profile.h. */
#include <string.h>

#include "tools/analyzer/model/profile.h"

/* Put the cells of that heap in front, in their order, and the others behind them. */
static void part(struct ml_profile_process *process, uint32_t heap) {
    const size_t count = process->cells_count + process->apart_count;
    size_t kept = 0;

    while (kept < count && process->cells[kept].heap == heap) {
        kept++;
    }
    for (size_t i = kept; i < count; i++) {
        if (process->cells[i].heap == heap) {
            const struct ml_profile_cell cell = process->cells[i];
            process->cells[i] = process->cells[kept];
            process->cells[kept++] = cell;
        }
    }
    process->cells_count = kept;
    process->apart_count = count - kept;
}

void ml_profile_part_heaps(struct ml_profile *profile) {
    for (size_t i = 0; i < profile->processes_count; i++) {
        part(&profile->processes[i], 0);
    }
}

static struct ml_profile_text text_of(const char *text) {
    return (struct ml_profile_text){.bytes = text, .count_bytes = strlen(text)};
}

static struct ml_profile_text string_of(const struct ml_profile_process *process, uint32_t string) {
    return string < process->strings_count ? process->strings[string] : text_of("");
}

struct ml_profile_text
ml_profile_heap_name(const struct ml_profile_process *process, uint32_t heap) {
    const struct ml_profile_text malloc_name = text_of("malloc");
    struct ml_profile_text name = text_of("[heap without a name]");

    for (size_t i = 0; heap != 0 && i < process->heaps_count; i++) {
        if (process->heaps[i].id == heap && process->heaps[i].string != 0) {
            name = string_of(process, process->heaps[i].string);
        }
    }
    if (heap == 0) {
        return malloc_name;
    }
    return ml_profile_text_eq(name, malloc_name) ? text_of("[malloc, as reported]") : name;
}

struct ml_profile_text
ml_profile_type_name(const struct ml_profile_process *process, uint32_t type) {
    size_t low = 0;
    size_t high = process->types_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (process->types[middle].id < type) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return type != 0 && low < process->types_count && process->types[low].id == type
               ? string_of(process, process->types[low].string)
               : text_of("");
}

static const struct ml_profile_heap *
heap_named(const struct ml_profile_process *process, struct ml_profile_text name) {
    for (size_t i = 0; i < process->heaps_count; i++) {
        if (ml_profile_text_eq(ml_profile_heap_name(process, process->heaps[i].id), name)) {
            return &process->heaps[i];
        }
    }
    return NULL;
}

/* Its figures are those of the heap; NULL: it has none of that name. */
static void narrow(struct ml_profile_process *process, const struct ml_profile_heap *heap) {
    struct ml_profile_totals own = {0};

    if (heap) {
        own = heap->own;
        part(process, heap->id);
    } else {
        process->cells_count = 0;
    }
    process->apart_count = 0;
    process->cells_were_laid = false;
    for (size_t i = 0; i < process->cells_count; i++) {
        const struct ml_profile_totals of_cell = {.variances = process->cells[i].own.variances};
        ml_profile_totals_add(&own, &of_cell);
    }
    process->totals = own;
}

/* The peak of the one process that has the heap is the tree's. */
static void take_own_peak(struct ml_profile_process *process) {
    for (size_t i = 0; i < process->cells_count; i++) {
        struct ml_profile_cell *cell = &process->cells[i];
        cell->tree_peak_bytes = cell->own.peak_bytes;
        cell->tree_peak_blocks = cell->own.peak_blocks;
        cell->tree_peak_bytes_variance = cell->own.variances.peak_bytes;
        cell->tree_peak_blocks_variance = cell->own.variances.peak_blocks;
    }
}

bool ml_profile_choose_heap(struct ml_profile *profile, const char *name) {
    const struct ml_profile_text wanted = text_of(name);
    struct ml_profile_process *last = NULL;
    size_t owners = 0;

    if (strcmp(name, "malloc") == 0) {
        return true;
    }
    for (size_t i = 0; i < profile->processes_count; i++) {
        if (heap_named(&profile->processes[i], wanted)) {
            last = &profile->processes[i];
            owners++;
        }
    }
    for (size_t i = 0; i < profile->processes_count; i++) {
        narrow(&profile->processes[i], heap_named(&profile->processes[i], wanted));
    }
    if (owners == 1) {
        take_own_peak(last);
    }
    profile->heap = wanted;
    ml_profile_sum_shares(profile);
    return owners > 0;
}
