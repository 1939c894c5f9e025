/* The names that programs give to their mappings, each told once in a profile. Room: client
 * (private). Context: inside a hook, on its lane; any thread.
 *
 * One rule: the text is the program's. It is copied as far as it can be read, and no further than
 * the kernel reads such names. */
#ifndef MEMLOG_CLIENT_RECORDING_MAPPING_NAMES_H
#define MEMLOG_CLIENT_RECORDING_MAPPING_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "client/stream/lane.h"

enum { ML_MAPPING_NAME_BYTES = 80 }; /* ANON_VMA_NAME_MAX_LEN of Linux, with its NUL */

/* The string's id, which is recorded first where it is new; 0 for NULL. False: the name cannot be
 * read, is too long, or there are too many strings. */
bool ml_mapping_name_id(struct ml_lane *lane, const char *name, uint32_t *out_id);

#endif
