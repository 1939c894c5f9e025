"""Programs whose loader cannot take memlog, however they are started: they run as ever, and the report says why it has nothing of them."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import harness

HELLO = """
#include <stdlib.h>
#include <unistd.h>
int main(void) { char *volatile block = malloc(100); free(block); return write(1, "hello\\n", 6) == 6 ? 7 : 1; }
"""

GOES_ON = """
#include <stdlib.h>
#include <unistd.h>
int main(void) { for (int i = 0; i < 100000; i++) { char *volatile block = malloc(100); usleep(2000); free(block); } return 7; }
"""

# A 32-bit program with a loader: write(1, text, 6); exit(7).
HELLO_32 = """
.globl _start
_start: mov $4, %eax; mov $1, %ebx; mov $text, %ecx; mov $6, %edx; int $0x80; mov $1, %eax; mov $7, %ebx; int $0x80
.data
text: .ascii "hello\\n"
"""

# Static, and so with memlog's variables in its environment, which it hands on by execve's bare system call.
PARENT = """
package main

import (
	"os"
	"os/exec"
)

func main() {
	child := exec.Command(os.Args[1], os.Args[2:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	_ = child.Run()
	os.Exit(child.ProcessState.ExitCode())
}
"""


class Loading(harness.Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        self.program = self.folder / "hello"

    def compile(self, *words, text=HELLO):
        (self.folder / "handshake.c").write_text(text)
        subprocess.run([words[0], "-o", self.program, self.folder / "handshake.c", *words[1:]], check=True)

    def parent(self):
        """A static Go program that starts what it is told to."""
        if shutil.which("go") is None:
            self.skipTest("no go")
        path = self.folder / "parent"
        if not path.exists():
            (self.folder / "parent.go").write_text(PARENT)
            harness.go_build(path, self.folder / "parent.go", CGO_ENABLED="0")
        return str(path)

    def script(self):
        path = self.folder / "script"
        path.write_text(f"#!{self.program}\n")
        path.chmod(0o755)
        return str(path)

    def ways(self):
        """How a program may be started: the words, and whether somebody is recorded who can tell of it."""
        yield (str(self.program),), "first"
        yield (self.script(),), "behind a script's first line"
        yield ("/bin/sh", "-c", '"$@"; exit $?', "sh", str(self.program)), "child of a shell"
        yield ("/bin/sh", "-c", '"$@"; exit $?', "sh", self.script()), "script of a shell"
        yield (self.parent(), str(self.program)), "child of a static program"
        yield (self.parent(), self.script()), "script of a static program"

    def as_bare(self, words, **changes):
        """Output, messages and exit code are as without memlog; returns the run."""
        env = self.environment(**changes)
        bare = subprocess.run(words, capture_output=True, env=env, timeout=harness.TIMEOUT)
        run = self.memlog(*words, env=env)
        self.assertEqual((run.code, run.out, run.err), (bare.returncode, bare.stdout, bare.stderr.decode()))
        return run

    def text_of(self, run):
        answer = harness.run_words(
            [str(harness.MEMLOG), "report", "--full", str(run.dumps()[0])], self.folder, self.environment(), b"", harness.TIMEOUT
        )
        return " ".join(answer.stdout.decode().split())  # wherever its lines break


class OtherLibc(Loading):
    def setUp(self):
        super().setUp()
        if shutil.which("musl-gcc") is None:
            self.skipTest("no musl-gcc")
        self.compile("musl-gcc")

    def test_it_runs_as_ever_however_it_is_started(self):
        for words, how in self.ways():
            with self.subTest(how=how):
                run = self.as_bare(words)
                self.assertEqual((run.code, run.out), (7, b"hello\n"))

    def test_the_first_program_is_named_with_the_true_reason(self):
        for words in ((str(self.program),), (self.script(),), ("/bin/sh", "-c", f"exec {self.program}")):
            with self.subTest(words=words):
                self.assertRegex(self.text_of(self.as_bare(words)), "loader is not glibc's by its name, which libmemlog.so needs; 'memlog attach' can")

    def test_one_that_runs_is_taken_as_the_reason_says(self):
        self.compile("musl-gcc", text=GOES_ON)
        with subprocess.Popen([self.program], stdin=subprocess.PIPE) as process:
            folder = self.folder / "dumps-attached"
            words = [str(harness.MEMLOG), "attach", "--no-page", "--duration=2", "-o", str(folder), str(process.pid)]
            answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
            process.kill()
        self.assertEqual(answer.returncode, 0, answer.stderr)
        (entry,) = self.report(next(folder.glob("*.exit.pftrace")))["processes"]
        self.assertEqual((entry["lost_events"], entry["total_blocks"] > 0, entry["total_bytes"] % 100), (0, True, 0))


class Other32Bit(Loading):
    def test_it_runs_as_ever_however_it_is_started(self):
        libc = pathlib.Path("/lib32/libc.so.6")
        if not libc.exists():
            self.skipTest("no 32-bit libc")
        (self.folder / "hello.s").write_text(HELLO_32)
        subprocess.run(["as", "--32", "-o", self.folder / "hello.o", self.folder / "hello.s"], check=True)
        loader = ("-dynamic-linker", "/lib/ld-linux.so.2", "--no-as-needed")
        subprocess.run(["ld", "-m", "elf_i386", *loader, "-o", self.program, self.folder / "hello.o", libc], check=True)
        try:
            subprocess.run([self.program], stdout=subprocess.DEVNULL, check=False)
        except OSError:
            self.skipTest("this kernel runs no 32-bit programs")
        for words, how in self.ways():
            with self.subTest(how=how):
                run = self.as_bare(words)
                self.assertEqual((run.code, run.out), (7, b"hello\n"))


SANITIZED = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **arguments) {
    char *volatile block = malloc(100);
    memset(block, 1, 100);
    if (count > 1 && strcmp(arguments[1], "bad") == 0) {
        free(block);
        return block[3];
    }
    FILE *name = fopen("/proc/self/comm", "r");
    char text[100] = "";
    puts(fgets(text, sizeof text, name)); /* what the process is called */
    fclose(name);
    puts(arguments[0]);
    puts(getenv("LD_PRELOAD") != NULL ? getenv("LD_PRELOAD") : "none");
    puts(getenv("MEMLOG_SOCKET") != NULL ? "seen" : "unseen");
    free(block);
    return 7;
}
"""


class Sanitizers(Loading):
    """Run-times that want to be the first to see each allocation: a program with one begins anew without memlog."""

    def sanitized(self, *words):
        try:
            self.compile(*words, "-g", text=SANITIZED)
        except (subprocess.CalledProcessError, FileNotFoundError):
            self.skipTest("cannot be built: " + " ".join(words))
        if subprocess.run([self.program], capture_output=True).returncode != 7:
            self.skipTest("does not run here")

    def plain(self, text):
        """A report without what differs from run to run."""
        return re.sub(r"0x[0-9a-f]+|==\d+==|pid=\d+|[0-9a-f]{12}", "#", text)

    def assert_as_bare(self, reason):
        for words, how in self.ways():
            if "static" not in how or "script" in how:
                with self.subTest(how=how):
                    self.assertRegex(self.text_of(self.as_bare(words)), reason)
        for words in ((str(self.program), "bad"), (self.parent(), str(self.program), "bad")):
            bare = subprocess.run(words, capture_output=True, env=self.environment())
            run = self.memlog(*words)
            self.assertEqual((run.code, run.out), (bare.returncode, bare.stdout))
            self.assertEqual(self.plain(run.err), self.plain(bare.stderr.decode()))

    def test_gccs_address_sanitizer(self):
        self.sanitized("gcc", "-fsanitize=address")
        self.assert_as_bare("sanitizer's run-time is in it")
        # Looking for leaks starts a process of its own.
        report = self.exit_report(self.as_bare((str(self.program),), ASAN_OPTIONS="detect_leaks=0"))
        self.assertEqual(len(report["dump"]["not_profiled"]), 1)
        self.assertEqual([(entry["name"], entry["recorded"]) for entry in report["unrecorded"]], [("hello", False)])
        # That one is a fork of who is not recorded: it has the same reason, and none of its own.
        report = self.exit_report(self.as_bare((str(self.program),), ASAN_OPTIONS="detect_leaks=1"))
        self.assertEqual({entry["reason"] for entry in report["unrecorded"]}, {"a sanitizer's run-time is in it"})

    def test_one_behind_a_loader_that_is_started_by_name(self):
        self.sanitized("gcc", "-fsanitize=address")
        run = self.as_bare(("/lib64/ld-linux-x86-64.so.2", "--argv0", "name", str(self.program)))
        self.assertRegex(self.text_of(run), "sanitizer's run-time is in it")

    def test_gccs_thread_sanitizer(self):
        self.sanitized("gcc", "-fsanitize=thread")
        self.assert_as_bare("sanitizer's run-time is in it")

    def test_gccs_leak_sanitizer(self):
        self.sanitized("gcc", "-fsanitize=leak")
        self.assert_as_bare("sanitizer's run-time is in it")

    def test_gccs_thread_sanitizer_in_the_program_itself(self):
        self.sanitized("gcc", "-fsanitize=thread", "-static-libtsan")
        self.as_bare((str(self.program),))

    def test_clangs_thread_sanitizer_in_the_program_itself(self):
        self.sanitized("clang", "-fsanitize=thread")
        self.assert_as_bare("sanitizer's run-time is in it")

    def test_one_that_the_user_preloads(self):
        self.compile("gcc", text=SANITIZED)
        library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
        library = str(pathlib.Path(library).resolve())
        if subprocess.run([self.program], env=self.environment(LD_PRELOAD=library), capture_output=True).returncode != 7:
            self.skipTest("no libasan.so to preload")
        run = self.as_bare((str(self.program),), LD_PRELOAD=library)
        self.assertIn(library.encode(), run.out)
        self.assertRegex(self.text_of(run), "sanitizer's run-time is in it")
        words, folder = self.memlog_command((str(self.program),), ("--no-page",))
        answer = harness.run_words(words, self.folder, self.environment(LD_PRELOAD=library), b"", harness.TIMEOUT)
        self.assertEqual((answer.returncode, answer.stdout), (7, run.out))
        self.assertRegex(answer.stderr.decode(), r"\A.*  \d process(.|\n)*not recorded: a sanitizer(.|\n)*memlog: next: .*\n\Z")
        self.assertNotIn("could not", answer.stderr.decode())
        words = [str(harness.MEMLOG), "report", "--full", str(next(folder.glob("*.pftrace")))]
        answer = harness.run_words(words, self.folder, self.environment(LD_PRELOAD=library), b"", harness.TIMEOUT)
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))


