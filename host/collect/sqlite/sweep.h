/* Takes stacks, frames and words out of the embedded store that no dump has any more. Room: host
 * (private). Context: the store's thread.
 *
 * One rule: what is added meanwhile stays. Stacks of removed dumps are looked at one by one, and
 * each goes within a transaction in which nothing has it. Words are marked first, by all that has
 * them and by all that is added while that goes on; what has no mark then goes. */
#ifndef MEMLOG_HOST_COLLECT_SQLITE_SWEEP_H
#define MEMLOG_HOST_COLLECT_SQLITE_SWEEP_H

#include "base/error_message.h"
#include "host/collect/db.h"

enum { ML_SQLITE_SWEEP_STATEMENTS = 18 };

struct ml_sqlite_sweep {
    const struct ml_db *db;
    sqlite3_stmt *statements[ML_SQLITE_SWEEP_STATEMENTS];
    /* An id is not there any more: what remembers it forgets it. */
    void (*forget)(void *context, int64_t id);
    void *context;
    enum ml_sqlite_sweep_phase {
        ML_SQLITE_SWEEP_STACKS,
        ML_SQLITE_SWEEP_DUMPS,
        ML_SQLITE_SWEEP_FRAMES,
        ML_SQLITE_SWEEP_WORDS
    } phase;
    int64_t at; /* the id that was looked at last in this phase */
    /* A bit a word up to `marks_last`, the last one when marking began. NULL: not now. */
    uint8_t *marks;
    int64_t marks_last;
};

/* The store's schema is there. Errors: ML_ENV_SYSTEM, with an error message. Owner:
 * ml_sqlite_sweep_close, whatever it returned. */
ML_NODISCARD enum ml_status ml_sqlite_sweep_open(
    struct ml_sqlite_sweep *sweep, const struct ml_db *db, struct ml_error_message *error
);
void ml_sqlite_sweep_close(struct ml_sqlite_sweep *sweep);

/* A transaction was undone: what was found out in it counts no more. */
void ml_sqlite_sweep_undo(struct ml_sqlite_sweep *sweep);

/* What is added has that word. */
void ml_sqlite_sweep_mark(struct ml_sqlite_sweep *sweep, int64_t word);

/* A little of it, in a transaction of the caller's. `out_more`: there is more to do. False: the
 * database refuses. */
bool ml_sqlite_sweep_step(struct ml_sqlite_sweep *sweep, bool *out_more);

#endif
