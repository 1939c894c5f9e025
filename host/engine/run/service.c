#include "host/engine/run/service.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/size.h"
#include "host/engine/commands/connection.h"
#include "host/engine/lifecycle.h"
#include "host/engine/members/governor.h"
#include "host/engine/members/rate.h"
#include "host/engine/members/recorder.h"
#include "host/engine/run/finish.h"
#include "host/engine/views/peaks.h"
#include "host/process/cgroup_info.h"
#include "host/process/clock.h"
#include "host/process/loop.h"
#include "ipc/wire/last_words.h"

enum { NS_PER_MS = 1000000 };

/* From the end of its socket to the end of the process, of which we want to tell the reason. */
static const double dying_s = 0.01;

static void add_gap(
    struct ml_engine *engine,
    const struct memlog_service_moment *from,
    const struct memlog_service_moment *to,
    const char *reason
) {
    if (engine->gaps_count == ML_GAPS_MAX) { /* the two oldest become one */
        engine->gaps[0].to = engine->gaps[1].to;
        memmove(&engine->gaps[1], &engine->gaps[2], (ML_GAPS_MAX - 2) * sizeof(engine->gaps[0]));
        engine->gaps_count--;
    }
    struct ml_gap *gap = &engine->gaps[engine->gaps_count++];
    *gap = (struct ml_gap){.from = *from, .to = *to};
    (void)snprintf(gap->reason, sizeof(gap->reason), "%s", reason);
}

/* Whose data it was at work on; 0: nobody's. */
static uint32_t last_words(struct ml_engine *engine) {
    struct ml_last_words words = {.client = 0};
    const struct ml_last_words none = {.client = 0};
    if (pread(engine->supervisor->words_fd, &words, sizeof(words), 0) != (ssize_t)sizeof(words)) {
        return 0;
    }
    (void)!pwrite(engine->supervisor->words_fd, &none, sizeof(none), 0);
    return words.client;
}

/* Who makes service after service die is read no more; the others go on. */
static void leave_out(struct ml_engine *engine, uint32_t id) {
    struct ml_member *member = ml_members_find(&engine->members, id);
    if (member == NULL || ml_recording_is_lost(member->recording)) {
        return;
    }
    char reason[128];
    (void)snprintf(
        reason,
        sizeof(reason),
        "recorded no more: %d services in a row died while they read it",
        ML_RESTART_POISON_DEATHS
    );
    ml_engine_notice(engine, "%s (%d) is %s", member->name, (int)member->pid, reason);
    ml_member_lost(engine, member, reason);
}

static void set_state(struct ml_engine *engine, enum ml_engine_service_event event) {
    const enum ml_engine_service next = ml_engine_service_next(engine->service_state, event);
    engine->members.forbidden_count += next == ML_ENGINE_FORBIDDEN;
    engine->service_state = next != ML_ENGINE_FORBIDDEN ? next : engine->service_state;
}

static void give_up(struct ml_engine *engine, const char *why) {
    const bool first = ml_engine_service_is_starting(engine->service_state);
    set_state(engine, ML_ENGINE_GIVE_UP);
    ml_engine_notice(
        engine,
        first ? "memlog-service did not start (%s): nothing is recorded"
              : "memlog-service is gone (%s): the program goes on, but nothing is recorded now",
        why
    );
    ml_engine_quiet_members(engine);
    ml_finish_resume(engine);
}

