#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "host/engine/attach/attach.h"
#include "host/engine/commands/connection.h"
#include "host/engine/commands/listen.h"
#include "host/engine/dump/folder.h"
#include "host/engine/dump/jobs.h"
#include "host/engine/dump/names.h"
#include "host/engine/lifecycle.h"
#include "host/engine/list/events.h"
#include "host/engine/list/known.h"
#include "host/engine/list/list.h"
#include "host/engine/list/walk.h"
#include "host/engine/members/members.h"
#include "host/engine/members/governor.h"
#include "host/engine/members/rate.h"
#include "host/engine/members/recorder.h"
#include "host/engine/members/targets.h"
#include "host/engine/members/watch.h"
#include "host/engine/run/finish.h"
#include "host/engine/run/service.h"
#include "host/engine/state.h"
#include "host/engine/triggers/cgroups.h"
#include "host/engine/triggers/peak.h"
#include "host/engine/triggers/triggers.h"
#include "host/engine/views/views.h"
#include "host/process/clock.h"
#include "host/process/paths.h"

/* Resident and private memory of all processes through time: 50 of them for a month take 2 MB. */
enum { HISTORIES_MAX_BYTES = 16 << 20 };

static void watch(struct ml_engine *engine) {
    ml_attach_init(engine);
    ml_listen_init(engine);
    ml_watch_init(engine);
    ml_list_init(engine);
    ml_views_init(engine);
    ml_dump_jobs_init(engine);
    ml_finish_init(engine);
    ml_engine_triggers_init(engine);
    ml_peak_init(engine);
}

static enum ml_status open_uploader(struct ml_engine *engine, struct ml_error_message *error) {
    if (engine->options->upload.url == NULL) {
        return ML_OK;
    }
    const struct ml_uploader_setup setup = {
        .loop = engine->loop,
        .options = engine->options,
        .inherited = engine->inherited,
        .on_helper = engine->on_service,
        .on_notice = engine->on_notice,
        .context = engine->context,
    };
    return ml_uploader_open(&setup, &engine->uploader, error);
}

static enum ml_status open_lease(struct ml_engine *engine, struct ml_error_message *error) {
    engine->lease_fd = ml_endpoint_lease();
    if (engine->lease_fd >= 0) {
        return ML_OK;
    }
    ml_error_set(error, "cannot make a memory file: %s", strerror(errno));
    return ML_ENV_SYSTEM;
}

static void free_unopened(struct ml_engine *engine) {
    ml_descriptor_close(&engine->lease_fd);
    ml_targets_close(engine);
    free(engine);
}

/* What comes behind a member: the image that its process has become, or a look of the triggers. */
static void on_member_end(struct ml_engine *engine, const struct ml_member *member) {
    if (member->state == ML_MEMBER_REPLACED) {
        ml_list_member_replaced(engine, member);
    } else {
        ml_engine_member_killed(engine, member);
    }
    ml_attach_member_ended(engine, member);
}

/* The engine and what its modules keep of it. */
struct whole {
    struct ml_engine engine; /* first: who frees it frees all */
#define WHOLE(type, name) struct type name;
    ML_ENGINE_PARTS(WHOLE)
};

static struct ml_engine *engine_new(void) {
    struct whole *whole = calloc(1, sizeof(*whole));
    if (whole == NULL) {
        return NULL;
    }
    struct ml_engine *engine = &whole->engine;
#define POINT(type, name) engine->name = &whole->name;
    ML_ENGINE_PARTS(POINT)
    engine->on_member_end = on_member_end;
    engine->serve_attached = ml_listen_serve_attached;
    engine->phase = ML_PHASE_RUNNING;
    engine->service_state = ML_ENGINE_STARTING;
    return engine;
}

enum ml_status ml_engine_open(
    const struct ml_engine_setup *setup,
    struct ml_engine **out_engine,
    struct ml_error_message *error
) {
    struct ml_engine *engine = engine_new();
    if (engine == NULL) {
        return ML_ENV_MEMORY;
    }
    engine->loop = setup->loop;
    engine->options = setup->options;
    engine->inherited = setup->inherited;
    engine->on_notice = setup->on_notice;
    engine->context = setup->context;
    engine->clock = ml_clock_decide(ML_CLOCK_SOURCE_PATH);
    engine->start = ml_clock_timestamp(engine->clock);
    engine->root_image = ML_IMAGE_PRELOADABLE;
    engine->memory_room.most_bytes = HISTORIES_MAX_BYTES;
    ml_members_init(&engine->members, engine);
    ml_pipe_budget_init(
        &engine->budget,
        ML_PIPE_QUOTA_FOLDER,
        getuid(),
        ml_pipe_privileged(),
        ml_socket_directory_others()
    );
    engine->fork_pipe_bytes = ml_pipe_budget_fork_bytes(&engine->budget);
    enum ml_status status = open_lease(engine, error);
    if (status == ML_OK) {
        status = ml_targets_open(engine, error);
    }
    if (status == ML_OK) {
        status = ml_socket_directory_open(&engine->directory, error);
    }
    if (status != ML_OK) {
        free_unopened(engine);
        return status;
    }
    engine->on_service = setup->on_service;
    engine->attaches->on_left = setup->on_left;
    status = ml_engine_service_open(engine, setup->service_path, error);
    if (status != ML_OK) {
        ml_socket_directory_close(&engine->directory);
        free_unopened(engine);
        return status;
    }
    watch(engine);
    engine->is_profiled = ml_process_maps(getpid(), ML_PRELOAD_FILE);
    if (engine->is_profiled) {
        ml_engine_notice(
            engine,
            "this memlog is itself being profiled, by another one that has all that is started "
            "here: a process has one profiler at a time"
        );
    }
    status = open_uploader(engine, error);
    if (status != ML_OK) {
        ml_engine_close(engine);
        return status;
    }
    *out_engine = engine;
    return ML_OK;
}

