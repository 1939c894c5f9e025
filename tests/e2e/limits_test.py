"""What memlog's own memory costs a program that looks at its limits: it has what it would have without memlog, within a few MiB, and
where memlog's tables find no room the report says what is missing."""
import os
import re
import unittest

import harness

PROGRAM = harness.OUT / "tests/oracle/limited"
MIB = 1 << 20
WAYS = 16
LOCK_CURRENT, LOCK_FUTURE, LOCK_ONFAULT = 1, 2, 4
ROOM = 8 * MIB  # of VmData and of VmLck that a small program may have more
AS_ROOT = unittest.skipIf(os.geteuid() != 0, "a program that gives root up")
NO_PATHS = "no memory for all call paths"


class Limits(harness.Case):
    def bare(self, *words):
        return harness.run_words([str(PROGRAM), *map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT)

    def both(self, *words, options=("-q", "--no-page")):
        """Bare and under memlog: the same on stdout, the same exit code. Returns both."""
        bare = self.bare(*words)
        run = self.memlog(PROGRAM, *map(str, words), options=options)
        self.assertEqual((run.code, run.out), (bare.returncode, bare.stdout), run.err)
        return bare, run

    def sizes(self, *words):
        """VmSize, VmData and VmLck: bare, and what memlog adds to each."""
        bare, run = self.both(*words)
        alone = [int(word) for word in bare.stderr.split()]
        with_memlog = [int(word) for word in run.err.split()]
        return alone, [more - less for more, less in zip(with_memlog, alone)]

    def only_entry(self, run):
        (entry,) = self.exit_report(run)["processes"]
        return entry

    def assert_all_recorded(self, entry):
        self.assertEqual((entry["complete"], entry["trouble"], entry["lost_events"]), (True, "", 0))

    def path_of(self, stack):
        """The ways of a stack from the outside in; None: it is another's."""
        ways = [frame["function"] for frame in stack["frames"] if frame.get("function", "").startswith("way_")]
        return tuple(int(way.removeprefix("way_")) for way in reversed(ways)) or None

    def assert_paths(self, entry, depth):
        """Each of the paths has its own stack, with its own block and no other."""
        found = {}
        for stack in entry["stacks"]:
            path = self.path_of(stack)
            if path is not None:
                self.assertNotIn(path, found)
                found[path] = (stack["live_bytes"], stack["live_blocks"])
        self.assertEqual(len(found), WAYS**depth)
        for path, figures in found.items():
            self.assertEqual((len(path), figures), (depth, (24 + 16 * path[-1], 1)), path)

    def test_sizes_are_nearly_the_programs_own(self):
        _, (size, data, locked) = self.sizes("sizes")
        self.assertLess(size, ROOM)
        self.assertLess(data, ROOM)
        self.assertEqual(locked, 0)
        self.assertGreater(data, MIB)  # or memlog was not there at all

    def test_limits_set_midway_leave_what_they_leave_without_memlog(self):
        for words in (("as", 1024, 100), ("data", 256, 50), ("as", 64, 40), ("data", 32, 20), ("as", 64, 100), ("data", 32, 40)):
            with self.subTest(words=words):
                _, run = self.both(*words)
                self.assertEqual(run.err, "")
                self.assert_all_recorded(self.only_entry(run))

    def test_a_limit_of_what_there_is_and_a_little_leaves_just_that(self):
        for words in (("as-headroom", 2000), ("data-headroom", 2000), ("as-headroom", 200000), ("data-headroom", 200000)):
            with self.subTest(words=words):
                self.assert_all_recorded(self.only_entry(self.both(*words)[1]))

    def test_memory_may_be_locked(self):
        kinds = (LOCK_CURRENT, LOCK_FUTURE, LOCK_CURRENT | LOCK_FUTURE, LOCK_CURRENT | LOCK_FUTURE | LOCK_ONFAULT)
        for flags in kinds:
            with self.subTest(flags=flags):
                _, (_, _, locked) = self.sizes("lock", flags)
                self.assertLess(locked, ROOM)

    @AS_ROOT
    def test_memory_may_be_locked_by_those_who_may_not_lock_all(self):
        for flags in (LOCK_CURRENT, LOCK_CURRENT | LOCK_FUTURE, LOCK_CURRENT | LOCK_FUTURE | LOCK_ONFAULT):
            with self.subTest(flags=flags):
                bare, _ = self.both("nobody", "lock", flags)
                self.assertIn(b"mlockall 0", bare.stdout)

    @AS_ROOT
    def test_a_program_that_comes_to_the_limit_of_what_it_may_lock(self):
        """Bare it is refused some blocks, under memlog some more; it goes on in both, and each block that it got is recorded."""
        words = ("nobody", "locked-paths", str(LOCK_CURRENT | LOCK_FUTURE), "4")
        for out in (self.bare(*words).stdout, (run := self.memlog(PROGRAM, *words)).out):
            self.assertIn(b"mlockall 0", out)
            refused = int(re.search(rb"refused (\d+)", out)[1])
            self.assertGreater(refused, 0)
        entry = self.only_entry(run)
        self.assertTrue(entry["complete"] or NO_PATHS in entry["trouble"], entry["trouble"])
        self.assertEqual(entry["lost_events"], 0)
        blocks = sum(stack["live_blocks"] for stack in entry["stacks"])
        self.assertIn(blocks - (WAYS**4 - refused), range(0, 10))  # and stdio's own

    @AS_ROOT
    def test_limits_midway_are_nobodys_too(self):
        for words in (("as", 1024, 100), ("data", 256, 50), ("data", 32, 40), ("data-headroom", 2000)):
            with self.subTest(words=words):
                self.assert_all_recorded(self.only_entry(self.both("nobody", *words)[1]))

    def test_children_forked_while_tables_grow(self):
        children = 40
        _, run = self.both("fork-storm", children)
        entries = self.exit_report(run)["processes"]
        self.assertEqual(len(entries), children + 1)
        for entry in entries:
            self.assert_all_recorded(entry)
            if entry["parent_id"] != 0:
                self.assert_paths(entry, 2)

    def test_threads_cost_what_they_use(self):
        count = 300
        _, (_, data, _) = self.sizes("threads", count)
        self.assertLess(data, ROOM + count * 64 * 1024)
        run = self.memlog(PROGRAM, "threads", str(count))
        entry = self.only_entry(run)
        self.assert_all_recorded(entry)
        blocks = {stack["total_bytes"]: stack["total_blocks"] for stack in entry["stacks"] if "thread" in str(stack["frames"])}
        self.assertEqual(blocks.get(100 * count), count)

    def test_far_more_paths_than_there_is_room_for_at_first(self):
        _, run = self.both("paths", 4)
        entry = self.only_entry(run)
        self.assert_all_recorded(entry)
        self.assertGreater(entry["stack_nodes"], 65536)
        self.assert_paths(entry, 4)

    def test_tables_grow_in_every_layout_of_the_address_space_and_under_wide_limits(self):
        for how in (("setarch", "-L"), ("prlimit", "--stack=unlimited"), ("prlimit", "--as=1000000000", "--data=300000000")):
            with self.subTest(how=how):
                run = self.memlog(*how, PROGRAM, "paths", "4")
                self.assertEqual((run.code, run.out), (0, b"paths to depth 4, refused 0\n"))
                (entry,) = [entry for entry in self.exit_report(run)["processes"] if entry["name"] == "limited"]
                self.assert_all_recorded(entry)
                self.assertGreater(entry["stack_nodes"], 2 * WAYS**4)

    def test_a_child_of_a_process_whose_tables_have_grown(self):
        _, run = self.both("child-paths", 3)
        report = self.exit_report(run)
        self.assertEqual(len(report["processes"]), 2)
        for entry in report["processes"]:
            self.assert_all_recorded(entry)
            self.assert_paths(entry, 3)

    def test_a_limit_that_leaves_the_tables_no_room(self):
        """The program is as ever; what its stacks have lost is said."""
        _, run = self.both("limited-paths", 4, 24)
        self.assertEqual(run.err, "")
        entry = self.only_entry(run)
        self.assertFalse(entry["complete"])
        self.assertIn(NO_PATHS, entry["trouble"])
        self.assertEqual(entry["lost_events"], 0)
        blocks = sum(stack["live_blocks"] for stack in entry["stacks"])
        self.assertGreaterEqual(blocks, WAYS**4)

    def test_a_filter_that_kills_for_what_growing_takes(self):
        _, run = self.both("no-mremap-paths", 3)
        entry = self.only_entry(run)
        self.assert_all_recorded(entry)
        self.assert_paths(entry, 3)
        _, run = self.both("no-mremap-paths", 4)
        entry = self.only_entry(run)
        self.assertTrue(entry["complete"] or NO_PATHS in entry["trouble"], entry["trouble"])
        self.assertGreaterEqual(sum(stack["live_blocks"] for stack in entry["stacks"]), WAYS**4)

    def test_a_filter_that_kills_for_mapping(self):
        _, run = self.both("no-mmap-paths", 3)
        entry = self.only_entry(run)
        self.assert_all_recorded(entry)
        self.assert_paths(entry, 3)

    def test_a_filter_that_kills_for_asking_about_limits(self):
        _, run = self.both("no-prlimit-paths", 4)
        entry = self.only_entry(run)
        self.assert_all_recorded(entry)
        self.assert_paths(entry, 4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
