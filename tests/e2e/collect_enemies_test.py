"""The collector and its enemies: parsers that were taken over, slow senders, bombs, disks that refuse."""
import contextlib
import gzip
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
import threading
import time
import unittest

import collecting
import harness
from collect_test import LEAK, MIB, TEAMS, Case
from collecting import packed, trace

# Stands for an analyzer that was taken over: what it does stands at the end of the body. It has the real one read the report, and
# passes on what that says: as it is, again and again, mixed up, or not at all.
STAND_IN = """#!{python}
import os, random, signal, socket, subprocess, sys, time
body = sys.stdin.buffer.read()
what = next((word for word in {hostile!r} if body.endswith(b"|" + word.encode())), "good")
out = socket.socket(fileno=3)
if what == "never":
    time.sleep(3600)
if what == "killed":
    os.mkdir({kills!r} + str(os.getpid()))
    os.kill(os.getpid(), signal.SIGKILL)
if what == "dies":
    os.kill(os.getpid(), signal.SIGSEGV)
if what == "noise":
    while True:
        out.send(os.urandom(random.randrange(1, 60000)))
if what == "babble":
    print("x" * 100000000)
here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.write(write, body.rsplit(b"|", 1)[0] if what != "good" else body)
    os._exit(0)
os.close(write)
def become():
    os.dup2(there.fileno(), 3)
    os.dup2(read, 0)
reader = subprocess.Popen(["memlog", "report-rows"], executable={analyzer!r}, preexec_fn=become, pass_fds=[3])
there.close()
messages = []
while True:
    piece = here.recv(1 << 20)
    if not piece:
        break
    messages.append(piece)
if what == "endless":
    for piece in messages[:-1]:
        out.send(piece)
    while True:
        out.send(messages[-2])  # a list of rows; the last one is the end
if what == "again":
    messages = messages * 3
if what == "backwards":
    messages.reverse()
if what == "mutated":
    chance = random.Random(len(body))
    messages = [bytearray(piece) for piece in messages]
    for piece in messages:
        for _ in range(3):
            piece[chance.randrange(len(piece))] ^= 1 << chance.randrange(8)
for piece in messages:
    out.send(piece)
"""
HOSTILE = ("never", "dies", "noise", "babble", "endless", "again", "backwards", "mutated")


def high_water(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) << 10


