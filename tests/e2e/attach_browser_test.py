"""memlog attached to a renderer of Chromium's behind its own sandbox, as root: the same figures as under memlog from its start."""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import attached
import harness

sys.path.insert(0, str(harness.ROOT / "tools/bench"))
import browsers  # noqa: E402
import devtools  # noqa: E402
import memory_programs  # noqa: E402

LEAK_BYTES = 20 << 20
FIGURES = ("total_bytes", "total_blocks", "live_bytes", "live_blocks")


@unittest.skipIf(os.geteuid() != 0, "root alone can read a renderer's filter")
@unittest.skipIf(shutil.which("chromium") is None, "needs chromium")
class Renderer(attached.Case):
    def open_page(self, name, *options):
        """A page that leaks when it is told; (process, port file)."""
        self.folder.chmod(0o755)
        browser = browsers.Browser("chromium", self.folder / name, as_nobody=True)
        page = self.folder / "page.html"
        page.write_text(browsers.leaking_page("paths", LEAK_BYTES).replace("setTimeout(leak, 500);", ""))
        words = browser.words("--remote-debugging-port=0", f"file://{page}")
        words = browser.under_memlog(harness.MEMLOG, words, *options) if options else browser.bare(words)
        with open(self.folder / f"{name}.stderr", "wb+") as told:
            process = subprocess.Popen(words, env=browser.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=told)
        process.browser = browser
        self.addCleanup(self.close, process)
        port_file = browser.profile / "DevToolsActivePort"

        def is_open():
            if process.poll() is not None and browsers.has_no_sandbox((self.folder / f"{name}.stderr").read_text(errors="replace")):
                self.skipTest("an ordinary user may make no namespace here")
            return port_file.exists() and port_file.stat().st_size > 0 and "leaking" in devtools.titles(port_file)

        self.wait_for("the page", is_open)
        return process, port_file

    def close(self, process):
        for pid in [*memory_programs.below(process.pid), process.pid]:
            if memory_programs.name_of(pid) == "chromium":
                memory_programs.with_signal(pid, 9)
        process.wait(harness.TIMEOUT)

    def renderers(self, process):
        """Those behind the sandbox: pid -> ticks of the processor."""
        found = {}
        for pid in memory_programs.below(process.pid):
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                ticks = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])
            except OSError:
                continue
            if b"--type=renderer" in words and "\nSeccomp:\t2" in status:
                found[pid] = ticks
        return found

    def renderer_of_the_page(self, process, port_file):
        """Who works when the page does: others are kept for pages to come."""
        def at_work():
            before = self.renderers(process)
            devtools.evaluate(port_file, "for (const end = Date.now() + 1000; Date.now() < end;);")
            now = self.renderers(process)
            worked = {pid: ticks - before.get(pid, 0) for pid, ticks in now.items()}
            busiest = max(worked, key=worked.get)
            # Those that start work as well.
            return busiest if worked[busiest] > 20 and sum(worked.values()) - worked[busiest] < 4 else None

        return self.wait_for("who works", at_work)

    def leak(self, port_file):
        devtools.evaluate(port_file, "leak()")
        self.wait_for("the page to have leaked", lambda: "leaked" in devtools.titles(port_file))

    def of_the_leak(self, report):
        """The figures of the function that holds most, and the process."""
        both = [(stack, entry) for entry in report["processes"] for stack in entry["stacks"]]
        stack, entry = max(both, key=lambda one: one[0]["live_bytes"])
        return tuple(stack[figure] for figure in FIGURES), entry

    def test_what_it_allocates_from_then_on_is_what_it_allocates_from_its_start(self):
        process, port_file = self.open_page("bare")
        pid = self.renderer_of_the_page(process, port_file)
        session = self.begin(pid)
        self.leak(port_file)
        report = self.finish(session)
        seen, entry = self.of_the_leak(report)
        self.assertEqual(entry["pid"], pid)
        self.assertEqual((entry["lost_events"], entry["trouble"]), (0, ""))
        said = {name: entry[name] for name in ("pid", "events", "total_bytes", "live_bytes", "state", "complete", "accounting", "memory_status")}
        # A build whose compiler has put the allocator into its callers is not called covered.
        is_past = browsers.places_past_malloc(process.browser.executable) > 0
        self.assertNotEqual(entry["coverage"]["unseen"], "")
        self.assertEqual(seen[0] > LEAK_BYTES, not is_past, (said, self.renderers(process)))
        # It goes on without memlog.
        self.assertEqual(devtools.evaluate(port_file, "kept.length + document.title.length"), (LEAK_BYTES >> 20) + len("leaked"))
        self.assertIn(pid, self.renderers(process))

        if is_past:
            return
        started, port_file = self.open_page("started", "--memlog=all")
        self.leak(port_file)
        self.close(started)
        (dump,) = (started.browser.folder / "dumps").glob("*.exit.pftrace")
        self.assertEqual(self.of_the_leak(self.whole_report(dump))[0], seen)


if __name__ == "__main__":
    unittest.main(verbosity=2)
