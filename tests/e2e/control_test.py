"""`memlog start` and `memlog stop`: what is recorded is what was allocated in between."""
import json
import os
import pathlib
import subprocess
import unittest

import harness
from restart_test import PHASES, PYTHON, sized

# A child that has walled itself in as a browser's renderer does: no files, no sockets, no pipes, no shared memory, no
# processes (openat, socket, connect, pipe, pipe2, memfd_create, clone, clone3, fork, execve answer EPERM). It allocates at
# its parent's word, told by a pipe made before.
SANDBOXED = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
word, answer = os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
    libc.free(libc.malloc(1))
    denied = (257, 41, 42, 22, 293, 319, 56, 435, 57, 59)
    lines = [(0x20, 0, 0, 0)]  # the call's number
    lines += [(0x15, len(denied) - i, 0, number) for i, number in enumerate(denied)]
    lines += [(0x06, 0, 0, 0x7fff0000), (0x06, 0, 0, 0x00050001)]  # permitted; EPERM
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(code))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:
        os._exit(1)
    try:
        open("/proc/self/maps")
        os._exit(2)
    except OSError:
        pass
    while True:
        text = os.read(word[0], 1)
        if text in (b"", b"q"):
            os._exit(0)
        libc.malloc(600000)
        os.write(answer[1], b".")
open("child", "w").write(str(pid))
number = 0
while True:
    line = sys.stdin.readline().strip()
    os.write(word[1], line.encode() or b"q")
    if not line:
        os.wait()
        sys.exit(0)
    os.read(answer[0], 1)
    number += 1
    open(f"did{number}", "w").close()
