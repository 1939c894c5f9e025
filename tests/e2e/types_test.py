"""Types of blocks that no program reports: by the frames that allocate them, and by the vtables that they begin with; held against a
program that counts its own (corpus/types.cc)."""
import collections
import gzip
import json
import pathlib
import re
import shutil
import subprocess
import unittest

import harness
from estimates import MOST_DEVIATIONS, deviations

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
# The class's vtable is in the library, and all its objects are made by the program.
LIBRARY = {
    "kept.h": "struct Kept { virtual ~Kept() {} virtual void name(); long words[3] = {}; };",
    "kept.cc": '#include "kept.h"\nvoid Kept::name() {}',
    "keeper.cc": """
#include "kept.h"
#include <time.h>
int main() {
    static Kept *all[1000];
    for (auto &one : all) { one = new Kept; }
    for (time_t begin = time(nullptr); time(nullptr) < begin + 3;) { timespec rest = {0, 100000000}; nanosleep(&rest, nullptr); }
    return all[0] == nullptr;
}
"""}
LINES = 10  # of each process
LINE = re.compile(r"(\d+) (\S+) (\d+) (\d+) (.+)")


class Case(harness.Case):
    symbol_cache = "off"

    def build(self, *words):
        program = self.folder / "types"
        subprocess.run(["g++", *words, "-pthread", "-o", program, CORPUS / "types.cc"], check=True)
        return program

    def books(self, out):
        """pid -> (name, known by) -> (bytes, blocks)."""
        books = collections.defaultdict(dict)
        for line in out.decode().splitlines():
            pid, known, count_bytes, blocks, name = LINE.fullmatch(line).groups()
            books[int(pid)][name, known] = (int(count_bytes), int(blocks))
        return books

    def told(self, *words):
        answer = harness.run_words(
            [str(harness.MEMLOG), "report", *map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout.decode()

    def rows(self, dump, *words):
        rows = json.loads(self.told("--json", "--by=type", *words, dump))["rows"]
        self.assertEqual(len({(row["name"], row["known_by"]) for row in rows}), len(rows))
        return {(row["name"], row["known_by"]): row for row in rows}


class Frames(Case):
    """The names of the allocating frames."""

    def assert_told(self, *flags):
        run = self.memlog(self.build(*flags), "300")
        self.assertEqual(run.code, 0)
        (dump,) = run.dumps()
        books = self.books(run.out)
        self.assertEqual(len(books), 2)
        for pid, truths in books.items():
            rows = self.rows(dump, f"--pid={pid}")
            for (name, known), truth in truths.items():
                if known != "vtable":
                    row = rows[name, known]
                    self.assertEqual((row["live_bytes"], row["live_blocks"]), truth, name)
                    self.assertEqual((row["total_bytes"], row["total_blocks"]), truth, name)
                    self.assertEqual((row["peak_bytes"], row["peak_blocks"]), truth, name)
        return dump, books

    def test_each_figure_to_the_byte_with_inlined_frames(self):
        dump, books = self.assert_told("-g", "-O2")
        # No figure is lost: all rows together are the tree.
        rows, tree = self.rows(dump), self.report(dump)["tree"]
        for figure in ("peak_bytes", "peak_blocks", "total_bytes", "total_blocks"):
            self.assertEqual(sum(row[figure] for row in rows.values()), tree[figure])
        self.assertEqual(sum(row["live_bytes"] for row in rows.values()), tree["left_bytes"])
        # Two processes are one list.
        for key in next(iter(books.values())):
            if key[1] != "vtable":
                self.assertEqual(rows[key]["live_bytes"], sum(truths[key][0] for truths in books.values()))

    def test_each_figure_to_the_byte_without_optimization(self):
        self.assert_told("-g", "-O0")

    def test_nothing_is_guessed_without_inlined_frames(self):
        run = self.memlog(self.build("-O2"), "300")
        (dump,) = run.dumps()
        books = self.books(run.out)
        for (name, known), row in self.rows(dump).items():
            if known:  # a part may go unseen, but what has a type is of that type
                told = sum(truths.get((name, known), (0, 0))[0] for truths in books.values())
                self.assertLessEqual(row["live_bytes"], told, name)

    def test_text_csv_and_stacks_say_how_each_is_known(self):
        dump, _ = self.assert_told("-g", "-O2")
        self.assertRegex(self.told("--by=type", dump), r"(?m)^ .* Box<int, 3>  frames$")
        self.assertRegex(self.told("--by=type", dump), r"(?m)^ .* Owner  constructor$")
        self.assertRegex(self.told("--by=type", "--csv", dump), r'(?m),"?Owner"?,"?constructor"?,')
        for process in self.report(dump)["processes"]:
            sums = collections.Counter()
            for stack in process["stacks"]:
                self.assertEqual(stack["type"] == "", stack["type_known_by"] == "")
                sums[stack["type"], stack["type_known_by"]] += stack["live_bytes"]
            rows = self.rows(dump, f"--pid={process['pid']}")
            self.assertEqual({key: row["live_bytes"] for key, row in rows.items() if row["live_bytes"]}, {
                (name or "[no type]", known): count for (name, known), count in sums.items() if count})

    def test_graphs_pprof_and_json_have_the_same_types(self):
        dump, _ = self.assert_told("-g", "-O2")
        wanted = collections.Counter()
        for (name, _), row in self.rows(dump).items():
            wanted[name] += row["live_bytes"]

        def convert(*words):
            answer = harness.run_words([str(harness.MEMLOG), "convert", *words, str(dump)], self.folder, self.environment(), b"", harness.TIMEOUT)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            return answer.stdout

        self.assertGreater(len([name for name, count in wanted.items() if count]), 3)
        for order, at in (("type", 1), ("backtrace,type", -1)):
            sums = collections.Counter()
            for line in convert("--to=collapsed", f"--by={order}").decode().splitlines():
                stack, count = line.rsplit(" ", 1)
                sums[stack.split(";")[at]] += int(count)
            self.assertEqual(+sums, +wanted, order)
        sums = collections.Counter()
        told = json.loads(convert("--to=json"))
        for process in told["processes"]:
            for stack in process["stacks"]:
                sums[stack["type"] or "[no type]"] += stack["live_bytes"]
        self.assertEqual(+sums, +wanted)
        self.assertEqual(told["processes"], json.loads(self.told("--json", dump))["processes"])
        trace = json.loads(gzip.decompress(convert("--to=chrome", "-o", "-")))
        types = {name for event in trace["traceEvents"] for name in self.chrome_types(event)}
        self.assertLessEqual({name for name, count in wanted.items() if count and name != "[no type]"}, types)

    def chrome_types(self, event):
        maps = event.get("args", {}).get("dumps", {}).get("heaps_v2", {}).get("maps", {})
        strings = {one["id"]: one["string"] for one in maps.get("strings", ())}
        return [strings[one["name_sid"]] for one in maps.get("types", ())]

    def test_a_focus_narrows_types_too(self):
        dump, books = self.assert_told("-g", "-O2")
        rows = self.rows(dump, "--focus=World::make")
        for key in next(iter(books.values())):
            if key[1] != "vtable":
                self.assertEqual(rows[key]["live_bytes"], sum(truths[key][0] for truths in books.values()))
        self.assertEqual({known for _, known in self.rows(dump, "--ignore=World|Kept")}, {""})


class Vtables(Case):
    """What a live block's first word says of it, read at a dump."""

    def dumped(self, program, *options):
        """A dump while all processes wait, and what they said."""
        process = self.memlog_start(
            program, "300", "wait", options=("-q", "--no-page", *options))
        lines = []
        while len(lines) < 2 * LINES:
            lines.append(process.stdout.readline())
            self.assertTrue(lines[-1])
        answer = subprocess.run(
            [str(harness.MEMLOG), "dump"], env=self.environment(), capture_output=True, text=True, timeout=harness.TIMEOUT, check=True)
        (self.folder / "end").touch()
        self.assertEqual(process.wait(harness.TIMEOUT), 0)
        (self.folder / "end").unlink()
        return answer.stdout.strip(), self.books(b"".join(lines))

    def assert_told(self, dump, books):
        for pid, truths in books.items():
            rows = self.rows(dump, f"--pid={pid}")
            for (name, known), truth in truths.items():
                if known == "vtable":
                    row = rows[name, known]
                    self.assertEqual((row["live_bytes"], row["live_blocks"]), truth, name)
                    self.assertTrue(row["live_only"])
                    self.assertEqual((row["total_bytes"], row["peak_bytes"]), (0, 0))
            said = {name for name, known in rows if known == "vtable"}
            # std::make_shared's counts begin with a vtable, too.
            self.assertEqual(said - {name for name, known in truths if known == "vtable"} - {"Plain"}, set())

    def test_live_objects_by_class_across_threads_and_forks(self):
        dump, books = self.dumped(self.build("-g", "-O2"), "--types=vtable")
        self.assertEqual(len(books), 2)
        self.assert_told(dump, books)
        # All rows together are the tree, whatever they are known by.
        rows, tree = self.rows(dump), self.report(dump)["tree"]
        for figure in ("live_bytes", "live_blocks", "peak_bytes", "total_bytes", "total_blocks"):
            self.assertEqual(sum(row[figure] for row in rows.values()), tree[figure])
        text = self.told("--by=type", dump)
        self.assertRegex(text, r"(?m)^ .* shapes::Circle  vtable$")
        self.assertIn("what lies in blocks tells the types of live ones alone", self.told("--by=type", "--metric=total", dump))
        # Stacks have them, too, and no stack has lost a byte.
        for process in self.report(dump)["processes"]:
            self.assertEqual(sum(stack["live_bytes"] for stack in process["stacks"]), process["live_bytes"])
            self.assertTrue(process["vtables"]["complete"])
            self.assertGreater(process["vtables"]["read_bytes"], process["live_bytes"] // 2)
            told = sum(blocks for (_, known), (_, blocks) in books[process["pid"]].items() if known == "vtable")
            self.assertGreaterEqual(process["vtables"]["blocks"], told)
            sums = collections.Counter()
            for stack in process["stacks"]:
                sums[stack["type"], stack["type_known_by"]] += stack["live_bytes"]
            for (name, known), (count, _) in books[process["pid"]].items():
                if known == "vtable":
                    self.assertEqual(sums[name, known], count)

    def test_of_stripped_programs_by_their_type_information(self):
        linkers = [["-fuse-ld=lld"]] if shutil.which("ld.lld") else []
        for flags in ([], ["-Wl,-z,norelro"], ["-no-pie"], ["-Wl,-z,pack-relative-relocs"], ["-static-libstdc++", "-static-libgcc"], *linkers):
            with self.subTest(flags=flags):
                self.assert_told(*self.dumped(self.build("-O2", "-s", *flags), "--types=vtable"))

    def test_of_a_library_that_no_stack_goes_through_also_after_the_end(self):
        for name, text in LIBRARY.items():
            (self.folder / name).write_text(text)
        words = ["g++", "-O2", "-s", "-I", self.folder]
        subprocess.run([*words, "-shared", "-fPIC", "-o", self.folder / "libkept.so", self.folder / "kept.cc"], check=True)
        program = self.folder / "keeper"
        subprocess.run([*words, "-o", program, self.folder / "keeper.cc", "-L", self.folder, "-lkept", f"-Wl,-rpath,{self.folder}"], check=True)
        run = self.memlog(program, options=("-q", "--no-page", "--types=vtable", "--dump-interval=1"))
        self.assertEqual(run.code, 0)
        dumps = sorted(run.folder.glob("*.pftrace"))
        self.assertEqual({dump.name.split(".")[1] for dump in dumps}, {"interval", "exit"})
        for dump in dumps:  # read while it ran, and live at the end still
            row = self.rows(dump)["Kept", "vtable"]
            self.assertEqual((row["live_bytes"], row["live_blocks"]), (32 * 1000, 1000))

    def test_of_a_stopped_process(self):
        self.assert_told(*self.dumped(self.build("-O2"), "--types=vtable", "--whole=stop"))

    def test_estimates_within_their_standard_errors(self):
        dump, books = self.dumped(self.build("-O2"), "--types=vtable", "--memlog-sampling-rate=256")
        for pid, truths in books.items():
            rows = self.rows(dump, f"--pid={pid}")
            for (name, known), truth in truths.items():
                if known == "vtable":
                    row = rows[name, known]
                    for figure, number in zip(("live_bytes", "live_blocks"), truth):
                        variance = row[f"{figure}_error"] ** 2
                        self.assertGreater(variance, 0)
                        self.assertLessEqual(abs(deviations(row[figure], variance, number)), MOST_DEVIATIONS, (name, figure))

    def test_nothing_is_read_unasked(self):
        dump, _ = self.dumped(self.build("-O2"))
        self.assertNotIn("vtable", {known for _, known in self.rows(dump)})
        for process in self.report(dump)["processes"]:
            self.assertNotIn("vtables", process)

    def test_after_the_end_what_was_read_and_lives_still(self):
        run = self.memlog(self.build("-O2"), "300", options=("-q", "--no-page", "--types=vtable", "--whole-interval=20"))
        (dump,) = run.dumps()
        books = self.books(run.out)
        for (name, known), row in self.rows(dump).items():
            if known == "vtable" and name != "Plain":
                self.assertLessEqual(row["live_bytes"], sum(truths[name, known][0] for truths in books.values()))


if __name__ == "__main__":
    unittest.main()
