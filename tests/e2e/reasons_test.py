"""Why a process is not recorded: what is said is what is the case, or plainly that it is not known. Each program here would have a false reason
by a guess."""
import os
import shutil
import subprocess
import unittest

import harness

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

    def reason(self, *words, name, before=()):
        """What is said of the one process of that name, in the report and in the words for people."""
        bare = subprocess.run([*before, *words], capture_output=True, cwd=self.folder, timeout=harness.TIMEOUT, check=False)
        if bare.returncode != 0:
            self.skipTest(f"not possible here: {bare.stderr.decode(errors='replace')[-300:]}")
        command, folder = self.memlog_command([*before, *words], ("-q", "--no-page"))
        answer = harness.run_words(command, self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual((answer.returncode, answer.stderr.decode()), (0, bare.stderr.decode()))
        (dump,) = folder.glob("*.exit.pftrace")
        report = self.whole_report(dump)
        found = [entry for entry in report["processes"] if entry["name"] == name]
        self.assertEqual([entry["recorded"] for entry in found], [False], report["processes"])
        self.assertFalse(report["dump"]["covered"])
        full = harness.run_words([str(harness.MEMLOG), "report", "--full", str(dump)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertIn(" ".join(found[0]["reason"].split()), " ".join(full.stdout.decode().split()))
        return found[0]["reason"]


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
