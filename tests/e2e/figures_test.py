"""Figures that must not mislead: whose they are, and of when."""
import csv
import datetime
import json
import re
import subprocess
import unittest

import browsing
import harness

MIB = 1 << 20

# Holds 1 MiB, starts one child after the other that leaves 8 MiB behind at its end, and waits then.
SPAWNER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) static void *keep(size_t bytes) { void *p = malloc(bytes); memset(p, 1, bytes); return p; }
int main(int argc, char **argv) {
    void *own = keep(1 << 20);
    for (int i = 0; i < atoi(argv[1]); i++) {
        pid_t child = fork();
        if (child == 0) { keep(8 << 20); exit(0); }
        waitpid(child, NULL, 0);
    }
    puts("ready"); fflush(stdout);
    int c = getchar();
    free(own);
    return c == 0;
}
"""


class Figures(harness.Case):
    def build(self, source, name):
        program = self.folder / name
        built = harness.run_words(["gcc", "-g", "-O1", "-o", str(program), "-x", "c", "-"], self.folder, self.environment(), source.encode(), 60)
        self.assertEqual(built.returncode, 0, built.stderr)
        return program

    def say(self, *words):
        answer = harness.run_words([str(harness.MEMLOG), *map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout

    def spawner(self, children=4, **how):
        process = self.memlog_start(self.build(SPAWNER, "spawner"), children, stdin=subprocess.PIPE, **how)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def dump(self, *words):
        return self.say("dump", *words).decode().split()[-1]

    def end(self, process):
        self.go(process)
        process.wait(harness.TIMEOUT)


class LiveIsOfWhatRuns(Figures):
    def test_the_dead_are_not_counted_as_live(self):
        process = self.spawner()
        tree = self.report(self.dump())["tree"]
        self.assertLess(tree["live_bytes"], 2 * MIB)
        self.assertGreaterEqual(tree["left_bytes"], 4 * 8 * MIB)
        self.assertLess(tree["peak_bytes"], 10 * MIB)
        self.assertLess(sum(stack["live_bytes"] for stack in tree["stacks"]), 2 * MIB)
        self.end(process)
        tree = self.exit_report_of(process)["tree"]
        self.assertEqual((tree["live_bytes"], tree["live_blocks"], tree["ended_shown"]), (0, 0, True))
        self.assertGreaterEqual(tree["left_bytes"], 4 * 8 * MIB)
        self.assertEqual(sum(stack["live_bytes"] for stack in tree["stacks"]), tree["left_bytes"])

    def exit_report_of(self, process):
        return self.report(next(process.memlog_folder.glob("*.exit.pftrace")))

    def test_every_format_shows_what_runs_and_the_rest_when_asked(self):
        process = self.spawner()
        dump = self.dump()
        tree = self.report(dump)["tree"]
        both = tree["live_bytes"] + tree["left_bytes"]
        for ended, should in ((None, tree["live_bytes"]), ("no", tree["live_bytes"]), ("yes", both)):
            words = [f"--ended={ended}"] if ended else []
            lines = self.say("convert", "--to=collapsed", *words, dump).decode().splitlines()
            self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in lines), should, ended)
            head = self.say("convert", "--to=heap", *words, dump).decode().splitlines()[0]
            self.assertEqual(int(head.split()[3]), should, ended)
            report = json.loads(self.say("report", "--json", *words, dump))
            self.assertEqual(report["tree"]["live_bytes"], tree["live_bytes"])
            self.assertEqual(sum(stack["live_bytes"] for stack in report["tree"]["stacks"]), should, ended)
            by_size = csv.DictReader(self.say("report", "--csv", "--by=size", *words, dump).decode().splitlines())
            self.assertEqual(sum(int(row["live_bytes"]) for row in by_size), should, ended)
            self.say("convert", "--to=sqlite", "-o", self.folder / "heap.db", *words, dump)
            rows = subprocess.run(["sqlite3", self.folder / "heap.db", "select sum(size) from heap_profile_allocation"], capture_output=True, check=True)
            self.assertEqual(int(rows.stdout), should, ended)
        self.end(process)

    def test_the_text_tells_live_and_left_apart(self):
        process = self.spawner()
        text = self.say("report", "--full", self.dump()).decode()
        self.assertRegex(text, r"live +1\.\d MiB .* at the dump")
        self.assertRegex(text, r"left +32\.\d MiB .* by ended processes")
        self.end(process)
        text = self.say("report", "--full", next(process.memlog_folder.glob("*.exit.pftrace"))).decode()
        self.assertNotRegex(text, r"\n  live ")
        self.assertRegex(text, r"left +32\.\d MiB .* at the exit of each, never freed")
        self.assertIn("Who held what was left at exit", text)

    def test_a_diff_counts_alike_on_both_sides(self):
        process = self.spawner()
        before = self.dump()
        self.end(process)
        after = next(process.memlog_folder.glob("*.exit.pftrace"))
        diff = json.loads(self.say("diff", "--json", before, after))
        grown = [stack for stack in diff["stacks"] if stack["to"]["live_bytes"] > stack["from"]["live_bytes"] + MIB]
        self.assertEqual(grown, [])
        # Pipes cannot be read again, whichever side must count as the other does.
        script = '"$0" diff --json <(cat "$1") <(cat "$2")'
        for sides in ((before, after), (after, before)):
            piped = harness.run_words(
                ["bash", "-c", script, str(harness.MEMLOG), *map(str, sides)], self.folder, self.environment(), b"", harness.TIMEOUT)
            self.assertEqual(piped.returncode, 0, piped.stderr)
            self.assertEqual(json.loads(piped.stdout)["stacks"], json.loads(self.say("diff", "--json", *sides))["stacks"])

    def test_metrics_and_the_page_tell_live_and_left_apart(self):
        process = self.spawner(options=())
        log = self.folder / f"stderr{self.runs}"
        page = browsing.Page(self.wait_for("the page", lambda: re.search(r"^memlog: page: (http\S+)$", log.read_text(), re.M))[1])
        told = {}

        def told_alike():
            """It goes on behind its word: to read its next one, which takes a buffer."""
            tree = page.json("/api/v1/processes")["tree"]
            lines = page.ask("/metrics").body.decode().splitlines()
            metrics = dict(line.rsplit(" ", 1) for line in lines if line.startswith("memlog_tree"))
            told.update(page=(tree["live_bytes"], tree["left_bytes"]),
                        metrics=(int(metrics["memlog_tree_live_bytes"]), int(metrics["memlog_tree_left_bytes"])))
            return told["page"] == told["metrics"]

        self.wait_for("the same figures", told_alike, seen=lambda: told)
        live, left = told["page"]
        self.assertLess(live, 2 * MIB)
        self.assertGreaterEqual(left, 4 * 8 * MIB)
        self.end(process)


# argv[1]: a library whose functions have no names; each argument behind it is a child that holds that many MiB with all the others.
FAMILY = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int count = argc - 2, go[2], ready[2];
    if (strcmp(argv[1], "--child") == 0) {
        char *kept = malloc((size_t)atoi(argv[3]) << 20), c = 0;
        __asm__ volatile("" : : "r"(kept) : "memory");
        if (write(8, "x", 1) != 1 || read(7, &c, 1) < 0) { return 1; }
        return 0;
    }
    if (pipe(go) || pipe(ready)) { return 1; }
    for (int i = 0; i < count; i++) {
        if (fork() == 0) {
            dup2(go[0], 7); dup2(ready[1], 8); close(go[1]);
            execl(argv[0], argv[0], "--child", "-quiet", argv[2 + i], (char *)NULL);
        }
    }
    for (int i = 0; i < count; i++) { char c; if (read(ready[0], &c, 1) != 1) { return 1; } }
    close(go[1]);
    while (wait(NULL) > 0) {}
    return 0;
}
"""

