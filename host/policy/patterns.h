/* Regular expressions over command lines, in order. Room: host. Context: any; one thread at a time.
 *
 * One rule: an invalid regular expression is refused when it is added, with the reason. So matching
 * cannot fail. */
#ifndef MEMLOG_HOST_POLICY_PATTERNS_H
#define MEMLOG_HOST_POLICY_PATTERNS_H

#include <stddef.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"

/* An ordered list of (regular expression, number). POSIX extended syntax, matched anywhere in the
 * joined command line. */
struct ml_patterns;

struct ml_patterns *ml_patterns_new(void);
void ml_patterns_free(struct ml_patterns *take_patterns);

/* Errors: ML_PEER_FORM with an error message: not a regular expression; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_patterns_add(
    struct ml_patterns *patterns, const char *regex, int number, struct ml_error_message *error
);

/* How many were added. */
size_t ml_patterns_count(const struct ml_patterns *patterns);

/* The expression at `index`, which is below the count, as it was added. Owner: the patterns'. */
const char *ml_patterns_text(const struct ml_patterns *patterns, size_t index);

/* The first expression that matches, as it was added; NULL: none does. Owner: the patterns'. */
const char *ml_patterns_matching(const struct ml_patterns *patterns, const char *text);

/* The number of the first expression that matches; -1: none does. */
int ml_patterns_match(const struct ml_patterns *patterns, const char *text);

#endif
