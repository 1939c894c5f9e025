"""The collector under load: slow questions, teams that want all of it, slow senders, a full disk."""
import itertools
import os
import signal
import socket
import sqlite3
import threading
import time
import unittest

import collecting
import harness
from collect_test import LEAK, MIB, TEAMS, Case
from collecting import packed, trace

ENDLESS = "/api/v1/fleet/top"


def make_endless(collector):
    """Each question for a path does not end any more: all stacks call themselves. No report can say that; the file's owner can."""
    with sqlite3.connect(collector.store, timeout=harness.TIMEOUT) as store:
        store.execute("UPDATE stacks SET parent = id, frame = 0")
    store.close()


class Questions(Case):
    def asked(self, collector, team="default", path=ENDLESS):
        """A question on its way: its socket."""
        connection = socket.create_connection(("127.0.0.1", collector.port), timeout=harness.TIMEOUT)
        self.addCleanup(connection.close)
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {collector.tokens[team]['read']}\r\n\r\n".encode())
        return connection

    @staticmethod
    def status_of(connection):
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(4096)
            if not piece:
                return None
            head += piece
        return int(head.split(None, 2)[1])

    @staticmethod
    def is_answered(connection):
        connection.setblocking(False)
        try:
            return bool(connection.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            connection.settimeout(harness.TIMEOUT)

    def busy(self, collector):
        """Clock ticks that the collector's threads have used."""
        with open(f"/proc/{collector.process.pid}/stat", encoding="utf-8") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    def test_reports_are_taken_in_while_a_question_lasts(self):
        collector = self.collector("--question-limit=1h")
        collector.send(trace([(LEAK, MIB, 0, 0)]), guid="first")
        collector.settle()
        make_endless(collector)
        slow = self.asked(collector)
        for number in range(30):
            self.assertEqual(collector.send(trace([(("other", f"f{number}"), 1, 0, 0)]), guid=f"g{number}"), 200)
        self.assertEqual(collector.settle()["stored"], 31)
        self.assertEqual(collector.request("GET", "/health")[0], 200)
        self.assertFalse(self.is_answered(slow))
        self.assertEqual(collector.stop(signal.SIGTERM), 0)  # it does not wait for the question either
        self.assertIn(self.status_of(slow), (503, None))

    def test_a_question_that_takes_too_long_is_told_so(self):
        collector = self.collector("--question-limit=1s")
        collector.send(trace([(LEAK, MIB, 0, 0)]))
        collector.settle()
        make_endless(collector)
        status, headers, body = collector.request("GET", ENDLESS, token=collector.tokens["default"]["read"])
        self.assertEqual((status, headers["Retry-After"]), (503, "30"))
        self.assertIn(b"ask for one program", body)
        self.assertEqual(collector.ask("programs")["programs"][0]["dumps"], 1)

    def test_a_team_that_asks_for_too_much_does_not_hold_up_another(self):
        collector = self.collector("--question-limit=1h", tokens=TEAMS)
        for team in TEAMS:
            collector.send(trace([(LEAK, MIB, 0, 0)]), team=team)
        self.wait_for("the reports", lambda: all(collector.ask("programs", team=team)["programs"] for team in TEAMS))
        make_endless(collector)
        before = self.busy(collector)
        asked = [self.asked(collector, "red")]
        self.wait_for("work", lambda: self.busy(collector) > before + 5)  # a thread has it: it waits no more
        asked += [self.asked(collector, "red") for _ in range(19)]
        self.wait_for("refusals", lambda: len([one for one in asked if self.is_answered(one)]) == 11)  # one is at work, eight wait
        statuses = [self.status_of(one) for one in asked if self.is_answered(one)]
        self.assertEqual(set(statuses), {429})
        for _ in range(3):
            self.assertEqual(collector.ask("programs", team="blue")["programs"][0]["dumps"], 1)
        self.assertEqual(collector.request("GET", "/api/v1/fleet/programs", token=TEAMS["red"]["read"])[0], 429)

    def test_a_question_whose_asker_has_gone_is_no_work_any_more(self):
        collector = self.collector("--question-limit=1h")
        collector.send(trace([(LEAK, MIB, 0, 0)]))
        collector.settle()
        make_endless(collector)
        asked = [self.asked(collector) for _ in range(5)]
        before = self.busy(collector)
        self.wait_for("work", lambda: self.busy(collector) > before + 5)
        for one in asked:
            one.close()
        self.assertEqual(collector.ask("programs")["programs"][0]["dumps"], 1)

        def rests():
            one = self.busy(collector)
            time.sleep(0.5)
            return self.busy(collector) - one < 10
        self.wait_for("rest", rests)


class Shares(Case):
    def test_a_team_that_floods_hurts_no_other(self):
        """Requests as fast as they go from one token, and another team's reports in between: those all come through."""
        collector = self.collector("--team-rate=60", tokens=TEAMS)
        body = packed(trace([(LEAK, MIB, 0, 0)]))
        end, statuses, numbers = threading.Event(), [], itertools.count()

        def flood():
            while not end.is_set():
                try:
                    statuses.append(collector.send(body, guid=f"r{next(numbers)}", team="red"))
                except OSError:
                    statuses.append(None)
        floods = [threading.Thread(target=flood) for _ in range(4)]
        for one in floods:
            one.start()
        try:
            self.wait_for("the first refusal", lambda: 429 in statuses)
            for number in range(40):
                self.assertEqual(collector.send(trace([(LEAK, number, 0, 0)]), guid=f"b{number}", team="blue"), 200)
        finally:
            end.set()
            for one in floods:
                one.join()
        self.assertLessEqual(set(statuses), {200, 429})
        self.wait_for("blue's reports", lambda: collector.figures("blue")["stored"] == 40)
        self.wait_for("red's reports", lambda: collector.figures("red")["waiting"] == 0)
        self.assertEqual(collector.figures("red")["stored"], statuses.count(200))
        self.assertGreaterEqual(statuses.count(200), 60)

        def refused():
            """Each second one more is taken."""
            status, headers, said = collector.request("POST", "/", body, TEAMS["red"]["write"])
            return (headers, said) if status == 429 else None

        headers, said = self.wait_for("a refusal", refused)
        self.assertIn(int(headers["Retry-After"]), (1, 2))
        self.assertIn(b"60 reports a minute", said)

    def test_a_team_fills_its_own_room_alone(self):
        collector = self.collector("--team-bytes=64K", tokens=TEAMS)
        chance = os.urandom(30 << 10)
        for number, status in enumerate((200, 200, 507)):
            self.assertEqual(collector.send(chance + bytes([number]), guid=f"g{number}", team="red"), status)
        self.assertEqual(collector.send(chance, guid="g", team="blue"), 200)
        status, headers, body = collector.request("POST", "/", chance, TEAMS["red"]["write"])
        self.assertEqual((status, headers["Retry-After"]), (507, "3600"))
        self.assertIn(b"delete some", body)
        # One that does not say how long it is: known at its end.
        status, _, _ = collector.request("POST", "/", iter([chance]), TEAMS["red"]["write"])
        self.assertEqual(status, 507)
        self.restarted(collector)
        self.assertEqual(collector.send(chance + b"\3", guid="g3", team="red"), 507)
        self.assertEqual(collector.request("DELETE", "/api/v1/fleet/report?guid=g0", token=TEAMS["red"]["admin"])[0], 200)
        self.assertEqual(collector.send(chance + b"\3", guid="g3", team="red"), 200)

    def test_figures_are_the_teams_own(self):
        collector = self.collector(tokens=TEAMS)
        for number in range(3):
            collector.send(trace([(LEAK, number, 0, 0)]), team="red")
        collector.send(b"no report", team="red")
        self.wait_for("the reports", lambda: collector.figures("red") == {"waiting": 0, "stored": 3, "refused": 1})
        self.assertEqual(collector.figures("blue"), {"waiting": 0, "stored": 0, "refused": 0})
        self.assertIn(b"spool_bytes 0\n", collector.request("GET", "/metrics", token=TEAMS["blue"]["read"])[2])
        self.restarted(collector)
        self.assertEqual(collector.figures("red"), {"waiting": 0, "stored": 3, "refused": 1})
        self.assertEqual(collector.figures("blue"), {"waiting": 0, "stored": 0, "refused": 0})


if __name__ == "__main__":
    unittest.main()
