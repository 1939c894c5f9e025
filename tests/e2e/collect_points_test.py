"""The collector dies at each of its named steps, by name: no report is lost, none doubled, and what was to be deleted is gone. Both engines.

collect_test.py and collect_clickhouse_test.py kill at any moment, and find steps that have no name yet.
"""
import contextlib
import os
import random
import re
import signal
import sqlite3
import threading
import time
import unittest

import clickhouse
import collecting
import harness
from collecting import packed, trace

MIB = 1 << 20
LEAK, CACHE = ("main", "serve", "leak"), ("main", "serve", "cache")
TAKING = ("body-written", "body-synced", "line-written", "answered", "read", "inserted", "counting", "counted")
DELETING = ("wish-noted", "store-removed", "body-removed", "line-removed")
SQLITE = ("adding", "removing", "sweeping")
CLICKHOUSE = ("batch-noted", "frames-sent", "stacks-sent", "samples-sent", "samples-noted", "dumps-sent", "samples-removed")
NAMING = ("given-sent", "renamed-sent", "turn-sent", "named")  # collect_symbolize_test.py's
# Those that it comes to with each report; at others it is with each batch, wish or round.
OFTEN = {"body-written", "body-synced", "line-written", "answered", "read", "store-removed", "body-removed", "line-removed", "removing", "samples-removed"}
DYING = harness.OUT / "memlog-collect-dying"


class Case(harness.Case):
    """A collector over a spool and a store that stay; each death is followed by one that does not die."""

    def begin(self, *options, place=None):
        self.collector = collecting.Collector(self.folder, *options, environment=self.environment(), place=place)
        self.addCleanup(lambda: self.collector.process and self.collector.process.poll() is None and self.collector.stop(signal.SIGKILL))
        self.kept, self.deaths = {}, 0

    def start(self, point=None):
        self.collector.environment = self.environment()
        if point:
            self.collector.environment["MEMLOG_TEST_CRASH_POINT"] = point
        self.collector.command = [str(DYING), "collect"]
        try:
            self.collector.start()
        except AssertionError:  # it was dead before it said that it is up
            if not point or self.collector.process.poll() != -signal.SIGKILL:
                raise

    def is_dead(self):
        return self.collector.process.poll() is not None

    def send(self, guid, body, done):
        """As memlog's own senders: again until 200 is heard."""
        while not done.is_set():
            try:
                status = self.collector.send(body, guid=guid)
                if status == 200:
                    return
                self.assertIn(status, (429, 503, 507))
            except OSError:
                pass
            time.sleep(0.02)

    def delete(self, host, done):
        while not done.is_set():
            try:
                if self.collector.request("DELETE", f"/api/v1/fleet/host?name={host}", token=16 * "a")[0] == 202:
                    return
            except OSError:
                pass
            time.sleep(0.02)

    def die_at(self, point, times, number):
        """Reports come, and one host's are deleted, while it dies at the point."""
        done = threading.Event()
        self.addCleanup(done.set)
        bodies = {f"p{number}n{each}": packed(trace([((*LEAK, f"f{number}"), 1000 + each, 0, 0), (CACHE, 10, 0, 0)], host=f"h{number}-{each % 2}"))
                  for each in range(6)}
        self.start(f"{point}:{times}")

        def work():
            for guid, body in bodies.items():
                self.send(guid, body, done)
            self.delete(f"h{number}-1", done)
        sender = threading.Thread(target=work)
        sender.start()
        self.wait_for(f"its death at {point}", self.is_dead)
        self.assertEqual(self.collector.process.poll(), -signal.SIGKILL, point)
        self.deaths += 1
        self.start()
        sender.join()
        self.kept.update({guid: 1010 + each for each, guid in enumerate(bodies) if each % 2 == 0})
        self.wait_for("the deletion", lambda: self.collector.ask("removals")["removals"] == [])
        self.assertEqual(self.collector.settle(), {"waiting": 0, "stored": len(self.kept), "refused": 0}, (point, self.collector.reasons()))
        top = self.collector.ask("top", limit=1000)
        self.assertEqual((top["dumps"], top["live_bytes"]), (len(self.kept), sum(self.kept.values())), point)
        self.assertEqual(sum(stack["live_bytes"] for stack in top["stacks"]), top["live_bytes"], point)
        self.assertEqual({one["guid"] for one in self.collector.ask("reports", limit=10000)["reports"]}, set(self.kept), point)
        self.check(point)
        self.assertEqual(self.collector.stop(), 0)

    def check(self, point):
        """What the store has by itself."""

    def die_at_each(self, *points):
        chance = random.Random(9)
        for number, point in enumerate(points):
            with self.subTest(point):
                try:
                    self.die_at(point, chance.randrange(1, 4) if point in OFTEN else 1, number)
                finally:
                    if not self.is_dead():
                        self.collector.stop(signal.SIGKILL)
        self.assertEqual(self.deaths, len(points))


