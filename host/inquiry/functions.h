/* The functions of a running memlog that hold most, looked at again and again without waiting.
 * Room: host. Context: one thread of a command's own process.
 *
 * One rule: a look costs the host one snapshot, as a look at its page does, and leaves no file: the
 * analyzer reads it from memory, and the host parses no dump. */
#ifndef MEMLOG_HOST_INQUIRY_FUNCTIONS_H
#define MEMLOG_HOST_INQUIRY_FUNCTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error_message.h"
#include "base/option_table.h"
#include "host/inquiry/inquiry.h"
#include "host/process/launcher.h"
#include "host/terminal/top_functions.h"

struct ev_loop;
struct ml_analyzer;

struct ml_functions_look {
    struct ml_top_function *rows;
    size_t count;
};

struct ml_functions {
    struct ml_inquiry inquiry; /* its own connection: a snapshot may take long */
    struct ev_loop *loop;      /* of the analyzer's */
    struct ml_analyzer *analyzer;
    struct ml_inherited inherited;
    char analyzer_path[PATH_MAX];
    enum { ML_FUNCTIONS_IDLE = 0, ML_FUNCTIONS_SNAPSHOT, ML_FUNCTIONS_ANALYSIS } phase;
    enum ml_inquiry_state outcome; /* of the analysis, until it is taken */
    int snapshot_fd;               /* -1: none */
    char *pids_word;               /* "--pids=1,22": those that pid 0 means; NULL: all */
    uint32_t pid, wanted_pid;      /* of the look that is being made; of the last question */
    bool is_stale;                 /* asked anew meanwhile: it is dropped, and another one made */
    struct ml_functions_look shown, before;
    uint32_t shown_pid;
    char trouble[256]; /* why the last look failed */
};

/* `path` is that of the host's command socket. `pids` are the processes that are looked at
 * together; NULL, or none: all of the run.
 *
 * Errors: with an error message.
 * Owner:  ml_functions_close, also after an error. */
ML_NODISCARD enum ml_status ml_functions_open(
    struct ml_functions *functions,
    const char *path,
    const struct ml_pids *pids,
    struct ml_error_message *error
);
void ml_functions_close(struct ml_functions *functions);

/* Look at the process with that pid; 0: at all together. A look that is being made is dropped
 * when it is done, and this one follows: an answer is never older than its question. */
void ml_functions_ask(struct ml_functions *functions, uint32_t pid);

/* ML_INQUIRY_ANSWERED: `shown` has them, with their growth since the look before at the same
 * process. */
enum ml_inquiry_state ml_functions_turn(struct ml_functions *functions);

#endif
