/* `memlog run --budget`: the final dump beside rules. Room: host. Context: the main thread, before
 * and behind the run.
 *
 * One rule: the host reads neither rules nor dump: memlog-analyzer does, and its exit code is the
 * verdict. */
#ifndef MEMLOG_HOST_CLI_BUDGET_H
#define MEMLOG_HOST_CLI_BUDGET_H

#include <stdbool.h>

#include "host/policy/options.h"
#include "host/process/launcher.h"

/* Whether the rules can be read, if there are any. False: stderr says why not. */
bool ml_budget_is_good(const struct ml_options *options);

/* The exit code of a run whose program ended with 0: 0, 3 (a rule is broken), 4 (one can be called
 * neither), or 125. `dump_path` "": there is no dump. */
int ml_budget_exit_code(
    const struct ml_options *options, const struct ml_inherited *inherited, const char *dump_path
);

#endif
