"""Names of code that lies in another root: they are in the dump when the container has gone, and no hostile root lends others' names or holds memlog up."""
import ctypes
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import threading
import unittest

import harness
from symbols_test import SIZE, Keeper

# No system has it.
PLACE = "/memlog-container-program"
PROGRAM = f"{PLACE}/keeper"
NOBODY = 65534
ENDED = "its process had ended before its names were read; memlog dump while it runs keeps them"
MNT_DETACH, SYS_PIVOT_ROOT, FUSE_INIT = 2, 155, 26

# It allocates, tells so, and waits for a line where there is an argument.
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static void *deep_keeper(size_t size) { void *kept = malloc(size); __asm__ volatile("" ::: "memory"); return kept; }
__attribute__((noinline)) static void *outer_keeper(size_t size) { void *kept = deep_keeper(size); __asm__ volatile("" ::: "memory"); return kept; }
int main(int argc, char **argv) {
    if (outer_keeper(%d) == NULL) { return 1; }
    if (argc > 1) { puts("ready"); fflush(stdout); return getchar() == EOF; }
    return 0;
}
"""

# Become the root's, by a mount namespace and pivot_root, or by chroot alone. The first lines are its own; then words.
PIVOT = f"""
import ctypes, os, subprocess, sys
root, shown, words = sys.argv[1], sys.argv[2].split(":"), sys.argv[3:]
libc = ctypes.CDLL(None, use_errno=True)
def call(what):
    if what != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
subprocess.run(["mount", "--make-rprivate", "/"], check=True)
subprocess.run(["mount", "--bind", root, root], check=True)
for path in shown:
    subprocess.run(["mount", "--rbind", path, root + path], check=True)
