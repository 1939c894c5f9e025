"""Names, arguments, paths, functions, threads and reasons that are made to be acted upon by a terminal, a spreadsheet or a page, by every
way that leads out of memlog."""
import csv
import io
import json
import os
import subprocess
import unicodedata
import unittest

import harness

CONTROL = b"\x1b]0;owned\x07"  # a terminal's title
SECOND = "\u009b31m".encode()  # the same as ESC [ 31 m
BIDI = "\u202e\u2066\u200f\u061c".encode()
CUT = b"\xe2\x80"  # of three bytes
HOSTILE = [b"=1+1" + CONTROL, b"+" + SECOND + b"x", b"@" + BIDI + b"y", b"-" + CUT, b'"\r\n=2;=3\t']

SOURCE = r"""
#define MEMLOG_WEAK
#define _GNU_SOURCE
#include "client/memlog.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static void *volatile kept[64];

__attribute__((noinline)) void hostile_function(size_t count_bytes, int at) {
    kept[at] = malloc(count_bytes);
    memset(kept[at], 1, count_bytes);
}
static void *in_thread(void *name) {
    pthread_setname_np(pthread_self(), name);
    hostile_function(50000, 1);
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t thread;
    char *closed = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(closed, 1, 8192);
    mprotect(closed, 8192, PROT_NONE);
    prctl(PR_SET_NAME, argv[1]);
    hostile_function(100000, 0);
    pthread_create(&thread, NULL, in_thread, argv[2]);
    pthread_join(thread, NULL);
    if (memlog_dump) {
        memlog_dump("", argv[3]);
        memlog_dump(argv[4], argv[3]);
    }
    puts("ready");
    fflush(stdout);
    getchar();
    for (int i = 2; i < 40; i++) {
        hostile_function(100000, i);
        usleep(20000);
    }
    return argc > 99;
}
"""


