"""What reading a dump may take of memory: by what stands in it, not by what the program held."""
import importlib.machinery
import importlib.util
import subprocess

import harness

# What 100,000 stacks over 50 processes may take, named.
BOUND_MIB = 300

# Allocates and keeps COUNT blocks from four places.
KEEPER = """
#include <stdlib.h>
static void *volatile kept;
#define KEEP(n) __attribute__((noinline)) static void keep_##n(void) { kept = malloc(n); __asm__ volatile("" ::: "memory"); }
KEEP(16) KEEP(32) KEEP(48) KEEP(64)
int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0;
    for (long i = 0; i < count; i += 4) { keep_16(); keep_32(); keep_48(); keep_64(); }
    return 0;
}
"""


def load_measure():
    loader = importlib.machinery.SourceFileLoader("measure_report", str(harness.ROOT / "tools/dev/measure_report"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("measure_report", loader))
    loader.exec_module(module)
    return module


class ReportMemory(harness.Case):
    symbol_cache = "off"

    def setUp(self):
        super().setUp()
        self.measure = load_measure()

    def peak_mib(self, dump, *words):
        answer = self.measure.measure([harness.OUT / "memlog-analyzer", *(words or ["report"]), dump], {"MEMLOG_SYMBOL_CACHE": str(self.folder / "cache")})
        return answer[2]

    def test_a_large_dump_is_read_within_its_bound(self):
        places = self.folder / "places"
        places.write_text("\n".join(self.measure.places_of(harness.OUT / "memlog-analyzer")) + "\n")
        dump = self.folder / "large.pftrace"
        subprocess.run([harness.OUT / "write_synthetic", dump, "50", "6000", "2000", places], check=True)
        for words in (["report"], ["report"], ["report", "--json"], ["convert", "--to=pprof", "-o", self.folder / "answer"]):
            self.assertLess(self.peak_mib(dump, *words), BOUND_MIB, words)
        self.assertTrue(list((self.folder / "cache").glob("*.names")))

    def test_it_does_not_grow_with_the_blocks_that_live(self):
        source, program = self.folder / "keeper.c", self.folder / "keeper"
        source.write_text(KEEPER)
        subprocess.run(["gcc", "-O1", "-g", "-o", program, source], check=True)
        few, many = (self.memlog(program, count).dumps()[0] for count in ("400", "400000"))
        self.assertEqual(harness.shown(self.report(many), "live_blocks") - harness.shown(self.report(few), "live_blocks"), 399600)
        # Names are looked up by neither: only the first would open what they stand in.
        for dump in (few, many):
            self.peak_mib(dump)
        # A thousand times the blocks: nothing of it but what numbers with more digits take, and the pages of a process vary.
        self.assertLess(self.peak_mib(many), self.peak_mib(few) + 4)


if __name__ == "__main__":
    import unittest

    unittest.main(verbosity=2)
