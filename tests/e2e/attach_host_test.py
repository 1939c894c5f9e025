"""`memlog attach`, `start` and `stop` of processes that were not started under memlog: what the host does, with a stand-in for the tracer."""
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

import attaching
import harness

ATTACHED = "21 functions hooked, 3 threads stopped for 1.5 ms at most"


class Attach(attaching.Case):
    def test_a_process_is_recorded_for_as_long_as_asked_and_then_left(self):
        target = self.target()
        began = time.monotonic()
        answer = self.attach("--duration=0.5", target.pid)
        self.assertEqual((answer.returncode, answer.stdout), (0, ""), answer.stderr)
        self.assertGreater(time.monotonic() - began, 0.5)
        self.assertIn(f"attached to python3 ({target.pid}): {ATTACHED}", answer.stderr)
        self.assertIn("next: ", answer.stderr)
        self.assertEqual(
            [line.split()[:2] for line in self.log()],
            [["attach", str(target.pid)], ["finished", "attach"], ["detach", str(target.pid)], ["finished", "detach"]],
        )
        # Dormant until the tracer has finished, then on in a clean profile, off again before the detach.
        pages = self.pages(target)
        self.assertEqual([page[0] for page in pages[:2]], [0, 1])
        self.assertEqual(pages[0][1], 0, "a child that is forked meanwhile records nothing")
        self.assertEqual(pages[1][2], 1)
        self.assertEqual(pages[-1][:2], (0, 0))
        (entry,) = self.exit_dump()["processes"]
        self.assertEqual((entry["pid"], entry["state"], entry["from_startup"]), (target.pid, "running", False))
        text = self.command("report", next(self.dumps.glob("*.exit.pftrace"))).stdout
        self.assertIn("what it had allocated before it was recorded is not known", text)
        self.assertIsNone(target.poll())

    def test_processes_with_less_private_memory_are_left_alone(self):
        """As heapprofd's min_anonymous_memory_kb: it is looked at once, as they run now."""
        small = self.target()
        self.target_text = self.target_text.replace("kept = []", "kept = [b'x' * (64 << 20)]", 1)
        large = self.target()
        answer = self.attach("--duration=0.3", "--min-private=48M", small.pid, large.pid)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("1 of 2 processes have less than 48.0 MiB of private memory, and are not recorded", answer.stderr)
        self.assertEqual({line.split()[1] for line in self.log() if line.startswith("attach")}, {str(large.pid)})
        (entry,) = self.exit_dump()["processes"]
        self.assertEqual(entry["pid"], large.pid)
        answer = self.command("attach", "--min-private=1T", "-o", self.folder / "none", small.pid, large.pid)
        self.assertEqual(answer.returncode, 125)
        self.assertIn("2 of 2 processes have less than 1.0 TiB of private memory", answer.stderr)
        self.assertFalse((self.folder / "none").exists())

    def test_it_stays_dormant_until_the_tracer_has_finished(self):
        target = self.target()
        self.plan(attach="wait")
        process = self.begin(target.pid)
        self.wait_for("its Hello", lambda: self.pages(target))
        row = self.wait_for("its row", lambda: [row for row in self.ps() if row["pid"] == target.pid])[0]
        self.assertFalse(row["recording"])
        answer = self.command("start", target.pid)
        self.assertIn("memlog is just attaching to it", answer.stderr)
        time.sleep(0.3)  # several looks at it
        self.assertEqual(self.pages(target), [(0, 0, 0)])
        (self.bin / "go").touch()
        self.wait_for("the recording", lambda: self.pages(target)[-1][0] == 1)
        self.assertEqual(self.end(process), "")
        self.assertEqual(process.returncode, 0)

    def ps(self):
        answer = self.command("ps", "--json")
        return json.loads(answer.stdout)["processes"] if answer.returncode == 0 else []

    def test_the_end_of_the_last_process_ends_the_recording(self):
        targets = [self.target(), self.target()]
        process = self.begin(*(target.pid for target in targets))
        self.wait_for("both", lambda: self.said("^C ends the recording"))
        targets[0].kill()
        targets[0].wait()
        time.sleep(0.3)
        self.assertIsNone(process.poll())
        targets[1].kill()
        targets[1].wait()
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        self.assertEqual(sorted(entry["state"] for entry in self.exit_dump()["processes"]), ["killed", "killed"])

    def test_a_process_that_executes_another_program_is_not_told_under_its_name(self):
        target = self.target()
        process = self.begin(target.pid)
        self.wait_for("the recording", lambda: self.said("^C ends"))
        self.tell(target, b"exec")
        self.wait_for("its exec", lambda: any(row["name"] == "sleep" for row in self.ps()))
        self.assertIsNone(process.poll(), "the process has not ended")
        target.kill()
        target.wait()
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        report = self.exit_dump()
        (entry,) = report["processes"]
        self.assertEqual((entry["name"], entry["state"]), ("python3", "replaced"))
        self.assertEqual([(other["pid"], other["name"]) for other in report["unrecorded"]], [(target.pid, "sleep")])

    def test_children_are_listed_and_those_from_before_say_so(self):
        target = self.target()
        self.tell(target, b"child")
        before = self.wait_for("its child", lambda: harness.children_of(target.pid))
        time.sleep(0.05)  # a tick of the kernel's
        process = self.begin(target.pid)
        self.wait_for("the recording", lambda: self.said("^C ends"))
        self.tell(target, b"child")
        rows = self.wait_for("both", lambda: [row for row in self.ps() if row["pid"] != target.pid and len(self.ps()) == 3])
        notes = {row["pid"]: row["note"] for row in rows}
        self.assertIn("it ran already when memlog attached to its parent", notes.pop(before[0]))
        self.assertEqual(list(notes.values()), ["no allocation of it has come to memlog since it was forked"])
        later = next(iter(notes))
        self.end(process)
        # The later one has its parent's hooked functions, and is left as well.
        self.assertEqual(sorted(line.split()[1] for line in self.log() if line.startswith("detach")), sorted(map(str, (target.pid, later))))
        for child in (before[0], later):
            os.kill(child, signal.SIGKILL)

    def test_a_name_means_every_process_of_mine_but_not_who_asks(self):
        targets = [self.target("--kind=attach-me"), self.target("--kind=attach-me"), self.target("--kind=other")]
        answer = self.attach("--duration=0.1", "--name=--kind=attach-m[e]$")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(
            {line.split()[1] for line in self.log() if line.startswith("attach")}, {str(target.pid) for target in targets[:2]}
        )
        answer = self.attach("--duration=0.1", "--name=--kind=never-there$")
        self.assertEqual(answer.returncode, 125)
        self.assertIn("no process of yours has the name --kind=never-there$", answer.stderr)

    def test_dumps_go_into_a_folder_of_the_process(self):
        target = self.target()
        words = [str(self.bin / "memlog"), "attach", "-q", "--no-page", "--duration=0.1", str(target.pid)]
        answer = subprocess.run(words, env=self.environment(), cwd=self.folder, capture_output=True, text=True, timeout=harness.TIMEOUT, check=False)
        self.assertEqual((answer.returncode, answer.stdout, answer.stderr), (0, "", ""))
        self.assertEqual([path.name for path in self.folder.glob(f"memlog.python3.{target.pid}/*")], ["0001.exit.pftrace"])


