"""memlog suspects names what leaks, since when and how fast, and calls no program that does not leak a suspect.

Ten runs of each: for run in 1 2 3 4 5 6 7 8 9 10; do python3 tests/e2e/suspects_test.py; done"""
import json
import os
import re
import shutil
import signal
import unittest

import harness
import pythons

SECONDS = 18
TRIES = 3
LEAKS = r"""
#include <map>
#include <string>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
struct SessionCache { std::map<int, std::string> kept; __attribute__((noinline)) void add(int id) { kept[id] = std::string(400, 'x'); } };
static char *volatile slot[500];
extern "C" __attribute__((noinline)) void remember() { *(volatile char *)malloc(700) = 1; }
extern "C" __attribute__((noinline)) void lru_insert(int at) { free(slot[at % 500]); slot[at % 500] = (char *)malloc(2000); }
extern "C" __attribute__((noinline)) char *request() { char *body = (char *)malloc(5000 + rand() % 50000); memset(body, 1, 5000); return body; }
extern "C" __attribute__((noinline)) char *garbage(int at) { return (char *)malloc(1000 + at % 3000); }
int main(int count, char **words) {
    SessionCache cache;
    static char *pile[300];
    const time_t start = time(NULL);
    puts("ready");
    fflush(stdout);
    for (int i = 0;; i++) {
        char *body = request();
        lru_insert(i);
        if (strcmp(words[1], "cache") == 0) cache.add(i);
        if (strcmp(words[1], "slow") == 0 && i % 25 == 0) remember();
        if (strcmp(words[1], "pile") == 0) {                            /* collected now and then */
            pile[i % 300] = garbage(i);
            if (i % 300 == 299) { for (int j = 0; j < 300; j++) free(pile[j]); }
            remember();
        }
        if (strcmp(words[1], "freed") == 0) {
            cache.add(i);
            if (time(NULL) - start >= atoi(words[2])) return 0;         /* the destructor frees all */
        }
        usleep(5000);
        free(body);
    }
}
"""
LEAK_PY = pythons.named("""
import time
kept = []
def remember(): kept.append(bytearray(3000))
while True:
    remember()
    time.sleep(0.01)
""")
CHURN_PY = """
import time
kept = {}
i = 0
while True:
    i += 1
    kept[i % 700] = bytearray(1000 + i * 7919 % 3000)
    time.sleep(0.003)
"""
CHURN_JS = """
let kept = [];
setInterval(() => { kept.push(Buffer.allocUnsafeSlow(3000 + Math.random() * 3000)); if (kept.length > 500) kept = kept.slice(250); }, 5);
"""
CHURN_PHP = '<?php $k = []; for ($i = 0;; $i++) { $k[$i % 300] = str_repeat("x", 2000 + $i * 7919 % 9000); usleep(3000); }'
CHURN_TCL = 'for {set i 0} {1} {incr i} { set k([expr {$i % 400}]) [string repeat x [expr {500 + $i * 7919 % 3000}]]; after 3 }'
CHURN_PL = 'for ($i = 0;; $i++) { $k{$i % 400} = "x" x (500 + $i * 7919 % 3000); select(undef, undef, undef, 0.003); }'
CHURN_SH = 'exec 3<> never; i=0; while :; do i=$((i + 1)); printf -v "k[i % 300]" "%0$((i * 7919 % 2000))d" 1; read -t 0.01 -u 3; done'
CHURN_AWK = '{ k[NR % 400] = sprintf("%" (500 + NR * 7919 % 3000) "s", "x") }'
CHURN_SQL = ("CREATE TABLE t(x);", "INSERT INTO t SELECT randomblob(4000) FROM generate_series(1, 50);", "DELETE FROM t WHERE rowid IN (SELECT rowid FROM t ORDER BY rowid LIMIT max(0, (SELECT count(*) FROM t) - 200));")


