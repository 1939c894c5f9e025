"""Programs that know their own heap, run under memlog and compared to the byte (tests/oracle, truth.py)."""
# runner: no second chance
import json
import os
import random
import signal
import time
import unittest

import harness
import truth

MIB = 1 << 20
# The service goes on without a child that may be on its way, when the host has not answered for so long (5 times patience_ns).
DEAF_S = 1
LATE = "forked processes that it heard of too late to put them in order with the others"


class Oracle(harness.Case):
    def program(self, name):
        return harness.PROGRAMS / "oracle" / name

    def hold(self, name, *arguments, code=0, truths=1, options=("-q", "--no-page")):
        """Run an oracle program and demand that the report equals what it wrote; returns the report."""
        def play():
            for old in self.truth_folder.iterdir():
                old.unlink()
            run = self.memlog(self.program(name), *arguments, options=options)
            self.assertEqual(run.code, code, run.err)
            return self.exit_report(run)

        report = self.undisturbed(play)
        written = truth.load(self.truth_folder)
        self.assertEqual(len(written), truths)
        self.assert_equal_to_truth(report, written)
        return report

    def assert_equal_to_truth(self, report, written):
        problems = truth.compare(report, written)
        if problems:
            self.fail(f"{len(problems)} differences:\n" + "\n".join(problems[:40]))

    def only_process(self, report, **fields):
        found = [
            entry for entry in report["processes"]
            if all(entry[name] == value for name, value in fields.items())
        ]
        self.assertEqual(len(found), 1, [(e["pid"], e["state"], e["command_line"]) for e in report["processes"]])
        return found[0]


class OneThread(Oracle):
    def test_every_allocation_function_in_every_way(self):
        report = self.hold("single", code=7)
        self.assertEqual(len(report["processes"]), 1)
        self.assertEqual(report["processes"][0]["state"], "exited")
        self.assertEqual(report["processes"][0]["exit_code"], 7)

    def test_the_tree_of_one_process_is_that_process(self):
        report = self.hold("single", code=7)
        for figure in truth.FIGURES + truth.PEAKS:
            self.assertEqual(harness.shown(report, figure), report["processes"][0][figure], figure)


class Threads(Oracle):
    def test_eight_threads_that_free_each_others_blocks(self):
        self.hold("threads")

    def test_threads_that_start_allocate_and_die_by_the_thousand(self):
        self.hold("storm")

    def test_eight_threads_with_small_staging_buffers(self):
        self.hold("threads", options=("-q", "--no-page", "--memlog-buffer-bytes=16384"))


class Forks(Oracle):
    def test_fork_with_live_blocks(self):
        report = self.hold("fork", "fork", truths=2)
        self.only_process(report, exit_code=3)

    def test_fork_without_its_handlers(self):
        self.hold("fork", "_Fork", truths=2)

    def test_raw_clone_by_libcs_syscall(self):
        self.hold("fork", "syscall", truths=2)

    def test_clone_onto_a_stack_of_its_own(self):
        self.hold("fork", "clone", truths=2)

    def test_raw_clone_by_an_instruction_of_the_programs_own(self):
        self.hold("fork", "inline", truths=2)

    def test_a_child_that_forks_in_turn(self):
        self.hold("fork", "deep", truths=3)

    def test_fork_in_a_threaded_program(self):
        self.hold("fork_threads", truths=41)

    def test_a_child_whose_first_events_are_those_of_several_threads(self):
        self.hold("born", truths=21)

    def test_a_child_whose_threads_start_past_memlog(self):
        self.hold("born", "past", truths=21)

    def test_vfork_child_writes_into_its_parents_heap_and_execs(self):
        self.hold("vfork", "vfork")

    def test_clone_vm_child_writes_into_its_parents_heap_and_execs(self):
        self.hold("vfork", "clone")

    def test_posix_spawn(self):
        self.hold("vfork", "spawn")


class Plugins(Oracle):
    """Code that comes and goes: no deadlock, no frame of a library that is not there any more."""

    def test_a_library_closed_and_another_opened_at_the_same_address(self):
        self.hold("plugins", "swap")

    def test_threads_that_load_libraries_while_others_allocate(self):
        self.hold("plugins", "race")

    def test_exceptions_thrown_out_of_a_plugin(self):
        self.hold("throws")


