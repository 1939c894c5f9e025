"""Programs in sandboxes that hide the folder of memlog's socket: a /tmp, a root, a network, users and processes of their own. Each runs as
bare, and is recorded exactly, or is named with the reason."""
import array
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import unittest

import harness
import wire

PYTHON = "/usr/bin/python3"

# Keeps known blocks: itself, a fork, and programs started in each way that there is.
FAMILY = r"""
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void keep(int count) {
    for (int i = 0; i < count; i++) {
        char *volatile block = malloc(4321);
        block[0] = 1;
    }
}
static void wait_for(pid_t pid) {
    int status = 0;
    if (pid <= 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        printf("a child failed\n");
    }
}
int main(int count, char **words) {
    if (count > 1) {
        keep(atoi(words[1]));
        return 0;
    }
    char line[4096];
    char *spawned[] = {words[0], "200", NULL};
    pid_t child = 0;
    keep(1000);
    child = fork();
    if (child == 0) {
        keep(500);
        _exit(0);
    }
    wait_for(child);
    child = fork();
    if (child == 0) {
        execl(words[0], words[0], "300", (char *)NULL);
        _exit(9);
    }
    wait_for(child);
    child = vfork();
    if (child == 0) {
        execl(words[0], words[0], "250", (char *)NULL);
        _exit(9);
    }
    wait_for(child);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (posix_spawn(&child, words[0], &actions, NULL, spawned, environ) != 0) {
        child = 0;
    }
    wait_for(child);
    spawned[1] = "150";
    if (posix_spawnp(&child, words[0], NULL, NULL, spawned, environ) != 0) {
        child = 0;
    }
    wait_for(child);
    snprintf(line, sizeof(line), "%s 100", words[0]);
    FILE *pipe = popen(line, "r");
    if (system(line) != 0 || pipe == NULL || pclose(pipe) != 0) {
        printf("a shell failed\n");
    }
    printf("done\n");
    return 0;
}
"""
KEPT = [1000, 500, 300, 250, 200, 150, 100, 100]

# Closes all descriptors in the way that the first word says, and becomes the program of the other words.
CLOSES = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
if sys.argv[1] == "closefrom":
    libc.closefrom(3)
elif sys.argv[1] == "close_range":
    libc.close_range(3, ctypes.c_uint(0xffffffff), 0)
elif sys.argv[1] == "raw":
    libc.syscall(436, 3, ctypes.c_uint(0xffffffff), 0)
else:
    for number in range(3, 4096):
        libc.close(number)
os.execv(sys.argv[2], sys.argv[2:])
"""

# Lets itself read and execute what lies below the folders of the first word, by Landlock, and becomes the program of the other words.
LANDLOCK = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
class Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("access", ctypes.c_uint64), ("folder", ctypes.c_int)]
handled = ctypes.c_uint64(0xd)
rules = libc.syscall(444, ctypes.byref(handled), 8, 0)
if rules < 0:
    sys.exit("no Landlock here")
for folder in sys.argv[1].split(","):
    rule = Beneath(0xd, os.open(folder, os.O_PATH))
    if libc.syscall(445, rules, 1, ctypes.byref(rule), 0) != 0:
        sys.exit("no rule")
if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.syscall(446, rules, 0) != 0:
    sys.exit("not restricted")
os.execv(sys.argv[2], sys.argv[2:])
"""

# A sandbox that memlog is not in: a folder of its own over that of the socket, whose name it was given.
STATIC_BOX = r"""
#define _GNU_SOURCE
#include <libgen.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **words) {
    const char *path = getenv("MEMLOG_SOCKET");
    char *place = path != NULL ? strdup(path) : NULL;
    if (count < 2 || unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        return 3;
    }
    if (place != NULL && mount("none", dirname(place), "tmpfs", 0, NULL) != 0) {
        return 4;
    }
    execve(words[1], words + 1, environ);
    return 9;
}
"""

