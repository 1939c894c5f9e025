/* MODULE records: each module once a profile, before any node that lies in it. Room: client
 * (private). Context: inside a hook, on its lane.
 *
 * One rule: a module that is asked about is on the calling thread's stack, so it is mapped. */
#ifndef MEMLOG_CLIENT_STREAM_MODULE_RECORD_H
#define MEMLOG_CLIENT_STREAM_MODULE_RECORD_H

#include <stdint.h>

#include "client/stream/lane.h"
#include "client/unwind/modules.h"

/* A ml_module_seen_fn, its context a lane: write the record. */
void ml_module_record(void *lane, uint32_t module_id, const struct ml_image *image);

/* Ensure that the module around `address` is defined in the lane's profile; returns its id. 0: no
 * module. */
void ml_module_define(struct ml_lane *lane, uint32_t module_id, uint64_t address);

#endif
