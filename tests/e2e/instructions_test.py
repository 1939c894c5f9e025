"""How many instructions the client adds to an allocation or free, counted by callgrind: the same on every machine, whatever else runs.
What they cost in time, tools/bench tells."""
import os
import re
import subprocess
import unittest

import harness

CALLGRIND = "/usr/libexec/valgrind/callgrind-amd64-linux"  # itself static: the preload is its guest's alone
# Some 5 % above what it was: 153 for the shortest of stacks, 190 for sqlite3's 14 frames, both known from before.
TIGHT_MOST = 161
SQLITE_MOST = 200
# By hooked entries 162 in the tight loop, within a tenth of what names cost. Passed over by sampling: 23, the jumps there and back included,
# where names cost 12.7. Under glibc 2.43, whose own malloc takes more or less from run to run, up to 172, and 22 to 26.
ENTRIES_MOST = 176
ENTRIES_PASSED_MOST = 28
NAMES_PASSED_MOST = 13.5
# To decide by chance whether a recorded call is timed, and what one of sixteen does then.
MEASURED_MOST = 30
START_MOST = 130000  # in a program with few libraries
# A block that a program reports itself, with the loop and the call: 170. malloc's event has 153, and its own call beside.
REPORTED_MOST = 176
REPORTED = """
#define MEMLOG_WEAK
#include "client/memlog.h"
#include <stdlib.h>
int main(int count, char **words) {
    uint32_t heap = memlog_heap ? memlog_heap("own", 1) : 0;
    for (uint64_t i = 1, end = count > 1 ? strtoull(words[1], NULL, 10) : 0; i <= end && memlog_alloc; i++) {
        memlog_alloc(heap, i << 4, 64);
        memlog_free(heap, i << 4);
    }
    return 0;
}
"""


def sqlite(rows):
    rows = f"with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows}) select sum(length(hex(i) || 'x')) from n;"
    return ["/usr/bin/sqlite3", ":memory:", rows]


@unittest.skipUnless(os.path.exists(CALLGRIND), "valgrind is not installed")
class Instructions(harness.Case):
    def counted(self, program, preloaded, *options):
        """(instructions, records in the stream) of the program's run."""
        words = [CALLGRIND, "--tool=callgrind", f"--callgrind-out-file={self.folder}/counts", *program]
        tool = [harness.OUT / "capture_tool", *options] if preloaded else []
        environment = self.environment(VALGRIND_LAUNCHER="/usr/bin/valgrind.bin")
        answer = subprocess.run(
            [*tool, *words], cwd=harness.OUT, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        self.assertEqual(answer.returncode, 0, answer.stderr)
        instructions = int(re.search(r"Collected : (\d+)", answer.stderr)[1])
        records = re.search(r"(\d+) records", answer.stderr) if preloaded else None
        return instructions, int(records[1]) if records else 0

    def added(self, few, many, *options):
        """Instructions that the client adds to an event: by two runs of different length, so that starts cancel out."""
        bare = self.counted(many, False)[0] - self.counted(few, False)[0]
        with_few, few_records = self.counted(few, True, *options)
        with_many, many_records = self.counted(many, True, *options)
        self.assertGreater(many_records, few_records + 50000)
        return (with_many - with_few - bare) / (many_records - few_records)

    def added_by_passing(self, name):
        """The same where nearly all calls are passed over: by calls, not by records, of which there are a few."""
        (few, many), runs = (10000, 60000), {}
        for preloaded in (False, True):
            runs[preloaded] = [
                self.counted([str(harness.OUT / name), str(pairs)], preloaded, "--entries", "--sampling=524288") for pairs in (few, many)
            ]
        self.assertGreater(runs[True][1][1], runs[True][0][1])  # some are recorded
        self.assertLess(runs[True][1][1], 1000)
        bare, recorded = (run[1][0] - run[0][0] for run in (runs[False], runs[True]))
        return (recorded - bare) / (many - few) / 2

    def test_a_tight_loop_by_entries(self):
        tight = str(harness.OUT / "bench-tight-inside")
        added = self.added([tight, "10000"], [tight, "60000"], "--entries")
        self.assertLess(added, ENTRIES_MOST)
        self.assertGreater(added, 50)

    def test_calls_that_sampling_passes_over(self):
        by_names, by_entries = self.added_by_passing("bench-tight"), self.added_by_passing("bench-tight-inside")
        self.assertLess(by_names, NAMES_PASSED_MOST)
        self.assertLess(by_entries, ENTRIES_PASSED_MOST)
        self.assertGreater(by_entries, by_names)  # by two jumps and a guard

    def test_measuring_the_cost(self):
        """What --overhead adds: nothing to a call that is passed over, little to one that is recorded."""
        tight = str(harness.OUT / "bench-tight")
        runs = [self.added([tight, "10000"], [tight, "60000"], "--sampling=64", *more) for more in ([], ["--measures"])]
        self.assertLess(runs[1] - runs[0], MEASURED_MOST)
        self.assertGreater(runs[1], runs[0])

    def test_a_tight_loop(self):
        tight = str(harness.OUT / "bench-tight")
        added = self.added([tight, "10000"], [tight, "60000"])
        self.assertLess(added, TIGHT_MOST)
        self.assertGreater(added, 50)  # or it was not there at all

    def test_a_block_that_the_program_reports(self):
        source, program = self.folder / "reported.c", self.folder / "reported"
        source.write_text(REPORTED, encoding="utf-8")
        subprocess.run(["gcc", "-O2", f"-I{harness.ROOT}", "-o", str(program), str(source)], check=True)
        reported = self.added([str(program), "10000"], [str(program), "60000"])
        self.assertLess(reported, REPORTED_MOST)
        self.assertGreater(reported, 50)

    def test_a_real_program(self):
        added = self.added(sqlite(2000), sqlite(40000))
        self.assertLess(added, SQLITE_MOST)
        self.assertGreater(added, 50)

    def test_a_programs_start(self):
        added = self.counted(["/bin/true"], True)[0] - self.counted(["/bin/true"], False)[0]
        self.assertLess(added, START_MOST)
        self.assertGreater(added, 20000)


if __name__ == "__main__":
    unittest.main()
