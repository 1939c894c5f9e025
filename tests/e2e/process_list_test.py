"""Every process of the tree is in the list from its birth, recorded or not, and no profile bears another image's name."""
import collections
import gzip
import json
import os
import re
import shutil
import sqlite3
import subprocess
import unittest

import harness

PYTHON = "/usr/bin/python3"

# Where a host has its list from: the kernel tells root of each process in the initial namespaces, from Linux 6.6 on anybody.
SOURCES = ("kernel events", "walks")

# The system call itself: no function of libc that could be stood before. Its arguments become the new program's.
RAW_EXEC = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static long raw(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
int main(int count, char **words) {
    if (count < 3) {
        return 9;
    }
    memset(malloc(500000), 1, 500000);
    if (strcmp(words[1], "fork") == 0) {
        pid_t child = fork();
        if (child == 0) {
            raw(SYS_execve, (long)words[2], (long)(words + 2), (long)environ);
            _exit(99);
        }
        int status = 0;
        waitpid(child, &status, 0);
        return WEXITSTATUS(status);
    }
    if (strcmp(words[1], "busy") == 0) { /* a forked child that has a profile of its own makes the exec */
        pid_t child = fork();
        if (child == 0) {
            memset(malloc(700000), 1, 700000);
            raw(SYS_execve, (long)words[2], (long)(words + 2), (long)environ);
            _exit(99);
        }
        int status = 0;
        waitpid(child, &status, 0);
        return WEXITSTATUS(status);
    }
    raw(SYS_execve, (long)words[2], (long)(words + 2), (long)environ);
    return 99;
}
"""

# A fork that maps and writes memory, and never calls malloc; a bare clone that does nothing.
MAPS = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    if (fork() == 0) {
        char *memory = (char *)syscall(SYS_mmap, 0, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(memory, 1, 32 << 20);
        sleep(3);
        _exit(3);
    }
    if (syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0) {
        sleep(3);
        _exit(4);
    }
    wait(0);
    wait(0);
    return 0;
}
"""


# Starts a host inside itself, a program without memlog, which is looked at before its exec, and a fork; waits for both; ends the host.
LINKED = r"""
#include <limits.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "host/lib/memlog_host.h"
int main(int count, char **words) {
    char text[PATH_MAX] = "";
    char *options[] = {(char *)"-o", words[2], NULL};
    struct memlog_host_settings settings = {.options = options, .program = "embedder", .service_path = words[1]};
    struct memlog_host *host = memlog_host_start(&settings, text, sizeof(text));
    if (count != 4 || host == NULL) { puts(text); return 1; }
    if (fork() == 0) { usleep(300000); execl(words[3], "plain", (char *)NULL); _exit(1); }
    if (fork() == 0) { sleep(1); _exit(0); }
    wait(NULL);
    wait(NULL);
    return wait(NULL) != -1 || memlog_host_stop(host, text, sizeof(text)) != 0;
}
"""


# Its child lives long enough to be looked at.
STARTS = """
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    if (fork() == 0) {
        execl("/bin/sleep", "sleep", "0.5", (char *)0);
    }
    return wait(0) == -1;
}
"""


# Its first image is there for as long.
BECOMES = """
#include <unistd.h>
int main(void) {
    usleep(500000);
    return execl("/bin/sleep", "sleep", "0.5", (char *)0);
}
"""


# LEFT NAME: becomes the next of three names for LEFT times, each time after another while.
RELAY = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
    int left = atoi(words[1]);
    if (left == 0) { return 0; }
    for (volatile int i = 0; i < left * 37 % 400 * 1000; i++) { }
    char path[4096], rest[16];
    snprintf(path, sizeof(path), "%s", words[0]);
    char *last = path + strlen(path) - 1;
    *last = *last == 'c' ? 'a' : *last + 1;
    snprintf(rest, sizeof(rest), "%d", left - 1);
    execl(path, path, rest, strrchr(path, '/') + 1, (char *)0);
    return 9;
}
"""


class Lists(harness.Case):
    def build(self, name, text, *options):
        (self.folder / f"{name}.c").write_text(text)
        subprocess.run(["gcc", "-w", "-o", self.folder / name, self.folder / f"{name}.c", *options], check=True)
        return str(self.folder / name)

    def whole(self, run):
        (dump,) = run.dumps()
        report = self.whole_report(dump)
        ids = [entry["id"] for entry in report["processes"]]
        self.assertEqual(len(ids), len(set(ids)))
        for entry in report["processes"]:
            if not entry["recorded"]:
                self.assertTrue(entry["reason"])
                self.assertEqual((entry["events"], entry["total_bytes"], entry["live_bytes"], entry["complete"]), (0, 0, 0, None))
        return report

    def by_name(self, report):
        return {entry["name"]: entry for entry in report["processes"]}

    def text(self, run):
        (dump,) = run.dumps()
        words = [str(harness.MEMLOG), "report", "--full", str(dump)]
        return harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT).stdout.decode()

    def assert_told_apart(self, run, name, line):
        """The old image's profile under its own name, the new one as an entry of the same process."""
        report = self.whole(run)
        (heap,) = [entry for entry in report["processes"] if entry["total_bytes"] >= 500000 and entry["state"] == "replaced"]
        self.assertEqual((heap["name"], heap["recorded"]), ("raw", True))
        self.assertRegex(heap["command_line"][0], "/raw$")
        (new,) = [entry for entry in report["processes"] if entry["name"] == name]
        self.assertEqual((new["recorded"], new["pid"], new["parent_id"], new["command_line"]), (False, heap["pid"], heap["id"], line))
        self.assertRegex(new["reason"], "system call that memlog cannot see")
        self.assertEqual(report["dump"]["complete"], True)
        self.assertRegex(self.text(run), f"{name}: .*not recorded:(.|\n)*system call")
        return heap, new

    def test_an_image_behind_a_raw_execve_is_an_entry_of_its_own(self):
        raw = self.build("raw", RAW_EXEC)
        for source in SOURCES:
            with self.subTest(source=source):
                run = self.run_by(source, raw, "now", "/bin/sleep", "0.5")
                self.assertEqual((run.code, run.err), (0, ""))
                _, new = self.assert_told_apart(run, "sleep", ["/bin/sleep", "0.5"])
                self.assertGreater(new["footprint_bytes"], 0)

    def test_by_the_function_syscall_it_is_recorded(self):
        by_libc = RAW_EXEC.replace("return result;\n}", "return result;\n}\n#define raw syscall", 1).replace("#include <stdlib.h>", "#define _GNU_SOURCE\n#include <stdlib.h>")
        program = self.build("libcs", by_libc)
        env = self.environment(LC_ALL="C")
        for way in ("now", "fork"):
            with self.subTest(way=way):
                words = (program, way, "/usr/bin/env", "-0")
                bare = harness.run_words([*words], self.folder, env, b"", harness.TIMEOUT)
                run = self.memlog(*words, env=env)
                self.assertEqual((run.code, run.out, run.err), (bare.returncode, bare.stdout, ""))
                new = self.by_name(self.whole(run))["env"]
                self.assertEqual((new["recorded"], new["complete"], new["events"] > 0), (True, True, True))
        run = self.memlog(program, "now", "/no/such/program")
        self.assertEqual(run.code, 99)
        (entry,) = self.whole(run)["processes"]
        self.assertEqual((entry["name"], entry["recorded"], entry["exit_code"]), ("libcs", True, 99))

    def test_also_of_a_forked_child_with_a_profile(self):
        raw = self.build("raw", RAW_EXEC)
        for source in SOURCES:
            with self.subTest(source=source):
                run = self.run_by(source, raw, "busy", "/bin/sleep", "0.5")
                self.assertEqual((run.code, run.err), (0, ""))
                heap, _ = self.assert_told_apart(run, "sleep", ["/bin/sleep", "0.5"])
                self.assertGreaterEqual(heap["total_bytes"], 700000)

    def test_a_program_that_becomes_itself_is_two_images(self):
        raw = self.build("raw", RAW_EXEC)
        run = self.memlog(raw, "now", raw, "now", "/bin/sleep", "0.3")
        self.assertEqual((run.code, run.err), (0, ""))
        states = [(entry["name"], entry["recorded"]) for entry in self.whole(run)["processes"]]
        self.assertIn(("raw", True), states)
        self.assertIn(("sleep", False), states)

    def test_a_fork_and_its_exec_are_one_entry(self):
        raw = self.build("raw", RAW_EXEC)
        for source in SOURCES:
            with self.subTest(source=source):
                run = self.run_by(source, raw, "fork", "/bin/sleep", "0.5")
                report = self.whole(run)
                self.assertEqual([entry["name"] for entry in report["processes"]], ["raw", "sleep"])
                run = self.run_by(source, "/bin/sh", "-c", "sleep 0.4; ls -d /; true")
                self.assertEqual([entry["name"] for entry in self.whole(run)["processes"] if not entry["recorded"]], [])

    def test_forks_that_never_allocate_are_listed_with_their_memory(self):
        maps = self.build("maps", MAPS)
        for source in SOURCES:
            with self.subTest(source=source):
                run = self.run_by(source, maps)
                self.assertEqual((run.code, run.err), (0, ""))
                report = self.whole(run)
                others = [entry for entry in report["processes"] if not entry["recorded"]]
                self.assertEqual([entry["name"] for entry in others], ["maps", "maps"])
                self.assertEqual([entry["idle"] for entry in others], [True, True])
                mapped, bare = sorted(others, key=lambda entry: -entry["footprint_bytes"])
                self.assertGreaterEqual(mapped["footprint_bytes"], 32 << 20)
                self.assertLess(bare["footprint_bytes"], 32 << 20)
                self.assertRegex(self.text(run), "maps: 3.* MiB private memory, not recorded: no allocation of it")
                self.assertFalse(report["dump"]["covered"])  # of those 32 MiB nobody has seen an allocation
                if source == "kernel events":
                    self.assertEqual([(one["state"], one["exit_code"]) for one in (mapped, bare)], [("exited", 3), ("exited", 4)])
                self.assertTrue(report["dump"]["complete"])

    def test_a_fork_with_little_memory_is_told_of_as_it_is_judged(self):
        maps = self.build("maps", MAPS.replace("32 << 20", "4 << 20"))
        for source in SOURCES:
            with self.subTest(source=source):
                run = self.run_by(source, maps)
                report = self.whole(run)
                most = max(entry["footprint_bytes"] for entry in report["processes"] if not entry["recorded"])
                self.assertGreaterEqual(most, 4 << 20)
                self.assertTrue(report["dump"]["covered"])
                self.assertNotIn("not recorded", self.text(run))
                self.assertIn("2 forked processes made no exec and no allocation that memlog sees", self.text(run))

    def test_a_host_that_is_linked_in_lists_the_programs_own_children(self):
        source = "#include <unistd.h>\nint main(void) { sleep(1); return 0; }\n"
        library = harness.OUT / "obj" / "host" / "lib" / "libmemlog_host.a"
        linked = self.build("linked", LINKED, "-I", str(harness.ROOT), str(library), "-lev", "-ljansson", "-lz", "-lpthread", "-lm")
        plain = (
            (self.build("plain", source, "-static"), "^statically linked"),
            (self.build("loads", source), "^the program that memlog is linked into has started it without memlog's words$"),
        )
        for by in SOURCES:
            for program, reason in plain:
                with self.subTest(by, reason=reason):
                    name = os.path.basename(program)
                    folder = self.folder / f"{by}-{name}".replace(" ", "-")
                    words = [str(linked), str(harness.OUT / "memlog-service"), str(folder), str(program)]
                    if by == "walks":
                        words = self.deafened(words)
                    answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
                    self.assertEqual(answer.returncode, 0, answer.stdout)
                    (dump,) = folder.glob("*.pftrace")
                    report = self.whole_report(dump)
                    of = self.by_name(report)
                    self.assertEqual((len(report["processes"]), sorted(of)), (2, sorted(["linked", name])))
                    self.assertEqual(of["linked"]["reason"], "a fork of the program that memlog is linked into, which is not recorded itself")
                    self.assertRegex(of[name]["reason"], reason)
                    self.assertFalse(report["dump"]["covered"])

    def test_a_static_program_is_listed_by_name_and_memory(self):
        static = self.build("static", "#include <unistd.h>\nint main(void) { sleep(1); return 5; }\n", "-static")
        for source in SOURCES:
            with self.subTest(source=source):
                run = self.run_by(source, "/bin/sh", "-c", '"$0"; exit $?', static)
                self.assertEqual((run.code, run.err), (5, ""))
                entry = self.by_name(self.whole(run))["static"]
                self.assertEqual((entry["recorded"], entry["state"], entry["idle"]), (False, "exited", False))
                self.assertRegex(entry["reason"], "statically linked")
                self.assertGreater(entry["footprint_bytes"], 0)
                run = self.run_by(source, static)
                (entry,) = self.whole(run)["processes"]
                self.assertEqual((entry["recorded"], entry["name"], entry["exit_code"], entry["role"]), (False, "static", 5, "browser"))

    def test_what_an_unrecorded_program_starts_has_that_for_its_reason(self):
        starts = self.build("starts", STARTS, "-static")
        for words, recorded in (((starts,), True), (("/bin/sh", "-c", '"$0"; exit $?', starts), False)):
            with self.subTest(words=words):
                run = self.memlog(*words)
                self.assertEqual((run.code, run.err), (0, ""))
                (sleep,) = [entry for entry in self.whole(run)["processes"] if entry["name"] == "sleep"]
                self.assertEqual(sleep["recorded"], recorded)
                self.assertRegex(sleep["reason"], "^$" if recorded else "^it was started by a program that ran without memlog")

    def test_so_has_what_an_unrecorded_program_becomes(self):
        """Its image's reason is judged by the image before, which nobody recorded: no system call of this one went past memlog."""
        becomes = self.build("becomes", BECOMES, "-static")
        for source in SOURCES:
            with self.subTest(source=source):
                run = self.run_by(source, "/bin/sh", "-c", '"$0"; exit $?', becomes)
                self.assertEqual((run.code, run.err), (0, ""))
                of = self.by_name(self.whole(run))
                self.assertEqual((of["becomes"]["state"], of["becomes"]["recorded"]), ("replaced", False))
                self.assertEqual((of["sleep"]["parent_id"], of["sleep"]["pid"]), (of["becomes"]["id"], of["becomes"]["pid"]))
                self.assertRegex(of["sleep"]["reason"], "^it was started by a program that ran without memlog")

    def test_programs_that_follow_one_another_at_once_keep_their_names_apart(self):
        """What is read of one is of no other: an exec may come between any two files that are read."""
        relay = self.build("relay-a", RELAY, "-static", "-O1")
        for letter in "bc":
            shutil.copy(relay, relay[:-1] + letter)
        for source in SOURCES:
            with self.subTest(source=source):
                run = self.run_by(source, "/bin/sh", "-c", '"$0" 900 relay-a; true', relay)
                self.assertEqual((run.code, run.err), (0, ""))
                named = [entry for entry in self.whole(run)["processes"] if entry["name"].startswith("relay-") and entry["command_line"]]
                self.assertTrue(named)
                for entry in named:
                    self.assertEqual((entry["command_line"][0], entry["command_line"][2]), (relay[:-1] + entry["name"][-1], entry["name"]))
                steps = collections.Counter(entry["command_line"][1] for entry in named)
                self.assertEqual([step for step, times in steps.items() if times > 1], [])

    def test_who_is_left_out_is_in_the_list_with_the_reason(self):
        options = ("-q", "--no-page", "--never=sleep")
        run = self.memlog("/bin/sh", "-c", "sleep 0.3; true", options=options)
        entry = self.by_name(self.whole(run))["sleep"]
        self.assertFalse(entry["recorded"])
        self.assertRegex(entry["reason"], "--never")

    @unittest.skipIf(shutil.which("go") is None, "needs golang")
    def test_what_a_go_program_starts_is_listed(self):
        source = 'package main\nimport "C"\nimport "os/exec"\nfunc main() { exec.Command("/bin/sleep", "0.5").Run() }\n'
        (self.folder / "spawns.go").write_text(source)
        harness.go_build(self.folder / "spawns", self.folder / "spawns.go")
        for way in SOURCES:
            with self.subTest(source=way):
                run = self.run_by(way, self.folder / "spawns")
                self.assertEqual((run.code, run.err), (0, ""))
                whole = self.whole(run)
                report = self.by_name(whole)
                # Go from 1.23 on forks once at its start, to see what the kernel can: a child that allocates nothing.
                itself = whole["processes"][0]
                self.assertEqual((itself["name"], itself["recorded"], itself["state"]), ("spawns", True, "exited"))
                self.assertEqual(report["sleep"]["recorded"], False)
                self.assertRegex(report["sleep"]["reason"], "system call that memlog cannot see")

    def test_a_report_of_one_that_was_not_recorded_tells_what_is_known_of_it(self):
        static = self.build("static", "#include <unistd.h>\nint main(void) { sleep(1); return 5; }\n", "-static")
        maps = self.build("maps", MAPS)
        run = self.memlog("/bin/sh", "-c", '"$0" lonely; "$1"; sleep 0.3; true', static, maps, options=("-q", "--no-page", "--never=sleep"))
        dump = str(run.dumps()[0])
        of = {}
        for entry in self.whole(run)["processes"]:
            of.setdefault((entry["name"], entry["recorded"]), entry)
        for name, words, why, helps in (
                ("static", "lonely", "why: statically linked", "what helps: link it dynamically"),
                ("sleep", "sleep 0.3", "why: left out by --never=sleep", "what helps: leave that option away"),
                ("maps", "maps", "why: no allocation of it has come", "what helps: nothing: it is recorded from the first allocation on that memlog sees")):
            with self.subTest(name):
                entry = of[name, False]
                pid = f"--pid={entry['pid']}"
                code, text, err = self.command("report", "--full", pid, dump)
                self.assertEqual((code, err), (0, ""))
                told = " ".join(text.split())
                self.assertRegex(told, rf"1 process, .* Not recorded {entry['pid']} {name} ")
                self.assertRegex(told, r"private memory ([\d.]+ [KM]iB when last read|: nobody has read it)" if name != "maps" else r"private memory [\d.]+ MiB when last read")
                for part in (words, why, helps):
                    self.assertIn(part, told)
                self.assertNotRegex(text, "(?m)^  (left|live|peak|allocated) ")
                code, text, err = self.command("report", "--json", pid, dump)
                self.assertEqual((code, err), (0, ""))
                report = json.loads(text)
                (alone,) = report["processes"]
                self.assertEqual((alone["id"], alone["reason"], alone["complete"]), (entry["id"], entry["reason"], None))
                self.assertEqual(report["tree"]["total_bytes"], 0)
                # What shows heaps alone says why there is none.
                code, _, err = self.command("convert", "--to=collapsed", pid, dump)
                self.assertEqual(code, 3)
                self.assertIn(f"process {entry['pid']} ({name}) was not recorded: {entry['reason']}; memlog report {pid} says", err)
        code, _, err = self.command("report", "--pid=1", dump)
        self.assertEqual((code, "no process 1 in it" in err), (3, True))

    def test_formats_with_a_list_of_processes_have_them_too(self):
        static = self.build("static", "#include <unistd.h>\nint main(void) { sleep(1); return 5; }\n", "-static")
        run = self.memlog("/bin/sh", "-c", '"$0"; true', static)
        (dump,) = run.dumps()
        whole = self.whole(run)
        entry = self.by_name(whole)["static"]
        for form in ("sqlite", "chrome"):
            code, _, err = self.command("convert", f"--to={form}", "-o", str(self.folder / form), str(dump))
            self.assertEqual((code, err), (0, ""))
        database = sqlite3.connect(self.folder / "sqlite")
        self.addCleanup(database.close)
        row = database.execute("SELECT pid, name, reason, private_bytes, state FROM memlog_unrecorded JOIN process USING (upid)").fetchall()
        self.assertEqual(row, [(entry["pid"], "static", entry["reason"], entry["footprint_bytes"], "exited")])
        self.assertEqual(database.execute("SELECT covered, uncovered FROM memlog_dump").fetchall(), [(0, whole["dump"]["uncovered"])])
        self.assertEqual(database.execute("SELECT count(*) FROM process").fetchone(), (len(whole["processes"]),))
        told = [one for one in json.loads(gzip.decompress((self.folder / "chrome").read_bytes()))["traceEvents"] if one["pid"] == entry["pid"]]
        self.assertIn(("process_name", {"name": "static"}), [(one["name"], one["args"]) for one in told])
        (label,) = [one["args"]["labels"] for one in told if one["name"] == "process_labels" and "not recorded" in one["args"]["labels"]]
        self.assertRegex(label, r"^not recorded: statically linked.*; private memory [\d.]+ KiB$")

    def unseen(self, run):
        """What the end of a run says of memory that went unseen, line by line as a terminal of 80 columns has it."""
        lines = [line[at:at + 80] for line in run.err.splitlines() for at in range(0, max(len(line), 1), 80)]
        (first,) = [at for at, line in enumerate(lines) if line.startswith("  NOT COVERED")]
        last = next(at for at in range(first + 1, len(lines) + 1) if at == len(lines) or not lines[at].startswith(15 * " "))
        elsewhere = "\n".join(lines[:first] + lines[last:])
        self.assertNotRegex(elsewhere, "not recorded|not profiled|not all seen|private memory")
        return lines[first:last]

    def test_the_end_of_a_run_says_it_in_four_lines_at_most(self):
        static = self.build("static", "#include <unistd.h>\nint main(void) { sleep(1); return 0; }\n", "-static")
        copies = []
        for i in range(6):
            copies.append(str(self.folder / f"static{i}"))
            shutil.copy(static, copies[-1])
        env = self.environment(COLUMNS="80")
        script = 'for one; do "$one" & "$one" & done; wait'
        run = self.memlog("/bin/sh", "-c", script, "sh", *copies, options=("--no-page",), env=env)
        lines = self.unseen(run)
        self.assertEqual(len(lines), 4, run.err)
        self.assertRegex(lines[0], r"NOT COVERED  static\d: 2 processes, up to .*KiB private, not recorded")
        self.assertRegex(lines[3], r"and 6 more processes of 3 kinds, .*KiB at most")
        run = self.memlog("/bin/sh", "-c", script, "sh", copies[0], options=("--no-page",), env=env)
        lines = self.unseen(run)
        self.assertRegex(" ".join(" ".join(lines).split()), r"KiB private, not recorded: statically linked: there is no dynamic loader that could load memlog$")
        self.assertLessEqual(len(lines), 4, run.err)

    def test_where_one_process_alone_went_unseen_every_form_says_why(self):
        static = self.build("static", "#include <unistd.h>\nint main(void) { sleep(1); return 0; }\n", "-static")
        env = self.environment(COLUMNS="80")
        reason = "static: statically linked: there is no dynamic loader that could load memlog"
        for program in (("/bin/sh", "-c", '"$0"; true', static), (static,)):
            with self.subTest(program=program[0]):
                run = self.memlog(*program, options=("--no-page",), env=env)
                lines = self.unseen(run)
                self.assertLessEqual(len(lines), 4, run.err)
                self.assertRegex(" ".join(" ".join(lines).split()), rf"^NOT COVERED static: [\d.]+ KiB private, not recorded: {reason[8:]}$")
                (dump,) = run.dumps()
                words = rf"1 process was not recorded \([\d.]+ KiB private memory\): {reason}"
                self.assertRegex(self.whole(run)["dump"]["uncovered"], f"^{words}$")
                answer = harness.run_words([str(harness.MEMLOG), "report", "--full", str(dump)], self.folder, env, b"", harness.TIMEOUT)
                (told,) = re.findall(r"^  NOT COVERED(?:.*\n)(?: {15}.*\n)*", answer.stdout.decode(), re.M)
                self.assertLessEqual(len(told.splitlines()), 4, told)
                self.assertLessEqual(max(map(len, told.splitlines())), 80, told)
                self.assertRegex(" ".join(told.split()), f"^NOT COVERED {words}$")

    def command(self, *words):
        answer = harness.run_words([str(harness.MEMLOG), *words], self.folder, self.environment(), b"", harness.TIMEOUT)
        return answer.returncode, answer.stdout.decode(), answer.stderr.decode()

    def test_ps_names_them_and_start_says_what_can_be_done(self):
        silent = self.build("silent", MAPS.replace("sleep(3);", "sleep(60);"))
        self.memlog_start(silent, options=("-q", "--page"))
        host = self.wait_for("the host's socket", lambda: list((self.folder / "run").glob("memlog/*.sock")))[0]
        rows = self.wait_for("two forks", lambda: (lambda found: found if len(found) == 2 else None)(
            [row for row in self.ps(host) if row["note"].startswith("no allocation of it has come")]))
        self.assertEqual({row["name"] for row in rows}, {"silent"})
        self.assertEqual({row["recording"] for row in rows}, {False})
        code, _, err = self.command("start", f"--host={host}", str(rows[0]["pid"]))
        self.assertNotEqual(code, 0)
        self.assertRegex(err, "recorded itself from its first allocation on")
        code, _, err = self.command("start", f"--host={host}", "999999999")
        self.assertRegex(err, "no such process")

    def ps(self, host):
        code, out, err = self.command("ps", "--json", f"--host={host}")
        self.assertEqual(code, 0, err)
        return json.loads(out)["processes"]

    @unittest.skipIf(shutil.which("chromium") is None, "needs chromium")
    def test_a_browser_whose_allocator_is_left_alone_says_what_of_it_was_not_seen(self):
        words = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder}/profile", "--dump-dom", "about:blank")
        run = self.memlog(*words, options=("--no-page", "--allocator=off"), env=self.environment(COLUMNS="80"))
        self.assertEqual(run.code, 0)
        lines = self.unseen(run)
        self.assertLessEqual(len(lines), 4, run.err)
        (dump,) = run.dumps()
        self.assertFalse(self.whole_report(dump)["dump"]["covered"])
        self.assertNotIn("was recorded, none was lost", run.err)
        told = " ".join(" ".join(lines).split())
        self.assertRegex(told, r"chromium: \d+ processes, up to [\d.]+ MiB private: the executable's own malloc")
        # As many as the list tells of, in the report's own sentence.
        report = " ".join(self.text(run).split())
        told = re.search(r"(\d+) process(es were| was) not recorded", report)
        listed = [one for one in self.whole(run)["processes"] if not one["recorded"] and not (one["idle"] and one["footprint_bytes"] <= 8 << 20)]
        self.assertEqual(int(told[1]) if told else 0, len(listed), report)

    @unittest.skipIf(shutil.which("firefox-esr") is None, "needs firefox-esr")
    def test_helpers_that_rename_themselves_are_their_program(self):
        (self.folder / "home").mkdir()
        words = ("firefox-esr", "--headless", "--no-remote", "--profile", self.folder / "home", "--screenshot", self.folder / "shot.png", "data:text/html,hello")
        run = self.memlog(*words, options=("--no-page", "--allocator=off"), env=self.environment(COLUMNS="80", HOME=str(self.folder / "home")))
        self.assertEqual(run.code, 0, run.err)
        lines = self.unseen(run)
        self.assertLessEqual(len(lines), 4, run.err)
        self.assertRegex(" ".join(lines), r"firefox-esr: [3-9]\d* processes, up to [\d.]+ MiB private: the")

    # ---- where the list comes from

    def deafened(self, words):
        """The command in a network of its own, where nobody hears the kernel's events; as it is where this user may make none."""
        way = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-current-user"]), "--net"]
        may = subprocess.run([*way, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0
        return [*way, *words] if may else words

    def run_by(self, source, *program):
        words, folder = self.memlog_command(program, ("-q", "--no-page"))
        if source == "walks":
            words = self.deafened(words)
        answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
        run = harness.Run(answer.returncode, answer.stdout, answer.stderr.decode(errors="replace"), folder)
        told = self.whole(run)["dump"]["process_list"]
        if told["source"] != source:
            if source == "walks":
                self.assertEqual(words[0], str(harness.MEMLOG), "it hears the kernel in a network of its own")
                self.skipTest("the kernel tells this host of processes, and this user can make no network of its own")
            self.skipTest("the kernel does not tell this host of processes")
        self.assertEqual(told["blind_ms"] > 0, source == "walks")
        return run

    def test_a_first_program_that_has_ended_before_anybody_looks_is_named_once(self):
        program = self.build("brief", "int main(void) { return 7; }", "-static")
        for _ in range(20):
            run = self.memlog(program)
            self.assertEqual(run.code, 7)
            report = self.whole(run)
            if report["dump"]["process_list"]["source"] != "kernel events":
                self.skipTest("the kernel does not tell this host of processes")
            (entry,) = report["processes"]
            self.assertEqual((entry["name"], entry["command_line"], entry["state"], entry["exit_code"]), ("brief", [program], "exited", 7))
            self.assertIn("statically linked", entry["reason"])
            self.assertEqual([other["path"] for other in report["dump"]["not_profiled"]], [program])
            self.assertEqual(report["dump"]["process_list"]["missed"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