class Suspects(harness.Case):
    def setUp(self):
        super().setUp()
        source = self.folder / "leaks.cpp"
        source.write_text(LEAKS)
        harness.run_words(["g++", "-g", "-O1", "-o", str(self.folder / "leaks"), str(source)], self.folder, None, b"", harness.TIMEOUT)
        for name, text in (("leak.py", LEAK_PY), ("churn.py", CHURN_PY), ("churn.js", CHURN_JS), ("churn.php", CHURN_PHP),
                           ("churn.tcl", CHURN_TCL), ("churn.pl", CHURN_PL), ("churn.bash", CHURN_SH), ("churn.awk", CHURN_AWK)):
            (self.folder / name).write_text(text)
        os.mkfifo(self.folder / "never")

    def side_by_side(self, *commands):
        """Run each of them for a while, all in one recording. Their process ids, by command."""
        (self.folder / "pids").unlink(missing_ok=True)
        lines = [f"{command} & echo $! >> pids" for command in commands]
        script = "\n".join([*lines, f"sleep {SECONDS}", "kill -KILL $(cat pids)", "wait"])
        self.run_ = self.memlog("/bin/bash", "-c", script)
        return dict(zip(commands, map(int, (self.folder / "pids").read_text().split())))

    def say(self, *words):
        answer = harness.run_words([str(harness.MEMLOG), *map(str, words)], self.folder, self.environment(COLUMNS="100"), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout.decode()

    def verdicts(self):
        return json.loads(self.say("suspects", "--json", self.run_.dumps()[0]))

    def brief(self, verdicts):
        """What failed, without the stacks."""
        return [(one["name"], one["pid"], one["function"], one["verdict"], one["rising_steps"], one["steps"], one["grown_bytes"]) for one in verdicts["functions"] if one["verdict"] != "none"]

    def steady(self, verdicts, pid):
        return {one["function"]: {key: value for key, value in one.items() if key != "frames"} for one in verdicts["functions"] if one["pid"] == pid and one["verdict"] == "steady"}

    def test_leaks_are_named_and_caches_are_not(self):
        commands = ["./leaks cache", "./leaks slow", "./leaks pile", f"./leaks freed {SECONDS - 5}", "/usr/bin/python3 leak.py"]
        for _ in range(TRIES):
            pids = self.side_by_side(*commands)
            verdicts = self.verdicts()
            found = {command: self.steady(verdicts, pid) for command, pid in pids.items()}
            whole = next(one for one in verdicts["processes"] if one["pid"] == pids["./leaks cache"])
            if whole["verdict"] == "steady" and sum(map(bool, found.values())) == len(commands) - 1:
                break
            print(f"once more: programs that stand still do not grow steadily, load {os.getloadavg()[0]:.1f}", flush=True)
        self.assertEqual(list(found["./leaks cache"]), ["SessionCache::add"], self.brief(verdicts))
        self.assertEqual(list(found["./leaks slow"]), ["remember"], self.brief(verdicts))
        self.assertEqual(list(found["./leaks pile"]), ["remember"], self.brief(verdicts))
        self.assertEqual(found[commands[3]], {}, self.brief(verdicts))
        self.assertEqual(list(found["/usr/bin/python3 leak.py"]), [pythons.HOLDER], self.brief(verdicts))

        slow = found["./leaks slow"]["remember"]
        self.assertEqual(slow["live_blocks"], slow["total_blocks"])
        cache = found["./leaks cache"]["SessionCache::add"]
        for one in (slow, cache):  # what was seen is what the program did, over that time
            seconds = (one["until_ms"] - one["since_ms"]) / 1000
            self.assertAlmostEqual(one["live_bytes"] / seconds / one["bytes_per_s"], 1, delta=0.3)
        self.assertEqual(whole["verdict"], "steady")
        self.assertAlmostEqual(whole["bytes_per_s"], cache["bytes_per_s"], delta=cache["bytes_per_s"] / 2)
        kinds = {(one["pid"], one["function"]): one["verdict"] for one in verdicts["functions"]}
        self.assertIn(kinds[pids["./leaks cache"], "lru_insert"], ("levelled", "slowing", "none"))
        self.assertEqual(kinds[pids["./leaks cache"], "request"], "none")

        text = self.say("suspects", self.run_.dumps()[0])
        self.assertRegex(text, r"(?m)^ +\d\. SessionCache::add  [\d.]+ KiB/s ± ")
        self.assertIn(f"in leaks {pids['./leaks cache']}: SessionCache::add < main", text)
        self.assertRegex(text, r"since \S+Z; it rose in \d+ of \d+ steps; none of its \d+ blocks was freed")
        self.assertEqual(self.say("suspects", f"--pid={pids['./leaks slow']}", self.run_.dumps()[0]).count("steps"), 1)

    def test_programs_without_leaks_have_no_suspects(self):
        sql = "exec sqlite3 :memory: < <(echo '%s'; while echo '%s' && echo '%s'; do sleep 0.05; done)" % CHURN_SQL
        commands = ["./leaks lru", "/usr/bin/python3 churn.py", "perl churn.pl", "bash churn.bash", "exec mawk -f churn.awk < <(while echo; do sleep 0.003; done)"]
        commands += [command for name, command in (("sqlite3", sql), ("php", "exec php -f churn.php"), ("tclsh", "exec tclsh churn.tcl"), ("node", "exec node churn.js")) if shutil.which(name)]
        commands.append("exec redis-server --port 0 --save '' --dir . --unixsocket redis.sock" if shutil.which("redis-server") else "exec sleep 1000")
        pids = self.side_by_side(*commands)
        verdicts = self.verdicts()
        for command, pid in pids.items():
            self.assertEqual(self.steady(verdicts, pid), {}, (command, self.brief(verdicts)))
        text = self.say("suspects", self.run_.dumps()[0])
        self.assertIn("No suspect  no function that was followed grew steadily", re.sub(r"\s*\n\s*", "\n", text))

    def test_a_process_that_runs_is_dumped_first(self):
        process = self.memlog_start(str(self.folder / "leaks"), "slow")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        (entry,) = json.loads(self.say("ps", "--json"))["processes"]
        self.wait_for("a look", lambda: json.loads(self.say("suspects", "--json", entry["pid"]))["functions"])
        answer = harness.run_words([str(harness.MEMLOG), "suspects", "1"], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual((answer.returncode, answer.stdout), (125, b""))
        self.assertRegex(answer.stderr.decode(), "(?m)^memlog: there is no dump of process 1; 'memlog ps' lists what is recorded$")
        os.kill(entry["pid"], signal.SIGKILL)
        process.communicate(timeout=harness.TIMEOUT)

    def test_a_short_run_is_too_short_to_tell_and_an_instant_has_no_timeline(self):
        self.run_ = self.memlog(str(self.folder / "leaks"), "freed", "4")
        text = " ".join(self.say("suspects", self.run_.dumps()[0]).split())
        self.assertIn("the time is too short to tell: memlog looks each second, and 11 looks are the least.", text)
        self.assertTrue(all(one["verdict"] == "too-short" for one in self.verdicts()["functions"]))
        (nothing,) = self.memlog("/bin/true", options=("-q", "--no-page", "--memlog=manual")).dumps()
        answer = harness.run_words([str(harness.MEMLOG), "suspects", str(nothing)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual((answer.returncode, answer.stdout, answer.stderr.decode()), (3, b"", f"memlog suspects: {nothing}: no process was recorded; memlog report tells why\n"))


if __name__ == "__main__":
    unittest.main()
