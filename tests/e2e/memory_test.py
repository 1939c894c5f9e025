"""Whose each resident byte of a process is: a program that knows its own memory, held to the kernel's figures and to its own."""
import csv
import io
import json
import pathlib
import re
import subprocess
import unittest

import harness

# Blocks of which every second is freed; a mapping half touched; a shared one; a file's copy; then it stands still.
ORACLE = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { BLOCKS = 20000, SIZE = 1000, MIB = 1 << 20, UNTOUCHED = 64 * MIB };
static char *blocks[BLOCKS];
int main(void) {
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(SIZE);
        memset(blocks[i], 1, SIZE);
    }
    for (int i = 0; i < BLOCKS; i += 2) {
        free(blocks[i]);
    }
    char *large = malloc(UNTOUCHED); /* requested, and one part of 16 of it touched */
    memset(large, 1, UNTOUCHED / 16);
    char *mapped = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(mapped, 1, 4 * MIB);
    char *shared = mmap(NULL, 3 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(shared, 1, 3 * MIB);
    puts("ready");
    fflush(stdout);
    (void)!getchar();
    return large == mapped;
}
"""


def smaps(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps").read_text()

    def total(key):
        return 1024 * sum(int(kib) for kib in re.findall(rf"^{key}: +(\d+) kB$", text, re.M))

    return {
        "private_bytes": total("Private_Clean") + total("Private_Dirty"),
        "shared_bytes": total("Shared_Clean") + total("Shared_Dirty"),
        "proportional_bytes": total("Pss"),
        "swapped_bytes": total("Swap"),
    }


class Memory(harness.Case):
    def start(self):
        source = self.folder / "oracle.c"
        source.write_text(ORACLE)
        harness.run_words(["gcc", "-O1", "-fno-builtin", "-o", str(self.folder / "oracle"), str(source)], self.folder, None, b"", harness.TIMEOUT)
        process = self.memlog_start(str(self.folder / "oracle"), stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def command(self, *words):
        answer = harness.run_words([str(harness.MEMLOG), *words], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout

    def end(self, process):
        process.communicate(b"\n", harness.TIMEOUT)

    def entry_of(self, dump):
        return next(one for one in self.report(dump)["processes"] if one["name"] == "oracle")

    def assert_adds_up(self, memory):
        for figure in ("private_bytes", "shared_bytes", "proportional_bytes", "swapped_bytes"):
            self.assertEqual(sum(one[figure] for one in memory["components"]), memory[figure], figure)

    def test_each_resident_byte_of_a_program_that_stands_still_has_its_owner(self):
        process = self.start()
        pid = json.loads(self.command("ps", "--json"))["processes"][0]["pid"]
        before = smaps(pid)
        self.command("dump")
        (dump,) = self.folder.glob("dumps*/*.manual.pftrace")
        entry = self.entry_of(dump)
        self.end(process)
        memory = entry["memory"]
        self.assert_adds_up(memory)
        self.assertTrue(memory["heap_known"])
        self.assertFalse(memory["heap_estimated"])
        self.assertEqual(memory["moved_bytes"], 0)
        # What is shared with other processes changes with them; what is its own does not.
        for figure in ("private_bytes", "swapped_bytes"):
            self.assertEqual(memory[figure], before[figure], figure)
        private = {one["name"]: one["private_bytes"] for one in memory["components"]}
        # The blocks are resident as a whole, of the large one what was touched.
        blocks = 10000 * 1000 + (64 << 20) // 16
        self.assertGreaterEqual(private["heap"], blocks)
        self.assertLess(private["heap"], blocks + (200 << 10))
        # As many were freed, and each has its header of 8 and is rounded up to 16 bytes.
        self.assertGreaterEqual(private["allocator slack"], 10000 * 1000)
        self.assertLess(private["allocator slack"], 10000 * 1000 + 20000 * 16 + (400 << 10))
        rows = csv.DictReader(io.StringIO(self.command("list", "--csv", str(dump)).decode()))
        loaders = sum(int(row["private_bytes"]) for row in rows if row["name"] == "loader" and row["component"] == "mapped")
        self.assertIn(loaders // 4096, range(1, 16))
        self.assertEqual(private["mapped"], (4 << 20) + loaders)
        self.assertEqual(private["other anonymous"], 0)
        self.assertEqual(private["shared memory"], 3 << 20)
        self.assertRegex(self.command("expand", "mapped", str(dump)).decode(), r"\n +4\.0 MiB +99\.\d% +main +oracle\n")

    def test_after_its_end_the_dump_has_its_memory_when_that_was_largest(self):
        process = self.start()
        self.command("dump")
        self.end(process)
        (dump,) = self.folder.glob("dumps*/*.exit.pftrace")
        entry = self.entry_of(dump)
        self.assert_adds_up(entry["memory"])
        self.assertGreater(entry["memory"]["private_bytes"], 30 << 20)
        answer = harness.run_words([str(harness.MEMLOG), "report", "--full", str(dump)], self.folder, self.environment(), b"", harness.TIMEOUT)
        words = " ".join(answer.stdout.decode().split())
        self.assertRegex(words, r"private 3\d\.\d MiB = 1\d\.\d heap \+ .* slack \+ .*3\.0 shared")


if __name__ == "__main__":
    unittest.main()
