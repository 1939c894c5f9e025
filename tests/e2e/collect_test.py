"""The collector: each report once, whatever dies; teams apart; sums that are those of the reports; and enemies."""
import collections
import gzip
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import threading
import time
import unittest

import collecting
import harness
import schemas_test
from collecting import packed, trace

MIB = 1 << 20
LEAK, CACHE = ("main", "serve", "leak"), ("main", "serve", "cache")
TEAMS = {"red": {"write": "red-write-0123456789", "read": "red-read-0123456789", "admin": "red-admin-0123456789"},
         "blue": {"write": "blue-write-0123456789", "read": "blue-read-0123456789"}}


class Case(harness.Case):
    def collector(self, *options, **how):
        collector = collecting.Collector(self.folder, *options, environment=self.environment(), **how)
        self.addCleanup(lambda: collector.process and collector.process.poll() is None and collector.stop(signal.SIGKILL))
        return collector.start()

    def restarted(self, collector, number=signal.SIGKILL):
        collector.stop(number)
        return collector.start()


class Answers(Case):
    def test_sums_are_those_of_the_reports(self):
        """An oracle of its own adds the same reports up: by stack, by program, by host, with recursion and equal names elsewhere."""
        collector = self.collector()
        chance = random.Random(1)
        stacks = [("main", *(chance.choice("abc") for _ in range(chance.randrange(1, 6)))) for _ in range(40)]
        sums, flame, by_host = collections.Counter(), collections.Counter(), collections.defaultdict(list)
        for number in range(60):
            rows = [(stack, *sorted(chance.randrange(1 << 20) for _ in range(3))) for stack in chance.sample(stacks, 20)]
            rows = [(stack, live, peak, total) for stack, live, peak, total in rows]
            host = f"h{number % 7}"
            self.assertEqual(collector.send(trace(rows, host=host, control=number % 2 == 0)), 200)
            for stack, live, peak, total in rows:
                sums[stack, "live"] += live
                sums[stack, "peak"] += peak
                sums[stack, "total"] += total
                flame[stack] += live
            by_host[host].append(sum(row[1] for row in rows))
        self.assertEqual(collector.settle(), {"waiting": 0, "stored": 60, "refused": 0})
        top = collector.ask("top", program="prog", limit=1000)
        self.assertEqual(top["dumps"], 60)
        got = collections.Counter()
        for stack in top["stacks"]:
            for figure in ("live", "peak", "total"):
                got[tuple(stack["frames"]), figure] += stack[f"{figure}_bytes"]
        self.assertEqual(got, sums)
        self.assertEqual(top["live_bytes"], sum(flame.values()))
        live = [stack["live_bytes"] for stack in top["stacks"]]
        self.assertEqual(live, sorted(live, reverse=True))
        nodes = [None] + collector.ask("flame", program="prog")["nodes"]
        paths = [()]
        for node in nodes[1:]:
            paths.append(paths[node["parent"]] + (node["name"],))
        self.assertEqual(len(paths), len(set(paths)))
        self.assertEqual({path: node["live_bytes"] for path, node in zip(paths[1:], nodes[1:]) if node["live_bytes"]},
                         {stack: value for stack, value in flame.items() if value})
        hosts = {one["host"]: one for one in collector.ask("hosts", program="prog")["hosts"]}
        self.assertEqual({name: (one["dumps"], one["most_live_bytes"]) for name, one in hosts.items()},
                         {name: (len(values), max(values)) for name, values in by_host.items()})
        (program,) = collector.ask("programs")["programs"]
        self.assertEqual((program["dumps"], program["hosts"], program["control_dumps"]), (60, 7, 30))

    @unittest.skipUnless(schemas_test.jsonschema, "needs python3-jsonschema")
    def test_answers_are_as_their_schema_says(self):
        collector = self.collector()
        for build in ("a", "b"):
            for number in range(25):
                collector.send(trace([(LEAK, MIB + number, MIB, MIB), (("[no name]",), 5, 5, 5)], build=build, control=True), guid=f"{build}{number}")
        collector.send(trace([(LEAK, MIB, 0, 0)], build="c"))
        collector.settle()
        asked = {"programs": {}, "builds": {"program": "prog"}, "top": {}, "flame": {}, "diff": {"program": "prog", "build": "a", "other": "b"},
                 "hosts": {"program": "prog"}, "reports": {}, "report": {"guid": "a1"}}
        for question, words in asked.items():
            told = collector.ask(question, **words)
            self.assertTrue(next(value for value in reversed(told.values()) if isinstance(value, list)), question)
            validator = schemas_test.validator("fleet", "one" if question == "report" else question)
            self.assertEqual([error.message[:200] for error in validator.iter_errors(told)], [], question)

    def test_a_run_reports_to_it(self):
        """Two commands: the collector, and a run that uploads to it."""
        collector = self.collector()
        token = self.folder / "token"
        token.write_text(collector.tokens["default"]["write"] + "\n", encoding="utf-8")
        triggers = self.folder / "triggers.json"
        triggers.write_text('{"interval_seconds": 1, "live": {"browser": "5M"}}', encoding="utf-8")
        end = self.folder / "end"
        with subprocess.Popen(
                [str(harness.MEMLOG), "run", "-q", "--no-page", "-o", str(self.folder / "run"), f"--triggers={triggers}",
                 f"--upload=http://127.0.0.1:{collector.port}/", f"--upload-token-file={token}", f"--upload-spool={self.folder / 'outbox'}",
                 "--upload-host=web1", "--upload-version=7.1", "--", str(harness.PROGRAMS / "oracle" / "grower"), "-", f"guilty={8 * MIB}", f"wait={end}"],
                env=self.environment()) as run:
            try:
                self.wait_for("the report", lambda: sum(collector.figures().values()) > 0)
            finally:
                end.touch()
        self.assertEqual(run.returncode, 0)
        collector.settle()
        (report,) = collector.ask("reports")["reports"]
        self.assertEqual((report["program"], report["host"], report["version"], report["trigger"]), ("grower", "web1", "7.1", "live"))
        self.assertEqual(report["live_bytes"], 8 * MIB)
        (stack,) = collector.ask("top", program="grower", limit=1)["stacks"]
        self.assertEqual(stack["live_bytes"], 8 * MIB)
        self.assertIn("guilty", stack["frames"])
        rows = collector.ask("report", guid=report["guid"])["rows"]
        self.assertEqual(sum(row["live_bytes"] for row in rows), 8 * MIB)

    def test_builds_that_differ_are_told_and_equal_ones_are_not(self):
        """A doubled stack is found among a hundred that vary by chance; between equal builds nothing is."""
        collector = self.collector()
        chance = random.Random(5)
        for build, factor in (("a", 1), ("b", 2), ("c", 1)):
            for _ in range(40):
                scale = chance.lognormvariate(0, 0.5)
                rows = [(("main", f"f{i}"), int(scale * (1000 + 100 * i) * chance.lognormvariate(0, 0.3)), 0, 0) for i in range(100)]
                rows[30] = (rows[30][0], rows[30][1] * factor, 0, 0)
                collector.send(trace(rows, build=build, control=True))
        collector.send(trace([(LEAK, MIB, 0, 0)], build="d", control=True))
        collector.settle()
        found = collector.ask("diff", program="prog", build="a", other="b")
        self.assertFalse(found["too_few"])
        self.assertEqual([stack["frames"][-1] for stack in found["stacks"] if stack["differs"]], ["f30"])
        self.assertGreater(found["stacks"][0]["z"], 5)
        self.assertEqual([stack["frames"] for stack in collector.ask("diff", program="prog", build="a", other="c")["stacks"] if stack["differs"]], [])
        few = collector.ask("diff", program="prog", build="a", other="d")
        self.assertEqual((few["too_few"], few["stacks"], few["dumps_after"]), (True, [], 1))

    def test_a_host_deviates_from_what_is_chosen_alone(self):
        """By times, machine and build: each has control dumps of another size."""
        collector, now_ms = self.collector(), int(time.time() * 1000)
        long_ago = now_ms - 20 * 86400000
        for number, (size, at_ms, host, build) in enumerate((
                (MIB, now_ms, "new", "b1"), (30 * MIB, long_ago, "old", "b1"), (31 * MIB, long_ago, "old", "b1"), (700 * MIB, long_ago, "old", "b2"))):
            collector.send(trace([(CACHE, size, 0, 0)], host=host, build=build, control=True, time_ns=at_ms * 1000000), guid=f"control{number}")
        collector.send(trace([(CACHE, 20 * MIB, 0, 0)], host="new", time_ns=now_ms * 1000000), guid="large")
        collector.settle()
        for words, median, deviating in (
                ({}, 31 * MIB, ["old"]), ({"from_ms": now_ms - 86400000}, MIB, ["new"]), ({"until_ms": now_ms - 86400000}, 31 * MIB, ["old"]),
                ({"host": "new"}, MIB, ["new"]), ({"host": "old", "build": "b1"}, 31 * MIB, []), ({"from_ms": now_ms - 86400000, "host": "old"}, None, []),
                ({"build": "b2"}, 700 * MIB, [])):
            with self.subTest(**words):
                told = collector.ask("hosts", program="prog", **words)
                self.assertEqual(told["control_median_live_bytes"], median)
                self.assertEqual([one["host"] for one in told["hosts"] if one["deviates"]], deviating)

    def test_a_host_that_deviates_is_told(self):
        collector = self.collector()
        for number in range(20):
            collector.send(trace([(CACHE, MIB + number, 0, 0)], host=f"h{number}", control=True))
        collector.send(trace([(CACHE, MIB, 0, 0), (LEAK, 50 * MIB, 0, 0)], host="leaking"))
        collector.settle()
        hosts = collector.ask("hosts", program="prog")["hosts"]
        self.assertEqual([one["host"] for one in hosts if one["deviates"]], ["leaking"])
        (stack,) = [one for one in collector.ask("top", program="prog")["stacks"] if one["frames"] == list(LEAK)]
        self.assertEqual((stack["hosts"], stack["most_live_bytes"]), (1, 50 * MIB))
        self.assertEqual([one["host"] for one in collector.ask("hosts", stack=stack["stack"])["hosts"]], ["leaking"])


