/* The role of a process: browser, renderer, gpu, utility or other. Room: host. Context: any; pure.
 *
 * One rule: the rules of the command line come first, in their order. Then the root is the browser.
 * Then the built-in rule reads `--type=` arguments. */
#ifndef MEMLOG_HOST_POLICY_ROLE_H
#define MEMLOG_HOST_POLICY_ROLE_H

#include <stdbool.h>

#include "base/error_message.h"
#include "host/policy/command_line.h"
#include "host/policy/patterns.h"
#include "ipc/wire/ml_status.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"

enum { ML_ROLE_COUNT = MEMLOG_SERVICE_ROLE_OTHER + 1 };

/* The names of all roles, in the enum's order; NULL behind the last. */
extern const char *const ml_role_names[ML_ROLE_COUNT + 1];

/* "renderer". */
const char *ml_role_name(enum memlog_service_role role);

/* Find a role by name. Errors: ML_ENV_MISSING with an error message that names the most similar. */
ML_NODISCARD enum ml_status
ml_role_parse(const char *name, enum memlog_service_role *out_role, struct ml_error_message *error);

/* The role of a process. `rules` holds (regex, enum memlog_service_role). The built-in rule looks
 * for arguments that are `--type=NAME` as a whole. It also looks at the words of the first
 * argument, because a process that sets its title overwrites its arguments from there on. */
enum memlog_service_role
ml_role_of(const struct ml_patterns *rules, const struct ml_command_line *line, bool is_root);

#endif
