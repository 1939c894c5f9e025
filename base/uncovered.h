/* Whose memory a tree's figures do not hold, in one sentence. Room: base. Context: any; no state.
 *
 * One rule: the report of a dump and the page of a run say it in the same words; whoever adds knows
 * the processes, and nothing is said of what was not added. */
#ifndef MEMLOG_BASE_UNCOVERED_H
#define MEMLOG_BASE_UNCOVERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All 0: nobody's. Texts are borrowed. */
struct ml_uncovered {
    const char *name, *unseen; /* of the recorded process with most private memory; NULL: none */
    size_t unseen_count;       /* bytes of that text */
    uint64_t unseen_bytes, unseen_processes;
    uint64_t more_processes, more_most_bytes;
    uint64_t unrecorded, unrecorded_most_bytes;
    uint64_t not_profiled; /* programs without memlog */
    uint64_t missed;       /* processes that ended before anybody saw them */
};

/* Whether a process without a profile may hide something: forks that allocated nothing do not, as
 * long as they have little memory of their own. */
bool ml_uncovered_hides(bool is_idle, uint64_t private_bytes);

/* A recorded process of which that text is known to go unseen (of 0 bytes: nothing), or as many as
 * the entry stands for. */
void ml_uncovered_add_unseen(
    struct ml_uncovered *uncovered,
    const char *name,
    const char *unseen,
    size_t unseen_count,
    uint64_t private_bytes,
    uint64_t processes
);

/* A process without a profile, if it may hide something. */
void ml_uncovered_add_unrecorded(
    struct ml_uncovered *uncovered, bool is_idle, uint64_t private_bytes, uint64_t processes
);

bool ml_uncovered_is_any(const struct ml_uncovered *uncovered);

/* The sentence; "" when it is nobody. Answers out_text. */
enum { ML_UNCOVERED_BYTES = 640 };
const char *
ml_uncovered_words(const struct ml_uncovered *uncovered, char out_text[ML_UNCOVERED_BYTES]);

#endif