class Parsers(Case):
    def with_stand_in(self):
        programs = self.folder / "programs"
        programs.mkdir()
        shutil.copy2(harness.OUT / "memlog-collect", programs)
        stand_in = programs / "memlog-analyzer"
        text = STAND_IN.format(python=sys.executable, analyzer=str(harness.OUT / "memlog-analyzer"), hostile=(*HOSTILE, "killed"),
                               kills=str(self.folder / "kill-"))
        stand_in.write_text(text, encoding="utf-8")
        stand_in.chmod(0o755)
        collector = collecting.Collector(self.folder, environment=self.environment(), tokens=TEAMS)
        collector.command = [str(programs / "memlog-collect"), "collect"]
        self.addCleanup(lambda: collector.process and collector.process.poll() is None and collector.stop(signal.SIGKILL))
        return collector.start()

    def test_one_that_was_taken_over_spoils_its_own_report_alone(self):
        """Reports of two teams are read by stand-ins; those of the enemy do what they like, and the others count as they should."""
        collector = self.with_stand_in()
        body = packed(trace([(LEAK, 1000, 0, 0)], host="good"))
        for number, what in enumerate(HOSTILE):
            self.assertEqual(collector.send(body + b"|" + what.encode(), guid=what, team="red"), 200)
            self.assertEqual(collector.send(body, guid=f"good{number}", team="blue"), 200)
        self.wait_for("the other team's reports", lambda: collector.figures("blue")["stored"] == len(HOSTILE))
        top = collector.ask("top", team="blue")
        self.assertEqual((top["dumps"], top["live_bytes"]), (len(HOSTILE), 1000 * len(HOSTILE)))
        self.assertEqual({one["guid"] for one in collector.ask("reports", team="blue")["reports"]}, {f"good{number}" for number in range(len(HOSTILE))})
        self.assertEqual(collector.request("GET", "/health")[0], 200)
        self.wait_for("the rest", lambda: collector.figures("red")["waiting"] <= 1)  # the one that is never read
        self.assertLessEqual({one["guid"] for one in collector.ask("reports", team="red")["reports"]}, {"mutated", "again", "babble"})
        self.assertLess(high_water(collector.process.pid), 512 * MIB)

    def test_a_reading_that_never_ends_dies_with_its_collector(self):
        collector = self.with_stand_in()
        self.assertEqual(collector.send(packed(trace([(LEAK, 1000, 0, 0)])) + b"|never", guid="never", team="red"), 200)
        (reading,) = self.wait_for("a reading", lambda: harness.children_of(collector.process.pid))
        alive = os.pidfd_open(reading)
        self.addCleanup(os.close, alive)
        self.wait_for("its stand-in", lambda: harness.comm_of(reading) == "memlog-analyzer")
        collector.stop(signal.SIGKILL)
        ended, _, _ = select.select([alive], [], [], harness.TIMEOUT)
        self.assertTrue(ended)

    def test_what_the_machine_does_to_a_reading_is_no_fault_of_the_report(self):
        """While memlog is installed anew its analyzer is away for a moment; where memory is short the kernel kills it."""
        collector = self.with_stand_in()
        stand_in = self.folder / "programs" / "memlog-analyzer"
        body = packed(trace([(LEAK, 1000, 0, 0)], host="good"))
        stand_in.rename(stand_in.with_suffix(".new"))
        self.assertEqual(collector.send(body, guid="early", team="blue"), 200)
        self.wait_for("a try", lambda: "memlog-analyzer cannot be started" in collector.said())
        self.assertEqual(collector.figures("blue"), {"waiting": 1, "stored": 0, "refused": 0})
        stand_in.with_suffix(".new").rename(stand_in)
        self.wait_for("the report", lambda: collector.figures("blue") == {"waiting": 0, "stored": 1, "refused": 0})
        self.assertEqual(collector.send(body + b"|killed", guid="killed", team="blue"), 200)
        self.wait_for("the report", lambda: collector.figures("blue") == {"waiting": 0, "stored": 1, "refused": 1})
        self.assertEqual(len(list(self.folder.glob("kill-*"))), 3)
        self.assertIn("killed", collector.said())

    def test_a_team_whose_reports_are_read_for_ever_holds_up_no_other(self):
        collector = self.with_stand_in()
        body = packed(trace([(LEAK, 1000, 0, 0)], host="good"))
        for number in range(8):
            self.assertEqual(collector.send(body + b"|never", guid=f"never{number}", team="red"), 200)
        for number in range(8):
            self.assertEqual(collector.send(body, guid=f"good{number}", team="blue"), 200)
        self.wait_for("the other team's reports", lambda: collector.figures("blue")["stored"] == 8, seen=lambda: collector.figures("red"))
        self.assertEqual(collector.figures("red"), {"waiting": 8, "stored": 0, "refused": 0})

    def test_memory_is_bounded_whatever_comes(self):
        """Bombs, depth, and a million tiny stacks."""
        collector = self.collector()
        many = trace([(("main", f"f{number % 1000}", f"g{number}"), 1, 0, 0) for number in range(150000)])
        names = {"traceEvents": [], "metadata": {"memlog": {f"n{number}": number for number in range(500000)}}}
        deep = b"[" * (4 << 20)
        objects = b'{"a":' * (2 << 20)
        bodies = [gzip.compress(bytes(1 << 30), 1), gzip.compress(gzip.compress(bytes(1 << 28), 1)), gzip.compress(deep), deep, gzip.compress(objects), packed(many),
                  packed(names)]
        for number, body in enumerate(bodies):
            self.assertEqual(collector.send(body, guid=f"b{number}"), 200)
        for number in range(10):
            self.assertEqual(collector.send(trace([(LEAK, 1000, 0, 0)]), guid=f"good{number}"), 200)
        figures = collector.settle()
        self.assertEqual(figures["stored"] + figures["refused"], len(bodies) + 10)
        self.assertGreaterEqual(figures["refused"], 5)
        reports = {one["guid"] for one in collector.ask("reports", limit=100)["reports"]}
        self.assertLessEqual({f"good{number}" for number in range(10)}, reports)
        self.assertLess(high_water(collector.process.pid), 512 * MIB)


