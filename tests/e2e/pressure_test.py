"""More than memlog can take, and less than it needs: programs that do nothing but allocate, a service that is held back or short of
memory, small pipes, few descriptors, a full disk, a user's quota of pipes. The program goes on within a bound and ends as it would;
what was lost is counted by reason, and the counts add up (harness.unbalanced holds every dump of these runs to that)."""
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import termios
import time
import unittest

import harness

PYTHON = "/usr/bin/python3"
F_SETPIPE_SZ, F_GETPIPE_SZ = 1031, 1032
PAGE = 4096
# Somebody with no other process on this machine, so that the quota is all there.
USER = 61234

OVERLOAD = harness.PROGRAMS / "oracle" / "overload"
CODE = 42  # what it ends with
# Calls of the program beside those that it counts: stdio, threads' starts, libc's own.
BESIDE = 2000
# Many live blocks from one stack: what is live is what they take in the service.
MALLOCS = "import ctypes; malloc = ctypes.CDLL(None).malloc\nfor _ in range(%d): malloc(32)"
PIPE_BOUND_S = 1
FULL_PIPE_BYTES = 900_000  # of 1 MiB: each page of it has one frame
SAMPLED_S = 3  # three steps of the guard
SLACK_S = 60  # of a loaded machine; who waits at every chunk takes many minutes


def pipe_quota():
    """(soft, hard) in pages; 0: none."""
    return tuple(
        int(pathlib.Path(f"/proc/sys/fs/pipe-user-pages-{name}").read_text()) for name in ("soft", "hard")
    )


def unread_in(process):
    """Bytes that wait in the pipes that a process has open, each once, but those to us."""
    return pipes_of(process, lambda fd: int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder))


def pipes_of(process, ask=lambda fd: fcntl.fcntl(fd, F_GETPIPE_SZ)):
    """Sizes of the pipes that a process has open, each once, but those to us; or what else `ask` says of one."""
    pid = process.pid
    sizes = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{name}").startswith("pipe:"):
                fd = os.open(f"/proc/{pid}/fd/{name}", os.O_RDONLY | os.O_NONBLOCK)
                sizes[os.fstat(fd).st_ino] = ask(fd)
                os.close(fd)
    for ours in (process.stdin, process.stdout):
        sizes.pop(os.fstat(ours.fileno()).st_ino, None)
    return list(sizes.values())


class Pressure(harness.Case):
    """A program of memlog run, ready to begin."""

    def start(self, *program, options=("-q", "--no-page"), user=None, limits=()):
        def before():
            for which, value in limits:
                resource.setrlimit(which, (value, value))

        return self.memlog_start(
            *program, options=options, stdin=subprocess.PIPE, user=user, group=user, extra_groups=[] if user else None, preexec_fn=before,
        )

    def overload(self, threads, milliseconds, keep=64, **options):
        process = self.start(OVERLOAD, str(threads), str(milliseconds), str(keep), **options)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def leave_behind(self, process):
        """Let it begin while the service stands still, and go on for so long that its pipe is full, waited for and left behind."""
        service = harness.service_of(process.pid)
        (program,) = [child for child in harness.children_of(process.pid) if child != service]
        os.kill(service, signal.SIGSTOP)
        self.go(process)
        # A second of work is many times what pipe and staging hold.
        self.wait_for("the program's work", lambda: harness.ticks_of(program) >= os.sysconf("SC_CLK_TCK"))
        os.kill(service, signal.SIGCONT)

    def ended(self, process):
        """(the program's own count of its calls, its entry in the report, the report)."""
        done = process.stdout.readline().decode()
        found = re.fullmatch(r"done (\d+) ok\n", done)
        self.assertTrue(found, f"its own memory: {done!r}")
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), CODE)
        report = self.exit_report(harness.Run(CODE, b"", "", process.memlog_folder))
        (entry,) = report["processes"]
        calls = int(found.group(1))
        self.assertGreaterEqual(entry["accounting"]["produced"], calls, "every call counts")
        self.assertLessEqual(entry["accounting"]["produced"], calls + BESIDE)
        return calls, entry, report

    def text_report(self, process):
        (dump,) = process.memlog_folder.glob("*.exit.pftrace")
        answer = subprocess.run(
            [str(harness.MEMLOG), "report", "--full", str(dump)], capture_output=True, text=True, env=self.environment(), check=True
        )
        return answer.stdout


