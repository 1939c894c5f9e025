"""tools/dev/suites up to where it would make a system, and what it says of those it cannot make. What it makes takes hours, and is looked at by
hand (CONTRIBUTING.md)."""
import functools
import http.server
import os
import pathlib
import shutil
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

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("pivot_root"), "needs root and pivot_root")
    def test_what_cannot_be_made_is_a_row_of_the_table_and_its_log_says_why(self):
        path = self.stand_in("mmdebstrap", "#!/bin/sh\necho \"E: no such thing\"\nexit 25\n")
        code, out, err = self.said("trixie", PATH=path)
        self.assertEqual(code, 1, err)
        self.assertEqual([line.split() for line in out.splitlines()],
                         [["suite", "glibc", "gcc", "built", "passed", "failed", "skipped"], ["trixie", "-", "-", "no", "-", "-", "-"]])
        self.assertIn("E: no such thing", (self.folder / "made/trixie.log").read_text())
        self.assertFalse((self.folder / "made/trixie").exists())


    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("mmdebstrap"), "needs root and mmdebstrap")
    def test_programs_run_in_a_root_of_their_own_and_nothing_stays_when_it_is_killed(self):
        root = self.folder / "made/trixie"
        for name in ("dev", "etc/apt/apt.conf.d", "mnt", "proc", "root", "sys", "tmp", "usr", "usr/local/share/ca-certificates"):
            (root / name).mkdir(parents=True)
        (root / "etc/os-release").write_text("ID=debian\n")
        for name in ("bin", "sbin", "lib", "lib64"):
            if pathlib.Path("/", name).exists():
                (root / name).symlink_to(f"usr/{name}")
        seconds = str(1000000 + os.getpid())  # who sleeps so long is ours
        run = f"""#!/bin/sh
pwd; ls -d /proc/1/exe /dev/null /dev/pts/ptmx /sys/kernel; ls /dev/shm | wc -l; unshare --user true && echo a namespace; script -qc tty /dev/null
setsid sleep {seconds} & echo begun >&2; wait
"""
        # A tree of one program, and a tool that sees this machine's programs from there.
        tree = self.folder / "tree"
        (tree / "tools/dev").mkdir(parents=True)
        tool = tree / "tools/dev/suites"
        tool.write_text(SUITES.read_text().replace("mount -t proc", "mount --bind /usr usr\nmount -t proc", 1))
        (tree / "run").write_text(run)
        for file in (tool, tree / "run"):
            file.chmod(0o755)
        git = ("git", "-C", tree, "-c", "user.name=a", "-c", "user.email=a")
        for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "a tree")):
            subprocess.run([*git, *words], check=True)
        log = self.folder / "made/trixie.log"
        with subprocess.Popen([tool, f"--sources={self.sources}", f"--folder={self.folder / 'made'}", "--keep", "trixie"], stderr=subprocess.DEVNULL,
                              env={**os.environ, "no_proxy": "127.0.0.1"}) as process:
            try:
                self.wait_for(lambda: log.exists() and "\nbegun\n" in log.read_text() and self.sleepers(seconds), log)
                time.sleep(3)  # by then it has told who is in there
            finally:
                process.kill()
        self.wait_for(lambda: not self.sleepers(seconds), log)
        self.assertNotIn(str(root), pathlib.Path("/proc/self/mounts").read_text())
        self.assertEqual((root / "tmp/answer").read_text().split("\n"), [
            "/srv/memlog", "/dev/null", "/dev/pts/ptmx", "/proc/1/exe", "/sys/kernel", "0", "a namespace", "/dev/pts/0", ""])

    def wait_for(self, what, log):
        until = time.monotonic() + 120
        while not what():
            self.assertLess(time.monotonic(), until, log.read_text() if log.exists() else "no log")
            time.sleep(0.1)

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
