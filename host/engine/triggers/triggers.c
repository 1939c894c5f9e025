#include "host/engine/triggers/triggers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/printable.h"
#include "host/engine/dump/folder.h"
#include "host/engine/lifecycle.h"
#include "host/engine/members/members.h"
#include "host/engine/state.h"
#include "host/engine/triggers/cgroups.h"
#include "host/process/cgroup_info.h"
#include "host/process/clock.h"
#include "host/process/loop.h"

/* How often memories are looked at when a rule is about them. Their files cost microseconds. */
static const double memory_interval_s = 1.0;

/* Kills within this time make one dump: the kernel may kill a whole group. */
static const double killed_delay_s = 0.2;

/* The kernel's count of OOM kills rises before the end is known. A look in between may see it. */
static const uint64_t oom_recent_ns = UINT64_C(5000000000);

enum { SIGNAL_KILL = 9, LOG_LINE_BYTES = 1024, LOG_MAX_BYTES = 1 << 20 };

static const char *const kind_names[] = {MEMLOG_SERVICE_TRIGGER_KIND_WORDS};
_Static_assert(
    sizeof(kind_names) / sizeof(kind_names[0]) == ML_TRIGGER_KINDS, "a kind has no word"
);

const char *ml_engine_trigger_name(enum memlog_service_trigger_kind kind) {
    return (unsigned)kind < ML_TRIGGER_KINDS ? kind_names[kind] : "?";
}

/* Add a line. The log is made with its first line. Lines about no dump stop at the log's bound. */
static void write_log(
    struct ml_engine *engine,
    bool must,
    enum memlog_service_trigger_kind kind,
    const char *what,
    const char *why
) {
    struct ml_engine_triggers *triggers = engine->triggers;
    if (engine->jobs->folder.folder_fd < 0 || (!must && triggers->log_bytes > LOG_MAX_BYTES)) {
        return;
    }
    if (triggers->log_fd < 0) {
        triggers->log_fd = ml_dumps_log(&engine->jobs->folder, "triggers.log");
        if (triggers->log_fd < 0) {
            return; /* the dump itself says why it was taken */
        }
    }
    char line[LOG_LINE_BYTES];
    char day[32] = "";
    const uint64_t now_ns = ml_clock_timestamp(engine->clock).realtime_ns;
    const time_t seconds = (time_t)(now_ns / UINT64_C(1000000000));
    struct tm parts;
    if (gmtime_r(&seconds, &parts) != NULL) {
        (void)strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", &parts);
    }
    const int count = snprintf(
        line,
        sizeof(line),
        "%s.%03uZ %s %s: %s\n",
        day,
        (unsigned)(now_ns / 1000000 % 1000),
        what,
        ml_engine_trigger_name(kind),
        why
    );
    line[count < (int)sizeof(line) ? count - 1 : (int)sizeof(line) - 2] = '\0';
    ml_printable_clean(line);
    const size_t bytes = strlen(line) + 1;
    line[bytes - 1] = '\n';
    if (write(triggers->log_fd, line, bytes) == (ssize_t)bytes) {
        triggers->log_bytes += bytes;
    }
}

static void
trigger_of(const struct memlog_service_decision *decision, struct ml_dump_trigger *out_trigger) {
    out_trigger->decision = *decision;
    out_trigger->decision.memory = 0; /* a place of one look */
    ml_string_copy(out_trigger->reason, sizeof(out_trigger->reason), decision->reason);
}

void ml_engine_trigger_decided(
    struct ml_engine *engine,
    enum memlog_service_trigger_kind kind,
    bool is_dump,
    const char *what,
    const char *why
) {
    engine->triggers->decisions[kind][is_dump ? 1 : 0]++;
    write_log(engine, is_dump, kind, what, why);
}

/* A dump that is being taken for a trigger. */
struct triggered {
    struct ml_engine *engine;
    struct ml_dump_trigger trigger;
};

static void on_triggered_dump(void *context, const char *path, bool complete, const char *trouble) {
    struct triggered *triggered = context;
    struct ml_engine *engine = triggered->engine;
    const enum memlog_service_trigger_kind kind = triggered->trigger.decision.kind;
    if (path[0] == '\0') {
        write_log(engine, true, kind, "failed", trouble);
    } else {
        engine->triggers->dumps_count++;
        write_log(engine, true, kind, "written", path);
    }
    ml_dump_notice(engine, path, triggered->trigger.reason, complete, trouble);
    if (path[0] != '\0' && engine->uploader != NULL) {
        ml_uploader_submit(engine->uploader, path, NULL, NULL);
    }
    free(triggered);
}

