/* Removes private data from a profile before it leaves the machine. Room: tools. Context: one
 * thread.
 *
 * One rule: what is not known to be harmless is removed. Figures, functions and build ids stay. */
#ifndef MEMLOG_TOOLS_ANALYZER_UPLOAD_REDACT_H
#define MEMLOG_TOOLS_ANALYZER_UPLOAD_REDACT_H

#include <stddef.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/stacks/stacks.h"

/* How names are redacted that a program gives: of threads, scopes, heaps, types, processes. */
enum ml_redact_names {
    ML_REDACT_PLAIN, /* words of letters, digits and -_.:/ stay (of types, what C++ has in names,
                        too), long numbers become # */
    ML_REDACT_NONE,  /* all become "name" */
    ML_REDACT_ALL    /* all stay */
};

/* How much was removed. */
struct ml_redacted {
    size_t paths;     /* cut to their base names */
    size_t arguments; /* left out */
    size_t names;     /* replaced */
};

/* Redact the profile and its stacks, which have their names already. Errors: ML_ENV_MEMORY; then
 * neither may be sent. */
ML_NODISCARD enum ml_status ml_redact(
    struct ml_profile *profile,
    struct ml_stacks *stacks,
    enum ml_redact_names names,
    struct ml_redacted *out_redacted
);

#endif
