"""memlog components, expand and list: every row of a process's memory in one component, and sums that are the kernel's."""
# Whose pages of libmemlog.so are private depends on who else runs under memlog: figures of two moments are compared.
# runner: alone
import csv
import io
import json
import re
import subprocess
import unittest

import harness
import memory_test

# A run-time's arenas and blocks, a mapping of its own, and then it stands still.
PROGRAM = r"""
import mmap
kept = [bytes(1000) for _ in range(20000)]
small = [[i] for i in range(50000)]
mapped = mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE)
mapped.write(b"x" * (4 << 20))
print("ready", flush=True)
input()
"""
# Two children that touch what their parent mapped for all of them, and wait.
FAMILY = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
enum { SIZE = 6 << 20, CHILDREN = 2 };
static char *map_shared(void) {
    return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}
int main(void) {
    int ready[2], go[2];
    char byte = 0, *shared = map_shared();
    if (pipe(ready) != 0 || pipe(go) != 0) {
        return 1;
    }
    memset(shared, 1, SIZE);
    for (int i = 0; i < CHILDREN; i++) {
        if (fork() == 0) {
            close(go[1]);
            memset(malloc(100000), 1, 100000);
            for (int at = 0; at < SIZE; at += 4096) {
                byte += shared[at];
            }
            return write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 0;
        }
    }
    for (int i = 0; i < CHILDREN; i++) {
        (void)!read(ready[0], &byte, 1);
    }
    puts("ready");
    fflush(stdout);
    (void)!getchar();
    close(go[1]);
    while (wait(NULL) > 0) {
    }
    return 0;
}
"""
# In dmprof's form: what it computes itself has no rule.
DMPROF = """// as dmprof's l0
{"components": ["second", "mustbezero", "unhooked-anonymous", "unhooked-file-exec", "unhooked-file-nonexec", "unhooked-stack", "unhooked-other",
                "mmap-catch-all", "tc-used-all", "tc-unused", "total"],
 "rules": [
   {"name": "second", "stacktrace": "optional", "allocator": "optional"},
   {"name": "mmap-catch-all", "stacktrace": ".*", "allocator": "mmap"},
   {"name": "tc-used-all", "stackfunction": ".*", "allocator": "malloc"},
   {"name": "unhooked-file-exec", "mappedpathname": "^/.*", "mappedpermission": "..x.", "allocator": "unhooked"}],
 "version": "POLICY_DEEP_3"}
