/* Programs that somebody wants recorded by name, those that run and those that will. Room: host.
 * Context: the host's one thread.
 *
 * One rule: of two wishes that match one process the later counts; the same expression twice is one
 * wish. */
#ifndef MEMLOG_HOST_POLICY_NAME_WISHES_H
#define MEMLOG_HOST_POLICY_NAME_WISHES_H

#include <stddef.h>
#include <stdint.h>

#include "base/complaint.h"
#include "host/policy/patterns.h"
#include "ipc/wire/ml_status.h"

/* People type them one at a time. */
enum { ML_NAME_WISHES_MAX = 64, ML_NAME_WISH_BYTES = 1024 };

struct ml_name_wish {
    char regex[ML_NAME_WISH_BYTES + 1];
    uint64_t sampling_bytes; /* 0: with the run's settings */
    uint32_t stack_mode;
};

struct ml_name_wishes {
    struct ml_name_wish items[ML_NAME_WISHES_MAX];
    struct ml_patterns *patterns[ML_NAME_WISHES_MAX]; /* one expression each */
    size_t count;
};

/* Errors: ML_PEER_FORM: no regular expression, or an empty one;
 * ML_PEER_LIMIT: too many; each with a complaint. ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_name_wishes_add(
    struct ml_name_wishes *wishes, const struct ml_name_wish *wish, struct ml_complaint *complaint
);

/* The wish of exactly that expression is no more, if there was one. */
void ml_name_wishes_remove(struct ml_name_wishes *wishes, const char *regex);

/* The latest that matches a process of that name or command line, which may be NULL; NULL: none. */
const struct ml_name_wish *ml_name_wishes_find(
    const struct ml_name_wishes *wishes, const char *name, const char *command_line
);

void ml_name_wishes_fini(struct ml_name_wishes *wishes);

#endif
