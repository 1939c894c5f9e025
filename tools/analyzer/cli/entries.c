#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/input_file.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/sandbox/confine.h"
#include "tools/analyzer/symbols/entries.h"

enum {
    LIST_BYTES = 512, /* of further families */
    EXAMPLES = 4      /* of functions */
};

enum form { FORM_TEXT, FORM_JSON, FORM_SENTENCE };

struct request {
    enum form form;
    char list[LIST_BYTES];
    const char *files[2];
};

static bool read_allocator(void *to, const char *value, struct ml_error_message *why) {
    struct request *request = to;
    const enum ml_allocator_list_refusal refusal =
        ml_allocator_families_add(request->list, sizeof request->list, value);

    if (refusal != ML_ALLOCATOR_LIST_READ) {
        ml_error_set(why, "%s", ml_allocator_list_refusal_text(refusal));
    }
    return refusal == ML_ALLOCATOR_LIST_READ;
}

static const struct ml_option options[] = {
    {.name = "--json", ML_CHOICE_TO(struct request, form, FORM_JSON), .help = "for programs"},
    {.name = "--sentence",
     ML_CHOICE_TO(struct request, form, FORM_SENTENCE),
     .help = "as memlog doctor tells it; ends with 3 where memory of an allocator goes unseen"},
    {.name = "--allocator",
     ML_READ_BY(read_allocator),
     .value = "NAME=PREFIX",
     .wants = "NAME=PREFIX",
     .help = "another allocator, as memlog run takes it. Repeatable"},
};

/* ---- what is found */

/* One family, with the functions that are hooked where `is_taken`, else with the others. */
static uint32_t count_functions(struct ml_families *families, uint32_t family, bool is_taken) {
    uint32_t count = 0;

    for (uint32_t i = 0; i < families->count; i++) {
        const struct ml_families_function *one = &families->functions[i];
        count += ml_families_of(families, one) == &families->families[family] &&
                 ml_families_takes(families, one) == is_taken;
    }
    return count;
}

/* The next one behind `from`; the number of functions: there is none. */
static uint32_t
next_function(struct ml_families *families, uint32_t family, bool is_taken, uint32_t from) {
    while (from < families->count) {
        const struct ml_families_function *one = &families->functions[from];
        if (ml_families_of(families, one) == &families->families[family] &&
            ml_families_takes(families, one) == is_taken) {
            break;
        }
        from++;
    }
    return from;
}

static bool is_any_missed(struct ml_entries *entries) {
    bool is_missed = entries->families.has_sanitizer;

    for (uint32_t i = 0; i < ML_FAMILIES_MAX; i++) {
        is_missed = is_missed || (ml_entries_has(entries, i) && ml_entries_is_missed(entries, i));
    }
    return is_missed;
}

/* "15 functions (malloc, free, ...)": names that people know first. */
static void put_functions(struct ml_families *families, uint32_t family, FILE *out) {
    const uint32_t count = count_functions(families, family, true);
    uint32_t told = 0;

    fprintf(out, "%" PRIu32 " function%s (", count, count == 1 ? "" : "s");
    for (int is_mangled = 0; is_mangled <= 1; is_mangled++) {
        for (uint32_t i = next_function(families, family, true, 0);
             i < families->count && told < EXAMPLES;
             i = next_function(families, family, true, i + 1)) {
            const char *name = families->functions[i].name;
            if ((name[0] == '_') == is_mangled) {
                fputs(told++ > 0 ? ", " : "", out);
                ml_printable_put_text(out, name);
            }
        }
    }
    fputs(told < count ? ", ...)" : ")", out);
}

static const char stripped_words[] = "it is stripped: exported names alone were looked at";

/* ---- as text */

