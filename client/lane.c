#include "client/lane.h"

#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "client/stack_table.h"

enum {
    FLAG_NOSIGNAL = 0x100, /* RWF_NOSIGNAL, Linux 6.18 */
    WAIT_MAX_MS = 1000,    /* interface.md, --memlog-overrun=block */
    SIGSET_BYTES = 8,
    SIGPIPE_BIT = 12 /* SIGPIPE is 13, bits count from signal 1 */
};

static struct ml_staging_lane *shared_header(uint32_t index) {
    return (struct ml_staging_lane
                *)(void
                       *)(ml_process.staging + ML_STAGING_LANES_OFFSET + (uint64_t)index * ML_STAGING_LANE_BYTES);
}

/* Plain counters of the lane header: this thread alone writes them, the service reads them whenever
 * it likes. */
static void header_add(uint64_t *counter, uint64_t amount) {
    _Atomic uint64_t *atomic = (_Atomic uint64_t *)counter;
    atomic_store_explicit(
        atomic, atomic_load_explicit(atomic, memory_order_relaxed) + amount, memory_order_relaxed
    );
}

static void open_chunk(struct ml_lane *lane) {
    lane->start = ml_process.staging +
                  ml_staging_slot_offset(lane->index, lane->number, ml_process.slots) +
                  ML_FRAME_HEADER_BYTES;
    lane->limit = lane->start + ML_CHUNK_MAX_BYTES - ML_EVENT_HOT_MAX_BYTES;
    lane->state = (struct ml_event_state){0};
    lane->produced_before = lane->header->produced;
    ml_lane_publish(lane, lane->start);
}

void ml_lane_begin(struct ml_lane *lane, uint32_t profile) {
    struct ml_staging_lane *header = lane->header;
    lane->number = ml_profile_first_chunk(profile);
    lane->stuck = 0;
    lane->thread_node = 0;
    header->lost_chunks = 0;
    header->lost_events = 0;
    header->produced = 0;
    header->waited_ns = 0;
    header->longest_wait_ns = 0;
    header->waits = 0;
    __atomic_store_n(&header->sent, lane->number, __ATOMIC_RELEASE);
    open_chunk(lane);
    lane->tag = ml_stack_tag(profile);
    lane->profile = profile;
}

/* Programs close every descriptor and reuse the numbers: what is not our pipe any more is not
 * written to. */
static bool still_our_pipe(int fd) {
    struct stat about;
    if (ml_sys3(SYS_fstat, fd, (long)&about, 0) != 0) {
        return false;
    }
    return about.st_dev == ml_process.pipe_device && about.st_ino == ml_process.pipe_inode;
}

/* A write that never raises SIGPIPE, on kernels that have no flag for that: block it, write, take
 * it back. */
static long write_guarded(int fd, const void *bytes, size_t count_bytes) {
    const uint64_t sigpipe = (uint64_t)1 << SIGPIPE_BIT;
    uint64_t before = 0;
    uint64_t pending_before = 0;
    (void
    )ml_sys4(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, (long)&sigpipe, (long)&before, SIGSET_BYTES);
    (void)ml_sys3(SYS_rt_sigpending, (long)&pending_before, SIGSET_BYTES, 0);
    const long result = ml_sys3(SYS_write, fd, (long)bytes, (long)count_bytes);
    if (result == -EPIPE && (pending_before & sigpipe) == 0) {
        const int64_t no_time[2] = {0, 0};
        (void)ml_sys4(SYS_rt_sigtimedwait, (long)&sigpipe, 0, (long)no_time, SIGSET_BYTES);
    }
    (void)ml_sys4(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&before, 0, SIGSET_BYTES);
    return result;
}

static long write_silently(int fd, void *bytes, size_t count_bytes) {
    if (ml_process.no_sigpipe) {
        const struct iovec piece = {.iov_base = bytes, .iov_len = count_bytes};
        const long result = ml_sys6(SYS_pwritev2, fd, (long)&piece, 1, -1, -1, FLAG_NOSIGNAL);
        if (result != -EOPNOTSUPP && result != -EINVAL && result != -ENOSYS && result != -EPERM) {
            return result;
        }
        ml_process.no_sigpipe = false;
    }
    return write_guarded(fd, bytes, count_bytes);
}

