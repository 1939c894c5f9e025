"""Types of blocks that no program reports: by the frames that allocate them, held against a program that counts its own (corpus/types.cc)."""
import collections
import json
import pathlib
import re
import subprocess
import unittest

import harness

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
LINE = re.compile(r"(\d+) (\S+) (\d+) (\d+) (.+)")


class Case(harness.Case):
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

    def test_a_focus_narrows_types_too(self):
        dump, books = self.assert_told("-g", "-O2")
        rows = self.rows(dump, "--focus=World::make")
        for key in next(iter(books.values())):
            if key[1] != "vtable":
                self.assertEqual(rows[key]["live_bytes"], sum(truths[key][0] for truths in books.values()))
        self.assertEqual({known for _, known in self.rows(dump, "--ignore=World|Kept")}, {""})


if __name__ == "__main__":
    unittest.main()
