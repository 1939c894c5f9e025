"""Kernels without this or that: what memlog records there is whole, or it says what is missing. Each is played by a seccomp filter that answers
for the system calls as such a kernel would, or refuses files of /proc (tests/lacking)."""
# runner: timeout=1800
import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import unittest

import as_bare
import attached
import collecting
import harness
import truth

LACKING = harness.PROGRAMS / "lacking"
ORACLE = harness.PROGRAMS / "oracle"
NOT_RUN = 125

# What is taken away -> the rules of it.
FEATURES = {
    "landlock": "landlock_create_ruleset landlock_add_rule landlock_restrict_self",
    "mount API": "fsopen fsconfig fsmount move_mount open_tree",
    "namespaces": "unshare:EPERM",
    "user namespaces": "unshare@0&0x10000000=0x10000000:EPERM",
    "close_range": "close_range",
    "clone3": "clone3",
    "pwritev2": "pwritev2",
    "RWF_NOSIGNAL": "pwritev2@5&0x100=0x100:EINVAL",
    "preadv2": "preadv2",
    "SCM_PIDFD": "setsockopt@1=1@2=76:ENOPROTOOPT",
    "SO_PEERPIDFD": "getsockopt@1=1@2=77:ENOPROTOOPT",
    "pidfd_open": "pidfd_open",
    "pidfd_send_signal": "pidfd_send_signal",
    "pidfd_getfd": "pidfd_getfd",
    "pidfds": "pidfd_open pidfd_send_signal pidfd_getfd setsockopt@1=1@2=76:ENOPROTOOPT getsockopt@1=1@2=77:ENOPROTOOPT",
    "pidfds, forbidden": "pidfd_open:EPERM pidfd_send_signal:EPERM pidfd_getfd:EPERM",
    "waitid of a pidfd": "waitid@0=3:EINVAL",
    "MADV_WIPEONFORK": "madvise@2=18:EINVAL",
    "memfd_create": "memfd_create",
    "memfd_create, forbidden": "memfd_create:EPERM",
    "MFD_EXEC": "memfd_create@1&0x10=0x10:EINVAL",
    "process_vm_readv": "process_vm_readv process_vm_writev",
    "process_vm_readv, forbidden": "process_vm_readv:EPERM process_vm_writev:EPERM",
    "ptrace": "ptrace:EPERM",
    "openat2": "openat2",
    "statx": "statx",
    "rseq": "rseq",
    "membarrier": "membarrier",
    "futex_waitv": "449",
    "epoll_pwait2": "441",
    "io_uring": "io_uring_setup io_uring_enter io_uring_register",
    "userfaultfd": "userfaultfd",
    "perf_event_open": "perf_event_open:EPERM",
    "PR_SET_CHILD_SUBREAPER": "prctl@0=36:EINVAL",
    "PR_SET_VMA": "prctl@0=0x53564d41:EINVAL",
    "execveat": "execveat",
    "copy_file_range": "copy_file_range",
    "getrandom": "getrandom",
    "mremap": "mremap",
    "timerfd": "timerfd_create timerfd_settime",
    "eventfd": "eventfd eventfd2",
    "signalfd": "signalfd signalfd4",
    "sched_setaffinity": "sched_setaffinity:EPERM sched_getaffinity:EPERM",
    "kcmp": "kcmp",
    "name_to_handle_at": "name_to_handle_at open_by_handle_at",
    "PAGEMAP_SCAN": "ioctl@1=0xc0606610:EINVAL",
    "faccessat2": "faccessat2",
    "netlink": "socket@0=16:EPERM",
    "seccomp": "seccomp prctl@0=22:EINVAL",
    "no_new_privs": "prctl@0=38:EINVAL",
}
# Files of /proc that memlog may not open; the program needs none of them.
FILES = {
    "pagemap": "/pagemap:EACCES",
    "smaps_rollup": "/smaps_rollup:EACCES",
    "smaps": "/smaps:ENOENT /smaps_rollup:ENOENT /pagemap:ENOENT",
}
# What memlog cannot do without, and what it says of that: where all lack it, and where the recorded program alone does.
ALL_SAY = {
    "MADV_WIPEONFORK": "no MADV_WIPEONFORK",
    "memfd_create": "memory file: Function not implemented",
    "memfd_create, forbidden": "memory file: Operation not permitted",
    "PR_SET_CHILD_SUBREAPER": "cannot follow daemons",
    "getrandom": "random numbers",
    "signalfd": "cannot watch signals",
    "seccomp": r"none goes without: seccomp filter \(not in this kernel\)",
    "no_new_privs": "none goes without: no_new_privs",
}
PROGRAM_SAYS = {
    "MADV_WIPEONFORK": "no MADV_WIPEONFORK",
    "memfd_create": "no memfd_create",
    "memfd_create, forbidden": "no memfd_create",
}
ATTACH_SAYS = {
    **{name: "pidfd_open .* pidfd_getfd" for name in ("pidfd_open", "pidfd_getfd", "pidfds", "pidfds, forbidden")},
    "memfd_create": "memory file",
    "memfd_create, forbidden": "memory file",
    "ptrace": "lets nobody trace it",
    "PR_SET_CHILD_SUBREAPER": "cannot follow daemons",
    "getrandom": "random numbers",
    "signalfd": "cannot watch signals",
    "seccomp": "wall of seccomp|none goes without: seccomp filter",
    "no_new_privs": "wall of seccomp|none goes without: no_new_privs",
}
# What of the service's sandbox is missing then.
SANDBOX_LACKS = {"landlock": "Landlock", "mount API": "empty root", "namespaces": "mount namespace", "user namespaces": "user namespace"}

