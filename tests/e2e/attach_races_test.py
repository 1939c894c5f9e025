"""What comes between a tracer's look at a process and its work in it: another tracer, the process itself. Nothing is harmed by it, and one
attachment is had."""
import fcntl
import os
import signal
import subprocess
import threading
import time
import unittest

import attached
import harness

ROUNDS = 6
AT_ONCE = 4
# A mount of /proc of its own, whose files have locks of their own.
APART = ("unshare", "--mount", "sh", "-c", 'mount -t proc proc /proc && exec "$@"', "sh")


class Together(attached.Case):
    """Several memlogs attach to one process at the same moment."""

    def begin_many(self, pid, number, apart):
        """Each ends by itself, soon after it was attached."""
        return [
            subprocess.Popen(
                [*(APART if apart and one % 2 else ()), str(harness.MEMLOG), "attach", "--no-page", "--duration=0.3",
                 "-o", str(self.folder / f"d{number}.{one}"), str(pid)],
                env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )
            for one in range(AT_ONCE)
        ]

    def own_descriptors(self, pid):
        """Below memlog's."""
        return sorted(number for number in attached.files_of(pid) if number < 500)

    def play(self, refusal, apart=False):
        """Its descriptors and its heap are as they were, and its books are right."""
        target = self.target()
        before = attached.text_of(target.pid)
        descriptors = self.own_descriptors(target.pid)
        for number in range(ROUNDS):
            sessions = self.begin_many(target.pid, number, apart)
            said = [session.communicate(timeout=harness.TIMEOUT)[1] for session in sessions]
            self.assertIsNone(target.process.poll(), said)
            self.assertEqual(self.own_descriptors(target.pid), descriptors, said)
            first = int(target.tell("steps"))
            self.wait_for("its threads", lambda: int(target.tell("steps")) > first)
            for text in said:
                self.assertRegex(text, f"attached to |{refusal}")
            if not apart:
                self.assertTrue(any("attached to " in text for text in said), said)
        now = attached.text_of(target.pid)
        self.assertEqual([place for place, text in before.items() if now.get(place) != text], [])
        target.tell("quiet")
        session = self.begin(target.pid)
        target.tell("epoch 3000")
        books = target.books()
        self.assertEqual(self.hold(self.entry(self.finish(session), target.pid), books, whole=books["before_freed"]), [])
        target.end()

    def test_one_of_many_has_it(self):
        """Their tracers come to it one after the other."""
        self.play(r"another memlog \(\d+\) is attached to it")

    @unittest.skipUnless(os.geteuid() == 0, "to mount /proc takes root")
    def test_tracers_that_hear_nothing_of_each_other(self):
        self.play(r"another memlog|traces (it|a thread of it)|try again", apart=True)


class Turns(attached.Case):
    """One tracer at a time; the lock is on a file that nobody opens who may not trace the process."""

    def test_a_tracer_waits_for_its_turn(self):
        target = self.target()
        with open(f"/proc/{target.pid}/mem", "rb") as memory:
            fcntl.flock(memory, fcntl.LOCK_EX)
            begun = time.monotonic()
            release = threading.Timer(1.5, lambda: fcntl.flock(memory, fcntl.LOCK_UN))
            release.start()
            session = self.begin(target.pid)
            self.assertGreater(time.monotonic() - begun, 1.5)
            release.join()
        self.finish(session)
        target.end()

    def test_a_turn_that_does_not_end(self):
        """Whoever has it is told of, and the process is left alone."""
        target = self.target()
        with open(f"/proc/{target.pid}/mem", "rb") as memory:
            fcntl.flock(memory, fcntl.LOCK_EX)
            answer = self.command("attach", "--no-page", "--duration=0.1", target.pid)
        self.assertEqual(answer.returncode, 125, answer.stderr)
        self.assertIn("another memlog-tracer is at work in it: try again", answer.stderr)
        target.end()


class Changes(attached.Case):
    def test_code_that_changes_between_a_look_and_the_jump(self):
        """memlog looks again by itself."""
        program = attached.build("steady/changing.c", self.folder / "changing")
        target = attached.Target(self, [program]).ready()
        session = self.begin(target.pid)
        time.sleep(0.3)
        entry = self.entry(self.finish(session), target.pid)
        self.assertGreater(entry["total_blocks"], 0, entry)


class Silence(attached.Case):
    def play(self, still_s):
        """A host that stands still while the process waits for its answer, and goes on. Returns what it says, when the session is over."""
        target = self.target()
        with open(f"/proc/{target.pid}/mem", "rb") as memory:
            fcntl.flock(memory, fcntl.LOCK_EX)  # the tracer waits in front of the process
            session = subprocess.Popen(
                [str(harness.MEMLOG), "attach", "--no-page", "--duration=3", "-o", str(self.folder / "dumps"), str(target.pid)],
                env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )
            self.addCleanup(session.kill)
            self.wait_for("its tracer", lambda: any(harness.comm_of(child) == "memlog-tracer" for child in harness.children_of(session.pid)))
            session.send_signal(signal.SIGSTOP)
        time.sleep(still_s)
        session.send_signal(signal.SIGCONT)
        _, said = session.communicate(timeout=harness.TIMEOUT)
        target.tell("warm")
        target.end()
        return session.returncode, said

    def test_a_host_that_answers_too_late_tries_again(self):
        code, said = self.play(4)
        self.assertEqual(code, 0, said)
        self.assertEqual(said.count("attached to "), 1, said)
        (dump,) = (self.folder / "dumps").glob("*.exit.pftrace")
        entries = self.report(dump)["processes"]
        self.assertEqual([(entry["state"], entry["complete"], entry["trouble"]) for entry in entries], [("running", True, "")], entries)


if __name__ == "__main__":
    unittest.main()
