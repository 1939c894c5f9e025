"""Scopes that a program opens (memlog.h) in the stacks of what it allocates, held against the program's own books (tests/oracle/scopes.c): to the
byte, alone (pseudo) and between the functions (mixed); across threads, forks, longjmps, exceptions and coroutines."""
import collections
import json
import re
import subprocess
import unittest

import harness
from estimates import MOST_DEVIATIONS, deviations

PROGRAM = harness.PROGRAMS / "oracle" / "scopes"
FIGURES = ("live_bytes", "live_blocks", "total_bytes", "total_blocks")
TOTAL = FIGURES.index("total_bytes")
FUNCTIONS = {"take", "one", "two", "three", "four", "nap", "resume", "request", "serve"}
LINE = re.compile(r"(\d+) (\d+) (\d+) (\d+) (.*)")
QUIET = ("-q", "--no-page")

# What C++ does to scopes, thread names, and scopes that are older than the recording.
PLUS = r"""
#define MEMLOG_WEAK
#include <memlog.h>
#include <pthread.h>
#include <stdexcept>
#include <stdlib.h>
#include <stdio.h>
#include <thread>
static __attribute__((noinline)) void take(size_t bytes) {
    void *block = malloc(bytes);
    __asm__ volatile("" : : "r"(block));
}
static void fails(int depth) {
    memlog::Scope scope(depth ? "deeper" : "deepest");
    if (depth == 0) { take(1001); throw std::runtime_error("no"); }
    fails(depth - 1);
}
static void named(const char *name, size_t bytes) {
    if (memlog_thread_name) { memlog_thread_name(name); }
    memlog::Scope scope("named");
    take(bytes);
}
int main() {
    const bool there = memlog_scope_begin != nullptr;
    if (there) { memlog_scope_end(); memlog_scope_leave(0); } /* of none */
    try { fails(2); } catch (const std::exception &) { take(1002); }
    { memlog::Scope scope("whole"); take(1003); }
    std::thread(named, "a thread with a name of more than fifteen bytes", 1004).join();
    if (!there) { return puts("done") < 0; }
    std::thread([] { memlog_thread_name("not any more"); memlog_thread_name(nullptr); memlog::Scope scope("named"); take(1005); }).join();
    for (int i = 0; i < 300; i++) { memlog_scope_begin("deep"); }
    take(1006);
    for (int i = 0; i < 300; i++) { memlog_scope_end(); }
    take(1007);
    memlog_scope_begin(nullptr);
    take(1008);
    memlog_scope_end();
    return puts("done") < 0;
}
"""

# Opens a scope at each line that it is told, and allocates so many bytes in all that are open.
TOLD = r"""
#define MEMLOG_WEAK
#include <memlog.h>
#include <stdio.h>
#include <stdlib.h>
static char in[256], out[256];
int main(void) {
    char line[100];
    setvbuf(stdin, in, _IOLBF, sizeof(in));
    setvbuf(stdout, out, _IOLBF, sizeof(out));
    while (fgets(line, sizeof(line), stdin)) {
        if (line[0] == '{') { memlog_scope_begin(line + 1); }
        else if (line[0] == '}') { memlog_scope_end(); }
        else { *(volatile char *)malloc(strtoul(line, NULL, 10)) = 1; }
        puts("ok");
    }
    return 0;
}
"""

# More names than a process may have, in all of which it allocates a byte.
MANY = r"""
#define MEMLOG_WEAK
#include <memlog.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
    char name[1100];
    for (int i = 0; i < 40000; i++) {
        snprintf(name, sizeof(name), "number %d of \x1b[31m names", i);
        MEMLOG_SCOPE(name);
        *(volatile char *)malloc(1) = 1;
    }
    return sleep(2); /* its memory is read meanwhile */
}
"""