class Overload(Pressure):
    def test_more_threads_than_cores_lose_nothing_while_the_service_can_wait_for(self):
        process = self.overload(16, 500)
        self.go(process)
        _, entry, report = self.ended(process)
        # The service is given the second that a full pipe may take, again and again: blocked is not lost.
        if not harness.stayed_full(entry):
            self.assertTrue(report["dump"]["complete"], entry["trouble"])

    def test_a_service_that_stands_still_costs_a_second_and_counted_events(self):
        process = self.overload(8, 600_000)
        begun = time.monotonic()
        self.leave_behind(process)
        self.assertLess(time.monotonic() - begun, PIPE_BOUND_S + SLACK_S)
        self.go(process)  # it may end
        _, entry, report = self.ended(process)
        accounting = entry["accounting"]
        self.assertGreater(accounting["dropped"]["overrun"], 0)
        self.assertEqual(accounting["dropped"]["overrun"], entry["lost_events"])
        self.assertGreater(accounting["waits"], 0)
        self.assertGreaterEqual(accounting["longest_wait_ns"], 900_000_000)
        self.assertLess(accounting["longest_wait_ns"], SLACK_S * 1_000_000_000, "a second, and what a loaded machine adds")
        self.assertFalse(report["dump"]["complete"])
        self.assertIn("pipe", entry["trouble"])
        # Stacks of what did come are whole: the chunks that were dropped had defined them.
        self.assertEqual(entry["broken_stacks"], 0)
        text = self.text_report(process)
        self.assertRegex(text, r"events were lost")
        self.assertRegex(text, r"its pipe stayed full for a second and more \(.*--memlog-buffer-bytes")
        self.assertRegex(text, r"waited +[\d,]+ times? for memlog, .*at most \d+\.\d s")

    def test_ps_tells_of_waits_and_losses_while_they_happen(self):
        process = self.overload(2, 600_000)
        self.leave_behind(process)

        def row():
            answer = subprocess.run(
                [str(harness.MEMLOG), "ps", "--json"], capture_output=True, text=True, env=self.environment(), check=False
            )
            rows = json.loads(answer.stdout)["processes"] if answer.returncode == 0 else []
            return next((one for one in rows if one["lost_events"] > 0), None)

        found = self.wait_for("lost events in ps", row)
        self.assertGreater(found["waits"], 0)
        self.assertGreaterEqual(found["waited_ns"], found["longest_wait_ns"])
        self.assertGreaterEqual(found["longest_wait_ns"], 900_000_000)
        table = subprocess.run(
            [str(harness.MEMLOG), "ps"], capture_output=True, text=True, env=self.environment(), check=True
        ).stdout
        self.assertRegex(table.splitlines()[0], r"LOST +WAITED")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def test_wide_staging_carries_a_short_pause_without_a_wait(self):
        process = self.overload(1, 300, options=("-q", "--no-page", "--memlog-buffer-bytes=1M"))
        self.go(process)
        _, wide, _ = self.ended(process)
        self.assertEqual(harness.lost_too_early(wide), 0)

    def test_a_service_short_of_memory_loses_the_profile_and_not_the_program(self):
        process = self.overload(2, 1500, keep=1 << 20)
        service = harness.service_of(process.pid)
        limit = int(pathlib.Path(f"/proc/{service}/statm").read_text().split()[0]) * PAGE + (4 << 20)
        resource.prlimit(service, resource.RLIMIT_AS, (limit, limit))
        self.go(process)
        self.assertRegex(process.stdout.readline().decode(), r"done \d+ ok\n")
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), CODE)
        report = self.exit_report(harness.Run(CODE, b"", "", process.memlog_folder))
        self.assertFalse(report["dump"]["complete"])
        self.assertIn("memory", report["processes"][0]["trouble"])


