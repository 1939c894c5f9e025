"""Stacks through objects whose unwind tables have no index (.eh_frame_hdr), under memlog run. Attached ones are in attach_test.py."""
import subprocess
import unittest

import harness

SOURCE = """
#include <stdlib.h>
void *kept[100];
void inner(int i) { volatile char room[1000]; room[0] = 1; kept[i] = malloc(1000 + room[0]); }
void outer(int i) { volatile char room[300]; room[i] = 1; inner(i); room[0] = room[i]; }
int main(void) { for (int i = 0; i < 100; i++) outer(i); return kept[99] == NULL; }
"""
WORDS = ("gcc", "-xc", "-", "-O1", "-g", "-fno-inline", "-fno-optimize-sibling-calls", "-fomit-frame-pointer")


class Unindexed(harness.Case):
    def program(self, *options):
        program = self.folder / "program"
        subprocess.run([*WORDS, *options, "-o", str(program)], input=SOURCE.encode(), check=True)
        headers = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
        return program, "GNU_EH_FRAME" in headers

    def test_a_program_without_an_index(self):
        for options in ((), ("-no-pie",), ("-s",), ("-no-pie", "-Wl,-z,noseparate-code")):
            with self.subTest(options):
                program, has_index = self.program("-Wl,--no-eh-frame-hdr", *options)
                self.assertFalse(has_index)
                self.assert_whole(program, named="-s" not in options)

    def test_the_same_with_one(self):
        program, has_index = self.program()
        self.assertTrue(has_index)
        self.assert_whole(program)

    def assert_whole(self, program, named=True):
        run = self.memlog(program)
        self.assertEqual(run.code, 0, run.err)
        (entry,) = self.exit_report(run)["processes"]
        stacks = [stack for stack in entry["stacks"] if stack["total_blocks"] == 100]
        self.assertEqual(len(stacks), 1, entry["stacks"])
        frames = [frame["function"] for frame in stacks[0]["frames"]]
        if named:
            self.assertEqual(frames[:3], ["inner", "outer", "main"])
        self.assertGreaterEqual(len(frames), 5, frames)  # and libc's, behind main


if __name__ == "__main__":
    unittest.main()