/* Wait until the pipe takes something again, at most until `deadline_ns`. */
static void wait_for_room(int fd, uint64_t now_ns, uint64_t deadline_ns) {
    struct pollfd wanted = {.fd = fd, .events = POLLOUT, .revents = 0};
    const uint64_t left_ms = (deadline_ns - now_ns) / 1000000u + 1;
    (void)ml_sys3(SYS_poll, (long)&wanted, 1, (long)left_ms);
}

/* What became of a frame. */
enum sent { SENT, NO_ROOM, NO_PIPE };

static enum sent send_frame(struct ml_lane *lane, void *frame, size_t count_bytes) {
    uint64_t started_ns = 0;
    for (;;) {
        const int fd = atomic_load_explicit(&ml_process.pipe_fd, memory_order_relaxed);
        if (fd < 0 || !still_our_pipe(fd)) {
            return NO_PIPE;
        }
        const long result = write_silently(fd, frame, count_bytes);
        if (result == (long)count_bytes) {
            lane->stuck = 0;
            break;
        }
        if (result == -EPIPE || (result != -EAGAIN && result != -EINTR)) {
            ml_process_off();
            return NO_PIPE;
        }
        const uint64_t now_ns = ml_sys_monotonic_ns();
        if (started_ns == 0) {
            started_ns = now_ns;
        }
        const uint64_t deadline_ns = started_ns + (uint64_t)WAIT_MAX_MS * 1000000u;
        if (result == -EAGAIN && (lane->stuck != 0 || now_ns >= deadline_ns)) {
            lane->stuck = 1;
            break;
        }
        if (result == -EAGAIN) {
            wait_for_room(fd, now_ns, deadline_ns);
        }
    }
    if (started_ns != 0) {
        const uint64_t waited_ns = ml_sys_monotonic_ns() - started_ns;
        header_add(&lane->header->waited_ns, waited_ns);
        lane->header->waits++;
        if (waited_ns > lane->header->longest_wait_ns) {
            lane->header->longest_wait_ns = waited_ns;
        }
    }
    return lane->stuck == 0 ? SENT : NO_ROOM;
}

void ml_lane_flush(struct ml_lane *lane) {
    const size_t count_bytes = (size_t)(lane->pos - lane->start);
    if (count_bytes == 0) {
        return;
    }
    const struct ml_frame_header header = {
        .chunk_number = lane->number,
        .end_bytes = (uint16_t)count_bytes,
        .start_bytes = 0,
        .lane = (uint16_t)lane->index,
        .thread_id = lane->thread_id,
    };
    uint8_t *frame = lane->start - ML_FRAME_HEADER_BYTES;
    ml_frame_header_write(frame, &header);
    const enum sent sent = send_frame(lane, frame, ML_FRAME_HEADER_BYTES + count_bytes);
    const uint64_t events = lane->header->produced - lane->produced_before;
    if (sent == NO_ROOM) {
        header_add(&lane->header->lost_events, events);
    } else if (sent == NO_PIPE) {
        __atomic_fetch_add(&ml_process_staging_header()->lost_no_pipe, events, __ATOMIC_RELAXED);
    }
    lane->number++;
    atomic_store_explicit(
        (_Atomic uint64_t *)&lane->header->sent, lane->number, memory_order_release
    );
    if (sent != SENT) {
        /* Behind `sent`: whoever sees the chunk counted sees that it is not on its way. */
        _Atomic uint64_t *lost = (_Atomic uint64_t *)&lane->header->lost_chunks;
        const uint64_t before = atomic_load_explicit(lost, memory_order_relaxed);
        atomic_store_explicit(lost, before + 1, memory_order_release);
    }
    open_chunk(lane);
}

/* Records with a time are small; the longest, MAPPING, has ten varints. */
enum { TIMED_MAX_BYTES = 1 + 10 * ML_VARINT_MAX_BYTES };

static bool has_time(enum ml_event_kind kind) {
    return (kind >= ML_EVENT_SAMPLING && kind < ML_EVENT_EXTENDED_COUNT) || kind >= ML_EVENT_ALLOC;
}

