/* Gives nodes of generated code their names. Room: service. Context: the session's thread.
 *
 * One rule: never a wrong name where the file can tell. A jitdump has times, so a node gets the
 * name that the code had at the node's first event. A perf map has none: a node gets the last name
 * that was written before the first reading that finds one. */
#ifndef MEMLOG_SERVICE_GENERATED_NAMING_H
#define MEMLOG_SERVICE_GENERATED_NAMING_H

#include <stdbool.h>
#include <stdint.h>

#include "service/generated/code_file.h"
#include "service/heap/stack_store.h"

enum ml_code_kind { ML_CODE_PERF_MAP, ML_CODE_JIT_DUMP, ML_CODE_KINDS };

/* Two moments, by which the stream's ticks become CLOCK_MONOTONIC. */
struct ml_naming_clock {
    uint64_t start_ticks, start_ns;
    uint64_t now_ticks, now_ns;
    bool ticks_are_ns; /* the stream's clock is CLOCK_MONOTONIC itself */
};

/* Find names of the store's unnamed nodes in the file. Definitions may come during a pause.
 *
 * Errors: ML_ENV_MEMORY, ML_PEER_*: what was found until then stays. */
ML_NODISCARD enum ml_status ml_naming_read(
    struct ml_stack_store *store,
    int fd,
    enum ml_code_kind kind,
    const struct ml_naming_clock *clock,
    const struct ml_code_pause *pause
);

#endif
