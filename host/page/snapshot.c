/* The run as it is now, as a dump in memory. Room: host. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/page/internal.h"

#include "base/descriptor.h"

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

/* A snapshot is begun after every request that it answers. */
static void begin(struct ml_page_snapshot *snapshot) {
    snapshot->asked = snapshot->waiting;
    snapshot->waiting = NULL;
    snapshot->fd = memfd_create("memlog-snapshot", MFD_CLOEXEC);
    if (snapshot->fd < 0) {
        struct ml_page_waiter *asked = snapshot->asked;
        snapshot->asked = NULL;
        tell(asked, -1, strerror(errno));
        return;
    }
    ml_engine_snapshot(
        snapshot->page->engine,
        snapshot->content,
        snapshot->reads_memory,
        snapshot->fd,
        on_snapshot,
        snapshot
    );
}

static void on_snapshot(void *context, const char *path, bool complete, const char *trouble) {
    (void)complete;
    struct ml_page_snapshot *snapshot = context;
    struct ml_page_waiter *asked = snapshot->asked;
    const int fd = snapshot->fd;
    snapshot->asked = NULL;
    snapshot->fd = -1;
    const char *why = trouble[0] != '\0' ? trouble : "there is no service";
    tell(asked, path[0] != '\0' ? fd : -1, path[0] != '\0' ? "" : why);
    (void)close(fd);
    if (snapshot->fd < 0 && snapshot->waiting != NULL && snapshot->page->http != NULL) {
        begin(snapshot);
    }
}

void ml_page_snapshot_init(
    struct ml_page_snapshot *snapshot,
    struct ml_page *page,
    enum memlog_service_dump_content content
) {
    *snapshot = (struct ml_page_snapshot){.page = page, .content = content, .fd = -1};
}

void ml_page_take_snapshot(
    struct ml_page_snapshot *snapshot,
    void (*on_taken)(void *context, int fd, const char *trouble),
    void *context
) {
    struct ml_page_waiter *waiter = calloc(1, sizeof(*waiter));
    if (waiter == NULL) {
        on_taken(context, -1, "no memory");
        return;
    }
    *waiter = (struct ml_page_waiter
    ){.on_taken = on_taken, .context = context, .next = snapshot->waiting};
    snapshot->waiting = waiter;
    if (snapshot->fd < 0) {
        begin(snapshot);
    }
}

void ml_page_snapshot_fini(struct ml_page_snapshot *snapshot) {
    tell(snapshot->waiting, -1, "memlog ends");
    tell(snapshot->asked, -1, "memlog ends");
    snapshot->waiting = NULL;
    snapshot->asked = NULL;
    ml_descriptor_close(&snapshot->fd);
}
