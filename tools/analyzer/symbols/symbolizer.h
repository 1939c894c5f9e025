/* Turns addresses of ELF files into functions, files and lines. Room: tools. Context: one thread;
 * libdw reads ELF and DWARF that may come from anybody.
 *
 * One rule: never a wrong name. A file with another build id than the recorded one gives none. The
 * symbolizer itself neither asks the network nor writes: that is for `fetch` and `keep`. Names that
 * were kept are read from `cache_folder` (tools/analyzer/symbols/cache.h). */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_SYMBOLIZER_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_SYMBOLIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/symbols/search.h"

/* One function at an address. Strings live as long as the symbolizer, are never NULL. */
struct ml_symbol {
    const char *function;   /* as people write it, without a compiler's suffixes; "" unknown.
                             * " [merged]" behind it: functions of other names share the code */
    const char *linkage;    /* the linker's name */
    const char *obfuscated; /* what `function` was called in the file; NULL: the same */
    const char *file;       /* "" unknown */
    uint32_t line;          /* 0 unknown */
    bool inlined;
};

/* More functions at one address are left out. */
enum { ML_SYMBOL_INLINES_MAX = 64 };

struct ml_symbolizer;
struct ml_symbol_file;

struct ml_symbolizer_options {
    struct ml_symbol_search_options search;
    /* Gets the path of a debug file with that build id; NULL: nobody does. */
    bool (*fetch)(const char *build_id_hex, char *out_path, unsigned long path_bytes);
    /* The folder of kept names, and what keeps them; NULL: none. */
    const char *cache_folder;
    bool (*keep)(const char *build_id_hex, const void *bytes, size_t count_bytes);
};

/* `options` NULL: the defaults. The texts of the options must live as long. NULL when there is no
 * memory. */
struct ml_symbolizer *ml_symbolizer_new(const struct ml_symbolizer_options *options);
void ml_symbolizer_free(struct ml_symbolizer *take_symbolizer);

/* Open a module's file and its debug files. With names in the cache they are opened when a name is
 * not there. Without a file of that build id, *out_trouble tells why (static text), and no address
 * will have a name; else it is NULL.
 *
 * Returns NULL only without memory. Owner: the symbolizer, until the next open: it holds one file
 * at a time. The texts of `wanted` and *out_trouble must live until then. */
struct ml_symbol_file *ml_symbolizer_open(
    struct ml_symbolizer *symbolizer,
    const struct ml_symbol_wanted *wanted,
    const char **out_trouble
);

/* Why no file of that build id was found; ML_LACK_NONE: one was, or kept names are enough so
 * far. */
struct ml_lack ml_symbol_file_lack(const struct ml_symbol_file *file);

/* ml_lack_text, for as long as the symbolizer lives. */
const char *ml_symbolizer_lack(struct ml_symbolizer *symbolizer, struct ml_lack lack);

/* The first executable segment of the open file: ELF address and offset in the file. False: not
 * known. */
struct ml_text_segment {
    uint64_t address, offset, size_bytes;
};
bool ml_symbol_file_text(struct ml_symbol_file *file, struct ml_text_segment *out_segment);

/* Functions at an ELF address, the innermost inlined one first. 0: nothing is known. */
size_t ml_symbol_file_find(
    struct ml_symbol_file *file,
    uint64_t address,
    struct ml_symbol out_symbols[ML_SYMBOL_INLINES_MAX]
);

/* The class of C++ objects whose first word is that ELF address (tools/analyzer/symbols/vtables.h).
 * "": of none. The text lives as long as the symbolizer. */
const char *ml_symbol_file_class(struct ml_symbol_file *file, uint64_t address);

/* The type of Python's objects that have that ELF address as their type's
 * (tools/analyzer/symbols/python_types.h), likewise. */
const char *ml_symbol_file_python_type(struct ml_symbol_file *file, uint64_t address);

/* A copy of a text that lives as long as the symbolizer. "" without memory. */
const char *ml_symbolizer_keep(struct ml_symbolizer *symbolizer, const char *text);
const char *
ml_symbolizer_keep_part(struct ml_symbolizer *symbolizer, const char *bytes, size_t count);

/* The function of generated code in a process (tools/analyzer/symbols/perf_map.h) that ran from
 * `since_ns` to `until_ns` (time of day). Ask for one process after another, as one map at a time
 * is held. False: not known. */
bool ml_symbolizer_generated(
    struct ml_symbolizer *symbolizer,
    uint32_t pid,
    uint64_t since_ns,
    uint64_t until_ns,
    uint64_t address,
    struct ml_symbol *out_symbol
);

#endif