class OlderLibc(Loading):
    """In another root, with this machine's libc and loader without what has come since glibc 2.17."""

    # Started by nothing of libc that is younger: no main.
    PROGRAM = """
    #include <stdlib.h>
    #include <unistd.h>
    __attribute__((noinline)) static char *keep(size_t size) { char *block = malloc(size); block[0] = 1; return block; }
    char *volatile kept[100];
    __attribute__((force_align_arg_pointer)) void _start(void) {
        for (int i = 0; i < 100; i++) kept[i] = keep(1000);
        _exit(write(1, "hello\\n", 6) == 6 ? 7 : 1);
    }
    """

    def older(self, source, target):
        """The versions of 2.18 and later are called otherwise, and _dl_find_object is not there."""
        data = bytearray(source.read_bytes())
        headers = subprocess.run(["readelf", "-SW", source], stdout=subprocess.PIPE, text=True, check=True).stdout
        sections = {row[0]: (int(row[3], 16), int(row[4], 16)) for row in re.findall(
            r"\] (\.\S+) +(\S+) +(\S+) +(\S+) +(\S+)", headers)}
        strings, size = sections[".dynstr"]
        renamed = {}
        for found in list(re.finditer(rb"\0(GLIBC_2\.(\d+))(?=\0)", data[strings:strings + size])):
            if int(found[2]) > 17:
                new = found[1].replace(b"GLIBC_2", b"GLIBC_9")
                data[strings + found.start(1):strings + found.end(1)] = new
                renamed[self.hash_of(found[1])] = self.hash_of(new)
        at = data.find(b"\0_dl_find_object\0", strings, strings + size)
        if at >= 0:
            data[at + 1:at + 4] = b"_no"
        for name in (".gnu.version_d", ".gnu.version_r"):  # a version's hash stands as a word in its entry
            start, length = sections.get(name, (0, 0))
            for place in range(start, start + length, 4):
                word = int.from_bytes(data[place:place + 4], "little")
                if word in renamed:
                    data[place:place + 4] = renamed[word].to_bytes(4, "little")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(0o755)

    def hash_of(self, name):
        value = 0
        for byte in name:
            value = (value << 4) + byte
            high = value & 0xf0000000
            value = (value ^ high >> 24) & ~high & 0xffffffff
        return value

    @unittest.skipIf(os.geteuid() != 0, "needs root for chroot")
    def test_a_program_in_a_root_with_an_older_libc_is_recorded(self):
        self.compile("gcc", "-O1", "-nostartfiles", text=self.PROGRAM)
        root = self.folder / "root"
        for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"):
            self.older(pathlib.Path(path).resolve(), root / path.lstrip("/"))
        shutil.copy(self.program, root / "hello")
        shutil.copytree(harness.OUT / "preload", root / str(harness.OUT / "preload").lstrip("/"), symlinks=True)
        shutil.copy(harness.OUT / "libmemlog.so", root / str(harness.OUT).lstrip("/"))
        (root / "tmp").mkdir(exist_ok=True)
        self.assertEqual(subprocess.run(["chroot", root, "/hello"], stdout=subprocess.DEVNULL).returncode, 7)
        words = ("unshare", "--mount", "/bin/sh", "-c", 'mount --bind /tmp "$0/tmp" && exec chroot "$0" /hello', str(root))
        if subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 7:
            self.skipTest("may not mount here")
        run = self.memlog(*words)
        self.assertEqual((run.code, run.out, run.err), (7, b"hello\n", ""))
        (entry,) = [entry for entry in self.exit_report(run)["processes"] if entry["name"] == "hello"]
        self.assertTrue(entry["complete"])
        self.assertEqual((entry["live_blocks"], entry["live_bytes"]), (100, 100000))
        frames = [frame for stack in entry["stacks"] if stack["live_bytes"] >= 100000 for frame in stack["frames"]]
        self.assertEqual([frame["function"] for frame in frames][:2], ["keep", "_start"], frames)
        self.assertTrue(all(frame["build_id"] for frame in frames[:2]), frames)


class Ordinary(Loading):
    def test_it_is_recorded_however_it_is_started(self):
        self.compile("gcc")
        for words, how in self.ways():
            with self.subTest(how=how):
                run = self.as_bare(words)
                names = {entry["name"] for entry in self.exit_report(run)["processes"] if entry["events"] > 0}
                self.assertTrue(names & {"hello", "script"}, names)

    def test_also_where_memlogs_path_has_what_a_loader_reads_as_something_else(self):
        self.compile("gcc")
        place = self.folder / "a place: with $LIB"
        place.mkdir()
        for name in ("memlog", "memlog-analyzer", "memlog-service", "libmemlog.so"):
            shutil.copy(harness.OUT / name, place)
        shutil.copytree(harness.OUT / "preload", place / "preload", symlinks=True)
        folder = self.folder / "dumps-there"
        words = [str(place / "memlog"), "run", "-q", "--no-page", f"--output={folder}", "--", str(self.program)]
        answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual((answer.returncode, answer.stdout, answer.stderr), (7, b"hello\n", b""))
        report = self.report(next(folder.glob("*.exit.pftrace")))
        self.assertEqual([entry["name"] for entry in report["processes"] if entry["events"] > 0], ["hello"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
