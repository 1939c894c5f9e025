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
#include "host/memory/history.h"
#include "host/policy/command_line.h"
#include "host/policy/options.h"
#include "host/policy/role.h"
#include "host/process/image.h"
#include "host/process/info.h"
#include "host/process/launcher.h"
#include "ipc/wire/ml_status.h"
#include "mojom_like_idl/contracts/heap_client_mojom.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"

/* The suffix of a dump's file name. */
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
    /* A service was started, which is not part of the program. May be NULL. */
    void (*on_service)(void *context, pid_t pid);
    /* One line for the person. */
    void (*on_notice)(void *context, const char *text);
    /* No process that memlog was attached to runs any more, under whatever program. May be NULL. */
    void (*on_left)(void *context);
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

/* Tell the engine of a process of the host's own, which is not part of the program. */
void ml_engine_add_helper(struct ml_engine *engine, pid_t pid);

/* Close and remove everything. Processes that still run stop recording. NULL is allowed. */
void ml_engine_close(struct ml_engine *take_engine);

/* Whether the service serves yet. */
enum ml_engine_service {
    ML_ENGINE_FORBIDDEN = 0,
    ML_ENGINE_STARTING,
    ML_ENGINE_STARTING_AGAIN, /* the first one died before it served */
    ML_ENGINE_SERVING,
    ML_ENGINE_RESTARTING, /* it died, and another one is about to take over */
    ML_ENGINE_ALONE,      /* there will be no other */
    ML_ENGINE_SERVICE_COUNT
};

/* Whether no service has served yet. */
static inline bool ml_engine_service_is_starting(enum ml_engine_service state) {
    return state == ML_ENGINE_STARTING || state == ML_ENGINE_STARTING_AGAIN;
}

enum ml_engine_service ml_engine_service_state(const struct ml_engine *engine);

/* Where processes connect: MEMLOG_SOCKET. */
const char *ml_engine_client_path(const struct ml_engine *engine);

/* The library to preload, as LD_PRELOAD names it. Loaders that cannot load it find nothing there
 * (ml_paths_preload_folder). It holds no blanks, colons or dollars, and lives as long as the
 * engine.
 *
 * Errors: ML_ENV_SYSTEM, ML_ENV_REFUSED (too long) with an error message. */
ML_NODISCARD enum ml_status ml_engine_preload_path(
    struct ml_engine *engine,
    const char *path,
    const char **out_path,
    struct ml_error_message *error
);

/* Name the program of the run before its exec, and open the folder for its dumps.
 *
 * Errors: as ml_dumps_open. Owner:  `argv` is borrowed for the engine's life. */
ML_NODISCARD enum ml_status ml_engine_set_root(
    struct ml_engine *engine, pid_t pid, char *const *argv, struct ml_error_message *error
);

/* The same of a run without a program: its dumps are named after the first process that it is
 * attached to. Errors: as ml_dumps_open. */
ML_NODISCARD enum ml_status
ml_engine_set_attached(struct ml_engine *engine, pid_t pid, struct ml_error_message *error);

/* What the kernel says of the root's image after its exec. It is the reason if the root never
 * reports itself. */
void ml_engine_set_root_image(struct ml_engine *engine, enum ml_image_kind kind);

/* A child was reaped. It may be the service. */
void ml_engine_child_ended(struct ml_engine *engine, pid_t pid, const struct ml_ending *ending);

/* How a dump went. `path` is "" when there is none. `trouble` says why, or what the dump lacks. */
typedef void ml_dump_done(void *context, const char *path, bool complete, const char *trouble);

/* Take a dump of all members. `on_done` is called once, perhaps before this returns. */
void ml_engine_dump(
    struct ml_engine *engine,
    enum memlog_service_dump_reason reason,
    ml_dump_done *on_done,
    void *context
);

/* A dump that a person or a program asks for. */
struct ml_engine_dump_request {
    enum memlog_service_dump_reason reason;
    const uint32_t *pids; /* only of these; pids_count 0: of any */
    size_t pids_count;
    bool has_role;
    enum memlog_service_role role; /* only of that role */
    const char *words; /* the reason, for people: words_bytes of any bytes; 0: none was given */
    size_t words_bytes;
    uint32_t requester_id; /* the member that asks; 0: a person */
};

/* The same for such a request. */
void ml_engine_request_dump(
    struct ml_engine *engine,
    const struct ml_engine_dump_request *request,
    ml_dump_done *on_done,
    void *context
);

/* The reason that was given for the dump of that number; "": none. */
const char *ml_engine_dump_words(const struct ml_engine *engine, uint32_t number);

/* The same of every process, with so much in it, into `file_fd`, an empty file that stays the
 * caller's, for the page: no dump of the run, and `path` is "snapshot". With `reads_memory` the
 * processes' memory is read for it, which holds each of them up a little. */
