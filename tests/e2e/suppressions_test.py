"""Known leaks by --suppressions: what they hold is left out of live and left figures, told, and agrees with LeakSanitizer's own count."""
import json
import re
import subprocess
import unittest

import harness

USAGE, BROKEN = 2, 3
KNOWN, OTHER, BYTES = 100, 10, 1000
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
enum { BYTES = 1000, OTHER = 10 };
void *volatile sink;
void known_leak(void) { sink = malloc(BYTES); }
void other_leak(void) { sink = malloc(BYTES); }
int main(int count, char **words) {
    const int known = atoi(words[1]);
    for (int i = 0; i < known; i++) known_leak();
    for (int i = 0; i < OTHER; i++) other_leak();
    sink = 0;
    if (count > 2) {  /* grows for a while, in both */
        for (int i = 0; i < 150; i++) {
            known_leak();
            other_leak();
            usleep(100000);
        }
    }
    return 0;
}
"""
LSAN_ROW = re.compile(r"^\s+(\d+)\s+(\d+)\s+(\S+)$", re.M)  # count, bytes, pattern


class Suppressions(harness.Case):
    def setUp(self):
        super().setUp()
        self.program = self.compile("program")
        self.known = self.folder / "known.supp"
        self.write("# of ours", "leak:^known_l*k$", "leak:never_there")

    def compile(self, name, *options):
        source = self.folder / "leaky.c"
        source.write_text(PROGRAM)
        program = self.folder / name
        subprocess.run(["gcc", "-O0", "-g", *options, "-o", program, source], check=True)
        return program

    def write(self, *lines):
        self.known.write_text("\n".join(lines) + "\n")

    def dump(self, known=KNOWN):
        return self.memlog(self.program, known).dumps()[0]

    def say(self, *words, code=0):
        answer = subprocess.run([harness.MEMLOG, *map(str, words)], capture_output=True, text=True, check=False, cwd=self.folder,
                                env=self.environment(), timeout=harness.TIMEOUT)
        self.assertEqual(answer.returncode, code, answer.stdout + answer.stderr)
        return answer.stdout, answer.stderr

    def told(self, *words):
        return json.loads(self.say("report", "--json", *words)[0])

    def test_live_and_left_lack_it_and_peak_and_total_do_not(self):
        dump = self.dump()
        all_of, rest = self.told(dump), self.told(f"--suppressions={self.known}", dump)
        for key in ("left_bytes", "left_blocks", "peak_bytes", "total_bytes", "total_blocks"):
            lacks = {"left_bytes": KNOWN * BYTES, "left_blocks": KNOWN}.get(key, 0)
            self.assertEqual(rest["tree"][key], all_of["tree"][key] - lacks, key)
        (process,), (before,) = rest["processes"], all_of["processes"]
        self.assertEqual(process["live_bytes"], before["live_bytes"] - KNOWN * BYTES)
        self.assertEqual(sum(stack["live_bytes"] for stack in process["stacks"]), process["live_bytes"])
        self.assertEqual(sum(stack["live_blocks"] for stack in rest["tree"]["stacks"]), rest["tree"]["left_blocks"])
        self.assertNotIn("suppressed", all_of["dump"])
        told = rest["dump"]["suppressed"]
        self.assertEqual((told["stacks"], told["blocks"], told["bytes"]), (1, KNOWN, KNOWN * BYTES))
        self.assertEqual([(one["pattern"], one["line"], one["blocks"]) for one in told["patterns"]], [("^known_l*k$", 2, KNOWN), ("never_there", 3, 0)])
        # The sums of every list are those of the stacks.
        for by in ("function", "module", "process", "size", "thread", "line"):
            rows = self.told(f"--by={by}", f"--suppressions={self.known}", dump)["rows"]
            self.assertEqual(sum(row["live_bytes"] for row in rows), process["live_bytes"], by)

    def test_it_is_told_in_every_form(self):
        dump = self.dump()
        told = f"Suppressed: 97.7 KiB in {KNOWN} blocks of 1 stack, by {self.known}\n"
        unused = f"Not used: leak:never_there ({self.known}:3)\n"
        for words in ((), ("--full",), ("--by=function",), ("--summary",)):
            out = self.say("report", *words, f"--suppressions={self.known}", dump)[0]
            self.assertIn(told, out)
            self.assertIn(unused, out)
        out, err = self.say("report", "--csv", f"--suppressions={self.known}", dump)
        self.assertNotIn("uppressed", out)
        self.assertIn(told + f"  97.7 KiB in {KNOWN} blocks of 1 stack, by leak:^known_l*k$\n" + unused, err)

    def test_functions_files_and_modules_are_matched(self):
        dump = self.dump()
        for pattern in ("known_leak", "leaky.c$", "/program", "^main$", "prog*m"):
            self.write(f"leak:{pattern}")
            told = self.told(f"--suppressions={self.known}", dump)["dump"]["suppressed"]
            self.assertGreaterEqual(told["blocks"], KNOWN, pattern)
        for pattern in ("^program", "nown_lea$", "leaky.c:"):
            self.write(f"leak:{pattern}")
            self.assertEqual(self.told(f"--suppressions={self.known}", dump)["dump"]["suppressed"]["blocks"], 0, pattern)

    def test_what_is_wrong_is_named_with_its_line(self):
        dump = self.dump()
        self.write("leak:a", "race:b")
        for words in (("report", dump), ("diff", dump, dump), ("suspects", dump)):
            self.assertIn(f"{self.known}:2: leak:PATTERN is wanted", self.say(*words, f"--suppressions={self.known}", code=USAGE)[1])
        self.assertIn("nowhere: No such file", self.say("report", "--suppressions=nowhere", dump, code=USAGE)[1])

    def test_what_grew_is_judged_without_it(self):
        before, after = self.dump(), self.dump(2 * KNOWN)
        words = ("diff", "--fail-if-grew=1K", before, after)
        self.say(*words, code=BROKEN)
        out, err = self.say(*words, f"--suppressions={self.known}")
        self.assertIn("held: left grew by 0 B", err)
        self.assertIn(f"Suppressed in FROM: 97.7 KiB in {KNOWN} blocks", out)
        self.assertIn(f"Suppressed in TO: 195.3 KiB in {2 * KNOWN} blocks", out)
        self.assertEqual(out.count("Not used: "), 1)
        # A pattern that matched on one side is used.
        self.write("leak:known_leak")
        self.assertNotIn("Not used", self.say("diff", f"--suppressions={self.known}", before, after)[0])

    def test_budgets_are_judged_without_it_also_at_a_runs_end(self):
        budget = self.folder / "budget.json"
        budget.write_text('{"version": "BUDGET_MEMLOG_1", "budgets": [{"name": "leaks", "left": "20K"}, {"process": "program", "left_blocks": 20}]}')
        dump = self.dump()
        self.say("check", f"--budget={budget}", dump, code=BROKEN)
        out = self.say("check", f"--budget={budget}", f"--suppressions={self.known}", dump)[0]
        self.assertIn("2 held, 0 broken", out)
        self.assertIn(f"Suppressed: 97.7 KiB in {KNOWN} blocks", out)
        run = ("run", "--no-page", f"--budget={budget}", "-o")
        self.say(*run, "one", "--", self.program, KNOWN, code=BROKEN)
        err = "".join(self.say(*run, "two", f"--budget-suppressions={self.known}", "--", self.program, KNOWN))
        self.assertIn(f"Suppressed: 97.7 KiB in {KNOWN} blocks", err)
        self.write("what")
        self.say(*run, "three", f"--budget-suppressions={self.known}", "--", "/bin/touch", "ran", code=USAGE)
        self.assertFalse((self.folder / "ran").exists())

    def test_suspects_lack_it(self):
        dump = self.memlog(self.program, KNOWN, "grow").dumps()[0]
        names = [one["function"] for one in json.loads(self.say("suspects", "--json", dump)[0])["functions"]]
        rest = json.loads(self.say("suspects", "--json", f"--suppressions={self.known}", dump)[0])
        self.assertIn("known_leak", names)
        self.assertEqual([one["function"] for one in rest["functions"]], [name for name in names if name != "known_leak"])
        self.assertGreater(rest["dump"]["suppressed"]["bytes"], KNOWN * BYTES)
        self.assertIn("Suppressed: ", self.say("suspects", f"--suppressions={self.known}", dump)[0])

    def test_a_file_of_leak_sanitizers_leaves_out_what_it_does_there(self):
        checked = self.compile("checked", "-fsanitize=leak")
        env = self.environment(LSAN_OPTIONS=f"suppressions={self.known}:print_suppressions=1:use_registers=0:use_stacks=0:use_tls=0")
        answer = subprocess.run([checked, str(KNOWN)], capture_output=True, text=True, check=False, env=env, timeout=harness.TIMEOUT)
        if "ptrace" in answer.stderr or "Suppressions used" not in answer.stderr:
            self.skipTest("LeakSanitizer cannot look at this process: " + answer.stderr[:200])
        theirs = {pattern: (int(count), int(bytes_)) for count, bytes_, pattern in LSAN_ROW.findall(answer.stderr)}
        told = self.told(f"--suppressions={self.known}", self.dump())["dump"]["suppressed"]["patterns"]
        ours = {one["pattern"]: (one["blocks"], one["bytes"]) for one in told if one["blocks"]}
        self.assertEqual(ours, theirs)


if __name__ == "__main__":
    unittest.main(verbosity=2)
