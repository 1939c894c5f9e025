"""Arguments and environments of any length reach a program as without memlog; where ours does not fit, it is the one that stays away."""
import unittest

import as_bare

# The longest environment with which an exec, and a spawn, succeeds; and what a child finds in a long LD_PRELOAD.
SOURCE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static char *words[] = {"true", NULL};
static char **padding(size_t bytes) {
    size_t count = bytes / 100000, rest = bytes % 100000;
    char **list = calloc(count + 2, sizeof *list);
    for (size_t i = 0; i <= count; i++) {
        size_t length = i < count ? 99999 : rest + 2;
        list[i] = malloc(length + 1);
        memset(list[i], 'x', length);
        list[i][1] = '=';
        list[i][length] = 0;
    }
    return list;
}
static int runs(size_t bytes, int spawn) {
    pid_t pid = fork();
    if (pid == 0) {
        char **list = padding(bytes);
        pid_t child = 0;
        int status = 0;
        if (!spawn) { execve("/bin/true", words, list); _exit(errno == E2BIG ? 77 : 78); }
        int error = posix_spawn(&child, "/bin/true", NULL, NULL, words, list);
        if (error != 0) _exit(error == E2BIG ? 77 : 78);
        _exit(waitpid(child, &status, 0) == child && status == 0 ? 0 : 79);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (status != 0 && status != 77 << 8) printf("status %x\n", status);
    return status == 0;
}
int main(int count, char **arguments) {
    if (count > 1) {
        char *entry = malloc(20001);
        memset(entry, ':', 20000);
        memcpy(entry, "LD_PRELOAD=", 11);
        strcpy(entry + 20000 - strlen(arguments[1]), arguments[1]);
        char *list[] = {entry, NULL}, *prints[] = {"env", NULL};
        execve("/usr/bin/env", prints, list);
        return 1;
    }
    struct rlimit stack = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_STACK, &stack);
    for (int spawn = 0; spawn < 2; spawn++) {
        size_t low = 1000, high = 4000000;
        while (high - low > 1) {
            size_t middle = (low + high) / 2;
            if (runs(middle, spawn)) low = middle; else high = middle;
        }
        printf("%s %zu\n", spawn ? "spawn" : "exec", low);
    }
    return 0;
}
"""


class LongEnvironment(as_bare.Case):
    def test_the_longest_one_that_the_kernel_takes_is_as_long(self):
        self.assert_as_bare(self.build("longest", SOURCE))

    def test_a_long_preload_of_a_childs_own_reaches_it(self):
        library = self.build("says.so", '#include <unistd.h>\n__attribute__((constructor)) static void say(void) { write(1, "there\\n", 6); }', "-shared", "-fPIC")
        self.assert_as_bare(self.build("longest", SOURCE), library)


if __name__ == "__main__":
    unittest.main(verbosity=2)
