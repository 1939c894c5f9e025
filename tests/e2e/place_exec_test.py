"""Programs that are started by a descriptor which is no more than a file's place (O_PATH), as systemd and firejail do: what they are is looked at as
of any other, so none is given words that it cannot use."""
import os
import pathlib
import shutil
import subprocess
import unittest

import harness

# Executes the file of its second word by its place, with the further words; "c": in the root of the current folder.
BY_PLACE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
int main(int count, char **words) {
    int place = open(words[2], O_PATH | O_CLOEXEC);
    if (place < 0 || (strchr(words[1], 'c') != NULL && chroot(".") != 0)) {
        return perror(words[2]), 8;
    }
    if (strchr(words[1], 'a') != NULL) {
        execveat(place, "", words + 2, environ, AT_EMPTY_PATH);
    } else {
        fexecve(place, words + 2, environ);
    }
    return perror("exec"), 9;
}
"""

# Holds a block for the oracle; says whether memlog's words are in its environment.
TELLS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern char **environ;
int main(void) {
    char *block = malloc(123456);
    for (char **entry = environ; *entry != NULL; entry++) {
        if (strstr(*entry, "libmemlog") != NULL || strncmp(*entry, "MEMLOG_SOCKET", 13) == 0) {
            puts(*entry);
        }
    }
    puts("told");
    return block == NULL;
}
"""


class PlaceExec(harness.Case):
    def setUp(self):
        super().setUp()
        self.by_place = self.build("by_place", BY_PLACE)

    def build(self, name, source, *options):
        path = self.folder / f"{name}.c"
        path.write_text(source)
        subprocess.run(["gcc", "-O1", "-w", *options, "-o", path.with_suffix(""), path], check=True)
        return str(path.with_suffix(""))

    def tells(self, how, program):
        """The report of a run of the program, whose words are those that it has alone."""
        run = self.memlog(self.by_place, how, program)
        self.assertEqual((run.code, run.out, run.err), (0, b"told\n", ""))
        return self.whole_report(run.dumps()[0])

    def test_a_dynamic_program_is_recorded(self):
        tells = self.build("tells", TELLS)
        for how in ("f", "a"):
            with self.subTest(how):
                self.assertGreaterEqual(max(entry["total_bytes"] for entry in self.tells(how, tells)["processes"] if entry["recorded"]), 123456)

    def test_a_static_program_is_given_nothing_and_named(self):
        tells = self.build("tells", TELLS, "-static")
        for how in ("f", "a"):
            with self.subTest(how):
                told = [other["reason"] for other in self.tells(how, tells)["dump"]["not_profiled"]]
                self.assertEqual(told, ["statically linked: there is no dynamic loader that could load memlog"])

    def root(self):
        """A folder with what a dynamic program needs, and without memlog."""
        tells = self.build("tells", TELLS)
        for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"):
            copy = pathlib.Path(f"{self.folder}/root{path}")
            copy.parent.mkdir(parents=True)
            shutil.copy(path, copy)
        shutil.copy(tells, self.folder / "root" / "tells")
        return self.folder / "root"

    @unittest.skipIf(os.geteuid() != 0, "chroot needs root")
    def test_where_its_root_does_not_show_the_library_the_loader_does_not_complain(self):
        root = self.root()
        for with_proc in (False, True):
            with self.subTest(with_proc=with_proc):
                mounts = f"mkdir -p {root}/proc && mount --bind /proc {root}/proc && " if with_proc else ""
                script = f'{mounts}cd {root} && exec {self.by_place} cf tells'
                words = ("/usr/bin/unshare", "-m", "/bin/sh", "-c", script)
                bare = subprocess.run(words, capture_output=True, check=False)
                if bare.returncode != 0:
                    self.skipTest(f"not possible here: {bare.stderr.decode()[-200:]}")
                run = self.memlog(*words)
                self.assertEqual((run.code, run.out, run.err), (0, b"told\n", ""))
                told = [other["reason"] for other in self.whole_report(run.dumps()[0])["dump"]["not_profiled"]]
                self.assertEqual(["is not visible in its root" in reason for reason in told], [True])

    @unittest.skipIf(os.geteuid() != 0, "needs another user")
    def test_a_program_that_may_not_be_read_is_not_given_anything(self):
        tells = self.build("tells", TELLS)
        os.chmod(tells, 0o711)
        os.chmod(self.folder, 0o711)
        words = ("/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", self.by_place, "f", tells)
        run = self.memlog(*words)
        self.assertEqual((run.code, run.out, run.err), (0, b"told\n", ""))
        told = [other["reason"] for other in self.whole_report(run.dumps()[0])["dump"]["not_profiled"]]
        self.assertEqual(told, ["its file may not be looked at by who started it, so memlog was not passed on to it"])


if __name__ == "__main__":
    unittest.main()