void ml_lane_record(struct ml_lane *lane, const struct ml_event *event) {
    struct ml_event copy = *event;
    uint8_t *end = lane->start + ML_CHUNK_MAX_BYTES;
    for (int attempt = 0; attempt < 2; attempt++) {
        struct ml_writer w = ml_writer_into(lane->pos, (size_t)(end - lane->pos));
        const bool timed = has_time(copy.kind) && copy.kind != ML_EVENT_NODE;
        if (!timed || (size_t)(end - lane->pos) >= TIMED_MAX_BYTES) {
            if (timed) {
                ml_lane_busy(lane);
                copy.time = ml_lane_stamp(lane);
            }
            const enum ml_status status = ml_event_encode(&w, &lane->state, &copy);
            if (status == ML_OK) {
                ml_lane_publish(lane, w.pos);
                return;
            }
            if (status != ML_BUG_SPACE) {
                break;
            }
        }
        ml_lane_flush(lane);
        end = lane->start + ML_CHUNK_MAX_BYTES;
    }
    /* A record that breaks its own contract is left out; the lane stays whole. */
    ml_lane_publish(lane, lane->pos);
}

static struct ml_lane *pop_free(void) {
    _Atomic uint64_t *top = &ml_process.gate_page->free_lanes;
    uint64_t seen = atomic_load_explicit(top, memory_order_acquire);
    while ((uint32_t)seen != 0) {
        struct ml_lane *lane = &ml_process.lanes[(uint32_t)seen - 1];
        const uint64_t version = (seen >> 32) + 1;
        const uint64_t next = version << 32 | __atomic_load_n(&lane->next_free, __ATOMIC_RELAXED);
        if (atomic_compare_exchange_weak_explicit(
                top, &seen, next, memory_order_acq_rel, memory_order_acquire
            )) {
            return lane;
        }
    }
    return NULL;
}

static struct ml_lane *first_use(void) {
    struct ml_gate_page *page = ml_process.gate_page;
    const uint32_t index = atomic_fetch_add_explicit(&page->lanes_used, 1, memory_order_relaxed);
    if (index >= ml_process.lanes_max) {
        atomic_fetch_sub_explicit(&page->lanes_used, 1, memory_order_relaxed);
        return NULL;
    }
    struct ml_lane *lane = &ml_process.lanes[index];
    lane->index = index;
    lane->header = shared_header(index);
    _Atomic uint32_t *used = (_Atomic uint32_t *)&ml_process_staging_header()->lanes_used;
    uint32_t seen = atomic_load_explicit(used, memory_order_relaxed);
    while (seen <= index && !atomic_compare_exchange_weak(used, &seen, index + 1)) {
    }
    return lane;
}

struct ml_lane *ml_lane_take(uint32_t thread_id) {
    struct ml_lane *lane = pop_free();
    const bool reused = lane != NULL;
    if (!reused) {
        lane = first_use();
    }
    if (lane == NULL) {
        __atomic_fetch_add(&ml_process_staging_header()->lost_no_lane, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    lane->thread_id = thread_id;
    lane->thread_node = 0;
    lane->second = 0;
    __atomic_store_n(&lane->header->thread_id, thread_id, __ATOMIC_RELAXED);
    const uint32_t profile = ml_process_profile();
    if (!reused || lane->profile != profile) {
        ml_lane_begin(lane, profile);
    }
    return lane;
}

void ml_lane_give(struct ml_lane *lane) {
    __atomic_store_n(&lane->header->thread_id, 0, __ATOMIC_RELAXED);
    _Atomic uint64_t *top = &ml_process.gate_page->free_lanes;
    uint64_t seen = atomic_load_explicit(top, memory_order_relaxed);
    uint64_t next = 0;
    do {
        __atomic_store_n(&lane->next_free, (uint32_t)seen, __ATOMIC_RELAXED);
        next = ((seen >> 32) + 1) << 32 | (lane->index + 1);
    } while (!atomic_compare_exchange_weak_explicit(
        top, &seen, next, memory_order_acq_rel, memory_order_relaxed
    ));
}
