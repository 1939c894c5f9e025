/* What a test program knows of its own mappings: the truth that a dump's owners are held against.
 * Room: tests. Context: one thread at a time.
 *
 * One rule: keeping the books maps nothing and touches no heap: static tables and write(2) alone.
 *
 * A claim is about the pages of one range. Claims of one process do not overlap. */
#ifndef MEMLOG_TESTS_ORACLE_MAPS_CLAIMS_H
#define MEMLOG_TESTS_ORACLE_MAPS_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Functions that stand in a call path keep their name, their frame and their callers. */
#define MAPS_PATH __attribute__((noipa))

enum { MAPS_PAGE = 4096, MAPS_HUGE = 2 << 20 };

/* A figure that only the kernel knows: the test takes it from pagemap. */
enum { CLAIM_KERNEL = -1 };

struct claim {
    const char *kind; /* who owns it: "mapped" by a stack, "stack", "unhooked", "file", ... */
    /* The first function names from the caller of mmap outwards, "leaf<branch"; of a stack: its
     * start routine. NULL: nothing is said of it. */
    const char *chain;
    const char *name; /* by prctl; NULL: none */
    const void *start;
    size_t mapped_bytes;
    long private_bytes, shared_bytes; /* resident */
};

void claim(struct claim made);

/* Anonymous memory by a stack, in pages, of which so many are touched. */
void claim_pages(const char *chain, const char *start, size_t pages, size_t touched_pages);

/* Write `bytes` from there, one byte a page. */
void touch(void *start, size_t bytes);

/* Write $ORACLE_DIR/PID-maps.json, whole or not at all. */
void claims_write(void);

/* In a child that claims for itself: forget the parent's. */
void claims_forget(void);

/* A child that writes its claims, says so to its parent, and stands still until the parent ends. */
void claims_of_child(void);

/* Fork, once. */
pid_t claims_fork(void);

/* In the parent: until the child has called claims_of_child(). */
void claims_wait(void);

/* Print to stderr and end with code 99. */
void claims_die(const char *what) __attribute__((noreturn));

/* mmap that must succeed; a frame of its own. Anonymous and private, to read and write. */
MAPS_PATH char *map_pages(size_t count);

/* The cases, by name; false: it is of another file. Each leaves its mappings standing. */
bool anonymous_case(const char *name);
bool remaps_case(const char *name);
bool files_case(const char *name);
bool sharing_case(const char *name);
bool advice_case(const char *name);
bool stacks_case(const char *name);
bool odd_case(const char *name);
bool random_case(const char *name);

/* A row of a file's own table of cases. */
struct maps_case {
    const char *name;
    void (*run)(void);
};

/* Run the row of that name, if there is one. */
bool maps_run(const struct maps_case *cases, size_t count, const char *name);

#endif
