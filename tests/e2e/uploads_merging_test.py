"""Whether uploads of many machines can be added up: frames that are the same everywhere, all three figures, whose report it is."""
import collections
import gzip
import json
import platform
import re
import subprocess
import unittest

import harness
import uploads
from uploads import GROWER, MIB

FREED = """
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static char *hold(size_t size) { char *block = malloc(size); memset(block, 1, size); return block; }
__attribute__((noinline)) static void at_peak(void) { char *block[8]; for (int i = 0; i < 8; i++) block[i] = hold(1 << 20);
    for (int i = 0; i < 8; i++) free(block[i]); }
__attribute__((noinline)) static void later(void) { for (int i = 0; i < 20; i++) free(hold(1 << 19)); }
int main(void) { at_peak(); later(); return 0; }
"""
HELD = f"guilty={5 * MIB}"

# Where a module's ELF address 0 lies: tools/analyzer/upload/relocate.h.
BITS = 36


def is_address(number):
    """Whether a process might have it: where the kernel maps programs, heaps, libraries and stacks."""
    return 0x550000000000 <= number < 1 << 47


def frames_of(dumps):
    """A process's nodes as stacks of frames; those without a name as (module, build id, offset)."""
    regions = dumps.get("process_mmaps", {}).get("vm_regions", [])
    strings = {string["id"]: string["string"] for string in dumps["heaps_v2"]["maps"]["strings"]}
    stacks = {}

    def frame(name):
        found = re.fullmatch("pc:([0-9a-f]+)", name)
        if not found:
            return name
        address = int(found[1], 16)
        (region,) = [one for one in regions if int(one["sa"], 16) <= address < int(one["sa"], 16) + int(one["sz"], 16)]
        return region["mf"], region["id"], address - int(region["lb"], 16)

    for node in dumps["heaps_v2"]["maps"]["nodes"]:
        stacks[node["id"]] = stacks.get(node.get("parent"), ()) + (frame(strings[node["name_sid"]]),)
    return stacks


def rows_of(trace, ended=False):
    """All stacks of a trace with their figures, added up. Live is what running processes hold; with `ended` all that was not freed."""
    rows = collections.Counter()
    for event in trace["traceEvents"]:
        if event["ph"] != "v":
            continue
        dumps = event["args"]["dumps"]
        stacks = frames_of(dumps)
        left = collections.Counter(live_blocks=dumps["memlog"]["left_blocks"], live_bytes=dumps["memlog"]["left_bytes"])
        for heap, columns in dumps["heaps_v2"]["allocators"].items():
            for kind, figure in (("counts", "live_blocks"), ("sizes", "live_bytes")):
                for node, value in zip(columns["nodes"], columns[kind]):
                    of_ended = min(left[figure], value)
                    left[figure] -= of_ended
                    rows[heap, stacks[node], figure] += value if ended else value - of_ended
        for heap, columns in dumps["memlog"]["heaps"].items():
            for kind in ("peak_counts", "peak_sizes", "total_counts", "total_sizes"):
                for node, value in zip(columns["nodes"], columns[kind], strict=True):
                    rows[heap, stacks[node], kind.replace("counts", "blocks").replace("sizes", "bytes")] += value
    return rows


class Reports(uploads.Case):
    """Programs, their dumps, and what an upload of them is."""

    def dump(self, *command):
        self.runs = getattr(self, "runs", 0) + 1
        folder = self.folder / f"run{self.runs}"
        subprocess.run(
            [str(harness.MEMLOG), "run", "-q", "--no-page", "-o", str(folder), "--", *map(str, command)],
            check=True, env=self.environment())
        (dump,) = folder.glob("*.exit.pftrace")
        return dump

    def body(self, dump, form, *options):
        return subprocess.run(
            [str(harness.MEMLOG), "upload", "--dry-run", f"--form={form}", "--guid=" + 32 * "a", *options, str(dump)],
            check=True, capture_output=True, env=self.environment()).stdout

    def trace(self, dump, *options):
        return json.loads(gzip.decompress(self.body(dump, "trace", *options)))

    def stripped(self):
        program = self.program(FREED.replace("free(hold(1 << 19))", "hold(1 << 19)"))
        subprocess.run(["strip", "--strip-all", str(program)], check=True)
        return program

    def program(self, text):
        source, program = self.folder / "program.c", self.folder / "program"
        source.write_text(text)
        subprocess.run(["gcc", "-g", "-O1", "-o", str(program), str(source)], check=True)
        return program


