#include "client/stream/overrun.h"

#include "client/stream/arena.h"

enum { HALF = 2, NEARLY_EMPTY = 8 };

/* Set the process's interval. Threads that record exactly notice at their next event, others at the
 * next that they record. */
static void change(uint64_t before_bytes, uint64_t after_bytes) {
    if (atomic_compare_exchange_strong_explicit(
            &ml_process.gate_page->overrun_bytes,
            &before_bytes,
            after_bytes,
            memory_order_relaxed,
            memory_order_relaxed
        )) {
        ml_process_stir();
    }
}

static void coarser(uint64_t now_bytes) {
    const uint64_t wanted = __atomic_load_n(&ml_process.control->sampling_bytes, __ATOMIC_RELAXED);
    uint64_t next = now_bytes > wanted ? now_bytes * 2 : wanted * 2;
    if (next < ML_OVERRUN_FIRST_BYTES) {
        next = ML_OVERRUN_FIRST_BYTES;
    }
    if (next <= ML_OVERRUN_LAST_BYTES) {
        change(now_bytes, next);
    }
}

static void finer(uint64_t now_bytes) {
    const uint64_t wanted = __atomic_load_n(&ml_process.control->sampling_bytes, __ATOMIC_RELAXED);
    const uint64_t next = now_bytes / 2;
    change(now_bytes, next > wanted && next >= ML_OVERRUN_FIRST_BYTES ? next : 0);
}

/* The pipe was found nearly empty. */
static void calm(void) {
    _Atomic uint64_t *since = &ml_process.gate_page->overrun_calm_ns;
    const uint64_t now_bytes =
        atomic_load_explicit(&ml_process.gate_page->overrun_bytes, memory_order_relaxed);
    if (now_bytes == 0) {
        return;
    }
    const uint64_t now_ns = ml_sys_monotonic_ns();
    uint64_t since_ns = atomic_load_explicit(since, memory_order_relaxed);
    if (since_ns == 0) {
        atomic_store_explicit(since, now_ns, memory_order_relaxed);
    } else if (now_ns - since_ns >= ML_OVERRUN_CALM_NS && atomic_compare_exchange_strong(since, &since_ns, now_ns)) {
        finer(now_bytes);
    }
}

/* True: it was. */
static bool calm_at(uint64_t fill_bytes) {
    if (fill_bytes * NEARLY_EMPTY <= ml_process.pipe_bytes) {
        calm();
        return true;
    }
    atomic_store_explicit(&ml_process.gate_page->overrun_calm_ns, 0, memory_order_relaxed);
    return false;
}

void ml_overrun_put(enum ml_pipe_answer answer) {
    if (answer == ML_PIPE_GONE) {
        return;
    }
    struct ml_gate_page *page = ml_process.gate_page;
    const bool full = answer == ML_PIPE_FULL;
    const uint64_t fill_bytes = full ? ml_process.pipe_bytes : ml_pipe_fill_bytes();
    /* Concurrent threads may overwrite each other's value: then the interval doubles a chunk later.
     */
    const uint64_t before_bytes =
        atomic_exchange_explicit(&page->overrun_fill_bytes, fill_bytes, memory_order_relaxed);
    if (!calm_at(fill_bytes) && fill_bytes * HALF >= ml_process.pipe_bytes &&
        (full || fill_bytes >= before_bytes)) {
        coarser(atomic_load_explicit(&page->overrun_bytes, memory_order_relaxed));
    }
}

uint64_t ml_overrun_interval(void) {
    const uint64_t said = __atomic_load_n(&ml_process.control->sampling_bytes, __ATOMIC_RELAXED);
    const uint64_t most = said < ML_SAMPLING_MAX_BYTES ? said : ML_SAMPLING_MAX_BYTES;
    const uint64_t wanted = most > 0 ? most : 1;
    const uint64_t forced =
        atomic_load_explicit(&ml_process.gate_page->overrun_bytes, memory_order_relaxed);
    return forced > wanted ? forced : wanted;
}

void ml_overrun_look(void) {
    (void)calm_at(ml_pipe_fill_bytes());
}

_Atomic uint64_t *ml_overrun_table(void) {
    _Atomic(_Atomic uint64_t *) *place = &ml_process.gate_page->skipped;
    _Atomic uint64_t *table = atomic_load_explicit(place, memory_order_acquire);
    if (table == NULL) {
        _Atomic uint64_t *made =
            ml_arena_take(sizeof(uint64_t) << ML_OVERRUN_SKIPPED_SHIFT, sizeof(uint64_t));
        if (made != NULL && atomic_compare_exchange_strong(place, &table, made)) {
            table = made;
        }
    }
    return table;
}
