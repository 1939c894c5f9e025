#include "host/analysis/analyzer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ev.h>

#include "base/descriptor.h"
#include "base/watched.h"
#include "host/process/info.h"
#include "host/process/loop.h"
#include "host/process/orphan.h"

/* Below the priority of the profiled programs. */
enum { ANALYZER_NICE = 10 };

/* The standard three, its files, where it says how it ended, and what more it is given. */
enum {
    FDS = ML_WATCHED_FD + 1,
    FDS_MAX = FDS + ML_ANALYZER_MORE_MAX,
    HIGH_FD = FDS_MAX,
    INPUTS_MAX = 2 + ML_ANALYZER_MORE_MAX
};

/* How much of its stderr is handed on. */
enum { TROUBLE_BYTES = 512 };

/* Its exit code when the dump lacks what was asked for: tools/analyzer/cli/command.h. */
enum { EXIT_LACKING = 3 };

/* In front of its command: with --bare it writes errors to stderr without a prefix. */
static const char *const own_words[] = {"memlog", ML_WATCHED_WORD, "--bare"};
enum { OWN_WORDS = sizeof(own_words) / sizeof(own_words[0]) };

struct job {
    char *arguments[OWN_WORDS + ML_ANALYZER_ARGUMENTS_MAX + 1];
    int inputs[INPUTS_MAX];
    size_t inputs_count;
    int out_fd;
    int trouble_fd;
    pid_t pid;       /* of who tells of its end; 0: it waits */
    int pidfd;       /* -1: the kernel has none */
    int status_fd;   /* where that one tells */
    bool is_overdue; /* it was ended */
    ml_analyzer_done *on_done;
    void *context;
    struct job *next;
};

struct ml_analyzer {
    struct ml_analyzer_setup setup;
    char **environment;
    struct job *jobs; /* the first works */
    ev_timer timer;
    ev_io told, ended; /* the first job's status_fd and pidfd */
};

static void free_job(struct job *job) {
    for (size_t i = 0; job->arguments[i] != NULL; i++) {
        free(job->arguments[i]);
    }
    for (size_t i = 0; i < job->inputs_count; i++) {
        ml_descriptor_close(&job->inputs[i]);
    }
    ml_descriptor_close(&job->out_fd);
    ml_descriptor_close(&job->trouble_fd);
    ml_descriptor_close(&job->pidfd);
    ml_descriptor_close(&job->status_fd);
    free(job);
}

/* Answer, with its output or without. */
static void finish(struct job *job, enum ml_analyzer_verdict verdict, const char *trouble) {
    struct stat about;
    int fd = -1;
    uint64_t bytes = 0;
    if (verdict == ML_ANALYZER_MADE && fstat(job->out_fd, &about) == 0) {
        fd = job->out_fd;
        bytes = (uint64_t)about.st_size;
        job->out_fd = -1;
        (void)lseek(fd, 0, SEEK_SET);
    }
    job->on_done(job->context, verdict, fd, bytes, trouble);
    free_job(job);
}

/* What the child needs. */
struct birth {
    const struct ml_analyzer *analyzer;
    const struct job *job;
    int status_fd;
};

/* The child's side. */
static void become_analyzer(void *context) {
    const struct birth *birth = context;
    const struct job *job = birth->job;
    const int count = FDS + (int)job->inputs_count - 2;
    int fds[FDS_MAX] = {
        open("/dev/null", O_RDONLY | O_CLOEXEC),
        job->out_fd,
        job->trouble_fd,
        job->inputs[0],
        job->inputs[1],
        birth->status_fd,
    };
    for (size_t i = 2; i < job->inputs_count; i++) {
        fds[FDS + i - 2] = job->inputs[i];
    }
    (void)!nice(ANALYZER_NICE);
    /* Move them first: one may have a number that another one is to get. */
    for (int i = 0; i < count; i++) {
        fds[i] = fds[i] >= 0 ? fcntl(fds[i], F_DUPFD_CLOEXEC, HIGH_FD) : -1;
    }
    for (int i = 0; i < count; i++) {
        if (fds[i] >= 0) {
            (void)dup2(fds[i], i);
        } else {
            (void)close(i);
        }
    }
    (void)execve(birth->analyzer->setup.path, job->arguments, birth->analyzer->environment);
    _exit(127);
}

