"""The collector on servers of ClickHouse: a node that is away, a server that never answers, and words that do not fit."""
import random
import subprocess
import threading
import time
import unittest

import clickhouse
import harness
from clickhouse_case import LEAK, MIB, Case
from collecting import trace


class Away(Case):
    def test_a_node_that_is_away_is_said_and_its_reports_wait(self):
        nodes = self.servers()
        collector = self.collector(place=self.place(nodes))
        collector.start()
        for number in range(2):  # a batch each, and so a node each
            self.assertEqual(collector.send(trace([(LEAK, MIB << number, 0, 0)]), guid=f"g{number}"), 200)
            collector.settle()
        self.assertEqual([node.ask("SELECT count() FROM memlog.dumps_local") for node in nodes], ["1", "1"])
        for away in (1, 0):
            with self.subTest(away):
                nodes[away].stop()
                for question, words in (("programs", {}), ("top", {}), ("flame", {}), ("hosts", {"program": "prog"}), ("reports", {})):
                    told = collector.ask(question, **words)
                    self.assertEqual(told["missing_shards"], [nodes[away].url], question)
                there = nodes[1 - away].ask("SELECT count() FROM memlog.dumps_local")
                self.assertEqual(str(collector.ask("top")["dumps"]), there)
                self.assertEqual(collector.send(trace([(LEAK, MIB, 0, 0)]), guid=f"late{away}"), 200)
                time.sleep(0.5)
                self.assertEqual(collector.figures()["waiting"], 1)
                nodes[away].start()
                collector.settle()
                told = collector.ask("top")
                self.assertEqual((told["missing_shards"], told["dumps"]), ([], 4 - away))

    def held(self, collector, link, guid="held"):
        """Wait until the store waits for the server; what is answered from here on is answered meanwhile."""
        link.hold()
        self.assertEqual(collector.send(trace([(LEAK, MIB, 0, 0)]), guid=guid), 200)
        self.wait_for("the store at the server", lambda: link.held)

    def test_a_server_that_never_answers_holds_up_no_request(self):
        """It takes connections and says nothing: health, uploads, figures and deletions are taken as ever, all before it says a word."""
        (node,) = self.servers(1)
        link = clickhouse.Link(node, random.Random(1))
        self.addCleanup(link.close)
        collector = self.collector(place=self.place([link]))
        collector.start()
        self.assertEqual(collector.send(trace([(LEAK, MIB, 0, 0)]), guid="before"), 200)
        collector.settle()
        self.held(collector, link)
        admin = collector.tokens["default"]["admin"]
        for number in range(40):  # more than a batch
            self.assertEqual(collector.request("GET", "/health")[0], 200)
            self.assertEqual(collector.send(trace([(LEAK, MIB, 0, 0)], host="h2"), guid=f"g{number}"), 200)
        self.assertEqual(collector.send(b"no report", guid="bad"), 200)
        self.wait_for("the reading of others", lambda: collector.figures()["refused"] == 1)  # the loop works on
        self.assertEqual(collector.request("DELETE", "/api/v1/fleet/host?name=h2", token=admin)[0], 202)
        removed = []
        asker = threading.Thread(target=lambda: removed.append(collector.request("DELETE", "/api/v1/fleet/report?guid=before", token=admin)[0]))
        asker.start()
        self.assertEqual(collector.request("GET", "/health")[0], 200)
        self.assertEqual((collector.figures()["waiting"], removed), (41, []))
        self.assertFalse(link.is_open.is_set())
        link.release()
        asker.join()
        self.assertEqual(removed, [200])
        self.wait_for("the deletion", lambda: collector.ask("removals")["removals"] == [])
        self.assertEqual(collector.settle(), {"waiting": 0, "stored": 1, "refused": 1})
        self.assertEqual([one["guid"] for one in collector.ask("reports")["reports"]], ["held"])
        self.assertEqual(node.ask("SELECT count(), uniqExact(guid) FROM memlog.dumps_local"), "1\t1")

    def test_it_ends_while_a_server_never_answers(self):
        """An insert that was under way is settled when it comes again: once, whether the server has it or not."""
        (node,) = self.servers(1)
        link = clickhouse.Link(node, random.Random(1))
        self.addCleanup(link.close)
        collector = self.collector(place=self.place([link]))
        collector.start()
        for turn in range(3):
            self.held(collector, link, guid=f"held{turn}")
            self.assertEqual(collector.send(trace([(LEAK, MIB, 0, 0)]), guid=f"g{turn}"), 200)
            self.assertEqual(collector.stop(), 0)
            self.assertFalse(link.is_open.is_set())
            link.release()
            collector.start()
            collector.settle()
            self.assertEqual(node.ask("SELECT count(), uniqExact(guid) FROM memlog.dumps_local"), f"{2 * turn + 2}\t{2 * turn + 2}")

    def test_it_starts_while_a_server_never_answers(self):
        (node,) = self.servers(1)
        link = clickhouse.Link(node, random.Random(1))
        self.addCleanup(link.close)
        link.hold()
        collector = self.collector(place=self.place([link]))
        collector.start()
        self.assertFalse(link.is_open.is_set())
        self.assertEqual(collector.send(trace([(LEAK, MIB, 0, 0)]), guid="early"), 200)
        self.assertEqual(collector.request("GET", "/health")[0], 200)
        self.assertFalse(link.is_open.is_set())
        link.release()
        collector.settle()
        self.assertEqual(collector.ask("top")["live_bytes"], MIB)

    def test_with_all_of_them_away_it_starts_and_takes_reports(self):
        nodes = self.servers()
        for node in nodes:
            node.stop()
        collector = self.collector(place=self.place(nodes))
        collector.start()
        self.assertEqual(collector.send(trace([(LEAK, MIB, 0, 0)]), guid="early"), 200)
        self.assertGreaterEqual(collector.request("GET", "/api/v1/fleet/top", token=collector.tokens["default"]["read"])[0], 500)
        for node in nodes:
            node.start()
        collector.settle()
        self.assertEqual(collector.ask("top")["live_bytes"], MIB)


