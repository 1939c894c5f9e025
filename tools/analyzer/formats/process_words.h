/* Describes a process to people. Room: tools. Context: one thread.
 *
 * One rule: arguments that most processes of one name share are omitted; the others keep the order
 * of the command line. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_PROCESS_WORDS_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_PROCESS_WORDS_H

#include <stddef.h>

#include "tools/analyzer/model/profile.h"

/* The arguments that distinguish it from others of its name; all if there are no others; "" if none
 * do. Raw bytes of the dump (see base/printable.h), cut to `out_bytes`, NUL-terminated. */
void ml_process_words(
    const struct ml_profile *profile,
    const struct ml_profile_process *process,
    char *out_words,
    size_t out_bytes
);

/* Its role if --memlog-role or `--type=` gives one; "main" for the first process; else "". Options
 * and JSON have Chromium's names (ml_profile_role_name). */
const char *
ml_process_role(const struct ml_profile *profile, const struct ml_profile_process *process);

#endif
