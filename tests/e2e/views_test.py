"""How a process's whole memory is read, as --whole says."""
import json
import os
import pathlib
import signal
import subprocess
import unittest

import filtered
import harness

# Two threads that never rest: blocks come, are touched and go, and the mapping grows and shrinks.
BUSY = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
enum { BLOCKS = 4000, SIZE = 3000, MIB = 1 << 20 };
static void *churn(void *context) {
    static __thread char *blocks[BLOCKS];
    unsigned seed = (unsigned)(size_t)context;
    for (;;) {
        char **block = &blocks[rand_r(&seed) % BLOCKS];
        free(*block);
        const size_t size = 1 + (size_t)rand_r(&seed) % SIZE;
        *block = malloc(size);
        memset(*block, 1, size);
        if (rand_r(&seed) % 1000 == 0) {
            char *mapped = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(mapped, 1, MIB);
            munmap(mapped, MIB);
        }
    }
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, churn, (void *)1);
    pthread_create(&thread, NULL, churn, (void *)2);
    puts("ready");
    fflush(stdout);
    return getchar() == 'x';
}
"""
HIDDEN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
int main(void) {
    char *block = malloc(20 << 20);
    memset(block, 1, 20 << 20);
    prctl(PR_SET_DUMPABLE, 0);
    puts("ready");
    fflush(stdout);
    return getchar() == block[0];
}
"""
WAITS = "import sys; block = bytearray(8 << 20); print('ready', flush=True); sys.stdin.read()"
# Under a filter that kills for restart_syscall, in a wait with which the kernel would go on by that.
FILTERED = """
import select, sys
FILTER
waiting = select.poll()
waiting.register(0)
print("ready", flush=True)
sys.exit(7 if waiting.poll(100000) else 1)
"""


