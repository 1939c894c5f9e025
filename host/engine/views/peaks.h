/* When a process has come to hold more private memory than ever, it is read: a dump after its end
 * tells what it was made of then. When all together have come to hold more than ever, all are read.
 * Room: host. Context: the loop's thread.
 *
 * One rule: the cost is bounded. Looks, readings of one and readings of all take a fiftieth of a
 * processor each, however many processes there are and however long one takes; what comes meanwhile
 * waits. */
#ifndef MEMLOG_HOST_ENGINE_VIEWS_PEAKS_H
#define MEMLOG_HOST_ENGINE_VIEWS_PEAKS_H

#include "host/engine/state.h"

/* Whether so much is a new peak: a twentieth and 1 MiB above the last. Units: bytes. */
bool ml_is_new_peak(uint64_t private_bytes, uint64_t peak_bytes);

/* The next reading that nobody waits for is then at the earliest, after one that took so much of a
 * processor. Units: ns. */
uint64_t ml_next_reading_ns(uint64_t now_ns, uint64_t cost_ns);

void ml_peaks_init(struct ml_engine *engine);
void ml_peaks_fini(struct ml_engine *engine);

/* The service that knew the readings is gone: what is large now is read again. */
void ml_peaks_forget(struct ml_engine *engine);

/* Look at one process now. */
void ml_peaks_look(struct ml_engine *engine, struct ml_member *member);

#endif
