"""Heaps and types that a program reports itself (memlog.h), held against the program's own books (tests/oracle/heaps.c): to the byte where
every block is recorded, within their standard errors where they are sampled; across threads and forks, beside malloc's heap."""
import collections
import json
import re
import sqlite3
import subprocess
import unittest

import harness
import imported
import pages
from estimates import MOST_DEVIATIONS, deviations

PROGRAM = harness.PROGRAMS / "oracle" / "heaps"
FIGURES = ("live_bytes", "live_blocks", "total_bytes", "total_blocks")
LINE = re.compile(r'(\S+) (\S+) "(.*)" (\d+) (\d+) (\d+) (\d+)')
PROCESSES = 3


BEHIND = r"""
#define MEMLOG_WEAK
#include <memlog.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
int main(void) {
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog filter = {sizeof(lines) / sizeof(lines[0]), lines};
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    if (!memlog_heap || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) { return 9; }
    const unsigned heap = memlog_heap("late", 1), type = memlog_type("Late");
    memlog_alloc_typed(heap, 1, 2, type);
    memlog_free(heap, 1);
    return printf("%u %u\n", heap, type) < 0;
}
"""

NAMED = r"""
#define MEMLOG_WEAK
#include <memlog.h>
int main(void) {
    memlog_alloc(memlog_heap("malloc", 1), 5, 77);
    return 0;
}
"""

# A heap for each word; each block of it is larger by one than that of the word before. One of two is freed, in each of two halves.
ALIKE = r"""
#define MEMLOG_WEAK
#include <memlog.h>
#include <stdio.h>
int main(int count, char **words) {
    for (int half = 0; half < 2; half++) {
        for (int i = 1; i < count; i++) {
            const unsigned heap = memlog_heap(words[i], 1);
            memlog_alloc(heap, 2 * half + 1, 100 + i);
            memlog_alloc(heap, 2 * half + 2, 100 + i);
            memlog_free(heap, 2 * half + 1);
        }
        printf("ready\n");
        fflush(stdout);
        getchar();
    }
    return 0;
}
"""
NAMES = ("malloc", "libc.malloc", "com.android.art", "", "pool")
OTHER_NAMES = ("[malloc, as reported]", "[libc.malloc, as reported]", "[com.android.art, as reported]", "heap 4", "pool")


class Books:
    """pid -> (heap, function, type) -> figures, and pid -> heap -> its peak."""
    def __init__(self, out):
        self.figures = collections.defaultdict(dict)
        self.peaks = collections.defaultdict(dict)
        pid = 0
        for line in out.decode().splitlines():
            words = line.split()
            found = LINE.fullmatch(line)
            if words[0] == "pid":
                pid = int(words[1])
            elif found:
                self.figures[pid][found.groups()[:3]] = tuple(map(int, found.groups()[3:]))
            else:
                self.peaks[pid][words[0]] = int(words[2])


def sums_of(process):
    """(heap, function, type) -> figures and variances; the function is the caller of memlog.h's."""
    figures = collections.defaultdict(lambda: [0] * len(FIGURES))
    variances = collections.defaultdict(lambda: [0.0] * len(FIGURES))
    for stack in process["stacks"]:
        if stack["heap"] == "malloc":
            continue
        key = (stack["heap"], stack["frames"][0]["function"], stack["type"])
        for at, figure in enumerate(FIGURES):
            figures[key][at] += stack[figure]
            variances[key][at] += stack.get(f"{figure}_error", 0) ** 2
    return figures, variances


def heap_of(process, name):
    return next(heap for heap in process["heaps"] if heap["name"] == name)


