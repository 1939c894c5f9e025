"""report's lists by function, module, source file and line, thread and size, and what --focus and the like leave: held against the whole JSON."""
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import harness

KEEPER = """
#include <string>
#include <vector>
static std::vector<std::string *> all;
void fill(int count) { for (int i = 0; i < count; i++) { all.push_back(new std::string(300 + i, 'x')); } }
"""
SOURCE = """
#include <pthread.h>
#include <string>
#define KEPT __attribute__((noinline))
void fill(int count);
KEPT int again(int depth) { if (depth == 0) { fill(20); return 1; } return again(depth - 1) + 1; }
KEPT void churn(int count) { for (int i = 0; i < count; i++) { std::string text(200, 'y'); asm volatile("" ::"r"(text.data()) : "memory"); } }
static void *worker(void *) { fill(30); return nullptr; }
int main() {
    pthread_t thread;
    fill(10);
    int sum = again(4);
    churn(500);
    pthread_create(&thread, nullptr, worker, nullptr);
    pthread_setname_np(thread, "a, \\"b\\"");
    pthread_join(thread, nullptr);
    return sum == 5 ? 0 : 1;
}
"""
CHURN = next(line for line in SOURCE.splitlines() if "void churn" in line)
FIGURES = [f"{what}_{unit}" for what in ("live", "peak", "total") for unit in ("bytes", "blocks")]
PLUMBING = re.compile(r"operator new|(void )?std::|__gnu_cxx::|(m|c|re)alloc$|(__)?strdup$")


def innermost(stack):
    """The frame whose own the stack's bytes are."""
    frames = stack["frames"]
    return next((frame for frame in frames if not PLUMBING.match(frame["function"])), frames[0])


def base(frame):
    return os.path.basename(frame["module"])


