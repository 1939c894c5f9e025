/* The loader's own memory. It maps some pages by bare calls before anything can be hooked: for the
 * first thread's variables and descriptor, and for what it knows of objects. Room: client
 * (private). Context: the first in the constructor, the second on the lane of a stream that begins.
 *
 * One rule: only pages on which something of the loader's is known to lie are told. A mapping that
 * the program makes there comes later in the stream, and counts. */
#ifndef MEMLOG_CLIENT_RECORDING_LOADER_H
#define MEMLOG_CLIENT_RECORDING_LOADER_H

#include "client/stream/lane.h"

/* Find them. Does nothing where another than the first thread has loaded memlog. */
void ml_loader_find(void);

/* Record them as mappings without a stack, by the name "loader". */
void ml_loader_record(struct ml_lane *lane);

#endif