class Once(Case):
    def test_a_report_that_comes_again_is_kept_once(self):
        collector = self.collector()
        body = packed(trace([(LEAK, MIB, MIB, MIB)]))
        self.assertEqual([collector.send(body, guid="g1") for _ in range(3)], [200] * 3)
        self.assertEqual(collector.send(packed(trace([(LEAK, 2 * MIB, 0, 0)])), guid="g1"), 409)
        collector.settle()
        self.restarted(collector)
        self.assertEqual(collector.send(body, guid="g1"), 200)
        self.assertEqual(collector.settle()["stored"], 1)
        self.assertEqual(collector.ask("top")["live_bytes"], MIB)

    def test_without_a_name_a_report_is_known_by_its_bytes(self):
        collector = self.collector()
        body = packed(trace([(LEAK, MIB, 0, 0)]))
        for _ in range(2):
            self.assertEqual(collector.request("POST", "/", body, collector.tokens["default"]["write"])[0], 200)
        self.assertEqual(collector.settle()["stored"], 1)

    def test_killed_at_any_moment_none_is_lost_and_none_doubled(self):
        """Senders that try again until they hear 200, while the collector is killed again and again."""
        kills = int(os.environ.get("MEMLOG_TEST_KILLS", "25"))
        collector = self.collector()
        chance = random.Random(3)
        bodies = {f"g{number}": packed(trace([(LEAK, 1000 + number, 0, 0), (CACHE, 10, 0, 0)], host=f"h{number % 5}")) for number in range(kills * 4)}
        todo, lock, done = list(bodies), threading.Lock(), threading.Event()
        accepted = set()

        def send():
            while True:
                with lock:
                    if not todo:
                        return
                    guid = todo.pop(0)
                while guid not in accepted:
                    try:
                        status = collector.send(bodies[guid], guid=guid)
                    except OSError:
                        time.sleep(0.01)
                        continue
                    self.assertIn(status, (200, 503))
                    if status == 200:
                        accepted.add(guid)
                        if chance.random() < 0.1:  # the answer was lost on its way
                            accepted.discard(guid)

        senders = [threading.Thread(target=send) for _ in range(3)]
        for sender in senders:
            sender.start()
        for _ in range(kills):
            time.sleep(chance.random() * 0.15)
            collector.stop(signal.SIGKILL)
            collector.start()
        done.set()
        for sender in senders:
            sender.join()
        self.assertEqual(collector.settle(), {"waiting": 0, "stored": len(bodies), "refused": 0}, collector.reasons())
        top = collector.ask("top")
        self.assertEqual(top["dumps"], len(bodies))
        self.assertEqual(top["live_bytes"], sum(1010 + number for number in range(len(bodies))))
        self.assertEqual(len({one["guid"] for one in collector.ask("reports", limit=10000)["reports"]}), len(bodies))
        self.assertEqual(os.listdir(self.folder / "fleet.db.spool" / "incoming"), [])

    def test_a_connection_that_is_cut_leaves_nothing(self):
        collector = self.collector()
        body = packed(trace([(LEAK, MIB, 0, 0)]))
        for cut in range(0, len(body), max(1, len(body) // 40)):
            with socket.create_connection(("127.0.0.1", collector.port)) as connection:
                connection.sendall(
                    f"POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {collector.tokens['default']['write']}\r\n"
                    f"Idempotency-Key: cut\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body[:cut])
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.wait_for("the bodies' end", lambda: os.listdir(self.folder / "fleet.db.spool" / "incoming") == [])
        self.assertEqual(collector.settle()["stored"], 0)
        self.assertEqual(collector.send(body, guid="cut"), 200)
        self.assertEqual(collector.settle()["stored"], 1)

    def test_an_empty_store_is_filled_from_the_bodies(self):
        collector = self.collector()
        for number in range(30):
            collector.send(trace([(LEAK, number * 1000, number, number)], host=f"h{number}"))
        collector.settle()
        before = [collector.ask(question, **words) for question, words in (("top", {}), ("flame", {}), ("programs", {}))]
        collector.stop()
        for suffix in ("", "-wal", "-shm"):
            (self.folder / f"fleet.db{suffix}").unlink(missing_ok=True)
        subprocess.run(
            [str(harness.MEMLOG), "collect", f"--store=sqlite:{collector.store}", "--rebuild"],
            check=True, env=self.environment(), timeout=harness.TIMEOUT)
        collector.start()
        self.assertEqual([collector.ask(question, **words) for question, words in (("top", {}), ("flame", {}), ("programs", {}))], before)

    def test_a_removed_report_is_gone_from_every_sum(self):
        collector = self.collector()
        bodies = {name: packed(trace([(LEAK, size, size, size)])) for name, size in (("one", MIB), ("two", 3 * MIB))}
        for name, body in bodies.items():
            collector.send(body, guid=name)
        collector.settle()
        admin = collector.tokens["default"]["admin"]
        self.assertEqual(collector.request("DELETE", "/api/v1/fleet/report?guid=two", token=collector.tokens["default"]["read"])[0], 403)
        self.assertEqual(collector.request("DELETE", "/api/v1/fleet/report?guid=two", token=admin)[0], 200)
        self.assertEqual(collector.request("DELETE", "/api/v1/fleet/report?guid=two", token=admin)[0], 404)
        top = collector.ask("top")
        self.assertEqual((top["dumps"], top["live_bytes"]), (1, MIB))
        self.assertEqual([one["guid"] for one in collector.ask("reports")["reports"]], ["one"])
        self.assertEqual(sum(len(files) for _, _, files in os.walk(self.folder / "fleet.db.spool" / "bodies")), 1)


class Enemies(Case):
    def test_teams_are_apart(self):
        """None reads, asks for, guesses or replaces anything of another; equal stacks have other ids."""
        collector = self.collector(tokens=TEAMS)
        body = packed(trace([(LEAK, MIB, 0, 0)], host="secret-host"))
        self.assertEqual(collector.send(body, guid="same", team="red"), 200)
        self.assertEqual(collector.send(packed(trace([(LEAK, 2 * MIB, 0, 0)])), guid="same", team="blue"), 200)
        deadline = time.monotonic() + harness.TIMEOUT
        while any(collector.figures(team)["waiting"] for team in TEAMS) and time.monotonic() < deadline:
            time.sleep(0.05)
        tops = {team: collector.ask("top", team=team) for team in TEAMS}
        self.assertEqual({team: top["live_bytes"] for team, top in tops.items()}, {"red": MIB, "blue": 2 * MIB})
        ids = {team: top["stacks"][0]["stack"] for team, top in tops.items()}
        self.assertNotEqual(ids["red"], ids["blue"])
        self.assertEqual(collector.ask("hosts", team="blue", stack=ids["red"])["hosts"], [])
        self.assertNotIn("secret-host", json.dumps([collector.ask(question, team="blue") for question in ("programs", "top", "flame", "reports")]))
        self.assertEqual(collector.ask("report", team="blue", guid="same")["reports"][0]["live_bytes"], 2 * MIB)

    def test_a_token_is_for_one_thing(self):
        collector = self.collector(tokens=TEAMS)
        body = packed(trace([(LEAK, MIB, 0, 0)]))
        wrong = {None: 401, "nobody": 401, TEAMS["red"]["read"]: 403, TEAMS["red"]["write"] + "x": 401, "x" * 5000: 401, "": 401}
        for token, status in wrong.items():
            with self.subTest(token and token[:30]):
                self.assertEqual(collector.request("POST", "/", body, token)[0], status)
        self.assertEqual(collector.request("GET", "/api/v1/fleet/top", token=TEAMS["red"]["write"])[0], 403)
        self.assertEqual(collector.request("GET", "/metrics")[0], 401)
        self.assertEqual(collector.settle() if "default" in TEAMS else collector.figures("red")["stored"], 0)

    def test_a_token_file_that_others_may_read_is_refused(self):
        collector = collecting.Collector(self.folder, environment=self.environment(), tokens=TEAMS)
        os.chmod(collector.tokens_file, 0o644)
        with self.assertRaisesRegex(AssertionError, f"{collector.tokens_file}: others may read it"):
            collector.start()

    def test_hostile_bodies_are_refused_and_harm_nobody(self):
        collector = self.collector("--max-bytes=1M")
        good = packed(trace([(LEAK, MIB, 0, 0)]))
        chance = random.Random(7)
        bodies = [b"", b"x", gzip.compress(b"{"), packed([]), gzip.compress(b"[" * 100000), gzip.compress(b" " * (300 << 20)), good[:-9]]
        for figure in (1 << 53, 1 << 62, (1 << 63) - 1):
            bodies.append(packed(trace([(LEAK, figure, 0, 0)])))
        plain = gzip.decompress(good)
        for _ in range(40):
            mutated = bytearray(plain)
            for _ in range(chance.randrange(1, 6)):
                mutated[chance.randrange(len(mutated))] = chance.randrange(256)
            bodies.append(gzip.compress(bytes(mutated)))
        statuses = {collector.send(body, guid=f"bad{number}") for number, body in enumerate(bodies)}
        self.assertEqual(statuses, {200})
        self.assertEqual(collector.send(b"x" * (2 << 20)), 413)
        self.assertEqual(collector.send(good, guid="good"), 200)
        figures = collector.settle()
        self.assertEqual(figures["stored"] + figures["refused"], len(bodies) + 1)
        self.assertGreaterEqual(figures["refused"], 10)
        self.assertIn("good", {one["guid"] for one in collector.ask("reports", limit=1000)["reports"]})

    def test_names_are_no_code(self):
        """Whatever a client can choose stands in answers as it is, and does nothing else."""
        collector = self.collector()
        nasty = ["'; DROP TABLE dumps; --", "../../etc/passwd", "<script>alert(1)</script>", "a\"b\\c", "\u202ex\u0007", "%00%2e%2e", "x" * 5000]
        for number, name in enumerate(nasty):
            report = trace([((name, "f"), MIB, 0, 0)], program=name, build=name, host=name, version=name, process=name, role=name)
            self.assertEqual(collector.send(report, guid=f"n{number}"), 200)
        self.assertEqual(collector.settle()["stored"], len(nasty))
        programs = {one["program"] for one in collector.ask("programs")["programs"]}
        self.assertIn("'; DROP TABLE dumps; --", programs)
        for name in programs:
            self.assertEqual(collector.ask("top", program=name)["dumps"], 1, name)
        for guid in ("../x", "a/b", "a" * 65, "x y", "\u00e4"):
            self.assertEqual(collector.request("POST", "/", packed({}), collector.tokens["default"]["write"], Idempotency_Key=guid.encode())[0], 400)
        for question, wanted in {"top?program=%27%20OR%201=1--": 200, "hosts?stack=1%20OR%201": 400, "report?guid=%25": 200, "flame?build=%00": 200,
                                 "top?%27%20OR%201=1--": 400, "top?%0d%0aX:y=z&%1b]0;=1": 400, "top?" + "etc" * 2000 + "=1": 400}.items():
            status, _, body = collector.request("GET", f"/api/v1/fleet/{question}", token=collector.tokens["default"]["read"])
            self.assertEqual(status, wanted)
            self.assertNotIn("passwd", body.decode())
            self.assertLess(len(body), 1000)
            self.assertNotRegex(body.decode().rstrip("\n"), "[\\x00-\\x1f]")
        with sqlite3.connect(collector.store) as store:
            self.assertEqual(store.execute("PRAGMA integrity_check").fetchone(), ("ok",))

    def test_each_question_takes_what_the_guide_says_and_nothing_else(self):
        collector = self.collector()
        self.assertEqual(collector.send(trace([(LEAK, MIB, 0, 0)]), guid="one"), 200)
        collector.settle()
        guide = (harness.ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
        head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in guide.split("anything else is 400", 1)[1].split("\n\n")[1].splitlines()]
        questions = [cell.strip("`") for cell in head[1:]]
        takes = {question: {} for question in questions}
        for names, *cells in rows:
            for name in names.replace("`", "").split(", "):
                for question, cell in zip(questions, cells):
                    takes[question][name] = cell
        values = {"program": "prog", "build": "b1", "other": "b1", "host": "h1", "stack": "7", "guid": "one", "metric": "peak", "control": "1"}
        self.assertEqual(len(takes), 8)
        for question, cells in takes.items():
            self.assertEqual(set(cells), {*values, "from_ms", "until_ms", "limit"})
            wanted = {name: values[name] for name, cell in cells.items() if cell == "*"}
            if question == "hosts":
                wanted["program"] = "prog"
            for name, cell in cells.items():
                words = collecting.urllib.parse.urlencode({**wanted, name: values.get(name, "5")})
                status, _, body = collector.request("GET", f"/api/v1/fleet/{question}?{words}", token=collector.tokens["default"]["read"])
                with self.subTest(question, name=name):
                    self.assertEqual(status, 200 if cell else 400, body)
                    if not cell:
                        self.assertIn(f"{question} takes no '{name}'; it takes ", body.decode())
            for name in wanted:
                words = collecting.urllib.parse.urlencode({key: value for key, value in wanted.items() if key != name})
                status, _, body = collector.request("GET", f"/api/v1/fleet/{question}?{words}", token=collector.tokens["default"]["read"])
                self.assertEqual((status, body[:4]), (400, b"say "), question)
        for words in ("limit=many", "from_ms=yesterday", "until_ms=-1", "control=yes", "metric=rss", "Program=prog", "=", "x"):
            self.assertEqual(collector.request("GET", f"/api/v1/fleet/top?{words}", token=collector.tokens["default"]["read"])[0], 400, words)

    def test_a_build_without_an_id_and_what_has_a_stack(self):
        collector = self.collector()
        for number in range(25):
            for build, rows in (("", [(LEAK, MIB, 2 * MIB, MIB), (CACHE, MIB, MIB, MIB)]), ("b2", [(LEAK, MIB, 9 * MIB, MIB), (CACHE, MIB, MIB, MIB)])):
                self.assertEqual(collector.send(trace(rows, build=build, host=f"h{number % 3}", control=number > 0, time_ns=(1 + number) * 10**15), guid=f"{build or 'no'}{number}"), 200)
        self.assertEqual(collector.send(trace([(LEAK, MIB, MIB, MIB)], build="only"), guid="only"), 200)
        collector.settle()
        self.assertEqual([collector.ask("top", program="prog", build=build)["dumps"] for build in ("none", "b2", "only", "", "nobody")], [25, 25, 1, 51, 0])
        (build,) = collector.ask("builds", program="prog", build="none")["builds"]
        self.assertEqual((build["build_id"], build["dumps"], build["control"]["dumps"]), ("", 25, 24))
        stacks = {one["frames"][-1]: one["stack"] for one in collector.ask("top")["stacks"]}
        self.assertEqual({one["guid"] for one in collector.ask("reports", stack=stacks["leak"], limit=100)["reports"]}
                         - {one["guid"] for one in collector.ask("reports", stack=stacks["cache"], limit=100)["reports"]}, {"only"})
        self.assertEqual([one["guid"] for one in collector.ask("reports", build="b2", host="h1", control=1)["reports"]], [f"b2{number}" for number in range(22, 0, -3)])
        self.assertEqual(collector.ask("reports", stack="1")["reports"], [])
        # Shares of live are as they were, those of the peak are not; of the first days alone there are too few.
        live, peak = (collector.ask("diff", program="prog", build="none", other="b2", metric=metric) for metric in ("live", "peak"))
        self.assertEqual((live["metric"], [one["differs"] for one in live["stacks"]]), ("live", [False, False]))
        self.assertEqual((peak["dumps_before"], [one["differs"] for one in peak["stacks"]]), (24, [True, True]))
        leak = next(one for one in peak["stacks"] if one["frames"][-1] == "leak")
        self.assertEqual([round(leak[side], 6) for side in ("share_before", "share_after")], [0.666667, 0.9])
        early = collector.ask("diff", program="prog", build="none", other="b2", until_ms=6 * 10**9)
        self.assertEqual((early["dumps_before"], early["too_few"]), (5, True))
        # A node that is left out is its caller's own; a node's stack is top's.
        whole, cut = collector.ask("flame"), collector.ask("flame", limit=3)
        self.assertEqual({one["name"]: one["stack"] for one in whole["nodes"]}, {"main": None, "serve": None, **stacks})
        self.assertEqual(([one["name"] for one in cut["nodes"]], cut["nodes_all"]), (["main", "serve", "leak"], 4))
        self.assertEqual([one["live_bytes"] for one in cut["nodes"]], [0, 50 * MIB, 51 * MIB])
        self.assertEqual(sum(one["peak_bytes"] for one in cut["nodes"]), whole["peak_bytes"])

    def test_a_reading_that_dies_spoils_its_own_report_alone(self):
        """An analyzer that is killed at each second report stands for one that was taken over."""
        collector = self.collector()
        stop = threading.Event()

        def kill():
            while not stop.is_set():
                subprocess.run(["pkill", "-9", "-P", str(collector.process.pid), "-f", "memlog report-rows"], check=False)
                time.sleep(0.02)

        killer = threading.Thread(target=kill)
        killer.start()
        for number in range(40):
            self.assertEqual(collector.send(trace([(LEAK, 1000, 0, 0)]), guid=f"k{number}"), 200)
        time.sleep(0.5)
        stop.set()
        killer.join()
        figures = collector.settle()
        self.assertEqual(figures["stored"] + figures["refused"], 40)
        self.assertEqual(collector.ask("top")["dumps"], figures["stored"])
        self.assertEqual(collector.send(trace([(LEAK, 1000, 0, 0)], host="after"), guid="after"), 200)
        self.assertEqual(collector.settle()["stored"], figures["stored"] + 1)


@unittest.skipUnless(shutil.which("openssl"), "openssl")
class Secret(Case):
    """By TLS, with machines that show certificates."""

    def openssl(self, *words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, cwd=self.folder)

    def authority(self, name):
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", 2, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem",
                     "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")

    def certificate(self, name, authority):
        (self.folder / "ext").write_text("subjectAltName=IP:127.0.0.1\n", encoding="utf-8")
        self.openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        self.openssl("x509", "-req", "-days", 2, "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-CAcreateserial",
                     "-extfile", "ext", "-out", f"{name}.pem")

    def context(self, name=None):
        context = ssl.create_default_context(cafile=str(self.folder / "trusted.pem"))
        if name:
            context.load_cert_chain(str(self.folder / f"{name}.pem"), str(self.folder / f"{name}.key"))
        return context

    def test_a_report_is_the_machines_whose_certificate_came_with_it(self):
        for authority in ("trusted", "strangers"):
            self.authority(authority)
        for name, authority in (("server", "trusted"), ("machine-7", "trusted"), ("machine-8", "strangers")):
            self.certificate(name, authority)
        collector = collecting.Collector(
            self.folder, f"--tls-cert={self.folder}/server.pem", f"--tls-key={self.folder}/server.key", f"--client-ca={self.folder}/trusted.pem",
            environment=self.environment())
        self.addCleanup(lambda: collector.process and collector.process.poll() is None and collector.stop(signal.SIGKILL))
        collector.tls = self.context()
        collector.start()
        hosts = []
        for number, name in enumerate((None, "machine-7", "machine-8")):
            collector.tls = self.context(name)
            try:
                self.assertEqual(collector.send(trace([(LEAK, MIB, 0, 0)], host="own word"), guid=f"g{number}"), 200)
            except (ssl.SSLError, ConnectionError):
                self.assertEqual(name, "machine-8")  # it may be shown the door
        collector.tls = self.context()
        collector.settle()
        hosts = {one["guid"]: one["host"] for one in collector.ask("reports")["reports"]}
        self.assertEqual((hosts["g0"], hosts["g1"]), ("own word", "machine-7"))
        self.assertNotEqual(hosts.get("g2"), "machine-8")
        collector.tls = None
        with self.assertRaises(OSError):
            collector.request("GET", "/health")


class Words(Case):
    def test_what_does_not_fit_is_said(self):
        cases = {
            (): "say where reports are kept", ("--store=x",): "a store is sqlite:PATH",
            ("--store=sqlite:/nonexistent/x",): "/nonexistent", ("--store=sqlite:a", "--listen=0.0.0.0:1"): "say --remote",
            ("--store=sqlite:a", "--listen=0.0.0.0:1", "--remote"): "tokens would be readable",
            ("--store=sqlite:a", "--tls-cert=x"): "belong together"}
        for words, said in cases.items():
            with self.subTest(words):
                answer = subprocess.run(
                    [str(harness.MEMLOG), "collect", *words], capture_output=True, text=True, env=self.environment(), check=False,
                    cwd=self.folder, timeout=harness.TIMEOUT)
                self.assertNotEqual(answer.returncode, 0)
                self.assertIn(said, answer.stderr)

    def test_two_collectors_do_not_share_a_folder(self):
        collector = self.collector()
        answer = subprocess.run(
            [str(harness.MEMLOG), "collect", f"--store=sqlite:{collector.store}", "--listen=127.0.0.1:0"],
            capture_output=True, text=True, env=self.environment(), check=False, timeout=harness.TIMEOUT)
        self.assertEqual(answer.returncode, 1)
        self.assertIn("another collector works in", answer.stderr)

    def test_tokens_are_made_where_there_are_none(self):
        store = self.folder / "new.db"
        with subprocess.Popen(
                [str(harness.MEMLOG), "collect", f"--store=sqlite:{store}", "--listen=127.0.0.1:0"],
                stderr=subprocess.PIPE, text=True, env=self.environment()) as process:
            line = process.stderr.readline()
            process.terminate()
        self.assertRegex(line, r"collecting into .* at http://127\.0\.0\.1:\d+; its tokens are in .*new\.db\.tokens")
        tokens = self.folder / "new.db.tokens"
        self.assertEqual(tokens.stat().st_mode & 0o777, 0o600)
        self.assertRegex(tokens.read_text(encoding="utf-8"), r"default write \w{48}\ndefault read \w{48}\n")


if __name__ == "__main__":
    unittest.main()
