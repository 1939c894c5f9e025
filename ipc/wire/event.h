/* The event stream, version 1: what a profiled process tells the service. Room: ipc (:wire).
 * Context: any.
 *
 * This header is the specification. One rule: the stream explains itself. A file that holds it from
 * its first byte can be replayed without anything else.
 *
 * The stream is a sequence of *frames*, each written with one write(2) of at most
 * ML_FRAME_MAX_BYTES (= PIPE_BUF, so writes of several threads never mix). Frames of one *lane* (a
 * thread's staging, `ipc/wire/staging.h`) come in order; frames of different lanes mix freely.
 *
 *   frame   = u64 word         little-endian: chunk number << 16 | end_bytes
 *             u16 lane         0 .. ML_LANES_MAX - 1
 *             u16 start_bytes
 *             u32 thread_id    the owner's gettid() as it sees it itself; for people
 *             payload          bytes [start_bytes, end_bytes) of that chunk, at least one
 *
 * A stream may hold several *profiles* of the process one after another, each of which knows
 * nothing of the ones before: the upper 16 bits of the 48 of a chunk number tell which
 * (ml_profile_first_chunk, ipc/wire/staging.h). What follows holds within one.
 *
 * A lane's *chunks* are numbered from 0 without holes, over all threads that own the lane one after
 * another. A chunk holds at most ML_CHUNK_MAX_BYTES of records, and a chunk and every frame of it
 * hold whole records only. Chunks that were dropped are holes in the numbers. At a chunk's first
 * byte the lane's decoding state is all zero (time, address, node, ...), so a lost chunk costs its
 * own records and no others. start_bytes > 0 continues a chunk of which [0, start_bytes) came
 * before.
 *
 *   record  = u8 op, then fields. op & 7 is the kind, op >> 3 the kind's flags (or, for EXTENDED,
 *             the sub-kind).
 *   varint  = unsigned, 7 bits a byte, least significant first, minimal form only.
 *   zigzag  = signed, as a varint.
 *   blob    = varint length, then that many bytes.
 *
 * State of a lane's decoder, zero at each chunk's start: time (ticks), address, alloc node, node
 * id, node address, node module. "d X" is the difference to that state, which then becomes X.
 *
 *   ALLOC     varint dtime
 *             zigzag daddress
 *             varint size_bytes
 *             zigzag dnode                        unless ML_ALLOC_SAME_NODE: the lane's previous
 *                                                 alloc's node (0 at a chunk's start)
 *             varint heap, varint type            if ML_ALLOC_TYPED, else 0, 0
 *             varint weight_bytes, weight_blocks  if ML_ALLOC_SAMPLED, else size_bytes, 1
 *   FREE      varint dtime
 *             zigzag daddress
 *             varint heap                         if ML_FREE_HEAP, else 0
 *             ML_FREE_SKIPPED: between the lane's last record and this one the thread made an
 *             unrecorded call; ML_FREE_UNSURE: the block may never have been recorded, so an
 *             unknown address is no sign of a loss
 *   RESIZE    as FREE: the free half of a realloc; the next ALLOC or CANCEL of this lane
 *             completes it
 *   CANCEL    varint dtime: the realloc failed, the block of this lane's last RESIZE is live as
 *             before
 *   NODE      zigzag did
 *             varint id - parent                  >= 1, so parents have smaller ids: no cycles
 *             address frame: varint module        unless ML_NODE_SAME_MODULE
 *                            zigzag daddress      in bytes; of the return address - 1, or of the
 *                                                 interrupted instruction itself
 *             other frames:  varint string id     unless the kind has none
 *   EXTENDED  see enum ml_event_kind; written out below at each kind's struct.
 *
 * daddress of ALLOC, FREE and RESIZE counts units of 16 bytes, or bytes if ML_UNALIGNED is set.
 *
 * There is one way to write a record: ML_UNALIGNED exactly when the difference is no multiple of
 * 16, ML_ALLOC_SAME_NODE and ML_NODE_SAME_MODULE exactly when they are the same, ML_ALLOC_TYPED and
 * ML_FREE_HEAP only for something other than 0. Anything else is ML_PEER_FORM; an op, flag or
 * sub-kind that is not here is ML_PEER_UNKNOWN; an enum, id, address, size or sum out of bounds is
 * ML_PEER_RANGE. Addresses of blocks are not 0: free(NULL) is no event.
 *
 * Sampling: a lane that samples at an interval of R bytes (START, SAMPLING) records a block of size
 * s < R with probability p = 1 - exp(-(s + 1) / R), independently of other blocks. It records a
 * larger block always. Such a record is marked ML_ALLOC_SAMPLED and stands for weight_blocks blocks
 * and weight_bytes bytes. These are 1 / p and s / p, rounded up or down at random with exactly
 * those means; for a large block 1 and s. Sums of weights are thus unbiased estimates, and sums of
 * weight_bytes * (weight_bytes - s) and weight_blocks * (weight_blocks - 1) unbiased estimates of
 * their variances. A lane that does not sample marks nothing.
 *
 * Time: ticks of the process tree's one clock (the START record names it): the TSC, or
 * CLOCK_MONOTONIC in ns. Definitions (NODE, MODULE, STRING, TYPE, HEAP) carry no time: they hold
 * from the moment they arrive. They are in their lane before any record that refers to them, in any
 * lane, is stamped. An id may be defined again before anything refers to it (a thread that lost a
 * race for a node may reuse the id it had reserved): the last definition holds. A record that
 * refers to an undefined id loses its stack, not its bytes. */
