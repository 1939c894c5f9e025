"""The collector on two servers of ClickHouse: the same answers as the embedded store's; each report once, whatever dies."""
import json
import os
import random
import signal
import sqlite3
import subprocess
import threading
import time
import unittest

import clickhouse
import collecting
import harness
from clickhouse_case import CACHE, LEAK, MIB, Case
from collecting import bare, packed, pprof, trace
from unnamed import NAMED, build, placed

DAY_MS = 86400000
NASTY = ("'; DROP TABLE dumps_local; --", "\\' OR 1 = 1 --", "\\", "a\tb\nc", "$$x$$ {x:String} :team ?", "x') FORMAT Null --", "%s%d%00", "\u202ex\u0007", "é`\"")


def reports(chance, now_ms, count=200):
    """Reports of several programs, builds, hosts and weeks, with recursion, equal names in other builds, frames without a name, and one empty."""
    bodies = []
    stacks = [("main", *(chance.choice(("a", "b", "[no name]", NASTY[chance.randrange(len(NASTY))])) for _ in range(chance.randrange(1, 7)))) for _ in range(50)]
    for number in range(count):
        rows = [(stack, *(chance.randrange(1 << 20) for _ in range(3))) for stack in chance.sample(stacks, 20)]
        rows += rows[:3]  # the same stack again
        bodies.append((f"g{number}", packed(trace(
            rows if number else [], program="prog" if number % 5 else chance.choice(NASTY), build=f"b{number % 3}" if number % 5 != 1 else "", host=f"h{number % 11}",
            version=f"1.{number % 4}", control=number % 4 != 0, process=chance.choice(("prog", "helper")), role=chance.choice(("main", NASTY[0])),
            time_ns=(now_ms - chance.randrange(40 * DAY_MS)) * 1000000, **({"promised_ppm": 10000, "cost_ppm": 80 * number} if number % 2 else {}))), "default"))
    for number in range(12):  # as others send them: without a peak, and without totals, too
        rows = [(stack, *(chance.randrange(1 << 20) for _ in range(3))) for stack in chance.sample(stacks, 9)]
        kind = number % 4
        if kind == 0:
            body = packed(bare(trace(rows, build=f"b{number % 3}", host=f"h{number}", control=True, time_ns=(now_ms - 1000 * number) * 1000000)))
        else:
            body = pprof([(stack, live, total) for stack, live, _, total in rows], build="b1", comment="" if kind == 1 else "memlog: not complete", totals=kind != 2)
        bodies.append((f"other{number}", body, "default"))
    bodies.append(("nothing", packed(bare(trace([], program="others"))), "default"))
    return bodies


def unnamed(chance, now_ms, programs, count=150):
    """Reports of builds b0 to b2 whose frames lie in these programs, as places: several of one function, recursion, callers with names."""
    bodies = []
    places = [*NAMED, "leak+5", "serve+6", "other", "a"]
    stacks = [("main", *(chance.choice(places) for _ in range(chance.randrange(1, 6)))) for _ in range(40)]
    for number in range(count):
        _, _, build_id, addresses = programs[number % len(programs)]
        rows = [(stack, *(chance.randrange(1 << 20) for _ in range(3))) for stack in chance.sample(stacks, 12)]
        bodies.append((f"placed{number}", packed(placed(
            build_id, addresses, rows, build=f"b{number % 3}", host=f"h{number % 11}", control=number % 4 != 0, nonce=number,
            time_ns=(now_ms - chance.randrange(40 * DAY_MS)) * 1000000)), "default"))
    return bodies