# System calls by the kernel that had them first, by number as libseccomp may be older; and what other calls have learnt since.
CALLS_SINCE = {
    (5, 1): range(424, 428), (5, 2): range(428, 434), (5, 3): (434, 435), (5, 6): (437, 438), (5, 8): (439,), (5, 9): (436,), (5, 10): (440,),
    (5, 11): (441,), (5, 12): (442,), (5, 13): range(444, 447), (5, 14): (443, 447), (5, 15): (448,), (5, 16): (449,), (5, 17): (450,),
    (6, 5): (451,), (6, 6): (452, 453), (6, 7): range(454, 457), (6, 8): range(457, 462), (6, 10): (462,), (6, 13): range(463, 467),
    (6, 15): (467,), (6, 17): (468, 469),
}
WORDS_SINCE = {
    (5, 2): ("clone@0&0x1000=0x1000:EINVAL",),  # CLONE_PIDFD
    (5, 4): ("waitid@0=3:EINVAL",),
    (5, 17): ("prctl@0=0x53564d41:EINVAL",),
    (6, 3): ("memfd_create@1&0x8=0x8:EINVAL", "memfd_create@1&0x10=0x10:EINVAL"),
    (6, 5): ("setsockopt@1=1@2=76:ENOPROTOOPT", "getsockopt@1=1@2=77:ENOPROTOOPT"),
    (6, 7): ("ioctl@1=0xc0606610:EINVAL",),
    (6, 18): ("pwritev2@5&0x100=0x100:EINVAL",),
}
KERNELS = ((4, 18), (5, 4), (5, 10), (5, 15), (6, 1))

# Grows, and stays until the dump of it is there.
GROWS = """
import glob, sys, time
kept = [bytearray(b"x") * (1 << 20) for _ in range(64)]
deadline = time.monotonic() + 60
while not glob.glob(sys.argv[1]) and time.monotonic() < deadline:
    time.sleep(0.05)
print("grown")
"""


def since(version):
    """The rules of a kernel of that version."""
    calls = [str(number) for first, numbers in CALLS_SINCE.items() if first > version for number in numbers]
    return calls + [word for first, words in WORDS_SINCE.items() if first > version for word in words]


def without(*names):
    return [rule for name in names for rule in {**FEATURES, **FILES}[name].split()]


def lacking(rules, words):
    """The command that runs these words there."""
    return [str(LACKING), *rules, "--", *map(str, words)]


