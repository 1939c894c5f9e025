"""The collector's page in a browser: from the token to a single report, each view by its address, names that mean harm, an empty store."""
# runner: timeout=1800
import json
import os
import re
import signal
import subprocess
import unittest

import collecting
import fleets
import harness
import pages

OLD, NEW = list(fleets.BUILDS)[1:]
DIFF = f"program=shopd&build={OLD}&other={NEW}"


class FleetPage(harness.Case):
    @classmethod
    def setUpClass(cls):
        pages.install()

    def collector(self, *reports):
        collector = collecting.Collector(self.folder, environment=self.environment())
        self.addCleanup(lambda: collector.process and collector.process.poll() is None and collector.stop(signal.SIGKILL))
        collector.start()
        for body, guid in (one for some in reports for one in some):
            self.assertEqual(collector.send(body, guid), 200)
        self.assertEqual(collector.settle()["refused"], 0)
        self.url = f"http://127.0.0.1:{collector.port}/"
        return collector

    def drive(self, script, collector, **orders):
        tokens = collector.tokens["default"]
        orders = {"read": lambda: tokens["read"], "write": lambda: tokens["write"], **orders}
        shots = self.folder / "shots"
        seen = pages.drive(script, self.url, shots, self.folder, lambda order: orders[order]() if order in orders else orders["else"](order))
        self.assertEqual(seen["faults"], [])
        self.assertEqual(seen["asked"], [self.url.rstrip("/")])
        # The browser's own words for what was refused or is away, nothing of ours.
        self.assertEqual([one for one in seen["complaints"] if "Failed to load resource" not in one], [])
        keep = os.environ.get("MEMLOG_TEST_SHOTS")
        if keep:
            subprocess.run(["cp", "-r", f"{shots}/.", keep], check=True)
        return seen

    def test_from_the_token_to_a_single_report(self):
        collector = self.collector(fleets.reports())
        self.assertIn(f"its page: {self.url} asks for a read token", collector.said())
        seen = self.drive("fleet.js", collector, leave=lambda: str(collector.stop()), come=lambda: str(collector.start().port))
        self.assertEqual(seen["wrong"], seen["odd"])
        self.assertIn("A read token is wanted", seen["writes"])
        self.assertEqual(seen["address"], f"{self.url}#program=shopd")
        self.assertFalse(seen["asksAgain"])
        self.assertEqual(seen["taken"], "#view=hosts&program=shopd")
        self.assertEqual((seen["kept"], seen["heading"]), (0, "Reports"))

        # The first screen, held against the answers of the API.
        top = collector.ask("top", limit=15)
        mean = top["live_bytes"] / top["dumps"] / fleets.MIB
        self.assertIn(f"{mean:.1f} MiB live in a report on average, of {top['dumps']} reports. Cache::fill(Key const&) holds most", seen["sentence"])
        self.assertEqual(len(seen["stacks"]), len(top["stacks"]))
        for row, stack in zip(seen["stacks"], top["stacks"]):
            share = 100 * stack["live_bytes"] / top["live_bytes"]
            self.assertIn(f"{share:.{1 if share >= 0.1 else 2}f} %", row)
            self.assertRegex(row, rf" {stack['hosts']} [\d.,]+ .iB$")
        self.assertEqual([row.split()[0] for row in seen["programs"]], ["shopd", "postgres"])
        leak = next(stack for stack in top["stacks"] if stack["frames"][-1].startswith("Upload::keep"))
        self.assertEqual(seen["frames"], leak["frames"][::-1])  # the second row is the leak: few machines, much memory
        self.assertEqual([row.split()[0] for row in seen["stackHosts"]], ["web03.example", "web11.example"] if "web03" in seen["stackHosts"][0] else ["web11.example", "web03.example"])
        self.assertIn("Machines whose reports hold Upload::keep(Part&)", seen["stackAbout"])
        self.assertEqual(seen["stackAgain"], seen["stackAbout"])
        self.assertEqual(seen["focused"], "heading")
        self.assertTrue(seen["hostReports"])
        self.assertRegex(seen["report"], r"Why it was made growth \(threshold\)")
        self.assertRegex(seen["report"], r"Upload::keep\(Part&\) .* 9\d\d\.\d MiB|1\.\d GiB")
        self.assertRegex(seen["reportTitle"], r"^Report of shopd, .* memlog fleet$")

        # Machines: the two that leak first, and they alone deviate.
        self.assertEqual(["deviates" in row for row in seen["hosts"]], [True, True] + [False] * (len(seen["hosts"]) - 2))
        self.assertIn("2 machines deviate. Half of the control reports hold at most", seen["hostsAbout"])

        # Builds, the newest first; means as the API says; their intervals are drawn.
        builds = collector.ask("builds", program="shopd")["builds"]
        self.assertEqual([row.split()[0] for row in seen["builds"]], ["4.3", "4.2", "4.1", "4.0"])
        for row, build in zip(seen["builds"], builds):
            control = build["control"]
            self.assertIn(f"{control['mean_live_bytes'] / fleets.MIB:.1f} MiB \u00b1 {control['mean_live_bytes_interval'] / fleets.MIB:.1f} MiB", row)
        self.assertEqual([lines for lines, _ in seen["drawn"]], [3] * 4)
        self.assertGreater(seen["drawn"][1][1], seen["drawn"][2][1] + 10)  # 4.2 stands to the right of 4.1
        self.assertIn("at the peak in a report", seen["peak"])
        self.assertIn("from Monday 2025-12-29", seen["weeks"])

        # What changed: the doubled stack first, with figures on both sides; too few is no verdict.
        told = collector.ask("diff", program="shopd", build=OLD, other=NEW)
        self.assertRegex(seen["diff"][0], r"json::Value::push_back.*\u25b2 grew")
        self.assertIn(f"{100 * told['stacks'][0]['share_before']:.1f} %", seen["diff"][0])
        self.assertIn("in 25 and 25 control reports", seen["diffAbout"])
        self.assertRegex(seen["swapped"][0], r"json::Value::push_back.*\u25bc shrank")
        self.assertIn("4.3 (d4f0e5a77c0de004) has 3 control reports. A verdict needs 20 of each build: 17 more of 4.3", seen["tooFew"])

        self.assertRegex(seen["away"], r"^The collector does not answer, since \d\d:\d\d:\d\d\.")
        self.assertEqual(seen["stays"], seen["back"])
        self.assertGreater(seen["back"], 20)

    VIEWS = {
        "stacks": "", "program": "program=shopd&metric=peak", "flame": "view=flame&program=shopd", "both": f"view=flame&{DIFF}",
        "diff": f"view=diff&{DIFF}", "few": f"view=diff&program=shopd&build={NEW}&other={fleets.YOUNG}", "hosts": "view=hosts&program=shopd",
        "reports": "view=reports", "report": "view=report&guid=shopd-leak-1", "bad": "view=report&guid=bad-0", "turned": "view=report&guid=bad-1",
        "long": "view=report&guid=bad-2", "none": "view=report&guid=nobody", "choose": "view=diff", "machines": "view=hosts",
        "build": f"program=shopd&build={NEW}", "machine": "view=hosts&program=shopd&host=web03.example",
        "narrow": "view=reports&program=shopd&from=2020-01-01&control=1&host=web03.example&stack=1"}

    def test_each_view_by_its_address_in_every_look_with_hostile_names(self):
        collector = self.collector(fleets.reports(), fleets.hostile_reports())
        seen = self.drive("fleet_views.js", collector, views=lambda: json.dumps(self.VIEWS))
        looks = [f"{width} {scheme}" for width in (1280, 400) for scheme in ("light", "dark")]
        for name, view in self.VIEWS.items():
            kept = [look for look in looks if f"{name} {look}" in seen["hashes"]]
            self.assertIn(len(kept), (2, 4), name)
            for where in (f"{name} {look}" for look in kept):
                self.assertEqual(seen["hashes"][where], f"#{view}" if view else "", where)
                self.assertEqual(seen["marks"][where], {"spoilt": False, "made": 0, "turned": False, "token": False}, where)
        texts = {name: seen["texts"][f"{name} 1280 dark"] for name in self.VIEWS}
        self.assertIn("<img src=x onerror=", texts["stacks"])
        self.assertIn("<script>", texts["bad"])
        self.assertIn("safe\\u{202e}gnp.exe", texts["turned"])
        self.assertIn("There is no report of that name", texts["none"])
        self.assertIn("Too few reports for a verdict", texts["few"])
        self.assertIn("which one?", texts["machines"])
        # What narrows a view down is seen, and goes one by one.
        self.assertRegex(texts["machine"], r"Machine web03\.example \u00d7.*Half of this machine\u2019s control reports hold at most")
        self.assertNotIn("web04.example", texts["machine"])
        self.assertRegex(texts["narrow"], r"Machine web03\.example \u00d7.*With one stack \u00d7")
        self.assertNotIn("the newest first", texts["narrow"])
        self.assertIn("No report is of this selection", texts["narrow"])
        self.assertEqual([("Narrow down: 2 set" in text, "Narrow down" in text) for text in (seen["texts"]["narrow 400 light"], seen["texts"]["machine 400 light"])],
                         [(True, True), (False, True)])
        left = "program=shopd&from=2020-01-01&control=1&view=reports"
        self.assertEqual(seen["wider"], [f"{left}&host=web03.example", left])
        self.assertEqual(seen["current"], ["4.2"])
        self.assertIn("memlog costs 0.9 %, in 1 report more than promised", texts["build"])
        self.assertIn("1.2 % of processor time, 1 % promised: not kept", texts["report"])
        self.assertFalse(seen["whole"])
        self.assertEqual(seen["behind"], [False, True, "true"])
        self.assertEqual(seen["missing"], "NOT ALL OF THE FLEET 1 part of the store did not answer, and what they have is in no figure here: clickhouse-2<b>")
        self.assertEqual((seen["few"], seen["more"]), (5, 20))

    def test_the_flame_graph_by_mouse_keys_and_address(self):
        collector = self.collector(fleets.reports())
        seen = self.drive("fleet_flame.js", collector, **{"two builds": lambda: f"view=flame&{DIFF}&control=1"})
        told = collector.ask("flame", program="shopd")
        mean = told["live_bytes"] / told["dumps"] / fleets.MIB
        self.assertIn(f"live: {mean:.1f} MiB (100.0 %)", seen["first"]["figures"])
        self.assertEqual(seen["zoomed"]["where"], "_start \u203a main \u203a serve(Listener&) \u203a http::handle(Request&) \u203a Cache::fill(Key const&)")
        self.assertIn('zoom=["_start","main",', seen["zoomed"]["hash"])
        self.assertEqual(seen["out"]["name"], "http::handle(Request&)")
        self.assertEqual((seen["whole"]["where"], seen["whole"]["hash"]), (seen["first"]["where"], "#program=shopd&view=flame"))
        self.assertEqual(seen["clicked"]["name"], "serve(Listener&)")
        self.assertEqual(seen["reset"]["where"], seen["first"]["where"])
        self.assertEqual(seen["again"], {key: seen["zoomed"][key] for key in ("name", "where", "hash")})
        top = collector.ask("top", program="shopd", limit=100)
        found = sum(stack["live_bytes"] for stack in top["stacks"] if re.search("Cache|json", " ".join(stack["frames"])))
        self.assertRegex(seen["found"], rf"^{found / told['dumps'] / fleets.MIB:.1f} MiB, {100 * found / told['live_bytes']:.1f} %$")
        self.assertIn(f"live: {mean:.1f} MiB (100.0 %)", seen["inverted"]["figures"])
        sides = [collector.ask("flame", program="shopd", build=build, control=1) for build in (OLD, NEW)]
        means = [f"{side['live_bytes'] / side['dumps'] / fleets.MIB:.1f} MiB" for side in sides]
        self.assertIn(f"live: {means[0]} \u2192 {means[1]} (+", seen["two"]["figures"])
        self.assertIn("25 reports before, 25 after", seen["two"]["about"])
        self.assertIn("Orange has grown", seen["two"]["legend"])
        self.assertIn("100,000 frames", seen["manyAbout"])
        self.assertIn(f"live: {seen['expected'] / fleets.MIB:.1f} MiB (100.0 %)", seen["manyFigures"])
        self.assertRegex(seen["manyZoomed"], r"^main \u203a function_\d+_\d$")
        self.assertRegex(seen["manyFound"], r"^4\.8 MiB, 9\.\d %$")

    def test_an_empty_store_says_what_to_do_and_that_is_enough(self):
        collector = collecting.Collector(self.folder, environment=self.environment())
        self.addCleanup(lambda: collector.process and collector.process.poll() is None and collector.stop(signal.SIGKILL))
        collector.start()
        self.url = f"http://127.0.0.1:{collector.port}/"
        running = []

        def follow(order):
            """The commands as they stand there, of a store whose tokens are elsewhere."""
            take, run = json.loads(order)
            program = harness.PROGRAMS / "oracle" / "grower"
            run = run.replace("PROGRAM", f"{program} - guilty={8 << 20} wait={self.folder / 'end'}").replace("memlog run", f"{harness.MEMLOG} run -q --no-page -o run --upload-spool=outbox")
            (self.folder / "fleet.db.tokens").write_bytes(collector.tokens_file.read_bytes())
            subprocess.run(["sh", "-ec", take], cwd=self.folder, check=True)
            running.append(subprocess.Popen(["sh", "-c", f"exec {run}"], cwd=self.folder, env=self.environment()))

        try:
            seen = self.drive("fleet_empty.js", collector, **{"else": follow})
        finally:
            (self.folder / "end").touch()
            for one in running:
                one.wait(harness.TIMEOUT)
        self.assertEqual((seen["heading"], seen["tabs"], len(seen["commands"])), ("Nothing yet", False, 2))
        self.assertIn(self.url, seen["commands"][1])
        self.assertRegex(seen["programs"][0], r"^grower .* 8\.0 MiB 1$")

    def test_its_files_are_anybodys_and_say_what_may_run(self):
        collector = self.collector()
        status, headers, body = collector.request("GET", "/")
        self.assertEqual(status, 200)
        policy = headers["Content-Security-Policy"]
        for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'none'"):
            self.assertIn(part, policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual((headers["X-Content-Type-Options"], headers["Referrer-Policy"]), ("nosniff", "no-referrer"))
        page = body.decode()
        self.assertNotRegex(page, r"<script(?![^>]*\bsrc=)|\son\w+=|style=|https?://")
        for name in re.findall(r'(?:src|href)="(/[^"]+)"', page):
            status, headers, body = collector.request("GET", name)
            self.assertEqual((status, headers["X-Content-Type-Options"]), (200, "nosniff"), name)
            for imported in re.findall(rb'from "(/[^"]+)"', body):
                self.assertEqual(collector.request("GET", imported.decode())[0], 200, imported)
        for path in ("/index.html", "/..%2f..%2fetc/passwd", "/web/fleet.js", "//", "/fleet.js/"):
            self.assertEqual(collector.request("GET", path)[0], 404, path)
        self.assertEqual(collector.request("POST", "/fleet.js", b"x")[0], 401)
        self.assertEqual(collector.request("GET", "/api/v1/fleet/programs")[0], 401)


if __name__ == "__main__":
    unittest.main(verbosity=2)
