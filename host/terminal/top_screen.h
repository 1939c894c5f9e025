/* The live screen of `memlog top`, by ncurses. Room: host. Context: its own process, one terminal.
 *
 * One rule: whatever ends the program by q, SIGINT or SIGTERM, the terminal is as it was. */
#ifndef MEMLOG_HOST_TERMINAL_TOP_SCREEN_H
#define MEMLOG_HOST_TERMINAL_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/terminal/top_functions.h"
#include "host/terminal/top_model.h"

enum ml_top_answer {
    ML_TOP_NOTHING = 0, /* as yet */
    ML_TOP_ROWS,
    ML_TOP_FAILED, /* it can be asked again */
    ML_TOP_ENDED   /* there will be no more */
};

/* Where rows come from. None of the calls waits. */
struct ml_top_feed {
    void *context;
    void (*ask)(void *context); /* does nothing while an answer is still to come */
    /* ML_TOP_ROWS: they are in *out_rows, which belong to the feed until it gives the next ones;
     * the screen changes their order. */
    enum ml_top_answer (*take)(void *context, struct ml_top_row **out_rows, size_t *out_count);
    /* Functions, likewise: of the process with that pid; 0: of all. A failure is told in words. */
    void (*ask_functions)(void *context, uint32_t pid);
    enum ml_top_answer (*take_functions
    )(void *context, struct ml_top_function **out_rows, size_t *out_count, const char **out_trouble
    );
    size_t named_count; /* processes that alone are shown; 0: all are */
    uint32_t named_pid; /* of one */
    enum ml_top_sort sort;
    uint32_t delay_seconds;
};

/* Show until q. False: this terminal cannot move its cursor, or there is none. */
bool ml_top_screen(const struct ml_top_feed *feed);

#endif
