"""A program whose filter kills for one system call starts another program, and forks: as without memlog, whichever call it is."""
import unittest

import as_bare

SOURCE = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
/* None of them is needed by true, nor by what is done here. */
static const int calls[] = {
    SYS_readlink, SYS_fgetxattr, SYS_pwritev2, SYS_faccessat, SYS_geteuid, SYS_getegid, SYS_getppid, SYS_gettid, SYS_getpid, SYS_madvise,
    SYS_poll, SYS_prlimit64, SYS_socket, SYS_connect, SYS_sendmsg, SYS_recvmsg, SYS_setsockopt, SYS_shutdown, SYS_fcntl, SYS_memfd_create,
    SYS_ftruncate, SYS_pwrite64, SYS_pipe2, SYS_mremap, SYS_sched_yield, SYS_sigaltstack, SYS_clock_gettime, SYS_ioctl,
    SYS_rt_sigpending, SYS_rt_sigtimedwait, SYS_open, SYS_stat, SYS_lstat, SYS_getrandom, SYS_newfstatat, SYS_tgkill, SYS_socketpair, SYS_unlink,
    SYS_dup, SYS_dup2, SYS_dup3, SYS_readlinkat, SYS_statx, SYS_getuid, SYS_getgid, SYS_sysinfo, SYS_uname, SYS_getrlimit, SYS_writev, SYS_futex, SYS_kill,
    SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_prctl, SYS_pread64, SYS_getdents64, SYS_lseek, SYS_membarrier, SYS_sched_getaffinity,
};
static int kill_for(int call) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {4, steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
int main(void) {
    char *words[] = {"true", NULL}, *none[] = {NULL};
    for (int i = 0; i < 2 * (int)(sizeof(calls) / sizeof(*calls)); i++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            if (kill_for(calls[i / 2])) _exit(7);
            if (i % 2 == 0) _exit(malloc(100) == NULL);
            execve("/bin/true", words, none);
            _exit(8);
        }
        waitpid(pid, &status, 0);
        printf("%d %d %x\n", calls[i / 2], i % 2, status);
    }
    return 0;
}
"""

# The same for all that a client does later: threads, libraries, mappings, full buffers, new stacks, signals, other ways to start a program.
ACTS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
enum { ACTS = 12 };
/* All that the client makes, but futex: with a thread it is chance whether it is called. */
static const int calls[] = {
    SYS_access, SYS_clock_gettime, SYS_clone, SYS_clone3, SYS_close, SYS_close_range, SYS_connect, SYS_execve, SYS_execveat, SYS_faccessat, SYS_fcntl,
    SYS_fgetxattr, SYS_fork, SYS_fstat, SYS_ftruncate, SYS_getegid, SYS_geteuid, SYS_getpid, SYS_getppid, SYS_gettid, SYS_ioctl, SYS_madvise,
    SYS_memfd_create, SYS_mmap, SYS_mremap, SYS_munmap, SYS_newfstatat, SYS_open, SYS_openat, SYS_pipe2, SYS_poll, SYS_prctl, SYS_pread64,
    SYS_prlimit64, SYS_process_vm_readv, SYS_pwrite64, SYS_pwritev2, SYS_read, SYS_readlink, SYS_recvmsg, SYS_restart_syscall, SYS_rt_sigaction,
    SYS_rt_sigpending, SYS_rt_sigprocmask, SYS_rt_sigtimedwait, SYS_sched_yield, SYS_seccomp, SYS_sendmsg, SYS_setsockopt, SYS_shmat, SYS_shmdt,
    SYS_shutdown, SYS_sigaltstack, SYS_socket, SYS_socketpair, SYS_stat, SYS_tgkill, SYS_write,
};
static int kill_for(int call) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {4, steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
static void *volatile sink;
static void many(void) {
    static void *kept[20000];
    for (int i = 0; i < 20000; i++) kept[i] = malloc(i % 300);
    for (int i = 0; i < 20000; i++) free(kept[i]);
}
static void *allocates(void *nothing) {
    for (int i = 0; i < 100; i++) free(sink = malloc(i));
    return nothing;
}
static void deep(int depth, unsigned way) {
    if (depth == 0) {
        free(malloc(10));
    } else if (way & 1) {
        deep(depth - 1, way >> 1);
        sink = &depth;
    } else {
        deep(depth - 1, way >> 1);
        sink = &way;
    }
}
static void handles(int signal) {
    free(malloc(33));
    (void)signal;
}
static int ended(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return (status & 127) != 0 ? 5 : status >> 8;
}
static int act(int which) {
    char *words[] = {"true", NULL};
    struct rlimit limit = {64, 64};
    pthread_t thread;
    pid_t pid = 0;
    void *got = NULL;
    switch (which) {
    case 0: return pthread_create(&thread, NULL, allocates, NULL) || pthread_join(thread, NULL);
    case 1:
        got = dlopen("libm.so.6", RTLD_NOW);
        many();
        return got == NULL || dlclose(got);
    case 2:
        got = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(got, 1, 1 << 20);
        return munmap(mremap(got, 1 << 20, 2 << 20, MREMAP_MAYMOVE), 2 << 20) != 0;
    case 3:
        for (int i = 0; i < 5; i++) many();
        return 0;
    case 4: return posix_spawn(&pid, "/bin/true", NULL, NULL, words, environ) ? 4 : ended(pid);
    case 5: return system("exit 0") & 127;
    case 6:
        for (unsigned i = 0; i < 1000; i++) deep(40, i * 2654435761u);
        return 0;
    case 7:
        signal(SIGUSR1, handles);
        for (int i = 0; i < 50; i++) raise(SIGUSR1);
        return 0;
    case 8:
        if ((pid = fork()) == 0) {
            many();
            _exit(0);
        }
        return ended(pid);
    case 9:
        if ((pid = vfork()) == 0) {
            execve("/bin/true", words, environ);
            _exit(9);
        }
        return ended(pid);
    case 10:
        setrlimit(RLIMIT_NOFILE, &limit);
        many();
        return prctl(PR_SET_NAME, "other");
    default:
        for (int i = 3; i < 100; i++) close(i);
        many();
        exit(0);
    }
}
int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < ACTS * (int)(sizeof(calls) / sizeof(*calls)); i++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            _exit(kill_for(calls[i / ACTS]) ? 7 : act(i % ACTS));
        }
        waitpid(pid, &status, 0);
        printf("%d %d %x\n", calls[i / ACTS], i % ACTS, status);
    }
    return 0;
}
"""