void ml_engine_snapshot(
    struct ml_engine *engine,
    enum memlog_service_dump_content content,
    bool reads_memory,
    int file_fd,
    ml_dump_done *on_done,
    void *context
);

/* End the run: read what ended processes left, take the final dump, answer. */
void ml_engine_finish(struct ml_engine *engine, ml_dump_done *on_done, void *context);

/* ---- what people are shown of a run; host/engine/run/view.c */

/* A process as it is now. Pointers are borrowed from the engine until the loop runs again. */
struct ml_engine_process {
    uint32_t id; /* its index and 1 */
    uint32_t parent_id;
    pid_t pid, parent_pid;
    const char *name;
    const struct ml_command_line *line;
    enum memlog_service_role role;
    const char *state;           /* "running", "exited" ...: the same text has the same address */
    const char *note;            /* a remark for people; "": none */
    enum ml_recording recording; /* 0: it has not reported itself */
    bool is_running;
    bool is_idle;       /* memlog is loaded, and no allocation was made since its fork */
    bool is_recordable; /* it has what a recording needs */
    bool from_startup;
    uint64_t sampling_bytes;            /* of its own, or the run's */
    uint32_t stack_mode;                /* enum ml_stack_mode, likewise */
    const struct ml_overhead *overhead; /* what memlog costs it; NULL: nothing was promised */
    uint64_t footprint_bytes, resident_bytes;
    const struct ml_memory_history *memory; /* both through time */
    struct ml_ending ending;
    struct memlog_service_moment start, end;
    uint32_t folded_processes; /* how many processes the entry stands for; 0: it is one */
};

/* How many processes have reported themselves. The number only grows. */
uint32_t ml_engine_processes_count(const struct ml_engine *engine);

/* The process of that index, which is below the count. */
struct ml_engine_process ml_engine_process(const struct ml_engine *engine, uint32_t index);

/* What all that ran held, through time. Borrowed as above. */
const struct ml_memory_history *ml_engine_tree_memory(const struct ml_engine *engine);

/* How many processes no profile tells of. */
uint32_t ml_engine_unrecorded_count(const struct ml_engine *engine);

/* The process of that index, which is below the count. Its note says why it is not recorded. */
struct ml_engine_process ml_engine_unrecorded(const struct ml_engine *engine, uint32_t index);

/* Look for its reason again: a report may have come since. */
void ml_engine_judge_unrecorded(struct ml_engine *engine, uint32_t index);

/* The text of a client's reason. */
const char *ml_engine_not_profiled_text(enum memlog_client_not_profiled_reason reason);

/* A program that ran without memlog, as a process reported. Borrowed as above. */
struct ml_engine_told {
    pid_t pid, parent_pid;
    const char *path; /* "": not known */
    const char *reason;
};
uint32_t ml_engine_told_count(const struct ml_engine *engine);
struct ml_engine_told ml_engine_told(const struct ml_engine *engine, uint32_t index);

/* How many processes lived and are in no list. */
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

/* Why a process that is not a member, or has ended, cannot be started or stopped. The text is the
 * engine's until the next call. */
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

/* The same of any process of this user by its pid: memlog attaches to one that it is not in, and
 * leaves one that it has attached to as it was. */
void ml_engine_start_process(
    struct ml_engine *engine,
    pid_t pid,
    uint64_t sampling_bytes,
    uint32_t stack_mode,
    ml_control_done *on_done,
    void *context
);
void ml_engine_stop_process(
    struct ml_engine *engine, pid_t pid, ml_control_done *on_done, void *context
);

enum { ML_ENGINE_ATTACH_TEXT_BYTES = 768 };

/* Leave all that memlog is attached to as they were; nothing is recorded of them any more, and
 * nobody is attached to. `on_done` is called once, perhaps before this returns, after 45 s at most.
 */
void ml_engine_let_go(struct ml_engine *engine, void (*on_done)(void *context), void *context);

/* Facts of the run, borrowed for the engine's life. The program is NULL before ml_engine_set_root,
 * the uploader without --upload. */
const struct ml_options *ml_engine_options(const struct ml_engine *engine);
char *const *ml_engine_program(const struct ml_engine *engine);
struct ml_uploader *ml_engine_uploader(const struct ml_engine *engine);
struct memlog_service_moment ml_engine_start_moment(const struct ml_engine *engine);

/* The folder of the dumps. *out_fd is borrowed and stays open on it even if the name changes. ""
 * and -1: there is none yet. */
const char *ml_engine_dumps_folder(const struct ml_engine *engine, int *out_fd);

/* The number of the newest dump; 0: there is none. */
uint32_t ml_engine_last_dump(const struct ml_engine *engine);

/* Decisions and uploads, as metrics. */
void ml_engine_put_metrics(FILE *out, const struct ml_engine *engine, bool is_open);

#endif