#ifndef MEMLOG_IPC_WIRE_EVENT_H
#define MEMLOG_IPC_WIRE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "ipc/wire/reader.h"
#include "ipc/wire/writer.h"

enum {
    ML_STREAM_VERSION = 1,
    ML_FRAME_MAX_BYTES = 4096, /* PIPE_BUF on Linux: the largest atomic write to a pipe */
    ML_FRAME_HEADER_BYTES = 16,
    ML_CHUNK_MAX_BYTES = ML_FRAME_MAX_BYTES - ML_FRAME_HEADER_BYTES,
    ML_LANES_MAX =
        8192, /* threads alive at once, a signal's second lane counted; 64 B of lane header each */
    ML_BUILD_ID_MAX_BYTES =
        64, /* a build id is a hash: 20 bytes by GNU ld, 32 seen; more is not a hash */
    ML_PATH_MAX_BYTES =
        3840, /* so that a MODULE record always fits one chunk; longer paths are cut in front */
    ML_STRING_MAX_BYTES = 1024,
    ML_THREAD_NAME_MAX_BYTES = 16, /* TASK_COMM_LEN, with its NUL */
    ML_NODES_MAX = 1 << 24, /* stack nodes of a process: 16 B each in the client, ids fit 24 bits */
    ML_MODULES_MAX = 1 << 16,
    ML_STRINGS_MAX = 1 << 16,
    ML_HEAPS_MAX = 256,
    ML_TYPES_MAX = 1 << 16,
    ML_STACK_DEPTH_MAX =
        512 /* frames kept of a stack, innermost and outermost; the cut is a frame of its own */
};

/* The largest block size and the largest weight of one event: no x86-64 or arm64 process can hold
 * more, and 2^16 events of it still do not wrap a 64-bit sum. */
#define ML_SIZE_MAX_BYTES ((uint64_t)1 << 48)

/* User addresses lie below: half of the 57 bits of five-level paging on x86-64, more than arm64's
 * 52. ML_PEER_RANGE from here on. */
#define ML_ADDRESS_MAX ((uint64_t)1 << 56)

/* Low three bits of op. */
enum ml_op {
    ML_OP_EXTENDED = 0, /* so that a page of zeros is an error at once: sub-kind 0 does not exist */
    ML_OP_ALLOC = 1,
    ML_OP_FREE = 2,
    ML_OP_RESIZE = 3,
    ML_OP_NODE = 4,
    ML_OP_CANCEL = 5
};

/* Flags of op >> 3; bits that a kind does not name must be 0. */
enum {
    ML_UNALIGNED = 1 << 3, /* ALLOC, FREE, RESIZE */
    ML_ALLOC_SAME_NODE = 1 << 4,
    ML_ALLOC_TYPED = 1 << 5,
    ML_ALLOC_SAMPLED = 1 << 6,
    ML_FREE_HEAP = 1 << 4, /* FREE, RESIZE */
    ML_FREE_SKIPPED = 1 << 5,
    ML_FREE_UNSURE = 1 << 6,
    ML_NODE_SAME_MODULE = 1 << 3,
    ML_NODE_FRAME_SHIFT = 4 /* NODE: enum ml_frame_kind in bits 4..7 */
};

