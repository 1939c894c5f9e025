/* One sentence that says which processes' memory a tree's figures do not include. Room: base.
 * Context: any; no state.
 *
 * One rule: the report of a dump and the page of a run use the same words. The sentence names only
 * the processes that the caller added. */
#ifndef MEMLOG_BASE_UNCOVERED_H
#define MEMLOG_BASE_UNCOVERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the host writes in front of a file and its error, and the analyzer knows again: where a
 * heap's blocks are resident is estimated. It stands in dumps. */
#define ML_MEMORY_PAGES_UNREAD "resident pages not read"

/* All 0: nobody's. Texts are borrowed. */
struct ml_uncovered {
    const char *name, *unseen; /* of the recorded process with most private memory; NULL: none */
    size_t unseen_count;       /* bytes of that text */
    uint64_t unseen_bytes, unseen_processes;
    uint64_t more_processes, more_most_bytes;
    uint64_t unrecorded, unrecorded_most_bytes;
    const char *unrecorded_name, *reason; /* of the one with most private memory; NULL: none */
    uint64_t not_profiled;                /* programs without memlog */
    uint64_t missed;                      /* processes that ended before anybody saw them */
};

/* Whether a process without a profile may hide allocations. A fork that allocated nothing and has
 * little memory of its own does not. */
bool ml_uncovered_hides(bool is_idle, uint64_t private_bytes);

/* Add a recorded process, or the number that the entry stands for. The text names what is known to
 * be unrecorded; 0 bytes: nothing. */
void ml_uncovered_add_unseen(
    struct ml_uncovered *uncovered,
    const char *name,
    const char *unseen,
    size_t unseen_count,
    uint64_t private_bytes,
    uint64_t processes
);

/* Add a process without a profile, and why it has none, if it may hide allocations. */
void ml_uncovered_add_unrecorded(
    struct ml_uncovered *uncovered,
    const char *name,
    const char *reason,
    bool is_idle,
    uint64_t private_bytes,
    uint64_t processes
);

bool ml_uncovered_is_any(const struct ml_uncovered *uncovered);

/* The sentence; "" when no process was added. Returns out_text. */
enum { ML_UNCOVERED_BYTES = 640 };
const char *
ml_uncovered_words(const struct ml_uncovered *uncovered, char out_text[ML_UNCOVERED_BYTES]);

#endif
