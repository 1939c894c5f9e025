/* Reports that wait to be sent, on disk. Room: host. Context: the host's one thread; several hosts
 * of a user share one spool.
 *
 * One rule: what stands in the spool was promised: it is sent, or given up aloud, across restarts
 * of host and machine, under one id. What does not fit is refused before it is promised. */
#ifndef MEMLOG_HOST_SPOOL_H
#define MEMLOG_HOST_SPOOL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/complaint.h"
#include "host/upload_target.h"
#include "ipc/ml_status.h"

enum {
    ML_SPOOL_ID_BYTES = 33, /* 32 hex digits and a NUL */
    ML_SPOOL_ITEMS_MAX = 64,
};

/* Of all bodies together: a dozen reports of the largest size. */
#define ML_SPOOL_MAX_BYTES ((uint64_t)128 << 20)

struct ml_spool {
    char folder[PATH_MAX];
    int lock_fd;
};

struct ml_spool_item {
    char id[ML_SPOOL_ID_BYTES];
    char target[ML_UPLOAD_URL_BYTES]; /* --upload's value: it goes there and nowhere else */
    char dump[PATH_MAX];              /* what it was made of; pruned harder from there */
    unsigned tries;
    bool harder;      /* was pruned harder */
    uint64_t next_ms; /* not before this time of day */
};

/* `folder` NULL: $XDG_STATE_HOME/memlog/upload, or that below ~/.local/state. Made if it is
 * missing, for its user alone. Errors: ML_ENV_SYSTEM with a complaint. */
ML_NODISCARD enum ml_status
ml_spool_open(struct ml_spool *spool, const char *folder, struct ml_complaint *complaint);
void ml_spool_close(struct ml_spool *spool);

/* "FOLDER/ID.body", what is sent, and "FOLDER/ID.cut", what the analyzer said. */
void ml_spool_body(const struct ml_spool *spool, const char *id, char out_path[PATH_MAX]);
void ml_spool_cut(const struct ml_spool *spool, const char *id, char out_path[PATH_MAX]);

/* A new id. False: no random numbers. */
bool ml_spool_new_id(char out_id[ML_SPOOL_ID_BYTES]);

/* Whether one more of that size fits. */
bool ml_spool_has_room(const struct ml_spool *spool, uint64_t bytes);

/* Promise it, or keep what has changed. The body lies there. Errors: ML_ENV_SYSTEM. */
ML_NODISCARD enum ml_status
ml_spool_keep(const struct ml_spool *spool, const struct ml_spool_item *item);
void ml_spool_remove(const struct ml_spool *spool, const char *id);

/* The item for that target that is due first; false: there is none. *out_count: how many there are.
 */
bool ml_spool_next(
    const struct ml_spool *spool,
    const char *target,
    struct ml_spool_item *out_item,
    unsigned *out_count
);

/* One upload at a time of all hosts of a user: false if another one is at it. */
bool ml_spool_lock(struct ml_spool *spool);
void ml_spool_unlock(struct ml_spool *spool);

#endif