class Lists(harness.Case):

    def setUp(self):
        super().setUp()
        sources = [self.folder / "lists.cc", self.folder / "keeper.cc"]
        for source, text in zip(sources, (SOURCE, KEEPER)):
            source.write_text(text)
        program = self.folder / "lists"
        subprocess.run(["g++", "-g", "-O1", "-fno-optimize-sibling-calls", "-o", program, *sources, "-pthread"], check=True)
        self.dump = self.memlog(program, options=["--memlog-stack-mode=native-with-thread-names"]).dumps()[0]
        self.whole = json.loads(self.asked("--json"))
        self.stacks = self.whole["tree"]["stacks"]

    def asked(self, *words, code=0):
        answer = harness.run_words(
            [str(harness.MEMLOG), "report", *words, str(self.dump)], self.folder, self.environment(), b"", harness.TIMEOUT
        )
        self.assertEqual(answer.returncode, code, answer.stderr)
        return (answer.stdout if code == 0 else answer.stderr).decode()

    def rows(self, by, *words):
        answer = json.loads(self.asked("--json", f"--by={by}", *words))
        self.assertEqual(answer["by"], by)
        return answer["rows"]

    def expected(self, key_of_frame):
        """{key: (self, cumulative)} of the whole JSON."""
        found = {}
        for stack in self.stacks:
            own = key_of_frame(innermost(stack))
            inner = stack["frames"].index(innermost(stack))
            for key in {key_of_frame(frame) for frame in stack["frames"][inner:]}:
                one = found.setdefault(key, [dict.fromkeys(FIGURES, 0), dict.fromkeys(FIGURES, 0)])
                for figure in FIGURES:
                    one[1][figure] += stack[figure]
                    one[0][figure] += stack[figure] if key == own else 0
        return found

    def hold(self, rows, expected, key_of_row):
        shown = {key_of_row(row): row for row in rows if any(row["cumulative"][figure] for figure in FIGURES)}
        self.assertEqual(set(shown), set(expected))
        for key, (own, cumulative) in expected.items():
            self.assertEqual({figure: shown[key][figure] for figure in FIGURES}, own, key)
            self.assertEqual({figure: shown[key]["cumulative"][figure] for figure in FIGURES}, cumulative, key)

    def test_functions_hold_what_the_stacks_say(self):
        def name(frame):
            return frame["function"] or f"{base(frame)}+{frame['offset']}"

        rows = self.rows("function")
        self.hold(rows, self.expected(lambda frame: (name(frame), base(frame))), lambda row: (row["name"], row["module"]))
        again = next(row for row in rows if row["name"].startswith("again("))
        self.assertEqual(again["live_bytes"], 0, "it allocates nothing itself")
        self.assertGreater(again["cumulative"]["live_bytes"], 20 * 300)
        self.assertLess(again["cumulative"]["live_bytes"], 2 * 20 * 400, "a recursive function's stacks count once")
        self.assertFalse([row for row in rows if row["name"].startswith("operator new") and row["live_bytes"]])
        shown = self.rows("function", "--plumbing")
        self.assertTrue([row for row in shown if row["name"].startswith("operator new") and row["live_bytes"]])

    def test_modules_hold_what_the_stacks_say(self):
        self.hold(self.rows("module"), self.expected(lambda frame: base(frame) or "[no file]"), lambda row: row["name"])

    def test_source_files_and_lines_hold_what_the_stacks_say(self):
        def module(frame):
            return ("", 0, base(frame) or "[no file]")

        def line(frame):
            return (frame["file"], frame["line"], f"{frame['file']}:{frame['line']}" if frame["line"] else frame["file"])

        files, lines = self.rows("file"), self.rows("line")
        self.hold(
            files, self.expected(lambda frame: (frame["file"], 0, frame["file"]) if frame["file"] else module(frame)),
            lambda row: (row["file"], 0, row["name"]),
        )
        self.hold(
            lines, self.expected(lambda frame: line(frame) if frame["file"] else module(frame)),
            lambda row: (row["file"], row["line"], row["name"]),
        )
        for rows in (files, lines):
            for figure in FIGURES:
                self.assertEqual(sum(row[figure] for row in rows), harness.shown(self.whole, figure), figure)
        held = {os.path.basename(row["file"]): row for row in files if row["file"]}
        self.assertGreaterEqual(held["keeper.cc"]["live_bytes"], 60 * 300)
        self.assertEqual(held["lists.cc"]["live_bytes"], 0, "it keeps nothing itself")
        self.assertGreaterEqual(held["lists.cc"]["cumulative"]["live_bytes"], 30 * 300)
        at = {row["line"]: row for row in lines if os.path.basename(row["file"]) == "lists.cc"}
        self.assertEqual({number for number, row in at.items() if row["temporary_blocks"] >= 400}, {SOURCE.splitlines().index(CHURN) + 1})
        text = self.asked("--by=file", "--metric=total")
        self.assertRegex(text, r"Source files by bytes allocated")
        self.assertRegex(text, r"(?m) keeper\.cc$|/keeper\.cc$")
        # Start-up code of the program itself, say.
        nameless = [row["name"] for row in files if not row["file"] and row["cumulative"]["total_bytes"]]
        self.assertTrue(nameless)
        self.assertIn("(code without line information stands under its module's name)\n", text)
        self.assertEqual([name for name in nameless if f"  {name}" not in text], [])

    def test_threads_and_sizes_add_up_to_the_tree(self):
        for by in ("thread", "size"):
            rows = self.rows(by)
            for figure in FIGURES:
                self.assertEqual(sum(row[figure] for row in rows), harness.shown(self.whole, figure), (by, figure))
        threads = {row["name"]: row for row in self.rows("thread")}
        for name, row in threads.items():
            self.assertEqual(row["total_blocks"], sum(stack["total_blocks"] for stack in self.stacks if stack["thread"] == name))
        sizes = {row["size_bytes"]: row["total_blocks"] for row in self.rows("size")}
        self.assertTrue(all(size == 0 or size & size - 1 == 0 for size in sizes))
        # Strings of 300 to 329 characters and the end of each; those of 200 are the churn's.
        self.assertGreaterEqual(sizes[256], 60)
        self.assertGreaterEqual(sizes[128], 500)

    def test_comma_separated_values_are_the_same_rows(self):
        for by in ("function", "line", "size"):
            table = list(csv.DictReader(io.StringIO(self.asked("--csv", f"--by={by}"), newline="")))
            rows = self.rows(by)
            self.assertEqual([row["name"] for row in table], [row["name"] for row in rows])
            for figure in [*FIGURES, "temporary_blocks"]:
                self.assertEqual([int(row[figure]) for row in table], [row[figure] for row in rows])
        table = list(csv.DictReader(io.StringIO(self.asked("--csv", "--metric=total"), newline="")))
        self.assertEqual(sum(int(row["total_bytes"]) for row in table), self.whole["tree"]["total_bytes"])
        self.assertTrue(all(row["stack"] for row in table))
        self.assertEqual({row["thread"] for row in table}, {stack["thread"] for stack in self.stacks})

    def test_lists_are_in_the_order_that_was_asked_for(self):
        for order, weight in (
            ("bytes", lambda row: row["live_bytes"]),
            ("blocks", lambda row: row["live_blocks"]),
            ("cumulative", lambda row: row["cumulative"]["live_bytes"]),
        ):
            weights = [weight(row) for row in self.rows("function", f"--sort={order}")]
            self.assertEqual(weights, sorted(weights, reverse=True), order)
        first = self.rows("function", "--sort=temporary", "--limit=1")
        self.assertTrue(first[0]["name"].startswith("churn("), first)
        self.assertGreaterEqual(first[0]["temporary_blocks"], 400)
        self.assertIn("churn(int)", self.asked("--sort=temporary", "--limit=1"))

    def test_focus_and_ignore_part_the_stacks(self):
        def stacks(*words):
            return json.loads(self.asked("--json", *words))["tree"]["stacks"]

        def of(chosen):
            return sorted(tuple(stack[figure] for figure in FIGURES) for stack in chosen)

        inside = [stack for stack in self.stacks if any(frame["function"].startswith("again(") for frame in stack["frames"])]
        self.assertTrue(inside)
        self.assertEqual(of(stacks("--focus=^again[(]")), of(inside))
        self.assertEqual(of(stacks("--ignore=^again[(]")), of(stack for stack in self.stacks if stack not in inside))
        self.assertEqual(of(stacks("--focus=lists.cc")), of(
            stack for stack in self.stacks if any("lists.cc" in frame["file"] for frame in stack["frames"])
        ))
        self.assertEqual(stacks("--focus=no such function"), [])

    def test_show_and_hide_leave_sums_and_drop_frames(self):
        hidden = json.loads(self.asked("--json", "--hide=^(again[(]|std::)"))["tree"]
        for figure in FIGURES:
            self.assertEqual(sum(stack[figure] for stack in hidden["stacks"]), harness.shown(self.whole, figure))
        names = {frame["function"] for stack in hidden["stacks"] for frame in stack["frames"]}
        self.assertFalse([name for name in names if re.match(r"again\(|std::", name)])
        self.assertTrue([name for name in names if name.startswith("fill(")])
        seen = [(stack["thread"], json.dumps(stack["frames"])) for stack in hidden["stacks"]]
        self.assertEqual(len(seen), len(set(seen)), "stacks that became the same are one")
        shown = json.loads(self.asked("--json", "--show=^fill[(]"))["tree"]["stacks"]
        self.assertEqual({frame["function"] for stack in shown for frame in stack["frames"]}, {"fill(int)"})
        self.assertEqual(sum(stack["total_bytes"] for stack in shown), self.whole["tree"]["total_bytes"])

    def test_what_cannot_be_meant_is_refused(self):
        for words, saying in (
            (["--focus=("], "--focus=(: this is no regular expression"),
            (["--by=functon"], "did you mean 'function'?"),
            (["--sort=blocs"], "did you mean 'blocks'?"),
            (["--sort=cumulative"], "--by=function, module, file, line or scope"),
            (["--by=size", "--focus=x"], "--by=size"),
            (["--json", "--csv"], "one of them"),
            (["--summary", "--by=thread"], "--summary"),
        ):
            self.assertIn(saying, self.asked(*words, code=2))

    def test_a_limit_holds_for_processes(self):
        self.dump = self.memlog("sh", "-c", "for i in 1 2 3; do ls > /dev/null; done; true").dumps()[0]
        for limit, shown, left in ((2, 2, "... and 2 smaller ones"), (9, 4, "")):
            text = self.asked("--by=process", f"--limit={limit}")
            rows = re.search(r"^Processes  by what they held.*\n.*\n((?:.+\n)+)", text, re.M)[1]
            self.assertEqual(len(re.findall(r"^ *\d+  (?:sh|dash|ls) ", rows, re.M)), shown, text)
            self.assertEqual("smaller ones" in rows, left != "", text)
            self.assertIn(left, rows)


if __name__ == "__main__":
    unittest.main()
