"""Budgets for build servers: memlog check, memlog run --budget and memlog diff --fail-if-grew, with their verdicts, files and exit codes."""
import json
import subprocess
import unittest
import xml.etree.ElementTree

import jsonschema
import harness
import pages

HELD, FAILED, USAGE, BROKEN, UNSURE, MEMLOG_FAILED = 0, 1, 2, 3, 4, 125
BLOCK, LEFT = 1000, 10
# Keeps N blocks until it has churned, frees all but ten, and ends with CODE.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
enum { BLOCK = 1000, LEFT = 10, MOST = 100000 };
static char *kept[MOST];
void keep_blocks(int count) {
    for (int i = 0; i < count; i++) {
        kept[i] = malloc(BLOCK);
    }
}
void churn(int count) {
    for (int i = 0; i < count; i++) {
        free(malloc(64));
    }
}
int main(int argc, char **argv) {
    int count = atoi(argv[1]);
    keep_blocks(count);
    churn(5);
    if (argc > 3) {
        puts("ready");
        fflush(stdout);
        (void)!getchar();
    }
    for (int i = LEFT; i < count; i++) {
        free(kept[i]);
    }
    return atoi(argv[2]);
}
"""
# The standard's own schema, which a package of npm brings.
SARIF_SCHEMA = pages.NODE / "node_modules" / "@microsoft" / "jest-sarif" / "lib" / "schemas" / "sarif-2.1.0-rtm.5.json"


class Budgets(harness.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dumps = {}

    def setUp(self):
        super().setUp()
        self.program = self.folder / "budgeted"
        source = self.folder / "budgeted.c"
        source.write_text(PROGRAM)
        subprocess.run(["gcc", "-O1", "-g", "-fno-builtin", "-fno-inline", "-fno-optimize-sibling-calls", "-o", self.program, source], check=True)

    def say(self, *words, code=HELD):
        answer = harness.run_words([str(harness.MEMLOG), *map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, code, answer.stdout + answer.stderr)
        return answer.stdout.decode() + answer.stderr.decode()

    def record(self, count, *options, name=None):
        folder = self.folder / f"run.{name or count}"
        self.say("run", "-q", "--no-page", "-o", folder, *options, "--", self.program, count, 0)
        return folder / "0001.exit.pftrace"

    def budget(self, *rules):
        path = self.folder / "budget.json"
        lines = ",\n".join(json.dumps(rule) for rule in rules)
        path.write_text(f'// {len(rules)} rules\n{{"version": "BUDGET_MEMLOG_1",\n "budgets": [\n{lines}\n]}}\n')
        return path

    def check(self, rule, *words, code):
        return self.say("check", f"--budget={self.budget(rule)}", *words, code=code)

    def test_each_kind_of_rule_is_held_and_broken_at_its_figure(self):
        dump = self.record(1000)
        report = json.loads(self.say("report", "--json", dump))
        (process,) = report["processes"]
        kept = 1000 * BLOCK
        exact = [
            ({"process": "budgeted"}, "peak", process["peak_bytes"]),
            ({"process": "budget.*"}, "left", process["live_bytes"]),
            ({"role": "browser"}, "total", process["total_bytes"]),
            ({}, "peak", report["tree"]["peak_bytes"]),
            ({}, "left_blocks", process["live_blocks"]),
            ({}, "total_blocks", process["total_blocks"]),
            ({"function": "keep_blocks"}, "peak", kept),
            ({"function": "keep_blocks", "process": "budgeted"}, "peak_blocks", 1000),
            ({"function": "keep_.*"}, "left", LEFT * BLOCK),
            ({"function": "main"}, "total", kept + 5 * 64),
            ({"function": "churn"}, "total_blocks", 5),
            ({"module": "budgeted"}, "total", kept + 5 * 64),
            ({"heap": "malloc", "function": "churn"}, "total", 5 * 64),
            ({"type": ".*", "role": "browser"}, "total", process["total_bytes"]),
        ]
        self.say("check", f"--budget={self.budget(*({**rule, figure: value} for rule, figure, value in exact))}", dump)
        said = self.say("check", f"--budget={self.budget(*({**rule, figure: value - 1} for rule, figure, value in exact))}", dump, code=BROKEN)
        self.assertEqual(said.count("BROKEN "), len(exact), said)
        self.assertIn(f"0 held, {len(exact)} broken, 0 not sure", said)
        self.assertIn("BROKEN    keep_blocks: peak is 976.6 KiB, the limit is 976.6 KiB: 1 B above", said)
        self.assertRegex(said, r"100\.0 % +976\.6 KiB +keep_blocks < main")
        self.assertIn(f"next: memlog report --metric=peak {dump}", said)

    def test_what_a_rule_names_and_nobody_has_is_not_held(self):
        dump = self.record(10)
        self.assertIn("no process of that rule was recorded", self.check({"process": "budgetet", "peak": "1G"}, dump, code=UNSURE))
        self.assertIn("misspelt, or gone", self.check({"function": "keep_block", "peak": "1G"}, dump, code=UNSURE))
        self.assertIn("misspelt, or gone", self.check({"heap": "pool", "peak": "1G"}, dump, code=UNSURE))
        self.check({"function": "keep_block", "total": 0}, dump, code=HELD)  # that is what it wants

    def test_a_dump_that_lost_something_holds_nothing(self):
        dump = self.record(1000)
        whole = dump.read_bytes()
        cut = self.folder / "0002.exit.pftrace"
        cut.write_bytes(whole[:-200])
        said = self.check({"peak": "1G"}, cut, code=UNSURE)
        self.assertIn("not sure  all processes: peak is", said)
        self.assertIn("missing from the dump", said)
        self.check({"peak": 1}, cut, code=UNSURE)  # frees may be among what is missing
        self.check({"total": 1}, cut, code=BROKEN)
        # Of three runs the median is one of the whole ones.
        self.check({"peak": "1G"}, dump, cut, dump, code=HELD)

    def test_an_estimate_is_judged_beyond_its_error_alone(self):
        dump = self.record(2000, "--memlog-sampling-rate=10000", name="sampled")
        (process,) = json.loads(self.say("report", "--json", dump))["processes"]
        figure = process["peak_bytes"]
        said = self.check({"process": "budgeted", "peak": figure}, dump, code=UNSURE)
        self.assertIn("the profile is sampled", said)
        self.check({"process": "budgeted", "peak": 3 * figure}, dump, code=HELD)
        self.check({"process": "budgeted", "peak": figure // 3}, dump, code=BROKEN)
        self.check({"function": "nobody", "peak": 1}, dump, code=UNSURE)

    def test_several_runs_are_judged_by_their_median_and_growth_by_a_base(self):
        runs = [self.record(count) for count in (1000, 1010, 5000)]
        rule = {"function": "keep_blocks", "peak": 1010 * BLOCK, "peak_growth": "1%", "total_blocks_growth": 10}
        said = self.say("check", f"--budget={self.budget(rule)}", f"--base={runs[0].parent}", *(run.parent for run in runs))
        self.assertIn("median of 3 dumps, 976.6 KiB to 4.8 MiB", said)
        self.assertIn("peak grew by 9.8 KiB (+1.0 %) from 976.6 KiB, the limit is 1 %", said)
        rule = {"function": "keep_blocks", "total_blocks_growth": 9}
        said = self.say("check", f"--budget={self.budget(rule)}", f"--base={runs[0]}", *runs, code=BROKEN)
        self.assertIn("total grew by 10 blocks (+1.0 %) from 1,000 blocks, the limit is 9 blocks: 1 block above", said)
        self.say("check", f"--budget={self.budget(rule)}", f"--base={runs[0]}", f"--base={runs[1]}", f"--base={runs[2]}", runs[1])
        self.assertIn("--base=DUMP", self.check(rule, runs[0], code=UNSURE))
        for grew, code in (("10000", HELD), ("9999", BROKEN), ("2%", HELD), ("0%", BROKEN)):
            said = self.say("diff", "--metric=peak", "--focus=keep_blocks", f"--fail-if-grew={grew}", *runs[:2], code=code)
            self.assertIn("peak grew by 9.8 KiB", said)
        self.say("diff", "--fail-if-grew=0", *runs[:2])  # both left ten blocks
        self.say("diff", "--fail-if-grew=1", "--heap=pool", *runs[:2], code=UNSURE)
        self.say("diff", "--heap=pool", *runs[:2], code=3)  # as ever: the dump lacks it
        self.assertIn("a size or a share", self.say("diff", "--fail-if-grew=x", *runs[:2], code=USAGE))
        self.assertIn("live, peak or total", self.say("diff", "--fail-if-grew=1", "--metric=alone", *runs[:2], code=USAGE))

    def test_memory_is_judged_by_component_and_as_a_whole(self):
        process = self.memlog_ready(self.program, "1000", "0", "wait")
        self.say("dump")
        (dump,) = self.folder.glob("dumps*/*.manual.pftrace")
        self.go(process)
        answer = json.loads(self.say("components", "--json", "--figure=private", dump))
        of = dict(zip(answer["components"], answer["rows"][1]["values"]))
        swapped = json.loads(self.say("components", "--json", "--figure=swap", dump))
        heap = of["heap"] + dict(zip(swapped["components"], swapped["rows"][1]["values"]))["heap"]
        whole = answer["rows"][1]["total_bytes"] + swapped["rows"][1]["total_bytes"]
        rules = [{"component": "heap", "private": heap}, {"process": "budgeted", "component": "heap", "private": heap}, {"role": "browser", "private": whole},
                 {"private": whole}, {"left": 1000 * BLOCK + 100000}]
        self.say("check", f"--budget={self.budget(*rules)}", dump)
        for rule in rules[:4]:
            said = self.check({**rule, "private": rule["private"] - 1}, dump, code=BROKEN)
            self.assertIn("next: memlog components", said)

    def test_junit_and_sarif_say_the_same(self):
        dump = self.record(1000)
        budget = self.budget({"name": "a <b> & \"c\"", "function": "keep_blocks", "peak": 1}, {"process": "nobody", "peak": 1}, {"left": "1G"})
        junit, sarif = self.folder / "a b" / "junit.xml", self.folder / "out.sarif"
        junit.parent.mkdir()
        said = self.say("check", f"--budget={budget}", f"--junit={junit}", f"--sarif={sarif}", dump, code=BROKEN)
        self.assertIn("1 held, 1 broken, 1 not sure", said)
        (suite,) = xml.etree.ElementTree.parse(junit).getroot()
        self.assertEqual((suite.tag, suite.get("tests"), suite.get("failures"), suite.get("errors")), ("testsuite", "3", "1", "1"))
        self.assertEqual([case.get("name") for case in suite], ["a <b> & \"c\": peak", "nobody: peak", "all processes: left"])
        self.assertEqual([[child.tag for child in case] for case in suite], [["failure"], ["error"], ["system-out"]])
        self.assertIn("976.6 KiB", suite[0][0].get("message"))
        self.assertIn("keep_blocks < main", suite[0][0].text)
        self.assert_sarif(json.loads(sarif.read_text()), budget)
        for file in (junit, sarif):
            self.assertEqual(file.stat().st_mode & 0o777, 0o600)

    def assert_sarif(self, log, budget):
        pages.install()
        validator = jsonschema.Draft4Validator(json.loads(SARIF_SCHEMA.read_text()))
        self.assertEqual([error.message for error in validator.iter_errors(log)], [])
        self.assertEqual(log["version"], "2.1.0")
        (run,) = log["runs"]
        rules = run["tool"]["driver"]["rules"]
        self.assertEqual(len({rule["id"] for rule in rules}), 3)
        for result in run["results"]:
            self.assertTrue(result["message"]["text"])
            self.assertEqual(result["kind"], "fail")  # any other kind demands level none
            self.assertEqual(rules[result["ruleIndex"]]["id"], result["ruleId"])
        self.assertEqual([result["level"] for result in run["results"]], ["error", "warning"])
        (place, rule) = [result["locations"][0]["physicalLocation"] for result in run["results"]]
        self.assertTrue(place["artifactLocation"]["uri"].endswith("/budgeted.c"), place)
        line = place["region"]["startLine"]
        self.assertIn("malloc(BLOCK)", PROGRAM.splitlines()[line - 1])
        self.assertEqual((rule["artifactLocation"]["uri"], rule["region"]["startLine"]), (f"file://{budget}", 5))

    def test_a_run_keeps_the_programs_exit_code_and_else_has_the_budgets(self):
        held, broken = self.folder / "held.json", self.folder / "broken.json"
        held.write_text(self.budget({"function": "keep_blocks", "peak": 100 * BLOCK}).read_text())
        broken.write_text(self.budget({"function": "keep_blocks", "peak": 1}).read_text())
        base = self.record(99)
        for budget, own, code in ((held, 0, HELD), (broken, 0, BROKEN), (broken, 7, 7)):
            folder = self.folder / f"{budget.stem}.{own}"
            said = self.say("run", "--no-page", "-o", folder, f"--budget={budget}", "--", self.program, 100, own, code=code)
            self.assertEqual("keep_blocks: peak" in said, own == 0, said)
        growing = self.budget({"function": "keep_blocks", "peak_growth": BLOCK - 1})
        words = ("run", "-q", "--no-page", "-o")
        self.assertEqual(self.say(*words, self.folder / "g", f"--budget={growing}", f"--budget-base={base}", "--", self.program, 100, 0, code=BROKEN), "")
        self.say(*words, self.folder / "u", f"--budget={growing}", "--", self.program, 100, 0, code=UNSURE)
        # What is wrong with the budget is said before the program does anything.
        for wrong in ((f"--budget={self.folder / 'none.json'}",), (f"--budget={growing}", "--budget-base=none"), (f"--budget={growing}", "--memlog=none"),
                      (f"--budget-base={base}",)):
            self.say(*words, self.folder / "w", *wrong, "--", self.program, 100, 0, code=USAGE)
        self.assertFalse((self.folder / "w").exists())

    def test_a_wrong_budget_names_file_line_and_next_step(self):
        budget = self.budget({"peak": 1}, {"process": "x", "peek": "1M"})
        said = self.say("check", f"--budget={budget}", "--validate", code=USAGE)
        self.assertIn(f"{budget}:5: rule 2 ('x'): 'peek' is no key of a rule (did you mean 'peak'?); docs/budgets.md lists them", said)
        budget.write_text("{\n\"version\": nothing}")
        self.assertIn(f"{budget}:2: ", self.say("check", f"--budget={budget}", "--validate", code=USAGE))
        self.assertIn("--budget=FILE", self.say("check", "x", code=USAGE))
        self.say("check", f"--budget={self.budget({'peak': 1})}", "--validate")
        self.say("check", f"--budget={self.budget({'peak': 1})}", self.folder / "none.pftrace", code=FAILED)

    def test_the_pipeline_of_the_examples_passes_and_fails_a_build(self):
        ci = harness.ROOT / "examples" / "ci"
        server = self.folder / "server"
        subprocess.run(["g++", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-o", server, ci / "server.cc"], check=True)
        env = self.environment(PATH=f"{harness.OUT}:/usr/bin:/bin")
        for requests, code, last in (("1000", HELD, "memory: every rule is held"), ("3000", BROKEN, "memory: a rule is broken; the build fails")):
            words = [str(ci / "pipeline.sh"), str(ci / "budget.json"), "base", str(server), requests]
            answer = harness.run_words(words, self.folder, env, b"", harness.TIMEOUT)
            self.assertEqual((answer.returncode, answer.stdout.decode().splitlines()[-1]), (code, last), answer.stderr)
            (suite,) = xml.etree.ElementTree.parse(self.folder / "memory.xml").getroot()
            self.assertEqual((suite.get("tests"), suite.get("failures")), ("4", "0" if code == HELD else "2"))
            self.assertEqual(len(json.loads((self.folder / "memory.sarif").read_text())["runs"][0]["results"]), int(suite.get("failures")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
