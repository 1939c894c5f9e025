#include "client/recording/lifecycle.h"

#include <unistd.h>

#include "client/memlog.h"
#include "client/recording/check.h"
#include "client/recording/hook.h"
#include "client/recording/mapping.h"
#include "client/recording/past.h"
#include "client/recording/record.h"
#include "client/recording/sampler.h"
#include "client/recording/start.h"
#include "client/startup/handshake.h"
#include "client/state/boot_store.h"
#include "client/state/visible.h"
#include "client/stream/arena.h"
#include "client/stream/decoy.h"
#include "client/stream/pipe.h"
#include "client/stream/stack_table.h"

static uint32_t thread_id(void) {
    return (uint32_t)ml_sys0(SYS_gettid);
}

/* ---- threads ---- */

/* A lane's first records; the first lane of a profile begins with START. */
static void record_first(struct ml_lane *lane) {
    _Atomic uint32_t *begun = &ml_process.gate_page->profile;
    uint32_t seen = atomic_load_explicit(begun, memory_order_relaxed);
    /* One of two threads begins the profile. A thread with an older profile begins none. */
    while ((int32_t)(lane->profile - seen) > 0) {
        if (atomic_compare_exchange_weak(begun, &seen, lane->profile)) {
            ml_record_start(lane, 0);
            ml_stack_forget(seen, lane->profile);
        }
    }
    ml_record_thread(lane);
}

#if ML_ATTACHED
static void leave(struct ml_thread *thread) {
    if (thread->generation == ml_process.generation && ml_process_state() != ML_GATE_FRESH) {
        ml_lifecycle_give_lanes(thread);
    }
}

void ml_lifecycle_find_ended(void) {
    ml_thread_table_sweep(leave);
}
#else
void ml_lifecycle_find_ended(void) {
} /* libc tells */
#endif

static void count_without_lane(uint64_t events) {
    __atomic_fetch_add(&ml_process_staging_header()->lost_no_lane, events, __ATOMIC_RELAXED);
}

struct ml_lane *ml_lifecycle_lane(bool second) {
    struct ml_lane *lane = ml_lane_take(thread_id());
    if (ml_unlikely(lane == NULL)) {
        ml_lifecycle_find_ended();
        lane = ml_lane_take(thread_id());
        count_without_lane(lane == NULL);
    }
    if (lane != NULL) {
        lane->use = second ? ML_LANE_SECOND : 0;
        ml_unwind_thread_clear(&lane->unwind);
        record_first(lane);
        ml_sampler_announce(ml_this_thread(), lane);
    }
    return lane;
}

void ml_lifecycle_lane_update(struct ml_lane *lane) {
    const uint32_t profile = ml_process_profile();
    if (lane->profile != profile) {
        ml_lane_begin(lane, profile);
        ml_unwind_thread_clear(&lane->unwind);
        record_first(lane);
    }
    ml_sampler_announce(ml_this_thread(), lane);
}

void ml_lifecycle_give_lanes(struct ml_thread *thread) {
    if (thread->lane != NULL) {
        ml_lane_give(thread->lane);
        thread->lane = NULL;
    }
    if (thread->second != NULL) {
        ml_lane_give(thread->second);
        thread->second = NULL;
    }
}

/* ---- fork ---- */

void ml_lifecycle_before_fork(void) {
    struct ml_thread *thread = ml_this_thread();
    thread->fork_serial = 0;
    if ((ml_process.filters & ML_FILTERS_CLOSED) != 0) {
        return;
    }
    const struct ml_hook hook = ml_hook_enter(thread, (uintptr_t)__builtin_frame_address(0));
    if (hook.lane != NULL) {
        struct ml_event event = {.kind = ML_EVENT_FORK};
        event.fork_serial = atomic_fetch_add(&ml_process.gate_page->fork_serial, 1) + UINT64_C(1);
        ml_lane_record(hook.lane, &event);
        thread->fork_serial = event.fork_serial;
    }
    ml_hook_leave(thread, &hook);
    if (ml_unlikely(thread->phase > ML_PHASE_NEXT)) {
        ml_decoy_save(thread->phase == ML_PHASE_SECOND ? thread->second : thread->lane);
    }
}

void ml_lifecycle_after_fork_in_parent(void) {
    ml_this_thread()->fork_serial = 0;
    ml_decoy_drop_saved();
}

void ml_lifecycle_after_fork_in_child(void) {
    struct ml_thread *thread = ml_this_thread();
    const uint32_t phase = thread->phase;
    if (!ml_process.connected || ml_process_state() != ML_GATE_FRESH) {
        return;
    }
    if (phase == ML_PHASE_NONE) {
        /* A hook that was about to be entered finds no lane. */
        thread->lane = NULL;
        thread->second = NULL;
        return;
    }
    ml_decoy_set(thread->lane, thread->second);
    thread->phase = ML_PHASE_SECOND; /* nested calls are counted meanwhile */
    (void)ml_lifecycle_may_record(thread);
    ml_decoy_settle();
    thread->phase = phase;
}

