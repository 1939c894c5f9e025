"""What Perfetto's and catapult's own symbolizers find for a dump's frames, with each linker's layout, against what memlog reports.

Perfetto's looks a file up by the mapping, compares the mapping's load_bias with the file's own segments, adds the difference to every
address, and asks llvm-symbolizer. catapult's symbolize_trace takes a frame's place in its region, adds what the region says of its file,
and asks addr2line. All but the last is done here as they do it.
"""
import gzip
import json
import os
import re
import shutil
import subprocess
import unittest

import harness
import published

# Functions that nothing is inlined into, one behind another, so that a wrong address is another one's.
PROGRAM = """
#include <stdlib.h>
#define NAMED(name, bytes) \\
    __attribute__((noinline)) void *name(void) { \\
        void *block = malloc(bytes); \\
        __asm__ volatile("" : "+r"(block)); \\
        return block; \\
    }
NAMED(first_function, 1001)
NAMED(second_function, 1002)
NAMED(third_function, 1003)
NAMED(fourth_function, 1004)
static const char filler[0x3000] = {1};
int main(int count, char **words) {
    (void)words;
    return first_function() == 0 || second_function() == 0 || third_function() == 0 || fourth_function() == 0 || filler[count] != 0;
}
"""
FUNCTIONS = {"first_function", "second_function", "third_function", "fourth_function", "main"}
HAS_CLANG = shutil.which("clang") and shutil.which("llvm-symbolizer")
PAGE = 4096


def segment(path):
    """p_vaddr, p_offset and p_align of the file's first executable segment, by readelf."""
    text = subprocess.run(["readelf", "-lW", path], capture_output=True, check=True, text=True).stdout
    for line in text.splitlines():
        fields = line.split()
        if fields[:1] == ["LOAD"] and "E" in "".join(fields[6:-1]):
            return int(fields[2], 16), int(fields[1], 16), int(fields[-1], 16)
    raise AssertionError(text)


def value(message, name):
    return (message.all(name) or [0])[-1]


