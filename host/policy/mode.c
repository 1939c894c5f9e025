#include "host/policy/mode.h"

#include <stddef.h>
#include <stdio.h>

const char *const ml_mode_names[ML_MODE_COUNT + 1] = {
    [ML_MODE_NONE] = "none",
    [ML_MODE_MANUAL] = "manual",
    [ML_MODE_MINIMAL] = "minimal",
    [ML_MODE_BROWSER] = "browser",
    [ML_MODE_GPU] = "gpu",
    [ML_MODE_ALL] = "all",
    [ML_MODE_ALL_RENDERERS] = "all-renderers",
    [ML_MODE_RENDERER_SAMPLING] = "renderer-sampling",
    [ML_MODE_UTILITY_SAMPLING] = "utility-sampling",
    [ML_MODE_ALL_UTILITIES] = "all-utilities",
    [ML_MODE_UTILITY_AND_BROWSER] = "utility-and-browser",
};

/* A role that a mode does not list is ML_TAKE_NEVER: not profiled. */
static const uint8_t takes[ML_MODE_COUNT][ML_ROLE_COUNT] = {
    [ML_MODE_MINIMAL] =
        {[MEMLOG_SERVICE_ROLE_BROWSER] = ML_TAKE_ALWAYS,
         [MEMLOG_SERVICE_ROLE_GPU] = ML_TAKE_ALWAYS},
    [ML_MODE_BROWSER] = {[MEMLOG_SERVICE_ROLE_BROWSER] = ML_TAKE_ALWAYS},
    [ML_MODE_GPU] = {[MEMLOG_SERVICE_ROLE_GPU] = ML_TAKE_ALWAYS},
    [ML_MODE_ALL] =
        {[MEMLOG_SERVICE_ROLE_BROWSER] = ML_TAKE_ALWAYS,
         [MEMLOG_SERVICE_ROLE_RENDERER] = ML_TAKE_ALWAYS,
         [MEMLOG_SERVICE_ROLE_GPU] = ML_TAKE_ALWAYS,
         [MEMLOG_SERVICE_ROLE_UTILITY] = ML_TAKE_ALWAYS,
         [MEMLOG_SERVICE_ROLE_OTHER] = ML_TAKE_ALWAYS},
    [ML_MODE_ALL_RENDERERS] = {[MEMLOG_SERVICE_ROLE_RENDERER] = ML_TAKE_ALWAYS},
    [ML_MODE_RENDERER_SAMPLING] = {[MEMLOG_SERVICE_ROLE_RENDERER] = ML_TAKE_THIRD_ALONE},
    [ML_MODE_UTILITY_SAMPLING] = {[MEMLOG_SERVICE_ROLE_UTILITY] = ML_TAKE_THIRD},
    [ML_MODE_ALL_UTILITIES] = {[MEMLOG_SERVICE_ROLE_UTILITY] = ML_TAKE_ALWAYS},
    [ML_MODE_UTILITY_AND_BROWSER] =
        {[MEMLOG_SERVICE_ROLE_BROWSER] = ML_TAKE_ALWAYS,
         [MEMLOG_SERVICE_ROLE_UTILITY] = ML_TAKE_ALWAYS},
};

const char *ml_mode_name(enum ml_mode mode) {
    return (unsigned)mode < ML_MODE_COUNT ? ml_mode_names[mode] : "?";
}

enum ml_take ml_mode_take(enum ml_mode mode, enum memlog_service_role role) {
    if ((unsigned)mode >= ML_MODE_COUNT || (unsigned)role >= ML_ROLE_COUNT) {
        return ML_TAKE_NEVER;
    }
    return (enum ml_take)takes[mode][role];
}

bool ml_mode_takes(
    enum ml_mode mode, enum memlog_service_role role, uint32_t draw, uint32_t profiled_of_role
) {
    switch (ml_mode_take(mode, role)) {
    case ML_TAKE_ALWAYS:
        return true;
    case ML_TAKE_THIRD:
        return draw < ML_MODE_DRAWS_TAKEN;
    case ML_TAKE_THIRD_ALONE:
        return draw < ML_MODE_DRAWS_TAKEN && profiled_of_role == 0;
    case ML_TAKE_NEVER:
    case ML_TAKE_COUNT:
        break;
    }
    return false;
}

bool ml_mode_leaves_out(
    const struct ml_patterns *only,
    const struct ml_patterns *never,
    const struct ml_command_line *line,
    char out_why[ML_MODE_WHY_BYTES]
) {
    const char *text = line->joined != NULL ? line->joined : "";
    const size_t only_count = ml_patterns_count(only);
    const char *forbidden = ml_patterns_matching(never, text);
    if (forbidden != NULL) {
        (void)snprintf(out_why, ML_MODE_WHY_BYTES, "left out by --never=%.200s", forbidden);
        return true;
    }
    if (only_count == 0 || ml_patterns_matching(only, text) != NULL) {
        return false;
    }
    if (only_count == 1) {
        (void)snprintf(
            out_why,
            ML_MODE_WHY_BYTES,
            "left out: --only=%.200s does not match it",
            ml_patterns_text(only, 0)
        );
    } else {
        (void)snprintf(
            out_why, ML_MODE_WHY_BYTES, "left out: none of %zu --only matches it", only_count
        );
    }
    return true;
}
