/* Addresses of ELF files, turned into functions, files and lines. Room: tools. Context: one thread;
 * ELF and DWARF may come from anybody (libdw reads them).
 *
 * One rule: never a wrong name. A file whose build id is not the recorded one gives none. Nothing
 * is asked of the network by itself: who may is given as `fetch`. Nothing is written by itself:
 * what was found is handed to `keep`, and read again from `cache_folder`
 * (tools/analyzer/symbols/cache.h). */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_SYMBOLIZER_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_SYMBOLIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/symbols/search.h"

/* One function at an address. Strings live as long as the symbolizer, are never NULL. */
struct ml_symbol {
    const char *function; /* as a person writes it, without a compiler's suffixes; "" unknown.
                           * " [merged]" behind it: functions of other names are the same code */
    const char *linkage;  /* as the linker knows it */
    const char *file;     /* "" unknown */
    uint32_t line;        /* 0 unknown */
    bool inlined;
};

/* Functions inlined into one another at one address; deeper ones are left out. */
enum { ML_SYMBOL_INLINES_MAX = 64 };

struct ml_symbolizer;
struct ml_symbol_file;

struct ml_symbolizer_options {
    struct ml_symbol_search_options search;
    /* The path of a debug file with that build id from elsewhere; NULL: nowhere. */
    bool (*fetch)(const char *build_id_hex, char *out_path, unsigned long path_bytes);
    /* Where names are kept, and who keeps them; NULL: nowhere, nobody. */
    const char *cache_folder;
    bool (*keep)(const char *build_id_hex, const void *bytes, size_t count_bytes);
};

/* `options` NULL: the defaults. The texts of the options must live as long. NULL when there is no
 * memory. */
struct ml_symbolizer *ml_symbolizer_new(const struct ml_symbolizer_options *options);
void ml_symbolizer_free(struct ml_symbolizer *take_symbolizer);

/* Open a module's file and what debug files belong to it; with names in the cache not before one is
 * asked for that is not there. Without a file, or with another build id, *out_trouble says why
 * (static text) and nothing more will be found; NULL otherwise. NULL only without memory. Owner:
 * the symbolizer's, until the next open: one file at a time is held. `wanted`'s texts and
 * *out_trouble must live until then. */
struct ml_symbol_file *ml_symbolizer_open(
    struct ml_symbolizer *symbolizer,
    const struct ml_symbol_wanted *wanted,
    const char **out_trouble
);

/* Where the open file's code lies: its first executable segment, ELF address and place in the file.
 * False: not known. */
struct ml_text_segment {
    uint64_t address, offset, size_bytes;
};
bool ml_symbol_file_text(struct ml_symbol_file *file, struct ml_text_segment *out_segment);

/* Functions at an ELF address, innermost inlined one first, the function itself last; at most
 * ML_SYMBOL_INLINES_MAX. 0: nothing known. */
size_t ml_symbol_file_find(
    struct ml_symbol_file *file,
    uint64_t address,
    struct ml_symbol out_symbols[ML_SYMBOL_INLINES_MAX]
);

/* A copy of a text that lives as long as the symbolizer. "" without memory. */
const char *ml_symbolizer_keep(struct ml_symbolizer *symbolizer, const char *text);

/* The function of code that a runtime made in that process (tools/analyzer/symbols/perf_map.h),
 * which began at `since_ns` (time of day). Ask for one process after another: one map at a time is
 * held. False: not known. */
bool ml_symbolizer_generated(
    struct ml_symbolizer *symbolizer,
    uint32_t pid,
    uint64_t since_ns,
    uint64_t address,
    struct ml_symbol *out_symbol
);

#endif