class HostileWords(harness.Case):
    def setUp(self):
        super().setUp()
        here = os.fsencode(self.folder) + b"/" + HOSTILE[1] + HOSTILE[3]
        os.mkdir(here)
        (self.folder / "p.c").write_text(SOURCE)
        self.program = here + b"/" + HOSTILE[0] + BIDI
        for words in (
            ["cc", "-O1", "-I", harness.ROOT, "-c", "p.c"],
            ["objcopy", "--redefine-sym", b"hostile_function==cmd" + CONTROL + SECOND + BIDI, "p.o"],
            ["cc", "-o", self.program, "p.o"],
        ):
            answer = subprocess.run(words, cwd=self.folder, capture_output=True, check=False)
            self.assertEqual(answer.returncode, 0, answer.stderr)

    def words(self, *words, codes=(0,)):
        answer = harness.run_words([harness.MEMLOG, *words], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertIn(answer.returncode, codes, (words, answer.stderr))
        return answer.stdout, answer.stderr

    def assert_plain(self, what, said):
        """UTF-8 of lines, and no character that anybody acts upon."""
        text = said.decode("utf-8")
        others = {character for character in text if unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") and character not in "\n"}
        self.assertEqual(others, set(), (what, text))
        return text

    def assert_cells(self, what, said):
        self.assert_plain(what, said.replace(b"\r\n", b"\n"))
        rows = list(csv.reader(io.StringIO(said.decode("utf-8"), newline="")))
        for row in rows[1:]:
            self.assertEqual(len(row), len(rows[0]), (what, row))
            for cell in row:
                for part in cell.split(";"):
                    self.assertNotRegex(part, r"^[=+@\-\t\r]", (what, row))
        return rows

    def play(self):
        """A run that was asked for dumps; stderr, the exit dump and what ps said meanwhile."""
        words = [self.program, b"=n" + SECOND + BIDI[:8], b"@t\x1b[2J" + BIDI[:6] + CUT, b" ".join(HOSTILE), b"r\x1b[2J"]
        process = self.memlog_ready(*map(os.fsdecode, words), options=("--no-page", "--memlog-stack-mode=native-with-thread-names"))
        told = [self.words("ps"), self.words("ps", "--json"), self.words("dump", b"--reason=" + HOSTILE[0] + BIDI)]
        doctor = self.words("doctor", f"--pid={harness.children_of(process.pid)[-1]}", codes=(0, 1))
        self.go(process)
        process.communicate(timeout=harness.TIMEOUT)
        process.memlog_log.seek(0)
        (dump,) = process.memlog_folder.glob("*.exit.pftrace")
        return process, dump, told, doctor

    def test_no_output_hands_on_what_a_program_calls_itself(self):
        process, dump, told, doctor = self.play()
        for what, (out, err) in (("ps", told[0]), ("ps --json", told[1]), ("dump", told[2]), ("doctor", doctor)):
            self.assert_plain(what, out)
            self.assert_plain(what, err)
        self.assertIn("=n?31m?", told[0][0].decode())
        self.assertIn("=n\u009b31m\u202e", json.loads(told[1][0])["processes"][0]["name"])
        said = self.assert_plain("the run's stderr", process.memlog_log.read())
        self.assertIn("=1+1?]0;owned?", said)
        log = self.assert_plain("triggers.log", (process.memlog_folder / "triggers.log").read_bytes())
        self.assertIn("=1+1?]0;owned?", log)
        for path in sorted(process.memlog_folder.glob("*.pftrace")):
            for words in (["report"], ["report", "--summary"], ["report", "--json"], ["report", "--plumbing"], ["timeline"], ["timeline", "--json"], ["suspects"], ["suspects", "--json"],
                          ["components"], ["components", "--json"], ["components", "--html"], ["expand", "heap"], ["list"],
                          ["convert", "--to=collapsed"], ["convert", "--to=heap"], ["convert", "--to=json"], ["diff", path], ["diff", "--json", path],
                          *(["report", f"--by={by}"] for by in ("function", "module", "line", "thread", "size"))):
                out, err = self.words(*words, path)
                self.assert_plain(words, out)
                self.assert_plain(words, err)
        self.assertIn("=cmd?]0;owned??31m????", self.words("report", "--full", dump)[0].decode())
        self.words("symbolize", "-o", self.folder / "named.pftrace", dump)

    def test_no_cell_is_computed(self):
        _, dump, _, _ = self.play()
        stacks = self.assert_cells("stacks", self.words("report", "--csv", dump)[0])
        stack, thread = stacks[0].index("stack"), stacks[0].index("thread")
        self.assertTrue(any(";'=cmd?" in row[stack] for row in stacks), stacks)
        self.assertTrue(any(row[thread].startswith("'@t?[2J?") for row in stacks), stacks)
        for by in ("function", "module", "thread", "size"):
            self.assert_cells(by, self.words("report", "--csv", f"--by={by}", dump)[0])
        rows = self.assert_cells("timeline", self.words("timeline", "--csv", dump)[0])
        self.assertTrue(any(row[3].startswith("'=n") for row in rows), rows)
        self.assert_cells("components", self.words("components", "--csv", dump)[0])
        rows = self.assert_cells("rows", self.words("list", "--csv", dump)[0])
        self.assertTrue(any(row[rows[0].index("permissions")] == "'---p" for row in rows), rows)

    def test_json_is_exact(self):
        _, dump, _, _ = self.play()
        (entry,) = self.report(dump)["processes"]
        self.assertEqual(entry["name"], "=n\u009b31m\u202e\u2066\ufffd\ufffd")  # 15 bytes of it
        self.assertEqual(entry["command_line"][0].rpartition("/")[2], os.path.basename(self.program).decode())

    def test_what_a_person_typed_is_printable_in_the_error_message(self):
        for words in (["report", HOSTILE[0]], ["report", b"--by=" + HOSTILE[0]], ["convert", b"--to=" + HOSTILE[1], "x"], [HOSTILE[2]],
                      ["run", b"--" + HOSTILE[0], "--", "true"], ["run", "--no-page", "--", HOSTILE[0] + SECOND], ["doctor", HOSTILE[0] + SECOND],
                      ["dump", b"--host=" + HOSTILE[0]], ["page", HOSTILE[2]], ["timeline", HOSTILE[0]], ["symbolize", HOSTILE[0]], ["components", HOSTILE[0]], ["list", b"--policy=" + HOSTILE[0], HOSTILE[1]],
                      ["expand", HOSTILE[0], HOSTILE[1]]):
            with self.subTest(words=words):
                out, err = self.words(*words, codes=range(1, 128))
                self.assert_plain(words, out)
                self.assert_plain(words, err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
