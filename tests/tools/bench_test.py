"""The arithmetic, the tables and the plan of tools/bench, on figures that are known."""
import contextlib
import io
import json
import pathlib
import re
import runpy
import sys
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/bench"))

import configurations
import figures
import machine
import main
import measure
import records
import tables
import targets
import workloads


def run_of(configuration="nothing", **changes):
    """A run that ended well; 1 s of CPU time in the target unless told otherwise."""
    run = {
        "series": "1", "round": 0, "program": "sqlite3", "size": "full", "configuration": configuration, "ended": "ok",
        "wall_s": 2.0, "target_user_s": 0.75, "target_system_s": 0.25, "recorder_cpu_s": 0.0,
        "target_peak_rss_bytes": 10_000_000, "target_own_bytes": 5_000_000, "recorder_peak_rss_bytes": None,
    }
    return run | changes


def histogram(counts, longest=None):
    """{end of bucket: count}, a tick each ns."""
    buckets = sorted([end, count] for end, count in counts.items())
    return {"ticks_a_ns": 1.0, "buckets": buckets, "longest_ticks": longest or buckets[-1][0] - 1}


def record_of(*runs):
    record = records.empty()
    record["runs"] = list(runs)
    return record


class FiguresTest(unittest.TestCase):
    def test_a_spread_is_median_least_and_greatest_of_what_was_measured(self):
        spread = figures.spread([3.0, None, 1.0, 2.0])
        self.assertEqual((spread.median, spread.least, spread.greatest, spread.count), (2.0, 1.0, 3.0, 3))
        self.assertIsNone(figures.spread([None]))

    def test_runs_are_paired_within_their_round_size_and_series(self):
        runs = [
            run_of(wall_s=1.0), run_of("memlog-exact", wall_s=2.0),
            run_of(wall_s=4.0, round=1), run_of("memlog-exact", wall_s=4.0, round=1),
            run_of("memlog-exact", wall_s=100.0, round=2),
            run_of("memlog-exact", wall_s=100.0, size="small"),
            run_of("memlog-exact", wall_s=100.0, series="2"),
        ]
        groups = figures.beside(runs, "memlog-exact", {"nothing"})
        self.assertEqual([(run["wall_s"], [one["wall_s"] for one in bare]) for run, bare in groups], [(2.0, [1.0]), (4.0, [4.0])])
        spread = figures.ratios(groups, figures.wall)
        self.assertEqual((spread.median, spread.least, spread.greatest), (3.0 / 2.5, 1.0, 2.0))
        self.assertIsNone(figures.ratios([], figures.wall))

    def test_runs_that_died_are_in_no_pair(self):
        runs = [run_of(), run_of("heaptrack", ended="killed by SIGPIPE")]
        self.assertEqual(figures.beside(runs, "heaptrack", {"nothing"}), [])
        runs = [run_of(ended="exit code 1"), run_of("heaptrack")]
        self.assertEqual(figures.beside(runs, "heaptrack", {"nothing"}), [])

    def test_cost_an_event_is_what_the_target_alone_needed_longer(self):
        pairs = [(run_of("memlog-exact", target_user_s=1.25, recorder_cpu_s=9.0), [run_of()])]
        self.assertEqual(figures.ns_an_event(pairs, 10_000_000).median, 50.0)
        self.assertIsNone(figures.ns_an_event(pairs, None))

    def test_all_cpu_counts_the_recorder_too(self):
        pairs = [(run_of("memlog-exact", recorder_cpu_s=0.5), [run_of()])]
        self.assertEqual(figures.ratios(pairs, figures.all_cpu).median, 1.5)
        self.assertEqual(figures.ratios(pairs, figures.target_cpu).median, 1.0)

    def test_medians_are_compared_and_the_program_alone_counts_twice_a_round(self):
        record = record_of(
            run_of(target_user_s=0.5), run_of("nothing-again", target_user_s=0.7), run_of("memlog-exact", target_user_s=1.5),
            run_of(target_user_s=0.9, round=1), run_of("nothing-again", target_user_s=0.7, round=1),
            run_of("memlog-exact", target_user_s=1.7, round=1), run_of(target_user_s=90.0, series="2"),
        )
        results = tables.Results(record)
        bare_system_s = run_of()["target_system_s"]
        spread = results.ratio("sqlite3", "memlog-exact", figures.target_cpu)
        self.assertAlmostEqual(spread.median, (1.6 + bare_system_s) / (0.7 + bare_system_s))
        self.assertAlmostEqual(spread.greatest, (1.5 + bare_system_s) / (0.6 + bare_system_s))
        self.assertAlmostEqual(spread.least, (1.7 + bare_system_s) / (0.8 + bare_system_s))
        spread = results.ratio("sqlite3", "nothing-again", figures.target_cpu)
        self.assertAlmostEqual(spread.median, (0.7 + bare_system_s) / (0.7 + bare_system_s))

    def test_a_percentile_is_the_bucket_that_reaches_the_rank(self):
        many = histogram({11: 9_899, 21: 100, 1001: 1}, longest=900)
        self.assertEqual(figures.percentile_ns(many, 50), 10)
        self.assertEqual(figures.percentile_ns(many, 98.99), 10)
        self.assertEqual(figures.percentile_ns(many, 99), 20)
        self.assertEqual(figures.percentile_ns(many, 99.99), 20)
        self.assertEqual(figures.percentile_ns(many, 100), 900)

    def test_percentiles_are_in_ns_whatever_the_clock(self):
        self.assertEqual(figures.percentile_ns(histogram({27: 10, 53: 1}) | {"ticks_a_ns": 2.6}, 50), 10.0)

    def test_no_percentile_lies_above_the_longest(self):
        self.assertEqual(figures.percentile_ns(histogram({33: 1}, longest=32), 99.99), 32)

    def test_histograms_of_several_rounds_add_up(self):
        sum_of = figures.merged([histogram({11: 1, 21: 2}), histogram({21: 3, 31: 1}, longest=29)])
        self.assertEqual(sum_of["buckets"], [[11, 1], [21, 5], [31, 1]])
        self.assertEqual(sum_of["longest_ticks"], 29)

    def test_added_latency_is_told_as_difference_and_as_limit(self):
        bare = histogram({11: 99, 101: 1})
        profiled = histogram({31: 99, 151: 1})
        added = figures.Added(profiled, bare, 99)
        self.assertEqual((added.bare_ns, added.profiled_ns, added.difference_ns, added.limit_ns), (10, 30, 20, 20))
        added = figures.Added(profiled, bare, 100)
        self.assertEqual((added.difference_ns, added.limit_ns), (50, 140))


