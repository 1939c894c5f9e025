/* The heaps, types and scopes that the program has named, and threads by it. Room: client
 * (private). Context: any thread, a signal handler too, before there is a host and after a fork; no
 * lock, no allocation.
 *
 * One rule: an id never changes. A forked child has its parent's, and a name has one id however
 * often and by however many threads it is registered. The text is copied. */
#ifndef MEMLOG_CLIENT_RECORDING_NAMES_H
#define MEMLOG_CLIENT_RECORDING_NAMES_H

#include <stdatomic.h>
#include <stdint.h>

#include "client/stream/lane.h"

enum ml_names_kind {
    ML_NAMES_HEAPS,
    ML_NAMES_TYPES,
    ML_NAMES_TEXTS, /* of scopes and threads */
    ML_NAMES_KINDS
};

enum {
    ML_NAME_MAX_BYTES = 1000, /* more of a text is cut off */
    ML_TEXTS_MAX = 1 << 15,   /* a stream has ML_STRINGS_MAX strings for all */
    ML_NAMES_PAGE_BYTES = 4096
};

/* A heap, a type or a text. */
struct ml_name {
    /* Moments of streams, as ml_name_stream has them; 0: never. */
    _Atomic uint64_t defined;    /* it has its records there */
    _Atomic uint64_t string;     /* a text: what it is called there, ml_name_string */
    _Atomic uint64_t exact_in;   /* a heap: blocks were recorded there one by one */
    _Atomic uint64_t sampled_in; /* a heap: blocks were passed over there */
    /* A heap: it is defined there, each of its blocks so far was recorded, and it has no interval
     * above 1; ~ of a stream: never again there. */
    _Atomic uint64_t plain_in;
    uint64_t interval_bytes; /* a heap: its own sampling interval; 0: the process's */
    uint32_t id;             /* from 1 */
    uint16_t kind;           /* enum ml_names_kind */
    uint16_t text_bytes;
    char text[];
};

/* The id of that name, which is new with that interval, or known with its own. 0: there are too
 * many, or there is no memory. */
uint32_t ml_name_id(enum ml_names_kind kind, const char *text, uint64_t interval_bytes);

/* By id. NULL: there is none of that id. */
extern _Atomic(struct ml_name *) ml_name_heaps[ML_HEAPS_MAX];

static inline struct ml_name *ml_name_heap(uint32_t id) {
    return ml_likely(id < ML_HEAPS_MAX)
               ? atomic_load_explicit(&ml_name_heaps[id], memory_order_acquire)
               : NULL;
}

/* The same name as such. NULL: id 0. */
struct ml_name *ml_name_get(enum ml_names_kind kind, const char *text, uint64_t interval_bytes);

/* A type by its id. NULL: there is none. */
struct ml_name *ml_name_type(uint32_t id);

/* What tells the stream of that lane, a profile of a process, from all others. */
static inline uint64_t ml_name_stream(const struct ml_lane *lane) {
    return (uint64_t)ml_process.generation << 32 | lane->profile | UINT64_C(1) << 63;
}

/* Whether the name's moment is of the lane's stream. */
static inline bool ml_name_is_in(const _Atomic uint64_t *moment, const struct ml_lane *lane) {
    return atomic_load_explicit(moment, memory_order_acquire) == ml_name_stream(lane);
}

/* A page of the same memory, all 0: a forked child has a copy. It is never freed. NULL: there is
 * none. */
void *ml_names_page(void);

/* Records that refer to the name may follow, in any lane. */
void ml_name_define_slow(struct ml_lane *lane, struct ml_name *name);

static inline void ml_name_define(struct ml_lane *lane, struct ml_name *name) {
    if (ml_unlikely(
            atomic_load_explicit(&name->defined, memory_order_acquire) != ml_name_stream(lane)
        )) {
        ml_name_define_slow(lane, name);
    }
}

/* The string of a text in the lane's stream, which may follow in any lane. 0: there is no room. */
uint32_t ml_name_string(struct ml_lane *lane, struct ml_name *name);

#endif