/* The child's stream, which the calling thread alone makes. The wiped arena reads as an empty one.
 * Of the parent, descriptors and mappings are left; they are replaced before anything is written.
 */
static void make_stream(struct ml_thread *thread) {
    ml_process.generation++;
    ml_process_off(); /* if nothing comes of it */
    if (!ml_decoy_pending()) {
        ml_decoy_forget();
    }
    if ((ml_process.filters & ML_FILTERS_NO_HOST) != 0) {
        ml_process_lost_message();
        return;
    }
    const uint64_t serial = thread->fork_serial;
    thread->fork_serial = 0;
    const int parents_pipe = atomic_exchange(&ml_process.pipe_fd, -1);
    const int socket_fd = atomic_load(&ml_process.socket_fd);
    if (ml_process_is_file(parents_pipe, &ml_process.pipe)) {
        ml_sys_close(parents_pipe);
    }
    struct ml_handshake handshake = {.told = false};
    const struct ml_bytes title = {ml_process.title, ml_process.title_bytes};
    if (!ml_process_is_file(socket_fd, &ml_process.socket) || !ml_handshake_forked(
                                                                  socket_fd,
                                                                  ml_process_host_listens(),
                                                                  serial,
                                                                  ml_process.slots,
                                                                  ml_process.control,
                                                                  title,
                                                                  &handshake
                                                              )) {
        if (!handshake.told) {
            ml_process_lost_message();
        }
        return;
    }
    if (!ml_start_adopt(&handshake, true)) {
        ml_sys_close(handshake.pipe_fd);
        (void)ml_handshake_no_room(socket_fd);
        return;
    }
    ml_past_tell_again();
    ml_start_stream(thread, serial);
}

static enum ml_start_state start_now(void) {
    return atomic_load_explicit(&ml_process.gate_page->start, memory_order_acquire);
}

/* Another thread makes the stream, which takes a millisecond or two: what this one does would be
 * missing. A thread that is stopped meanwhile, or interrupted by a handler that waits for this one,
 * is not waited for long. */
static void wait_for_start(const struct ml_thread *thread) {
    struct ml_gate_page *page = ml_process.gate_page;
    enum { SPINS = 2000, WAITS_MAX = 250, WAIT_MS = 1 };
    if (atomic_load(&page->starter) == thread) { /* a handler, and we are the one */
        atomic_fetch_add(&page->start_lost, 1);
        return;
    }
    for (int i = 0; i < SPINS && start_now() == ML_START_GOING_ON; i++) {
        __builtin_ia32_pause();
    }
    for (int i = 0; i < WAITS_MAX && ml_process.filters == 0 && start_now() == ML_START_GOING_ON;
         i++) {
        (void)ml_sys3(SYS_poll, 0, 0, WAIT_MS);
    }
    if (start_now() == ML_START_GOING_ON) {
        atomic_fetch_add(&page->start_lost, 1);
    }
}

/* A child's first event, in one or in several threads at once. */
static void become_child(struct ml_thread *thread) {
    struct ml_gate_page *page = ml_process.gate_page;
    uint32_t start = ML_START_NOT;
    if (!atomic_compare_exchange_strong(&page->start, &start, ML_START_GOING_ON)) {
        return;
    }
    atomic_store(&page->starter, thread);
    make_stream(thread);
    atomic_store_explicit(&page->start, ML_START_OVER, memory_order_release);
    const uint32_t lost = atomic_exchange(&page->start_lost, 0);
    if (lost > 0 && ml_process_state() == ML_GATE_RECORDING) {
        count_without_lane(lost);
    }
}

void ml_lifecycle_be_somebody(void) {
    if (ml_process.connected && ml_process_state() == ML_GATE_FRESH) {
        struct ml_thread *thread = ml_this_thread();
        const struct ml_hook hook = ml_hook_enter(thread, (uintptr_t)__builtin_frame_address(0));
        ml_hook_leave(thread, &hook);
    }
}

/* ---- what a thread's slow path looks at ---- */

/* Follow the control page: record, or go dormant. */
static void obey_control(uint64_t gate) {
    const enum ml_gate_state state = (enum ml_gate_state)(gate & 3);
    const uint32_t enabled = __atomic_load_n(&ml_process.control->enabled, __ATOMIC_ACQUIRE);
    const enum ml_gate_state wanted = enabled != 0 ? ML_GATE_RECORDING : ML_GATE_DORMANT;
    if (state == ML_GATE_OFF || state == ML_GATE_FRESH || state == wanted) {
        return;
    }
    (void)atomic_compare_exchange_strong(
        &ml_process.gate_page->gate, &gate, ml_gate_value(ml_process.generation, wanted)
    );
}

/* The thread has followed the control page of generation `control`. */
static void has_seen(struct ml_thread *thread, uint32_t control) {
    thread->control = control;
    const uint32_t filters = thread->filter == ML_FILTER_SAMPLED ? control : 0;
    const bool is_booted = ml_boot_store_is_used();
    thread->filters = is_booted ? 0 : filters;
    thread->filters_booted = is_booted ? filters : 0;
}

