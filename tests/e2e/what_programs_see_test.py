"""What real programs are given by memlog and without it: the same descriptor numbers, the same environment, where they look for it.
Programs that end are looked at by a child of theirs (witness.py), servers from outside, all their processes."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

import harness
import servers
import witness

PYTHON = "/usr/bin/python3"
# Shells, git, sqlite3 and the compiler's driver are handed its path as a word of a line: here it has no sign that one of them acts upon.
PLACE = tempfile.mkdtemp(prefix="memlog-test.")
WITNESS = shutil.copy(pathlib.Path(__file__).with_name("witness.py"), PLACE)
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"

OPENS_AND_LOOKS = f"""
import os, subprocess
print(os.open("/dev/null", os.O_RDONLY), os.dup(0), os.pipe())
print(sorted(os.environ.items()), [n for n in os.listdir("/proc/self/fd") if int(n) < 60])
os.system("env | sort")
subprocess.run(["{PYTHON}", "{WITNESS}"])
"""

POOL_LOOKS = f"""
import multiprocessing, subprocess
def look():
    subprocess.run(["{PYTHON}", "{WITNESS}"])
if __name__ == "__main__":
    for way in ("fork", "spawn", "forkserver"):
        child = multiprocessing.get_context(way).Process(target=look)
        child.start()
        child.join()
