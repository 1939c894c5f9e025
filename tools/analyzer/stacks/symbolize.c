/* Names for the places of stacks. Room: tools. */
#include <stdlib.h>
#include <string.h>

#include "ipc/wire/event.h"
#include "tools/analyzer/model/trace_symbols.h"
#include "tools/analyzer/names/script_name.h"
#include "tools/analyzer/progress/progress.h"
#include "tools/analyzer/stacks/stacks.h"

static bool symbols_reserve(struct ml_stacks *stacks, size_t more) {
    return ML_GROW(stacks->symbols, stacks->symbols_capacity, stacks->symbols_count + more);
}

static void
place_name(struct ml_stacks *stacks, struct ml_place *place, const struct ml_symbol *symbol) {
    if (place->symbols_count++ == 0) {
        place->first_symbol = stacks->symbols_count;
        if (place->file != ML_STACKS_NONE) {
            stacks->files[place->file].is_symbolized = true;
        }
    }
    stacks->symbols[stacks->symbols_count++] = *symbol;
}

/* Take the names from the dump. False: no memory. */
static bool place_take(struct ml_stacks *stacks, struct ml_place *place) {
    const struct ml_code_file *file = &stacks->files[place->file];
    size_t count = 0;
    const struct ml_profile_line *lines = ml_trace_symbols_find(
        &stacks->profile->symbols, file->path, file->build_id, place->offset, &count
    );

    if (!symbols_reserve(stacks, count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const struct ml_symbol symbol = {
            .function = lines[i].function.bytes,
            .linkage = lines[i].function.bytes,
            .file = lines[i].source.bytes,
            .line = lines[i].number,
            .inlined = i + 1 < count,
        };
        place_name(stacks, place, &symbol);
    }
    place->is_brought = count > 0;
    return true;
}

/* Find the names in the file. False: no memory. */
static bool
place_find(struct ml_stacks *stacks, struct ml_place *place, struct ml_symbol_file *file) {
    struct ml_symbol found[ML_SYMBOL_INLINES_MAX];
    size_t count = ml_symbol_file_find(file, place->offset, found);

    if (!symbols_reserve(stacks, count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        place_name(stacks, place, &found[i]);
    }
    return true;
}

struct ml_symbol_file *ml_stacks_open_file(
    const struct ml_code_file *code, struct ml_symbolizer *symbolizer, const char **out_trouble
) {
    const struct ml_symbol_wanted wanted = {
        .path = code->path.bytes,
        .build_id = (const uint8_t *)code->build_id.bytes,
        .build_id_bytes = code->build_id.count_bytes,
        .pid = code->pid,
        .has_ended = !code->is_running,
        .start = code->pid_start,
        .end = code->pid_end,
        .base = code->start - (uint64_t)code->bias,
    };

    return ml_symbolizer_open(symbolizer, &wanted, out_trouble);
}

/* Who looked while it ran knows better than we, who have no file. */
static void take_lack(
    const struct ml_stacks *stacks, struct ml_code_file *code, struct ml_symbolizer *symbolizer
) {
    const struct ml_profile_symbol_file *told =
        ml_trace_symbols_lack(&stacks->profile->symbols, code->path, code->build_id);
    const char *text = NULL;

    code->is_lack_told = told != NULL;
    if (told) {
        const struct ml_lack lack = {.kind = told->lack, .error = told->lack_error};
        text = ml_symbolizer_lack(symbolizer, lack);
    }
    if (text) {
        code->trouble = text;
    }
}

static struct ml_symbol_file *file_open(
    const struct ml_stacks *stacks, struct ml_code_file *code, struct ml_symbolizer *symbolizer
) {
    const bool is_told = code->is_symbolized; /* by the dump, which was taken first */
    struct ml_symbol_file *file = ml_stacks_open_file(code, symbolizer, &code->trouble);

    if (file) {
        code->lack = ml_symbol_file_lack(file);
    }
    if (is_told && code->trouble) {
        code->trouble = "the dump brings all names that were found of it";
    } else if (code->lack.kind != ML_LACK_NONE) {
        take_lack(stacks, code, symbolizer);
    }
    if (file && !ml_symbol_file_text(file, &code->text)) {
        code->text = (struct ml_text_segment){0};
    }
    return file;
}

/* A name as the run-time writes it, taken apart. The texts live as long as the symbolizer. */
static struct ml_symbol
script_symbol(struct ml_symbolizer *symbolizer, struct ml_profile_text name) {
    const struct ml_script_parts parts = ml_script_parts(name);
    struct ml_symbol symbol = {.function = name.bytes, .linkage = name.bytes, .file = ""};

    if (parts.file.count_bytes > 0) {
        symbol.function =
            ml_symbolizer_keep_part(symbolizer, parts.function.bytes, parts.function.count_bytes);
        symbol.linkage = symbol.function; /* uploads cut paths out of files, not of names */
        symbol.file = ml_symbolizer_keep_part(symbolizer, parts.file.bytes, parts.file.count_bytes);
        symbol.line = parts.line;
    }
    return symbol;
}

/* Until when a map may have been written: beyond the process's end it is of another one. */
static uint64_t written_until(const struct ml_profile_process *process) {
    const uint64_t file_clock_ns = 1000000000;

    return process->end.realtime_ns == 0 ? UINT64_MAX : process->end.realtime_ns + file_clock_ns;
}

/* Name code that a runtime generated: by the dump, else from the map that it left. The names live
 * as long as the symbolizer. False: no memory. */
static bool generated_find(struct ml_stacks *stacks, struct ml_symbolizer *symbolizer) {
    for (size_t i = 0; i < stacks->places_count; i++) {
        struct ml_place *place = &stacks->places[i];
        const struct ml_profile_process *process = NULL;
        struct ml_symbol symbol;

        if (place->process == 0 && place->kind != ML_FRAME_SCRIPT) {
            continue;
        }
        if (!symbols_reserve(stacks, 1)) {
            return false;
        }
        if (place->kind == ML_FRAME_SCRIPT) {
            symbol = script_symbol(symbolizer, place->name);
            place_name(stacks, place, &symbol);
            continue;
        }
        process = &stacks->profile->processes[place->process - 1];
        if (ml_symbolizer_generated(
                symbolizer,
                process->pid,
                process->start.realtime_ns,
                written_until(process),
                place->offset,
                &symbol
            )) {
            const struct ml_profile_text told = {
                .bytes = symbol.function, .count_bytes = strlen(symbol.function)};
            symbol = script_symbol(symbolizer, ml_script_name(told));
            place_name(stacks, place, &symbol);
        }
    }
    return true;
}

/* The packages that the process's name and arguments name. */
static uint64_t packages_of_process(
    const struct ml_deobfuscation *names, const struct ml_profile_process *process
) {
    uint64_t packages =
        ml_deobfuscation_packages_in(names, process->name.bytes, process->name.count_bytes);

    for (size_t i = 0; i < process->arguments_count; i++) {
        const struct ml_profile_text *word = &process->arguments[i];
        packages |= ml_deobfuscation_packages_in(names, word->bytes, word->count_bytes);
    }
    return packages;
}

/* The packages that the file's path names, or else the process's name and arguments. */
static uint64_t packages_of(const struct ml_stacks *stacks, const struct ml_place *place) {
    const struct ml_deobfuscation *names = &stacks->profile->deobfuscation;
    uint64_t packages = 0;

    if (place->file != ML_STACKS_NONE) {
        const struct ml_profile_text *path = &stacks->files[place->file].path;
        return ml_deobfuscation_packages_in(names, path->bytes, path->count_bytes);
    }
    if (place->kind == ML_FRAME_SCRIPT) { /* of whichever process */
        for (size_t i = 0; i < stacks->profile->processes_count; i++) {
            packages |= packages_of_process(names, &stacks->profile->processes[i]);
        }
        return packages;
    }
    return place->process == 0
               ? 0
               : packages_of_process(names, &stacks->profile->processes[place->process - 1]);
}

/* Restore the names that ProGuard or R8 changed. */
static void names_restore(struct ml_stacks *stacks, struct ml_symbolizer *symbolizer) {
    for (size_t i = 0; i < stacks->places_count; i++) {
        const struct ml_place *place = &stacks->places[i];
        uint64_t packages = place->symbols_count > 0 ? packages_of(stacks, place) : 0;

        for (size_t s = 0; packages != 0 && s < place->symbols_count; s++) {
            struct ml_symbol *symbol = &stacks->symbols[place->first_symbol + s];
            char *name =
                ml_deobfuscation_apply(&stacks->profile->deobfuscation, packages, symbol->function);
            if (name) {
                symbol->obfuscated = symbol->function;
                symbol->function = ml_symbolizer_keep(symbolizer, name);
            }
            free(name);
        }
    }
}

enum ml_status ml_stacks_symbolize(struct ml_stacks *stacks, struct ml_symbolizer *symbolizer) {
    uint32_t *order = calloc(stacks->places_count + 1, sizeof *order);
    struct ml_symbol_file *file = NULL;
    uint32_t open = ML_STACKS_NONE;
    size_t count = 0;
    bool done = order != NULL;

    for (uint32_t i = 0; done && i < stacks->places_count; i++) {
        if (stacks->places[i].file != ML_STACKS_NONE) {
            done = place_take(stacks, &stacks->places[i]);
            order[count] = i;
            count += !stacks->places[i].is_brought;
        }
    }
    if (done) {
        ml_stacks_sort_places(stacks, order, count); /* each file is opened once */
    }
    for (size_t i = 0; done && i < count; i++) {
        struct ml_place *place = &stacks->places[order[i]];

        ml_progress_pieces("Reading symbols", i, count, stacks->files[place->file].path.bytes);
        if (place->file != open) {
            open = place->file;
            file = file_open(stacks, &stacks->files[open], symbolizer);
        }
        done = file && place_find(stacks, place, file);
    }
    free(order);
    done = done && generated_find(stacks, symbolizer);
    if (done && stacks->profile->deobfuscation.packages_count > 0) {
        names_restore(stacks, symbolizer);
    }
    return done ? ML_OK : ML_ENV_MEMORY;
}
