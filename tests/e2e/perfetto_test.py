"""A dump as Perfetto reads it: every packet decoded by protoc with the published field numbers, several dumps in one trace."""
import collections
import re
import subprocess
import unittest

import harness
import imported
import published

# A worker with a name, and memory, until it is told to end.
NAMED = """
import os, threading, time
kept = [b"x" * 5000 for i in range(200)]
def name(task, text):
    with open(f"/proc/self/task/{task}/comm", "w") as file:
        file.write(text)
def work():
    name(threading.get_native_id(), "a-worker")
    open("ready", "w").close()
    while not os.path.exists("end"):
        time.sleep(0.05)
name(os.getpid(), "the-program")
worker = threading.Thread(target=work)
worker.start()
worker.join()
"""

# One that memlog cannot be loaded into; one that becomes another program behind memlog's back.
STATIC = "#include <unistd.h>\nint main(void) { usleep(200000); return 0; }\n"
RAW = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
    long result = SYS_execve;
    free(malloc(1000));
    __asm__ volatile("syscall" : "+a"(result) : "D"(words[1]), "S"(words + 1), "d"(environ) : "rcx", "r11", "memory");
    return count;
}
"""

# Memory of a mapping, a block, and one of no bytes.
MAPS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
__attribute__((noinline)) char *map_some(void) { return mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
__attribute__((noinline)) void *take_none(void) { return malloc(0); }
__attribute__((noinline)) void *take(void) { return malloc(1000); }
int main(void) {
    memset(map_some(), 1, 1 << 20);
    void *volatile none = take_none(), *volatile some = take();
    puts("ready");
    fflush(stdout);
    getchar();
    return none == some;
}
"""

# TrackEvent.type
SLICE_BEGIN, SLICE_END = 1, 2


