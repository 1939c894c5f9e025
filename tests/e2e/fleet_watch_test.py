"""memlog fleet watch: what grew is found, told once, kept while nobody takes it, and told after a restart no second time."""
import contextlib
import http.client
import http.server
import json
import os
import random
import re
import shutil
import signal
import ssl
import subprocess
import threading
import time
import unittest

import collect_test
import collecting
import fleet_test
import harness
import schemas_test
import servers
from collecting import trace
from fleet_test import CACHE, LEAK, MIB, NEW, OLD

NEWEST = "eeee5555ffff6666aaaa"


class Webhook:
    """Takes findings, or refuses them with `status`."""

    def __init__(self, tls=None):
        self.taken, self.headers, self.refused, self.status = [], [], 0, 200
        webhook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if webhook.status == 200:
                    webhook.taken.append(json.loads(body))
                    webhook.headers.append(dict(self.headers))
                else:
                    webhook.refused += 1
                self.send_response(webhook.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server.server_port}/hooks/very-secret-path"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Case(fleet_test.Case):
    def webhook(self, tls=None):
        webhook = Webhook(tls)
        self.addCleanup(webhook.close)
        return webhook

    def once(self, collector, *words, code=0, state="state.json"):
        return self.fleet(collector, "watch", "--once", f"--state={self.folder}/{state}", *words, code=code)

    def build(self, collector, build, times=1, dumps=25, program="prog", seed=0, others=0):
        """Dumps by chance of a build that holds `times` as much at LEAK, of which each spreads."""
        chance = random.Random(f"{build}{seed}")
        for number in range(dumps):
            rows = [(LEAK, int(times * MIB * chance.uniform(0.9, 1.1)), MIB, MIB), (CACHE, int(10 * MIB * chance.uniform(0.9, 1.1)), MIB, MIB)]
            rows += [(("main", f"other{other}"), int(MIB * chance.uniform(0.8, 1.2)), MIB, MIB) for other in range(others)]
            report = trace(rows, program=program, build=build, version=build[:1], host=f"web-{number}", control=True)
            self.assertEqual(collector.send(report, guid=collecting.name_of(f"{program}-{build}-{seed}-{number}".encode())), 200)
        collector.settle()

    @contextlib.contextmanager
    def watching(self, collector, *words, state="state.json"):
        with open(self.folder / "watch.log", "w+b") as log:
            process = subprocess.Popen(
                [str(harness.MEMLOG), "fleet", "watch", f"--at=http://127.0.0.1:{collector.port}", f"--token-file={collector.tokens_file}",
                 f"--state={self.folder}/{state}", "--every=10", *words], stdout=log, stderr=log, env=self.environment())
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait(harness.TIMEOUT)

    def log(self):
        return (self.folder / "watch.log").read_text(encoding="utf-8")


