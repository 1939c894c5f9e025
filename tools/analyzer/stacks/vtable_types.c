/* Types of live blocks by a word that they hold; tools/analyzer/stacks/types.h. Room: tools. */
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/names/type_name.h"
#include "tools/analyzer/stacks/types_internal.h"

/* A word of a process: the address of something in a file. */
struct mark {
    uint32_t file;
    uint64_t address; /* of the file, as ELF has it */
    uint32_t process, word;
    const char *name; /* of the class; "": of none */
    enum ml_type_known known;
};

struct work {
    struct ml_stacks *stacks;
    struct ml_profile *profile;
    struct ml_symbolizer *symbolizer;
    struct mark *marks;
    size_t count, capacity;
};

/* The file as the stacks have it, which have all modules' files. */
static uint32_t file_of(
    const struct ml_stacks *stacks,
    const struct ml_profile_process *process,
    const struct ml_profile_module *module
) {
    const struct ml_profile_text path = ml_profile_module_path(process, module);

    for (uint32_t i = 0; i < stacks->files_count; i++) {
        if (ml_profile_text_eq(stacks->files[i].path, path) &&
            ml_profile_text_eq(stacks->files[i].build_id, module->build_id)) {
            return i;
        }
    }
    return ML_STACKS_NONE;
}

/* The module there; of several, one after the other, the last. NULL: none. */
static const struct ml_profile_module *
module_of(const struct ml_profile_process *process, uint64_t address) {
    for (size_t i = process->modules_count; i > 0; i--) {
        const struct ml_profile_module *module = &process->modules[i - 1];
        if (address >= module->start && address < module->end) {
            return module;
        }
    }
    return NULL;
}

static int by_word(const void *left, const void *right, void *context) {
    const struct ml_profile_word *words = context;
    const uint64_t a = words[*(const uint32_t *)left].word;
    const uint64_t b = words[*(const uint32_t *)right].word;

    return (a > b) - (a < b);
}

/* Mark the process's words. False: no memory. */
static bool mark_words(struct work *work, uint32_t number) {
    const struct ml_profile_process *process = &work->profile->processes[number];
    const size_t count = process->words_count;
    const struct ml_profile_module *module = NULL;
    uint32_t file = ML_STACKS_NONE;
    uint32_t *order = calloc(count + 1, sizeof *order);

    if (!order || !ML_GROW(work->marks, work->capacity, work->count + count)) {
        free(order);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        order[i] = (uint32_t)i;
    }
    if (count > 1) { /* neighbours are of one file */
        qsort_r(order, count, sizeof *order, by_word, process->words);
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t word = process->words[order[i]].word;
        if (!module || word < module->start || word >= module->end) {
            module = module_of(process, word);
            file = module ? file_of(work->stacks, process, module) : ML_STACKS_NONE;
        }
        if (module && file != ML_STACKS_NONE) {
            work->marks[work->count++] = (struct mark
            ){.file = file,
              .address = word - (uint64_t)module->bias,
              .process = number,
              .word = order[i],
              .name = ""};
        }
    }
    free(order);
    return true;
}

static int by_file(const void *left, const void *right) {
    const struct mark *a = left;
    const struct mark *b = right;

    if (a->file != b->file) {
        return (a->file > b->file) - (a->file < b->file);
    }
    return (a->address > b->address) - (a->address < b->address);
}

/* The class's name as reports have it; it lives as long as the symbolizer. */
static const char *class_name(struct work *work, struct ml_symbol_file *file, uint64_t address) {
    const char *name = file ? ml_symbol_file_class(file, address) : "";
    char settled[ML_TYPE_NAME_BYTES];

    if (name[0] == '\0' || strlen(name) >= sizeof settled) {
        return name;
    }
    strcpy(settled, name); // NOLINT(clang-analyzer-security.insecureAPI.strcpy): it was measured
    ml_type_settle(settled);
    return strcmp(settled, name) == 0 ? name : ml_symbolizer_keep(work->symbolizer, settled);
}

/* Name the marks, each file opened once. */
static void name_marks(struct work *work) {
    struct ml_symbol_file *file = NULL;
    const char *trouble = NULL;

    ML_SORT(work->marks, work->count, by_file);
    for (size_t i = 0; i < work->count; i++) {
        struct mark *mark = &work->marks[i];
        const struct mark *before = i > 0 ? &work->marks[i - 1] : NULL;
        if (!before || before->file != mark->file) {
            file =
                ml_stacks_open_file(&work->stacks->files[mark->file], work->symbolizer, &trouble);
        } else if (before->address == mark->address) {
            mark->name = before->name;
            mark->known = before->known;
            continue;
        }
        mark->name = class_name(work, file, mark->address);
        mark->known = ML_TYPE_BY_VTABLE;
        if (mark->name[0] == '\0' && file) {
            mark->name = ml_symbol_file_python_type(file, mark->address);
            mark->known = ML_TYPE_BY_PYTHON;
        }
    }
}

