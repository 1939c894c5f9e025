"""Why a process is not recorded: what is said is what is the case, or plainly that it is not known. Each program here would have a false reason
by a guess: sandboxes without memlog that change what they pass on, filters, closed descriptors, what a file looks like."""
import os
import shutil
import subprocess
import unittest

import harness

LACKING = harness.PROGRAMS / "lacking"
# As before Linux 6.6: the list of processes is made by walks, which pass over programs that live for a moment.
BY_WALKS = (str(LACKING), "socket@0=16:EPERM", "--")

SLEEP = ("/bin/sleep", "1")

# Has the program of its words started with other words in its environment: what begins with the first word is taken out, its second is added.
PASSES = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **words) {
    char *kept[4096];
    int at = 0;
    for (char **entry = environ; count > 3 && *entry != NULL && at < 4000; entry++) {
        const int is_out = words[1][0] != 0 && strncmp(*entry, words[1], strlen(words[1])) == 0;
        if (!is_out && strcmp(words[1], "*") != 0) {
            kept[at++] = *entry;
        }
    }
    if (count > 3 && words[2][0] != 0) {
        kept[at++] = words[2];
    }
    kept[at] = NULL;
    execve(words[3], words + 3, kept);
    return 9;
}
"""

# Starts the program of its words under a filter: for the call of the first word it answers with the second word; by fork if the third says so.
FILTERS = r"""
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **words) {
    struct sock_filter lines[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (unsigned)atoi(words[1])},
        {BPF_RET | BPF_K, 0, 0, (unsigned)strtoul(words[2], NULL, 0)},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    const struct sock_fprog program = {4, lines};
    int status = 0;
    if (count < 5 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, 2, &program) != 0) {
        return 3;
    }
    if (strcmp(words[3], "fork") == 0 && fork() != 0) {
        wait(&status);
        return WEXITSTATUS(status);
    }
    execve(words[4], words + 4, environ);
    return 9;
}
"""
SOCKET, CONNECT, SENDMSG, MMAP, MEMFD_CREATE = 41, 42, 46, 9, 319
USER_NOTIF, KILL, EPERM = "0x7fc00000", "0x80000000", "0x00050001"

# Folders of its own over those of sockets, then the program of its words, by a bare execve if the first word says so.
HIDES = r"""
#define _GNU_SOURCE
#include <glob.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static long raw(long number, long a, long b, long c) {
    long result = 0;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
