/* Inside the unwinder: the state of one walk, and what its parts do for each other. Room: client.
 *
 * unwind.c a walk by recipes; begin and end of any walk
 * rule.c   recipes made from the tables
 * generated.c the same from code that has no table
 * full.c   a walk by all registers
 * join.c   the last stack: finding it again, and making the new one out of it */
#ifndef MEMLOG_CLIENT_UNWIND_INTERNAL_H
#define MEMLOG_CLIENT_UNWIND_INTERNAL_H

#include "client/unwind/unwind.h"

enum ml_unwind_outcome {
    ML_UNWIND_NEXT, /* one frame further out */
    ML_UNWIND_ENDED,
    ML_UNWIND_LOST, /* no way further out */
    ML_UNWIND_COLD  /* not by recipes */
};

/* The frame that a walk has reached. */
struct ml_unwind_place {
    uintptr_t slot; /* where its pc lies */
    uintptr_t pc;
    uintptr_t fp;
};

struct ml_unwind_walk {
    struct ml_unwind_process *process;
    struct ml_unwind_thread *thread;
    const struct ml_unwind_entry *entry;
    const struct ml_module_seen *seen;
    uint64_t unloads;
    bool reuse;      /* recipes and the last stack may be used */
    bool full;       /* the interpreter walked */
    uint32_t range;  /* where the walk is reading */
    uint32_t top;    /* cached frames [0, top) are not passed yet */
    uint32_t walked; /* fresh frames */
    struct ml_unwind_place at;
    uintptr_t end_slot; /* as ml_unwind_thread has it */
};

/* Which of the fresh frames i is: the innermost ML_UNWIND_OUTER stay, the others go round. */
static inline struct ml_unwind_frame *
ml_unwind_fresh_at(struct ml_unwind_thread *thread, uint32_t i) {
    enum { FIXED = ML_UNWIND_FRESH_MAX - ML_UNWIND_OUTER };
    return &thread->fresh[i < FIXED ? i : FIXED + (i - FIXED) % ML_UNWIND_OUTER];
}

static inline void
ml_unwind_note(struct ml_unwind_walk *walk, const struct ml_unwind_place *at, uint64_t recipe) {
    struct ml_unwind_frame *fresh = ml_unwind_fresh_at(walk->thread, walk->walked++);
    fresh->slot = at->slot;
    fresh->pc = at->pc;
    fresh->fp = at->fp;
    fresh->recipe = recipe;
}

/* The recipe for the walk's pc as a return address, made from the tables and cached. */
uint64_t ml_unwind_rule(struct ml_unwind_walk *walk);

/* What the table's row in thread->scratch is as a recipe. */
uint64_t ml_unwind_rule_of_row(const struct ml_cfi_scratch *scratch, uint32_t module_id);

/* The recipe where the table of thread->image has no row for the byte before return address pc. */
uint64_t
ml_unwind_rule_without_row(const struct ml_unwind_thread *thread, uintptr_t pc, uint32_t module_id);

/* The rule for a return address outside all modules: what the code there does until it returns,
 * else frame pointers. A rule by code is never kept: code may be replaced, and nothing tells of it.
 * That code keeps frame pointers is remembered, since it is what is assumed of any. */
uint64_t ml_unwind_rule_generated(struct ml_unwind_thread *thread, uintptr_t pc);

/* Of the code behind a return address: a recipe by the stack pointer; 0: the function does not
 * return at once. Pure. */
uint64_t ml_unwind_rule_of_code(const uint8_t *code, size_t count);

/* Is the frame reached the innermost one that is left of the last stack? Passes what is not. */
bool ml_unwind_join(struct ml_unwind_walk *walk);

/* Walk everything by all registers. */
enum ml_unwind_outcome ml_unwind_full(struct ml_unwind_walk *walk);

/* Make the fresh frames and what is kept of the last stack into the thread's stack. */
struct ml_unwind_result ml_unwind_assemble(struct ml_unwind_walk *walk);

#endif
