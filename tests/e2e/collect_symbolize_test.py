"""memlog collect symbolize: stacks that came without names get them when somebody gives the file; figures stay. On both engines.

collect_clickhouse_test.py asks both every question before and after, and asks a modern engine by hand (tools/dev/clickhouse_beside).
"""
import fcntl
import os
import random
import re
import signal
import sqlite3
import subprocess
import threading
import time
import unittest

import clickhouse
import collect_test
import harness
from collect_points_test import DYING, NAMING
from collecting import trace
from unnamed import NAMED, build, placed

MIB = 1 << 20
TEAMS = collect_test.TEAMS


class Case(collect_test.Case):
    moments = (0.005, 0.02, 0.12)  # in which it is killed: machines differ, some are done after 10 ms

    @staticmethod
    def command(collector, *words, program=(str(harness.MEMLOG),)):
        return [*program, "collect", "symbolize", f"--store={collector.place}", *collector.options, *map(str, words)]

    def symbolize(self, collector, *words, code=0):
        answer = subprocess.run(self.command(collector, *words), capture_output=True, text=True, env=self.environment(), check=False, timeout=harness.TIMEOUT)
        self.assertEqual(answer.returncode, code, answer.stderr)
        return answer.stderr

    @staticmethod
    def stacks(collector, **words):
        return {tuple(map(str, one["frames"])): (one["live_bytes"], one["hosts"]) for one in collector.ask("top", limit=10000, **words)["stacks"]}

    def figures(self, collector):
        """All samples and sums of the store."""
        with sqlite3.connect(collector.store) as store:
            return [store.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4, 5, 6").fetchall() for table in ("samples", "sums", "weeks", "dumps")]

    def check_store(self, collector):
        with sqlite3.connect(collector.store) as store:
            self.assertEqual(store.execute("PRAGMA integrity_check").fetchone(), ("ok",))


@unittest.skipUnless(clickhouse.SERVER, "clickhouse-server")
class OnServers(Case):
    """The same on two servers, which are one cluster."""

    moments = (0.05, 0.2, 0.6)

    def collector(self, *options, chance=None, **how):
        """With a source of chance the servers are reached by links, which can be cut."""
        self.nodes, self.links = clickhouse.servers(self.folder), []
        self.spool = self.folder / "kept"
        for one in self.nodes:
            self.addCleanup(one.stop)
            one.start()
            if chance:
                self.links.append(clickhouse.Link(one, chance))
                self.addCleanup(self.links[-1].close)
        place = "clickhouse:" + ",".join(one.url for one in self.links or self.nodes)
        return super().collector(f"--spool={self.spool}", *options, place=place, **how)

    def figures(self, collector):
        return [node.ask(f"SELECT * FROM memlog.{table} ORDER BY team, guid, stack, live" if table == "samples_local" else
                         f"SELECT * FROM memlog.{table} ORDER BY team, build") for node in self.nodes for table in ("samples_local", "dumps_local", "sums_local")]

    def names(self, whole_turns="turn IN (SELECT turn FROM memlog.turns)"):
        """What each node has of names that came later."""
        return [[node.ask(f"SELECT DISTINCT * FROM memlog.{table} WHERE {whole_turns} ORDER BY team, {order}") for table, order in
                 (("given", "id, turn"), ("renamed", "id, turn"), ("turns", "turn"))] for node in self.nodes]

    def check_store(self, collector):
        one, other = self.names()
        self.assertEqual(one, other)


class Named(Case):
    def test_places_become_functions_in_all_reports_and_nothing_else_changes(self):
        collector = self.collector(tokens=TEAMS)
        whole, _, build_id, addresses = build(self.folder, "prog")
        for team in ("red", "blue"):
            for number in range(3):
                body = placed(build_id, addresses, [(NAMED, MIB << number, MIB, MIB), ((*NAMED[:2], "other"), 5, 5, 5), (("main",), 7, 7, 7)], host=f"h{number}")
                self.assertEqual(collector.send(body, guid=f"{team}{number}", team=team), 200)
        # Another build, whose sender had its names.
        self.assertEqual(collector.send(trace([(NAMED, 64 * MIB, 0, 0)], build="b2", host="h9"), guid="b2", team="red"), 200)
        collect_wait(self, collector, "red")
        collect_wait(self, collector, "blue")
        before = self.figures(collector)
        self.assertEqual(len(self.stacks(collector, team="red")), 4)
        self.assertIn(f"build {build_id}, 6 frames without a name, 6 named, 8 stacks renamed", self.symbolize(collector, whole))
        for _ in range(2):
            self.assertEqual(self.stacks(collector, team="red"), {
                NAMED: (71 * MIB, 4), ("main", "serve", "other"): (15, 3), ("main",): (21, 3)})
            self.assertEqual(self.stacks(collector, team="blue")[NAMED], (7 * MIB, 3))
            self.assertEqual(self.figures(collector), before)
            self.assertEqual({node["name"] for node in collector.ask("flame", team="red")["nodes"]}, {*NAMED, "other"})
            leak = collector.ask("top", team="red")["stacks"][0]["stack"]
            self.assertEqual(len(collector.ask("reports", team="red", stack=leak)["reports"]), 4)
            self.assertIn("0 frames without a name, 0 named, 0 stacks renamed", self.symbolize(collector, whole))
            self.restarted(collector)
        # What comes later is called alike, in stacks that are new, too.
        late = placed(build_id, addresses, [(NAMED, MIB, 0, 0), (("serve", "leak"), 9, 0, 0)], host="late")
        self.assertEqual(collector.send(late, guid="late", team="red"), 200)
        self.assertEqual(collector.send(trace([(("serve", "leak"), 1, 0, 0)], build="b2"), guid="last", team="red"), 200)
        collect_wait(self, collector, "red")
        self.assertEqual(self.stacks(collector, team="red")[NAMED], (72 * MIB, 5))
        self.assertEqual(self.stacks(collector, team="red")[("serve", "leak")][0], 10)
        self.assertIn("0 named, 0 stacks renamed", self.symbolize(collector, whole))

    def test_a_run_of_a_stripped_program(self):
        collector = self.collector()
        whole, bare, build_id, _ = build(self.folder, "stripped")
        token = self.folder / "send.token"
        token.write_text(collector.tokens["default"]["write"] + "\n")
        triggers = self.folder / "triggers.json"
        triggers.write_text('{"interval_seconds": 1, "live": {"browser": "10M"}}')
        subprocess.run([str(harness.MEMLOG), "run", "-q", "--no-page", "-o", str(self.folder / "out"), f"--triggers={triggers}",
                        f"--upload=http://127.0.0.1:{collector.port}/", f"--upload-token-file={token}", f"--upload-spool={self.folder}/spool", "--", str(bare)],
                       check=True, env=self.environment(), timeout=harness.TIMEOUT)
        self.wait_for("the report", lambda: collector.ask("top")["dumps"] == 1)
        (big,) = (stack for stack, (live, _) in self.stacks(collector).items() if live >= 20 * MIB)
        self.assertNotIn("leak", big)
        self.assertRegex(self.symbolize(collector, whole), f"build {build_id}, [0-9]+ frames without a name, [1-9]")
        (big,) = (stack for stack, (live, _) in self.stacks(collector).items() if live >= 20 * MIB)
        self.assertEqual([name for name in big if name in NAMED], list(NAMED))

    def test_killed_at_any_moment_all_or_nothing_is_there(self):
        collector = self.collector()
        whole, _, build_id, addresses = build(self.folder, "prog")
        chance = random.Random(5)
        rows = [(tuple(chance.choice(NAMED) for _ in range(chance.randrange(1, 9))), number, 0, 0) for number in range(3000)]
        self.assertEqual(collector.send(placed(build_id, addresses, rows), guid="one"), 200)
        collector.settle()
        before = self.figures(collector)
        unnamed = set(self.stacks(collector))
        named = {frames for frames, *_ in rows}
        kills = 0
        for number in range(60):
            with subprocess.Popen([*self.command(collector, whole), "-q"], env=self.environment()) as process:
                time.sleep(chance.random() * self.moments[number % 3])
                process.send_signal(signal.SIGKILL)
                kills += process.wait() == -signal.SIGKILL
            found = set(self.stacks(collector))
            self.assertIn(found, (unnamed, named))
            if found == named:
                break
        self.assertGreater(kills, 0)
        self.symbolize(collector, whole)
        self.assertEqual(set(self.stacks(collector)), named)
        self.assertEqual(self.figures(collector), before)
        self.check_store(collector)


class NamedOnServers(OnServers, Named):
    def unnamed(self, *options, **how):
        """A collector with stacks of places that are called alike and are not, and the other way round; and what has their names."""
        collector = self.collector(*options, **how)
        whole, _, build_id, addresses = build(self.folder, "prog")
        for number in range(2):
            rows = [(NAMED, MIB, 0, 0), ((*NAMED[:2], "leak+5"), 1, 0, 0), (("main", "serve"), 16, 0, 0), (("main", "leak"), 32, 0, 0)]
            self.assertEqual(collector.send(placed(build_id, addresses, rows, host=f"h{number}")), 200)
            collector.settle()
        self.assertEqual(len(self.stacks(collector)), 2)
        self.wanted = {NAMED: (2 * MIB + 2, 2), ("main", "serve"): (32, 2), ("main", "leak"): (64, 2)}
        return collector, whole, build_id, addresses

    def die_at(self, point, is_seen):
        """Nothing of it is seen, or all; and the next one brings it to its end."""
        self.assertIn(point.partition(":")[0], NAMING)
        collector, whole, *_ = self.unnamed()
        before, figures = self.stacks(collector), self.figures(collector)
        killed = subprocess.run(self.command(collector, whole, program=(str(DYING),)), check=False, stderr=subprocess.DEVNULL,
                                env={**self.environment(), "MEMLOG_TEST_CRASH_POINT": point}, timeout=harness.TIMEOUT)
        self.assertEqual(killed.returncode, -signal.SIGKILL)
        self.assertEqual(self.stacks(collector), self.wanted if is_seen else before)
        if point == "turn-sent:1":  # the other server does not know yet that it is whole, and says so of all
            self.nodes[0].stop()
            self.assertEqual(len(self.stacks(collector)), 2)
            self.nodes[0].start()
        self.symbolize(collector, whole)
        self.assertEqual(self.stacks(collector), self.wanted)
        self.check_store(collector)
        for node in self.nodes:  # what the dead one left has gone
            for table in ("given", "renamed"):
                self.assertEqual(node.ask(f"SELECT count() FROM memlog.{table} WHERE turn NOT IN (SELECT turn FROM memlog.turns)"), "0")
            self.assertEqual(node.ask("SELECT uniqExact(turn) FROM memlog.turns"), "1")
        self.assertEqual(self.figures(collector), figures)
        for away in (0, 1):
            self.nodes[away].stop()
            self.assertEqual({frames: hosts for frames, (_, hosts) in self.stacks(collector).items()}, dict.fromkeys(self.wanted, 1))
            self.nodes[away].start()

    def test_it_dies_when_functions_are_there(self):
        self.die_at("given-sent:1", False)

    def test_it_dies_when_stacks_are_there(self):
        self.die_at("renamed-sent:1", False)

    def test_it_dies_when_one_server_knows(self):
        self.die_at("turn-sent:1", True)

    def test_it_dies_when_all_servers_know(self):
        self.die_at("turn-sent:2", True)

    def test_it_dies_when_all_is_done(self):
        self.die_at("named:1", True)

    def test_a_server_that_is_away_is_said_and_nothing_is_half_done(self):
        collector, whole, *_ = self.unnamed()
        before = self.stacks(collector)
        for away in (0, 1):
            self.nodes[away].stop()
            self.assertIn(f"{self.nodes[away].url}: ", self.symbolize(collector, whole, code=1))
            self.nodes[away].start()
            self.assertEqual(self.stacks(collector), before)
            self.assertEqual(self.names("1"), [["", "", ""]] * 2)
        self.assertIn("4 named", self.symbolize(collector, whole))
        self.assertEqual(self.stacks(collector), self.wanted)

    def test_cut_connections_are_said_and_again_does_it(self):
        collector, *_ = self.unnamed(chance=random.Random(3))
        failed = 0
        for number in range(6):
            whole, _, build_id, addresses = build(self.folder, f"prog{number}", more=40 + number)
            other = f"other{number}"
            self.assertEqual(collector.send(placed(build_id, addresses, [((*NAMED, other), MIB, 0, 0), (("serve", "leak", other), 1, 0, 0)])), 200)
            collector.settle()
            before, figures, code = self.stacks(collector), self.figures(collector), 1
            wanted = {frames: values for frames, values in before.items() if other not in frames}
            wanted |= {(*NAMED, other): (MIB, 1), ("serve", "leak", other): (1, 1)}
            while code != 0:
                for link in self.links:
                    link.share = 0.3
                answer = subprocess.run(self.command(collector, whole), capture_output=True, text=True, env=self.environment(), check=False, timeout=harness.TIMEOUT)
                for link in self.links:
                    link.share = 0
                self.assertIn(self.stacks(collector), (before, wanted))
                code = answer.returncode
                if code != 0:
                    self.assertTrue(any(f"{link.url}: " in answer.stderr for link in self.links), answer.stderr)
                    failed += 1
            self.assertEqual(self.stacks(collector), wanted)
            self.symbolize(collector, whole)  # one server may have been told of the end late
            self.check_store(collector)
            self.assertEqual(self.figures(collector), figures)
        self.assertGreater(failed, 0)

    def test_one_at_a_time_gives_names(self):
        collector, whole, *_ = self.unnamed()
        with open(self.spool / "names.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertIn("another one gives names", self.symbolize(collector, whole, code=1))
        self.assertIn("4 named", self.symbolize(collector, whole))

    def test_stacks_that_come_in_the_middle_are_called_alike(self):
        """Reports with new stacks come all the time while names are given, build after build: in the end no stack is left out."""
        collector, *_ = self.unnamed()
        builds = [build(self.folder, f"prog{number}", more=30 + number) for number in range(4)]
        chance = random.Random(11)
        sent, done = {}, threading.Event()

        def send():
            for number in range(400):
                if done.is_set():
                    break
                _, _, build_id, addresses = builds[number % 4]
                frames = tuple(chance.choice(NAMED) for _ in range(chance.randrange(2, 9)))
                if collector.send(placed(build_id, addresses, [(frames, 1, 0, 0)], host="late", nonce=number), guid=f"late{number}") == 200:
                    sent[frames] = sent.get(frames, 0) + 1
                time.sleep(0.01)
        sender = threading.Thread(target=send)
        sender.start()
        try:
            for whole, *_ in builds:
                time.sleep(0.5)
                self.symbolize(collector, whole)
        finally:
            done.set()
            sender.join()
        collector.settle()
        for whole, *_ in builds:  # a build of which nothing had come yet
            self.symbolize(collector, whole)
        found = {frames: live for frames, (live, _) in self.stacks(collector, build=None).items() if all(name in NAMED for name in frames)}
        self.assertEqual(found, sent)

    def test_what_is_removed_and_swept_takes_its_names_along(self):
        collector, whole, build_id, addresses = self.unnamed()
        self.symbolize(collector, whole)
        self.assertEqual([[table != "" for table in node] for node in self.names()], [[True] * 3] * 2)
        self.assertEqual(collector.send(trace([(("kept",), 1, 0, 0)], host="h2")), 200)
        collector.settle()
        for host in ("h0", "h1"):
            self.assertEqual(collector.request("DELETE", f"/api/v1/fleet/host?name={host}", token=16 * "a")[0], 202)
        self.wait_for("the deletion", lambda: collector.ask("removals")["removals"] == [])
        self.assertEqual(self.stacks(collector), {("kept",): (1, 1)})
        collector.stop()
        with sqlite3.connect(self.spool / "batches.db") as batches:
            batches.execute("UPDATE swept SET at_s = 0")  # it is due once an hour
        collector.start()
        self.wait_for("the sweep", lambda: all(node[:2] == ["", ""] for node in self.names()))
        # As if it had never been: it comes without names again, and gets them again.
        self.assertEqual(collector.send(placed(build_id, addresses, [(NAMED, MIB, 0, 0)], host="again")), 200)
        collector.settle()
        self.assertNotIn(NAMED, self.stacks(collector))
        self.assertIn("3 frames without a name, 3 named", self.symbolize(collector, whole))
        self.assertEqual(self.stacks(collector)[NAMED], (MIB, 1))


class RefusedOnServers(OnServers):
    def test_another_spool_and_a_database_that_is_not_there_are_said(self):
        collector = self.collector()
        batches, elsewhere = self.spool / "batches.db", self.folder / "elsewhere"
        batches.rename(elsewhere)
        self.assertIn("--spool=DIR is the collector's", self.symbolize(collector, "/bin/ls", code=1))
        elsewhere.rename(batches)
        whole, *_ = build(self.folder, "prog")
        self.assertIn("0 frames without a name, 0 named, 0 stacks renamed", self.symbolize(collector, whole))


class Refused(Case):
    def test_files_that_are_none_change_nothing(self):
        collector = self.collector()
        whole, _, build_id, addresses = build(self.folder, "prog")
        other, *_ = build(self.folder, "other", more=21)
        self.assertEqual(collector.send(placed(build_id, addresses, [(NAMED, MIB, MIB, MIB)]), guid="one"), 200)
        collector.settle()
        before = self.stacks(collector)
        self.assertIn("0 frames without a name", self.symbolize(collector, other))
        bytes_of, chance = whole.read_bytes(), random.Random(3)
        wrong = self.folder / "wrong"
        os.mkfifo(self.folder / "pipe")
        for path in (self.folder, self.folder / "none", self.folder / "pipe", self.folder / "prog.c", "abcdef0123456789"):
            self.assertRegex(self.symbolize(collector, path, code=1), "No such file|it is no ELF file")
        for number in range(30):
            mutated = bytearray(bytes_of[:chance.randrange(len(bytes_of))] if number % 2 else bytes_of)
            for _ in range(chance.randrange(1, 400)):
                mutated[chance.randrange(len(mutated))] = chance.randrange(256)
            # Its own build id is another one: whatever is in it is about nothing here.
            wrong.write_bytes(bytes(mutated).replace(bytes.fromhex(build_id), bytes(20)))
            subprocess.run([str(harness.MEMLOG), "collect", "symbolize", "-q", f"--store=sqlite:{collector.store}", str(wrong)],
                           env=self.environment(), check=False, stderr=subprocess.DEVNULL, timeout=harness.TIMEOUT)
            self.assertEqual(self.stacks(collector), before)
        # One file that is none does not hold up the next.
        self.assertIn("3 named", self.symbolize(collector, self.folder / "none", whole, code=1))
        self.assertEqual(set(self.stacks(collector)), {NAMED})

    def test_words_that_do_not_fit(self):
        def refused(*words, code):
            answer = subprocess.run([str(harness.MEMLOG), "collect", "symbolize", *words], capture_output=True, text=True, env=self.environment(), check=False,
                                    cwd=self.folder, timeout=harness.TIMEOUT)
            self.assertEqual(answer.returncode, code, answer.stderr)
            return answer.stderr
        self.assertIn("say where the reports are", refused("/bin/ls", code=2))
        self.assertIn("say which file has the names", refused("--store=sqlite:x", code=2))
        self.assertIn("a store is sqlite:PATH or clickhouse:URL", refused("--store=other:x", "/bin/ls", code=2))
        self.assertIn("wants the collector's --spool=DIR", refused("--store=clickhouse:http://x", "/bin/ls", code=2))
        self.assertIn("--store-auth is for", refused("--store=sqlite:x", "--store-auth=x", "/bin/ls", code=2))
        self.assertIn("ledger.db: No such file", refused("--store=clickhouse:http://x", "--spool=nowhere", "/bin/ls", code=1))
        self.assertIn("No such file", refused("--store=sqlite:none", "/bin/ls", code=1))
        collector = self.collector()
        self.assertIn("--spool=DIR is the collector's", self.symbolize(collector, "--spool=nowhere", "/bin/ls", code=1))


def collect_wait(case, collector, team):
    case.wait_for("all to be stored", lambda: collector.figures(team)["waiting"] == 0)


if __name__ == "__main__":
    unittest.main()
