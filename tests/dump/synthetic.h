/* Made-up snapshots for tests of what reads and writes dumps. Room: tests.
 *
 * One rule: the same arguments give the same snapshot, and its sums are true: the totals of a
 * process are those of its cells of malloc's heap, and those of the tree are those of its
 * processes. */
#ifndef MEMLOG_TESTS_DUMP_SYNTHETIC_H
#define MEMLOG_TESTS_DUMP_SYNTHETIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "service/snapshot/snapshot.h"
#include "tools/analyzer/model/memory.h"

struct synthetic_options {
    uint32_t processes_count;
    uint32_t nodes_count;    /* of each process */
    uint32_t cells_count;    /* of each process */
    bool has_heaps;          /* each process has a heap and a type of its own, too */
    const char *module_path; /* of every process's main program; NULL: a name that does not exist */
    const uint8_t *build_id;
    size_t build_id_bytes;
    const uint64_t *offsets; /* ELF addresses that frames lie at; NULL: made up */
    size_t offsets_count;
};

/* A snapshot in the arena; never given to ml_snapshot_free. */
struct ml_snapshot *
synthetic_snapshot(struct ml_arena *arena, const struct synthetic_options *options);

/* The same, written by the dump writer into a new temporary file, at its beginning. */
FILE *synthetic_dump(const struct ml_snapshot *snapshot);

/* A text in the arena. */
struct ml_string synthetic_text(struct ml_arena *arena, const char *text);

#endif
