"""Who is recorded besides what the mode says: programs wanted by name, programs that the machine's owner forbids."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import harness
import published

PYTHON = "/usr/bin/python3"

# Starts what it is ordered to: order N is a file "goN" with a program's words, a line each; its pid goes to "pidN". A first line
# "fork" makes a child of the same program instead. Each child allocates 800,000+N bytes at once and waits for "end".
STARTER = """
import ctypes, os, sys, time
CHILD = "import ctypes, os, sys, time; ctypes.CDLL(None).malloc(int(sys.argv[1])); open(sys.argv[2], 'w').close()\\n" \\
        "while not os.path.exists('end'): time.sleep(0.01)"
number = 0
while not os.path.exists("end"):
    time.sleep(0.005)
    if not os.path.exists("go%d" % (number + 1)):
        continue
    number += 1
    words = open("go%d" % number).read().split()
    pid = os.fork()
    if pid == 0:
        if words[0] == "fork":
            ctypes.CDLL(None).malloc(800000 + number)
            open("up%d" % number, "w").close()
            while not os.path.exists("end"):
                time.sleep(0.01)
            os._exit(0)
        os.execv(sys.executable, ["python3", "-c", CHILD, str(800000 + number), "up%d" % number] + words)
    open("pid%d.new" % number, "w").write(str(pid))
    os.rename("pid%d.new" % number, "pid%d" % number)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""

# Allocates, gives itself the title of its first argument, allocates again; by order.
RENAMED = """
import ctypes, os, sys, time
def until(name):
    while not os.path.exists(name): time.sleep(0.005)
libc = ctypes.CDLL(None)
libc.malloc(900001)
open("ready", "w").close()
until("rename")
start = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[45])
title = sys.argv[1].encode() + b"\\0"
ctypes.memmove(start, title, len(title))
until("more")
libc.malloc(900002)
open("done", "w").close()
until("end")
"""