static void put_family(struct ml_entries *entries, uint32_t family, FILE *out) {
    struct ml_families *families = &entries->families;
    const bool is_hooked = ml_entries_fate_of(entries, family) == ML_ENTRIES_HOOKED;
    char name[ML_ENTRIES_TEXT_BYTES];
    char reason[ML_ENTRIES_TEXT_BYTES];

    ml_entries_name(entries, family, name);
    ml_entries_reason(entries, family, reason);
    fputs("  ", out);
    ml_printable_put_text(out, name);
    if (!is_hooked) {
        fputs(": not hooked: ", out);
        ml_printable_put_text(out, reason);
        fputs(ml_entries_is_missed(entries, family) ? "\n" : "; it passes its calls on\n", out);
        return;
    }
    fputs(": hooked: ", out);
    put_functions(families, family, out);
    fputc('\n', out);
    for (uint32_t i = next_function(families, family, false, 0); i < families->count;
         i = next_function(families, family, false, i + 1)) {
        fputs("    but not ", out);
        ml_printable_put_text(out, families->functions[i].name);
        fprintf(out, ": %s\n", ml_entry_refusal_text(families->functions[i].refusal));
    }
}

static void put_text(struct ml_entries *entries, const char *path, FILE *out) {
    bool is_any = false;

    ml_printable_put_text(out, path);
    fputc('\n', out);
    for (uint32_t i = 0; i < ML_FAMILIES_MAX; i++) {
        if (ml_entries_has(entries, i)) {
            put_family(entries, i, out);
            is_any = true;
        }
    }
    if (entries->families.has_sanitizer) {
        fputs("  a sanitizer's run-time is in it: nothing is hooked\n", out);
    } else if (!is_any) {
        fputs("  no allocator inside\n", out);
    }
    if (entries->is_stripped) {
        fprintf(out, "  %s\n", stripped_words);
    }
}

/* ---- as JSON */

static void put_names(struct ml_json *json, struct ml_families *families, uint32_t family) {
    ml_json_open_member(json, "functions", '[');
    for (uint32_t i = next_function(families, family, true, 0); i < families->count;
         i = next_function(families, family, true, i + 1)) {
        ml_json_string(json, families->functions[i].name);
    }
    ml_json_close(json, ']');
}

