#include "host/engine/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/process/clock.h"

void ml_engine_notice(struct ml_engine *engine, const char *format, ...) {
    if (engine->phase == ML_PHASE_CLOSED) {
        return;
    }
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    engine->on_notice(engine->context, text);
}

void ml_engine_figures(struct ml_engine *engine, ml_engine_on_figures *on_reply, void *context) {
    const struct memlog_service_figures_request request = {.nothing = 0};
    ML_SERVICE_ASK(&engine->link, memlog_service_figures, &request, on_reply, context);
}

void ml_engine_set_phase(struct ml_engine *engine, enum ml_engine_phase_event event) {
    const enum ml_engine_phase next = ml_engine_phase_next(engine->phase, event);
    engine->members.forbidden_count += next == ML_PHASE_FORBIDDEN;
    engine->phase = next != ML_PHASE_FORBIDDEN ? next : engine->phase;
}

void ml_engine_add_not_profiled(
    struct ml_engine *engine, pid_t pid, pid_t parent_pid, const char *reason, const char *path
) {
    if (engine->not_profiled_count >= ML_NOT_PROFILED_MAX) {
        return;
    }
    struct ml_not_profiled *items =
        reallocarray(engine->not_profiled, engine->not_profiled_count + 1, sizeof(*items));
    if (items == NULL) {
        return;
    }
    engine->not_profiled = items;
    struct ml_not_profiled *item = &items[engine->not_profiled_count++];
    *item = (struct ml_not_profiled
    ){.pid = pid,
      .parent_pid = parent_pid,
      .path = strdup(path != NULL ? path : ""),
      .heard_ns = ml_clock_timestamp(engine->clock).monotonic_ns};
    (void)snprintf(item->reason, sizeof(item->reason), "%s", reason);
}

/* If a process holds the lease at each try, the host reads the clock anyway. */
enum { LEASE_ENDS_MAX = 4 };

struct memlog_service_moment ml_engine_timestamp(struct ml_engine *engine) {
    struct memlog_service_moment timestamp;
    int ends = 0;
    do {
        ml_endpoint_lease_end(engine->lease_fd);
        timestamp = ml_clock_timestamp(engine->clock);
    } while (ml_endpoint_lease_held(engine->lease_fd) && ++ends < LEASE_ENDS_MAX);
    return timestamp;
}
