/* How run-times are told to name the functions of the code that they make, so that others see them
 * (docs/symbols.md). Room: base. Context: any.
 *
 * One rule: only what was tried, or what the run-time's own documents say. */
#ifndef MEMLOG_BASE_SCRIPTS_SCRIPT_NAMES_H
#define MEMLOG_BASE_SCRIPTS_SCRIPT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* The versions of Python that --frames=python reads. */
#define ML_SCRIPT_NAMES_READ "3.11, 3.13 and 3.14"

struct ml_script_names {
    const char *program;  /* how names of its executables begin */
    const char *language; /* whose functions they are */
    const char *how;      /* what gives them names */
    const char *word;     /* of its command line, once that is done; NULL: it is done otherwise */
};

/* What is known of an executable, by its path or name: static. NULL: nothing, or nothing helps. */
const struct ml_script_names *ml_script_names_of(const char *executable);

/* What names the functions of a Python that --frames=python does not read, by the version in the
 * executable's name: static. NULL: it is read, is no Python, or its name has no version. */
const char *ml_script_names_unread_python(const char *executable);

/* Whether an argument of the process is the word. */
bool ml_script_names_asked(const struct ml_script_names *names, const char *argument);

#endif