class Points(Case):
    def test_each_point_of_the_source_has_its_death(self):
        named = set()
        for path in (harness.ROOT / "host" / "collect").rglob("*.c"):
            named.update(re.findall(r'ml_crash_point\("([^"]+)"\)', path.read_text(encoding="utf-8")))
        self.assertEqual(named, {*TAKING, *DELETING, *SQLITE, *CLICKHOUSE, *NAMING})

    def test_no_environment_lets_the_shipped_one_die(self):
        self.begin()
        self.collector.environment = {**self.environment(), "MEMLOG_TEST_CRASH_POINT": "body-written:1"}
        self.collector.start()
        self.assertEqual(self.collector.send(trace([(LEAK, MIB, 0, 0)])), 200)
        self.collector.settle()
        self.assertIsNone(self.collector.process.poll())


class Embedded(Case):
    def check(self, point):
        with contextlib.closing(sqlite3.connect(self.folder / "fleet.db", timeout=harness.TIMEOUT)) as store:
            for what, wanted in (("dumps", len(self.kept)), ("samples", 2 * len(self.kept))):
                self.assertEqual(store.execute(f"SELECT count(*) FROM {what}").fetchone(), (wanted,), (point, what))
            self.assertEqual(store.execute("SELECT count(*) FROM samples WHERE stack NOT IN (SELECT id FROM stacks)").fetchone(), (0,), point)
        spool = self.folder / "fleet.db.spool"
        self.assertEqual(sum(len(files) for _, _, files in os.walk(spool / "bodies")), len(self.kept), point)
        self.assertEqual(os.listdir(spool / "incoming"), [], point)

    def test_at_each_step_none_is_lost_and_none_doubled(self):
        self.begin()
        self.die_at_each(*TAKING, *DELETING, *SQLITE)


@unittest.skipUnless(clickhouse.SERVER, "clickhouse-server")
class Servers(Case):
    def check(self, point):
        for what, wanted in (("dumps", len(self.kept)), ("samples", 2 * len(self.kept))):
            self.assertEqual(self.nodes[0].ask(f"SELECT count() FROM memlog.{what}"), str(wanted), (point, what))
        with contextlib.closing(sqlite3.connect(self.folder / "spool" / "batches.db", timeout=harness.TIMEOUT)) as batches:
            self.assertEqual(batches.execute("SELECT count(*) FROM batches").fetchone(), (0,), point)

    def test_at_each_step_none_is_lost_and_none_doubled(self):
        self.nodes = clickhouse.servers(self.folder)
        for one in self.nodes:
            self.addCleanup(one.stop)
            one.start()
        self.begin(f"--spool={self.folder}/spool", place="clickhouse:" + ",".join(one.url for one in self.nodes))
        self.die_at_each(*TAKING, *DELETING, *CLICKHOUSE)


if __name__ == "__main__":
    unittest.main()