/* Of a family that is left alone these were not planned to the end: its reason tells. */
static void put_others(struct ml_json *json, struct ml_families *families, uint32_t family) {
    ml_json_open_member(json, "not_hooked", '[');
    for (uint32_t i = next_function(families, family, false, 0); i < families->count;
         i = next_function(families, family, false, i + 1)) {
        ml_json_open(json, '{');
        ml_json_string_member(json, "function", families->functions[i].name);
        if (families->functions[i].refusal != ML_ENTRY_PLANNED &&
            ml_families_of(families, &families->functions[i])->is_wanted) {
            ml_json_string_member(
                json, "reason", ml_entry_refusal_text(families->functions[i].refusal)
            );
        }
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
}

static void put_json(struct ml_entries *entries, const char *path, FILE *out) {
    struct ml_json json = ml_json_over(out);

    ml_json_open(&json, '{');
    ml_json_number_member(&json, "memlog", 1);
    ml_json_string_member(&json, "file", path);
    ml_json_bool_member(&json, "stripped", entries->is_stripped);
    ml_json_bool_member(&json, "sanitizer", entries->families.has_sanitizer);
    ml_json_open_member(&json, "families", '[');
    for (uint32_t i = 0; i < ML_FAMILIES_MAX; i++) {
        char text[ML_ENTRIES_TEXT_BYTES];
        if (!ml_entries_has(entries, i)) {
            continue;
        }
        ml_json_line(&json);
        ml_json_open(&json, '{');
        ml_entries_name(entries, i, text);
        ml_json_string_member(&json, "name", text);
        ml_json_bool_member(&json, "hooked", ml_entries_fate_of(entries, i) == ML_ENTRIES_HOOKED);
        ml_json_bool_member(&json, "missed", ml_entries_is_missed(entries, i));
        ml_entries_reason(entries, i, text);
        ml_json_string_member(&json, "reason", text);
        put_names(&json, &entries->families, i);
        put_others(&json, &entries->families, i);
        ml_json_close(&json, '}');
    }
    ml_json_close(&json, ']');
    ml_json_close(&json, '}');
    fputc('\n', out);
}

/* ---- as a sentence */

static void put_sentence(struct ml_entries *entries, FILE *out) {
    const char *between = "";

    for (uint32_t i = 0; i < ML_FAMILIES_MAX; i++) {
        const bool is_hooked =
            ml_entries_has(entries, i) && ml_entries_fate_of(entries, i) == ML_ENTRIES_HOOKED;
        if (is_hooked) {
            fprintf(out, "%sits own allocator inside the executable is recorded: ", between);
            put_functions(&entries->families, i, out);
            between = "; ";
        }
    }
    for (uint32_t i = 0; i < ML_FAMILIES_MAX; i++) {
        char name[ML_ENTRIES_TEXT_BYTES];
        char reason[ML_ENTRIES_TEXT_BYTES];
        if (!ml_entries_has(entries, i) || !ml_entries_is_missed(entries, i)) {
            continue;
        }
        ml_entries_name(entries, i, name);
        ml_entries_reason(entries, i, reason);
        fprintf(out, "%sthe allocator inside the executable (", between);
        ml_printable_put_text(out, name);
        fputs(") is not recorded: ", out);
        ml_printable_put_text(out, reason);
        fputs("; its memory is NOT COVERED", out);
        between = "; ";
    }
    if (between[0] == '\0' && entries->families.has_sanitizer) {
        fputs("a sanitizer's run-time is inside the executable: nothing is hooked there", out);
    } else if (between[0] == '\0') {
        fputs(
            "what it asks of malloc is recorded; no allocator is known inside the executable", out
        );
        if (entries->is_stripped) {
            fprintf(out, " (%s)", stripped_words);
        }
    }
    fputc('\n', out);
}

/* ---- */

static int tell(const struct ml_command *command, struct ml_entries *entries, struct request *by) {
    int exit_code = ML_EXIT_OK;

    if (by->form == FORM_JSON) {
        put_json(entries, by->files[0], stdout);
    } else if (by->form == FORM_TEXT) {
        put_text(entries, by->files[0], stdout);
    } else {
        put_sentence(entries, stdout);
        exit_code = is_any_missed(entries) ? ML_EXIT_LACKING : ML_EXIT_OK;
    }
    return ml_command_finish(command) == ML_EXIT_OK ? exit_code : ML_EXIT_FAILED;
}

static int run(const struct ml_command *command, char *const *words) {
    static struct ml_entries entries; /* too large for the stack */
    struct request request = {.form = FORM_TEXT};
    struct ml_allocator_families given;
    int exit_code = ML_EXIT_OK;

    if (!ml_command_read(command, words, &request, NULL, &exit_code)) {
        return exit_code;
    }
    (void)ml_allocator_families_read(request.list, strlen(request.list), &given);
    ml_confine(NULL, NULL);
    switch (ml_entries_open(&entries, request.files[0], &given)) {
    case ML_ENTRIES_READ:
        exit_code = tell(command, &entries, &request);
        ml_entries_close(&entries);
        return exit_code;
    case ML_ENTRIES_UNREADABLE:
        ml_command_say_of(command, request.files[0], "%s", ml_input_trouble(errno));
        break;
    case ML_ENTRIES_NO_PROGRAM:
        ml_command_say_of(command, request.files[0], "it is no x86-64 program");
        break;
    }
    return ML_EXIT_FAILED;
}

const struct ml_command ml_command_entries = {
    .table =
        {.program = "memlog-analyzer",
         .name = "entries",
         .summary = "which allocator inside an executable is recorded",
         .usage = "[OPTIONS] PROGRAM",
         .about = "Which functions of an executable belong to an allocator, and which of them "
                  "memlog run hooks at their entries, or why not. memlog doctor starts it. It "
                  "looks at the file alone: a run's report has the last word.",
         ML_OPTIONS(options),
         .operands = ML_OPERANDS_FILES,
         .operands_offset = offsetof(struct request, files),
         .operands_least = 1,
         .operands_most = 1,
         .operands_missing = "no program was named: the path of an executable is wanted",
         .example = "memlog-analyzer entries /usr/lib/chromium/chromium"},
    .run = run,
};