class Ends(Oracle):
    def end(self, way, code, **fields):
        report = self.hold("ends", way, code=code)
        self.only_process(report, **fields)

    def test_return(self):
        self.end("return", 10, state="exited", exit_code=10)

    def test_exit(self):
        self.end("exit", 12, state="exited", exit_code=12)

    def test_underscore_exit(self):
        self.end("_exit", 11, state="exited", exit_code=11)

    def test_exit_by_raw_system_call(self):
        self.end("raw", 13, state="exited", exit_code=13)

    def test_abort(self):
        self.end("abort", 128 + signal.SIGABRT, state="killed", signal=int(signal.SIGABRT))

    def test_crash(self):
        self.end("segv", 128 + signal.SIGSEGV, state="killed", signal=int(signal.SIGSEGV))

    def test_terminated_by_itself(self):
        self.end("raise", 128 + signal.SIGTERM, state="killed", signal=int(signal.SIGTERM))

    def test_exec_of_a_second_program_is_a_second_entry_of_the_pid(self):
        report = self.hold("ends", "exec", code=9, truths=2)
        states = [entry["state"] for entry in sorted(report["processes"], key=lambda entry: entry["id"])]
        self.assertEqual(states, ["replaced", "exited"])
        self.assertEqual(len({entry["pid"] for entry in report["processes"]}), 1)
        self.assertEqual(len({entry["id"] for entry in report["processes"]}), 2)

    def test_kill_at_a_random_moment_loses_nothing_of_before(self):
        for seed in range(5):
            with self.subTest(seed=seed):
                for old in self.truth_folder.glob("*.json"):
                    old.unlink()
                process = self.memlog_start(self.program("ends"), "killed")
                marker = self.wait_for("the marker", lambda: truth.load(self.truth_folder))
                time.sleep(random.Random(seed).uniform(0, 0.05))
                os.kill(marker[0]["pid"], signal.SIGKILL)
                self.assertEqual(process.wait(timeout=harness.TIMEOUT), 128 + signal.SIGKILL)
                run = harness.Run(process.returncode, b"", "", process.memlog_folder)
                report = self.exit_report(run)
                self.assert_equal_to_truth(report, marker)
                self.only_process(report, state="killed", signal=int(signal.SIGKILL))


class Idle(Oracle):
    def test_a_dump_has_what_sleeping_threads_have_not_flushed(self):
        process = self.memlog_start(self.program("idle"))
        asleep = self.wait_for("the threads to sleep", lambda: truth.load(self.truth_folder))
        answer = harness.run_words(
            [str(harness.MEMLOG), "dump", str(asleep[0]["pid"])], self.folder, self.environment(), b"", harness.TIMEOUT
        )
        self.assertEqual(answer.returncode, 0, answer.stderr)
        dumps = self.wait_for("the dump", lambda: sorted(process.memlog_folder.glob("*.manual.pftrace")))
        report = self.report(dumps[0])
        self.assert_equal_to_truth(report, asleep)
        self.only_process(report, state="running")
        (self.truth_folder / "go").touch()
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        end = [one for one in truth.load(self.truth_folder) if one["label"] == "end"]
        run = harness.Run(0, b"", "", process.memlog_folder)
        self.assert_equal_to_truth(self.exit_report(run), end)