# Starts the program of its word beside a filter that kills for a call which that one does not need, and memlog would make in it.
STARTS = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    static const int calls[] = {SYS_mremap, SYS_prctl, SYS_rt_sigpending, SYS_rt_sigtimedwait, SYS_pwritev2, SYS_gettid};
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < (int)(sizeof(calls) / sizeof(*calls)); i++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            struct sock_filter steps[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
            struct sock_fprog program = {4, steps};
            if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(7);
            execv(words[1], words + 1);
            _exit(8);
        }
        waitpid(pid, &status, 0);
        printf("%d %x\n", calls[i], status);
    }
    return 0;
}
"""

# Threads, and more stacks than the client's memory has room for at first.
STARTED = r"""
#include <pthread.h>
#include <stdlib.h>
static void *volatile sink;
static void deep(int depth, unsigned way) {
    if (depth == 0) {
        sink = malloc(10);
    } else if (way & 1) {
        deep(depth - 1, way >> 1);
        sink = &depth;
    } else {
        deep(depth - 1, way >> 1);
        sink = &way;
    }
}
static void *allocates(void *nothing) {
    for (unsigned i = 0; i < 30000; i++) deep(30, i * 2654435761u);
    return nothing;
}
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, allocates, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    return 0;
}
"""

# Of calls that start-up makes anyway, with arguments that hooking an allocator inside the executable has.
INSIDE = r"""
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static char heap[1 << 20] __attribute__((aligned(16)));
static size_t used;
void *malloc(size_t size) {
    void *block = heap + used;
    used += (size + 15) & ~(size_t)15;
    return used <= sizeof(heap) ? block : NULL;
}
static volatile size_t released;
void free(void *block) { released += block != NULL; }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *block, size_t size) {
    void *moved = malloc(size);
    return block != NULL && moved != NULL ? memmove(moved, block, size) : moved;
}
static const struct { int call, argument, bits; } deadly[] = {
    {SYS_openat, 2, O_RDWR}, {SYS_openat, 2, O_NONBLOCK}, {SYS_memfd_create, 1, 0x10}, {SYS_prlimit64, 1, RLIMIT_FSIZE},
};
static int kill_for(int call, int argument, int bits) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * argument),
        BPF_JUMP(BPF_JMP | (call == SYS_prlimit64 ? BPF_JEQ : BPF_JSET) | BPF_K, bits, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {6, steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
int main(int count, char **arguments) {
    char *words[] = {arguments[0], "again", NULL}, *none[] = {NULL};
    for (int i = 0; count == 1 && i < (int)(sizeof(deadly) / sizeof(*deadly)); i++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            if (kill_for(deadly[i].call, deadly[i].argument, deadly[i].bits)) _exit(7);
            execve("/proc/self/exe", words, none);
            _exit(8);
        }
        waitpid(pid, &status, 0);
        printf("%d %x\n", i, status);
    }
    return 0;
}
"""


class DeadlyCalls(as_bare.Case):
    def test_nothing_that_memlog_calls_kills_it(self):
        self.assert_as_bare(self.build("deadly", SOURCE))

    def test_nor_what_it_calls_later(self):
        self.assert_as_bare(self.build("deadly_acts", ACTS, "-lpthread"))

    def test_nor_what_a_program_calls_that_it_starts(self):
        started = self.build("started", STARTED, "-lpthread")
        for mode in ("native", "native-with-thread-names"):
            with self.subTest(mode):
                self.assert_as_bare(self.build("starts", STARTS), started, options=("-q", "--no-page", f"--memlog-stack-mode={mode}"))

    def test_nor_what_it_calls_to_hook_an_allocator_inside(self):
        self.assert_as_bare(self.build("deadly_inside", INSIDE))


if __name__ == "__main__":
    unittest.main()
