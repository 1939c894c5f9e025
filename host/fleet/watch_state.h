/* What a watch has told, and what is still to be sent: a file of JSON. Room: host. Context: one
 * thread.
 *
 * One rule: the file is whole at any time, and one watch alone works with it. What is to be sent
 * stands in it before the first try. */
#ifndef MEMLOG_HOST_FLEET_WATCH_STATE_H
#define MEMLOG_HOST_FLEET_WATCH_STATE_H

#include <limits.h>
#include <stdbool.h>

#include <jansson.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"

struct ml_fleet_watch_state {
    char path[PATH_MAX];
    int lock_fd;     /* of "PATH.lock" */
    json_t *told;    /* program -> {before, after, number, sent, stacks} */
    json_t *pending; /* findings, the oldest first */
};

/* Read it; an absent file is an empty state. Errors: ML_ENV_SYSTEM, ML_ENV_REFUSED (another watch
 * works with it), ML_PEER_FORM (it is no such file), with an error message. _close is needed even
 * then. */
ML_NODISCARD enum ml_status ml_fleet_watch_state_open(
    struct ml_fleet_watch_state *state, const char *path, struct ml_error_message *error
);
void ml_fleet_watch_state_close(struct ml_fleet_watch_state *state);

/* Write it. False, with an error message: the file is as it was. */
bool ml_fleet_watch_state_save(
    const struct ml_fleet_watch_state *state, struct ml_error_message *error
);

#endif