void ml_engine_close(struct ml_engine *take_engine) {
    struct ml_engine *engine = take_engine;
    if (engine == NULL) {
        return;
    }
    ml_engine_set_phase(engine, ML_PHASE_CLOSE);
    ml_engine_quiet_members(engine);
    ml_listen_fini(engine);
    ml_attach_fini(engine);
    ml_watch_fini(engine);
    ml_list_fini(engine);
    ml_uploader_close(engine->uploader);
    ml_engine_triggers_fini(engine);
    ml_peak_fini(engine);
    ml_finish_fini(engine);
    ml_views_fini(engine);
    ml_dump_jobs_fini(engine);
    ml_engine_service_close(engine);
    for (uint32_t i = 0; i < engine->members.count; i++) {
        ml_member_release(engine, engine->members.items[i]);
    }
    if (engine->members.forbidden_count > 0) {
        ml_engine_notice(
            engine,
            "a bug of memlog: %u changes of its state came out of order and were ignored; what the "
            "dumps say of single processes may lack something",
            engine->members.forbidden_count
        );
    }
    ml_members_fini(&engine->members);
    ml_roots_fini(&engine->roots);
    ml_memory_history_fini(&engine->tree_memory);
    for (uint32_t i = 0; i < engine->not_profiled_count; i++) {
        free(engine->not_profiled[i].path);
    }
    free(engine->not_profiled);
    free_unopened(engine);
}

enum ml_engine_service ml_engine_service_state(const struct ml_engine *engine) {
    return engine->service_state;
}

const char *ml_engine_client_path(const struct ml_engine *engine) {
    return engine->directory.client_path;
}

enum ml_status ml_engine_preload_path(
    struct ml_engine *engine,
    const char *path,
    const char **out_path,
    struct ml_error_message *error
) {
    enum ml_status status = ML_OK;
    char folder[PATH_MAX];
    const bool has_folder = ml_paths_preload_folder(path, folder);
    const char *beginning = has_folder ? folder : path;
    if (strpbrk(beginning, " :$") != NULL) {
        status = ml_socket_directory_alias(&engine->directory, beginning, error);
        beginning = engine->directory.alias_path;
    }
    const int count = snprintf(
        engine->preload_path,
        sizeof(engine->preload_path),
        "%s%s",
        beginning,
        has_folder ? "/" ML_PRELOAD_PLATFORM "/" ML_PRELOAD_FILE : ""
    );
    if (status == ML_OK && (count < 0 || (size_t)count >= sizeof(engine->preload_path))) {
        ml_error_set(error, "%s: the path is too long for a preload", path);
        status = ML_ENV_REFUSED;
    }
    *out_path = engine->preload_path;
    return status;
}

enum ml_status ml_engine_set_root(
    struct ml_engine *engine, pid_t pid, char *const *argv, struct ml_error_message *error
) {
    enum ml_status status =
        ml_dumps_open(&engine->jobs->folder, engine->options->output, argv[0], pid, error);
    if (status != ML_OK) {
        return status;
    }
    engine->root = pid;
    engine->list->walked_ns = ml_clock_timestamp(engine->clock).monotonic_ns;
    ml_list_walk_soon(engine);
    engine->root_argv = argv;
    return ML_OK;
}

void ml_engine_set_root_image(struct ml_engine *engine, enum ml_image_kind kind) {
    engine->root_image = kind;
}

void ml_engine_child_ended(struct ml_engine *engine, pid_t pid, const struct ml_ending *ending) {
    if (pid == engine->link.pid) {
        engine->supervisor->ending = *ending;
        return;
    }
    struct ml_member *member = ml_members_running(&engine->members, pid);
    if (member != NULL) {
        ml_member_end_process(engine, member, ending);
        return;
    }
    const bool is_helper = ml_list_is_helper(engine, pid);
    if (!ml_list_child_ended(engine, pid, ending)) {
        ml_engine_keep_ending(engine, pid, ending, is_helper);
    }
}