NAMELESS = r"""
#include <stdlib.h>
static __attribute__((noinline)) void *deepest(size_t n) { void *p = malloc(n); __asm__ volatile("" : : "r"(p) : "memory"); return p; }
static __attribute__((noinline)) void *deeper(size_t n) { void *p = deepest(n); __asm__ volatile("" : : "r"(p) : "memory"); return p; }
void *exported(size_t n) { void *p = deeper(n); __asm__ volatile("" : : "r"(p) : "memory"); return p; }
"""

CALLER = r"""
#include <dlfcn.h>
#include <stddef.h>
void *(*get)(size_t);
__attribute__((noinline)) void *eval_frame(size_t n) { void *p = get(n); __asm__ volatile("" : : "r"(p) : "memory"); return p; }
int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW);
    get = *(void *(**)(size_t))((char *)dlsym(library, "table"));
    return eval_frame(9 << 20) == NULL;
}
"""


class WhoHeldIt(Figures):
    def family(self):
        run = self.memlog(self.build(FAMILY, "family"), "--parent", 3, 5, 7)
        return run.dumps()[0], self.exit_report(run)

    def test_each_process_says_what_it_held_at_the_trees_peak(self):
        _, report = self.family()
        children = {entry["command_line"][3]: entry for entry in report["processes"] if "--child" in entry["command_line"]}
        for mebibytes, entry in children.items():
            held = sum(stack["live_bytes"] for stack in entry["stacks"] if stack["live_bytes"] >= MIB)
            self.assertEqual(held, int(mebibytes) * MIB)
            self.assertGreaterEqual(entry["held_at_tree_peak_bytes"], held)
        for unit in ("bytes", "blocks"):
            held = sum(entry[f"held_at_tree_peak_{unit}"] for entry in report["processes"])
            self.assertEqual(held, report["tree"][f"peak_{unit}"])

    def test_the_text_tells_four_of_one_name_apart(self):
        dump, _ = self.family()
        text = self.say("report", "--full", dump).decode()
        table = text.partition("Processes")[2].partition("Who h")[0]
        self.assertIn("at peak", table)
        self.assertRegex(table, r"(?m)^ {9}7$")
        self.assertLess(table.index("\n         7\n"), table.index("\n         3\n"))
        self.assertNotIn("browser", table)
        self.assertNotIn("other", table)
        rows = json.loads(self.say("report", "--json", "--by=process", "--metric=peak", dump))["rows"]
        self.assertEqual([row["command"].split()[-1] for row in rows[:3]], ["7", "5", "3"])
        self.assertTrue(rows[0]["name"].startswith("family "))
        self.assertGreaterEqual(rows[0]["peak_bytes"], 7 * MIB)

    def test_processes_are_counted_not_their_images(self):
        run = self.memlog("/bin/sh", "-c", 'exec "$@"', "sh", self.build(FAMILY, "family"), "--parent", 3, 5, 7)
        self.assertEqual([entry["state"] for entry in self.exit_report(run)["processes"]].count("replaced"), 1)
        self.assertIn("4 processes in 5 program images", self.say("report", "--full", run.dumps()[0]).decode().splitlines()[0])

    def test_frames_without_names_keep_the_blame(self):
        library = self.folder / "libnameless.so"
        source = NAMELESS + "void *(*const table)(size_t) = exported;\n"
        words = ["gcc", "-O1", "-fno-optimize-sibling-calls", "-shared", "-fPIC", "-s", "-fvisibility=hidden", "-o", str(library), "-x", "c", "-"]
        source = source.replace("void *(*const table)", '__attribute__((visibility("default"))) void *(*const table)').replace("void *exported", "static void *exported")
        built = harness.run_words(words, self.folder, self.environment(), source.encode(), 60)
        self.assertEqual(built.returncode, 0, built.stderr)
        run = self.memlog(self.build(CALLER, "caller"), library)
        text = self.say("report", "--summary", run.dumps()[0]).decode()
        self.assertRegex(text, r"9\.0 MiB +\(no names in libnameless\.so\) .*\n +< eval_frame .*< main")


