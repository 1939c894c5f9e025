"""Several dumps of a run as one Perfetto trace, taken in by the rules of Perfetto's importer, and as one SQLite database, against what memlog
reports of each."""
import json
import random
import sqlite3
import unittest

import harness
import imported

# Four steps, each with memory that comes and goes; a child that a dump sees, and at the end another program under the same number.
STEPS = """
import os, sys, time
kept = []
def step(number):
    kept.append([b"%d" % i * 3000 for i in range(50 * (number + 1))])
    if number > 1:
        del kept[0]
    open(f"ready{number}", "w").close()
    while not os.path.exists(f"go{number}"):
        time.sleep(0.02)
step(0)
if os.fork() == 0:
    child = [b"y" * 2000 for i in range(100)]
    while not os.path.exists("go1"):
        time.sleep(0.02)
    os._exit(0)
step(1)
os.wait()
step(2)
os.execv(sys.executable, [sys.executable, "-c", '''
import os, time
more = [bytearray(5000) for i in range(30)]
open("ready3", "w").close()
while not os.path.exists("go3"):
    time.sleep(0.02)
'''])
"""
STEPS_COUNT = 4


class Steps(harness.Case):
    def memlog_words(self, *words, fails=False):
        answer = harness.run_words([str(harness.MEMLOG), *map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode != 0, fails, answer.stderr)
        return answer

    def make_dumps(self):
        process = self.memlog_start("/usr/bin/python3", "-c", STEPS)
        for number in range(STEPS_COUNT):
            self.wait_for(f"step {number}", (self.folder / f"ready{number}").exists)
            self.memlog_words("dump")
            (self.folder / f"go{number}").touch()
        self.assertEqual(process.wait(harness.TIMEOUT), 0)
        dumps = sorted(self.folder.glob("dumps*/*.pftrace"))
        self.assertEqual(len(dumps), STEPS_COUNT + 1)
        return dumps


class PerfettoMany(Steps):
    def trace_pid(self, trace, entries, entry):
        """Under which number the trace shows a process: another one, if a later one has its own."""
        name = f"{entry['name']} (pid {entry['pid']} before)"
        former = [pid for pid, one in trace.names.items() if one == name]
        is_last = entry["id"] == max(one["id"] for one in entries if one["pid"] == entry["pid"])
        return entry["pid"] if is_last else former[0]

    def assert_as_reported(self, trace, dumps):
        self.assertEqual(len(trace.clocks), len(dumps))
        reports = [self.report(dump) for dump in dumps]
        entries = reports[-1]["processes"]
        checked = 0
        for until, report in zip(trace.clocks, reports):
            for entry in report["processes"]:
                pid = self.trace_pid(trace, entries, entry)
                self.assertEqual(trace.live(pid, until), entry["live_bytes"], entry["name"])
                self.assertEqual(trace.total(pid, until), entry["total_bytes"], entry["name"])
                checked += entry["live_bytes"] > 0
        return checked

    def test_each_dump_has_its_figures(self):
        dumps = self.make_dumps()
        self.memlog_words("convert", "--to=perfetto", "-o", "many.pftrace", *reversed(dumps))
        data = (self.folder / "many.pftrace").read_bytes()
        trace = imported.Imported(data)
        self.assertGreater(self.assert_as_reported(trace, dumps), STEPS_COUNT)
        errors = {name: count for name, count in trace.stats.items() if isinstance(name, str) and count}
        self.assertEqual(errors, {})
        # Behind one another, the same files count what was there before once more.
        beside = imported.Imported(b"".join(dump.read_bytes() for dump in dumps))
        (pid,) = {one["pid"] for one in self.report(dumps[0])["processes"]}
        self.assertGreater(beside.live(pid, beside.clocks[1]), trace.live(pid, trace.clocks[1]))
        self.assertGreater(max(beside.smaps.values()), 1)
        self.assertEqual(set(trace.smaps.values()), {1})

    def test_windows_follow_one_another_and_statistics_are_told_once(self):
        dumps = self.make_dumps()
        self.memlog_words("convert", "--to=perfetto", "-o", "many.pftrace", *dumps)
        trace = imported.Imported((self.folder / "many.pftrace").read_bytes())
        windows = {}
        for pid, heap, start, end in trace.profiles:
            self.assertLessEqual(start, end)
            if (pid, heap) in windows:
                self.assertEqual(start, windows[pid, heap] + 1)
            windows[pid, heap] = end
        self.assertGreater(len(trace.profiles), len(windows))
        report = self.report(dumps[-1])
        for entry in report["processes"]:
            pid = self.trace_pid(trace, report["processes"], entry)
            self.assertEqual(trace.stats["heapprofd_unwind_samples", pid], entry["events"])
            self.assertEqual(trace.stats["heapprofd_client_disconnected", pid], 1)

    def test_memlog_reads_it_as_it_reads_its_dumps(self):
        dumps = self.make_dumps()
        self.memlog_words("convert", "--to=perfetto", "-o", "many.pftrace", *dumps)
        for number, dump in enumerate(dumps, 1):
            answer = harness.run_words(
                [str(harness.MEMLOG), "report", "--json", f"--dump={number}", "many.pftrace"], self.folder, self.environment(), b"",
                harness.TIMEOUT)
            mine = json.loads(answer.stdout)
            mine["processes"] = [entry for entry in mine["processes"] if entry["recorded"]]
            theirs = self.report(dump)
            self.assertEqual(mine["tree"], theirs["tree"])
            self.assertEqual(mine["processes"], theirs["processes"])
        # The same dumps in one file are the same trace.
        (self.folder / "cat.pftrace").write_bytes(b"".join(dump.read_bytes() for dump in dumps))
        self.memlog_words("convert", "--to=perfetto", "-o", "again.pftrace", "cat.pftrace")
        self.assertEqual((self.folder / "again.pftrace").read_bytes(), (self.folder / "many.pftrace").read_bytes())

    def test_a_dump_that_is_cut_or_damaged_is_joined_as_far_as_it_goes(self):
        dumps = self.make_dumps()
        whole = dumps[2].read_bytes()
        (first,) = self.report(dumps[0])["processes"]
        entries = self.report(dumps[4])["processes"]
        random.seed(19)
        bad = self.folder / "bad.pftrace"
        for turn in range(12):
            place = random.randrange(len(whole) // 8, len(whole))
            bad.write_bytes(whole[:place] if turn % 3 == 0 else whole[:place] + random.randbytes(9) + whole[place + 9:])
            words = [str(harness.MEMLOG), "convert", "--to=perfetto", "-o", "many.pftrace", *map(str, (dumps[0], bad, dumps[4]))]
            answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
            self.assertIn(answer.returncode, (0, 1), (place, answer.stderr))
            if answer.returncode == 0:
                try:
                    trace = imported.Imported((self.folder / "many.pftrace").read_bytes())
                except AssertionError as error:  # packets are copied as they are: protoc may refuse one that is damaged inside
                    self.assertIn("Failed to parse", str(error))
                    self.assertNotEqual(turn % 3, 0, place)
                    self.memlog_words("report", "many.pftrace")
                    continue
                pid = self.trace_pid(trace, entries, first)
                self.assertEqual(trace.live(pid, trace.clocks[0]), first["live_bytes"])
                self.assertEqual(trace.stats["heapprofd_malformed_packet"], 0)

    def test_what_does_not_belong_together_is_refused(self):
        (first,) = self.memlog(harness.PROGRAMS / "oracle" / "single").dumps()
        (second,) = self.memlog(harness.PROGRAMS / "oracle" / "single").dumps()
        answer = self.memlog_words("convert", "--to=perfetto", "-o", "no.pftrace", first, second, fails=True)
        self.assertIn("it is of another run", str(answer.stderr))
        self.assertFalse((self.folder / "no.pftrace").exists())
        answer = self.memlog_words("convert", "--to=pprof", "-o", "no.pb", first, second, fails=True)
        self.assertIn("more than one dump", str(answer.stderr))


# As heapprofd's document has it.
HEAPPROFDS_QUERY = """
    select a.callsite_id, a.ts, a.upid, f.name, f.rel_pc, m.build_id, m.name as mapping_name,
           sum(a.size) as space_size, sum(a.count) as space_count
    from heap_profile_allocation a join
         stack_profile_callsite c ON (a.callsite_id = c.id) join
         stack_profile_frame f ON (c.frame_id = f.id) join
         stack_profile_mapping m ON (f.mapping = m.id)
    group by 1, 2, 3, 4, 5, 6, 7 order by space_size desc"""
TOTALS = ("live_bytes", "live_blocks", "peak_bytes", "peak_blocks", "total_bytes", "total_blocks")


class SqliteMany(Steps):
    def database(self, *words):
        self.memlog_words("convert", "--to=sqlite", "-o", "heap.db", *words)
        return sqlite3.connect(self.folder / "heap.db")

    def totals(self, report, one):
        """What an ended process left is live where nothing runs any more alone, as in the tree."""
        hides = one["state"] != "running" and any(other["state"] == "running" for other in report["processes"])
        return [0 if hides and figure.startswith("live") else one[figure] for figure in TOTALS]

    def check_dump(self, base, number, report):
        """The figures of a dump, in all tables that have some."""
        figures = ", ".join(TOTALS)
        rows = base.execute(f"select memlog_id, pid, {figures} from memlog_process join process using (upid) where dump = ?", (number,))
        self.assertEqual(
            sorted(rows.fetchall()), sorted((one["id"], one["pid"], *self.totals(report, one)) for one in report["processes"]))
        sums = "sum(size), sum(count), sum(size * not is_free), sum(count * not is_free)"
        ((*found,),) = base.execute(f"select {sums} from heap_profile_allocation where dump <= ?", (number,))
        wanted = [harness.shown(report, figure) for figure in ("live_bytes", "live_blocks")]
        self.assertEqual(found, wanted + [report["tree"][figure] for figure in ("total_bytes", "total_blocks")])
        ((*found,),) = base.execute("select sum(live_bytes), sum(total_bytes), sum(tree_peak_bytes) from memlog_stack where dump = ?", (number,))
        self.assertEqual(found, [wanted[0], report["tree"]["total_bytes"], report["tree"]["peak_bytes"]])
        ((found,),) = base.execute("select sum(self_live_bytes) from memlog_function where dump = ?", (number,))
        self.assertEqual(found, wanted[0])

    def test_each_dump_has_its_figures(self):
        dumps = self.make_dumps()
        reports = [self.report(dump) for dump in dumps]
        base = self.database(*reversed(dumps))
        self.assertEqual(base.execute("pragma integrity_check").fetchall(), [("ok",)])
        self.assertEqual(base.execute("pragma foreign_key_check").fetchall(), [])
        told = base.execute('select id, "trigger", reason from memlog_dump order by ts').fetchall()
        self.assertEqual([number for number, *_ in told], [1, 2, 3, 4, 5])
        wanted = [(report["dump"].get("trigger", {}).get("kind", ""), report["dump"]["reason"]) for report in reports]
        self.assertEqual([tuple(words) for _, *words in told], wanted)
        for number, report in enumerate(reports, 1):
            self.check_dump(base, number, report)
        # One process once, and one place once.
        last = reports[-1]["processes"]
        self.assertEqual(base.execute("select count(*) from process").fetchone(), (len(last),))
        for table, columns in (("stack_profile_callsite", "parent_id, frame_id"), ("stack_profile_mapping", 'build_id, start, "end", name')):
            ((rows, different),) = base.execute(f"select (select count(*) from {table}), (select count(*) from (select distinct {columns} from {table}))")
            self.assertEqual(rows, different, table)
        # heapprofd's query adds the changes up to what is there at the end.
        self.assertEqual(sum(row[-2] for row in base.execute(HEAPPROFDS_QUERY)), harness.shown(reports[-1], "live_bytes"))
        # Its flame graph is as of a moment.
        checked = 0
        for number, report in enumerate(reports, 1):
            for one in report["processes"]:
                found = base.execute(
                    "select sum(f.size), sum(f.alloc_size) from memlog_process p join process q using (upid)"
                    " join experimental_flamegraph f on f.ts = p.ts and f.upid = p.upid where p.dump = ? and q.memlog_id = ?", (number, one["id"]))
                if one["state"] == "running":
                    self.assertEqual(found.fetchone(), (one["live_bytes"], one["total_bytes"]))
                    checked += 1
        self.assertGreater(checked, STEPS_COUNT)
        self.assertEqual(
            base.execute("select count(*) from (select upid, ts, start_address from profiler_smaps group by 1, 2, 3 having count(*) > 1)").fetchone(), (0,))

    def test_what_does_not_go_together_is_refused(self):
        (first,) = self.memlog(harness.PROGRAMS / "oracle" / "single").dumps()
        (second,) = self.memlog(harness.PROGRAMS / "oracle" / "single").dumps()
        for words, wanted in (
                ((first, second), "it is of another run"),
                (("--dump=1", first, first), "--dump goes with one file"),
                (("--pid=1", first, first), "none of these dumps")):
            answer = self.memlog_words("convert", "--to=sqlite", "-o", "no.db", *words, fails=True)
            self.assertIn(wanted, str(answer.stderr))
            self.assertFalse((self.folder / "no.db").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
