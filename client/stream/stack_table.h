/* The process's stack tree: (parent node, frame) -> node id, append-only. Room: client (private).
 * Context: the malloc path of all threads at once.
 *
 * One rule: no thread waits for another. A node's NODE record is published in its thread's lane
 * before the one compare-and-swap that lets others find its id. Two threads may define one frame at
 * the same time; both ids are valid, and the reader adds them up.
 *
 * Nodes outlive profiles (ipc/wire/staging.h), their definitions do not: a node has the tag of the
 * profile in which it was defined last. A thread that finds it in a later profile defines it again,
 * with the same id, before it sets the new tag. */
#ifndef MEMLOG_CLIENT_STREAM_STACK_TABLE_H
#define MEMLOG_CLIENT_STREAM_STACK_TABLE_H

#include <stdint.h>

#include "client/stream/arena.h"
#include "client/stream/lane.h"

enum {
    ML_TABLE_SHIFT_MIN = 13, /* 8,192 slots, 32 KiB, touched only by programs that need them */
    ML_TABLE_SHIFT_MAX = 25, /* twice ML_NODES_MAX */
    ML_TABLE_ALIGN_SHIFT = 12
};
_Static_assert(ML_TABLE_SHIFT_MAX - ML_TABLE_SHIFT_MIN + 1 == ML_TABLES_MAX, "a place for each");

enum { ML_TAG_SHIFT = 24, ML_TAG_COUNT = 255 };
_Static_assert(ML_NODES_MAX <= 1 << ML_TAG_SHIFT, "node ids leave room for the tag");

/* A profile's tag, in its place. Tags come back after 255 profiles: ml_stack_forget. */
static inline uint32_t ml_stack_tag(uint32_t profile) {
    return (profile % ML_TAG_COUNT + 1) << ML_TAG_SHIFT;
}

/* A profile begins; the one before was `before`. Clears the tags that will soon be reused. Called
 * every 64 profiles by the one thread that begins it, while others record. */
void ml_stack_forget(uint32_t before, uint32_t profile);

/* Keys of frames that are no addresses: bit 63, kind, string id. Modules stay below 2^15 in keys
 * for that. */
static inline uint64_t ml_stack_key_string(enum ml_frame_kind kind, uint32_t string_id) {
    return (uint64_t)1 << 63 | (uint64_t)kind << 32 | string_id;
}

static inline uint64_t ml_stack_key_address(uint32_t module, uint64_t address) {
    return (uint64_t)(module & 0x7fff) << 48 | (address & 0xffffffffffff);
}

/* The slow path of ml_stack_child: search the other places, define the frame if it is new. 0: no
 * room left. */
uint32_t ml_stack_find_or_add(struct ml_lane *lane, uint32_t parent, uint64_t key, uint32_t module);

/* The node of a frame below `parent`. `module` is the frame's full module id (address frames). 0:
 * no room left. */
static inline uint32_t
ml_stack_child(struct ml_lane *lane, uint32_t parent, uint64_t key, uint32_t module) {
    const uint32_t next = parent + 1;
    const struct ml_table_node *node = &ml_process.stack_nodes[next];
    if (__atomic_load_n(&node->owner, __ATOMIC_ACQUIRE) == (parent | lane->tag) &&
        node->key == key) {
        return next;
    }
    return ml_stack_find_or_add(lane, parent, key, module);
}

/* Are the two nodes' paths the same, frame by frame? Nodes that two threads made at once for one
 * frame are the same path. */
bool ml_stack_same_path(uint32_t a, uint32_t b);

#endif
