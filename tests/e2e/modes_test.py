"""A browser's tree of processes under every mode: exactly the right ones are profiled, preloaded and linked alike."""
import collections
import pathlib
import unittest

import harness

BLOCKS = 500
SIZES = {"browser": 1001, "gpu": 1002, "utility": 1003, "other": 1004, "renderer": 1005}

# What `memlog run -- mini_browser` consists of; "other" is the zygote.
EVERYTHING = {"browser": 1, "gpu": 1, "utility": 2, "renderer": 3, "other": 1}

EXACT = {
    "manual": {},
    "minimal": {"browser": 1, "gpu": 1},
    "browser": {"browser": 1},
    "gpu": {"gpu": 1},
    "all": EVERYTHING,
    "all-renderers": {"renderer": 3},
    "all-utilities": {"utility": 2},
    "utility-and-browser": {"utility": 2, "browser": 1},
}


class Modes(harness.Case):
    def profiled(self, report):
        """role -> how many processes of it were profiled, each with all that it allocated."""
        found = collections.Counter()
        for entry in report["processes"]:
            stacks = [
                stack for stack in entry["stacks"]
                if any(frame["function"].startswith("work_") for frame in stack["frames"])
            ]
            if not stacks:
                continue
            role = entry["role"]
            blocks = sum(stack["total_blocks"] for stack in stacks)
            size = sum(stack["total_bytes"] for stack in stacks)
            self.assertEqual((blocks, size), (BLOCKS, BLOCKS * SIZES[role]), (role, entry["pid"]))
            functions = {frame["function"] for stack in stacks for frame in stack["frames"]}
            self.assertIn("work_zygote" if role == "other" else f"work_{role}", functions)
            found[role] += 1
        self.assertTrue(report["dump"]["complete"], report["dump"]["gaps"])
        return dict(found)

    def preloaded(self, mode):
        program = harness.PROGRAMS / "browser" / "mini_browser"
        run = self.memlog(program, options=("-q", "--no-page", f"--memlog={mode}"))
        self.assertEqual(run.code, 0, run.err)
        return run

    def linked(self, mode, *threads):
        self.runs += 1
        folder = self.folder / f"linked{self.runs}"
        words = [str(harness.PROGRAMS / "browser" / "mini_browser_linked"), mode, str(folder), *map(str, threads)]
        answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr.decode(errors="replace"))
        return self.report(pathlib.Path(answer.stdout.decode().strip()))

    def test_every_mode_preloaded(self):
        for mode, expected in EXACT.items():
            with self.subTest(mode=mode):
                self.assertEqual(self.profiled(self.exit_report(self.preloaded(mode))), expected)

    def test_every_mode_linked(self):
        for mode, expected in EXACT.items():
            with self.subTest(mode=mode):
                # Linked into each process, the zygote's too.
                self.assertEqual(self.profiled(self.linked(mode)), expected)

    def test_threads_that_allocate_while_the_client_starts(self):
        """A program that has threads already, the host's own among them: none takes the client that starts for a forked child's."""
        for _ in range(5):
            self.assertEqual(self.profiled(self.linked("browser", 3)), {"browser": 1})

    def test_none_preloads_nothing_and_writes_nothing(self):
        run = self.preloaded("none")
        self.assertEqual(list(run.folder.glob("*")) if run.folder.exists() else [], [])

    def test_sampling_modes_take_some_of_their_role_and_nothing_else(self):
        for mode, role, most in (("renderer-sampling", "renderer", 3), ("utility-sampling", "utility", 2)):
            taken = 0
            for _ in range(6):
                found = self.profiled(self.exit_report(self.preloaded(mode)))
                self.assertLessEqual(set(found), {role}, mode)
                self.assertLessEqual(found.get(role, 0), most, mode)
                taken += found.get(role, 0)
            # A third of each: all of them in six runs would be a chance under one in a million.
            self.assertLess(taken, 6 * most, mode)

    def test_who_was_not_taken_is_not_taken_in_the_middle_of_its_life(self):
        """One renderer at a time is taken: its end makes no other begin."""
        script = """
for number in $(seq 24); do
    bash -c 'for turn in 1 2 3 4 5 6 7 8; do sleep 0.1; text=$(printf %01000d $turn); done' child --type=renderer &
    sleep 0.05
done
wait
"""
        run = self.memlog("bash", "-c", script, options=("-q", "--no-page", "--memlog=renderer-sampling"))
        taken = [entry for entry in self.exit_report(run)["processes"] if entry["role"] == "renderer" and entry["total_blocks"]]
        self.assertEqual([entry["pid"] for entry in taken if not entry["from_startup"]], [])

    def test_a_role_by_rule(self):
        program = harness.PROGRAMS / "browser" / "mini_browser"
        options = ("-q", "--no-page", "--memlog=gpu", "--memlog-role=gpu=--type=utility")
        run = self.memlog(program, options=options)
        entries = [entry for entry in self.exit_report(run)["processes"] if entry["total_blocks"] >= BLOCKS]
        types = sorted(entry["command_line"][1] for entry in entries)
        self.assertEqual(types, ["--type=gpu", "--type=utility", "--type=utility"])

    def test_only_and_never_choose_by_command_line(self):
        program = harness.PROGRAMS / "browser" / "mini_browser"
        for option, expected in (("--only=--type=utility", {"utility": 2}), ("--never=--type=", {"browser": 1})):
            run = self.memlog(program, options=("-q", "--no-page", "--memlog=all", option))
            self.assertEqual(self.profiled(self.exit_report(run)), expected, option)


if __name__ == "__main__":
    unittest.main(verbosity=2)
