/* Every text that the symbolizer returns, each stored once. Room: tools. Context: one thread.
 *
 * One rule: without memory a name becomes "", and the report goes on. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_TEXTS_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_TEXTS_H

#include <stddef.h>

#include "tools/analyzer/model/index.h"
#include "tools/analyzer/model/string_table.h"

struct ml_name_pair {
    const char *linkage;
    const char *readable;
};

/* Empty: all zero. */
struct ml_symbol_texts {
    struct ml_name_pair *names;
    size_t names_count, names_capacity;
    struct ml_index names_index;
    struct ml_string_table strings; /* all texts */
};

void ml_symbol_texts_fini(struct ml_symbol_texts *texts);

/* A stored copy of the text. */
const char *ml_symbol_texts_keep(struct ml_symbol_texts *texts, const char *text);

/* The readable form of a stored linkage name. Each is demangled once. */
const char *ml_symbol_texts_readable(struct ml_symbol_texts *texts, const char *linkage);

/* The name, marked as that of code that other functions share. */
const char *ml_symbol_texts_merged(struct ml_symbol_texts *texts, const char *name);

#endif
