"""Where names come from: the file, its debug files, folders, servers, the dump itself; and that none ever comes from another build."""
import gzip
import http.server
import json
import os
import pathlib
import platform
import shutil
import sqlite3
import subprocess
import threading
import unittest

import harness

SOURCE = """
#include <stdlib.h>
__attribute__((noinline)) void *deep_keeper(size_t size) { void *kept = malloc(size); __asm__ volatile("" ::: "memory"); return kept; }
__attribute__((noinline)) void *outer_keeper(size_t size) { void *kept = deep_keeper(size); __asm__ volatile("" ::: "memory"); return kept; }
int main(void) { return outer_keeper(%d) == NULL; }
"""
SIZE = 123457


class Keeper(harness.Case):
    """A program whose frames are known, and dumps of it."""

    symbol_cache = "off"

    def setUp(self):
        super().setUp()
        self.program = self.folder / "bin" / "keeper"
        self.program.parent.mkdir()
        self.whole = self.folder / "whole"
        self.compile(self.program)
        shutil.copy(self.program, self.whole)

    def compile(self, target, size=SIZE):
        source = self.folder / "keeper.c"
        source.write_text(SOURCE % size)
        self.tool("gcc", "-g", "-O1", "-o", target, source)

    def tool(self, *words):
        subprocess.run([*map(str, words)], check=True, capture_output=True, cwd=self.folder)

    def analyze(self, *words, **environment):
        env = self.environment(HOME=str(self.folder), DEBUGINFOD_URLS="", **{})
        for key in ("MEMLOG_BINARY_PATH", "PERFETTO_BINARY_PATH", "PERFETTO_PROGUARD_MAP"):
            env.pop(key, None)
        env.update(environment)
        answer = harness.run_words([str(harness.MEMLOG), *map(str, words)], self.folder, env, b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, (words, answer.stderr))
        return answer.stdout.decode(), answer.stderr.decode()

    def collapsed(self, dump, *options, **environment):
        return self.analyze("convert", "--to=collapsed", *options, dump, **environment)[0]

    def assert_named(self, text):
        self.assertIn(f"main;outer_keeper;deep_keeper {SIZE}\n", text)

    def assert_nameless(self, text):
        self.assertNotIn("keeper;deep", text)
        self.assertNotIn("outer_keeper", text)
        self.assertIn(f" {SIZE}\n", text)

    def stripped_dump(self, *strip):
        """A dump of the program without symbols."""
        self.tool("strip", *strip, self.program)
        return self.memlog(self.program).dumps()[0]


