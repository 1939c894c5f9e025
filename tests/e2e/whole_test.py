"""The first lines of a report and of a run's end: all private memory of a tree, and what it is made of. They add up as they are printed."""
import contextlib
import re
import sqlite3
import subprocess
import unittest

import harness

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { MIB = 1 << 20 };
int main(int count, char **words) {
    const int mib = atoi(words[1]);
    char *blocks = malloc(mib * MIB);
    memset(blocks, 1, mib * MIB);
    memset(mmap(NULL, 40 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 40 * MIB);
    if (count > 2 && fork() == 0) {
        execl(words[0], words[0], words[2], NULL);
    }
    puts("ready");
    fflush(stdout);
    (void)!getchar();
    return blocks[0] - 1;
}
"""

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class Whole(harness.Case):
    def start(self, *words, options=()):
        source = self.folder / "holder.c"
        source.write_text(PROGRAM)
        harness.run_words(["gcc", "-O1", "-fno-builtin", "-o", str(self.folder / "holder"), str(source)], self.folder, None, b"", harness.TIMEOUT)
        return self.memlog_start(str(self.folder / "holder"), *words, stdin=subprocess.PIPE, options=options)

    def say(self, *words, columns=80):
        answer = harness.run_words([str(harness.MEMLOG), *words], self.folder, {**self.environment(), "COLUMNS": str(columns)}, b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout.decode()

    def dump(self, kind):
        (dump,) = self.folder.glob(f"dumps*/*.{kind}.pftrace")
        return dump

    def sums(self, text):
        """(name, unit, the sum, its parts by name), in the order of the lines; each adds up as printed."""
        found = []
        for line in text.splitlines():
            self.assertFalse(" = " in line and len(line) > 80, line)
        for line in re.sub(r"\n +([=+]) ", r" \1 ", text).splitlines():  # a sum of many parts goes on in the next line
            match = re.fullmatch(r" +(\S+) +([\d.]+) (\w+) = (.*)", line)
            if match:
                parts = {}
                for part in match[4].split(" + "):
                    figure, name = part.split(" ", 1)
                    parts[name] = figure
                tenths = [round(10 * float(figure)) for figure in (match[2], *parts.values())]
                self.assertEqual(tenths[0], sum(tenths[1:]), line)
                found.append((match[1], match[3], float(match[2]), {name: float(figure) for name, figure in parts.items()}))
        return found

    def test_a_program_that_runs_is_told_as_a_whole_first(self):
        process = self.start("20")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.say("dump")
        lines = self.say("report", "--full", str(self.dump("manual"))).splitlines()
        process.communicate(b"\n", harness.TIMEOUT)
        self.assertRegex(lines[2], r"^  private      6\d\.\d MiB = 2\d\.\d heap \+ 4\d\.\d (mapped|other)")
        (tree,) = self.sums(lines[2])
        entry = self.report(self.dump("manual"))["processes"][0]
        self.assertAlmostEqual(tree[2] * UNITS[tree[1]], entry["memory"]["private_bytes"], delta=0.06 * UNITS[tree[1]])

    def test_a_tree_is_the_sum_of_its_processes(self):
        process = self.start("20", "30")
        self.assertEqual([process.stdout.readline(), process.stdout.readline()], [b"ready\n"] * 2)
        self.say("dump")
        text = self.say("report", "--full", str(self.dump("manual")))
        process.communicate(b"\n\n", harness.TIMEOUT)
        tree, larger, smaller = self.sums(text)[:3]
        self.assertEqual([tree[0], larger[0], smaller[0]], ["private", "holder", "holder"])
        self.assertAlmostEqual(tree[2], larger[2] + smaller[2], delta=1)  # the tree's has whole MiB
        self.assertGreater(larger[2], smaller[2] + 9)
        report = self.report(self.dump("manual"))
        memory = report["tree"]["memory"]
        for figure in ("private_bytes", "proportional_bytes", "swapped_bytes"):
            self.assertEqual(memory[figure], sum(one["memory"][figure] for one in report["processes"] if one["memory"]), figure)
            self.assertEqual(memory[figure], sum(one[figure] for one in memory["components"]), figure)
        self.assertEqual(memory["unread_bytes"], 0)

    def test_a_figure_stays_beside_its_name_at_every_width(self):
        process = self.start("20")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.say("dump")
        process.communicate(b"\n", harness.TIMEOUT)
        for columns in range(60, 121, 3):
            text = self.say("report", "--full", str(self.dump("manual")), columns=columns)
            self.assertNotRegex(text, r"(?m)[=+] ?[\d.]*$", columns)

    def test_the_end_of_a_run_tells_the_largest_reading_of_what_has_ended(self):
        process = self.start("20")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.say("dump")
        process.communicate(b"\n", harness.TIMEOUT)
        text = self.say("report", "--full", str(self.dump("exit")))
        whole = self.sums(text)[0]
        self.assertGreater(whole[2], 60)
        self.assertIn("its largest reading, at ", text)
        self.assertIsNone(self.report(self.dump("exit"))["tree"]["memory"])

    def test_of_a_sampled_program_it_says_that_the_heap_is_not_known(self):
        process = self.start("20", options=("-q", "--no-page", "--memlog-sampling-rate=64K"))
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.say("dump")
        process.communicate(b"\n", harness.TIMEOUT)
        text = self.say("report", "--full", str(self.dump("manual")))
        self.assertNotIn("heap", self.sums(text)[0][3])
        self.assertIn("sampled: which part of it is heap is not known", text)

    def test_a_database_has_mappings_and_components_with_the_kernels_sums(self):
        process = self.start("20")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.say("dump")
        process.communicate(b"\n", harness.TIMEOUT)
        memory = self.report(self.dump("manual"))["processes"][0]["memory"]
        self.say("convert", "--to=sqlite", "-o", str(self.folder / "heap.db"), str(self.dump("manual")))
        with contextlib.closing(sqlite3.connect(self.folder / "heap.db")) as database:
            (regions,) = database.execute("SELECT 1024 * sum(private_clean_resident_kb + private_dirty_kb),"
                                          " 1024 * sum(shared_clean_resident_kb + shared_dirty_resident_kb),"
                                          " 1024 * sum(proportional_resident_kb), 1024 * sum(swap_kb) FROM profiler_smaps")
            figures = ("private_bytes", "shared_bytes", "proportional_bytes", "swapped_bytes")
            self.assertEqual(regions, tuple(memory[figure] for figure in figures))
            rows = dict(database.execute("SELECT component, private_bytes FROM memlog_component"))
            self.assertEqual(rows, {one["name"]: one["private_bytes"] for one in memory["components"]})
            ((name, flags),) = database.execute("SELECT path_trimmed, protection_flags FROM profiler_smaps WHERE path = '[stack]'")
            self.assertEqual((name, flags & 7), ("[stack]", 6))


if __name__ == "__main__":
    unittest.main()
