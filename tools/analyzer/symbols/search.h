/* Where the file with a module's names may be. Room: tools. Context: one thread.
 *
 * One rule: a place is a proposal. Whoever opens it compares build ids; so a wrong folder costs
 * time, never a wrong name.
 *
 * The order: --alternative-dirs; the folders of MEMLOG_BINARY_PATH (or PERFETTO_BINARY_PATH), each
 * in five steps as Perfetto's symbolizer has them, or by an index of every build id below them
 * (MEMLOG_SYMBOLIZER_MODE=index, or PERFETTO_SYMBOLIZER_MODE); the recorded path; the process, if
 * it still runs, whose files may be deleted, replaced or in another mount namespace;
 * ROOT/.build-id; what debuginfod has in its cache. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_SEARCH_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What is looked for. */
struct ml_symbol_wanted {
    const char *path; /* as recorded; a bare name: a program of PATH */
    const uint8_t *build_id;
    size_t build_id_bytes;
    uint32_t pid;        /* of a process that had it; 0: not known */
    uint64_t start, end; /* where that process has it mapped */
    uint64_t base;       /* ELF address of its first byte in memory; Breakpad counts from there */
};

/* Ways to a file through a process that has it: its mapping itself; by its name below the process's
 * root or its current folder; the program. */
enum ml_process_way {
    ML_PROCESS_MAPPED,
    ML_PROCESS_ROOT,
    ML_PROCESS_FOLDER,
    ML_PROCESS_PROGRAM,
    ML_PROCESS_WAYS
};

struct ml_symbol_search_options {
    const char *binary_path;      /* folders, parted by ':'; NULL: none */
    bool is_index;                /* look the folders' files through for build ids */
    const char *alternative_dirs; /* DEVICE@HOST[:...]; NULL: none */
    const char *breakpad_dirs; /* folders of Breakpad's symbol files, parted by ':'; NULL: none */
    const char *debug_root;    /* NULL: /usr/lib/debug */
    const char *debuginfod_cache; /* NULL: none */
    /* The path of a file that a running process has, tools/analyzer/helpers/process_files.h; NULL:
     * nobody looks. */
    bool (*process_file
    )(const struct ml_symbol_wanted *wanted,
      enum ml_process_way way,
      char *out_path,
      unsigned long path_bytes);
};

/* The options that the environment gives. Their texts are the environment's; that of the cache is
 * in `out_cache`. */
enum { ML_SYMBOL_CACHE_BYTES = 4096 };
void ml_symbol_search_environment(
    struct ml_symbol_search_options *out_options, char out_cache[ML_SYMBOL_CACHE_BYTES]
);

/* A file of symbols as text. Anybody may make files in /tmp, and a FIFO there would keep who opens
 * it waiting. NULL: no regular file, or it cannot be read. Owner: fclose. */
FILE *ml_symbol_text_open(const char *path);

struct ml_symbol_search;

/* The texts of `options` must live as long. NULL without memory. */
struct ml_symbol_search *ml_symbol_search_new(const struct ml_symbol_search_options *options);
void ml_symbol_search_free(struct ml_symbol_search *take_search);

/* A proposal: true when it was taken, which ends the search. `is_module`: the module itself, not
 * its debug file alone. */
typedef bool ml_symbol_try(void *context, const char *path, bool is_module);

/* Propose files, regular ones alone. True: one was taken. *out_seen: there was one at least at the
 * recorded path. */
bool ml_symbol_search(
    struct ml_symbol_search *search,
    const struct ml_symbol_wanted *wanted,
    ml_symbol_try *try,
    void *context,
    bool *out_seen
);

/* The same, of debug files by build id alone. */
bool ml_symbol_search_debug(
    struct ml_symbol_search *search,
    const struct ml_symbol_wanted *wanted,
    ml_symbol_try *try,
    void *context
);

/* The same, of Breakpad's symbol files: DIR/NAME/ID/NAME.sym as its servers have them,
 * DIR/NAME.sym, DIR/NAME.breakpad and DIR/NAME.breakpad.x64 as Chromium's tools do. */
bool ml_symbol_search_breakpad(
    struct ml_symbol_search *search,
    const struct ml_symbol_wanted *wanted,
    ml_symbol_try *try,
    void *context
);

/* What the answer of a search depends on beside the build id, as a number: files and folders that
 * it looks at, and when they changed. 0: that cannot be told, it may be another one next time. */
uint64_t ml_symbol_search_state(
    const struct ml_symbol_search *search, const struct ml_symbol_wanted *wanted
);

/* The build id in hex; the stream's limit is 64 bytes. False: there is none that a file can be
 * found by. */
enum { ML_BUILD_ID_HEX_BYTES = 2 * 64 + 1 };
bool ml_build_id_hex(const struct ml_symbol_wanted *wanted, char out_hex[ML_BUILD_ID_HEX_BYTES]);

#endif
