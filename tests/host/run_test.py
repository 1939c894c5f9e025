"""`memlog run` as a process: exit codes, signals, job control, daemons. With --memlog=none, so that the launcher stands alone."""
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

OUT = pathlib.Path(os.environ.get("MEMLOG_TEST_OUT", pathlib.Path(__file__).resolve().parents[2] / "out"))
MEMLOG = str(OUT / "memlog")
TIMEOUT = 120  # far more than any of these takes on a loaded machine
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}


def memlog(*arguments, **options):
    return subprocess.run(
        [MEMLOG, *arguments], capture_output=True, text=True, timeout=TIMEOUT, env=ENVIRONMENT, **options
    )


def none(*program, options=(), **more):
    return memlog("run", "--memlog=none", *options, "--", *program, **more)


def start_none(*program, options=()):
    return subprocess.Popen(
        [MEMLOG, "run", "--memlog=none", *options, "--", *program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )


class ExitCodes(unittest.TestCase):
    def test_the_programs_exit_code_comes_back(self):
        self.assertEqual(none("true").returncode, 0)
        self.assertEqual(none("sh", "-c", "exit 42").returncode, 42)

    def test_a_killed_program_is_128_and_its_signal(self):
        self.assertEqual(none("sh", "-c", "kill -9 $$").returncode, 137)
        self.assertEqual(none("sh", "-c", "kill -ABRT $$").returncode, 134)

    def test_a_missing_program_is_127_and_one_that_cannot_run_126(self):
        missing = none("/no/such/program")
        self.assertEqual(missing.returncode, 127)
        self.assertIn("/no/such/program: No such file", missing.stderr)
        self.assertEqual(none("/etc/passwd").returncode, 126)
        self.assertEqual(none("/").returncode, 126)

    def test_usage_errors_are_2_and_name_the_thing(self):
        for arguments, words in [
            (["run", "--memlgo=all", "--", "true"], "did you mean '--memlog'"),
            (["run"], "no program given"),
            (["rum"], "did you mean 'run'"),
            ([], "Usage"),
        ]:
            result = memlog(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(words, result.stderr)
            self.assertEqual(result.stdout, "")

    def test_unknown_environment_keys_are_usage_errors(self):
        result = subprocess.run(
            [MEMLOG, "run", "--memlog=none", "true"],
            env={**ENVIRONMENT, "MEMLOG_MODE": "all"},
            capture_output=True,
            text=True,
        )
        self.assertEqual(result.returncode, 2)
        self.assertIn("MEMLOG_MODE", result.stderr)

    def test_help_and_version_go_to_stdout(self):
        for arguments in (["help"], ["--help"], ["help", "run"]):
            result = memlog(*arguments)
            self.assertEqual(result.returncode, 0, arguments)
            self.assertIn("Example:", result.stdout)
            self.assertEqual(result.stderr, "")
        version = memlog("--version").stdout
        self.assertRegex(version, r"^memlog \d+\.\d+\.\d+\nbuild id [0-9a-f]{16,}\n$")
        notes = subprocess.run(["readelf", "-n", MEMLOG], capture_output=True, text=True, check=True).stdout
        self.assertIn(version.split()[-1], notes)


class Transparency(unittest.TestCase):
    def test_streams_are_the_programs_own(self):
        result = none("sh", "-c", "cat; echo err >&2", input="in\n")
        self.assertEqual((result.stdout, result.stderr), ("in\n", "err\n"))

    def test_environment_descriptors_limits_and_signals_are_as_without(self):
        script = (
            "env | sort | grep -v '^_='; ls -l /proc/self/fd | awk '{print $9}'; ulimit -n;"
            "grep -E 'SigBlk|SigIgn|SigCgt' /proc/self/status"
        )
        with tempfile.TemporaryDirectory() as folder:
            plain = subprocess.run(
                ["sh", "-c", script], capture_output=True, text=True, env=ENVIRONMENT, cwd=folder
            )
            ours = none("sh", "-c", script, cwd=folder)
            self.assertEqual(ours.stdout, plain.stdout)
            self.assertEqual(os.listdir(folder), [], "none writes nothing")

    def test_ignored_signals_stay_ignored(self):
        script = "grep SigIgn /proc/self/status"
        prefix = ["sh", "-c", 'trap "" HUP CHLD PIPE; exec "$@"', "sh"]
        plain = subprocess.run([*prefix, "sh", "-c", script], capture_output=True, text=True)
        ours = subprocess.run(
            [*prefix, MEMLOG, "run", "--memlog=none", "--", "sh", "-c", script],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
        )
        self.assertEqual(ours.stdout, plain.stdout)
        self.assertEqual(ours.returncode, 0)


class Signals(unittest.TestCase):
    def wait_for_line(self, process, line):
        self.assertEqual(process.stdout.readline(), line)

    def test_signals_to_the_host_reach_the_program(self):
        for name in ("TERM", "HUP", "INT", "USR1", "USR2", "QUIT"):
            process = start_none("sh", "-c", f"trap 'echo got; exit 3' {name}; echo up; while :; do sleep 0.02; done")
            self.wait_for_line(process, "up\n")
            process.send_signal(getattr(signal, "SIG" + name))
            out, _ = process.communicate(timeout=TIMEOUT)
            self.assertEqual((out, process.returncode), ("got\n", 3), name)

    def test_a_program_killed_by_a_forwarded_signal_is_told_as_such(self):
        process = start_none("sh", "-c", "echo up; exec sleep 60")
        self.wait_for_line(process, "up\n")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)

    def test_a_terminals_interrupt_reaches_the_program_once_and_the_host_outlives_it(self):
        pid, master = os.forkpty()
        if pid == 0:
            script = "n=0; trap 'n=$((n+1))' INT; echo up; while [ $n -eq 0 ]; do sleep 0.02; done; sleep 0.5; exit $n"
            os.execve(MEMLOG, [MEMLOG, "run", "--memlog=none", "--", "bash", "-c", script], ENVIRONMENT)
        out = b""
        while b"up" not in out:
            out += os.read(master, 100)
        os.write(master, b"\x03")
        while True:
            try:
                if not os.read(master, 100):
                    break
            except OSError:
                break
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 1)

    def test_a_terminals_stop_stops_host_and_program_and_both_go_on(self):
        pid, master = os.forkpty()
        if pid == 0:
            # The job needs a parent in its session, else its group is orphaned and never stops.
            script = 'echo up; while [ ! -e "$1" ]; do sleep 0.02; done; exit 5'
            child = os.fork()
            if child == 0:
                # The terminal is ours before anything is said; who waits for "up" may press keys at once.
                os.setpgid(0, 0)
                signal.signal(signal.SIGTTOU, signal.SIG_IGN)
                os.tcsetpgrp(0, os.getpid())
                signal.signal(signal.SIGTTOU, signal.SIG_DFL)
                os.execve(
                    MEMLOG, [MEMLOG, "run", "--memlog=none", "--", "bash", "-c", script, "x", "/dev/null/never"], ENVIRONMENT
                )
            _, status = os.waitpid(child, os.WUNTRACED)
            stopped = os.WIFSTOPPED(status)
            os.killpg(child, signal.SIGCONT)
            os.killpg(child, signal.SIGTERM)
            _, status = os.waitpid(child, 0)
            os._exit(9 if stopped and os.waitstatus_to_exitcode(status) == 143 else 1)
        out = b""
        while b"up" not in out:
            out += os.read(master, 100)
        os.write(master, b"\x1a")
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                break
            time.sleep(0.02)
        self.assertTrue(done)
        self.assertEqual(os.waitstatus_to_exitcode(status), 9)


