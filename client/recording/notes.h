/* What a thread says of itself: the scopes that it has open, and its name (client/memlog.h). Room:
 * client (private). Context: the thread itself, signal handlers on it too, and a forked child of
 * it; no lock, no allocation.
 *
 * One rule: scopes are kept from the first that is opened while they are recorded to the moment
 * when none is open. So their ends meet their beginnings, whatever starts and stops between.
 *
 * The memory is none of the arena: a forked child has its parent's open scopes. */
#ifndef MEMLOG_CLIENT_RECORDING_NOTES_H
#define MEMLOG_CLIENT_RECORDING_NOTES_H

#include <stdbool.h>
#include <stdint.h>

#include "client/recording/names.h"
#include "client/stream/lane.h"

enum { ML_NOTES_SCOPES_MAX = 248 /* of further ones their ends are known, no more */ };

struct ml_scope {
    struct ml_name *name; /* NULL: not known yet, or there was no room for it */
    uintptr_t sp;         /* of the function that has opened it, then */
};

/* One thread's; a page. */
struct ml_thread_notes {
    struct ml_thread_notes *next; /* in the list of those that nobody has */
    struct ml_name *thread_name;
    uint32_t depth;   /* scopes that are open */
    uint32_t version; /* another one after each change of `open` */
    /* What the scopes alone come to (ML_STACK_PSEUDO); stream 0: not known. */
    uint64_t node_stream;
    uint32_t node_version, node_root, node;
    struct ml_scope open[ML_NOTES_SCOPES_MAX];
};

/* Whether what stacks have from that mode on is recorded now, or will be in a child that is not
 * yet: names of threads, scopes. */
static inline bool ml_notes_wanted(enum ml_stack_mode from) {
    return ml_process.connected && ml_process_stack_mode() >= (uint32_t)from &&
           (ml_process_state() == ML_GATE_RECORDING || ml_process_state() == ML_GATE_FRESH);
}

/* How many are open. */
static inline uint32_t ml_notes_depth(const struct ml_thread *thread) {
    return ml_unlikely(thread->notes != NULL) ? thread->notes->depth : 0;
}

/* Open a scope. Returns how many were open before. */
uint32_t ml_notes_open(struct ml_thread *thread, const struct ml_scope *scope);

/* Close those that were opened last, down to so many. */
void ml_notes_close(struct ml_thread *thread, uint32_t depth);

/* The thread is called so from now on. */
void ml_notes_name_thread(struct ml_thread *thread, struct ml_name *name);

/* The thread has ended. */
void ml_notes_give(struct ml_thread *thread);

/* How many scopes of the thread there are to be shown. */
static inline uint32_t ml_notes_shown(const struct ml_thread_notes *notes) {
    return notes == NULL                        ? 0
           : notes->depth < ML_NOTES_SCOPES_MAX ? notes->depth
                                                : ML_NOTES_SCOPES_MAX;
}

/* The node of scope `number` below `parent`; `parent` itself, where there is no room. */
uint32_t ml_notes_node(
    struct ml_lane *lane, const struct ml_thread_notes *notes, uint32_t number, uint32_t parent
);

/* The node of the thread's scopes, and of nothing else. */
uint32_t ml_notes_scopes_node(struct ml_lane *lane, struct ml_thread_notes *notes);

#endif
