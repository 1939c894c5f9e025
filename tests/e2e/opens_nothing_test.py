"""What cannot be executed is not opened either: somebody may wait at the other end of a FIFO, and a device does something."""
import unittest

import as_bare

SOURCE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
extern char **environ;
static volatile int opened;
static void *opens(void *unused) { open("fifo", O_WRONLY); opened = 1; return unused; }
int main(void) {
    pthread_t thread;
    pid_t pid;
    char *words[] = {"fifo", NULL};
    unlink("fifo");
    mkfifo("fifo", 0700);
    chmod("fifo", 0755);
    int script = open("script", O_WRONLY | O_CREAT | O_TRUNC, 0755);
    write(script, "#! ./fifo\n", 10);
    close(script);
    pthread_create(&thread, NULL, opens, NULL);
    usleep(100000);
    printf("%d %d\n", execv("./fifo", words), errno);
    printf("%d %d\n", execv("./script", words), errno);
    setenv("PATH", ".", 1);
    printf("%d %d\n", execvp("fifo", words), errno);
    printf("%d\n", posix_spawn(&pid, "./fifo", NULL, NULL, words, environ));
    usleep(100000);
    printf("%d\n", opened);
    unlink("fifo");
    return 0;
}
"""


class OpensNothing(as_bare.Case):
    def test_a_fifo_that_is_executed_has_no_reader(self):
        self.assert_as_bare(self.build("executes", SOURCE, "-pthread"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
