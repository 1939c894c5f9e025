"""Uploads keep a program's heaps and types apart, whatever their size; and what their names say that is nobody's business stays here."""
import collections
import gzip
import json
import subprocess
import unittest

import harness
import uploads

# More types than a small body has room for, and names of all kinds. The block of a type is in its own number of stacks.
SOURCE = r"""
#define MEMLOG_WEAK
#include <memlog.h>
#include <stdio.h>
#include <stdlib.h>
static uint32_t arena, secret;
static uint64_t next = 1;
static __attribute__((noinline)) void take(uint32_t heap, uint64_t bytes, uint32_t type) {
    memlog_alloc_typed(heap, next++, bytes, type);
    __asm__ volatile("");
}
static __attribute__((noinline)) void down(int depth, uint64_t bytes, uint32_t type) {
    if (depth > 0) { down(depth - 1, bytes, type); } else { take(arena, bytes, type); }
    __asm__ volatile("");
}
int main(void) {
    char name[64];
    arena = memlog_heap("arena", 1);
    secret = memlog_heap("p=s3kr1t", 1);
    for (int i = 0; i < 600; i++) {
        snprintf(name, sizeof(name), "Type%c%c", 'a' + i % 26, 'a' + i / 26);
        down(i % 40, 1000 + i, memlog_type(name));
    }
    take(arena, 5 << 20, memlog_type("std::map<int, Page*>"));
    take(arena, 1 << 20, memlog_type("s3kr1t@example"));
    take(secret, 2 << 20, 0);
    *(volatile char *)malloc(3000) = 1;
    return 0;
}
"""


def heaps_of(trace):
    """{heap: {type: live bytes}} of the one process."""
    (dump,) = [event["args"]["dumps"] for event in trace["traceEvents"] if event.get("ph") == "v"]
    strings = {one["id"]: one["string"] for one in dump["heaps_v2"]["maps"]["strings"]}
    types = {one["id"]: strings[one["name_sid"]] for one in dump["heaps_v2"]["maps"]["types"]}
    found = {}
    for name, columns in dump["heaps_v2"]["allocators"].items():
        sums = found[name] = collections.Counter()
        for size, type_id in zip(columns["sizes"], columns["types"]):
            sums[types[type_id]] += size
        told = int(dump["allocators"][name]["attrs"]["size"]["value"], 16)
        assert sum(sums.values()) == told, (name, sums, told)
    return found


class Heaps(uploads.Case):
    def setUp(self):
        super().setUp()
        source, program = self.folder / "types.c", self.folder / "types"
        source.write_text(SOURCE)
        subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", "-I", str(harness.ROOT / "client"), "-o", program, source], check=True)
        run = self.memlog(program)
        self.assertEqual(run.code, 0, run.err)
        (self.dump,) = run.dumps()
        (self.process,) = json.loads(self.command("report", "--json", self.dump).stdout)["processes"]
        self.truth = collections.defaultdict(collections.Counter)
        for stack in self.process["stacks"]:
            if stack["live_bytes"]:
                self.truth[stack["heap"]][stack["type"] or "[unknown]"] += stack["live_bytes"]
        self.sums = {name: sum(sums.values()) for name, sums in self.truth.items()}

    def body(self, *options, form="trace"):
        path = self.folder / "body"
        answer = self.command("upload", "--dry-run", f"--form={form}", "-o", path, *options, self.dump)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return path.read_bytes()

    def told(self, *options):
        return heaps_of(json.loads(gzip.decompress(self.body(*options))))

    def test_a_whole_body_has_every_heap_and_type(self):
        told = self.told("--memlog-keep-small-allocations", "--upload-names=all")
        self.assertEqual(told, self.truth)
        self.assertEqual(set(told), {"malloc", "arena", "p=s3kr1t"})
        self.assertGreater(len(told["arena"]), 600)

    def test_a_body_of_any_size_has_every_heaps_sum(self):
        for limit in (10_000_000, 20000, 8000, 4096):
            body = self.body(f"--upload-max-bytes={limit}")
            self.assertLessEqual(len(body), limit)
            told = heaps_of(json.loads(gzip.decompress(body)))
            self.assertEqual({name: sum(sums.values()) for name, sums in told.items()},
                             {name.replace("p=s3kr1t", "name"): figure for name, figure in self.sums.items()}, limit)
            # What holds most keeps its type; types of stacks that were folded are not known.
            self.assertEqual(told["arena"]["std::map<int, Page*>"], 5 << 20, limit)
            for name, figure in told["arena"].items():
                if name not in ("[unknown]", "name"):
                    self.assertEqual(figure, self.truth["arena"][name], limit)

    def test_names_stay_here_as_the_policy_says(self):
        for form in ("trace", "report", "pprof", "otlp"):
            for options in ((), ("--upload-names=none",), ("--upload-max-bytes=4096",)):
                body = self.body(*options, form=form)
                self.assertNotIn(b"s3kr1t", body + b"".join(uploads.unpacked(body)), (form, options))
        self.assertEqual(set(self.told("--upload-names=none")), {"malloc", "name"})
        self.assertIn("p=s3kr1t", self.told("--upload-names=all"))

    def test_forms_of_one_heap_fit_and_say_the_type(self):
        """Before, pprof's was not pruned at all where a program has heaps or types."""
        for form in ("pprof", "pyroscope", "pyroscope-ingest", "otlp"):
            self.assertLessEqual(len(self.body("--upload-max-bytes=6000", form=form)), 6000)
            whole = self.body(form=form)
            self.assertNotIn(b"Typeaa", whole + b"".join(uploads.unpacked(whole)), f"{form} is of malloc's heap")


if __name__ == "__main__":
    unittest.main(verbosity=2)
