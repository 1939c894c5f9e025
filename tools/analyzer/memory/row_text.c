#include "tools/analyzer/memory/row_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/stacks/attribution.h"

/* Longer names are cut. */
enum { NAME_BYTES = 4096 };

struct ml_row_text *ml_row_text_new(void) {
    struct ml_row_text *text = calloc(1, sizeof *text);

    if (text) {
        text->node = ML_STACKS_NONE;
    }
    return text;
}

/* The length of a word at `at` whose brackets are part of the name; 0: there is none. */
static size_t word_bytes(const char *at) {
    static const char *const words[] = {
        "(anonymous namespace)",
        "operator()",
        "operator<<",
        "operator<=",
        "operator<",
        "operator->",
        "operator>>",
        "operator>=",
        "operator>",
        "operator "};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t count = strlen(words[i]);
        if (strncmp(at, words[i], count) == 0) {
            return count;
        }
    }
    return 0;
}

void ml_row_text_bare(const char *function, char *out_name, size_t out_bytes) {
    size_t count = 0;
    int depth = 0; /* of template arguments */

    for (const char *at = function; *at && count + sizeof "(anonymous namespace)" < out_bytes;) {
        const size_t word = word_bytes(at);
        if (word > 0 && depth == 0) {
            memcpy(out_name + count, at, word);
            count += word;
        } else if (*at == '<') {
            depth++;
        } else if (*at == '>' && depth > 0) {
            depth--;
        } else if (depth == 0 && *at == '(') {
            break; /* parameters */
        } else if (depth == 0 && *at == ' ' && at[1] != '<' && (count < 9 || strncmp(out_name, "operator ", 9) != 0)) {
            count = 0; /* that was the return type */
        } else if (depth == 0 && (*at != ' ' || at[1] != '<')) {
            out_name[count++] = *at;
        }
        at += word > 0 ? word : 1;
    }
    out_name[count] = '\0';
}

/* Append behind a blank. */
static void append(char *text, size_t *count, const char *word) {
    const size_t bytes = strlen(word);

    if (*count + bytes + 2 > ML_ROW_TEXT_BYTES) {
        *count = ML_ROW_TEXT_BYTES; /* what is further out is not in it, either */
        return;
    }
    if (*count > 0) {
        text[(*count)++] = ' ';
    }
    memcpy(text + *count, word, bytes + 1);
    *count += bytes;
}

void ml_row_text_make(struct ml_row_text *text, const struct ml_stacks *stacks, uint32_t node) {
    size_t functions = 0;
    size_t files = 0;
    size_t modules = 0;

    if (node == text->node) {
        return;
    }
    text->node = node;
    text->functions[0] = text->files[0] = text->modules[0] = '\0';
    for (; node != ML_STACKS_NONE; node = stacks->nodes[node].parent) {
        const struct ml_place *place = &stacks->places[stacks->nodes[node].place];
        const char *module =
            place->file == ML_STACKS_NONE ? "" : stacks->files[place->file].path.bytes;
        char name[NAME_BYTES];

        if (module[0]) {
            append(text->modules, &modules, module);
        }
        if (place->symbols_count == 0) {
            char buffer[ML_PLACE_NAME_BYTES];
            const char *base = basename(module);
            snprintf(
                name, sizeof name, "%s%s%s", base, base[0] ? "+" : "", ml_place_name(place, buffer)
            );
            append(text->functions, &functions, name);
        }
        for (size_t i = 0; i < place->symbols_count; i++) {
            const struct ml_symbol *symbol = &stacks->symbols[place->first_symbol + i];
            ml_row_text_bare(symbol->function, name, sizeof name);
            append(text->functions, &functions, name);
            if (symbol->file && symbol->file[0]) {
                append(text->files, &files, symbol->file);
            }
        }
    }
}

const char *ml_row_module(const struct ml_stacks *stacks, const struct ml_row *row) {
    const struct ml_attribution attribution = ml_attribution_find(stacks, row->node);

    if (attribution.node != ML_STACKS_NONE) {
        const uint32_t file = stacks->places[stacks->nodes[attribution.node].place].file;
        if (file != ML_STACKS_NONE) {
            return basename(stacks->files[file].path.bytes);
        }
    }
    return basename(row->file.bytes);
}