static void on_service_gone(void *context, const char *why) {
    struct ml_engine *engine = context;
    struct ml_supervisor *supervisor = engine->supervisor;
    const struct memlog_service_moment now = ml_clock_timestamp(engine->clock);
    const bool served = engine->service_state == ML_ENGINE_SERVING;
    const uint64_t served_ns =
        served ? now.monotonic_ns - supervisor->serving_since.monotonic_ns : 0;
    const bool was_dead = ml_engine_service_is_dead(engine->service_state);
    if (!was_dead) {
        supervisor->died = now;
    }
    set_state(engine, ML_ENGINE_DIED);
    const struct ml_restart_verdict verdict = ml_restart_policy_died(
        &supervisor->restart_policy, served_ns / NS_PER_MS, last_words(engine)
    );
    uint32_t lost = 0;
    const bool had_any = ml_engine_detach_members(engine, &lost);
    /* The first one may take clients before it says that it is ready. What a later one takes by
     * then lies in the time in which nothing was seen. */
    if (served || (had_any && !was_dead)) {
        char reason[256];
        char ended[64] = "";
        if (lost > 0) {
            (void)snprintf(ended, sizeof(ended), ", with the profiles of %u ended processes", lost);
        }
        (void)snprintf(
            reason, sizeof(reason), "what memlog-service had recorded is gone with it%s", ended
        );
        add_gap(engine, &supervisor->serving_since, &now, reason);
    }
    leave_out(engine, verdict.poison);
    if (!verdict.again) {
        give_up(engine, why);
        return;
    }
    ml_timer_start(
        engine->loop, &supervisor->restart_timer, dying_s + (double)verdict.delay_ms / 1000.
    );
}

/* Say how the last one ended. Whether it was killed. */
static bool tell_ending(struct ml_engine *engine) {
    char *const out_text = engine->supervisor->last_ending;
    const size_t text_bytes = sizeof(engine->supervisor->last_ending);
    struct ml_ending ending = engine->supervisor->ending;
    if (!ending.known) {
        ending = ml_process_ending(engine->link.pid, engine->link.pidfd);
    }
    const bool was_killed = ending.known && ending.signal != 0;
    if (was_killed) {
        (void
        )snprintf(out_text, text_bytes, "memlog-service was killed by signal %d", ending.signal);
    } else if (ending.known) {
        (void)snprintf(out_text, text_bytes, "memlog-service ended with %d", ending.exit_code);
    } else {
        (void)snprintf(out_text, text_bytes, "memlog-service ended");
    }
    return was_killed;
}

static void on_service_ready(void *context, const char *missing_sandbox) {
    struct ml_engine *engine = context;
    struct ml_supervisor *supervisor = engine->supervisor;
    const bool takes_over = ml_engine_service_is_dead(engine->service_state);
    set_state(engine, ML_ENGINE_READY);
    if (takes_over) {
        const struct memlog_service_moment now = ml_clock_timestamp(engine->clock);
        supervisor->serving_since = now;
        char reason[128];
        (void)snprintf(reason, sizeof(reason), "%s: nothing was seen", supervisor->last_ending);
        add_gap(engine, &supervisor->died, &now, reason);
        ml_engine_notice(
            engine,
            "%s; another one has taken over, what was recorded before is not in the dumps from now "
            "on",
            supervisor->last_ending
        );
        /* Last, for this one may die over what it is given, which is noticed while it is given. */
        ml_engine_attach_members(engine, supervisor->last_ending);
        if (engine->service_state == ML_ENGINE_SERVING) {
            ml_finish_resume(engine);
        }
        return;
    }
    if (missing_sandbox[0] != '\0' && engine->options->sandbox == ML_SANDBOX_AUTO) {
        ml_engine_notice(
            engine,
            "this system has, or permits, no whole sandbox for the service; missing: %s",
            missing_sandbox
        );
    }
}

static void on_client_lost(void *context, uint32_t id, const char *reason) {
    struct ml_engine *engine = context;
    struct ml_member *member = ml_members_find(&engine->members, id);
    if (member == NULL) {
        return;
    }
    ml_engine_notice(
        engine, "%s (%d) is recorded no more: %s", member->name, (int)member->pid, reason
    );
    ml_member_lost(engine, member, reason);
}

