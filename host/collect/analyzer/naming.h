/* Has the functions at addresses of an ELF file told: by memlog-analyzer, in a process of its own
 * as for a report (host/collect/reading.h). Room: host. Context: one thread, which waits for it.
 *
 * One rule: the file may take the analyzer over. Then the names are wrong that it gives to its own
 * build, and nothing else. */
#ifndef MEMLOG_HOST_COLLECT_ANALYZER_NAMING_H
#define MEMLOG_HOST_COLLECT_ANALYZER_NAMING_H

#include <stddef.h>
#include <stdint.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"

/* More addresses of a file have no names. */
enum { ML_NAMING_MAX = 1 << 20 };

struct ml_naming;

/* `file_fd` is borrowed until the return. NULL: it is no file with functions and a build id, or
 * there was no process; with an error message. */
struct ml_naming *
ml_naming_start(const char *analyzer_path, int file_fd, struct ml_error_message *error);
void ml_naming_free(struct ml_naming *take_naming);

/* In hex. */
const char *ml_naming_build_id(const struct ml_naming *naming);

/* Ask of all addresses at once, and once. A name is NULL where there is none; the names live as
 * long as `naming`. Errors: ML_PEER_SHORT: the analyzer died of the file; ML_ENV_MEMORY; with an
 * error message. */
ML_NODISCARD enum ml_status ml_naming_ask(
    struct ml_naming *naming,
    const uint64_t *addresses,
    size_t count,
    const char **out_names,
    struct ml_error_message *error
);

#endif
