"""Programs of other Debian releases, in roots of their own that show memlog's folder, recorded by the one libmemlog.so: bullseye's with glibc
2.31, which has its threads and its loader's calls in libraries of their own, and trixie's with 2.41.

Needs root, and a moment of the network: the roots are made by mmdebstrap from where apt has its packages."""
# runner: timeout=1500
# runner: no second chance
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
import unittest.mock

import harness
import loader_state_test
import oracle_test

SOURCES = harness.ROOT / "tests" / "oracle"
PACKAGES = "base-files,dash,coreutils,g++,libc6-dev,python3,sqlite3,perl"
# The root's mounts are those of whoever runs in it, and go with him.
MOUNTED = """
root="$0"; while [ "$1" != -- ]; do mount --rbind "$1" "$root$1"; shift; done; shift; exec "$@"
"""
# Static, so that nothing of this machine's libc comes into the process first.
ENTER = """
#include <unistd.h>
int main(int count, char **words) {
    return count > 2 && chroot(words[1]) == 0 && chdir("/") == 0 ? execv(words[2], words + 2) : 126;
}
"""
AS_WRITTEN = ["-g", "-O1", "-w", "-D_GNU_SOURCE", f"-I{harness.ROOT}", "-fno-builtin", "-fno-optimize-sibling-calls",
              "-fno-inline", "-fomit-frame-pointer"]
PROGRAMS = ("single", "threads", "storm", "fork", "fork_threads", "born", "vfork", "plugins", "ends", "idle", "peaks")

# Threads come with a library, and libpthread with them.
LATE_THREADS = """
#include <pthread.h>
#include <stdlib.h>
static void *work(void *argument) {
    for (int i = 0; i < 3; i++) free(malloc(1000));
    return pthread_setname_np(pthread_self(), "late") == 0 ? NULL : argument;
}
int threads(int count) {
    for (int i = 0; i < count; i++) {
        pthread_t thread;
        void *bad = NULL;
        if (pthread_create(&thread, NULL, work, &thread) != 0) return 1;
        if (pthread_join(thread, &bad) != 0 || bad != NULL) return 2;
    }
    return 0;
}
"""
LATE = """
#include <dlfcn.h>
#include <stdlib.h>
int main(int count, char **words) {
    void *library = dlopen(words[1], RTLD_NOW);
    return ((int (*)(int))dlsym(library, "threads"))(atoi(words[2]));
}
"""
MANY = """
#include <dlfcn.h>
#include <stdlib.h>
int main(int count, char **words) {
    for (int i = 0; i < 6000; i++) {
        void *library = dlopen(words[1 + i % 2], RTLD_NOW);
        free(((void *(*)(size_t))dlsym(library, "plugin_make"))(100));
        dlclose(library);
    }
    return 0;
}
"""
# What is mapped from files, each once, and what it may take for threads.
LONELY = """
#include <stdio.h>
#include <string.h>
extern int __pthread_key_create() __attribute__((weak)), pthread_mutex_lock() __attribute__((weak)), pthread_join() __attribute__((weak));
int main(void) {
    char line[4096], *slash;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) if ((slash = strchr(line, '/')) && !strstr(slash, "memlog") && strstr(line, "r-xp")) fputs(slash, stdout);
    printf("%d %d\\n", __pthread_key_create != 0, pthread_join != 0);
    return 7;
}
"""
# Names that memlog has, whether libc has them or not: each does what it says.
NAMES = """
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    pid_t (*fork_)(void) = (pid_t (*)(void))dlsym(RTLD_DEFAULT, "_Fork");
    void (*closefrom_)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "closefrom");
    int (*execveat_)(int, const char *, char **, char **, int) = (int (*)(int, const char *, char **, char **, int))dlsym(RTLD_DEFAULT, "execveat");
    int (*setname_)(unsigned long, const char *) = (int (*)(unsigned long, const char *))dlsym(RTLD_DEFAULT, "pthread_setname_np");
    char *words[] = {"true", NULL};
    if (fork_ != NULL) {
        int status = 0;
        pid_t child = fork_();
        if (child == 0) {
            char *volatile kept = malloc(1234);
            _exit(kept != NULL ? 5 : 6);
        }
        if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 5) return 1;
    }
    if (setname_ != NULL && setname_(0, "nobody") == 0) return 2;
    for (int i = 0; i < 5; i++) open("/dev/null", O_RDONLY);
    if (closefrom_ != NULL) closefrom_(3);
    if (closefrom_ != NULL && open("/dev/null", O_RDONLY) != 3) return 3;
    if (execveat_ != NULL) execveat_(AT_FDCWD, "/bin/true", words, environ, 0);
    return execveat_ != NULL ? 4 : 0;
}
"""
FORKS = "import os; kept = [bytes(1000 + i) for i in range(300)]; pid = os.fork(); os._exit(3) if pid == 0 else print(os.waitpid(pid, 0)[1] >> 8)"
THREADS = """
import json, threading
def work(): json.loads(json.dumps(list(range(2000))))
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(threads))
"""
SLEEPS = "import time\nprint('ready', flush=True)\nfor i in range(200): kept = [bytes(700 + i) for _ in range(50)]; time.sleep(0.05)"


