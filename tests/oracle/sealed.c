/* A program that walls itself in and then allocates: sealed HOW [BLOCKS BEHIND]. HOW says by what
 * and how narrow: strict (mode 1), narrow (a filter that lets only what this program needs through,
 * and kills), trap (the same, by SIGSYS), narrow-call and wide-call (by seccomp(2) instead of
 * prctl), wide (a filter that kills for a few calls nobody makes), child (narrow, in a child that
 * has allocated before). Exit code 5: it came to its end. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
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

static int put_up(struct sock_filter *filter, size_t count, int by_call) {
    const struct sock_fprog program = {.len = (unsigned short)count, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -1;
    }
    return by_call ? (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
                   : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

#define PUT_UP(filter, by_call) put_up((filter), sizeof(filter) / sizeof((filter)[0]), (by_call))

static int wall_in(const char *how) {
    if (strcmp(how, "strict") == 0) {
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    }
    if (strncmp(how, "wide", 4) == 0) {
        return PUT_UP(wide, strcmp(how, "wide-call") == 0);
    }
    if (strcmp(how, "trap") == 0) {
        narrow[sizeof(narrow) / sizeof(narrow[0]) - 1].k = SECCOMP_RET_TRAP;
    }
    return PUT_UP(narrow, strcmp(how, "narrow-call") == 0);
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
    if (strcmp(how, "child") == 0) {
        int status = 0;
        const pid_t child = fork();
        if (child > 0) {
            return waitpid(child, &status, 0) == child && status == END << 8 ? END : 1;
        }
        work(BLOCKS);
    }
    if (wall_in(how) != 0) {
        return WALL_FAILED;
    }
    work(blocks_behind);
    if (strcmp(how, "strict") == 0) {
        syscall(SYS_exit, END); /* exit_group is more than it permits */
    }
    _exit(END);
}
