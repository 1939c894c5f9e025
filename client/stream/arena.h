/* The client's own memory, which a fork wipes: what is mapped, and what lies where in it. Room:
 * client (private). Context: the constructor; then the malloc path of all threads, when a table is
 * full.
 *
 * One rule: what is mapped is what is needed, and a little. A process has 2.8 MiB of its own to
 * begin with, untouched pages included; the rest comes in steps, as threads and stacks do. So
 * limits, mlockall and what /proc says of the program are nearly as without memlog.
 *
 * The three regions lie far from where the kernel puts what programs map, so that there is room
 * behind them. It is not reserved: whatever comes to lie there stays, and the part in front of it
 * is full. A part that is full, or whose growth is refused, loses what no table could hold, and
 * that is counted as ever: lost_no_node, lost_no_lane.
 *
 * Under a finite RLIMIT_AS or RLIMIT_DATA all growth together is at most a 64th of it: what
 * the program may have is the program's. */
#ifndef MEMLOG_CLIENT_STREAM_ARENA_H
#define MEMLOG_CLIENT_STREAM_ARENA_H

#include <stdbool.h>
#include <stdint.h>

/* Map it and set ml_process's pointers into it. `near` is anything that the kernel has placed, by
 * which the far place is found. False: limits leave no room. */
bool ml_arena_map(const void *near);

/* Give it back, staging too. */
void ml_arena_unmap(void);

/* A process begins, this one or a child whose arena the kernel has wiped: nothing is taken yet but
 * what always is there. By one thread, before any lane is taken. */
void ml_arena_begin(void);

/* Memory in the arena, all 0; it is never given back. NULL: there is none. `align`: a power of 2,
 * at most a page. */
void *ml_arena_take(uint64_t count_bytes, uint64_t align);

/* Lanes are named by where they lie: 1 .. 2^24. */
enum { ML_ARENA_LANE_ALIGN = 64 };

/* A node, and room to find one: 16 bytes. A path's nodes are defined one after the other, so most
 * nodes are their parent's successor and are found there. The others, the second and later
 * children, stand in a `child` of one of their parent's sixteen neighbours, wherever they are
 * themselves; and those that find these full, in the hash table. The nearest neighbours come first:
 * parent, successor and room lie on one cache line mostly, and another child costs one more. */
struct ml_table_node {
    uint64_t key;   /* ml_stack_key_*; written before the owner */
    uint32_t owner; /* tag | parent, release-stored; tag 0: defined in no profile that may come
                       back. 0: not yet */
    _Atomic uint32_t child; /* of a node nearby: hash's bits << ML_TAG_SHIFT | id; 0: free */
};
_Static_assert(sizeof(struct ml_table_node) == 16, "16 bytes a node are promised");

enum {
    ML_STACK_BLOCK_NODES = 16, /* neighbours; four cache lines of one page */
    ML_STACK_LINE_NODES = 4
};

/* Let node `id` have memory, and its whole block and the one behind it. False: no. */
bool ml_arena_node(uint32_t id);

/* Map staging for the first lanes, `slots` slots each; in a forked child over its parent's. NULL:
 * there is no room. */
uint8_t *ml_arena_map_staging(int fd, uint32_t slots, bool again);

/* Let the lane's slots be mapped. False: no. */
bool ml_arena_staging_lane(uint32_t lane);

/* A seccomp filter may be about to forbid growing: grow now, by what most programs do with. */
void ml_arena_stock(void);

#endif
