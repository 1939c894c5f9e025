/* A process that holds others while their memory is read. Room: host. Context: started on the
 * loop's thread; the rest on the reader's.
 *
 * One rule: it is a process of its own. A tracer in the host would see its stopped tracees among
 * the host's children. When it ends in whatever way, or the host does, the kernel lets go of
 * whomever it holds. */
#ifndef MEMLOG_HOST_ENGINE_VIEWS_HOLDER_H
#define MEMLOG_HOST_ENGINE_VIEWS_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/memory/hold.h"
#include "host/process/launcher.h"

/* Nobody is held for longer. Most are read within 20 ms; a process with 30,000 mappings takes
 * 600. */
enum { ML_HOLD_MOST_MS = 1000 };

struct ml_holder {
    int fd; /* -1: there is none */
    uint32_t serial;
};

/* Start it. Returns its pid, for the list of memlog's own; -1: it could not be started. */
pid_t ml_holder_open(struct ml_holder *holder, const struct ml_inherited *inherited);
void ml_holder_close(struct ml_holder *holder);

/* Hold a process. False: `out_why` says why not, else "". */
bool ml_holder_hold(struct ml_holder *holder, pid_t pid, char out_why[ML_HOLD_WHY_BYTES]);

/* Whether it is held still; not, if that took too long. */
bool ml_holder_holds(struct ml_holder *holder);

/* Let it go. */
void ml_holder_release(struct ml_holder *holder);

#endif