static void on_told(struct ev_loop *loop, ev_io *watcher, int events);

static void watch(struct ml_analyzer *analyzer, const struct job *job) {
    ml_watch_readable(analyzer->setup.loop, &analyzer->told, on_told, job->status_fd, analyzer);
    if (job->pidfd >= 0) {
        ml_watch_readable(analyzer->setup.loop, &analyzer->ended, on_told, job->pidfd, analyzer);
    }
    ml_timer_start(analyzer->setup.loop, &analyzer->timer, (double)analyzer->setup.timeout_s);
}

static void unwatch(struct ml_analyzer *analyzer) {
    ev_timer_stop(analyzer->setup.loop, &analyzer->timer);
    ev_io_stop(analyzer->setup.loop, &analyzer->told);
    ev_io_stop(analyzer->setup.loop, &analyzer->ended);
}

static bool start_first(struct ml_analyzer *analyzer) {
    struct job *job = analyzer->jobs;
    int ends[2] = {-1, -1};
    job->out_fd = memfd_create("memlog-page", MFD_CLOEXEC);
    job->trouble_fd = memfd_create("memlog-page-trouble", MFD_CLOEXEC);
    if (job->out_fd < 0 || job->trouble_fd < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return false;
    }
    struct birth birth = {.analyzer = analyzer, .job = job, .status_fd = ends[1]};
    const pid_t pid =
        ml_orphan_start(analyzer->setup.inherited, become_analyzer, &birth, &job->pidfd);
    const int error = errno;
    (void)close(ends[1]);
    job->status_fd = ends[0];
    if (pid < 0) {
        errno = error;
        return false;
    }
    job->pid = pid;
    if (analyzer->setup.on_helper != NULL) {
        analyzer->setup.on_helper(analyzer->setup.context, pid);
    }
    watch(analyzer, job);
    return true;
}

static void start_next(struct ml_analyzer *analyzer) {
    while (analyzer->jobs != NULL && analyzer->jobs->pid == 0 && !start_first(analyzer)) {
        struct job *job = analyzer->jobs;
        char trouble[TROUBLE_BYTES];
        (void
        )snprintf(trouble, sizeof(trouble), "cannot start memlog-analyzer: %s", strerror(errno));
        analyzer->jobs = job->next;
        finish(job, ML_ANALYZER_FAILED, trouble);
    }
}

/* Its worker dies with it. */
static void end_job(const struct job *job) {
    if (job->pidfd >= 0) {
        (void)syscall(SYS_pidfd_send_signal, job->pidfd, SIGKILL, NULL, 0);
    } else if (job->pid > 0) {
        (void)kill(job->pid, SIGKILL); /* it has not told of its end, and so has its pid */
    }
}

static void on_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_analyzer *analyzer = watcher->data;
    if (analyzer->jobs != NULL && analyzer->jobs->pid > 0) {
        analyzer->jobs->is_overdue = true;
        end_job(analyzer->jobs);
    }
}

enum ml_status
ml_analyzer_open(const struct ml_analyzer_setup *setup, struct ml_analyzer **out_analyzer) {
    struct ml_analyzer *analyzer = calloc(1, sizeof(*analyzer));
    if (analyzer == NULL) {
        return ML_ENV_MEMORY;
    }
    analyzer->setup = *setup;
    if (setup->timeout_s == 0) {
        analyzer->setup.timeout_s = ML_ANALYZER_TIMEOUT_S;
    }
    analyzer->environment = ml_launcher_own_environment(environ);
    if (analyzer->environment == NULL) {
        free(analyzer);
        return ML_ENV_MEMORY;
    }
    ml_timer_init(&analyzer->timer, on_timer, analyzer);
    *out_analyzer = analyzer;
    return ML_OK;
}

void ml_analyzer_close(struct ml_analyzer *take_analyzer) {
    struct ml_analyzer *analyzer = take_analyzer;
    if (analyzer == NULL) {
        return;
    }
    unwatch(analyzer);
    while (analyzer->jobs != NULL) {
        struct job *job = analyzer->jobs;
        analyzer->jobs = job->next;
        end_job(job);
        finish(job, ML_ANALYZER_FAILED, "memlog ends");
    }
    free(analyzer->environment);
    free(analyzer);
}

