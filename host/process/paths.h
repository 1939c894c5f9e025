/* Where memlog's own files are. Room: host. Context: start of the program.
 *
 * One rule: memlog's programs and library are found beside this binary, or where the program that
 * it is says, never by PATH or the current folder. Nothing else is loaded into a program. */
#ifndef MEMLOG_HOST_PROCESS_PATHS_H
#define MEMLOG_HOST_PROCESS_PATHS_H

#include <limits.h>
#include <stdbool.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"

#define ML_PRELOAD_FILE "libmemlog.so"
/* Only glibc's loaders replace this in a preload's path. */
#define ML_PRELOAD_PLATFORM "$PLATFORM"
#define ML_SERVICE_FILE "memlog-service"
#define ML_ANALYZER_FILE "memlog-analyzer"
#define ML_TRACER_FILE "memlog-tracer"
#define ML_COLLECT_FILE "memlog-collect"
#define ML_FLEET_FILE "memlog-fleet"

/* The absolute path of one of our files: beside this binary (the build's folder), else in
 * ../lib/memlog (installed).
 *
 * Errors: ML_ENV_MISSING with an error message that names both places; ML_ENV_SYSTEM. */
ML_NODISCARD enum ml_status
ml_paths_find(const char *file, char out_path[PATH_MAX], struct ml_error_message *error);

/* All parts lie beside that one: look there first. A program with a host inside it lies anywhere.
 * Once, before any other thread looks. */
void ml_paths_beside(const char *part_path);

/* The folder beside that library in which glibc's loaders find it by their platform's name, each
 * what it can load (client/preload_folder.py). False: there is none; what is too long for a path is
 * none either. */
bool ml_paths_preload_folder(const char *library_path, char out_path[PATH_MAX]);

#endif
