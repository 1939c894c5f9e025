"""The tracer dies behind each of its steps, one after the other: the program never notices, and is left as it was."""
# runner: no second chance
import os
import pathlib
import shutil
import subprocess
import time
import unittest

import attached
import filtered
import harness


class AtEachStep(attached.Case):
    def dying(self):
        """A memlog whose tracer dies at a step of its own."""
        folder = self.folder / "dying"
        folder.mkdir()
        shutil.copy(harness.MEMLOG, folder / "memlog")
        shutil.copy(harness.OUT / "tests/oracle/dying_tracer", folder / "memlog-tracer")
        (folder / "tracer").symlink_to(harness.OUT / "memlog-tracer")
        for part in harness.OUT.iterdir():
            if part.is_file() and part.name.startswith(("memlog-", "libmemlog")) and part.name != "memlog-tracer":
                (folder / part.name).symlink_to(part)
        return folder

    def die_at(self, folder, task, step, pause_us, pid):
        """What the tracer did last; "end": it has done all."""
        (folder / "step").write_text(f"{step} {pause_us} {task}\n")
        (folder / "died").unlink(missing_ok=True)
        answer = subprocess.run(
            [folder / "memlog", "attach", "-q", "--no-page", "--duration=0.01", "-o", self.folder / f"d{time.monotonic_ns()}", str(pid)],
            env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.TIMEOUT, check=False,
        )
        self.assertIn(answer.returncode, (0, 125), answer.stderr)
        self.wait_for("the tracer's end", (folder / "died").exists)
        return (folder / "died").read_text().strip()

    def signals_blocked(self, pid):
        return {next(line.split()[1] for line in (task / "status").read_text().splitlines() if line.startswith("SigBlk:"))
                for task in pathlib.Path(f"/proc/{pid}/task").iterdir()}

    def play_each_step(self, words):
        folder = self.dying()
        target = attached.Target(self, words).ready()
        before = attached.text_of(target.pid)
        blocked = self.signals_blocked(target.pid)
        for task, least in (("attach", 50), ("detach", 10)):
            steps = []
            while not steps or steps[-1] != "end":
                step = len(steps) + 1
                # Dead at once, or when the thread has gone as far as it goes.
                steps.append(self.die_at(folder, task, step, step % 2 * 1000, target.pid))
                answer = target.tell(f"word {step}") if target.process.poll() is None else ""
                self.assertEqual((answer, target.process.poll()), (f"word {step}", None), steps[-1])
                self.assertEqual(self.signals_blocked(target.pid), blocked, steps[-1])
                now = attached.text_of(target.pid)
                self.assertEqual([place for place, text in before.items() if now.get(place) != text], [], steps[-1])
            self.assertGreater(len(steps), least)
        target.process.stdin.close()
        self.assertEqual((target.process.wait(harness.TIMEOUT), target.process.stderr.read()), (7, ""))

    def test_one_at_the_end_of_its_stack(self):
        self.play_each_step([harness.OUT / "tests/oracle/edge"])

    @unittest.skipIf(os.geteuid() != 0, "root alone can read a filter")
    def test_one_that_a_seccomp_filter_watches(self):
        self.play_each_step(filtered.under(filtered.lines(filtered.PROGRAMS_OWN + filtered.MEMLOGS), [harness.OUT / "tests/oracle/edge"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
