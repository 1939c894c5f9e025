"""Threads with the least of stacks start programs, by each of the ways there are; handlers allocate on the least of alternate stacks."""
import unittest

import as_bare

SOURCE = r"""
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char *words[] = {"true", NULL};
static pid_t by_spawn(void) { pid_t pid = -1; posix_spawn(&pid, "/bin/true", NULL, NULL, words, environ); return pid; }
static pid_t by_spawnp(void) { pid_t pid = -1; posix_spawnp(&pid, "true", NULL, NULL, words, environ); return pid; }
static pid_t by_execve(void) { pid_t pid = fork(); if (pid == 0) { execve("/bin/true", words, environ); _exit(9); } return pid; }
static pid_t by_execvp(void) { pid_t pid = fork(); if (pid == 0) { free(malloc(10)); execvp("true", words); _exit(9); } return pid; }
static pid_t by_vfork(void) { pid_t pid = vfork(); if (pid == 0) { execvp("true", words); _exit(9); } return pid; }
static pid_t by_system(void) { pid_t pid = fork(); if (pid == 0) _exit(system("true")); return pid; }
static void *run(void *way) {
    int status = -1;
    waitpid(((pid_t (*)(void))way)(), &status, 0);
    printf("%x\n", status);
    return NULL;
}
int main(void) {
    void *ways[] = {by_spawn, by_spawnp, by_execve, by_execvp, by_vfork, by_system};
    pthread_attr_t attributes;
    setvbuf(stdout, NULL, _IONBF, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
    for (int i = 0; i < 6; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, run, ways[i]) != 0) return 1;
        pthread_join(thread, NULL);
    }
    return 0;
}
"""

# Says on how small an alternate stack a handler can allocate, in a process that has allocated before. A stack of 2 KiB (MINSIGSTKSZ) is too small
# for the kernel's own frame on machines with AVX-512.
HANDLER = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int done;
static void *volatile kept;
__attribute__((noinline)) static void *leaf(size_t n) { return malloc(n); }
static void handler(int number) { (void)number; kept = leaf(100); free(kept); kept = leaf(33); done = 1; }
static int works(size_t bytes) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        char *area = mmap(0, 65536 + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        stack_t stack = {.ss_sp = area + 4096, .ss_size = bytes};
        struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
        mprotect(area, 4096, PROT_NONE);
        if (sigaltstack(&stack, 0) != 0) _exit(3);
        sigaction(SIGUSR1, &action, 0);
        free(malloc(10));
        raise(SIGUSR1);
        _exit(!done);
    }
    waitpid(child, &status, 0);
    return status == 0;
}
int main(void) {
    size_t bytes = 1024;
    while (bytes < 65536 && !works(bytes)) bytes += 32;
    printf("%zu\n", bytes);
    return 0;
}
"""
HANDLERS_MORE_BYTES = 1600


class SmallStacks(as_bare.Case):
    def test_a_thread_with_the_least_of_stacks_starts_programs(self):
        report = self.assert_as_bare(self.build("small", SOURCE, "-pthread"))
        self.assertEqual(len(self.entries(report, "true")), 5)
        self.assertEqual(len(self.entries(report, "sh")), 1)  # which has a true of its own

    def test_a_handler_that_allocates_needs_little_more_of_its_stack(self):
        program = self.build("handler", HANDLER)
        code, bare, _ = self.bare(program)
        self.assertEqual(code, 0)
        run = self.memlog(program)
        self.assertEqual(run.code, 0, run.err)
        self.assertGreater(int(run.out), 0)
        self.assertLessEqual(int(run.out), int(bare) + HANDLERS_MORE_BYTES)
        # The one that got through is recorded, and its blocks of the handler.
        entries = [entry for entry in self.exit_report(run)["processes"] if entry["state"] == "exited" and entry["total_bytes"] == 10 + 100 + 33]
        self.assertEqual(len(entries), 1)


if __name__ == "__main__":
    unittest.main()