class Answers(Case):
    def questions(self, small):
        (leaf, *_) = small.ask("top", program="prog")["stacks"]
        now_ms = int(time.time() * 1000)
        spans = ({}, {"from_ms": now_ms - 10 * DAY_MS}, {"until_ms": now_ms - 20 * DAY_MS}, {"from_ms": now_ms - 25 * DAY_MS, "until_ms": now_ms - 15 * DAY_MS})
        words = ({}, {"program": "prog"}, {"program": "prog", "build": "b1"}, {"program": "nobody"}, {"limit": 3}, {"control": "1"}, *({"program": name} for name in NASTY),
                 *({"program": "prog", "build": name, "host": name} for name in NASTY))
        for question in ("programs", "builds", "top", "flame", "hosts", "reports"):
            for word in words:
                for span in spans:
                    yield question, {**word, **span}
        others = ({"host": "h3"}, {"control": "1"}, {"build": "none"}, {"build": "none", "control": "1"}, {"build": "b0", "host": "h1", "control": "1"}, {"host": NASTY[3]})
        for question in ("programs", "builds", "top", "flame", "hosts", "reports", "diff"):
            for word in others:
                for span in spans[:2]:
                    yield question, {"program": "prog", **word, **span}
        for metric in ("peak", "total"):
            yield "top", {"metric": metric, "limit": 7}
        for build, other in (("b0", "b1"), ("b1", "b2"), ("b0", "nobody"), (NASTY[0], NASTY[1])):
            yield "diff", {"program": "prog", "build": build, "other": other}
        for build, other in (("b0", "b1"), ("b1", "none"), ("none", "b2")):
            for metric in ("live", "peak", "total"):
                for span in (*spans, {"from_ms": now_ms - 33 * DAY_MS}):
                    yield "diff", {"program": "prog", "build": build, "other": other, "metric": metric, "limit": 200, **span}
            yield "diff", {"program": "prog", "build": build, "other": other, "metric": "peak", "host": "h1"}
        for guid in ("g0", "g1", "g7", "other0", "other1", "other2", "other3", "nothing", "nobody", NASTY[0]):
            yield "report", {"guid": guid}
        for stack in (leaf["stack"], "1", "9223372036854775807"):
            yield "hosts", {"stack": stack}
            yield "hosts", {"stack": stack, "program": "prog", "limit": 2}
            yield "hosts", {"stack": stack, "host": "h4", "control": "1"}
            for word in ({}, {"program": "prog"}, {"program": "prog", "build": "b1", "control": "1"}, {"host": "h2"}, *spans):
                yield "reports", {"stack": stack, **word}
        for metric in ("live", "peak", "total"):
            for limit in (1, 7, 1000):
                yield "flame", {"program": "prog", "metric": metric, "limit": limit}

    def compare(self, small, large):
        count = diffs = 0
        for question, words in self.questions(small):
            told = []
            for one in (small, large):
                query = collecting.urllib.parse.urlencode(words)
                told.append(one.request("GET", f"/api/v1/fleet/{question}?{query}", token=one.tokens["default"]["read"]))
            with self.subTest(question, **words):
                self.assertEqual(told[0][0], told[1][0], told)
                self.assertIn(told[0][0], (200, 400), told)
                if told[0][0] == 200:
                    answers = [json.loads(body) for _, _, body in told]
                    self.assert_same(*answers, question)
                    count += 1
                    diffs += question == "diff" and bool(answers[0]["stacks"])
        self.assertGreaterEqual(diffs, 20)
        return count

    def test_both_stores_give_the_same_answers(self):
        """To every question, also of names that want to be SQL, and of nodes with a part of the reports each."""
        small, large, nodes = self.both(reports(random.Random(2), int(time.time() * 1000)))
        parts = [int(node.ask("SELECT count() FROM memlog.dumps_local")) for node in nodes]
        self.assertEqual(sum(parts), 213)
        self.assertTrue(all(parts), parts)
        self.assertGreater(self.compare(small, large), 400)
        self.assertIn("dumps_local", nodes[0].ask("SHOW TABLES FROM memlog"))

    def test_sums_of_past_weeks_are_those_of_the_samples(self):
        """Reports that arrived weeks ago are asked for by sums that are made of each week; and nothing else."""
        now_ms = int(time.time() * 1000)

        def edit(ledger):
            ledger.execute("UPDATE reports SET received_ms = ? - (id % 4) * 7 * 86400000", (now_ms,))

        small, large, nodes = self.both(reports(random.Random(4), now_ms), edit)

        def made():
            return sum(int(node.ask("SELECT uniqExact(kept) FROM memlog.sums_local")) for node in nodes)

        there = "SELECT uniqExact(kept) FROM memlog.samples_local WHERE kept < toMonday(today())"
        wanted = sum(int(node.ask(there)) for node in nodes)
        self.assertGreaterEqual(wanted, 3)
        self.wait_for("the sums of all weeks", lambda: made() == wanted)
        time.sleep(0.5)  # it marks the last of them
        self.assertGreater(self.compare(small, large), 400)
        # What the sums say is what is told of their weeks.
        for node in nodes:
            node.ask("ALTER TABLE memlog.samples_local DELETE WHERE kept < toMonday(today())")
        self.wait_for("the samples' end", lambda: all(node.ask("SELECT count() FROM memlog.samples_local WHERE kept < toMonday(today())") == "0" for node in nodes))
        for question in ("top", "flame"):
            told = [one.ask(question, program="prog", limit=1000) for one in (small, large)]
            for answer in told:
                for stack in answer.get("stacks", ()):
                    stack["hosts"] = 0  # by samples alone
            self.assert_same(*told)

    def symbolize(self, one, *files):
        """What it says of each."""
        answer = subprocess.run(
            [str(harness.MEMLOG), "collect", "symbolize", f"--store={one.place}", *one.options, *map(str, files)], capture_output=True, text=True,
            check=False, env=self.environment(), timeout=harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stderr

    def test_names_that_come_later_are_the_same_in_both(self):
        """To every question, of weeks with sums and without, build after build; also when reports come later, are removed, and all is filled anew."""
        now_ms, chance = int(time.time() * 1000), random.Random(6)
        programs = [build(self.folder, f"prog{number}", more=20 + number) for number in range(3)]

        def edit(ledger):
            ledger.execute("UPDATE reports SET received_ms = ? - (id % 3) * 7 * 86400000", (now_ms,))

        small, large, nodes = self.both(reports(chance, now_ms) + unnamed(chance, now_ms, programs[:2]), edit)
        there = "SELECT uniqExact(kept) FROM memlog.samples_local WHERE kept < toMonday(today())"
        wanted = sum(int(node.ask(there)) for node in nodes)
        self.wait_for("the sums", lambda: sum(int(node.ask("SELECT uniqExact(kept) FROM memlog.sums_local")) for node in nodes) == wanted)
        time.sleep(0.5)  # it marks the last of them
        samples = [node.ask("SELECT * FROM memlog.samples_local ORDER BY guid, stack, live, peak, total") for node in nodes]
        before = len(small.ask("top", limit=10000)["stacks"])
        for number in (0, 1):
            told = {self.symbolize(one, programs[number][0]) for one in (small, large)}
            self.assertRegex("".join(told), f"build {programs[number][2]}, 5 frames without a name, 5 named, [1-9][0-9]+ stacks renamed")
            self.assertEqual(len(told), 1, told)
            self.same_at_one_time(small, large)
        self.assertGreater(self.compare(small, large), 400)
        self.assertNotEqual(len(small.ask("top", limit=10000)["stacks"]), before)
        for _ in range(2):  # doing it again changes nothing
            self.assertEqual({self.symbolize(one, programs[0][0]).partition(", ")[2] for one in (small, large)}, {"0 frames without a name, 0 named, 0 stacks renamed\n"})
        self.assertEqual([node.ask("SELECT * FROM memlog.samples_local ORDER BY guid, stack, live, peak, total") for node in nodes], samples)
        late = [(f"late{guid}", body, team) for guid, body, team in unnamed(chance, now_ms, programs, 30)]
        for one in (small, large):
            for guid, body, _ in late:
                self.assertEqual(one.send(body, guid=guid), 200)
            self.settle(one)
        for one in (small, large):
            for guid in ("placed3", "placed4", "lateplaced2"):
                self.assertEqual(one.request("DELETE", f"/api/v1/fleet/report?guid={guid}", token=one.tokens["default"]["admin"])[0], 200)
        self.same_at_one_time(small, large)
        for one in (small, large):
            self.symbolize(one, programs[2][0])
        self.same_at_one_time(small, large)
        for one in (small, large):
            one.stop()
        for suffix in ("", "-wal", "-shm"):
            (self.folder / "small" / f"fleet.db{suffix}").unlink(missing_ok=True)
        for node in nodes:
            node.ask("DROP DATABASE memlog")
        (self.folder / "click" / "spool" / "batches.db").unlink()
        for one in (small, large):
            subprocess.run([str(harness.MEMLOG), "collect", f"--store={one.place}", *one.options, "--rebuild"], check=True, env=self.environment(),
                           timeout=harness.TIMEOUT)
            one.start("--retention=0")
        self.assertEqual(len({self.symbolize(one, *(whole for whole, *_ in programs)) for one in (small, large)}), 1)
        self.same_at_one_time(small, large)

    def same_at_one_time(self, small, large):
        """Reports that came apart have other times, and so other weeks: what has none of these is the same."""
        for question, words in (("top", {"limit": 10000}), ("flame", {}), ("programs", {}), ("hosts", {"program": "prog"})):
            told = [one.ask(question, **words) for one in (small, large)]
            for answer in told:
                for row in (*answer.get("programs", ()), *answer.get("hosts", ())):
                    row["last_ms"] = 0
                for row in answer.get("stacks", ()):
                    row["most_live_bytes"] = 0  # SQLite's stays when the report goes that had it
            self.assert_same(*told, question)

    def test_what_a_form_does_not_say_is_no_zero(self):
        """Means and shares are over the dumps that say a figure; also in stores that were filled before this was kept, and with one of them removed."""
        bodies = [(f"full{number}", packed(trace([(LEAK, MIB, number * MIB, 9 * MIB), (CACHE, MIB, 0, MIB)])), "default") for number in (2, 4)]
        bodies += [("push", pprof([(LEAK, MIB, 9 * MIB)]), "default"), ("live", pprof([(LEAK, MIB)], totals=False), "default"),
                   ("bare", packed(bare(trace([(CACHE, MIB, 0, 0)], build="bare"))), "default"), ("gone", pprof([(LEAK, MIB)], totals=False), "default")]
        small, large, nodes = self.both(bodies)

        def look(removed):
            lacking = 4 - removed
            for one in (small, large):
                told = one.ask("top", program="prog", metric="peak")
                self.assertEqual((told["dumps"], told["peak_bytes"], told["total_bytes"]), (6 - removed, 6 * MIB, 29 * MIB))
                self.assertEqual((told["dumps_without_peak"], told["dumps_without_total"]), (lacking, lacking - 1))
                leak = next(stack for stack in told["stacks"] if stack["frames"][-1] == "leak")
                self.assertEqual((leak["mean_peak_bytes"], leak["mean_total_bytes"]), (3 * MIB, 9 * MIB))
                self.assertEqual(one.ask("flame")["dumps_without_peak"], lacking)
                builds = {build["build_id"]: build for build in one.ask("builds", program="prog")["builds"]}
                self.assertEqual([(builds[name]["most_peak_bytes"], builds[name]["dumps_without_peak"]) for name in ("b1", "bare")],
                                 [(4 * MIB, lacking - 1), (None, 1)])
                (program,) = one.ask("programs")["programs"]
                self.assertEqual((program["most_peak_bytes"], program["dumps_without_peak"]), (4 * MIB, lacking))
                of_none = one.ask("top", program="prog", build="bare")
                self.assertEqual((of_none["dumps_without_total"], of_none["stacks"][0]["mean_peak_bytes"]), (1, None))
                for guid, wanted in (("full2", (2 * MIB, 10 * MIB, True)), ("push", (None, 9 * MIB, True)), ("live", (None, None, True)), ("bare", (None, None, True))):
                    answer = one.ask("report", guid=guid)
                    (report,) = answer["reports"]
                    self.assertEqual((report["peak_bytes"], report["total_bytes"], report["complete"]), wanted, guid)
                    self.assertEqual([row["peak_blocks"] is None for row in answer["rows"]], [wanted[0] is None] * len(answer["rows"]))

        def renewed(age):
            for one in (small, large):
                one.stop()
            age()
            for one in (small, large):
                one.start("--retention=0")

        def age():
            """As an older memlog left them."""
            with sqlite3.connect(small.store) as store:
                for column in ("dumps DROP COLUMN told", "weeks DROP COLUMN peak_n", "weeks DROP COLUMN total_n"):
                    store.execute(f"ALTER TABLE {column}")
            for node in nodes:
                for table in ("dumps", "dumps_local"):
                    node.ask(f"ALTER TABLE memlog.{table} DROP COLUMN told")

        look(0)
        renewed(age)
        look(0)
        renewed(lambda: None)
        look(0)
        for one in (small, large):
            self.assertEqual(one.request("DELETE", "/api/v1/fleet/report?guid=gone", token=one.tokens["default"]["admin"])[0], 200)
            self.assertEqual(one.send(pprof([(LEAK, MIB)], totals=False, comment=""), guid="late"), 200)
            self.settle(one)
            self.assertIsNone(one.ask("report", guid="late")["reports"][0]["complete"])
            self.assertEqual(one.request("DELETE", "/api/v1/fleet/report?guid=late", token=one.tokens["default"]["admin"])[0], 200)
        look(1)

    def test_what_memlog_cost_is_kept_by_both(self):
        """The mean is over the reports that say it; a store that was filled before has none that do."""
        costs = ((4000, 10000), (7001, 10000), (12000, 10000), (300, None), (None, 10000), (None, None))
        bodies = [(f"g{number}", packed(trace([(LEAK, MIB, MIB, MIB)], **{key: value for key, value in (("cost_ppm", cost), ("promised_ppm", promised)) if value})),
                   "default") for number, (cost, promised) in enumerate(costs)]
        bodies.append(("lies", packed(trace([(LEAK, MIB, MIB, MIB)], build="lies", cost_ppm=1 << 40, promised_ppm=-3)), "default"))
        small, large, nodes = self.both(bodies)

        def look(one, told, build):
            reports = {report["guid"]: report for report in one.ask("reports")["reports"]}
            self.assertEqual([(reports[f"g{number}"]["cost_ppm"], reports[f"g{number}"]["promised_ppm"]) for number in range(len(told))], list(told))
            (found,) = [each for each in one.ask("builds", program="prog")["builds"] if each["build_id"] == "b1"]
            self.assertEqual((found["mean_cost_ppm"], found["dumps_with_cost"], found["dumps_over_promise"]), build)
            return reports["lies"]

        for one in (small, large):
            lies = look(one, costs, (5825, 4, 1))
            self.assertEqual((lies["cost_ppm"], lies["promised_ppm"]), (1000000, None))
            one.stop()
        with sqlite3.connect(small.store) as store:
            store.execute("UPDATE dumps SET told = told & 15")
            for column in ("promised_ppm", "cost_ppm"):
                store.execute(f"ALTER TABLE dumps DROP COLUMN {column}")
        for node in nodes:
            node.ask("ALTER TABLE memlog.dumps_local UPDATE told = bitAnd(told, 15) WHERE 1")
            self.wait_for("what it told", lambda node=node: node.ask("SELECT count() FROM memlog.dumps_local WHERE told > 15") == "0")
            for table in ("dumps", "dumps_local"):
                for column in ("promised", "cost"):
                    node.ask(f"ALTER TABLE memlog.{table} DROP COLUMN {column}")
        for one in (small, large):
            one.start("--retention=0")
            look(one, [(None, None)] * len(costs), (None, 0, 0))
            self.assertEqual(one.send(trace([(LEAK, MIB, MIB, MIB)], cost_ppm=100), guid="late"), 200)
            self.settle(one)
            look(one, [(None, None)] * len(costs), (100, 1, 0))

    def test_a_removed_report_is_gone_from_every_sum(self):
        nodes = self.servers()
        collector = self.collector(place=self.place(nodes))
        collector.start()
        for number in range(6):
            self.assertEqual(collector.send(trace([(LEAK, MIB << number, 1, 1)]), guid=f"g{number}"), 200)
        collector.settle()
        admin = collector.tokens["default"]["admin"]
        self.assertEqual(collector.request("DELETE", "/api/v1/fleet/report?guid=g5", token=admin)[0], 200)
        self.assertEqual(collector.request("DELETE", "/api/v1/fleet/report?guid=g5", token=admin)[0], 404)
        top = collector.ask("top")
        self.assertEqual((top["dumps"], top["live_bytes"], top["stacks"][0]["live_bytes"]), (5, 31 * MIB, 31 * MIB))
        self.assertEqual(len(collector.ask("reports")["reports"]), 5)

    def test_stacks_that_no_report_has_are_swept(self):
        """At all nodes; and what was swept comes again with the next report that has it."""
        nodes = self.servers()
        collector = self.collector(place=self.place(nodes))
        collector.start()
        for number in range(4):
            self.assertEqual(collector.send(trace([((*LEAK, f"f{number}"), MIB, 0, 0), (CACHE, 1, 0, 0)]), guid=f"g{number}"), 200)
        collector.settle()
        admin = collector.tokens["default"]["admin"]
        for number in range(3):
            self.assertEqual(collector.request("DELETE", f"/api/v1/fleet/report?guid=g{number}", token=admin)[0], 200)

        def names(node):
            return set(node.ask("SELECT DISTINCT function FROM memlog.frames").split("\n")), node.ask("SELECT uniqExact(id) FROM memlog.stacks")
        left = ({*LEAK, *CACHE, "f3"}, "2")
        collector.stop()
        with sqlite3.connect(self.folder / "click" / "spool" / "batches.db") as batches:
            batches.execute("UPDATE swept SET at_s = 0")  # it is due once an hour
        collector.start()  # its upkeep is after a second
        self.wait_for("the sweep", lambda: [names(node) for node in nodes] == [left, left])
        for number in range(4):  # by the same process
            self.assertEqual(collector.send(trace([((*LEAK, f"f{number}"), MIB, 0, 0)], host="again")), 200)
        collector.settle()
        for node in nodes:
            self.assertEqual(names(node), ({*LEAK, *CACHE, "f0", "f1", "f2", "f3"}, "5"))
        self.assertEqual(sorted(stack["frames"][-1] for stack in collector.ask("top")["stacks"]), ["cache", "f0", "f1", "f2", "f3"])

    def test_whole_weeks_are_dropped(self):
        nodes = self.servers()
        collector = self.collector(place=self.place(nodes))
        collector.start("--retention=0")
        for number in range(8):
            self.assertEqual(collector.send(trace([(LEAK, MIB, 0, 0)]), guid=f"g{number}"), 200)
        collector.stop()
        for node in nodes:
            node.ask("DROP DATABASE memlog")
        (self.folder / "click" / "spool" / "batches.db").unlink()
        with sqlite3.connect(self.folder / "click" / "spool" / "ledger.db") as ledger:
            ledger.execute("UPDATE reports SET state = 0, received_ms = received_ms - 86400000 * 100 * (id <= 4)")
        collector.start("--retention=0")
        collector.settle()
        self.assertEqual(collector.ask("top")["dumps"], 8)
        collector.stop()
        collector.start("--retention=30d")
        self.wait_for("the old ones' end", lambda: collector.ask("top")["dumps"] == 4)
        self.wait_for("theirs in the ledger", lambda: collector.figures()["stored"] == 4)
        self.assertEqual({one["guid"] for one in collector.ask("reports")["reports"]}, {"g4", "g5", "g6", "g7"})
        self.assertEqual({node.ask("SELECT uniqExact(partition) < 2 FROM system.parts WHERE active AND database = 'memlog' AND table = 'samples_local'") for node in nodes}, {"1"})


class Once(Case):
    def count(self, nodes):
        """(dumps, different ones, samples, different ones) of all nodes together."""
        one = nodes[0].ask("SELECT count(), uniqExact(guid) FROM memlog.dumps").split()
        other = nodes[0].ask("SELECT count(), uniqExact(guid, stack) FROM memlog.samples").split()
        return tuple(map(int, one + other))

    def test_whatever_dies_none_is_lost_and_none_doubled(self):
        """Servers and the collector are killed at any moment, and connections to the servers are cut, in what is sent and in what is answered."""
        kills = int(os.environ.get("MEMLOG_TEST_KILLS", "12"))
        chance = random.Random(8)
        nodes = self.servers()
        links = [clickhouse.Link(node, chance) for node in nodes]
        for link in links:
            self.addCleanup(link.close)
        collector = self.collector(place=self.place(links))
        collector.start()
        bodies = {f"g{number}": packed(trace([((*LEAK, f"f{number % 300}"), 1000 + number, 0, 0), (CACHE, 10, 0, 0)], host=f"h{number % 5}"))
                  for number in range(kills * 30)}
        todo = list(bodies)
        done = threading.Event()

        def send():
            while todo and not done.is_set():
                guid = todo.pop()
                try:
                    if collector.send(bodies[guid], guid=guid) != 200:
                        todo.append(guid)
                except OSError:
                    todo.append(guid)
                    time.sleep(0.02)
                time.sleep(chance.random() * 0.02)

        sender = threading.Thread(target=send)
        sender.start()
        try:
            for number in range(kills):
                for link in links:
                    link.share = 0.15
                time.sleep(chance.random() * 1.5)
                if number % 3 == 2:
                    node = chance.choice(nodes)
                    node.stop(signal.SIGKILL)
                    time.sleep(chance.random() * 0.3)
                    node.start()
                else:
                    collector.stop(signal.SIGKILL)
                    collector.start()
            while todo and sum(link.cuts for link in links) <= kills // 2:  # on a loaded machine few have come by
                time.sleep(0.05)
        finally:
            for link in links:
                link.share = 0.0
            sender.join()
            done.set()
        self.assertGreater(sum(link.cuts for link in links), 0)
        self.assertEqual(collector.settle(), {"waiting": 0, "stored": len(bodies), "refused": 0}, collector.reasons())
        self.assertEqual(self.count(nodes), (len(bodies), len(bodies), 2 * len(bodies), 2 * len(bodies)))
        top = collector.ask("top", limit=1000)
        self.assertEqual((top["dumps"], top["live_bytes"]), (len(bodies), sum(1010 + number for number in range(len(bodies)))))
        self.assertEqual(sum(stack["live_bytes"] for stack in top["stacks"]), top["live_bytes"])
        with sqlite3.connect(self.folder / "click" / "spool" / "batches.db") as batches:
            self.assertEqual(batches.execute("SELECT count(*) FROM batches").fetchone(), (0,))

    def test_an_insert_that_is_cut_anywhere_stores_nothing(self):
        """What the collector's exactly-once stands on, of this very server: a block in Native is stored whole or not at all."""
        (node,) = self.servers(1)
        node.ask("CREATE TABLE t (x UInt64) ENGINE = MergeTree ORDER BY x")
        block = b"\x01\x64" + b"\x01x\x06UInt64" + b"".join(number.to_bytes(8, "little") for number in range(100))
        head = f"POST /?query=INSERT+INTO+t+FORMAT+Native HTTP/1.1\r\nHost: x\r\nContent-Length: {len(block)}\r\n\r\n".encode()
        for cut in (0, 1, 2, 5, 11, 12, 19, 20, 411, 412, len(block) - 8, len(block) - 1):
            with clickhouse.socket.create_connection(("127.0.0.1", node.http)) as connection:
                connection.sendall(head + block[:cut])
                connection.shutdown(clickhouse.socket.SHUT_WR)
                connection.recv(1000)
            self.assertEqual(node.ask("SELECT count() FROM t"), "0", cut)
        with clickhouse.socket.create_connection(("127.0.0.1", node.http)) as connection:
            connection.sendall(head + block)
            self.assertIn(b" 200 ", connection.recv(1000))
        self.assertEqual(node.ask("SELECT count() FROM t"), "100")


if __name__ == "__main__":
    unittest.main()
