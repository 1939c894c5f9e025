"""What `memlog convert` writes, read by others: pprof (built from Debian's source package) and anything that takes collapsed stacks."""
import collections
import os
import re
import unittest

import harness

SAMPLE_TYPES = ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"]
FIGURES = ["total_blocks", "total_bytes", "live_blocks", "live_bytes"]


class Convert(harness.Case):
    @classmethod
    def setUpClass(cls):
        """No network: the source and all it needs come from golang-github-google-pprof-dev."""
        cls.pprof = harness.PROGRAMS / "pprof"
        if not cls.pprof.exists():
            env = {
                **os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOFLAGS": "-trimpath",
                "GOCACHE": str(harness.PROGRAMS / "go-cache"),
            }
            words = ["go", "build", "-o", str(cls.pprof), "github.com/google/pprof"]
            built = harness.run_words(words, harness.ROOT, env, b"", 240)
            if built.returncode != 0:
                raise AssertionError(built.stderr.decode(errors="replace"))

    def words(self, *words):
        env = self.environment(HOME=str(self.folder), PPROF_TMPDIR=str(self.folder))
        answer = harness.run_words([*map(str, words)], self.folder, env, b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, (words, answer.stderr))
        return answer.stdout.decode(errors="replace")

    def convert(self, dump, to, *options):
        target = self.folder / f"out.{to}"
        self.words(harness.MEMLOG, "convert", f"--to={to}", "-o", target, *options, dump)
        return target

    def dump(self, *program):
        return self.memlog(*program).dumps()[0]

    def pprof_totals(self, profile):
        raw = self.words(self.pprof, "-raw", profile)
        head, _, rest = raw.partition("Samples:\n")
        types, _, rest = rest.partition("\n")
        self.assertEqual([name.split("[")[0] for name in types.split()], SAMPLE_TYPES, head)
        totals = [0, 0, 0, 0]
        for line in rest.partition("Locations")[0].splitlines():
            values = re.match(r"\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+):", line)
            if values:
                totals = [total + int(value) for total, value in zip(totals, values.groups())]
        return totals

    def test_pprof_opens_it_and_its_totals_are_the_reports(self):
        dump = self.dump(harness.PROGRAMS / "oracle" / "single")
        report = self.report(dump)
        profile = self.convert(dump, "pprof")
        self.assertEqual(self.pprof_totals(profile), [report["tree"][figure] for figure in FIGURES])
        top = self.words(self.pprof, "-top", "-sample_index=alloc_space", profile)
        self.assertIn("leaf_resize", top)

    def test_pprof_of_one_process_of_a_tree(self):
        dump = self.dump(harness.PROGRAMS / "oracle" / "fork", "fork")
        report = self.report(dump)
        self.assertEqual(len(report["processes"]), 2)
        for entry in report["processes"]:
            profile = self.convert(dump, "pprof", f"--pid={entry['pid']}")
            self.assertEqual(self.pprof_totals(profile), [entry[figure] for figure in FIGURES])

    def collapsed(self, dump, *options):
        sums = collections.Counter()
        for line in self.convert(dump, "collapsed", *options).read_text().splitlines():
            stack, _, count = line.rpartition(" ")
            sums[stack] += int(count)
        return sums

    def test_collapsed_stacks_are_live_bytes_outermost_first(self):
        dump = self.dump(harness.PROGRAMS / "oracle" / "single")
        report = self.report(dump)
        sums = self.collapsed(dump)
        self.assertEqual(sum(sums.values()), report["tree"]["live_bytes"])
        self.assertTrue(any(stack.endswith("main;churn;branch_left;leaf") for stack in sums), list(sums)[:5])

    def test_collapsed_stacks_of_another_metric(self):
        dump = self.dump(harness.PROGRAMS / "oracle" / "single")
        report = self.report(dump)
        for metric in ("live", "peak", "total"):
            sums = self.collapsed(dump, f"--metric={metric}")
            self.assertEqual(sum(sums.values()), report["tree"][f"{metric}_bytes"], metric)


if __name__ == "__main__":
    unittest.main(verbosity=2)