# Of version 2 `guilty` is new; everything else is as it was.
BUILDS = r"""
#include <stdlib.h>
void *library_keep(size_t bytes);
__attribute__((noinline)) void *keep(size_t bytes) { void *p = malloc(bytes); __asm__ volatile("" : : "r"(p) : "memory"); return p; }
__attribute__((noinline)) void *innocent(void) { void *p = keep(3 << 20); __asm__ volatile("" : : "r"(p) : "memory"); return p; }
__attribute__((noinline)) void *guilty(void) { void *p = keep(5 << 20); __asm__ volatile("" : : "r"(p) : "memory"); return p; }
int main(void) {
    void *all = innocent();
    if (VERSION == 2) { guilty(); }
    library_keep(2 << 20);
    return all == NULL;
}
"""

LIBRARY = r"""
#include <stdlib.h>
void *library_keep(size_t bytes) { void *p = malloc(bytes); __asm__ volatile("" : : "r"(p) : "memory"); return p; }
"""


class TwoBuilds(Figures):
    def make(self, version):
        folder = self.folder / f"v{version}"
        folder.mkdir()
        library = folder / f"libkeep.so.1.{version}"
        for words, source in (
            (["-shared", "-fPIC", f"-Wl,-soname,{library.name}", "-o", str(library)], LIBRARY),
            ([f"-DVERSION={version}", "-o", str(folder / f"server-1.{version}"), "-x", "c", "-", "-x", "none", str(library), f"-Wl,-rpath,{folder}"], BUILDS),
        ):
            words = ["gcc", "-g", "-O1", "-fno-optimize-sibling-calls", *words] + (["-x", "c", "-"] if "-" not in words else [])
            built = harness.run_words(words, self.folder, self.environment(), source.encode(), 60)
            self.assertEqual(built.returncode, 0, built.stderr)
        return self.memlog(folder / f"server-1.{version}").dumps()[0]

    def test_builds_of_other_file_names_differ_by_what_changed_alone(self):
        diff = json.loads(self.say("diff", "--json", self.make(1), self.make(2)))
        large = [stack for stack in diff["stacks"] if max(stack[side]["total_bytes"] for side in ("from", "to")) >= MIB]
        told = {tuple(frame["function"] for frame in stack["frames"][:2]): (stack["from"]["total_bytes"], stack["to"]["total_bytes"]) for stack in large}
        self.assertEqual(told, {
            ("keep", "innocent"): (3 * MIB, 3 * MIB), ("keep", "guilty"): (0, 5 * MIB), ("library_keep", "main"): (2 * MIB, 2 * MIB),
        })


