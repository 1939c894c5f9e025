"""What a browser makes of our files: our own flame graph, catapult's trace viewer, speedscope."""
import collections
import shutil
import subprocess
import unittest

import harness
import pages

PYTHON = "/usr/bin/python3"
# It leaves without giving anything back.
PROGRAM = "import json; kept = [json.loads(json.dumps({str(i): ['x' * 50] * 9})) for i in range(2000)]; import os; os._exit(0)"


class Pages(harness.Case):
    @classmethod
    def setUpClass(cls):
        pages.install()

    def words(self, *words):
        answer = harness.run_words([*map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, (words, answer.stderr))

    def python_dump(self):
        run = self.memlog("/usr/bin/env", "PYTHONMALLOC=malloc", PYTHON, "-c", PROGRAM)
        return run.dumps()[0]

    def assert_asked_only_here(self, answer):
        self.assertEqual(answer["complaints"], [])
        for url in answer["asked"]:
            self.assertTrue(url.startswith(("http://127.0.0.1:", "data:", "blob:")), url)

    def test_our_flame_graph_is_used_by_mouse_keys_and_address(self):
        dump = self.dump_of_fork()
        report = self.report(dump)
        tree = report["tree"]
        self.words(harness.MEMLOG, "flamegraph", "-o", self.folder / "flame.html", dump)
        page = (self.folder / "flame.html").read_text()
        for word in ("http://", "https://", "url(", "src=", "@import"):
            self.assertNotIn(word, page)
        answer = pages.look("flame.js", self.folder, "flame.html", self.screenshot("flame"))
        self.assert_asked_only_here(answer)
        self.assertEqual({url.rpartition("/")[2] for url in answer["asked"]}, {"flame.html"})
        self.assertEqual(answer["views"][0], "All processes (2)")
        self.assertEqual(len(answer["views"]), 3)
        self.assertIn(f"in {tree['left_blocks']:,} (100.0 %)", answer["first"]["figures"])
        self.assertIn(f"in {tree['total_blocks']:,} (100.0 %)", answer["first"]["figures"])
        self.assertGreater(answer["rows"], 5)
        self.assertFalse(answer["tip"]["hidden"])
        self.assertTrue(answer["tip"]["within"], answer["tip"])
        self.assertRegex(answer["tip"]["text"], r"\d B|\d [KM]iB")
        self.assertTrue(answer["away"])
        self.assertRegex(answer["legend"], r"^Width: live bytes of a function and of all that it called\. ")
        self.assertNotIn("__libc_start_main_impl", answer["without"]["names"])
        self.assertIn("__libc_start_main_impl", answer["with"]["names"])
        self.assertEqual(answer["without"]["values"], answer["with"]["values"])
        self.assertEqual(answer["pressed"], "true")
        self.assertIn("zoom=", answer["zoomed"]["hash"])
        self.assertNotIn("zoom=", answer["out"]["hash"])
        self.assertEqual(answer["metric"], "Live blocks")
        self.assertIn("100.0 %", answer["found"])  # everything is below main
        self.assertEqual(answer["refused"], "not a regular expression")
        self.assertEqual(answer["again"], {"found": answer["found"], "metric": "Total bytes"})
        self.assertIn("view=1", answer["process"]["hash"])
        self.assertIn(f"in {report['processes'][0]['live_blocks']:,} (100.0 %)", answer["process"]["figures"])

    def test_a_difference_is_drawn_with_both_sides(self):
        first, second = self.dump_of_fork(), self.python_dump()
        self.words(harness.MEMLOG, "diff", "--html", "-o", self.folder / "diff.html", first, second)
        answer = pages.look("flame.js", self.folder, "diff.html", self.screenshot("diff"))
        self.assert_asked_only_here(answer)
        self.assertIn("What changed from", answer["about"])
        self.assertIn("\u2192", answer["first"]["figures"])

    def dump_of_fork(self):
        return self.memlog(harness.PROGRAMS / "oracle" / "fork", "fork").dumps()[0]

    def screenshot(self, name):
        return self.folder / f"{name}.png" if harness.KEEP else None

    def test_catapult_takes_the_chrome_trace_without_a_warning(self):
        site = self.folder / "site"
        pages.catapult(site)
        first, dump = self.dump_of_fork(), self.python_dump()
        report = self.report(dump)
        both = self.folder / "both.pftrace"
        both.write_bytes(first.read_bytes() + dump.read_bytes())
        self.words(harness.MEMLOG, "convert", "--to=chrome", "-o", site / "trace.json.gz", both)
        answer = pages.look("catapult.js", site, "catapult.html", self.screenshot("catapult"))
        self.assert_asked_only_here(answer)
        self.assertEqual(answer["warnings"], [])
        self.assertEqual(len(answer["dumps"]), 2)
        before = harness.shown(self.report(first), "live_bytes")
        self.assertEqual(sum(one["bytes"] for one in answer["dumps"][0].values()), before)
        last = report["processes"][-1]
        heap = answer["dumps"][1][str(last["pid"])]
        self.assertEqual((heap["bytes"], heap["blocks"]), (last["live_bytes"], last["live_blocks"]))
        self.assertEqual(sum(one["bytes"] for one in answer["dumps"][1].values()), harness.shown(report, "live_bytes"))
        self.assertIn(f"{last['live_bytes'] / 2**20:.1f} MiB", answer["overview"])
        self.assertIn("Heap details", answer["details"])
        self.assertIn(f"malloc {last['live_bytes'] / 1024:,.1f} KiB {last['live_blocks']:,} ", answer["details"])
        self.assertIn("_start", answer["details"])

    def test_catapult_adds_up_mappings_and_components_to_the_kernels_figures(self):
        site = self.folder / "site"
        pages.catapult(site)
        process = self.memlog_start(PYTHON, "-c", "print('ready', flush=True); input()", stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.words(harness.MEMLOG, "dump")
        process.communicate(b"\n", harness.TIMEOUT)
        (dump,) = self.folder.glob("dumps*/*.manual.pftrace")
        self.words(harness.MEMLOG, "convert", "--to=chrome", "-o", site / "trace.json.gz", dump)
        answer = pages.look("catapult.js", site, "catapult.html", self.screenshot("catapult"))
        self.assertEqual(answer["warnings"], [])
        self.assertIn("components", answer["overview"])
        (entry,) = self.report(dump)["processes"]
        shown, memory = answer["dumps"][0][str(entry["pid"])], entry["memory"]
        regions = shown["regions"]
        self.assertEqual(regions["privateCleanResident"] + regions["privateDirtyResident"], memory["private_bytes"])
        self.assertEqual(regions["sharedCleanResident"] + regions["sharedDirtyResident"], memory["shared_bytes"])
        self.assertEqual(regions["proportionalResident"], memory["proportional_bytes"])
        self.assertEqual(shown["components"].pop("components"), memory["private_bytes"])
        self.assertEqual(shown["components"],
                         {one["name"]: one["private_bytes"] for one in memory["components"]})

    def test_catapult_shows_the_smallest_of_uploads(self):
        """The viewer opens the heap of a body that is pruned as hard as one may be, and warns of nothing."""
        site = self.folder / "site"
        pages.catapult(site)
        dump = self.dump_of_fork()
        self.words(harness.MEMLOG, "upload", "--dry-run", "--form=trace", "--upload-max-bytes=4K", "-o", site / "trace.json.gz", dump)
        answer = pages.look("catapult.js", site, "catapult.html", self.screenshot("catapult"))
        self.assertEqual(answer["warnings"], [])
        (heaps,) = answer["dumps"]
        self.assertEqual(sum(one["bytes"] for one in heaps.values()), harness.shown(self.report(dump), "live_bytes"))
        self.assertIn("Heap details", answer["details"])

    def test_speedscope_opens_the_pprof(self):
        dump = self.python_dump()
        site = self.folder / "site"
        shutil.copytree(pages.NODE / "node_modules" / "speedscope" / "dist" / "release", site)
        self.words(harness.MEMLOG, "convert", "--to=pprof", "-o", site / "heap.pb.gz", dump)
        answer = pages.look("speedscope.js", site, "index.html#profileURL=heap.pb.gz&title=heap", self.screenshot("speedscope"))
        self.assertEqual([one for one in answer["complaints"] if "favicon" not in one], [])
        self.assertIn("heap", answer["title"])
        own = collections.Counter()
        for stack in self.report(dump)["tree"]["stacks"]:
            own[stack["frames"][0]["function"]] += stack["live_bytes"]
        del own[""]
        ((_, most),) = own.most_common(1)
        self.assertGreater(most, 2**20)
        self.assertIn(f"{most / 2**20:.2f} MB", answer["text"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
