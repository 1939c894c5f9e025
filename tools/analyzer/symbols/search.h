/* Finds files with a module's names. Room: tools. Context: one thread.
 *
 * One rule: a path is a proposal. Whoever opens it compares build ids, so a wrong folder costs time
 * and never gives a wrong name.
 *
 * The order:
 * 1. --alternative-dirs
 * 2. the folders of MEMLOG_BINARY_PATH (or PERFETTO_BINARY_PATH), in the five steps of Perfetto's
 *    symbolizer, or by an index of their build ids (MEMLOG_SYMBOLIZER_MODE=index, or
 *    PERFETTO_SYMBOLIZER_MODE)
 * 3. the recorded path
 * 4. the process, if it still runs: its files may be deleted, replaced or in another mount
 * namespace
 * 5. ROOT/.build-id, then debuginfod's cache */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_SEARCH_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/analyzer/symbols/lack.h"

/* What is looked for. */
struct ml_symbol_wanted {
    const char *path; /* as recorded; a bare name is searched in PATH */
    const uint8_t *build_id;
    size_t build_id_bytes;
    uint32_t pid;        /* of a process that has it; 0: not known */
    bool has_ended;      /* that process; another one may have its number by now */
    uint64_t start, end; /* its mapping there */
    uint64_t base;       /* ELF address of its first byte in memory; Breakpad counts from there */
};

/* Ways to a file through a process that has it: the mapping, the path below the process's root, the
 * path below its current folder, its program, one of its descriptors. Behind them the roots that
 * the host has kept. */
enum ml_process_way {
    ML_PROCESS_MAPPED,
    ML_PROCESS_ROOT,
    ML_PROCESS_FOLDER,
    ML_PROCESS_PROGRAM,
    ML_PROCESS_DESCRIPTOR,
    ML_PROCESS_WAYS
};

/* A file that a process has. */
struct ml_process_wanted {
    const char *path;
    uint32_t pid;
    uint64_t start, end; /* its mapping there */
    uint32_t way;        /* enum ml_process_way; from ML_PROCESS_WAYS on a kept root */
    bool is_debug;       /* a debug file, beside the file that is open */
};

struct ml_symbol_search_options {
    const char *binary_path;      /* folders, separated by ':'; NULL: none */
    bool is_index;                /* index the build ids of the folders' files */
    const char *alternative_dirs; /* DEVICE@HOST[:...]; NULL: none */
    const char
        *breakpad_dirs;     /* folders of Breakpad's symbol files, separated by ':'; NULL: none */
    const char *debug_root; /* NULL: /usr/lib/debug */
    const char *debuginfod_cache; /* NULL: none */
    /* Gets the path of a file of a process (tools/analyzer/helpers/process_files.h); NULL: nobody
     * does. *out_lack is written where there is none. */
    bool (*process_file
    )(const struct ml_process_wanted *wanted,
      char *out_path,
      unsigned long path_bytes,
      struct ml_lack *out_lack);
    size_t kept_roots;    /* that it knows */
    bool is_process_only; /* what is not found so is left to those who read the dump */
};

/* The options that the environment sets. Their texts are the environment's; the cache's path is in
 * `out_cache`. */
enum { ML_SYMBOL_CACHE_BYTES = 4096 };
void ml_symbol_search_environment(
    struct ml_symbol_search_options *out_options, char out_cache[ML_SYMBOL_CACHE_BYTES]
);

/* Open a text file of symbols. NULL: it is no regular file, or cannot be read. Anybody may create
 * files in /tmp, and opening a FIFO there would block. Owner: the caller, for fclose. */
FILE *ml_symbol_text_open(const char *path);

struct ml_symbol_search;

/* The texts of `options` must live as long. NULL without memory. */
struct ml_symbol_search *ml_symbol_search_new(const struct ml_symbol_search_options *options);
void ml_symbol_search_free(struct ml_symbol_search *take_search);

/* Try a proposed path. True: it is taken, and the search ends. `is_module`: it is the module
 * itself, not only its debug file. */
typedef bool ml_symbol_try(void *context, const char *path, bool is_module);

/* Propose regular files. True: one was taken. *out_lack: why not. */
bool ml_symbol_search(
    struct ml_symbol_search *search,
    const struct ml_symbol_wanted *wanted,
    ml_symbol_try *try,
    void *context,
    struct ml_lack *out_lack
);

/* The same for debug files, by build id alone. */
bool ml_symbol_search_debug(
    struct ml_symbol_search *search,
    const struct ml_symbol_wanted *wanted,
    ml_symbol_try *try,
    void *context
);

/* The same below the roots of processes that have the file: by build id, and by the name that the
 * file gives; NULL: it gives none. */
bool ml_symbol_search_process_debug(
    struct ml_symbol_search *search,
    const struct ml_symbol_wanted *wanted,
    const char *debug_link,
    ml_symbol_try *try,
    void *context
);

/* The same for Breakpad's symbol files: DIR/NAME/ID/NAME.sym as on its servers; DIR/NAME.sym,
 * DIR/NAME.breakpad and DIR/NAME.breakpad.x64 as in Chromium's tools. */
bool ml_symbol_search_breakpad(
    struct ml_symbol_search *search,
    const struct ml_symbol_wanted *wanted,
    ml_symbol_try *try,
    void *context
);

/* A number for everything beside the build id that a search depends on: its files and folders, and
 * when they changed. 0: that is not known, and the next search may find another file. */
uint64_t ml_symbol_search_state(
    const struct ml_symbol_search *search, const struct ml_symbol_wanted *wanted
);

/* The build id in hex; the stream's limit is 64 bytes. False: no file can be found by it. */
enum { ML_BUILD_ID_HEX_BYTES = 2 * 64 + 1 };
bool ml_build_id_hex(const struct ml_symbol_wanted *wanted, char out_hex[ML_BUILD_ID_HEX_BYTES]);

#endif
