"""tools/dev/suites up to where it would make a system, and what it says of those it cannot make. What it makes takes hours, and is looked at by
hand (CONTRIBUTING.md)."""
import functools
import http.server
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
SUITES = ROOT / "tools/dev/suites"
IS_GIT = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, check=False).returncode == 0

class Quiet(http.server.SimpleHTTPRequestHandler):

    def log_message(self, *words):
        pass


@unittest.skipUnless(IS_GIT, "no git checkout")
class Suites(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="memlog-suites-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        mirror = self.folder / "mirror"
        (mirror / "dists/trixie").mkdir(parents=True)
        (mirror / "dists/trixie/Release").write_text("Suite: trixie\n")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=mirror))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.sources = self.folder / "sources.list"
        self.uri = f"http://127.0.0.1:{server.server_address[1]}"
        self.sources.write_text(f"# a mirror\ndeb [trusted=yes] {self.uri} bookworm main contrib\n")

    def said(self, *words, **environment):
        ran = subprocess.run([SUITES, f"--sources={self.sources}", f"--folder={self.folder / 'made'}", *words], capture_output=True, text=True, timeout=300,
                             check=False, env={**os.environ, "no_proxy": "127.0.0.1", **environment})
        return ran.returncode, ran.stdout, ran.stderr

    def test_a_dry_run_says_what_would_be_done_and_does_nothing(self):
        code, out, _ = self.said("--dry-run", "--tests=oracle,tree", "--jobs=2", "trixie")
        self.assertEqual(code, 0)
        self.assertEqual(out.splitlines(), [
            f"trixie: makes {self.folder}/made/trixie, keeps {self.folder}/made/trixie.log",
            "trixie: ./run -- sqlite3 :memory: 'select 1'",
            "trixie: ./test --jobs=2 oracle tree",
        ])
        self.assertFalse((self.folder / "made").exists())

    def test_a_suite_that_the_mirror_does_not_have_is_named(self):
        for words in (("nosuch",), ("trixie", "nosuch"), ("../etc",)):
            code, out, err = self.said("--dry-run", *words)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(f"has no suite {words[-1]}", err)
        code, _, err = self.said("--dry-run")
        self.assertEqual(code, 2)
        self.assertIn("has no suite bookworm", err)

    def test_without_a_mirror_it_says_how_to_name_one(self):
        self.sources.write_text("# nothing\n")
        code, out, err = self.said("--dry-run", "trixie")
        self.assertEqual((code, out), (125, ""))
        self.assertIn("--sources=FILE", err)

    def stand_in(self, name, text):
        file = self.folder / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
        return f"{file.parent}:{os.environ['PATH']}"

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_what_cannot_be_made_is_a_row_of_the_table_and_its_log_says_why(self):
        path = self.stand_in("mmdebstrap", "#!/bin/sh\necho \"E: no such thing\"\nexit 25\n")
        code, out, err = self.said("trixie", PATH=path)
        self.assertEqual(code, 1, err)
        self.assertEqual([line.split() for line in out.splitlines()],
                         [["suite", "glibc", "gcc", "built", "passed", "failed", "skipped"], ["trixie", "-", "-", "no", "-", "-", "-"]])
        self.assertIn("E: no such thing", (self.folder / "made/trixie.log").read_text())
        self.assertFalse((self.folder / "made/trixie").exists())


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class Mounted(unittest.TestCase):
    """Of the namespace that programs of a system run in."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="memlog-suites-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("dev", "mnt", "proc", "sys", "usr", "root"):
            (self.root / name).mkdir()
        for name in ("bin", "sbin", "lib", "lib64"):
            if pathlib.Path("/", name).exists():
                (self.root / name).symlink_to(f"usr/{name}")
        self.text = re.search(r'MOUNTED = """(.*?)"""', SUITES.read_text(), re.S)[1].replace('mount -t proc', "mount --bind /usr usr\nmount -t proc", 1)

    def words(self, *words):
        return ["setpriv", "--pdeathsig=KILL", "unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "sh", "-c", self.text, str(self.root),
                "/root", *words]

    def test_it_has_proc_terminals_and_shared_memory_of_its_own(self):
        asked = "pwd; ls -d /proc/1/exe /dev/null /dev/pts/ptmx /sys/kernel; cat /proc/mounts | grep -c ' /dev/shm '; ls /dev/shm | wc -l; script -qc tty /dev/null"
        ran = subprocess.run(self.words("sh", "-c", asked), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        lines = ran.stdout.splitlines()
        self.assertEqual(lines[:5], ["/root", "/dev/null", "/dev/pts/ptmx", "/proc/1/exe", "/sys/kernel"])
        self.assertEqual(lines[-1].strip(), "/dev/pts/0")
        namespace = subprocess.run(self.words("unshare", "--user", "true"), capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((namespace.returncode, namespace.stderr), (0, ""))
        self.assertNotIn(str(self.root), pathlib.Path("/proc/self/mounts").read_text())

    def test_nothing_stays_when_it_is_killed(self):
        seconds = str(1000000 + os.getpid())  # who sleeps so long is ours
        with subprocess.Popen(self.words("sh", "-c", f"sleep {seconds} & echo begun; wait"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
            try:
                self.assertEqual(process.stdout.readline(), b"begun\n")
                until = time.monotonic() + 30
                while not self.sleepers(seconds):
                    self.assertLess(time.monotonic(), until, "it does not begin")
            finally:
                os.kill(process.pid, signal.SIGKILL)
            process.wait(30)
        until = time.monotonic() + 30
        while self.sleepers(seconds):
            self.assertLess(time.monotonic(), until, "a program inside goes on")
            time.sleep(0.1)
        self.assertNotIn(str(self.root), pathlib.Path("/proc/self/mounts").read_text())

    def sleepers(self, seconds):
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (path / "cmdline").read_bytes() == f"sleep\0{seconds}\0".encode():
                    found.append(path)
            except OSError:
                pass
        return found


if __name__ == "__main__":
    unittest.main()