# Starts the program of its third word by posix_spawn. The file actions close all from the number of its second word on, or from 900 on each.
SPAWNS = r"""
#define _GNU_SOURCE
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **words) {
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    int status = 0;
    const int first = count > 2 ? atoi(words[1]) : 3;
    posix_spawn_file_actions_init(&actions);
    if (count < 3 || dup2(1, 5) != 5 || dup2(1, 7) != 7) {
        return 3;
    }
    posix_spawn_file_actions_adddup2(&actions, 5, 6);
    for (int fd = 900; first < 0 && fd < 1000; fd++) {
        posix_spawn_file_actions_addclose(&actions, fd);
    }
    if (first >= 0) {
        posix_spawn_file_actions_addclosefrom_np(&actions, first);
    }
    posix_spawn_file_actions_addopen(&actions, 9, "/dev/null", 0, 0);
    if (posix_spawn(&child, words[2], &actions, NULL, words + 2, environ) != 0) {
        return 3;
    }
    return waitpid(child, &status, 0) == child ? status : 4;
}
"""

# What descriptors a program, and what it starts, find in /proc/self/fd, and which of them an exec leaves open.
LOOKS = """
import json, os, subprocess, sys
def flags(number):
    (line,) = [line for line in open(f"/proc/self/fdinfo/{number}") if line.startswith("flags:")]
    return int(line.split()[1], 8)
seen = {}
for number in os.listdir("/proc/self/fd"):
    if os.path.exists(f"/proc/self/fd/{number}") or os.path.islink(f"/proc/self/fd/{number}"):
        kind = os.readlink(f"/proc/self/fd/{number}").split(":")[0]
        seen[int(number)] = [kind, bool(flags(number) & os.O_CLOEXEC)]
print(json.dumps([sorted(seen.items()), [key for key in os.environ if "MEMLOG_S" in key or "PRELOAD" in key]]), flush=True)
again = [sys.executable, "-c", os.environ["LOOKS"]]
way = sys.argv.pop() if len(sys.argv) > 1 else ""
if way:
    subprocess.run(again, check=True, close_fds=False)
    subprocess.run(again, check=True)
    os.waitpid(os.posix_spawn(again[0], again, os.environ), 0)
    os.system('exec ' + sys.executable + ' -c "$LOOKS"')
    os.execv(again[0], again)
"""

# Gives its connection to the host to whoever comes to the socket of the first word, waits for a line, and goes on: a fork, and a program.
GIVES = """
import array, os, socket, subprocess, sys
kept = [bytes(1000) for _ in range(1000)]
(given,) = [int(n) for n in os.listdir("/proc/self/fd") if int(n) >= 900 and os.readlink(f"/proc/self/fd/{n}").startswith("socket:")]
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    connection.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [given]))])
    connection.recv(1)
if os.fork() == 0:
    more = [bytes(1000) for _ in range(1000)]
    os._exit(0)
os.wait()
subprocess.run([sys.argv[2], "300"], check=True)
"""


def works(*words):
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=False).returncode == 0


