/* The run as it is now, as a dump in memory. Room: host. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/page_internal.h"

struct ml_page_waiter {
    void (*on_taken)(void *context, int fd, const char *trouble);
    void *context;
    struct ml_page_waiter *next;
};

/* Tell those of a list how it went. */
static void tell(struct ml_page_waiter *waiters, int fd, const char *trouble) {
    while (waiters != NULL) {
        struct ml_page_waiter *one = waiters;
        waiters = one->next;
        one->on_taken(one->context, fd, trouble);
        free(one);
    }
}

static void on_snapshot(void *context, const char *path, bool complete, const char *trouble);

/* The moment that is shown lies behind every question that is answered by it. */
static void begin(struct ml_page *page) {
    struct ml_page_snapshot *snapshot = &page->snapshot;
    snapshot->asked = snapshot->waiting;
    snapshot->waiting = NULL;
    snapshot->fd = memfd_create("memlog-snapshot", MFD_CLOEXEC);
    if (snapshot->fd < 0) {
        struct ml_page_waiter *asked = snapshot->asked;
        snapshot->asked = NULL;
        tell(asked, -1, strerror(errno));
        return;
    }
    ml_engine_snapshot(page->engine, snapshot->fd, on_snapshot, page);
}

static void on_snapshot(void *context, const char *path, bool complete, const char *trouble) {
    (void)complete;
    struct ml_page *page = context;
    struct ml_page_snapshot *snapshot = &page->snapshot;
    struct ml_page_waiter *asked = snapshot->asked;
    const int fd = snapshot->fd;
    snapshot->asked = NULL;
    snapshot->fd = -1;
    const char *why = trouble[0] != '\0' ? trouble : "there is no service";
    tell(asked, path[0] != '\0' ? fd : -1, path[0] != '\0' ? "" : why);
    (void)close(fd);
    if (snapshot->fd < 0 && snapshot->waiting != NULL && page->http != NULL) {
        begin(page);
    }
}

void ml_page_take_snapshot(
    struct ml_page *page,
    void (*on_taken)(void *context, int fd, const char *trouble),
    void *context
) {
    struct ml_page_snapshot *snapshot = &page->snapshot;
    struct ml_page_waiter *waiter = calloc(1, sizeof(*waiter));
    if (waiter == NULL) {
        on_taken(context, -1, "no memory");
        return;
    }
    *waiter = (struct ml_page_waiter
    ){.on_taken = on_taken, .context = context, .next = snapshot->waiting};
    snapshot->waiting = waiter;
    if (snapshot->fd < 0) {
        begin(page);
    }
}

void ml_page_snapshot_fini(struct ml_page *page) {
    tell(page->snapshot.waiting, -1, "memlog ends");
    tell(page->snapshot.asked, -1, "memlog ends");
    page->snapshot.waiting = NULL;
    page->snapshot.asked = NULL;
    if (page->snapshot.fd >= 0) {
        (void)close(page->snapshot.fd);
    }
}
