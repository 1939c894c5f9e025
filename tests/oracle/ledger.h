/* What a test program knows of its own heap: the truth that `memlog report --json` is held against.
 * Room: tests. Context: any thread; ledger_alloc/_resize/_free and ledger_write from one thread at
 * a time.
 *
 * One rule: keeping the books never touches the heap: static tables, atomics and write(2) alone. */
#ifndef MEMLOG_TESTS_ORACLE_LEDGER_H
#define MEMLOG_TESTS_ORACLE_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Functions that stand in a call path keep their name, their frame and their callers. */
#define LEDGER_PATH __attribute__((noipa, visibility("default")))

/* One call path. Static, or otherwise alive to the end. Paths of equal chain are summed by the
 * checker. */
struct ledger_site {
    const char *chain; /* function names from the allocator's caller outwards: "leaf<branch<main" */
    struct ledger_site *next; /* the list of all sites; set once */
    _Atomic bool listed;
    _Atomic uint64_t total_bytes, total_blocks, freed_bytes, freed_blocks;
    uint64_t peak_bytes, peak_blocks; /* share at the ledger's peak */
};

enum {
    LEDGER_EXACT =
        1, /* the program makes every allocation of its process: totals are compared too */
    LEDGER_PEAK = 2,    /* peaks are known */
    LEDGER_PARTIAL = 4, /* written before the end: only the sites of this file are compared */
    LEDGER_FORKED = 8   /* inherited bytes are known */
};

/* Counters alone, for threads. */
void ledger_add(struct ledger_site *site, size_t size_bytes);
void ledger_sub(struct ledger_site *site, size_t size_bytes);

/* Take this moment as the peak. */
void ledger_mark_peak(void);

/* With the block's address remembered and the peak followed: one thread only. NULL is no block. */
void *ledger_alloc(struct ledger_site *site, void *address, size_t size_bytes);
void ledger_free(void *address);

/* A realloc that succeeded: `old` (NULL: none) became the block at `address`. */
void *ledger_resize(struct ledger_site *site, void *old, void *address, size_t size_bytes);

/* Size of a remembered block. */
size_t ledger_size(void *address);

/* In a child: own counts begin at zero, what lives is inherited. */
void ledger_forked(void);

/* A loaded library's file name: its functions are the program's own, too. The string must stay. */
void ledger_module(const char *name);

/* Write $ORACLE_DIR/PID-LABEL.json, whole or not at all. */
void ledger_write(const char *label, unsigned flags, int argc, char *const argv[]);

/* Print to stderr and end with code 99. */
void ledger_die(const char *what) __attribute__((noreturn));

#endif
