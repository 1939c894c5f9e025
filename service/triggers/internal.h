/* What triggers.c, process.c and memory.c share. Room: service (private). */
#ifndef MEMLOG_SERVICE_TRIGGERS_INTERNAL_H
#define MEMLOG_SERVICE_TRIGGERS_INTERNAL_H

#include "service/session/coverage.h"
#include "service/triggers/triggers.h"

enum {
    ML_TRIGGER_MEMORIES = 64, /* control groups of one tree; further ones are ignored */
    ML_TRIGGER_SLOPE = 8,     /* looks that a prediction uses */
    ML_TRIGGER_RECENT = 256,  /* dumps that the rate limit counts */
};

/* What was live at one moment. Growth is counted from it. */
struct ml_trigger_base {
    uint64_t taken_ns; /* 0: none */
    uint64_t live_bytes;
    uint64_t *nodes; /* live_by_node's */
    uint32_t nodes_count;
};

struct ml_trigger_node {
    uint32_t node;
    uint64_t high_bytes; /* when its dump was taken */
};

/* A process's state between looks. */
struct ml_trigger_state {
    uint64_t footprint_high_bytes; /* at its last dump; 0: none */
    uint64_t live_high_bytes;
    struct ml_trigger_base old, young; /* growth is counted from `old` */
    struct ml_trigger_node *nodes;     /* over their budget */
    uint32_t nodes_count;
    bool told_killed;
};

struct ml_trigger_point {
    uint64_t now_ns, used_bytes;
};

/* The thresholds of a memory, each by itself. */
enum ml_trigger_crossing {
    ML_TRIGGER_LIMIT,
    ML_TRIGGER_TIME_TO_LIMIT,
    ML_TRIGGER_PRESSURE_SOME,
    ML_TRIGGER_PRESSURE_FULL,
    ML_TRIGGER_EVENTS,
    ML_TRIGGER_CROSSINGS
};

/* A memory's state between looks. */
struct ml_trigger_memory_state {
    char name[ML_TRIGGER_NAME_BYTES];
    bool crossed[ML_TRIGGER_CROSSINGS]; /* and not armed again since */
    uint64_t high_events, max_events;
    struct ml_trigger_point points[ML_TRIGGER_SLOPE];
    unsigned points_count;
};

struct ml_triggers {
    struct memlog_service_trigger_rules rules;
    uint64_t start_ns, interval_ns; /* of the last dump of the interval */
    uint64_t peak_bytes;            /* of the tree, at its last dump */
    struct ml_trigger_state *states;
    uint32_t states_count; /* by id */
    struct ml_trigger_memory_state memories[ML_TRIGGER_MEMORIES];
    unsigned memories_count;
    uint64_t recent_ns[ML_TRIGGER_RECENT]; /* a ring */
    unsigned recent_count;                 /* ever */
    /* Of the look at hand. */
    const struct ml_trigger_look *look;
    struct ml_trigger_decision *decisions;
    size_t decisions_count;
    bool dumped;     /* a dump is decided; later triggers share it */
    uint32_t memory; /* the one at hand, counted from 1; 0: none */
};

/* Whom a decision names; all 0: nobody in particular. */
struct ml_trigger_guilty {
    uint32_t id;   /* the process */
    uint32_t node; /* its stack; 0: the one that holds most */
    uint64_t node_bytes;
};

/* A threshold is crossed: make a decision, whose reason is `format`. False: the rate limit forbids
 * the dump, and it stays crossed. */
__attribute__((format(printf, 4, 5))) bool ml_trigger_take(
    struct ml_triggers *triggers,
    enum memlog_service_trigger_kind kind,
    struct ml_trigger_guilty guilty,
    const char *format,
    ...
);

/* It is not crossed: say how far it is from that. */
__attribute__((format(printf, 3, 4))) void ml_trigger_leave(
    struct ml_triggers *triggers, enum memlog_service_trigger_kind kind, const char *format, ...
);

/* The parts of a look. */
void ml_trigger_killed(struct ml_triggers *triggers);
void ml_trigger_footprint(struct ml_triggers *triggers);
void ml_trigger_live(struct ml_triggers *triggers);
void ml_trigger_growth(struct ml_triggers *triggers);
void ml_trigger_stack(struct ml_triggers *triggers);
void ml_trigger_memories(struct ml_triggers *triggers);

/* The state of that process; NULL when there is no memory. */
struct ml_trigger_state *ml_trigger_state_of(struct ml_triggers *triggers, uint32_t id);

#endif
