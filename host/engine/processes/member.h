/* The processes of the tree that have reported themselves. Room: host. Context: the host's one
 * thread.
 *
 * One rule: a member is one program image of one process. An exec ends a member and begins another
 * of the same pid; ids are unique over the run and never used again. Its state changes only by the
 * table in member.c. */
#ifndef MEMLOG_HOST_ENGINE_PROCESSES_MEMBER_H
#define MEMLOG_HOST_ENGINE_PROCESSES_MEMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <ev.h>

#include "host/engine/processes/attachment.h"
#include "host/engine/processes/recording.h"
#include "host/memory/history.h"
#include "host/memory/status.h"
#include "host/policy/command_line.h"
#include "host/policy/overhead.h"
#include "host/policy/role.h"
#include "host/process/code_files.h"
#include "host/process/info.h"
#include "host/sockets/endpoint.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"

/* Same limit as the contract's (kMaxClients). */
enum { ML_MEMBERS_MAX = MEMLOG_SERVICE_MAX_CLIENTS };

/* ML_MEMBER_DEAD is 0: a cell of the table that nobody wrote is not allowed. */
enum ml_member_state {
    ML_MEMBER_DEAD = 0,
    ML_MEMBER_RUNNING,
    ML_MEMBER_EXITED,
    ML_MEMBER_KILLED,
    ML_MEMBER_REPLACED,
    ML_MEMBER_KILLED_TOLD, /* killed, and the triggers know it */
    ML_MEMBER_STATE_COUNT
};

/* What can happen to it. */
enum ml_member_event {
    ML_MEMBER_EVENT_EXIT,
    ML_MEMBER_EVENT_KILL,
    ML_MEMBER_EVENT_EXEC,
    ML_MEMBER_EVENT_TELL, /* the triggers are told how it ended */
    ML_MEMBER_EVENT_COUNT
};

/* Where a member goes from a state by an event; ML_MEMBER_DEAD: it may not. Pure. */
enum ml_member_state ml_member_next(enum ml_member_state state, enum ml_member_event event);

/* "running", "exited", "killed", "replaced". */
const char *ml_member_state_name(enum ml_member_state state);

/* The same for the service. */
enum memlog_service_process_state ml_member_state_told(enum ml_member_state state);

struct ml_members;

/* What a person asked for. It overrides the mode and stays with the process through execs. */
enum ml_request {
    ML_REQUEST_NONE = 0,
    ML_REQUEST_START,
    ML_REQUEST_STOP,
    ML_REQUEST_STARTING, /* the service has been told, and has not answered */
    ML_REQUEST_STOPPING
};

/* Whether the service has still to answer. */
static inline bool ml_request_waits(enum ml_request request) {
    return request == ML_REQUEST_STARTING || request == ML_REQUEST_STOPPING;
}

/* The request, whether answered or not. */
static inline enum ml_request ml_request_settled(enum ml_request request) {
    static const enum ml_request settled[] = {
        [ML_REQUEST_START] = ML_REQUEST_START,
        [ML_REQUEST_STOP] = ML_REQUEST_STOP,
        [ML_REQUEST_STARTING] = ML_REQUEST_START,
        [ML_REQUEST_STOPPING] = ML_REQUEST_STOP,
    };
    return settled[request];
}

/* How a member came to be. */
enum ml_birth {
    ML_BIRTH_EXEC = 0,
    ML_BIRTH_FORK,
    ML_BIRTH_ROOT /* the program that was started, and what it execs */
};

/* Which allocator a process has: memlog.service.AllocatorFacts. */
struct ml_member_allocator {
    char owner[64 + 1];
    bool in_front, in_program;
    char entry_point[32 + 1];
    char entry_point_of[64 + 1];
};

/* What was known before a member's name or command line last changed, and when that was. A look
 * between an exec and the new image's Hello sees the new program, which is another member. */
struct ml_member_before {
    struct ml_command_line line;
    char name[ML_PROCESS_NAME_BYTES];
    uint64_t changed_ns; /* CLOCK_MONOTONIC; 0: never */
    /* An exec that cannot take the preload was announced. The image ends if its exe changes. */
    bool exec_announced;
};

/* A process sends frees of unrecorded blocks until the service says that it need not. */
struct ml_member_question {
    bool is_open;
    uint32_t control_generation; /* of its control page, when the service was asked last */
};

/* Of a member without a pidfd. */
enum {
    ML_MEMBER_PIDFD_NONE = -1,
    ML_MEMBER_PIDFD_POLLED = -2 /* the kernel gave none: /proc tells of its end */
};

