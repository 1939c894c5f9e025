"""The checker itself: on reports written by hand it finds what differs, and nothing else."""
import copy
import unittest

import truth


def stack(chain, live, total, peak, innermost="/bin/prog"):
    frames = [{"function": name, "module": "/bin/prog"} for name in chain.split("<")]
    frames[0]["module"] = innermost
    frames.append({"function": "__libc_start_main", "module": "/lib/libc.so.6"})
    frames.append({"function": "_start", "module": "/bin/prog"})
    return {
        "live_bytes": live, "live_blocks": 1, "total_bytes": total, "total_blocks": 2,
        "peak_bytes": peak, "peak_blocks": 1, "thread": "", "frames": frames,
    }


def site(chain, live, total, peak):
    return {
        "chain": chain, "live_bytes": live, "live_blocks": 1, "total_bytes": total, "total_blocks": 2,
        "peak_bytes": peak, "peak_blocks": 1,
    }


TRUTH = {
    "pid": 7, "label": "end", "argv": ["./prog", "x"], "modules": [], "exact": True, "peak_known": True, "partial": False,
    "inherited_known": False, "inherited_bytes": 0, "inherited_blocks": 0,
    "sites": [site("a<main", 10, 30, 20), site("b<main", 1, 3, 2)],
}
ENTRY = {
    "pid": 7, "command_line": ["./prog", "x"], "live_bytes": 11, "live_blocks": 2, "total_bytes": 33,
    "total_blocks": 4, "peak_bytes": 22, "peak_blocks": 2, "inherited_bytes": 0, "inherited_blocks": 0,
    "lost_events": 0, "truncated_stacks": 0,
    "stacks": [stack("a<main", 10, 30, 20), stack("b<main", 1, 3, 2)],
}
REPORT = {
    "dump": {"complete": True, "gaps": []},
    "tree": {"live_bytes": 11, "live_blocks": 2, "total_bytes": 33, "total_blocks": 4},
    "processes": [ENTRY],
}


class Compare(unittest.TestCase):
    def setUp(self):
        self.report = copy.deepcopy(REPORT)
        self.truth = copy.deepcopy(TRUTH)
        self.entry = self.report["processes"][0]

    def problems(self):
        return truth.compare(self.report, [self.truth])

    def assert_one(self, *words):
        problems = self.problems()
        self.assertEqual(len(problems), 1, problems)
        for word in words:
            self.assertIn(word, problems[0])

    def test_equal_reports_have_no_problem(self):
        self.assertEqual(self.problems(), [])

    def test_one_byte_too_many_at_one_path_is_found(self):
        self.truth["exact"] = False
        self.entry["stacks"][0]["live_bytes"] += 1
        self.entry["live_bytes"] += 1
        self.report["tree"]["live_bytes"] += 1
        self.assert_one("a<main: live_bytes", "(+1)")

    def test_a_lost_path_is_found(self):
        self.truth["sites"].append(site("c<main", 0, 0, 0))
        self.truth["exact"] = False
        self.assertTrue(any("c<main" in problem for problem in self.problems()))

    def test_a_path_that_the_program_has_not_is_found(self):
        self.entry["stacks"][1]["frames"][0]["function"] = "wrong"
        self.assertTrue(any("no such call path" in problem for problem in self.problems()))

    def test_allocations_of_libc_belong_to_nobody(self):
        self.truth["exact"] = False
        self.entry["stacks"].append(stack("pthread_create<main", 5, 5, 5, "/lib/libc.so.6"))
        for where in (self.entry, self.report["tree"]):
            for figure, count in (("live_bytes", 5), ("live_blocks", 1), ("total_bytes", 5), ("total_blocks", 2)):
                where[figure] += count
        self.entry["peak_bytes"] += 5
        self.entry["peak_blocks"] += 1
        self.assertEqual(self.problems(), [])

    def test_stacks_of_equal_chain_are_summed(self):
        self.entry["stacks"][1]["frames"][0]["function"] = "a"
        self.truth["sites"][1]["chain"] = "a<main"
        self.assertEqual(self.problems(), [])

    def test_a_missing_process_is_found(self):
        self.truth["pid"] = 8
        self.assert_one("pid 8", "not one entry")

    def test_exec_gives_a_pid_several_entries_told_apart_by_command_line(self):
        before = copy.deepcopy(self.entry)
        before["command_line"] = ["./other"]
        before["stacks"] = []
        for figure in truth.FIGURES + truth.PEAKS:
            before[figure] = 0
        self.report["processes"].insert(0, before)
        self.assertEqual(self.problems(), [])

    def test_other_paths_are_let_be_in_a_truth_written_before_the_end(self):
        self.truth.update(partial=True, exact=False)
        self.truth["sites"].pop()
        self.assertEqual(self.problems(), [])

    def test_a_loss_is_a_problem(self):
        self.entry["lost_events"] = 3
        self.assert_one("lost_events", "(+3)")

    def test_an_incomplete_dump_is_a_problem(self):
        self.report["dump"]["complete"] = False
        self.assert_one("incomplete")

    def test_a_tree_that_is_not_the_sum_of_its_processes_is_a_problem(self):
        self.report["tree"]["total_blocks"] += 1
        self.assert_one("tree total_blocks")


if __name__ == "__main__":
    unittest.main(verbosity=2)
