/* Patterns of a policy: dmprof's regular expressions, matched as a whole. Room: tools. Context: one
 * thread.
 *
 * One rule: a pattern costs time in proportion to the text. They are POSIX extended ones without
 * back references and with few repetitions. What Python has beyond (dmprof was written in it) is
 * translated, or refused by its name. */
#ifndef MEMLOG_TOOLS_ANALYZER_MEMORY_PATTERN_H
#define MEMLOG_TOOLS_ANALYZER_MEMORY_PATTERN_H

#include <regex.h>
#include <stdbool.h>

#include "base/error_message.h"

struct ml_pattern {
    bool is_any;   /* it matches every text */
    char *literal; /* every text that matches has it; NULL: none is known */
    regex_t regex; /* unless it is_any */
};

/* Compile a pattern. False: an error message says why; nothing is to be freed. */
bool ml_pattern_init(struct ml_pattern *pattern, const char *text, struct ml_error_message *error);
void ml_pattern_fini(struct ml_pattern *pattern);

/* Whether the whole text matches. */
bool ml_pattern_matches(const struct ml_pattern *pattern, const char *text);

#endif
