/* Which name the code at an address had: what a run-time told of its code, laid over the addresses
 * that are asked for. Room: service. Context: one thread; what is told may be anything.
 *
 * One rule: what was told last wins, of what was told up to the moment that is asked for. Telling
 * costs the logarithm of the addresses, whatever the range, and only what covers one is kept. */
#ifndef MEMLOG_SERVICE_GENERATED_CODE_INDEX_H
#define MEMLOG_SERVICE_GENERATED_CODE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "service/limits/budget.h"

enum {
    ML_CODE_LINES_MAX = 1 << 20 /* that cover an address: a megabyte of JavaScript has some 1000 */
};

/* An address whose name is asked for. */
struct ml_code_target {
    uint64_t address;
    uint64_t time; /* in the file's clock; UINT64_MAX: the last name */
    uint32_t node;
    uint32_t line; /* 1 + index of what covers it; 0: nothing */
};

/* Code that was told of. */
struct ml_code_line {
    uint64_t name_at;    /* where the name stands in the file */
    uint32_t name_bytes; /* 0: it has none */
    uint32_t found;      /* for the caller: 1 + index of the name among those that were found */
};

struct ml_code_index {
    struct ml_budget *budget;
    struct ml_code_target *targets; /* by address, once sorted */
    uint32_t *by_time;              /* indices of targets */
    uint32_t *cover;                /* a tree over the targets: 1 + index of the last line */
    struct ml_code_line *lines;
    uint32_t targets_count, settled_count;
    uint32_t lines_count, lines_capacity;
};

/* Room for so many targets, for the caller to fill. Errors: ML_ENV_MEMORY; _fini is allowed. */
ML_NODISCARD enum ml_status
ml_code_index_init(struct ml_code_index *index, struct ml_budget *budget, uint32_t targets_count);
void ml_code_index_fini(struct ml_code_index *index);

/* The targets are filled in. */
void ml_code_index_sort(struct ml_code_index *index);

/* Code [start, end) is told of, in the order of times. Errors: ML_ENV_MEMORY; ML_PEER_LIMIT. */
ML_NODISCARD enum ml_status ml_code_index_add(
    struct ml_code_index *index,
    uint64_t start,
    uint64_t end,
    uint64_t time,
    const struct ml_code_line *line
);

/* Nothing more is told: each target gets its line. */
void ml_code_index_settle(struct ml_code_index *index);

#endif