class Case(as_bare.Case):
    def setUp(self):
        super().setUp()
        if subprocess.run(lacking(["tee"], ["true"]), capture_output=True, check=False).returncode != 0:
            self.skipTest("no filter can be set here")

    def clear(self):
        for old in self.truth_folder.iterdir():
            old.unlink()

    def play(self, rules, place, words, options=("--no-page",)):
        """(the run, what the program does bare) where all, or the program alone, lack what the rules name."""
        words = [ORACLE / words[0], *words[1:]]
        there = lacking(rules, words)
        bare = self.bare(*there)
        self.clear()
        command, folder = self.memlog_command(words if place == "all" else there, options)
        answer = harness.run_words(
            lacking(rules, command) if place == "all" else command, self.folder, self.environment(), b"", harness.TIMEOUT
        )
        run = harness.Run(answer.returncode, answer.stdout, answer.stderr.decode(errors="replace"), folder)
        return run, bare

    def assert_recorded(self, rules, place, words, truths):
        def once():
            run, bare = self.play(rules, place, words)
            self.assertEqual((run.code, run.out.decode()), bare[:2], run.err)
            return self.exit_report(run)

        report = self.undisturbed(once)
        written = truth.load(self.truth_folder)
        self.assertEqual(len(written), truths)
        self.assertEqual(truth.compare(report, written), [])
        self.assertTrue(report["dump"]["complete"])
        return report

    def assert_told(self, rules, place, words, said):
        """Nothing is called complete. Either the program was not run, or it ran as ever."""
        run, bare = self.play(rules, place, words)
        told = [run.err]
        for dump in run.dumps():
            report = self.report(dump)
            self.assertFalse(report["dump"]["complete"])
            self.assertNotIn("complete: no event lost", run.err)
            told += [entry["trouble"] for entry in report["processes"]] + [entry["reason"] for entry in report["unrecorded"]]
        if run.code == NOT_RUN:
            self.assertEqual((place, run.out, run.dumps(), list(self.truth_folder.iterdir())), ("all", b"", [], []))
        else:
            self.assertEqual((run.code, run.out.decode()), bare[:2], run.err)
        self.assertRegex("\n".join(told), said)


class OneByOne(Case):
    """A process that forks twice in depth."""

    def hold(self, place, say):
        for name in FEATURES:
            with self.subTest(name):
                if name in say:
                    self.assert_told(without(name), place, ("fork", "deep"), say[name])
                else:
                    report = self.assert_recorded(without(name), place, ("fork", "deep"), 3)
                    missing = SANDBOX_LACKS.get(name, "") if place == "all" else ""
                    self.assertIn(missing, report["dump"]["sandbox_missing"])
                    self.assertEqual(missing == "", report["dump"]["sandbox_missing"] == "")

    def test_all_lack_it(self):
        self.hold("all", ALL_SAY)

    def test_the_program_alone_lacks_it(self):
        self.hold("program", PROGRAM_SAYS)


class Together(Case):
    WAYS = ((("fork_threads",), 41), (("ends", "exec"), 2), (("vfork", "spawn"), 1))

    def test_kernels_of_before(self):
        for version in KERNELS:
            for place in ("all", "program"):
                for words, truths in self.WAYS:
                    with self.subTest(version=version, place=place, words=words):
                        self.assert_recorded(since(version), place, words, truths)

    def test_forks_and_execs_without_pidfds(self):
        for words, truths in self.WAYS:
            with self.subTest(words):
                self.assert_recorded(without("pidfds"), "all", words, truths)

    def test_two_at_once(self):
        for pair in (("pidfds", "close_range"), ("landlock", "namespaces"), ("pwritev2", "mremap"), ("pidfds", "preadv2")):
            with self.subTest(pair):
                self.assert_recorded(without(*pair), "all", ("fork", "deep"), 3)
        self.assert_told(without("pidfds", "memfd_create"), "all", ("fork", "deep"), "memory file")
        self.assert_told(without("pidfds", "memfd_create"), "program", ("fork", "deep"), "no memfd_create")