SIGNALS = r"""
#define MEMLOG_WEAK
#include <memlog.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
static volatile int rounds;
static void tick(int number) {
    (void)number;
    memlog_scope_begin("tick");
    memlog_scope_begin("tock");
    rounds++;
    memlog_scope_end();
    memlog_scope_end();
}
static __attribute__((noinline)) void *take(size_t bytes) { void *block = malloc(bytes); __asm__ volatile("" : "+r"(block)); return block; }
int main(void) {
    const struct itimerval every = {{0, 50}, {0, 50}};
    signal(SIGALRM, tick);
    setitimer(ITIMER_REAL, &every, NULL);
    while (rounds < 2000) {
        memlog_scope_begin("outer");
        free(take(10));
        memlog_scope_begin("inner");
        free(take(20));
        memlog_scope_end();
        memlog_scope_end();
        free(take(30));
    }
    return 0;
}
"""


def scopes_of(stack):
    """Outermost first."""
    return [frame["function"] for frame in reversed(stack["frames"]) if frame.get("kind") == "scope"]


def way_of(stack):
    words = []
    for frame in reversed(stack["frames"]):
        if frame.get("kind") == "scope":
            words.append("{%s}" % frame["function"])
        elif frame["function"] in FUNCTIONS:
            words.append(frame["function"])
    return ">".join(words)


def without_functions(way):
    return ">".join(word for word in way.split(">") if word.startswith("{"))