class Guard(Pressure):
    """The service's own memory comes to its limit: it keeps less, says so, and goes on."""

    def said(self, process, words):
        process.memlog_log.seek(0)
        return process.memlog_log.read().decode().count(words)

    def until_sampled(self, process, meanwhile=lambda: None):
        """Let it fill the service's memory until ps says that it is sampled; nothing is given up before that, nor soon behind it."""
        self.go(process)

        def note():
            meanwhile()
            return next((one["note"] for one in self.rows() if one["name"] == "overload" and one["note"]), None)

        self.assertRegex(self.wait_for("what ps says of it", note), r"^sampled, one allocation in .*: memlog-service ran short of memory$")
        self.assertEqual(self.said(process, "is sampled from now on"), 1)
        end = time.monotonic() + SAMPLED_S
        while time.monotonic() < end:
            meanwhile()
            self.assertRegex(note(), r"^sampled, ")
            time.sleep(0.05)
        self.assertEqual(self.said(process, "totals alone"), 0)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def test_the_largest_process_is_sampled_before_anything_is_lost(self):
        self.until_sampled(self.overload(2, 600_000, keep=1 << 20, options=("--no-page", "--service-memory=32M")))

    def test_a_service_that_finds_a_full_pipe_each_time_samples_first_too(self):
        process = self.overload(2, 600_000, keep=1 << 20, options=("--no-page", "--service-memory=32M"))
        service = harness.service_of(process.pid)

        def hold_up():
            os.kill(service, signal.SIGSTOP)
            time.sleep(0.3)
            os.kill(service, signal.SIGCONT)
            time.sleep(0.05)

        self.until_sampled(process, hold_up)

    def test_less_than_its_live_blocks_take_leaves_the_totals(self):
        # Its own quota is beside the point here. What a full pipe holds is more than that memory, and all of it was recorded before
        # anybody could ask for less.
        process = self.overload(2, 2000, keep=1 << 20, options=("--no-page", "--service-memory=2M", "--client-memory=1G"))
        service = harness.service_of(process.pid)
        os.kill(service, signal.SIGSTOP)
        self.go(process)
        self.wait_for("a full pipe", lambda: max(unread_in(process), default=0) > FULL_PIPE_BYTES)
        os.kill(service, signal.SIGCONT)
        self.assertRegex(process.stdout.readline().decode(), r"done \d+ ok\n")
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), CODE)
        report = self.exit_report(harness.Run(CODE, b"", "", process.memlog_folder))
        (entry,) = report["processes"]
        self.assertFalse(entry["complete"])
        self.assertEqual(entry["unknown_frees"], 0, "what is not known is not counted")
        if "recording it stopped" in entry["trouble"]:
            return  # a busy machine's backlog alone was too much: nobody could keep even totals
        self.assertIn("what is live is as of then", entry["trouble"])
        self.assertEqual(harness.lost_too_early(entry), 0, "nothing was lost on the way")
        trouble = report["dump"]["service_trouble"]
        self.assertIn("its memory of 2 MiB ran short", trouble)
        self.assertIn("kept as totals: 1", trouble)
        if "processes sampled: 0" in trouble and entry["lost_events"] == 0:  # every block was given back, and each event came
            self.assertLess(abs(2 * entry["total_blocks"] - entry["events"]), BESIDE)
        self.assertEqual(self.said(process, "it keeps totals alone from now on"), 1, "once")
        self.assertLessEqual(self.said(process, "is sampled from now on"), 1, "once")
        self.assertRegex(self.text_report(process), r"service +its memory of 2 MiB ran short")

    def test_others_stay_whole_beside_the_one_that_pays(self):
        process = self.start(
            PYTHON, "-c", "import subprocess, sys; subprocess.check_call(sys.argv[1:])", PYTHON, "-c", MALLOCS % 2_000_000,
            options=("-q", "--no-page", "--service-memory=24M"),
        )
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        report = self.exit_report(harness.Run(CODE, b"", "", process.memlog_folder))
        self.assertNotEqual(report["dump"]["service_trouble"], "")
        *others, large = sorted(report["processes"], key=lambda entry: entry["total_bytes"])
        self.assertNotEqual((large["trouble"], large["sampling_bytes"]), ("", 1))
        self.assertEqual([entry["trouble"] for entry in others if not entry["complete"]], [])
        self.assertEqual({entry["sampling_bytes"] for entry in others}, {1})

    def rows(self):
        answer = subprocess.run([str(harness.MEMLOG), "ps", "--json"], capture_output=True, text=True, env=self.environment(), check=False)
        return json.loads(answer.stdout)["processes"] if answer.returncode == 0 else []  # it is starting

    def row_of_quota(self):
        return self.wait_for("what ps says of it", lambda: next((one for one in self.rows() if "over its quota" in one["note"]), None))

    def test_ps_says_of_one_whose_totals_fit_that_they_are_all(self):
        script = MALLOCS % 500_000 + "\nprint('there', flush=True); input()"
        process = self.start(PYTHON, "-c", script, options=("--no-page", "--client-memory=8M"))
        self.assertEqual(process.stdout.readline(), b"there\n")
        note = self.row_of_quota()["note"]
        if "recording it stopped" not in note:  # a busy machine's backlog alone may be too much
            self.assertEqual(note, "totals alone, not what is live: over its quota of memory in memlog-service, 8.0 MiB (--client-memory)")
        self.go(process)
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        (entry,) = self.exit_report(harness.Run(0, b"", "", process.memlog_folder))["processes"]
        self.assertIn("over its quota of memory in memlog-service, 8 MiB (--client-memory): ", entry["trouble"])

    def test_one_over_its_quota_pays_alone(self):
        script = "import subprocess, sys; one = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE); one.stdin.write(b'\\n'); one.stdin.flush(); one.wait()"
        process = self.start(PYTHON, "-c", script, OVERLOAD, "2", "600000", str(1 << 20), options=("--no-page", "--client-memory=8M"))
        greedy = self.row_of_quota()
        self.assertEqual(greedy["name"], "overload")
        self.assertRegex(greedy["note"], r"8(\.0)? MiB \(--client-memory\)")
        self.wait_for("what stderr says of it", lambda: self.said(process, "is over its quota of memory in memlog-service"))
        os.kill(greedy["pid"], signal.SIGKILL)
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        report = self.exit_report(harness.Run(0, b"", "", process.memlog_folder))
        self.assertEqual(report["dump"]["service_trouble"], "processes over their quota of memory in it: 1")
        troubles = {entry["name"]: entry["trouble"] for entry in report["processes"] if entry["state"] != "replaced"}
        self.assertIn("over its quota", troubles.pop("overload"))
        self.assertEqual(set(troubles.values()), {""})
        self.assertEqual({entry["sampling_bytes"] for entry in report["processes"]}, {1})
        self.assertRegex(self.text_report(process), r"service +processes over their quota")


