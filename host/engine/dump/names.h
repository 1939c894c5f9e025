/* Names of the code that lies in other roots than the host's, or in files without a name: they may
 * be gone when a dump is read, so their names go into it, or the reason why there are none. Room:
 * host. Context: the loop's thread.
 *
 * One rule: the host reads neither dump nor file. memlog-analyzer does, in its sandbox, and what it
 * writes is put behind the dump as it is. A dump waits for it for a bounded time, and never becomes
 * worse by it. */
#ifndef MEMLOG_HOST_ENGINE_DUMP_NAMES_H
#define MEMLOG_HOST_ENGINE_DUMP_NAMES_H

#include <limits.h>

#include "host/analysis/analyzer.h"
#include "host/engine/state.h"

struct ml_dump_names {
    struct ml_analyzer *analyzer; /* NULL: it was never needed */
    char analyzer_path[PATH_MAX];
    int kept_fd; /* what was found for earlier dumps; -1: nothing */
    uint64_t kept_bytes;
    int dump_fd;                   /* the one at hand, borrowed */
    uint32_t unused[ML_ROOTS_MAX]; /* roots that had no process when it was written */
    void (*on_done)(struct ml_engine *engine);
};

void ml_dump_names_init(struct ml_engine *engine);
void ml_dump_names_fini(struct ml_engine *engine);

/* A dump is asked for: whatever process has ended until now is whole in it. */
void ml_dump_names_note(struct ml_engine *engine);

/* Put names behind a dump that the service has written. on_done is called once, perhaps before this
 * returns. */
void ml_dump_names_add(
    struct ml_engine *engine, int dump_fd, void (*on_done)(struct ml_engine *engine)
);

/* Put what is known already behind a snapshot. */
void ml_dump_names_add_known(struct ml_engine *engine, int file_fd);

#endif