/* What a stack node stands for. */
enum ml_frame_kind {
    ML_FRAME_ADDRESS = 0, /* an address of code */
    ML_FRAME_THREAD = 1,  /* a thread's name, at the root */
    ML_FRAME_SCOPE = 2,   /* a pseudo-stack scope named by the program */
    ML_FRAME_CUT = 3,     /* frames are missing here: deeper than ML_STACK_DEPTH_MAX. No string */
    ML_FRAME_BROKEN = 4,  /* the stack could not be walked further out from here. No string */
    ML_FRAME_SCRIPT = 5,  /* a function of code that a run-time made, by the name that it gave */
    ML_FRAME_KIND_COUNT
};

/* Whether its node has a string. */
static inline bool ml_frame_has_string(uint32_t frame) {
    return frame == ML_FRAME_THREAD || frame == ML_FRAME_SCOPE || frame == ML_FRAME_SCRIPT;
}

/* Every kind of record after decoding. EXTENDED sub-kinds are written as op = kind << 3. */
enum ml_event_kind {
    ML_EVENT_NONE = 0,
    ML_EVENT_START = 1,  /* EXTENDED; once a profile: first record of the lane that begins it, which
                            in the first one is lane 0 */
    ML_EVENT_THREAD = 2, /* EXTENDED; this lane now belongs to that thread */
    ML_EVENT_MODULE = 3, /* EXTENDED; an ELF file's mapped image */
    ML_EVENT_STRING = 4, /* EXTENDED; id -> bytes */
    ML_EVENT_TYPE = 5,   /* EXTENDED; type id -> string id */
    ML_EVENT_HEAP = 6,   /* EXTENDED; heap id -> string id. Heap 0 is "malloc" and needs none */
    ML_EVENT_SAMPLING = 7, /* EXTENDED; from here on this lane samples at that interval */
    ML_EVENT_FORK = 8,     /* EXTENDED; the process is about to fork; the child names the serial */
    ML_EVENT_REAPED = 9,   /* EXTENDED; the process has waited for a child's end */
    ML_EVENT_END = 10,     /* EXTENDED; the process is about to exit or to exec */
    ML_EVENT_MAPPING = 11, /* EXTENDED; address space was mapped, moved, unmapped or named */
    ML_EVENT_UNLOAD = 12,  /* EXTENDED; dlclose has unmapped a module */
    ML_EVENT_LOSS = 13,    /* EXTENDED; events of this lane that were dropped, with the reason */
    ML_EVENT_EXTENDED_COUNT,
    ML_EVENT_ALLOC = 16,
    ML_EVENT_FREE = 17,
    ML_EVENT_RESIZE = 18,
    ML_EVENT_CANCEL = 19,
    ML_EVENT_NODE = 20
};

enum ml_clock { ML_CLOCK_TSC = 0, ML_CLOCK_MONOTONIC = 1, ML_CLOCK_COUNT };

enum ml_stack_mode {
    ML_STACK_NATIVE = 0,
    ML_STACK_NATIVE_WITH_THREAD_NAMES = 1,
    ML_STACK_PSEUDO = 2,
    ML_STACK_MIXED = 3,
    ML_STACK_MODE_COUNT
};

enum ml_end_kind { ML_END_EXIT = 0, ML_END_EXEC = 1, ML_END_KIND_COUNT };

enum ml_loss_reason {
    ML_LOSS_OVERRUN = 0, /* the pipe stayed full beyond the bound */
    ML_LOSS_NO_LANE = 1, /* more threads than lanes */
    ML_LOSS_NO_NODE = 2, /* the stack table was full: the event came, its stack did not */
    ML_LOSS_NESTED = 3,  /* a signal handler inside a signal handler inside the hook */
    ML_LOSS_REASON_COUNT
};

enum ml_mapping_kind {
    /* mmap, shmat. What lay there before is unmapped. */
    ML_MAPPING_MAP = 0,
    /* munmap, shmdt, and mremap's old place. Stamped before the call. */
    ML_MAPPING_UNMAP = 1,
    /* What this lane's last UNMAP took lies here now: mremap, or a call that failed. It may be
     * longer than it was, and may be told more than once. */
    ML_MAPPING_MOVED = 2,
    /* prctl(PR_SET_VMA_ANON_NAME), whether the kernel keeps such names or not. */
    ML_MAPPING_NAME = 3,
    /* A thread's stack. The node's innermost frame is its start routine. */
    ML_MAPPING_STACK = 4,
    ML_MAPPING_KIND_COUNT
};

