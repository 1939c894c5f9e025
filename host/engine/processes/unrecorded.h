/* The processes of the tree that no profile tells of. Room: host. Context: the host's one thread.
 *
 * One rule: an entry is one program image of one process, as a member is, and its id is unique over
 * the run: ids of members and of these never meet. A fork that has not made an exec yet becomes the
 * program that it makes its exec of: one entry. Of those that have ended only the newest stay
 * apart; older ones are folded by program, reason and way of ending. */
#ifndef MEMLOG_HOST_ENGINE_PROCESSES_UNRECORDED_H
#define MEMLOG_HOST_ENGINE_PROCESSES_UNRECORDED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/engine/processes/member.h"
#include "host/policy/command_line.h"
#include "host/policy/role.h"
#include "host/process/info.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"

enum {
    /* Ended processes that have an entry of their own. */
    ML_UNRECORDED_KEPT = 4096,
    /* Running processes; more of them are only counted. */
    ML_UNRECORDED_RUNNING_MAX = ML_MEMBERS_MAX / 2,
    /* Programs that ended processes are folded by; all others share an entry. */
    ML_UNRECORDED_FOLDS_MAX = 512,
    ML_UNRECORDED_REASON_BYTES = 256,
};

/* What it is, and whether a report says why it is not recorded. Without a report the reason is a
 * guess. ML_UNRECORDED_FORBIDDEN is 0: a cell of the table that nobody wrote is not allowed. */
enum ml_unrecorded_kind {
    ML_UNRECORDED_FORBIDDEN = 0,
    ML_UNRECORDED_FORK,         /* it runs its parent's image, which is not recorded */
    ML_UNRECORDED_IDLE_FORK,    /* it runs a recorded image, and has called no hook yet */
    ML_UNRECORDED_LOST_FORK,    /* the same, and a report says that it could not be recorded */
    ML_UNRECORDED_PROGRAM,      /* it runs an image of its own */
    ML_UNRECORDED_TOLD_PROGRAM, /* the same, and a report says the reason */
    ML_UNRECORDED_KIND_COUNT
};

enum ml_unrecorded_event {
    ML_UNRECORDED_EXEC, /* a fork makes an exec */
    ML_UNRECORDED_TELL, /* a report says why it is not recorded */
    ML_UNRECORDED_EVENT_COUNT
};

struct ml_unrecorded {
    uint32_t id;        /* above ML_MEMBERS_MAX */
    uint32_t parent_id; /* the member or entry that forked it, or whose exec made it */
    pid_t pid, parent_pid;
    uint64_t start_ticks; /* 0: it was gone before the first look */
    uint64_t born_ns;     /* CLOCK_MONOTONIC: by the kernel's event, else when first seen */
    struct ml_image_mark image;
    bool is_before_event;         /* its image was seen before the kernel's word of that exec */
    bool pid_passed_on;           /* to a process that started later */
    enum ml_unrecorded_kind kind; /* after its birth by ml_unrecorded_set_kind alone */
    enum ml_member_state state;
    enum memlog_service_role role;
    struct ml_ending ending;
    struct ml_ending leaving; /* of its first thread, while others still run */
    struct memlog_service_moment start, end;
    uint64_t identified_ns;                   /* CLOCK_MONOTONIC, before name and line were read */
    uint64_t footprint_bytes, resident_bytes; /* as last read; of a folded one the largest */
    struct ml_memory_history memory;          /* both through time; of a folded one none */
    struct ml_memory_status status;           /* as last read; of a folded one unknown */
    bool is_unreadable;                       /* its mappings may not be read */
    uint32_t looks;
    uint64_t next_look_ns;
    uint32_t walk; /* the last walk that saw it */
    char name[ML_PROCESS_NAME_BYTES];
    char reason[ML_UNRECORDED_REASON_BYTES];
    struct ml_command_line line;
    char *executable; /* or NULL: not known */
    uint32_t folded_processes,
        folded_failed;                 /* how many processes the entry stands for; 0: it is one */
    struct ml_unrecorded *next_by_pid; /* in its bucket, older than this one */
};

enum { ML_UNRECORDED_BUCKETS = 1024 };

struct ml_unrecorded_table {
    struct ml_unrecorded **items; /* by id, with gaps; folded ones first */
    uint32_t count, capacity;
    uint32_t folds_count;
    uint32_t running_count;
    uint32_t last_id;
    uint64_t left_out; /* entries for which there was no room */
    struct ml_unrecorded *by_pid[ML_UNRECORDED_BUCKETS];
};

static inline bool ml_unrecorded_is_fork(const struct ml_unrecorded *one) {
    return one->kind <= ML_UNRECORDED_LOST_FORK;
}

static inline bool ml_unrecorded_is_told(const struct ml_unrecorded *one) {
    return one->kind == ML_UNRECORDED_LOST_FORK || one->kind == ML_UNRECORDED_TOLD_PROGRAM;
}

/* Change its kind by the table of unrecorded.c. A forbidden event changes nothing. */
void ml_unrecorded_set_kind(struct ml_unrecorded *one, enum ml_unrecorded_event event);

void ml_unrecorded_init(struct ml_unrecorded_table *table);
void ml_unrecorded_fini(struct ml_unrecorded_table *table);

/* A new running one. NULL: no room; it is counted. Owner: the table's. */
struct ml_unrecorded *ml_unrecorded_add(struct ml_unrecorded_table *table, pid_t pid);

/* The running one of that pid; the newest of that pid. NULL: none. */
struct ml_unrecorded *ml_unrecorded_running(const struct ml_unrecorded_table *table, pid_t pid);
struct ml_unrecorded *ml_unrecorded_newest(const struct ml_unrecorded_table *table, pid_t pid);

/* The running one with the lowest id above that one. NULL: none. */
struct ml_unrecorded *
ml_unrecorded_next_running(const struct ml_unrecorded_table *table, uint32_t id);

/* It has ended. Older entries may be folded, and this one too: do not use it any more. */
void ml_unrecorded_end(
    struct ml_unrecorded_table *table,
    struct ml_unrecorded *one,
    enum ml_member_event event,
    const struct ml_ending *ending,
    struct memlog_service_moment now
);

/* It is recorded after all: remove it. */
void ml_unrecorded_remove(struct ml_unrecorded_table *table, struct ml_unrecorded *take_one);

/* Copy the path of its executable; "": not known. */
void ml_unrecorded_executable(struct ml_unrecorded *one, const char *path);

#endif
