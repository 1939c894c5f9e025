/* The layout and growth of the client's own memory, which a fork wipes. Room: client (private).
 * Context: the constructor; then the malloc path of all threads, when a table is full.
 *
 * One rule: only a little more is mapped than is needed. A process starts with 2.8 MiB, untouched
 * pages included; more is mapped in steps, with threads and stacks. So limits, mlockall and the
 * program's /proc figures are nearly as without memlog.
 *
 * The three regions lie far from where the kernel places a program's mappings, so that they have
 * room to grow. That room is not reserved: a region that meets a foreign mapping is full. Events
 * that find no room in a full region are lost and counted: lost_no_node, lost_no_lane.
 *
 * Under a finite RLIMIT_AS or RLIMIT_DATA all growth together is at most a 64th of it: the limit is
 * for the program. */
#ifndef MEMLOG_CLIENT_STREAM_ARENA_H
#define MEMLOG_CLIENT_STREAM_ARENA_H

#include <stdbool.h>
#include <stdint.h>

/* Map it and set ml_process's pointers into it. `near` is any address that the kernel chose; the
 * far place is computed from it. False: limits leave no room. */
bool ml_arena_map(const void *near);

/* Unmap it, staging too. */
void ml_arena_unmap(void);

/* Start of a process, this one or a child whose arena the kernel has wiped: only the fixed parts
 * are in use. By one thread, before any lane is taken. */
void ml_arena_begin(void);

/* Memory in the arena, all 0; it is never freed. NULL: there is none. `align`: a power of 2, at
 * most a page. */
void *ml_arena_take(uint64_t count_bytes, uint64_t align);

/* Lanes are named by where they lie: 1 .. 2^24. */
enum { ML_ARENA_LANE_ALIGN = 64 };

/* A node, and room to find one: 16 bytes. A path's nodes are defined one after the other, so most
 * nodes are their parent's successor and are found there. Second and later children are named in
 * the `child` of one of their parent's sixteen neighbours. When these are full they go into the
 * hash table. The nearest neighbours come first: parent, successor and room lie on one cache line
 * mostly, and another child costs one more. */
struct ml_table_node {
    uint64_t key;   /* ml_stack_key_*; written before the owner */
    uint32_t owner; /* tag | parent, release-stored; tag 0: to be defined again. 0: not yet */
    _Atomic uint32_t child; /* of a node nearby: hash's bits << ML_TAG_SHIFT | id; 0: free */
};
_Static_assert(sizeof(struct ml_table_node) == 16, "16 bytes a node are promised");

enum {
    ML_STACK_BLOCK_NODES = 16, /* neighbours; four cache lines of one page */
    ML_STACK_LINE_NODES = 4
};

/* Map the memory of node `id`, its whole block and the block behind. False: no memory. */
bool ml_arena_node(uint32_t id);

/* Map staging for the first lanes, `slots` slots each; in a forked child over its parent's. NULL:
 * there is no room. */
uint8_t *ml_arena_map_staging(int fd, uint32_t slots, bool again);

/* Tell the service which memory is the client's: whoever sums up the process's is to know. */
void ml_arena_tell_own(void);

/* Map the lane's slots. False: no memory. */
bool ml_arena_staging_lane(uint32_t lane);

/* A seccomp filter may soon forbid growth: grow now, by what suffices for most programs. */
void ml_arena_stock(void);

#endif