static void dump(struct ml_engine *engine, const struct ml_dump_trigger *trigger) {
    struct triggered *triggered = calloc(1, sizeof(*triggered));
    if (triggered == NULL) {
        return;
    }
    *triggered = (struct triggered){.engine = engine, .trigger = *trigger};
    ml_engine_dump_as(
        engine,
        MEMLOG_SERVICE_DUMP_REASON_THRESHOLD,
        &triggered->trigger,
        on_triggered_dump,
        triggered
    );
}

/* Remember what a later service must know. */
static void remember(struct ml_engine *engine, const struct memlog_service_decision *decision) {
    struct ml_member *member = ml_members_find(&engine->members, decision->id);
    if (decision->kind == MEMLOG_SERVICE_TRIGGER_KIND_FOOTPRINT && member != NULL) {
        member->footprint_dumped_bytes = member->footprint_bytes;
    }
    ml_cgroups_remember(engine, decision->memory, decision->kind);
}

/* Remember the time of a dump, whatever it is for. */
static void remember_time(struct ml_engine *engine) {
    struct ml_engine_triggers *triggers = engine->triggers;
    if (triggers->dumped_count == ML_TRIGGER_DUMPED) {
        triggers->dumped_count--;
        memmove(
            triggers->dumped_ns,
            triggers->dumped_ns + 1,
            triggers->dumped_count * sizeof(triggers->dumped_ns[0])
        );
    }
    triggers->dumped_ns[triggers->dumped_count++] = ml_clock_timestamp(engine->clock).monotonic_ns;
}

static void
on_decided(void *context, enum ml_status status, const struct memlog_service_observe_reply *reply) {
    struct ml_engine *engine = context;
    struct ml_engine_triggers *triggers = engine->triggers;
    struct ml_dump_trigger first = {.reason = ""};
    triggers->asked--;
    for (uint32_t i = 0; status == ML_OK && i < reply->decisions.count; i++) {
        const struct memlog_service_decision *decision = &reply->decisions.items[i];
        struct ml_dump_trigger trigger;
        trigger_of(decision, &trigger);
        const char *what = decision->dump ? "dump" : "no dump";
        ml_engine_trigger_decided(engine, decision->kind, decision->dump, what, trigger.reason);
        if (decision->dump) {
            remember(engine, decision);
        }
        if (decision->dump && !first.decision.dump) {
            first = trigger;
        }
    }
    if (first.decision.dump) {
        remember_time(engine);
    }
    if (first.decision.dump && triggers->on_flushed != NULL && engine->uploader == NULL) {
        triggers->last = first; /* the run ends, and its last dump is for this */
    } else if (first.decision.dump) {
        dump(engine, &first);
    }
    if (triggers->on_flushed != NULL && triggers->asked == 0) {
        void (*on_flushed)(struct ml_engine *) = triggers->on_flushed;
        triggers->on_flushed = NULL;
        on_flushed(engine);
    }
}

/* Observe a process as it is now. False: there is nothing to tell. */
static bool look_at_process(
    struct ml_engine *engine,
    struct ml_member *member,
    bool whole,
    bool oom,
    struct memlog_service_observed_process *out_process
) {
    if (!ml_recording_in_service(member->recording)) {
        return false;
    }
    *out_process = (struct memlog_service_observed_process
    ){.id = member->id, .is_first = member->birth == ML_BIRTH_ROOT};
    if (ml_member_set_state(member, ML_MEMBER_EVENT_TELL) == ML_OK) {
        out_process->killed_by = (uint32_t)member->ending.signal;
        out_process->by_oom = oom && member->ending.signal == SIGNAL_KILL;
        out_process->footprint_bytes = member->footprint_bytes;
        return true;
    }
    if (!whole || member->state != ML_MEMBER_RUNNING) {
        return false;
    }
    member->looks += member->looks == 0 ? 1 : 0; /* so that its memory is read */
    ml_member_look(engine, member);
    out_process->footprint_bytes = member->footprint_bytes;
    out_process->footprint_high_bytes = member->footprint_dumped_bytes;
    return true;
}

