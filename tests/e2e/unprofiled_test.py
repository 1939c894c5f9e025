"""Programs that cannot take the preload run as ever, from the root and from a child, with nothing on stderr, and the report says why."""
import os
import pathlib
import shutil
import subprocess
import unittest

import harness

HELLO = "#include <unistd.h>\nint main(void) { return write(1, \"hello\\n\", 6) == 6 ? 7 : 1; }\n"

# write(1, text, 6); exit(7), by the 32-bit way into the kernel.
HELLO_32 = """
.globl _start
_start: mov $4, %eax; mov $1, %ebx; mov $text, %ecx; mov $6, %edx; int $0x80; mov $1, %eax; mov $7, %ebx; int $0x80
.data
text: .ascii "hello\\n"
"""


class Unprofiled(harness.Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        self.program = self.folder / "hello"

    def build(self, *options):
        (self.folder / "handshake.c").write_text(HELLO)
        subprocess.run(["gcc", "-o", self.program, self.folder / "handshake.c", *options], check=True)

    def loader(self):
        return pathlib.Path("/lib64/ld-linux-x86-64.so.2")

    def assert_unprofiled(self, reason, *program):
        """As the child of a shell that is profiled, and as the first program."""
        program = program or (str(self.program),)
        for words, others in ((("/bin/sh", "-c", '"$@"; exit $?', "sh", *program), 1), (program, 0)):
            run = self.memlog(*words)
            self.assertEqual((run.code, run.out, run.err), (7, b"hello\n", ""))
            report = self.exit_report(run)
            self.assertNotIn("hello", {entry["name"] for entry in report["processes"]})
            self.assertGreaterEqual(len(report["processes"]), others)
            answer = harness.run_words(
                [str(harness.MEMLOG), "report", "--full", str(run.dumps()[0])], self.folder, self.environment(), b"", harness.TIMEOUT
            )
            text = answer.stdout.decode()
            self.assertIn("hello", text)
            self.assertRegex(text, reason)

    def test_a_static_program(self):
        self.build("-static")
        self.assert_unprofiled("statically linked")

    def test_a_program_of_another_architecture(self):
        (self.folder / "hello.s").write_text(HELLO_32)
        subprocess.run(["as", "--32", "-o", self.folder / "hello.o", self.folder / "hello.s"], check=True)
        subprocess.run(["ld", "-m", "elf_i386", "-o", self.program, self.folder / "hello.o"], check=True)
        try:
            works = subprocess.run([self.program], stdout=subprocess.DEVNULL).returncode == 7
        except OSError:
            works = False
        if not works:
            self.skipTest("this kernel runs no 32-bit programs")
        self.assert_unprofiled("architecture|32-bit|statically linked")  # without a loader it is both

    def test_a_program_with_another_loader(self):
        # What musl's programs look like from outside; the loader is glibc's own under that name, so that it runs, and would preload.
        loader = self.folder / "ld-musl-x86_64.so.1"
        shutil.copy(self.loader(), loader)
        self.build(f"-Wl,--dynamic-linker={loader}")
        self.assert_unprofiled("loader|musl")

    @unittest.skipIf(os.geteuid() != 0, "needs root to give a program to somebody else")
    def test_a_setuid_program(self):
        self.build()
        os.chown(self.program, 65534, 65534)
        self.program.chmod(0o4755)
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("this folder's file system knows no setuid")
        self.assert_unprofiled("setuid|privilege")

    @unittest.skipIf(os.geteuid() != 0, "needs root for chroot")
    def test_a_program_in_another_root(self):
        self.build()
        root = self.folder / "root"
        for path in (self.loader(), pathlib.Path("/lib/x86_64-linux-gnu/libc.so.6")):
            place = root / path.relative_to("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
        shutil.copy(self.program, root / "hello")
        words = ("/bin/sh", "-c", '/usr/sbin/chroot "$0" /hello', str(root))
        run = self.memlog(*words)
        self.assertEqual((run.code, run.out, run.err), (7, b"hello\n", ""))
        answer = harness.run_words(
            [str(harness.MEMLOG), "report", "--full", str(run.dumps()[0])], self.folder, self.environment(), b"", harness.TIMEOUT
        )
        # In the list of processes, or, where it was over before the host looked, among those that its exec told of.
        text = " ".join(answer.stdout.decode().split())
        self.assertRegex(text, r"hello: (libmemlog\.so is not visible|.*not recorded: .*(visible|root))")

    @unittest.skipIf(os.geteuid() != 0, "needs root to mount")
    def test_a_program_with_a_tmp_of_its_own(self):
        words = ("unshare", "--mount", "/bin/sh", "-c", 'mount -t tmpfs none /tmp && exec ls -d "$0"', "/usr")
        if subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("may not mount here")
        run = self.memlog(*words)
        self.assertEqual((run.code, run.out, run.err), (0, b"/usr\n", ""))
        report = self.exit_report(run)
        recorded = {entry["name"] for entry in report["processes"]}
        if not harness.OUT.is_relative_to("/tmp"):  # the socket alone is hidden
            self.assertIn("ls", recorded)
            return
        self.assertNotIn("ls", recorded)
        (missing,) = report["dump"]["not_profiled"]
        self.assertRegex(missing["path"], "/ls$")
        self.assertRegex(missing["reason"], "libmemlog.so is not visible")


# Takes all descriptors but as many as the first word says, and forks; the child allocates, and becomes the program of the other words.
FORKS_IN_NEED = """
import errno, os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
taken = []
try:
    while True:
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError as full:
    assert full.errno == errno.EMFILE
for _ in range(int(sys.argv[1])):
    os.close(taken.pop())
if os.fork() == 0:
    kept = [bytearray(1000) for _ in range(100)]
    if sys.argv[2:]:
        os.execv(sys.argv[2], sys.argv[2:])
    os._exit(0)
os._exit(os.wait()[1])
"""

# As many children as the first word says, which all allocate and are there until the last of them is.
MANY_AT_ONCE = """
import os, sys
all_there, done = os.pipe(), os.pipe()
children = []
for _ in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        kept = [bytearray(1000) for _ in range(100)]
        os.close(done[1])
        os.write(all_there[1], b".")
        os.read(done[0], 1)
        os._exit(0)
    children.append(child)
for _ in children:
    os.read(all_there[0], 1)
os.close(done[1])
for child in children:
    os.waitpid(child, 0)
"""


class NoRoom(harness.Case):
    """Programs under limits that leave memlog no room, and just enough: what is recorded is said, and what is not."""

    def assert_honest(self, limit, amounts, reason):
        """Under each of these amounts; returns the kinds there were, True: it was recorded."""
        kinds = set()
        for amount in amounts:
            words = ("/bin/sh", "-c", f'ulimit {limit} {amount}; exec ls -d / "$0"', str(self.folder))
            plain = subprocess.run(words, capture_output=True)
            if plain.returncode != 0:
                continue  # it needs more itself
            with self.subTest(amount=amount):
                run = self.memlog(*words)
                self.assertEqual((run.code, run.out, run.err), (0, plain.stdout, ""))
                (entry,) = [entry for entry in self.exit_report(run)["processes"] if entry["name"] == "ls"]
                recorded = entry["events"] > 0
                self.assertEqual((recorded, entry["complete"]), (recorded, recorded))
                if not recorded:
                    self.assertRegex(entry["trouble"], reason)
                kinds.add(recorded)
        return kinds

    def test_of_descriptors(self):
        self.assertEqual(self.assert_honest("-n", range(4, 15), "too few descriptors"), {True, False})

    def test_where_memlogs_own_descriptors_begin(self):
        self.assertEqual(self.assert_honest("-n", (899, 900, 901, 902, 915, 916, 917), "nothing"), {True})

    def test_of_memory(self):
        amounts = (5000, 6000, 7000, 8000, 10000, 15000, 20000, 30000, 50000, 100000, 1000000)
        self.assertEqual(self.assert_honest("-v", amounts, "limits leave memlog no room"), {True, False})

    def text_of(self, run):
        words = [str(harness.MEMLOG), "report", "--full", str(run.dumps()[0])]
        return " ".join(harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT).stdout.decode().split())

    def assert_told(self, run, recorded):
        """Of the forked child: copies of its parent's blocks were in it, so a dump without it is not complete, in every output."""
        dump = self.exit_report(run)["dump"]
        self.assertEqual((dump["complete"], dump["covered"], dump["lost_forks"]), (recorded, recorded, 0 if recorded else 1))
        others = [entry for entry in self.whole_report(run.dumps()[0])["processes"] if not entry["recorded"]]
        self.assertEqual(len(others), 0 if recorded else 1, others)
        for entry in others:
            self.assertFalse(entry["idle"], entry)
            self.assertRegex(entry["reason"], "^its limits leave memlog no room|^it has too few descriptors")
            self.assertEqual(entry["coverage"]["unseen"], entry["reason"])
        text = self.text_of(run)
        self.assertEqual("NOT COMPLETE 1 forked child could not be recorded" in text, not recorded, text)
        self.assertNotIn("no allocation that memlog sees", text)

    def test_of_descriptors_in_a_forked_child(self):
        kinds = set()
        for left in range(6):
            with self.subTest(left=left):
                run = self.memlog("/usr/bin/python3", "-c", FORKS_IN_NEED, str(left))
                self.assertEqual((run.code, run.err), (0, ""))
                report = self.exit_report(run)
                processes = report["processes"]
                recorded = len([entry for entry in processes if entry["id"] != 1 and entry["events"] > 0]) == 1
                named = [entry["reason"] for entry in report["dump"]["not_profiled"]]
                named += [entry["trouble"] for entry in processes if entry["id"] != 1 and not entry["complete"]]
                self.assertEqual((len(named), processes[0]["complete"]), (0 if recorded else 1, True), named)
                for reason in named:
                    self.assertRegex(reason, "not recorded: .*ulimit")
                self.assert_told(run, recorded)
                kinds.add(recorded)
        self.assertEqual(kinds, {True, False})

    def test_of_descriptors_of_memlog_itself(self):
        """More forked children at once than its own limit permits: it counts each that is missing."""
        children = 60
        words, folder = self.memlog_command(("/usr/bin/python3", "-c", MANY_AT_ONCE, str(children)), ("--no-page",))
        words = ["/bin/sh", "-c", 'ulimit -n 120; exec "$@"', "sh", *words]
        answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
        (dump,) = folder.glob("*.exit.pftrace")
        report = self.whole_report(dump)
        parent, *others = sorted(report["processes"], key=lambda entry: entry["parent_id"])
        lost = [entry for entry in others if not entry["recorded"]]
        self.assertEqual((answer.returncode, len(others), parent["complete"]), (0, children, True))
        self.assertTrue(0 < len(lost) < children, len(lost))
        for entry in lost:
            self.assertEqual((entry["reason"], entry["idle"]), ("memlog has too few descriptors for one more process", False))
        self.assertEqual((report["dump"]["complete"], report["dump"]["lost_forks"]), (False, len(lost)))
        self.assertIn(f"memlog: the profile is not complete: {len(lost)} forked children could not be recorded\n", answer.stderr.decode())
        told = harness.run_words([str(harness.MEMLOG), "report", "--full", f"--pid={lost[0]['pid']}", str(dump)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertIn("what helps: raise the hard limit of descriptors (ulimit -Hn)", " ".join(told.stdout.decode().split()))

    def test_of_descriptors_in_a_forked_child_that_becomes_another_program(self):
        """The fork is named beside what it became: in the list, or, where its exec was heard of first, among those not profiled. That program is
        recorded, or its file could not be looked at."""
        reasons = {True: "", False: "may not be looked at"}
        for left in range(2):
            run = self.memlog("/usr/bin/python3", "-c", FORKS_IN_NEED, str(left), "/bin/ls", "-d", "/", options=("--no-page",))
            self.assertEqual((run.code, run.out), (0, b"/\n"))
            self.assertIn("memlog: the profile is not complete: 1 forked child could not be recorded\n", run.err)
            report = self.whole_report(run.dumps()[0])
            self.assertEqual((report["dump"]["complete"], report["dump"]["covered"], report["dump"]["lost_forks"]), (False, False, 1))
            self.assertIn("not recorded: its limits leave memlog no room", self.text_of(run))
            (program,) = [entry for entry in report["processes"] if entry["name"] == "ls"]
            self.assertEqual((program["recorded"], program["state"]), (left > 0, "exited"))
            self.assertIn(reasons[left > 0], program["reason"])
            for entry in report["processes"]:
                if entry["name"] != "ls" and not entry["recorded"]:
                    self.assertEqual((entry["name"], entry["state"]), ("python3", "replaced"))
                    self.assertRegex(entry["reason"], "ulimit")
            paths = [os.path.basename(item["path"])[:7] for item in report["dump"]["not_profiled"]]
            self.assertEqual(paths, ["python3"] if left else ["python3", "ls"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