HAS_BWRAP = shutil.which("bwrap") is not None and works("bwrap", "--dev-bind", "/", "/", "--unshare-all", "true")
MAY_MOUNT = works("unshare", "-rm", "mount", "-t", "tmpfs", "none", "/tmp")


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        self.program = self.build("family", FAMILY)
        self.shown = [str(self.folder)]  # what the boxes leave visible below /tmp
        self.library = str(harness.OUT)

    def build(self, name, source, *options):
        path = self.folder / f"{name}.c"
        path.write_text(source)
        subprocess.run(["gcc", "-O1", "-g", *options, "-o", path.with_suffix(""), path], check=True)
        return str(path.with_suffix(""))

    def folders(self, library):
        return [*self.shown, *([self.library] if library else [])]

    def bwrap(self, *more, library=True):
        """All of the machine is there, but for /tmp."""
        binds = [word for folder in self.folders(library) for word in ("--bind", folder, folder)]
        return ["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/tmp", *binds, *more]

    def own_root(self, *more, library=True):
        """A root of its own, as flatpak makes it: no more than the system's programs."""
        binds = [word for folder in self.folders(library) for word in ("--bind", folder, folder)]
        links = [word for name in ("lib", "lib64", "bin", "sbin") for word in ("--symlink", f"usr/{name}", f"/{name}")]
        return ["bwrap", "--ro-bind", "/usr", "/usr", *links, "--dev", "/dev", "--tmpfs", "/tmp", *binds, *more]

    def private_tmp(self, *then, library=True):
        """Another folder over /tmp, at one stroke: whatever is started before sees memlog's."""
        script = "mount --make-rprivate / && mount -t tmpfs none /mnt && "
        for folder in (folder for folder in self.folders(library) if folder.startswith("/tmp/")):
            place = f"/mnt/{folder.removeprefix('/tmp/')}"
            script += f"mkdir -p {place} && mount --bind {folder} {place} && "
        return ["sh", "-c", f'{script} mount --rbind /mnt /tmp && exec "$@"', "sh", *then]

    def chroot(self, library=True):
        root = self.folder / "root"
        root.mkdir()
        script = f"mount --make-rprivate / && mount -t tmpfs none {root} && mkdir {root}/usr {root}/proc && mount --rbind /usr {root}/usr && "
        script += "".join(f"ln -s usr/{name} {root}/{name} && " for name in ("lib", "lib64", "bin", "sbin"))
        place = f"{root}{self.folder}"
        script += f"mkdir -p {place} && cp {self.program} {place} && "
        if library:
            script += f"mkdir -p {root}{self.library} && mount --bind {self.library} {root}{self.library} && "
        return ["unshare", "-rm", "sh", "-c", f'{script} exec chroot {root} "$@"', "sh"]

    def play(self, box, program=None):
        """The whole report of the program in that box, which does as without memlog."""
        words = [*box, program or self.program]
        bare = subprocess.run(words, capture_output=True, cwd=self.folder, timeout=harness.TIMEOUT, check=False)
        if bare.stdout != b"done\n":
            self.skipTest(f"no such sandbox here: {bare.stderr.decode(errors='replace')[-300:]}")
        run = self.memlog(*words)
        self.assertEqual((run.code, run.out, run.err), (bare.returncode, bare.stdout, bare.stderr.decode(errors="replace")))
        self.exit_report(run)
        return self.whole_report(run.dumps()[0])

    def kept(self, report):
        counts = []
        for entry in report["processes"]:
            blocks = sum(stack["live_blocks"] for stack in entry.get("stacks", []) if stack["live_bytes"] == 4321 * stack["live_blocks"])
            if entry["name"] == "family" and blocks > 0:
                counts.append(blocks)
        return sorted(counts, reverse=True)

    def assert_recorded(self, box, program=None):
        report = self.undisturbed(lambda: self.play(box, program))
        self.assertEqual(self.kept(report), KEPT)
        self.assertEqual([(entry["name"], entry["reason"]) for entry in report["processes"] if not entry["recorded"]], [])
        self.assertTrue(report["dump"]["complete"])
        self.assertTrue(report["dump"]["covered"])

    def assert_named(self, box, reason, program=None):
        report = self.play(box, program)
        self.assertEqual(self.kept(report), [])
        self.assertFalse(report["dump"]["covered"])
        name = os.path.basename(program or self.program)[:15]
        reasons = {entry["reason"] for entry in report["processes"] if not entry["recorded"] and entry["name"] == name}
        self.assertTrue(any(reason in one for one in reasons), reasons)
        return report


@unittest.skipIf(not HAS_BWRAP, "needs bwrap, and user namespaces")
class Bubblewrap(Case):
    def test_a_tmp_of_its_own(self):
        self.assert_recorded(self.bwrap())

    def test_nothing_shared(self):
        self.assert_recorded(self.bwrap("--unshare-all", "--proc", "/proc"))

    def test_a_sandbox_in_a_sandbox(self):
        self.assert_recorded([*self.bwrap("--unshare-all"), *self.bwrap("--unshare-all")])

    def test_the_first_process_of_its_namespace_without_an_environment(self):
        self.assert_recorded(self.bwrap("--unshare-all", "--as-pid-1", "--clearenv"))

    def test_a_root_of_its_own_that_shows_memlogs_folder(self):
        self.assert_recorded(self.own_root("--unshare-all", "--proc", "/proc"))

    def test_the_same_without_proc(self):
        self.assert_recorded(self.own_root("--unshare-all"))

    def test_a_root_of_its_own_without_memlogs_folder(self):
        self.assert_named(self.own_root("--unshare-all", "--proc", "/proc", library=False), "libmemlog.so is not visible")