/* A filter lets none of our calls through. This event stands for all that will be missing: it
 * counts as produced, in any lane, and as lost for want of a pipe. */
static void close_for_good(void) {
    struct ml_staging_header *header = ml_process_staging_header();
    struct ml_staging_lane *first = ml_process_staging_lane(ml_process.staging, 0);
    (void)__atomic_fetch_add(&first->produced, 1, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&header->lost_no_pipe, 1, __ATOMIC_RELAXED);
    ml_process_off();
}

bool ml_lifecycle_may_record(struct ml_thread *thread) {
    if ((ml_process.filters & ML_FILTERS_CLOSED) != 0 && ml_process_state() == ML_GATE_RECORDING) {
        close_for_good();
    }
    if (ml_process.connected && ml_process_state() == ML_GATE_FRESH) {
        become_child(thread);
    }
    if (ml_unlikely(start_now() == ML_START_GOING_ON)) {
        wait_for_start(thread);
    }
    const uint32_t control = ml_process_control_generation();
    atomic_thread_fence(memory_order_acquire); /* the rest of the page is as new, or newer */
    obey_control(atomic_load(&ml_process.gate_page->gate));
    if (thread->generation != ml_process.generation) {
        thread->generation = ml_process.generation;
        thread->lane = NULL;
        thread->second = NULL;
    }
    const uint64_t gate = atomic_load(&ml_process.gate_page->gate);
    const bool recording = (gate & 3) == ML_GATE_RECORDING;
    ml_sampler_follow(thread, recording);
    thread->sampling_gate = UINT64_MAX;
    thread->idle_gate = UINT64_MAX;
    if (thread->exit_rounds == ML_THREAD_GONE) {
        has_seen(thread, control);
        return recording;
    }
    if (recording && thread->lane == NULL) {
        thread->lane = ml_lifecycle_lane(false);
        ml_lifecycle_watch_exit(ml_process.gate_page);
    } else if (recording) {
        ml_lifecycle_lane_update(thread->lane);
    } else if (!recording && (gate & 3) == ML_GATE_DORMANT) {
        ml_lifecycle_give_lanes(thread);
    } else if (!recording) {
        thread->lane = NULL;
        thread->second = NULL;
    }
    has_seen(thread, control);
    /* A thread that found no lane asks again at its next event. A thread that samples enters a hook
     * only for what it records, by the slow path. */
    const bool has_lane = recording && thread->lane != NULL;
    thread->gate = has_lane && thread->filter == ML_FILTER_OFF ? gate : UINT64_MAX;
    thread->idle_gate = !recording ? gate : UINT64_MAX;
    thread->sampling_gate = has_lane && thread->filter == ML_FILTER_SAMPLED ? gate : UINT64_MAX;
    return has_lane;
}

void ml_lifecycle_renamed(void) {
    struct ml_thread *thread = ml_this_thread();
    if (ml_process_stack_mode() < ML_STACK_NATIVE_WITH_THREAD_NAMES ||
        (ml_process.filters & ML_FILTERS_CLOSED) != 0) {
        return;
    }
    const struct ml_hook hook = ml_hook_enter(thread, (uintptr_t)__builtin_frame_address(0));
    if (hook.lane != NULL) {
        ml_record_thread(hook.lane);
    }
    ml_hook_leave(thread, &hook);
}

/* One record from outside the allocator's hooks, in the process that owns the stream alone. A vfork
 * child runs in its parent's memory and must not write there. A forked child that has not allocated
 * yet has no stream. */
static void record_alone(const struct ml_event *event) {
    struct ml_thread *thread = ml_this_thread();
    if (ml_process_state() != ML_GATE_RECORDING || (ml_process.filters & ML_FILTERS_CLOSED) != 0) {
        return;
    }
    /* A process that may not ask for its pid cannot vfork either. */
    if ((ml_process.filters & ML_FILTERS_NO_PID) == 0 &&
        ml_process.pid != (uint32_t)ml_sys0(SYS_getpid)) {
        return;
    }
    const struct ml_hook hook = ml_hook_enter(thread, (uintptr_t)__builtin_frame_address(0));
    if (hook.lane != NULL) {
        ml_lane_record(hook.lane, event);
    }
    ml_hook_leave(thread, &hook);
}

void ml_lifecycle_end(uint32_t kind) {
    const uint64_t lost_events =
        ml_process_state() == ML_GATE_RECORDING ? ml_decoy_take_count() : 0;
    if (ml_unlikely(lost_events != 0)) {
        __atomic_fetch_add(
            &ml_process_staging_header()->lost_nested, lost_events, __ATOMIC_RELAXED
        );
    }
    ml_past_look_last();
    struct ml_event event = {.kind = ML_EVENT_END};
    event.end_kind = kind;
    record_alone(&event);
}

void ml_lifecycle_reaped(uint32_t pid) {
    struct ml_event event = {.kind = ML_EVENT_REAPED};
    event.reaped_pid = pid;
    record_alone(&event);
}
