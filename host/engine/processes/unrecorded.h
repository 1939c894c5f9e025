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
    /* Ended ones that stay apart. */
    ML_UNRECORDED_KEPT = 4096,
    /* Running ones; what comes on top is only counted. As many as members. */
    ML_UNRECORDED_RUNNING_MAX = ML_MEMBERS_MAX / 2,
    /* Programs that ended ones are folded by; the rest go together. */
    ML_UNRECORDED_FOLDS_MAX = 512,
    ML_UNRECORDED_REASON_BYTES = 256,
};

struct ml_unrecorded {
    uint32_t id;        /* above ML_MEMBERS_MAX */
    uint32_t parent_id; /* of a member or one of these: who forked it, or whose exec it came by */
    pid_t pid, parent_pid;
    uint64_t start_ticks; /* 0: it was gone before anybody looked */
    uint64_t born_ns;     /* CLOCK_MONOTONIC, as the kernel tells; else when it was first seen */
    struct ml_image_mark image;
    bool pid_passed_on; /* to a process that was born behind it */
    bool is_forked;     /* it is still its parent's image */
    bool is_idle;       /* memlog's hooks are in it, and nobody has called them since its fork */
    bool has_reason;    /* by the word of who knows; else the best guess so far */
    enum ml_member_state state;
    enum memlog_service_role role;
    struct ml_ending ending;
    struct ml_ending leaving; /* of its first thread, while others run on or the kernel clears up */
    struct memlog_service_moment start, end;
    uint64_t identified_ns;                   /* CLOCK_MONOTONIC, before name and line were read */
    uint64_t footprint_bytes, resident_bytes; /* as last read; of a folded one the largest */
    uint32_t looks;
    uint64_t next_look_ns;
    uint32_t walk; /* the last one that saw it */
    char name[ML_PROCESS_NAME_BYTES];
    char reason[ML_UNRECORDED_REASON_BYTES];
    struct ml_command_line line;
    char *executable;                         /* or NULL: not known */
    uint32_t folded_processes, folded_failed; /* it stands for so many; 0: it is one */
    struct ml_unrecorded *next_by_pid;        /* in its bucket, older than this one */
};

enum { ML_UNRECORDED_BUCKETS = 1024 };

struct ml_unrecorded_table {
    struct ml_unrecorded **items; /* by id, with gaps; folded ones first */
    uint32_t count, capacity;
    uint32_t folds_count;
    uint32_t running_count;
    uint32_t last_id;
    uint64_t left_out; /* there was no room for them */
    struct ml_unrecorded *by_pid[ML_UNRECORDED_BUCKETS];
};

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

/* It has ended. Older ones may be folded then, this one too: it is not to be used any more. */
void ml_unrecorded_end(
    struct ml_unrecorded_table *table,
    struct ml_unrecorded *one,
    enum ml_member_event event,
    const struct ml_ending *ending,
    struct memlog_service_moment now
);

/* It is recorded after all: forget it. */
void ml_unrecorded_remove(struct ml_unrecorded_table *table, struct ml_unrecorded *take_one);

/* Copy what it runs; "": not known. */
void ml_unrecorded_executable(struct ml_unrecorded *one, const char *path);

#endif