class Slow(Case):
    def drip(self, collector, first, end):
        """Send it byte by byte, until the other side has had enough."""
        with socket.create_connection(("127.0.0.1", collector.port)) as connection:
            connection.sendall(first)
            connection.settimeout(0.5)
            while not end.is_set():
                with contextlib.suppress(TimeoutError):
                    if not connection.recv(4096):
                        return
                connection.sendall(b"x")

    def test_slow_senders_are_closed_and_hold_up_nobody(self):
        collector = self.collector()
        head = f"POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {collector.tokens['default']['write']}\r\n"
        firsts = [b"POST / HT", head.encode() + b"X-Slow: ", (head + "Content-Length: 100000\r\n\r\n").encode(), b""]
        end = threading.Event()
        ended = []

        def run(first):
            with contextlib.suppress(OSError):
                self.drip(collector, first, end)
            if not end.is_set():
                ended.append(first)
        slow = [threading.Thread(target=run, args=(firsts[number % len(firsts)],)) for number in range(120)]
        for one in slow:
            one.start()
        try:
            for number in range(20):
                self.assertEqual(collector.send(trace([(LEAK, 1000, 0, 0)]), guid=f"g{number}"), 200)
            self.assertEqual(collector.request("GET", "/health")[0], 200)
            self.wait_for("the slow ones' end", lambda: len(ended) == len(slow))
        finally:
            end.set()
            for one in slow:
                one.join()
        self.assertEqual(collector.settle()["stored"], 20)
        self.assertEqual(os.listdir(self.folder / "fleet.db.spool" / "incoming"), [])

    def test_lost_answers_change_nothing(self):
        """The sender hangs up before it reads the answer, and sends again."""
        collector = self.collector()
        body = packed(trace([(LEAK, MIB, 0, 0)]))
        for _ in range(40):
            with socket.create_connection(("127.0.0.1", collector.port)) as connection:
                connection.sendall(
                    f"POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {collector.tokens['default']['write']}\r\n"
                    f"Idempotency-Key: lost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        self.assertEqual(collector.send(body, guid="lost"), 200)
        self.assertEqual(collector.settle(), {"waiting": 0, "stored": 1, "refused": 0})
        self.assertEqual(collector.ask("top")["live_bytes"], MIB)


class Disk(Case):
    def test_a_file_that_cannot_grow_is_told_and_leaves_nothing(self):
        """Files end at 2 MiB, as on a disk that is full."""
        collector = collecting.Collector(self.folder, environment=self.environment())

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2 * MIB, 2 * MIB))
        collector.before_exec = limit
        self.addCleanup(lambda: collector.process and collector.process.poll() is None and collector.stop(signal.SIGKILL))
        collector.start()
        status, headers, _ = collector.request("POST", "/", os.urandom(3 * MIB), collector.tokens["default"]["write"])
        self.assertEqual((status, headers["Retry-After"]), (507, "300"))
        self.assertEqual(os.listdir(self.folder / "fleet.db.spool" / "incoming"), [])
        good = {f"g{number}": packed(trace([(LEAK, 1000 + number, 0, 0)])) for number in range(10)}
        for guid, body in good.items():
            self.assertEqual(collector.send(body, guid=guid), 200)
        self.assertEqual(collector.settle(), {"waiting": 0, "stored": 10, "refused": 0})

    def test_a_store_that_cannot_grow_loses_nothing(self):
        """The ledger takes reports in until its own file cannot grow; whatever was answered by 200 is there once there is room."""
        collector = collecting.Collector(self.folder, environment=self.environment())

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (200 << 10, 200 << 10))
        collector.before_exec = limit
        self.addCleanup(lambda: collector.process and collector.process.poll() is None and collector.stop(signal.SIGKILL))
        collector.start()
        accepted, statuses = {}, set()
        for number in range(300):
            size = 1000 + number
            report = trace([(("main", f"f{number}-{place}"), size, 0, 0) for place in range(20)])
            status = collector.send(report, guid=f"g{number}")
            statuses.add(status)
            if status == 200:
                accepted[f"g{number}"] = 20 * size
            if len(statuses) > 1 and number > 50:
                break
        self.assertLessEqual(statuses, {200, 507})
        self.assertEqual(collector.request("GET", "/health")[0], 200)
        collector.stop(signal.SIGKILL)
        collector.before_exec = None
        collector.start()
        self.assertEqual(collector.settle(), {"waiting": 0, "stored": len(accepted), "refused": 0})
        self.assertEqual(collector.ask("top", limit=1)["live_bytes"], sum(accepted.values()))


if __name__ == "__main__":
    unittest.main()