struct ml_member {
    uint32_t id;            /* from 1 */
    uint32_t parent_id;     /* the member whose fork or exec made it; 0: none known */
    uint32_t connection_id; /* the member that said Hello on its connection */
    pid_t pid;
    pid_t parent_pid;
    enum ml_member_state state;
    enum memlog_service_role role;
    enum ml_birth birth;
    enum ml_recording recording;         /* by ml_member_set_recording alone */
    enum ml_attachment_state attachment; /* by ml_member_set_attachment alone */
    bool from_startup;                   /* recorded from its first instruction */
    char trouble[256];                   /* why its profile cannot be complete; "" if it can */
    enum ml_request request;
    struct ml_member_question sampled_alone;
    uint64_t sampling_bytes; /* of its own; 0: the run's, and the run's stack mode */
    uint32_t stack_mode;
    struct ml_overhead overhead;          /* what memlog costs it */
    struct memlog_service_moment stopped; /* all 0: it was not */
    uint32_t profile;                     /* the one that it records, ipc/wire/staging.h */
    uint64_t fork_serial;
    uint32_t draw;   /* its random number in the sampling modes */
    uint32_t looks;  /* how often it was read in /proc */
    uint64_t groups; /* bits by place: which of the triggers' control groups it counts into */
    struct ml_command_line line;
    char name[ML_PROCESS_NAME_BYTES];
    struct ml_member_before before;
    uint64_t footprint_bytes;        /* as last read; it cannot be read after the end */
    uint64_t footprint_files_bytes;  /* of that, read with it; struct ml_footprint */
    uint64_t footprint_ticks;        /* when; 0: never */
    uint64_t footprint_dumped_bytes; /* at the last dump that it triggered; 0: none */
    uint64_t resident_bytes;
    struct ml_memory_history memory; /* both through time */
    uint64_t viewed_bytes;          /* the largest private memory at which its mappings were read */
    uint64_t polled_bytes;          /* its private memory at the last look at all */
    struct ml_memory_status status; /* as last read, while it has no profile */
    bool is_unreadable;             /* its mappings may not be read */
    int footprint_error;            /* why its private memory cannot, an errno; 0: it can */
    struct ml_member_allocator
        allocator; /* as its constructor found it; a forked child's parent's */
    struct ml_code_files code_files;
    uint32_t root_id;       /* host/analysis/roots.h; 0: it sees what the host sees */
    uint32_t libc_files;    /* mapped files of a libc; 0: not read yet */
    bool has_unlinked_code; /* it was seen to have code in a file without a name */
    struct memlog_service_moment start;
    struct memlog_service_moment end;
    struct ml_ending ending;
    struct ml_endpoint endpoint;
    uint64_t last_left_out;     /* ml_endpoint_left_out, at its end */
    int pidfd;                  /* ML_MEMBER_PIDFD_NONE or ML_MEMBER_PIDFD_POLLED: none */
    struct ml_image_mark image; /* all 0: may not be read */
    uint32_t walk;              /* the last walk over the tree that saw it */
    bool pid_passed_on;         /* to a process that started later */
    uint64_t start_ticks;       /* with the pid, one process (host/process/info.h) */
    ev_io pidfd_watcher;
    ev_timer look_timer;
    char note[256]; /* a remark for people */
    /* By --only, --never or the never list, which the note names. */
    bool left_out;
    char *
        executable; /* what /proc/PID/exe links to; "" or its own memory, by ml_member_executable */
    struct ml_members *members;
    struct ml_member *next_by_pid; /* in its bucket, older than this one */
};

enum {
    /* With a thousand running processes and ten thousand ended ones a bucket holds a few pids. */
    ML_MEMBERS_BUCKETS = 4096
};

struct ml_members {
    struct ml_member **items; /* by id - 1 */
    uint32_t count;
    uint32_t capacity;
    uint32_t running_count;
    uint32_t forbidden_count; /* events that the tables refused: a bug of memlog's */
    struct ml_member *by_pid[ML_MEMBERS_BUCKETS]; /* the newest first */
    void *context;                                /* the owner's, for watchers */
};

void ml_members_init(struct ml_members *members, void *context);

/* Free all; their watchers must be stopped and endpoints closed. */
void ml_members_fini(struct ml_members *members);

/* A new running one, everything else 0 and -1. Errors: ML_PEER_LIMIT; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_members_add(struct ml_members *members, pid_t pid, struct ml_member **out_member);

/* The running member of that pid; NULL: none. */
struct ml_member *ml_members_running(const struct ml_members *members, pid_t pid);

/* The newest member of that pid, ended ones included; NULL: none. */
struct ml_member *ml_members_newest(const struct ml_members *members, pid_t pid);

/* NULL: no such id. */
struct ml_member *ml_members_find(const struct ml_members *members, uint32_t id);

/* Copy the path of its executable. Without memory it stays unknown. */
void ml_member_executable(struct ml_member *member, const char *path);

/* How many running members of that role record. */
uint32_t ml_members_recording(const struct ml_members *members, enum memlog_service_role role);

/* Change its state by the table. Errors: ML_PEER_STATE; nothing has changed then. */
ML_NODISCARD enum ml_status
ml_member_set_state(struct ml_member *member, enum ml_member_event event);

/* Change its recording by the table of recording.c. A forbidden event changes nothing and is
 * counted. */
void ml_member_set_recording(struct ml_member *member, enum ml_recording_event event);

/* The same of its attachment, by the table of attachment.c. */
void ml_member_set_attachment(struct ml_member *member, enum ml_attachment_event event);

#endif
