/* The host without a program of its own: sockets, members, service, dumps, on somebody's libev
 * loop. Room: host. Context: the thread of that loop.
 *
 * One rule: the engine never waits. Everything that takes time answers by a callback; only closing
 * is immediate. */
#ifndef MEMLOG_HOST_ENGINE_ENGINE_H
#define MEMLOG_HOST_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/error_message.h"
#include "host/engine/processes/recording.h"
#include "host/policy/command_line.h"
#include "host/policy/options.h"
#include "host/policy/role.h"
#include "host/process/image.h"
#include "host/process/info.h"
#include "host/process/launcher.h"
#include "ipc/wire/ml_status.h"
#include "mojom_like_idl/contracts/heap_client_mojom.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"

/* What the names of dumps end with. */
#define ML_DUMP_SUFFIX ".pftrace"

struct ev_loop;
struct ml_uploader;
struct ml_engine;
struct ml_member;

struct ml_engine_setup {
    struct ev_loop *loop;
    const struct ml_options *options;     /* outlive the engine */
    const struct ml_inherited *inherited; /* for the programs that it starts */
    const char *service_path;
    /* A service was started: it is no part of the program. NULL: nobody needs to know. */
    void (*on_service)(void *context, pid_t pid);
    /* Something that people should know, one line. */
    void (*on_notice)(void *context, const char *text);
    void *context;
};

/* Make the sockets and start the service.
 *
 * Errors: ML_ENV_* with an error message.
 * Owner:  ml_engine_close. */
ML_NODISCARD enum ml_status ml_engine_open(
    const struct ml_engine_setup *setup,
    struct ml_engine **out_engine,
    struct ml_error_message *error
);

/* A process of the host's own, which is no part of the program. */
void ml_engine_add_helper(struct ml_engine *engine, pid_t pid);

/* Close and remove everything; processes that still run go dormant. NULL is allowed. */
void ml_engine_close(struct ml_engine *take_engine);

/* Whether the service serves yet. */
enum ml_engine_service {
    ML_ENGINE_FORBIDDEN = 0,
    ML_ENGINE_STARTING,
    ML_ENGINE_STARTING_AGAIN, /* the first one has died before it served */
    ML_ENGINE_SERVING,
    ML_ENGINE_RESTARTING, /* it has died; another one is about to take over */
    ML_ENGINE_ALONE,      /* for good */
    ML_ENGINE_SERVICE_COUNT
};

/* None has served yet. */
static inline bool ml_engine_service_is_starting(enum ml_engine_service state) {
    return state == ML_ENGINE_STARTING || state == ML_ENGINE_STARTING_AGAIN;
}

enum ml_engine_service ml_engine_service_state(const struct ml_engine *engine);

/* Where processes connect: MEMLOG_SOCKET. */
const char *ml_engine_client_path(const struct ml_engine *engine);

/* The library to preload as LD_PRELOAD is to name it: such that loaders that cannot take it find
 * nothing (ml_paths_preload_folder), and without blanks, colons and dollars. Lives as long as the
 * engine.
 *
 * Errors: ML_ENV_SYSTEM, ML_ENV_REFUSED (too long) with an error message. */
ML_NODISCARD enum ml_status ml_engine_preload_path(
    struct ml_engine *engine,
    const char *path,
    const char **out_path,
    struct ml_error_message *error
);

/* The program that the run is about, before it makes its exec; opens the folder for its dumps.
 *
 * Errors: as ml_dumps_open. Owner:  `argv` is borrowed for the engine's life. */
ML_NODISCARD enum ml_status ml_engine_set_root(
    struct ml_engine *engine, pid_t pid, char *const *argv, struct ml_error_message *error
);

/* What the kernel said of the root's image after its exec; used if it never reports itself. */
void ml_engine_set_root_image(struct ml_engine *engine, enum ml_image_kind kind);

/* A child was reaped: how it ended. A service of ours may be one. */
void ml_engine_child_ended(struct ml_engine *engine, pid_t pid, const struct ml_ending *ending);

/* How a dump went. `path` is "" when there is none; `trouble` says why, or what it lacks. */
typedef void ml_dump_done(void *context, const char *path, bool complete, const char *trouble);

/* Take a dump of all members. `on_done` is called once, perhaps before this returns. */
void ml_engine_dump(
    struct ml_engine *engine,
    enum memlog_service_dump_reason reason,
    ml_dump_done *on_done,
    void *context
);

/* A dump that somebody has asked for, in his own words. */
struct ml_engine_dump_request {
    enum memlog_service_dump_reason reason;
    const uint32_t *pids; /* of these alone; pids_count 0: whatever pid */
    size_t pids_count;
    bool has_role;
    enum memlog_service_role role; /* of that role alone */
    const char *words; /* why, for people; any bytes, words_bytes of them; 0: nothing was said */
    size_t words_bytes;
    uint32_t requester_id; /* the member that asked; 0: a person */
};

/* The same for such a request. */
void ml_engine_request_dump(
    struct ml_engine *engine,
    const struct ml_engine_dump_request *request,
    ml_dump_done *on_done,
    void *context
);

/* Why the dump of that number was taken, as far as anybody has said; "" else. */
const char *ml_engine_dump_words(const struct ml_engine *engine, uint32_t number);

/* The same of every process, with so much in it, into `file_fd`, an empty file that stays the
 * caller's, for the page: no dump of the run, and `path` is "snapshot". */
