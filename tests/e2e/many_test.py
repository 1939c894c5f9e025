"""Very many of something, in short: the scenes of many.py at a size that the tests have time for. The long form, with its figures:
`tools/dev/soak --many`."""
import sys
import unittest

import harness
import many

# What a service holds for itself beside its clients': scratch of its threads, notes of the last slices for some rounds more
# (service/session/slice.c), what the allocator keeps.
OWN_BYTES = 24 << 20


class Many(harness.Case):
    def play(self, name):
        try:
            return many.SCENES[name][0](self.folder)
        except many.Wrong as wrong:
            self.fail(str(wrong))

    def test_hundreds_of_processes_at_once_are_followed_to_their_end(self):
        figures = self.play("at once")
        self.assertLess(figures["peak_bytes"], 300 * (128 << 10))

    def test_a_thousand_short_ones_in_a_row_are_folded_to_their_true_sums(self):
        figures = self.play("in a row")
        self.assertLessEqual(figures["entries"], 200 + 4)
        self.assertLessEqual(figures["ps_rows"], figures["entries"] + many.SLACK)
        self.assertLess(figures["peak_bytes"], OWN_BYTES)

    def test_a_parallel_build_is_whole(self):
        self.play("make -j")

    def test_hundreds_of_threads_are_told_apart_and_none_is_missing(self):
        figures = self.play("threads")
        self.assertEqual((figures["lost_too_early"], figures["busy_lost_too_early"]), (0, 0))

    def test_what_millions_of_blocks_took_goes_back_and_a_dump_holds_nobody_up(self):
        figures = self.play("blocks")
        if figures["lost"] == 0:
            self.assertGreater(figures["peak_bytes"], figures["before_bytes"] + 2 * OWN_BYTES)
        self.assertLess(figures["after_bytes"], figures["before_bytes"] + OWN_BYTES)
        self.assertEqual((figures["lost_too_early"], figures["busy_lost_too_early"]), (0, 0))

    def test_hundreds_of_thousands_of_stacks_are_dumped_while_pipes_are_read(self):
        figures = self.play("nodes")
        if figures["lost"] == 0:
            self.assertGreater(figures["stack_nodes"], 200000)
        self.assertEqual((figures["lost_too_early"], figures["busy_lost_too_early"]), (0, 0))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
