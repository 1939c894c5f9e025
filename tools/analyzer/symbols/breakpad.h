/* Names from a Breakpad symbol file, the text that dump_syms writes: MODULE, FILE, FUNC, line
 * records, INLINE, PUBLIC. For programs whose ELF files with names are not there. Room: tools.
 * Context: one thread; hostile bytes.
 *
 * One rule: a file of another module gives no name. Its MODULE line must have the build id's debug
 * identifier. Its INFO CODE_ID, if there is one, must be the build id itself. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_BREAKPAD_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_BREAKPAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/model/memory.h"

struct ml_breakpad_line {
    uint64_t start, size_bytes;
    uint32_t number, file;
};

/* A range of code that was inlined from another function. */
struct ml_breakpad_inline {
    uint64_t start, size_bytes;
    uint32_t level, call_line, call_file, origin;
};

struct ml_breakpad_function {
    uint64_t start, size_bytes; /* size 0: a PUBLIC one, up to the next */
    const char *name;
    bool is_merged; /* functions of other names share the code */
    size_t first_line, lines_count;
    size_t first_inline, inlines_count;
};

/* A file's or an inlined function's name by the number that the file gives it. */
struct ml_breakpad_name {
    uint32_t number;
    const char *text;
};

struct ml_breakpad_names {
    struct ml_breakpad_name *items; /* sorted by number */
    size_t count, capacity;
};

struct ml_breakpad {
    struct ml_breakpad_function *functions; /* sorted by start */
    size_t functions_count, functions_capacity;
    struct ml_breakpad_line *lines;
    size_t lines_count, lines_capacity;
    struct ml_breakpad_inline *inlines;
    size_t inlines_count, inlines_capacity;
    struct ml_breakpad_names files, origins;
    struct ml_arena arena; /* the texts */
};

struct ml_breakpad_frame {
    const char *name; /* as the file has it */
    const char *file; /* "" unknown */
    uint32_t line;    /* 0 unknown */
    bool is_inlined, is_merged;
};

/* The debug identifier of a build id: 32 hex digits (the first 16 bytes as a GUID) and the age 0.
 * False: it is shorter than 16 bytes. */
enum { ML_BREAKPAD_ID_BYTES = 34 };
bool ml_breakpad_id(
    const uint8_t *build_id, size_t build_id_bytes, char out_id[ML_BREAKPAD_ID_BYTES]
);

/* Read a regular file; an empty `breakpad` is all zero. False: it is no symbol file of this module,
 * or there is no memory; then there is nothing to free. */
bool ml_breakpad_read(
    struct ml_breakpad *breakpad, const char *path, const uint8_t *build_id, size_t build_id_bytes
);
void ml_breakpad_fini(struct ml_breakpad *breakpad);

/* Up to `frames_max` functions at an address, the innermost inlined one first. The address counts
 * from the module's first one. 0: nothing is known. */
size_t ml_breakpad_find(
    const struct ml_breakpad *breakpad,
    uint64_t address,
    struct ml_breakpad_frame *out_frames,
    size_t frames_max
);

#endif
