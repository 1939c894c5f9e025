"""What is known to break other profilers of this kind: a vfork child that allocates, programs that are not profiled, a host that is
gone or hangs, a pipe that nobody reads. The program goes on within a bound, and what is missing is said."""
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import harness
import truth

PYTHON = "/usr/bin/python3"

# What a program waits at most: for a host at its start (client/startup/handshake.h), for room in its pipe (memlog run --help).
HOST_BOUND_S = 2
PIPE_BOUND_S = 1
# A loaded machine's share of what these programs do besides. Who is held up waits for each of many, or for ever: far longer.
SLACK_S = 60

FORKS = """
import os, sys, time
open("up", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
for _ in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        kept = [bytearray(1000) for _ in range(50)]
        os._exit(0)
    os.waitpid(child, 0)
print("done")
"""

STATIC = "#include <unistd.h>\nint main(void) { return write(1, \"static\\n\", 7) == 7 ? 0 : 1; }\n"


class VforkChild(harness.Case):
    def test_the_parents_profile_goes_on_after_a_vfork_child_has_allocated(self):
        run = self.memlog(harness.PROGRAMS / "oracle" / "vfork", "vfork")
        self.assertEqual(run.code, 0, run.err)
        report = self.exit_report(run)
        written = truth.load(self.truth_folder)
        self.assertEqual(truth.compare(report, written), [])
        process = next(entry for entry in report["processes"] if entry["name"] == "vfork")
        functions = {frame["function"] for stack in process["stacks"] for frame in stack["frames"]}
        self.assertLessEqual({"before", "in_child", "after"}, functions)


class Unprofiled(harness.Case):
    """Children that exec what we do not profile: they start at once, and the report knows why they are not in it."""

    def test_programs_that_policy_leaves_out_start_at_once(self):
        begun = time.monotonic()
        run = self.memlog("/bin/sh", "-c", "ls / >/dev/null; ls / >/dev/null; exec true", options=("-q", "--only=^/bin/sh"))
        self.assertEqual(run.code, 0, run.err)
        self.assertLess(time.monotonic() - begun, HOST_BOUND_S + SLACK_S)
        report = self.exit_report(run)
        self.assertEqual({entry["name"] for entry in report["processes"]}, {"sh"})

    def test_a_static_program_runs_and_is_named_in_the_report(self):
        (self.folder / "s.c").write_text(STATIC)
        subprocess.run(["gcc", "-static", "-o", "static", "s.c"], cwd=self.folder, check=True)
        begun = time.monotonic()
        run = self.memlog("/bin/sh", "-c", "./static; ./static; echo after")
        self.assertEqual((run.code, run.out), (0, b"static\nstatic\nafter\n"), run.err)
        self.assertLess(time.monotonic() - begun, HOST_BOUND_S + SLACK_S)
        text = harness.run_words(
            [str(harness.MEMLOG), "report", str(run.dumps()[0])], self.folder, self.environment(), b"", harness.TIMEOUT
        ).stdout.decode()
        self.assertIn("statically linked", text)
        self.assertIn("static", text)
        self.assertTrue(self.exit_report(run)["dump"]["complete"])


