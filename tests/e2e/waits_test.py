"""A supervisor that hears of stopped and continued children by the same calls as of ended ones: the tree's peak counts them on."""
import unittest

import as_bare

# Three children hold 4 MiB each and are stopped and let go on; then the parent holds 8 MiB for a moment. No two of these hold at the same
# time without all three children: the peak is 20 MiB.
SOURCE = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile held;
int main(int count, char **words) {
    int with_waitid = words[1][0] == 'i', ready[2];
    pid_t children[3];
    siginfo_t info;
    char byte;
    if (pipe(ready) != 0) return 1;
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            held = malloc(4 << 20);
            if (write(ready[1], "", 1) != 1) _exit(1);
            for (;;) pause();
        }
        if (read(ready[0], &byte, 1) != 1) return 2;
    }
    for (int i = 0; i < 3; i++) {
        int status = 0;
        kill(children[i], SIGSTOP);
        if (with_waitid ? waitid(P_PID, children[i], &info, WEXITED | WSTOPPED | WCONTINUED) != 0 : waitpid(children[i], &status, WUNTRACED | WCONTINUED) < 0) return 3;
        kill(children[i], SIGCONT);
        if (with_waitid ? waitid(P_PID, children[i], &info, WEXITED | WSTOPPED | WCONTINUED) != 0 : waitpid(children[i], &status, WUNTRACED | WCONTINUED) < 0) return 4;
    }
    held = malloc(8 << 20);
    free(held);
    for (int i = 0; i < 3; i++) {
        kill(children[i], SIGKILL);
        if (waitid(P_PID, children[i], &info, WEXITED) != 0) return 5;
    }
    puts("done");
    return 0;
}
"""


class Waits(as_bare.Case):
    def test_a_stopped_child_stays_in_the_trees_peak(self):
        program = self.build("supervisor", SOURCE)
        for way in ("id", "pid"):
            report = self.assert_as_bare(program, way)
            peak = report["tree"]["peak_bytes"]
            self.assertGreaterEqual(peak, 20 << 20, way)
            self.assertLess(peak, 21 << 20, way)


if __name__ == "__main__":
    unittest.main(verbosity=2)
