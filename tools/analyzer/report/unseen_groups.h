/* Processes whose memory went unseen, many of one kind as one. Room: tools. Context: one thread.
 *
 * One rule: a kind is one executable's and has one reason; what its processes had is told together,
 * and only as much as they had at one time. */
#ifndef MEMLOG_TOOLS_ANALYZER_REPORT_UNSEEN_GROUPS_H
#define MEMLOG_TOOLS_ANALYZER_REPORT_UNSEEN_GROUPS_H

#include "tools/analyzer/model/profile.h"

struct ml_unseen_group {
    const struct ml_profile_process *largest; /* of them */
    const char *name; /* theirs, or where they have several their program's */
    uint64_t processes;
    uint64_t most_bytes; /* private memory of those that ran at one time, at most */
};

enum ml_unseen_whose {
    ML_UNSEEN_UNRECORDED, /* of processes without a profile; not of forks that hide nothing */
    ML_UNSEEN_ANYBODY     /* of all whose memory the dump does not tell of */
};

/* Largest memory first. NULL: no memory. Owner: the caller's. */
struct ml_unseen_group *
ml_unseen_groups(const struct ml_profile *profile, enum ml_unseen_whose whose, size_t *out_count);

/* "chromium: 3 processes, up to 2.0 MiB private, not recorded: WHY", in one line; a brief one has
 * of the reason what stands before its first colon. Answers out_text. */
enum { ML_UNSEEN_WORDS_BYTES = 1024 };
const char *ml_unseen_group_words(
    const struct ml_unseen_group *group, bool is_brief, char out_text[ML_UNSEEN_WORDS_BYTES]
);

/* "... and 6 more processes of 3 kinds, 2.0 MiB at most": those groups. Answers out_text. */
const char *ml_unseen_rest_words(
    const struct ml_unseen_group *groups, size_t count, char out_text[ML_UNSEEN_WORDS_BYTES]
);

#endif