class HostGone(harness.Case):
    def start_program(self, *program):
        process = self.memlog_start(*program)
        self.wait_for("the program", (self.folder / "up").exists)
        return process

    def test_new_programs_of_a_killed_host_start_at_once(self):
        script = "touch up; while [ ! -e go ]; do sleep 0.01; done; i=0; while [ $i -lt 60 ]; do /bin/true; i=$((i+1)); done; touch done"
        process = self.start_program("/bin/sh", "-c", script)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        begun = time.monotonic()
        (self.folder / "go").touch()
        self.wait_for("the program's end", (self.folder / "done").exists)
        self.assertLess(time.monotonic() - begun, SLACK_S, "sixty programs, and none waits")

    def test_a_program_started_under_a_stopped_host_waits_no_longer_than_its_bound(self):
        script = "touch up; while [ ! -e go ]; do sleep 0.01; done; /bin/true; echo $?; touch done"
        process = self.start_program("/bin/sh", "-c", script)
        os.kill(process.pid, signal.SIGSTOP)
        begun = time.monotonic()
        (self.folder / "go").touch()
        self.wait_for("the program's end", (self.folder / "done").exists)
        self.assertLess(time.monotonic() - begun, HOST_BOUND_S + SLACK_S)
        os.kill(process.pid, signal.SIGCONT)
        self.assertEqual(process.communicate(timeout=harness.TIMEOUT)[0], b"0\n")

    def test_who_went_on_without_a_stopped_host_is_not_taken_for_recorded(self):
        process = self.start_program("/bin/sh", "-c", "touch up; mkfifo told; while [ ! -e go ]; do sleep 0.01; done; /bin/cat told")
        os.kill(process.pid, signal.SIGSTOP)
        (self.folder / "go").touch()

        def reader():
            try:
                return os.open(self.folder / "told", os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                return None

        # It reads, so it has waited for its answer in vain.
        fd = self.wait_for("cat", reader)
        os.kill(process.pid, signal.SIGCONT)
        # Nobody but the host knows it: it has no events, and a profile without any could be true.
        left_out = self.wait_for("what is said of it", lambda: self.left_out(process))
        listed = subprocess.run([str(harness.MEMLOG), "ps", "--json"], capture_output=True, env=self.environment(), check=True)
        rows = [row for row in json.loads(listed.stdout)["processes"] if row["name"] == "cat"]
        self.assertEqual([(row["recording"], row["note"]) for row in rows], [(False, "it started, but found no host in time")])
        os.close(fd)
        self.assertEqual(left_out, [("/cat", "it started, but found no host in time")])
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        report = self.exit_report(harness.Run(0, b"", "", process.memlog_folder))
        self.assertNotIn("cat", [entry["name"] for entry in report["processes"]])

    def test_who_was_killed_before_its_answer_is_said_to_have_ended(self):
        script = "mkfifo begin told; touch up; read -r line < begin; /bin/cat told & echo $!; wait; read -r line < begin"
        process = self.start_program("/bin/sh", "-c", script)
        os.kill(process.pid, signal.SIGSTOP)
        (self.folder / "begin").write_text("\n")
        pid = int(process.stdout.readline())
        self.wait_for("its Hello", lambda: self.waits_for_its_host(pid))
        os.kill(pid, signal.SIGKILL)
        self.wait_for("its end", lambda: not os.path.exists(f"/proc/{pid}"))  # sh waits for it
        os.kill(process.pid, signal.SIGCONT)
        (self.folder / "begin").write_text("\n")
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        report = self.exit_report(harness.Run(0, b"", "", process.memlog_folder))
        told = [other["reason"] for other in report["dump"]["not_profiled"] if other["pid"] == pid]
        self.assertEqual(told, ["it ended before memlog had answered it"])
        self.assertNotIn("", [entry["name"] for entry in report["processes"]])

    def waits_for_its_host(self, pid):
        """cat, which has not opened what it is to read; by poll."""
        told = pathlib.Path(f"/proc/{pid}")
        return (told / "comm").read_text() == "cat\n" and "libmemlog" in (told / "maps").read_text() and (told / "syscall").read_text().startswith("7 ")

    def left_out(self, process):
        """What a dump of now says of whom it leaves out."""
        answer = subprocess.run(
            [str(harness.MEMLOG), "dump"], capture_output=True, text=True, env=self.environment(), check=True, timeout=harness.TIMEOUT
        )
        entries = self.report(answer.stdout.strip())["dump"]["not_profiled"]
        return [(entry["path"][entry["path"].rindex("/"):], entry["reason"]) for entry in entries if "/" in entry["path"]]

    def test_more_children_than_a_stopped_host_has_room_for_are_forked_without_waiting_and_said_to_be_missing(self):
        process = self.start_program(PYTHON, "-c", FORKS, "700")
        os.kill(process.pid, signal.SIGSTOP)
        begun = time.monotonic()
        (self.folder / "go").touch()
        self.assertEqual(process.stdout.readline(), b"done\n")
        self.assertLess(time.monotonic() - begun, HOST_BOUND_S + SLACK_S, "one waits, the others do not")
        os.kill(process.pid, signal.SIGCONT)
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        report = self.exit_report(harness.Run(0, b"", "", process.memlog_folder))
        self.assertFalse(report["dump"]["complete"])
        parent = next(entry for entry in report["processes"] if not entry["inherited_blocks"])
        self.assertIn("the host could not be asked", parent["trouble"])
        # What did find room is whole.
        children = [entry for entry in report["processes"] if entry["inherited_blocks"]]
        self.assertGreater(len(children), 50)
        self.assertTrue(all(entry["complete"] and entry["total_bytes"] >= 50 * 1000 for entry in children))


class Overrun(harness.Case):
    PAIRS = 400_000

    def flood(self):
        """The program, ready to begin."""
        for old in self.truth_folder.iterdir():
            old.unlink()
        process = self.memlog_start(harness.PROGRAMS / "oracle" / "flood", str(self.PAIRS))
        self.wait_for("the program", lambda: truth.load(self.truth_folder))
        return process

    def end(self, process):
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        return self.exit_report(harness.Run(0, b"", "", process.memlog_folder))

    def truth_of(self, label):
        return [one for one in truth.load(self.truth_folder) if one["label"] == label]

    def test_a_pipe_that_nobody_reads_costs_a_bounded_wait_and_counted_events(self):
        process = self.flood()
        (self.truth_folder / "go").touch()
        undisturbed = self.end(process)["processes"][0]
        self.assertEqual(harness.lost_too_early(undisturbed), 0)
        produced = undisturbed["events"] + undisturbed["lost_events"]

        process = self.flood()
        service = harness.service_of(process.pid)
        os.kill(service, signal.SIGSTOP)
        begun = time.monotonic()
        (self.truth_folder / "go").touch()
        self.wait_for("the program's end", lambda: self.truth_of("end"))
        self.assertLess(time.monotonic() - begun, PIPE_BOUND_S + SLACK_S)
        os.kill(service, signal.SIGCONT)
        report = self.end(process)
        entry = report["processes"][0]
        self.assertFalse(report["dump"]["complete"])
        self.assertGreater(entry["lost_events"], 0)
        self.assertEqual(entry["events"] + entry["lost_events"], produced, "received and lost are what was produced")
        self.assertIn("pipe", entry["trouble"])

    def paused(self):
        """A flood whose service pauses for a quarter of the bound, and for as long as the machine adds to that."""
        process = self.flood()
        service = harness.service_of(process.pid)
        os.kill(service, signal.SIGSTOP)
        (self.truth_folder / "go").touch()
        time.sleep(PIPE_BOUND_S / 4)
        os.kill(service, signal.SIGCONT)
        return self.end(process)

    def test_a_service_that_pauses_for_less_than_the_bound_costs_nothing(self):
        # A machine that stands still makes another pause of it: the program's own clock tells which.
        for _ in range(10):
            report = self.paused()
            if not harness.stayed_full(report["processes"][0]):
                break
        self.assertTrue(report["dump"]["complete"], report["processes"][0]["trouble"])
        self.assertEqual(truth.compare(report, self.truth_of("end")), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
