"""Which stacks' blocks pin pages, to the byte: a program that tells where its blocks lie, and the pages counted once more here."""
import collections
import csv
import io
import re
import subprocess
import unittest

import harness
import pages

PAGE = 4096
PROGRAM = harness.PROGRAMS / "oracle" / "fragments"
KINDS = ("small", "mixed", "large")


FORKS = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { COUNT = 100000, SIZE = 100 };
static char *blocks[COUNT];
int main(void) {
    char byte;
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = memset(malloc(SIZE), 1, SIZE);
    }
    for (int i = 0; i < COUNT; i += 2) {
        free(blocks[i]);
    }
    if (fork() == 0) {
        for (int i = 0; i < COUNT; i += 50) {
            blocks[i] = memset(malloc(SIZE), 1, SIZE);
        }
        (void)!write(1, "ready\n", 6);
    }
    (void)!read(0, &byte, 1);
    return 0;
}
"""


def parts(address, count_bytes):
    """(page, bytes of it) of a block."""
    end = address + count_bytes
    while address < end:
        to = min(end, (address // PAGE + 1) * PAGE)
        yield address // PAGE, to - address
        address = to


def expected(lines):
    """What each kind's blocks hold: resident, of pages that are theirs alone, and their share of the pages' rest."""
    touched = set()
    blocks = []
    for kind, address, count_bytes, touched_bytes in lines:
        touched.update(page for page, _ in parts(address, touched_bytes))
        blocks.append((address, count_bytes, kind))
    pages = collections.defaultdict(list)
    for address, count_bytes, kind in sorted(blocks):
        for page, part in parts(address, count_bytes):
            if page in touched:
                pages[page].append((kind, part))
    figures = {kind: collections.Counter() for kind in KINDS}
    for holders in pages.values():
        used = sum(part for _, part in holders)
        left = PAGE - used
        for kind, part in holders:
            figures[kind]["resident_bytes"] += part
        for kind, part in holders[1:]:
            share = (PAGE - used) * part // used
            figures[kind]["waste_bytes"] += share
            left -= share
        figures[holders[0][0]]["waste_bytes"] += left
        if len({kind for kind, _ in holders}) == 1:
            figures[holders[0][0]]["pinned_bytes"] += PAGE
    return figures


class Pins(harness.Case):
    @classmethod
    def setUpClass(cls):
        pages.install()

    def start(self, count=400000, every=64):
        self.lines = self.folder / "live.txt"
        process = self.memlog_start(PROGRAM, str(count), str(every), str(self.lines), stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def live(self):
        for line in self.lines.read_text().splitlines():
            kind, *numbers = line.split()
            yield (kind, *map(int, numbers))

    def command(self, *words):
        answer = harness.run_words([str(harness.MEMLOG), *map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout.decode()

    def dump_now(self):
        self.command("dump")
        (dump,) = self.folder.glob("dumps*/*.manual.pftrace")
        return dump

    def figures_of(self, stacks):
        figures = {kind: collections.Counter() for kind in KINDS}
        for stack in stacks:
            functions = [frame["function"] for frame in stack["frames"]]
            (kind,) = [name for name in KINDS if name in functions]
            for figure in ("resident_bytes", "pinned_bytes", "waste_bytes"):
                figures[kind][figure] += stack[figure]
        return figures

    def test_each_stack_has_its_pages_to_the_byte(self):
        process = self.start()
        dump = self.dump_now()
        report = self.report(dump)
        process.communicate(b"\n", harness.TIMEOUT)
        (entry,) = report["processes"]
        wanted = expected(self.live())
        self.assertGreater(wanted["small"]["waste_bytes"], 10 << 20)
        self.assertGreater(wanted["large"]["pinned_bytes"], 1 << 20)
        self.assertEqual(self.figures_of(entry["stacks"]), wanted)
        self.assertEqual(self.figures_of(report["tree"]["stacks"]), wanted)
        sums = {figure: sum(one[figure] for one in wanted.values()) for figure in wanted["small"]}
        self.assertEqual(entry["memory"]["heap_pages"], sums)
        self.assertEqual(report["tree"]["heap_pages"], sums)
        (heap,) = [one for one in entry["memory"]["components"] if one["name"] == "heap"]
        self.assertEqual(heap["private_bytes"] + heap["shared_bytes"], sums["resident_bytes"])
        self.check_forms(dump, sums)
        self.check_graph(dump, sums)

    def check_forms(self, dump, sums):
        figures = {"resident": "resident_bytes", "waste": "waste_bytes", "alone": "pinned_bytes"}
        for metric, figure in figures.items():
            lines = self.command("convert", "--to=collapsed", f"--metric={metric}", dump).splitlines()
            self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in lines), sums[figure], metric)
            rows = csv.DictReader(io.StringIO(self.command("report", "--csv", "--by=function", f"--metric={metric}", dump)))
            self.assertEqual(sum(int(row[figure]) for row in rows), sums[figure], metric)
        target = self.folder / "pages.pb.gz"
        self.command("convert", "--to=pprof", "--metric=waste", "-o", target, dump)
        words = [str(harness.pprof()), "-raw", str(target)]
        raw = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT).stdout.decode()
        for index, figure in (("resident_space", "resident_bytes"), ("waste_space", "waste_bytes")):
            types = re.search(r"Samples:\n(.*)", raw)[1].replace("[dflt]", "").split()
            at = types.index(f"{index}/bytes")
            rows = [row.split() for row in re.findall(r"^ +([-\d ]+): ", raw.partition("Locations\n")[0], re.M)]
            self.assertEqual(sum(int(row[at]) for row in rows), sums[figure], index)

    def check_graph(self, dump, sums):
        self.command("flamegraph", "-o", "flame.html", dump)
        answer = pages.look("flame.js", self.folder, "flame.html", None)
        self.assertEqual(answer["complaints"], [])
        self.assertEqual(answer["metrics"][6:], ["Resident bytes", "Waste bytes", "Alone bytes"])
        self.assertIn("metric=waste-bytes", answer["waste"]["hash"])
        self.assertIn(f"waste: {sums['waste_bytes'] / (1 << 20):.1f} MiB", answer["waste"]["figures"])
        self.assertEqual(answer["wasteful"]["width"], sums["waste_bytes"])
        self.assertEqual(answer["wasteful"]["values"][6:], [sums[figure] for figure in ("resident_bytes", "waste_bytes", "pinned_bytes")])

    def test_the_report_says_who_pins_pages_also_after_the_end(self):
        process = self.start()
        dump = self.dump_now()
        process.communicate(b"\n", harness.TIMEOUT)
        (last,) = self.folder.glob("dumps*/*.exit.pftrace")
        wanted = expected(self.live())
        text = self.command("report", "--full", dump)
        self.assertRegex(text, r"Who pins pages  blocks use .* of their pages' ")
        row = re.search(r"^ +requested.*\n +([\d.]+ KiB) +\1 +[\d.]+ MiB +([\d.]+) MiB   small < main", text, re.M)
        self.assertEqual(float(row[2]), round(wanted["small"]["waste_bytes"] / (1 << 20), 1))
        self.assertNotIn("of ended processes", text)
        # At its largest, and so it said then: it has not changed since it was looked at.
        text = self.command("report", "--full", last)
        self.assertIn("of ended processes: when their private memory was largest", text)
        self.assertEqual(self.figures_of(self.report(last)["processes"][0]["stacks"]), wanted)

    def test_of_a_forked_child_nobody_knows_what_lies_beside_its_blocks(self):
        """Its parent's blocks do, and they are not its own: what they hold is not its waste."""
        source = self.folder / "forks.c"
        source.write_text(FORKS)
        harness.run_words(["gcc", "-O1", "-fno-builtin", "-o", str(self.folder / "forks"), str(source)], self.folder, None, b"", harness.TIMEOUT)
        process = self.memlog_start(self.folder / "forks", stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        dump = self.dump_now()
        report = self.report(dump)
        process.communicate(b"\n", harness.TIMEOUT)
        parent, child = sorted(report["processes"], key=lambda one: one["inherited_bytes"])
        self.assertEqual(child["memory"]["heap_pages"], {"resident_bytes": child["live_bytes"], "pinned_bytes": None, "waste_bytes": None})
        self.assertTrue(all(stack["waste_bytes"] is None for stack in child["stacks"]))
        self.assertGreater(parent["memory"]["heap_pages"]["waste_bytes"], 1 << 20)
        self.assertEqual(report["tree"]["heap_pages"]["waste_bytes"], parent["memory"]["heap_pages"]["waste_bytes"])
        text = self.command("report", "--full", dump)
        self.assertIn("not known of 1 forked process: blocks of the parent lie there, too", text)

    def test_what_a_dump_does_not_know_it_does_not_tell(self):
        run = self.memlog(PROGRAM, "1000", "10", str(self.folder / "live.txt"), options=("-q", "--no-page", "--memlog-sampling-rate=64"), stdin=b"\n")
        (dump,) = run.dumps()
        report = self.report(dump)
        self.assertIsNone(report["tree"]["heap_pages"])
        self.assertFalse(any("waste_bytes" in stack for stack in report["tree"]["stacks"]))
        self.assertNotIn("Who pins pages", self.command("report", "--full", dump))
        for words in (["report", "--metric=waste"], ["flamegraph", "--metric=resident", "-o", "x.html"], ["convert", "--to=collapsed", "--metric=alone"]):
            answer = harness.run_words([str(harness.MEMLOG), *words, str(dump)], self.folder, self.environment(), b"", harness.TIMEOUT)
            self.assertEqual(answer.returncode, 3, words)
            self.assertIn(b"is not known in this dump", answer.stderr)


if __name__ == "__main__":
    unittest.main()
