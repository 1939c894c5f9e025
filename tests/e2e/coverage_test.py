"""What memlog does not see it does not call seen: allocators past it, memory that no allocator gave, each by its process and with a reason."""
import pathlib
import re
import shutil
import sqlite3
import subprocess
import unittest

import browsing
import harness

MIB = 1 << 20
LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")

# Holds so many MiB by malloc, maps so many itself, frees all but the last block if asked to; then waits for its standard input to end.
HOLDS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static char *blocks[4096];
static void *by_libc(void) { return mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static void *by_kernel(void) { return (void *)syscall(SYS_mmap, 0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
int main(int count, char **words) {
    int held = atoi(words[1]) * 16, maps = atoi(words[2]), frees = atoi(words[3]);
    for (int i = 0; i < held; i++) {
        blocks[i] = malloc(65536);
        memset(blocks[i], 1, 65536);
    }
    for (int i = 0; i < maps; i++) {
        memset(count > 4 ? by_libc() : by_kernel(), 1, 1 << 20);
    }
    for (int i = 0; frees && i < held - 1; i++) {
        free(blocks[i]);
    }
    setvbuf(stdout, NULL, _IONBF, 0);
    puts("ready");
    char nothing;
    return read(0, &nothing, 1) < 0; /* which allocates nothing */
}
"""

UNTOUCHED = """
#include <stdlib.h>
#include <unistd.h>
static void *kept[8];
int main(void) {
    for (int i = 0; i < 8; i++) kept[i] = malloc(10 << 20);
    return (int)sleep(1);
}
"""

# An executable with a malloc of its own, which libc's callers reach too.
OWN = """
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static char *room;
static size_t used, size;
void *malloc(size_t bytes) {
    bytes = (bytes + 31) & ~(size_t)15;
    if (room == 0 || used + bytes > size) {
        size = bytes > 64 << 20 ? bytes : 64 << 20;
        room = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        used = 0;
    }
    char *block = room + used;
    used += bytes;
    *(size_t *)block = bytes - 16;
    return block + 16;
}
void free(void *block) { (void)block; }
void *calloc(size_t count, size_t bytes) { return memset(malloc(count * bytes), 0, count * bytes); }
void *realloc(void *block, size_t bytes) {
    void *moved = malloc(bytes);
    if (block != 0) {
        size_t had = ((size_t *)block)[-2];
        memcpy(moved, block, had < bytes ? had : bytes);
    }
    return moved;
}
int main(void) {
    for (int i = 0; i < 1000; i++) {
        memset(malloc(10000), 1, 10000);
    }
    return write(1, "own\\n", 4) == 4 ? 9 : 1;
}
"""

# A library that allocates by a malloc that is not the program's.
PLUGIN = """
#include <stdlib.h>
#include <string.h>
void *keep(void) { return memset(malloc(1000000), 1, 1000000); }
void give_back(void *block) { free(block); }
"""
LOADS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    void *plugin = words[1][0] == 'n' ? dlmopen(LM_ID_NEWLM, words[2], RTLD_NOW)
                                      : dlopen(words[2], RTLD_NOW | (words[1][0] == 'd' ? RTLD_DEEPBIND : 0));
    if (plugin == NULL) {
        return puts(dlerror()), 1;
    }
    void *(*keep)(void) = dlsym(plugin, "keep");
    void (*give_back)(void *) = dlsym(plugin, "give_back");
    keep();
    for (int i = 0; i < 100 && count > 3; i++) {
        give_back(malloc(10000));
    }
    for (int i = 0; i < 100 && count > 4; i++) {
        free(keep());
    }
    setvbuf(stdout, NULL, _IONBF, 0);
    puts("ready");
    char nothing;
    return read(0, &nothing, 1) < 0; /* which allocates nothing */
}
"""

# Opens a library by one call, does with it what it is told to, in order, and ends: k keeps a block of its, n calls what allocates
# nothing, c closes it, a allocates itself, f goes on in a forked child, x by _exit; * kills itself.
OPENS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *volatile kept[100];
int main(int count, char **words) {
    int how = strchr(words[1], 'l') != NULL ? RTLD_LAZY : RTLD_NOW;
    void *plugin = strchr(words[1], 'n') != NULL ? dlmopen(LM_ID_NEWLM, words[2], how)
                                                 : dlopen(words[2], how | (strchr(words[1], 'd') != NULL ? RTLD_DEEPBIND : 0));
    if (plugin == NULL) {
        return puts(dlerror()), 1;
    }
    for (const char *step = words[3]; *step != 0; step++) {
        struct link_map *map = plugin;
        pid_t child = 0;
        switch (*step) {
        case 'k': ((void *(*)(void))dlsym(plugin, "keep"))(); break;
        case 'n': ((int (*)(void))dlsym(plugin, "nothing"))(); break;
        case 'c': dlclose(plugin); break;
        case 'a': for (int i = 0; i < 100; i++) kept[i] = malloc(1000); break;
        case 'f':
            child = fork();
            if (child > 0) {
                waitpid(child, &count, 0);
                return WEXITSTATUS(count);
            }
            break;
        case 'w':
            setvbuf(stdout, NULL, _IONBF, 0);
            puts("ready");
            return read(0, &child, 1) < 0 ? 1 : 5;
        case '1': map->l_next = (void *)16; break;
        case '2': map->l_next = map; break;
        case '3': map->l_next = (void *)0x800000000000; break;
        case '4': map->l_name = (void *)16; break;
        case '5': map->l_ld = (void *)16; break;
        case '6': map->l_addr += 4096; break;
        case '7': map->l_ld = (void *)words; break;
        case '8': _r_debug.r_map = (void *)16; break;
        case '9': _r_debug.r_version = 2; memset(&_r_debug + 1, 1, 8); break;
        case 'x': _exit(5);
        case '*': kill(getpid(), SIGKILL); break;
        }
    }
    return 5;
}
"""
SMALL = """
#include <stdlib.h>
#include <string.h>
void *keep(void) { return memset(malloc(100 << 10), 1, 100 << 10); }
int nothing(void) { return 3; }
"""
# Threads that open and close a library with many slots, beside one that comes with new stacks.
OPENS_AND_CLOSES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
static char **words;
static volatile int ends, ignored;
static void *opens(void *seed) {
    unsigned state = (unsigned)(long)seed;
    for (int i = 0; i < 100; i++) {
        int how = rand_r(&state) & 1 ? RTLD_LAZY : RTLD_NOW;
        void *plugin = dlopen(words[1 + (long)seed], how | (rand_r(&state) & 1 ? RTLD_DEEPBIND : 0));
        if (plugin == NULL) {
            _Exit(1);
        }
        free(malloc(100));
        dlclose(plugin);
    }
    return NULL;
}
static void deep(int count, unsigned way) {
    if (count == 0) {
        free(malloc(100));
    } else if (way & 1) {
        deep(count - 1, way >> 1);
        ignored = count;
    } else {
        deep(count - 1, way >> 1);
    }
}
static void *comes(void *seed) {
    unsigned state = (unsigned)(long)seed;
    while (!ends) {
        deep(20, (unsigned)rand_r(&state));
    }
    return NULL;
}
int main(int count, char **given) {
    pthread_t threads[7];
    words = given;
    for (long i = 0; i < 7; i++) {
        pthread_create(&threads[i], NULL, i < 5 ? opens : comes, (void *)i);
    }
    for (int i = 0; i < 7; i++) {
        ends = i >= 5;
        pthread_join(threads[i], NULL);
    }
    return 5;
}
"""
MANY = "int f{0}(void) {{ return {0}; }}\n"
CALLS_MANY = "#include <stdlib.h>\nvoid *keep(void) {{ return malloc(5); }}\nint all(void) {{ return {0}; }}\n"
PAST = "the allocator calls of plugin.so go past memlog (opened with RTLD_DEEPBIND?): they are not seen"
SECOND = "a second libc was loaded (dlmopen), whose malloc memlog does not see"

# Calls an allocator by a name of its own.
CALLS = "#include <string.h>\n#include <stddef.h>\nvoid *{name}(size_t, ...);\nint main(void) {{ memset({name}(10000, 0), 1, 10000); return 5; }}\n"


def private_bytes(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return 1024 * sum(int(kib) for kib in re.findall(r"^(?:Private_Clean|Private_Dirty|Swap): +(\d+) kB$", text, re.M))


class Coverage(harness.Case):
    def build(self, text, *options, name="program"):
        source = self.folder / f"{name}.c"
        source.write_text(text)
        subprocess.run(["gcc", "-O1", "-fno-builtin", "-o", self.folder / name, source, *map(str, options)], check=True)
        return self.folder / name

    def text_report(self, run):
        return self.text_of(run.dumps()[0])

    def text_of(self, dump):
        answer = harness.run_words(
            [str(harness.MEMLOG), "report", "--full", str(dump)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout.decode()

    def held(self, *words):
        """A dump of a program that holds what it was told to, and its private memory as /proc tells it."""
        process = self.memlog_ready(self.build(HOLDS, name="holds"), *words)
        answer = harness.run_words([str(harness.MEMLOG), "dump"], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        report = self.report(sorted(process.memlog_folder.glob("*.manual.pftrace"))[0])
        entry, = [entry for entry in report["processes"] if entry["state"] == "running"]
        private = private_bytes(entry["pid"])
        self.go(process)
        process.wait(harness.TIMEOUT)
        return report, entry, private

    def test_heap_and_private_memory_are_of_one_moment(self):
        report, entry, private = self.held(20, 0, 0)
        coverage = entry["coverage"]
        self.assertEqual(coverage["heap_bytes"], entry["live_bytes"])
        self.assertGreaterEqual(coverage["heap_bytes"], 20 * MIB)
        self.assertAlmostEqual(coverage["private_bytes"], private, delta=512 << 10)
        self.assertEqual((coverage["allocator"], coverage["unseen"]), ("glibc", ""))
        self.assertTrue(report["dump"]["covered"])
        self.assertEqual(report["dump"]["uncovered"], "")

    def test_what_the_program_maps_by_libc_has_an_owner(self):
        report, entry, private = self.held(1, 40, 0, "by libc")
        self.assertGreaterEqual(entry["coverage"]["mapped_bytes"], 40 * MIB)
        self.assertLessEqual(entry["coverage"]["mapped_bytes"] + entry["coverage"]["heap_bytes"], private)
        self.assertEqual(entry["coverage"]["unseen"], "")
        self.assertTrue(report["dump"]["covered"])

    def test_what_the_program_maps_unseen_is_not_called_recorded(self):
        report, entry, private = self.held(1, 40, 0)
        self.assertGreaterEqual(private, 40 * MIB)
        self.assertRegex(entry["coverage"]["unseen"], r"^of 4\d\.\d MiB private memory the heap explains 1\.\d MiB: the rest is memory that the program maps itself, or that memlog does not see$")
        self.assertFalse(report["dump"]["covered"])
        self.assertTrue(report["dump"]["complete"])
        self.assertEqual(report["dump"]["uncovered"], f'holds: {entry["coverage"]["unseen"]}')

    def test_processes_of_one_program_are_told_together_at_the_end(self):
        """Their own figures are different ones, the reason is the same."""
        holds = self.build(HOLDS, name="holds")
        script = 'sleep 4 | "$0" 1 40 0 & sleep 4 | "$0" 2 30 0 & wait'
        run = self.memlog("/bin/sh", "-c", script, holds, options=("--no-page",), env=self.environment(COLUMNS="80"))
        end = " ".join(run.err.split())
        self.assertRegex(end, r"NOT COVERED holds: 2 processes, up to (6[5-9]|7\d)\.\d MiB private: the heap explains little of it: the rest is memory that the program maps itself")

    def test_an_allocator_that_keeps_what_was_freed_is_not_blamed(self):
        report, entry, private = self.held(40, 0, 1)
        self.assertGreater(private, 20 * MIB)
        self.assertLess(entry["coverage"]["heap_bytes"], MIB)
        self.assertEqual(entry["coverage"]["unseen"], "")
        self.assertTrue(report["dump"]["covered"])

    def test_the_text_says_no_more_of_freed_and_of_untouched_blocks_than_is_known(self):
        self.held(40, 0, 1)
        text = " ".join(self.text_of(sorted(self.folder.glob("*/*.manual.pftrace"))[0]).split())
        self.assertRegex(text, r"private memory 4\d\.\d MiB .*: heap [\d.]+ KiB live \(40\.0 MiB at its peak: an allocator may keep what was freed\)")
        self.assertNotIn("not malloc", text)
        run = self.memlog(self.build(UNTOUCHED, name="untouched"))
        text = " ".join(self.text_report(run).split())
        self.assertRegex(text, r"private memory [\d.]+ KiB at its largest reading: heap 80\.0 MiB live, not all of it touched")
        self.assertNotIn("not malloc", text)

    def test_a_short_life_is_told_without_a_reason(self):
        # Nobody has read its memory, unless the machine stood still; then the heap beside it is as small.
        coverage = self.exit_report(self.memlog("/bin/true"))["processes"][0]["coverage"]
        self.assertEqual((coverage["allocator"], coverage["unseen"]), ("glibc", ""))
        self.assertLess(coverage["private_bytes"] or 0, 8 * MIB)

    def assert_read_or_null(self, entries):
        """Who has been looked at has figures, the others have none; returns how many have none. A process without resident memory is no process."""
        for entry in entries:
            heap, private = entry["coverage"]["heap_bytes"], entry["coverage"]["private_bytes"]
            if entry["resident_bytes"] == 0 or private is None:
                self.assertEqual((heap, private), (0, None), entry)
            else:
                self.assertGreater(private, 0, entry)
        return len([entry for entry in entries if entry["coverage"]["private_bytes"] is None])

    def test_what_nobody_has_read_is_told_from_nothing(self):
        static = self.build("int main(void) { return 0; }\n", "-static", name="static")
        script = 'for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; "$0"; done; echo ready; read line'
        process = self.memlog_ready("/bin/sh", "-c", script, static, options=())
        log = self.folder / f"stderr{self.runs}"
        page = browsing.Page(self.wait_for("the page", lambda: re.search(r"^memlog: page: (http\S+)$", log.read_text(), re.M))[1])
        shells = lambda rows: [row for row in rows if row["name"] == "sh"]
        ask = lambda: (lambda rows: rows if shells(rows)[0]["coverage"]["private_bytes"] else None)(page.json("/api/v1/processes")["processes"])
        rows = self.wait_for("a reading of the shell", ask)
        self.go(process)
        process.wait(harness.TIMEOUT)
        (dump,) = process.memlog_folder.glob("*.exit.pftrace")
        for entries in (rows, self.whole_report(dump)["processes"]):
            for name, recorded in (("true", True), ("static", False)):
                some = [entry for entry in entries if entry["name"] == name]
                self.assertEqual({entry["recorded"] for entry in some}, {recorded})
                self.assertGreater(self.assert_read_or_null(some), 0, some)
            self.assertEqual(self.assert_read_or_null(shells(entries)[:1]), 0)
        self.database(dump)

    def database(self, dump):
        """The same in SQLite, where NULL is what nobody has read."""
        answer = harness.run_words([str(harness.MEMLOG), "convert", "--to=sqlite", "-o", str(self.folder / "db"), str(dump)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        database = sqlite3.connect(self.folder / "db")
        self.addCleanup(database.close)
        told = database.execute("SELECT pid, private_bytes, resident_bytes FROM memlog_unrecorded JOIN process USING (upid)").fetchall()
        wanted = {one["pid"]: (one["coverage"]["private_bytes"], one["resident_bytes"] or None) for one in self.whole_report(dump)["processes"] if not one["recorded"]}
        self.assertEqual({pid: figures for pid, *figures in told}, {pid: [*figures] for pid, figures in wanted.items()})
        self.assertIn((None, None), wanted.values())

    def assert_unseen(self, run, allocator, reason, code=5):
        self.assertEqual(run.code, code, run.err)
        report = self.exit_report(run)
        entry = report["processes"][-1]
        self.assertEqual(entry["coverage"]["allocator"], allocator)
        self.assertRegex(entry["coverage"]["unseen"], reason)
        self.assertTrue(report["dump"]["complete"])
        self.assertFalse(report["dump"]["covered"])
        text = self.text_report(run)
        self.assertNotIn("was recorded, none was lost", text)
        self.assertRegex(text, "NOT COVERED")
        self.assertRegex(text, "not seen: ")

    def test_a_malloc_of_the_executables_own_is_named(self):
        self.assert_unseen(self.memlog(self.build(OWN)), "inside the executable", "which memlog could not hook: free: ", 9)

    def assert_hooked(self, run, allocator):
        report = self.exit_report(run)
        entry = report["processes"][-1]
        self.assertEqual((entry["coverage"]["allocator"], entry["coverage"]["unseen"], report["dump"]["covered"]), (allocator, "", True))
        self.assertGreater(entry["coverage"]["hooked_functions"], 2)
        return entry

    def test_an_allocator_that_is_linked_statically_is_hooked(self):
        program = self.build("#include <stdlib.h>\n#include <string.h>\nint main(void) { memset(malloc(10000), 1, 10000); return 5; }\n",
                             LIBRARIES / "libjemalloc.a", "-lm", "-lstdc++", "-lpthread", "-ldl")
        entry = self.assert_hooked(self.memlog(program), "inside the executable")
        self.assertEqual(entry["live_bytes"], 10000)

    def test_functions_beside_malloc_are_hooked(self):
        for name, library, allocator in (
                ("mallocx", "libjemalloc.so.2", "jemalloc"), ("tc_malloc", "libtcmalloc.so.4", "tcmalloc"), ("mi_malloc", harness.MIMALLOC, "mimalloc")):
            with self.subTest(name):
                program = self.build(CALLS.format(name=name), LIBRARIES / library)
                entry = self.assert_hooked(self.memlog(program), allocator)
                self.assertTrue(any(stack["frames"][0]["function"] == "main" for stack in entry["stacks"]), entry["stacks"])

    def test_functions_beside_malloc_are_named_where_they_are_left_as_they_are(self):
        program = self.build(CALLS.format(name="mallocx"), LIBRARIES / "libjemalloc.so.2")
        run = self.memlog(program, options=("--allocator=off",))
        self.assert_unseen(run, "jemalloc", r"^it calls mallocx of libjemalloc\.so\.2, which memlog does not see$")

    def test_a_shared_allocator_that_is_called_by_malloc_alone_is_covered(self):
        for library, allocator in (("libjemalloc.so.2", "jemalloc"), ("libtcmalloc.so.4", "tcmalloc"), (harness.MIMALLOC, "mimalloc")):
            with self.subTest(library):
                program = self.build("#include <stdlib.h>\nint main(void) { return malloc(100) == 0; }\n", "-Wl,--no-as-needed", LIBRARIES / library)
                run = self.memlog(program)
                report = self.exit_report(run)
                self.assertEqual(report["processes"][0]["coverage"]["allocator"], allocator)
                self.assertEqual(report["dump"]["uncovered"], "")
                self.assertTrue(report["dump"]["covered"])

    def load(self, *words):
        plugin = self.build(PLUGIN, "-shared", "-fPIC", name="plugin.so")
        return self.memlog(self.build(LOADS, name="loads"), words[0], plugin, *words[1:])

    def test_a_plugin_that_frees_past_memlog_is_no_lost_event(self):
        self.assert_unseen(self.load("d", "frees"), "glibc", f"^{re.escape(PAST)}$", 0)

    def test_a_plugin_that_allocates_past_memlog_is_named(self):
        self.assert_unseen(self.load("d", "frees", "keeps"), "glibc", f"^{re.escape(PAST)}$", 0)

    def opens(self, how, steps, *options, plugin=SMALL):
        library = self.build(plugin, "-shared", "-fPIC", "-Wl,-z,lazy", *options, name="plugin.so")
        return self.memlog(self.build(OPENS, name="opens"), how, library, steps)

    def assert_opens(self, how, steps, reason, *options, **more):
        with self.subTest(how=how, steps=steps):
            report = self.exit_report(self.opens(how, steps, *options, **more))
            self.assertEqual([entry["coverage"]["unseen"] for entry in report["processes"]], [reason] * len(report["processes"]))
            self.assertEqual(report["dump"]["covered"], reason == "")
            return report

    def test_a_plugin_that_keeps_a_little_past_memlog_is_named(self):
        for how in ("d", "dl"):
            self.assert_opens(how, "k", PAST)
            self.assert_opens(how, "kc", PAST)  # gone before the end
            self.assert_opens(how, "kx", PAST)

    def test_a_plugin_that_may_have_called_is_named_and_one_that_cannot_have_is_not(self):
        self.assert_opens("d", "n", PAST)  # bound at once: nobody can tell whether it has called
        self.assert_opens("dl", "n", "")  # bound by the first call, which never came
        self.assert_opens("d", "n", "", plugin="int nothing(void) { return 3; }\n")

    def test_a_plugin_that_is_opened_without_more_ado_is_covered(self):
        for how in ("p", "pl"):
            self.assert_opens(how, "k", "")
            self.assert_opens(how, "knc", "")

    def test_a_plugin_with_an_allocator_of_its_own_is_named_where_that_is_what_it_calls(self):
        own = "static char room[1 << 20];\nvoid *malloc(unsigned long size) { return room; }\nvoid *keep(void) { return malloc(5); }\n"
        self.assert_opens("d", "k", PAST, plugin=own)
        self.assert_opens("p", "k", "", plugin=own)

    def test_a_namespace_of_a_moment_is_named(self):
        for steps in ("k", "kc", "c", "cx"):
            self.assert_opens("n", steps, SECOND)

    def test_a_forked_child_has_its_parents_plugins(self):
        report = self.assert_opens("d", "kfa", PAST)
        self.assertEqual(len(report["processes"]), 2)

    def test_a_plugin_is_named_while_the_program_runs_and_where_it_is_killed(self):
        run = self.opens("d", "ka*")
        self.assertEqual(run.code, 128 + 9)
        self.assertEqual(self.exit_report(run)["processes"][0]["coverage"]["unseen"], PAST)
        process = self.memlog_ready(self.folder / "opens", "d", self.folder / "plugin.so", "kaw")
        answer = harness.run_words([str(harness.MEMLOG), "dump"], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        report = self.report(sorted(process.memlog_folder.glob("*.manual.pftrace"))[0])
        self.assertEqual(report["processes"][0]["coverage"]["unseen"], PAST)
        self.go(process)

    def test_a_library_that_another_thread_closes_is_looked_at_without_harm(self):
        numbers = range(1500)
        text = "".join(map(MANY.format, numbers)) + CALLS_MANY.format(" + ".join(f"f{i}()" for i in numbers))
        library = self.build(text, "-shared", "-fPIC", "-O0", "-Wl,-z,lazy", name="plugin.so")
        libraries = [shutil.copy(library, self.folder / f"plugin{i}.so") for i in range(5)]
        program = self.build(OPENS_AND_CLOSES, "-lpthread", name="opens")
        for _ in range(3):
            self.assertEqual(self.memlog(program, *libraries).code, 5)

    def test_whoever_writes_into_the_loaders_list_ends_as_without_memlog(self):
        library = self.build(SMALL, "-shared", "-fPIC", name="plugin.so")
        program = self.build(OPENS, name="opens")
        for scribble in "123456789":
            with self.subTest(scribble):
                words = (program, "d", library, scribble + "ax")
                bare = subprocess.run([str(word) for word in words], timeout=harness.TIMEOUT)
                self.assertEqual(bare.returncode, 5)
                run = self.memlog(*words)
                self.assertEqual((run.code, run.out), (5, b""), run.err)

    def test_a_second_libc_is_named(self):
        plugin = self.build(PLUGIN, "-shared", "-fPIC", name="plugin.so")
        process = self.memlog_ready(self.build(LOADS, name="loads"), "n", plugin)
        answer = harness.run_words([str(harness.MEMLOG), "dump"], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        report = self.report(sorted(process.memlog_folder.glob("*.manual.pftrace"))[0])
        self.assertEqual(report["processes"][-1]["coverage"]["unseen"], SECOND)
        self.assertFalse(report["dump"]["covered"])
        self.go(process)

    def test_the_page_and_its_metrics_tell_the_same(self):
        process = self.memlog_ready(self.build(HOLDS, name="holds"), 1, 40, 0, options=())
        log = self.folder / f"stderr{self.runs}"
        page = browsing.Page(self.wait_for("the page", lambda: re.search(r"^memlog: page: (http\S+)$", log.read_text(), re.M))[1])

        def rows():
            return [row for row in page.json("/api/v1/processes")["processes"] if (row["coverage"]["private_bytes"] or 0) > 40 * MIB]
        entry, = self.wait_for("a reading", rows)
        self.assertEqual(entry["coverage"]["allocator"], "glibc")
        self.assertRegex(entry["coverage"]["unseen"], r"^of 4\d\.\d MiB private memory the heap explains 1\.\d MiB")
        self.assertRegex(page.ask("/metrics").body.decode(), r'memlog_process_covered\{[^}]*name="holds"\} 0\n')
        self.go(process)

    def test_an_allocator_inside_the_executable_that_is_not_exported_is_found_by_its_symbols(self):
        program = self.build(
            "#include <stdlib.h>\n#include <unistd.h>\nstatic char room[1 << 20], *at = room;\n"
            "__attribute__((visibility(\"hidden\"))) void *je_malloc(size_t bytes) { at += bytes; return at - bytes; }\n"
            "int main(void) { je_malloc(100); return malloc(100) != 0 ? 5 : 1; }\n")
        self.assert_unseen(self.memlog(program), "glibc", r"^the executable has an allocator of its own \(jemalloc: je_malloc\), which memlog does not see$")
        self.assertNotIn("je_malloc", subprocess.run(["nm", "-D", program], stdout=subprocess.PIPE, text=True, check=True).stdout)

    def test_a_plugin_that_is_loaded_as_usual_is_covered(self):
        report = self.exit_report(self.load("p", "frees", "keeps"))
        self.assertTrue(report["dump"]["covered"], report["dump"]["uncovered"])

    def test_a_first_program_without_memlog_is_not_profiled_once(self):
        (missing,) = self.exit_report(self.memlog(self.build("int main(void) { return 5; }\n", "-static", name="static")))["dump"]["not_profiled"]
        self.assertRegex(missing["path"], "static$")

    def test_a_run_of_nobody_has_no_figures(self):
        """0 bytes would say that nothing was allocated; what nobody saw has no figures."""
        run = self.memlog(self.build("int main(void) { return 5; }\n", "-static", name="static"))
        self.assertEqual(run.code, 5)
        text = self.text_report(run)
        self.assertRegex(text, r"nothing +no process was recorded")
        self.assertNotRegex(text, r"(?m)^  (left|live|peak|allocated) |^Processes|unknown time")

    def test_a_program_that_ran_without_memlog_is_not_covered(self):
        program = self.build("int main(void) { return 5; }\n", "-static", name="static")
        run = self.memlog("/bin/sh", "-c", '"$@"; exit $?', "sh", program)
        self.assertEqual(run.code, 5)
        report = self.exit_report(run)
        self.assertTrue(report["dump"]["complete"])
        self.assertFalse(report["dump"]["covered"])
        self.assertRegex(report["dump"]["uncovered"], r"^1 process was not recorded( \([\d.]+ \w+ private memory\))?: static: statically linked: there is no dynamic loader that could load memlog$")
        entry, = report["unrecorded"]
        self.assertRegex(entry["coverage"]["unseen"], "static")
        self.assertEqual(entry["coverage"]["heap_bytes"], 0)
        self.assertNotIn("was recorded, none was lost", self.text_report(run))

    def test_what_was_allocated_before_a_recording_began_is_said_to_be_unknown(self):
        process = self.memlog_ready(self.build(HOLDS, name="holds"), 2, 0, 0, options=("-q", "--no-page", "--memlog=manual"))
        pid = int(subprocess.run(["pgrep", "-f", f"^{self.folder}/holds "], check=True, stdout=subprocess.PIPE).stdout)
        for words in (["start", str(pid)], ["dump"]):
            answer = harness.run_words([str(harness.MEMLOG), *words], self.folder, self.environment(), b"", harness.TIMEOUT)
            self.assertEqual(answer.returncode, 0, answer.stderr)
        report = self.report(sorted(process.memlog_folder.glob("*.manual.pftrace"))[0])
        self.assertEqual(report["processes"][0]["coverage"]["unseen"], "what it had allocated before it was recorded is not known")
        self.go(process)


if __name__ == "__main__":
    unittest.main(verbosity=2)
