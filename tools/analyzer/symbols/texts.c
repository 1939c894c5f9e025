#include "tools/analyzer/symbols/texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/symbols/demangle.h"

void ml_symbol_texts_fini(struct ml_symbol_texts *texts) {
    ml_index_fini(&texts->names_index);
    free(texts->names);
    ml_string_table_fini(&texts->strings);
    *texts = (struct ml_symbol_texts){0};
}

const char *ml_symbol_texts_keep(struct ml_symbol_texts *texts, const char *text) {
    uint32_t item = ml_string_table_copy(&texts->strings, text, strlen(text));

    return item == ML_STRING_NONE ? "" : texts->strings.strings[item].bytes;
}

const char *ml_symbol_texts_readable(struct ml_symbol_texts *texts, const char *linkage) {
    uint64_t hash = ml_hash(0, linkage, strlen(linkage));
    struct ml_name_pair pair = {.linkage = linkage};
    size_t at = 0;
    char *readable = NULL;

    for (uint32_t item = ml_index_first(&texts->names_index, hash, &at); item != ML_INDEX_NONE;
         item = ml_index_next(&texts->names_index, hash, &at)) {
        if (strcmp(texts->names[item].linkage, linkage) == 0) {
            return texts->names[item].readable;
        }
    }
    readable = ml_demangle(linkage);
    pair.readable = readable ? ml_symbol_texts_keep(texts, readable) : "";
    free(readable);
    if (ML_GROW(texts->names, texts->names_capacity, texts->names_count + 1) &&
        ml_index_add(&texts->names_index, hash, (uint32_t)texts->names_count)) {
        texts->names[texts->names_count++] = pair;
    }
    return pair.readable;
}

const char *ml_symbol_texts_merged(struct ml_symbol_texts *texts, const char *name) {
    char *text = NULL;
    const char *kept = name;

    if (asprintf(&text, "%s [merged]", name) >= 0) {
        kept = ml_symbol_texts_keep(texts, text);
        free(text);
    }
    return kept;
}
