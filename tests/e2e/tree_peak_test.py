"""All processes when together they had most private memory: a sum of one moment, which is not the sum of each process's own peak."""
import csv
import io
import json
import subprocess
import time
import unittest

import harness

MIB = 1 << 20
# Two children take 60 MiB each, one after the other: each word on stdin is a step. Blocks for one, a mapping for the other.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
enum { SIZE = 60 << 20 };
static int steps[2][2], done[2];
static void child(int number) {
    char byte;
    close(steps[number][1]);
    char *memory = NULL;
    while (read(steps[number][0], &byte, 1) == 1) {
        if (memory == NULL) {
            memory = number == 0 ? malloc(SIZE) : mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(memory, 1, SIZE);
        } else {
            number == 0 ? free(memory) : (void)munmap(memory, SIZE);
            memory = NULL;
        }
        (void)!write(done[1], &byte, 1);
    }
    _exit(0);
}
int main(void) {
    char word[8];
    (void)!pipe(done);
    for (int i = 0; i < 2; i++) {
        (void)!pipe(steps[i]);
        if (fork() == 0) {
            if (i == 1) {
                close(steps[0][1]);
            }
            free(malloc(1000));
            child(i);
        }
    }
    puts("ready");
    fflush(stdout);
    while (fgets(word, sizeof word, stdin) != NULL) {
        (void)!write(steps[word[0] - '0'][1], word, 1);
        (void)!read(done[0], word, 1);
        puts("done");
        fflush(stdout);
    }
    close(steps[0][1]);
    close(steps[1][1]);
    while (wait(NULL) > 0) {
    }
    return 0;
}
"""
FIRST, SECOND = b"0\n", b"1\n"


class TreePeak(harness.Case):
    def start(self, *options):
        (self.folder / "turns.c").write_text(PROGRAM)
        harness.run_words(
            ["gcc", "-O1", "-g", "-fno-builtin", "-o", str(self.folder / "turns"), str(self.folder / "turns.c")], self.folder, None, b"",
            harness.TIMEOUT)
        process = self.memlog_start(str(self.folder / "turns"), options=("-q", "--no-page", *options), stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def step(self, process, word):
        process.stdin.write(word)
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), b"done\n")

    def say(self, *words, expected=0):
        answer = harness.run_words([str(harness.MEMLOG), *map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, expected, answer.stderr)
        return answer.stdout.decode() if expected == 0 else answer.stderr.decode()

    def dump(self, process):
        self.say("dump")
        return sorted(process.memlog_folder.glob("*.manual.pftrace"))[-1]

    def end(self, process):
        process.communicate(b"", harness.TIMEOUT)
        (dump,) = process.memlog_folder.glob("*.exit.pftrace")
        return dump

    def rows(self, dump, *words):
        """The line of all, and those of the processes."""
        answer = json.loads(self.say("components", "--json", "--figure=private", *words, dump))
        for row in answer["rows"]:
            self.assertEqual(row["remainder_bytes"], 0)
            self.assertEqual(sum(row["values"]), row["total_bytes"])
        whole, *members = answer["rows"]
        self.assertEqual(whole["total_bytes"], sum(row["total_bytes"] for row in members))
        return answer["components"], whole, members

    def assert_one_of_both(self, whole, members):
        """Whichever was read: one child has its 60 MiB, the other has not."""
        self.assertEqual(whole["moment"], "peak")
        self.assertEqual(len(members), 3)
        self.assertGreater(whole["total_bytes"], 60 * MIB)
        self.assertLess(whole["total_bytes"], 80 * MIB)
        self.assertEqual(len([row for row in members if row["total_bytes"] > 60 * MIB]), 1)

    def test_two_that_are_large_one_after_the_other_were_never_large_together(self):
        process = self.start()
        self.step(process, FIRST)
        self.dump(process)
        self.step(process, FIRST)
        self.step(process, SECOND)
        self.dump(process)
        self.step(process, SECOND)
        running = self.dump(process)
        _, whole, _ = self.rows(running)
        self.assertEqual(whole["moment"], "dump")
        self.assertLess(whole["total_bytes"], 20 * MIB)
        _, whole, members = self.rows(running, "--at=peak")
        self.assert_one_of_both(whole, members)

        ended = self.end(process)
        _, whole, members = self.rows(ended)
        self.assert_one_of_both(whole, members)
        _, each, owners = self.rows(ended, "--at=dump")
        self.assertEqual(each["moment"], "ended")
        self.assertGreater(each["total_bytes"], 120 * MIB)
        self.assertEqual(len([row for row in owners if row["total_bytes"] > 60 * MIB]), 2)
        (large,) = [row["pid"] for row in members if row["total_bytes"] > 60 * MIB]
        (small,) = {row["pid"] for row in owners if row["total_bytes"] > 60 * MIB} - {large}
        # Of one process alone its own peak is told, unless one asks.
        self.assertGreater(self.rows(ended, f"--pid={small}")[1]["total_bytes"], 60 * MIB)
        self.assertLess(self.rows(ended, "--at=peak", f"--pid={small}")[1]["total_bytes"], 20 * MIB)
        self.assert_told(ended, whole["total_bytes"])

    def assert_told(self, ended, private_bytes):
        text = self.say("components", ended)
        self.assertRegex(text, r"(?m)^as of [\d:.]+Z, when all together had most private memory; 3 of 3 processes are in it$")
        self.assertNotIn("at its largest", text)
        tree = self.report(ended)["tree"]
        self.assertIsNone(tree["memory"])
        self.assertEqual(tree["memory_peak"]["private_bytes"], private_bytes)
        self.assertEqual(sum(one["private_bytes"] for one in tree["memory_peak"]["components"]), private_bytes)
        self.assertEqual(tree["memory_peak"]["processes"], 3)
        self.assertEqual(tree["memory_peak"]["dropped_processes"], 0)
        report = " ".join(self.say("report", "--full", ended).split())
        self.assertRegex(report, r"private 6\d\.\d MiB = .* of 3 processes at \S+, when together they had most; below, each at its own largest reading")
        # The rows behind the components are of that moment, with the stacks of that moment.
        rows = list(csv.DictReader(io.StringIO(self.say("list", "--csv", ended))))
        self.assertEqual(sum(int(row["private_bytes"]) for row in rows), private_bytes)
        (row,) = [row for row in rows if int(row["private_bytes"]) >= 60 * MIB]
        self.assertIn("child", row["stack"])

    def run_together(self, seconds):
        """Both large for so long, and no dump asked for; whether the peak has both."""
        process = self.start("--whole-interval=10")
        self.step(process, FIRST)
        self.step(process, SECOND)
        time.sleep(seconds)
        self.step(process, FIRST)
        self.step(process, SECOND)
        _, whole, members = self.rows(self.end(process))
        self.assertEqual(whole["moment"], "peak")
        return whole["total_bytes"] > 120 * MIB and len([row for row in members if row["total_bytes"] > 60 * MIB]) == 2

    def test_the_host_reads_all_by_itself_when_together_they_hold_most(self):
        # Nobody outside knows when it has looked: a machine that stands still gets longer.
        self.assertTrue(any(self.run_together(seconds) for seconds in (1, 4, 16)))

    def test_where_nothing_was_read_it_says_so(self):
        process = self.start("--whole=off")
        self.step(process, FIRST)
        dump = self.end(process)
        self.assertIn("no process was read when all processes together had most private memory", self.say("components", "--at=peak", dump, expected=3))
        self.assertIsNone(self.report(dump)["tree"]["memory_peak"])


if __name__ == "__main__":
    unittest.main()
