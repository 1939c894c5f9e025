/* The folder that a run's dumps go to. Room: host. Context: the host's one thread.
 *
 * One rule: nothing that was there is ever overwritten: a folder that holds dumps is refused, and a
 * dump gets its name only when it is whole. Nothing is written through a link, or into a folder of
 * another user: the folder is opened once, and what is made in it is new, and its user's alone. */
#ifndef MEMLOG_HOST_ENGINE_DUMP_FOLDER_H
#define MEMLOG_HOST_ENGINE_DUMP_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error_message.h"
#include "host/engine/engine.h"
#include "ipc/wire/ml_status.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"

/* Behind ML_DUMP_SUFFIX, of one that was cut off: who looks for dumps does not take it for a whole
 * one. */
#define ML_DUMP_CUT_SUFFIX ".cut"

struct ml_dumps {
    char folder[PATH_MAX];
    int folder_fd;        /* that folder, whatever becomes of its name; -1: not open */
    uint32_t last_number; /* of the last dump that was begun */
    bool made_folder;     /* it was not there before */
};

/* A dump that is being written. */
struct ml_dump_file {
    int fd;
    int folder_fd;            /* where it lies; the folder's, borrowed */
    char path[PATH_MAX];      /* its name when it is whole */
    char temporary[NAME_MAX]; /* its name in the folder until then */
};

/* "exit", "signal", ... as in file names. */
const char *ml_dump_reason_name(enum memlog_service_dump_reason reason);

/* Make or take the folder: `output`, or memlog.PROGRAM.PID in the current one when `output` is
 * NULL.
 *
 * Errors: ML_ENV_SYSTEM; ML_ENV_REFUSED: it holds dumps, is a link, or is another user's; with a
 *         error message that names it and says what to do.
 * Owner:  ml_dumps_close. */
ML_NODISCARD enum ml_status ml_dumps_open(
    struct ml_dumps *dumps,
    const char *output,
    const char *program,
    pid_t pid,
    struct ml_error_message *error
);

/* A new file, under its temporary name. Errors: ML_ENV_SYSTEM with an error message.
 * Owner:  end with ml_dumps_commit or ml_dumps_discard. */
ML_NODISCARD enum ml_status ml_dumps_begin(
    struct ml_dumps *dumps,
    enum memlog_service_dump_reason reason,
    struct ml_dump_file *out_file,
    struct ml_error_message *error
);

/* It is whole: close it and give it its name. Errors: ML_ENV_SYSTEM with an error message. */
ML_NODISCARD enum ml_status
ml_dumps_commit(struct ml_dump_file *file, struct ml_error_message *error);

/* It was cut off, by a full disk for one: close it and name it so (file->path), for what it holds
 * can be read. Errors: ML_ENV_SYSTEM with an error message; it keeps its temporary name then. */
ML_NODISCARD enum ml_status
ml_dumps_keep_cut(struct ml_dump_file *file, struct ml_error_message *error);

/* It will not become whole, and nothing is in it: close and remove it. */
void ml_dumps_discard(struct ml_dump_file *file);

/* A log of that name in the folder, to append to: a new one, or this user's own. -1: there can be
 * none. Owner: the caller closes it. */
int ml_dumps_log(const struct ml_dumps *dumps, const char *name);

/* Close the folder; remove it if we made it and nothing came into it. */
void ml_dumps_close(struct ml_dumps *dumps);

#endif