# Holds 40 MiB for a moment, again and again, and a little for good.
BURSTS = r"""
#include <stdlib.h>
#include <time.h>
__attribute__((noinline)) static void *burst(size_t bytes) { void *p = malloc(bytes); __asm__ volatile("" : : "r"(p) : "memory"); return p; }
int main(void) {
    struct timespec rest = {0, 300000000};
    void *kept = malloc(70000);
    __asm__ volatile("" : : "r"(kept) : "memory");
    for (int i = 0; i < 8; i++) {
        nanosleep(&rest, NULL);
        if (i == 4) { free(burst(40 << 20)); }
    }
    return kept == NULL;
}
"""


class Times(Figures):
    def test_the_timelines_maximum_is_the_reports_peak_and_says_whose_it_was(self):
        run = self.memlog(self.build(BURSTS, "bursts"))
        dump = run.dumps()[0]
        report = self.exit_report(run)
        timeline = json.loads(self.say("timeline", "--json", dump))
        most = max(point[2] for point in timeline["tree"]["points"])
        self.assertEqual(most, report["tree"]["peak_bytes"])
        (process,) = timeline["processes"]
        self.assertEqual(max(point[2] for point in process["points"]), report["processes"][0]["peak_bytes"])
        self.assertEqual((timeline["passed"][0]["function"], timeline["passed"][0]["most_bytes"]), ("burst", 40 * MIB))
        text = self.say("timeline", dump).decode()
        self.assertRegex(text, r"(?s)What came and went.*40\.0 MiB +burst < main")

    def test_every_time_that_is_printed_is_taken_back(self):
        run = self.memlog(self.build(BURSTS, "bursts"))
        dump = run.dumps()[0]
        timeline = json.loads(self.say("timeline", "--json", dump))
        text = self.say("report", dump).decode() + self.say("timeline", dump).decode() + self.say("timeline", "--csv", dump).decode()
        times = re.findall(r"\b(?:\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d(?:\.\d+)?\S?", text)
        self.assertGreater(len(times), 10)
        self.assertEqual([time for time in times if not time.endswith("Z")], [])
        first, last = timeline["first_ms"], timeline["last_ms"]
        peak = re.search(r"at (\d\d:\d\d:\d\d\.\d+Z)", text)[1]
        iso = self.exit_report(run)["tree"]["peak_time"]
        for time in (peak, iso):
            answer = json.loads(self.say("timeline", "--json", f"--from={time}", dump))
            self.assertTrue(first < answer["from_ms"] < last, (time, first, answer["from_ms"], last))
            self.assertEqual(answer["from_ms"] % 1000, int(time[-4:-1]))

    def test_the_page_takes_the_times_that_it_prints(self):
        process = self.spawner(options=())
        log = self.folder / f"stderr{self.runs}"
        page = browsing.Page(self.wait_for("the page", lambda: re.search(r"^memlog: page: (http\S+)$", log.read_text(), re.M))[1])
        whole = self.wait_for("a second", lambda: (found := page.json("/api/v1/timeline"))["last_ms"] > found["first_ms"] + 1000 and found)
        for moment in (whole["first_ms"] + 500,):
            iso = datetime.datetime.fromtimestamp(moment / 1000, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment % 1000:03}Z"
            for text in (iso, iso.partition("T")[2]):
                self.assertAlmostEqual(page.json(f"/api/v1/timeline?from={text}")["from_ms"], moment, delta=1)
        self.assertEqual(page.ask("/api/v1/timeline?from=10:61:00Z").status, 400)
        self.end(process)


if __name__ == "__main__":
    unittest.main()
