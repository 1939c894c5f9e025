"""Deleting from the collector: reports, hosts, teams; complete, and whatever dies meanwhile."""
import os
import random
import signal
import sqlite3
import time
import unittest

import harness
import schemas_test
from collect_test import CACHE, LEAK, MIB, TEAMS, Case
from collecting import packed, trace

RED = TEAMS["red"]


class Removing(Case):
    def remove(self, collector, what, token):
        return collector.request("DELETE", f"/api/v1/fleet/{what}", token=token)[0]

    def wait_until_gone(self, collector, team):
        self.wait_for("the removal", lambda: collector.ask("removals", team=team)["removals"] == [])

    def wait_until_read(self, collector, *teams):
        self.wait_for("the store", lambda: not any(collector.figures(team)["waiting"] for team in teams))

    def bodies(self):
        return sum(len(files) for _, _, files in os.walk(self.folder / "fleet.db.spool" / "bodies"))

    def rows(self, path, question, *values):
        with sqlite3.connect(path, timeout=harness.TIMEOUT) as database:
            rows = database.execute(question, values).fetchall()
        database.close()
        return rows

    def entries(self, team):
        return self.rows(self.folder / "fleet.db.spool" / "ledger.db", "SELECT guid FROM reports WHERE team = ?", team)

    def stored(self, table, team):
        question = f"SELECT count(*) FROM {table} WHERE team = (SELECT id FROM words WHERE word = ?)"
        return self.rows(self.folder / "fleet.db", question, team)[0][0]

    def answers(self, collector, team):
        return [collector.ask(question, team=team) for question in ("programs", "top", "flame", "reports")]

    def test_a_host_is_gone_from_everything(self):
        collector = self.collector(tokens=TEAMS)
        for number in range(40):
            for team in ("red", "blue"):
                report = trace([(LEAK, MIB, 0, 0), (CACHE, number, 0, 0)], host=f"h{number % 4}", control=number % 2 == 0)
                self.assertEqual(collector.send(report, guid=f"{team}{number}", team=team), 200)
        self.wait_until_read(collector, "red", "blue")
        before = self.answers(collector, "blue")
        self.assertEqual(self.remove(collector, "host?name=h1", RED["admin"]), 202)
        self.wait_until_gone(collector, "red")
        self.assertEqual({one["host"] for one in collector.ask("hosts", team="red", program="prog")["hosts"]}, {"h0", "h2", "h3"})
        top = collector.ask("top", team="red")
        self.assertEqual((top["dumps"], top["live_bytes"]), (30, 30 * MIB + sum(number for number in range(40) if number % 4 != 1)))
        self.assertEqual((len(self.entries("red")), self.bodies()), (30, 70))
        self.assertEqual(self.answers(collector, "blue"), before)
        self.assertEqual(collector.figures("red"), {"waiting": 0, "stored": 30, "refused": 0})
        self.assertEqual(collector.send(trace([(LEAK, MIB, 0, 0)], host="h1"), team="red"), 200)  # it may come again
        self.wait_until_read(collector, "red")
        self.assertEqual(collector.ask("top", team="red")["dumps"], 31)

    def test_a_team_is_gone_from_everything(self):
        collector = self.collector(tokens=TEAMS)
        for number in range(60):
            for team in ("red", "blue"):
                collector.send(trace([(LEAK, MIB, 0, 0)], host=f"{team}{number}"), guid=f"{team}{number}", team=team)
        collector.send(b"no report", guid="bad", team="red")
        self.wait_until_read(collector, "red", "blue")
        before = self.answers(collector, "blue")
        (key,) = self.rows(self.folder / "fleet.db.spool" / "ledger.db", "SELECT key FROM teams WHERE team = 'red'")
        self.assertEqual(self.remove(collector, "team", RED["admin"]), 202)
        self.wait_until_gone(collector, "red")
        self.assertEqual((self.entries("red"), self.bodies()), ([], 60))
        self.assertEqual([self.stored(table, "red") for table in ("dumps", "sums", "weeks")], [0, 0, 0])
        self.assertEqual(self.rows(self.folder / "fleet.db", "SELECT count(*) FROM samples"), [(60,)])
        self.assertEqual(self.answers(collector, "blue"), before)
        self.assertEqual(collector.figures("red"), {"waiting": 0, "stored": 0, "refused": 0})
        collector.send(trace([(LEAK, MIB, 0, 0)]), team="red")
        self.wait_until_read(collector, "red")
        self.assertEqual(collector.ask("top", team="red")["dumps"], 1)
        self.assertNotEqual(self.rows(self.folder / "fleet.db.spool" / "ledger.db", "SELECT key FROM teams WHERE team = 'red'"), [key])

    def test_names_of_what_is_deleted_leave_the_store(self):
        """Words, functions and stacks that no report has any more, whatever it is killed at; those of others stay."""
        collector = self.collector(tokens=TEAMS)
        for number in range(30):
            for team in ("red", "blue"):
                rows = [((*LEAK, f"{team}-function{number}-{each}"), MIB, 0, 0) for each in range(40)] + [(CACHE, 1, 0, 0)]
                self.assertEqual(collector.send(trace(rows, host=f"{team}-host", program=f"{team}-prog"), guid=f"{team}{number}", team=team), 200)
        self.wait_until_read(collector, "red", "blue")
        before = self.answers(collector, "blue")
        self.assertEqual(self.remove(collector, "team", RED["admin"]), 202)
        self.wait_until_gone(collector, "red")
        store = self.folder / "fleet.db"
        words = "SELECT count(*) FROM words WHERE word LIKE 'red%'"
        self.assertGreater(self.rows(store, words)[0][0], 1000)
        collector.stop()
        self.rows(store, "UPDATE swept SET at_s = 0")  # it is due once an hour
        collector.start()
        for turn in range(6):  # each start has its upkeep after a second
            self.restarted(collector)
            if turn < 5:
                time.sleep(1.0 + turn * 0.15)
        self.wait_for("the sweep", lambda: self.rows(store, words) == [(0,)])
        self.assertEqual(self.rows(store, "SELECT count(*) FROM stacks"), [(30 * 40 + 2 + 2,)])
        self.assertEqual(self.answers(collector, "blue"), before)
        collector.send(trace([((*LEAK, "red-function0-0"), MIB, 0, 0)]), team="red")
        self.wait_until_read(collector, "red")
        self.assertEqual(collector.ask("top", team="red")["stacks"][0]["frames"], [*LEAK, "red-function0-0"])

    def test_what_is_on_its_way_is_deleted_too(self):
        collector = self.collector()
        admin = collector.tokens["default"]["admin"]
        for number in range(50):
            self.assertEqual(collector.send(trace([(LEAK, MIB, 0, 0)], host=f"h{number % 2}"), guid=f"g{number}"), 200)
        self.assertEqual(self.remove(collector, "report?guid=g49", admin), 200)
        self.assertEqual(self.remove(collector, "report?guid=g49", admin), 404)
        self.assertEqual(self.remove(collector, "host?name=h0", admin), 202)
        self.wait_until_gone(collector, "default")
        collector.settle()
        self.assertEqual(collector.ask("top")["dumps"], 24)
        for number in range(50):
            collector.send(trace([(LEAK, MIB, 0, 0)]), guid=f"later{number}")
        self.assertEqual(self.remove(collector, "team", admin), 202)
        collector.send(trace([(LEAK, 1, 0, 0)]), guid="last")
        self.wait_until_gone(collector, "default")
        collector.settle()
        self.assertEqual([one["guid"] for one in collector.ask("reports")["reports"]], ["last"])
        self.assertEqual((self.entries("default"), self.bodies()), ([("last",)], 1))

    def test_killed_at_any_moment_a_wish_is_carried_out(self):
        """The collector is killed while hosts are deleted and reports come in; in the end there is just what was not deleted."""
        kills = int(os.environ.get("MEMLOG_TEST_KILLS", "20"))
        collector = self.collector()
        admin = collector.tokens["default"]["admin"]
        chance = random.Random(11)
        kept = {}
        for turn in range(kills):
            for number in range(6):
                guid, host, size = f"t{turn}n{number}", f"h{turn}-{number % 3}", chance.randrange(1, MIB)
                self.assertEqual(collector.send(trace([(LEAK, size, 0, 0), (CACHE, 1, 0, 0)], host=host), guid=guid), 200)
                if number % 3 == 0:
                    kept[guid] = size + 1
            if chance.random() < 0.5:
                collector.settle()
            self.assertEqual(self.remove(collector, f"host?name=h{turn}-1", admin), 202)
            self.assertEqual(self.remove(collector, f"host?name=h{turn}-2", admin), 202)
            time.sleep(chance.random() * 0.2)
            self.restarted(collector)
        self.wait_until_gone(collector, "default")
        collector.settle()
        self.assertEqual({one["guid"] for one in collector.ask("reports", limit=10000)["reports"]}, set(kept))
        top = collector.ask("top")
        self.assertEqual((top["dumps"], top["live_bytes"]), (len(kept), sum(kept.values())))
        self.assertEqual({guid for (guid,) in self.entries("default")}, set(kept))
        self.assertEqual(self.bodies(), len(kept))
        self.assertEqual(collector.figures(), {"waiting": 0, "stored": len(kept), "refused": 0})

    def test_a_body_that_is_gone_does_not_hold_up_others(self):
        """As a collector leaves it that dies between the removal of a body and that of its line."""
        collector = self.collector()
        collector.send(trace([(LEAK, MIB, 0, 0)]), guid="first")
        collector.settle()
        collector.stop(signal.SIGKILL)
        for folder, _, files in os.walk(self.folder / "fleet.db.spool" / "bodies"):
            for name in files:
                os.unlink(os.path.join(folder, name))
        with sqlite3.connect(self.folder / "fleet.db.spool" / "ledger.db") as ledger:
            ledger.execute("UPDATE reports SET state = 0")
        ledger.close()
        collector.start()
        collector.send(trace([(LEAK, MIB, 0, 0)]), guid="second")
        self.assertEqual(collector.settle(), {"waiting": 0, "stored": 1, "refused": 1})
        self.assertEqual(self.remove(collector, "report?guid=first", collector.tokens["default"]["admin"]), 200)
        self.assertEqual([one["guid"] for one in collector.ask("reports")["reports"]], ["second"])

    def test_only_an_admin_of_the_team_deletes(self):
        collector = self.collector(tokens=TEAMS)
        body = packed(trace([(LEAK, MIB, 0, 0)], host="h"))
        collector.send(body, guid="r", team="red")
        collector.send(body, guid="b", team="blue")
        self.wait_until_read(collector, "red", "blue")
        for what in ("report?guid=b", "host?name=h", "team"):
            for token, status in ((None, 401), (RED["write"], 403), (RED["read"], 403), (TEAMS["blue"]["read"], 403)):
                self.assertEqual(self.remove(collector, what, token), status, what)
        self.assertEqual(self.remove(collector, "report?guid=b", RED["admin"]), 404)
        self.assertEqual(self.remove(collector, "host?name=h", RED["admin"]), 202)
        self.assertEqual(self.remove(collector, "host", RED["admin"]), 400)
        self.assertEqual(self.remove(collector, "dumps", RED["admin"]), 404)
        self.wait_until_gone(collector, "red")
        self.assertEqual((len(self.entries("red")), len(self.entries("blue"))), (0, 1))
        self.assertEqual(collector.ask("top", team="blue")["dumps"], 1)

    @unittest.skipUnless(schemas_test.jsonschema, "needs python3-jsonschema")
    def test_what_is_left_to_do_is_told_to_the_team_alone(self):
        """A report that is read for long holds up a host's removal: whose it is stands in it."""
        collector = self.collector(tokens=TEAMS)
        analyzers = []
        collector.send(trace([(("main", f"f{number}"), number, 0, 0) for number in range(200000)], host="h"), guid="large", team="red")

        def stopped():
            if not analyzers:
                with open(f"/proc/{collector.process.pid}/task/{collector.process.pid}/children", encoding="utf-8") as children:
                    analyzers.extend(int(pid) for pid in children.read().split())
                for pid in analyzers:
                    os.kill(pid, signal.SIGSTOP)
            return analyzers
        self.wait_for("the reading", stopped)
        self.assertEqual(self.remove(collector, "host?name=h", RED["admin"]), 202)
        told = collector.ask("removals", team="red")
        validator = schemas_test.validator("fleet", "removals")
        self.assertEqual([error.message for error in validator.iter_errors(told)], [])
        self.assertEqual([(one["what"], one["name"], one["removed"]) for one in told["removals"]], [("host", "h", 0)])
        self.assertEqual(collector.ask("removals", team="blue")["removals"], [])
        self.assertEqual(self.remove(collector, "team", TEAMS["red"]["admin"]), 202)  # it need not be read for that
        self.wait_until_gone(collector, "red")
        self.assertEqual(self.entries("red"), [])


if __name__ == "__main__":
    unittest.main()
