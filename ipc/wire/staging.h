/* The layout of a client's staging memfd. Room: ipc (:wire). Context: written by the client's
 * threads, read by the service with pread(2) while they write.
 *
 * One rule: the service copies, then checks, then uses; it never maps this memory. The contents are
 * untrusted.
 *
 *   page 0                  struct ml_staging_header
 *   ML_STAGING_LANES_OFFSET struct ml_staging_lane [ML_LANES_MAX], a cache line each
 *   ML_STAGING_DATA_OFFSET  per lane `slots` slots of ML_FRAME_MAX_BYTES: a frame header's room,
 *                           then a chunk's bytes
 *
 * Chunk n of a lane lies in slot n % slots. Publishing is one release store of `published` = n <<
 * 16 | bytes: the bytes [0, bytes) of chunk n are final and end with a whole record. They stay
 * until chunk n + slots begins; a chunk begins by publishing n << 16 | 0, before its first byte is
 * written. With more than one slot the frame header of chunk n stands in its slot before chunk n +
 * 1 begins: there a reader finds the length of every chunk but the last. Chunks below `sent` have
 * been written to the pipe or dropped (then `lost_chunks` counts them, just behind that); chunks
 * [sent, n] are here, and in the pipe at most in part.
 *
 * A reader loads `published` and `sent`, copies what it wants of the chunks [max(sent, its own
 * next), n], and loads `published` again. It discards every copied chunk m with m + slots <= the
 * new n: that one was overwritten meanwhile, after it was sent or dropped and counted.
 *
 * A thread sets ML_PUBLISHED_BUSY in `published` before it takes an event's time stamp, and clears
 * it by publishing. Once a reader has all that a lane published and reads it as not busy, later
 * events of that lane have later stamps (but for the microseconds that a store takes to be visible:
 * ML_STAGING_SLACK_NS). This does not hold for a busy lane: its thread may be preempted between
 * stamp and publishing, for any time.
 *
 * An event is counted in `produced` while its lane is busy, just before it is published. So when a
 * process has ended, what its lanes produced is the sum of what the service received, what the
 * client reported as dropped, and at most one event for each lane left busy
 * (service/snapshot/accounting.h).
 *
 * The memfd is sealed against shrinking, growing and further seals before it is shared. */
#ifndef MEMLOG_IPC_WIRE_STAGING_H
#define MEMLOG_IPC_WIRE_STAGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/event.h"

#define ML_STAGING_MAGIC UINT64_C(0x31676c6d656d6d6c)
#define ML_CONTROL_MAGIC UINT64_C(0x31636c6d656d6d6c)

/* The largest interval of ml_control_page.sampling_bytes, 4 GiB: a larger one would sample nothing
 * in any heap. Products of sizes and intervals stay below 2^64. */
#define ML_SAMPLING_MAX_BYTES (UINT64_C(1) << 32)

enum {
    ML_STAGING_VERSION = 7,
    ML_STAGING_HEADER_BYTES = 4096,
    ML_STAGING_LANE_BYTES = 64,
    ML_STAGING_LANES_OFFSET = ML_STAGING_HEADER_BYTES,
    ML_STAGING_DATA_OFFSET = ML_STAGING_LANES_OFFSET + ML_LANES_MAX * ML_STAGING_LANE_BYTES,
    ML_STAGING_SLOTS_DEFAULT = 1,
    ML_STAGING_SLOTS_MAX = 256,
    ML_CONTROL_BYTES = 4096,
    ML_PUBLISHED_SHIFT = 16,
    ML_PUBLISHED_BUSY = 1 << 15, /* beside the byte count, which needs 12 bits */
    ML_PUBLISHED_BYTES_MASK = (1 << 15) - 1,
    ML_PROFILE_SHIFT =
        32, /* of chunk numbers, which have 48 bits: 2^32 chunks a lane and profile */
    ML_PAST_FILE_BYTES = 64, /* longer names are cut */
    ML_CONTROL_ALLOCATORS_BYTES = 256,
    ML_ENTRIES_REFUSED_BYTES = 96, /* longer texts are cut */
    ML_STAGING_OWN = 3,
    ML_STAGING_SLACK_NS =
        20000 /* a store buffer drains in well under 1 us; interrupts drain it too */
};