class Attach(attached.Case):
    """memlog, its service and its tracer lack it; the program, which runs already, does not."""

    def begin_without(self, rules, pid):
        """memlog attach, once it has begun or ended."""
        self.sessions += 1
        folder, log = self.folder / f"dumps{self.sessions}", self.folder / f"stderr.attach{self.sessions}"
        command = lacking(rules, [harness.MEMLOG, "attach", "--no-page", "-o", folder, pid])
        with open(log, "w") as stderr:
            session = subprocess.Popen(
                command, env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
                start_new_session=True,
            )
        session.memlog_folder, session.memlog_log = folder, log

        def end():
            if session.poll() is None:
                os.killpg(session.pid, signal.SIGKILL)
                session.wait()

        self.addCleanup(end)
        self.wait_for("the attachment", lambda: session.poll() is not None or "attached to " in log.read_text())
        return session

    def play(self, rules, said):
        target = self.target()
        target.tell("quiet")
        session = self.begin_without(rules, target.pid)
        if said:
            self.assertEqual(session.wait(harness.TIMEOUT), NOT_RUN)
            self.assertRegex(session.memlog_log.read_text(), said)
        else:
            self.assertIsNone(session.poll(), session.memlog_log.read_text())
            target.tell("epoch 2000")
            books = target.books()
            report = self.finish(session)
            entry = self.entry(report, target.pid)
            self.assert_held(entry, books, whole=books["before_freed"])
            self.assertTrue(report["dump"]["complete"])
        target.tell("warm")
        target.end()

    def test_one_by_one(self):
        for name in FEATURES:
            if name != "MADV_WIPEONFORK":
                with self.subTest(name):
                    self.play(without(name), ATTACH_SAYS.get(name, ""))

    def test_kernels_of_before(self):
        for version in KERNELS:
            with self.subTest(version):
                self.play(since(version), ATTACH_SAYS["pidfds"] if version < (5, 6) else "")


class Descriptors(Case):
    def test_the_service_has_none_of_its_starters(self):
        """Also where there is no close_range."""
        for name in ("", "close_range"):
            with self.subTest(name), open("/etc/passwd", encoding="ascii") as opened:
                stray = fcntl.fcntl(opened, fcntl.F_DUPFD, 200)
                self.addCleanup(os.close, stray)
                words, _ = self.memlog_command(["sleep", "60"], ("-q", "--no-page"))
                rules = without(name) if name else ["tee"]
                process = subprocess.Popen(
                    lacking(rules, words), env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    pass_fds=(stray,), start_new_session=True,
                )
                self.addCleanup(lambda process=process: (os.killpg(process.pid, signal.SIGKILL), process.wait()))
                service = self.wait_for("the service", lambda process=process: self.child(process.pid, "memlog-service"))
                self.wait_for("its start", lambda service=service: "/etc/passwd" not in self.held(service), timeout=10, seen=lambda service=service: self.held(service))
                self.assertIn("/etc/passwd", self.held(process.pid))

    def held(self, pid):
        held = []
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                held.append(os.readlink(entry.path))
        return held

    def child(self, pid, name):
        """A process below it that bears that name, once it runs nothing else."""
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/comm", encoding="ascii") as comm, open(f"/proc/{entry}/stat", encoding="ascii") as stat:
                    parent = stat.read().rpartition(")")[2].split()[1]
                    if comm.read().strip() == name[:15] and parent == str(pid):
                        return int(entry)
            except (OSError, ValueError):
                continue
        return 0


class Dumps(Case):
    def test_a_dump_at_a_threshold(self):
        """Where there is no pidfd, no Landlock and no close_range, too."""
        for rules in (without("pidfds", "landlock", "close_range"), since((4, 18))):
            self.clear()
            dumps = self.folder / f"dumps{self.runs + 1}" / "*.threshold.pftrace"
            words, folder = self.memlog_command(
                ["/usr/bin/python3", "-c", GROWS, dumps],
                ("-q", "--no-page", "--threshold=browser=40MiB", "--trigger-interval=1"),
            )
            answer = harness.run_words(lacking(rules, words), self.folder, self.environment(), b"", harness.TIMEOUT)
            self.assertEqual((answer.returncode, answer.stdout), (0, b"grown\n"), answer.stderr)
            dumps = sorted(folder.glob("*.threshold.pftrace"))
            self.assertEqual(len(dumps), 1, sorted(path.name for path in folder.iterdir()))
            report = self.report(dumps[0])
            self.assertTrue(report["dump"]["complete"])
            self.assertGreater(report["tree"]["live_bytes"], 30 << 20)  # it may be looked at while it grows

    def test_reports_read_the_same(self):
        run = self.memlog(ORACLE / "single")
        command = [harness.MEMLOG, "report", *run.dumps()]
        whole = self.bare(*command)
        self.assertEqual(whole[0], 0)
        for rules in (*map(without, FEATURES), *map(since, KERNELS)):
            with self.subTest(rules):
                self.assertEqual(self.bare(*lacking(rules, command)), whole)

    def test_a_report_keeps_its_names_without_close_range(self):
        """By a helper, which closes what it inherits."""
        run = self.memlog(ORACLE / "single")
        kept = []
        for rules in (["tee"], without("close_range")):
            cache = self.folder / f"cache{len(kept)}"
            env = self.environment(HOME=str(self.folder), MEMLOG_SYMBOL_CACHE=str(cache))
            self.assertEqual(self.bare(*lacking(rules, [harness.MEMLOG, "report", *run.dumps()]), env=env)[0], 0)
            kept.append(sorted(path.name for path in cache.rglob("*") if path.is_file()) if cache.exists() else [])
        self.assertNotEqual(kept[0], [])
        self.assertEqual(*kept)