/* The service lives longest when the largest process tells it less. */
static void sample_coarser(struct ml_engine *engine, struct ml_member *member, uint64_t bytes) {
    if (member->state != ML_MEMBER_RUNNING || !ml_recording_is_on(member->recording) ||
        bytes <= member->endpoint.control.sampling_bytes || bytes > ML_SAMPLING_MAX_BYTES) {
        return;
    }
    if (ml_member_interval(engine, member, bytes) != ML_OK) {
        return;
    }
    member->overhead.least_bytes = bytes;
    char size[ML_SIZE_TEXT_BYTES];
    (void)snprintf(
        member->note,
        sizeof(member->note),
        "sampled, one allocation in %s: memlog-service ran short of memory",
        ml_size_text(bytes, size)
    );
    if (ml_engine_says_first(engine, ML_SAID_COARSER)) {
        ml_engine_notice(
            engine,
            "memlog-service runs short of memory: %s (%d) is sampled from now on, one allocation "
            "in "
            "%s; --service-memory=BYTES gives it more",
            member->name,
            (int)member->pid,
            size
        );
    }
}

/* Its note tells what it lost, unless that is worse still: it is recorded no more. */
static void note_totals(struct ml_member *member, const char *why) {
    if (!ml_recording_is_lost(member->recording)) {
        (void
        )snprintf(member->note, sizeof(member->note), "totals alone, not what is live: %s", why);
    }
}

static void say_quota(struct ml_engine *engine, struct ml_member *member, uint64_t bytes) {
    char size[ML_SIZE_TEXT_BYTES];
    char why[ML_SIZE_TEXT_BYTES + 80];
    (void)snprintf(
        why,
        sizeof(why),
        "over its quota of memory in memlog-service, %s (--client-memory)",
        ml_size_text(bytes, size)
    );
    note_totals(member, why);
    if (ml_engine_says_first(engine, ML_SAID_QUOTA)) {
        ml_engine_notice(
            engine,
            "%s (%d) is over its quota of memory in memlog-service, %s: of it totals alone are "
            "kept "
            "from now on, not what is live; --client-memory=BYTES gives it more, or "
            "--service-memory=BYTES all of them",
            member->name,
            (int)member->pid,
            size
        );
    }
}

static void say_dropped(struct ml_engine *engine, struct ml_member *member) {
    note_totals(member, "memlog-service ran out of memory");
    if (ml_engine_says_first(engine, ML_SAID_DROPPED)) {
        ml_engine_notice(
            engine,
            "memlog-service runs out of memory: of %s (%d) it keeps totals alone from now on, not "
            "what is live; --service-memory=BYTES gives it more",
            member->name,
            (int)member->pid
        );
    }
}

static void
on_memory_short(void *context, const struct memlog_service_memory_short_request *request) {
    struct ml_engine *engine = context;
    struct ml_member *member = ml_members_find(&engine->members, request->id);
    if (member == NULL) {
        return;
    }
    if (!request->dropped) {
        sample_coarser(engine, member, request->sampling_bytes);
    } else if (request->quota) {
        say_quota(engine, member, request->max_bytes);
    } else {
        say_dropped(engine, member);
    }
}

static uint64_t on_hear(void *context, uint32_t id) {
    struct ml_engine *engine = context;
    const uint64_t ticks = ml_engine_timestamp(engine).ticks;
    const struct ml_member *member = ml_members_find(&engine->members, id);
    if (member != NULL) {
        ml_connection_hear(engine, member->connection_id);
    }
    return ticks;
}

/* A quarter of what the machine, or the tightest of the control groups that we are in, has: the
 * rest is the programs'. 0: not known. */
static uint64_t default_memory_bytes(void) {
    enum { SERVICE_PART = 4 };
    struct memlog_service_observed_memory machine = {.limit_bytes = 0};
    struct ml_cgroup group;
    if (!ml_machine_read(&machine)) {
        machine.limit_bytes = 0;
    }
    const uint64_t limit = ml_cgroup_of(getpid(), &group) ? ml_cgroup_least_limit_bytes(&group) : 0;
    const bool is_tighter = limit != 0 && (machine.limit_bytes == 0 || limit < machine.limit_bytes);
    return (is_tighter ? limit : machine.limit_bytes) / SERVICE_PART;
}

