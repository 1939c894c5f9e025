#include "tools/analyzer/helpers/process_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/analyzer/helpers/helper.h"
#include "tools/analyzer/helpers/rooted.h"

/* Larger than any program; the copy is in memory. */
static const off_t copy_max_bytes = (off_t)1 << 30;

/* A file system of somebody else's may never answer. */
enum { ANSWER_LIMIT_MS = 15000, END_LIMIT_MS = 1000 };

/* Roots that the host has kept: ML_ROOTS_MAX and ML_ROOT_SPACES_MAX of host/analysis/roots.h. */
enum { ROOTS_MAX = 128, SPACES_MAX = 32, TABLE_BYTES = ROOTS_MAX * (PATH_MAX + 16) };

struct question {
    uint32_t pid;
    uint32_t way; /* enum ml_process_way, and the roots behind them */
    uint64_t start, end;
    uint32_t is_debug;
    char path[PATH_MAX];
};

struct kept_root {
    int space; /* which of the namespaces; -1: the host's own */
    const char *path;
    int fd;         /* the worker's, once it was asked for; -1: it cannot be had */
    bool was_tried; /* likewise */
};

/* The helper, and the memory that it copies to: files with code, and debug files. */
static struct ml_helper helper = {
    .lost = "names may be missing whose files only running processes have"};
static int copy_fds[2];

/* Set before the start. */
static struct kept_root roots[ROOTS_MAX];
static size_t roots_count;
static int first_space_fd, spaces_count;

/* In the helper: the descriptors that it has beside its first copy. */
enum { COPY_DEBUG_FD = ML_HELPER_KEPT_FD, FIRST_SPACE_FD };

/* Open the file as O_PATH by the link of a piece of its mapping. Only CAP_SYS_ADMIN may follow that
 * link. */
