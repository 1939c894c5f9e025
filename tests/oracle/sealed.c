/* A program that walls itself in and then allocates: sealed HOW [BLOCKS BEHIND]. HOW says by what
 * and how narrow: strict (mode 1), narrow (a filter that lets only what this program needs through,
 * and kills), trap (the same, by SIGSYS), narrow-call and wide-call (by seccomp(2) instead of
 * prctl), trap-call (trap, by syscall(SYS_prctl)), wide (a filter that kills for a few calls nobody
 * makes), errno (narrow, by an error), child (narrow, in a child that has allocated before), fresh
 * (narrow, in a child that has not), dispatch (every call comes to this program as SIGSYS) and
 * dispatch-call; pending (as Chromium's renderers: no way to ask for waiting signals), consume (as
 * Firefox's content: nor to take one, and SIGPIPE is ignored), caught (the same, and it is not) and
 * caught-late (it is not from then on). Exit code 5: it came to its end. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END = 5, WALL_FAILED = 6, BLOCKS = 50000, BLOCK_BYTES = 100 };

#define LET_THROUGH(number)                                                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                                           \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL_FOR(number)                                                                           \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                                           \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static struct sock_filter narrow[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    LET_THROUGH(SYS_exit_group),
    LET_THROUGH(SYS_exit),
    LET_THROUGH(SYS_brk),
    LET_THROUGH(SYS_mmap),
    LET_THROUGH(SYS_munmap),
    LET_THROUGH(SYS_write),
    LET_THROUGH(SYS_rt_sigreturn),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};

static struct sock_filter wide[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    KILL_FOR(SYS_ptrace),
    KILL_FOR(SYS_reboot),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};

static struct sock_filter pending[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    KILL_FOR(SYS_pwritev2),
    KILL_FOR(SYS_rt_sigpending),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};

static struct sock_filter consume[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    KILL_FOR(SYS_pwritev2),
    KILL_FOR(SYS_rt_sigpending),
    KILL_FOR(SYS_rt_sigtimedwait),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};

/* The kernel reads it at each system call. */
static volatile char selector;
static volatile int calls_seen;

static void sees_call(int number) {
    (void)number;
    selector = SYSCALL_DISPATCH_FILTER_ALLOW;
    calls_seen++;
}

static int dispatch(int by_call) {
    const int what = PR_SET_SYSCALL_USER_DISPATCH;
    if (signal(SIGSYS, sees_call) == SIG_ERR) {
        return -1;
    }
    const long result = by_call ? syscall(SYS_prctl, what, PR_SYS_DISPATCH_ON, 0, 0, &selector)
                                : prctl(what, PR_SYS_DISPATCH_ON, 0, 0, &selector);
    selector = SYSCALL_DISPATCH_FILTER_BLOCK;
    return (int)result;
}

static int put_up(struct sock_filter *filter, size_t count, int by_call) {
    const struct sock_fprog program = {.len = (unsigned short)count, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -1;
    }
    if (by_call && filter[count - 1].k == SECCOMP_RET_TRAP) {
        return (int)syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
    }
    return by_call ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
                   : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#define PUT_UP(filter, by_call) put_up((filter), sizeof(filter) / sizeof((filter)[0]), (by_call))

static int wall_in(const char *how) {
    if (strcmp(how, "strict") == 0) {
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    }
    if (strcmp(how, "pending") == 0) {
        return PUT_UP(pending, 0);
    }
    if (strcmp(how, "consume") == 0 || strncmp(how, "caught", 6) == 0) {
        (void)signal(SIGPIPE, strcmp(how, "caught") == 0 ? SIG_DFL : SIG_IGN);
        return PUT_UP(consume, 0);
    }
    if (strncmp(how, "wide", 4) == 0) {
        return PUT_UP(wide, strcmp(how, "wide-call") == 0);
    }
    if (strncmp(how, "dispatch", 8) == 0) {
        return dispatch(strcmp(how, "dispatch-call") == 0);
    }
    if (strncmp(how, "trap", 4) == 0) {
        narrow[sizeof(narrow) / sizeof(narrow[0]) - 1].k = SECCOMP_RET_TRAP;
    }
    if (strcmp(how, "errno") == 0) {
        narrow[sizeof(narrow) / sizeof(narrow[0]) - 1].k = SECCOMP_RET_ERRNO | EPERM;
    }
    return PUT_UP(narrow, strstr(how, "-call") != NULL);
}

__attribute__((noinline)) static void work(int blocks) {
    static void *kept[64];
    for (int i = 0; i < blocks; i++) {
        free(kept[i % 64]);
        kept[i % 64] = malloc(BLOCK_BYTES);
    }
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "wide";
    const int blocks_behind = argc > 2 ? (int)strtol(argv[2], NULL, 10) : BLOCKS;
    work(BLOCKS);
    if (strcmp(how, "child") == 0 || strcmp(how, "fresh") == 0) {
        int status = 0;
        const pid_t child = fork();
        if (child > 0) {
            return waitpid(child, &status, 0) == child && status == END << 8 ? END : 1;
        }
        work(strcmp(how, "child") == 0 ? BLOCKS : 0);
    }
    if (wall_in(how) != 0) {
        return WALL_FAILED;
    }
    if (strcmp(how, "caught-late") == 0) {
        work(blocks_behind);
        (void)signal(SIGPIPE, SIG_DFL);
    }
    work(blocks_behind);
    if (strcmp(how, "strict") == 0) {
        syscall(SYS_exit, END); /* exit_group is more than it permits */
    }
    selector = SYSCALL_DISPATCH_FILTER_ALLOW;
    _exit(END + calls_seen);
}