static void look(struct ml_engine *engine, bool whole) {
    struct ml_engine_triggers *triggers = engine->triggers;
    struct memlog_service_observed_memory memories[ML_TRIGGER_MEMORIES];
    struct memlog_service_observed_process *processes =
        calloc((size_t)engine->members.count + 1, sizeof(*processes));
    uint32_t count = 0;
    uint32_t *ids = NULL;
    const struct memlog_service_moment now = ml_clock_timestamp(engine->clock);
    const uint64_t oom_kills = ml_oom_kills();
    if (oom_kills > triggers->oom_kills) {
        triggers->oom_ns = now.monotonic_ns;
    }
    triggers->oom_kills = oom_kills;
    const bool oom = triggers->oom_ns != 0 && now.monotonic_ns - triggers->oom_ns < oom_recent_ns;
    for (uint32_t i = 0; processes != NULL && i < engine->members.count; i++) {
        if (look_at_process(engine, engine->members.items[i], whole, oom, &processes[count])) {
            count++;
        }
    }
    struct memlog_service_observe_request request = {
        .observation = {
            .now = now,
            .whole = whole,
            .processes = {.items = processes, .count = count},
            .memories = {.items = memories, .count = ml_cgroups_look(engine, memories, &ids)},
            .dumped_ns = {.items = triggers->dumped_ns, .count = triggers->dumped_count},
        }};
    (void)!getrandom(&request.observation.random, sizeof(request.observation.random), 0);
    triggers->asked++;
    ML_SERVICE_ASK(&engine->link, memlog_service_observe, &request, on_decided, engine);
    free(processes);
    free(ids);
}

/* A service that is starting answers once it serves. */
static bool has_service(const struct ml_engine *engine) {
    return engine->service_state == ML_ENGINE_SERVING ||
           ml_engine_service_is_starting(engine->service_state);
}

/* A service that has not answered is not asked again. */
static bool may_look(const struct ml_engine *engine) {
    return has_service(engine) && engine->triggers->asked == 0 && engine->phase == ML_PHASE_RUNNING;
}

static void on_look(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_engine *engine = watcher->data;
    if (may_look(engine)) {
        look(engine, watcher == &engine->triggers->look_timer);
    }
}

static void on_killed(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)events;
    struct ml_engine *engine = watcher->data;
    ev_timer_stop(loop, watcher);
    if (may_look(engine)) {
        engine->triggers->killed_waits = false;
        look(engine, false);
    } else if (engine->triggers->asked > 0) {
        ev_timer_start(loop, watcher);
    }
}

void ml_engine_member_killed(struct ml_engine *engine, const struct ml_member *member) {
    struct ml_engine_triggers *triggers = engine->triggers;
    if (member->ending.signal == SIGNAL_KILL && engine->options->triggers.service.killed &&
        ml_recording_in_service(member->recording) && engine->phase != ML_PHASE_CLOSED) {
        triggers->killed_waits = true;
        if (!ev_is_active(&triggers->killed_timer)) {
            ml_timer_start(engine->loop, &triggers->killed_timer, killed_delay_s);
        }
    }
}

bool ml_engine_triggers_flush(
    struct ml_engine *engine, void (*on_flushed)(struct ml_engine *engine)
) {
    struct ml_engine_triggers *triggers = engine->triggers;
    ev_timer_stop(engine->loop, &triggers->killed_timer);
    if (!triggers->killed_waits || !has_service(engine)) {
        return false;
    }
    triggers->killed_waits = false;
    triggers->on_flushed = on_flushed;
    look(engine, false);
    return true;
}

void ml_engine_triggers_init(struct ml_engine *engine) {
    struct ml_engine_triggers *triggers = engine->triggers;
    const double interval_s = (double)engine->options->triggers.interval_seconds;
    triggers->log_fd = -1;
    triggers->oom_kills = ml_oom_kills();
    ml_timer_init(&triggers->killed_timer, on_killed, engine);
    ml_timer_init_every(&triggers->look_timer, on_look, interval_s, engine);
    ml_timer_init_every(&triggers->memory_timer, on_look, memory_interval_s, engine);
    ev_timer_start(engine->loop, &triggers->look_timer);
    if (ml_trigger_rules_watch_memory(&engine->options->triggers)) {
        ev_timer_start(engine->loop, &triggers->memory_timer);
    }
}

void ml_engine_triggers_fini(struct ml_engine *engine) {
    struct ml_engine_triggers *triggers = engine->triggers;
    ev_timer_stop(engine->loop, &triggers->look_timer);
    ev_timer_stop(engine->loop, &triggers->memory_timer);
    ev_timer_stop(engine->loop, &triggers->killed_timer);
    ml_descriptor_close(&triggers->log_fd);
    ml_cgroups_fini(engine);
}
