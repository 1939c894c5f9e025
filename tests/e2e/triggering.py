"""What the tests of triggers share: programs that grow on command, and the log of decisions."""
import json
import subprocess
import time

import harness

GROWER = harness.PROGRAMS / "oracle" / "grower"
MIB = 1 << 20


class Case(harness.Case):
    def rules(self, **rules):
        """A triggers file with nothing on but what is named."""
        off = {role: "off" for role in ("browser", "renderer", "gpu", "utility", "other")}
        path = self.folder / f"rules{time.monotonic_ns()}.json"
        path.write_text(json.dumps({"interval_seconds": 1, "killed": False, "footprint": off, **rules}))
        return f"--triggers={path}"

    def grow(self, *actions, options=(), role="-", before=()):
        """The program in the background, stopped by its waits; paths in its actions lie in the test's folder."""
        words = [word.replace("=@", f"={self.folder}/") for word in actions]
        return self.memlog_start(GROWER, role, *words, options=("-q", "--no-page", *options), before=before)

    def log(self, process):
        path = process.memlog_folder / "triggers.log"
        return path.read_text().splitlines() if path.exists() else []

    def looks(self, process, more=2):
        """Wait until the triggers have looked so many times more."""
        def count():
            return sum(" no dump " in line or " dump " in line for line in self.log(process))
        before = count()
        self.wait_for("looks of the triggers", lambda: count() >= before + more)

    def triggered(self, process):
        return sorted(process.memlog_folder.glob("*.threshold.pftrace"))

    def wait_triggered(self, process, count):
        self.wait_for(f"{count} triggered dumps", lambda: len(self.triggered(process)) >= count)
        return self.triggered(process)[count - 1]

    def end(self, process, go="end"):
        (self.folder / go).touch()
        process.communicate(timeout=harness.TIMEOUT)

    def check(self, dump, kind, function="guilty"):
        """What the dump says of itself; the report names the guilty stack."""
        report = self.report(dump)
        trigger = report["dump"]["trigger"]
        self.assertEqual(report["dump"]["reason"], "threshold")
        self.assertEqual(trigger["kind"], kind, trigger)
        if function:
            self.assertIn(function, [frame["function"] for frame in trigger["frames"]][:3])
        text = subprocess.run([str(harness.MEMLOG), "report", str(dump)], capture_output=True, text=True, check=True).stdout
        self.assertIn(f"taken for    {kind}: {trigger['reason']}", text)
        return report, trigger
