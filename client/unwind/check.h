/* Check mode (--unwind-check=N): compares stacks with libunwind's. Room: client. Context: opened at
 * the program's first stack, used inside the hook behind its reentrancy guard; off unless asked
 * for.
 *
 * One rule: this is the only file that knows libunwind, and nothing of it is linked: the library is
 * opened by name when the mode is on. It allocates, takes its own locks and the loader's, and needs
 * some 8 KiB of stack and 20 us a frame. Its cache is off, since with it libunwind deadlocks. */
#ifndef MEMLOG_CLIENT_UNWIND_CHECK_H
#define MEMLOG_CLIENT_UNWIND_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "client/unwind/unwind.h"
#include "ipc/wire/ml_status.h"

/* libunwind's functions, and what was found last. Set once before the hooks are live, read-only
 * afterwards. */
struct ml_unwind_checker {
    int (*get_context)(void *context);
    int (*init)(void *cursor, void *context);
    int (*step)(void *cursor);
    int (*get_register)(void *cursor, int reg, uintptr_t *out_value);
};

enum ml_unwind_verdict {
    ML_UNWIND_EQUAL,
    ML_UNWIND_DIFFERENT,
    ML_UNWIND_UNJUDGED /* libunwind gave up before the stack's end; as far as it went, all was equal
                        */
};

/* May the checker be opened now, on the stack just walked? Only where no frame of the loader is on
 * it: opening a library inside the loader breaks it. Before the program's own start it would run
 * libc's constructor too early, without arguments and environment. */
bool ml_unwind_checker_may_open(const struct ml_unwind_thread *thread);

/* Open libunwind.so.8.
 *
 * Errors: ML_ENV_MISSING when it is not installed or lacks a function. */
ML_NODISCARD enum ml_status ml_unwind_checker_open(struct ml_unwind_checker *out_checker);

/* Compare the stack that ml_unwind has just left in `thread` with libunwind's walk from here to the
 * same entry and on. Of a cut stack the inner part is compared. */
enum ml_unwind_verdict ml_unwind_checker_compare(
    const struct ml_unwind_checker *checker,
    const struct ml_unwind_thread *thread,
    const struct ml_unwind_entry *entry
);

#endif