@unittest.skipIf(not MAY_MOUNT, "needs user namespaces that may mount")
class Namespaces(Case):
    def test_a_tmp_of_its_own(self):
        self.assert_recorded(["unshare", "-rm", *self.private_tmp()])

    def test_a_tmp_and_a_network_of_its_own_as_systemd_gives_them(self):
        self.assert_recorded(["unshare", "-rmn", *self.private_tmp()])

    def test_users_networks_mounts_and_processes_of_its_own(self):
        self.assert_recorded(["unshare", "-rnmp", "--fork", "--mount-proc", *self.private_tmp()])

    def test_another_root(self):
        self.assert_recorded(self.chroot())

    def test_another_root_without_memlogs_folder(self):
        self.assert_named(self.chroot(library=False), "libmemlog.so is not visible")

    @unittest.skipIf(os.geteuid() != 0, "needs root to become another user")
    def test_another_user_in_a_tmp_of_its_own(self):
        self.assert_recorded(["unshare", "-m", *self.private_tmp("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")])

    def test_few_descriptors(self):
        self.assert_recorded(["unshare", "-rm", *self.private_tmp("sh", "-c", 'ulimit -n 16; exec "$0"')])

    def test_programs_that_close_every_descriptor(self):
        for way in ("closefrom", "close_range", "close"):
            with self.subTest(way):
                self.assert_recorded(["unshare", "-rm", *self.private_tmp(PYTHON, "-c", CLOSES, way)])

    def test_a_program_that_closes_every_descriptor_past_memlog(self):
        closed = "the program that started it had closed memlog's connection"
        report = self.assert_named(["unshare", "-rm", *self.private_tmp(PYTHON, "-c", CLOSES, "raw")], closed)
        self.assertIn("python3", {entry["name"] for entry in report["processes"] if entry["recorded"]})


class Landlocked(Case):
    def box(self, *folders):
        there = [folder for folder in ("/usr", "/lib", "/lib64", "/bin", "/etc", "/dev", "/proc", str(self.folder), *folders) if os.path.exists(folder)]
        return [PYTHON, "-c", LANDLOCK, ",".join(there)]

    def test_a_library_that_may_be_read(self):
        self.assert_recorded(self.box(self.library))

    def test_a_library_that_may_not_be_read(self):
        """The loader would complain on the program's stderr."""
        self.assert_named(self.box(), "libmemlog.so is not visible")


