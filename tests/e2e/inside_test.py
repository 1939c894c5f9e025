"""Programs that bring their allocator inside their executable, or call functions that only it has: hooked at the functions' entries,
and exact by the programs' own books (tests/oracle/inside.c)."""
# runner: no second chance
import os
import pathlib
import shutil
import subprocess
import unittest

import harness
import truth

ORACLE = harness.PROGRAMS / "oracle"
BLOCK_BYTES = 32  # what a block takes beyond its size, at most, as the report counts
SAMPLED = "--memlog-sampling-rate=16K"
RUSTC = shutil.which("rustc") or shutil.which("rustc", path=str(pathlib.Path.home() / ".cargo/bin"))
# Rust with jemalloc as its allocator, as its server programs have it.
RUST = r"""
use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
#[link(name = "jemalloc_pic", kind = "static")]
#[link(name = "stdc++")]
#[link(name = "m")]
extern "C" {
    fn mallocx(size: usize, flags: i32) -> *mut u8;
    fn rallocx(block: *mut u8, size: usize, flags: i32) -> *mut u8;
    fn sdallocx(block: *mut u8, size: usize, flags: i32);
}
struct Jemalloc;
unsafe impl GlobalAlloc for Jemalloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 { mallocx(layout.size(), layout.align().trailing_zeros() as i32) }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 { rallocx(block, size, layout.align().trailing_zeros() as i32) }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) { sdallocx(block, layout.size(), layout.align().trailing_zeros() as i32) }
}
#[global_allocator]
static GLOBAL: Jemalloc = Jemalloc;

#[no_mangle]
#[inline(never)]
pub fn keep_vectors() -> Vec<Vec<u8>> {
    let mut all = Vec::with_capacity(1000);
    for i in 0..1000usize { all.push(black_box(vec![7u8; 1000 + i])); }
    for i in (0..1000).step_by(2) { all[i] = Vec::new(); }
    all
}
#[no_mangle]
#[inline(never)]
pub fn grow_string() -> String {
    let mut text = String::with_capacity(16);
    while text.len() < 100_000 { text.push_str("0123456789abcdef"); }
    text.shrink_to_fit();
    black_box(text)
}
fn main() {
    let kept = std::thread::spawn(keep_vectors).join().unwrap();
    let text = grow_string();
    println!("{} {}", black_box(&kept).iter().map(|v| v.capacity()).sum::<usize>(), black_box(&text).capacity());
    std::process::exit(0);
}
"""