int main(int count, char **words) {
    glob_t found = {0};
    int status = 0;
    if (count < 3 || unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        return 3;
    }
    glob("/tmp/memlog.*", 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (mount("none", found.gl_pathv[i], "tmpfs", 0, NULL) != 0) {
            return 4;
        }
    }
    if (strstr(words[1], "fork") != NULL && fork() != 0) {
        wait(&status);
        return WEXITSTATUS(status);
    }
    if (strstr(words[1], "range") != NULL) {
        (void)raw(SYS_close_range, 3, 0xffffffff, 0);
    }
    for (long fd = 3; strstr(words[1], "loop") != NULL && fd < 4096; fd++) {
        (void)raw(SYS_close, fd, 0, 0);
    }
    execve(words[2], words + 2, environ);
    return 9;
}
"""

# By a bare system call, with the environment of its first word alone.
RAW = r"""
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
    char *environment[] = {words[1], NULL};
    long result = SYS_execve;
    __asm__ volatile("syscall" : "+a"(result) : "D"(words[2]), "S"(words + 2), "d"(environment) : "rcx", "r11", "memory");
    return count > 100 ? 8 : 9;
}
"""

# Has code of a file of its own mapped, and waits.
MAPS_CODE = r"""
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char **words) {
    const int fd = open(words[1], O_RDONLY);
    char *const code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    if (count < 2 || code == MAP_FAILED) {
        return 3;
    }
    execl("/proc/self/exe", "mapped", "again", (char *)0);
    return 9;
}
"""


class Case(harness.Case):
    def build(self, name, source, *options):
        path = self.folder / f"{name}.c"
        path.write_text(source)
        subprocess.run(["gcc", "-O1", "-w", *options, "-o", path.with_suffix(""), path], check=True)
        return str(path.with_suffix(""))

    def reason(self, *words, name="sleep", before=(), lacks=()):
        """What is said of the one process of that name, in the report and in the words for people."""
        bare = subprocess.run([*before, *words], capture_output=True, cwd=self.folder, timeout=harness.TIMEOUT, check=False)
        if bare.returncode != 0:
            self.skipTest(f"not possible here: {bare.stderr.decode(errors='replace')[-300:]}")
        command, folder = self.memlog_command([*before, *words], ("-q", "--no-page"))
        answer = harness.run_words([*lacks, *command], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual((answer.returncode, answer.stderr.decode()), (0, bare.stderr.decode()))
        (dump,) = folder.glob("*.exit.pftrace")
        report = self.whole_report(dump)
        found = [entry for entry in report["processes"] if entry["name"] == name][-1:]
        listed = [(entry["name"], entry["state"], entry["recorded"], entry["reason"]) for entry in report["processes"]]
        self.assertEqual([entry["recorded"] for entry in found], [False], listed)
        self.assertFalse(report["dump"]["covered"])
        full = harness.run_words([str(harness.MEMLOG), "report", "--full", str(dump)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertIn(" ".join(found[0]["reason"].split()), " ".join(full.stdout.decode().split()))
        return found[0]["reason"]


class PassedOn(Case):
    """Whether memlog's two words are in its environment."""

    def setUp(self):
        super().setUp()
        self.sleeper = self.folder / "sleeper"
        shutil.copy("/bin/sleep", self.sleeper)

    def test_a_static_program_in_between_takes_all_away(self):
        passes = self.build("passes", PASSES, "-static")
        by_shell = ("/bin/sh", "-c", '"$@"; true', "sh")
        for before in ((), by_shell, ("/bin/sh", "-c", '("$@" > /dev/null &); sleep 2; exit 0', "sh")):
            for lacks in ((), BY_WALKS):
                with self.subTest(before=before, lacks=lacks):
                    words = (*before, passes, "*", "", str(self.sleeper), "1.5")
                    reason = self.reason(*words, name="sleeper", lacks=lacks)
                    self.assertEqual(reason, "it was started by a program that ran without memlog: nothing passed memlog on to it")

    def test_it_takes_the_library_away(self):
        passes = self.build("passes", PASSES, "-static")
        self.assertRegex(self.reason(passes, "LD_PRELOAD=", "", *SLEEP), "^libmemlog.so is not in its LD_PRELOAD")

    def test_it_takes_the_socket_away(self):
        passes = self.build("passes", PASSES, "-static")
        # Once the library is in it, its two words are out of its environment, whichever there were.
        self.assertRegex(
            self.reason(passes, "MEMLOG_SOCKET=", "", *SLEEP), "^(MEMLOG_SOCKET, by .*, is not in its environment|libmemlog.so is in it, but it has not )"
        )

    def test_a_socket_of_somebody_elses_is_none(self):
        raw = self.build("raw", RAW)
        self.assertRegex(self.reason(raw, "MEMLOG_SOCKET=/nowhere", *SLEEP), "^it was started without memlog's words in its environment")

    def test_a_program_with_memlog_linked_in_has_no_library_to_pass_on(self):
        source = '#include <unistd.h>\n#include "client/memlog.h"\nint main(int n, char **w) { memlog_recording(); execv(w[1], w + 1); return 9; }\n'
        (self.folder / "linked.c").write_text(source)
        library = harness.OUT / "obj" / "client" / "libmemlog.a"
        subprocess.run(["gcc", "-I", harness.ROOT, "-o", self.folder / "linked", self.folder / "linked.c", library, "-lpthread"], check=True)
        passes = self.build("passes", PASSES, "-static")
        self.assertRegex(self.reason(passes, "LD_PRELOAD=", "", str(self.folder / "linked"), *SLEEP), "^libmemlog.so is not in its LD_PRELOAD")

    def test_an_environment_that_fills_the_kernels_limit(self):
        fills = self.build("fills", r"""
            #include <errno.h>
            #include <stdlib.h>
            #include <string.h>
            #include <sys/resource.h>
            #include <unistd.h>
            extern char **environ;
            int main(int count, char **words) {
                /* The kernel permits a quarter of the stack's limit: what is left behind this is less than memlog's words take. */
                struct rlimit limit = {1 << 20, 1 << 20};
                char *kept[] = {NULL, NULL, NULL, NULL};
                setrlimit(RLIMIT_STACK, &limit);
                for (int bytes = 30000; bytes > 1000; bytes -= 16) {
                    char *one = malloc(bytes), *other = malloc(120001);
                    memset(one, 'x', bytes);
                    memset(other, 'x', 120000);
                    one[bytes - 1] = other[120000] = 0;
                    kept[0] = one;
                    kept[1] = kept[2] = other;
                    execve(words[1], words + 1, kept);
                    if (errno != E2BIG) {
                        return 8;
                    }
                    free(one);
                    free(other);
                }
                return 9;
            }""")
        self.assertRegex(self.reason(fills, *SLEEP), "^its arguments and its environment leave no room for memlog's words")

    def test_a_bare_execve(self):
        raw = self.build("raw", RAW)
        for lacks in ((), BY_WALKS):
            with self.subTest(lacks=lacks):
                self.assertRegex(
                    self.reason(raw, "A=1", *SLEEP, lacks=lacks),
                    "^it was started without memlog's words in its environment, mostly by a system call that memlog cannot see$",
                )

    def test_what_helps_is_said_too(self):
        passes = self.build("passes", PASSES, "-static")
        for words, helps in (("*", "run it by itself: memlog run -- PROGRAM; or memlog start PID"), ("LD_PRELOAD=", "keep LD_PRELOAD and MEMLOG_SOCKET")):
            run = self.memlog(passes, words, "", *SLEEP)
            # Where the host was slow, the program before it may have its name.
            entry = [entry for entry in self.whole_report(run.dumps()[0])["processes"] if entry["name"] == "sleep"][-1]
            command = [str(harness.MEMLOG), "report", "--full", f"--pid={entry['pid']}", str(run.dumps()[0])]
            told = harness.run_words(command, self.folder, self.environment(), b"", harness.TIMEOUT).stdout.decode()
            self.assertIn(helps, " ".join(told.split()))


