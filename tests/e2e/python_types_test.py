"""Types of Python's objects, which each of them holds: held against what the interpreter itself counts."""
import collections
import csv
import json
import re
import shutil
import subprocess
import unittest

import browsing
import harness

# Free lists are drained first, so that each new object is a new block. Of what has a block of its own besides, as lists have, the object's
# own bytes are its type's.
OBJECTS = """
import gc, json, os, sys
from collections import deque
gc.disable()
class Own:
    __slots__ = ("one",)
make = {
    "list": lambda i: [], "dict": lambda i: {}, "set": lambda i: set(), "tuple": lambda i: (make,) * 7, "float": lambda i: i + 0.25,
    "bytes": lambda i: bytes(300), "str": lambda i: "%04d" % i * 50, "int": lambda i: int.from_bytes(b"x" * 40, "big"),
    "bytearray": lambda i: bytearray(), "collections.deque": lambda i: deque(), "Own": lambda i: Own(),
}
HEAD = 16  # of the collector's, in front of what it may have to look at
heads = {"list": HEAD, "dict": HEAD, "set": HEAD, "collections.deque": HEAD, "Own": HEAD, "bytearray": 0}
counts = {name: 1000 + 10 * at for at, name in enumerate(make)}
kept = {name: [None] * count for name, count in counts.items()}
def fill(name):
    for i in range(counts[name]):
        kept[name][i] = make[name](i)
plugs = [[[], {}, set(), i + 0.5, (make,) * 7] for i in range(3000)]
print("ready", flush=True)
os.read(0, 1)
for name in make:
    fill(name)
print("made", flush=True)
os.read(0, 1)
print(json.dumps({name: (len(all), sum(type(one).__basicsize__ + heads[name] if name in heads else sys.getsizeof(one) for one in all))
                  for name, all in kept.items()}))
"""


HEAP_TYPE = 1 << 9  # of a type's flags: it is made at run time
FIGURES = ("live_blocks", "live_bytes", "peak_bytes", "total_bytes")


class PythonTypes(harness.Case):
    def rows(self, page):
        """A dump of now, by type."""
        made = page.json("/api/v1/dumps", "POST")
        (dump,) = self.dumps.glob(f"{made['id']}.*")
        answer = subprocess.run([harness.MEMLOG, "report", "--csv", "--by=type", dump], env=self.environment(), stdout=subprocess.PIPE, text=True, check=True)
        rows = {(row["name"], row["module"]): {figure: int(row[figure]) for figure in FIGURES} for row in csv.DictReader(answer.stdout.splitlines())}
        for (_, known), row in rows.items():
            if known == "python":  # nobody knows what of it was at the peak, or was ever allocated
                self.assertEqual((row["peak_bytes"], row["total_bytes"]), (0, 0))
        return rows

    def run_objects(self, python="/usr/bin/python3", types="python", **more):
        """Rows by type before the objects are made, and after; and how many of each type were made, with their bytes."""
        self.dumps = self.folder / "dumps"
        process = subprocess.Popen([harness.MEMLOG, "run", f"--types={types}", "-o", self.dumps, "--", python, "-c", OBJECTS],
                                   env=self.environment(**more), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: process.poll() is not None or process.communicate())  # its input ends, and so it does
        page = browsing.Page(re.search(r"http\S+", process.stderr.readline())[0])
        self.assertEqual(process.stdout.readline(), "ready\n")
        before = self.rows(page)
        process.stdin.write("x")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "made\n")
        after = self.rows(page)
        out, err = process.communicate("x", harness.TIMEOUT)
        self.assertEqual(process.returncode, 0, err)
        shutil.rmtree(self.dumps)  # their whole reports, which each test reads at its end, take minutes
        return before, after, json.loads(out)

    def made(self, before, after):
        """(blocks, bytes) more than before, by type."""
        nothing = dict.fromkeys(FIGURES, 0)
        return {name: tuple(row[figure] - before.get((name, known), nothing)[figure] for figure in ("live_blocks", "live_bytes"))
                for (name, known), row in after.items() if known == "python"}

    def test_each_type_to_the_byte(self):
        before, after, truth = self.run_objects(PYTHONMALLOC="malloc")
        made = self.made(before, after)
        own = truth.pop("Own")  # a class of the program's own lies in no file,
        if collections.deque.__flags__ & HEAP_TYPE:  # as, from Python 3.12 on, some of its library's
            del truth["collections.deque"]
        self.assertEqual({name: made.get(name) for name in truth}, {name: tuple(figures) for name, figures in truth.items()})
        self.assertNotIn("Own", made)
        self.assertGreaterEqual(after["[no type]", ""]["live_bytes"] - before["[no type]", ""]["live_bytes"], own[1])
        # What the interpreter is made of has types as well, and none of them is C++'s.
        self.assertGreater(after["function", "python"]["live_blocks"], 500)
        self.assertEqual({known for _, known in after} - {"", "frames", "constructor"}, {"python"})

    def test_only_what_malloc_makes_is_known(self):
        before, after, truth = self.run_objects()  # Python's own allocator has all up to 512 bytes
        made = self.made(before, after)
        # The interpreter may make a larger one meanwhile, of its own.
        self.assertEqual({name: made.get(name, (0, 0)) for name in truth if made.get(name, (0, 0))[0] > 1}, {})

    def test_vtables_are_no_types_of_python(self):
        _, after, _ = self.run_objects(types="vtable", PYTHONMALLOC="malloc")
        self.assertNotIn("python", {known for _, known in after})


if __name__ == "__main__":
    unittest.main(verbosity=2)
