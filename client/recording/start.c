/* The start of a client: what the host gives, the process's first mappings, the stream's first
 * records. */
#include "client/recording/start.h"

#include <sys/mman.h>

#include "client/recording/check.h"
#include "client/recording/lifecycle.h"
#include "client/recording/mapping.h"
#include "client/recording/record.h"
#include "client/recording/scripts.h"
#include "client/startup/exec_preload.h"
#include "client/stream/arena.h"
#include "client/stream/decoy.h"
#include "client/stream/pipe.h"
#include "client/stream/stack_table.h"
#include "client/unwind/unindexed.h"

enum { GET_PIPE_BYTES = 1032 /* F_GETPIPE_SZ */, PIPE_DEFAULT_BYTES = 1 << 16, PAGE_BYTES = 4096 };
_Static_assert(
    (int)ML_CONTROL_BYTES == (int)PAGE_BYTES && (int)ML_LEASE_BYTES == (int)PAGE_BYTES,
    "a page each"
);

/* One page. */
static uint8_t *map_page(int fd, int protection, void *at) {
    const long result = ml_sys6(
        SYS_mmap, (long)at, PAGE_BYTES, protection, MAP_SHARED | (at != NULL ? MAP_FIXED : 0), fd, 0
    );
    return result < 0 && result > -PAGE_BYTES ? NULL : (uint8_t *)result;
}

static void unmap_page(const void *start) {
    if (start != NULL) {
        (void)ml_sys3(SYS_munmap, (long)start, PAGE_BYTES, 0);
    }
}

static bool
are_ours(const uint8_t *staging, const uint8_t *control, const uint8_t *lease, uint32_t slots) {
    const struct ml_staging_header *header = (const void *)staging;
    return header->magic == ML_STAGING_MAGIC && header->version == ML_STAGING_VERSION &&
           header->slots == slots &&
           ((const struct ml_control_page *)(const void *)control)->magic == ML_CONTROL_MAGIC &&
           ((const struct ml_lease_page *)(const void *)lease)->magic == ML_LEASE_MAGIC;
}

void ml_start_close_memfds(const struct ml_handshake *handshake) {
    ml_sys_close(handshake->staging_fd);
    ml_sys_close(handshake->control_fd);
    ml_sys_close(handshake->lease_fd);
}

/* A program's first mappings. The arena lies far from where the kernel puts the lease. */
static bool map_shared_parts(const struct ml_handshake *handshake) {
    const uint32_t slots = handshake->params.staging_slots;
    const uint8_t *control = map_page(handshake->control_fd, PROT_READ, NULL);
    uint8_t *lease = map_page(handshake->lease_fd, PROT_READ | PROT_WRITE, NULL);
    const bool arena = lease != NULL && ml_arena_map(lease);
    uint8_t *staging = arena ? ml_arena_map_staging(handshake->staging_fd, slots, false) : NULL;
    if (staging == NULL || control == NULL || !are_ours(staging, control, lease, slots)) {
        ml_arena_unmap(); /* of a program that is short of memory */
        unmap_page(control);
        unmap_page(lease);
        return false;
    }
    ml_process.lease = (struct ml_lease_page *)(void *)lease;
    ml_process.staging = staging;
    ml_process.control = (const struct ml_control_page *)(const void *)control;
    return true;
}

/* A forked child maps its own pages over its parent's. Staging that a decoy still uses stays. All
 * processes share the lease. */
static bool map_over_parents(const struct ml_handshake *handshake) {
    /* MAP_FIXED needs an address that is not const; the page itself is never written by us. */
    const uint8_t *control =
        map_page(handshake->control_fd, PROT_READ, (void *)(uintptr_t)ml_process.control);
    uint8_t *staging =
        ml_arena_map_staging(handshake->staging_fd, ml_process.slots, !ml_decoy_pending());
    if (staging != NULL) {
        ml_process.staging = staging;
    }
    return staging != NULL && control != NULL &&
           are_ours(staging, control, (const uint8_t *)ml_process.lease, ml_process.slots);
}

void ml_start_stream(struct ml_thread *thread, uint64_t fork_serial) {
    struct ml_gate_page *page = ml_process.gate_page;
    atomic_store_explicit(&page->table_shift, ML_TABLE_SHIFT_MIN, memory_order_relaxed);
    ml_arena_begin();
    ml_decoy_step_aside();
    thread->generation = ml_process.generation;
    thread->second = NULL;
    thread->lane = ml_lane_take((uint32_t)ml_sys0(SYS_gettid));
    if (thread->lane == NULL) {
        ml_process_off();
        return;
    }
    atomic_store_explicit(&page->profile, thread->lane->profile, memory_order_relaxed);
    ml_record_start(thread->lane, fork_serial);
    ml_record_thread(thread->lane);
    ml_mapping_begin(thread->lane);
    ml_lifecycle_watch_exit(thread->lane);
    ml_process_set_state(ml_process.control->enabled != 0 ? ML_GATE_RECORDING : ML_GATE_DORMANT);
}