class OtherSymbolizers(harness.Case):
    symbol_cache = "off"

    def frames(self, trace):
        """(path, rel_pc, mapping) of every frame with a mapping."""
        tables = {}
        for packet in trace.all("packet"):
            number = value(packet, "trusted_packet_sequence_id")
            for interned in packet.all("interned_data"):
                for kind in ("mapping_paths", "mappings", "frames"):
                    tables.setdefault((number, kind), {}).update({one.one("iid"): one for one in interned.all(kind)})
        for (number, kind), entries in list(tables.items()):
            for frame in entries.values() if kind == "frames" else ():
                if frame.all("mapping_id"):
                    mapping = tables[number, "mappings"][frame.one("mapping_id")]
                    path = tables[number, "mapping_paths"][mapping.one("path_string_ids")].one("str")
                    yield path, frame.one("rel_pc"), mapping

    @staticmethod
    def corrected(mapping, path, address):
        """The address that Perfetto's symbolizer asks for."""
        code, _, align = segment(path)
        offset = value(mapping, "exact_offset") - value(mapping, "start_offset")
        bias = code // align * align - offset // align * align
        return address + max(bias - value(mapping, "load_bias"), 0)

    @staticmethod
    def named(path, address):
        words = ["llvm-symbolizer", f"--obj={path}", "--functions=linkage", "--output-style=GNU", hex(address)]
        return subprocess.run(words, capture_output=True, check=True, text=True).stdout.splitlines()[-2]

    def build(self, *options):
        (self.folder / "program.c").write_text(PROGRAM)
        words = ["clang", "-g", "-O1", "-Wl,--build-id", *options, "program.c", "-o", "program"]
        subprocess.run(words, cwd=self.folder, check=True)
        return self.folder / "program"

    @staticmethod
    def relative(regions, address):
        """symbolize_trace: an address's file, and the address that it asks for there."""
        first = {}
        for region in sorted(regions, key=lambda one: int(one["sa"], 16)):
            start, path, offset = int(region["sa"], 16), region["mf"], int(region.get("fo", "0"), 16)
            if path in first and offset == 0:
                offset = start - first[path]
            first.setdefault(path, start)
            if start <= address < start + int(region["sz"], 16):
                return path, address - start + offset
        return None, 0

    def check_catapult(self, *options):
        program = self.build(*options)
        (dump,) = self.memlog(program).dumps()
        # Only frames without a name are asked for: memlog must not find the file.
        program.rename(self.folder / "away")
        words = [str(harness.MEMLOG), "convert", "--to=chrome", "-o", "trace.json.gz", str(dump)]
        answer = harness.run_words(words, self.folder, self.environment(MEMLOG_SYMBOL_CACHE="off"), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        (self.folder / "away").rename(program)
        trace = json.loads(gzip.decompress((self.folder / "trace.json.gz").read_bytes()))
        self.assertLessEqual({"product-version", "os-name", "os-arch", "user-agent"}, set(trace["metadata"]))
        self.assertRegex(trace["metadata"]["os-name"].lower(), "linux")
        self.assertEqual(trace["metadata"]["os-arch"], os.uname().machine)
        seen = set()
        for event in trace["traceEvents"]:
            dumps = event["args"].get("dumps", {}) if event["ph"] == "v" else {}
            for text in dumps.get("heaps_v2", {}).get("maps", {}).get("strings", []):
                if text["string"].startswith("pc:"):
                    path, address = self.relative(dumps["process_mmaps"]["vm_regions"], int(text["string"][3:], 16))
                    if path == str(program):
                        seen.add(self.named(path, address))
        self.assertLessEqual(FUNCTIONS, seen)
        shutil.rmtree(dump.parent)

    def check(self, *options, differs):
        program = self.build(*options)
        (dump,) = self.memlog(program).dumps()
        trace = published.trace(dump.read_bytes())
        reported = {}
        for process in self.report(dump)["processes"]:
            for stack in process["stacks"]:
                for frame in stack["frames"]:
                    reported[frame["module"], int(frame["offset"], 16)] = frame["function"]
        code, offset, _ = segment(program)
        self.assertEqual(code != offset, differs, (hex(code), hex(offset)))
        seen = set()
        for path, address, mapping in self.frames(trace):
            if path == str(program):
                self.assertEqual(value(mapping, "load_bias"), code - offset)
                self.assertEqual(value(mapping, "exact_offset") + (offset % PAGE), offset)
                name = self.named(path, self.corrected(mapping, path, address))
                self.assertEqual(name, reported[path, address])
                seen.add(name)
        self.assertLessEqual(FUNCTIONS, seen)
        # Without the mapping's figures, as before, it finds others.
        nothing = published.Message()
        wrong = {self.named(path, self.corrected(nothing, path, address)) for path, address, _ in self.frames(trace) if path == str(program)}
        self.assertEqual(wrong & FUNCTIONS, set())
        shutil.rmtree(dump.parent)

    @unittest.skipUnless(HAS_CLANG, "no clang here (tools/dev/setup ci brings it)")
    def test_gnu_ld(self):
        self.check(differs=False)
        self.check("-no-pie", differs=True)

    @unittest.skipUnless(HAS_CLANG and shutil.which("ld.lld"), "no lld here (tools/dev/setup ci brings it)")
    def test_lld(self):
        self.check("-fuse-ld=lld", differs=True)
        self.check("-fuse-ld=lld", "-no-pie", differs=True)

    @unittest.skipUnless(HAS_CLANG, "no clang here (tools/dev/setup ci brings it)")
    def test_catapults_symbolize_trace(self):
        self.check_catapult()
        self.check_catapult("-no-pie")
        if shutil.which("ld.lld"):
            self.check_catapult("-fuse-ld=lld", "-no-pie")

    def test_shared_libraries(self):
        """All that python has loaded: the loader's own word is readelf's."""
        (dump,) = self.memlog("/usr/bin/python3", "-c", "import json, ssl").dumps()
        checked = set()
        for path, address, mapping in self.frames(published.trace(dump.read_bytes())):
            if path.startswith("/") and re.search(r"\.so|python", path):
                self.assertEqual(self.corrected(mapping, path, address), address, path)
                checked.add(path)
        self.assertGreater(len(checked), 3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
