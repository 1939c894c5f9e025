/* Who holds memory: stacks merged by the function that needs it. Room: tools. Context: one thread.
 *
 * One rule: no byte has two holders. Of more than 20,000 stacks the largest are told. */
#ifndef MEMLOG_TOOLS_ANALYZER_SCREEN_HOLDERS_H
#define MEMLOG_TOOLS_ANALYZER_SCREEN_HOLDERS_H

#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/report/internal.h"

enum { ML_HOLDER_PLACES = 4, ML_HOLDER_WAYS = 2 };

/* A line of the function's source. */
struct ml_holder_place {
    char file[ML_TOLD_NAME_BYTES]; /* "": not known */
    uint32_t line;
    uint64_t bytes;
};

/* Callers that the function was reached through. */
struct ml_holder_way {
    uint32_t node; /* the largest stack of that way */
    uint64_t bytes;
};

struct ml_screen_holder {
    char name[ML_TOLD_NAME_BYTES];
    uint64_t bytes, blocks;
    uint32_t node;                                   /* of its largest stack */
    struct ml_holder_place places[ML_HOLDER_PLACES]; /* the largest first */
    size_t places_count;                             /* all of them */
    struct ml_holder_way ways[ML_HOLDER_WAYS];       /* the largest first */
    size_t ways_count;                               /* all of them */
    const struct ml_profile_process *process;        /* that has most of it; NULL: not known */
    uint64_t process_bytes;
    size_t processes_count; /* that have some of it */
};

struct ml_holders {
    struct ml_screen_holder *holders; /* the largest first */
    size_t count;
    size_t shown; /* only so many have processes */
};

/* Find the holders of the metric (LIVE, PEAK or TOTAL), and the processes of the `shown` largest.
 * False: no memory; _fini is needed even then. */
bool ml_holders_init(
    struct ml_holders *holders,
    const struct ml_report_page *page,
    enum ml_metric metric,
    size_t shown
);
void ml_holders_fini(struct ml_holders *holders);

/* One holder as text, in one line or with its places, callers and process below. */
void ml_holders_put(
    const struct ml_report_page *page,
    const struct ml_screen_holder *holder,
    uint64_t whole_bytes,
    bool has_details
);

#endif
