"""Another user of the machine, and a run of memlog's: who is no process of its tree is not answered, and costs it nothing. Each the other
way round, too: memlog of an ordinary user, and root as the stranger."""
import glob
import os
import pathlib
import pwd
import socket
import subprocess
import unittest

import harness
import wire

NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")

# Connects, says Hello, asks for a dump, tells of a program that ran without memlog: says what came of it.
STRANGER = """
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout(20)
try:
    s.connect(sys.argv[1])
except OSError as error:
    sys.exit(f"no connection: {type(error).__name__}")
try:
    for message in sys.argv[2:]:
        s.send(bytes.fromhex(message))
    data, extra, _, _ = s.recvmsg(4096, 4096)
    print("answered" if data else "shut out", len(extra))
except OSError as error:
    print("shut out", 0)
"""

# Allocates before and behind a moment that the test needs.
PROGRAM = "import sys; print('ready', flush=True); sys.stdin.readline(); kept = [bytes(1000) for _ in range(1000)]"


def ask(path, prefix=(), polite=False):
    """What becomes of a process that comes to somebody else's run: with its words alone, for the code may be closed to it."""
    messages = [wire.hello()] if polite else [wire.hello(), wire.dump_asked(b"x"), wire.not_profiled(b"/planted")]
    words = [*prefix, "/usr/bin/python3", "-c", STRANGER, path, *(message.hex() for message in messages)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, cwd="/")