struct ml_staging_header {
    uint64_t magic;
    uint32_t version;
    uint32_t slots;      /* 1 .. ML_STAGING_SLOTS_MAX; set before sharing */
    uint32_t lanes_used; /* lanes [0, lanes_used) have ever been used; only grows */
    uint32_t past; /* ML_PAST_*: what was seen to go past memlog, in the process's whole life; only
                      grows; release-stored behind `past_file` */
    uint64_t truncated_stacks; /* stacks cut at ML_STACK_DEPTH_MAX: events, not stacks; relaxed
                                  counter */
    uint64_t broken_stacks;    /* events whose stack could not be walked to its end */
    uint64_t lost_no_lane;     /* calls without a lane; their events are in no lane's `produced` */
    uint64_t lost_nested;      /* calls of a signal handler inside a signal handler inside the hook;
                                  calls of a hook during which a handler forked */
    uint64_t lost_no_pipe;    /* events in chunks dropped because the program had closed the pipe */
    uint64_t lost_no_node;    /* events whose stack found no room in the stack table */
    uint64_t unwind_checked;  /* --unwind-check: stacks compared ... */
    uint64_t unwind_differed; /* ... and found different from libunwind's */
    uint64_t node_count;      /* nodes defined */
    uint64_t lost_messages;   /* refused by the host: forked children and programs that run
                                 unrecorded, which the report does not know */
    char past_file[ML_PAST_FILE_BYTES]; /* of the first object with ML_PAST_CALLS; any bytes, ended
                                           by a 0 */
    /* Memory of the client's own in the process, beside the memfds; relaxed. */
    struct ml_staging_own {
        uint64_t start;
        uint64_t bytes; /* grows */
    } own[ML_STAGING_OWN];
    /* An allocator inside the executable, release-stored behind `entries_refused`: how many of its
     * functions are hooked at their entries. */
    uint32_t entries;
    char entries_refused[ML_ENTRIES_REFUSED_BYTES]; /* why it is not, or not all of it; any bytes,
                                                       ended by a 0 */
    /* What the client costs, if the control page has it measured; relaxed counters, of the
     * process's whole life: no profile begins them anew. */
    uint64_t recording_ticks; /* of the tree's clock, spent in what sampling does not pass over */
    uint64_t passed_calls;    /* that it passes over */
    uint32_t pass_ticks_256;  /* what 256 of those take */
    /* The last program that the process, or a forked child of it without a staging of its own,
     * started unrecorded and could send no message about: ml_left_out; relaxed; 0: none. */
    uint64_t left_out;
};
_Static_assert(sizeof(struct ml_staging_header) <= ML_STAGING_HEADER_BYTES, "a page");

/* Who was about to start it, by its own pid namespace's number (0: it may not ask for that), and a
 * NotProfiledReason. */
static inline uint64_t ml_left_out(uint32_t pid, uint32_t reason) {
    return (uint64_t)pid << 32 | (reason + 1);
}

/* False: there is none. */
static inline bool ml_left_out_read(uint64_t left_out, uint32_t *out_pid, uint32_t *out_reason) {
    *out_pid = (uint32_t)(left_out >> 32);
    *out_reason = (uint32_t)left_out - 1;
    return (uint32_t)left_out != 0;
}

/* Of `past`. */
enum {
    ML_PAST_CALLS = 1,       /* an object's calls go to another allocator's functions */
    ML_PAST_SEVERAL = 2,     /* not that object's alone */
    ML_PAST_SECOND_LIBC = 4, /* a namespace of its own (dlmopen) has a libc of its own */
    ML_PAST_LATE = 8,        /* the program ran before memlog was in it: it has older blocks */
    ML_PAST_INLINED = 16     /* the compiler has put the functions of the executable's own allocator
                                into their callers, too */
};

/* One cache line: only its owner writes it. */
struct ml_staging_lane {
    uint64_t
        published; /* release-stored: chunk number << ML_PUBLISHED_SHIFT | bytes of that chunk */
    uint64_t sent; /* first chunk number that is not yet in the pipe (nor dropped) */
    uint64_t
        lost_chunks; /* chunks dropped, ever; release-stored behind the `sent` that passes them */
    uint64_t lost_events; /* events in those of them for which the pipe had no room */
    uint64_t waited_ns;   /* time spent waiting for room in the pipe */
    uint64_t longest_wait_ns;
    uint32_t thread_id; /* the present owner; 0: free */
    uint32_t waits;
    uint64_t produced; /* events ever, see ml_staging_counts */
};
_Static_assert(
    sizeof(struct ml_staging_lane) == ML_STAGING_LANE_BYTES, "a lane header is one cache line"
);