class Symbols(Keeper):
    def test_a_stripped_program_has_no_names_and_its_debug_file_gives_them(self):
        dump = self.stripped_dump()
        self.assert_nameless(self.collapsed(dump))
        debug = self.program.parent / ".debug"
        debug.mkdir()
        self.tool("objcopy", "--only-keep-debug", self.whole, debug / "keeper.debug")
        os.chdir(self.folder)
        self.tool("objcopy", f"--add-gnu-debuglink={debug / 'keeper.debug'}", self.program)
        self.assert_named(self.collapsed(dump))

    def test_a_debug_file_with_another_checksum_gives_none(self):
        dump = self.stripped_dump()
        debug = self.program.parent / "keeper.debug"
        self.tool("objcopy", "--only-keep-debug", self.whole, debug)
        self.tool("objcopy", f"--add-gnu-debuglink={debug}", self.program)
        self.compile(self.folder / "another", SIZE + 16)
        self.tool("objcopy", "--only-keep-debug", self.folder / "another", debug)
        self.assert_nameless(self.collapsed(dump))

    def test_a_compressed_symbol_table_in_the_file_gives_names(self):
        self.tool("objcopy", "--only-keep-debug", self.whole, "mini.debug")
        self.tool("strip", "--strip-debug", "mini.debug")
        self.tool("xz", "mini.debug")
        self.tool("strip", self.program)
        self.tool("objcopy", "--add-section", ".gnu_debugdata=mini.debug.xz", self.program)
        self.assert_named(self.collapsed(self.memlog(self.program).dumps()[0]))

    def test_folders_are_searched_in_five_steps(self):
        dump = self.stripped_dump()
        build_id = self.report(dump)["processes"][0]["stacks"][0]["frames"][0]["build_id"]
        places = [
            str(self.program).lstrip("/"), "keeper", f".build-id/{build_id[:2]}/{build_id[2:]}.debug",
        ]
        for number, place in enumerate(places):
            root = self.folder / f"symbols{number}"
            (root / place).parent.mkdir(parents=True)
            shutil.copy(self.whole, root / place)
            self.assert_named(self.collapsed(dump, MEMLOG_BINARY_PATH=f"/nonexistent:{root}"))
            self.assert_named(self.collapsed(dump, PERFETTO_BINARY_PATH=str(root)))

    def test_another_build_of_the_same_name_gives_no_names(self):
        dump = self.stripped_dump()
        root = self.folder / "symbols"
        root.mkdir()
        self.compile(root / "keeper", SIZE + 16)
        self.assert_nameless(self.collapsed(dump, MEMLOG_BINARY_PATH=str(root)))
        shutil.copy(root / "keeper", self.program)
        self.assert_nameless(self.collapsed(dump))
        _, said = self.analyze("symbolize", dump)
        self.assertIn(f"no names for {self.program} (build id ", said)
        self.assertIn("): the file is another one by now", said)
        text, _ = self.analyze("report", "--full", dump)
        self.assertRegex(text, rf"(?m)^  {self.program} \(build id [0-9a-f]{{40}}\): \d+ of \d+ places, the file is another one by now$")

    def test_an_index_finds_a_file_under_any_name(self):
        dump = self.stripped_dump()
        root = self.folder / "symbols" / "deep"
        root.mkdir(parents=True)
        shutil.copy(self.whole, root / "any.name")
        self.assert_nameless(self.collapsed(dump, MEMLOG_BINARY_PATH=str(root.parent)))
        self.assert_named(self.collapsed(dump, MEMLOG_BINARY_PATH=str(root.parent), MEMLOG_SYMBOLIZER_MODE="index"))

    def test_alternative_folders_stand_for_those_of_the_device(self):
        dump = self.memlog(self.program).dumps()[0]
        self.program.unlink()
        host = self.folder / "host"
        (host / "bin").mkdir(parents=True)
        shutil.copy(self.whole, host / "bin" / "keeper")
        named = self.folder / "named.pftrace"
        self.analyze("symbolize", f"--alternative-dirs=/nowhere@/x:{self.folder}@{host}", "-o", named, dump)
        self.assert_nameless(self.collapsed(dump))
        self.assert_named(self.collapsed(named))

    def test_a_dump_with_names_needs_no_files_any_more(self):
        dump = self.memlog(self.program).dumps()[0]
        before = self.report(dump)
        names = self.folder / "names"
        self.analyze("symbolize", "--symbols-only", "-o", names, dump)
        together = self.folder / "together.pftrace"
        together.write_bytes(dump.read_bytes() + names.read_bytes())
        perfetto = self.folder / "perfetto.pftrace"
        self.analyze("convert", "--to=perfetto", "-o", perfetto, dump)
        self.assertEqual(perfetto.read_bytes(), together.read_bytes())
        _, said = self.analyze("symbolize", dump)
        self.assertNotIn(" 0 more places", said)
        self.assertEqual(dump.read_bytes(), together.read_bytes())
        _, said = self.analyze("symbolize", dump)
        self.assertIn(" 0 more places", said)
        self.program.unlink()
        self.assert_named(self.collapsed(dump))
        after = self.report(dump)
        self.assertEqual(
            [stack for stack in after["tree"]["stacks"] if stack["live_bytes"] == SIZE],
            [stack for stack in before["tree"]["stacks"] if stack["live_bytes"] == SIZE],
        )

    def test_names_behind_a_cut_dump_are_not_lost_in_it(self):
        dump = self.memlog(self.program).dumps()[0]
        cut = self.folder / "cut.pftrace"
        cut.write_bytes(dump.read_bytes()[:-7])
        self.analyze("symbolize", cut)
        self.program.unlink()
        self.assertIn("outer_keeper", self.collapsed(cut))

    def test_servers_are_asked_by_symbolize_alone_and_only_when_named(self):
        dump = self.stripped_dump()
        build_id = self.report(dump)["processes"][0]["stacks"][0]["frames"][0]["build_id"]
        asked = []
        whole = self.whole.read_bytes()

        class Server(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                found = self.path == f"/buildid/{build_id}/debuginfo"
                self.send_response(200 if found else 404)
                self.send_header("Content-Length", str(len(whole) if found else 0))
                self.end_headers()
                if found:
                    self.wfile.write(whole)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        urls = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}"}
        try:
            self.assert_nameless(self.collapsed(dump, **urls))
            self.analyze("symbolize", "-o", self.folder / "unasked.pftrace", dump)
            self.assertEqual(asked, [])
            self.analyze("symbolize", "-o", self.folder / "named.pftrace", dump, **urls)
            self.assertIn(f"/buildid/{build_id}/debuginfo", asked)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
        self.assert_named(self.collapsed(self.folder / "named.pftrace"))
        # What was fetched is there for every view from then on.
        self.assert_named(self.collapsed(dump))

    def breakpad_file(self, program, build_id):
        """What dump_syms would write of a program: functions and their sizes by nm, one line record each by addr2line."""
        raw = bytes.fromhex(build_id)[:16]
        identifier = (raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]).hex().upper() + "0"
        base = min(
            int(line.split()[2], 16) for line in self.said("readelf", "-lW", program).splitlines() if line.split()[:1] == ["LOAD"]
        )
        text = [f"MODULE Linux x86_64 {identifier} {program.name}", f"INFO CODE_ID {build_id.upper()}", "FILE 0 keeper.c"]
        for line in self.said("nm", "-S", "--defined-only", program).splitlines():
            words = line.split()
            if len(words) == 4 and words[2] in "tT":
                start, size = int(words[0], 16), int(words[1], 16)
                number = self.said("addr2line", "-e", program, hex(start)).strip().rpartition(":")[2]
                text.append(f"FUNC {start - base:x} {size:x} 0 {words[3]}")
                text += [f"{start - base:x} {size:x} {number} 0"] if number.isdigit() else []
        return identifier, "\n".join(text) + "\n"

    def said(self, *words):
        return subprocess.run([*map(str, words)], check=True, capture_output=True, text=True).stdout

    def test_breakpads_files_name_what_has_no_dwarf(self):
        for flags in ("-pie", "-no-pie"):
            source = self.folder / "keeper.c"
            source.write_text(SOURCE % SIZE)
            self.tool("gcc", "-g", "-O1", flags, "-o", self.program, source)
            shutil.copy(self.program, self.whole)
            dump = self.stripped_dump()
            build_id = self.report(dump)["processes"][0]["stacks"][0]["frames"][0]["build_id"]
            identifier, text = self.breakpad_file(self.whole, build_id)
            for number, place in enumerate((f"keeper/{identifier}/keeper.sym", "keeper.sym", "keeper.breakpad.x64")):
                root = self.folder / f"breakpad{flags}{number}"
                (root / place).parent.mkdir(parents=True)
                (root / place).write_text(text)
                named = self.folder / f"named{flags}{number}.pftrace"
                self.analyze("symbolize", "-o", named, f"--use-breakpad-symbols=/nonexistent:{root}", dump)
                self.assert_named(self.collapsed(named))
                frames = json.loads(self.analyze("report", "--json", named)[0])["processes"][0]["stacks"][0]["frames"]
                self.assertEqual((frames[0]["function"], frames[0]["file"], frames[0]["line"]), ("deep_keeper", "keeper.c", 3))
            other = self.folder / f"other{flags}"
            other.mkdir()
            (other / "keeper.sym").write_text(text.replace(identifier, identifier[::-1]))
            named = self.folder / f"other{flags}.pftrace"
            self.analyze("symbolize", "-o", named, f"--use-breakpad-symbols={other}", dump)
            self.assert_nameless(self.collapsed(named))

    def test_code_made_at_run_time_has_the_names_of_its_map(self):
        script = self.folder / "jit.js"
        script.write_text(
            "function keepManyBuffers(count) { const kept = []; for (let i = 0; i < count; i++) kept.push(Buffer.allocUnsafeSlow(5003)); return kept; }\n"
            "globalThis.kept = []; for (let i = 0; i < 300; i++) globalThis.kept.push(keepManyBuffers(20)); process.reallyExit(0);\n"
        )
        run = self.memlog("/usr/bin/env", "node", "--perf-basic-prof", "--no-opt", script)
        dump = run.dumps()[0]
        pid = next(entry["pid"] for entry in self.report(dump)["processes"] if entry["name"].startswith("node"))
        self.addCleanup(lambda: os.path.exists(f"/tmp/perf-{pid}.map") and os.unlink(f"/tmp/perf-{pid}.map"))
        self.assertRegex(self.collapsed(dump), r"keepManyBuffers")
        os.unlink(f"/tmp/perf-{pid}.map")
        self.assertRegex(self.collapsed(dump), r"keepManyBuffers")  # the dump has them itself