os.chdir(root)
call(libc.syscall({SYS_PIVOT_ROOT}, b".", b"."))
call(libc.umount2(b".", {MNT_DETACH}))
os.chdir("/")
os.execv(words[0], words)
"""
CHROOT = """
import os, sys
print("here", flush=True)
sys.stdin.readline()
child = os.fork()
if child == 0:
    os.chroot(sys.argv[1])
    os.chdir("/")
    os.execv(sys.argv[2], sys.argv[2:])
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print("ready", flush=True)
sys.stdin.readline()
os._exit(code)
"""


def lacks(*words):
    """Why these words cannot be run here; "" if they can."""
    if not shutil.which(words[0]):
        return f"needs {words[0]} (tools/dev/setup test)"
    tried = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return "" if tried.returncode == 0 else f"{words[0]} cannot wall in here: {tried.stdout.strip()}"


NO_BWRAP = lacks("bwrap", "--ro-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "true")
NO_UNSHARE = lacks("unshare", "--user", "--map-root-user", "--mount", "true")


class Container(Keeper):
    """A root with a program that this system does not have, and with the libraries of this system."""

    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        self.root = self.folder / "root"
        for name in ("proc", "dev", "tmp", f".{harness.OUT}"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        (self.root / "tmp").chmod(0o1777)
        self.add(self.program, PROGRAM)
        self.add_libraries(self.program)

    def compile(self, target, size=SIZE):
        source = self.folder / "keeper.c"
        source.write_text(SOURCE % size)
        self.tool("gcc", "-g", "-O1", "-o", target, source)

    def inside(self, path):
        return self.root / str(path).lstrip("/")

    def add(self, source, path):
        target = self.inside(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(os.path.realpath(source), target)
        target.chmod(0o755)

    def add_libraries(self, program):
        told = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
        for library in re.findall(r"(/\S+) \(0x", told):
            if not self.inside(library).exists():
                self.add(library, library)

    def bwrap(self, *words):
        """The same files, memlog's, and the folder of its socket."""
        return ["bwrap", "--die-with-parent", "--bind", self.root, "/", "--ro-bind", harness.OUT, harness.OUT, "--bind", "/tmp", "/tmp", "--proc", "/proc", "--dev", "/dev",
                "--unshare-pid", *words]

    def behind(self, words):
        """A run in which they have ended, and which goes on until it gets a line."""
        process = self.memlog_start("sh", "-c", '"$@" && echo ready && read line', "sh", *words, stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n", self.said(process))
        return process

    def held(self, process, *more):
        """What of mount namespaces, or of these paths, memlog has open."""
        links = [os.readlink(path) for path in pathlib.Path(f"/proc/{process.pid}/fd").iterdir() if path.is_symlink()]
        return [link for link in links if link.startswith(("mnt:", *map(str, more)))]

    def go_on(self, process):
        self.go(process)
        self.assertEqual(process.wait(harness.TIMEOUT), 0, self.said(process))

    def said(self, process):
        process.memlog_log.seek(0)
        return process.memlog_log.read().decode(errors="replace")

    def assert_told(self, dump, why):
        text = self.analyze("report", "--full", dump)[0]
        self.assertRegex(text, rf"(?m)^  \S*keeper(| \(deleted\)) \(build id [0-9a-f]{{40}}\): \d+ of \d+ places, {re.escape(why)}")

    def as_nobody(self, *words, **more):
        """The exit dump of a run of somebody without rights."""
        place = self.folder / "users"
        place.mkdir(mode=0o700)
        how = {}
        if os.geteuid() == 0:
            os.chown(place, NOBODY, NOBODY)
            for path in (self.folder / "run", self.truth_folder):
                os.chown(path, NOBODY, NOBODY)
            how = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.runs += 1
        words = [str(harness.MEMLOG), "run", "-q", "--no-page", "-o", place / "dumps", "--", *words]
        run = subprocess.run(list(map(str, words)), cwd=place, env=self.environment(HOME=str(place)), stdin=subprocess.DEVNULL, capture_output=True, check=False,
                             timeout=harness.TIMEOUT, **how, **more)
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        (dump,) = (place / "dumps").glob("*.exit.pftrace")
        return dump

    def dump_of(self, process):
        (dump,) = process.memlog_folder.glob("*.exit.pftrace")
        return dump


@unittest.skipIf(NO_BWRAP, NO_BWRAP)
class Sandbox(Container):
    def test_they_are_in_the_dump_when_the_root_is_gone(self):
        run = self.memlog(*self.bwrap(PROGRAM))
        self.assertEqual((run.code, run.err), (0, ""))
        shutil.rmtree(self.root)
        (dump,) = run.dumps()
        self.assert_named(self.collapsed(dump))
        text = self.analyze("report", "--full", dump)[0]
        self.assertRegex(text, r"deep_keeper +.*keeper\.c:4\n")

    def test_a_dump_of_processes_that_run_has_them_and_the_next_one_too(self):
        """And nothing of the sandbox's is held once they are kept."""
        process = self.behind(self.bwrap(PROGRAM))
        self.assertTrue(self.held(process), "the handle of the sandbox's mounts, until a dump has its names")
        self.analyze("dump")
        self.assertEqual(self.held(process), [])
        shutil.rmtree(self.root)
        self.go_on(process)
        (first,) = process.memlog_folder.glob("*.manual.pftrace")
        for dump in (first, self.dump_of(process)):
            self.assert_named(self.collapsed(dump, "--ended=yes"))

    @unittest.skipIf(os.geteuid() != 0, "mounts as root")
    def test_nobody_is_kept_from_unmounting(self):
        disk = self.folder / "disk"
        disk.mkdir()
        self.tool("mount", "-t", "tmpfs", "memlog-test", disk)
        self.addCleanup(subprocess.run, ["umount", disk], check=False, capture_output=True)
        shutil.copy(self.program, disk / "keeper")
        process = self.behind(self.bwrap("--bind", disk, f"{PLACE}-disk", f"{PLACE}-disk/keeper"))
        self.tool("umount", disk)
        self.go_on(process)
        self.assert_named(self.collapsed(self.dump_of(process)))

    def test_a_debug_file_of_the_root_gives_lines(self):
        program = self.inside(PROGRAM)
        build_id = re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", program], stdout=subprocess.PIPE, text=True, check=True).stdout).group(1)
        debug = self.inside(f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug")
        debug.parent.mkdir(parents=True)
        self.tool("objcopy", "--only-keep-debug", program, debug)
        self.tool("strip", program)
        dump = self.memlog(*self.bwrap(PROGRAM)).dumps()[0]
        shutil.rmtree(self.root)
        self.assertRegex(self.analyze("report", "--full", dump)[0], r"deep_keeper +.*keeper\.c:4\n")

    def test_a_debug_file_beside_the_program_gives_lines(self):
        program = self.inside(PROGRAM)
        debug = program.parent / ".debug" / "keeper.more"
        debug.parent.mkdir()
        self.tool("objcopy", "--only-keep-debug", program, debug)
        self.tool("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program)
        dump = self.memlog(*self.bwrap(PROGRAM)).dumps()[0]
        shutil.rmtree(self.root)
        self.assertRegex(self.analyze("report", "--full", dump)[0], r"deep_keeper +.*keeper\.c:4\n")

    def nameless_where(self, change, why):
        """A run in which the root's owner does something with the program's file before the dump, and what is said of it."""
        process = self.memlog_ready(*self.bwrap(PROGRAM, "wait"))
        program = self.inside(PROGRAM)
        program.rename(program.parent / "moved")
        change(program)
        self.go_on(process)
        self.assert_nameless(self.collapsed(self.dump_of(process)))
        self.assert_told(self.dump_of(process), why)

    def test_a_file_of_another_build_gives_none(self):
        def change(program):
            self.compile(program, size=SIZE + 1)
        self.nameless_where(change, "the file is another one by now")

    def test_a_fifo_gives_none_and_holds_nobody_up(self):
        self.nameless_where(os.mkfifo, "what is at its place is no regular file; memlog symbolize with MEMLOG_BINARY_PATH")

    def test_a_device_gives_none(self):
        self.nameless_where(lambda program: program.symlink_to("/dev/zero"), "what is at its place is no regular file")

    def outside(self):
        """A file with the names, where nobody in the root comes to."""
        place = tempfile.TemporaryDirectory(dir="/var/tmp", prefix="memlog-test.")
        self.addCleanup(place.cleanup)
        shutil.copy(self.whole, place.name)
        return pathlib.Path(place.name) / "whole"

    def test_a_link_leads_nowhere_outside_of_the_root(self):
        self.nameless_where(lambda program: program.symlink_to(self.outside()), ENDED)

    def test_a_link_up_leads_nowhere_outside_of_the_root(self):
        self.nameless_where(lambda program: program.symlink_to("../" * 20 + str(self.outside())), ENDED)

    def test_a_link_within_the_root_is_followed_there(self):
        """An absolute one leads into the root, as for whoever runs there."""
        program = self.inside(PROGRAM)
        program.rename(program.parent / "moved")
        program.symlink_to(f"{PLACE}/moved")
        process = self.memlog_ready(*self.bwrap(PROGRAM, "wait"))
        self.go_on(process)
        self.assert_named(self.collapsed(self.dump_of(process)))

    def test_a_huge_file_gives_none(self):
        def change(program):
            with open(program, "wb") as file:
                file.truncate(1 << 42)
        self.nameless_where(change, "the file is larger than memlog copies (1 GiB)")

    def test_a_file_that_has_gone_is_told_with_the_next_step(self):
        self.nameless_where(lambda program: None, ENDED)

    def test_an_unlinked_file_of_a_process_that_runs(self):
        """Root reads what is mapped; others hear what to do."""
        process = self.memlog_ready(*self.bwrap(PROGRAM, "wait"))
        self.inside(PROGRAM).unlink()
        self.analyze("dump")
        (dump,) = process.memlog_folder.glob("*.manual.pftrace")
        self.go_on(process)
        self.assert_named(self.collapsed(dump, "--ended=yes"))

    def test_a_file_that_may_not_be_read(self):
        """The errno's word stands there. Who may not read a program's file from the start is not recorded."""
        if os.geteuid() == 0:
            os.chown(self.inside(PROGRAM), NOBODY, NOBODY)
        dump = self.as_nobody("sh", "-c", '"$@" && chmod 0 "$0"', self.inside(PROGRAM), *self.bwrap(PROGRAM))
        self.assert_nameless(self.collapsed(dump))
        self.assert_told(dump, "the file is not readable for memlog: Permission denied; run memlog as root")

    def test_an_interpreters_names_are_those_of_a_run_without_a_sandbox(self):
        """Every name that the symbols permit: as many as where the same files are in sight."""
        python = pathlib.Path(os.path.realpath("/usr/bin/python3"))
        library = pathlib.Path("/usr/lib") / python.name
        words = ["-S", "-c", "import json; kept = [json.loads('{\"a\": [1, 2, 3]}') for _ in range(200)]"]
        self.add(python, f"{PLACE}/bin/{python.name}")
        self.add_libraries(python)
        shutil.copytree(library, self.inside(f"{PLACE}/lib/{python.name}"), ignore=shutil.ignore_patterns("test", "*.a", "config-*", "dist-packages", "__pycache__"))
        for extension in (library / "lib-dynload").glob("*.so"):
            self.add_libraries(extension)
        env = self.environment(PYTHONMALLOC="malloc", PYTHONDONTWRITEBYTECODE="1")
        bare = self.memlog(python, *words, env=env)
        walled = self.memlog(*self.bwrap("--setenv", "PYTHONHOME", PLACE, f"{PLACE}/bin/{python.name}", *words), env=env)
        self.assertEqual((bare.code, walled.code), (0, 0), walled.err)
        shutil.rmtree(self.root)
        seen, walled_in = (self.names_in(run, python.name) for run in (bare, walled))
        both = [place for place in walled_in if seen.get(place)]  # without a folder for compiled modules it does more, at places of its own
        self.assertGreater(len(both), 20, "this python has exported names at least")
        self.assertGreater(sum(walled_in[place] == seen[place] for place in both), 0.95 * len(both))

    def names_in(self, run, name):
        """What each place in that file is called; "": it has no name."""
        return {frame["offset"]: frame["function"] for process in self.exit_report(run)["processes"] for stack in process["stacks"]
                for frame in stack["frames"] if os.path.basename(frame["module"]) == name}


@unittest.skipIf(NO_UNSHARE, NO_UNSHARE)
class Namespace(Container):
    def test_of_a_user_who_pivots(self):
        """Somebody without rights, in namespaces that he has made himself."""
        dump = self.as_nobody("unshare", "--user", "--map-root-user", "--mount", "/usr/bin/python3", "-c", PIVOT, self.root, f"/tmp:{harness.OUT}", PROGRAM)
        shutil.rmtree(self.root)
        self.assert_named(self.collapsed(dump))


@unittest.skipIf(os.geteuid() != 0, "chroot is root's")
class Chroot(Container):
    def setUp(self):
        super().setUp()
        for source in (harness.OUT / "libmemlog.so", *(harness.OUT / "preload").rglob("*.so")):
            self.add(source, source)

    def chrooted(self, *words):
        """A run that stands in the root, in the mount namespace of all others. Memlog's socket is there by another name of the same."""
        process = self.memlog_start("/usr/bin/python3", "-c", CHROOT, self.root, *words, stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"here\n", self.said(process))
        (place,) = pathlib.Path("/tmp").glob(f"memlog.{process.pid}.*")
        target = self.inside(place)
        target.mkdir()
        for socket in place.iterdir():
            os.link(socket, target / socket.name)
        self.go(process)
        self.assertEqual(process.stdout.readline(), b"ready\n", self.said(process))
        return process

    def test_they_are_in_the_dump_when_the_root_is_gone(self):
        """And until then nothing of the root is held: whoever has mounted it can unmount it."""
        process = self.chrooted(PROGRAM)
        self.wait_for("the end is known", lambda: self.held(process, self.root) == [])
        self.go_on(process)
        shutil.rmtree(self.root)
        self.assert_named(self.collapsed(self.dump_of(process)))

    @unittest.skipUnless(os.path.exists("/dev/fuse"), "needs /dev/fuse")
    def test_a_file_system_that_never_answers_holds_nobody_up(self):
        """The run ends, though a process that looked for the file cannot be ended before the file system is."""
        process = self.chrooted(PROGRAM)
        place = str(self.inside(PLACE)).encode()
        libc = ctypes.CDLL(None, use_errno=True)
        device = os.open("/dev/fuse", os.O_RDWR)
        asked = threading.Event()
        self.assertEqual(libc.mount(b"memlog-test", place, b"fuse", 0, b"fd=%d,rootmode=40000,user_id=0,group_id=0" % device), 0, os.strerror(ctypes.get_errno()))

        def end():
            libc.umount2(place, MNT_DETACH)
            os.close(device)

        self.addCleanup(end)

        def serve():
            while True:
                try:
                    request = os.read(device, 1 << 20)
                except OSError:
                    return
                _, call, unique = struct.unpack("<IIQ", request[:16])
                if call == FUSE_INIT:
                    answer = struct.pack("<IIIIHHIIHH", 7, 31, 1 << 16, 0, 12, 10, 1 << 16, 1, 0, 0) + bytes(28)
                    os.write(device, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)
                else:
                    asked.set()

        threading.Thread(target=serve, daemon=True).start()
        self.go_on(process)
        self.assertTrue(asked.is_set(), "somebody has looked for the file")
        self.assertGreater(self.dump_of(process).stat().st_size, 0)


# Run what the first argument names as a file without a name; the others are its own.
NAMELESS = """
import os, sys
fd = os.memfd_create("keeper", 0)
os.write(fd, open(sys.argv[1], "rb").read())
os.execve(fd, ["keeper", *sys.argv[2:]], os.environ)
"""


class Unlinked(Container):
    """Code in files that were deleted, or never had a name, in memlog's own root."""

    def nameless(self, *words):
        return "/usr/bin/python3", "-c", NAMELESS, self.program, *words

    def dumped(self, process, change=lambda: None):
        """The dump of a moment in which it runs, and that of its end."""
        change()
        self.analyze("dump")
        (dump,) = process.memlog_folder.glob("*.manual.pftrace")
        self.go_on(process)
        return dump, self.dump_of(process)

    def test_a_memfd_has_names_in_a_dump_and_in_those_after_it(self):
        for dump in self.dumped(self.memlog_ready(*self.nameless("wait"))):
            self.assert_named(self.collapsed(dump, "--ended=yes"))

    def test_a_deleted_program_has_names(self):
        process = self.memlog_ready(self.program, "wait")
        for dump in self.dumped(process, self.program.unlink):
            self.assert_named(self.collapsed(dump, "--ended=yes"))

    def test_a_library_has_names_where_a_descriptor_leads_to_it(self):
        """Also for somebody without rights, who may not follow the links of mappings."""
        library = self.folder / "bin" / "libkeeper.so"
        self.compile_library(library)
        lines = (f"import ctypes, os; held = open('{library}'); keeper = ctypes.CDLL('{library}'); os.unlink('{library}'); keeper.keep()", "import subprocess",
                 f"subprocess.run(['{harness.MEMLOG}', 'dump'], check=True, stdout=subprocess.DEVNULL)")
        if os.geteuid() == 0:
            os.chown(library.parent, NOBODY, NOBODY)
        self.as_nobody("/usr/bin/python3", "-c", "\n".join(lines))
        (dump,) = (self.folder / "users" / "dumps").glob("*.manual.pftrace")
        self.assertIn("keep;deep_keeper", self.collapsed(dump, "--ended=yes"))

    def compile_library(self, target):
        source = self.folder / "library.c"
        source.write_text(f"""#include <stdlib.h>
        __attribute__((noinline)) static void *deep_keeper(void) {{ void *kept = malloc({SIZE}); __asm__ volatile("" ::: "memory"); return kept; }}
        void *keep(void) {{ void *kept = deep_keeper(); __asm__ volatile("" ::: "memory"); return kept; }}""")
        self.tool("gcc", "-g", "-O1", "-shared", "-fPIC", "-o", target, source)

    def test_one_that_ended_before_any_dump_says_so(self):
        dump = self.memlog(*self.nameless()).dumps()[0]
        self.assert_nameless(self.collapsed(dump))
        self.assert_told(dump, "the file was deleted while it ran, and no dump was taken meanwhile; memlog dump keeps its names")


if __name__ == "__main__":
    unittest.main()
