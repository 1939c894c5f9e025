"""memlog collect symbolize: stacks that came without names get them when somebody gives the file; figures stay."""
import os
import random
import re
import signal
import sqlite3
import subprocess
import time
import unittest

import collect_test
import harness
from collecting import trace

MIB = 1 << 20
PROGRAM = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *volatile kept;
__attribute__((noinline)) static void leak(void) { kept = malloc(MORE << 20); memset(kept, 1, MORE << 20); }
__attribute__((noinline)) void serve(void) { leak(); __asm__ volatile(""); }
int main(void) { serve(); sleep(4); return 0; }
"""
NAMED = ("main", "serve", "leak")
TEAMS = collect_test.TEAMS


class Case(collect_test.Case):
    def build(self, name, more=20):
        """A program with names, the same without, its build id, and the addresses of its functions."""
        source, whole, bare = (self.folder / f"{name}{suffix}" for suffix in (".c", ".whole", ""))
        source.write_text(PROGRAM)
        subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", f"-DMORE={more}", "-o", str(whole), str(source)], check=True)
        subprocess.run(["strip", "-o", str(bare), str(whole)], check=True)
        notes = subprocess.run(["readelf", "-n", str(whole)], check=True, capture_output=True, text=True).stdout
        symbols = subprocess.run(["nm", str(whole)], check=True, capture_output=True, text=True).stdout
        addresses = {line.split()[2]: int(line.split()[0], 16) for line in symbols.splitlines() if len(line.split()) == 3}
        return whole, bare, re.search("Build ID: ([0-9a-f]+)", notes)[1], addresses

    @staticmethod
    def placed(build_id, addresses, rows, **how):
        """A report whose frames of the program are places: an address is loaded somewhere else in each."""
        base = 0x550000000000 + random.Random(str(how)).randrange(1 << 20) * 4096
        report = trace([(tuple(f"pc:{base + addresses[name] + 3:x}" if name in addresses else name for name in frames), *values) for frames, *values in rows],
                       build=build_id, **how)
        report["traceEvents"][1]["args"]["dumps"]["process_mmaps"] = {"vm_regions": [
            {"sa": f"{base:x}", "sz": "100000", "lb": f"{base:x}", "mf": "/opt/prog", "id": build_id}]}
        return report

    def symbolize(self, collector, *words, code=0):
        answer = subprocess.run(
            [str(harness.MEMLOG), "collect", "symbolize", f"--store=sqlite:{collector.store}", *map(str, words)], capture_output=True, text=True,
            env=self.environment(), check=False, timeout=harness.TIMEOUT)
        self.assertEqual(answer.returncode, code, answer.stderr)
        return answer.stderr

    @staticmethod
    def stacks(collector, **words):
        return {tuple(map(str, one["frames"])): (one["live_bytes"], one["hosts"]) for one in collector.ask("top", limit=10000, **words)["stacks"]}

    @staticmethod
    def figures(collector):
        """All samples and sums of the store."""
        with sqlite3.connect(collector.store) as store:
            return [store.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3, 4, 5, 6").fetchall() for table in ("samples", "sums", "weeks", "dumps")]


class Named(Case):
    def test_places_become_functions_in_all_reports_and_nothing_else_changes(self):
        collector = self.collector(tokens=TEAMS)
        whole, _, build_id, addresses = self.build("prog")
        for team in ("red", "blue"):
            for number in range(3):
                body = self.placed(build_id, addresses, [(NAMED, MIB << number, MIB, MIB), ((*NAMED[:2], "other"), 5, 5, 5), (("main",), 7, 7, 7)], host=f"h{number}")
                self.assertEqual(collector.send(body, guid=f"{team}{number}", team=team), 200)
        # Another build, whose sender had its names.
        self.assertEqual(collector.send(trace([(NAMED, 64 * MIB, 0, 0)], build="b2", host="h9"), guid="b2", team="red"), 200)
        collect_wait(self, collector, "red")
        collect_wait(self, collector, "blue")
        before = self.figures(collector)
        self.assertEqual(len(self.stacks(collector, team="red")), 4)
        self.assertIn(f"build {build_id}, 6 frames without a name, 6 named, 8 stacks renamed", self.symbolize(collector, whole))
        for _ in range(2):
            self.assertEqual(self.stacks(collector, team="red"), {
                NAMED: (71 * MIB, 4), ("main", "serve", "other"): (15, 3), ("main",): (21, 3)})
            self.assertEqual(self.stacks(collector, team="blue")[NAMED], (7 * MIB, 3))
            self.assertEqual(self.figures(collector), before)
            self.assertEqual({node["name"] for node in collector.ask("flame", team="red")["nodes"]}, {*NAMED, "other"})
            leak = collector.ask("top", team="red")["stacks"][0]["stack"]
            self.assertEqual(len(collector.ask("reports", team="red", stack=leak)["reports"]), 4)
            self.assertIn("0 frames without a name, 0 named, 0 stacks renamed", self.symbolize(collector, whole))
            self.restarted(collector)
        # What comes later is called alike, in stacks that are new, too.
        late = self.placed(build_id, addresses, [(NAMED, MIB, 0, 0), (("serve", "leak"), 9, 0, 0)], host="late")
        self.assertEqual(collector.send(late, guid="late", team="red"), 200)
        self.assertEqual(collector.send(trace([(("serve", "leak"), 1, 0, 0)], build="b2"), guid="last", team="red"), 200)
        collect_wait(self, collector, "red")
        self.assertEqual(self.stacks(collector, team="red")[NAMED], (72 * MIB, 5))
        self.assertEqual(self.stacks(collector, team="red")[("serve", "leak")][0], 10)
        self.assertIn("0 named, 0 stacks renamed", self.symbolize(collector, whole))

    def test_a_run_of_a_stripped_program(self):
        collector = self.collector()
        whole, bare, build_id, _ = self.build("stripped")
        token = self.folder / "send.token"
        token.write_text(collector.tokens["default"]["write"] + "\n")
        triggers = self.folder / "triggers.json"
        triggers.write_text('{"interval_seconds": 1, "live": {"browser": "10M"}}')
        subprocess.run([str(harness.MEMLOG), "run", "-q", "--no-page", "-o", str(self.folder / "out"), f"--triggers={triggers}",
                        f"--upload=http://127.0.0.1:{collector.port}/", f"--upload-token-file={token}", f"--upload-spool={self.folder}/spool", "--", str(bare)],
                       check=True, env=self.environment(), timeout=harness.TIMEOUT)
        self.wait_for("the report", lambda: collector.ask("top")["dumps"] == 1)
        (big,) = (stack for stack, (live, _) in self.stacks(collector).items() if live >= 20 * MIB)
        self.assertNotIn("leak", big)
        self.assertRegex(self.symbolize(collector, whole), f"build {build_id}, [0-9]+ frames without a name, [1-9]")
        (big,) = (stack for stack, (live, _) in self.stacks(collector).items() if live >= 20 * MIB)
        self.assertEqual([name for name in big if name in NAMED], list(NAMED))

    def test_killed_at_any_moment_all_or_nothing_is_there(self):
        collector = self.collector()
        whole, _, build_id, addresses = self.build("prog")
        chance = random.Random(5)
        rows = [(tuple(chance.choice(NAMED) for _ in range(chance.randrange(1, 9))), number, 0, 0) for number in range(3000)]
        self.assertEqual(collector.send(self.placed(build_id, addresses, rows), guid="one"), 200)
        collector.settle()
        before = self.figures(collector)
        unnamed = set(self.stacks(collector))
        kills = 0
        for number in range(60):
            with subprocess.Popen([str(harness.MEMLOG), "collect", "symbolize", "-q", f"--store=sqlite:{collector.store}", str(whole)], env=self.environment()) as process:
                time.sleep(chance.random() * (0.005, 0.02, 0.12)[number % 3])  # machines differ: some are done after 10 ms
                process.send_signal(signal.SIGKILL)
                kills += process.wait() == -signal.SIGKILL
            found = set(self.stacks(collector))
            if found != unnamed:
                break
        self.assertGreater(kills, 0)
        self.symbolize(collector, whole)
        self.assertEqual(set(self.stacks(collector)), {frames for frames, *_ in rows})
        self.assertEqual(self.figures(collector), before)
        with sqlite3.connect(collector.store) as store:
            self.assertEqual(store.execute("PRAGMA integrity_check").fetchone(), ("ok",))


class Refused(Case):
    def test_files_that_are_none_change_nothing(self):
        collector = self.collector()
        whole, _, build_id, addresses = self.build("prog")
        other, *_ = self.build("other", more=21)
        self.assertEqual(collector.send(self.placed(build_id, addresses, [(NAMED, MIB, MIB, MIB)]), guid="one"), 200)
        collector.settle()
        before = self.stacks(collector)
        self.assertIn("0 frames without a name", self.symbolize(collector, other))
        bytes_of, chance = whole.read_bytes(), random.Random(3)
        wrong = self.folder / "wrong"
        os.mkfifo(self.folder / "pipe")
        for path in (self.folder, self.folder / "none", self.folder / "pipe", self.folder / "prog.c", "abcdef0123456789"):
            self.assertRegex(self.symbolize(collector, path, code=1), "No such file|it is no ELF file")
        for number in range(30):
            mutated = bytearray(bytes_of[:chance.randrange(len(bytes_of))] if number % 2 else bytes_of)
            for _ in range(chance.randrange(1, 400)):
                mutated[chance.randrange(len(mutated))] = chance.randrange(256)
            # Its own build id is another one: whatever is in it is about nothing here.
            wrong.write_bytes(bytes(mutated).replace(bytes.fromhex(build_id), bytes(20)))
            subprocess.run([str(harness.MEMLOG), "collect", "symbolize", "-q", f"--store=sqlite:{collector.store}", str(wrong)],
                           env=self.environment(), check=False, stderr=subprocess.DEVNULL, timeout=harness.TIMEOUT)
            self.assertEqual(self.stacks(collector), before)
        # One file that is none does not hold up the next.
        self.assertIn("3 named", self.symbolize(collector, self.folder / "none", whole, code=1))
        self.assertEqual(set(self.stacks(collector)), {NAMED})

    def test_words_that_do_not_fit(self):
        def refused(*words, code):
            answer = subprocess.run([str(harness.MEMLOG), "collect", "symbolize", *words], capture_output=True, text=True, env=self.environment(), check=False,
                                    cwd=self.folder, timeout=harness.TIMEOUT)
            self.assertEqual(answer.returncode, code, answer.stderr)
            return answer.stderr
        self.assertIn("say where the reports are", refused("/bin/ls", code=2))
        self.assertIn("say which file has the names", refused("--store=sqlite:x", code=2))
        self.assertIn("a store is sqlite:PATH or clickhouse:URL", refused("--store=other:x", "/bin/ls", code=2))
        self.assertIn("wants the collector's --spool=DIR", refused("--store=clickhouse:http://x", "/bin/ls", code=2))
        self.assertIn("--store-auth is for", refused("--store=sqlite:x", "--store-auth=x", "/bin/ls", code=2))
        self.assertIn("ledger.db: No such file", refused("--store=clickhouse:http://x", "--spool=nowhere", "/bin/ls", code=1))
        self.assertIn("No such file", refused("--store=sqlite:none", "/bin/ls", code=1))
        collector = self.collector()
        self.assertIn("--spool=DIR is the collector's", self.symbolize(collector, "--spool=nowhere", "/bin/ls", code=1))


def collect_wait(case, collector, team):
    case.wait_for("all to be stored", lambda: collector.figures(team)["waiting"] == 0)


if __name__ == "__main__":
    unittest.main()
