"""Browsers' own allocators by other people's counts: each call by the kernel's uprobes, heaps by Chromium's memory-infra; pages that leak."""
# runner: timeout=1800
# A uprobe stops whoever runs the file, in every process of the machine.
# runner: alone
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

import harness

sys.path.insert(0, str(harness.ROOT / "tools/bench"))
import browsers  # noqa: E402
import call_counts  # noqa: E402
import devtools  # noqa: E402
import memory_programs  # noqa: E402
import uprobes  # noqa: E402

MIB = 1 << 20
# Who ends while his other threads are inside a call of the allocator has made it, and memlog has not: it records what has come back.
IN_FLIGHT = 16


class Calls(harness.Case):
    """A uprobe stands behind each entry that memlog hooks, and counts every call, in every process, of the very run that memlog records."""

    def place(self, make):
        self.folder.chmod(0o755)
        browser = make(self.folder / "home")
        page = self.folder / "page.html"
        page.write_text(browsers.nodes_page())
        return browser, page

    def hold(self, make, processes, calls):
        browser, page = self.place(make)
        try:
            listed, counted = call_counts.count(browser, harness.OUT, page)
        except uprobes.Refused as refusal:
            self.skipTest(f"the kernel counts nothing here: {refusal}")
        except call_counts.Ended as ended:
            if browsers.has_no_sandbox(str(ended)):
                self.skipTest("an ordinary user may make no namespace here")
            raise
        whole, seen = 0, 0
        is_past = "chromium" in str(browser.executable) and browsers.places_past_malloc(browser.executable) > 0
        unseen = {"", browsers.INLINED} if is_past else {""}
        for entry, kernels, before in call_counts.compared(listed, counted):
            who = f"{entry['pid']} {entry['name']} ({entry['state']}): memlog {entry['total_blocks']}, {call_counts.frees(entry)}"
            missed = kernels.blocks - entry["total_blocks"]
            self.assertIn(entry["coverage"]["unseen"], unseen, who)
            self.assertEqual((entry["lost_events"], before), (0, 0), who)
            self.assertLessEqual(0, missed, who)
            self.assertLessEqual(missed, IN_FLIGHT, who)
            # At an exit other threads are in calls, too, which the kernel has counted and nobody has carried out.
            self.assertLessEqual(abs(kernels.frees - call_counts.frees(entry)), IN_FLIGHT, who)
            if missed == 0:
                self.assertEqual(entry["total_bytes"], kernels.bytes, who)
            whole += missed == 0
            seen += kernels.blocks + kernels.frees
        self.assertGreaterEqual(whole, processes, counted)
        self.assertGreater(seen, calls)
        return browser, page

    def assert_as_bare(self, browser, page, make):
        bare = make(self.folder / "bare")
        code, told = bare.run(bare.bare(bare.picture_words(page)))
        self.assertEqual(code, 0, told)
        self.assertEqual((browser.folder / "picture.png").read_bytes(), (bare.folder / "picture.png").read_bytes())

    def hold_browser(self, name, processes, **how):
        if browsers.missing(name):
            self.skipTest(browsers.missing(name))

        def make(folder):
            return browsers.Browser(name, folder, **how)

        self.assert_as_bare(*self.hold(make, processes, 300_000), make)

    @unittest.skipIf(os.geteuid() != 0, "uprobes are root's")
    def test_each_call_of_chromium_is_recorded_behind_its_sandbox(self):
        self.hold_browser("chromium", 5, as_nobody=True)

    @unittest.skipIf(os.geteuid() != 0, "uprobes are root's")
    def test_each_call_of_chromium_is_recorded_without_its_sandbox(self):
        self.hold_browser("chromium", 5)

    @unittest.skipIf(os.geteuid() != 0, "uprobes are root's")
    def test_each_call_of_firefox_is_recorded(self):
        self.hold_browser("firefox-esr", 4)

    @unittest.skipIf(os.geteuid() != 0, "uprobes are root's")
    @unittest.skipIf(shutil.which("rustc") is None, "needs rustc")
    def test_each_call_of_rustc_is_recorded(self):
        self.hold(lambda folder: call_counts.Rustc("rustc", folder), 1, 100_000)


