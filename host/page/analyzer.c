#include "host/page/analyzer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ev.h>

#include "base/descriptor.h"
#include "host/process/loop.h"

/* Below the priority of the profiled programs. */
enum { ANALYZER_NICE = 10 };

/* Its descriptors come after the standard three. */
enum { FIRST_FD = 3, SECOND_FD = 4, HIGH_FD = 10 };

/* How much of its stderr is handed on. */
enum { TROUBLE_BYTES = 512 };

/* Its exit code when the dump lacks what was asked for: tools/analyzer/cli/command.h. */
enum { EXIT_LACKING = 3 };

/* In front of its command: with --bare it writes errors to stderr without a prefix. */
static const char *const own_words[] = {"memlog", "--bare"};
enum { OWN_WORDS = sizeof(own_words) / sizeof(own_words[0]) };

struct job {
    char *arguments[OWN_WORDS + ML_ANALYZER_ARGUMENTS_MAX + 1];
    int inputs[2];
    int out_fd;
    int trouble_fd;
    pid_t pid;       /* 0: it waits */
    bool is_overdue; /* it was ended */
    ml_analyzer_done *on_done;
    void *context;
    struct job *next;
};

struct ml_analyzer {
    struct ml_analyzer_setup setup;
    struct job *jobs; /* the first works */
    ev_timer timer;
};

static void free_job(struct job *job) {
    for (size_t i = 0; job->arguments[i] != NULL; i++) {
        free(job->arguments[i]);
    }
    ml_descriptor_close(&job->inputs[0]);
    ml_descriptor_close(&job->inputs[1]);
    ml_descriptor_close(&job->out_fd);
    ml_descriptor_close(&job->trouble_fd);
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

/* The child's side. */
__attribute__((noreturn)) static void
become_analyzer(const struct ml_analyzer_setup *setup, struct job *job) {
    int fds[5] = {-1, job->out_fd, job->trouble_fd, job->inputs[0], job->inputs[1]};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpgid(0, 0); /* the terminal's signals are for the program */
    (void)!nice(ANALYZER_NICE);
    ml_inherited_restore(setup->inherited);
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    /* Move them first: one may have a number that another one is to get. */
    for (int i = 0; i <= SECOND_FD; i++) {
        fds[i] = fds[i] >= 0 ? fcntl(fds[i], F_DUPFD_CLOEXEC, HIGH_FD) : -1;
    }
    for (int i = 0; i <= SECOND_FD; i++) {
        if (fds[i] >= 0) {
            (void)dup2(fds[i], i);
        } else {
            (void)close(i);
        }
    }
    ml_launcher_forget_loader(environ);
    (void)execv(setup->path, job->arguments);
    _exit(127);
}

static bool start_first(struct ml_analyzer *analyzer) {
    struct job *job = analyzer->jobs;
    job->out_fd = memfd_create("memlog-page", MFD_CLOEXEC);
    job->trouble_fd = memfd_create("memlog-page-trouble", MFD_CLOEXEC);
    if (job->out_fd < 0 || job->trouble_fd < 0) {
        return false;
    }
    job->pid = fork();
    if (job->pid == 0) {
        become_analyzer(&analyzer->setup, job);
    }
    if (job->pid < 0) {
        job->pid = 0;
        return false;
    }
    analyzer->setup.on_helper(analyzer->setup.context, job->pid);
    ml_timer_start(analyzer->setup.loop, &analyzer->timer, (double)ML_ANALYZER_TIMEOUT_S);
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

static void on_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_analyzer *analyzer = watcher->data;
    if (analyzer->jobs != NULL && analyzer->jobs->pid > 0) {
        analyzer->jobs->is_overdue = true;
        (void)kill(analyzer->jobs->pid, SIGKILL);
    }
}

enum ml_status
ml_analyzer_open(const struct ml_analyzer_setup *setup, struct ml_analyzer **out_analyzer) {
    struct ml_analyzer *analyzer = calloc(1, sizeof(*analyzer));
    if (analyzer == NULL) {
        return ML_ENV_MEMORY;
    }
    analyzer->setup = *setup;
    ml_timer_init(&analyzer->timer, on_timer, analyzer);
    *out_analyzer = analyzer;
    return ML_OK;
}

void ml_analyzer_close(struct ml_analyzer *take_analyzer) {
    struct ml_analyzer *analyzer = take_analyzer;
    if (analyzer == NULL) {
        return;
    }
    ev_timer_stop(analyzer->setup.loop, &analyzer->timer);
    while (analyzer->jobs != NULL) {
        struct job *job = analyzer->jobs;
        analyzer->jobs = job->next;
        if (job->pid > 0) {
            (void)kill(job->pid, SIGKILL);
        }
        finish(job, ML_ANALYZER_FAILED, "memlog ends");
    }
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
        .inputs = {-1, -1},
        .out_fd = -1,
        .trouble_fd = -1,
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
    const int fds[] = {job->first_fd, job->second_fd};
    for (size_t i = 0; i < 2; i++) {
        own->inputs[i] = fds[i] >= 0 ? fcntl(fds[i], F_DUPFD_CLOEXEC, HIGH_FD) : -1;
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

void ml_analyzer_child_ended(
    struct ml_analyzer *analyzer, pid_t pid, const struct ml_ending *ending
) {
    struct job *job = analyzer->jobs;
    char trouble[TROUBLE_BYTES] = "";
    if (job == NULL || job->pid != pid || pid == 0) {
        return;
    }
    ev_timer_stop(analyzer->setup.loop, &analyzer->timer);
    analyzer->jobs = job->next;
    if (job->is_overdue) {
        (void)snprintf(
            trouble,
            sizeof(trouble),
            "it took more than %d s; memlog convert has all the time",
            ML_ANALYZER_TIMEOUT_S
        );
    } else if (ending->signal != 0) {
        (void)snprintf(
            trouble, sizeof(trouble), "memlog-analyzer was killed by signal %d", ending->signal
        );
    } else if (ending->exit_code != 0) {
        read_trouble(job, trouble);
    }
    enum ml_analyzer_verdict verdict = ML_ANALYZER_MADE;
    if (trouble[0] != '\0') {
        verdict = ending->signal == 0 && ending->exit_code == EXIT_LACKING ? ML_ANALYZER_LACKING
                                                                           : ML_ANALYZER_FAILED;
    }
    finish(job, verdict, trouble);
    start_next(analyzer);
}