class Words(Case):
    def refused(self, *words):
        answer = subprocess.run(
            [str(harness.MEMLOG), "collect", *words, "--listen=127.0.0.1:0"], capture_output=True, text=True, env=self.environment(), check=False,
            cwd=self.folder, timeout=harness.TIMEOUT)
        self.assertNotEqual(answer.returncode, 0)
        return answer.stderr

    def test_what_does_not_fit_is_said(self):
        cases = {
            ("--store=clickhouse:",): "a store is sqlite:PATH or clickhouse:URL",
            ("--store=clickhouse:http://127.0.0.1:1",): "--spool=DIR",
            ("--store=sqlite:a", "--store-auth=b"): "--store-auth is for",
            ("--store=clickhouse:ftp://x", "--spool=s"): "http://HOST[:PORT]",
            ("--store=clickhouse:http://me:secret@x", "--spool=s"): "by --store-auth=FILE",
            ("--store=clickhouse:http://x/a-b", "--spool=s"): "a database's name",
            ("--store=clickhouse:http://x/a,http://y/b", "--spool=s"): "the same database",
            ("--store=clickhouse:http://x,http://x", "--spool=s"): "stands there twice",
            ("--store=clickhouse:http://x", "--spool=s", "--store-auth=/nonexistent"): "/nonexistent"}
        for words, said in cases.items():
            with self.subTest(words):
                told = self.refused(*words)
                self.assertIn(said, told)
                self.assertNotIn("secret", told)

    def test_a_database_is_filled_by_one_collector(self):
        (node,) = self.servers(1)
        collector = self.collector(place=self.place([node]))
        collector.start()
        self.assertEqual(collector.send(trace([(LEAK, MIB, 0, 0)])), 200)
        collector.settle()
        self.assertEqual(collector.ask("top")["live_bytes"], MIB)  # one node wants no cluster
        self.assertIn("is filled by a collector with another spool", self.refused(f"--store={self.place([node])}", "--spool=other"))

    def test_servers_that_are_no_cluster_are_refused(self):
        nodes = self.servers()
        self.assertIn("its cluster 'other' has 0 shards", self.refused(f"--store=clickhouse:{nodes[0].url}/other,{nodes[1].url}/other", "--spool=spool"))

    def test_a_user_and_a_password(self):
        nodes = self.servers(user="memlog", password="geheim7")
        login = self.folder / "login"
        login.write_text("memlog geheim7\n", encoding="utf-8")
        login.chmod(0o644)
        self.assertIn("others may read it", self.refused(f"--store={self.place(nodes)}", "--spool=spool", f"--store-auth={login}"))
        login.chmod(0o600)
        collector = self.collector(f"--store-auth={login}", place=self.place(nodes))
        collector.start()
        self.assertEqual(collector.send(trace([(LEAK, MIB, 0, 0)])), 200)
        collector.settle()
        self.assertEqual(collector.ask("top")["live_bytes"], MIB)
        self.assertNotIn("geheim7", collector.said())


if __name__ == "__main__":
    unittest.main()
