"""What takes longer than a second says how far it is: on a terminal alone, erased at the end, never among the answer."""
import fcntl
import http.server
import os
import pty
import pathlib
import re
import struct
import subprocess
import termios
import threading
import time
import unittest

import harness
from symbols_test import Keeper

ERASED = "\r\x1b[K"
LONG_S = 1.3  # progress may be shown after a second


class Terminal:
    """A command before a terminal, whose screen is read as it comes."""

    def __init__(self, words, env, stdout=None, columns=80):
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen([str(word) for word in words], stdin=theirs, stdout=stdout or theirs, stderr=theirs, env=env,
                                        start_new_session=True)
        os.close(theirs)
        self.bytes = b""
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        while True:
            try:
                part = os.read(self.ours, 65536)
            except OSError:  # nobody has it open any more
                return
            if not part:
                return
            self.bytes += part

    def seen(self):
        return self.bytes.decode(errors="replace")

    def end(self):
        code = self.process.wait(harness.TIMEOUT)
        self.reader.join(harness.TIMEOUT)
        os.close(self.ours)
        return code, self.seen()


class Progress(Keeper):
    def setUp(self):
        super().setUp()
        (self.dump,) = self.memlog(self.program).dumps()
        self.pipe = self.folder / "pipe"
        os.mkfifo(self.pipe)

    def words(self, *words):
        return [harness.MEMLOG, *words]

    def env(self, **changes):
        return self.environment(TERM="xterm", PAGER="cat", HOME=str(self.folder), DEBUGINFOD_URLS="", **changes)

    def writer(self):
        """Who waits to write: a pipe that nobody has come to write to is refused at once."""
        found = []
        opening = threading.Thread(target=lambda: found.append(self.pipe.open("wb", buffering=0)), daemon=True)
        opening.start()
        self.wait_for("the writer to wait", lambda: pathlib.Path(f"/proc/self/task/{opening.native_id}/stat").read_text().rpartition(")")[2].split()[0] == "S")
        return opening, found

    def feed(self, writer, until):
        """The dump packet by packet, the last one once `until` says so. A packet of another writer's stands in for more of them."""
        other = b"\x0a\x02\x40\x01"  # a timestamp alone
        opening, found = writer
        opening.join(harness.TIMEOUT)
        with found[0] as pipe:
            while not until():
                pipe.write(other)
                time.sleep(0.02)
            pipe.write(self.dump.read_bytes())

    def after(self, seconds):
        begin = time.monotonic()
        return lambda: time.monotonic() - begin > seconds

    def test_a_slow_input_has_progress_that_is_erased_before_the_answer(self):
        writer = self.writer()
        terminal = Terminal(self.words("report", self.pipe), self.env(), columns=40)
        self.feed(writer, lambda: "Reading the dump" in terminal.seen() or terminal.process.poll() is not None)
        code, seen = terminal.end()
        self.assertEqual(code, 0, seen)
        progress, answer = seen.rsplit(ERASED, 1)
        self.assertRegex(progress, r"^\rReading the dump: \d+ MiB\x1b\[K")
        self.assertNotIn("\n", progress)
        self.assertNotIn("Reading the dump", answer)
        plain = Terminal(self.words("report", self.dump), self.env(), columns=40).end()[1]
        self.assertEqual(answer.replace(str(self.pipe), str(self.dump)), plain)

    def test_stdout_has_the_same_bytes_with_it(self):
        plain = subprocess.run(self.words("report", "--json", self.dump), capture_output=True, check=True, env=self.env()).stdout
        with (self.folder / "answer").open("w+b") as answer:
            writer = self.writer()
            terminal = Terminal(self.words("report", "--json", self.pipe), self.env(), stdout=answer)
            self.feed(writer, lambda: "Reading the dump" in terminal.seen() or terminal.process.poll() is not None)
            code, seen = terminal.end()
            answer.seek(0)
            written = answer.read()
        self.assertEqual(code, 0, seen)
        self.assertTrue(seen.endswith(ERASED), seen)
        self.assertEqual(written.replace(b'"pipe"', f'"{self.dump.name}"'.encode()), plain)

    def test_there_is_none_in_a_pipe_and_none_on_a_dumb_terminal(self):
        writer = self.writer()
        plain = subprocess.Popen(self.words("report", self.pipe), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env())
        self.feed(writer, self.after(LONG_S))
        self.assertEqual(plain.communicate(timeout=harness.TIMEOUT)[1], b"")
        for term in ("dumb", ""):
            writer = self.writer()
            terminal = Terminal(self.words("report", self.pipe), {**self.env(), "TERM": term})
            self.feed(writer, self.after(LONG_S))
            code, seen = terminal.end()
            self.assertEqual(code, 0, seen)
            self.assertNotIn("Reading the dump", seen)
            self.assertNotIn(ERASED, seen)

    def test_what_is_quick_has_none(self):
        code, seen = Terminal(self.words("report", self.dump), self.env()).end()
        self.assertEqual(code, 0, seen)
        self.assertNotIn(ERASED, seen)

    def test_a_slow_server_has_progress_with_the_modules_name(self):
        self.tool("strip", self.program)
        (dump,) = self.memlog(self.program).dumps()
        named = self.folder / "named.pftrace"
        whole = self.whole.read_bytes()
        state = {}

        class Server(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(whole)))
                self.end_headers()
                self.wfile.write(whole[:-1])
                self.wfile.flush()
                deadline = time.monotonic() + harness.TIMEOUT
                while "Fetching" not in state["terminal"].seen() and time.monotonic() < deadline:
                    time.sleep(0.02)
                self.wfile.write(whole[-1:])

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        env = {**self.env(), "DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}"}
        state["terminal"] = Terminal(self.words("symbolize", "-o", named, dump), env)
        code, seen = state["terminal"].end()
        self.assertEqual(code, 0, seen)
        self.assertTrue(re.search(r"\rFetching debug files: [^\r]*, [^\r]*\x1b\[K", seen), seen)
        self.assertNotIn("Fetching", seen.rsplit(ERASED, 1)[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
