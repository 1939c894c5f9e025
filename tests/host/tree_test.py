"""`memlog run` with a stand-in client and service: who is registered, in which role, how each ended, what is dumped.

The stand-ins lie in a folder of their own beside a copy of memlog, so that it finds them instead of the real ones.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

OUT = pathlib.Path(os.environ.get("MEMLOG_TEST_OUT", pathlib.Path(__file__).resolve().parents[2] / "out"))
TAKEN_OVER = "another one has taken over"
UNTIL_GO = "while [ ! -e go ]; do sleep 0.02; done"
TIMEOUT = 120  # far more than any of these takes on a loaded machine
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
BROWSER, RENDERER, GPU, UTILITY, OTHER = range(5)
RUNNING, EXITED, KILLED, REPLACED = range(4)


def read_dump(path):
    """The stand-in service's text: a list of clients, a list of unprofiled programs."""
    clients, unprofiled = [], []
    for line in path.read_text().splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "client":
            fields, _, command = rest.partition(" line=")
            client = dict(field.split("=", 1) for field in fields.split(" "))
            client = {key: int(value) if re.fullmatch(r"-?\d+", value) else value for key, value in client.items()}
            client["line"] = command
            clients.append(client)
        elif kind == "unprofiled":
            unprofiled.append(rest)
    return clients, unprofiled