class FewDescriptors(Pressure):
    def test_a_program_with_few_of_them_is_profiled(self):
        process = self.overload(2, 50, limits=())
        self.go(process)
        self.ended(process)
        script = "ulimit -n 12; exec \"$@\""
        process = self.start("/bin/sh", "-c", script, "sh", OVERLOAD, "2", "50", "64")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.go(process)
        self.assertRegex(process.stdout.readline().decode(), r"done \d+ ok\n")
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), CODE)
        report = self.exit_report(harness.Run(CODE, b"", "", process.memlog_folder))
        names = [entry["name"] for entry in report["processes"] if entry["state"] == "exited"]
        self.assertEqual(names, ["overload"])

    def test_a_host_with_few_of_them_says_whom_it_could_not_follow(self):
        script = """
import os, sys
ends = os.pipe()
for _ in range(40):
    if os.fork() == 0:
        os.close(ends[1])
        kept = [bytearray(100) for _ in range(100)]
        os.read(ends[0], 1)
        os._exit(0)
print("up", flush=True)
sys.stdin.readline()
os.close(ends[1])
codes = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(40)]
print(sum(codes), flush=True)
sys.exit(7)
"""
        process = self.start(
            PYTHON, "-c", script, options=("--no-page",), limits=((resource.RLIMIT_NOFILE, 64),)
        )
        self.assertEqual(process.stdout.readline(), b"up\n")
        # Commands find their way all the same, and the person was told, once.
        def told():
            process.memlog_log.seek(0)
            return process.memlog_log.read().count(b"descriptors permit")

        self.wait_for("the notice", told)
        self.assertEqual(
            subprocess.run([str(harness.MEMLOG), "ps"], stdout=subprocess.DEVNULL, env=self.environment(), check=False).returncode, 0
        )
        self.go(process)
        self.assertEqual(process.stdout.readline(), b"0\n")
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 7)
        self.assertEqual(told(), 1)
        report = self.exit_report(harness.Run(7, b"", "", process.memlog_folder))
        followed = [entry for entry in report["processes"] if entry["parent_pid"] != process.pid]
        missing = report["dump"]["not_profiled"]
        self.assertLess(len(followed), 40)
        self.assertEqual(len(missing), 40 - len(followed), "everybody is followed, or named")
        self.assertIn("too few descriptors", missing[0]["reason"])


