#include "tools/analyzer/progress/progress.h"

#include <stddef.h>

static ml_progress_watch *watched_by;
static struct ml_progress last;

void ml_progress_tell_to(ml_progress_watch *watch) {
    watched_by = watch;
    last = (struct ml_progress){.work = NULL};
}

static void tell(const struct ml_progress *now) {
    last = *now;
    watched_by(now);
}

void ml_progress_pieces(const char *work, uint64_t done, uint64_t total, const char *name) {
    if (watched_by) {
        tell(&(struct ml_progress){.work = work, .done = done, .total = total, .name = name});
    }
}

void ml_progress_bytes(const char *work, uint64_t done, uint64_t total, const char *name) {
    if (watched_by) {
        tell(&(struct ml_progress
        ){.work = work, .done = done, .total = total, .are_bytes = true, .name = name});
    }
}

void ml_progress_meanwhile(const char *work, uint64_t done, uint64_t total) {
    if (watched_by) {
        watched_by(&(struct ml_progress
        ){.work = work, .done = done, .total = total, .are_bytes = true, .name = last.name});
    }
}

void ml_progress_still(void) {
    if (watched_by && last.work) {
        watched_by(&last);
    }
}