/* What else is known of a MAP. */
enum {
    ML_MAPPING_NESTED = 1, /* the allocator called it, to serve a call of the program's */
    ML_MAPPING_EARLY = 2,  /* from before the stream began: it has no stack */
    ML_MAPPING_FLAGS = 3
};

/* varint version, clock, pid, thread_id, ticks, monotonic_ns, sampling_bytes (>= 1), stack_mode,
 * page_bytes, fork_serial. Another version is ML_PEER_VERSION. */
struct ml_event_start {
    uint32_t version;
    uint32_t clock; /* enum ml_clock */
    uint32_t pid;   /* as the process sees it; the host's is authoritative */
    uint32_t thread_id;
    uint64_t ticks;          /* the same moment by the stream's clock */
    uint64_t monotonic_ns;   /* and by CLOCK_MONOTONIC */
    uint64_t sampling_bytes; /* mean bytes between samples; 1: every allocation */
    uint32_t stack_mode;     /* enum ml_stack_mode */
    uint32_t page_bytes;
    uint64_t fork_serial; /* of the parent's FORK record for this process; 0: from exec or unknown
                           */
};

/* varint thread_id, blob name of at most ML_THREAD_NAME_MAX_BYTES - 1. */
struct ml_event_thread {
    uint32_t thread_id;
    const uint8_t *name; /* without NUL */
    uint32_t name_bytes;
};

/* varint id, start, end - start (>= 1), zigzag bias, blob build_id, blob path, varint code_address,
 * code_offset. id counts from 1; 0 means "no module". */
struct ml_event_module {
    uint32_t id;
    uint64_t start;          /* first mapped address */
    uint64_t end;            /* one behind the last */
    int64_t bias;            /* mapped address - ELF virtual address (0 for a non-PIE) */
    const uint8_t *build_id; /* raw; 0 bytes when the file has none */
    uint32_t build_id_bytes;
    const uint8_t
        *path; /* as the loader names it; "" for the main program until the host tells; "[vdso]" */
    uint32_t path_bytes;
    /* ELF address of the first executable segment, and its place in the file; both 0 where the
     * headers were not found. Perfetto's symbolizer tells a frame's place in the file by them. */
    uint64_t code_address, code_offset;
};

/* STRING: varint id, blob bytes. TYPE, HEAP: varint id, varint string_id. ids count from 1. */
struct ml_event_name {
    uint32_t id;
    uint32_t string_id;
    const uint8_t *bytes;
    uint32_t bytes_count;
};

/* MAPPING: varint dtime, kind, address, length_bytes, flags, node, string_id. */
struct ml_event_mapping {
    uint32_t kind;    /* enum ml_mapping_kind */
    uint64_t address; /* ML_MAPPING_PAGE_BYTES divide it */
    /* 0: all that was mapped there by one call, whose length is not known (shmat, shmdt). */
    uint64_t length_bytes;
    uint32_t flags;     /* ML_MAPPING_NESTED, ML_MAPPING_EARLY */
    uint32_t node;      /* 0: no stack */
    uint32_t string_id; /* NAME: 0 takes the name away; other kinds have none */
};

enum { ML_MAPPING_PAGE_BYTES = 4096 };

/* What the flags of a block's record say of it. */
enum {
    ML_BLOCK_SAMPLED = 1, /* ALLOC: ML_ALLOC_SAMPLED */
    ML_BLOCK_SKIPPED = 2, /* FREE, RESIZE: ML_FREE_SKIPPED */
    ML_BLOCK_UNSURE = 4   /* FREE, RESIZE: ML_FREE_UNSURE */
};

/* ALLOC and, as far as they have the field, FREE, RESIZE, CANCEL. */
struct ml_event_block {
    uint64_t address;
    uint64_t size_bytes;
    uint64_t weight_bytes;  /* what the block stands for: size_bytes, or more when sampled */
    uint64_t weight_blocks; /* 1, or more when sampled; whole blocks */
    uint32_t node;          /* innermost frame; 0: no stack */
    uint16_t type;
    uint8_t heap;
    uint8_t marks; /* ML_BLOCK_* */
};