static enum ml_status start(struct ml_engine *engine, struct ml_error_message *error) {
    struct ml_supervisor *supervisor = engine->supervisor;
    const struct ml_options *options = engine->options;
    const struct ml_service_start service = {
        .path = supervisor->path,
        .sandbox = options->sandbox,
        .inherited = engine->inherited,
        .words_fd = supervisor->words_fd,
        .one_worker = supervisor->restart_policy.deaths > 0,
        .setup = {
            .version = MEMLOG_SERVICE_SERVICE_VERSION,
            .clock = (enum memlog_service_clock)engine->clock,
            .start = engine->start,
            .keep_processes = options->keep_processes,
            .max_memory_bytes = options->service_memory_bytes != 0 ? options->service_memory_bytes
                                                                   : default_memory_bytes(),
            .max_client_bytes = options->client_memory_bytes,
            .triggers = options->triggers.service,
        }};
    const struct ml_service_events events = {
        .on_ready = on_service_ready,
        .on_gone = on_service_gone,
        .on_client_lost = on_client_lost,
        .on_memory_short = on_memory_short,
        .on_hear = on_hear,
        .context = engine,
    };
    supervisor->ending = (struct ml_ending){.known = false};
    const enum ml_status status =
        ml_service_link_open(&engine->link, engine->loop, &service, &events, error);
    if (status == ML_OK && engine->on_service != NULL) {
        engine->on_service(engine->context, engine->link.pid);
    }
    return status;
}

static void on_restart_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_engine *engine = watcher->data;
    struct ml_error_message error = {.text = ""};
    /* One that has only lost its socket must not go on beside its successor. */
    if (engine->link.pidfd >= 0) {
        (void)syscall(SYS_pidfd_send_signal, engine->link.pidfd, SIGKILL, NULL, 0);
    }
    const bool was_killed = tell_ending(engine);
    ml_service_link_close(&engine->link);
    ml_peaks_forget(engine);
    if (ml_engine_service_is_starting(engine->service_state) && !was_killed) {
        give_up(
            engine, engine->supervisor->last_ending
        ); /* it cannot run here, and will not another time */
        return;
    }
    if (start(engine, &error) != ML_OK) {
        give_up(engine, error.text);
    }
}

enum ml_status
ml_engine_service_open(struct ml_engine *engine, const char *path, struct ml_error_message *error) {
    struct ml_supervisor *supervisor = engine->supervisor;
    ml_rates_init(engine);
    ml_governor_init(engine);
    ml_timer_init(&supervisor->restart_timer, on_restart_timer, engine);
    supervisor->serving_since = engine->start;
    supervisor->path = strdup(path);
    engine->link.pidfd = -1;
    supervisor->words_fd = memfd_create("memlog-last-words", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (supervisor->words_fd >= 0 &&
        (ftruncate(supervisor->words_fd, ML_LAST_WORDS_BYTES) != 0 ||
         fcntl(supervisor->words_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0
        )) {
        ml_descriptor_close(&supervisor->words_fd); /* then nobody is suspected */
    }
    const enum ml_status status = supervisor->path != NULL ? start(engine, error) : ML_ENV_MEMORY;
    if (status != ML_OK) {
        ml_engine_service_close(engine);
    }
    return status;
}

void ml_engine_service_close(struct ml_engine *engine) {
    struct ml_supervisor *supervisor = engine->supervisor;
    ev_timer_stop(engine->loop, &supervisor->restart_timer);
    ml_rates_fini(engine);
    ml_governor_fini(engine);
    ml_service_link_close(&engine->link);
    free(supervisor->path);
    supervisor->path = NULL;
    ml_descriptor_close(&supervisor->words_fd);
}
