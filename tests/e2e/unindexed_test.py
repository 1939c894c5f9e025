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
# With 32 MiB of data, of which the program reads a byte.
LIBRARY = """
#include <stdlib.h>
extern void *kept[100];
void inner(int i) { volatile char room[1000]; room[0] = 1; kept[i] = malloc(1000 + room[0]); }
void outer(int i) { volatile char room[300]; room[i] = 1; inner(i); room[0] = room[i]; }
"""
DATA = """
__asm__(".section .rodata\\n.balign 4096\\n.globl data\\n.type data, @object\\n.size data, 32 << 20\\ndata: .fill 32 << 20, 1, 7\\n.previous");
"""
# Calls it, and says how much of it is in memory, in KiB.
USER = """
#include <stdio.h>
#include <string.h>
extern const char data[];
void *kept[100];
#ifdef CALLS
void outer(int i);
#else
static void outer(int i) { kept[i] = NULL; }
#endif
int main(void) {
    char line[4096];
    unsigned long kib = 0, sum = 0;
    int here = 0;
    if (data[0] != 7) return 1;
    for (int i = 0; i < 100; i++) outer(i);
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof(line), maps) != NULL) {
        if (strchr(line, '-') != NULL && strchr(line, '/') != NULL) here = strstr(line, "libof_data.so") != NULL;
        if (here && sscanf(line, "Rss: %lu", &kib) == 1) sum += kib;
    }
    printf("%lu\\n", sum);
    return 0;
}
"""
# Where a page is read the kernel may bring 2 MiB around it.
FEW_KIB = 8 << 10
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

    def with_library(self, source, *options):
        """A program, and its library, which has no index."""
        library, program = self.folder / "libof_data.so", self.folder / "user"
        here = ("-L", str(self.folder), "-Wl,-rpath," + str(self.folder))
        subprocess.run([*WORDS, "-shared", "-fPIC", "-Wl,--no-eh-frame-hdr", "-o", library], input=source.encode(), check=True)
        subprocess.run([*WORDS, "-fPIC", *options, "-o", program, *here, "-lof_data"], input=USER.encode(), check=True)
        return program

    def test_a_library_of_data_is_not_read(self):
        """As ICU's: 31 MB, and no function. What memlog reads at a start is memory that the program would not have."""
        program = self.with_library(DATA)
        alone = int(subprocess.run([program], capture_output=True, check=True).stdout)
        run = self.memlog(program)
        self.assertEqual(run.code, 0, run.err)
        self.assertTrue(0 < alone < FEW_KIB, alone)
        self.assertLess(int(run.out), FEW_KIB)

    def test_a_library_with_much_data_in_front_of_its_table(self):
        program = self.with_library(LIBRARY + DATA, "-DCALLS")
        self.assertLess(int(self.assert_whole(program).out), FEW_KIB)

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
        return run


if __name__ == "__main__":
    unittest.main()
