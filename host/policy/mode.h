/* Which roles each mode profiles. Room: host. Context: any; pure.
 *
 * One rule: the whole policy is the one table in mode.c. The random number is an argument, so that
 * every decision can be repeated. */
#ifndef MEMLOG_HOST_POLICY_MODE_H
#define MEMLOG_HOST_POLICY_MODE_H

#include <stdbool.h>
#include <stdint.h>

#include "host/policy/command_line.h"
#include "host/policy/role.h"

enum ml_mode {
    ML_MODE_NONE = 0,
    ML_MODE_MANUAL,
    ML_MODE_MINIMAL,
    ML_MODE_BROWSER,
    ML_MODE_GPU,
    ML_MODE_ALL,
    ML_MODE_ALL_RENDERERS,
    ML_MODE_RENDERER_SAMPLING,
    ML_MODE_UTILITY_SAMPLING,
    ML_MODE_ALL_UTILITIES,
    ML_MODE_UTILITY_AND_BROWSER,
    ML_MODE_COUNT
};

/* What a mode does with a role. */
enum ml_take {
    ML_TAKE_NEVER = 0,
    ML_TAKE_ALWAYS,
    ML_TAKE_THIRD,       /* with a probability of 1/3 */
    ML_TAKE_THIRD_ALONE, /* the same, and only while no process of the role is profiled */
    ML_TAKE_COUNT
};

/* A probability of 1/3 as Chromium draws it: 33,333 of 100,000. */
enum { ML_MODE_DRAWS = 100000, ML_MODE_DRAWS_TAKEN = 33333 };

/* "renderer-sampling". */
const char *ml_mode_name(enum ml_mode mode);

/* The names of all modes, in the enum's order; NULL behind the last. */
extern const char *const ml_mode_names[ML_MODE_COUNT + 1];

/* What the table says for a mode and a role. */
enum ml_take ml_mode_take(enum ml_mode mode, enum memlog_service_role role);

/* Whether a process of that role is profiled. `draw` is 0 .. ML_MODE_DRAWS - 1, drawn once for each
 * process. `profiled_of_role` is how many running processes of that role are profiled already. */
bool ml_mode_takes(
    enum ml_mode mode, enum memlog_service_role role, uint32_t draw, uint32_t profiled_of_role
);

enum { ML_MODE_WHY_BYTES = 256 };

/* Whether --only and --never leave a command line out. It is profiled only if no pattern of `never`
 * matches, and if one of `only` does or `only` is empty. When true, `out_why` names the option for
 * people; otherwise it is not written. */
bool ml_mode_leaves_out(
    const struct ml_patterns *only,
    const struct ml_patterns *never,
    const struct ml_command_line *line,
    char out_why[ML_MODE_WHY_BYTES]
);

#endif
