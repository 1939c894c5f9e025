#include "tools/analyzer/cli/progress.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/progress/line.h"
#include "tools/analyzer/progress/progress.h"

static struct ml_progress_line line;
static pid_t own_group; /* asked for in front of the sandbox */

enum { COLUMNS_DEFAULT = 80, NS_PER_S = 1000000000 };

static uint64_t now_ns(void) {
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* As wide as the terminal is by now. */
static size_t columns(void) {
    struct winsize size;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                           : COLUMNS_DEFAULT;
}

/* A job in the background does not write over what its user types. */
static bool is_in_front(void) {
    pid_t front = 0;

    return ioctl(STDERR_FILENO, TIOCGPGRP, &front) != 0 || front == own_group;
}

static void look(const struct ml_progress *now) {
    if (ml_progress_line_is_due(&line, now_ns()) && is_in_front()) {
        ml_progress_line_put(&line, STDERR_FILENO, now, columns());
    }
}

void ml_command_progress_begin(void) {
    const char *terminal = getenv("TERM");
    static bool is_begun;

    if (ml_command_is_bare() || !isatty(STDERR_FILENO) || !terminal || !terminal[0] ||
        strcmp(terminal, "dumb") == 0) {
        return;
    }
    if (!is_begun) {
        is_begun = true;
        own_group = getpgrp();
        ml_progress_line_begin(&line, now_ns());
        (void)atexit(ml_command_progress_end);
    }
    ml_progress_tell_to(look);
}

void ml_command_progress_resume(FILE *answer) {
    const bool is_paged = answer == stdout && getenv("MEMLOG_PAGER_IN_USE"); /* host/terminal */

    if (!isatty(fileno(answer)) && !is_paged) {
        ml_command_progress_begin();
    }
}

void ml_command_progress_erase(void) {
    ml_progress_line_erase(&line, STDERR_FILENO);
}

void ml_command_progress_end(void) {
    ml_progress_tell_to(NULL);
    ml_command_progress_erase();
}
