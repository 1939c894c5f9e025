"""memlog attached to programs that keep books of their own all the time, and taken back, again and again: they see nothing of it. The short
form of tools/dev/attach_cycles.py, of what has found faults by it."""
import json
import os
import signal
import subprocess
import threading
import time
import unittest

import attached
import harness

CYCLES = 20


class Steady(attached.Case):
    def begin_program(self, source, *words, kind="glibc", options=()):
        program = attached.build(f"steady/{source}", self.folder / source.split(".")[0], kind, options)
        self.said = open(self.folder / "said", "w")
        self.addCleanup(self.said.close)
        process = subprocess.Popen(
            [str(program), *map(str, words)], cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=self.said, text=True, start_new_session=True,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def told(self, word, pid):
        """By the command, which is tried again where it asks for that: where others have the processors a thread may be in dlclose for a second."""
        for _ in range(5):
            answer = self.command(word, "--json", pid)
            rows = json.loads(answer.stdout)["processes"] if answer.stdout else answer.stderr
            if "try again" not in str(rows):
                break
        return rows

    def cycle(self, process):
        """memlog leaves it and comes back, each time without trouble."""
        session = self.begin(process.pid)
        files = attached.files_of(process.pid)
        for number in range(CYCLES):
            for word in ("stop", "start"):
                rows = self.told(word, process.pid)
                self.assertEqual(rows, [{"pid": process.pid, "done": True, "trouble": ""}], f"cycle {number}: {word}, {process.poll()}")
        own = [number for number in attached.files_of(process.pid) if number >= 500]
        self.assertEqual(len(own), len([number for number in files if number >= 500]), "memlog's descriptors become no more")
        self.finish(session)

    def assert_right(self, process):
        (self.folder / "stop").touch()
        turns, wrong = map(int, process.stdout.readline().split())
        self.assertEqual((process.wait(harness.TIMEOUT), wrong), (0, 0), (self.folder / "said").read_text())
        self.assertGreater(turns, 0)

    def test_libraries_that_come_and_go(self):
        """Some have an allocator of their own, and a thread is in dlclose at any moment."""
        for number in range(6):
            own = ("-DOWN_ALLOCATOR", "-Wl,-Bsymbolic") if number % 2 else ()
            attached.build("steady/library.c", self.folder / f"library{number}.so", options=("-shared", "-fPIC", *own))
        process = self.begin_program("comings.c", self.folder)
        self.cycle(process)
        self.assert_right(process)

    def test_a_process_that_is_stopped_and_continued_meanwhile(self):
        """SIGSTOP cannot be blocked: it comes to the borrowed thread as well."""
        process = self.begin_program("crowd.c", 50)
        is_over = threading.Event()

        def stop_and_continue():
            while not is_over.is_set():
                os.kill(process.pid, signal.SIGSTOP)
                time.sleep(0.003)
                os.kill(process.pid, signal.SIGCONT)
                time.sleep(0.003)

        stopper = threading.Thread(target=stop_and_continue)
        stopper.start()
        try:
            self.cycle(process)
        finally:
            is_over.set()
            stopper.join()
        # It makes EINTR of some waits by itself.
        (self.folder / "stop").touch()
        process.stdout.readline()
        self.assertEqual(process.wait(harness.TIMEOUT), 0, (self.folder / "said").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
