/* Reads what run-times write of the code that they make: perf maps and jitdumps. Room: service.
 * Context: one thread; hostile bytes, in a file that may grow, shrink or change meanwhile.
 *
 * One rule: the file is copied piece by piece, never mapped, and read no further than its length at
 * the beginning. A name that cannot be read is none. */
#ifndef MEMLOG_SERVICE_GENERATED_CODE_FILE_H
#define MEMLOG_SERVICE_GENERATED_CODE_FILE_H

#include <stdint.h>

#include "service/generated/code_index.h"

enum {
    ML_CODE_NAME_MAX_BYTES = 1000,     /* longer names are cut; a stream's string has 1024 */
    ML_CODE_RECORDS_MAX = 4 << 20,     /* of a jitdump */
    ML_PERF_MAP_MAX_BYTES = 256 << 20, /* node writes some 10 MB in a long run */
    ML_CODE_BLOCK_BYTES = 64 << 10     /* read between two pauses */
};

/* Called often while a file is read, so that other work is not kept waiting; NULL: nothing. */
struct ml_code_pause {
    void (*take)(void *context);
    void *context;
};

/* A perf map: lines "START SIZE NAME", hexadecimal numbers, of code that was there when the line
 * was written. It has no times: of several lines that cover an address the last one counts. What is
 * no such line is passed over, as is one that is not written to its end.
 *
 * Errors: ML_PEER_LIMIT the file is longer than ML_PERF_MAP_MAX_BYTES, or too many lines cover an
 * address; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_perf_map_read(int fd, struct ml_code_index *index, const struct ml_code_pause *pause);

/* How the times of a jitdump are told. */
enum ml_jit_clock {
    ML_JIT_MONOTONIC, /* CLOCK_MONOTONIC, ns */
    ML_JIT_TICKS      /* the processor's own counter */
};

/* The header of a jitdump. Errors: ML_PEER_UNKNOWN it is none, or of another machine. */
ML_NODISCARD enum ml_status ml_jit_dump_clock(int fd, enum ml_jit_clock *out_clock);

/* A jitdump: records with times. Of code that was moved the name is not known at its new place.
 * Reading ends at the first record that is not whole. Errors: as ml_perf_map_read. */
ML_NODISCARD enum ml_status
ml_jit_dump_read(int fd, struct ml_code_index *index, const struct ml_code_pause *pause);

/* Copy a name; returns its length, 0: it cannot be read. */
uint32_t
ml_code_name_read(int fd, const struct ml_code_line *line, char out_name[ML_CODE_NAME_MAX_BYTES]);

#endif