class Bench(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="host-test."))
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copy(OUT / "memlog", self.folder / "memlog")
        shutil.copy(OUT / "host_fake_service", self.folder / "memlog-service")
        shutil.copy(OUT / "libhost_fake_client.so", self.folder / "libmemlog.so")
        self.memlog = str(self.folder / "memlog")
        self.work = self.folder / "work"
        self.work.mkdir()
        runtime = self.folder / "runtime"
        runtime.mkdir(mode=0o700)
        self.sockets = runtime / "memlog"  # of this test's hosts alone
        self.environment = {**ENVIRONMENT, "XDG_RUNTIME_DIR": str(runtime)}
        self.hosts = []  # their pids, which name their folders

    def assert_clean(self):
        folders = [path for pid in self.hosts for path in pathlib.Path("/tmp").glob(f"memlog.{pid}.*")]
        self.assertEqual(folders, [], "nothing is left behind")
        self.assertEqual(list(self.sockets.glob("*")), [], "nothing is left behind")

    def remove_folder_of(self, pid):
        """The folder of a host that is about to be killed, by one of its program's processes; gone after the test."""
        environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        (path,) = [entry for entry in environment if entry.startswith(b"MEMLOG_SOCKET=")]
        self.addCleanup(shutil.rmtree, pathlib.Path(os.fsdecode(path.partition(b"=")[2])).parent)

    def run_memlog(self, *program, options=(), check_clean=True):
        process = self.start(*program, options=options)
        out, err = process.communicate(timeout=TIMEOUT)
        result = subprocess.CompletedProcess(process.args, process.returncode, out, err)
        if check_clean:
            self.assert_clean()
        return result

    def clients(self, number=1, reason="exit"):
        return read_dump(self.work / "dumps" / f"{number:04}.{reason}.pftrace")[0]

    def start(self, *program, options=()):
        process = subprocess.Popen(
            [self.memlog, "run", "--no-page", "-o", "dumps", *options, "--", *program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=self.work,
        )
        self.hosts.append(process.pid)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def wait_for_member(self, wanted=lambda row: True):
        """The rows of ps, once one of them is wanted."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            result = subprocess.run([self.memlog, "ps", "--json"], capture_output=True, text=True, env=self.environment)
            if result.returncode == 0:
                processes = json.loads(result.stdout)["processes"]
                if any(map(wanted, processes)):
                    return processes
            time.sleep(0.05)
        states = {pid: pathlib.Path(f"/proc/{pid}/stat").read_text() for pid in self.hosts}
        self.fail(f"{result.stderr}; {states}")

    def wait_for_file(self, name):
        deadline = time.monotonic() + TIMEOUT
        while not (self.work / "dumps" / name).exists():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)


class Registration(Bench):
    def test_a_single_program_is_the_browser_and_its_exit_is_told(self):
        result = self.run_memlog("sh", "-c", "exit 3")
        self.assertEqual(result.returncode, 3, result.stderr)
        (client,) = self.clients()
        self.assertEqual((client["role"], client["state"], client["code"]), (BROWSER, EXITED, 3))
        self.assertEqual((client["stream"], client["forked"], client["startup"]), ("hello", 0, 1))
        self.assertEqual(client["line"], "sh -c exit 3")

    def test_forks_execs_and_kills_are_told_apart(self):
        result = self.run_memlog("bash", "-c", "(exit 5) ; true & wait; bash -c 'kill -9 $$'; exit 1")
        self.assertEqual(result.returncode, 1, result.stderr)
        clients = self.clients()
        root = clients[0]
        forked = [c for c in clients if c["forked"]]
        self.assertTrue(all(c["stream"] == "forked" and c["role"] == OTHER for c in forked))
        self.assertIn((EXITED, 5, root["id"]), [(c["state"], c["code"], c["parent"]) for c in forked])
        self.assertIn(9, [c["signal"] for c in clients if c["state"] == KILLED])
        replaced = [c for c in clients if c["state"] == REPLACED]
        self.assertTrue(replaced, "the forked shells that became true and bash")
        for client in replaced:
            (heir,) = [c for c in clients if c["parent"] == client["id"] and c["pid"] == client["pid"]]
            self.assertEqual(heir["forked"], 0)
        self.assertEqual(len({c["id"] for c in clients}), len(clients))

    def test_the_root_stays_the_root_through_exec(self):
        self.assertEqual(self.run_memlog("sh", "-c", "exec true", options=["--memlog=browser"]).returncode, 0)
        clients = self.clients()
        self.assertEqual([c["role"] for c in clients], [BROWSER, BROWSER])
        self.assertEqual([c["state"] for c in clients], [REPLACED, EXITED])

    def test_daemons_belong_to_the_run_and_their_exit_codes_are_known(self):
        script = "(setsid bash -c 'sleep 0.3; exit 7' </dev/null >/dev/null 2>&1 &); exit 2"
        self.assertEqual(self.run_memlog("bash", "-c", script).returncode, 2)
        self.assertIn(7, [c["code"] for c in self.clients()])

    def test_exit_codes_of_grandchildren_are_known_while_their_parent_lives(self):
        self.run_memlog("bash", "-c", "bash -c 'bash -c \"exit 11\"; bash -c \"exit 12\"; exit 13'; exit 14")
        codes = {c["code"] for c in self.clients() if c["state"] == EXITED}
        self.assertEqual(codes & {11, 12, 13, 14}, {11, 12, 13, 14})

    def test_even_the_shortest_childs_exit_code_is_known(self):
        release = [int(part) for part in re.match(r"(\d+)\.(\d+)", os.uname().release).groups()]
        if release < [6, 16]:
            self.skipTest("the kernel forgets the exit code of a process whose parent has waited for it")
        self.run_memlog("bash", "-c", "for i in {1..100}; do (exit 21); done; true")
        forked = [c for c in self.clients() if c["forked"]]
        self.assertEqual([c["code"] for c in forked], [21] * 100)

    def test_modes_and_roles_choose_the_processes(self):
        script = "for t in renderer gpu utility zygote; do bash -c 'sleep 0.05; true' x --type=$t; done; true"
        expected = {
            "all": {BROWSER, RENDERER, GPU, UTILITY, OTHER},
            "minimal": {BROWSER, GPU},
            "browser": {BROWSER},
            "gpu": {GPU},
            "all-renderers": {RENDERER},
            "all-utilities": {UTILITY},
            "utility-and-browser": {BROWSER, UTILITY},
            "manual": set(),
        }
        for mode, roles in expected.items():
            with self.subTest(mode):
                shutil.rmtree(self.work / "dumps", ignore_errors=True)
                self.assertEqual(self.run_memlog("bash", "-c", script, options=[f"--memlog={mode}"]).returncode, 0)
                self.assertEqual({c["role"] for c in self.clients() if not c["forked"]}, roles)

    def test_only_never_and_roles_by_regex(self):
        script = "bash -c 'true; true' worker 1; bash -c 'true; true' worker 2; true"
        options = ["--only=worker", "--never=2$", "--memlog-role=gpu=worker 1$"]
        self.assertEqual(self.run_memlog("bash", "-c", script, options=options).returncode, 0)
        execed = [c for c in self.clients() if not c["forked"]]
        self.assertIn(("bash -c true; true worker 1", GPU), [(c["line"], c["role"]) for c in execed])
        self.assertFalse([c for c in execed if c["line"].endswith("worker 2")])

    def test_a_zygotes_child_that_becomes_a_renderer_is_woken(self):
        script = (
            "import ctypes,os,time\n"
            "if os.fork() == 0:\n"
            "    time.sleep(0.05)\n"
            "    libc = ctypes.CDLL(None)\n"
            "    argv = ctypes.POINTER(ctypes.c_char_p)()\n"
            "    start = int(open('/proc/self/stat').read().rsplit(')', 1)[1].split()[45])\n"
            "    ctypes.memmove(start, b'zygote --type=renderer\\0', 23)\n"
            "    while not os.path.exists('end'):\n"
            "        time.sleep(0.01)\n"
            "    os._exit(0)\n"
            "os.wait()\n"
        )
        process = self.start("/usr/bin/python3", "-c", script, options=["--memlog=all-renderers"])
        self.wait_for_member(lambda row: row["role"] == "renderer" and row["recording"])
        (self.work / "end").touch()
        self.assertEqual(process.wait(TIMEOUT), 0)
        (client,) = self.clients()
        self.assertEqual((client["role"], client["forked"], client["startup"]), (RENDERER, 1, 0))

    def test_memory_of_the_processes_is_looked_up(self):
        process = self.start("sleep", "600")
        self.wait_for_member(lambda row: row["footprint_bytes"] > 0)
        process.terminate()
        process.wait(TIMEOUT)
        self.assertEqual(self.clients()[0]["footprint"], 1)

    def test_a_static_program_is_named_as_not_profiled(self):
        (self.work / "s.c").write_text("#include <unistd.h>\nint main(void) { usleep(50000); return 4; }\n")
        subprocess.run(["gcc", "-static", "-o", "s", "s.c"], cwd=self.work, check=True)
        self.assertEqual(self.run_memlog("./s").returncode, 4)
        clients, unprofiled = read_dump(self.work / "dumps" / "0001.exit.pftrace")
        self.assertEqual(clients, [])
        self.assertIn("statically linked", unprofiled[0])
        self.assertIn("path=./s", unprofiled[0])


class Dumps(Bench):
    def test_a_folder_with_dumps_is_never_overwritten_and_the_program_does_not_run(self):
        self.assertEqual(self.run_memlog("true").returncode, 0)
        first = (self.work / "dumps" / "0001.exit.pftrace").read_text()
        result = self.run_memlog("touch", "ran")
        self.assertEqual(result.returncode, 125)
        self.assertIn("holds dumps already", result.stderr)
        self.assertFalse((self.work / "ran").exists())
        self.assertEqual((self.work / "dumps" / "0001.exit.pftrace").read_text(), first)

    def test_the_folder_is_named_after_program_and_pid(self):
        result = subprocess.run(
            [self.memlog, "run", "--", "/bin/sh", "-c", "echo $$"],
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=self.work,
        )
        self.assertEqual([p.name for p in self.work.iterdir()], [f"memlog.sh.{result.stdout.strip()}"])

    def test_a_folder_that_cannot_be_made_is_named_and_the_program_does_not_run(self):
        result = self.run_memlog("touch", "ran", options=["-o", "no/such/place"])
        self.assertEqual(result.returncode, 125)
        self.assertIn("no/such/place", result.stderr)
        self.assertEqual(list(self.work.iterdir()), [])

    def test_a_program_that_does_not_exist_leaves_no_folder(self):
        self.assertEqual(self.run_memlog("./nothing").returncode, 127)
        self.assertEqual(list(self.work.iterdir()), [])

    def test_the_next_command_is_printed_and_quiet_silences_all(self):
        self.assertIn("report dumps/0001.exit.pftrace", self.run_memlog("true").stderr)
        shutil.rmtree(self.work / "dumps")
        self.assertEqual(self.run_memlog("true", options=["-q"]).stderr, "")

    def test_dumps_by_signal_and_interval(self):
        process = self.start("sleep", "600", options=["--dump-signal=USR1"])
        self.wait_for_member()
        process.send_signal(signal.SIGUSR1)
        self.wait_for_file("0001.signal.pftrace")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIMEOUT), 128 + signal.SIGTERM)
        self.assertEqual(self.clients(2)[0]["signal"], signal.SIGTERM)
        shutil.rmtree(self.work / "dumps")
        process = self.start("sleep", "600", options=["--dump-interval=0.5"])
        self.wait_for_file("0005.interval.pftrace")
        times = [(self.work / "dumps" / f"000{number}.interval.pftrace").stat().st_mtime for number in range(1, 6)]
        self.assertLess(min(later - earlier for earlier, later in zip(times, times[1:])), 0.9)
        process.terminate()
        process.wait(TIMEOUT)

    def test_end_with_root_dumps_running_processes(self):
        os.mkfifo(self.work / "go")
        process = self.start("bash", "-c", "sleep 600 </dev/null >/dev/null 2>&1 & read line <go", options=["--end-with-root"])
        left = [row["pid"] for row in self.wait_for_member(lambda row: row["name"] == "sleep") if row["name"] == "sleep"]
        self.addCleanup(os.kill, left[0], signal.SIGKILL)
        (self.work / "go").write_text("go\n")
        process.communicate(timeout=TIMEOUT)
        self.assertIn(RUNNING, [c["state"] for c in self.clients()])


class Commands(Bench):
    """Of a running host."""

    def test_ps_lists_the_processes_with_their_figures(self):
        process = self.start("sleep", "600")
        self.wait_for_member()
        (row,) = self.wait_for_member()  # the first may have come between the service's figures and ours
        self.assertEqual((row["name"], row["role"], row["state"]), ("sleep", "browser", "running"))
        self.assertTrue(row["recording"])
        self.assertEqual(row["live_bytes"], 1001)
        table = subprocess.run([self.memlog, "ps"], capture_output=True, text=True, env=self.environment)
        self.assertIn("sleep", table.stdout)
        process.terminate()
        process.wait(TIMEOUT)

    def test_dump_writes_and_prints_a_path(self):
        process = self.start("sleep", "600")
        (row,) = self.wait_for_member()
        result = subprocess.run(
            [self.memlog, "dump", str(row["pid"])], capture_output=True, text=True, env=self.environment, cwd="/"
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.strip(), str(self.work / "dumps" / "0001.manual.pftrace"))
        self.assertEqual(len(read_dump(pathlib.Path(result.stdout.strip()))[0]), 1)
        wrong = subprocess.run([self.memlog, "dump", "1"], capture_output=True, text=True, env=self.environment)
        self.assertEqual((wrong.returncode, wrong.stdout), (125, ""))
        self.assertIn("none of these processes is recorded", wrong.stderr)
        process.terminate()
        process.wait(TIMEOUT)

    def test_without_a_host_it_says_so_and_a_dead_hosts_socket_is_removed(self):
        result = subprocess.run([self.memlog, "ps"], capture_output=True, text=True, env=self.environment)
        self.assertEqual(result.returncode, 125)
        self.assertIn("no memlog of this user runs", result.stderr)
        process = self.start("sleep", "600")
        pid = self.wait_for_member()[0]["pid"]
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        self.remove_folder_of(pid)
        process.kill()
        process.wait(TIMEOUT)
        self.assertEqual(len(list(self.sockets.iterdir())), 1)
        result = subprocess.run([self.memlog, "ps"], capture_output=True, text=True, env=self.environment)
        self.assertEqual(result.returncode, 125)
        self.assertEqual(list(self.sockets.iterdir()), [])


class Trouble(Bench):
    def run_past(self, said, script):
        """Run to the end; "go" is there once memlog has said that, or these one behind another."""
        process = self.start("bash", "-c", script)
        lines = []
        for words in (said,) if isinstance(said, str) else said:
            lines.append(process.stderr.readline())
            while words not in lines[-1]:
                self.assertTrue(lines[-1], f"it never said {words!r}, but {lines}")
                lines.append(process.stderr.readline())
        (self.work / "go").touch()
        out, err = process.communicate(timeout=TIMEOUT)
        self.assert_clean()
        return subprocess.CompletedProcess(process.args, process.returncode, out, "".join(lines) + err)

    def test_a_service_that_dies_harms_nobody(self):
        result = self.run_past(TAKEN_OVER, f"bash -c 'true; true' die-service-die; {UNTIL_GO}; (exit 3); exit 9")
        self.assertEqual(result.returncode, 9)
        self.assertIn("memlog-service was killed by signal 6; another one has taken over", result.stderr)
        (root,) = [client for client in self.clients() if client["line"].startswith("bash -c bash -c") and not client["forked"]]
        self.assertEqual((root["startup"], root["code"]), (0, 9))
        self.assertGreaterEqual(root["profile"], 1)
        self.assertNotIn("bash -c true; true die-service-die", [client["line"] for client in self.clients()])

    def gaps(self):
        text = (self.work / "dumps" / "0001.exit.pftrace").read_text()
        return [line.split(" reason=", 1)[1] for line in text.splitlines() if line.startswith("gap ")]

    def test_the_dump_says_what_went_with_a_service_and_when_nobody_looked(self):
        script = f"true; true; bash -c 'true; true' die-service-die; {UNTIL_GO}; true"
        self.assertEqual(self.run_past(TAKEN_OVER, script).returncode, 0)
        gone, unseen = self.gaps()
        self.assertRegex(gone, "what memlog-service had recorded is gone with it, with the profiles of [0-9]+ ended processes")
        self.assertEqual(unseen, "memlog-service was killed by signal 6: nothing was seen")

    def test_what_a_service_had_taken_before_it_was_ready_is_told_to_be_gone_too(self):
        (self.work / "late-service").touch()
        script = f"bash -c 'true; true' die-service-die; {UNTIL_GO}; true"
        self.assertEqual(self.run_past(TAKEN_OVER, script).returncode, 0)
        # Its client may live on, and come to the next service, which ends by it, too.
        gaps = self.gaps()
        self.assertIn(len(gaps), (2, 4))
        for gone, unseen in zip(gaps[::2], gaps[1::2]):
            self.assertRegex(gone, "what memlog-service had recorded is gone with it")
            self.assertEqual(unseen, "memlog-service was killed by signal 6: nothing was seen")

    def workers_of_the_last_service(self, result):
        self.assertEqual(result.returncode, 0)
        text = (self.work / "dumps" / "0001.exit.pftrace").read_text()
        return text.split(" workers=", 1)[1].split()[0]

    def test_a_service_may_work_on_several_cores(self):
        self.assertEqual(self.workers_of_the_last_service(self.run_memlog("bash", "-c", "true; true")), "any")

    def test_one_that_follows_a_death_works_on_one_and_can_say_whose_data_it_is_at(self):
        result = self.run_past(TAKEN_OVER, f"bash -c 'true; true' die-service-die; {UNTIL_GO}; true")
        self.assertEqual(self.workers_of_the_last_service(result), "one")

    def test_who_kills_service_after_service_is_left_out_and_the_others_go_on(self):
        os.mkfifo(self.work / "end")
        script = f"bash -c 'read line <end; true' die-service-die & {UNTIL_GO}; bash -c 'true; true' late; echo >end; wait; exit 4"
        # Before the next service is there, one that comes and goes is in no dump.
        result = self.run_past(("recorded no more", TAKEN_OVER), script)
        self.assertEqual(result.returncode, 4)
        self.assertIn("recorded no more: 2 services in a row died while they read it", result.stderr)
        deaths = result.stderr.count("another one has taken over")
        self.assertGreaterEqual(deaths, 2)
        lines = [client["line"] for client in self.clients()]
        self.assertIn("bash -c true; true late", lines)
        self.assertNotIn("bash -c read line <end; true die-service-die", lines)
        self.assertEqual(len(self.gaps()), 2 * deaths)

    def test_strict_runs_nothing_without_a_whole_sandbox(self):
        result = self.run_memlog("touch", "ran", options=["--sandbox=strict"])
        self.assertEqual(result.returncode, 125)
        self.assertIn("--sandbox=strict", result.stderr)
        self.assertEqual(list(self.work.iterdir()), [])

    def test_a_missing_service_or_library_is_named_and_the_program_does_not_run(self):
        for name in ("memlog-service", "libmemlog.so"):
            (self.folder / name).rename(self.folder / "away")
            result = self.run_memlog("touch", "ran")
            self.assertEqual(result.returncode, 125)
            self.assertIn(name + " is neither in", result.stderr)
            self.assertFalse((self.work / "ran").exists())
            (self.folder / "away").rename(self.folder / name)

    def test_a_path_with_blanks_and_colons_is_preloaded_all_the_same(self):
        odd = self.folder / "odd: place"
        odd.mkdir()
        for name in ("memlog", "memlog-service", "libmemlog.so"):
            (self.folder / name).rename(odd / name)
        self.memlog = str(odd / "memlog")
        self.assertEqual(self.run_memlog("true").returncode, 0)
        self.assertEqual(len(self.clients()), 1)

    def test_a_preload_that_was_there_is_kept_behind_ours(self):
        other = str(self.folder / "other.so")  # the loader says on stderr that it is not there, and goes on
        result = subprocess.run(
            [self.memlog, "run", "-o", "dumps", "--", "sh", "-c", "echo $LD_PRELOAD"],
            capture_output=True,
            text=True,
            env={**self.environment, "LD_PRELOAD": other},
            cwd=self.work,
        )
        self.assertEqual(result.stdout.strip(), f"{self.folder}/libmemlog.so:{other}")

    def test_a_second_interrupt_ends_without_waiting_for_the_dump(self):
        process = self.start("bash", "-c", "sleep 30 </dev/null >/dev/null 2>&1 & exit 4")
        self.assertIn("waiting for", process.stderr.readline())
        service = int(subprocess.run(["pgrep", "-P", str(process.pid), "memlog-service"], capture_output=True, text=True).stdout)
        os.kill(service, signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)  # no condition: that nothing happens is what is seen
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        process.wait(TIMEOUT)
        os.kill(service, signal.SIGCONT)
        self.assertEqual(process.returncode, 4)
        self.assert_clean()

    def test_a_killed_host_harms_nobody(self):
        process = self.start("sh", "-c", f"echo $$; {UNTIL_GO}; echo fine > result; sh -c 'echo too >> result'")
        self.remove_folder_of(int(process.stdout.readline()))
        process.kill()
        process.wait()
        (self.work / "go").touch()
        deadline = time.monotonic() + TIMEOUT
        result = self.work / "result"
        while not (result.exists() and "too" in result.read_text()):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_nonsense_on_the_control_socket_is_shut_out(self):
        script = (
            "import os,socket\n"
            "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
            "s.connect(os.environ['MEMLOG_SOCKET'])\n"
            "s.send(b'nonsense')\n"
            "assert s.recv(10) == b''\n"
        )
        result = self.run_memlog("/usr/bin/python3", "-c", script)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"process \d+ broke the contract")
        self.assertEqual(len(self.clients()), 1)


if __name__ == "__main__":
    unittest.main()
