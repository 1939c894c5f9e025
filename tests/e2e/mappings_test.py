"""Whose each page of a mapping is: programs that know their own mappings (tests/oracle/maps), held to the kernel's figures and to a dump's, page by page."""
import collections
import json
import os
import unittest

import dumped
import harness
import kernel
import names

CASES = {
    "anonymous": (
        "partly_touched", "untouched", "unmapped_in_front", "unmapped_behind", "unmapped_within", "gone", "fixed_over", "fixed_over_twice",
        "refused", "only_read", "two_at_once",
    ),
    "remaps": (
        "grown_in_place", "grown_and_moved", "shrunk", "moved_over_another", "part_moved", "left_its_room", "moved_twice",
    ),
    "files": ("file_private", "file_shared", "file_in_parts", "file_offset", "file_removed", "file_fixed", "libraries"),
    "sharing": (
        "copied_on_write", "shared_by_fork", "child_unmaps", "child_maps", "memfd_shared", "memfd_private", "system_v",
    ),
    "advice": (
        "huge_pages", "not_needed", "freed", "reserved", "protected", "named", "locked", "populated", "grows_down",
    ),
    "stacks": ("stacks_default", "stacks_sized", "stacks_given", "stacks_detached", "stacks_ended", "stacks_many", "stacks_c11"),
    "random": tuple(f"random{seed}" for seed in range(8)),
    "odd": ("many", "raw_call", "raw_unmap", "raw_over", "in_a_handler", "in_a_vfork_child", "by_brk", "by_malloc", "by_malloc_in_parts",
        "heap_without_brk",
    ),
}
LIBC = tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")))
LOADER = "loader"  # the client's own word for the pages of the first thread's descriptor


class Standing:
    """A case that stands still: what its processes claim, what the kernel says of them, and a dump of that moment."""

    def __init__(self, test, *program):
        process = test.memlog_ready(*program)
        claimed = [json.loads(path.read_text()) for path in sorted(test.truth_folder.glob("*-maps.json"))]
        self.claims = {one["pid"]: one["claims"] for one in claimed}
        test.wait_for("their recording", lambda: set(self.claims) <= test.recorded())
        before = {pid: kernel.smaps(pid) for pid in self.claims}
        test.command("dump")
        self.regions = {pid: kernel.smaps(pid) for pid in self.claims}
        self.resident = {
            pid: [kernel.resident(pid, claim["start"], claim["mapped_bytes"]) for claim in claims] for pid, claims in self.claims.items()
        }
        self.stacks = {pid: held_by_stacks(pid, claims, self.regions[pid]) for pid, claims in self.claims.items()}
        self.held = {pid: held_by_claims(pid, claims, self.regions[pid]) for pid, claims in self.claims.items()}
        (dump,) = test.folder.glob("dumps*/*.manual.pftrace")
        self.dump = dumped.processes(dump)
        self.entries = {entry["pid"]: entry for entry in test.report(dump)["processes"]}
        process.communicate(b"\n", harness.TIMEOUT)
        for path in [dump, *test.truth_folder.iterdir()]:
            path.unlink()
        for pid, regions in before.items():
            test.assertEqual([str(one) for one in own(regions)], [str(one) for one in own(self.regions[pid])], "it does not stand still")


def own(regions):
    """Those of which other processes change nothing."""
    return [region for region in regions if region.inode == 0]


def held_by_claims(pid, claims, regions):
    """(region, chain, name) -> [mapped, private, shared] bytes of claimed mappings."""
    held = collections.defaultdict(lambda: [0, 0, 0])
    for claim in claims:
        end = claim["start"] + claim["mapped_bytes"]
        for index, region in enumerate(regions):
            first, last = max(claim["start"], region.start), min(end, region.end)
            if claim["kind"] in ("mapped", "inherited", "zeros") and first < last:
                private, shared = kernel.resident(pid, first, last - first) if claim["kind"] != "zeros" else (0, 0)
                add(held[index, claim["chain"], claim["name"]], (last - first, private, shared))
    return held


