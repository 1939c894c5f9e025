/* How a person is told which process it is. Room: tools. Context: one thread.
 *
 * One rule: what most processes of one name have in common is left out; the rest is as it was on
 * the command line, in its order. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_PROCESS_WORDS_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_PROCESS_WORDS_H

#include <stddef.h>

#include "tools/analyzer/model/profile.h"

/* What it was started with behind its name: what tells it from others of that name, all of it where
 * there are none; "" where nothing does. Bytes of the dump as they are (base/printable.h), cut to
 * `out_bytes`, NUL-terminated. */
void ml_process_words(
    const struct ml_profile *profile,
    const struct ml_profile_process *process,
    char *out_words,
    size_t out_bytes
);

/* Its role where somebody has said one: by --memlog-role or as `--type=`; "main" of the first
 * process; "" else. Options and JSON have Chromium's names (ml_profile_role_name). */
const char *
ml_process_role(const struct ml_profile *profile, const struct ml_profile_process *process);

#endif
