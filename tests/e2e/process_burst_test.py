"""A host that hears of processes late, because it was stopped or is busy, lists every one of them all the same."""
# It chooses pids, and takes most of them: others would get one twice.
# runner: alone
import os
import pathlib
import subprocess
import unittest

import harness

LAST_PID = pathlib.Path("/proc/sys/kernel/ns_last_pid")

# Stops the host, starts COUNT static children one behind the other, and ends. Only then a fork lets the host go on: by
# now all of them are gone. "same" asks the kernel for one pid again and again, "fork" forks and executes,
# "many" only forks.
BURST = r"""
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void choose(pid_t next) {
    char text[16];
    const int file = open("/proc/sys/kernel/ns_last_pid", O_WRONLY);
    if (file < 0 || write(file, text, snprintf(text, sizeof(text), "%d", (int)next - 1)) < 0) {
        _exit(9);
    }
    close(file);
}
int main(int count, char **words) {
    char *child[] = {words[1], NULL};
    const pid_t host = getppid();
    const pid_t self = getpid();
    pid_t pid = 0;
    if (fork() == 0) {
        while (getppid() == self) {
            usleep(1000);
        }
        kill(host, SIGCONT);
        _exit(0);
    }
    kill(host, SIGSTOP);
    for (int i = 0; i < atoi(words[2]); i++) {
        if (pid != 0 && strcmp(words[3], "same") == 0) {
            choose(pid);
        }
        if (strcmp(words[3], "many") == 0) {
            pid = vfork();
            if (pid == 0) {
                _exit(3);
            }
        } else if (strcmp(words[3], "fork") == 0) {
            pid = fork();
            if (pid == 0) {
                execv(child[0], child);
                _exit(7);
            }
        } else if (posix_spawn(&pid, child[0], NULL, NULL, child, environ) != 0) {
            return 8;
        }
        if (waitpid(pid, NULL, 0) != pid) {
            return 6;
        }
    }
    return 0;
}
"""

CHILDREN = 120

# Two events each, of which the kernel keeps some forty thousand.
MANY = 26000


class Bursts(harness.Case):
    def build(self, name, text, *options):
        (self.folder / f"{name}.c").write_text(text)
        subprocess.run(["gcc", "-w", "-o", self.folder / name, self.folder / f"{name}.c", *options], check=True)
        return str(self.folder / name)

    def children(self, way):
        """The entries of the static children, in the order of their births."""
        static = self.build("static", "int main(void) { return 3; }\n", "-static")
        run = self.memlog(self.build("burst", BURST), static, str(CHILDREN), way)
        self.assertEqual((run.code, run.err), (0, ""))
        (dump,) = run.dumps()
        self.report = report = self.whole_report(dump)
        told = report["dump"]["process_list"]
        if told["source"] != "kernel events":
            self.skipTest("the kernel does not tell this host of processes")
        self.assertEqual((told["missed"], told["blind_ms"]), (0, 0))
        (root,) = [entry for entry in report["processes"] if entry["recorded"]]
        self.assertEqual((root["name"], root["state"], root["exit_code"]), ("burst", "exited", 0))
        others = [entry for entry in report["processes"] if not entry["recorded"]]
        self.assertEqual({entry["parent_id"] for entry in others}, {root["id"]})
        (fork,) = [entry for entry in others if entry["exit_code"] == 0]
        self.assertEqual((fork["name"], fork["idle"]), ("burst", True))
        return [entry for entry in others if entry is not fork]

    def assert_all(self, children):
        self.assertEqual(len(children), CHILDREN)
        self.assertEqual({(entry["state"], entry["exit_code"]) for entry in children}, {("exited", 3)})

    def test_whose_parent_ended_before_their_births_were_read(self):
        children = self.children("any")
        self.assert_all(children)
        told = {(entry["name"], tuple(entry["command_line"]), entry["idle"], entry["reason"]) for entry in children}
        self.assertEqual(told, {("?", (), False, "it ended before memlog could look at it")})  # and no other program's name

    def test_who_has_told_of_the_program_itself_bears_its_name(self):
        children = self.children("fork")
        self.assert_all(children)
        self.assertEqual({entry["name"] for entry in children}, {"static"})
        self.assertEqual({"statically linked" in entry["reason"] for entry in children}, {True})

    def test_what_a_process_said_before_its_end_is_heard(self):
        children = {entry["pid"] for entry in self.children("fork")}
        told = [other["pid"] for other in self.report["dump"]["not_profiled"] if other["path"].endswith("/static")]
        self.assertEqual((len(told), set(told)), (CHILDREN, children))

    @unittest.skipIf(os.geteuid() != 0 or not LAST_PID.exists(), "needs to choose pids")
    def test_of_one_pid_again_and_again(self):
        children = self.children("same")
        self.assert_all(children)
        self.assertLess(len({entry["pid"] for entry in children}), CHILDREN)

    def test_beyond_what_the_kernel_keeps_of_them_the_list_says_that_it_may_lack_some(self):
        run = self.memlog(self.build("burst", BURST), "none", str(MANY), "many")
        self.assertEqual((run.code, run.err), (0, ""))
        (dump,) = run.dumps()
        report = self.whole_report(dump)
        told = report["dump"]["process_list"]
        if told["source"] != "kernel events":
            self.skipTest("the kernel does not tell this host of processes")
        listed = sum(entry.get("folded_processes", 1) for entry in report["processes"])
        self.assertGreater(told["blind_ms"], 0, listed)
        self.assertLess(listed, MANY)
        self.assertGreater(listed, MANY / 8)  # an ordinary user's queue is as long as net.core.rmem_max lets it


if __name__ == "__main__":
    unittest.main(verbosity=2)