class TablesTest(unittest.TestCase):
    def test_numbers_keep_three_digits_that_matter(self):
        self.assertEqual([tables.number(value) for value in (1.234, 12.34, 1234.5, None)], ["1.23", "12.3", "1,234", "–"])

    def test_units_fit_the_size(self):
        self.assertEqual([tables.bytes_text(value) for value in (12, 2_500_000, 3_000_000_000)], ["12 B", "2.50 MB", "3.00 GB"])
        self.assertEqual([tables.duration_text(value) for value in (12, 2500, 3_000_000)], ["12 ns", "2.50 us", "3.00 ms"])

    def test_one_figure_has_no_spread(self):
        self.assertEqual(tables.spread_text(figures.spread([1.5])), "1.50")
        self.assertEqual(tables.spread_text(figures.spread([1.0, 1.5, 3.0])), "1.50 (1.00–3.00)")

    def test_a_table_has_one_width_a_column(self):
        lines = tables.table(["a", "bb"], [["longer", "1"], ["x", "2"]]).split("\n")
        self.assertEqual(len({len(line) for line in lines}), 1)
        self.assertEqual(lines[2], "| longer | 1  |")

    def test_ratios_of_a_sampling_peer_are_over_its_own_allocator(self):
        record = record_of(
            run_of(), run_of("jemalloc", target_user_s=0.25), run_of("jemalloc-512k", target_user_s=0.3),
        )
        spread = tables.Results(record).ratio("sqlite3", "jemalloc-512k", figures.target_cpu)
        self.assertAlmostEqual(spread.median, 0.55 / 0.5)

    def test_a_slow_peer_is_compared_at_the_small_size(self):
        record = record_of(
            run_of(), run_of(size="small", wall_s=0.5), run_of("massif", size="small", wall_s=5.0),
        )
        self.assertEqual(tables.Results(record).ratio("sqlite3", "massif", figures.wall).median, 10)

    def test_a_recorders_cost_is_told_where_there_is_one(self):
        alone, recorded = run_of(), run_of("memlog-exact", recorder_cpu_s=0.5, recorder_peak_rss_bytes=1)
        self.assertIsNone(tables.recorder_ns(alone, 10_000_000))
        self.assertIsNone(tables.recorder_ns(recorded, None))
        self.assertEqual(tables.recorder_ns(recorded, 10_000_000), 50.0)

    def test_every_row_of_a_programs_table_is_as_wide_as_its_head(self):
        record = record_of(
            run_of(), run_of("memlog-exact", events=100, lost_events=0, stream_bytes=500, recorder_peak_rss_bytes=1),
            run_of("heaptrack", ended="killed by SIGPIPE"),
        )
        lines = tables.details(tables.Results(record), "sqlite3").split("\n")[2:]
        self.assertEqual({line.count("|") for line in lines}, {12})

    def test_who_died_is_named_with_how(self):
        record = record_of(run_of(), run_of("heaptrack", ended="stopped at 8 GiB"))
        record["machines"] = {}
        text = tables.everything(record)
        self.assertRegex(text, r"heaptrack +\| stopped at 8 GiB")

    def test_what_ran_in_another_series_was_not_left_out(self):
        common = {"cpu": "c", "cores": 2, "memory_bytes": 1, "virtualised": "no", "governor": "g", "clock": "tsc",
                  "huge_pages": "h", "distribution": "d", "kernel": "k", "packages": {}}
        record = record_of(run_of("memlog-exact"), run_of("memlog-4k", series="2"))
        left_out = {"memlog-4k": "not yet", "massif": "no valgrind"}
        record["machines"] = {
            "1": common | {"date": "1st", "commit": "a", "left_out": left_out},
            "2": common | {"date": "2nd", "commit": "b"},
            "3": common | {"date": "3rd", "commit": "c"},
        }
        lines = tables.machines_text(record).split("\n")
        self.assertEqual((lines[0], lines[3:]), ("* 1st to 2nd; memlog a, b", ["* left out: massif: no valgrind"]))

    def test_events_are_taken_from_runs_that_lost_none(self):
        record = record_of(run_of("memlog-exact", events=90, lost_events=10), run_of("memlog-exact", events=100, lost_events=0))
        self.assertEqual(tables.Results(record).events("sqlite3", "full"), 100)