"""


class Control(harness.Case):
    def command(self, *words):
        return subprocess.run(
            [str(harness.MEMLOG), *map(str, words)], env=self.environment(), capture_output=True, text=True, timeout=harness.TIMEOUT,
            check=False,
        )

    def begin(self, *options):
        process = self.memlog_start(PYTHON, "-c", PHASES, options=("-q", "--no-page", *options))
        self.wait_for("the first phase", lambda: (self.folder / "done0").exists())
        row = next(row for row in self.processes() if row["name"].startswith("python3") and row["state"] == "running")
        return process, row["pid"]

    def processes(self):
        return json.loads(self.command("ps", "--json").stdout)["processes"]

    def phase(self, number):
        (self.folder / f"go{number}").touch()
        self.wait_for(f"phase {number}", lambda: (self.folder / f"done{number}").exists())

    def finish(self, process):
        (self.folder / "end").touch()
        process.communicate(timeout=harness.TIMEOUT)
        self.assertEqual(process.returncode, 7)
        (dump,) = process.memlog_folder.glob("*.exit.pftrace")
        return self.report(dump)

    def test_manual_records_nothing_until_started_and_exactly_what_comes_then(self):
        process, pid = self.begin("--memlog=manual")
        self.phase(1)
        answer = self.command("start", pid)
        self.assertEqual((answer.returncode, answer.stdout), (0, f"{pid} started\n"), answer.stderr)
        self.phase(2)
        self.phase(3)
        report = self.finish(process)
        (root,) = report["processes"]
        self.assertFalse(root["from_startup"])
        self.assertTrue(root["complete"], root["trouble"])
        self.assertEqual(sized(root, 500000), (50 * 500003, 100 * 500002 + 100 * 500003))
        self.assertEqual(report["dump"]["gaps"], [])

    def test_stop_keeps_the_profile_as_it_was_at_that_moment(self):
        process, pid = self.begin()
        answer = self.command("stop", "--json", pid)
        self.assertEqual(json.loads(answer.stdout)["processes"], [{"pid": pid, "done": True, "trouble": ""}])
        (row,) = [row for row in self.processes() if row["pid"] == pid]
        self.assertFalse(row["recording"])
        self.assertIn("stopped", row["note"])
        self.phase(1)
        self.phase(2)
        report = self.finish(process)
        (root,) = [other for other in report["processes"] if other["pid"] == pid]
        self.assertEqual(sized(root, 500000), (50 * 500000, 100 * 500000))
        self.assertFalse(root["complete"])
        (gap,) = report["dump"]["gaps"]
        self.assertEqual((gap["id"], gap["reason"]), (root["id"], "its recording was stopped"))
        self.assertLess(gap["from"], gap["to"])

    def test_start_again_begins_a_clean_profile_as_often_as_one_likes(self):
        process, pid = self.begin()
        number = 0
        for _ in range(3):
            self.assertEqual(self.command("stop", pid).returncode, 0)
            number += 1
            self.phase(number)
            self.assertEqual(self.command("start", pid).returncode, 0)
            number += 1
            self.phase(number)
        report = self.finish(process)
        (root,) = [other for other in report["processes"] if other["pid"] == pid]
        self.assertEqual(sized(root, 500000), (50 * 500006, 100 * 500006))
        self.assertTrue(root["complete"], root["trouble"])
        self.assertFalse(root["from_startup"])
        self.assertEqual(report["dump"]["gaps"], [])
        for stack in root["stacks"]:
            self.assertTrue(all(frame["module"] for frame in stack["frames"]), stack)

    def test_start_reaches_a_child_that_can_open_nothing_any_more(self):
        words, folder = self.memlog_command([PYTHON, "-c", SANDBOXED], ["-q", "--no-page", "--memlog=manual"])
        process = subprocess.Popen(words, cwd=self.folder, env=self.environment(), stdin=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.wait_for("the child", lambda: (self.folder / "child").exists() and (self.folder / "child").read_text())
        pid = int((self.folder / "child").read_text())
        self.wait_for("the child's report", lambda: any(row["pid"] == pid for row in self.processes()))

        def allocate(number):
            process.stdin.write("a\n")
            process.stdin.flush()
            self.wait_for("the allocation", lambda: (self.folder / f"did{number}").exists())

        allocate(1)
        self.assertEqual(self.command("start", pid).returncode, 0)
        allocate(2)
        allocate(3)
        self.assertEqual(self.command("stop", pid).returncode, 0)
        allocate(4)
        process.stdin.write("\n")
        process.stdin.close()
        self.assertEqual(process.wait(harness.TIMEOUT), 0)
        (dump,) = folder.glob("*.exit.pftrace")
        (child,) = self.report(dump)["processes"]
        self.assertEqual((child["pid"], sized(child, 600000)), (pid, (1200000, 1200000)))

    def test_what_cannot_be_started_or_stopped_is_said(self):
        process, pid = self.begin()
        answer = self.command("start", pid)
        self.assertEqual((answer.returncode, answer.stdout), (125, ""))
        self.assertIn(f"{pid} is not started: it is being recorded already", answer.stderr)
        answer = self.command("stop", 1, "--json")
        self.assertEqual(answer.returncode, 125)
        self.assertFalse(json.loads(answer.stdout)["processes"][0]["done"])
        self.assertEqual(self.command("stop", pid).returncode, 0)
        self.assertIn("it is not being recorded", self.command("stop", pid).stderr)
        for words in (["start"], ["stop", "x"], ["start", "--jsn", "1"], ["start", "--memlog-stack-mode=odd", "1"]):
            self.assertEqual(self.command(*words).returncode, 2, words)
        self.finish(process)

    def test_thread_names_can_be_had_for_one_process_alone(self):
        process, pid = self.begin("--memlog=manual")
        self.assertEqual(self.command("start", "--memlog-stack-mode=native-with-thread-names", pid).returncode, 0)
        self.phase(1)
        report = self.finish(process)
        (root,) = report["processes"]
        self.assertTrue(all(stack["thread"] == "python3" for stack in root["stacks"] if stack["total_bytes"] > 400000))
        self.assertTrue([stack for stack in root["stacks"] if stack["thread"] == "python3"])

    def test_a_stopped_process_stays_stopped_when_another_service_takes_over(self):
        process, pid = self.begin()
        self.assertEqual(self.command("stop", pid).returncode, 0)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        (service,) = [int(child) for child in children
                      if harness.comm_of(child).startswith("memlog-service")]
        os.kill(service, 9)
        self.wait_for("the successor", lambda: self.command("dump").returncode == 0)
        self.phase(1)
        self.assertEqual(self.command("start", pid).returncode, 0)
        self.phase(2)
        report = self.finish(process)
        (root,) = [other for other in report["processes"] if other["pid"] == pid]
        self.assertEqual(sized(root, 500000), (50 * 500002, 100 * 500002))


if __name__ == "__main__":
    unittest.main(verbosity=2)
