/* The threads of a process that memlog was put into while it ran. */
#include "client/state/thread.h"

#if ML_ATTACHED

#    include <stddef.h>
#    include <sys/syscall.h>

#    include "client/state/sys.h"

enum { SWEEP_EVERY_NS = 100000000, ESRCH_KERNEL = 3 };

struct ml_thread_table ml_thread_table;
struct ml_thread ml_thread_nobody = {
    .gate = UINT64_MAX, .idle_gate = UINT64_MAX, .sampling_gate = UINT64_MAX};

/* Gates that no process has, so that a thread's first hook takes the slow path. */
static struct ml_thread *begin(uint32_t place) {
    struct ml_thread *thread = &ml_thread_table.threads[place];
    *thread = (struct ml_thread
    ){.gate = UINT64_MAX, .idle_gate = UINT64_MAX, .sampling_gate = UINT64_MAX};
    __atomic_store_n(&ml_thread_table.ids[place], (uint32_t)ml_sys0(SYS_gettid), __ATOMIC_RELEASE);
    return thread;
}

static bool take(uint32_t place, uintptr_t expected, uintptr_t pointer) {
    return atomic_compare_exchange_strong(&ml_thread_table.pointers[place], &expected, pointer);
}

struct ml_thread *ml_thread_look_up(uintptr_t pointer) {
    uint32_t left = ML_THREADS_MAX; /* the first place on the way that a thread has left */
    for (uint32_t step = 0, place = ml_thread_place(pointer); step < ML_THREADS_MAX; step++) {
        const uintptr_t there = atomic_load(&ml_thread_table.pointers[place]);
        if (there == pointer) {
            return &ml_thread_table.threads[place];
        }
        if (there == ML_THREAD_PLACE_LEFT && left == ML_THREADS_MAX) {
            left = place;
        }
        if (there == 0) {
            if (left != ML_THREADS_MAX && take(left, ML_THREAD_PLACE_LEFT, pointer)) {
                return begin(left);
            }
            if (take(place, 0, pointer)) {
                return begin(place);
            }
            left = ML_THREADS_MAX;
            continue; /* somebody was faster: look at the place again */
        }
        place = (place + 1) & (ML_THREADS_MAX - 1);
    }
    if (left != ML_THREADS_MAX && take(left, ML_THREAD_PLACE_LEFT, pointer)) {
        return begin(left);
    }
    return &ml_thread_nobody;
}

static bool is_alive(uint32_t id) {
    return id != 0 && ml_sys3(SYS_tgkill, ml_sys0(SYS_getpid), id, 0) != -ESRCH_KERNEL;
}

void ml_thread_table_clear(void) {
    for (uint32_t place = 0; place < ML_THREADS_MAX; place++) {
        if (atomic_load_explicit(&ml_thread_table.pointers[place], memory_order_relaxed) != 0) {
            atomic_store_explicit(&ml_thread_table.pointers[place], 0, memory_order_relaxed);
            ml_thread_table.ids[place] = 0;
            ml_thread_table.threads[place] = (struct ml_thread){.gate = UINT64_MAX};
        }
    }
}

/* The kernel's number of the thread that has that pointer now; 0: none has. libc keeps it at one
 * place behind the pointer, and the kernel clears it when the thread ends. */
static uint32_t id_now(uintptr_t pointer, uint32_t id_offset) {
    const uintptr_t at = pointer + id_offset;
    uint32_t id = 0;
    struct {
        const void *base;
        size_t bytes;
    } from = {(const void *)at, sizeof(id)};
    struct {
        void *base;
        size_t bytes;
    } to = {&id, sizeof(id)};
    const long got =
        ml_sys6(SYS_process_vm_readv, ml_sys0(SYS_getpid), (long)&to, 1, (long)&from, 1, 0);
    return got == (long)sizeof(id) ? id : 0;
}

/* Out of the table first, then look once more: a thread that begins behind that takes a place of
 * its own. */
static void sweep_place(uint32_t place, uint32_t id_offset, void (*leave)(struct ml_thread *)) {
    const uintptr_t pointer = atomic_load(&ml_thread_table.pointers[place]);
    const uint32_t id = __atomic_load_n(&ml_thread_table.ids[place], __ATOMIC_ACQUIRE);
    if (pointer <= ML_THREAD_PLACE_TAKEN || id == 0 || is_alive(id) ||
        id_now(pointer, id_offset) != 0) {
        return;
    }
    uintptr_t expected = pointer;
    if (!atomic_compare_exchange_strong(
            &ml_thread_table.pointers[place], &expected, (uintptr_t)ML_THREAD_PLACE_TAKEN
        )) {
        return;
    }
    const bool is_gone = id_now(pointer, id_offset) == 0;
    if (is_gone) {
        leave(&ml_thread_table.threads[place]);
    }
    atomic_store(&ml_thread_table.pointers[place], is_gone ? ML_THREAD_PLACE_LEFT : pointer);
}

void ml_thread_table_sweep(void (*leave)(struct ml_thread *thread)) {
    static _Atomic uint64_t last_ns;
    const uint32_t id_offset = ml_thread_table.id_offset != NULL ? *ml_thread_table.id_offset : 0;
    const uint64_t now_ns = ml_sys_monotonic_ns();
    uint64_t seen_ns = atomic_load(&last_ns);
    if (id_offset == 0 || now_ns - seen_ns < SWEEP_EVERY_NS ||
        !atomic_compare_exchange_strong(&last_ns, &seen_ns, now_ns)) {
        return;
    }
    for (uint32_t place = 0; place < ML_THREADS_MAX; place++) {
        sweep_place(place, id_offset, leave);
    }
}

#endif
