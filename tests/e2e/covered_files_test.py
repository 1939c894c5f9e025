"""Pages of files need no heap to explain them, also where nobody has read of which mappings private memory is: a program that ends soon, and
--whole=off."""
import unittest

import harness

MIB = 1 << 20

# Touches all of a file (written: changes each page of it, which is then no page of the file's), or maps as much unseen; lives for so long.
TOUCHES = """
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
    const size_t bytes = 24 << 20;
    const int is_file = words[1][0] != 'u', is_written = words[1][0] != 'r';
    const int fd = is_file ? open(words[2], O_RDONLY) : -1;
    char *at = (char *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | (is_file ? 0 : MAP_ANONYMOUS), fd, 0);
    volatile char seen = 0;
    for (size_t i = 0; i < bytes; i += 4096) {
        if (is_written) {
            at[i] = 1;
        }
        seen = at[i];
    }
    free(malloc(1000));
    usleep(1000 * atoi(words[3]));
    return seen < 0;
}
"""


class CoveredFiles(harness.Case):
    def setUp(self):
        super().setUp()
        source = self.folder / "touches.c"
        source.write_text(TOUCHES)
        harness.run_words(["gcc", "-O1", "-o", str(self.folder / "touches"), str(source)], self.folder, None, b"", harness.TIMEOUT)
        self.file = self.folder / "file"
        self.file.write_bytes(b"x" * (24 * MIB))

    def touches(self, what, lives_ms, *options):
        report = self.exit_report(self.memlog(str(self.folder / "touches"), what, str(self.file), str(lives_ms), options=options))
        (entry,) = report["processes"]
        return entry["coverage"], report["dump"]

    def test_without_readings_of_mappings_a_file_is_told_from_the_heap(self):
        coverage, dump = self.touches("read", 1000, "--whole=off")
        self.assertGreaterEqual(coverage["private_bytes"], 24 * MIB)
        self.assertGreaterEqual(coverage["files_bytes"], 23 * MIB)
        self.assertLess(coverage["files_bytes"], coverage["private_bytes"])
        self.assertEqual(coverage["unseen"], "")
        self.assertTrue(dump["covered"])

    def test_without_readings_of_mappings_anonymous_memory_is_nobodys(self):
        for what in ("unseen", "written"):
            with self.subTest(what):
                coverage, dump = self.touches(what, 1000, "--whole=off")
                self.assertGreaterEqual(coverage["private_bytes"], 24 * MIB)
                self.assertLess(coverage["files_bytes"], 4 * MIB)
                self.assertRegex(coverage["unseen"], r"^of 2\d\.\d MiB private memory the heap explains ")
                self.assertFalse(dump["covered"])

    def test_a_large_program_that_ends_soon_has_its_mappings_read(self):
        """By the first look at its memory. It may end between the two readings, or before the first."""
        for _ in range(20):
            coverage, dump = self.touches("written", 6, "--whole-interval=60000")
            if coverage["files_bytes"] >= 8 * MIB:
                self.assertEqual(coverage["unseen"], "")
                self.assertTrue(dump["covered"])
                return
        self.fail("its mappings were never read")


if __name__ == "__main__":
    unittest.main()