/* A profile: the stream of a process between one START and the next. The host numbers a process's
 * profiles (struct ml_control_page); the lower half of the number stands on top of every chunk
 * number of it, in `published`, `sent` and the frame headers. A lane's owner changes to a new
 * profile between two events. It sets every counter of its lane header to 0 and `sent` to the new
 * profile's first chunk, and publishes that chunk empty. So a lane's counters are those of the
 * profile that `published` names, and a lane has nothing in any other profile. The header's own
 * counters continue: a reader that begins with a later profile subtracts their earlier values. */
static inline uint64_t ml_profile_first_chunk(uint32_t profile) {
    return (uint64_t)(profile & 0xffff) << ML_PROFILE_SHIFT;
}

/* The chunk's number within `profile`; false: it is of another one. */
static inline bool ml_profile_strip(uint32_t profile, uint64_t chunk_number, uint64_t *out_number) {
    *out_number = chunk_number & (((uint64_t)1 << ML_PROFILE_SHIFT) - 1);
    return chunk_number - *out_number == ml_profile_first_chunk(profile);
}

/* Whose functions stand in stacks, between the native ones. */
enum ml_frames { ML_FRAMES_NATIVE = 0, ML_FRAMES_PYTHON = 1, ML_FRAMES_COUNT };

/* The host's settings for one process, in a page that the host writes and the process only
 * reads. */
struct ml_control_page {
    uint64_t magic;
    uint32_t version;
    uint32_t enabled;        /* 0: dormant, 1: record */
    uint64_t sampling_bytes; /* mean bytes between samples, at most ML_SAMPLING_MAX_BYTES; 1: every
                                allocation */
    /* These two change last and in one store: a thread that sees the profile sees the generation,
     * and so does every thread that it then synchronizes with. */
    uint32_t generation; /* changes with every change of the page; never 0 */
    uint32_t profile; /* another one: begin a clean profile; a forked child's page begins with 0 */
    uint32_t stack_mode;   /* enum ml_stack_mode */
    uint32_t overrun;      /* 0: block within the bound, 1: sample coarser */
    uint32_t unwind_check; /* every Nth stack is also stepped by libunwind; 0: none */
    uint32_t clock;        /* enum ml_clock: the tree's one clock; never changes */
    uint32_t fork_enabled; /* initial value in a forked child's page, until the host has decided */
    uint32_t fork_pipe_bytes; /* how large a forked child makes its pipe, until the host has seen
                                 it; changes without a new generation; 0: as the kernel gives it */
    uint32_t all_sampled; /* 1: no block from a time of exact recording lives, so frees of unsampled
                             blocks need not be recorded */
    uint32_t hooks_entries; /* 1: an allocator inside the executable is hooked at its entries, at
                               the start */
    uint32_t frames;        /* enum ml_frames, beside the native ones; of the whole run */
    uint32_t measures_cost; /* 1: the staging's header tells what the client costs */
    char allocators[ML_CONTROL_ALLOCATORS_BYTES]; /* NAME=PREFIX,...: further ones, by the prefix of
                                                     their functions; ended by a 0 */
};
_Static_assert(sizeof(struct ml_control_page) <= ML_CONTROL_BYTES, "a page");

_Static_assert(
    offsetof(struct ml_control_page, generation) % 8 == 0 &&
        offsetof(struct ml_control_page, profile) ==
            offsetof(struct ml_control_page, generation) + 4,
    "one aligned word"
);

/* Whether a record of that kind is an event: what `produced`, `lost_events` and a report's figures
 * count. The others define and frame. */
static inline bool ml_staging_counts(enum ml_event_kind kind) {
    return kind >= ML_EVENT_ALLOC && kind <= ML_EVENT_CANCEL;
}

/* Size of the whole memfd for so many slots a lane. */
static inline uint64_t ml_staging_size_bytes(uint32_t slots) {
    return (uint64_t)ML_STAGING_DATA_OFFSET + (uint64_t)ML_LANES_MAX * slots * ML_FRAME_MAX_BYTES;
}

/* Where chunk `number` of `lane` has its frame; its records start ML_FRAME_HEADER_BYTES further. */
static inline uint64_t ml_staging_slot_offset(uint32_t lane, uint64_t number, uint32_t slots) {
    return (uint64_t)ML_STAGING_DATA_OFFSET +
           ((uint64_t)lane * slots + number % slots) * ML_FRAME_MAX_BYTES;
}

#endif