bool ml_start_adopt(struct ml_handshake *handshake, bool again) {
    ml_process.slots = handshake->params.staging_slots;
    ml_process.pid = (uint32_t)ml_sys0(SYS_getpid);
    /* Mapped, the memfds are not needed any more. */
    const bool mapped = ml_process.slots != 0 && ml_process.slots <= ML_STAGING_SLOTS_MAX &&
                        (again ? map_over_parents(handshake) : map_shared_parts(handshake));
    ml_start_close_memfds(handshake);
    if (!mapped || !ml_process_file(handshake->pipe_fd, &ml_process.pipe)) {
        return false;
    }
    ml_process.lease_number = __atomic_add_fetch(&ml_process.lease->numbers, 1, __ATOMIC_RELAXED);
    ml_process.clock = ml_process.control->clock;
    const long pipe_bytes = (ml_process.filters & ML_FILTERS_NO_PIPE_SIZE) == 0
                                ? ml_sys3(SYS_fcntl, handshake->pipe_fd, GET_PIPE_BYTES, 0)
                                : 0;
    ml_process.pipe_bytes = pipe_bytes > 0 ? (uint64_t)pipe_bytes : PIPE_DEFAULT_BYTES;
    if (!again) { /* a child keeps its parent's answer: filters may have changed it */
        ml_process.no_sigpipe = (ml_process.filters & ML_FILTERS_NO_SILENCE) == 0 &&
                                ml_pipe_is_silent(handshake->pipe_fd);
    }
    atomic_store(&ml_process.pipe_fd, handshake->pipe_fd);
    return true;
}

/* What a preloaded client asks libc for. These may allocate, so the phase says that the next
 * allocator is at work. */
static void ask_libc(struct ml_thread *thread) {
    thread->phase = ML_PHASE_NEXT;
    ml_check_want(ml_process.control->unwind_check);
    ml_lifecycle_ask_libc();
    thread->phase = ML_PHASE_RECORD;
}

void ml_start_forget(void) {
    const int pipe_fd = atomic_exchange(&ml_process.pipe_fd, -1);
    const int socket_fd = atomic_exchange(&ml_process.socket_fd, -1);
    if (ml_process_is_file(pipe_fd, &ml_process.pipe)) {
        ml_sys_close(pipe_fd);
    }
    if (ml_process_is_file(socket_fd, &ml_process.socket)) {
        ml_sys_close(socket_fd);
    }
    const void *control = ml_process.control;
    const void *lease = ml_process.lease;
    ml_process_forget();
    ml_arena_unmap();
    unmap_page(control);
    unmap_page(lease);
}

enum ml_start ml_start_connected(int socket_fd) {
    struct ml_thread *thread = ml_this_thread();
    struct ml_handshake handshake;
    const enum ml_answer answer = ml_handshake_ask(socket_fd, &handshake);
    if (answer != ML_ANSWER_GOOD) {
        ml_sys_close(socket_fd);
        return answer == ML_ANSWER_NONE ? ML_START_UNANSWERED : ML_START_REFUSED;
    }
    if (handshake.params.verdict == MEMLOG_CLIENT_VERDICT_REFUSED) {
        ml_sys_close(handshake.pipe_fd);
        ml_start_close_memfds(&handshake);
        ml_sys_close(socket_fd);
        return ML_START_REFUSED;
    }
    if (!ml_start_adopt(&handshake, false) || !ml_process_file(socket_fd, &ml_process.socket)) {
        (void)ml_handshake_no_room(socket_fd);
        ml_arena_unmap();
        ml_sys_close(handshake.pipe_fd);
        ml_sys_close(socket_fd);
        return ML_START_NO_ROOM;
    }
    ask_libc(thread);
    ml_unindexed_find();
    ml_scripts_find();
    const struct ml_bytes title = ml_handshake_title();
    ml_process.title = title.data;
    ml_process.title_bytes = title.count_bytes;
    atomic_store(&ml_process.socket_fd, socket_fd);
    ml_process.generation++;
    struct ml_gate_page *page = (struct ml_gate_page *)(void *)ml_process.memory.arena.start;
    /* A page that says nothing is a forked child's. A thread that allocates before the stream has
     * begun (the host's own, where it is linked in) must not take itself for one. */
    atomic_store(&page->gate, ml_gate_value(ml_process.generation, ML_GATE_OFF));
    ml_process.gate_page = page;
    ml_process.connected = true;
    ml_start_stream(thread, 0);
    return ML_START_DONE;
}

bool ml_lifecycle_connect(const char *socket_path) {
    int socket_fd = -1;
    if (ml_process.connected) {
        return false;
    }
    const int left_fd = ml_exec_preload_take_left();
    const bool is_there = (left_fd >= 0 && ml_handshake_connect_by(left_fd, &socket_fd)) ||
                          ml_handshake_connect(socket_path, &socket_fd);
    ml_sys_close(left_fd);
    return is_there && ml_start_connected(socket_fd) == ML_START_DONE;
}