class Once(Case):
    def test_what_grew_is_found_and_ends_with_4(self):
        collector = self.collector()
        self.build(collector, OLD)
        self.assertEqual(self.once(collector).out, "prog: one build, nothing to compare\n")
        self.build(collector, NEW, dumps=19)
        self.assertRegex(self.once(collector).out, r"^prog: too few from .*: 25 and 19 dumps by chance, 20 a side are wanted\n$")
        self.build(collector, NEW, dumps=6, seed=1)
        self.assertRegex(self.once(collector).out, r"^prog: nothing grew from a \(aaaa1111bbbb\) to d \(dddd3333eeee\)\n$")
        self.build(collector, NEWEST, times=3)
        told = {one["frames"][-1]: one for one in collector.ask("diff", program="prog", build=NEW, other=NEWEST)["stacks"]}["leak"]
        for _ in range(2):
            answer = self.once(collector, code=4)
            self.assertEqual(answer.out, (
                f"prog: GREW from d (dddd3333eeee) to e (eeee5555ffff): leak {100 * told['share_before']:.1f} % -> "
                f"{100 * told['share_after']:.1f} % of a dump\nnext: memlog fleet diff --program=prog\n"))
        self.assertEqual(self.once(collector, "--quiet", code=4).out, "")
        self.assertIn("no report is of that program", self.once(collector, "nobody", code=3).err)
        self.once(collector, "prog", code=4)

    def test_two_equal_builds_say_nothing(self):
        """Twenty pairs, each of forty stacks that spread: at most one may be found by chance, as q promises."""
        collector = self.collector()
        for number in range(20):
            for build in (OLD, NEW):
                self.build(collector, build, program=f"p{number}", seed=number, dumps=20, others=38)
        answer = subprocess.run(
            [str(harness.MEMLOG), "fleet", "watch", "--once", f"--state={self.folder}/s", f"--at=http://127.0.0.1:{collector.port}",
             f"--token-file={collector.tokens_file}"], capture_output=True, text=True, env=self.environment(), check=False, timeout=harness.TIMEOUT)
        self.assertLessEqual(answer.stdout.count("GREW"), 1, answer.stdout)
        self.assertEqual(answer.stdout.count("nothing grew") + answer.stdout.count("GREW"), 20)

    def test_a_build_of_an_hour_is_nothing_to_compare_with(self):
        collector = self.collector()
        self.build(collector, OLD)
        self.build(collector, NEW, dumps=3)
        self.build(collector, NEWEST, times=3)
        self.assertIn("GREW from a (aaaa1111bbbb) to e (eeee5555ffff)", self.once(collector, code=4).out)

    @unittest.skipUnless(schemas_test.jsonschema, "needs python3-jsonschema")
    def test_a_finding_is_as_its_schema_says_and_told_once(self):
        collector, webhook = self.collector(), self.webhook()
        self.build(collector, OLD)
        self.build(collector, NEW, times=3)
        token = self.file("hook.token", "hook-token\n")
        words = (f"--webhook={webhook.url}", f"--webhook-token-file={token}")
        self.once(collector, code=4)  # without a webhook: nothing counts as sent
        for _ in range(3):
            self.once(collector, *words, code=4)
        (finding,) = webhook.taken
        validator = schemas_test.validator("fleet_watch")
        self.assertEqual([error.message for error in validator.iter_errors(finding)], [])
        self.assertEqual((finding["verdict"], finding["program"]), ("grew", "prog"))
        self.assertEqual((finding["before"]["build_id"], finding["after"]["build_id"]), (OLD, NEW))
        self.assertEqual((finding["before"]["dumps"], finding["after"]["dumps"]), (25, 25))
        told = next(one for one in collector.ask("diff", program="prog", build=OLD, other=NEW)["stacks"] if one["frames"][-1] == "leak")
        told.pop("differs")
        self.assertEqual(finding["stacks"], [told])
        self.assertEqual(webhook.headers[0]["Authorization"], "Bearer hook-token")
        self.assertEqual(webhook.headers[0]["Idempotency-Key"], finding["id"])

    def test_it_is_told_again_only_when_it_changes(self):
        collector, webhook = self.collector(), self.webhook()
        words = f"--webhook={webhook.url}"
        self.build(collector, OLD)
        self.build(collector, NEW, times=3)
        self.once(collector, words, code=4)
        self.build(collector, NEW, times=3, seed=1)  # more of the same
        self.once(collector, words, code=4)
        self.assertEqual(len(webhook.taken), 1)
        self.build(collector, NEW, times=3 / 4, dumps=400, seed=2)  # the mean is as before: it was no regression after all
        self.once(collector, words)
        self.assertEqual([(one["verdict"], len(one["stacks"])) for one in webhook.taken], [("grew", 1), ("no longer", 0)])
        self.once(collector, words)
        self.build(collector, NEWEST, times=4)  # a new pair
        self.once(collector, words, code=4)
        self.assertEqual([one["after"]["build_id"] for one in webhook.taken], [NEW, NEW, NEWEST])
        self.assertEqual(len({one["id"] for one in webhook.taken}), 3)

    def test_what_the_webhook_refuses_is_kept(self):
        collector, webhook = self.collector(), self.webhook()
        for program in ("prog", "next"):
            self.build(collector, OLD, program=program)
            self.build(collector, NEW, times=3, program=program)
        webhook.status = 503
        answer = self.once(collector, f"--webhook={webhook.url}", code=4)
        self.assertRegex(answer.err, r"--webhook: http://127\.0\.0\.1:\d+: HTTP status 503: 2 kept, and tried again\n")
        self.assertNotIn("secret", answer.err)
        self.assertEqual(self.once(collector, "--webhook=http://127.0.0.1:1/", "--quiet", code=4).out, "")
        self.assertEqual(webhook.taken, [])
        webhook.status = 200
        self.once(collector, f"--webhook={webhook.url}", code=4)
        self.once(collector, f"--webhook={webhook.url}", code=4)
        self.assertEqual([one["verdict"] for one in webhook.taken], ["grew", "grew"])
        self.assertEqual({one["program"] for one in webhook.taken}, {"prog", "next"})

    def test_trouble(self):
        collector = self.collector()
        self.build(collector, OLD)
        self.file("state.json", "{}")
        self.assertIn("it is no state of 'memlog fleet watch'", self.once(collector, code=1).err)
        self.assertIn("No such file", self.once(collector, state="none/state.json", code=1).err)
        self.assertIn("others may read it", self.once(collector, f"--webhook-token-file={self.file('open', 'x', 0o644)}", state="b", code=1).err)
        collector.stop()
        self.assertIn("is 'memlog collect' listening there?", self.once(collector, state="b", code=1).err)
        for words in (("--once", "--listen=0"), ("--listen=0.0.0.0:0",), ("--json",), ("--webhook=x",), ("--every=1",), ("--webhook=ftp://very-secret",)):
            answer = self.fleet(collector, "watch", *words, code=2)
            self.assertNotIn("very-secret", answer.err)