/* NODE. */
struct ml_event_node {
    uint32_t id;     /* 1 .. ML_NODES_MAX - 1 */
    uint32_t parent; /* < id; 0: the root */
    uint32_t frame;  /* enum ml_frame_kind */
    uint32_t module; /* id, 0: none; address frames only */
    uint64_t address;
    uint32_t string_id; /* THREAD, SCOPE and SCRIPT frames only */
};

struct ml_event {
    enum ml_event_kind kind;
    uint64_t time; /* ticks; 0 for the kinds without a time (definitions, START, THREAD) */
    union {
        struct ml_event_block block; /* ALLOC FREE RESIZE CANCEL */
        struct ml_event_node node;
        struct ml_event_start start;
        struct ml_event_thread thread;
        struct ml_event_module module;
        struct ml_event_name name; /* STRING TYPE HEAP */
        struct ml_event_mapping mapping;
        uint64_t sampling_bytes; /* SAMPLING: varint dtime, varint interval (>= 1) */
        uint64_t fork_serial;    /* FORK: varint dtime, varint serial (>= 1) */
        uint32_t reaped_pid;     /* REAPED: varint dtime, varint pid */
        uint32_t end_kind;       /* END: varint dtime, varint enum ml_end_kind */
        uint32_t unload_module;  /* UNLOAD: varint dtime, varint module id */
        struct {
            uint32_t reason; /* LOSS: varint dtime, varint enum ml_loss_reason, varint count (>= 1).
                                For replayed files; the service also has staging's counters and
                                takes the larger of both */
            uint64_t count;
        } loss;
    };
};

/* Whether a MAPPING's fields are within their bounds: whole pages below ML_ADDRESS_MAX. */
static inline bool ml_event_mapping_is_in_range(const struct ml_event_mapping *mapping) {
    return mapping->kind < ML_MAPPING_KIND_COUNT && mapping->address < ML_ADDRESS_MAX &&
           mapping->length_bytes <= ML_ADDRESS_MAX - mapping->address &&
           (mapping->address | mapping->length_bytes) % ML_MAPPING_PAGE_BYTES == 0 &&
           mapping->flags <= ML_MAPPING_FLAGS && mapping->node < ML_NODES_MAX &&
           mapping->string_id < (mapping->kind == ML_MAPPING_NAME ? ML_STRINGS_MAX : 1);
}

/* A lane's running values. All zero at a chunk's start; the encoder keeps the same ones. */
struct ml_event_state {
    uint64_t time;
    uint64_t address;
    uint32_t node;
    uint32_t node_id;
    uint64_t node_address;
    uint32_t node_module;
};

/* Decode the record at the reader's position.
 *
 * Errors: ML_PEER_*. On error neither reader nor state have moved, and the lane is lost: nothing
 * behind is trustworthy. Owner: pointers in *out_event point into the reader's bytes. */
ML_NODISCARD enum ml_status
ml_event_decode(struct ml_reader *r, struct ml_event_state *state, struct ml_event *out_event);

/* Encode one record of any kind, for the text form and tests. The client's hot records have an
 * inline encoder (ipc/wire/event_put.h); tests compare both.
 *
 * Errors: ML_BUG_SPACE when it does not fit, then nothing was written and state is as before;
 *         ML_BUG_CONTRACT for a value outside its range. */
ML_NODISCARD enum ml_status
ml_event_encode(struct ml_writer *w, struct ml_event_state *state, const struct ml_event *event);

/* The kind in capitals as the text form writes it, "ALLOC"; "?" outside the enum. */
const char *ml_event_kind_name(enum ml_event_kind kind);

struct ml_frame_header {
    uint64_t chunk_number;
    uint16_t end_bytes;
    uint16_t start_bytes;
    uint16_t lane;
    uint32_t thread_id;
};

/* The 16 bytes before a frame's payload.
 *
 * Errors: ML_PEER_SHORT; ML_PEER_RANGE for a lane or sizes out of bounds, or an empty payload. */
ML_NODISCARD enum ml_status
ml_frame_header_read(struct ml_reader *r, struct ml_frame_header *out_header);

/* Write it. ML_FRAME_HEADER_BYTES at `out`. */
void ml_frame_header_write(uint8_t *out, const struct ml_frame_header *header);

#endif