"""


class Components(harness.Case):
    def say(self, *words, expected=0):
        answer = harness.run_words([str(harness.MEMLOG), *map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, expected, answer.stderr)
        return answer.stdout.decode() if expected == 0 else answer.stderr.decode()

    def dump_of(self, process):
        """Dumps it while it waits; the dump and the kernel's figures of before."""
        (process_row,) = [row for row in json.loads(self.say("ps", "--json"))["processes"] if row["state"] == "running"]
        before = memory_test.smaps(process_row["pid"])
        self.say("dump")
        dump = sorted(self.folder.glob("dumps*/*.manual.pftrace"))[-1]
        return dump, before, process_row["pid"]

    def start_c(self, source=memory_test.ORACLE):
        (self.folder / "oracle.c").write_text(source)
        flags = ["-O1", "-g", "-fno-builtin", "-fno-inline", "-fno-optimize-sibling-calls"]
        harness.run_words(["gcc", *flags, "-o", str(self.folder / "oracle"), str(self.folder / "oracle.c")], self.folder, None, b"", harness.TIMEOUT)
        return self.started(str(self.folder / "oracle"))

    def started(self, *words):
        process = self.memlog_start(*words, stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def table(self, dump, *words):
        answer = json.loads(self.say("components", "--json", *words, dump))
        for row in answer["rows"]:
            self.assertEqual(len(row["values"]), len(answer["components"]))
            self.assertEqual(row["remainder_bytes"], 0, row)
            self.assertEqual(sum(row["values"]), row["total_bytes"], row)
        self.assertEqual(answer["rows"][0]["pid"], 0)
        return answer

    def values(self, answer, row=0):
        return dict(zip(answer["components"], answer["rows"][row]["values"]))

    def assert_private(self, told, before, what=""):
        """A library's pages are the process's alone until somebody else maps them as well, such as `memlog dump`."""
        self.assertAlmostEqual(told, before["private_bytes"], delta=256 << 10, msg=what)

    def assert_policies(self, dump, before, pid):
        for policy in ("l0", "l1", "l2"):
            answer = self.table(dump, f"--policy={policy}", "--figure=private")
            self.assertEqual(answer["policy"], policy)
            self.assertEqual(answer["rows"][1]["pid"], pid)
            for row in answer["rows"]:
                self.assert_private(row["total_bytes"], before, policy)
                self.assertGreaterEqual(row["page_tables_bytes"], 4096)
                self.assertEqual(row["kernel_stacks_bytes"], 16384)
            self.assertEqual(self.table(dump, f"--policy={policy}", "--figure=swap")["rows"][0]["total_bytes"], before["swapped_bytes"])

    def test_the_components_of_a_c_program_add_up_to_the_kernels_figure(self):
        process = self.start_c()
        dump, before, pid = self.dump_of(process)
        self.assert_policies(dump, before, pid)
        private = self.values(self.table(dump, "--figure=private"))
        self.assertEqual(private["shared memory"], 3 << 20)
        self.assertGreaterEqual(private["heap"], 10000 * 1000)
        self.assertGreaterEqual(private["mapped"], 4 << 20)
        self.assertLess(private["mapped"], (4 << 20) + (1 << 20))
        self.assertRegex(self.say("expand", "mapped", dump), r"(?m)^ +4\.\d MiB +\d[\d.]*%  main  oracle$")
        by_library = self.values(self.table(dump, "--policy=l2", "--figure=private"))
        self.assertGreaterEqual(by_library["heap of oracle"], 10000 * 1000)
        # The rows behind them are the same bytes.
        rows = list(csv.DictReader(io.StringIO(self.say("list", "--csv", dump))))
        for component, value in self.values(self.table(dump)).items():
            self.assertEqual(sum(int(row["proportional_bytes"]) for row in rows if row["component"] == component), value, component)
        self.assert_private(sum(int(row["private_bytes"]) for row in rows), before)
        self.assertIn("main", next(row for row in rows if row["allocator"] == "malloc")["stack"].split())
        process.communicate(b"\n", harness.TIMEOUT)

    def test_a_run_time_has_components_of_its_own(self):
        process = self.started("/usr/bin/python3", "-c", PROGRAM)
        dump, before, pid = self.dump_of(process)
        self.assert_policies(dump, before, pid)
        private = self.values(self.table(dump, "--policy=l1", "--figure=private"))
        self.assertGreater(private["python malloc"], 20000 * 1000)
        self.assertNotIn("heap", private)
        self.assertGreater(private["python arenas"], 50000 * 56)
        self.assertGreaterEqual(private["mapped"], 4 << 20)  # by the module mmap, or its function in python3
        tree = self.say("expand", "--policy=l1", "--depth=3", "python malloc", dump)
        self.assertRegex(tree, r"^python malloc  \d")
        self.assertIn("python3", tree)
        self.assertLess(max(len(line) - len(line[20:].lstrip()) for line in tree.splitlines()), 30)
        self.assertIn("nothing is in component 'java heap'", self.say("expand", "--policy=l1", "java heap", dump, expected=3))
        # The report's first line has the run-time's name for what it mapped, and the program's own stays mapped.
        line = re.search(r"  private +([\d.]+) MiB = (.*)", self.say("report", "--full", dump))
        parts = dict(reversed(part.split(" ", 1)) for part in line[2].split(" + "))
        self.assertAlmostEqual(float(parts["python arenas"]), private["python arenas"] / 2**20, delta=0.1)
        self.assertAlmostEqual(float(parts["mapped"]), private["mapped"] / 2**20, delta=0.1)
        self.assertAlmostEqual(sum(map(float, parts.values())), float(line[1]), delta=0.01)
        process.communicate(b"\n", harness.TIMEOUT)

    def test_in_a_tree_each_page_counts_once(self):
        process = self.start_c(FAMILY)
        self.say("dump")
        (dump,) = self.folder.glob("dumps*/*.manual.pftrace")
        answer = self.table(dump)
        self.assertEqual([row["pid"] == 0 for row in answer["rows"]], [True, False, False, False])
        tree, *members = (self.values(answer, row) for row in range(4))
        self.assertEqual(tree, {name: sum(member[name] for member in members) for name in tree})
        # smaps tells whole KiB of each mapping.
        self.assertAlmostEqual(tree["shared memory"], 6 << 20, delta=3 * 1024)
        for member in members:
            self.assertAlmostEqual(member["shared memory"], 2 << 20, delta=1024)
        for row in self.table(dump, "--figure=rss")["rows"][1:]:
            self.assertGreater(row["total_bytes"], 6 << 20)
        # The children have it from their parent's stack.
        rows = [row for row in csv.DictReader(io.StringIO(self.say("list", "--csv", dump))) if row["kind"] == "shared memory"]
        self.assertEqual(len(rows), 3)
        for row in rows:
            self.assertEqual((row["allocator"], row["shared_with"]), ("mmap", "group"))
            self.assertIn("map_shared", row["stack"].split())
        process.communicate(b"\n", harness.TIMEOUT)

    def test_several_dumps_stand_side_by_side(self):
        process = self.start_c()
        first, _, _ = self.dump_of(process)
        second, _, _ = self.dump_of(process)
        process.communicate(b"\n", harness.TIMEOUT)
        self.assertNotEqual(first, second)
        text = self.say("components", first, second)
        self.assertRegex(text, r" dump 1 +dump 2  component\n")
        self.assertRegex(text, r"MiB +\d[\d.]+ MiB  heap\n")
        self.assertRegex(text, r"0 B +0 B  remainder\n")
        rows = list(csv.DictReader(io.StringIO(self.say("components", "--csv", first, second))))
        self.assertEqual([row["pid"] == "0" for row in rows], [True, False, True, False])
        for row in rows:
            parts = [int(value) for key, value in row.items() if key not in ("time", "pid", "name", "total", "remainder")]
            self.assertEqual(sum(parts) + int(row["remainder"]), int(row["total"]))
        page = self.say("components", "--html", first, second)
        self.assertNotRegex(page, "<script|http")
        self.assertEqual(page.count("<svg"), 1)
        self.assertIn("<td>remainder</td><td>0 B</td><td>0 B</td>", page)
        self.assertRegex(page, r"<title>[\d:.]+Z: heap [\d.]+ MiB</title>")
        one = self.say("components", first)
        self.assertRegex(one, r"shared out +private +resident +swapped  component\n")
        self.assertRegex(one, r"  the kernel's figure\n +0 B +0 B +0 B +0 B  remainder\n")

    def test_policies_are_files_that_people_write(self):
        process = self.start_c()
        dump, before, _ = self.dump_of(process)
        process.communicate(b"\n", harness.TIMEOUT)
        policy = self.folder / "my.json"
        # One of memlog's own, copied, is the same.
        policy.write_text(self.say("components", "--policy=l1", "--show-policy"))
        self.assertEqual(self.values(self.table(dump, f"--policy={policy}")), self.values(self.table(dump, "--policy=l1")))
        policy.write_text(DMPROF)
        values = self.values(self.table(dump, f"--policy={policy}", "--figure=private"))
        self.assert_private(sum(values.values()), before)
        self.assertGreater(values["tc-used-all"], 10000 * 1000)
        self.assertGreater(values["tc-unused"], 10000 * 1000)
        self.assertNotIn("second", values)
        policy.write_text('{"version": "POLICY_MEMLOG_1", "rules": [{"name": "x", "allocator": "malloc"}]}')
        self.assertIn("my.json: no rule takes everything of allocator 'slack'", self.say("components", f"--policy={policy}", dump, expected=2))
        policy.write_text('{"version": "POLICY_MEMLOG_1", "rules": [{"name": "x", "mapedpathname": ""}]}')
        self.assertIn("did you mean 'mappedpathname'", self.say("list", f"--policy={policy}", dump, expected=2))
        self.assertIn("policies are l0, l1, l2 and files", self.say("expand", "--policy=l9", "heap", dump, expected=1))


if __name__ == "__main__":
    unittest.main()