# An allocator inside the program that calls through a table of functions. So many of its callers have malloc put into them.
TABLE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char room[1 << 22];
static size_t used;
static void *take(size_t bytes) {
    char *block = room + used + 16;
    ((size_t *)block)[-2] = bytes;
    used += (bytes + 31) & ~(size_t)15;
    return block;
}
static void *take_clear(size_t count, size_t bytes) { return memset(take(count * bytes), 0, count * bytes); }
static void *take_again(void *block, size_t bytes) {
    size_t had = block != 0 ? ((size_t *)block)[-2] : 0;
    return memcpy(take(bytes), block != 0 ? block : room, had < bytes ? had : bytes);
}
static void let_go(void *block) { (void)block; }
static const struct table {
    void *(*take)(size_t);
    void *(*take_clear)(size_t, size_t);
    void *(*take_again)(void *, size_t);
    void (*let_go)(void *);
} first = {take, take_clear, take_again, let_go};
static const struct table *volatile head = &first;
__attribute__((noinline)) void *malloc(size_t bytes) { return head->take(bytes); }
__attribute__((noinline)) void free(void *block) { head->let_go(block); }
__attribute__((noinline)) void *calloc(size_t count, size_t bytes) { return head->take_clear(count, bytes); }
__attribute__((noinline)) void *realloc(void *block, size_t bytes) { return head->take_again(block, bytes); }
int main(void) {
    static void *volatile kept;
#pragma GCC unroll 1000
    for (int i = 0; i < PLACES; i++) {
        kept = head->take(16);
    }
    free(malloc(100));
    return puts("done") < 0;
}
"""

# An allocator inside the program, of one reservation. What the compiler has put into a caller of malloc, as link-time optimization
# does it, is `served` here: its blocks come past every function that has a name. It forks, and the child holds so many MiB, the way it is told.
PAST = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static char *room;
static size_t used;
static volatile size_t calls, frees;
static inline __attribute__((always_inline)) void *served(size_t bytes) {
    bytes = (bytes + 31) & ~(size_t)15;
    if (room == 0) {
        room = mmap(0, 1 << 28, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    char *block = room + used;
    used += bytes;
    *(size_t *)block = bytes - 16;
    return block + 16;
}
__attribute__((noinline)) void *malloc(size_t bytes) { calls = calls + 1; return served(bytes); }
__attribute__((noinline)) void free(void *block) { if (block != 0) { frees = frees + 1; } }
__attribute__((noinline)) void *calloc(size_t count, size_t bytes) { calls = calls + 1; return memset(served(count * bytes), 0, count * bytes); }
__attribute__((noinline)) void *realloc(void *block, size_t bytes) {
    calls = calls + 1;
    void *moved = served(bytes);
    if (block != 0) {
        size_t had = ((size_t *)block)[-2];
        memcpy(moved, block, had < bytes ? had : bytes);
    }
    return moved;
}
int main(int count, char **words) {
    for (int i = 0; i < 1000; i++) {
        memset(malloc(1000), 1, 1000);
    }
    pid_t child = fork();
    if (child != 0) {
        int status = 0;
        return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 1;
    }
    for (int i = 0; i < 16 * atoi(words[2]); i++) {
        memset(words[1][0] == 'p' ? served(65536) : malloc(65536), 1, 65536);
    }
    free(malloc(1));
    char nothing;
    return write(1, "ready\n", 6) == 6 && read(0, &nothing, 1) >= 0 ? 0 : count;
}
"""


