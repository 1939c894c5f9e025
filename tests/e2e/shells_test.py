"""system and popen from several threads: the environment is the program's own behind them, whoever is cancelled meanwhile, and shells and
what they start are still recorded."""
import unittest

import as_bare

SOURCE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
static void *waits(void *unused) { system("exec sleep 60"); return unused; }
static void *several(void *unused) {
    for (int i = 0; i < 20; i++) {
        FILE *pipe;
        char line[20] = "";
        if (system("exit 3") != 3 << 8) puts("system failed");
        pipe = popen("echo 7", "r");
        if (pipe == NULL || fgets(line, sizeof line, pipe) == NULL || strcmp(line, "7\n") != 0) puts("popen failed");
        if (pclose(pipe) != 0) puts("pclose failed");
    }
    return unused;
}
static volatile int over;
static const char *preload;
static void *reads(void *unused) {
    long found = 0, differs = 0;
    while (!over) {
        const char *given = getenv("LD_PRELOAD");
        found += getenv("HOME") != NULL && getenv("no such name") == NULL;
        differs += given == NULL ? preload != NULL : preload == NULL || strcmp(given, preload) != 0;
        differs += getenv("MEMLOG_SOCKET") != NULL || secure_getenv("MEMLOG_SOCKET") != NULL;
    }
    printf("%d\n", differs != 0);
    return found > 0 ? unused : NULL;
}
int main(void) {
    char **before = environ;
    pthread_t threads[4], reader;
    void *result = NULL;
    preload = getenv("LD_PRELOAD") != NULL ? strdup(getenv("LD_PRELOAD")) : NULL;
    pthread_create(&reader, NULL, reads, before);
    pthread_create(&threads[0], NULL, waits, NULL);
    usleep(300000);
    pthread_cancel(threads[0]);
    pthread_join(threads[0], &result);
    printf("%d %d\n", result == PTHREAD_CANCELED, environ == before);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, several, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    over = 1;
    pthread_join(reader, &result);
    printf("%d %d\n", result != NULL, environ == before);
    fflush(stdout);
    environ = before;
    setenv("BETWEEN", "yes", 1);
    return system("env | grep -c '^MEMLOG_SOCKET\\|^BETWEEN'; cat /proc/$PPID/environ | tr '\\0' '\\n' | grep -c '^NOTHING'") == 1 << 8 ? 0 : 1;
}
"""

# What others fork and start while a thread is in system.
MEANWHILE = r"""
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void *waits(void *unused) { system("cat fifo"); return unused; }
static void look(const char *who) {
    printf("%s %d %d\n", who, getenv("LD_PRELOAD") != NULL, getenv("MEMLOG_SOCKET") != NULL);
}
int main(void) {
    pthread_t thread;
    int status = 0;
    pid_t pid;
    char *words[] = {"env", NULL};
    setvbuf(stdout, NULL, _IONBF, 0);
    mkfifo("fifo", 0600);
    pthread_create(&thread, NULL, waits, NULL);
    int fd = open("fifo", O_WRONLY);
    look("meanwhile");
    setenv("ANOTHER", "name", 1);
    look("changed");
    unsetenv("ANOTHER");
    if ((pid = fork()) == 0) { look("forked"); _exit(0); }
    waitpid(pid, &status, 0);
    if ((pid = fork()) == 0) { execlp("env", "env", NULL); _exit(1); }
    waitpid(pid, &status, 0);
    if ((pid = syscall(SYS_fork)) == 0) { execv("/usr/bin/env", words); _exit(1); }
    waitpid(pid, &status, 0);
    posix_spawn(&pid, "/usr/bin/env", NULL, NULL, words, environ);
    waitpid(pid, &status, 0);
    close(fd);
    pthread_join(thread, NULL);
    unlink("fifo");
    look("then");
    return 0;
}
"""


class Shells(as_bare.Case):
    def test_the_environment_is_the_programs_own_behind_them(self):
        report = self.assert_as_bare(self.build("shells", SOURCE, "-pthread"), env=self.environment(HOME="/"))
        shells = self.entries(report, "sh")
        self.assertGreaterEqual(len(shells), 160, len(shells))
        self.assertTrue(all(entry.get("recorded", True) for entry in shells))

    def test_a_preload_of_the_programs_own_is_all_that_it_sees(self):
        own = self.build("own.so", "int nothing;", "-shared", "-fPIC")
        self.assert_as_bare(self.build("shells", SOURCE, "-pthread"), env={**as_bare.preloaded(self, own), "HOME": "/"})

    def test_what_another_thread_starts_meanwhile_sees_the_programs_own(self):
        report = self.assert_as_bare(self.build("meanwhile", MEANWHILE, "-pthread"), env=self.environment(HOME="/"))
        self.assertEqual([entry.get("recorded", True) for entry in self.entries(report, "env")], [True] * 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
