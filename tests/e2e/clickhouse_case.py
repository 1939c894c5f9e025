"""Collectors on servers of ClickHouse, for tests of them."""
import math
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

import clickhouse
import collecting
import harness

MIB = 1 << 20
LEAK, CACHE = ("main", "serve", "leak"), ("main", "serve", "cache")


@unittest.skipUnless(clickhouse.SERVER, "clickhouse-server")
class Case(harness.Case):
    def servers(self, count=2, **who):
        servers = clickhouse.servers(self.folder, count, **who)
        for one in servers:
            self.addCleanup(one.stop)
            one.start()
        return servers

    def collector(self, *options, name="click", place=None, **how):
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        if place:
            options = (f"--spool={folder}/spool", *options)
        collector = collecting.Collector(folder, *options, environment=self.environment(), place=place, **how)
        self.addCleanup(lambda: collector.process and collector.process.poll() is None and collector.stop(signal.SIGKILL))
        return collector

    @staticmethod
    def place(nodes):
        return "clickhouse:" + ",".join(one.url for one in nodes)

    def both(self, bodies, edit=lambda ledger: None, teams=None):
        """The same accepted reports, with the same ids, in either store: both are filled from one spool."""
        small = self.collector(name="small", tokens=teams).start()
        for guid, body, team in bodies:
            self.assertEqual(small.send(body, guid=guid, team=team), 200)
        self.settle(small, teams)
        small.stop()
        spool = self.folder / "small" / "fleet.db.spool"
        with sqlite3.connect(spool / "ledger.db") as ledger:
            edit(ledger)
        for suffix in ("", "-wal", "-shm"):
            (self.folder / "small" / f"fleet.db{suffix}").unlink(missing_ok=True)
        nodes = self.servers()
        large = self.collector(place=self.place(nodes), tokens=teams)
        shutil.copytree(spool, self.folder / "click" / "spool")
        for one in (small, large):
            subprocess.run(
                [str(harness.MEMLOG), "collect", f"--store={one.place}", *one.options, "--rebuild"],
                check=True, env=self.environment(), timeout=harness.TIMEOUT)
            one.start("--retention=0")
        return small, large, nodes

    @staticmethod
    def settle(collector, teams=None):
        team = next(iter(teams or {"default": 0}))
        deadline = time.monotonic() + harness.TIMEOUT
        while collector.figures(team)["waiting"]:
            if time.monotonic() > deadline:
                raise AssertionError(f"{collector.figures(team)}: {collector.said()[-3000:]}")
            time.sleep(0.05)
        return collector.figures(team)

    def assert_same(self, one, other, where=""):
        """Equal but for the last digits of sums that were added up in another order."""
        if isinstance(one, float) or isinstance(other, float):
            self.assertTrue(math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12), f"{where}: {one} {other}")
        elif isinstance(one, dict):
            self.assertEqual(list(one), list(other), where)
            for key, value in one.items():
                self.assert_same(value, other[key], f"{where}.{key}")
        elif isinstance(one, list):
            self.assertEqual(len(one), len(other), where)
            for number, value in enumerate(one):
                self.assert_same(value, other[number], f"{where}[{number}]")
        else:
            self.assertEqual(one, other, where)
