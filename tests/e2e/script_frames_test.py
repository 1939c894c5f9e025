"""Functions of interpreters and JITs in stacks: their names are in the dump, of the moment of the dump, and never another process's."""
import gzip
import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

import harness

SIZE = 50003
CALLS = 300
LEAK_JS = """\
const kept = [];
function leakKnownBytes() { kept.push(Buffer.allocUnsafeSlow(%d)); }
function outerCaller() { for (let i = 0; i < 20; i++) leakKnownBytes(); }
for (let i = 0; i < %d; i++) outerCaller();
process.reallyExit(0);
""" % (SIZE, CALLS // 20)
NODE = ("/usr/bin/env", "node", "--interpreted-frames-native-stack")

# Makes a function at run time, keeps 70001 bytes through it, and waits for a line each before the next name's turn.
MAKER_C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
/* push %rbp; mov %rsp,%rbp; call *%rsi; pop %rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3};
typedef void *made(size_t size, void *(*allocate)(size_t));
int main(void) {
    char line[16];
    void *place = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(place, code, sizeof code);
    if (mprotect(place, 4096, PROT_READ | PROT_EXEC) != 0 || ((made *)place)(70001, malloc) == NULL) {
        return 1;
    }
    printf("%lx\n", (unsigned long)place);
    fflush(stdout);
    return fgets(line, sizeof line, stdin) == NULL;
}
"""

# The same in a child whose mounts and process numbers are its own, as a container's are. It writes its map itself.
INSIDE_C = "#define _GNU_SOURCE\n#include <sched.h>\n#include <sys/mount.h>\n#include <sys/wait.h>\n#include <unistd.h>\n" + MAKER_C.replace(
    "char line[16];",
    """char line[16];
    if (unshare(CLONE_NEWNS | CLONE_NEWPID) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "/tmp", "tmpfs", 0, NULL) != 0) {
        return 2;
    }
    if (fork() != 0) {
        return wait(NULL) < 0;
    }""",
).replace(
    'printf("%lx\\n", (unsigned long)place);',
    """char path[64];
    sprintf(path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%lx 8 inside\\n", (unsigned long)place);
    fclose(map);
    puts(path);""",
)


def script_frames(stack):
    return [frame for frame in stack["frames"] if frame.get("kind") == "script"]


class Scripts(harness.Case):
    def forget_maps(self, report):
        """From here on the dump alone has the names."""
        for entry in report["processes"]:
            for path in (f"/tmp/perf-{entry['pid']}.map", self.folder / f"jit-{entry['pid']}.dump"):
                pathlib.Path(path).unlink(missing_ok=True)

    def assert_leak_is_named(self, report):
        """Every block of the leak lies on stacks with its function, and nothing else does that holds such blocks."""
        stacks = [stack for entry in report["processes"] for stack in entry["stacks"]
                  if stack["live_blocks"] and stack["live_bytes"] == SIZE * stack["live_blocks"]]
        self.assertEqual(sum(stack["live_bytes"] for stack in stacks), SIZE * CALLS)
        for stack in stacks:
            frames = script_frames(stack)
            names = [frame["function"] for frame in frames]
            at = names.index("leakKnownBytes")
            self.assertEqual(names[at + 1], "outerCaller")
            self.assertEqual([(frame["file"], frame["line"]) for frame in frames[at:at + 2]],
                             [(str(self.folder / "leak.js"), 2), (str(self.folder / "leak.js"), 3)])
            self.assertEqual({frame["module"] for frame in frames}, {"[script]"})

    def node(self, *options):
        (self.folder / "leak.js").write_text(LEAK_JS)
        return self.memlog(*NODE, *options, self.folder / "leak.js")


@unittest.skipIf(shutil.which("node") is None, "needs node")
class Node(Scripts):
    def test_a_perf_map_names_the_functions_of_a_leak(self):
        run = self.node("--perf-basic-prof")
        self.forget_maps(self.exit_report(run))
        self.assert_leak_is_named(self.exit_report(run))

    def test_a_jitdump_names_them_as_well(self):
        run = self.node("--perf-prof")
        report = self.exit_report(run)
        self.assertTrue(list(self.folder.glob("jit-*.dump")))
        self.forget_maps(report)
        self.assert_leak_is_named(self.exit_report(run))

    def test_every_form_has_the_names(self):
        run = self.node("--perf-basic-prof")
        dump = run.dumps()[0]
        self.forget_maps(self.report(dump))
        for form in ("perfetto", "pprof", "chrome", "collapsed", "sqlite", "json", "html"):
            target = self.folder / f"out.{form}"
            words = [harness.MEMLOG, "convert", f"--to={form}", "-o", target, dump]
            subprocess.run(words, check=True, env=self.environment(), capture_output=True)
            bytes_of = target.read_bytes()
            if form == "pprof":
                words = [harness.pprof(), "-raw", target]
                bytes_of = subprocess.run(words, check=True, capture_output=True, env=self.environment()).stdout
                self.assertFalse(b"(leakKnownBytes" in bytes_of)  # its system name: no path is in it, or uploads would have it
            if bytes_of.startswith(b"\x1f\x8b"):
                bytes_of = gzip.decompress(bytes_of)
            self.assertTrue(b"leakKnownBytes" in bytes_of, form)
        text = subprocess.run([harness.MEMLOG, "report", "--full", dump], check=True, env=self.environment(), capture_output=True).stdout
        self.assertRegex(text.decode(), r"leakKnownBytes +leak\.js:2")

    def test_without_a_switch_the_report_and_doctor_say_which_gives_names(self):
        run = self.node()
        dump = run.dumps()[0]
        said = self.said("report", "--full", dump)
        self.assertRegex(said, r"Scripts  whose functions have no names\n  node: JavaScript functions: node --perf-basic-prof .* names them\n")
        named = self.node("--perf-basic-prof")
        self.forget_maps(self.exit_report(named))
        self.assertNotIn("Scripts  whose", self.said("report", "--full", named.dumps()[0]))
        self.assertRegex(self.said("doctor", "node", "x.js"), r"note  names +JavaScript functions have no names in stacks: node --perf-basic-prof")
        self.assertRegex(self.said("doctor", "node", "--perf-basic-prof", "x.js"), r"ok    names +JavaScript functions")

    def said(self, *words):
        return subprocess.run([harness.MEMLOG, *words], check=True, env=self.environment(), capture_output=True, text=True).stdout

    def test_how_a_function_is_compiled_does_not_divide_it(self):
        script = self.folder / "hot.js"
        script.write_text(
            "const kept = []; function keepOne() { kept.push(Buffer.allocUnsafeSlow(%d)); }\n"
            "for (let i = 0; i < 20000; i++) { keepOne(); if (kept.length > %d) kept.length = 0; }\nprocess.reallyExit(0);\n" % (SIZE, 100)
        )
        run = self.memlog(*NODE, "--perf-basic-prof", script)
        report = self.exit_report(run)
        self.forget_maps(report)
        names = {frame["function"] for entry in report["processes"] for stack in entry["stacks"] for frame in stack["frames"]
                 if "keepOne" in frame["function"]}
        self.assertEqual(names, {"keepOne"})


LEAK_PY = """\
kept = []
class Keeper:
    def leak_known_bytes(self):
        kept.append(bytearray(%d))
def outer_caller():
    for _ in range(20):
        Keeper().leak_known_bytes()
for _ in range(%d):
    outer_caller()
import os, sys
sys.stdout.flush()
os._exit(0)
""" % (SIZE, CALLS // 20)


LEAK_JAVA = """\
import java.nio.ByteBuffer;
import java.util.ArrayList;
public class Leak {
    static ArrayList<ByteBuffer> kept = new ArrayList<>();
    static void leakKnownBytes() { kept.add(ByteBuffer.allocateDirect(%d)); }
    static void outerCaller() { for (int i = 0; i < 20; i++) leakKnownBytes(); }
    public static void main(String[] words) { for (int i = 0; i < %d; i++) outerCaller(); }
}
""" % (SIZE, CALLS // 20)


def python_with_trampolines():
    """A python that writes a perf map: 3.12 or later."""
    for name in (os.environ.get("MEMLOG_TEST_PYTHON"), "python3", "python3.12", "python3.13", "python3.14"):
        program = shutil.which(name) if name else None
        words = [program, "-X", "perf", "-c", "import os, sys; os.unlink(f'/tmp/perf-{os.getpid()}.map'); print(sys.is_stack_trampoline_active())"]
        if program and subprocess.run(words, capture_output=True, check=False).stdout == b"True\n":
            return program
    return None


PYTHON = python_with_trampolines()


@unittest.skipIf(PYTHON is None, "needs Python 3.12 or later (MEMLOG_TEST_PYTHON names one)")
class Python(Scripts):
    def test_a_perf_map_names_the_functions_of_a_leak_and_no_stack_ends_at_a_trampoline(self):
        script = self.folder / "leak.py"
        script.write_text(LEAK_PY)
        for allocator in ("pymalloc", "malloc"):
            run = self.memlog(PYTHON, "-X", "perf", script, env=self.environment(PYTHONMALLOC=allocator))
            self.forget_maps(self.exit_report(run))
            (entry,) = self.exit_report(run)["processes"]
            self.assertEqual(entry["broken_stacks"], 0)
            leaks = [stack for stack in entry["stacks"] if stack["live_blocks"] and SIZE <= stack["live_bytes"] / stack["live_blocks"] < SIZE + 64]
            self.assertEqual(sum(stack["live_blocks"] for stack in leaks), CALLS)
            for stack in leaks:
                names = [(frame["function"], frame["file"]) for frame in script_frames(stack)]
                self.assertEqual(names, [(name, str(script)) for name in ("Keeper.leak_known_bytes", "outer_caller", "<module>")])


@unittest.skipIf(shutil.which("javac") is None, "needs a JDK")
class Java(Scripts):
    def test_a_perf_map_names_the_methods_of_a_leak(self):
        (self.folder / "Leak.java").write_text(LEAK_JAVA)
        subprocess.run(["javac", "Leak.java"], check=True, cwd=self.folder, capture_output=True)
        switches = "-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -XX:-Inline -Xcomp".split()
        run = self.memlog("java", *switches, "-cp", self.folder, "Leak")
        if "DumpPerfMapAtExit" in run.err:
            self.skipTest("needs Java 17 or later")
        self.forget_maps(self.exit_report(run))
        report = self.exit_report(run)
        leaks = [stack for entry in report["processes"] for stack in entry["stacks"]
                 if stack["total_blocks"] and SIZE <= stack["total_bytes"] / stack["total_blocks"] < SIZE + 64]
        self.assertEqual(sum(stack["total_blocks"] for stack in leaks), CALLS)
        named = 0
        for stack in leaks:
            names = [frame["function"] for frame in script_frames(stack)]
            at = names.index("java.nio.ByteBuffer java.nio.ByteBuffer.allocateDirect(int)") + 1
            # The first calls of a method are the interpreter's, which tells no names.
            for name, wanted in zip(names[at:], ("void Leak.leakKnownBytes()", "void Leak.outerCaller()", "void Leak.main(java.lang.String[])")):
                self.assertIn(name, (wanted, "Interpreter"))
            self.assertGreaterEqual(len(names), at + 3)
            named += stack["total_blocks"] * (names[at] == "void Leak.leakKnownBytes()")
        self.assertGreaterEqual(named, CALLS - 20)


class Maps(Scripts):
    """A program that makes a function, and maps that are written for it."""

    def setUp(self):
        super().setUp()
        source = self.folder / "maker.c"
        source.write_text(MAKER_C)
        self.maker = self.folder / "maker"
        subprocess.run(["gcc", "-O1", "-o", self.maker, source], check=True)

    def start(self):
        """The maker under memlog: it, its pid, where its function is, and its map's path."""
        run = self.memlog_start(self.maker, stdin=subprocess.PIPE)
        place = run.stdout.readline().decode().strip()
        pid = next(int(pid) for pid in subprocess.run(["pgrep", "-P", str(run.pid), "-x", "maker"], check=True,
                                                      capture_output=True, text=True).stdout.split())
        path = pathlib.Path(f"/tmp/perf-{pid}.map")
        self.addCleanup(path.unlink, missing_ok=True)
        return run, pid, place, path

    def end(self, run, pid=None, killed=False):
        if killed:
            os.kill(pid, signal.SIGKILL)
        else:
            self.go(run)
        run.wait(harness.TIMEOUT)
        return harness.Run(run.returncode, b"", "", run.memlog_folder)

    def names(self, report):
        return {frame["function"] for entry in report["processes"] for stack in entry["stacks"] for frame in script_frames(stack)}

    def names_without_map(self, run, path):
        path.unlink(missing_ok=True)
        return self.names(self.exit_report(run))

    def test_the_last_line_before_the_end_counts(self):
        run, pid, place, path = self.start()
        path.write_text(f"{place} 8 first\n{place} 8 last\n{place} 8 cut")
        doctor = [harness.MEMLOG, "doctor", f"--pid={pid}"]
        said = subprocess.run(doctor, env=self.environment(), capture_output=True, check=False, text=True).stdout
        self.assertIn(f"its run-time tells names of its functions in {path}\n", said)
        self.assertEqual(self.names_without_map(self.end(run), path), {"last"})

    def test_who_is_killed_has_names(self):
        run, pid, place, path = self.start()
        path.write_text(f"{place} 8 made\n")
        self.assertEqual(self.names_without_map(self.end(run, pid, killed=True), path), {"made"})

    def test_a_dump_has_the_names_of_its_moment(self):
        run, _, place, path = self.start()
        path.write_text(f"{place} 8 then\n")
        words = [harness.MEMLOG, "dump"]
        subprocess.run(words, check=True, env=self.environment(), capture_output=True, cwd=self.folder)
        path.write_text(f"{place} 8 later\n")
        ended = self.end(run)
        path.unlink()
        self.assertEqual([self.names(self.report(dump)) for dump in ended.dumps("manual")], [{"then"}])
        self.assertEqual(self.names(self.exit_report(ended)), {"then"})  # a name that was found stays

    def test_a_map_that_comes_after_the_dump_names_what_the_dump_does_not(self):
        run, _, place, path = self.start()
        subprocess.run([harness.MEMLOG, "dump"], check=True, env=self.environment(), capture_output=True, cwd=self.folder)
        (dump,) = run.memlog_folder.glob("*.manual.pftrace")
        self.assertEqual(self.names(self.report(dump)), set())
        path.write_text(f"{place} 8 late\n")
        self.assertEqual(self.names(self.report(dump)), {"late"})
        self.end(run)

    def test_a_map_of_before_the_process_is_not_its_own(self):
        run, _, place, path = self.start()
        path.write_text(f"{place} 8 stranger\n")
        os.utime(path, (1, 1))
        self.assertEqual(self.names(self.exit_report(self.end(run))), set())

    def test_a_link_is_not_followed(self):
        run, _, place, path = self.start()
        other = self.folder / "other.map"
        other.write_text(f"{place} 8 linked\n")
        path.symlink_to(other)
        self.assertEqual(self.names_without_map(self.end(run), path), set())

    @unittest.skipIf(os.geteuid() != 0, "needs root to become somebody else")
    def test_another_users_map_is_not_taken(self):
        run, _, place, path = self.start()
        path.write_text(f"{place} 8 forged\n")
        os.chown(path, 65534, 65534)
        self.assertEqual(self.names_without_map(self.end(run), path), set())

    def test_a_map_of_nonsense_names_nothing_and_costs_nothing(self):
        run, _, place, path = self.start()
        path.write_bytes(os.urandom(1 << 20) + f"\n0 {'f' * 16} wide\n{place} 0 empty\n".encode())
        report = self.exit_report(self.end(run))
        self.assertTrue(report["dump"]["complete"])
        self.assertLessEqual(self.names(report), {"wide"})

    @unittest.skipIf(os.geteuid() != 0, "needs root to make namespaces")
    def test_a_process_in_namespaces_of_its_own_has_the_map_that_it_writes_there(self):
        source = self.folder / "inside.c"
        source.write_text(INSIDE_C)
        program = self.folder / "inside"
        subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
        run = self.memlog_start(program, stdin=subprocess.PIPE)
        self.assertEqual(run.stdout.readline(), b"/tmp/perf-1.map\n")
        self.assertFalse(pathlib.Path("/tmp/perf-1.map").exists())
        # Whoever is over before the host has looked at it has no /tmp any more.
        def listed():
            answer = subprocess.run([harness.MEMLOG, "ps", "--json"], env=self.environment(), capture_output=True, check=True)
            return len(json.loads(answer.stdout)["processes"])

        self.wait_for("both", lambda: listed() == 2)
        report = self.exit_report(self.end(run))
        self.assertEqual(self.names(report), {"inside"}, (report["dump"], [(one["pid"], one["total_blocks"]) for one in report["processes"]]))


if __name__ == "__main__":
    unittest.main()