class Filtered(Case):
    """By a filter that memlog saw coming, and by one of a program that memlog is not in."""

    def test_a_filter_that_asks_somebody_or_kills(self):
        filters = self.build("filters", FILTERS)
        for call in (SOCKET, CONNECT, SENDMSG, MEMFD_CREATE):
            for answer in (USER_NOTIF, KILL):
                for way in ("exec", "fork"):
                    with self.subTest(call=call, answer=answer, way=way):
                        self.assertRegex(
                            self.reason(filters, str(call), answer, way, *SLEEP),
                            "^memlog was not passed on to it: a system call filter stops what memlog needs there",
                        )

    def test_a_filter_that_refuses(self):
        filters = self.build("filters", FILTERS)
        for call in (SOCKET, CONNECT, SENDMSG):
            with self.subTest(call=call):
                self.assertRegex(
                    self.reason(filters, str(call), EPERM, "exec", *SLEEP), "^(memlog was given to|libmemlog.so is in) it, but it has not reported itself; it runs under 1 system call filter of its own, which may stop that$"
                )

    def test_a_filter_of_shared_memory(self):
        source = FILTERS.replace("0, 1, (unsigned)atoi(words[1])},", "0, 3, (unsigned)atoi(words[1])}," + """
            {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, args[3])},
            {BPF_JMP | BPF_JSET | BPF_K, 0, 1, 1},""").replace("{4, lines}", "{6, lines}")
        shared = ("/usr/bin/env", "LC_ALL=C", self.build("shared", source))  # a locale has shared memory of its own
        for answer in (USER_NOTIF, KILL):
            with self.subTest(answer=answer):
                self.assertRegex(
                    self.reason(*shared, str(MMAP), answer, "exec", *SLEEP), "^memlog was not passed on to it: a system call filter stops what memlog"
                )
        run = self.memlog(*shared, str(MMAP), EPERM, "exec", *SLEEP)
        self.assertEqual((run.code, run.err), (0, ""))
        report = self.whole_report(run.dumps()[0])
        (entry,) = [entry for entry in report["processes"] if entry["name"] == "sleep"]
        self.assertRegex(entry["trouble"], "^not recorded: its limits leave memlog no room .*, or its kernel or a filter gives it none$")
        self.assertFalse(report["dump"]["complete"])

    def test_a_filter_of_a_program_without_memlog(self):
        filters = self.build("filters", FILTERS, "-static")
        for call in (SOCKET, CONNECT):
            with self.subTest(call=call):
                self.assertRegex(
                    self.reason(filters, str(call), EPERM, "exec", *SLEEP), "^(memlog was given to|libmemlog.so is in) it, but it has not reported itself; it runs under 1 system call filter of its own, which may stop that$"
                )

    def test_where_nothing_is_in_the_way_no_filter_is_blamed(self):
        filters = self.build("filters", FILTERS)
        raw = self.build("raw", RAW)
        self.assertNotIn("filter", self.reason(raw, "A=1", *SLEEP))
        run = self.memlog(filters, "400", EPERM, "exec", *SLEEP)
        self.assertTrue(self.exit_report(run)["dump"]["covered"])