void ml_engine_snapshot(
    struct ml_engine *engine,
    enum memlog_service_dump_content content,
    int file_fd,
    ml_dump_done *on_done,
    void *context
);

/* The end of the run: drain what ended, take the final dump, answer. */
void ml_engine_finish(struct ml_engine *engine, ml_dump_done *on_done, void *context);

/* ---- what people are shown of a run; host/engine/run/view.c */

/* A process as it is now. What it points to is borrowed from the engine and good until the loop
 * goes on. */
struct ml_engine_process {
    uint32_t id; /* its index and 1 */
    uint32_t parent_id;
    pid_t pid, parent_pid;
    const char *name;
    const struct ml_command_line *line;
    enum memlog_service_role role;
    const char *state;           /* "running", "exited" ...: the same text has the same address */
    const char *note;            /* what people should know of it; "": nothing */
    enum ml_recording recording; /* 0: it has not reported itself */
    bool is_running;
    bool is_idle;       /* memlog is in it, and nobody has called its allocator since its fork */
    bool is_recordable; /* it has what a recording needs */
    bool from_startup;
    uint64_t sampling_bytes; /* of its own, or the run's */
    uint32_t stack_mode;     /* enum ml_stack_mode, likewise */
    uint64_t footprint_bytes, resident_bytes;
    struct ml_ending ending;
    struct memlog_service_moment start, end;
    uint32_t folded_processes; /* it stands for so many; 0: it is one */
};

/* How many have reported themselves; it only grows. */
uint32_t ml_engine_processes_count(const struct ml_engine *engine);

/* The one of that index, which must be below the count. */
struct ml_engine_process ml_engine_process(const struct ml_engine *engine, uint32_t index);

/* How many processes no profile tells of. */
uint32_t ml_engine_unrecorded_count(const struct ml_engine *engine);

/* The one of that index, which must be below the count; its note is why it is not recorded. */
struct ml_engine_process ml_engine_unrecorded(const struct ml_engine *engine, uint32_t index);

/* Look for the reason of that one first: it may be known better by now. */
void ml_engine_judge_unrecorded(struct ml_engine *engine, uint32_t index);

/* A client's reason in words. */
const char *ml_engine_not_profiled_text(enum memlog_client_not_profiled_reason reason);

/* A program that ran without memlog, as somebody told. Borrowed as above. */
struct ml_engine_told {
    pid_t pid, parent_pid;
    const char *path; /* "": not known */
    const char *reason;
};
uint32_t ml_engine_told_count(const struct ml_engine *engine);
struct ml_engine_told ml_engine_told(const struct ml_engine *engine, uint32_t index);

/* How many lived and are in no list. */
uint64_t ml_engine_list_missed(const struct ml_engine *engine);

/* Forked children of recorded processes that could not be recorded: their events are missing. */
uint64_t ml_engine_lost_forks(const struct ml_engine *engine);

/* Ask the service for all processes' figures. `on_reply` is called once, perhaps before this
 * returns; what it gets is good until it returns, and NULL but for ML_OK. */
typedef void ml_engine_on_figures(
    void *context, enum ml_status status, const struct memlog_service_figures_reply *reply
);
void ml_engine_figures(struct ml_engine *engine, ml_engine_on_figures *on_reply, void *context);

/* The process that runs with that pid and has reported itself; NULL: ml_engine_why_not says why
 * there is none. */
struct ml_member *ml_engine_running(const struct ml_engine *engine, pid_t pid);

/* Whether one of that pid was there and has ended. */
bool ml_engine_has_ended(const struct ml_engine *engine, pid_t pid);

/* Why nothing can be done about a process that is no member, or has ended. The engine's, until the
 * next call. */
const char *ml_engine_why_not(struct ml_engine *engine, pid_t pid);

/* How a request went: "" or why not. */
typedef void ml_control_done(void *context, const char *trouble);

/* Record a process from now on, in a clean profile; `sampling_bytes` 0: with the run's settings.
 * `on_done` is called once, perhaps before this returns. */
void ml_engine_start_member(
    struct ml_engine *engine,
    struct ml_member *member,
    uint64_t sampling_bytes,
    uint32_t stack_mode,
    ml_control_done *on_done,
    void *context
);

/* Record it no more; its profile stays as it is at this moment. */
void ml_engine_stop_member(
    struct ml_engine *engine, struct ml_member *member, ml_control_done *on_done, void *context
);

/* Of the run: borrowed for the engine's life. The program's words are NULL before
 * ml_engine_set_root; without --upload the uploader is NULL. */
const struct ml_options *ml_engine_options(const struct ml_engine *engine);
char *const *ml_engine_program(const struct ml_engine *engine);
struct ml_uploader *ml_engine_uploader(const struct ml_engine *engine);
struct memlog_service_moment ml_engine_start_moment(const struct ml_engine *engine);

/* Where its dumps lie, and *out_fd, borrowed, which leads there whatever the name does. "" and -1:
 * there is none yet. */
const char *ml_engine_dumps_folder(const struct ml_engine *engine, int *out_fd);

/* The number of the dump that was begun last; 0: none was. */
uint32_t ml_engine_last_dump(const struct ml_engine *engine);

/* Decisions and uploads, as metrics. */
void ml_engine_put_metrics(FILE *out, const struct ml_engine *engine, bool is_open);

#endif