class Targets(harness.Case):
    def command(self, *words):
        return subprocess.run(
            [str(harness.MEMLOG), *map(str, words)], env=self.environment(), capture_output=True, text=True, timeout=harness.TIMEOUT,
            check=False,
        )

    def rows(self):
        return {row["pid"]: row for row in json.loads(self.command("ps", "--json").stdout)["processes"] if row["state"] == "running"}

    def begin(self, *options):
        process = self.memlog_start(PYTHON, "-c", STARTER, options=("-q", "--no-page", *options))
        self.wait_for("the host", lambda: self.command("ps").returncode == 0 and self.rows())
        return process

    def child(self, number, words):
        """Have it start a child; its pid, when it has allocated."""
        (self.folder / "order").write_text(words)
        (self.folder / "order").rename(self.folder / f"go{number}")
        self.wait_for("the child", (self.folder / f"up{number}").exists)
        pid = int(self.wait_for("its pid", lambda: (self.folder / f"pid{number}").exists() and (self.folder / f"pid{number}").read_text()))
        self.wait_for("its row", lambda: pid in self.rows())
        return pid

    def finish(self, process):
        (self.folder / "end").touch()
        self.assertEqual(process.wait(harness.TIMEOUT), 0)
        (dump,) = process.memlog_folder.glob("*.exit.pftrace")
        return {one["pid"]: one for one in self.report(dump)["processes"] if one["state"] != "replaced"}

    def held(self, entry):
        return sorted(stack["total_bytes"] for stack in entry["stacks"] if stack["total_bytes"] >= 800000)

    def test_a_name_is_about_who_runs_and_who_comes_until_it_is_taken_back(self):
        process = self.begin("--memlog=manual")
        early = self.child(1, "--kind=worker")
        answer = self.command("start", "--name=--kind=never-there")
        self.assertEqual((answer.returncode, answer.stdout), (0, ""))
        self.assertIn("those that start from now on are recorded", answer.stderr)
        answer = self.command("start", "--name=--kind=work")
        self.assertEqual((answer.returncode, answer.stdout), (0, f"{early} started\n"), answer.stderr)
        # Once more is no error: nobody is left to be started.
        self.assertEqual(self.command("start", "--name=--kind=work").returncode, 0)
        later = self.child(2, "--kind=worker")
        other = self.child(3, "--kind=other")
        self.assertEqual({pid: row["recording"] for pid, row in self.rows().items() if pid in (early, later, other)},
                         {early: True, later: True, other: False})
        answer = self.command("stop", "--name=--kind=work", "--json")
        self.assertEqual({one["pid"]: one["done"] for one in json.loads(answer.stdout)["processes"]}, {early: True, later: True})
        last = self.child(4, "--kind=worker")
        self.assertFalse(self.rows()[last]["recording"])
        found = self.finish(process)
        self.assertNotIn(other, found)
        self.assertNotIn(last, found)
        # What came after the name is recorded from its first instruction, to the byte.
        self.assertEqual((found[later]["from_startup"], self.held(found[later])), (True, [800002]))
        self.assertEqual((found[early]["from_startup"], self.held(found[early])), (False, []))

    def test_a_forked_process_of_that_name_misses_nothing(self):
        process = self.begin("--memlog=manual")
        (root,) = self.rows()
        self.assertEqual(self.command("start", "--name=up%d").stdout, f"{root} started\n")
        forked = self.child(1, "fork")
        found = self.finish(process)
        self.assertEqual((found[forked]["from_startup"], self.held(found[forked])), (True, [800001]))

    def test_a_name_that_is_none_is_said(self):
        for words, says in (
            (["start", "--name=("], "--name=(: '(' is no regular expression"), (["stop", "--name="], "--name=: 1 to 1024 bytes"),
            (["start"], "which process?"), (["rate", "--name=x", "--memlog-sampling-rate=1"], "unknown option '--name'"),
        ):
            answer = self.command(*words)
            self.assertEqual(answer.returncode, 2, words)
            self.assertIn(says, answer.stderr)

    def test_a_process_that_one_host_profiles_refuses_another(self):
        first = self.begin()
        pid = self.child(1, "--kind=a")
        (socket,) = (self.folder / "run").glob("**/*.sock")
        second = self.memlog_start("sleep", "600", options=("-q", "--no-page"))
        self.wait_for("the second host", lambda: len(list((self.folder / "run").glob("**/*.sock"))) == 2 and len(self.rows()) == 1)
        word = "another memlog has it: a process has one profiler at a time"
        for command in ("start", "stop"):
            answer = self.command(command, pid)
            self.assertEqual((answer.returncode, answer.stdout), (125, ""))
            self.assertIn(f"{pid} is not {command}{'p' * (command == 'stop')}ed: {word}", answer.stderr)
        answer = self.command("start", 4194304)
        self.assertIn("there is no such process", answer.stderr)
        # The first one still has it.
        rows = json.loads(self.command("ps", "--json", f"--host={socket}").stdout)["processes"]
        self.assertTrue(next(row for row in rows if row["pid"] == pid and row["state"] == "running")["recording"])
        second.terminate()
        second.wait(harness.TIMEOUT)
        self.assertEqual(self.held(self.finish(first)[pid]), [800001])

    def test_a_memlog_under_memlog_says_whose_the_program_is(self):
        inner = self.folder / "inner"
        words = [harness.MEMLOG, "run", "--no-page", "-o", inner, "--", "/bin/sleep", "0"]
        run = self.memlog(*words, options=("-q", "--no-page"))
        self.assertEqual(run.code, 0)
        self.assertIn("this memlog is itself being profiled, by another one", run.err)
        (dump,) = inner.glob("*.exit.pftrace")
        report = self.report(dump)
        self.assertEqual(report["processes"], [])
        self.assertIn("another memlog, which profiles this one, has it", [one["reason"] for one in report["dump"]["not_profiled"]])
        # As Perfetto's readers know it.
        (rejected,) = published.trace(dump.read_bytes()).all("packet", "profile_packet", "process_dumps")
        self.assertEqual((rejected.one("rejected_concurrent"), rejected.all("samples")), (True, []))
        outer = self.exit_report(run)
        (whole,) = run.dumps()
        shown = {one.one("pid"): one.all("rejected_concurrent") for one in published.trace(whole.read_bytes()).all("packet", "profile_packet", "process_dumps")}
        self.assertEqual(shown[rejected.one("pid")], [])
        self.assertIn("sleep", [one["name"] for one in outer["processes"]])

    def test_a_report_of_nobody_does_not_call_itself_complete(self):
        run = self.memlog("/bin/true", options=("--no-page", "--never=true"))
        self.assertIn("no process was recorded", run.err)
        self.assertNotIn("was recorded, none was lost", run.err)
        self.assertRegex(run.err, "true: .*not recorded: left out by --never=true")

    def test_a_report_names_whoever_was_left_out_and_by_what(self):
        script = "/bin/true; /bin/true; /bin/sleep 0"
        run = self.memlog("/bin/bash", "-c", script, options=("--no-page", "--never=[/]true$", "--never=^nothing", "--only=bash"))
        missing = {(pathlib.Path(one["path"]).name, one["reason"]) for one in self.exit_report(run)["dump"]["not_profiled"]}
        self.assertIn(("true", "left out by --never=[/]true$"), missing)
        self.assertIn(("sleep", "left out: --only=bash does not match it"), missing)
        self.assertRegex(" ".join(run.err.split()), r"true: 2 processes, .*not recorded: left out by --never=\[/\]true\$")
        (self.folder / "never").write_text("/true$\n")
        listed = self.memlog("/bin/true", options=("--no-page", f"--never-list={self.folder}/never"))
        self.assertRegex(" ".join(listed.err.split()), f"true: .*not recorded: never recorded: line 1 of {self.folder}/never")

    def test_only_and_never_hold_for_who_runs_and_for_who_comes(self):
        process = self.begin("--only=--kind=|up%d", "--never=--kind=secret")
        pids = [self.child(number, word) for number, word in enumerate(("--kind=a", "--kind=secret", "--sort=b", "fork"), 1)]
        self.assertEqual([self.rows()[pid]["recording"] for pid in pids], [True, False, False, True])
        found = self.finish(process)
        self.assertTrue(pids[1] not in found and pids[2] not in found)
        self.assertEqual([self.held(found[pid]) for pid in (pids[0], pids[3])], [[800001], [800004]])

    def test_what_the_list_forbids_is_never_recorded_whoever_asks(self):
        (self.folder / "never").write_text("# the keys\n--kind=secret\n")
        process = self.begin(f"--never-list={self.folder}/never")
        secret, plain = self.child(1, "--kind=secret"), self.child(2, "--kind=plain")
        note = f"never recorded: line 2 of {self.folder}/never"
        self.assertEqual({pid: (row["recording"], row["note"]) for pid, row in self.rows().items() if pid in (secret, plain)},
                         {secret: (False, note), plain: (True, "")})
        answer = self.command("start", secret)
        self.assertEqual((answer.returncode, answer.stdout), (125, ""))
        self.assertIn(f"{secret} is not started: {note}", answer.stderr)
        answer = self.command("start", "--json", "--name=secret")
        self.assertEqual(json.loads(answer.stdout)["processes"], [{"pid": secret, "done": False, "trouble": note}])
        late = self.child(3, "--kind=secret")
        self.assertFalse(self.rows()[late]["recording"])
        found = self.finish(process)
        self.assertTrue(plain in found and secret not in found and late not in found)

    def test_who_takes_a_forbidden_title_is_stopped(self):
        (self.folder / "never").write_text("^secret")
        process = self.memlog_start(PYTHON, "-c", RENAMED, "secret store of keys", options=("-q", "--no-page", f"--never-list={self.folder}/never"))
        self.wait_for("the program", (self.folder / "ready").exists)
        (self.folder / "rename").touch()
        self.wait_for("the stop", lambda: any(row["note"].startswith("never recorded: line 1 of ") for row in self.rows().values()))
        (self.folder / "more").touch()
        self.wait_for("the rest", (self.folder / "done").exists)
        (entry,) = self.finish(process).values()
        self.assertEqual(self.held(entry), [900001])

    def test_a_list_that_cannot_be_trusted_lets_nothing_run(self):
        never = self.folder / "never"
        for text, mode, says in (("fine\n[\n", 0o644, "never, line 2: '[' is no regular expression"), ("fine\n", 0o666, "chmod go-w")):
            never.write_text(text)
            never.chmod(mode)
            run = self.memlog("touch", "ran", options=("--no-page", f"--never-list={never}"))
            self.assertEqual(run.code, 125)
            self.assertIn(says, run.err)
            self.assertFalse((self.folder / "ran").exists())

    def test_the_machines_list_holds_without_being_named(self):
        # In a mount namespace of its own, with a copy of what this user may read of /etc.
        def is_left_out(path):
            return not (os.access(path, os.R_OK | os.X_OK) if path.is_dir() else path.is_file() and os.access(path, os.R_OK))

        shutil.copytree("/etc", self.folder / "etc", symlinks=True, ignore=lambda folder, names: [
            name for name in names if is_left_out(pathlib.Path(folder, name))])
        (self.folder / "etc/memlog").mkdir(mode=0o755)
        (self.folder / "etc/memlog/never").write_text("^sleep 0\n")

        def inside(*words):
            script = 'mount --bind "$1" /etc && shift && exec "$@"'
            return subprocess.run(
                ["unshare", "-r", "-m", "sh", "-c", script, "sh", str(self.folder / "etc"), *map(str, words)], cwd=self.folder,
                env=self.environment(), capture_output=True, text=True, timeout=harness.TIMEOUT, check=False,
            )

        run = inside(harness.MEMLOG, "run", "-q", "--no-page", "-o", self.folder / "dumps", "--", "sleep", "0")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        (dump,) = (self.folder / "dumps").glob("*.pftrace")
        self.assertEqual(self.report(dump)["processes"], [])
        doctor = inside(harness.MEMLOG, "doctor", "sleep", "0")
        self.assertEqual(doctor.returncode, 1)
        self.assertIn("/etc/memlog/never forbids what matches its 1 patterns", doctor.stdout)
        self.assertRegex(doctor.stdout, r"FAIL +never +line 1 of /etc/memlog/never forbids /usr/bin/\w+")
        (self.folder / "etc/memlog/never").write_text("a\n(\n")
        self.assertRegex(inside(harness.MEMLOG, "doctor").stdout, r"FAIL +never +/etc/memlog/never, line 2: '\('")
        run = inside(harness.MEMLOG, "run", "--no-page", "-o", self.folder / "none", "--", "touch", self.folder / "ran")
        self.assertEqual(run.returncode, 125)
        self.assertIn("/etc/memlog/never, line 2", run.stderr)
        self.assertFalse((self.folder / "ran").exists() or (self.folder / "none").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
