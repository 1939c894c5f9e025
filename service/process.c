#include "service/process.h"

#include <errno.h>
#include <ev.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/wire/last_words.h"
#include "service/control/connection.h"
#include "service/sandbox/host_fd.h"
#include "service/workers/workers.h"

enum { LINE_BYTES = 1536 };

void ml_process_say(const char *what, const char *detail) {
    char line[LINE_BYTES];
    const int count = snprintf(line, sizeof(line), "memlog-service: %s%s\n", what, detail);
    if (count > 0) {
        const size_t bytes = (size_t)count < sizeof(line) ? (size_t)count : sizeof(line) - 1;
        (void)!write(STDERR_FILENO, line, bytes);
    }
}

/* Signals of our own making. All others mean the program, whose process group we may share: a
 * terminal's, `timeout`'s. Our end is the host's end. */
static bool is_ours(int number) {
    static const int ours[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP, SIGXCPU};
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (ours[i] == number) {
            return true;
        }
    }
    return false;
}

/* No descriptor but the host's and stderr, but room for as many as are permitted, which it answers;
 * no signals. */
static int shed_inheritance(void) {
    for (int number = 1; number < NSIG; number++) {
        if (!is_ours(number)) {
            (void)signal(number, SIG_IGN); /* KILL and STOP stay as they are */
        }
    }
    /* Two descriptors a client: a thousand clients need more than the usual soft 1,024. */
    struct rlimit files = {0};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    /* Without close_range (Linux 5.9) the host has closed them: host/engine/service/link.c. */
    (void)close_range(ML_SERVICE_WORDS_FD + 1, ~0U, 0);
    return files.rlim_cur < INT_MAX ? (int)files.rlim_cur : INT_MAX;
}

/* What a client leaves goes back to the system: by itself glibc keeps ever larger blocks in its
 * heap once one was given back (up to 32 MiB), and what lies above them never leaves it. */
static void keep_little(void) {
    enum { LARGE_BLOCK_BYTES = 128 << 10 /* glibc's first choice */ };
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
}

/* Where we say whose data we work on. Mapped before the sandbox is up: it permits no mapping of a
 * file. Without the page it goes nowhere. */
static struct ml_last_words *map_last_words(void) {
    static struct ml_last_words nowhere;
    struct stat about = {0};
    void *page = MAP_FAILED;
    if (fstat(ML_SERVICE_WORDS_FD, &about) == 0 && S_ISREG(about.st_mode) &&
        about.st_size >= ML_LAST_WORDS_BYTES) {
        page = mmap(
            NULL, ML_LAST_WORDS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ML_SERVICE_WORDS_FD, 0
        );
    }
    (void)close(ML_SERVICE_WORDS_FD);
    return page == MAP_FAILED ? &nowhere : page;
}

static enum ml_process_exit serve(struct ev_loop *loop, struct ml_connection *connection) {
    (void)ev_run(loop, 0);
    const struct ml_channel_end end = ml_connection_end(connection);
    if (end.status == ML_PEER_CLOSED) {
        return ML_PROCESS_HOST_GONE;
    }
    char detail[LINE_BYTES];
    (void)snprintf(
        detail,
        sizeof(detail),
        "%s (%s, message %u, pid %d)",
        ml_status_text(end.status),
        end.message_name != NULL ? end.message_name : ml_status_name(end.status),
        end.method,
        end.peer.pid
    );
    ml_process_say("the host's connection ended: ", detail);
    return ML_PROCESS_BROKEN;
}

/* The threads of a service that has several. */
struct crew {
    unsigned count; /* that is asked for */
    struct ml_workers *workers;
};

static void make_workers(void *context) {
    struct crew *crew = context;
    if (crew->count > 1) {
        /* One arena for all: each of its own would need mprotect, and allocations are rare. */
        (void)mallopt(M_ARENA_MAX, 1);
    }
    crew->workers = ml_workers_new(crew->count);
}

enum ml_process_exit ml_process_run(const struct ml_sandbox_options *sandbox, unsigned workers) {
    const int descriptors_max = shed_inheritance();
    keep_little();
    struct ml_last_words *const words = map_last_words(); /* its number is free for others then */
    struct ev_loop *loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    const int pipes_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop == NULL || pipes_fd < 0) {
        ml_process_say("no event loop: ", strerror(errno));
        return ML_PROCESS_NO_MEMORY;
    }
    struct ml_sandbox_report report = {0};
    struct ml_connection *connection = NULL;
    const struct ml_connection_options connection_options = {
        .loop = loop,
        .take_host_fd = ML_SERVICE_HOST_FD,
        .pipes_fd = pipes_fd,
        .descriptors_max = descriptors_max,
        .last_words = words,
        .sandbox_missing = report.missing};
    enum ml_status status = ml_connection_new(&connection_options, &connection);
    if (status != ML_OK) {
        ml_process_say("descriptor 3 is no host's socket: ", ml_status_text(status));
        return ML_PROCESS_USAGE;
    }
    struct crew crew = {.count = workers > 0 ? workers : ml_workers_default()};
    struct ml_sandbox_options options = *sandbox;
    options.make_threads = make_workers;
    options.context = &crew;
    status = ml_sandbox_enter(&options, &report);
    if (status != ML_OK) {
        ml_process_say(
            sandbox->level == ML_SANDBOX_STRICT ? "--sandbox=strict refuses to run without: "
                                                : "only --sandbox=none goes without: ",
            report.missing
        );
        return ML_PROCESS_NO_SANDBOX;
    }
    if (crew.workers == NULL) {
        ml_process_say("no memory", "");
        return ML_PROCESS_NO_MEMORY;
    }
    ml_connection_workers(connection, crew.workers);
    /* What is missing the host says, and every dump. Nothing is freed afterwards: the kernel does
     * it faster, and all of it. */
    return serve(loop, connection);
}