class Inside(harness.Case):
    def hold(self, name, options=()):
        """Run it under memlog and demand what its books say; returns the report."""
        for old in self.truth_folder.iterdir():
            old.unlink()
        run = self.memlog(ORACLE / name, "fork", options=("-q", "--no-page", *options))
        self.assertEqual(run.code, 0, run.err)
        report = self.exit_report(run)
        written = truth.load(self.truth_folder)
        self.assertEqual(len(written), 2)
        # What an allocator that is linked in allocates before main is its own.
        problems = [one for one in truth.compare(report, written) if "<_GLOBAL__sub_I_" not in one]
        self.assertFalse(problems, f"{len(problems)} differences:\n" + "\n".join(problems[:40]))
        return report

    def parent(self, report):
        return next(entry for entry in report["processes"] if entry["exit_code"] == 0)

    def assert_seen(self, report):
        for entry in report["processes"]:
            self.assertEqual(entry["coverage"]["unseen"], "", entry["command_line"])
        self.assertTrue(report["dump"]["complete"], report["dump"])
        self.assertTrue(report["dump"]["covered"], report["dump"])

    def test_an_allocator_by_libcs_names(self):
        report = self.hold("inside_own")
        self.assert_seen(report)
        self.assertEqual(self.parent(report)["coverage"]["allocator"], "inside the executable")

    def test_jemalloc_with_calls_of_its_own(self):
        self.assert_seen(self.hold("inside_jemalloc"))

    @unittest.skipUnless(RUSTC, "no rustc here")
    def test_a_rust_program_with_jemalloc(self):
        (self.folder / "served.rs").write_text(RUST, encoding="utf-8")
        subprocess.run([RUSTC, "-O", "-L", f"/usr/lib/{os.uname().machine}-linux-gnu", "-o", "served", "served.rs"], cwd=self.folder, check=True, capture_output=True)
        run = self.memlog(self.folder / "served")
        self.assertEqual((run.code, run.out), (0, b"750000 100000\n"), run.err)
        report = self.exit_report(run)
        self.assert_seen(report)
        (entry,) = report["processes"]
        self.assertEqual(entry["coverage"]["allocator"], "inside the executable")
        # A thread's vectors of 1,000 to 1,999 bytes, half of them given back, in a list; a text that grows by doubling, and shrinks.
        doubled = [16 << i for i in range(14)]
        truths = {"keep_vectors": (24 * 1000 + sum(range(1001, 2000, 2)), 501, 24 * 1000 + sum(range(1000, 2000)), 1001),
                  "grow_string": (100_000, 1, sum(doubled) + 100_000, len(doubled) + 1)}
        for function, truth_of in truths.items():
            stacks = [stack for stack in entry["stacks"] if any(frame.get("function") == function for frame in stack["frames"])]
            figures = tuple(sum(stack[figure] for stack in stacks) for figure in ("live_bytes", "live_blocks", "total_bytes", "total_blocks"))
            self.assertEqual(figures, truth_of, function)

    def test_mimalloc_with_calls_of_five_arguments(self):
        self.assert_seen(self.hold("inside_mimalloc"))

    def test_tcmalloc_by_its_prefix(self):
        self.assert_seen(self.hold("inside_tcmalloc"))

    def test_a_family_that_people_name(self):
        self.assert_seen(self.hold("inside_pool", options=("--allocator=pool=pool_",)))

    def test_without_its_name_nobody_knows_it(self):
        run = self.memlog(ORACLE / "inside_pool", options=("-q", "--no-page"))
        report = self.exit_report(run)
        self.assertNotIn("pool_malloc", str(self.parent(report)["stacks"]))

    def child_that_holds(self, *words):
        """Both processes at a dump, while the child of PAST holds what it was told to."""
        (self.folder / "past.c").write_text(PAST, encoding="utf-8")
        subprocess.run(["gcc", "-O1", "-fno-builtin", "-rdynamic", "-o", "past", "past.c"], cwd=self.folder, check=True)
        process = self.memlog_ready(self.folder / "past", *words)
        answer = harness.run_words([str(harness.MEMLOG), "dump"], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        report = self.report(sorted(process.memlog_folder.glob("*.manual.pftrace"))[0])
        self.go(process)
        self.assertEqual(process.wait(harness.TIMEOUT), 0)
        parent, child = sorted(report["processes"], key=lambda one: one["inherited_blocks"])
        self.assertEqual((parent["live_blocks"], child["inherited_blocks"]), (1000, 1000))
        self.assertEqual([one["coverage"]["hooked_functions"] for one in (parent, child)], [4, 4])
        self.assertEqual(parent["coverage"]["unseen"], "")
        return report, child, {one["name"]: one["private_bytes"] for one in child["memory"]["components"]}

    def assert_no_more_inherited(self, child, components):
        """Than its parent's blocks can take."""
        self.assertLessEqual(components["inherited heap"], child["inherited_bytes"] + BLOCK_BYTES * child["inherited_blocks"])
        self.assertEqual(sum(components.values()), child["memory"]["private_bytes"])

    def test_one_that_is_called_past_its_names_is_not_called_seen(self):
        report, child, components = self.child_that_holds("past", 40)
        self.assertEqual(child["live_blocks"], 0)
        # The kernel may give pages of 2 MiB.
        self.assertRegex(child["coverage"]["unseen"], r"^(39|4[0-3])\.\d MiB private memory of the allocator inside the executable holds no block that "
                         r"memlog saw, and it never saw more than \S+ [KM]iB at once: calls go past its functions \(inlined by the compiler\?\)$")
        self.assertFalse(report["dump"]["covered"])
        self.assertTrue(report["dump"]["complete"])
        self.assert_no_more_inherited(child, components)
        self.assertGreater(components["allocator slack"], 38 << 20)

    def test_one_that_the_compiler_has_put_into_its_callers_is_not_called_seen(self):
        """Though its pages hold hardly more than memlog saw. By its names it calls through the same table."""
        for places, unseen in ((200, "the compiler has put functions of the allocator inside the executable into their callers: blocks of these calls "
                                     "are not seen"), (40, "")):
            (self.folder / "table.c").write_text(TABLE, encoding="utf-8")
            subprocess.run(["gcc", "-O1", "-fno-builtin", "-rdynamic", f"-DPLACES={places}", "-o", "table", "table.c"], cwd=self.folder, check=True)
            run = self.memlog(self.folder / "table")
            self.assertEqual((run.code, run.out), (0, b"done\n"), run.err)
            (entry,) = self.exit_report(run)["processes"]
            self.assertEqual((entry["coverage"]["unseen"], entry["coverage"]["hooked_functions"], entry["complete"]), (unseen, 4, True))

    def test_one_that_is_called_by_its_names_is_called_seen(self):
        report, child, components = self.child_that_holds("by name", 40)
        self.assertEqual((child["live_blocks"], child["coverage"]["unseen"]), (16 * 40, ""))
        self.assertTrue(report["dump"]["covered"], report["dump"]["uncovered"])
        self.assert_no_more_inherited(child, components)
        self.assertGreaterEqual(components["heap"], 40 << 20)

    def test_one_that_cannot_be_moved_is_left_alone_and_named(self):
        run = self.memlog(ORACLE / "inside_refused", "fork", options=("-q", "--no-page", "--allocator=pool=pool_"))
        self.assertEqual((run.code, run.out), (0, b""), run.err)
        report = self.exit_report(run)
        self.assertIn("could not hook: pool_free: an instruction at its entry", self.parent(report)["coverage"]["unseen"])
        self.assertFalse(report["dump"]["covered"])

    def test_one_whose_callers_know_its_registers_keeps_them(self):
        sizes = [100 + i for i in range(1000)]  # as tests/oracle/inside_kept.c takes them, and frees each second one
        for options in ((), (SAMPLED,), ("--memlog=manual",)):
            run = self.memlog(ORACLE / "inside_kept", options=("-q", "--no-page", "--allocator=pool=pool_", *options))
            self.assertEqual(run.code, 0, (options, run.err))
            if not options:
                entry = self.parent(self.exit_report(run))
                self.assertEqual(entry["coverage"]["hooked_functions"], 2, entry["coverage"])
                self.assertEqual((entry["total_blocks"], entry["total_bytes"]), (len(sizes), sum(sizes)))
                self.assertEqual((entry["live_blocks"], entry["live_bytes"]), (len(sizes) // 2, sum(sizes[1::2])))
                self.assertEqual(entry["unknown_frees"], 0)

    def test_names_of_an_allocators_are_not_an_allocator(self):
        run = self.memlog(ORACLE / "inside_others", options=("-q", "--no-page"))
        self.assertEqual(run.code, 0, run.err)
        coverage = self.parent(self.exit_report(run))["coverage"]
        self.assertEqual((coverage["hooked_functions"], coverage["unseen"]), (0, ""))

    def test_one_whose_free_is_chosen_at_its_start_is_left_alone_and_named(self):
        run = self.memlog(ORACLE / "inside_chosen", options=("-q", "--no-page"))
        self.assertEqual(run.code, 0, run.err)
        parent = self.parent(self.exit_report(run))
        self.assertEqual(parent["coverage"]["hooked_functions"], 0)
        self.assertIn("could not hook: je_free: the program chooses it", parent["coverage"]["unseen"])
        self.assertNotIn("je_malloc", str(parent["stacks"]))

    def test_executables_are_left_as_they_are_where_that_is_asked(self):
        run = self.memlog(ORACLE / "inside_own", options=("-q", "--no-page", "--allocator=off"))
        report = self.exit_report(run)
        self.assertIn("own malloc is called instead of memlog's", self.parent(report)["coverage"]["unseen"])

    def test_a_sample_of_it_is_fair(self):
        exact = self.parent(self.hold("inside_own"))["total_bytes"]
        run = self.memlog(ORACLE / "inside_own", options=("-q", "--no-page", SAMPLED))
        sampled = self.parent(self.exit_report(run))["total_bytes"]
        self.assertAlmostEqual(sampled / exact, 1, delta=0.2)


if __name__ == "__main__":
    unittest.main()