class FullDisk(Pressure):
    @unittest.skipIf(os.geteuid() != 0, "needs root to mount a small file system")
    def test_a_dump_that_finds_no_room_says_so_and_is_not_taken_for_a_whole_one(self):
        disk = self.folder / "disk"
        disk.mkdir()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"none", str(disk).encode(), b"tmpfs", 0, b"size=16k") != 0:
            self.skipTest(f"cannot mount: {os.strerror(ctypes.get_errno())}")
        self.addCleanup(lambda: libc.umount2(str(disk).encode(), 2))
        words = [str(harness.MEMLOG), "run", "--no-page", "-o", str(disk / "dumps"), "--", PYTHON, "-c", "import json; print(3)"]
        answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.stdout, b"3\n")
        self.assertEqual(answer.returncode, 0, "the program's own")
        self.assertIn(b"No space left on device", answer.stderr)
        # What found room is a dump that was cut off: its name says so, it opens, and says so again.
        left = [path for path in (disk / "dumps").rglob("*")]
        self.assertEqual([path.name for path in left], ["0001.exit.pftrace.cut"])
        self.assertRegex(answer.stderr, rb"0001\.exit\.pftrace\.cut was cut off, what it holds can be read")
        report = json.loads(subprocess.run(
            [str(harness.MEMLOG), "report", "--json", str(left[0])], capture_output=True, env=self.environment(), check=True
        ).stdout)
        self.assertTrue(report["dump"]["truncated"])
        self.assertFalse(report["dump"]["complete"])


class Quota(Pressure):
    """A user's pipes are his own: memlog takes no more than half of what he may have."""

    MANY = 200

    # Half of the children are forked and go on, half make an exec; all of them until standard input ends. One after the other: a program
    # that starts waits two seconds for its host and no longer, and a host beside others may have less than half a processor.
    FAMILY = """
import os, sys, time
for index in range(int(sys.argv[1])):
    time.sleep(0.02)
    if os.fork() == 0:
        if index % 2:
            os.execv("/bin/sh", ["sh", "-c", "read line"])
        kept = [bytearray(100) for _ in range(1000)]
        os.read(0, 1)
        os._exit(0)
print("up", flush=True)
os.read(0, 1)
for _ in range(int(sys.argv[1])):
    os.wait()
"""

    STRANGER = """
import fcntl, os
ends = os.pipe()
os.set_blocking(ends[1], False)
print(fcntl.fcntl(ends[1], 1032), os.write(ends[1], bytes(65536)))
"""

    def setUp(self):
        super().setUp()
        soft, _ = pipe_quota()
        if os.geteuid() != 0 or soft < 2 * 1024:
            self.skipTest("needs root to become somebody with a quota of his own")
        for path in (self.folder, self.folder / "run"):
            os.chown(path, USER, USER)

    def test_with_two_hundred_processes_a_strangers_pipe_is_whole(self):
        process = self.start(PYTHON, "-c", self.FAMILY, str(self.MANY), user=USER)
        self.assertEqual(process.stdout.readline(), b"up\n")
        pipes = self.wait_for(
            "everybody's pipe", lambda: (lambda all: len(all) > self.MANY and all)(pipes_of(process)), timeout=3 * harness.TIMEOUT,
            seen=lambda: f"but {len(pipes_of(process))}: " + subprocess.run(
                [str(harness.MEMLOG), "ps"], capture_output=True, env=self.environment(), user=USER, group=USER, extra_groups=[], check=False,
            ).stdout.decode(),
        )
        soft, _ = pipe_quota()
        self.assertLessEqual(sum(pipes), soft * PAGE // 2)
        self.assertIn(1 << 20, pipes, "the first ones are large")
        stranger = subprocess.run([PYTHON, "-c", self.STRANGER], capture_output=True, user=USER, group=USER, extra_groups=[], check=True)
        self.assertEqual(stranger.stdout, b"65536 65536\n")
        process.stdin.close()
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        report = self.exit_report(harness.Run(0, b"", "", process.memlog_folder))
        self.assertGreaterEqual(len(report["processes"]), self.MANY + 1)
        self.assertTrue(report["dump"]["complete"])

    def test_where_the_user_has_used_up_his_quota_small_pipes_do(self):
        soft, _ = pipe_quota()
        hog = subprocess.Popen(
            [PYTHON, "-c", f"import os, sys\nkept = [os.pipe() for _ in range({soft // 16 + 2})]\nprint('up', flush=True)\nsys.stdin.read()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=USER, group=USER, extra_groups=[],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft // 8 + 64, soft // 8 + 64)),
        )
        self.addCleanup(hog.communicate)
        self.addCleanup(hog.kill)
        self.assertEqual(hog.stdout.readline(), b"up\n")
        process = self.overload(2, 300, user=USER)
        self.assertLessEqual(max(pipes_of(process)), 8192)
        self.go(process)
        _, entry, report = self.ended(process)
        self.assertEqual(harness.lost_too_early(entry), 0, "a small pipe is slow, not lossy")
        if not harness.stayed_full(entry):
            self.assertTrue(report["dump"]["complete"], entry["trouble"])
        self.assertGreater(entry["accounting"]["waits"], 0)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