@unittest.skipIf(os.geteuid() != 0, "needs root to be several users")
class Strangers(harness.Case):
    def folder_of(self, host):
        (folder,) = glob.glob(f"/tmp/memlog.{host.pid}.*")
        return pathlib.Path(folder)

    def end(self, host):
        self.go(host)
        self.assertEqual(host.wait(timeout=harness.TIMEOUT), 0)
        run = harness.Run(0, b"", pathlib.Path(host.memlog_log.name).read_text(), host.memlog_folder)
        report = self.exit_report(run)
        self.assertEqual(len(run.dumps("*")), 1)  # the exit dump alone
        self.assertNotIn("planted", str(report["dump"]["not_profiled"]))
        return run, report

    def test_whoever_looks_around_finds_nothing_to_connect_to(self):
        host = self.memlog_ready("/usr/bin/python3", "-c", PROGRAM)
        folder = self.folder_of(host)
        listing = subprocess.run([*NOBODY, "ls", folder], capture_output=True, text=True, check=False)
        self.assertIn("Permission denied", listing.stderr)
        bound = {line.split()[7] for line in pathlib.Path("/proc/net/unix").read_text().splitlines() if str(folder) in line}
        (secret,) = {path.name for path in folder.iterdir() if path.is_socket()}
        self.assertTrue(bound)
        for path in bound | {f"{folder}/s", f"{folder}/s.n"}:
            self.assertNotIn(secret, path)
            self.assertIn("no connection", ask(path, prefix=NOBODY).stderr)
        self.end(host)

    def test_a_stranger_who_knows_the_name_is_refused_all_the_same(self):
        host = self.memlog_ready("/usr/bin/python3", "-c", PROGRAM, options=("--no-page",))
        (path,) = [path for path in self.folder_of(host).iterdir() if path.is_socket()]
        for _ in range(3):
            self.assertEqual(ask(str(path), prefix=NOBODY).stdout, "shut out 0\n")
        # Of the same user: the name is the secret.
        self.assertEqual(ask(str(path), polite=True).stdout, "answered 1\n")
        run, report = self.end(host)
        self.assertEqual(len(report["processes"]), 2)
        self.assertEqual(run.err.count("is no part of this run"), 1, run.err)
        self.assertIn("of user 65534", run.err)

    def test_root_is_a_stranger_to_the_run_of_a_user(self):
        self.folder.chmod(0o755)
        home = self.folder / "home"
        home.mkdir()
        os.chown(home, 65534, 65534)
        words = [*NOBODY, str(harness.MEMLOG), "run", "--no-page", "-o", str(home / "dumps"), "--", "/usr/bin/python3", "-c", PROGRAM]
        host = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=home,
            env=self.environment(XDG_RUNTIME_DIR="", HOME=str(home)),
        )
        self.addCleanup(host.communicate)
        self.assertEqual(host.stdout.readline(), b"ready\n")
        (path,) = [path for path in self.folder_of(host).iterdir() if path.is_socket()]
        other = pwd.getpwnam("daemon").pw_uid
        self.assertEqual(ask(str(path)).stdout, "shut out 0\n")
        prefix = ("setpriv", f"--reuid={other}", f"--regid={other}", "--clear-groups")
        self.assertEqual(ask(str(path), prefix).stdout, "shut out 0\n")
        _, err = host.communicate(b"\n", timeout=harness.TIMEOUT)
        self.assertEqual(host.returncode, 0)
        self.assertIn(b"is no part of this run", err)
        (dump,) = (home / "dumps").glob("*.pftrace")
        self.assertEqual([entry["name"] for entry in self.report(dump)["processes"]], ["python3"])

    def test_whom_nobody_lets_join_a_run_of_nobody_are_processes_of_nobody(self):
        if pathlib.Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]:
            self.skipTest("here users without a number have nobody's")
        self.folder.chmod(0o755)
        home = self.folder / "home"
        home.mkdir()
        os.chown(home, 65534, 65534)
        words = [*NOBODY, str(harness.MEMLOG), "run", "-q", "--no-page", "-o", str(home / "dumps"), "--", "/usr/bin/python3", "-c", PROGRAM]
        host = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=home,
            env=self.environment(XDG_RUNTIME_DIR="", HOME=str(home)),
        )
        self.addCleanup(host.communicate)
        self.assertEqual(host.stdout.readline(), b"ready\n")
        (path,) = [path for path in self.folder_of(host).iterdir() if path.is_socket()]
        self.assertEqual(ask(str(path), NOBODY, polite=True).stdout, "answered 1\n")
        self.assertEqual(ask(str(path)).stdout, "shut out 0\n")
        host.communicate(b"\n", timeout=harness.TIMEOUT)
        self.assertEqual(host.returncode, 0)

    def test_a_setuid_program_with_memlog_linked_in_comes_to_nobody_elses_socket(self):
        source, program = self.folder / "linked.c", self.folder / "linked"
        source.write_text('#include "client/memlog.h"\nint main(void) { return memlog_start(0) == 0; }\n')
        library = harness.OUT / "obj" / "client" / "libmemlog.a"
        subprocess.run(["gcc", "-I", harness.ROOT, "-o", program, source, library, "-lpthread"], check=True)
        path = str(self.folder / "s")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(path)
            os.chmod(path, 0o777)
            listening.listen()
            listening.settimeout(0.2)
            self.folder.chmod(0o711)

            def comes():
                process = subprocess.Popen([program], env={"MEMLOG_SOCKET": path})
                try:
                    listening.accept()[0].close()
                except TimeoutError:
                    return False
                finally:
                    self.assertEqual(process.wait(timeout=60), 0)
                return True

            self.assertTrue(comes())
            os.chown(program, 65534, 65534)
            program.chmod(0o4755)
            if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
                self.skipTest("this folder's file system knows no setuid")
            self.assertFalse(comes())

    def test_a_name_in_tmp_that_somebody_else_has_taken_stops_nobody(self):
        user = 61235
        taken = pathlib.Path(f"/tmp/memlog-{user}")
        if taken.exists():
            self.skipTest(f"{taken} is there already")
        taken.mkdir(mode=0o777)
        self.addCleanup(taken.rmdir)
        self.addCleanup(lambda: [os.rmdir(path) for path in glob.glob(f"{taken}.*")])
        self.folder.chmod(0o755)
        home = self.folder / "home"
        home.mkdir()
        os.chown(home, user, user)
        prefix = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        env = self.environment(XDG_RUNTIME_DIR="", HOME=str(home))
        words = [*prefix, str(harness.MEMLOG), "run", "-q", "--no-page", "-o", str(home / "dumps"), "--", "/usr/bin/python3", "-c", PROGRAM]
        host = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=home, env=env)
        self.addCleanup(host.communicate)
        self.assertEqual(host.stdout.readline(), b"ready\n")
        answer = subprocess.run([*prefix, harness.MEMLOG, "ps"], env=env, cwd=home, capture_output=True, text=True, timeout=60, check=False)
        self.assertIn("python3", answer.stdout, answer.stderr)
        _, err = host.communicate(b"\n", timeout=harness.TIMEOUT)
        self.assertEqual((host.returncode, err), (0, b""))
        (dump,) = (home / "dumps").glob("*.pftrace")
        self.assertTrue(self.report(dump)["dump"]["complete"])
        self.assertEqual(list(taken.iterdir()), [])

    def test_programs_of_the_tree_that_become_another_user_belong(self):
        script = " ".join([*NOBODY, "/usr/bin/python3 -c 'import os; kept = [bytes(1000) for _ in range(500)]; os.fork() or bytes(999999)'"])
        orphan = f"(setsid sh -c '{' '.join(NOBODY)} sh -c \"sleep 0.3; exec sort /etc/passwd\"' >/dev/null & ); true"
        run = self.memlog("/bin/sh", "-c", f"{script}; {orphan}", options=("--no-page",))
        self.assertNotIn("no part of this run", run.err)
        report = self.exit_report(run)
        names = [entry["name"] for entry in report["processes"]]
        self.assertEqual(names.count("python3"), 2, names)
        self.assertIn("sort", names)


if __name__ == "__main__":
    unittest.main()