class Cache(Keeper):
    """Names that were found once are there at once the next time, and never those of another file."""

    def setUp(self):
        super().setUp()
        self.cache = self.folder / "kept" / "names"

    def collapsed(self, dump, *options, **environment):
        return super().collapsed(dump, *options, **{"MEMLOG_SYMBOL_CACHE": str(self.cache), **environment})

    def kept(self):
        return sorted(self.cache.glob("*")) if self.cache.exists() else []

    def first_dump(self):
        return self.memlog(self.program).dumps()[0]

    def test_names_are_of_a_build_whatever_becomes_of_the_file(self):
        dump = self.first_dump()
        self.assert_named(self.collapsed(dump))
        self.assertTrue(self.kept())
        self.assertEqual({path.stat().st_mode & 0o777 for path in self.kept()}, {0o600})
        self.compile(self.program, SIZE + 16)
        self.assert_named(self.collapsed(dump))
        other = self.first_dump()
        self.assertIn(f"outer_keeper;deep_keeper {SIZE + 16}\n", self.collapsed(other))
        self.program.unlink()
        self.assert_named(self.collapsed(dump))
        self.assert_nameless(self.collapsed(dump, MEMLOG_SYMBOL_CACHE="off"))

    def test_every_form_says_the_same_with_it_and_without(self):
        dump = self.first_dump()
        for form in ("json", "perfetto", "pprof", "heap", "chrome", "collapsed", "sqlite", "html"):
            answers = []
            for cache in ("off", str(self.cache), str(self.cache)):
                target = self.folder / f"answer.{len(answers)}"
                self.analyze("convert", f"--to={form}", "-o", target, dump, MEMLOG_SYMBOL_CACHE=cache)
                answers.append(target.read_bytes())
            self.assertEqual(answers[0], answers[1], form)
            self.assertEqual(answers[0], answers[2], form)

    def test_a_debug_file_that_comes_later_is_taken(self):
        debug = self.folder / "keeper.debug"
        self.tool("objcopy", "--only-keep-debug", self.whole, debug)
        self.tool("objcopy", "--strip-debug", f"--add-gnu-debuglink={debug}", self.program)
        dump = self.first_dump()
        for _ in range(2):
            self.assert_named(self.collapsed(dump))
            self.assertNotIn("keeper.c", self.json_of(dump))
        (self.program.parent / ".debug").mkdir()
        debug.rename(self.program.parent / ".debug" / "keeper.debug")
        self.assertIn("keeper.c", self.json_of(dump))

    def json_of(self, dump, **environment):
        return self.analyze("report", "--json", dump, **{"MEMLOG_SYMBOL_CACHE": str(self.cache), **environment})[0]

    def test_what_is_damaged_or_somebody_elses_is_none(self):
        dump = self.first_dump()
        self.assert_named(self.collapsed(dump))
        self.program.unlink()
        wholes = {path: path.read_bytes() for path in self.kept()}
        for change in (lambda old: old[:-1], lambda old: old[: len(old) // 2] + b"!" + old[len(old) // 2 + 1:], lambda old: b""):
            for path, old in wholes.items():
                path.write_bytes(change(old))
            self.assert_nameless(self.collapsed(dump))
        for path, old in wholes.items():
            path.unlink()
            (self.folder / path.name).write_bytes(old)
            path.symlink_to(self.folder / path.name)
        self.assert_nameless(self.collapsed(dump))

    def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(self):
        dump = self.first_dump()
        for folder in ("/proc/nowhere", "/dev/null/x", str(self.program)):
            self.assert_named(self.collapsed(dump, MEMLOG_SYMBOL_CACHE=folder))

    def test_the_oldest_make_room_when_it_is_full(self):
        """At most 256 MiB of names; what is somebody else's in the folder stays."""
        self.cache.mkdir(parents=True, mode=0o700)
        for number in range(4):
            path = self.cache / f"{number:040x}.names"
            path.touch(mode=0o600)
            os.truncate(path, 70 << 20)
            os.utime(path, (1e9 + number, 1e9 + number))
        other = self.cache / "notes.txt"
        other.touch()
        os.utime(other, (1e8, 1e8))
        self.assert_named(self.collapsed(self.first_dump()))
        left = {path.name for path in self.kept()}
        self.assertTrue(left > {f"{3:040x}.names", "notes.txt"}, left)
        self.assertFalse({f"{number:040x}.names" for number in range(2)} & left, left)
        self.assertLess(sum(path.stat().st_size for path in self.kept()), 256 << 20)

    def test_where_it_lies_by_itself(self):
        dump = self.first_dump()
        environment = self.environment(HOME=str(self.folder), DEBUGINFOD_URLS="")
        del environment["MEMLOG_SYMBOL_CACHE"]
        environment.pop("XDG_CACHE_HOME", None)
        for changes, place in (({}, ".cache/memlog"), ({"XDG_CACHE_HOME": str(self.folder / "xdg")}, "xdg/memlog")):
            words = [str(harness.MEMLOG), "report", "--summary", str(dump)]
            harness.run_words(words, self.folder, {**environment, **changes}, b"", harness.TIMEOUT)
            self.assertTrue(list((self.folder / place).glob("*.names")), place)


@unittest.skipUnless(platform.machine() == "x86_64", "the program brings machine code along")
class Renamed(Keeper):
    """Java's names as they were before ProGuard, by its map and by the dump."""

    CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
    FOUND = "void org.shop.Shelf.put|take(org.shop.Fish,int) 70001"

    def setUp(self):
        super().setUp()
        self.tool("gcc", "-O1", "-o", self.program, self.CORPUS / "jit.c")
        self.map = self.folder / "map.txt"
        shutil.copy(self.CORPUS / "shop.proguard.txt", self.map)

    def jit_dump(self, package="org.shop.app"):
        dump = self.memlog(self.program, package).dumps()[0]
        path = pathlib.Path(f'/tmp/perf-{self.report(dump)["processes"][0]["pid"]}.map')
        self.addCleanup(path.unlink)
        return dump

    def test_a_map_of_the_environment_names_code_of_its_package(self):
        dump = self.jit_dump()
        self.assertIn(";void a.b.c(a.d,int) 70001", self.collapsed(dump))
        for key in ("PERFETTO_PROGUARD_MAP", "MEMLOG_PROGUARD_MAP"):
            self.assertIn(self.FOUND, self.collapsed(dump, **{key: f"other={self.map}:org.shop={self.map}"}))
        self.assertIn(";void a.b.c(a.d,int) 70001", self.collapsed(dump, PERFETTO_PROGUARD_MAP=f"com.other={self.map}"))
        self.assertIn(";void a.b.c(a.d,int) 70001", self.collapsed(self.jit_dump("net.shop"), PERFETTO_PROGUARD_MAP=f"org.shop={self.map}"))

    def test_a_database_has_both_names(self):
        dump, base = self.jit_dump(), self.folder / "dump.db"
        self.analyze("convert", "--to=sqlite", "-o", base, dump, PERFETTO_PROGUARD_MAP=f"org.shop={self.map}")
        frames = sqlite3.connect(base).execute("select name, deobfuscated_name from stack_profile_frame").fetchall()
        self.assertIn(("void a.b.c(a.d,int)", self.FOUND.rpartition(" ")[0]), frames)
        self.assertIn(None, [restored for _, restored in frames])

    def test_symbolize_puts_the_map_into_the_dump(self):
        dump = self.jit_dump()
        named, names = self.folder / "named.pftrace", self.folder / "names"
        map_of = {"PERFETTO_PROGUARD_MAP": f"org.shop={self.map}"}
        self.analyze("symbolize", "-o", named, dump, **map_of)
        self.analyze("symbolize", "--symbols-only", "-o", names, dump, **map_of)
        self.assertEqual(named.read_bytes(), dump.read_bytes() + names.read_bytes())
        self.map.unlink()
        self.assertIn(self.FOUND, self.collapsed(named))
        before = named.read_bytes()
        self.analyze("symbolize", named)
        self.assertEqual(named.read_bytes(), before)
        # As Perfetto's readers know the packet: TracePacket.deobfuscation_mapping is field 64.
        done = subprocess.run(["protoc", "--decode_raw"], input=names.read_bytes(), capture_output=True, check=True)
        self.assertRegex(done.stdout.decode(), r'(?s)64 \{\s+1: "org.shop"\s+3 \{\s+1: "a.b"\s+2: "org.shop.Shelf"')

    def test_a_map_that_is_none_is_said_and_does_no_harm(self):
        dump = self.jit_dump()
        self.map.write_bytes(b"\xff\x00\n -> \nx -> y\n    int a -> b\nq -> r:\n    void m() -> \n")
        text, said = self.analyze("convert", "--to=collapsed", dump, PERFETTO_PROGUARD_MAP=f"org.shop={self.map}")
        self.assertIn(";void a.b.c(a.d,int) 70001", text)
        self.assertIn(f"{self.map}: 5 lines are none of a ProGuard map", said)
        for value, complaint in ((str(self.map), "is not PACKAGE=FILE"), ("org.shop=/nowhere/x", "/nowhere/x: No such file")):
            text, said = self.analyze("convert", "--to=collapsed", dump, PERFETTO_PROGUARD_MAP=value)
            self.assertIn(";void a.b.c(a.d,int) 70001", text)
            self.assertIn(complaint, said)


class ChromeTrace(Keeper):
    """Names into a trace that was written without them."""

    def stacks(self, path):
        """{stack, outermost first: bytes} of a trace, read on its own terms."""
        data = path.read_bytes()
        trace = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        stacks = {}
        for event in trace["traceEvents"]:
            heaps = event["args"].get("dumps", {}).get("heaps_v2")
            if not heaps:
                continue
            names = {string["id"]: string["string"] for string in heaps["maps"]["strings"]}
            nodes = {node["id"]: node for node in heaps["maps"]["nodes"]}
            self.assertEqual(len(nodes), len(heaps["maps"]["nodes"]))
            malloc = heaps["allocators"]["malloc"]
            for node, size in zip(malloc["nodes"], malloc["sizes"]):
                frames = []
                while node:
                    frames.append(names[nodes[node]["name_sid"]])
                    node = nodes[node].get("parent")
                stacks[";".join(reversed(frames))] = size
        return stacks

    def test_a_trace_gets_its_names_in_place(self):
        source = self.folder / "keeper.c"
        source.write_text(SOURCE.replace("__attribute__((noinline)) void *outer", "static inline __attribute__((always_inline)) void *outer") % SIZE)
        self.tool("gcc", "-g", "-O1", "-o", self.program, source)
        shutil.copy(self.program, self.whole)
        dump = self.stripped_dump()
        for name in ("trace.json.gz", "trace.json"):
            trace = self.folder / name
            self.analyze("convert", "--to=chrome", "-o", self.folder / "made.json.gz", dump)
            made = (self.folder / "made.json.gz").read_bytes()
            trace.write_bytes(made if name.endswith(".gz") else gzip.decompress(made))
            before = self.stacks(trace)
            _, said = self.analyze("symbolize", trace)
            self.assertRegex(said, rf"no names for {self.program} \(build id [0-9a-f]{{40}}\): the file has no symbols")
            self.assertEqual(self.stacks(trace), before)
            root = self.folder / "symbols"
            root.mkdir(exist_ok=True)
            shutil.copy(self.whole, root / "keeper")
            self.analyze("symbolize", trace, MEMLOG_BINARY_PATH=str(root))
            after = self.stacks(trace)
            self.assertEqual(sorted(after.values()), sorted(before.values()))
            self.assertEqual([size for stack, size in after.items() if stack.endswith(";main;outer_keeper;deep_keeper")], [SIZE])
            self.assertEqual(trace.read_bytes()[:2] == b"\x1f\x8b", name.endswith(".gz"))
            _, said = self.analyze("symbolize", trace, MEMLOG_BINARY_PATH=str(root))
            self.assertIn("names for 0 more places", said)
            self.assertEqual(self.stacks(trace), after)

    def test_what_is_no_trace_of_ours_is_refused_and_stays(self):
        path = self.folder / "other.json"
        for text, complaint in (("{", "no JSON"), ("{}", "there is no heap in it"), ('{"traceEvents": [1, {"args": {"dumps": 3}}]}', "no heap")):
            path.write_text(text)
            words = [str(harness.MEMLOG), "symbolize", str(path)]
            answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
            self.assertEqual(answer.returncode, 1)
            self.assertIn(complaint, answer.stderr.decode())
            self.assertEqual(path.read_text(), text)


    def test_what_unpacks_to_too_much_is_refused_and_stays(self):
        path = self.folder / "bomb.json.gz"
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(b'{"traceEvents": [')
            for _ in range(270):
                file.write(b" " * 2**20)
        before = path.read_bytes()
        answer = harness.run_words([str(harness.MEMLOG), "symbolize", str(path)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 1)
        self.assertIn("more JSON than memory should hold", answer.stderr.decode())
        self.assertEqual(path.read_bytes(), before)


class Merged(harness.Case):
    """Code that a linker made one of: whose it was nobody can tell."""

    SOURCE = """
#include <cstdlib>
namespace shop { struct Fish { static void *take(std::size_t size); }; struct Bird { static void *take(std::size_t size); static void *other(std::size_t size); }; }
#define KEEP __attribute__((noinline, noclone, no_icf))
KEEP void *shop::Fish::take(std::size_t size) { void *kept = std::malloc(size); __asm__ volatile("" ::: "memory"); return kept; }
KEEP void *shop::Bird::take(std::size_t size) { void *kept = std::malloc(size); __asm__ volatile("" ::: "memory"); return kept; }
KEEP void *shop::Bird::other(std::size_t size) { void *kept = std::malloc(size + 7); __asm__ volatile("" ::: "memory"); return kept; }
int main() { return !shop::Fish::take(70001) + !shop::Bird::take(70003) + !shop::Bird::other(70001); }
"""

    def functions(self, *options):
        source, program = self.folder / "merged.cc", self.folder / "merged"
        source.write_text(self.SOURCE)
        words = ["g++", "-O1", "-ffunction-sections", *options, "-o", program, source]
        subprocess.run([*map(str, words)], check=True, capture_output=True)
        stacks = self.report(self.memlog(program).dumps()[0])["tree"]["stacks"]
        return sorted((stack["live_bytes"], stack["frames"][0]["function"]) for stack in stacks if 70000 < stack["live_bytes"] < 70010)

    def assert_marked(self, *options):
        apart = self.functions(*options, "-Wl,--icf=none")
        self.assertEqual([name for _, name in apart], ["shop::Fish::take(unsigned long)", "shop::Bird::take(unsigned long)", "shop::Bird::other(unsigned long)"])
        merged = self.functions(*options, "-Wl,--icf=all")
        self.assertEqual([size for size, _ in merged], [size for size, _ in apart])
        self.assertEqual(merged[-1], apart[-1])
        for _, name in merged[:-1]:
            self.assertRegex(name, r"^shop::(Fish|Bird)::take\(unsigned long\) \[merged\]$")

    @unittest.skipUnless(shutil.which("ld.gold"), "this suite has no gold")
    def test_functions_that_gold_made_one_are_marked(self):
        self.assert_marked("-g", "-fuse-ld=gold")

    @unittest.skipUnless(shutil.which("ld.lld"), "no lld here (tools/dev/setup ci brings it)")
    def test_functions_that_lld_made_one_are_marked(self):
        """lld's debug data tells of one of them alone; the symbol table of both."""
        for debug in ("-gdwarf-5", "-gdwarf-4", "-g0"):
            with self.subTest(debug):
                self.assert_marked(debug, "-fuse-ld=lld")


class SeveralDumps(harness.Case):
    def json(self, *words):
        answer = harness.run_words(
            [str(harness.MEMLOG), "report", "--json", *map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT
        )
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return json.loads(answer.stdout)

    def test_dumps_behind_one_another_are_shown_one_by_one(self):
        dumps = [self.memlog(harness.PROGRAMS / "oracle" / "fork", "fork").dumps()[0], self.memlog("/bin/true").dumps()[0]]
        together = self.folder / "together.pftrace"
        together.write_bytes(b"".join(dump.read_bytes() for dump in dumps))
        wholes = [self.json(dump) for dump in dumps]
        for number, whole in enumerate(wholes, 1):
            for options in ([f"--dump={number}"], [] if number == 2 else [f"--dump={number}"]):
                one = self.json(together, *options)
                self.assertEqual((one["tree"], one["processes"]), (whole["tree"], whole["processes"]))
                self.assertTrue(one["dump"]["complete"])
        words = [str(harness.MEMLOG), "report", "--dump=3", str(together)]
        answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 1)
        self.assertIn(b"there is no dump 3 in it, but 2", answer.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