"""


def tearDownModule():
    shutil.rmtree(PLACE)


class Ending(harness.Case):
    def assert_sees_the_same(self, *program, env=None, prepare=None):
        outcomes = []
        for way in ("bare", "memlog"):
            folder = self.folder / "work"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            if prepare:
                prepare(folder)
            if way == "bare":
                answer = harness.run_words([*map(str, program)], folder, env or self.environment(), b"", harness.TIMEOUT)
                outcomes.append((answer.returncode, answer.stdout.decode(), answer.stderr.decode()))
            else:
                run = self.memlog(*program, cwd=folder, env=env)
                outcomes.append((run.code, run.out.decode(), run.err))
        self.assertIn("parent's environment", outcomes[0][1], outcomes[0])
        if os.geteuid() == 0:
            self.assertNotIn("environment None", outcomes[0][1])
        self.assertEqual(outcomes[1], outcomes[0])
        self.assertTrue(self.exit_report(run)["processes"])

    def test_python(self):
        self.assert_sees_the_same(PYTHON, "-c", OPENS_AND_LOOKS)

    def test_a_program_with_preloads_of_its_own(self):
        self.assert_sees_the_same(PYTHON, "-c", OPENS_AND_LOOKS, env=self.environment(LD_PRELOAD=JEMALLOC))

    def test_a_program_under_a_low_limit_of_descriptors(self):
        self.assert_sees_the_same("/bin/sh", "-c", f'ulimit -n 80; exec {PYTHON} -c "$0"', OPENS_AND_LOOKS)

    def test_a_program_with_an_empty_environment(self):
        self.assert_sees_the_same("env", "-i", "/bin/sh", "-c", f"{PYTHON} {WITNESS}; true")

    def test_python_multiprocessing(self):
        def write_script(folder):
            (folder / "pool.py").write_text(POOL_LOOKS)

        self.assert_sees_the_same(PYTHON, "pool.py", prepare=write_script)

    def test_perl(self):
        self.assert_sees_the_same("perl", "-e", f"$|=1; open my $f, '<', '/etc/passwd'; print fileno $f; system '{PYTHON}', '{WITNESS}'")

    def test_git(self):
        self.assert_sees_the_same("git", "-c", f"alias.look=!exec {PYTHON} {WITNESS}", "look")

    def test_sqlite3(self):
        self.assert_sees_the_same("sqlite3", ":memory:", f".shell {PYTHON} {WITNESS}")

    def test_node(self):
        code = f"console.log(require('fs').openSync('/dev/null'), require('child_process').execFileSync('{PYTHON}', ['{WITNESS}']).toString())"
        self.assert_sees_the_same("node", "-e", code)

    def test_the_driver_of_the_cxx_compiler_and_what_it_starts(self):
        def write_source(folder):
            (folder / "a.cc").write_text("#include <string>\nstd::string s;\n")

        words = ("g++", "-c", "-wrapper", f"{PYTHON},{WITNESS}", "a.cc", "-o", "a.o")
        self.assert_sees_the_same(*words, prepare=write_source)


class Serving(harness.Case):
    """Servers at rest: every process's descriptors and environment."""

    def start_bare(self, words):
        with open(self.folder / "stderr0", "wb") as log:
            process = subprocess.Popen(
                [*map(str, words)], cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=log, start_new_session=True,
            )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def pids_of(self, root):
        children = subprocess.run(["pgrep", "-P", str(root)], stdout=subprocess.PIPE, text=True).stdout.split()
        return [root, *map(int, children)]

    def at_rest(self, root):
        """What they see once nothing changes any more, a second and a half long: workers are handed descriptors after they have started."""
        deadline = time.monotonic() + harness.TIMEOUT
        looks = []
        while len(looks) < 4 or any(look != looks[-1] for look in looks[-4:]):
            if looks:
                self.assertLess(time.monotonic(), deadline, "they never came to rest")
                time.sleep(0.5)
            looks.append(self.processes_of(root))
        return looks[-1]

    def processes_of(self, root):
        """title -> what that process sees, the root's and its children's; titles of equal processes are numbered."""
        seen = {}
        for pid in self.pids_of(root):
            title = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode()
            number = sum(1 for key in seen if key[0] == title)
            seen[title, number] = witness.look(pid)
        return seen

    def look_at(self, words, is_up, root_pid, end_signal, count, numbered=True, opened_by_the_clock=""):
        """Started both ways in turn; what is seen once there are so many processes. Not `numbered`: which number a descriptor
        has is the server's own race, as where workers hand each other sockets while they start. What it opens
        `opened_by_the_clock` is there or not yet in either."""
        views = []
        for way in ("bare", "memlog"):
            if way == "memlog":
                process = self.memlog_start(*words())
            else:
                process = self.start_bare(words())
            self.wait_for("the server", is_up)
            root = root_pid(process)
            self.wait_for(f"{count} processes", lambda: len(self.pids_of(root)) == count)
            views.append(self.at_rest(root))
            os.kill(root, end_signal)
            process.communicate(timeout=harness.TIMEOUT)
        self.assertEqual(set(views[1]), set(views[0]))
        for title, view in views[0].items():
            for what in ("descriptors", "environment"):
                one, other = views[1][title][what], view[what]
                if what == "descriptors" and opened_by_the_clock:
                    one, other = ({at: kind for at, kind in found.items() if opened_by_the_clock not in kind} for found in (one, other))
                if what == "descriptors" and not numbered:
                    one, other = sorted(one.values()), sorted(other.values())
                self.assertEqual(one, other, title)
        self.assertTrue(any(view["environment"] for view in views[0].values()) or os.geteuid() != 0)

    def answers(self, *words):
        return lambda: harness.run_words([*map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT).returncode == 0

    def child_named(self, name):
        """The server itself, which is the process or a child of memlog's."""
        def find(process):
            if harness.comm_of(process.pid) == name:
                return process.pid
            answer = subprocess.run(["pgrep", "-P", str(process.pid), name], stdout=subprocess.PIPE, text=True, check=True)
            return int(answer.stdout)

        return find

    def test_redis(self):
        self.look_at(
            words=lambda: servers.redis(self.folder),
            is_up=self.answers("redis-cli", "-s", self.folder / "redis.sock", "ping"),
            root_pid=self.child_named("redis-server"),
            end_signal=signal.SIGTERM,
            count=1,
        )

    def test_nginx_and_its_workers(self):
        folder, port = self.folder / "nginx", servers.free_port()

        def words():
            shutil.rmtree(folder, ignore_errors=True)
            return servers.nginx(folder, port)

        def fetch():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/page.txt", timeout=10) as answer:
                    answer.read()
                return True
            except OSError:
                return False

        self.look_at(words, fetch, lambda _: int((folder / "pid").read_text()), signal.SIGQUIT, count=3, numbered=False)

    def test_postgresql_and_its_background_processes(self):
        postgres = servers.Postgres(self.folder)
        init = harness.run_words([*map(str, postgres.init)], postgres.data, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(init.returncode, 0, init.stderr)
        self.look_at(
            words=lambda: postgres.words,
            is_up=self.answers(*postgres.is_ready),
            root_pid=lambda _: postgres.pid(),
            end_signal=signal.SIGINT,
            count=6,
            opened_by_the_clock="/pg_wal/",
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
