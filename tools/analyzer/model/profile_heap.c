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

static const struct ml_profile_type *
type_find(const struct ml_profile_process *process, uint32_t type) {
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
               ? &process->types[low]
               : NULL;
}

struct ml_profile_typed
ml_profile_type_of(const struct ml_profile_process *process, uint32_t type) {
    const struct ml_profile_type *found = type_find(process, type);

    return (struct ml_profile_typed
    ){.name = found ? string_of(process, found->string) : text_of(""),
      .known = found ? found->known : ML_TYPE_UNKNOWN};
}

struct ml_profile_text
ml_profile_type_name(const struct ml_profile_process *process, uint32_t type) {
    return ml_profile_type_of(process, type).name;
}

const char *ml_profile_known_word(enum ml_type_known known) {
    static const char *const words[] = {
        [ML_TYPE_UNKNOWN] = "",
        [ML_TYPE_REGISTERED] = "registered",
        [ML_TYPE_BY_VTABLE] = "vtable",
        [ML_TYPE_BY_PYTHON] = "python",
        [ML_TYPE_BY_FRAMES] = "frames",
        [ML_TYPE_BY_CONSTRUCTOR] = "constructor"};

    return words[known];
}

uint32_t ml_profile_types_end(const struct ml_profile_process *process) {
    const size_t count = process->types_count;

    return count > 0 && process->types[count - 1].id >= ML_TYPES_MAX
               ? process->types[count - 1].id + 1
               : ML_TYPES_MAX;
}

uint32_t ml_profile_add_type(
    struct ml_profile *profile, struct ml_profile_process *process, struct ml_profile_typed type
) {
    const uint32_t id = ml_profile_types_end(process);
    const char *name = ml_arena_text(&profile->arena, type.name.bytes, type.name.count_bytes);

    if (!name || process->strings_count > UINT32_MAX - 1 ||
        !ML_GROW(process->strings, process->strings_capacity, process->strings_count + 1) ||
        !ML_GROW(process->types, process->types_capacity, process->types_count + 1)) {
        return 0;
    }
    process->types[process->types_count++] = (struct ml_profile_type
    ){.id = id, .string = (uint32_t)process->strings_count, .known = type.known};
    process->strings[process->strings_count++] =
        (struct ml_profile_text){.bytes = name, .count_bytes = type.name.count_bytes};
    return id;
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
