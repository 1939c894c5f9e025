"""Which functions grow steadily, on the page: a program with one leak and one cache, asked too early and again."""
import json
import os
import signal
import subprocess
import time
import unittest

import browsing
import harness
import pages

SECONDS = 20
# As many a second on a busy machine as on another: it makes up for what it has slept too long.
PROGRAM = r"""
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static char *volatile slot[200];
struct Sessions { __attribute__((noinline)) void remember() { *(volatile char *)malloc(3000) = 1; } };
extern "C" __attribute__((noinline)) void cached(int at) { free(slot[at % 200]); slot[at % 200] = (char *)malloc(2000); }
static long now_ms() { timespec now; clock_gettime(CLOCK_MONOTONIC, &now); return now.tv_sec * 1000 + now.tv_nsec / 1000000; }
int main() {
    Sessions sessions;
    char line[8];
    write(1, "ready\n", 6);
    (void)!read(0, line, sizeof line);
    const long begun = now_ms();
    for (int i = 0;; i++) {
        sessions.remember();
        cached(i);
        while (now_ms() - begun < i * 5L) usleep(1000);
    }
}
"""


class Growing(browsing.Case):
    @classmethod
    def setUpClass(cls):
        pages.install()

    def drive(self, url, obey):
        env = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
        driver = subprocess.Popen(["node", "growing.js", url, str(self.folder)], cwd=pages.NODE, env={**env, "HOME": str(self.folder)},
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(driver.kill)
        said = {}
        for line in driver.stdout:
            said = json.loads(line)
            if "order" not in said:
                break
            obey()
            driver.stdin.write("done\n")
            driver.stdin.flush()
        _, err = driver.communicate(timeout=harness.TIMEOUT)
        self.assertEqual(driver.returncode, 0, err)
        return said

    def test_a_person_asks_which_functions_grow(self):
        source = self.folder / "sessions.cpp"
        source.write_text(PROGRAM)
        subprocess.run(["g++", "-g", "-O1", "-o", self.folder / "sessions", source], check=True)
        process, page = self.open_page(self.folder / "sessions", stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        (pid,) = [one["pid"] for one in browsing.members(page)]

        def grow():
            process.stdin.write(b"\n")
            process.stdin.flush()
            time.sleep(SECONDS)

        seen = self.drive(page.url, grow)
        self.assertEqual((seen["complaints"], seen["faults"], seen["asked"]), ([], [], [page.base]))
        self.assertRegex(seen["early"]["about"], r"^Too short to tell: 11 s of a function that holds much are the least; [\d a-z]+ of the run are known\. Asked at \d\d:")
        self.assertEqual((seen["early"]["list"], seen["early"]["rest"]), ([], []))
        late = seen["late"]
        self.assertRegex(late["about"], r"^One function grows steadily; [\d a-z]+ are known\. Asked at \d\d:")
        (leak,) = late["list"]
        self.assertRegex(leak, rf"^(\S.*remember.*) \d+\.\d KiB/s \u00b1 [\d.]+ K?i?B \d[\d.]* [KM]iB more since \S+ \S+: it rose in \d+ of \d+ steps; "
                               rf"none of its [\d,]+ blocks was freed\. In sessions {pid}, called by main")
        self.assertNotIn("cached", leak)
        self.assertRegex(late["basis"], r"^memlog follows the 20 stacks of each process that hold most: \d+\.\d+ % of what is live\.")
        self.assertRegex(seen["around"], r"^Callers and callees of \S*remember")
        self.assertIn(f"pid={pid}", seen["address"])
        self.assertEqual(seen["again"], late["list"][0].split(" ")[0])
        functions = page.json(f"/api/v1/suspects?pid={pid}")["functions"]
        self.assertEqual(functions[0]["verdict"], "steady", [(one["function"], one["verdict"], one["grown_bytes"]) for one in functions])
        self.assertEqual(page.ask("/api/v1/suspects?pid=x").status, 400)
        self.assertEqual(page.ask("/api/v1/suspects?dump=9999").status, 404)
        # The same words of a dump; what it says is the command's answer.
        made = page.json("/api/v1/dumps", "POST")
        (dump,) = self.folder.glob("dumps*/*.page.pftrace")
        words = [str(harness.MEMLOG), "suspects", "--json", str(dump)]
        told = json.loads(harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT).stdout)
        answer = page.json(f"/api/v1/suspects?dump={made['id']}")
        self.assertEqual((answer["functions"], answer["processes"]), (told["functions"], told["processes"]))
        os.killpg(process.pid, signal.SIGKILL)  # the program has no end of its own


if __name__ == "__main__":
    unittest.main()
