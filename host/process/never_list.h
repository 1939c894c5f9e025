/* Programs that the machine's owner never lets be profiled: /etc/memlog/never. Room: host. Context:
 * any; read once, when a run starts.
 *
 * One rule: it can only forbid. A list that cannot be trusted or understood is an error, never an
 * empty list. */
#ifndef MEMLOG_HOST_PROCESS_NEVER_LIST_H
#define MEMLOG_HOST_PROCESS_NEVER_LIST_H

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error_message.h"
#include "host/policy/patterns.h"
#include "ipc/wire/ml_status.h"

#define ML_NEVER_LIST_FOLDER "/etc/memlog"
#define ML_NEVER_LIST_FILE "never"

/* More than people keep by hand. Each line costs a match for each process. */
enum { ML_NEVER_LIST_MAX_BYTES = 1 << 16, ML_NEVER_LIST_MAX_LINES = 1024 };

/* All zero is an empty one. */
struct ml_never_list {
    char path[PATH_MAX];          /* "": there is none */
    struct ml_patterns *patterns; /* numbered by their lines */
};

/* Read `folder`/`name`, which like its folder belongs to root or to `other_owner` and is written by
 * nobody else. A file that is not there is an empty list.
 *
 * Shape:  one POSIX extended expression a line; blank lines and lines that begin with # say
 * nothing. Errors: ML_ENV_REFUSED, ML_ENV_SYSTEM, ML_PEER_FORM, ML_PEER_LIMIT, ML_ENV_MEMORY, with
 * an error message that names the file, and the line. Owner:  ml_never_list_fini. */
ML_NODISCARD enum ml_status ml_never_list_load(
    struct ml_never_list *out_list,
    const char *folder,
    const char *name,
    uid_t other_owner,
    struct ml_error_message *error
);

/* The same of the file at `path`, which must be there. */
ML_NODISCARD enum ml_status ml_never_list_load_file(
    struct ml_never_list *out_list,
    const char *path,
    uid_t other_owner,
    struct ml_error_message *error
);

void ml_never_list_fini(struct ml_never_list *list);

/* How many patterns. */
size_t ml_never_list_count(const struct ml_never_list *list);

/* The line that forbids a process of that command line (its arguments with blanks between) and
 * executable; 0: none does. Either may be NULL or "". */
int ml_never_list_match(
    const struct ml_never_list *list, const char *command_line, const char *executable
);

#endif