class Scopes(harness.Case):
    def books_of(self, out):
        books = collections.defaultdict(dict)
        for line in out.decode().splitlines():
            if line.startswith("pid "):
                pid = int(line.split()[1])
            else:
                *figures, way = LINE.fullmatch(line).groups()
                books[pid][way] = tuple(map(int, figures))
        return books

    def run_it(self, mode, *words, options=()):
        run = self.memlog(PROGRAM, *map(str, words), options=(*QUIET, f"--memlog-stack-mode={mode}", *options))
        self.assertEqual(run.code, 0, run.err)
        report = self.exit_report(run)
        books = self.books_of(run.out)
        self.assertEqual({process["pid"] for process in report["processes"]}, set(books))
        for process in report["processes"]:
            self.assertTrue(process["complete"], process["trouble"])
        return run, report, books

    def seen(self, process):
        ways = collections.defaultdict(lambda: [0] * len(FIGURES))
        for stack in process["stacks"]:
            for at, figure in enumerate(FIGURES):
                ways[way_of(stack)][at] += stack[figure]
        return ways

    def assert_all(self, mode, *words):
        _, report, books = self.run_it(mode, *words)
        for process in report["processes"]:
            truth = collections.defaultdict(lambda: [0] * len(FIGURES))
            for way, figures in books[process["pid"]].items():
                key = way if mode == "mixed" else without_functions(way)
                truth[key] = [a + b for a, b in zip(truth[key], figures)]
            seen = self.seen(process)
            for way, figures in truth.items():
                if "{" in way or mode == "mixed": # what is allocated in no scope is not the program's alone
                    self.assertEqual(seen[way], figures, way)
            self.assertEqual({way for way in seen if way.endswith("take")}, {way for way in truth if way.endswith("take")})
            self.assertEqual(sum(figures[TOTAL] for figures in seen.values()), process["total_bytes"])
            if mode == "pseudo":
                self.assertEqual({frame.get("kind") for stack in process["stacks"] for frame in stack["frames"]}, {"scope"})

    def test_scopes_between_functions(self):
        self.assert_all("mixed", 300, 1)

    def test_scopes_alone(self):
        self.assert_all("pseudo", 300, 2)

    def test_coroutines_on_stacks_of_their_own(self):
        for mode in ("mixed", "pseudo"):
            self.assert_all(mode, 100, 3, "own")

    def test_work_that_goes_on_in_another_thread(self):
        for mode in ("mixed", "pseudo"):
            self.assert_all(mode, 100, 4, "given")

    def test_sampled(self):
        sums = collections.defaultdict(lambda: [0, 0.0, 0])
        for seed in (5, 6):
            _, report, books = self.run_it("mixed", 1500, seed, options=("--memlog-sampling-rate=2048",))
            for process in report["processes"]:
                for way, figures in books[process["pid"]].items():
                    name = without_functions(way)
                    sums[name][2] += figures[TOTAL] if name else 0
                for stack in process["stacks"]:
                    name = without_functions(way_of(stack))
                    if name:
                        sums[name][0] += stack["total_bytes"]
                        sums[name][1] += stack["total_bytes_error"] ** 2
        large = {name: figures for name, figures in sums.items() if figures[2] > 500_000}
        self.assertGreater(len(large), 3)
        for name, figures in large.items():
            self.assertLess(abs(deviations(*figures)), MOST_DEVIATIONS, (name, figures))

    def test_other_modes_have_none(self):
        _, report, books = self.run_it("native", 50, 7)
        for process in report["processes"]:
            self.assertEqual([scopes_of(stack) for stack in process["stacks"]], [[]] * len(process["stacks"]))
            taken = sum(stack["total_bytes"] for stack in process["stacks"] if stack["frames"] and stack["frames"][0]["function"] == "take")
            self.assertEqual(taken, sum(figures[TOTAL] for figures in books[process["pid"]].values()))

    def test_a_list_by_scope(self):
        run, _, books = self.run_it("mixed", 100, 8)
        (dump,) = run.folder.glob("*.exit.pftrace")
        answer = subprocess.run([harness.MEMLOG, "report", "--by=scope", "--json", dump], env=self.environment(), stdout=subprocess.PIPE, check=True)
        itself, cumulative = collections.Counter(), collections.Counter()
        for figures in books.values():
            for way, numbers in figures.items():
                scopes = [word[1:-1] for word in way.split(">") if word.startswith("{")]
                itself[scopes[-1] if scopes else ""] += numbers[TOTAL]
                for name in set(scopes):
                    cumulative[name] += numbers[TOTAL]
        for row in json.loads(answer.stdout)["rows"]:
            if row["name"] != "[no scope]":
                self.assertEqual((row["total_bytes"], row["cumulative"]["total_bytes"]), (itself[row["name"]], cumulative[row["name"]]), row["name"])
        text = subprocess.run([harness.MEMLOG, "report", "--by=scope", dump], env=self.environment(), stdout=subprocess.PIPE, check=True).stdout
        self.assertIn(b"Scopes by what was left", text)
        self.assertNotIn(b"--memlog-stack-mode=mixed", text)
        other, _, _ = self.run_it("native", 5, 8)
        (dump,) = other.folder.glob("*.exit.pftrace")
        text = subprocess.run([harness.MEMLOG, "report", "--by=scope", dump], env=self.environment(), stdout=subprocess.PIPE, check=True).stdout
        self.assertIn(b"--memlog-stack-mode=mixed", text)

    def build(self, name, text, compiler="gcc"):
        source, program = self.folder / name, self.folder / name.split(".")[0]
        source.write_text(text)
        subprocess.run([compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-I", str(harness.ROOT / "client"), "-o", program, source], check=True)
        return program

    def blocks(self, process):
        """bytes of a block -> the stack of it; the program makes one of each size."""
        return {stack["total_bytes"]: stack for stack in process["stacks"] if stack["total_blocks"] == 1}

    def test_exceptions_names_of_threads_and_depth(self):
        program = self.build("plus.cc", PLUS, "g++")
        for mode in ("mixed", "pseudo"):
            run = self.memlog(program, options=(*QUIET, f"--memlog-stack-mode={mode}"))
            self.assertEqual((run.code, run.out), (0, b"done\n"), run.err)
            (process,) = self.exit_report(run)["processes"]
            blocks = self.blocks(process)
            self.assertIn(["deeper", "deeper", "deepest"], [scopes_of(stack) for stack in process["stacks"] if stack["total_bytes"] >= 1001])
            self.assertEqual(scopes_of(blocks[1003]), ["whole"])
            self.assertEqual(scopes_of(blocks[1004]), ["named"])
            self.assertEqual(blocks[1004]["thread"], "a thread with a name of more than fifteen bytes")
            self.assertEqual((scopes_of(blocks[1005]), blocks[1005]["thread"]), (["named"], "plus"))
            self.assertEqual(scopes_of(blocks[1006]), ["deep"] * 248)
            if mode == "mixed":
                self.assertEqual(scopes_of(blocks[1001]), ["deeper", "deeper", "deepest"])
                for bytes_ in (1002, 1007, 1008):
                    self.assertEqual(scopes_of(blocks[bytes_]), [])
        native = self.memlog(program, options=(*QUIET, "--memlog-stack-mode=native-with-thread-names"))
        self.assertEqual(self.blocks(self.exit_report(native)["processes"][0])[1004]["thread"], "a thread with a name of more than fifteen bytes")
        alone = subprocess.run([program], env=self.environment(), stdout=subprocess.PIPE, check=True)
        self.assertEqual(alone.stdout, b"done\n")

    def test_recording_starts_and_stops_within_scopes(self):
        program = self.build("told.c", TOLD)
        process = self.memlog_start(program, options=(*QUIET, "--memlog=manual"), stdin=subprocess.PIPE)

        def control(*words):
            answer = subprocess.run([harness.MEMLOG, *map(str, words)], env=self.environment(), capture_output=True, text=True, check=False)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            return answer.stdout

        def tell(*lines):
            for line in lines:
                process.stdin.write(line.encode() + b"\n")
                process.stdin.flush()
                self.assertEqual(process.stdout.readline(), b"ok\n")

        tell("{before", "500")
        (pid,) = [one["pid"] for one in json.loads(control("ps", "--json"))["processes"]]
        control("start", "--memlog-stack-mode=mixed", pid)
        tell("1001", "{a", "1002", "{b", "1003")
        control("stop", pid)
        tell("}", "{c", "}", "}", "}")
        control("start", "--memlog-stack-mode=mixed", pid)
        tell("1004", "{d", "1005", "}", "1006")
        process.communicate(timeout=harness.TIMEOUT)
        (dump,) = process.memlog_folder.glob("*.exit.pftrace")
        taken = {tuple(name.strip() for name in scopes_of(stack)): stack["total_bytes"] for stack in self.report(dump)["processes"][0]["stacks"]
                 if stack["frames"] and stack["total_bytes"] > 1000}
        self.assertEqual(taken, {(): 1004 + 1006, ("d",): 1005})

    def test_more_names_than_there_is_room_for(self):
        """Blocks are recorded as ever, and the names' memory is memlog's own."""
        run = self.memlog(self.build("many.c", MANY), options=(*QUIET, "--memlog-stack-mode=mixed"))
        self.assertEqual(run.code, 0, run.err)
        (process,) = self.exit_report(run)["processes"]
        self.assertTrue(process["complete"])
        scoped = [stack for stack in process["stacks"] if scopes_of(stack)]
        self.assertGreater(len(scoped), 30000)
        self.assertEqual({stack["total_bytes"] for stack in scoped}, {1})
        self.assertGreaterEqual(sum(stack["total_blocks"] for stack in process["stacks"]), 40000)
        sizes = {component["name"]: component["private_bytes"] for component in process["memory"]["components"]}
        self.assertLess(sizes.get("other anonymous", 0), 200_000, sizes)
        self.assertGreater(sizes["memlog"], 2_000_000)

    def test_handlers_leave_scopes_as_they_were(self):
        program = self.build("signals.c", SIGNALS)
        for mode in ("mixed", "pseudo"):
            run = self.memlog(program, options=(*QUIET, f"--memlog-stack-mode={mode}"))
            self.assertEqual(run.code, 0, run.err)
            (process,) = self.exit_report(run)["processes"]
            self.assertTrue(process["complete"])
            seen = {(tuple(scopes_of(stack)), stack["total_bytes"] // stack["total_blocks"]) for stack in process["stacks"]
                    if mode == "pseudo" or stack["frames"][0]["function"] == "take"}
            self.assertLessEqual({(("outer",), 10), (("outer", "inner"), 20)}, seen)
            self.assertEqual({scopes for scopes, _ in seen}, {(), ("outer",), ("outer", "inner")})


if __name__ == "__main__":
    unittest.main(verbosity=2)