class TargetsTest(unittest.TestCase):
    def row(self, what, *runs):
        rows = {row.what: row for row in targets.judged(tables.Results(record_of(*runs)))}
        return rows[what]

    def test_what_was_not_measured_is_neither_reached_nor_missed(self):
        row = self.row("exact, target's CPU, redis", run_of())
        self.assertEqual((row.reached_text(), row.verdict()), ("–", "not measured"))

    def test_a_median_at_the_limit_is_reached_and_one_above_is_missed(self):
        what = "exact, target's CPU, sqlite3"
        self.assertEqual(self.row(what, run_of(), run_of("memlog-exact", target_user_s=1.10)).verdict(), "reached")
        self.assertEqual(self.row(what, run_of(), run_of("memlog-exact", target_user_s=1.11)).verdict(), "missed")

    def replayed(self, program, **figures):
        known = {"events": 5_000_000, "events_a_second": 30e6, "live_blocks": 20_000, "bytes_a_block": 21.0, "cells": 2_000, "bytes_a_cell": 96.0}
        return run_of("memlog-replay", program=program, replay=known | figures)

    def test_the_services_memory_is_the_most_of_all_streams_with_enough_of_it(self):
        runs = [
            self.replayed("sqlite3"), self.replayed("python3", bytes_a_block=23.5, bytes_a_cell=98.0),
            self.replayed("live-1m", cells=1, bytes_a_cell=960.0), self.replayed("redis", live_blocks=10, bytes_a_block=300.0),
        ]
        row = self.row("service's memory, blocks of any stream", *runs)
        self.assertEqual((row.reached, row.verdict()), (23.5, "reached"))
        row = self.row("service's memory, cells of any stream", *runs)
        self.assertEqual((row.reached, row.verdict()), (98.0, "reached"))

    def test_a_rate_is_reached_from_its_limit_on(self):
        for rate, verdict in ((25e6, "reached"), (24.9e6, "missed")):
            row = self.row("service, replayed stream, redis", self.replayed("redis", events_a_second=rate))
            self.assertEqual((row.limit_text, row.verdict()), ("≥ 25 million events a second", verdict))
        several = [self.replayed("redis", events_a_second=rate) for rate in (30e6, 10e6, 20e6)]
        self.assertEqual(targets.replay_rate(tables.Results(record_of(*several)), "redis"), 20)
        row = self.row("service, replayed stream, redis", self.replayed("redis") | {"ended": "it did not start"})
        self.assertEqual(row.verdict(), "not measured")

    def test_replays_are_a_table_of_their_own_and_no_configuration(self):
        record = record_of(run_of(), self.replayed("sqlite3"), self.replayed("random", cells=0))
        record["machines"] = {}
        text = tables.everything(record)
        self.assertRegex(text, r"\| sqlite3 +\| 5\.00 M +\| 30\.0 +\| 20,000 +\| 21\.0 +\| 2,000 +\| 96\.0 +\|")
        self.assertRegex(text, r"\| random +\|.*\| 0 +\| – +\|")
        self.assertNotIn("memlog-replay", text)

    def test_the_clients_memory_leaves_its_stack_nodes_out(self):
        row = self.row(
            "client's memory without its stack nodes, sqlite3",
            run_of(), run_of("memlog-exact", target_own_bytes=8_000_000, stack_nodes=62_500),
        )
        self.assertEqual(row.reached, 2.0)

    def test_bytes_an_event_are_the_mean_over_programs(self):
        row = self.row(
            "event stream, mean over programs",
            run_of("memlog-exact", events=100, stream_bytes=500),
            run_of("memlog-exact", program="tight", events=100, stream_bytes=700),
        )
        self.assertEqual(row.reached, 6.0)

    def test_added_latency_is_the_worse_of_malloc_and_free(self):
        latency = {"ticks_a_ns": 1.0, "malloc": histogram({1001: 1}), "free": histogram({1001: 1})}
        slower = {"ticks_a_ns": 1.0, "malloc": histogram({3001: 1}), "free": histogram({6001: 1})}
        row = self.row(
            "added to 99.99 % of calls, latency-steady",
            run_of(program="latency-steady", latency=latency),
            run_of("memlog-exact", program="latency-steady", latency=slower),
        )
        self.assertEqual(row.reached, 5.0)