# Grows, asks memlog for its list and a dump, and ends.
SHOWS = f"""
import subprocess, time
kept = [bytearray(b"x") * (1 << 20) for _ in range(64)]
time.sleep(1.5)
print(subprocess.run(["{harness.MEMLOG}", "ps"], stdout=subprocess.PIPE, text=True, check=True).stdout)
subprocess.run(["{harness.MEMLOG}", "dump"], stdout=subprocess.DEVNULL, check=True)
"""


class Files(Case):
    """Files of /proc that say what memory is resident: what is known without them is told as what it is."""

    def shown(self, name, options=()):
        """(what is said at the start, the list, the report's text, the process in it) of a run that asks for a dump at 40 MiB."""
        words, folder = self.memlog_command(
            ["/usr/bin/python3", "-c", SHOWS], ("--no-page", "--threshold=browser=40MiB", "--trigger-interval=1", *options)
        )
        rules = without(name) if name else ["tee"]
        answer = harness.run_words(lacking(rules, words), self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        (dump,) = folder.glob("*.manual.pftrace")
        self.assertEqual(len(list(folder.glob("*.threshold.pftrace"))), 0 if name.startswith("smaps") else 1)
        text = self.bare(harness.MEMLOG, "report", "--full", dump)[1]
        (process,) = [entry for entry in self.report(dump)["processes"] if entry["name"] == "python3"]
        rows = [row for row in answer.stdout.decode().splitlines() if "python3" in row]
        return answer.stderr.decode(), rows[0], text, process["memory_status"]

    def test_allocations_are_recorded_to_the_byte(self):
        for name in FILES:
            with self.subTest(name):
                self.assert_recorded(without(name), "all", ("fork", "deep"), 3)

    def test_all_there(self):
        said, row, _, status = self.shown("")
        self.assertNotIn("memory is not known", said)
        self.assertNotIn("not known", row)
        self.assertEqual((status["unreadable"], status["trouble"]), (False, ""))

    def test_without_pagemap_resident_pages_are_told_to_be_unread(self):
        why = "resident pages not read: /proc/PID/pagemap: Permission denied"
        _, _, text, status = self.shown("pagemap")
        self.assertEqual((status["unreadable"], status["trouble"]), (False, why))
        self.assertIn(why, " ".join(text.split()))
        self.assertNotIn("not stopped", text)

    def test_without_pagemap_while_a_process_is_stopped_for_it(self):
        _, _, text, status = self.shown("pagemap", ("--whole=stop",))
        self.assertIn("resident pages not read: /proc/PID/pagemap: Permission denied", status["trouble"])
        self.assertIn("resident pages not read", text)

    def test_without_smaps_rollup_a_threshold_says_that_it_makes_no_dump(self):
        said, row, _, status = self.shown("smaps_rollup")
        self.assertRegex(said, r"no --threshold makes a dump of \S+ \(\d+\): its private memory is not known \(/proc/\d+/smaps_rollup: Permission denied\)")
        self.assertEqual(said.count("no --threshold"), 1)
        self.assertIn("(its private memory is not known: only its user, or root, may read it)", row)
        self.assertFalse(status["unreadable"])

    def test_without_smaps_what_memory_is_made_of_is_not_known(self):
        said, row, text, status = self.shown("smaps")
        self.assertIn("smaps_rollup: No such file or directory", said)
        self.assertIn("(its private memory is not known: /proc has no smaps_rollup of it)", row)
        self.assertEqual((status["unreadable"], status["trouble"]), (True, "unreadable: /proc/PID/smaps: No such file or directory"))
        self.assertIn("its parts were not read", text)


@unittest.skipIf(os.geteuid() != 0, "root alone mounts another /proc")
class Proc(Case):
    def under(self, mount, words):
        """The command that runs these words where /proc is another one."""
        return ["unshare", "-m", "sh", "-c", f'{mount} /proc && exec "$@"', "sh", *map(str, words)]

    def test_without_it_nothing_is_run(self):
        words, folder = self.memlog_command([ORACLE / "single"], ("--no-page",))
        code, out, err = self.bare(*self.under("mount -t tmpfs none", words))
        self.assertEqual((code, out), (NOT_RUN, ""))
        self.assertIn("/proc/self/exe", err)
        self.assertFalse(folder.exists())

    def test_where_others_are_hidden_from_a_user_all_are_recorded(self):
        for place in (self.folder, self.truth_folder):
            os.chmod(place, 0o777)
        words, folder = self.memlog_command([ORACLE / "fork", "deep"], ("--no-page",))
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        env = self.environment(XDG_RUNTIME_DIR="")
        code, out, err = self.bare(*self.under("mount -t proc -o hidepid=2 none", [*user, *words]), env=env)
        self.assertEqual((code, out), (0, ""), err)
        report = self.exit_report(harness.Run(code, out, err, folder))
        written = truth.load(self.truth_folder)
        self.assertEqual(len(written), 3)
        self.assertEqual(truth.compare(report, written), [])
        self.assertTrue(report["dump"]["complete"])


class Collect(Case):
    STACKS = [(("main", "keep"), 4096, 8192, 16384)]

    def play(self, rules, said):
        folder = self.folder / f"collector{len(list(self.folder.glob('collector*')))}"
        folder.mkdir()
        collector = collecting.Collector(folder, environment=self.environment())
        collector.command = lacking(rules, collector.command)
        self.addCleanup(lambda: collector.process and collector.process.poll() is None and collector.stop(signal.SIGKILL))
        collector.start()
        self.assertEqual(collector.send(collecting.trace(self.STACKS)), 200)
        self.assertEqual(collector.settle(), {"waiting": 0, "stored": 1, "refused": 0})
        self.assertEqual(collector.ask("top", program="prog")["live_bytes"], 4096)
        self.assertEqual(collector.stop(), 0)
        self.assertEqual(re.findall("without the wall of ([^:]*):", collector.said()), said)

    def test_it_reads_reports_and_names_the_walls_that_are_missing(self):
        self.play(["tee"], [])
        self.play(without("close_range"), [])
        self.play(without("landlock"), ["Landlock"])
        self.play(without("seccomp"), ["seccomp filters"])
        self.play(without("no_new_privs"), ["no_new_privs"])
        self.play(since((4, 18)), ["Landlock"])


class Doctor(Case):
    def told(self, rules):
        """(verdict, text) of its findings on the kernel."""
        code, out, _ = self.bare(*lacking(rules, [harness.MEMLOG, "doctor", "--json"]))
        found = [(one["verdict"], one["text"]) for one in json.loads(out)["findings"] if one["check"] == "kernel"]
        self.assertEqual(code, 1 if "fail" in dict(found) else 0)
        return found

    def test_it_names_what_the_kernel_lacks_and_what_is_lost(self):
        self.assertEqual(self.told(["tee"]), [("ok", "it has all that memlog uses")])
        for name, verdict, text in (
                ("landlock", "note", "no Landlock .*this wall"), ("pidfds", "note", "no pidfd_open .*attaches to no process"),
                ("mount API", "note", "no mount API"), ("memfd_create", "fail", "no memfd_create .*nothing is recorded"),
                ("MADV_WIPEONFORK", "fail", "no MADV_WIPEONFORK .*nothing is recorded"), ("no_new_privs", "fail", "no no_new_privs .*without any wall"),
                ("pagemap", "note", "no /proc/PID/pagemap .*estimated"),
                ("smaps_rollup", "note", "no /proc/PID/smaps_rollup .*no --threshold makes one"), ("seccomp", "fail", "no seccomp filters .*--sandbox=none")):
            with self.subTest(name):
                ((said, why),) = self.told(without(name))
                self.assertEqual(said, verdict)
                self.assertRegex(why, text)
        self.assertEqual(len(self.told(since((4, 18)))), 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
