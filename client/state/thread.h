/* What the client keeps of each thread. Room: client (private). Context: every thread of the
 * profiled process, inside malloc.
 *
 * One rule: only the thread itself, and signal handlers on it, read or write its state.
 *
 * A preloaded client has it in the thread's static variables (initial-exec), which the loader
 * makes. A client that was put into a running process (ML_ATTACHED) has no loader. It finds the
 * state in a table of its own by the thread pointer, which a thread has from its first instruction
 * to its last. */
#ifndef MEMLOG_CLIENT_STATE_THREAD_H
#define MEMLOG_CLIENT_STATE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/state/visible.h"

struct ml_lane;
struct ml_thread_notes;

/* What the hook is doing, so that a nested hook knows what it interrupts. */
enum ml_phase {
    ML_PHASE_NONE = 0,
    ML_PHASE_NEXT =
        1, /* in the next allocator: a nested call is that one's own business, or a handler's */
    ML_PHASE_RECORD =
        2, /* in our code, which calls no allocator: a nested call is a signal handler's */
    ML_PHASE_SECOND = 3 /* a signal handler's event, on the second lane */
};

/* Which frees are recorded; client/recording/sampler.h. */
enum ml_filter {
    ML_FILTER_OFF = 0,     /* all: everything is recorded, and always was */
    ML_FILTER_SAMPLED = 1, /* those of sampled blocks */
    ML_FILTER_NONE = 2     /* all: blocks recorded exactly may live, and sampled ones too */
};

/* A thread's own state, well under 512 bytes. One cache line is enough for what every event reads
 * of it. */
struct ml_thread {
    /* gate_page->gate while this thread may record exactly, on `lane`; UINT64_MAX: look closer. */
    _Alignas(64) uint64_t gate;
    uint32_t control;       /* control->generation, seen when `gate` was set */
    uint32_t phase;         /* enum ml_phase */
    uintptr_t hook_frame;   /* the frame of the hook that is at work, if one is */
    struct ml_lane *lane;   /* NULL: none yet, or given back */
    uint64_t left;          /* bytes that may be skipped; client/recording/sampler.h */
    uint32_t filters;       /* `control` while only frees of sampled blocks are recorded, and none
                               is of the boot store; else 0 */
    uint32_t skipped;       /* calls that were not recorded since the lane's last record */
    struct ml_lane *second; /* for a signal handler's events inside the hook */
    uint64_t rest;          /* further bytes up to the next point, behind `left` */
    uint64_t interval;      /* 1: exact; 0: not recording */
    uint64_t random;        /* of ml_poisson_distance and ml_poisson_weigh */
    uint64_t idle_gate;     /* gate_page->gate while nothing is recorded; UINT64_MAX: look closer */
    uint64_t sampling_gate; /* gate_page->gate while this thread may record a sample with nothing
                               else to be looked at; UINT64_MAX: look closer */
    uint32_t seeded;        /* the process generation in which `random` was seeded */
    uint32_t generation;    /* the process generation that `lane` and `second` belong to */
    uint64_t fork_serial;   /* of the FORK record being acted on; 0: not forking */
    uint64_t held;          /* `left`, while a call that is passed over is in the next allocator */
    struct ml_thread_notes *notes; /* what the thread says of itself; NULL: nothing yet */
    uint8_t filter;                /* enum ml_filter */
    uint8_t exit_rounds;     /* rounds of thread exit seen; ML_THREAD_GONE: a lane per event */
    uint8_t timed;           /* 0: the hook at work is not timed; else 1 and the spans that were */
    uint32_t filters_booted; /* as `filters`, where the boot store has blocks */
    uint32_t passed;         /* calls that were not recorded before those in `skipped` */
    uint32_t passed_told;    /* of both, what the staging counts */
    uint32_t chance;         /* which hooks are timed */
    uint64_t spent_ticks;    /* by the hook that is timed, in our code */
};

enum { ML_THREAD_GONE = UINT8_MAX };

#if ML_ATTACHED
enum { ML_THREADS_MAX = 8192 /* as many as there are lanes; a power of two */ };

/* Place i belongs to the thread with that pointer; 0: to none yet. */
enum {
    ML_THREAD_PLACE_LEFT = 1, /* to none any more */
    ML_THREAD_PLACE_TAKEN = 2 /* a sweep is looking at it */
};
struct ml_thread_table {
    _Atomic uintptr_t pointers[ML_THREADS_MAX];
    uint32_t ids[ML_THREADS_MAX]; /* the kernel's numbers, as they were when the place was taken */
    struct ml_thread threads[ML_THREADS_MAX];
    const uint32_t *id_offset; /* where behind a thread pointer libc keeps the kernel's number of
                                  the thread; *id_offset 0: not known, and NULL */
};
extern ML_OURS struct ml_thread_table ml_thread_table;

/* Of threads for which there is no place: its events are lost, and counted. */
extern ML_OURS struct ml_thread ml_thread_nobody;

/* A thread's first event, or a place that is not its first choice. */
struct ml_thread *ml_thread_look_up(uintptr_t pointer);

static inline uint32_t ml_thread_place(uintptr_t pointer) {
    enum { MULTIPLIER = 0x9e3779b1, SHIFT = 32 - 13 };
    _Static_assert(ML_THREADS_MAX == 1 << 13, "the upper bits are the place");
    return (uint32_t)(pointer >> 6) * (uint32_t)MULTIPLIER >> SHIFT;
}

/* The ABI puts the thread pointer where it points to. */
static inline uintptr_t ml_thread_pointer(void) {
    uintptr_t pointer;
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

/* The calling thread's own, if it is found without a call; else NULL. */
static inline struct ml_thread *ml_this_thread_at_once(void) {
    const uintptr_t pointer = ml_thread_pointer();
    const uint32_t place = ml_thread_place(pointer);
    const bool is_there =
        atomic_load_explicit(&ml_thread_table.pointers[place], memory_order_relaxed) == pointer;
    return __builtin_expect(is_there, 1) ? &ml_thread_table.threads[place] : NULL;
}

/* The calling thread's own. */
static inline struct ml_thread *ml_this_thread(void) {
    struct ml_thread *thread = ml_this_thread_at_once();
    return __builtin_expect(thread != NULL, 1) ? thread : ml_thread_look_up(ml_thread_pointer());
}

/* Forget all threads. No thread comes to a hook. */
void ml_thread_table_clear(void);

/* Forget threads that have ended, and let `leave` take back what they have; at most ten times a
 * second. Any thread. */
void ml_thread_table_sweep(void (*leave)(struct ml_thread *thread));
#else
extern ML_OURS __thread struct ml_thread ml_thread __attribute__((tls_model("initial-exec")));

/* The calling thread's own. */
static inline struct ml_thread *ml_this_thread(void) {
    return &ml_thread;
}

static inline struct ml_thread *ml_this_thread_at_once(void) {
    return &ml_thread;
}
#endif

#endif
