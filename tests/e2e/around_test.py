"""Callers and callees of one function, on the live page and in the page of a dump: a program whose callers and callees are known, to the byte."""
import json
import os
import subprocess
import unittest
import urllib.parse

import browsing
import harness
import pages

# What each function holds stands beside it. `again` calls itself, so its stacks have it two or three times.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *kept[64];
static int count;
#define CALLED __attribute__((noinline))
CALLED void leaf(size_t bytes) { kept[count++] = malloc(bytes); }
CALLED void small(void) { kept[count++] = malloc(7); leaf(100); free(malloc(90)); }
CALLED void large(void) { leaf(150); leaf(50); }
CALLED void again(int more) { kept[count++] = malloc(10); if (more) { again(more - 1); } else { leaf(40); } }
int main(void) {
    small();
    large();
    again(2);
    write(1, "ready\n", 6);
    char line[8];
    (void)!read(0, line, sizeof line);
    if (count < 0) { puts(kept[0]); }
    _exit(0);
}
"""

LEAF = {
    "figures": "live: 340 B in 4 (90.2 %), itself 340 B in 4",
    "callers": {"large": 200, "large/main": 200, "small": 100, "small/main": 100,
                "again": 40, "again/again": 40, "again/again/again": 40, "again/again/again/main": 40},
    "callees": {},
}
AGAIN = {
    "figures": "live: 70 B in 4 (18.6 %), itself 30 B in 3",
    "callers": {"main": 70},
    "callees": {"again": 60, "again/again": 50, "again/again/leaf": 40},
}


class Around(browsing.Case):
    @classmethod
    def setUpClass(cls):
        pages.install()

    def program(self):
        source = self.folder / "known.c"
        source.write_text(PROGRAM)
        subprocess.run(["gcc", "-g", "-O0", "-o", self.folder / "known", source], check=True)
        return self.folder / "known"

    def drive(self, script, *words):
        env = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
        done = subprocess.run(["node", script, *map(str, words)], cwd=pages.NODE, env={**env, "HOME": str(self.folder)},
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.TIMEOUT, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout.splitlines()[-1])

    def assert_around(self, seen, known):
        """`figures` of the first metric, and both trees without what starts a program."""
        self.assertEqual(seen["figures"].split("  \u00b7  ")[0], known["figures"])
        self.assertEqual(seen["callers"], known["callers"])
        self.assertEqual(seen["callees"], known["callees"])

    def test_the_live_page_shows_callers_and_callees_by_table_key_button_and_address(self):
        process, page = self.open_page(self.program(), stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        seen = self.drive("around.js", page.url, self.folder)
        process.communicate(b"", harness.TIMEOUT)
        self.assertEqual((seen["complaints"], seen["faults"], seen["asked"]), ([], [], [page.base]))
        self.assert_around(seen["leaf"], LEAF)
        self.assert_around(seen["again"], AGAIN)
        self.assertEqual(seen["leaf"]["where"], "Callers and callees of leaf")
        self.assertEqual(seen["total"]["figures"].split("  \u00b7  ")[2], "total: 197 B in 3 (42.2 %), itself 97 B in 2")
        self.assertEqual(seen["total"]["callees"], {"leaf": 100})
        self.assertEqual(seen["caller"]["figures"].split("  \u00b7  ")[0], "live: 100 B in 1 (29.4 %)")
        self.assertEqual(seen["zoomed"], "main \u203a small \u203a leaf")
        # Each way leads there, and back.
        for way, name in (("byKey", "small"), ("byButton", "small"), ("byAddress", "again"), ("byName", "leaf")):
            self.assertEqual(seen[way], f"Callers and callees of {name}", way)
        self.assertEqual(seen["none"], "No stack here is through nobody.")
        self.assertEqual(seen["back"], "Click a frame to zoom in.")
        self.assertEqual(seen["escaped"], "Click a frame to zoom in.")
        self.assertEqual(seen["left"], "Click a frame to zoom in.")
        # On a wide window the table is beside the graph, and shows whose callers and callees they are.
        self.assertEqual((seen["beside"], seen["chosen"]), (1700, ["leaf 340 B 340 B"]))
        self.assertTrue(seen["listed"])
        self.assertEqual(seen["moved"], 0)
        address = urllib.parse.unquote(seen["address"])
        self.assertIn('function=["again","known"]', address)

    def test_the_page_of_a_dump_and_of_a_difference_shows_them_too(self):
        run = self.memlog(self.program())
        (dump,) = run.dumps()
        for command, name in ((("flamegraph",), "flame.html"), (("diff", "--html"), "diff.html")):
            words = [str(harness.MEMLOG), *command, "-o", str(self.folder / name), *([str(dump)] * (2 if command[0] == "diff" else 1))]
            answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
            self.assertEqual(answer.returncode, 0, answer.stderr)
        seen = pages.look("around_file.js", self.folder, "flame.html", self.folder / "around.png")
        self.assertEqual(seen["complaints"], [])
        self.assert_around(seen["leaf"], LEAF)
        self.assert_around(seen["again"], AGAIN)
        self.assertEqual(seen["back"], "Click a frame to zoom in.")
        self.assertEqual(seen["byKey"], "Callers and callees of leaf")
        self.assertTrue(seen["outermost"])
        seen = pages.look("around_file.js", self.folder, "diff.html", self.folder / "around-diff.png")
        self.assertEqual(seen["complaints"], [])
        self.assertIn("live: 70 B \u2192 70 B (0 B), itself 30 B \u2192 30 B", seen["again"]["figures"])
        self.assertEqual(seen["again"]["callees"], AGAIN["callees"])


if __name__ == "__main__":
    unittest.main()
