"""memlog_dump(): a program that asks for dumps of itself, by the public header alone; it runs without memlog as well."""
import subprocess
import time
import unittest

import browsing
import harness

SOURCE = r"""
#define MEMLOG_WEAK
#include "client/memlog.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *kept[8];
static int answers[4];

static void *ask_from_thread(void *reason) {
    answers[0] = memlog_dump("", reason);
    return NULL;
}
static void on_signal(int number) {
    (void)number;
    answers[1] = memlog_dump(NULL, "from a handler");
}
static void until(const char *name) {
    while (access(name, F_OK) != 0) {
        usleep(5000);
    }
}

int main(int argc, char **argv) {
    if (!memlog_dump) {
        puts("nobody is there");
        return argc > 9;
    }
    if (strcmp(argv[1], "loop") == 0) {
        int asked = 0, refused = 0;
        for (int i = 0; i < 200000; i++) {
            *(memlog_dump("", "again") == 0 ? &asked : &refused) += 1;
        }
        usleep(200000);
        printf("%d %d %d\n", asked, refused, memlog_dump("", "the last"));
        fflush(stdout);
        until("end");
        return 0;
    }
    kept[0] = malloc(300001);
    errno = 4711;
    pthread_t thread;
    pthread_create(&thread, NULL, ask_from_thread, argv[2]);
    pthread_join(thread, NULL);
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    until("first");
    kept[1] = malloc(300002);
    pid_t child = fork();
    if (child == 0) {
        int answer = memlog_dump("other", "a child that has not allocated yet");
        until("end");
        _exit(answer == 0 ? 7 : 8);
    }
    until("second");
    free(kept[0]);
    answers[2] = memlog_dump("rendrer", "of nobody");
    answers[3] = memlog_dump("a role of more than sixteen bytes", "nor of this");
    printf("%d %d %d %d\n", answers[0], answers[1], answers[2], answers[3]);
    fflush(stdout);
    until("end");
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}
"""


class MemlogDump(browsing.Case):
    def setUp(self):
        super().setUp()
        (self.folder / "asks.c").write_text(SOURCE)
        answer = subprocess.run(
            ["cc", "-Wall", "-Werror", "-O1", "-I", harness.ROOT, "-o", "asks", "asks.c"], cwd=self.folder, capture_output=True, text=True,
            timeout=harness.TIMEOUT, check=False,
        )
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.program = self.folder / "asks"

    def dumps(self, process):
        return sorted(process.memlog_folder.glob("*.manual.pftrace"))

    def log(self, process):
        return (process.memlog_folder / "triggers.log").read_text().splitlines()

    def test_a_program_runs_without_memlog_as_well(self):
        run = subprocess.run([self.program, "once"], capture_output=True, text=True, timeout=harness.TIMEOUT, check=False)
        self.assertEqual((run.returncode, run.stdout), (0, "nobody is there\n"))

    def test_a_dump_has_what_came_before_the_call_from_wherever_it_was_made(self):
        reason = "start\x1b[2J-up \u202eover\udcff " + "x" * 300
        process = self.memlog_start(self.program, "once", reason)
        self.wait_for("two dumps", lambda: len(self.dumps(process)) == 2)
        first, second = [self.report(dump) for dump in self.dumps(process)]
        (entry,) = first["processes"]
        self.assertIn(300001, [stack["live_bytes"] for stack in entry["stacks"]])
        trigger = first["dump"]["trigger"]
        self.assertEqual((first["dump"]["reason"], trigger["kind"], trigger["process_id"]), ("manual", "asked", entry["id"]))
        clean = "start?[2J-up ?over? "
        self.assertTrue(trigger["reason"].startswith(clean + "xxx"), trigger["reason"])
        self.assertLessEqual(len(trigger["reason"].encode()), 256)
        self.assertEqual(second["dump"]["trigger"]["reason"], "from a handler")
        (self.folder / "first").touch()
        self.wait_for("the child's dump", lambda: len(self.dumps(process)) == 3)
        third = self.report(self.dumps(process)[2])
        # Of the role alone: the child, not its parent, who is the browser.
        self.assertEqual([one["role"] for one in third["processes"]], ["other"])
        self.assertEqual(third["dump"]["trigger"]["process_id"], third["processes"][0]["id"])
        (self.folder / "second").touch()
        self.assertEqual(process.stdout.readline(), b"0 0 0 0\n")  # asked; the host refuses
        self.wait_for("the refusals", lambda: len([line for line in self.log(process) if " no dump asked: " in line]) == 2)
        refused = [line for line in self.log(process) if " no dump asked: " in line]
        self.assertIn("of nobody; but 'rendrer' is no role; did you mean 'renderer'?", refused[0])
        (self.folder / "end").touch()
        self.assertEqual(process.wait(harness.TIMEOUT), 7)
        self.assertEqual(len(self.dumps(process)), 3)

    def test_a_program_that_asks_in_a_loop_floods_nobody_and_every_call_is_counted(self):
        begun = time.monotonic()
        process, page = self.open_page(self.program, "loop")
        asked, refused, last = map(int, process.stdout.readline().split())
        self.assertEqual((asked + refused, last), (200000, 0))
        self.assertGreater(refused, asked)
        counts = lambda: {
            kind: int(line.split()[-1]) for line in page.ask("/metrics").body.decode().splitlines() for kind in ("yes", "no")
            if line.startswith(f'memlog_trigger_decisions_total{{trigger="asked",dump="{kind}"}}')
        }
        found = self.wait_for("the count of all calls", lambda: (now := counts())["yes"] + now["no"] == 200001 and now)
        self.wait_for("the dumps that were granted", lambda: len(self.dumps(process)) == found["yes"])
        self.assertGreaterEqual(found["yes"], 1)
        self.assertLessEqual(found["yes"], 20 + (time.monotonic() - begun) / 10 + 1)
        (self.folder / "end").touch()
        self.assertEqual(process.wait(harness.TIMEOUT), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