@unittest.skipIf(shutil.which("chromium") is None, "needs chromium")
class Leaks(harness.Case):
    """A page adds 50 MiB to its renderer and rests. A threshold between what a renderer has and that takes a dump, which says what grew."""

    RULES = {"interval_seconds": 1, "killed": False,
             "footprint": {"browser": "off", "renderer": "56M", "gpu": "off", "utility": "off", "other": "off", "again": "500M"}}

    def open_page(self, kind):
        self.folder.chmod(0o755)
        self.browser = browsers.Browser("chromium", self.folder / "home")
        (self.folder / "page.html").write_text(browsers.leaking_page(kind))
        rules = self.folder / "triggers.json"
        rules.write_text(json.dumps(self.RULES))
        words = self.browser.words("--remote-debugging-port=0", f"file://{self.folder}/page.html")
        words = self.browser.under_memlog(harness.MEMLOG, words, f"--triggers={rules}", "--dump-signal=USR2")
        with open(self.folder / "stderr", "wb") as told:
            process = subprocess.Popen(words, env=self.browser.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=told)
        self.addCleanup(self.end, process)
        port_file = self.browser.profile / "DevToolsActivePort"
        self.wait_for("DevTools", lambda: port_file.exists() and port_file.stat().st_size > 0)
        self.wait_for("the page to have leaked", lambda: "leaked" in devtools.titles(port_file))
        return process, port_file

    def end(self, process):
        for pid in memory_programs.below(process.pid):
            if memory_programs.name_of(pid) == "chromium":
                memory_programs.with_signal(pid, signal.SIGKILL)
        process.wait(harness.TIMEOUT)

    def dumps(self, reason):
        return sorted((self.browser.folder / "dumps").glob(f"*.{reason}.pftrace"))

    def guilty_dump(self, pid):
        """The first threshold dump whose trigger names that process."""
        def look():
            for dump in self.dumps("threshold"):
                report = self.whole_report(dump)
                (entry,) = [one for one in report["processes"] if one["id"] == report["dump"]["trigger"]["process_id"]]
                if entry["pid"] == pid:
                    return report["dump"]["trigger"]["grown"]
            return None
        written = self.browser.folder / "dumps" / "triggers.log"
        self.wait_for("a dump for it", lambda: f"({pid}) has" in written.read_text() and " written " in written.read_text())
        return self.wait_for("it to be written", look)

    def compared(self, process, port_file):
        """(what Chromium says, what memlog says) of each process, at one moment after another while the page rests."""
        said = devtools.memory_dump(port_file, "detailed")
        process.send_signal(signal.SIGUSR2)
        (dump,) = self.wait_for("a dump", lambda: self.dumps("signal"))
        report = self.whole_report(dump)
        ours = {entry["pid"]: entry for entry in report["processes"] if entry["recorded"] and entry["state"] == "running"}
        return {pid: (one, ours[pid]) for pid, one in said.items() if pid in ours and "malloc" in one.allocators}

    def private(self, entry, name):
        return sum(one["private_bytes"] for one in entry["memory"]["components"] if one["name"] == name)

    def assert_heaps_fit(self, both):
        """Chromium counts slots: what malloc asked of them, rounded up, what its threads keep for later, and its own users past malloc."""
        self.assertGreaterEqual(len(both), 5)
        for pid, (theirs, ours) in both.items():
            who = f"{pid} {ours['role']}: {theirs.allocators['malloc/allocated_objects']}, memlog {ours['live_blocks']} {ours['live_bytes']}"
            blocks, known = (ours[f"live_{unit}"] + ours[f"inherited_{unit}"] for unit in ("blocks", "bytes"))
            # Between the two readings it may have allocated a little.
            self.assertGreater(theirs.size("malloc/allocated_objects", "object_count"), blocks * 0.97, who)
            self.assertGreater(theirs.size("malloc/allocated_objects"), known * 0.97, who)
            self.assertEqual(sum(one["private_bytes"] for one in ours["memory"]["components"]), ours["memory"]["private_bytes"], who)

    def assert_listed(self, process, both):
        """`memlog ps` has every process of the tree, each with its role."""
        answer = subprocess.run([str(harness.MEMLOG), "ps", "--json"], capture_output=True, env=self.browser.environment, check=True)
        rows = {row["pid"]: row for row in json.loads(answer.stdout)["processes"] if row["state"] == "running"}
        running = [pid for pid in memory_programs.below(process.pid) if not memory_programs.name_of(pid).startswith("memlog")]
        self.assertEqual([pid for pid in running if pid not in rows and pathlib.Path(f"/proc/{pid}").exists()], [])
        for pid in both:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
            role = words.partition("--type=")[2].split(" ")[0] or "browser"
            self.assertEqual(rows[pid]["role"], {"gpu-process": "gpu"}.get(role, role), words)

    def test_what_grew_by_malloc_is_named_so(self):
        process, port_file = self.open_page("paths")
        both = self.compared(process, port_file)
        self.assert_heaps_fit(both)
        self.assert_listed(process, both)
        pid, (theirs, ours) = max(both.items(), key=lambda one: one[1][0].size("malloc") if one[1][1]["role"] == "renderer" else 0)
        self.assertGreater(theirs.size("malloc/allocated_objects"), browsers.LEAK_BYTES)
        grown = {one["name"]: one["private_bytes"] for one in self.guilty_dump(pid)["components"]}
        self.assertLessEqual(self.private(ours, "inherited heap"), ours["inherited_bytes"] + 32 * ours["inherited_blocks"])
        if browsers.places_past_malloc(self.browser.executable) > 0:
            # Such a build's paths are not seen. That much is said, and where they are.
            self.assertRegex(ours["coverage"]["unseen"], "^[4-9]\\d.* MiB private memory of the allocator inside the executable holds no block that memlog saw")
            self.assertEqual(max(grown, key=grown.get), "allocator slack", grown)
            return
        self.assertEqual(ours["coverage"]["unseen"], "")
        # The blocks of a path are large: what a slot has beyond them is at most a quarter.
        self.assertGreater(ours["live_bytes"], max(browsers.LEAK_BYTES, theirs.size("malloc/allocated_objects") * 3 // 4))
        self.assertEqual(max(grown, key=grown.get), "heap", grown)

    def test_what_grew_in_a_partition_of_its_own_is_named_as_mapped(self):
        process, port_file = self.open_page("buffers")
        both = self.compared(process, port_file)
        self.assert_heaps_fit(both)
        leaking = [pid for pid, (theirs, _) in both.items() if theirs.size("partition_alloc/partitions/array_buffer") >= browsers.LEAK_BYTES]
        self.assertEqual(len(leaking), 1)
        theirs, ours = both[leaking[0]]
        # No block of malloc's, and a component all the same.
        self.assertLess(ours["live_bytes"], browsers.LEAK_BYTES // 4)
        self.assertGreaterEqual(self.private(ours, "mapped"), browsers.LEAK_BYTES)
        grown = {one["name"]: one["private_bytes"] for one in self.guilty_dump(leaking[0])["components"]}
        self.assertEqual(max(grown, key=grown.get), "mapped", grown)


if __name__ == "__main__":
    unittest.main()