class Refused(attaching.Case):
    def assert_refused(self, pid, *words):
        answer = self.attach("--duration=0.1", pid)
        self.assertEqual((answer.returncode, answer.stdout), (125, ""), answer.stderr)
        for part in words:
            self.assertIn(part, answer.stderr)
        self.assertFalse(self.dumps.exists())
        return answer

    def test_nobody_is_traced_where_proc_says_that_it_cannot_be(self):
        gone = self.target()
        gone.kill()
        gone.wait()
        self.assert_refused(gone.pid, f"{gone.pid} is not recorded: there is no such process")
        self.assert_refused(2 if pathlib.Path("/proc/2/comm").read_text() == "kthreadd\n" else gone.pid, "is not recorded: ")
        zombie = subprocess.Popen(["/bin/true"])
        self.wait_for("a zombie", lambda: pathlib.Path(f"/proc/{zombie.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        self.assert_refused(zombie.pid, "it has ended, and waits for its parent to take note")
        zombie.wait()
        thread = next(task for task in os.listdir(f"/proc/{self.threaded()}/task") if int(task) != self.thread_of)
        self.assert_refused(thread, f"it is a thread of process {self.thread_of}: name that one")
        traced = subprocess.Popen([attaching.PYTHON, "-c", "import ctypes, time; ctypes.CDLL(None).ptrace(0, 0, 0, 0); print(flush=True); time.sleep(1000)"], stdout=subprocess.PIPE)
        self.addCleanup(traced.stdout.close)
        self.addCleanup(traced.wait)
        self.addCleanup(traced.kill)
        traced.stdout.readline()
        self.assert_refused(traced.pid, f"({os.getpid()}) traces it already, and a process has one tracer")
        self.assertEqual(self.log(), [], "no tracer was started")

    def threaded(self):
        code = "import threading, time; threading.Thread(target=time.sleep, args=(1000,)).start(); print(flush=True)"
        process = subprocess.Popen([attaching.PYTHON, "-c", code], stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.stdout.readline()
        self.thread_of = process.pid
        return process.pid

    def test_what_memlog_is_in_already_is_refused(self):
        program = self.memlog_start("sleep", "1000")
        pid = self.wait_for("the program", lambda: [
            child for child in harness.children_of(program.pid)
            if harness.comm_of(child) == "sleep" and "libmemlog.so" in pathlib.Path(f"/proc/{child}/maps").read_text()
        ])[0]
        self.assert_refused(pid, "another memlog has it: a process has one profiler at a time")

    def test_memlog_itself_is_refused(self):
        target = self.target()
        host = self.begin(target.pid)
        self.wait_for("the recording", lambda: self.said("^C ends"))
        answer = self.attach(host.pid)
        self.assertEqual(answer.returncode, 125)
        self.assertIn("it is a part of memlog itself", answer.stderr)
        self.end(host)

    def test_a_never_list_forbids_it(self):
        target = self.target("--kind=secret")
        (self.folder / "never").write_text("# not these\n--kind=secret\n")
        answer = self.attach(f"--never-list={self.folder / 'never'}", target.pid)
        self.assertEqual(answer.returncode, 125)
        self.assertIn(f"never recorded: line 2 of {self.folder / 'never'}", answer.stderr)
        self.assertEqual(self.log(), [])

    def test_the_tracers_own_reason_is_shown_as_it_is(self):
        target = self.target()
        self.plan(attach="refuse it is statically linked and has no symbols: build it with them")
        self.assert_refused(target.pid, f"{target.pid} is not recorded: it is statically linked and has no symbols: build it with them")
        self.plan(attach="late refuse no function of its allocator can be hooked")
        answer = self.attach("--duration=0.1", target.pid)
        self.assertEqual(answer.returncode, 125)
        self.assertIn("no function of its allocator can be hooked", answer.stderr)
        self.wait_for("its page", lambda: self.pages(target))
        self.assertNotIn(1, [page[0] for page in self.pages(target)])
        self.assertIsNone(target.poll())

    def test_one_that_cannot_be_recorded_does_not_keep_the_others_from_it(self):
        target = self.target()
        answer = self.attach("--duration=0.1", 2**22 + 5, target.pid)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("there is no such process", answer.stderr)
        self.assertIn(ATTACHED, answer.stderr)

    def test_without_the_tracer_there_is_a_reason(self):
        target = self.target()
        (self.bin / "memlog-tracer").unlink()
        self.assert_refused(target.pid, "memlog-tracer is neither in")

    def test_options_that_say_which_processes_of_a_program_are_refused_with_words(self):
        for word in ("--only=x", "--never=x", "--end-with-root", "--memlog=all"):
            answer = self.attach(word, os.getpid())
            self.assertEqual(answer.returncode, 2)
            self.assertIn(f"{word.partition('=')[0]} is an option of 'memlog run'", answer.stderr)
        answer = self.attach()
        self.assertEqual(answer.returncode, 2)
        self.assertIn("which process?", answer.stderr)
        for wrong in ("x", "0", "-1"):
            answer = self.attach(f"--duration={wrong}", os.getpid())
            self.assertEqual(answer.returncode, 2)
            self.assertIn(f"--duration={wrong}: ", answer.stderr)


class Trouble(attaching.Case):
    def test_a_tracer_that_dies_is_followed_by_one_that_restores(self):
        target = self.target()
        for how in ("die", "die late", "garbage"):
            self.plan(attach=how)
            answer = self.attach("--duration=0.1", target.pid)
            self.assertEqual(answer.returncode, 125, how)
            self.assertIn(f"{target.pid} is not recorded: memlog-tracer died at work; another one has restored the process", answer.stderr)
        self.assertEqual(sum(line.startswith("repair") for line in self.log()), 3)
        self.assertNotIn(1, [page[0] for page in self.pages(target)])
        self.assertIsNone(target.poll())

    def test_who_cannot_be_restored_is_told_with_what_to_do(self):
        target = self.target()
        self.plan(attach="die", repair="die")
        answer = self.attach("--duration=0.1", target.pid)
        self.assertEqual(answer.returncode, 125)
        self.assertIn(f"'memlog doctor --repair {target.pid}' restores the process", answer.stderr)
        self.assertEqual(sum(line.startswith("repair") for line in self.log()), 1, "once")

    def test_a_tracer_that_hangs_is_ended_and_the_host_goes_on_serving(self):
        target = self.target()
        self.plan(attach="hang")
        process = self.begin(target.pid)
        self.wait_for("the tracer", self.log)
        began = time.monotonic()
        self.assertEqual(self.command("ps").returncode, 0)
        self.assertLess(time.monotonic() - began, 15)
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 125)
        self.assertTrue(self.said("memlog-tracer took longer than it may and was ended; another one has restored the process"))

    def test_a_connection_of_another_process_is_not_served(self):
        target = self.target()
        self.plan(attach="stranger")
        answer = self.attach("--duration=0.1", target.pid)
        self.assertEqual(answer.returncode, 125)
        self.assertIn(f"instead of {target.pid}: it is closed", answer.stderr)
        self.assertIn(f"{target.pid} is not recorded: memlog was put into it, but no word of it has come", answer.stderr)
        self.assertTrue(self.log()[-1].startswith("finished detach"))
        self.plan(attach="another pid")
        answer = self.attach("--duration=0.1", target.pid)
        self.assertEqual(answer.returncode, 125)
        self.assertIn("memlog-tracer died at work", answer.stderr)
        self.assertIsNone(target.poll())

    def test_functions_that_could_not_be_hooked_make_the_profile_incomplete(self):
        target = self.target()
        self.plan(attach="partly free: a call is among its first bytes")
        answer = self.attach("--duration=0.1", target.pid)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        (entry,) = self.exit_dump()["processes"]
        self.assertEqual(
            (entry["complete"], entry["trouble"]), (False, "not all of its allocator is hooked: free: a call is among its first bytes")
        )

    def test_a_detach_that_fails_is_told_with_what_to_do(self):
        target = self.target()
        self.plan(detach="refuse it is stopped by a debugger")
        answer = self.attach("--duration=0.1", target.pid)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn(f"python3 ({target.pid}): it is recorded no more, but memlog is still in it", answer.stderr)
        self.assertEqual(self.pages(target)[-1][:2], (0, 0))

    def test_a_second_interrupt_gives_up_the_dump_but_not_the_detach(self):
        target = self.target()
        process = self.begin(target.pid)
        self.wait_for("the recording", lambda: self.said("^C ends"))
        service = harness.service_of(process.pid)
        os.kill(service, signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        self.assertTrue(self.said("ended without a final dump"))
        self.assertTrue(any(line.startswith("finished detach") for line in self.log()))

    def test_many_are_attached_to_a_few_at_a_time(self):
        targets = [self.target() for _ in range(10)]
        answer = self.attach("--duration=0.1", *(target.pid for target in targets))
        self.assertEqual(answer.returncode, 0, answer.stderr)
        at_work, most = 0, 0
        for line in self.log():
            at_work += -1 if line.startswith("finished") else 1
            most = max(most, at_work)
        self.assertLessEqual(most, 4)
        self.assertEqual(sum(line.startswith("finished detach") for line in self.log()), 10)


class Start(attaching.Case):
    def host(self):
        process = self.begin(command=[str(self.bin / "memlog"), "run", "--no-page", "-o", str(self.dumps), "--", "sleep", "1000"])
        self.wait_for("the host", lambda: self.command("ps").returncode == 0 and "sleep" in self.command("ps").stdout)
        return process

    def finish(self, host):
        (sleep,) = [child for child in harness.children_of(host.pid) if harness.comm_of(child) == "sleep"]
        os.kill(sleep, signal.SIGTERM)
        host.wait(timeout=harness.TIMEOUT)
        return self.exit_dump()

    def test_start_attaches_stop_detaches_and_start_attaches_again(self):
        target = self.target()
        host = self.host()
        for turn in (1, 2):
            answer = self.command("start", target.pid)
            self.assertEqual((answer.returncode, answer.stdout), (0, f"{target.pid} started\n"), answer.stderr)
            self.wait_for("what its control page says", lambda: self.pages(target)[-1:] and self.pages(target)[-1][0] == 1)
            if turn == 1:
                answer = self.command("stop", "--json", target.pid)
                self.assertEqual(json.loads(answer.stdout)["processes"], [{"pid": target.pid, "done": True, "trouble": ""}])
                self.assertEqual(self.log()[-1].split()[:2], ["finished", "detach"])
                self.assertIn("memlog has detached from it", self.command("stop", target.pid).stderr)
        report = self.finish(host)
        entries = [entry for entry in report["processes"] if entry["pid"] == target.pid]
        # Each time is an entry of its own, with a profile of its own.
        self.assertEqual([(entry["name"], entry["from_startup"]) for entry in entries], [("python3", False)] * 2)
        self.assertEqual(sum(line.startswith("finished detach") for line in self.log()), 2, "the end detaches, too")
        self.assertIsNone(target.poll())

    def test_a_hello_that_comes_when_its_tracer_is_dead_and_repaired_is_no_attachment(self):
        """The borrowed thread was preempted between its connection and its Hello."""
        target = self.target()
        host = self.host()
        self.plan(attach="die first")
        self.assertIn("another one has restored the process", self.command("start", target.pid).stderr)
        (self.bin / "go").touch()
        self.wait_for("the answer to its Hello", (self.bin / "answered").exists)
        self.plan()
        answer = self.command("start", target.pid)
        self.assertEqual((answer.returncode, answer.stdout), (0, f"{target.pid} started\n"), answer.stderr)
        self.finish(host)

    def test_a_name_goes_to_the_runs_own_first(self):
        target = self.target("--kind=outside")
        host = self.host()
        answer = self.command("start", "--name=--kind=outsid[e]$")
        self.assertEqual((answer.returncode, answer.stdout), (0, f"{target.pid} started\n"), answer.stderr)
        other = self.target("sleep-too")
        self.command("stop", [row["pid"] for row in json.loads(self.command("ps", "--json").stdout)["processes"] if row["name"] == "sleep"][0])
        answer = self.command("start", "--name=^sleep|sleep-to[o]$")
        self.assertNotIn(str(other.pid), answer.stdout, "the run has one of that name")
        self.finish(host)

    def test_a_refusal_is_the_outcome(self):
        host = self.host()
        answer = self.command("start", "--json", 2**22 + 5)
        self.assertEqual(answer.returncode, 125)
        (outcome,) = json.loads(answer.stdout)["processes"]
        self.assertEqual((outcome["done"], outcome["trouble"]), (False, "there is no such process"))
        answer = self.command("start", host.pid)
        self.assertIn("it is a part of memlog itself", answer.stderr)
        self.finish(host)

    @unittest.skipUnless(os.geteuid() == 0, "another user's process is refused to ordinary users")
    def test_an_ordinary_user_is_told_what_only_others_may(self):
        mine = self.target()
        self.folder.chmod(0o755)
        for folder in (self.bin, self.folder / "run"):
            folder.chmod(0o755)
        words = [str(self.bin / "memlog"), "attach", "--no-page", str(mine.pid)]
        answer = subprocess.run(words, cwd="/tmp", env=self.environment(XDG_RUNTIME_DIR=""), capture_output=True, text=True, timeout=60, check=False, user=65534, group=65534, extra_groups=[])
        self.assertEqual(answer.returncode, 125)
        self.assertIn("it is another user's (0): attach as that user, or as root", answer.stderr)
        for code, reason in (
            ("import ctypes, time; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); print(flush=True); time.sleep(1000)", "it forbids to be looked at"),
            (
                "import ctypes, struct, time; libc = ctypes.CDLL(None); libc.prctl(38, 1, 0, 0, 0); one = ctypes.create_string_buffer("
                "struct.pack('HBBI', 6, 0, 0, 0x7fff0000)); print(libc.prctl(22, 2, struct.pack('HxxxxxxP', 1, ctypes.addressof(one)), 0, 0), "
                "flush=True); time.sleep(1000)", "seccomp",
            ),
        ):
            process = subprocess.Popen([attaching.PYTHON, "-c", code], stdout=subprocess.PIPE, user=65534, group=65534, extra_groups=[])
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            process.stdout.readline()
            words[-1] = str(process.pid)
            answer = subprocess.run(words, cwd="/tmp", env=self.environment(XDG_RUNTIME_DIR=""), capture_output=True, text=True, timeout=60, check=False, user=65534, group=65534, extra_groups=[])
            self.assertEqual(answer.returncode, 125)
            self.assertIn(reason, answer.stderr)


class Doctor(attaching.Case):
    def findings(self, *words):
        answer = self.command("doctor", "--json", *words)
        return answer.returncode, {entry["check"]: entry for entry in json.loads(answer.stdout)["findings"]}

    def test_a_repair_tells_its_outcome(self):
        target = self.target()
        code, findings = self.findings("--repair", target.pid)
        self.assertIn(f"process {target.pid} is as it was without memlog", str(findings["repair"]))
        self.assertEqual([line.split()[0] for line in self.log()], ["repair", "finished"])
        self.plan(repair="refuse a debugger has stopped it")
        code, findings = self.findings("--repair", target.pid)
        self.assertEqual(code, 1)
        self.assertIn("is not repaired: a debugger has stopped it", str(findings["repair"]))
        self.plan(repair="gone")
        self.assertIn("it has ended", str(self.findings("--repair", target.pid)[1]["repair"]))
        self.assertIn("there is no such process", str(self.findings("--repair", 2**22 + 5)[1]["repair"]))

    def test_a_process_is_told_whether_it_can_be_attached_to_and_is_left_alone(self):
        target = self.target()
        code, findings = self.findings(target.pid)
        self.assertIn(f"'memlog attach {target.pid}' records it from then on", str(findings["process"]))
        self.assertEqual(self.log(), [])


if __name__ == "__main__":
    unittest.main()