void ml_analyzer_start(struct ml_analyzer *analyzer, const struct ml_analyzer_job *job) {
    struct job **last = &analyzer->jobs;
    unsigned waiting = 0;
    for (; *last != NULL; last = &(*last)->next) {
        waiting++;
    }
    struct job *own = waiting < ML_ANALYZER_JOBS_MAX ? calloc(1, sizeof(*own)) : NULL;
    if (own == NULL) {
        job->on_done(
            job->context,
            ML_ANALYZER_FAILED,
            -1,
            0,
            "too much is asked for at once; try again later"
        );
        return;
    }
    *own = (struct job){
        .out_fd = -1,
        .trouble_fd = -1,
        .pidfd = -1,
        .status_fd = -1,
        .on_done = job->on_done,
        .context = job->context,
    };
    size_t words = 0;
    for (size_t i = 0; i < OWN_WORDS; i++) {
        own->arguments[words++] = strdup(own_words[i]);
    }
    for (size_t i = 0; job->arguments[i] != NULL && own->arguments[words - 1] != NULL; i++) {
        own->arguments[words++] = strdup(job->arguments[i]);
    }
    *last = own;
    own->inputs_count = 2 + job->more_count;
    for (size_t i = 0; i < own->inputs_count; i++) {
        const int fd = i == 0 ? job->first_fd : i == 1 ? job->second_fd : job->more_fds[i - 2];
        own->inputs[i] = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD) : -1;
    }
    if (analyzer->jobs == own) {
        start_next(analyzer);
    }
}

/* The first line of what it says on stderr. */
static void read_trouble(const struct job *job, char out_trouble[TROUBLE_BYTES]) {
    ssize_t count = pread(job->trouble_fd, out_trouble, TROUBLE_BYTES - 1, 0);
    out_trouble[count > 0 ? count : 0] = '\0';
    out_trouble[strcspn(out_trouble, "\n")] = '\0';
    if (out_trouble[0] == '\0') {
        (void)snprintf(out_trouble, TROUBLE_BYTES, "memlog-analyzer failed");
    }
}

/* How the first job ended, by its own word; without one as its process did. False: it has not. */
static bool take_ending(const struct job *job, bool is_gone, struct ml_ending *out_ending) {
    int status = 0;
    const ssize_t count = read(job->status_fd, &status, sizeof(status));
    if (count == (ssize_t)sizeof(status)) {
        *out_ending = ml_ending_from_wait(status);
        return true;
    }
    *out_ending = ml_process_ending(job->pid, job->pidfd);
    return is_gone || count == 0;
}

/* Of a process that was killed without a word, not every kernel tells the signal. */
static enum ml_analyzer_verdict judge(
    const struct job *job,
    unsigned timeout_s,
    const struct ml_ending *ending,
    char out_trouble[TROUBLE_BYTES]
) {
    const bool is_killed = ending->signal != 0 || !ending->known;
    out_trouble[0] = '\0';
    if (job->is_overdue) {
        (void)snprintf(
            out_trouble,
            TROUBLE_BYTES,
            "it took more than %u s; memlog convert has all the time",
            timeout_s
        );
    } else if (is_killed && ending->signal == 0) {
        (void)snprintf(out_trouble, TROUBLE_BYTES, "memlog-analyzer was killed");
    } else if (is_killed) {
        (void)snprintf(
            out_trouble, TROUBLE_BYTES, "memlog-analyzer was killed by signal %d", ending->signal
        );
    } else if (ending->exit_code != 0) {
        read_trouble(job, out_trouble);
    }
    if (out_trouble[0] == '\0') {
        return ML_ANALYZER_MADE;
    }
    return !is_killed && ending->exit_code == EXIT_LACKING ? ML_ANALYZER_LACKING
                                                           : ML_ANALYZER_FAILED;
}

static void on_told(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_analyzer *analyzer = watcher->data;
    struct job *job = analyzer->jobs;
    struct ml_ending ending;
    char trouble[TROUBLE_BYTES];
    if (job == NULL || !take_ending(job, watcher == &analyzer->ended, &ending)) {
        return;
    }
    unwatch(analyzer);
    analyzer->jobs = job->next;
    const enum ml_analyzer_verdict verdict =
        judge(job, analyzer->setup.timeout_s, &ending, trouble);
    finish(job, verdict, trouble);
    start_next(analyzer);
}
