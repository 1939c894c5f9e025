/* Processes whose memory was not seen, grouped by kind. Room: tools. Context: one thread.
 *
 * One rule: processes of a kind have the same executable and reason. Their memory is the most that
 * they had at one time. */
#ifndef MEMLOG_TOOLS_ANALYZER_REPORT_UNSEEN_GROUPS_H
#define MEMLOG_TOOLS_ANALYZER_REPORT_UNSEEN_GROUPS_H

#include "tools/analyzer/model/profile.h"

struct ml_unseen_group {
    const struct ml_profile_process *largest;
    const char *name; /* their common name; if they differ, the program's */
    uint64_t processes;
    uint64_t most_bytes; /* private memory of those that ran at one time */
};

enum ml_unseen_whose {
    ML_UNSEEN_UNRECORDED, /* processes without a profile that may hide memory */
    ML_UNSEEN_ANYBODY     /* all with memory that the dump lacks */
};

/* The largest memory first. NULL: no memory. Owner: the caller. */
struct ml_unseen_group *
ml_unseen_groups(const struct ml_profile *profile, enum ml_unseen_whose whose, size_t *out_count);

/* "chromium: 3 processes, up to 2.0 MiB private, not recorded: WHY" in out_text, which is returned.
 * `is_brief`: the reason ends at its first colon. */
enum { ML_UNSEEN_WORDS_BYTES = 1024 };
const char *ml_unseen_group_words(
    const struct ml_unseen_group *group, bool is_brief, char out_text[ML_UNSEEN_WORDS_BYTES]
);

/* "... and 6 more processes of 3 kinds, 2.0 MiB at most" in out_text, which is returned. */
const char *ml_unseen_rest_words(
    const struct ml_unseen_group *groups, size_t count, char out_text[ML_UNSEEN_WORDS_BYTES]
);

#endif
