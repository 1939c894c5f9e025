/* Which inserts are on their way, and the weeks whose sums are made: what a collector must know
 * that was killed in the middle. A SQLite file in its spool. Room: host. Context: one thread each.
 *
 * One rule: an insert's line is on the disk before its first byte is sent, and goes when the server
 * has it for sure. So whoever comes next asks the server about the lines that it finds. */
#ifndef MEMLOG_HOST_COLLECT_CLICKHOUSE_BATCHES_H
#define MEMLOG_HOST_COLLECT_CLICKHOUSE_BATCHES_H

#include "base/error_message.h"
#include "host/collect/clickhouse/node.h"
#include "host/collect/db.h"

/* Reports that go to one node and one partition together: an insert of their samples, then one of
 * their dumps. */
struct ml_click_batch {
    uint64_t number; /* of this collector's alone */
    char url[ML_CLICK_URL_BYTES];
    int64_t kept; /* the partition */
    uint64_t samples, dumps;
    bool samples_are_there;
    void *body; /* of the dumps: they can be sent without reading the reports again */
    size_t body_bytes;
};

struct ml_click_batches {
    struct ml_db db;
    int64_t owner; /* the collector's number: a database is filled by one */
};

/* Errors: ML_ENV_SYSTEM, with an error message. Owner: ml_click_batches_close. */
ML_NODISCARD enum ml_status ml_click_batches_open(
    struct ml_click_batches *batches, const char *path, struct ml_error_message *error
);
void ml_click_batches_close(struct ml_click_batches *batches);

/* The number of the next one, whose rows have it. */
uint64_t ml_click_batches_next(const struct ml_click_batches *batches);

/* A line for it. Its week's sums count as not made any more. Errors: ML_ENV_SYSTEM. */
ML_NODISCARD enum ml_status
ml_click_batches_add(const struct ml_click_batches *batches, const struct ml_click_batch *batch);

/* The samples are there. */
ML_NODISCARD enum ml_status
ml_click_batches_samples_there(const struct ml_click_batches *batches, uint64_t number);

/* All of it is there, or nothing. */
ML_NODISCARD enum ml_status
ml_click_batches_end(const struct ml_click_batches *batches, uint64_t number);

/* The first one on its way. False: there is none. Owner of its body: free. */
bool ml_click_batches_first(
    const struct ml_click_batches *batches, struct ml_click_batch *out_batch
);

/* ---- what nothing has any more */

/* Reports have gone: their stacks may be nobody's. */
ML_NODISCARD enum ml_status ml_click_batches_sweep_is_due(const struct ml_click_batches *batches);

/* Whether some have gone since the last sweep, and that was before. */
bool ml_click_batches_is_sweep_due(const struct ml_click_batches *batches, int64_t before_s);
ML_NODISCARD enum ml_status
ml_click_batches_swept(const struct ml_click_batches *batches, int64_t now_s);

/* ---- weeks whose sums are made */

enum { ML_CLICK_WEEKS_MAX = 8192 };

ML_NODISCARD enum ml_status
ml_click_weeks_put(const struct ml_click_batches *batches, int64_t kept);
ML_NODISCARD enum ml_status
ml_click_weeks_remove(const struct ml_click_batches *batches, int64_t kept);

/* How many. */
size_t
ml_click_weeks(const struct ml_click_batches *batches, int64_t out_weeks[ML_CLICK_WEEKS_MAX]);

#endif