class Always(Case):
    def metrics(self, port, host=None):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=harness.TIMEOUT)
        with contextlib.closing(connection):
            connection.request("GET", "/metrics", headers={"Host": host} if host else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def test_it_goes_on_over_restarts_and_troubles(self):
        """The webhook is down first, the watch is killed meanwhile, the collector goes away and comes again."""
        collector, webhook = self.collector(), self.webhook()
        self.build(collector, OLD)
        self.build(collector, NEW, times=3)
        webhook.status = 500
        words = f"--webhook={webhook.url}"
        with self.watching(collector, words) as process:
            self.wait_for("a refusal", lambda: webhook.refused)
            process.kill()  # before anybody has taken it
        self.assertEqual(len(json.loads((self.folder / "state.json").read_text())["pending"]), 1)
        webhook.status = 200
        port = servers.free_port()
        with self.watching(collector, words, f"--listen={port}") as process:
            self.wait_for("the finding", lambda: webhook.taken)
            self.wait_for("figures", lambda: "findings_sent_total 1" in self.metrics(port)[1])
            status, text = self.metrics(port)
            self.assertEqual(status, 200)
            self.assertIn(f'memlog_fleet_watch_grown_stacks{{program="prog",build="{NEW}",before="{OLD}"}} 1\n', text)
            self.assertEqual(self.metrics(port, "evil.example")[0], 403)
            self.assertIn("another watch works with it", self.once(collector, code=1).err)
            collector.stop()
            self.wait_for("a round without an answer", lambda: re.search(r"failed_rounds_total [1-9]", self.metrics(port)[1]))
            collector.start()
            self.build(collector, NEWEST, times=9)
            self.wait_for("the next finding", lambda: len(webhook.taken) == 2)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(harness.TIMEOUT), 0)
        self.assertEqual([one["after"]["build_id"] for one in webhook.taken], [NEW, NEWEST])
        self.assertRegex(self.log(), r"(?m)^prog: GREW from d .* to e ")
        with self.watching(collector, words, f"--listen={port}") as process:
            self.wait_for("a round", lambda: self.is_round_done(port))
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(harness.TIMEOUT), 0)
        self.assertEqual(len(webhook.taken), 2)

    def is_round_done(self, port):
        try:
            return "watch_rounds_total 1" in self.metrics(port)[1]
        except OSError:
            return False

    def test_metrics_are_prometheus(self):
        collector = self.collector()
        for name in ('quote"\\back', fleet_test.HOSTILE):
            self.build(collector, OLD, program=name)
            self.build(collector, NEW, times=2, program=name)
        port = servers.free_port()
        with self.watching(collector, f"--listen={port}"):
            self.wait_for("a round", lambda: self.is_round_done(port))
            text = self.metrics(port)[1]
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
        quoted = r'"(?:[^"\\]|\\.)*"'
        for line in text.splitlines():
            self.assertRegex(line, rf'^(# (HELP|TYPE) \w+ .+|\w+({{\w+={quoted}(,\w+={quoted})*}})? [\d.e+-]+)$')
        self.assertEqual(len(re.findall(r"(?m)^memlog_fleet_watch_grown_stacks\{.*\} 1$", text)), 2)
        self.assertIn('program="quote\\"\\\\back"', text)
        with contextlib.suppress(ImportError):
            from prometheus_client.parser import text_string_to_metric_families  # pylint: disable=import-outside-toplevel
            families = {family.name: family for family in text_string_to_metric_families(text)}
            self.assertEqual([sample.value for sample in families["memlog_fleet_watch_grown_stacks"].samples], [1, 1])

    def test_killed_at_any_moment_the_state_is_whole_and_nothing_is_lost(self):
        collector, webhook = self.collector(), self.webhook()
        self.build(collector, OLD)
        self.build(collector, NEW, times=3)
        chance = random.Random(4)
        for _ in range(30):
            with self.watching(collector, f"--webhook={webhook.url}") as process:
                time.sleep(chance.random() * 0.2)
                process.kill()
            if (self.folder / "state.json").exists():
                json.loads((self.folder / "state.json").read_text())
        self.once(collector, f"--webhook={webhook.url}", code=4)
        # Killed between the webhook's answer and the file, it comes again: under the same name.
        self.assertEqual(len({one["id"] for one in webhook.taken}), 1)
        self.assertEqual(os.stat(self.folder / "state.json").st_mode & 0o777, 0o600)


@unittest.skipUnless(shutil.which("openssl"), "openssl")
class Secret(Case, collect_test.Secret):
    def test_a_report_is_the_machines_whose_certificate_came_with_it(self):
        """Is collect_test's."""

    def test_the_webhooks_certificate_counts(self):
        for authority in ("trusted", "strangers"):
            self.authority(authority)
        self.certificate("server", "trusted")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / "server.pem", self.folder / "server.key")
        collector, webhook = self.collector(), self.webhook(context)
        self.build(collector, OLD)
        self.build(collector, NEW, times=3)
        for words in ((), (f"--webhook-ca={self.folder}/strangers.pem",)):
            answer = self.once(collector, f"--webhook={webhook.url}", *words, code=4)
            self.assertRegex(answer.err, r"certificate.*; --webhook-ca=FILE names who has signed its certificate, if you trust that: 1 kept")
        self.assertEqual(webhook.taken, [])
        self.once(collector, f"--webhook={webhook.url}", f"--webhook-ca={self.folder}/trusted.pem", code=4)
        self.assertEqual(len(webhook.taken), 1)


if __name__ == "__main__":
    unittest.main()
