/* Stands where memlog-tracer is looked for, and becomes it (the file `tracer` beside this one); but
 * one with a certain task (attach, say) dies of SIGKILL behind its N-th step. The file `step` has
 * N, a pause before that, and the task. A step is a call by which it changes the process or speaks
 * to the host; writes of whole pages, which nobody runs yet, are none. The file `died` says at
 * which it was; "end": it had fewer steps. Who kills it is a child that traces it: the tracer
 * itself is the one that users have. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TASK_BYTES = 16,
    PAGE_BYTES = 4096,
    HOST_FD = 3,
    FDS = 64,
    CALL_STOP = SIGTRAP | 0x80,
    EVENT_SHIFT = 16
};

static char folder[PATH_MAX];

static void path_of(const char *name, char out_path[2 * PATH_MAX]) {
    (void)snprintf(out_path, 2 * PATH_MAX, "%s/%s", folder, name);
}

/* The name appears with all that is in the file. */
static void tell(const char *text) {
    char draft[2 * PATH_MAX];
    char path[2 * PATH_MAX];
    path_of("died.draft", draft);
    path_of("died", path);
    FILE *file = fopen(draft, "w");
    if (file != NULL) {
        (void)fputs(text, file);
        (void)fclose(file);
        (void)rename(draft, path);
    }
}

/* NULL: it is no step. */
static const char *step_of(const struct user_regs_struct *call) {
    static const struct {
        enum __ptrace_request request;
        const char *name;
    } requests[] = {
        {PTRACE_SEIZE, "seize"},
        {PTRACE_INTERRUPT, "interrupt"},
        {PTRACE_SETREGS, "set registers"},
        {PTRACE_SETREGSET, "set state"},
        {PTRACE_SETSIGMASK, "set signal mask"},
        {PTRACE_SETOPTIONS, "set options"},
        {PTRACE_SYSCALL, "up to a call"},
        {PTRACE_CONT, "go on"},
        {PTRACE_DETACH, "detach"},
    };
    switch (call->orig_rax) {
    case SYS_pwrite64:
        return call->rdx < PAGE_BYTES ? "write" : NULL;
    case SYS_pidfd_getfd:
        return "take a socket";
    case SYS_sendmsg:
        return "tell the host";
    case SYS_ptrace:
        for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
            if ((unsigned long long)requests[i].request == call->rdi) {
                return requests[i].name;
            }
        }
        return NULL;
    default:
        return NULL;
    }
}

struct watched {
    pid_t pid;
    bool is_tracer; /* it is the real one by now */
    bool is_inside; /* a call has begun */
    unsigned step, last_step;
    useconds_t pause_us;
};

/* True: it has died. */
static bool is_killed_behind(struct watched *watched) {
    struct user_regs_struct call;
    char text[128];
    if (ptrace(PTRACE_GETREGS, watched->pid, NULL, &call) != 0) {
        return false;
    }
    watched->is_inside = !watched->is_inside && call.orig_rax != SYS_execve;
    const char *name = watched->is_inside ? NULL : step_of(&call);
    if (!watched->is_tracer || name == NULL || ++watched->step != watched->last_step) {
        return false;
    }
    (void)usleep(watched->pause_us);
    (void)kill(watched->pid, SIGKILL);
    (void)waitpid(watched->pid, NULL, __WALL);
    (void)snprintf(text, sizeof(text), "%u: %s\n", watched->step, name);
    tell(text);
    return true;
}

static void watch(struct watched *watched, int ready_fd) {
    int status = 0;
    int signal = 0;
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC;
    if (ptrace(PTRACE_SEIZE, watched->pid, NULL, (void *)options) != 0 ||
        ptrace(PTRACE_INTERRUPT, watched->pid, NULL, NULL) != 0 ||
        waitpid(watched->pid, &status, __WALL) != watched->pid ||
        ptrace(PTRACE_SYSCALL, watched->pid, NULL, NULL) != 0 || write(ready_fd, "x", 1) != 1) {
        tell("no step: it cannot be traced\n");
        return;
    }
    while (waitpid(watched->pid, &status, __WALL) == watched->pid && WIFSTOPPED(status)) {
        const int event = status >> EVENT_SHIFT;
        watched->is_tracer = watched->is_tracer || event == PTRACE_EVENT_EXEC;
        signal = event != 0 || WSTOPSIG(status) == CALL_STOP ? 0 : WSTOPSIG(status);
        if (event == 0 && WSTOPSIG(status) == CALL_STOP && is_killed_behind(watched)) {
            return;
        }
        (void)ptrace(PTRACE_SYSCALL, watched->pid, NULL, (void *)(long)signal);
    }
    tell("end\n");
}

static bool read_step(struct watched *out, char out_task[TASK_BYTES]) {
    char path[2 * PATH_MAX];
    path_of("step", path);
    FILE *file = fopen(path, "r");
    *out = (struct watched){.pid = getpid()};
    const bool is_read =
        file != NULL && fscanf(file, "%u %u %15s", &out->last_step, &out->pause_us, out_task) == 3;
    if (file != NULL) {
        (void)fclose(file);
    }
    return is_read;
}

/* The host waits for the end of its socket: the child must not have it. */
static void begin_watch(struct watched *watched) {
    int ready[2];
    char byte;
    if (pipe2(ready, O_CLOEXEC) != 0) {
        return;
    }
    if (fork() == 0) {
        for (int fd = HOST_FD; fd < FDS; fd++) {
            if (fd != ready[1]) {
                (void)close(fd);
            }
        }
        (void)setsid();
        watch(watched, ready[1]);
        _exit(0);
    }
    (void)close(ready[1]);
    (void)!read(ready[0], &byte, 1);
}

int main(int count, char **words) {
    char path[2 * PATH_MAX];
    char task[TASK_BYTES];
    struct watched watched;
    const ssize_t bytes = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    if (bytes <= 0) {
        return 1;
    }
    *strrchr(folder, '/') = '\0';
    if (count > 1 && read_step(&watched, task) && strcmp(words[1], task) == 0) {
        begin_watch(&watched);
    }
    path_of("tracer", path);
    (void)execv(path, words);
    return 1;
}
