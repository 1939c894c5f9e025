/* Reports that wait to be sent, on disk. Room: host. Context: the host's one thread; several hosts
 * of a user share one spool.
 *
 * One rule: what is in the spool was promised. It is sent under one id or given up with a message,
 * across restarts of host and machine. What does not fit is refused first. */
#ifndef MEMLOG_HOST_UPLOAD_SPOOL_H
#define MEMLOG_HOST_UPLOAD_SPOOL_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error_message.h"
#include "host/policy/upload_target.h"
#include "ipc/wire/ml_status.h"

enum {
    ML_SPOOL_ID_BYTES = 33, /* 32 hex digits and a NUL */
    ML_SPOOL_ITEMS_MAX = 64,
    ML_SPOOL_PARTS_MAX = 64, /* of an upload in parts */
    ML_SPOOL_ETAG_BYTES = 80,
    ML_SPOOL_NAME_BYTES = 64,
    ML_SPOOL_UPLOAD_ID_BYTES = 1024, /* a server's choice; Amazon's have about 130 */
};

/* Of all bodies together: a dozen reports of the largest size. */
#define ML_SPOOL_MAX_BYTES ((uint64_t)128 << 20)

/* What could not be written to the disk. */
struct ml_spool_hold {
    char id[ML_SPOOL_ID_BYTES];
    uint64_t until_ms; /* UINT64_MAX: it has ended, and could not be removed */
};

struct ml_spool {
    char folder[PATH_MAX];
    int lock_fd;
    struct ml_spool_hold holds[ML_SPOOL_ITEMS_MAX]; /* a ring */
    unsigned holds_count;                           /* ever */
};

/* What a server's 413 asks for. */
enum ml_spool_harder {
    ML_SPOOL_AS_IT_IS = 0,
    ML_SPOOL_HARDER_DONE = 1,   /* the body that lies there is the second one */
    ML_SPOOL_HARDER_WANTED = 2, /* it is to be pruned harder before it is sent again */
};

struct ml_spool_item {
    char id[ML_SPOOL_ID_BYTES];
    char target[ML_UPLOAD_URL_BYTES];  /* --upload's value: it goes there and nowhere else */
    char dump[PATH_MAX];               /* what it was made of; pruned harder from there */
    char program[ML_SPOOL_NAME_BYTES]; /* of the run that made it */
    uint64_t made_ms;                  /* when */
    unsigned tries;
    enum ml_spool_harder harder;
    uint64_t next_ms; /* not before this time of day */
    /* An upload in parts that has begun: S3's name of it (""), and what has arrived. */
    char upload_id[ML_SPOOL_UPLOAD_ID_BYTES];
    char etags[ML_SPOOL_PARTS_MAX][ML_SPOOL_ETAG_BYTES];
    unsigned parts;
};

/* `folder` NULL: $XDG_STATE_HOME/memlog/upload, or that below ~/.local/state. Made if it is
 * missing, for its user alone. Errors: ML_ENV_SYSTEM; ML_ENV_REFUSED for one that others may
 * write in; with an error message. */
ML_NODISCARD enum ml_status
ml_spool_open(struct ml_spool *spool, const char *folder, struct ml_error_message *error);

/* Throw away what hosts that died left beside the reports: bodies that were never promised,
 * untouched for an hour. */
void ml_spool_sweep(const struct ml_spool *spool, uint64_t now_s);

void ml_spool_close(struct ml_spool *spool);

/* "FOLDER/ID.body", what is sent, and "FOLDER/ID.cut", what the analyzer said. */
void ml_spool_body(const struct ml_spool *spool, const char *id, char out_path[PATH_MAX]);
void ml_spool_cut(const struct ml_spool *spool, const char *id, char out_path[PATH_MAX]);

/* A new id. False: no random numbers. */
bool ml_spool_new_id(char out_id[ML_SPOOL_ID_BYTES]);

/* Whether one more of that size fits. */
bool ml_spool_has_room(const struct ml_spool *spool, uint64_t bytes);

/* Promise it, or keep what has changed. The body lies there, and is on the disk before the promise
 * is. Errors: ML_ENV_SYSTEM; what stood there still does. */
ML_NODISCARD enum ml_status
ml_spool_keep(const struct ml_spool *spool, const struct ml_spool_item *item);
/* Where it cannot be removed, it is held for ever. */
void ml_spool_remove(struct ml_spool *spool, const char *id);

/* Not before then, whatever stands on the disk: for this process alone. */
void ml_spool_hold(struct ml_spool *spool, const char *id, uint64_t until_ms);

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
