/* A file of known leaks in LeakSanitizer's form. Room: tools. Context: one thread; caller's
 * storage.
 *
 * Shape:  a line is "leak:PATTERN", a comment that begins with '#', or blank. In a pattern '*'
 *         stands for anything, '^' at its start and '$' at its end for those of the text; without
 *         them it matches anywhere.
 * One rule: no line is ignored. What is not understood refuses the file, with the line's number. */
#ifndef MEMLOG_TOOLS_ANALYZER_SUPPRESSIONS_SUPPRESSIONS_H
#define MEMLOG_TOOLS_ANALYZER_SUPPRESSIONS_SUPPRESSIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error_message.h"

enum { ML_SUPPRESSIONS_MAX_BYTES = 1 << 20, ML_SUPPRESSIONS_MAX = 4096 };

struct ml_suppression {
    const char *pattern; /* never empty */
    unsigned line;       /* of the file, from 1 */
};

struct ml_suppressions {
    const char *file; /* its path; borrowed */
    char *text;       /* the patterns */
    struct ml_suppression *rules;
    size_t count, capacity;
};

/* Read the file's bytes. False: an error message names file and line; _fini is needed even then. */
bool ml_suppressions_read(
    struct ml_suppressions *suppressions,
    const char *bytes,
    size_t count_bytes,
    const char *file,
    struct ml_error_message *error
);
void ml_suppressions_fini(struct ml_suppressions *suppressions);

/* Whether a pattern matches a text; an empty text has no match. Linear in both for each '*'. */
bool ml_suppression_matches(const char *pattern, const char *text);

#endif
