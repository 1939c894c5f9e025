"""What `memlog convert` writes, read by others: pprof (built from Debian's source package), google-pprof, jeprof, sqlite3 and anything
that takes collapsed stacks. What browsers read is in pages_test.py."""
import collections
import json
import pathlib
import re
import shutil
import unittest

import harness

SAMPLE_TYPES = ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes", "resident_space/bytes", "waste_space/bytes"]
FIGURES = ["total_blocks", "total_bytes", "live_blocks", "live_bytes"]


class Convert(harness.Case):
    @classmethod
    def setUpClass(cls):
        cls.pprof = harness.pprof()

    def words(self, *words):
        env = self.environment(HOME=str(self.folder), PPROF_TMPDIR=str(self.folder))
        answer = harness.run_words([*map(str, words)], self.folder, env, b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, (words, answer.stderr))
        return answer.stdout.decode(errors="replace")

    def convert(self, dump, to, *options):
        target = self.folder / f"out.{to}"
        self.words(harness.MEMLOG, "convert", f"--to={to}", "-o", target, *options, dump)
        return target

    def dump(self, *program):
        return self.memlog(*program).dumps()[0]

    def pprof_totals(self, profile):
        raw = self.words(self.pprof, "-raw", profile)
        head, _, rest = raw.partition("Samples:\n")
        types, _, rest = rest.partition("\n")
        self.assertEqual([name.split("[")[0] for name in types.split()], SAMPLE_TYPES, head)
        totals = [0, 0, 0, 0]
        for line in rest.partition("Locations")[0].splitlines():
            values = re.match(r"\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+\d+\s+\d+:", line)
            if values:
                totals = [total + int(value) for total, value in zip(totals, values.groups())]
        return totals

    def test_pprof_opens_it_and_its_totals_are_the_reports(self):
        dump = self.dump(harness.PROGRAMS / "oracle" / "single")
        report = self.report(dump)
        profile = self.convert(dump, "pprof")
        self.assertEqual(self.pprof_totals(profile), [harness.shown(report, figure) for figure in FIGURES])
        top = self.words(self.pprof, "-top", "-sample_index=alloc_space", profile)
        self.assertIn("leaf_resize", top)

    def test_pprof_of_one_process_of_a_tree(self):
        dump = self.dump(harness.PROGRAMS / "oracle" / "fork", "fork")
        report = self.report(dump)
        self.assertEqual(len(report["processes"]), 2)
        for entry in report["processes"]:
            profile = self.convert(dump, "pprof", f"--pid={entry['pid']}")
            self.assertEqual(self.pprof_totals(profile), [entry[figure] for figure in FIGURES])

    def top(self, *words):
        """{function: (its own, with callees)} as pprof -top tells it, in bytes."""
        text = self.words(self.pprof, "-top", "-nodecount=0", "-nodefraction=0", "-edgefraction=0", "-unit=B", *words)
        rows = re.findall(r"^\s*(-?[\d.]+)B?\s+\S+\s+\S+\s+(-?[\d.]+)B?\s+\S+\s+(.*)$", text, re.M)
        return {name: (float(own), float(all_of_it)) for own, all_of_it, name in rows}

    def test_a_diff_for_pprof_is_what_its_own_diff_base_makes(self):
        program = harness.PROGRAMS / "oracle" / "fork"
        before, after = self.dump(harness.PROGRAMS / "oracle" / "single"), self.dump(program, "fork")
        target = self.folder / "diff.pb.gz"
        self.words(harness.MEMLOG, "diff", "--pprof", "-o", target, before, after)
        profiles = []
        for dump in (before, after):
            profiles.append(self.convert(dump, "pprof").rename(self.folder / f"{dump.parent.name}.pb.gz"))
        index = "-sample_index=alloc_space"
        ours, theirs = self.top(index, target), self.top(index, f"-diff_base={profiles[0]}", profiles[1])
        self.assertTrue(ours)
        self.assertEqual(ours, theirs)
        grown = [self.report(after)["tree"]["total_bytes"], self.report(before)["tree"]["total_bytes"]]
        self.assertEqual(sum(own for own, _ in ours.values()), grown[0] - grown[1])
        self.assertIn("pprof::base", self.words(self.pprof, "-raw", target))

    def test_what_changed_since_an_earlier_dump(self):
        """Between two runs, as after a service's death or a start anew, numbers of stacks mean nothing; their frames do."""
        dumps = [self.dump(harness.PROGRAMS / "oracle" / "single"), self.dump(harness.PROGRAMS / "oracle" / "fork", "fork")]
        whole = [self.report(dump) for dump in dumps]
        profile = self.convert(dumps[1], "pprof", f"--before={dumps[0]}", "--metric=total")
        ours = self.top(profile)
        for figure, index in (("total_bytes", "alloc_space"), ("live_bytes", "inuse_space")):
            rows = self.top(f"-sample_index={index}", profile)
            self.assertEqual(sum(own for own, _ in rows.values()), harness.shown(whole[1], figure) - harness.shown(whole[0], figure))
        profiles = [self.convert(dump, "pprof").rename(self.folder / f"whole{number}.pb.gz") for number, dump in enumerate(dumps)]
        self.assertEqual(ours, self.top("-sample_index=alloc_space", f"-base={profiles[0]}", profiles[1]))
        # A process that is not in the earlier one has all of it from then on.
        child = next(entry for entry in whole[1]["processes"] if entry["parent_id"] != 0)
        profile = self.convert(dumps[1], "pprof", f"--before={dumps[0]}", f"--pid={child['pid']}")
        self.assertEqual(self.pprof_totals(profile), [child[figure] for figure in FIGURES])

    def collapsed(self, dump, *options):
        sums = collections.Counter()
        for line in self.convert(dump, "collapsed", *options).read_text().splitlines():
            stack, _, count = line.rpartition(" ")
            sums[stack] += int(count)
        return sums

    def test_collapsed_stacks_are_live_bytes_outermost_first(self):
        dump = self.dump(harness.PROGRAMS / "oracle" / "single")
        report = self.report(dump)
        sums = self.collapsed(dump)
        self.assertEqual(sum(sums.values()), harness.shown(report, "live_bytes"))
        self.assertTrue(any(stack.endswith("main;churn;branch_left;leaf") for stack in sums), list(sums)[:5])

    def test_collapsed_stacks_of_another_metric(self):
        dump = self.dump(harness.PROGRAMS / "oracle" / "single")
        report = self.report(dump)
        for metric in ("live", "peak", "total"):
            sums = self.collapsed(dump, f"--metric={metric}")
            self.assertEqual(sum(sums.values()), harness.shown(report, f"{metric}_bytes"), metric)

    def test_every_reader_of_gperftools_text_finds_our_totals(self):
        # google-pprof and jeprof find no executable whose path has a blank.
        program = pathlib.Path(shutil.copy(harness.PROGRAMS / "oracle" / "single", self.folder))
        dump = self.dump(program)
        live = harness.shown(self.report(dump), "live_bytes")
        heap = self.convert(dump, "heap")
        for reader in harness.gperftools_readers():
            text = self.words(reader, "--text", "--show_bytes", program, heap)
            self.assertIn(f"Total: {live} B", text, reader)
            self.assertIn("leaf", text, reader)
        self.assertIn(f"% of {live}B total", self.words(self.pprof, "-top", "-unit=B", program, heap))

    def test_heapprofds_example_query_runs_in_sqlite3(self):
        dump = self.dump(harness.PROGRAMS / "oracle" / "fork", "fork")
        report = self.report(dump)
        base = self.convert(dump, "sqlite")
        query = """
            select a.callsite_id, a.ts, a.upid, f.name, f.rel_pc, m.build_id, m.name as mapping_name,
                   sum(a.size) as space_size, sum(a.count) as space_count
            from heap_profile_allocation a join
                 stack_profile_callsite c ON (a.callsite_id = c.id) join
                 stack_profile_frame f ON (c.frame_id = f.id) join
                 stack_profile_mapping m ON (f.mapping = m.id)
            group by 1, 2, 3, 4, 5, 6, 7 order by space_size desc;"""
        rows = [line.split("|") for line in self.words("sqlite3", base, query).splitlines()]
        self.assertEqual(sum(int(row[-2]) for row in rows), harness.shown(report, "live_bytes"))
        self.assertEqual(sum(int(row[-1]) for row in rows), harness.shown(report, "live_blocks"))
        for entry in report["processes"]:
            pid = self.words("sqlite3", base, f"select sum(size) from heap_profile_allocation join process using (upid) where pid = {entry['pid']}")
            self.assertEqual(int(pid), entry["live_bytes"])

    def test_heapprofds_flame_graph_runs_in_sqlite3(self):
        dump = self.dump(harness.PROGRAMS / "oracle" / "fork", "fork")
        report = self.report(dump)
        base = self.convert(dump, "sqlite")
        # Its document asks a function of (ts, upid, type). SQLite has functions of virtual tables alone: no file brings one.
        answer = harness.run_words(
            ["sqlite3", str(base), "select name from experimental_flamegraph(1,1,'native')"], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertIn("'experimental_flamegraph' is not a function", str(answer.stderr))
        checked = 0
        for entry in report["processes"]:
            moment = self.words("sqlite3", base, f"select upid, max(ts) from heap_profile_allocation join process using (upid) where pid = {entry['pid']}")
            upid, ts = moment.strip().split("|")
            query = f"""
                select name, map_name, cumulative_size, size, depth, cumulative_alloc_size
                from experimental_flamegraph where ts = {ts} and upid = {upid} and profile_type = 'native'
                order by abs(cumulative_size) desc;"""
            rows = [line.split("|") for line in self.words("sqlite3", base, query).splitlines()]
            self.assertEqual(sum(int(row[3]) for row in rows), entry["live_bytes"])
            self.assertEqual(sum(int(row[2]) for row in rows if row[4] == "0"), entry["live_bytes"])
            self.assertEqual(sum(int(row[5]) for row in rows if row[4] == "0"), entry["total_bytes"])
            found, wanted = collections.Counter(), collections.Counter()
            for name, path, size, *_ in rows:
                found[name, path] += int(size)
            for stack in entry["stacks"]:
                for frame in stack["frames"]:
                    if not frame["inlined"] and frame["function"]:
                        wanted[frame["function"], frame["module"]] += stack["live_bytes"]
            self.assertEqual({key: found[key] for key in wanted}, dict(wanted))
            checked += len(wanted)
        self.assertGreater(checked, 9)

    def test_trace_processors_tables_of_a_process_have_its_figures(self):
        dump = self.dump("/usr/bin/python3", "-c", "import time; kept = [bytes(5000) for i in range(99)]; time.sleep(0.5)")
        (entry,) = self.report(dump)["processes"]
        base = self.convert(dump, "sqlite")

        def ask(query):
            return [line.split("|") for line in self.words("sqlite3", base, query).splitlines()]

        self.assertEqual(
            ask("select tid, name, utid = id from thread where is_main_thread"), [[str(entry["pid"]), entry["name"], "1"]])
        stats = dict(ask(f"select name, value from stats where idx = {entry['pid']}"))
        self.assertEqual(int(stats["heapprofd_unwind_samples"]), entry["events"])
        self.assertEqual((stats["heapprofd_buffer_overran"], stats["memlog_lost_events"], stats["heapprofd_client_disconnected"]), ("0", "0", "1"))
        last = dict(ask(
            "select t.name, c.value from counter c join process_counter_track t on t.id = c.track_id"
            " where c.ts = (select max(ts) from counter where track_id = t.id)"))
        self.assertEqual((int(last["live bytes"]), int(last["allocated bytes"])), (entry["live_bytes"], entry["total_bytes"]))
        ((start, end, first, final),) = ask("select start_ts, end_ts, min(c.ts), max(c.ts) from process, counter c")
        self.assertLessEqual(int(start) - 10**9, int(first))
        self.assertLessEqual(int(final), int(end) + 10**9)

    def test_what_is_pruned_is_small_and_adds_up(self):
        dump = self.dump("/usr/bin/git", "--version")
        whole, pruned = self.report(dump), json.loads(self.convert(dump, "json", "--prune=16K").read_text())
        self.assertLess(len(pruned["tree"]["stacks"]), len(whole["tree"]["stacks"]))
        for figure in FIGURES + ["peak_bytes"]:
            self.assertEqual(sum(stack[figure] for stack in pruned["tree"]["stacks"]), harness.shown(whole, figure))
        self.assertTrue(any(frame["function"] == "<other>" for stack in pruned["tree"]["stacks"] for frame in stack["frames"]))
        for form in ("pprof", "collapsed", "heap", "chrome", "html"):
            self.assertLess(self.convert(dump, form, "--prune=16K").stat().st_size, self.convert(dump, form).stat().st_size, form)

    def test_a_flame_graph_of_some_stacks(self):
        """--focus and --ignore as in the report: what is drawn adds up to the stacks that match."""
        dump = self.dump(harness.PROGRAMS / "oracle" / "single")
        stacks = self.report(dump)["tree"]["stacks"]
        for option, matches in (("--focus=branch_left", True), ("--ignore=branch_left", False)):
            page = self.words(harness.MEMLOG, "flamegraph", option, "-o", "/dev/stdout", dump)
            data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
            drawn = [sum(data["views"][0]["values"][figure::7]) for figure in (1, 5)]
            wanted = [stack for stack in stacks if any(frame["function"] == "branch_left" for frame in stack["frames"]) == matches]
            self.assertEqual(drawn, [sum(stack[figure] for stack in wanted) for figure in ("live_bytes", "total_bytes")])
            self.assertGreater(drawn[1], 0)
            self.assertIn("only stacks and frames that were asked for", data["about"])

    def test_a_diff_of_some_stacks(self):
        """--focus and the like take the same stacks of both sides; what the dumps hold in all stays what it is."""
        before, after = self.dump(harness.PROGRAMS / "oracle" / "single"), self.dump(harness.PROGRAMS / "oracle" / "fork", "fork")
        whole = json.loads(self.words(harness.MEMLOG, "diff", "--json", before, after))

        def has(stack, name):
            return any(frame["function"] == name for frame in stack["frames"])

        self.assertTrue(any(has(stack, "main") and stack["from"]["total_bytes"] for stack in whole["stacks"]))
        for options, fits in (
            (["--focus=^branch_left$"], lambda stack: has(stack, "branch_left")),
            (["--ignore=^branch_left$"], lambda stack: not has(stack, "branch_left")),
            (["--focus=^main$", "--ignore=branch"], lambda stack: has(stack, "main") and not any("branch" in frame["function"] for frame in stack["frames"])),
        ):
            some = json.loads(self.words(harness.MEMLOG, "diff", "--json", *options, before, after))
            self.assertTrue(some["stacks"], options)
            self.assertLess(len(some["stacks"]), len(whole["stacks"]))
            self.assertEqual(some["stacks"], [stack for stack in whole["stacks"] if fits(stack)], options)
            self.assertEqual((some["from"], some["to"]), (whole["from"], whole["to"]))
        shown = json.loads(self.words(harness.MEMLOG, "diff", "--json", "--show=^main$", before, after))
        self.assertEqual({frame["function"] for stack in shown["stacks"] for frame in stack["frames"]}, {"main"})
        text = self.words(harness.MEMLOG, "diff", "--focus=^branch_left$", before, after)
        self.assertIn("of what was asked for", text)
        page = self.words(harness.MEMLOG, "diff", "--html", "--focus=^branch_left$", "-o", "/dev/stdout", before, after)
        self.assertIn("only stacks and frames that were asked for", page)

    def test_a_diff_says_how_sure_its_sides_are(self):
        whole = self.dump(harness.PROGRAMS / "oracle" / "single")
        (sampled,) = self.memlog(harness.PROGRAMS / "oracle" / "single", options=["--memlog-sampling-rate=4K"]).dumps()
        self.assertNotRegex(self.words(harness.MEMLOG, "diff", whole, whole), "NOT COMPLETE|estimated")
        self.assertRegex(self.words(harness.MEMLOG, "diff", whole, sampled), r"(?m)^  estimated  to: from samples, one every 4.0 KiB on average$")
        cut = self.folder / "cut.pftrace"
        cut.write_bytes(whole.read_bytes()[:-9])
        self.assertRegex(self.words(harness.MEMLOG, "diff", cut, whole), r"(?m)^  NOT COMPLETE  from: memlog report says what is missing$")

    def test_one_process_is_the_tree_in_every_form(self):
        dump = self.dump(harness.PROGRAMS / "oracle" / "fork", "fork")
        entry = self.report(dump)["processes"][1]
        alone = json.loads(self.convert(dump, "json", f"--pid={entry['pid']}").read_text())
        self.assertEqual([one["id"] for one in alone["processes"]], [entry["id"]])
        for figure in FIGURES + ["peak_bytes", "peak_blocks"]:
            self.assertEqual(harness.shown(alone, figure), entry[figure])
        self.assertEqual(sum(self.collapsed(dump, f"--pid={entry['pid']}", "--metric=peak").values()), entry["peak_bytes"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