class Tree(unittest.TestCase):
    def test_the_run_ends_with_the_last_process_and_says_whom_it_waits_for(self):
        with tempfile.TemporaryDirectory() as folder:
            script = f"(setsid sh -c 'while [ ! -e {folder}/go ]; do sleep 0.02; done; touch {folder}/done' </dev/null >/dev/null 2>&1 &); exit 6"
            process = start_none("sh", "-c", script)
            self.assertRegex(process.stderr.readline(), r"memlog: sh has ended; waiting for sh \(\d+\)")
            self.assertIsNone(process.poll())
            (pathlib.Path(folder) / "go").touch()
            process.communicate(timeout=TIMEOUT)
            self.assertEqual(process.returncode, 6)
            self.assertTrue((pathlib.Path(folder) / "done").exists())

    def test_quiet_says_nothing(self):
        result = none("sh", "-c", "(setsid sleep 1.3 </dev/null >/dev/null 2>&1 &)", options=["-q"])
        self.assertEqual(result.stderr, "")

    def test_end_with_root_does_not_wait(self):
        start = time.monotonic()
        result = none("sh", "-c", "(setsid sleep 200 </dev/null >/dev/null 2>&1 & echo $!); exit 4", options=["--end-with-root"])
        os.kill(int(result.stdout), signal.SIGKILL)
        self.assertEqual(result.returncode, 4)
        self.assertLess(time.monotonic() - start, 100)

    def test_a_signal_while_waiting_for_daemons_ends_the_run(self):
        process = start_none("sh", "-c", "(setsid sleep 200 </dev/null >/dev/null 2>&1 & echo $!); exit 4")
        self.addCleanup(os.kill, int(process.stdout.readline()), signal.SIGKILL)
        self.assertIn("waiting for", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT)
        self.assertEqual(process.returncode, 4)


if __name__ == "__main__":
    unittest.main()