def mirror():
    """Where apt has this machine's packages from; None: not known."""
    for path in sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*.sources")):
        found = re.search(r"^URIs:\s*(\S+)", path.read_text(), re.M)
        if found:
            return found[1]
    path = pathlib.Path("/etc/apt/sources.list")
    found = re.search(r"^deb\s+(?:\[[^]]*\]\s+)?(\S+)", path.read_text() if path.exists() else "", re.M)
    return found and found[1]


class Suite:
    """A release's root, and tests/oracle as its compiler makes it; made once, by whoever needs it first."""

    def __init__(self, name):
        self.name = name
        self.why_not = None
        self.folder = None

    def make(self):
        if self.folder is None and self.why_not is None:
            folder = tempfile.TemporaryDirectory(prefix=f"memlog-{self.name}-")
            unittest.addModuleCleanup(folder.cleanup)
            self.why_not = self.fill(pathlib.Path(folder.name))
        if self.why_not:
            raise unittest.SkipTest(self.why_not)

    def fill(self, folder):
        """Why there is none; None: all is well."""
        if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
            return "needs root and mmdebstrap (tools/dev/setup ci)"
        if mirror() is None:
            return "where this machine's packages come from is not known"
        os.chmod(folder, 0o755)
        self.root = folder / "root"
        options = folder / "apt.conf"
        said = subprocess.run(["apt-config", "dump"], stdout=subprocess.PIPE, text=True, check=True).stdout
        options.write_text("\n".join(line for line in said.splitlines() if line.startswith("Acquire::Check")))
        words = ["mmdebstrap", "--variant=extract", "--mode=root", f"--include={PACKAGES}", f"--aptopt={options}", self.name, self.root, "-"]
        made = subprocess.run(list(map(str, words)), input=f"deb {mirror()} {self.name} main\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=900, check=False)
        if made.returncode != 0:
            return f"no {self.name} can be made here: {made.stdout[-300:]}"
        self.shared = sorted({str(path) for path in (pathlib.Path(tempfile.gettempdir()).resolve(), harness.ROOT, harness.OUT, "/proc", "/dev")})
        for path in self.shared:
            (self.root / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        (folder / "enter.c").write_text(ENTER)
        subprocess.run(["gcc", "-static", "-O1", "-o", folder / "enter", folder / "enter.c"], check=True)
        self.folder = folder
        if subprocess.run(self.around("/bin/true"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.folder = None
            return "may not mount here"
        self.build_oracle()
        return None

    def around(self, *words):
        """The words of this machine that see the root with what it shares."""
        return ["unshare", "--mount", "/bin/sh", "-c", MOUNTED, str(self.root), *self.shared, "--", *map(str, words)]

    def inside(self, *words):
        return [str(self.folder / "enter"), str(self.root), *map(str, words)]

    def build(self, name, *words):
        """By the root's own compiler; the path."""
        compiler = "/usr/bin/g++" if any(str(word).endswith(".cc") for word in words) else "/usr/bin/gcc"
        path = self.folder / name
        words = ["-pthread" if word == "threads" else word for word in words]
        words = self.around(*self.inside(compiler, *AS_WRITTEN, "-o", path, *words))
        built = subprocess.run(words, env={"PATH": "/usr/bin:/bin"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if built.returncode != 0:
            raise AssertionError(built.stdout)
        return path

    def build_text(self, name, text, *words):
        source = self.folder / f"{name}.c"
        source.write_text(text)
        return self.build(name, source, *words)

    def build_oracle(self):
        ledger = self.build("ledger.o", "-c", SOURCES / "ledger.c")
        names = self.build("ledger_names.o", "-c", SOURCES / "ledger_names.c")
        older = ["-D_Fork=fork"] if self.name == "bullseye" else []  # libc has it since 2.34
        for name in PROGRAMS:
            self.build(name, SOURCES / f"{name}.c", ledger, "threads", "-ldl", *older)
        for name in ("plugin_small", "plugin_large"):
            self.build(f"{name}.so", "-shared", "-fPIC", SOURCES / f"{name}.c")
        self.build("throws", SOURCES / "throws.cc", ledger, names, "threads", "-ldl")
        self.build("plugin_throw.so", "-shared", "-fPIC", SOURCES / "plugin_throw.cc")


SUITES = {name: Suite(name) for name in ("bullseye", "trixie")}


class InRoot(harness.Case):
    SUITE = "bullseye"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.suite = SUITES[cls.SUITE]
        cls.suite.make()

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        # Who reads a report for names sees the root as it was: the programs' paths lead through it.
        run = harness.run_words
        seen = unittest.mock.patch.object(harness, "run_words", lambda words, *how: run(
            self.suite.around(*words) if words[0] == str(harness.MEMLOG) else words, *how))
        seen.start()
        self.addCleanup(seen.stop)

    def memlog_command(self, program, options):
        words, folder = super().memlog_command(self.suite.inside(*program), options)
        return self.suite.around(*words), folder

    def bare(self, *program, env=None):
        words = self.suite.around(*self.suite.inside(*program))
        answer = harness.run_words(words, self.folder, env or self.environment(), b"", harness.TIMEOUT)
        return answer.returncode, answer.stdout, answer.stderr.decode(errors="replace")

    def as_bare(self, *program, code=0):
        """Exit code, output and messages are those without memlog; returns the entries of its report by name."""
        bare = self.bare(*program)
        self.assertEqual(bare[0], code, bare)
        run = self.memlog(*program)
        self.assertEqual((run.code, run.out, run.err), bare)
        entries = {}
        for entry in self.exit_report(run)["processes"]:
            self.assertTrue(entry["complete"], entry["trouble"])
            entries.setdefault(entry["name"], []).append(entry)
        return entries

    def assert_whole(self, entry, unknown_frees=0):
        """Each stack goes to the program's beginning, through modules that are known."""
        self.assertGreater(entry["total_blocks"], 0)
        self.assertEqual((entry["lost_events"], entry["truncated_stacks"], entry["unknown_frees"]), (0, 0, unknown_frees))
        nameless = [stack for stack in entry["stacks"] if any(not frame["module"] or not frame["build_id"] for frame in stack["frames"])]
        self.assertEqual(nameless[:1], [])


class Programs(InRoot):
    def test_python(self):
        (entry,) = self.as_bare("/usr/bin/python3", "-c", "import json, sys; print(len(json.dumps([str(i) for i in range(10000)])))")["python3"]
        self.assert_whole(entry)
        self.assertGreater(max(len(stack["frames"]) for stack in entry["stacks"]), 30)

    def test_python_that_forks(self):
        parent, child = sorted(self.as_bare("/usr/bin/python3", "-c", FORKS)["python3"], key=lambda entry: entry["pid"])
        self.assert_whole(parent)
        self.assertEqual((child["exit_code"], child["inherited_blocks"] > 300), (3, True))

    def test_python_with_threads(self):
        self.assert_whole(self.as_bare("/usr/bin/python3", "-c", THREADS)["python3"][0])

    def test_sqlite(self):
        sql = "create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 500) insert into t " \
              "select i, hex(i) from n; select count(*), sum(a) from t;"
        self.assert_whole(self.as_bare("/usr/bin/sqlite3", ":memory:", sql)["sqlite3"][0])

    def test_perl(self):
        self.assert_whole(self.as_bare("/usr/bin/perl", "-e", 'my %h = map { $_ => "x$_" } 1 .. 3000; print scalar(keys %h), "\\n"; exit 9', code=9)["perl"][0])

    def test_a_compiler_and_what_it_starts(self):
        (self.folder / "hello.c").write_text("int main(void) { return 0; }\n")
        entries = self.as_bare("/usr/bin/gcc", "-O1", "-o", self.folder / "hello", self.folder / "hello.c")
        for name in ("cc1", "as", "ld"):
            (entry,) = [entry for other, found in entries.items() if re.match(f"(x86_64-linux-gnu-)?{name}(\\.bfd)?$", other) for entry in found]
            self.assert_whole(entry)

    def test_one_that_is_started_by_its_loader(self):
        entries = self.as_bare("/lib64/ld-linux-x86-64.so.2", "/usr/bin/sqlite3", ":memory:", "select 1")
        self.assertEqual(sum(entry["total_blocks"] > 0 for found in entries.values() for entry in found), 1, entries.keys())

    def test_one_that_runs_already(self):
        words = self.suite.around(*self.suite.inside("/usr/bin/python3", "-c", SLEEPS))
        process = subprocess.Popen(words, stdout=subprocess.PIPE, env=self.environment())
        try:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            folder = self.folder / "dumps-attached"
            words = [harness.MEMLOG, "attach", "--no-page", "--duration=1", "-o", folder, process.pid]
            answer = harness.run_words(list(map(str, words)), self.folder, self.environment(), b"", harness.TIMEOUT)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            (entry,) = self.report(next(folder.glob("*.exit.pftrace")))["processes"]
            self.assertGreater(entry["total_blocks"], 100)
            self.assertEqual(entry["lost_events"], 0)
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()


class Newer(Programs):
    SUITE = "trixie"


class Laws(InRoot):
    """What an older libc has in libraries of their own, and what its loader does not tell."""

    def test_a_program_without_threads_notices_nothing(self):
        self.assert_whole(self.as_bare(self.suite.build_text("lonely", LONELY), code=7)["lonely"][0])

    def test_threads_that_come_with_a_library_give_their_lanes_back(self):
        library = self.suite.build_text("late_threads.so", LATE_THREADS, "threads", "-shared", "-fPIC")
        program = self.suite.build("late", self.write("late.c", LATE), "-ldl")
        (entry,) = self.as_bare(program, library, 9000)["late"]
        self.assert_whole(entry)
        self.assertEqual(sum(stack["total_blocks"] for stack in entry["stacks"] if stack["frames"][0]["function"] == "work"), 27000)

    def test_libraries_that_come_and_go_keep_their_names(self):
        program = self.suite.build("many", self.write("many.c", MANY), "-ldl")
        (entry,) = self.as_bare(program, self.suite.folder / "plugin_small.so", self.suite.folder / "plugin_large.so")["many"]
        self.assert_whole(entry)
        made = {stack["frames"][0]["function"]: stack["total_blocks"] for stack in entry["stacks"] if stack["frames"][0]["module"].endswith("plugin_small.so")
                or stack["frames"][0]["module"].endswith("plugin_large.so")}
        self.assertEqual(made, {"small_alloc": 3000, "large_innermost": 3000})

    def test_what_constructors_of_libraries_do_is_recorded(self):
        library = self.suite.build("libearly.so", self.write("early.c", loader_state_test.EARLY_LIBRARY), "-shared", "-fPIC")
        source = self.write("main.c", loader_state_test.EARLY.replace(" + nothing()", ""))
        for name, words in (("alone", []), ("threaded", ["-Wl,--no-as-needed", "-lpthread"])):
            program = self.suite.build(name, source, *words, library, f"-Wl,-rpath,{self.suite.folder}")
            entries = self.as_bare(program, code=7)
            (entry,) = entries[name]
            self.assert_whole(entry)
            kept = [stack for stack in entry["stacks"] if [frame["function"] for frame in stack["frames"]][:2] == ["keep", "early"]]
            self.assertEqual([sum(stack[figure] for stack in kept) for figure in ("total_blocks", "total_bytes", "live_blocks")], [100, 100000, 25])
            self.assertEqual(len(entries["ls"]), 1)

    def test_names_that_libc_does_not_have_do_what_they_say(self):
        program = self.suite.build_text("names", NAMES, "-ldl")
        self.assertEqual(self.bare(program)[0], 0)
        run = self.memlog(program)
        self.assertEqual((run.code, run.out, run.err), (0, b"", ""))
        entries = self.exit_report(run)["processes"]
        self.assertEqual(sorted(entry["name"] for entry in entries), ["names", "names", "true"])
        self.assertEqual([entry["total_bytes"] for entry in entries if entry["exit_code"] == 5], [1234])

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path


# The oracle's own tests, of its programs as that root's compiler and libc make them.
for _base in list(vars(oracle_test).values()):
    if isinstance(_base, type) and issubclass(_base, oracle_test.Oracle) and _base is not oracle_test.Oracle:
        for _name in SUITES:
            globals()[_base.__name__ + _name.capitalize()] = type(_base.__name__ + _name.capitalize(), (InRoot, _base), {
                "SUITE": _name, "program": lambda self, which: self.suite.folder / which})
del _base


if __name__ == "__main__":
    unittest.main(verbosity=2)