class Peaks(Oracle):
    """What the tree holds at most, where its processes hold most at different times."""

    def tree_shares(self, report):
        sums = truth.sums_by_chain(report["tree"]["stacks"], {"peaks"})
        return {chain: figures["peak_bytes"] for chain, figures in sums.items() if figures["peak_bytes"]}

    def test_combined_peak_is_the_true_one_not_the_sum_of_peaks(self):
        self.assert_phases(self.hold("peaks", "phases", truths=2))

    def assert_phases(self, report):
        self.assertEqual(sorted(entry["peak_bytes"] for entry in report["processes"]), [24 * MIB, 32 * MIB])
        self.assertEqual(report["tree"]["peak_bytes"], 38 * MIB)
        self.assertEqual(report["tree"]["peak_blocks"], 2)
        self.assertEqual(self.tree_shares(report), {"phase_three<main": 38 * MIB})

    def with_a_deaf_host(self, seconds):
        """The report of a run whose host stands still from before the fork until that long after the end of all."""
        process = self.memlog_ready(self.program("peaks"), "phases", "waits")
        (root,) = [pid for pid in harness.children_of(process.pid) if pid != harness.service_of(process.pid)]
        os.kill(process.pid, signal.SIGSTOP)
        self.go(process)
        self.wait_for("the program's end", lambda: harness.ticks_of(root) is None)
        time.sleep(seconds)
        os.kill(process.pid, signal.SIGCONT)
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        return self.exit_report(harness.Run(0, b"", "", process.memlog_folder))

    def test_a_child_of_which_the_host_hears_behind_the_end_of_all_is_in_its_place(self):
        report = self.with_a_deaf_host(0)
        late = report["dump"]["service_trouble"]
        if late == "":  # as always but where the machine stands still
            self.assert_phases(report)
        else:
            self.assertIn(LATE, late)

    def test_a_host_that_hears_nothing_for_long_costs_the_order_and_the_report_says_so(self):
        report = self.with_a_deaf_host(4 * DEAF_S)
        self.assertIn(f"{LATE}: 1;", report["dump"]["service_trouble"])
        self.assertEqual(sorted(entry["peak_bytes"] for entry in report["processes"]), [24 * MIB, 32 * MIB])

    def test_a_block_handed_on_between_processes_never_counts_twice(self):
        report = self.hold("peaks", "handover", truths=2)
        self.assertEqual(report["tree"]["peak_bytes"], MIB)
        self.assertEqual(report["tree"]["peak_blocks"], 1)
        self.assertEqual(report["tree"]["total_bytes"], 2000 * MIB)

    def test_bursts_that_read_the_clock_rarely_are_in_order_too(self):
        report = self.hold("peaks", "bursts", truths=2)
        self.assertEqual(report["tree"]["peak_bytes"], MIB)
        self.assertEqual(report["tree"]["peak_blocks"], 1)
        self.assertEqual(report["tree"]["total_bytes"], 2 * (750 + 250 * 300) * MIB)

    def test_ended_processes_leave_live_and_peak(self):
        report = self.hold("peaks", "sequence", truths=4)
        self.assertEqual(report["tree"]["peak_bytes"], 8 * MIB)
        self.assertEqual((report["tree"]["live_bytes"], report["tree"]["left_bytes"]), (0, 24 * MIB))


class Report(Oracle):
    """The shape that scripts rely on."""

    def test_fields_are_all_there(self):
        report = self.hold("single", code=7)
        self.assertEqual(report["memlog"], 1)
        self.assertLessEqual(
            {"file", "time", "reason", "sampling_bytes", "complete", "gaps"}, set(report["dump"]), report["dump"]
        )
        self.assertEqual(report["dump"]["reason"], "exit")
        self.assertEqual(report["dump"]["sampling_bytes"], 1)
        process = report["processes"][0]
        self.assertLessEqual(
            {
                "id", "pid", "parent_pid", "name", "command_line", "role", "state", "from_startup",
                "footprint_bytes", "exit_code", "signal", "live_bytes", "live_blocks", "peak_bytes",
                "peak_blocks", "total_bytes", "total_blocks", "inherited_bytes", "inherited_blocks", "events",
                "lost_events", "unknown_frees", "truncated_stacks", "stacks",
            },
            set(process),
        )
        self.assertEqual(process["name"], "single")
        self.assertEqual(process["command_line"], [str(self.program("single"))])
        self.assertEqual(process["role"], "browser")
        self.assertTrue(process["from_startup"])
        self.assertEqual(process["unknown_frees"], 0)
        frame = process["stacks"][0]["frames"][0]
        self.assertLessEqual(
            {"function", "file", "line", "module", "build_id", "offset", "inlined"}, set(frame), frame
        )
        live = [stack["live_bytes"] for stack in process["stacks"]]
        self.assertEqual(live, sorted(live, reverse=True))

    def test_source_lines_are_named(self):
        report = self.hold("single", code=7)
        frames = [stack["frames"][0] for stack in report["processes"][0]["stacks"]]
        lines = {frame["function"]: (frame["file"], frame["line"]) for frame in frames}
        file, line = lines["kinds_calloc"]
        self.assertTrue(file.endswith("tests/oracle/single.c"), file)
        source = (harness.ROOT / "tests/oracle/single.c").read_text().splitlines()
        self.assertIn("calloc(", source[line - 1])

    def test_limit_cuts_the_stacks_alone(self):
        run = self.memlog(self.program("single"))
        answer = harness.run_words(
            [str(harness.MEMLOG), "report", "--json", "--limit=2", str(run.dumps()[0])],
            self.folder, self.environment(), b"", harness.TIMEOUT,
        )
        self.assertEqual(answer.returncode, 0, answer.stderr)
        cut = json.loads(answer.stdout)
        self.assertEqual(len(cut["processes"][0]["stacks"]), 2)
        self.assertEqual(cut["processes"][0]["live_bytes"], self.exit_report(run)["processes"][0]["live_bytes"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
