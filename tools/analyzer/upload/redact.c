#include "tools/analyzer/upload/redact.h"

#include <stdlib.h>
#include <string.h>

#include "ipc/wire/event.h"

enum {
    NAME_MAX_BYTES = 48,  /* longer ones are sentences or contain data */
    TYPE_MAX_BYTES = 256, /* of types: those of C++ have their arguments in them */
    DIGITS_KEPT = 2       /* "worker-12" names a kind; longer numbers are ids */
};

static bool cut_path(struct ml_profile_text *path, size_t *count) {
    const char *slash = memrchr(path->bytes, '/', path->count_bytes);

    if (!slash) {
        return false;
    }
    path->count_bytes -= (size_t)(slash + 1 - path->bytes);
    path->bytes = slash + 1;
    ++*count;
    return true;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_plain(const struct ml_profile_text *name, bool is_type) {
    const char *others = is_type ? "-_.:/ ()<>[]#,*&~{}" : "-_.:/ ()<>[]#";

    for (size_t i = 0; i < name->count_bytes; i++) {
        char c = name->bytes[i];
        if (!is_letter(c) && !is_digit(c) && (c == '\0' || !strchr(others, c))) {
            return false;
        }
    }
    return name->count_bytes <= (size_t)(is_type ? TYPE_MAX_BYTES : NAME_MAX_BYTES);
}

/* Long numbers as one '#'. NULL: no memory. */
static char *without_numbers(struct ml_arena *arena, const struct ml_profile_text *name) {
    char *out = ml_arena_text(arena, name->bytes, name->count_bytes);
    size_t at = 0;

    for (size_t i = 0; out && i < name->count_bytes;) {
        size_t digits = 0;
        while (i + digits < name->count_bytes && is_digit(name->bytes[i + digits])) {
            digits++;
        }
        if (digits > DIGITS_KEPT) {
            out[at++] = '#';
            i += digits;
            continue;
        }
        do {
            out[at++] = name->bytes[i++];
        } while (digits > 1 && digits-- > 0);
    }
    if (out) {
        out[at] = '\0';
    }
    return out;
}

static bool cut_name(
    struct ml_profile *profile,
    struct ml_profile_text *name,
    enum ml_redact_names names,
    bool is_type,
    size_t *count
) {
    const char *text = "name";

    if (names == ML_REDACT_ALL || name->count_bytes == 0) {
        return true;
    }
    if (names == ML_REDACT_PLAIN && is_plain(name, is_type)) {
        text = without_numbers(&profile->arena, name);
        if (!text) {
            return false;
        }
    }
    *count += strcmp(text, name->bytes) != 0;
    *name = (struct ml_profile_text){.bytes = text, .count_bytes = strlen(text)};
    return true;
}

/* Names of heaps and types, and those of scopes and threads. */
static bool cut_strings(
    struct ml_profile *profile,
    struct ml_profile_process *process,
    enum ml_redact_names names,
    struct ml_redacted *redacted
) {
    bool *is_type = calloc(process->strings_count + 1, sizeof *is_type);
    bool done = is_type != NULL;

    for (size_t i = 0; done && i < process->types_count; i++) {
        const uint32_t string = process->types[i].string;
        if (string < process->strings_count) {
            is_type[string] = true;
        }
    }
    for (size_t i = 0; done && i < process->strings_count; i++) {
        done = cut_name(profile, &process->strings[i], names, is_type[i], &redacted->names);
    }
    free(is_type);
    return done;
}

static bool cut_process(
    struct ml_profile *profile,
    struct ml_profile_process *process,
    enum ml_redact_names names,
    struct ml_redacted *redacted
) {
    /* The program's name, where nothing else tells which program it was. */
    if (process->exe_path.count_bytes == 0 && process->arguments_count > 0) {
        process->exe_path = process->arguments[0];
    }
    process->not_recorded_reason = (struct ml_profile_text){.bytes = ""};
    redacted->arguments += process->arguments_count;
    process->arguments_count = 0;
    (void)cut_path(&process->exe_path, &redacted->paths);
    for (size_t i = 0; i < process->modules_count; i++) {
        (void)cut_path(&process->modules[i].path, &redacted->paths);
    }
    return cut_name(profile, &process->name, names, false, &redacted->names) &&
           cut_strings(profile, process, names, redacted);
}

/* memlog's own words, which have names of processes, signals and paths in them. */
static void cut_words(struct ml_profile *profile, struct ml_redacted *redacted) {
    const struct ml_profile_text none = {.bytes = ""};

    (void)cut_path(&profile->program, &redacted->paths);
    for (size_t i = 0; i < profile->not_profiled_count; i++) {
        (void)cut_path(&profile->not_profiled[i].path, &redacted->paths);
        profile->not_profiled[i].reason = none;
    }
    /* The reason has a name that a process gave itself. The kind stays. */
    profile->trigger.reason = none;
}

enum ml_status ml_redact(
    struct ml_profile *profile,
    struct ml_stacks *stacks,
    enum ml_redact_names names,
    struct ml_redacted *out_redacted
) {
    bool done = true;

    *out_redacted = (struct ml_redacted){0};
    cut_words(profile, out_redacted);
    for (size_t i = 0; done && i < profile->processes_count; i++) {
        done = cut_process(profile, &profile->processes[i], names, out_redacted);
    }
    for (size_t i = 0; done && i < profile->others_count; i++) {
        done = cut_process(profile, &profile->others[i], names, out_redacted);
    }
    for (size_t i = 0; i < stacks->files_count; i++) {
        (void)cut_path(&stacks->files[i].path, &out_redacted->paths);
    }
    for (size_t i = 0; i < stacks->symbols_count; i++) {
        const char *slash = strrchr(stacks->symbols[i].file, '/');
        if (slash) {
            stacks->symbols[i].file = slash + 1;
            out_redacted->paths++;
        }
    }
    for (size_t i = 0; done && i < stacks->places_count; i++) {
        struct ml_place *place = &stacks->places[i];
        if (place->kind == ML_FRAME_THREAD || place->kind == ML_FRAME_SCOPE) {
            done = cut_name(profile, &place->name, names, false, &out_redacted->names);
        }
    }
    return done ? ML_OK : ML_ENV_MEMORY;
}