class PlanTest(unittest.TestCase):
    def arguments(self, *words):
        return main.arguments(list(words))

    def test_peers_bring_the_allocator_that_they_are_compared_with(self):
        options = self.arguments("--peers=jemalloc-512k")
        self.assertIn("jemalloc", options.configurations)
        self.assertIn("memlog-exact", options.configurations)
        self.assertNotIn("heaptrack", options.configurations)

    def test_no_peers_leave_nothing_and_memlog(self):
        options = self.arguments("--peers=none")
        self.assertTrue(all(name.startswith(("nothing", "memlog")) for name in options.configurations))

    def test_an_unknown_name_is_refused_with_those_that_there_are(self):
        said = io.StringIO()
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(said):
            self.arguments("--programs=sqlite")
        self.assertRegex(said.getvalue(), "there is no 'sqlite'; there are: .*sqlite3")

    def test_a_small_size_comes_with_nothing_and_memlog_beside_it(self):
        plan = main.runs_of_a_round("sqlite3", ["nothing", "memlog-exact", "massif"], quick=False)
        self.assertEqual(
            plan,
            [("full", "nothing"), ("full", "memlog-exact"), ("small", "nothing"), ("small", "memlog-exact"), ("small", "massif")],
        )

    def test_every_second_round_goes_backwards(self):
        forwards = main.runs_of_a_round("sqlite3", ["nothing", "memlog-exact", "massif"], False, 0)
        self.assertEqual(main.runs_of_a_round("sqlite3", ["nothing", "memlog-exact", "massif"], False, 1), forwards[::-1])
        self.assertEqual(main.runs_of_a_round("sqlite3", ["nothing", "memlog-exact", "massif"], False, 2), forwards)

    def test_a_quick_round_runs_each_once_at_the_small_size(self):
        plan = main.runs_of_a_round("sqlite3", ["nothing", "memlog-exact", "massif"], quick=True)
        self.assertEqual(plan, [("small", "nothing"), ("small", "memlog-exact"), ("small", "massif")])

    def test_peers_are_not_asked_for_memlogs_own_memory(self):
        plan = main.runs_of_a_round("live-1m", ["nothing", "memlog-exact", "heaptrack", "massif"], quick=False)
        self.assertEqual(plan, [("full", "nothing"), ("full", "memlog-exact")])

    def test_every_configuration_is_compared_with_one_that_there_is(self):
        for configuration in configurations.CONFIGURATIONS:
            self.assertIn(configuration.baseline, configurations.BY_NAME)

    def test_every_program_has_a_command_at_each_size(self):
        for workload in workloads.WORKLOADS:
            for size in workload.sizes:
                words = workload.words(size, "/folder")
                self.assertFalse([word for word in words if re.search(r"[{}]", word)], workload.name)


class RecordsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name, "bench.json")

    def test_what_is_saved_is_loaded(self):
        record = record_of(run_of())
        records.save(self.path, record)
        self.assertEqual(records.load(self.path), record)

    def test_another_file_is_refused(self):
        for text in ('{"memlog": 1}', "[]"):
            self.path.write_text(text)
            with self.assertRaises(ValueError):
                records.load(self.path)

    def test_a_series_that_stands_in_two_files_counts_once(self):
        first, second = records.empty(), records.empty()
        first["machines"] = {"1": {}}
        first["runs"] = [run_of(), run_of("memlog-exact")]
        second["machines"] = {"1": {}, "2": {}}
        second["runs"] = [*first["runs"], run_of(series="2")]
        merged = records.merge([first, second])
        self.assertEqual([run["series"] for run in merged["runs"]], ["1", "1", "2"])

    def test_commits_of_the_same_memlog_are_shown_together(self):
        record = record_of(run_of("memlog-exact", series="1"), run_of("memlog-exact", series="2"), run_of("memlog-exact", series="3"))
        record["machines"] = {"1": {"commit": "a"}, "2": {"commit": "b"}, "3": {"commit": "c"}}
        kept = records.newest(record, lambda commit: {"a": "old", "b": "new", "c": "new"}[commit])["runs"]
        self.assertEqual([run["series"] for run in kept], ["2", "3"])
        self.assertEqual(machine.measured("HEAD+"), "HEAD+")
        self.assertEqual(machine.measured("0123456789"), " ".join(["0123456789"] * len(machine.MEASURED)))

    def test_memlogs_runs_of_an_older_commit_give_way(self):
        record = record_of(
            run_of(series="1"), run_of("memlog-exact", series="1"), run_of("memlog-exact", series="1", program="redis"),
            run_of(series="2"), run_of("memlog-exact", series="2"),
        )
        record["machines"] = {"1": {"commit": "a"}, "2": {"commit": "b"}}
        kept = [(run["series"], run["program"], run["configuration"]) for run in records.newest(record)["runs"]]
        self.assertEqual(
            kept,
            [("1", "sqlite3", "nothing"), ("1", "redis", "memlog-exact"), ("2", "sqlite3", "nothing"), ("2", "sqlite3", "memlog-exact")],
        )


class MeasureTest(unittest.TestCase):
    def test_the_kernels_peak_is_read_in_bytes(self):
        status = "Name:\tmemlog-service\nVmPeak:\t  900 kB\nVmHWM:\t     512 kB\n"
        self.assertEqual(measure.peak_in_status(status), 512 * 1024)
        self.assertEqual(measure.name_in_status(status), "memlog-service")
        self.assertIsNone(measure.peak_in_status("Name:\tgone\nState:\tZ (zombie)\n"))

    def test_only_recorders_are_counted_as_recorders(self):
        watch = measure.Watch([])
        watch.peaks = {(1, "memlog-service"): 5, (2, "sqlite3"): 7}
        self.assertEqual(watch.peak_of(measure.RECORDERS), 5)
        self.assertIsNone(watch.peak_of(("heaptrack_inter",)))

    def test_a_machine_is_told_from_proc(self):
        cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu hypervisor sse\n"
        self.assertEqual(machine.cpu_model(cpuinfo), "Some CPU @ 2 GHz")
        self.assertEqual(machine.memory_bytes("MemTotal:  1024 kB\nMemFree: 1 kB\n"), 1 << 20)
        self.assertTrue(json.dumps(machine.describe(ROOT)))


class ComparedTest(unittest.TestCase):
    """tools/bench/compared, which has no name that could be imported."""

    compared = types.SimpleNamespace(**runpy.run_path(str(ROOT / "tools/bench/compared")))

    def test_reads_what_heaptrack_prints(self):
        self.assertEqual([self.compared.bytes_told(text) for text in ("0B", "904.10K", "21.13M")], [0, 904_100, 21_130_000])

    def test_puts_a_table_between_the_marks_and_replaces_the_one_before(self):
        marks = self.compared.BEGIN, self.compared.END
        first = self.compared.put("one\n", "before\n" + "".join(marks) + "behind\n")
        self.assertEqual(self.compared.put("two\n", first), f"before\n{marks[0]}\ntwo\n\n{marks[1]}behind\n")

    def test_the_document_has_the_marks_once(self):
        document = self.compared.DOCUMENT.read_text()
        self.assertEqual([document.count(mark) for mark in (self.compared.BEGIN, self.compared.END)], [1, 1])


if __name__ == "__main__":
    unittest.main()