@unittest.skipIf(not MAY_MOUNT, "needs user namespaces that may mount")
class Named(Case):
    def test_what_a_sandbox_without_memlog_starts(self):
        box = self.build("box", STATIC_BOX, "-static")
        self.assert_named([box], "its sandbox hides memlog's socket; 'memlog start PID' attaches from outside")

    @unittest.skipIf(not HAS_BWRAP, "needs bwrap")
    def test_a_sandbox_under_a_filter(self):
        """As flatpak's: bwrap installs it, and memlog is in bwrap."""
        filtered = self.build("filtered", FAMILY.replace('printf("done\\n");', 'sleep(1);\n    printf("done\\n");'))
        for answer in (0x7fc00000, 0x80000000):
            with self.subTest(hex(answer)):
                lines = [(0x20, 0, 0, 0), (0x15, 0, 1, 42), (6, 0, 0, answer), (6, 0, 0, 0x7fff0000)]  # connect alone
                (self.folder / "filter").write_bytes(b"".join(struct.pack("HBBI", *line) for line in lines))
                script = 'exec 9<"$0"; exec "$@"'
                box = ["sh", "-c", script, str(self.folder / "filter"), *self.bwrap("--seccomp", "9")]
                self.assert_named(box, "a system call filter stops what memlog needs there", filtered)

    def test_a_spawn_that_closes_what_would_be_left(self):
        spawns = self.build("spawns", SPAWNS)
        report = self.assert_named(["unshare", "-rm", *self.private_tmp(spawns, "-1")], "its sandbox hides memlog's socket")
        self.assertIn("spawns", {entry["name"] for entry in report["processes"] if entry["recorded"]})

    @unittest.skipIf(not HAS_BWRAP, "needs bwrap")
    def test_a_program_that_sees_nothing_of_memlog_is_attached_to_from_outside(self):
        source = FAMILY.replace("int main(int count, char **words) {", "int main(int count, char **words) {\n" + """
            char go[8];
            if (count == 1) { printf("ready\\n"); fflush(stdout); if (fgets(go, sizeof(go), stdin) == NULL) { return 8; } }""", 1)
        waits = self.build("waits", source)
        host = self.memlog_ready(*self.own_root("--unshare-all", "--die-with-parent", library=False), waits)

        def command(*words):
            words = [str(harness.MEMLOG), *words]
            return harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)

        def listed():
            lines = [line for line in command("ps").stdout.decode().splitlines() if " waits " in line]
            return lines and "not visible" in lines[0] and lines[0]

        line = self.wait_for("the program in the list", listed)
        self.assertIn("'memlog start PID' attaches from outside", line)
        pid = line.split()[0]
        answer = command("start", pid)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.go(host)
        self.assertEqual(host.wait(timeout=harness.TIMEOUT), 0)
        (dump,) = host.memlog_folder.glob("*.exit.pftrace")
        counts = {}
        for entry in self.whole_report(dump)["processes"]:
            for stack in entry.get("stacks", []):
                if 0 < stack["live_bytes"] == 4321 * stack["live_blocks"]:
                    counts.setdefault(entry["name"], []).append(stack["live_blocks"])
        self.assertEqual(sorted(counts["waits"], reverse=True), [1000, 500])


@unittest.skipIf(not MAY_MOUNT, "needs user namespaces that may mount")
class Spawns(Case):
    """By posix_spawn with an action that closes all descriptors from one on, as Python from 3.13 on starts all its programs."""

    FIRST = ("3", "6", "8", "900", "901", "902", "5000")

    def test_what_is_started_is_recorded(self):
        spawns = self.build("spawns", SPAWNS)
        for first in self.FIRST:
            with self.subTest(first):
                self.assert_recorded(["unshare", "-rm", *self.private_tmp(spawns, first)])

    def test_what_is_started_finds_the_descriptors_that_it_would_find(self):
        spawns = self.build("spawns", SPAWNS)
        for first in self.FIRST:
            with self.subTest(first):
                box = ["unshare", "-rm", *self.private_tmp(spawns, first, "/bin/ls", "/proc/self/fd")]
                bare = harness.run_words(box, self.folder, self.environment(), b"", harness.TIMEOUT)
                run = self.memlog(*box)
                self.assertEqual((run.code, run.err), (0, bare.stderr.decode()))
                self.assertEqual([number for number in run.out.split() if int(number) < 900], bare.stdout.split())


@unittest.skipIf(not MAY_MOUNT, "needs user namespaces that may mount")
class Descriptors(Case):
    def test_a_program_finds_memlogs_two_and_no_third(self):
        box = ["unshare", "-rm", *self.private_tmp(PYTHON, "-c", LOOKS, "all")]
        env = self.environment(LOOKS=LOOKS)
        bare = harness.run_words(box, self.folder, env, b"", harness.TIMEOUT)
        if bare.returncode != 0:
            self.skipTest(bare.stderr.decode())
        run = self.memlog(*box, env=env)
        self.assertEqual((run.code, run.err), (0, bare.stderr.decode()))
        lines = [json.loads(line) for line in run.out.splitlines()]
        plain = [json.loads(line) for line in bare.stdout.splitlines()]
        self.assertEqual(len(lines), 6)
        for (seen, keys), (expected, own_keys) in zip(lines, plain):
            self.assertEqual(keys, own_keys)
            ours = [entry for entry in seen if entry[0] >= 900]
            self.assertEqual(sorted(kind for _, (kind, _) in ours), ["pipe", "socket"])
            self.assertTrue(all(closes for _, (_, closes) in ours), ours)
            self.assertEqual([number for number, _ in seen if number < 900], [number for number, _ in expected])
        report = self.exit_report(run)
        self.assertTrue(report["dump"]["complete"])
        self.assertEqual(sum(entry["name"].startswith("python3") for entry in report["processes"]), 6)


