"""What the calls that close descriptors answer is the same where memlog's own lie in the range."""
import unittest

import as_bare

SOURCE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
static void say(const char *what, int result) { printf("%s: %d %s\n", what, result, result < 0 ? strerror(errno) : ""); }
static void *unshares(void *unused) {
    int kept = open("/dev/null", O_RDONLY);
    say("unshared", close_range(800, ~0u, CLOSE_RANGE_UNSHARE));
    close(kept);
    return NULL;
}
int main(void) {
    pthread_t thread;
    setvbuf(stdout, NULL, _IONBF, 0);
    unsigned froms[] = {3, 800, 900, 901, 902, 1000}, tos[] = {800, 900, 901, 902, 2000, ~0u};
    for (int i = 0; i < 6; i++) for (int j = 0; j < 6; j++) for (int flags = 0; flags < 3; flags++) {
        int given[] = {0x80, -1, CLOSE_RANGE_CLOEXEC | 1};
        errno = 0;
        say("wrong flags", close_range(froms[i], tos[j], given[flags]));
    }
    say("backwards", close_range(902, 900, 0));
    say("cloexec", close_range(800, 2000, CLOSE_RANGE_CLOEXEC));
    int low = open("/dev/null", O_RDONLY), high = fcntl(low, F_DUPFD, 950);
    pthread_create(&thread, NULL, unshares, NULL);
    pthread_join(thread, NULL);
    say("still there for the others", fcntl(high, F_GETFD));
    for (int fd = 890; fd < 910; fd++) { errno = 0; say("close", close(fd)); }
    for (int fd = 898; fd < 904; fd++) { say("dup2", dup2(low, fd)); say("close", close(fd)); say("again", close(fd)); }
    for (int fd = 898; fd < 904; fd++) say("dup2 of nothing", dup2(777, fd));
    for (int fd = 898; fd < 904; fd++) say("dup3 with wrong flags", dup3(low, fd, 0x80));
    closefrom(4);
    say("closed", fcntl(high, F_GETFD));
    say("open", open("/dev/null", O_RDONLY));
    return 0;
}
"""


class DescriptorCalls(as_bare.Case):
    def test_they_answer_as_without_memlog(self):
        self.assert_as_bare(self.build("closes", SOURCE, "-pthread"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
