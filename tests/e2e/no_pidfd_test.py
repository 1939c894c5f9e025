"""Where the kernel gives no pidfds (before Linux 5.3, or a container's filter) the tree is recorded as anywhere else."""
import subprocess
import unittest

import harness

# Runs its arguments where pidfd_open, pidfd_send_signal and SO_PASSPIDFD are not there.
WITHOUT = r"""
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <errno.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#define AT(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
int main(int count, char **arguments) {
    struct sock_filter filter[] = {
        AT(nr),
        IS(SYS_pidfd_open, 7, 0),
        IS(SYS_pidfd_send_signal, 6, 0),
        IS(SYS_setsockopt, 0, 4),
        AT(args[1]),
        IS(SOL_SOCKET, 0, 2),
        AT(args[2]),
        IS(76, 2, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
    if (count < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("seccomp");
        return 99;
    }
    execv(arguments[1], arguments + 1);
    perror(arguments[1]);
    return 99;
}
"""

CHECK = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
sys.exit(0 if libc.syscall(434, os.getpid(), 0) == -1 and ctypes.get_errno() == 38 else 1)
"""

# A forked child that goes on allocating, one that is killed, a program that ends with 3, and a grandchild that outlives its parent.
TREE = """
import os, signal, subprocess, time
child = os.fork()
if child == 0:
    kept = []
    for i in range(200):
        kept.append(bytearray(3000 + i))
        time.sleep(0.001)
    os._exit(5)
doomed = os.fork()
if doomed == 0:
    kept = [bytearray(4000) for _ in range(100)]
    time.sleep(60)
time.sleep(0.3)
os.kill(doomed, signal.SIGKILL)
os.waitpid(doomed, 0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), subprocess.run(["/bin/sh", "-c", "exit 3"]).returncode, flush=True)
subprocess.Popen(["/bin/sh", "-c", "sleep 0.3; ls -d /"])
"""


class NoPidfd(harness.Case):
    def setUp(self):
        super().setUp()
        (self.folder / "without.c").write_text(WITHOUT)
        self.without = str(self.folder / "without")
        subprocess.run(["gcc", "-o", self.without, self.folder / "without.c"], check=True)
        check = subprocess.run([self.without, "/usr/bin/python3", "-c", CHECK], capture_output=True)
        if check.returncode == 99:
            self.skipTest(f"no filter can be set here: {check.stderr}")
        self.assertEqual(check.returncode, 0)

    def test_everybody_is_recorded_to_his_end(self):
        words, folder = self.memlog_command(["/usr/bin/python3", "-c", TREE], ("-q", "--no-page"))
        answer = harness.run_words([self.without, *words], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual((answer.returncode, answer.stdout, answer.stderr), (0, b"5 3\n/\n", b""))
        report = self.exit_report(harness.Run(answer.returncode, answer.stdout, "", folder))
        self.assertTrue(report["dump"]["complete"])
        entries = report["processes"]
        self.assertEqual([entry["name"] for entry in entries if not entry["events"]], [])
        root, *others = entries
        python = [entry for entry in others if "python" in entry["name"]]
        self.assertGreater(root["events"], 1000)
        # Whoever is reaped between two looks has ended in an unknown way.
        (doomed,) = [entry for entry in python if 100 * 4000 <= entry["total_bytes"] < 200 * 3000]
        self.assertIn((doomed["state"], doomed["signal"], doomed["exit_code"]), {("killed", 9, 0), ("exited", 0, -1)})
        (long_lived,) = [entry for entry in python if entry["total_bytes"] >= 200 * 3000 and entry["id"] != root["id"]]
        self.assertGreaterEqual(long_lived["total_bytes"], 200 * 3000)
        (ls,) = [entry for entry in others if entry["name"] == "ls"]
        self.assertEqual((ls["state"], ls["complete"]), ("exited", True))


if __name__ == "__main__":
    unittest.main(verbosity=2)
