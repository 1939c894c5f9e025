#include "service/sandbox/sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "service/sandbox/internal.h"

void ml_sandbox_miss(struct ml_sandbox_report *report, const char *what, int error) {
    const size_t used = strlen(report->missing);
    const char *why = error == ENOSYS ? "not in this kernel" : error != 0 ? strerror(error) : "";
    /* A text that does not fit is cut. What is there stays true. */
    (void)snprintf(
        report->missing + used,
        sizeof(report->missing) - used,
        "%s%s%s%s%s",
        used > 0 ? ", " : "",
        what,
        error != 0 ? " (" : "",
        why,
        error != 0 ? ")" : ""
    );
}

enum ml_status ml_sandbox_level_parse(const char *name, enum ml_sandbox_level *out_level) {
    static const char *const names[] = {
        [ML_SANDBOX_AUTO] = "auto", [ML_SANDBOX_STRICT] = "strict", [ML_SANDBOX_NONE] = "none"};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            *out_level = (enum ml_sandbox_level)i;
            return ML_OK;
        }
    }
    return ML_PEER_UNKNOWN;
}

static void make_threads(const struct ml_sandbox_options *options) {
    if (options->make_threads != NULL) {
        options->make_threads(options->context);
    }
}

enum ml_status
ml_sandbox_enter(const struct ml_sandbox_options *options, struct ml_sandbox_report *out_report) {
    const uint32_t layers = ML_SANDBOX_ALL_LAYERS & ~options->left_out_layers;
    out_report->missing[0] = '\0';
    if (options->level == ML_SANDBOX_NONE) {
        ml_sandbox_miss(out_report, "all of it, by --sandbox=none", 0);
        make_threads(options);
        return ML_OK;
    }
    bool complete = true;
    bool essential = true;
    bool own_mounts = false;
    /* The order matters. The empty root needs the capabilities of the mount namespace. Landlock
     * forbids mounting. Privileges drop the capabilities. Limits and filter permit no more threads,
     * and the filter forbids all of the other calls. */
    if ((layers & ML_SANDBOX_NAMESPACES) != 0) {
        complete = ml_sandbox_namespaces(out_report, &own_mounts) && complete;
    }
    if ((layers & ML_SANDBOX_ROOT) != 0) {
        complete = ml_sandbox_root(own_mounts, out_report) && complete;
    }
    if ((layers & ML_SANDBOX_PRIVILEGES) != 0) {
        essential = ml_sandbox_privileges(out_report) && essential;
    }
    if ((layers & ML_SANDBOX_LANDLOCK) != 0) {
        complete = ml_sandbox_landlock(out_report) && complete;
    }
    make_threads(options);
    if ((layers & ML_SANDBOX_LIMITS) != 0) {
        essential = ml_sandbox_limits(out_report) && essential;
    }
    if ((layers & ML_SANDBOX_SECCOMP) != 0) {
        essential = ml_sandbox_filter(options->left_out_line, out_report) && essential;
    }
    if (!essential || (!complete && options->level == ML_SANDBOX_STRICT)) {
        return ML_ENV_REFUSED;
    }
    return ML_OK;
}
