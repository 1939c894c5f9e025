"""Lengths of instructions, and where they lead, against Zydis: not one may differ.

In every run the first MiBs of Debian's libraries and of Chromium. By hand all of them: tests/base/entry/lengths_test.py FILE...
"""
# runner: no second chance
import glob
import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
OUT = pathlib.Path(os.environ.get("MEMLOG_TEST_OUT", ROOT / "out")).resolve()
CHECK = OUT / "lengths_check"

BYTES = 2 << 20
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
FILES = (f"{LIBRARIES}/libc.so.6", f"{LIBRARIES}/libstdc++.so.6", "/usr/bin/python3", "/usr/lib/chromium/chromium")
ALLOCATORS = ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.[23]*")

# Of a million: 5 of Chromium's 63 million are not known, data between its functions and one function for AMD's processors.
UNKNOWN_PER_MILLION = 10


def compare(path, count_bytes=None):
    command = [str(CHECK), path] + ([str(count_bytes)] if count_bytes else [])
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout), run.stderr


class Lengths(unittest.TestCase):
    def check(self, path, count_bytes):
        counts, told = compare(path, count_bytes)
        self.assertGreater(counts["instructions"], 5000, path)
        self.assertEqual(counts["differing"], 0, f"{path}:\n{told}")
        self.assertLessEqual(counts["unknown"], 1 + UNKNOWN_PER_MILLION * counts["instructions"] / 1e6, f"{path}:\n{told}")

    def test_no_instruction_of_libraries_and_programs_has_another_length(self):
        for path in FILES:
            with self.subTest(path):
                self.check(path, BYTES)

    def test_no_instruction_of_the_allocators_is_unknown(self):
        for name in ALLOCATORS:
            found = sorted(glob.glob(f"{LIBRARIES}/{name}"))
            self.assertTrue(found, f"no {name}: tools/dev/setup test")
            counts, told = compare(found[0])
            self.assertEqual((counts["differing"], counts["unknown"]), (0, 0), f"{name}:\n{told}")


def main():
    if len(sys.argv) == 1 or sys.argv[1].startswith("-"):
        unittest.main()
    failed = False
    for path in sys.argv[1:]:
        counts, told = compare(path)
        print(path, json.dumps(counts))
        print(told, end="", file=sys.stderr)
        failed = failed or counts["differing"] != 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