class Perfetto(harness.Case):
    def decode_whole(self, data):
        """Every field has a published number, but for our own packet."""
        trace = published.trace(data)
        self.assertEqual({name for name in trace.names() if name[0].isdigit()}, set())
        return trace

    def test_a_running_process_has_its_threads_memory_and_the_reason(self):
        process = self.memlog_start("/usr/bin/python3", "-c", NAMED)
        self.wait_for("the program", (self.folder / "ready").exists)
        self.command("dump")
        (self.folder / "end").touch()
        self.assertEqual(process.wait(harness.TIMEOUT), 0)
        (manual,), (at_exit,) = (list(self.folder.glob(f"dumps*/*.{reason}.pftrace")) for reason in ("manual", "exit"))
        trace = self.decode_whole(manual.read_bytes())
        report = self.report(manual)
        (entry,) = [one for one in report["processes"] if one["state"] == "running"]
        threads = {one.one("name"): one for one in trace.all("packet", "process_tree", "threads")}
        self.assertEqual(set(threads), {"the-program", "a-worker"})
        self.assertEqual(threads["the-program"].one("tid"), entry["pid"])
        self.assertEqual({one.one("tgid") for one in threads.values()}, {entry["pid"]})
        (smaps,) = trace.all("packet", "smaps_packet")
        self.assertEqual(smaps.one("pid"), entry["pid"])
        mappings = smaps.all("entries")
        starts = [one.one("start_address") for one in mappings]
        self.assertEqual(starts, sorted(set(starts)))
        (stack,) = [one for one in mappings if one.one("path") == "[stack]"]
        self.assertEqual(stack.one("protection_flags"), 4 | 2)
        code = [one for one in mappings if "libc.so" in one.one("path") and one.one("protection_flags") == 4 | 1]
        self.assertEqual(len(code), 1)
        held = sum(sum(one.all("private_dirty_kb") + one.all("private_clean_resident_kb")) for one in mappings)
        self.assertGreaterEqual(held * 1024, entry["live_bytes"])
        self.assertRegex(trace.one("packet", "trigger", "trigger_name"), "^memlog dump: manual")
        self.assertEqual(trace.one("packet", "trigger", "producer_name"), "memlog")
        samples = [one for one in trace.all("packet", "profile_packet", "process_dumps") if one.one("pid") == entry["pid"]]
        self.assertGreater(len(samples), 0)
        for flag in ("disconnected", "buffer_overran", "rejected_concurrent"):
            self.assertNotIn(True, [one for sample in samples for one in sample.all(flag)])
        # After its end: what was seen last, and that it has ended.
        trace = self.decode_whole(at_exit.read_bytes())
        self.assertIn("a-worker", trace.all("packet", "process_tree", "threads", "name"))
        self.assertEqual(trace.one("packet", "trigger", "trigger_name"), "memlog dump: exit")
        self.assertEqual(trace.all("packet", "profile_packet", "process_dumps", "disconnected"), [True] * len(report["processes"]))

    def command(self, *words):
        answer = harness.run_words([str(harness.MEMLOG), *map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)

    def assert_heaps_are_the_reports(self, packets, report):
        """Each heap on a sequence of its own, its state cleared by its first packet; sums and figures are the report's."""
        sums = collections.Counter()
        for packet in packets:
            for dump in packet.all("profile_packet", "process_dumps"):
                figures = ("self_allocated", "self_freed", "alloc_count", "free_count")
                for name in figures:
                    sums[dump.one("pid"), name] += sum(dump.all("samples", name))
                sums[dump.one("pid"), "interval"] = dump.one("sampling_interval_bytes")
                self.assertEqual(dump.one("orig_sampling_interval_bytes"), dump.one("sampling_interval_bytes"))
                self.assertEqual(dump.one("heap_name"), "libc.malloc")
                sums[dump.one("pid"), "heap_samples"] += sum(dump.all("stats", "heap_samples"))
                self.assertEqual(dump.all("from_startup"), [True])
        for entry in report["processes"]:
            pid = entry["pid"]
            self.assertEqual(sums[pid, "self_allocated"], entry["total_bytes"])
            self.assertEqual(sums[pid, "self_allocated"] - sums[pid, "self_freed"], entry["live_bytes"])
            self.assertEqual(sums[pid, "interval"], 1)
            self.assertEqual(sums[pid, "heap_samples"], entry["events"])
        cleared = collections.Counter(
            packet.one("trusted_packet_sequence_id") for packet in packets
            if packet.all("sequence_flags") == [1] and packet.all("interned_data"))
        profiled = {packet.one("trusted_packet_sequence_id") for packet in packets if packet.all("profile_packet")}
        self.assertEqual(profiled, set(cleared))
        self.assertEqual(set(cleared.values()), {1})
        self.assertEqual(len(profiled), len(report["processes"]))

    def test_every_packet_of_a_tree_is_as_published_and_adds_up(self):
        (dump,) = self.memlog(harness.PROGRAMS / "oracle" / "fork", "fork").dumps()
        trace = self.decode_whole(dump.read_bytes())
        report = self.report(dump)
        packets = trace.all("packet")
        self.assert_heaps_are_the_reports(packets, report)
        self.assertEqual({6, 4, 1, 3}, set(packets[0].all("clock_snapshot", "clocks", "clock_id")))
        pids = {entry["pid"] for entry in report["processes"]}
        self.assertEqual(set(trace.all("packet", "process_tree", "processes", "pid")), pids)
        self.assertEqual(set(trace.all("packet", "track_descriptor", "process", "pid")), pids)
        # What Perfetto calls a process is the tree's first word.
        taken_in = imported.Imported(dump.read_bytes())
        self.assertEqual([taken_in.stats["heapprofd_buffer_overran", pid] for pid in pids], [0] * len(pids))
        self.assertEqual(taken_in.names, {entry["pid"]: entry["name"] for entry in report["processes"]})
        # A stack's frames, their mappings and texts are there, by number, on its own sequence.
        tables = collections.defaultdict(set)
        for packet in packets:
            sequence = packet.all("trusted_packet_sequence_id")
            for kind in ("frames", "callstacks", "mappings", "function_names"):
                tables[kind, *sequence] |= set(packet.all("interned_data", kind, "iid"))
        for packet in packets:
            sequence = packet.all("trusted_packet_sequence_id")
            self.assertLessEqual(set(packet.all("interned_data", "callstacks", "frame_ids")), tables["frames", *sequence])
            self.assertLessEqual(set(packet.all("interned_data", "frames", "mapping_id")), tables["mappings", *sequence])
            self.assertLessEqual(
                set(packet.all("profile_packet", "process_dumps", "samples", "callstack_id")), tables["callstacks", *sequence])

    def test_a_process_that_is_not_recorded_is_there_with_its_reason(self):
        """As a process with a label, and with a slice over its life: Perfetto's UI shows no process on which nothing happens."""
        for name, text, options in (("static", STATIC, ["-static"]), ("raw", RAW, [])):
            (self.folder / f"{name}.c").write_text(text)
            subprocess.run(["gcc", "-o", self.folder / name, self.folder / f"{name}.c", *options], check=True)
        (dump,) = self.memlog("/bin/sh", "-c", '"$0" "a b" ""; "$1" /bin/sleep 0.3; true', self.folder / "static", self.folder / "raw").dumps()
        trace = self.decode_whole(dump.read_bytes())
        processes = self.whole_report(dump)["processes"]
        tracks = {one.one("process", "process_name"): one for one in trace.all("packet", "track_descriptor") if one.all("process")}
        slices = collections.defaultdict(list)
        for packet in trace.all("packet"):
            for event in packet.all("track_event"):
                slices[event.one("track_uuid")].append((event.one("type"), *event.all("name"), packet.one("timestamp")))
        of = {entry["name"]: entry for entry in processes}
        for name in ("static", "sleep"):
            with self.subTest(name):
                entry, track = of[name], tracks[name]
                self.assertEqual((entry["recorded"], track.one("process", "pid")), (False, entry["pid"]))
                self.assertEqual(track.all("process", "cmdline"), entry["command_line"])
                (label,) = track.all("process", "process_labels")
                self.assertRegex(label, f"^not recorded: {re.escape(entry['reason'])}; private memory (not read|\\d+ KiB)$")
                (begin, text, start), (end, stop) = slices[track.one("uuid")]
                self.assertEqual((begin, end, text), (SLICE_BEGIN, SLICE_END, label))
                self.assertLessEqual(start, stop)
                (place,) = [one for one in trace.all("packet", "process_tree", "processes") if one.one("pid") == entry["pid"]]
                self.assertEqual(place.one("ppid"), entry["parent_pid"])
        self.assertEqual(tracks["static"].all("process", "cmdline")[1:], ["a b", ""])
        # Of two images with one pid the later one has it.
        self.assertEqual(of["raw"]["pid"], of["sleep"]["pid"])
        self.assertIn(f"raw (pid {of['raw']['pid']} before)", tracks)
        self.assertIn(f"raw (pid {of['raw']['pid']} before)", set(imported.Imported(dump.read_bytes()).names.values()))
        self.assertEqual([name for name, track in tracks.items() if name not in ("static", "sleep") and track.all("process", "process_labels")], [])
        # Put behind another dump of the same run, each has slices that end.
        numbers = trace.all("packet", "track_descriptor", "uuid")
        self.assertEqual(len(numbers), len(set(numbers)))

    def test_a_file_that_is_cut_lacks_little_more_than_its_end(self):
        (dump,) = self.memlog("/usr/bin/python3", "-c", "import json, email, http.client").dumps()
        data = dump.read_bytes()
        whole = imported.Imported(data)
        (pid,) = {row.pid for row in whole.rows}
        rows = collections.Counter(whole.rows)
        self.assertEqual(sum(row.size for row in whole.rows), self.report(dump)["processes"][0]["live_bytes"])
        # Where the profile lies in the file: packets of its sequence, one behind another.
        ends = list(published.packet_ends(data))
        packets = whole.packets
        first, *_, last = [number for number, packet in enumerate(packets) if packet.all("profile_packet")]
        begin, end = ends[first], ends[last]
        self.assertGreater(end - begin, 50_000)
        seen = []
        for share in range(1, 21):
            cut = begin + (end - begin) * share // 20 - 400
            got = imported.Imported(data[:max(place for place in ends if place <= cut)])
            self.assertEqual(collections.Counter(got.rows) - rows, collections.Counter())
            self.assertEqual({name for name, count in got.stats.items() if count and isinstance(name, str)}, set())
            seen.append(len(got.rows) / len(whole.rows))
            # Rows come evenly with bytes: a batch, and what it needs of frames, is a small part.
            self.assertGreater(seen[-1], share / 20 - 0.25, seen)
        self.assertGreater(seen[-1], 0.9, seen)
        self.assertEqual(whole.stats["heapprofd_client_disconnected", pid], 1)

    def stacks_of(self, trace):
        """Of each callstack that a sample has: its frames, as (path, address) or name, outermost first."""
        tables, found = collections.defaultdict(dict), []
        for packet in trace.all("packet"):
            for kind in ("function_names", "mapping_paths", "mappings", "frames", "callstacks"):
                for entry in packet.all("interned_data", kind):
                    tables[kind, *packet.all("trusted_packet_sequence_id")][entry.one("iid")] = entry

        def frame_of(number, sequence):
            frame = tables["frames", sequence][number]
            if not frame.all("mapping_id"):
                return tables["function_names", sequence][frame.one("function_name_id")].one("str")
            mapping = tables["mappings", sequence][frame.one("mapping_id")]
            return tables["mapping_paths", sequence][mapping.one("path_string_ids")].one("str"), frame.one("rel_pc")

        for packet in trace.all("packet"):
            for number in packet.all("profile_packet", "process_dumps", "samples", "callstack_id"):
                sequence = packet.one("trusted_packet_sequence_id")
                found.append([frame_of(one, sequence) for one in tables["callstacks", sequence][number].all("frame_ids")])
        return found

    def test_names_for_perfetto_are_of_frames_that_it_has(self):
        """trace_processor counts others as errors. Stacks that mapped memory, or took blocks of no bytes, are in no heap of its; the report
        has their names all the same."""
        (self.folder / "maps.c").write_text(MAPS)
        program = self.folder / "maps"
        subprocess.run(["gcc", "-g", "-o", program, self.folder / "maps.c"], check=True)
        process = self.memlog_ready(program)
        self.command("dump")
        self.go(process)
        self.assertEqual(process.wait(harness.TIMEOUT), 0)
        first, last = sorted(process.memlog_folder.glob("*.pftrace"))
        for name, dumps in (("one", [first]), ("many", [first, last])):
            with self.subTest(name):
                target = self.folder / f"{name}.pftrace"
                self.command("convert", "--to=perfetto", "-o", target, *dumps)
                trace = self.decode_whole(target.read_bytes())
                frames = {frame for stack in self.stacks_of(trace) for frame in stack}
                named = {}
                for module in trace.all("packet", "module_symbols"):
                    for address in module.all("address_symbols"):
                        named[module.one("path"), address.one("address")] = address.all("lines", "function_name")
                self.assertEqual(set(named) - frames, set())
                self.assertIn(["take"], named.values())
                self.assertNotIn(["take_none"], named.values())
                self.assertNotIn(["map_some"], named.values())
        program.rename(self.folder / "away")
        answer = harness.run_words(
            [str(harness.MEMLOG), "list", "--csv", str(self.folder / "one.pftrace")], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertIn("map_some", answer.stdout.decode())

    def test_the_innermost_frame_is_the_allocators(self):
        """Perfetto's flame graph and summary tree count a stack once for each function that is inlined into its innermost frame. Nothing is
        inlined into this one."""
        (dump,) = self.memlog(harness.PROGRAMS / "oracle" / "heaps", "50", "1", "1").dumps()
        trace = self.decode_whole(dump.read_bytes())
        self.assertEqual({stack[-1] for stack in self.stacks_of(trace)}, {"malloc", "memlog_alloc"})
        self.assertEqual({frame for stack in self.stacks_of(trace) for frame in stack[:-1]} & {"malloc", "memlog_alloc"}, set())
        self.assertGreater(min(map(len, self.stacks_of(trace))), 1)

    def test_dumps_and_symbols_are_put_behind_one_another(self):
        (first,) = self.memlog(harness.PROGRAMS / "oracle" / "single").dumps()
        (second,) = self.memlog(harness.PROGRAMS / "oracle" / "fork", "fork").dumps()
        self.command("symbolize", second)
        apart = [self.decode_whole(dump.read_bytes()).all("packet") for dump in (first, second)]
        together = self.decode_whole(first.read_bytes() + second.read_bytes()).all("packet")
        self.assertEqual(len(together), sum(map(len, apart)))
        self.assert_heaps_are_the_reports(together[:len(apart[0])], self.report(first))
        self.assert_heaps_are_the_reports(together[len(apart[0]):], self.report(second))
        names = [name for packet in together for name in packet.all("module_symbols", "address_symbols", "lines", "function_name")]
        self.assertTrue("child_grow" in names, names[:9])


if __name__ == "__main__":
    unittest.main(verbosity=2)