class Views(harness.Case):
    def start(self, *program, options=(), before=()):
        process = self.memlog_start(
            *program, options=("-q", "--no-page", "--dump-signal=USR2", *options), before=before, stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def start_busy(self, *options):
        source = self.folder / "busy.c"
        source.write_text(BUSY)
        harness.run_words(["gcc", "-O1", "-pthread", "-fno-builtin", "-o", str(self.folder / "busy"), str(source)], self.folder, None, b"", harness.TIMEOUT)
        return self.start(str(self.folder / "busy"), options=options)

    def pid_of(self, process):
        """Of the program."""
        words = [str(harness.MEMLOG), "ps", "--json"]
        answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
        return json.loads(answer.stdout)["processes"][0]["pid"]

    def take(self, process):
        folder = process.memlog_folder
        before = set(folder.glob("*.signal.pftrace"))
        process.send_signal(signal.SIGUSR2)
        self.wait_for("the dump", lambda: set(folder.glob("*.signal.pftrace")) - before)
        (dump,) = set(folder.glob("*.signal.pftrace")) - before
        return dump

    def dump_of(self, *options):
        process = self.start("/usr/bin/python3", "-c", WAITS, options=options)
        dump = self.take(process)
        process.communicate(b"", harness.TIMEOUT)
        return dump

    def text_of(self, dump):
        answer = harness.run_words([str(harness.MEMLOG), "report", "--full", str(dump)], self.folder, self.environment(), b"", harness.TIMEOUT)
        return " ".join(answer.stdout.decode().split())

    def test_off_reads_no_mapping_and_the_report_says_so(self):
        dump = self.dump_of("--whole=off")
        report = self.report(dump)
        (entry,) = report["processes"]
        self.assertEqual(report["dump"]["whole"], "off")
        self.assertIsNone(entry["memory"])
        self.assertIsNone(entry["memory_status"])
        self.assertIn("its parts were not read (--whole=off)", self.text_of(dump))

    def test_without_a_word_it_is_read_while_the_process_runs(self):
        dump = self.dump_of()
        report = self.report(dump)
        (entry,) = report["processes"]
        self.assertEqual(report["dump"]["whole"], "run")
        self.assertGreater(entry["memory"]["private_bytes"], 8 << 20)
        status = entry["memory_status"]
        self.assertFalse(status["unreadable"])
        self.assertGreater(status["anonymous_bytes"], 8 << 20)
        self.assertGreater(status["page_tables_bytes"], 0)
        self.assertEqual(status["kernel_stacks_bytes"], 16 << 10)
        self.assertEqual(status["held_ns"], 0)

    def test_a_dump_after_the_end_tells_what_memory_was_made_of_when_it_was_largest(self):
        program = ("import mmap, time\nblock = bytearray(64 << 20)\ntime.sleep(3)\n"
                   "del block\nother = mmap.mmap(-1, 24 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\nother.write(b'x' * (24 << 20))\n"
                   "time.sleep(0.5)")
        run = self.memlog("/usr/bin/python3", "-c", program, options=("-q", "--no-page", "--whole-interval=10"))
        self.assertEqual(run.code, 0)
        (dump,) = run.folder.glob("*.exit.pftrace")
        (entry,) = self.report(dump)["processes"]
        private = {one["name"]: one["private_bytes"] for one in entry["memory"]["components"]}
        self.assertGreaterEqual(private["heap"], 56 << 20)  # the look may come while the block is being filled
        self.assertLess(entry["memory"]["private_bytes"], 100 << 20)

    @unittest.skipIf(os.getuid() != 0, "nobody else can be impersonated")
    def test_a_process_that_may_not_be_read_is_unreadable_and_counts_into_the_sum(self):
        source = self.folder / "hidden.c"
        source.write_text(HIDDEN)
        harness.run_words(["gcc", "-O1", "-fno-builtin", "-o", str(self.folder / "hidden"), str(source)], self.folder, None, b"", harness.TIMEOUT)
        os.chmod(self.folder, 0o777)
        before = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        process = self.start(str(self.folder / "hidden"), before=before)
        dump = self.take(process)
        report = self.whole_report(dump)
        (entry,) = report["processes"]
        self.assertIsNone(entry["memory"])
        status = entry["memory_status"]
        self.assertTrue(status["unreadable"])
        self.assertGreaterEqual(status["anonymous_bytes"], 20 << 20)
        self.assertGreater(status["page_tables_bytes"], 0)
        words = self.text_of(dump)
        self.assertRegex(words, r"2[01]\.\d MiB, its parts were not read")
        self.assertIn("1 unreadable process", words)
        process.communicate(b"x", harness.TIMEOUT)

    def test_of_a_sampled_process_it_is_said_that_its_heap_is_not_known(self):
        dump = self.dump_of("--memlog-sampling-rate=64K")
        (entry,) = self.report(dump)["processes"]
        self.assertFalse(entry["memory"]["heap_known"])
        self.assert_adds_up(entry["memory"])
        self.assertIn("sampled: which part of it is heap is not known", self.text_of(dump))
        answer = harness.run_words([str(harness.MEMLOG), "components", str(dump)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertIn(b"sampled: which part is heap is not known of 1 process\n", answer.stdout)

    def assert_adds_up(self, memory):
        for figure in ("private_bytes", "shared_bytes", "proportional_bytes", "swapped_bytes"):
            self.assertEqual(sum(one[figure] for one in memory["components"]), memory[figure], figure)

    def test_of_a_stopped_process_no_byte_moves(self):
        process = self.start_busy("--whole=stop")
        for _ in range(5):
            report = self.report(self.take(process))
            (entry,) = report["processes"]
            self.assertEqual(report["dump"]["whole"], "stop")
            self.assertEqual(entry["memory_status"]["trouble"], "")
            self.assertGreater(entry["memory_status"]["held_ns"], 0)
            self.assertTrue(entry["memory"]["heap_known"])
            self.assertEqual(entry["memory"]["moved_bytes"], 0)
            self.assert_adds_up(entry["memory"])
        process.communicate(b"x", harness.TIMEOUT)
        self.assertEqual(process.returncode, 1)

    def test_who_is_traced_already_is_read_while_it_runs_and_the_dump_says_so(self):
        process = self.start_busy("--whole=stop")
        pid = self.pid_of(process)
        tracer = subprocess.Popen(["strace", "-f", "-e", "trace=exit", "-o", "/dev/null", "-p", str(pid)], stderr=subprocess.DEVNULL)
        self.addCleanup(tracer.wait)
        self.addCleanup(tracer.kill)
        tasks = pathlib.Path(f"/proc/{pid}/task")

        def is_traced():
            return all(f"TracerPid:\t{tracer.pid}\n" in (task / "status").read_text() for task in tasks.iterdir())

        self.wait_for("strace", is_traced)
        dump = self.take(process)
        (entry,) = self.report(dump)["processes"]
        self.assertTrue(is_traced())
        self.assertIn(f"not stopped: strace ({tracer.pid}) traces it", self.text_of(dump))
        self.assertEqual(entry["memory_status"]["trouble"], f"strace ({tracer.pid}) traces it")
        self.assertEqual(entry["memory_status"]["held_ns"], 0)
        self.assert_adds_up(entry["memory"])

    def play_filtered(self, before=()):
        """(of its process, what a dump says)"""
        without = (filtered.LOAD, 0, 0, filtered.NR), (filtered.EQUAL, 0, 1, 219), (filtered.ANSWER, 0, 0, filtered.KILL), (filtered.ANSWER, 0, 0, filtered.ALLOW)
        text = FILTERED.replace("FILTER", filtered.installing(without))
        process = self.start("/usr/bin/python3", "-c", text, options=("--whole=stop",), before=before)
        dumps = [self.take(process) for _ in range(3)]
        process.communicate(b"x", harness.TIMEOUT)
        self.assertEqual(process.returncode, 7)
        return [entry["memory_status"] for dump in dumps for entry in self.report(dump)["processes"]]

    @unittest.skipIf(os.geteuid() != 0, "root alone can read a filter")
    def test_a_filter_that_kills_for_restarted_waits_is_no_matter(self):
        for status in self.play_filtered():
            self.assertEqual(status["trouble"], "")
            self.assertGreater(status["held_ns"], 0)

    def test_whom_a_filter_watches_that_cannot_be_read_is_read_while_it_runs(self):
        os.chmod(self.folder, 0o777)
        user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()
        for status in self.play_filtered(user):
            self.assertIn("seccomp filter", status["trouble"])
            self.assertEqual(status["held_ns"], 0)


if __name__ == "__main__":
    unittest.main()
