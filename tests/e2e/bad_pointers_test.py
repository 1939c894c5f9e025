"""Pointers that the kernel answers with EFAULT are answered so under memlog too: its hooks look at them only where they can be read."""
import unittest

import as_bare

# Each case runs in a child of its own and says what it got, or which signal ended it.
SOURCE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
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
static char *const words[] = {"true", NULL};
static char *const empty[] = {NULL};
#define BAD ((void *)16)
static char *end_of_page;   /* what begins here is not mapped */
static char *past_the_file; /* mapped, of a file that has no such page */
static pid_t child;

static char *unfinished(void) {
    memset(end_of_page - 100, 'x', 100);
    return end_of_page - 100;
}
static char **unfinished_list(void) {
    char **list = (char **)end_of_page - 2;
    list[0] = list[1] = "A=b";
    return list;
}
static int spawn_result(int error) {
    errno = error;
    return error == 0 ? 0 : -1;
}
static int spawned(int error, pid_t pid) {
    int status = 0;
    if (error == 0) waitpid(pid, &status, 0);
    return error == 0 ? status : spawn_result(error);
}

static long run(int number) {
    char *bad_entry[] = {"A=b", BAD, NULL};
    pid_t pid = 0;
    int status = 0;
    switch (number) {
    case 0: return waitpid(child, BAD, 0) == child;
    case 1: return wait(BAD) == child;
    case 2: return wait3(BAD, 0, NULL) == child;
    case 3: return wait4(child, &status, 0, BAD) == child;
    case 4: return wait4(child, NULL, 0, NULL) == child;
    case 5: return waitid(P_PID, child, BAD, WEXITED);
    case 6: return waitid(P_PID, child, NULL, WEXITED);
    case 7: return waitid(P_PID, child, (siginfo_t *)(end_of_page - 8), WEXITED);
    case 8: return execve(BAD, words, empty);
    case 9: return execve(NULL, words, empty);
    case 10: return execve("/bin/true", BAD, empty);
    case 11: return execve("/bin/true", NULL, empty);
    case 12: return execve("/bin/true", words, BAD);
    case 13: return execve("/bin/true", words, NULL);
    case 14: return execve("/bin/true", words, bad_entry);
    case 15: return execve("/bin/true", words, unfinished_list());
    case 16: return execve(unfinished(), words, empty);
    case 17: { char *entries[] = {unfinished(), NULL}; return execve("/bin/true", words, entries); }
    case 18: { char *entries[] = {past_the_file, NULL}; return execve("/bin/true", words, entries); }
    case 19: return execve(past_the_file, words, (char **)past_the_file);
    case 20: return execv(BAD, words);
    case 21: environ = BAD; return execv("/bin/true", words);
    case 22: return execvpe("true", words, BAD);
    case 23: return execvpe("/bin/true", words, bad_entry);
    case 24: return fexecve(open("/bin/true", O_RDONLY | O_CLOEXEC), words, BAD);
    case 25: return execveat(AT_FDCWD, BAD, words, empty, 0);
    case 26: return execveat(AT_FDCWD, "/bin/true", words, BAD, 0);
    case 27: return execveat(AT_FDCWD, NULL, words, empty, AT_EMPTY_PATH);
    case 28: return spawned(posix_spawn(&pid, BAD, NULL, NULL, words, empty), pid);
    case 29: return spawned(posix_spawn(&pid, "/bin/true", NULL, NULL, BAD, empty), pid);
    case 30: return spawned(posix_spawn(&pid, "/bin/true", NULL, NULL, words, BAD), pid);
    case 31: return spawned(posix_spawn(&pid, "/bin/true", NULL, NULL, words, bad_entry), pid);
    case 32: return spawned(posix_spawnp(&pid, "true", NULL, NULL, words, BAD), pid);
    case 33: environ = BAD; return system("exit 3");
    case 34: environ = bad_entry; return system("exit 3");
    case 35: environ = unfinished_list(); return pclose(popen("exit 3", "r"));
    case 36: return syscall(SYS_clone3, BAD, sizeof(struct clone_args));
    case 37: return syscall(SYS_clone3, end_of_page - 8, sizeof(struct clone_args));
    case 38: return syscall(SYS_clone3, end_of_page - 4, sizeof(struct clone_args));
    case 39: return syscall(SYS_clone3, NULL, 0);
    case 40: return syscall(SYS_clone3, past_the_file, sizeof(struct clone_args));
    case 41: return syscall(SYS_seccomp, 1, 0, BAD);
    case 42: return syscall(SYS_seccomp, 1, 0, end_of_page - 4);
    case 43: return prctl(PR_SET_SECCOMP, 2, BAD);
    case 44: return prctl(PR_SET_NAME, BAD);
    case 45: return prctl(PR_GET_NAME, BAD);
    case 46: return syscall(SYS_execve, BAD, words, empty);
    case 47: { char *entries[] = {"A=b", NULL}; return vfork() == 0 ? (execve("/bin/true", entries, BAD), _exit(errno), 0) : (wait(&status), status); }
    default: return -2;
    }
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    signal(SIGCHLD, SIG_DFL);
    end_of_page = (char *)mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 8192;
    munmap(end_of_page, 4096);
    int file = memfd_create("short", 0);
    past_the_file = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    for (int number = 0;; number++) {
        pid_t pid = fork();
        if (pid == 0) {
            child = number < 8 ? fork() : 0;
            if (number < 8 && child == 0) _exit(5);
            if (number < 8) { siginfo_t info; syscall(SYS_waitid, P_PID, child, &info, WEXITED | WNOWAIT, NULL); }
            errno = 0;
            long result = run(number);
            printf("%d: %ld %s\n", number, result, result == -1 ? strerror(errno) : "");
            _exit(result == -2 ? 9 : 0);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 9) return 0;
        printf("%d: %s %d\n", number, WIFSIGNALED(status) ? "signal" : "code", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
}
"""


class BadPointers(as_bare.Case):
    def test_every_call_answers_them_as_without_memlog(self):
        self.assert_as_bare(self.build("pointers", SOURCE))


if __name__ == "__main__":
    unittest.main(verbosity=2)
