/* The live screen of `memlog top`, by ncurses. Room: host. Context: its own process, one terminal.
 *
 * One rule: whatever ends the program by q, SIGINT or SIGTERM, the terminal is as it was. */
#ifndef MEMLOG_HOST_TERMINAL_TOP_SCREEN_H
#define MEMLOG_HOST_TERMINAL_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/terminal/top_model.h"

/* Where rows come from. NULL: they are there, in *out_rows, which belong to the feed until its next
 * call; else why there are no more. */
struct ml_top_feed {
    void *context;
    const char *(*look)(void *context, struct ml_top_row **out_rows, size_t *out_count);
    enum ml_top_sort sort;
    uint32_t delay_seconds;
};

/* Show until q. False: this terminal cannot move its cursor, or there is none. */
bool ml_top_screen(const struct ml_top_feed *feed);

#endif