@unittest.skipIf(not MAY_MOUNT, "needs user namespaces that may mount")
class Strangers(Case):
    """This process is none of the run, and has the host's user: a process of the run gives it a copy of its connection."""

    def given(self, listening):
        connection, _ = listening.accept()
        self.addCleanup(connection.close)
        _, extra, _, _ = connection.recvmsg(1, 1024)
        ((_, _, content),) = extra
        copy = socket.socket(fileno=array.array("i", content)[0])
        self.addCleanup(copy.close)
        copy.settimeout(harness.TIMEOUT)
        return connection, copy

    def test_a_copy_of_a_connection_lets_nobody_in_and_costs_the_run_nothing(self):
        box = ["unshare", "-rm", *self.private_tmp()]
        path = str(self.folder / "meet")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            listening.listen()
            listening.settimeout(harness.TIMEOUT)
            host = self.memlog_start(*box, PYTHON, "-c", GIVES, path, self.program, options=("--no-page",))
            connection, copy = self.given(listening)
        for _ in range(3):
            own, hosts = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with own, hosts:
                own.settimeout(harness.TIMEOUT)
                own.send(wire.hello())
                wire.send(copy, wire.connected(), [hosts.fileno()])
                hosts.close()
                with contextlib.suppress(ConnectionResetError):  # it is closed with the Hello in it, which nobody has read
                    self.assertEqual(wire.receive(own), (b"", []))
        reads, writes = os.pipe()
        self.addCleanup(os.close, writes)
        with open(reads, "rb"):
            memfds = []
            for _ in range(2):
                memfds.append(os.memfd_create("x", os.MFD_ALLOW_SEALING))
                self.addCleanup(os.close, memfds[-1])
                os.ftruncate(memfds[-1], 4096)
                fcntl.fcntl(memfds[-1], fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
            wire.send(copy, wire.forked(os.getppid()), [reads, *memfds])
        copy.send(wire.not_profiled(b"/planted"))
        for _ in range(500):  # answers that nobody reads must not stop what the process itself sends
            copy.send(wire.hello())
        connection.send(b"x")
        self.assertEqual(host.wait(timeout=harness.TIMEOUT), 0)
        err = pathlib.Path(host.memlog_log.name).read_text()
        self.assertEqual(err.count(f"process {os.getpid()} of user {os.geteuid()} is no part of this run"), 1, err)
        (dump,) = host.memlog_folder.glob("*.exit.pftrace")
        report = self.whole_report(dump)
        self.assertTrue(report["dump"]["complete"])
        self.assertTrue(report["dump"]["covered"], report["dump"])
        self.assertNotIn(os.getpid(), {entry["pid"] for entry in report["processes"]})
        self.assertNotIn("planted", str(report["dump"]["not_profiled"]))
        self.assertEqual(self.kept(report), [300])
        self.assertEqual(sum(entry["name"] == "python3" for entry in report["processes"]), 2)

    def test_nothing_of_memlog_has_a_name_that_can_be_listed(self):
        before = set(pathlib.Path("/proc/net/unix").read_text().splitlines())
        host = self.memlog_ready(*["unshare", "-rm", *self.private_tmp()], PYTHON, "-c", "print('ready', flush=True); input()")
        lines = set(pathlib.Path("/proc/net/unix").read_text().splitlines()) - before
        self.assertEqual([line for line in lines if len(line.split()) > 7 and "@" in line.split()[7] and "memlog" in line], [])
        self.go(host)
        self.assertEqual(host.wait(timeout=harness.TIMEOUT), 0)


if __name__ == "__main__":
    unittest.main()