static int by_process(const void *left, const void *right) {
    const struct mark *a = left;
    const struct mark *b = right;

    if (a->process != b->process) {
        return (a->process > b->process) - (a->process < b->process);
    }
    return (a->word > b->word) - (a->word < b->word);
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static double variance_of(uint64_t error) {
    const double units = 256;

    return (double)error / units * ((double)error / units);
}

/* Let some of the live blocks of `from` be of the type: no more than there are. */
static struct ml_stack
take_live(struct ml_stack *from, const struct ml_profile_word *word, uint32_t type) {
    struct ml_stack taken = {.node = from->node, .type = type};
    struct ml_profile_spread *left = &from->own.variances;
    struct ml_profile_spread *own = &taken.own.variances;

    taken.own.live_bytes = least(word->live_bytes, from->own.live_bytes);
    taken.own.live_blocks = least(word->live_blocks, from->own.live_blocks);
    from->own.live_bytes -= taken.own.live_bytes;
    from->own.live_blocks -= taken.own.live_blocks;
    own->live_bytes = variance_of(word->live_bytes_error);
    own->live_blocks = variance_of(word->live_blocks_error);
    left->live_bytes = left->live_bytes > own->live_bytes ? left->live_bytes - own->live_bytes : 0;
    left->live_blocks =
        left->live_blocks > own->live_blocks ? left->live_blocks - own->live_blocks : 0;
    return taken;
}

/* The number of each type that a process has been given, by the name's address. */
struct given {
    const char *name;
    enum ml_type_known known;
    uint32_t type;
};

/* The list's entry of each node that has malloc's blocks without a type, + 1; [nodes_count]: of no
 * stack. NULL: no memory. */
static size_t *find_entries(const struct ml_stacks *stacks, const struct ml_stack_list *list) {
    size_t *entries = calloc(stacks->nodes_count + 1, sizeof *entries);

    for (size_t i = 0; entries && i < list->count; i++) {
        const struct ml_stack *stack = &list->stacks[i];
        if (stack->heap == 0 && stack->type == 0) {
            entries[stack->node == ML_STACKS_NONE ? stacks->nodes_count : stack->node] = i + 1;
        }
    }
    return entries;
}

/* Names are texts of one table, so equal ones may have two addresses: the type's name counts. */
static uint32_t type_of(
    struct work *work,
    struct ml_profile_process *process,
    const struct mark *mark,
    struct given *last
) {
    const char *name = mark->name;

    if (!last->name || last->known != mark->known || strcmp(last->name, name) != 0) {
        for (uint32_t i = 0; i < process->types_count; i++) {
            const struct ml_profile_type *type = &process->types[i];
            if (type->known == mark->known &&
                strcmp(ml_profile_type_name(process, type->id).bytes, name) == 0) {
                *last = (struct given){.name = name, .known = mark->known, .type = type->id};
                return type->id;
            }
        }
        const struct ml_profile_typed type = {
            .name = {.bytes = name, .count_bytes = strlen(name)}, .known = mark->known};
        *last = (struct given
        ){.name = name,
          .known = mark->known,
          .type = ml_profile_add_type(work->profile, process, type)};
    }
    return last->type;
}

/* Split the process's stacks by its marks. False: no memory. */
static bool split(struct work *work, const struct mark *marks, size_t count) {
    const uint32_t number = marks[0].process;
    struct ml_stacks *stacks = work->stacks;
    struct ml_profile_process *process = &work->profile->processes[number];
    struct ml_stack_list *list = &stacks->details[number];
    struct given last = {.name = NULL};
    size_t *entries = NULL;
    bool done =
        ml_stacks_make_details(stacks, number) && ml_stack_list_reserve(list, list->count + count);

    entries = done ? find_entries(stacks, list) : NULL;
    done = entries != NULL;
    for (size_t i = 0; done && i < count; i++) {
        const struct ml_profile_word *word = &process->words[marks[i].word];
        const size_t at = ml_profile_node_at(process, word->node);
        const size_t node = at == SIZE_MAX ? stacks->nodes_count : stacks->merged[number][at];
        if (marks[i].name[0] == '\0' || entries[node] == 0) {
            continue;
        }
        const uint32_t type = type_of(work, process, &marks[i], &last);
        list->stacks[list->count++] = take_live(&list->stacks[entries[node] - 1], word, type);
        done = type != 0;
    }
    free(entries);
    if (done) {
        ml_stack_list_finish(list);
    }
    return done;
}

enum ml_status ml_stacks_find_classes(
    struct ml_stacks *stacks, struct ml_profile *profile, struct ml_symbolizer *symbolizer
) {
    struct work work = {.stacks = stacks, .profile = profile, .symbolizer = symbolizer};
    bool done = true;

    for (uint32_t i = 0; done && !profile->heap.bytes && i < profile->processes_count; i++) {
        done = profile->processes[i].words_count == 0 || mark_words(&work, i);
    }
    if (done) {
        name_marks(&work);
        ML_SORT(work.marks, work.count, by_process);
    }
    for (size_t first = 0, end = 0; done && first < work.count; first = end) {
        while (end < work.count && work.marks[end].process == work.marks[first].process) {
            end++;
        }
        done = split(&work, &work.marks[first], end - first);
    }
    free(work.marks);
    return done ? ML_OK : ML_ENV_MEMORY;
}