static int open_mapped(const struct question *question) {
    char folder[sizeof "/proc/4294967295/map_files"];
    DIR *pieces = NULL;
    const struct dirent *entry = NULL;
    int fd = -1;

    snprintf(folder, sizeof folder, "/proc/%" PRIu32 "/map_files", question->pid);
    pieces = opendir(folder);
    while (fd < 0 && pieces && (entry = readdir(pieces)) != NULL) {
        uint64_t start = 0;
        uint64_t end = 0;
        if (sscanf(entry->d_name, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 &&
            start >= question->start && end <= question->end) {
            fd = openat(dirfd(pieces), entry->d_name, O_PATH | O_CLOEXEC);
        }
    }
    if (pieces) {
        closedir(pieces);
    }
    return fd;
}

/* The device and inode of the file that is mapped there. */
static bool find_mapped(const struct question *question, struct stat *out_mapped) {
    char path[sizeof "/proc/4294967295/maps"];
    char *line = NULL;
    size_t room = 0;
    bool done = false;
    FILE *maps = NULL;

    snprintf(path, sizeof path, "/proc/%" PRIu32 "/maps", question->pid);
    maps = fopen(path, "re");
    while (maps && !done && getline(&line, &room, maps) > 0) {
        uint64_t start = 0;
        uint64_t end = 0;
        uint64_t inode = 0;
        unsigned major = 0;
        unsigned minor = 0;
        done = sscanf(
                   line,
                   "%" SCNx64 "-%" SCNx64 " %*s %*x %x:%x %" SCNu64,
                   &start,
                   &end,
                   &major,
                   &minor,
                   &inode
               ) == 5 &&
               start >= question->start && end <= question->end && inode != 0;
        *out_mapped = (struct stat){.st_dev = makedev(major, minor), .st_ino = inode};
    }
    free(line);
    if (maps) {
        fclose(maps);
    }
    return done;
}

static int open_link(uint32_t pid, const char *name) {
    char path[sizeof "/proc/4294967295/" + 16];

    snprintf(path, sizeof path, "/proc/%" PRIu32 "/%s", pid, name);
    return open(path, O_PATH | O_CLOEXEC);
}

/* A descriptor of the process's that leads to the file of the mapping: a deleted one is reached so
 * without privileges, while the program has it open. */
static int open_held(const struct question *question) {
    char path[sizeof "/proc/4294967295/fd/" + NAME_MAX];
    struct stat mapped;
    struct stat status;
    DIR *held = NULL;
    const struct dirent *entry = NULL;
    int fd = -1;

    if (!find_mapped(question, &mapped)) {
        return -1;
    }
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/fd", question->pid);
    held = opendir(path);
    while (fd < 0 && held && (entry = readdir(held)) != NULL) {
        if (fstatat(dirfd(held), entry->d_name, &status, 0) == 0 &&
            status.st_dev == mapped.st_dev && status.st_ino == mapped.st_ino) {
            fd = openat(dirfd(held), entry->d_name, O_PATH | O_CLOEXEC);
        }
    }
    if (held) {
        closedir(held);
    }
    return fd;
}

/* A path of the process's, below its root. */
static int open_rooted(int take_root_fd, const char *path) {
    int fd = take_root_fd >= 0 ? ml_rooted_open(take_root_fd, path) : -1;
    const int error = errno;

    if (take_root_fd >= 0) {
        close(take_root_fd);
    }
    errno = error;
    return fd;
}

/* A path that begins where the process stands. */
static int open_in_folder(const struct question *question) {
    char link[sizeof "/proc/4294967295/cwd"];
    char path[2 * PATH_MAX];
    ssize_t count = 0;

    snprintf(link, sizeof link, "/proc/%" PRIu32 "/cwd", question->pid);
    count = readlink(link, path, PATH_MAX - 1);
    if (count <= 0 || path[0] != '/') {
        return -1;
    }
    snprintf(path + count, sizeof path - (size_t)count, "/%s", question->path);
    return open_rooted(open_link(question->pid, "root"), path);
}

static int open_root(const struct kept_root *root) {
    int top_fd = root->space >= 0 ? ml_rooted_top(FIRST_SPACE_FD + root->space)
                                  : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    return open_rooted(top_fd, root->path);
}

/* The path as the process has it. Whoever asked the kernel about a process in a chroot was told the
 * way to the root, too. */
static const char *path_of(const struct question *question) {
    const char *root = "/";
    size_t count = 0;

    if (question->way >= ML_PROCESS_WAYS && question->way - ML_PROCESS_WAYS < roots_count) {
        root = roots[question->way - ML_PROCESS_WAYS].path;
    }
    count = strlen(root);
    return root[1] && strncmp(question->path, root, count) == 0 && question->path[count] == '/'
               ? question->path + count
               : question->path;
}

/* Below a root that the host has kept. */
static int open_kept(const struct question *question) {
    struct kept_root *root = &roots[question->way - ML_PROCESS_WAYS];

    if (question->way - ML_PROCESS_WAYS >= roots_count) {
        return -1;
    }
    if (!root->was_tried) {
        root->was_tried = true;
        root->fd = open_root(root);
    }
    return root->fd >= 0 ? ml_rooted_open(root->fd, path_of(question)) : -1;
}

static int open_asked(const struct question *question) {
    switch (question->way) {
    case ML_PROCESS_MAPPED:
        return open_mapped(question);
    case ML_PROCESS_ROOT:
        return open_rooted(open_link(question->pid, "root"), question->path);
    case ML_PROCESS_FOLDER:
        return open_in_folder(question);
    case ML_PROCESS_PROGRAM:
        return open_link(question->pid, "exe");
    case ML_PROCESS_DESCRIPTOR:
        return open_held(question);
    default:
        return open_kept(question);
    }
}

/* Whether the file's own path leads to the same file. Then no copy is needed. */
static bool is_known(const struct question *question, const struct stat *status) {
    struct stat named;

    return !question->is_debug && stat(path_of(question), &named) == 0 &&
           named.st_dev == status->st_dev && named.st_ino == status->st_ino;
}

static bool is_running(uint32_t pid) {
    char path[sizeof "/proc/4294967295"];

    snprintf(path, sizeof path, "/proc/%" PRIu32, pid);
    return access(path, F_OK) == 0;
}

/* The copy has the file's holes, too: a hole takes no memory. */
static bool copy_all(int fd, int copy_fd, off_t count_bytes) {
    bool done = ftruncate(copy_fd, 0) == 0 && ftruncate(copy_fd, count_bytes) == 0;
    off_t at = done ? lseek(fd, 0, SEEK_DATA) : -1;

    while (done && at >= 0 && at < count_bytes) {
        off_t end = lseek(fd, at, SEEK_HOLE);

        done = end > at && lseek(copy_fd, at, SEEK_SET) == at;
        while (done && at < end) {
            done = sendfile(copy_fd, fd, &at, (size_t)(end - at)) > 0;
        }
        at = done ? lseek(fd, end, SEEK_DATA) : -1;
    }
    return done;
}

/* Why a path could not be opened. */
static struct ml_lack lack_of(const struct question *question, int error) {
    const uint32_t root = question->way - ML_PROCESS_WAYS;

    if (question->way >= ML_PROCESS_WAYS && root < roots_count && roots[root].fd < 0) {
        return (struct ml_lack){.kind = roots[root].space >= 0 ? ML_LACK_SPACE : ML_LACK_ENDED};
    }
    if (error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENAMETOOLONG) {
        if (question->way >= ML_PROCESS_WAYS || !is_running(question->pid)) {
            return (struct ml_lack){.kind = ML_LACK_ENDED};
        }
        return (struct ml_lack){.kind = ML_LACK_UNLINKED};
    }
    return error == ESRCH ? (struct ml_lack){.kind = ML_LACK_ENDED}
                          : (struct ml_lack){.kind = ML_LACK_DENIED, .error = error};
}

/* Copy a file that is open. */
static struct ml_lack copy_open(const struct question *question, int fd, int copy_fd) {
    struct stat status;

    if (fstat(fd, &status) != 0) {
        return (struct ml_lack){.kind = ML_LACK_DENIED, .error = errno};
    }
    if (is_known(question, &status)) {
        return (struct ml_lack){.kind = ML_LACK_SHARED};
    }
    if (status.st_size > copy_max_bytes) {
        return (struct ml_lack){.kind = ML_LACK_SIZE};
    }
    errno = 0;
    return copy_all(fd, question->is_debug ? COPY_DEBUG_FD : copy_fd, status.st_size)
               ? (struct ml_lack){.kind = ML_LACK_NONE}
               : (struct ml_lack){.kind = ML_LACK_DENIED, .error = errno};
}

static struct ml_lack copy_asked(const struct question *question, int copy_fd) {
    struct stat status;
    struct ml_lack lack;
    int fd = -1;
    int place_fd = -1;

    errno = 0;
    place_fd = open_asked(question);
    if (place_fd < 0) {
        return lack_of(question, errno);
    }
    if (fstat(place_fd, &status) == 0 && !S_ISREG(status.st_mode)) {
        close(place_fd);
        return (struct ml_lack){.kind = ML_LACK_KIND};
    }
    fd = ml_rooted_read(place_fd);
    if (fd < 0) {
        return (struct ml_lack){.kind = ML_LACK_DENIED, .error = errno};
    }
    lack = copy_open(question, fd, copy_fd);
    close(fd);
    return lack;
}

/* Who opens the files: a process of its own, so that it can be ended where a file system hangs. */
struct worker {
    pid_t pid; /* 0: there is none; -1: one hangs and cannot be ended */
    int to_fd, from_fd;
    int asked_fd, answered_fd; /* the helper's own ways, which are not the worker's */
    int copy_fd;
};

static void work(int questions_fd, int answers_fd, int copy_fd, pid_t parent) {
    struct question question;
    bool goes_on = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;

    while (goes_on && ml_helper_read(questions_fd, &question, sizeof question)) {
        const struct ml_lack lack = copy_asked(&question, copy_fd);
        goes_on = write(answers_fd, &lack, sizeof lack) == (ssize_t)sizeof lack;
    }
    _exit(0);
}

static bool worker_start(struct worker *worker) {
    pid_t parent = getpid();
    int questions[2];
    int answers[2];

    if (pipe2(questions, O_CLOEXEC) != 0) {
        return false;
    }
    if (pipe2(answers, O_CLOEXEC) != 0) {
        close(questions[0]);
        close(questions[1]);
        return false;
    }
    worker->pid = fork();
    if (worker->pid == 0) {
        close(questions[1]);
        close(worker->asked_fd);
        close(worker->answered_fd);
        work(questions[0], answers[1], worker->copy_fd, parent);
    }
    close(questions[0]);
    close(answers[1]);
    worker->to_fd = questions[1];
    worker->from_fd = answers[0];
    return worker->pid > 0;
}

/* It did not answer. One that cannot be ended may still write into a copy some day: then nothing is
 * copied any more. */
static void worker_end(struct worker *worker) {
    int waited_ms = 0;

    (void)kill(worker->pid, SIGKILL);
    while (waitpid(worker->pid, NULL, WNOHANG) == 0 && waited_ms < END_LIMIT_MS) {
        (void)poll(NULL, 0, 10);
        waited_ms += 10;
    }
    close(worker->to_fd);
    close(worker->from_fd);
    worker->pid = waited_ms < END_LIMIT_MS ? 0 : -1;
}

static struct ml_lack worker_ask(struct worker *worker, const struct question *question) {
    struct pollfd answer = {.events = POLLIN};
    struct ml_lack lack = {.kind = ML_LACK_SLOW};

    if (worker->pid < 0) {
        return lack;
    }
    if (worker->pid == 0 && !worker_start(worker)) {
        return (struct ml_lack){.kind = ML_LACK_DENIED, .error = errno};
    }
    answer.fd = worker->from_fd;
    if (write(worker->to_fd, question, sizeof *question) == (ssize_t)sizeof *question &&
        poll(&answer, 1, ANSWER_LIMIT_MS) == 1 &&
        read(worker->from_fd, &lack, sizeof lack) == (ssize_t)sizeof lack) {
        return lack;
    }
    worker_end(worker);
    return (struct ml_lack){.kind = ML_LACK_SLOW};
}

static void serve(int questions_fd, int answers_fd, int copy_fd) {
    struct worker worker = {
        .pid = 0, .asked_fd = questions_fd, .answered_fd = answers_fd, .copy_fd = copy_fd};
    struct question question;
    bool goes_on = true;

    (void)signal(SIGPIPE, SIG_IGN);
    /* Without a worker there is nothing to do: the analyzer says what is missing. */
    while (goes_on && worker.pid >= 0 && ml_helper_read(questions_fd, &question, sizeof question)) {
        struct ml_lack lack;
        question.path[sizeof question.path - 1] = '\0';
        lack = worker_ask(&worker, &question);
        goes_on = ml_helper_answer(answers_fd, true, &lack, sizeof lack);
    }
}

void ml_process_files_roots(int table_fd, int space_fd) {
    char *table = calloc(1, TABLE_BYTES + 1);
    ssize_t count = table ? pread(table_fd, table, TABLE_BYTES, 0) : 0;

    first_space_fd = space_fd;
    for (char *at = table; at && at < table + count && roots_count < ROOTS_MAX;
         at += strlen(at) + 1) {
        char *path = strchr(at, ' ');
        int space = (int)strtol(at, NULL, 10);

        if (path && space >= -1 && space < SPACES_MAX) {
            roots[roots_count++] = (struct kept_root){.space = space, .path = path + 1};
            spaces_count = space >= spaces_count ? space + 1 : spaces_count;
        }
    }
}

size_t ml_process_files_roots_count(void) {
    return roots_count;
}

void ml_process_files_start(void) {
    int kept[1 + SPACES_MAX];

    if (helper.was_tried) {
        return;
    }
    copy_fds[0] = memfd_create("memlog-process-file", MFD_CLOEXEC);
    copy_fds[1] = memfd_create("memlog-process-debug", MFD_CLOEXEC);
    kept[0] = copy_fds[1];
    for (int i = 0; i < spaces_count; i++) {
        kept[1 + i] = first_space_fd + i;
    }
    helper.kept_fds = kept;
    helper.kept_count = 1 + (size_t)spaces_count;
    if (copy_fds[0] >= 0 && copy_fds[1] >= 0) {
        ml_helper_start(&helper, serve, copy_fds[0]);
    }
    helper.kept_fds = NULL;
    helper.kept_count = 0;
}

bool ml_process_files_get(
    const struct ml_process_wanted *wanted,
    char *out_path,
    unsigned long path_bytes,
    struct ml_lack *out_lack
) {
    struct question question = {
        .pid = wanted->pid,
        .way = wanted->way,
        .start = wanted->start,
        .end = wanted->end,
        .is_debug = wanted->is_debug,
    };
    int copy_fd = copy_fds[wanted->is_debug ? 1 : 0];

    *out_lack = (struct ml_lack){.kind = ML_LACK_HERE};
    if (strlen(wanted->path) >= sizeof question.path) {
        return false;
    }
    memcpy(question.path, wanted->path, strlen(wanted->path));
    return ml_helper_ask(&helper, &question, sizeof question, NULL, 0) &&
           ml_helper_take(&helper, out_lack, sizeof *out_lack) && out_lack->kind == ML_LACK_NONE &&
           (size_t)snprintf(out_path, path_bytes, "/proc/self/fd/%d", copy_fd) < path_bytes;
}
