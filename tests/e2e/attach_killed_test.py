"""memlog attached to programs that run already, and killed at any moment: they go on, stay right, and are put right by the next one."""
# runner: no second chance
import os
import random
import signal
import socket
import subprocess
import time
import unittest

import attached
import harness


class Killed(attached.Case):
    """Whatever the moment at which the tracer dies, the program goes on and stays right, and is put right by the next one."""
    KILLS = 60
    SPAN_S = 0.06

    def tracer(self, task, pid):
        """A tracer of nobody's: its host's end of the socket is here."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        process = subprocess.Popen(
            [str(harness.OUT / "memlog-tracer"), task, str(pid), str(attached.start_ticks(pid))], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, close_fds=False, preexec_fn=lambda: os.dup2(theirs.fileno(), 3),
        )
        theirs.close()
        return process, ours

    def children(self, process):
        try:
            return harness.children_of(process.pid)
        except OSError:
            return []

    def kill_at(self, pid, seconds):
        """The host that serves the attachment finds its tracer dead after so long; returns whether it was in time."""
        session = subprocess.Popen(
            [str(harness.MEMLOG), "attach", "--no-page", "--duration=0.2", "-o", str(self.folder / f"d{time.monotonic_ns()}"), str(pid)],
            env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        killed = False
        while session.poll() is None and not killed:
            for child in self.children(session):
                if harness.comm_of(child) == "memlog-tracer":
                    time.sleep(seconds)
                    try:
                        os.kill(child, signal.SIGKILL)
                        killed = True
                    except OSError:
                        pass
                    break
        _, text = session.communicate(timeout=harness.TIMEOUT)
        return killed, text

    def assert_right(self, target, before):
        """It runs, and repairing it leaves what was there."""
        self.assertIsNone(target.process.poll())
        first = int(target.tell("steps"))
        self.wait_for("its threads", lambda: int(target.tell("steps")) > first)
        process, ours = self.tracer("repair", target.pid)
        _, text = process.communicate(timeout=harness.TIMEOUT)
        ours.close()
        self.assertEqual((process.returncode, text), (0, ""))
        now = attached.text_of(target.pid)
        for place, text in before.items():
            self.assertEqual(now.get(place) == text, True, f"{place[1]} is not as it was")

    def play(self, kind, kills):
        target = self.target(kind)
        before = attached.text_of(target.pid)
        seed = int(os.environ.get("ATTACH_SEED", time.time_ns() % 100000))
        numbers = random.Random(seed)
        in_time = 0
        for number in range(kills):
            moment = numbers.uniform(0, self.SPAN_S)
            with self.subTest(f"{kind}, seed {seed}, kill {number} after {moment * 1000:.1f} ms"):
                killed, text = self.kill_at(target.pid, moment)
                in_time += killed
                self.assert_right(target, before)
        self.assertGreater(in_time, kills // 3, "the kills came too late to show anything")
        # And then it can be recorded as if nothing had been.
        target.tell("quiet")
        session = self.begin(target.pid)
        target.tell("epoch 3000")
        books = target.books()
        wrong = self.hold(self.entry(self.finish(session), target.pid), books, whole=books["before_freed"])
        self.assertEqual(wrong, [])
        target.tell("warm")
        target.end()

    def test_by_the_host(self):
        for kind in ("glibc", "static glibc", "musl"):
            self.play(kind, self.KILLS // 3)

    def test_a_tracer_that_nobody_repairs(self):
        """Killed with its host: the program goes on with what is there; doctor --repair takes it back."""
        target = self.target()
        before = attached.text_of(target.pid)
        numbers = random.Random(7)
        for _ in range(20):
            moment = numbers.uniform(0, self.SPAN_S)
            # On a busy machine a tracer comes and goes between two looks: the session ends by itself then.
            session = subprocess.Popen(
                [str(harness.MEMLOG), "attach", "--no-page", "--duration=5", "-o", str(self.folder / f"d{time.monotonic_ns()}"), str(target.pid)],
                env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self.wait_for("its tracer", lambda: session.poll() is not None or any(
                harness.comm_of(child) == "memlog-tracer" for child in self.children(session)))
            time.sleep(moment)
            if session.poll() is None:
                os.killpg(session.pid, signal.SIGKILL)
            session.wait()
            first = int(target.tell("steps"))
            self.wait_for("its threads", lambda: int(target.tell("steps")) > first)
            self.assertIsNone(target.process.poll())
        # The last tracer hears of its host's end when it looks, and has the process until then.
        said = []

        def is_repaired():
            answer = self.command("doctor", "--repair", target.pid)
            said[:] = [answer.stdout + answer.stderr]
            self.assertTrue(answer.returncode == 0 or "traces it already" in said[0], said[0])
            return answer.returncode == 0

        self.wait_for("the repair", is_repaired, seen=lambda: said[0])
        now = attached.text_of(target.pid)
        self.assertEqual([place for place, text in before.items() if now.get(place) != text], [])
        target.end()


if __name__ == "__main__":
    unittest.main()
