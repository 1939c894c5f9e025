"""Threads with the least of stacks start programs, by each of the ways there are."""
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


class SmallStacks(as_bare.Case):
    def test_a_thread_with_the_least_of_stacks_starts_programs(self):
        report = self.assert_as_bare(self.build("small", SOURCE, "-pthread"))
        self.assertEqual(len(self.entries(report, "true")), 5)
        self.assertEqual(len(self.entries(report, "sh")), 1)  # which has a true of its own


if __name__ == "__main__":
    unittest.main()