class Closed(Case):
    def setUp(self):
        super().setUp()
        self.hides = self.build("hides", HIDES)

    def test_descriptors_closed_by_bare_system_calls(self):
        for way in ("range", "loop", "range fork", "loop fork"):
            with self.subTest(way):
                self.assertRegex(
                    self.reason(self.hides, way, *SLEEP),
                    "^the program that started it had closed memlog's connection by system calls of its own, and its sandbox hides memlog's socket; "
                    "'memlog start PID' attaches from outside",
                )


class Looks(Case):
    def test_a_static_program_that_maps_code_of_a_file(self):
        source = MAPS_CODE.replace('execl("/proc/self/exe", "mapped", "again", (char *)0);\n    return 9;', "usleep(700000);\n    return 0;")
        shutil.copy("/bin/true", self.folder / "code")
        program = self.build("mapped", source, "-static")
        raw = self.build("raw", RAW)
        self.assertRegex(self.reason(raw, "A=1", program, str(self.folder / "code"), name="mapped"), "^statically linked")

    @unittest.skipIf(os.geteuid() != 0, "needs root to give a program to somebody else")
    def test_a_setuid_file_whose_bit_does_nothing(self):
        """Under no_new_privs its loader drops nothing; memlog stays away all the same."""
        shutil.copy("/bin/sleep", self.folder / "suid")
        os.chown(self.folder / "suid", 65534, 65534)
        (self.folder / "suid").chmod(0o4755)
        os.chmod(self.folder, 0o755)
        before = ("setpriv", "--no-new-privs")
        self.assertRegex(
            self.reason(str(self.folder / "suid"), "0.6", name="suid", before=before), "^a setuid or setgid program, .*: memlog is not loaded into it"
        )
        raw = self.build("raw", RAW)
        self.assertRegex(self.reason(raw, "A=1", str(self.folder / "suid"), "0.6", name="suid", before=before), "^it was started without memlog's words")

    @unittest.skipIf(os.geteuid() != 0, "needs root to become another user")
    def test_a_program_that_nobody_may_look_at(self):
        shutil.copy("/bin/sleep", self.folder / "closed")
        (self.folder / "closed").chmod(0o711)
        os.chmod(self.folder, 0o755)
        raw = self.build("raw", RAW)
        home = self.folder / "home"
        home.mkdir()
        os.chown(home, 65534, 65534)
        nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        words = [*nobody, str(harness.MEMLOG), "run", "-q", "--no-page", "-o", str(home / "dumps"), "--", raw, "A=1", str(self.folder / "closed"), "0.6"]
        answer = harness.run_words(words, home, self.environment(XDG_RUNTIME_DIR="", HOME=str(home)), b"", harness.TIMEOUT)
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))
        (dump,) = (home / "dumps").glob("*.pftrace")
        (reason,) = [entry["reason"] for entry in self.whole_report(dump)["processes"] if entry["name"] == "closed"]
        self.assertRegex(reason, "^reason not known: the kernel does not let memlog look at it")


if __name__ == "__main__":
    unittest.main()
