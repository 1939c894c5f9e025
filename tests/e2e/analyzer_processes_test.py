"""The processes that memlog-analyzer starts before its sandbox is up: what they hold, and that none of them ends a command."""
import concurrent.futures
import contextlib
import http.server
import os
import signal
import subprocess
import threading
import time
import unittest

import harness
from symbols_test import Keeper

NOWHERE = "/dev/null"
COPY = "/memfd:memlog-process-file (deleted)"
DEBUG_COPY = COPY.replace("-file", "-debug")
NOBODY = "http://127.0.0.1:1"


def descriptors(pid):
    """What each descriptor of a process leads to."""
    found = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
    return found


def eventually(look):
    """What `look` says once it says something; what it says at last when it never does."""
    end = time.monotonic() + harness.TIMEOUT / 2
    while not (said := look()) and time.monotonic() < end:
        time.sleep(0.01)
    return said


def numbers_of(held):
    """The descriptors that a helper may have."""
    return set(range(7 if held.get(5) == COPY else 6))


class Started(Keeper):
    """The analyzer, waiting for a dump that the test has not sent yet."""

    def setUp(self):
        super().setUp()
        self.dump = self.stripped_dump()

    def start(self, *words, **environment):
        env = self.environment(HOME=str(self.folder), MEMLOG_SYMBOL_CACHE=str(self.folder / "cache"), **environment)
        # A shell's descriptor on a dump, too.
        kept = os.open(self.dump, os.O_RDONLY)
        self.addCleanup(os.close, kept)
        process = subprocess.Popen(
            [harness.MEMLOG, *map(str, words)], cwd=self.folder, env=env, pass_fds=(kept,),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()

    def settled(self, process, count):
        """Its `count` helpers as pid -> descriptors, once each waits for a question; what there is when that never comes."""
        found = {}

        def look():
            found.clear()
            found.update({pid: descriptors(pid) for pid in harness.children_of(process.pid)})
            return len(found) == count and all(set(held) == numbers_of(held) for held in found.values())

        eventually(look)
        return dict(found)

    def assert_allowed(self, process, helpers):
        """Three that lead nowhere, a pipe from and one to the analyzer, and one more; who copies files has room for two."""
        ours = descriptors(process.pid)
        callers = {ours.pop(number) for number in range(3)}
        for held in helpers.values():
            self.assertEqual(set(held), numbers_of(held), helpers)
            self.assertEqual([held[number] for number in range(3)], [NOWHERE] * 3, helpers)
            for pipe in (held[3], held[4]):
                self.assertRegex(pipe, r"^pipe:")
                self.assertNotIn(pipe, callers)
                self.assertIn(pipe, ours.values())
            self.assertIn((held[5], held.get(6)), ((NOWHERE, None), (COPY, DEBUG_COPY)))
        # Nobody has another's.
        pipes = [held[number] for held in helpers.values() for number in (3, 4)]
        self.assertEqual(len(set(pipes)), len(pipes))
        self.assertEqual(sorted(held[5] for held in helpers.values()), sorted([COPY] + [NOWHERE] * (len(helpers) - 1)))

    def finish(self, process):
        answer, said = process.communicate(self.dump.read_bytes(), timeout=harness.TIMEOUT)
        return process.returncode, answer, said.decode()


class Descriptors(Started):
    def test_helpers_have_their_pipes_and_nothing_of_the_callers(self):
        for words in (("report", "-"), ("convert", "--to=collapsed", "-")):
            process = self.start(*words, DEBUGINFOD_URLS=NOBODY)
            self.assert_allowed(process, self.settled(process, 2))
            self.assertEqual(self.finish(process)[0], 0)

    def test_so_has_the_fetcher(self):
        process = self.start("symbolize", "--symbols-only", "-", DEBUGINFOD_URLS=NOBODY)
        self.assert_allowed(process, self.settled(process, 3))
        code, answer, said = self.finish(process)
        self.assertEqual(code, 0, said)
        self.assertTrue(answer)


class Killed(Started):
    LOST = "a process that it had started was ended: "

    def test_a_command_goes_on_without_its_helpers_and_says_so(self):
        code, whole, said = self.finish(self.start("convert", "--to=collapsed", "-"))
        self.assertEqual((code, self.LOST in said), (0, False), said)
        for path in (self.folder / "cache").iterdir():
            path.unlink()
        process = self.start("convert", "--to=collapsed", "-")
        for pid in self.settled(process, 2):
            os.kill(pid, signal.SIGKILL)
        code, answer, said = self.finish(process)
        self.assertEqual(code, 0, said)
        self.assertEqual(answer, whole)
        self.assertIn(self.LOST + "names are not kept for the next view\n", said)
        self.assertEqual(list((self.folder / "cache").iterdir()), [])

    def test_so_does_one_whose_fetcher_is_killed_while_a_server_takes_its_time(self):
        asked, over = threading.Event(), threading.Event()

        class Server(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.set()
                over.wait(harness.TIMEOUT)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(over.set)
        process = self.start("symbolize", "--symbols-only", "-", DEBUGINFOD_URLS=f"http://127.0.0.1:{server.server_port}")
        helpers = self.settled(process, 3)
        finished = concurrent.futures.ThreadPoolExecutor().submit(self.finish, process)
        self.assertTrue(asked.wait(harness.TIMEOUT / 2))
        fetchers = [pid for pid in helpers if any(target.startswith("socket:") for target in descriptors(pid).values())]
        self.assertEqual(len(fetchers), 1)
        # At work it has sockets and its own cache's file besides, and still nothing of ours.
        held = set(descriptors(fetchers[0]).values())
        self.assertFalse(held & {*list(descriptors(process.pid).values())[:3], str(self.dump)}, held)
        os.kill(fetchers[0], signal.SIGKILL)
        code, _, said = finished.result()
        self.assertEqual(code, 0, said)
        self.assertIn(self.LOST + "debug files from DEBUGINFOD_URLS may be missing\n", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
