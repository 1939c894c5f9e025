#include "tools/analyzer/symbols/breakpad.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/analyzer/model/search.h"
#include "tools/analyzer/symbols/search.h"

/* dump_syms writes no longer lines. Names of templates reach some hundred thousand bytes. */
enum { LINE_BYTES_MAX = 4 * 1024 * 1024 };

/* Chromium's symbols have some 30 million records. */
enum { RECORDS_MAX = 200 * 1000 * 1000 };

bool ml_breakpad_id(
    const uint8_t *build_id, size_t build_id_bytes, char out_id[ML_BREAKPAD_ID_BYTES]
) {
    /* The first three numbers of a GUID are shown as little-endian ones. */
    static const uint8_t order[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

    if (build_id_bytes < sizeof order) {
        return false;
    }
    for (size_t i = 0; i < sizeof order; i++) {
        snprintf(out_id + 2 * i, 3, "%02X", build_id[order[i]]);
    }
    snprintf(out_id + 2 * sizeof order, 2, "0");
    return true;
}

/* What is left of a line. Each step takes a word and the blanks behind it. */
struct text {
    char *at;
};

static bool take_number(struct text *text, int base, uint64_t *out_number) {
    char *end = NULL;

    if (!isxdigit((unsigned char)*text->at)) {
        return false;
    }
    *out_number = strtoull(text->at, &end, base);
    if (end == text->at || (*end != ' ' && *end != '\0')) {
        return false;
    }
    text->at = end + strspn(end, " ");
    return true;
}

static bool take_number32(struct text *text, uint32_t *out_number) {
    uint64_t number = 0;

    if (!take_number(text, 10, &number) || number > UINT32_MAX) {
        return false;
    }
    *out_number = (uint32_t)number;
    return true;
}

static bool take_word(struct text *text, const char *word) {
    size_t count = strlen(word);

    if (strncmp(text->at, word, count) != 0 || text->at[count] != ' ') {
        return false;
    }
    text->at += count + strspn(text->at + count, " ");
    return true;
}

/* The end of a word, which is terminated in place. */
static char *cut_word(struct text *text) {
    char *word = text->at;

    text->at += strcspn(text->at, " ");
    if (*text->at) {
        *text->at++ = '\0';
        text->at += strspn(text->at, " ");
    }
    return word;
}

static bool is_stretch(uint64_t start, uint64_t size_bytes) {
    return size_bytes > 0 && size_bytes <= UINT64_MAX - start;
}

/* Other lines are skipped. False: no memory. */

static bool
name_take(struct ml_breakpad *breakpad, struct ml_breakpad_names *names, struct text text) {
    struct ml_breakpad_name name;

    if (!take_number32(&text, &name.number)) {
        return true;
    }
    name.text = ml_arena_text(&breakpad->arena, text.at, strlen(text.at));
    if (!name.text || !ML_GROW(names->items, names->capacity, names->count + 1)) {
        return false;
    }
    names->items[names->count++] = name;
    return true;
}

static bool function_take(struct ml_breakpad *breakpad, struct text text, bool is_public) {
    struct ml_breakpad_function function = {
        .first_line = breakpad->lines_count, .first_inline = breakpad->inlines_count};
    uint64_t parameters = 0;

    function.is_merged = take_word(&text, "m");
    if (!take_number(&text, 16, &function.start) ||
        (!is_public && (!take_number(&text, 16, &function.size_bytes) ||
                        !is_stretch(function.start, function.size_bytes))) ||
        !take_number(&text, 16, &parameters)) {
        return true;
    }
    function.name = ml_arena_text(&breakpad->arena, text.at, strlen(text.at));
    if (!function.name ||
        !ML_GROW(
            breakpad->functions, breakpad->functions_capacity, breakpad->functions_count + 1
        )) {
        return false;
    }
    breakpad->functions[breakpad->functions_count++] = function;
    return true;
}

/* The FUNC that line and INLINE records belong to; NULL: none. */
static struct ml_breakpad_function *function_at_hand(struct ml_breakpad *breakpad) {
    struct ml_breakpad_function *last =
        breakpad->functions_count > 0 ? &breakpad->functions[breakpad->functions_count - 1] : NULL;

    return last && last->size_bytes > 0 ? last : NULL;
}

static bool inline_take(struct ml_breakpad *breakpad, struct text text) {
    struct ml_breakpad_function *function = function_at_hand(breakpad);
    struct ml_breakpad_inline one = {0};

    if (!function || !take_number32(&text, &one.level) || !take_number32(&text, &one.call_line) ||
        !take_number32(&text, &one.call_file) || !take_number32(&text, &one.origin)) {
        return true;
    }
    while (take_number(&text, 16, &one.start) && take_number(&text, 16, &one.size_bytes) &&
           is_stretch(one.start, one.size_bytes)) {
        if (!ML_GROW(breakpad->inlines, breakpad->inlines_capacity, breakpad->inlines_count + 1)) {
            return false;
        }
        breakpad->inlines[breakpad->inlines_count++] = one;
        function->inlines_count++;
    }
    return true;
}

static bool line_record_take(struct ml_breakpad *breakpad, struct text text) {
    struct ml_breakpad_function *function = function_at_hand(breakpad);
    struct ml_breakpad_line line = {0};

    if (!function || !take_number(&text, 16, &line.start) ||
        !take_number(&text, 16, &line.size_bytes) || !is_stretch(line.start, line.size_bytes) ||
        !take_number32(&text, &line.number) || !take_number32(&text, &line.file)) {
        return true;
    }
    if (!ML_GROW(breakpad->lines, breakpad->lines_capacity, breakpad->lines_count + 1)) {
        return false;
    }
    breakpad->lines[breakpad->lines_count++] = line;
    function->lines_count++;
    return true;
}

static bool record_take(struct ml_breakpad *breakpad, char *line) {
    struct text text = {.at = line};

    if (take_word(&text, "FUNC")) {
        return function_take(breakpad, text, false);
    }
    if (take_word(&text, "PUBLIC")) {
        return function_take(breakpad, text, true);
    }
    if (take_word(&text, "FILE")) {
        return name_take(breakpad, &breakpad->files, text);
    }
    if (take_word(&text, "INLINE_ORIGIN")) {
        return name_take(breakpad, &breakpad->origins, text);
    }
    if (take_word(&text, "INLINE")) {
        return inline_take(breakpad, text);
    }
    return line_record_take(breakpad, text);
}

/* MODULE os architecture id name */
static bool is_module(char *line, const uint8_t *build_id, size_t build_id_bytes) {
    char id[ML_BREAKPAD_ID_BYTES];
    struct text text = {.at = line};

    if (!ml_breakpad_id(build_id, build_id_bytes, id) || !take_word(&text, "MODULE")) {
        return false;
    }
    (void)cut_word(&text);
    (void)cut_word(&text);
    return strcasecmp(cut_word(&text), id) == 0;
}

/* INFO CODE_ID hex. True for any other line, too. */
static bool is_code_id(char *line, const uint8_t *build_id, size_t build_id_bytes) {
    struct text text = {.at = line};
    const char *hex = NULL;

    if (!take_word(&text, "INFO") || !take_word(&text, "CODE_ID")) {
        return true;
    }
    hex = cut_word(&text);
    if (strlen(hex) != 2 * build_id_bytes) {
        return false;
    }
    for (size_t i = 0; i < build_id_bytes; i++) {
        char byte[3];
        snprintf(byte, sizeof byte, "%02x", build_id[i]);
        if (strncasecmp(hex + 2 * i, byte, 2) != 0) {
            return false;
        }
    }
    return true;
}

static int order_functions(const void *left, const void *right) {
    const struct ml_breakpad_function *a = left;
    const struct ml_breakpad_function *b = right;

    if (a->start != b->start) {
        return (a->start > b->start) - (a->start < b->start);
    }
    return (a->size_bytes > b->size_bytes) - (a->size_bytes < b->size_bytes);
}

static int order_names(const void *left, const void *right) {
    const struct ml_breakpad_name *a = left;
    const struct ml_breakpad_name *b = right;

    return (a->number > b->number) - (a->number < b->number);
}

static const char *name_find(const struct ml_breakpad_names *names, uint32_t number) {
    const struct ml_breakpad_name wanted = {.number = number};
    const struct ml_breakpad_name *found =
        names->count > 0 ? bsearch(&wanted, names->items, names->count, sizeof wanted, order_names)
                         : NULL;

    return found ? found->text : "";
}

bool ml_breakpad_read(
    struct ml_breakpad *breakpad, const char *path, const uint8_t *build_id, size_t build_id_bytes
) {
    FILE *file = ml_symbol_text_open(path);
    char *line = NULL;
    size_t capacity = 0;
    size_t records = 0;
    bool done = file != NULL;

    while (done && records < RECORDS_MAX && getline(&line, &capacity, file) > 0 &&
           capacity <= LINE_BYTES_MAX) {
        line[strcspn(line, "\r\n")] = '\0';
        if (records++ == 0) {
            done = is_module(line, build_id, build_id_bytes);
        } else {
            done = is_code_id(line, build_id, build_id_bytes) && record_take(breakpad, line);
        }
    }
    free(line);
    if (file) {
        fclose(file);
    }
    if (!done || records == 0) {
        ml_breakpad_fini(breakpad);
        return false;
    }
    ML_SORT(breakpad->functions, breakpad->functions_count, order_functions);
    ML_SORT(breakpad->files.items, breakpad->files.count, order_names);
    ML_SORT(breakpad->origins.items, breakpad->origins.count, order_names);
    return true;
}

void ml_breakpad_fini(struct ml_breakpad *breakpad) {
    free(breakpad->functions);
    free(breakpad->lines);
    free(breakpad->inlines);
    free(breakpad->files.items);
    free(breakpad->origins.items);
    ml_arena_fini(&breakpad->arena);
    *breakpad = (struct ml_breakpad){0};
}

/* The last one that begins at or before the address. NULL: none. */
static const struct ml_breakpad_function *
function_find(const struct ml_breakpad *breakpad, uint64_t address) {
    const size_t begun =
        ml_keys_until(ML_KEYS(breakpad->functions, breakpad->functions_count, start), address);
    const struct ml_breakpad_function *found = begun > 0 ? &breakpad->functions[begun - 1] : NULL;

    if (found && found->size_bytes > 0 && address - found->start >= found->size_bytes) {
        return NULL;
    }
    return found;
}

static bool covers(uint64_t start, uint64_t size_bytes, uint64_t address) {
    return address >= start && address - start < size_bytes;
}

/* The inlined range of that level at the address; NULL: none. */
static const struct ml_breakpad_inline *inline_find(
    const struct ml_breakpad *breakpad,
    const struct ml_breakpad_function *function,
    uint64_t address,
    uint32_t level
) {
    for (size_t i = 0; i < function->inlines_count; i++) {
        const struct ml_breakpad_inline *one = &breakpad->inlines[function->first_inline + i];
        if (one->level == level && covers(one->start, one->size_bytes, address)) {
            return one;
        }
    }
    return NULL;
}

size_t ml_breakpad_find(
    const struct ml_breakpad *breakpad,
    uint64_t address,
    struct ml_breakpad_frame *out_frames,
    size_t frames_max
) {
    const struct ml_breakpad_function *function = function_find(breakpad, address);
    const struct ml_breakpad_inline *one = NULL;
    struct ml_breakpad_frame frame = {.file = ""};
    uint32_t levels = 0;
    size_t count = 0;

    if (!function || frames_max == 0) {
        return 0;
    }
    while (levels + 1 < frames_max && inline_find(breakpad, function, address, levels)) {
        levels++;
    }
    for (size_t i = 0; i < function->lines_count; i++) {
        const struct ml_breakpad_line *line = &breakpad->lines[function->first_line + i];
        if (covers(line->start, line->size_bytes, address)) {
            frame.file = name_find(&breakpad->files, line->file);
            frame.line = line->number;
            break;
        }
    }
    /* Each inlined function stands in the line that the record at the address names; who called it
     * stands in the line of its call. */
    while (levels > 0 && (one = inline_find(breakpad, function, address, --levels)) != NULL) {
        frame.name = name_find(&breakpad->origins, one->origin);
        frame.is_inlined = true;
        out_frames[count++] = frame;
        frame.file = name_find(&breakpad->files, one->call_file);
        frame.line = one->call_line;
    }
    frame.name = function->name;
    frame.is_inlined = false;
    frame.is_merged = function->is_merged;
    out_frames[count++] = frame;
    return count;
}
