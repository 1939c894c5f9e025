"""The live page inside a program: it serves what `memlog run`'s page serves, and the program's own things stay the program's."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading
import unittest

import browsing
import harness

STRANGER = harness.PROGRAMS / "host" / "stranger"


def parent_of(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


class EmbeddedPage(harness.Case):
    def start(self, *words):
        environment = self.environment(STRANGER=str(self.folder))
        self.process = subprocess.Popen([STRANGER, harness.OUT / "memlog-service", self.folder / "dumps", *words], cwd=self.folder, env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.process.communicate)
        self.addCleanup(self.process.kill)
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return browsing.Page(self.process.stdout.readline().strip())

    def analyzers(self):
        """Those of our program alone, known by what they inherit from it."""
        found = set()
        for folder in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdigit() and harness.comm_of(int(folder.name)) == "memlog-analyzer" and \
                        f"STRANGER={self.folder}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found.add(int(folder.name))
        return found

    def order(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        out, err = self.process.communicate("end\n", harness.TIMEOUT)
        self.assertEqual((self.process.returncode, err), (0, ""))
        return json.loads(out)

    def look_around(self, page):
        """What starts an analyzer, what reads memory, and what neither does."""
        self.assertEqual(page.ask("/").status, 200)
        self.assertEqual([one for one in page.json("/api/v1/processes")["processes"] if "memlog" in one["name"]], [])
        self.assertTrue(page.json("/api/v1/session")["live"])
        for path in ("/api/v1/profile", "/api/v1/memory", "/debug/pprof/heap", "/api/v1/timeline"):
            self.assertEqual(page.ask(path).status, 200, path)
        made = page.json("/api/v1/dumps", "POST")
        self.assertEqual(page.ask(f"/api/v1/profile?dump={made['id']}").status, 200)
        self.assertEqual(page.ask("/api/v1/profile?dump=7777").status, 404)

    def test_no_child_signal_or_descriptor_of_the_program_is_touched(self):
        page = self.start()
        self.look_around(page)
        self.assertEqual(self.order("look"), {"signals": 0, "forks": 0, "own_forks": 0, "foreign_children": 0})
        self.order("fork")
        self.look_around(page)
        told = self.end()  # and compares what was its own before and after
        self.assertGreater(told["own_forks"], 0)
        self.assertEqual((told["forks"], told["foreign_children"]), (told["own_forks"], 0))
        self.assertGreater(told["signals"], 0)  # several children's may be one
        self.assertLessEqual(told["signals"], told["own_forks"])
        self.assertRaises(OSError, page.connect)

    def test_a_program_that_ignores_its_children_has_a_page_too(self):
        page = self.start("ignore")
        self.order("fork")
        self.look_around(page)
        told = self.end()
        self.assertEqual((told["signals"], told["forks"], told["foreign_children"]), (0, told["own_forks"], 0))

    def test_a_program_that_never_opens_it_has_nothing_of_it(self):
        def names(program):
            return subprocess.run(["nm", harness.PROGRAMS / program], capture_output=True, text=True, check=True).stdout
        for name in ("MHD_", "ml_page_assets"):
            self.assertIn(name, names("host/stranger"))
            self.assertNotIn(name, names("browser/mini_browser_linked"))

    def test_strangers_are_refused_as_everywhere(self):
        page = self.start()
        self.assertEqual(page.address[0], "127.0.0.1")
        for path in ("/", "/api/v1/processes"):
            self.assertEqual(page.ask(path, token=None).status, 401)
        self.assertEqual(page.ask("/healthz", token=None).status, 200)
        self.end()

    def test_an_analyzer_ends_with_a_program_that_is_killed(self):
        page = self.start()
        stopped = set()

        def ask():
            while self.process.poll() is None:
                with contextlib.suppress(OSError):
                    page.ask("/api/v1/profile")

        def stop_one():
            alive = self.analyzers()
            for pid in alive:
                if parent_of(pid) in alive:  # who works; who watches goes on
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGSTOP)
                        stopped.add(pid)
            return stopped & self.analyzers()

        asking = threading.Thread(target=ask)
        asking.start()
        self.wait_for("an analyzer", stop_one)
        self.process.kill()
        asking.join()
        self.wait_for("the end of one that stands still", lambda: not self.analyzers() & stopped)


if __name__ == "__main__":
    unittest.main(verbosity=2)
