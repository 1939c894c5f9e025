"""memlog fleet: what a collector says, for people and for programs; and what goes wrong between the two."""
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import unicodedata
import unittest

import collect_test
import collecting
import harness
from collecting import packed, pprof, trace

MIB = 1 << 20
LEAK, CACHE = ("main", "serve", "leak"), ("main", "serve", "cache")
OLD, NEW = "aaaa1111bbbb2222cccc", "dddd3333eeee4444ffff"
HOSTILE = "evil\x1b]0;x\x07\u202e\u009b31m;\nline"


class Case(collect_test.Case):
    def fleet(self, collector, *words, token=None, columns=200, code=0, at=None):
        """One command, of which no byte may move a terminal. The finished process."""
        words = [*words, f"--at={at or f'http://127.0.0.1:{collector.port}'}"]
        if token != "":
            words.append(f"--token-file={token or collector.tokens_file}")
        answer = subprocess.run(
            [str(harness.MEMLOG), "fleet", *words], capture_output=True, env=self.environment(COLUMNS=str(columns)), check=False,
            timeout=harness.TIMEOUT)
        for text in (answer.stdout.decode(), answer.stderr.decode()):  # strict: it is UTF-8
            wrong = [letter for letter in text if letter != "\n" and unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp")]
            self.assertEqual(wrong, [], text)
        self.assertEqual(answer.returncode, code, answer.stderr.decode())
        answer.out, answer.err = answer.stdout.decode(), answer.stderr.decode()
        return answer

    def filled(self, grown=4, dumps=25):
        """A collector with two builds of a program, of which the newer holds `grown` times as much at LEAK, and one large report."""
        collector = self.collector()
        for build, version, times in ((OLD, "1.3", 1), (NEW, "1.4", grown)):
            for number in range(dumps):
                rows = [(LEAK, times * MIB + number * 1000, 2 * times * MIB, 3 * MIB), (CACHE, 10 * MIB + (number % 5) * 30000, 12 * MIB, 20 * MIB)]
                self.assertEqual(collector.send(trace(
                    rows, program="prog", build=build, version=version, host=f"web-{number % 7}", control=True), guid=f"{build}-{number}"), 200)
        self.assertEqual(collector.send(trace([(LEAK, 500 * MIB, 600 * MIB, 1)], build=NEW, version="1.4", host="web-9"), guid="large"), 200)
        collector.settle()
        return collector

    def file(self, name, text, mode=0o600):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        os.chmod(path, mode)
        return path


class Answers(Case):
    """Each question, held against the collector's own JSON."""

    def test_programs_and_builds(self):
        collector = self.filled()
        answer = self.fleet(collector, "programs")
        self.assertRegex(answer.out, r"(?m)^ *51 +50 +2 +8 .* MiB .* prog$")
        self.assertRegex(answer.out, r"(?m)^next: memlog fleet top prog --at=")
        lines = self.fleet(collector, "builds", "prog").out.splitlines()
        told = collector.ask("builds", program="prog")["builds"]
        self.assertEqual([one["version"] for one in told], ["1.4", "1.3"])
        for line, one in zip(lines[1:], told):
            self.assertRegex(line, rf" {one['dumps']} +{one['control']['dumps']} +{one['hosts']} .* MiB \+- .* {one['version']} {one['build_id'][:12]}$")
        self.assertRegex(lines[-1], r"^next: memlog fleet diff prog ")

    def test_top_is_the_collectors_list(self):
        collector = self.filled()
        for metric in ("live", "peak", "total"):
            told = collector.ask("top", program="prog", metric=metric)
            lines = self.fleet(collector, "top", "prog", f"--metric={metric}").out.splitlines()
            rows = [line for line in lines if line.rstrip().endswith(("leak", "cache"))]
            self.assertEqual([row.split()[-1] for row in rows], [one["frames"][-1] for one in told["stacks"]], metric)
            for row, one in zip(rows, told["stacks"]):
                share = 100 * one[f"{metric}_bytes"] / told[f"{metric}_bytes"]
                self.assertAlmostEqual(float(row.split()[0]), share, delta=0.06)
            self.assertEqual(re.findall(r"stack (\d+)  < serve < main", "\n".join(lines)), [one["stack"] for one in told["stacks"]])
        # The command that is named at the end does what it says.
        following = lines[-1].removeprefix("next: memlog fleet ").split(" --at=")[0].split()
        self.assertIn("web-3", self.fleet(collector, *following).out)
        self.assertEqual(len([line for line in self.fleet(collector, "top", "prog", "--limit=1").out.splitlines() if "stack " in line]), 1)

    def test_what_some_dumps_do_not_say_is_said(self):
        collector = self.collector()
        for number in range(3):
            self.assertEqual(collector.send(trace([(LEAK, MIB, 4 * MIB, 8 * MIB)]), guid=f"g{number}"), 200)
        self.assertEqual(collector.send(pprof([(LEAK, MIB, 8 * MIB)], comment=""), guid="pprof"), 200)
        collector.send(pprof([(LEAK, MIB, 8 * MIB)], program="bare"), guid="bare")
        collector.settle()
        self.assertRegex(self.fleet(collector, "top", "--metric=peak").out, r"5 dumps: peak 4.0 MiB a dump\n2 of 5 dumps say no peak\n")
        self.assertRegex(self.fleet(collector, "top", "--metric=total").out, r"5 dumps: total 8.0 MiB a dump\n +SHARE")
        self.assertRegex(self.fleet(collector, "flame", "--metric=peak").out, r"2 of 5 dumps say no peak\n *100.0 % +4.0 MiB +main\n")
        self.assertNotIn("say", self.fleet(collector, "flame", "--metric=peak", "--folded").out)
        self.assertRegex(self.fleet(collector, "programs").out, r"1.0 MiB +- .* bare\n2 of 5 dumps say no peak\n")
        self.assertRegex(self.fleet(collector, "reports", "bare").out, r" 1.0 MiB +- +\(none\) +bare ")
        report = self.fleet(collector, "report", "pprof").out
        self.assertRegex(report, r"(?m)^live +1.0 MiB, peak -, allocated 8.0 MiB$")
        self.assertNotIn("INCOMPLETE", report)  # it does not say so

    def test_what_memlog_cost_is_shown_where_it_is_told(self):
        collector = self.collector()
        costs = {"kept": (6000, 10000), "broken": (23000, 10000), "unpromised": (400, None), "untold": (None, None)}
        for name, (cost, promised) in costs.items():
            told = {key: value for key, value in (("cost_ppm", cost), ("promised_ppm", promised)) if value}
            self.assertEqual(collector.send(trace([(LEAK, MIB, MIB, MIB)], build=NEW, **told), guid=name), 200)
        collector.send(trace([(LEAK, MIB, MIB, MIB)], build=OLD), guid="old")
        collector.settle()
        answer = self.fleet(collector, "builds", "prog").out
        self.assertRegex(answer, rf" 4 +0 +1 +1 % +- +{NEW[:12]}\n")  # 0.98 % on average
        self.assertRegex(answer, rf" 1 +0 +1 +- +- +{OLD[:12]}\n")
        self.assertIn("\nmemlog cost more than --overhead promised in 1 of 3 dumps that told its cost\n", answer)
        for name, line in (("kept", "0.6 % of processor time, 1 % promised"), ("broken", "2.3 % of processor time, 1 % promised: not kept"),
                           ("unpromised", "0.04 % of processor time")):
            self.assertRegex(self.fleet(collector, "report", name).out, rf"(?m)^cost +{line}$")
        self.assertNotIn("cost", self.fleet(collector, "report", "untold").out)

    def test_a_build_is_called_by_its_id_its_beginning_or_its_version(self):
        collector = self.filled()
        answers = {self.fleet(collector, "top", "prog", build).out for build in (NEW, NEW[:4], "1.4")}
        answers.add(self.fleet(collector, "top", "--program=prog", "--build=1.4").out)
        self.assertEqual(len(answers), 1)
        self.assertIn(f"26 dumps of prog build {NEW[:12]}", answers.pop())
        self.assertIn("25 dumps", self.fleet(collector, "top", "prog", "1.4", "--control").out)
        answer = self.fleet(collector, "top", "prog", "1.9", code=3)
        self.assertEqual((answer.out, answer.err), ("", f"memlog: prog has no build '1.9'; it has {NEW} (1.4), {OLD} (1.3)\n"))

    def test_flame_as_a_tree_and_folded(self):
        collector = self.filled()
        top = collector.ask("top", program="prog", metric="peak")
        folded = dict(line.rsplit(" ", 1) for line in self.fleet(collector, "flame", "prog", "--folded", "--metric=peak").out.splitlines())
        self.assertEqual({path: int(value) for path, value in folded.items()},
                         {";".join(one["frames"]): one["peak_bytes"] for one in top["stacks"]})
        tree = self.fleet(collector, "flame", "prog").out
        live = collector.ask("top", program="prog")
        leak = next(one for one in live["stacks"] if one["frames"][-1] == "leak")
        self.assertRegex(tree, r"(?m)^ *100\.0 %  .*  main\n *100\.0 %  .*  serve\n")
        self.assertRegex(tree, rf"(?m)^ *{100 * leak['live_bytes'] / live['live_bytes']:.1f} %  .*  leak$")

    def test_diff_of_two_builds_or_the_newest(self):
        collector = self.filled()
        newest = self.fleet(collector, "diff", "prog").out
        self.assertEqual(newest, self.fleet(collector, "diff", "prog", "1.3", "1.4").out)
        rows = re.findall(r"(?m)^ *([\d.]+) % +([\d.]+) % +([+-][\d.]+) .* (leak|cache)$", newest)
        told = {one["frames"][-1]: one for one in collector.ask("diff", program="prog", build=OLD, other=NEW)["stacks"]}
        self.assertEqual([row[3] for row in rows], ["leak", "cache"])  # what grew first
        for before, after, _, name in rows:
            self.assertEqual((before, after), (f"{100 * told[name]['share_before']:.1f}", f"{100 * told[name]['share_after']:.1f}"))
        backwards = self.fleet(collector, "diff", "prog", "1.4", "1.3").out
        self.assertEqual([row[3] for row in re.findall(r"(?m)^ *([\d.]+) % +([\d.]+) % +([+-][\d.]+) .* (leak|cache)$", backwards)], ["cache", "leak"])

    def test_a_selection_is_the_same_wherever_it_is_said(self):
        collector = self.filled()
        for number in range(20):
            self.assertEqual(collector.send(trace([(LEAK, MIB, 9 * MIB, MIB), (CACHE, MIB, MIB, MIB)], build="", host="web-1", control=True), guid=f"no{number}"), 200)
        self.assertEqual(collector.send(pprof([(LEAK, MIB, MIB)], build=NEW), guid="other"), 200)
        collector.settle()
        self.assertIn("20 dumps of prog build none", self.fleet(collector, "top", "prog", "none").out)
        diff = self.fleet(collector, "diff", "prog", "1.3", "none", "--metric=peak").out
        self.assertRegex(diff, r"after  none: 20 dumps by chance\nshares of a dump's peak, mean; .*\n")
        self.assertRegex(diff, r"(?m)^ *14\.3 % +90\.0 % .* leak$")
        self.assertRegex(self.fleet(collector, "diff", "prog", "1.3", "none", "--from=-1h").out, "leak")
        self.assertIn("too few", self.fleet(collector, "diff", "prog", "1.3", "none", "--until=-1h").out)
        stack = collector.ask("top", program="prog")["stacks"][0]["stack"]
        reports = self.fleet(collector, "reports", "prog", f"--stack={stack}", "--host=web-9").out
        self.assertEqual(re.findall(r"report (\w+)  build", reports), ["large"])
        self.assertNotIn("large", self.fleet(collector, "reports", "prog", "--control", "--limit=100").out)
        self.assertIn("has a stack 1;", self.fleet(collector, "reports", "--stack=1", code=3).err)
        self.assertEqual(len(json.loads(self.fleet(collector, "flame", "prog", "--json", "--limit=2").out)["nodes"]), 2)
        self.assertRegex(self.fleet(collector, "programs", "--host=web-9").out, r"(?m)^ +1 +0 +1 +1 .* prog$")

    def test_too_few_dumps_and_one_build_are_said(self):
        collector = self.filled(dumps=19)
        self.assertRegex(self.fleet(collector, "diff", "prog").out, "too few: 20 dumps by chance a side are wanted")
        collector.send(trace([(LEAK, MIB, 0, 0)], program="single"))
        collector.settle()
        self.assertIn("single has one build", self.fleet(collector, "diff", "single", code=3).err)

    def test_hosts_reports_and_one_report(self):
        collector = self.filled()
        hosts = self.fleet(collector, "hosts", "prog").out
        self.assertRegex(hosts.splitlines()[1], r"^ *500\.0 MiB .* yes +web-9$")
        self.assertEqual(hosts.count(" yes "), 1)
        reports = self.fleet(collector, "reports", "prog", "--host=web-9").out
        self.assertRegex(reports, rf"500\.0 MiB +600\.0 MiB +growth +prog +web-9\n +report large  build {NEW[:12]} 1\.4\n")
        self.assertEqual(reports.count("report large"), 2)  # and in the next command
        report = self.fleet(collector, "report", "large").out
        self.assertRegex(report, r"(?m)^host +web-9$")
        self.assertRegex(report, r"(?m)^500\.0 MiB +512,000 .* leak\n +< serve < main$")
        self.assertIn("there is no report 'nope'", self.fleet(collector, "report", "nope", code=3).err)
        self.assertIn("nothing that was asked for has a stack 12", self.fleet(collector, "hosts", "--stack=12", code=3).err)

    def test_times(self):
        collector = self.filled()
        self.assertIn("web-9", self.fleet(collector, "reports", "--from=-1h", "--limit=100").out)
        self.assertEqual(self.fleet(collector, "reports", "--until=-1h").out, "")
        self.assertEqual(self.fleet(collector, "reports", "--from=2020-01-01T00:00", "--until=@1600000000000").out, "")

    def test_json_is_the_collectors(self):
        collector = self.filled()
        asked = {("programs",): {}, ("builds", "prog"): {"program": "prog"}, ("top", "prog", "1.4"): {"program": "prog", "build": NEW},
                 ("flame",): {}, ("diff", "prog"): {"program": "prog", "build": OLD, "other": NEW}, ("hosts", "prog"): {"program": "prog"},
                 ("reports", "--limit=5"): {"limit": 5}, ("report", "large"): {"guid": "large"}}
        for words, arguments in asked.items():
            with self.subTest(words):
                self.assertEqual(json.loads(self.fleet(collector, *words, "--json").out), collector.ask(words[0], **arguments))


class Trouble(Case):
    def test_hostile_names_move_no_terminal(self):
        """Case.fleet() looks at each byte of every answer."""
        collector = self.collector()
        collector.send(trace([((HOSTILE, "--webhook=x"), MIB, MIB, MIB)], program=HOSTILE, build=HOSTILE, host=HOSTILE, version=HOSTILE, process=HOSTILE), guid="one")
        collector.send(trace([(("--at=http://x",), MIB, MIB, MIB)], program="--at=http://x"), guid="two")
        collector.settle()
        for words in (("programs",), ("top",), ("flame",), ("flame", "--folded"), ("reports",), ("report", "one")):
            with self.subTest(words):
                self.fleet(collector, *words)
                self.fleet(collector, *words, columns=40)
                if "--folded" not in words:
                    self.fleet(collector, *words, "--json")
        program = next(one["program"] for one in collector.ask("programs")["programs"] if "evil" in one["program"])
        for question in ("builds", "hosts", "top"):
            self.assertNotIn("no report", self.fleet(collector, question, f"--program={program}").err)
        self.fleet(collector, "top", HOSTILE[:4] + "\x1b[2J", code=3)
        # A name that looks like an option becomes none in the command that is named.
        collector.send(trace([(LEAK, MIB, MIB, MIB)], program="--at=http://x"), guid="three")
        collector.settle()
        self.assertIn("next: memlog fleet top --program='--at=http://x' --at=", self.fleet(collector, "programs").out)

    def test_no_line_is_wider_than_the_terminal(self):
        collector = self.collector()
        long = ("main", "std::" + "very_long_name::" * 30 + "\u4e2d\u6587" * 20)
        for number in range(25):
            for build in (OLD, NEW):
                rows = [(long, (1 + (build == NEW)) * MIB + number, MIB, MIB), (CACHE, MIB, MIB, MIB)]
                collector.send(trace(rows, build=build, version="1.0.0-rc1", control=True, host="h" * 80), guid=f"{build}{number}")
        collector.settle()
        for words in (("programs",), ("builds", "prog"), ("top", "prog"), ("flame",), ("diff", "prog"), ("hosts", "prog"), ("reports",), ("report", f"{OLD}1")):
            for columns in (80, 120):
                lines = self.fleet(collector, *words, columns=columns).out.splitlines()
                for line in lines:
                    width = sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line)
                    if not line.startswith(("next: ", "half of")):
                        self.assertLessEqual(width, columns, (words, line))

    def test_a_program_that_is_not_there(self):
        collector = self.collector()
        self.assertIn("no report has come yet: 'memlog run --upload=URL'", self.fleet(collector, "programs").err)
        self.assertIn("none has come at all", self.fleet(collector, "top", "prog", code=3).err)
        collector.send(trace([(LEAK, MIB, 0, 0)], program="python3"))
        collector.send(trace([(LEAK, MIB, 0, 0)], program="nginx"))
        collector.settle()
        for question in ("builds", "top", "flame", "hosts", "reports", "diff"):
            self.assertIn("no report is of a program 'pyton3'; did you mean 'python3'?", self.fleet(collector, question, "pyton3", code=3).err)
        self.assertRegex(self.fleet(collector, "top", "zzzz", code=3).err, "there are (python3, nginx|nginx, python3)\n$")

    def test_tokens(self):
        collector = self.collector(tokens=collect_test.TEAMS)
        collector.send(trace([(LEAK, MIB, 0, 0)]), team="red")
        self.wait_for("the report", lambda: collector.figures("red")["waiting"] == 0)
        one = {right: self.file(f"red.{right}", f"{token}\n") for right, token in collect_test.TEAMS["red"].items()}
        team = self.file("team", "".join(f"red {right} {token}\n" for right, token in collect_test.TEAMS["red"].items()))
        for path in (one["read"], one["admin"], team):
            self.assertIn("prog", self.fleet(collector, "programs", token=path).out)
        self.assertRegex(self.fleet(collector, "programs", token="", code=1).err, r"HTTP status 401: a token is wanted: .*; --token-file=FILE has one that may read")
        self.assertRegex(self.fleet(collector, "programs", token=self.file("x", "nobody\n"), code=1).err, r"401.*--token-file=FILE has one that it does not know\n$")
        self.assertRegex(self.fleet(collector, "programs", token=one["write"], code=1).err, r"403: this token is for something else; .* may not read")
        self.assertIn("tokens of several teams", self.fleet(collector, "programs", code=1).err)
        wrong = {("open", "x\n", 0o644): "others may read it", ("empty", "", 0o600): "no token", ("blank", "\n\n", 0o600): "no token",
                 ("letters", "a\x01b\n", 0o600): "other characters", ("send", f"red write {collect_test.TEAMS['red']['write']}\n", 0o600): "may read"}
        for (name, text, mode), said in wrong.items():
            answer = self.fleet(collector, "programs", token=self.file(name, text, mode), code=1)
            self.assertRegex(answer.err, rf"^memlog: --token-file: .*/{name}: .*{said}")
        self.assertIn("No such file", self.fleet(collector, "programs", token=self.folder / "none", code=1).err)
        self.assertIn("it is no file", self.fleet(collector, "programs", token=self.folder, code=1).err)

    def test_no_server_and_others_than_a_collector(self):
        collector = self.collector()
        collector.stop()
        answer = self.fleet(collector, "programs", code=1)
        self.assertRegex(answer.err, rf"^memlog: http://127\.0\.0\.1:{collector.port}: .*connect.*; is 'memlog collect' listening there\? --at=URL")
        self.assertEqual(answer.out, "")

        said = {"/garbage": (200, b"\x1b[2J<html>"), "/other": (200, b'{"memlog": 99}'), "/deep": (200, b'{"memlog":1,"programs":' + b"[" * 100000),
                "/words": (503, b"\x1b]0;x\x07 come again\nlater"), "/moved": (302, b""), "/kinds": (200, json.dumps(
                    {"memlog": 1, "missing_shards": ["east-1", HOSTILE], "programs": [
                        {"program": 7, "dumps": "x", "hosts": -5, "last_ms": 1e300, "mean_live_bytes": 1e308}, "no object", None]}, ensure_ascii=False).encode())}

        class Server(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # pylint: disable=invalid-name
                status, body = said["/" + self.path.split("/")[1]]
                self.send_response(status)
                self.send_header("Location", "http://127.0.0.1:1/")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            at = f"http://127.0.0.1:{server.server_port}"
            for path, words in {"/garbage": "is no collector", "/other": "in a newer form", "/deep": "is no collector",
                                "/words": r"status 503: \?\]0;x\? come again\n", "/moved": r"redirected \(302\)"}.items():
                self.assertRegex(self.fleet(collector, "programs", at=at + path, code=1).err, words)
            answer = self.fleet(collector, "programs", at=at + "/kinds")
            self.assertRegex(answer.out, r"^INCOMPLETE: 2 of the store's parts did not answer \(east-1, evil\?.*\): what they have is in no figure\n")
            self.assertEqual(json.loads(self.fleet(collector, "programs", "--json", at=at + "/kinds").out), json.loads(said["/kinds"][1]))
            server.shutdown()

    def test_words_that_do_not_fit(self):
        collector = collecting.Collector(self.folder, environment=self.environment())
        cases = {("xyzzy",): "is no question; they are programs", ("tip",): "did you mean 'top'?", (): "say what to ask", ("top", "--host=x"): "--host says nothing to top",
                 ("builds",): "say of which program", ("hosts",): "say of which program, or of which stack", ("report",): "say which report",
                 ("diff", "p", "1"): "say both builds", ("programs", "p"): "one word too many", ("top", "p", "--program=q"): "two different things",
                 ("top", "--from=+5m"): "a time behind nothing", ("flame", "--json", "--folded"): "--json or --folded",
                 ("hosts", "--stack=1;2"): "the number of a stack"}
        for words, said in cases.items():
            with self.subTest(words):
                answer = self.fleet(collector, *words, code=2)
                self.assertIn(said, answer.err)
                self.assertEqual(answer.out, "")
                self.assertTrue(answer.err.endswith("Try 'memlog fleet --help'.\n"), answer.err)
        for at in ("127.0.0.1:8765", "ftp://x", "http://", "http://user:secret@x", "http://x y", "http://x/?a=b"):
            self.assertEqual(self.fleet(collector, "programs", at=at, code=2).out, "")

    def test_the_users_file_has_the_collector(self):
        collector = self.filled(dumps=1)
        config = self.folder / "config" / "memlog"
        config.mkdir(parents=True)
        (config / "config").write_text(f"[fleet]\nat = http://127.0.0.1:{collector.port}\ntoken-file = {collector.tokens_file}\nmetric = peak\n", encoding="utf-8")
        environment = self.environment(XDG_CONFIG_HOME=str(config.parent))
        for words in (("programs",), ("top", "prog"), ("builds", "prog")):
            answer = subprocess.run([str(harness.MEMLOG), "fleet", *words], capture_output=True, text=True, env=environment, check=False, timeout=harness.TIMEOUT)
            self.assertEqual((answer.returncode, answer.stderr), (0, ""))
            self.assertNotIn("--at=", answer.stdout)  # who has it in a file need not be told


@unittest.skipUnless(shutil.which("openssl"), "openssl")
class Secret(Case, collect_test.Secret):
    def test_a_report_is_the_machines_whose_certificate_came_with_it(self):
        """Is collect_test's."""

    def test_the_collectors_certificate_counts(self):
        for authority in ("trusted", "strangers"):
            self.authority(authority)
        self.certificate("server", "trusted")
        collector = collecting.Collector(
            self.folder, f"--tls-cert={self.folder}/server.pem", f"--tls-key={self.folder}/server.key", environment=self.environment())
        self.addCleanup(lambda: collector.process and collector.process.poll() is None and collector.stop(signal.SIGKILL))
        collector.tls = self.context()
        collector.start()
        collector.send(packed(trace([(LEAK, MIB, 0, 0)])))
        collector.settle()
        at = f"https://127.0.0.1:{collector.port}"
        self.assertIn("prog", self.fleet(collector, "programs", f"--ca={self.folder}/trusted.pem", at=at).out)
        for words in ((), (f"--ca={self.folder}/strangers.pem",)):
            answer = self.fleet(collector, "programs", *words, at=at, code=1)
            self.assertRegex(answer.err, r"certificate.*; --ca=FILE names who has signed its certificate, if you trust that\n$")
        elsewhere = self.fleet(collector, "programs", f"--ca={self.folder}/trusted.pem", at=f"https://localhost:{collector.port}", code=1)
        self.assertRegex(elsewhere.err, r"https://localhost:\d+: .*(subject|name)")  # the certificate names an address
        self.assertIn("one with TLS is https://", self.fleet(collector, "programs", code=1).err)


if __name__ == "__main__":
    unittest.main()