class Merging(Reports):
    def test_frames_without_names_are_the_same_in_every_run(self):
        program = self.stripped()
        first, second = (self.trace(self.dump(program)) for _ in range(2))
        self.assertEqual(rows_of(first), rows_of(second))
        nameless = {frame for _, stack, _ in rows_of(first) for frame in stack if isinstance(frame, tuple)}
        self.assertIn("program", {module for module, _, _ in nameless})
        for module, build_id, offset in nameless:
            self.assertRegex(build_id, "^[0-9a-f]{40}$", module)
            self.assertLess(offset, 1 << BITS)

    def test_no_form_has_an_address_of_the_process(self):
        dump = self.dump(self.stripped())
        for form in ("trace", "report"):
            (trace,) = uploads.unpacked(self.body(dump, form))
            numbers = {int(word, 16) for word in re.findall(r'(?:pc:|"(?:sa|lb)":")([0-9a-f]+)', trace.decode())}
            self.assertTrue(numbers)
            self.assertFalse([hex(number) for number in numbers if is_address(number)], form)
        for form in ("pprof", "otlp", "pyroscope", "pyroscope-ingest"):
            (body,) = uploads.unpacked(self.body(dump, form))
            text = subprocess.run(["protoc", "--decode_raw"], input=body, capture_output=True, check=True).stdout.decode()
            numbers = {int(word, 0) for word in re.findall(r": (0x[0-9a-f]+|\d+)$", text, re.MULTILINE)}
            self.assertTrue([number for number in numbers if number >> BITS], form)
            self.assertFalse([hex(number) for number in numbers if is_address(number)], form)

    def test_peak_and_total_of_what_was_freed_are_there(self):
        dump = self.dump(self.program(FREED))
        trace = self.trace(dump, "--memlog-keep-small-allocations")
        sums = collections.Counter()
        functions = collections.Counter()
        for (_, stack, figure), value in rows_of(trace, ended=True).items():
            sums[figure] += value
            for function in set(stack):
                functions[function, figure] += value
        (report,) = json.loads(subprocess.run(
            [str(harness.MEMLOG), "report", "--json", str(dump)],
            check=True, capture_output=True, env=self.environment()).stdout)["processes"]
        for figure in ("live", "peak", "total"):
            self.assertEqual(sums[f"{figure}_bytes"], report[f"{figure}_bytes"], figure)
            self.assertEqual(sums[f"{figure}_blocks"], report[f"{figure}_blocks"], figure)
        self.assertEqual(functions["at_peak", "peak_bytes"], 8 * MIB)
        self.assertEqual(functions["at_peak", "live_bytes"], 0)
        self.assertEqual(functions["later", "total_bytes"], 10 * MIB)
        self.assertEqual(trace["metadata"]["memlog"]["peak_bytes"], sums["peak_bytes"])

    def test_sums_of_merged_processes_are_kept(self):
        """Pruned so hard that the processes with nothing but sums become one."""
        dump = self.dump("sh", "-c", "for i in $(seq 60); do ls /proc/self > /dev/null; sort /etc/passwd > /dev/null; done")
        whole, cut = (self.trace(dump, *options) for options in (("--memlog-keep-small-allocations",), ("--upload-max-bytes=4096",)))
        sums = []
        for trace in (whole, cut):
            kinds = collections.Counter()
            for (_, _, figure), value in rows_of(trace).items():
                kinds[figure] += value
            sums.append(kinds)
        self.assertEqual(sums[0], sums[1])
        processes = [sum(event["args"]["dumps"]["memlog"]["processes"] for event in trace["traceEvents"] if event["ph"] == "v")
                     for trace in (whole, cut)]
        self.assertEqual(processes[0], processes[1])
        self.assertLess(len(cut["traceEvents"]), len(whole["traceEvents"]))

    def test_a_report_says_whose_it_is(self):
        dump = self.dump(GROWER, HELD)
        told = self.trace(dump)["metadata"]["memlog"]
        self.assertEqual(told["host"], platform.node())
        self.assertEqual((told["guid"], told["program"], told["complete"], told["reason"]), (32 * "a", "grower", True, "exit"))
        self.assertNotIn("program_version", told)
        self.assertNotIn("weight", told)
        told = self.trace(dump, "--upload-host=web-1.example", "--upload-version=2.4~rc1")["metadata"]["memlog"]
        self.assertEqual((told["host"], told["program_version"]), ("web-1.example", "2.4~rc1"))
        fields = self.body(dump, "report", "--upload-host=web-1.example", "--upload-version=2.4~rc1")
        self.assertIn(b'name="host"\r\n\r\nweb-1.example\r\n', fields)
        self.assertIn(b'name="program_version"\r\n\r\n2.4~rc1\r\n', fields)
        self.assertNotIn("host", self.trace(dump, "--upload-host=none")["metadata"]["memlog"])
        for wrong in ("--upload-host=a b", '--upload-version="', "--upload-host=" + 65 * "x"):
            self.assertEqual(subprocess.run(
                [str(harness.MEMLOG), "upload", "--dry-run", wrong, str(dump)], capture_output=True, check=False,
                env=self.environment()).returncode, 2, wrong)

    def test_a_run_tells_its_host_version_and_weight(self):
        """What `memlog run` sends is what a dry run with the same words shows."""
        triggers = self.folder / "triggers.json"
        triggers.write_text('{"interval_seconds": 1, "control": {"one_in": 1}}')
        target = self.folder / "inbox"
        target.mkdir()
        subprocess.run(
            [str(harness.MEMLOG), "run", "-q", "--no-page", "-o", str(self.folder / "control"), f"--triggers={triggers}",
             f"--upload={target}", f"--upload-spool={self.spool}", "--upload-host=h1", "--upload-version=7", "--", "sleep", "3"],
            check=True, env=self.environment())
        reports = [json.loads(gzip.decompress(path.read_bytes()))["metadata"]["memlog"] for path in target.iterdir()]
        self.assertTrue(reports)
        for report in reports:
            self.assertEqual((report["trigger"], report["weight"], report["host"], report["program_version"]), ("control", 1, "h1", "7"))


if __name__ == "__main__":
    unittest.main()