class Heaps(harness.Case):
    def run_it(self, *words, options=("-q", "--no-page")):
        run = self.memlog(PROGRAM, *map(str, words), options=options)
        self.assertEqual(run.code, 0, run.err)
        report = self.exit_report(run)
        books = Books(run.out)
        self.assertEqual(len(books.figures), PROCESSES)
        self.assertEqual({process["pid"] for process in report["processes"]}, set(books.figures))
        for process in report["processes"]:
            self.assertTrue(process["complete"], process["trouble"])
        return run, report, books

    def assert_exact(self, process, books, heaps=("pool", "handles")):
        figures, variances = sums_of(process)
        for key, truth in books.figures[process["pid"]].items():
            if key[0] in heaps:
                self.assertEqual(tuple(figures[key]), truth, key)
                self.assertEqual(variances[key], [0.0] * len(FIGURES), key)
        for name in heaps:
            heap = heap_of(process, name)
            own = [books.figures[process["pid"]][key] for key in books.figures[process["pid"]] if key[0] == name]
            self.assertEqual([heap[figure] for figure in FIGURES], [sum(column) for column in zip(*own)])
            self.assertEqual(heap["peak_bytes"], books.peaks[process["pid"]][name])
            peaks = sum(stack["peak_bytes"] for stack in process["stacks"] if stack["heap"] == name)
            self.assertEqual(peaks, heap["peak_bytes"])
            self.assertEqual(heap["unknown_frees"], 1 if name == "pool" else 0)

    def assert_apart(self, process):
        """Malloc's sums are of its own stacks alone."""
        own = [stack for stack in process["stacks"] if stack["heap"] == "malloc"]
        for figure in FIGURES + ("peak_bytes",):
            self.assertEqual(sum(stack[figure] for stack in own), process[figure], figure)
            self.assertEqual(heap_of(process, "malloc")[figure], process[figure], figure)
        self.assertEqual({stack["type"] for stack in own}, {""})

    def test_every_block_of_every_heap_and_type(self):
        _, report, books = self.run_it(5000, 1)
        for process in report["processes"]:
            self.assertEqual(set(sums_of(process)[0]), set(books.figures[process["pid"]]))
            self.assertEqual([heap["name"] for heap in process["heaps"]], ["malloc", "pool", "handles"])
            self.assert_exact(process, books)
            self.assert_apart(process)
            self.assertEqual(process["unknown_frees"], 0)

    def test_a_heap_has_a_sampling_interval_of_its_own(self):
        sums = collections.defaultdict(lambda: [0] * 3)
        for seed in (2, 3):
            _, report, books = self.run_it(20000, seed, 4096)
            for process in report["processes"]:
                self.assert_exact(process, books, heaps=("pool",))
                self.assert_apart(process)
                self.assertLessEqual(heap_of(process, "handles")["unknown_frees"], 0)
                figures, variances = sums_of(process)
                for key, truth in books.figures[process["pid"]].items():
                    for at, _ in enumerate(FIGURES):
                        if key[0] == "handles":
                            sums[key, at] = [a + b for a, b in zip(sums[key, at], (figures[key][at], variances[key][at], truth[at]))]
        for what, (estimate, variance, truth) in sums.items():
            self.assertGreater(variance, 0, what)
            self.assertLess(abs(deviations(estimate, variance, truth)), MOST_DEVIATIONS, (what, estimate, truth))

    def test_malloc_is_sampled_and_the_heap_is_not(self):
        _, report, books = self.run_it(3000, 4, options=("-q", "--no-page", "--memlog-sampling-rate=4096"))
        for process in report["processes"]:
            self.assertEqual(process["sampling_bytes"], 4096)
            self.assert_exact(process, books)

    def test_a_heap_without_an_interval_of_its_own_has_mallocs(self):
        _, report, books = self.run_it(20000, 5, 0, options=("-q", "--no-page", "--memlog-sampling-rate=2048"))
        sums = [0, 0, 0]
        for process in report["processes"]:
            self.assert_exact(process, books, heaps=("pool",))
            figures, variances = sums_of(process)
            for key, truth in books.figures[process["pid"]].items():
                if key[0] == "handles":
                    sums = [a + b for a, b in zip(sums, (figures[key][2], variances[key][2], truth[2]))]
        self.assertGreater(sums[1], 0)
        self.assertLess(abs(deviations(*sums)), MOST_DEVIATIONS, sums)

    def test_without_memlog_it_does_nothing(self):
        answer = subprocess.run([str(PROGRAM), "10", "1", "1", "quiet"], env=self.environment(), stdout=subprocess.PIPE, check=False)
        self.assertEqual((answer.returncode, answer.stdout), (0, b""))

    def tell(self, *words):
        return harness.run_words([str(harness.MEMLOG), "report", *map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT)

    def told(self, dump, *options):
        answer = self.tell("--json", *options, dump)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return json.loads(answer.stdout)

    def test_the_text_says_which_heap_is_estimated(self):
        run, _, _ = self.run_it(3000, 12, 2048)
        (dump,) = run.folder.glob("*.exit.pftrace")
        self.assertIn("complete     estimated from samples (± one standard error)", self.tell("--full", "--heap=handles", dump).stdout.decode())
        self.assertIn("every block that was reported of this heap was recorded", self.tell("--full", "--heap=pool", dump).stdout.decode())
        sampled, _, _ = self.run_it(3000, 12, options=("-q", "--no-page", "--memlog-sampling-rate=4096"))
        (dump,) = sampled.folder.glob("*.exit.pftrace")
        self.assertIn("every block that was reported of this heap was recorded", self.tell("--full", "--heap=pool", dump).stdout.decode())

    def test_the_first_heap_behind_a_filter_that_forbids_mmap_is_none(self):
        """The filter would end the program."""
        source, program = self.folder / "behind.c", self.folder / "behind"
        source.write_text(BEHIND)
        subprocess.run(["gcc", "-I", str(harness.ROOT / "client"), "-o", program, source], check=True)
        run = self.memlog(program)
        self.assertEqual((run.code, run.out), (0, b"0 0\n"), run.err)

    def test_a_heap_that_is_called_as_mallocs_stands_beside_it(self):
        source, program = self.folder / "named.c", self.folder / "named"
        source.write_text(NAMED)
        subprocess.run(["gcc", "-I", str(harness.ROOT / "client"), "-o", program, source], check=True)
        (process,) = self.exit_report(self.memlog(program))["processes"]
        self.assertEqual([heap["name"] for heap in process["heaps"]], ["malloc", "[malloc, as reported]"])
        self.assertEqual(heap_of(process, "[malloc, as reported]")["live_bytes"], 77)
        self.assertEqual(heap_of(process, "malloc")["live_bytes"], process["live_bytes"])

    def test_heaps_of_any_name_are_apart_among_perfettos(self):
        """Where one of a name is malloc's, where frees of one are left out, and where it is added up by name."""
        source, program = self.folder / "alike.c", self.folder / "alike"
        source.write_text(ALIKE)
        subprocess.run(["gcc", "-I", str(harness.ROOT / "client"), "-o", program, source], check=True)
        process = self.memlog_ready(program, *NAMES)
        self.told_words("dump")
        self.go(process)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.go(process)
        self.assertEqual(process.wait(harness.TIMEOUT), 0)
        dumps = sorted(process.memlog_folder.glob("*.pftrace"))
        self.assertEqual(len(dumps), 2)
        self.told_words("convert", "--to=perfetto", "-o", "many.pftrace", *dumps)
        self.told_words("convert", "--to=sqlite", "-o", "many.db", *dumps)
        base = sqlite3.connect(self.folder / "many.db")
        trace = imported.Imported((self.folder / "many.pftrace").read_bytes())
        for number, dump in enumerate(dumps, 1):
            (entry,) = self.report(dump)["processes"]
            alone = imported.Imported(dump.read_bytes())
            self.assertEqual({row.heap for row in alone.rows}, {"libc.malloc", *OTHER_NAMES})
            # What is counted by process is counted once, however many heaps it has.
            self.assertEqual(alone.stats["heapprofd_unwind_samples", entry["pid"]], entry["events"])
            self.assertEqual(alone.stats["heapprofd_client_disconnected", entry["pid"]], int(entry["state"] != "running"))
            for place, name in enumerate(OTHER_NAMES, 1):
                wanted = (number * (100 + place), number * 2 * (100 + place))
                self.assertEqual((alone.live(entry["pid"], alone.clocks[0] + place, name), alone.total(entry["pid"], alone.clocks[0] + place, name)), wanted)
                until = trace.clocks[number - 1] + place
                self.assertEqual((trace.live(entry["pid"], until, name), trace.total(entry["pid"], until, name)), wanted)
                sums = "sum(size), sum(size * not is_free)"
                self.assertEqual(
                    base.execute(f"select {sums} from heap_profile_allocation where heap_name = ? and dump <= ?", (name, number)).fetchone(), wanted)
            self.assertEqual(trace.live(entry["pid"], trace.clocks[number - 1]), entry["live_bytes"])
            self.assertEqual(alone.live(entry["pid"], alone.clocks[0]), entry["live_bytes"])

    def told_words(self, *words):
        answer = harness.run_words([str(harness.MEMLOG), *map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)

    def test_one_heap_as_if_it_were_the_only_one(self):
        run, report, books = self.run_it(2000, 6)
        (dump,) = run.folder.glob("*.exit.pftrace")
        pool = self.told(dump, "--heap=pool")
        for process in pool["processes"]:
            self.assertEqual([heap["name"] for heap in process["heaps"]], ["pool"])
            self.assertEqual({stack["heap"] for stack in process["stacks"]}, {"pool"})
            self.assertEqual(process["peak_bytes"], books.peaks[process["pid"]]["pool"])
            self.assertEqual(process["live_bytes"], heap_of(process, "pool")["live_bytes"])
        self.assertEqual(pool["tree"]["left_bytes"], sum(process["live_bytes"] for process in pool["processes"]))
        self.assertEqual(self.told(dump, "--heap=malloc")["processes"], report["processes"])
        answer = self.tell("--heap=pond", dump)
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn(b"no process has a heap pond; memlog report --by=heap lists them", answer.stderr)

    def test_lists_by_heap_and_type(self):
        run, _, books = self.run_it(2000, 7)
        (dump,) = run.folder.glob("*.exit.pftrace")
        rows = {row["name"]: row for row in self.told(dump, "--by=heap")["rows"]}
        self.assertEqual(set(rows), {"malloc", "pool", "handles"})
        types = {row["name"]: row for row in self.told(dump, "--by=type", "--heap=handles")["rows"]}
        for name in ("pool", "handles"):
            own = [truth for figures in books.figures.values() for key, truth in figures.items() if key[0] == name]
            self.assertEqual([rows[name][figure] for figure in FIGURES], [sum(column) for column in zip(*own)])
        self.assertEqual(set(types), {"[no type]", "Node", "std::vector<Edge>"})
        nodes = [figures["handles", "take_handle", "Node"] for figures in books.figures.values()]
        self.assertEqual([types["Node"][figure] for figure in FIGURES], [sum(column) for column in zip(*nodes)])
        self.assertIn(b"Heaps by what was left", self.tell("--by=heap", dump).stdout)

    def live_by_type(self, process, heap):
        sums = collections.Counter()
        for stack in process["stacks"]:
            if stack["heap"] == heap and stack["live_bytes"]:
                sums[stack["type"] or "[unknown]"] += stack["live_bytes"]
        return dict(sums)

    def test_catapults_viewer_lists_them_and_breaks_one_down_by_type(self):
        run, report, _ = self.run_it(2000, 9)
        (dump,) = run.folder.glob("*.exit.pftrace")
        pages.install()
        site = self.folder / "site"
        pages.catapult(site)
        words = [str(harness.MEMLOG), "convert", "--to=chrome", "-o", str(site / "trace.json.gz"), str(dump)]
        self.assertEqual(harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT).returncode, 0)
        answer = pages.look("catapult.js", site, "catapult.html#pool")
        self.assertEqual((answer["complaints"], answer["warnings"]), ([], []))
        (seen,) = answer["dumps"]
        for process in report["processes"]:
            types = seen[str(process["pid"])]["types"]
            self.assertEqual(set(types), {"malloc", "pool", "handles"})
            for heap, sums in types.items():
                self.assertEqual(sums, self.live_by_type(process, heap), heap)
        # A person sees the allocators side by side, and one of them by its types, or by its stacks.
        for word in ("malloc", "pool", "handles"):
            self.assertIn(word, answer["overview"])
        self.assertRegex(answer["details"], r"Stack frame \(1\).*Object type \(3\).*clone3")
        for word in ("Node", "std::vector<Edge>", "[unknown]"):
            self.assertIn(word, answer["byType"])

    def test_sqlites_tables_have_the_names(self):
        run, report, _ = self.run_it(1000, 10)
        (dump,) = run.folder.glob("*.exit.pftrace")
        target = self.folder / "dump.sqlite"
        words = [str(harness.MEMLOG), "convert", "--to=sqlite", "-o", str(target), str(dump)]
        self.assertEqual(harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT).returncode, 0)
        rows = sqlite3.connect(target).execute(
            "SELECT pid, heap_name, sum(size), sum(count) FROM heap_profile_allocation JOIN process USING (upid) GROUP BY 1, 2").fetchall()
        truth = {(process["pid"], heap["name"].replace("malloc", "libc.malloc"), heap["live_bytes"], heap["live_blocks"])
                 for process in report["processes"] for heap in process["heaps"]}
        self.assertEqual(set(rows), truth)
        # One heap alone has its own name, too.
        words[2:2] = ["--heap=pool"]
        self.assertEqual(harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT).returncode, 0)
        rows = sqlite3.connect(target).execute(
            "SELECT pid, heap_name, sum(size), sum(count) FROM heap_profile_allocation JOIN process USING (upid) GROUP BY 1, 2").fetchall()
        self.assertEqual(set(rows), {row for row in truth if row[1] == "pool"})

    def test_pprofs_tags_have_heap_and_type(self):
        run, report, books = self.run_it(1000, 13)
        (dump,) = run.folder.glob("*.exit.pftrace")
        for heap in ("pool", None):
            target = self.folder / f"{heap}.pb.gz"
            words = [str(harness.MEMLOG), "convert", "--to=pprof", "-o", str(target), *([f"--heap={heap}"] if heap else []), str(dump)]
            self.assertEqual(harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT).returncode, 0)
            answer = subprocess.run([str(harness.pprof()), "-raw", str(target)], cwd=self.folder, env={**self.environment(), "HOME": str(self.folder)},
                                    stdout=subprocess.PIPE, text=True, check=True, timeout=harness.TIMEOUT)
            sums, at = collections.Counter(), None
            for line in answer.stdout.splitlines():
                found = re.match(r"\s*(-?\d+)\s+(-?\d+)\s+(-?\d+)\s+(-?\d+)\s+(-?\d+)\s+(-?\d+): ", line)
                at = int(found[4]) if found else at
                if "process:[" in line:
                    tags = dict(re.findall(r"(\w+):\[([^\]]*)\]", line))
                    sums[tags.get("heap", ""), tags.get("type", "")] += at
            truth = collections.Counter()
            for process in report["processes"]:
                for stack in process["stacks"]:
                    if stack["heap"] == (heap or "malloc"):
                        truth[heap or "", stack["type"]] += stack["live_bytes"]
            self.assertEqual(sums, truth)

    def test_a_diff_of_one_heap(self):
        before, _, _ = self.run_it(500, 11)
        after, report, _ = self.run_it(1000, 11)
        (one,), (other,) = before.folder.glob("*.exit.pftrace"), after.folder.glob("*.exit.pftrace")
        words = [str(harness.MEMLOG), "diff", "--json", "--heap=pool", str(one), str(other)]
        answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        grown = json.loads(answer.stdout)
        self.assertEqual(grown["to"]["tree"]["total_bytes"], sum(heap_of(process, "pool")["total_bytes"] for process in report["processes"]))
        self.assertLess(grown["from"]["tree"]["total_bytes"], grown["to"]["tree"]["total_bytes"])

    def test_a_diff_tells_types_and_heaps_apart(self):
        """Each row has on each side what --by=type or heap shows of that dump."""
        one, other = (self.memlog(PROGRAM, blocks, "1", options=("-q", "--no-page")).dumps()[0] for blocks in ("3000", "5000"))

        def diff(*options):
            words = [str(harness.MEMLOG), "diff", *options, str(one), str(other)]
            answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            return answer.stdout.decode()

        for order, title, heap in (("type", "types", ["--heap=pool"]), ("heap", "heaps", [])):
            found = json.loads(diff("--json", *heap))
            self.assertEqual("heaps" in found, not heap)
            rows = {row[order]: row for row in found[title]}
            self.assertEqual(len(rows), len(found[title]))
            changed = 0
            for side, dump in (("from", one), ("to", other)):
                told = {row["name"]: row for row in self.told(dump, f"--by={order}", *heap)["rows"]}
                self.assertLessEqual(set(told), set(rows))
                for name, row in rows.items():
                    wanted = {figure: told[name][figure] if name in told else 0 for figure in FIGURES}
                    self.assertEqual({figure: row[side][figure] for figure in FIGURES}, wanted, name)
                    changed += row["from"] != row["to"]
            self.assertGreater(changed, 0)
            (text,) = (part for part in diff(*heap).split("\n\n") if part.startswith(title.capitalize()))
            self.assertTrue(any(name in text for name in rows))

    def test_perfettos_own_tables_have_the_names(self):
        run, _, _ = self.run_it(500, 8)
        (dump,) = run.folder.glob("*.exit.pftrace")
        content = dump.read_bytes()
        for name in (b"libc.malloc", b"pool", b"handles"):
            self.assertIn(b"\x5a" + bytes([len(name)]) + name, content)  # ProfilePacket.ProcessHeapSamples.heap_name


if __name__ == "__main__":
    unittest.main(verbosity=2)