def held_by_stacks(pid, claims, regions):
    """(region, start routine) -> private bytes of claimed stacks of threads."""
    held = collections.Counter()
    for claim in claims:
        for index, region in enumerate(regions):
            if claim["kind"] == "stack" and region.start <= claim["start"] < region.end:
                held[index, claim["chain"]] += kernel.resident(pid, claim["start"], claim["mapped_bytes"])[0]
    return held


def add(sums, more):
    for i, value in enumerate(more):
        sums[i] += value


def held_by_dump(process, chains):
    """The same of the dump's holdings by a stack of these programs, and (chain "") of what was mapped before a fork."""
    held = collections.defaultdict(lambda: [0, 0, 0])
    for one in process.holdings:
        if process.strings[one["string"]] == LOADER:
            continue
        chain = names.chain(process.frames(one["node"]))
        if dumped.HOLDING_KINDS[one["kind"]] == "mapped" and (chain or not one["node"]):
            known = next((claimed for claimed in chains if (chain + "<").startswith(claimed + "<")), chain)
            add(held[one["region"], known, process.strings[one["string"]]], (one["mapped_bytes"], one["private_bytes"], one["shared_bytes"]))
    return held


class Mappings(harness.Case):
    def command(self, *words):
        answer = harness.run_words([str(harness.MEMLOG), *words], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)

    def recorded(self):
        """Who is recorded by now: a program may be ready before the service knows it."""
        answer = harness.run_words([str(harness.MEMLOG), "ps", "--json"], self.folder, self.environment(), b"", harness.TIMEOUT)
        return {entry["pid"] for entry in json.loads(answer.stdout)["processes"] if entry["recording"]}

    def check(self, *program):
        standing = Standing(self, *program)
        self.assertTrue(standing.claims)
        for pid, claims in standing.claims.items():
            self.assertIn(pid, standing.entries)
            self.check_claims(claims, standing.resident[pid])
            self.check_regions(standing.dump[pid].regions, standing.regions[pid])
            self.check_sums(standing.entries[pid]["memory"], standing.dump[pid].regions, standing.regions[pid])
            self.check_cells(standing.dump[pid])
            self.check_holdings(standing.dump[pid], standing.held[pid])
            self.check_stacks(standing.dump[pid], standing.stacks[pid])
            self.check_unexplained(standing.entries[pid]["memory"], claims, standing.resident[pid])

    def check_claims(self, claims, resident):
        """The oracle is right about itself."""
        for claim, (private, shared) in zip(claims, resident, strict=True):
            if claim["kind"] != "zeros":
                self.assertIn(claim["private_bytes"], (-1, private), claim)
                self.assertIn(claim["shared_bytes"], (-1, shared), claim)

    def check_regions(self, told, regions):
        """Each mapping stands in the dump, with the kernel's figures. Which pages of a file others have mapped changes with them."""
        self.assertEqual([(one["start"], one["end"], one["name"]) for one in told], [(one.start, one.end, one.name) for one in regions])
        for one, region in zip(told, regions, strict=True):
            self.assertEqual(one["resident_kb"], region.kb["Rss"], region)
            self.assertEqual(one["size_kb"], region.kb["Size"], region)
            self.assertEqual(one["swap_kb"], region.kb["Swap"], region)
            if region.inode == 0:
                self.assertEqual(one["private_clean_kb"] + one["private_dirty_kb"], region.private_kb, region)
                self.assertEqual(one["proportional_kb"], region.kb["Pss"], region)
            self.assertLessEqual(one["heap_private_bytes"], one["heap_pages_private_bytes"], region)
            self.assertLessEqual(one["heap_pages_private_bytes"], 1024 * (one["private_clean_kb"] + one["private_dirty_kb"]), region)

    def check_sums(self, memory, told, regions):
        """Nothing is left over: components, mappings, and the kernel have one sum."""
        self.assertTrue(memory["heap_known"])
        self.assertFalse(memory["heap_estimated"])
        self.assertEqual(memory["moved_bytes"], 0)
        for figure in ("private_bytes", "shared_bytes", "proportional_bytes", "swapped_bytes"):
            self.assertEqual(sum(one[figure] for one in memory["components"]), memory[figure], figure)
        self.assertEqual(1024 * sum(one["private_clean_kb"] + one["private_dirty_kb"] for one in told), memory["private_bytes"])
        self.assertEqual(1024 * sum(one["shared_clean_kb"] + one["shared_dirty_kb"] for one in told), memory["shared_bytes"])
        self.assertEqual(1024 * sum(one["proportional_kb"] for one in told), memory["proportional_bytes"])
        kernels = kernel.totals(regions)
        self.assertEqual(memory["private_bytes"] + memory["shared_bytes"], kernels["private_bytes"] + kernels["shared_bytes"])
        self.assertEqual(memory["swapped_bytes"], kernels["swapped_bytes"])

    def check_cells(self, process):
        """What stacks hold of pages by their blocks is what blocks hold of the mappings, exactly."""
        def regions(figure):
            return sum(region[figure] for region in process.regions)

        def cells(figure):
            return sum(cell[figure] for cell in process.cells)

        self.assertEqual(cells("resident_private_bytes"), regions("heap_private_bytes"))
        self.assertEqual(cells("resident_shared_bytes"), regions("heap_shared_bytes"))
        beyond = regions("heap_pages_private_bytes") + regions("heap_pages_shared_bytes") - regions("heap_private_bytes") - regions("heap_shared_bytes")
        self.assertEqual(cells("waste_bytes"), beyond)
        for cell in process.cells:
            self.assertLessEqual(cell["resident_private_bytes"] + cell["resident_shared_bytes"], cell["live_bytes"])

    def check_holdings(self, process, claimed):
        """Each owner has of each mapping what it claims, to the page, and nobody else has anything."""
        held = held_by_dump(process, {chain for _, chain, _ in claimed})
        self.assertEqual(dict(held), dict(claimed))

    def check_stacks(self, process, claimed):
        """Each thread's stack bears its start routine's name, and has its pages. The C library keeps others, of threads that have ended."""
        held = collections.Counter()
        for one in process.holdings:
            if dumped.HOLDING_KINDS[one["kind"]] == "stack":
                held[one["region"], names.routine(process.frames(one["node"]))] += one["private_bytes"]
        self.assertEqual({key: held[key] for key in claimed}, dict(claimed))
        self.assertLessEqual({chain for _, chain in held}, {chain for _, chain in claimed} | {"end_at_once"})

    def check_unexplained(self, memory, claims, resident):
        private = {one["name"]: one["private_bytes"] for one in memory["components"]}
        unseen = sum(found[0] for claim, found in zip(claims, resident, strict=True) if claim["kind"] == "unhooked")
        # The loader of newer libcs takes one page more for its tables of versions, which nothing that is public leads to.
        spare = 4096 if LIBC >= (2, 40) else 0
        self.assertIn(private["other anonymous"] - unseen, {0, spare})

    def check_cases(self, group):
        for case in CASES[group]:
            with self.subTest(case):
                self.check(harness.PROGRAMS / "oracle" / "maps", case)

    def test_anonymous_mappings_and_what_is_left_of_them(self):
        self.check_cases("anonymous")

    def test_mappings_that_grow_move_and_shrink(self):
        self.check_cases("remaps")

    def test_files(self):
        self.check_cases("files")

    def test_memory_that_several_processes_have(self):
        self.check_cases("sharing")

    def test_what_a_program_advises_and_names(self):
        self.check_cases("advice")

    def test_stacks_of_threads(self):
        self.check_cases("stacks")

    def test_mappings_made_where_nobody_looks(self):
        self.check_cases("odd")

    def test_mappings_made_moved_and_cut_at_random(self):
        self.check_cases("random")

    def test_mappings_made_before_main(self):
        self.check(harness.PROGRAMS / "oracle" / "maps_early")

    def test_mappings_made_by_a_library_that_is_preloaded_as_well(self):
        library = harness.PROGRAMS / "oracle" / "libmaps_early.so"
        self.check("/usr/bin/env", f"LD_PRELOAD={library}", harness.PROGRAMS / "oracle" / "maps_early")


if __name__ == "__main__":
    unittest.main()
