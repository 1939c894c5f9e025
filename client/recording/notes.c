#include "client/recording/notes.h"

#include <stddef.h>

#include "client/recording/hook.h"
#include "client/recording/lifecycle.h"
#include "client/stream/stack_table.h"

_Static_assert(sizeof(struct ml_thread_notes) <= ML_NAMES_PAGE_BYTES, "a page");

/* Of threads that have ended: version << VERSION_SHIFT | address. */
#define VERSION_SHIFT 48
#define ADDRESS_MASK ((UINT64_C(1) << VERSION_SHIFT) - 1)
static _Atomic uint64_t free_notes;

static struct ml_thread_notes *notes_of(uint64_t word) {
    return (struct ml_thread_notes *)(uintptr_t
    )(word & ADDRESS_MASK
    ); // NOLINT(performance-no-int-to-ptr): a pointer and its version are one word
}

static uint64_t word_of(uint64_t before, const struct ml_thread_notes *notes) {
    return ((before >> VERSION_SHIFT) + 1) << VERSION_SHIFT | (uintptr_t)notes;
}

static struct ml_thread_notes *reuse(void) {
    uint64_t seen = atomic_load_explicit(&free_notes, memory_order_acquire);
    while (notes_of(seen) != NULL) {
        const struct ml_thread_notes *next =
            __atomic_load_n(&notes_of(seen)->next, __ATOMIC_RELAXED);
        if (atomic_compare_exchange_weak(&free_notes, &seen, word_of(seen, next))) {
            return notes_of(seen);
        }
    }
    return NULL;
}

/* The thread's; NULL: there are none for it. */
static struct ml_thread_notes *take(struct ml_thread *thread) {
    if (ml_likely(thread->notes != NULL) || thread->exit_rounds == ML_THREAD_GONE) {
        return thread->notes;
    }
    /* Whoever has a lane is seen to end. */
    const struct ml_hook hook = ml_hook_enter(thread, (uintptr_t)__builtin_frame_address(0));
    ml_hook_leave(thread, &hook);
    if (hook.lane == NULL) {
        return NULL;
    }
    struct ml_thread_notes *notes = reuse();
    notes = notes != NULL ? notes : ml_names_page();
    if (notes != NULL) {
        notes->depth = 0;
        notes->version++;
        notes->thread_name = NULL;
        notes->node_stream = 0;
    }
    thread->notes = notes;
    return notes;
}

void ml_notes_give(struct ml_thread *thread) {
    struct ml_thread_notes *notes = thread->notes;
    if (notes == NULL) {
        return;
    }
    ml_notes_close(thread, 0); /* a thread may end within its scopes */
    thread->notes = NULL;
    uint64_t seen = atomic_load_explicit(&free_notes, memory_order_relaxed);
    do {
        __atomic_store_n(&notes->next, notes_of(seen), __ATOMIC_RELAXED);
    } while (!atomic_compare_exchange_weak(&free_notes, &seen, word_of(seen, notes)));
}

/* A stack that is expected on the thread's lane may be another one now. The thread's second lane
 * expects none. */
static void change(struct ml_thread *thread, struct ml_thread_notes *notes) {
    notes->version++;
    if (thread->lane != NULL && thread->generation == ml_process.generation &&
        ml_process_state() == ML_GATE_RECORDING) {
        thread->lane->unwind.memo.expected = NULL;
    }
}

/* A handler may come between any two steps, and leaves `open` as it was: what lies behind `depth`
 * has no name. */
uint32_t ml_notes_open(struct ml_thread *thread, const struct ml_scope *scope) {
    struct ml_thread_notes *notes = take(thread);
    if (notes == NULL) {
        return 0;
    }
    const uint32_t number = notes->depth;
    notes->depth = number + 1;
    atomic_signal_fence(memory_order_seq_cst);
    if (number < ML_NOTES_SCOPES_MAX) {
        notes->open[number].sp = scope->sp;
        notes->open[number].name = scope->name;
    }
    change(thread, notes);
    return number;
}

void ml_notes_close(struct ml_thread *thread, uint32_t depth) {
    struct ml_thread_notes *notes = thread->notes;
    if (notes == NULL || notes->depth <= depth) {
        return;
    }
    for (uint32_t number = notes->depth; number-- > depth;) {
        if (number < ML_NOTES_SCOPES_MAX) {
            notes->open[number].name = NULL;
            atomic_signal_fence(memory_order_seq_cst);
        }
        notes->depth = number;
    }
    change(thread, notes);
}

void ml_notes_name_thread(struct ml_thread *thread, struct ml_name *name) {
    struct ml_thread_notes *notes = take(thread);
    if (notes != NULL) {
        notes->thread_name = name;
        ml_lifecycle_renamed();
    }
}

uint32_t ml_notes_node(
    struct ml_lane *lane, const struct ml_thread_notes *notes, uint32_t number, uint32_t parent
) {
    struct ml_name *name = notes->open[number].name;
    const uint32_t string = name != NULL ? ml_name_string(lane, name) : 0;
    const uint64_t key = ml_stack_key_string(ML_FRAME_SCOPE, string);
    const uint32_t node = string != 0 ? ml_stack_child(lane, parent, key, 0) : 0;
    return node != 0 ? node : parent;
}

uint32_t ml_notes_scopes_node(struct ml_lane *lane, struct ml_thread_notes *notes) {
    uint32_t node = lane->thread_node;
    if (notes == NULL || notes->depth == 0) {
        return node;
    }
    const uint64_t stream = ml_name_stream(lane);
    if (notes->node_stream == stream && notes->node_version == notes->version &&
        notes->node_root == lane->thread_node) {
        return notes->node;
    }
    const uint32_t version = notes->version;
    const uint32_t shown = ml_notes_shown(notes);
    for (uint32_t number = 0; number < shown; number++) {
        node = ml_notes_node(lane, notes, number, node);
    }
    /* A handler's own answer in between is overwritten as a whole, or not believed. */
    notes->node_stream = 0;
    atomic_signal_fence(memory_order_seq_cst);
    notes->node_version = version;
    notes->node_root = lane->thread_node;
    notes->node = node;
    atomic_signal_fence(memory_order_seq_cst);
    notes->node_stream = stream;
    return node;
}
