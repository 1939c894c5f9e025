"""The same C++ program on every allocator: operator new is seen wherever it goes, and no frame of ours is in a stack."""
import pathlib
import unittest

import harness

LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
ALLOCATORS = {
    "glibc": None,
    "jemalloc": LIBRARIES / "libjemalloc.so.2",
    "tcmalloc": LIBRARIES / "libtcmalloc_minimal.so.4",
    "mimalloc": harness.MIMALLOC,
}
# function -> (live bytes, live blocks, total bytes, total blocks); ten rounds, the first one's blocks stay.
TRUTH = {
    "plain_forms": (1001 + 1002, 2, 10 * (1001 + 1002 + 1003 + 1004), 40),
    "nothrow_forms": (2001 + 2002, 2, 10 * (2001 + 2002), 20),
    "aligned_forms": (3008 + 3072 + 3136 + 3200, 4, 10 * (3008 + 3072 + 3136 + 3200), 40),
}


class Allocators(harness.Case):
    def held_on(self, name, library):
        changes = {} if library is None else {"LD_PRELOAD": str(library)}
        arguments = ["without throwing"] if name == "mimalloc" else []
        program = harness.PROGRAMS / "oracle" / "operators"
        run = self.memlog(program, *arguments, env=self.environment(**changes))
        self.assertEqual((run.code, run.out), (0, b"done\n"), run.err)
        process = self.exit_report(run)["processes"][0]
        self.assertTrue(process["complete"], process["trouble"])
        sums = {}
        for stack in process["stacks"]:
            functions = [frame["function"] for frame in stack["frames"]]
            self.assertFalse([f for f in stack["frames"] if "libmemlog" in f["module"]], functions)
            for function in TRUTH:
                if function in functions:
                    old = sums.get(function, (0, 0, 0, 0))
                    new = (stack["live_bytes"], stack["live_blocks"], stack["total_bytes"], stack["total_blocks"])
                    sums[function] = tuple(map(sum, zip(old, new)))
        self.assertEqual(sums, TRUTH, name)


    def probed_on(self, name, library):
        """A program that asks for an allocator's own calls is told what it would be told without us. It is told by the loader, so
        our library must not define them: a weak reference would find them on every allocator."""
        changes = {} if library is None else {"LD_PRELOAD": str(library)}
        program = harness.PROGRAMS / "oracle" / "probe"
        env = self.environment(**changes)
        bare = harness.run_words([str(program)], self.folder, env, b"", harness.TIMEOUT)
        run = self.memlog(program, env=env)
        self.assertEqual((run.code, run.out), (bare.returncode, bare.stdout), run.err)
        expected = {"jemalloc": "mallocx", "tcmalloc": "tc_malloc", "mimalloc": "mi_malloc"}
        for allocator, call in expected.items():
            has_it = library.name if name == allocator else "nobody"
            self.assertIn(f"{call}: {has_it}, the same by dlsym", run.out.decode())
        process = self.exit_report(run)["processes"][0]
        self.assertEqual(process["lost_events"], 0)
        if name == "jemalloc":
            # What such calls make and free is seen, each as its own and as malloc's.
            self.assertEqual(process["unknown_frees"], 0)
            stacks = [stack for stack in process["stacks"] if stack["frames"][0]["function"] == "use_jemalloc"]
            sums = [sum(stack[figure] for stack in stacks) for figure in ("live_blocks", "total_blocks")]
            self.assertEqual(sums, [0, 2 * int(run.out.split()[-1])])


def held_on(name, library):
    return lambda self: self.held_on(name, library)


def probed_on(name, library):
    return lambda self: self.probed_on(name, library)


for _name, _library in ALLOCATORS.items():
    setattr(Allocators, f"test_what_a_program_finds_by_asking_for_allocators_on_{_name}", probed_on(_name, _library))
    setattr(Allocators, f"test_every_operator_new_is_seen_on_{_name}", held_on(_name, _library))


if __name__ == "__main__":
    unittest.main()
