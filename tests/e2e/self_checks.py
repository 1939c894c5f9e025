#!/usr/bin/env python3
"""By hand: the self-checks of real programs, bare and under memlog, exact and sampled: the same results.

    tests/e2e/self_checks.py [SUITE[/NAME]...]

Suites: glib and systemd (their installed tests), python (its own test suite), stress (stress-ng, which verifies what it does).
A small part of it runs with the tests (self_checks_test.py). A check whose result is not the same twice without memlog proves nothing: it is named and left out. Exit code 1 when one differs.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUT = pathlib.Path(os.environ.get("MEMLOG_TEST_OUT", ROOT / "out")).resolve()
WAYS = {
    "exact": ("--memlog-sampling-rate=1",),
    "sampled": ("--memlog-sampling-rate=4096",),
}
BARE_TIMEOUT = 240
SLOWER = 4  # under a profiler, on a machine that may be busier now


def remove(folder):
    """With all that is in it, also below folders that a check has closed to its own user."""
    for place, folders, _ in os.walk(folder):
        for path in (os.path.join(place, name) for name in folders):
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


class Check:
    """One program that checks itself: what is run, and what of its output must be the same."""

    def __init__(self, suite, name, words, lines=None, environment=None):
        self.suite, self.name, self.words = suite, name, [str(word) for word in words]
        self.lines = re.compile(lines, re.M) if lines else None
        self.environment = environment or {}

    def __str__(self):
        return f"{self.suite}/{self.name}"

    def run(self, before, folder):
        """(exit code, telling lines), and all that was said."""
        work = folder / "work"
        remove(work)
        work.mkdir()
        environment = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
        environment.update(HOME=str(work), TMPDIR=str(work), XDG_RUNTIME_DIR=str(folder / "run"), LC_ALL="C.UTF-8", TZ="UTC")
        environment.update(self.environment)
        with open(folder / "said", "wb+") as said:
            process = subprocess.Popen(
                [*before, *self.words], cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
            )
            try:
                code = process.wait(BARE_TIMEOUT * (SLOWER if before else 1))
            except subprocess.TimeoutExpired:
                code = "hung"
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
            said.seek(0)
            text = said.read().decode(errors="replace")
        if isinstance(code, int) and code < 0:
            code = 128 - code  # as shells and memlog say it
        return (code, self.lines.findall(text) if self.lines else None), text

    def compare(self, folder):
        """What differs, by way; None: it is not the same twice without memlog."""
        bare, _ = self.run((), folder)
        if bare[0] == "hung":
            return None
        differs = {}
        for way, options in WAYS.items():
            dumps = folder / "dumps"
            shutil.rmtree(dumps, ignore_errors=True)
            words = (str(OUT / "memlog"), "run", "-q", "--no-page", "-o", str(dumps), *options, "--")
            outcome, text = self.run(words, folder)
            if outcome != bare:
                differs[way] = (outcome, text)
        if differs and any(self.run((), folder)[0] != bare for _ in range(3)):
            return None
        return {way: explain(bare, outcome, text) for way, (outcome, text) in differs.items()}


def explain(bare, outcome, text):
    said = [f"exit code {outcome[0]}, not {bare[0]}"] if outcome[0] != bare[0] else []
    if bare[1] is not None:
        said += [f"- {line}" for line in bare[1] if line not in outcome[1]][:20]
        said += [f"+ {line}" for line in outcome[1] if line not in bare[1]][:20]
    return "\n".join(said or ["the same lines in another order"]) + "\n" + text[-1500:]


def executables(folder):
    return sorted(path for path in pathlib.Path(folder).glob("*") if path.is_file() and os.access(path, os.X_OK))


GLIB = "/usr/libexec/installed-tests/glib"
SYSTEMD = ("/usr/lib/systemd/tests", "/usr/lib/systemd/tests/unit-tests")  # the second since 256
TAP = r"^(?:ok|not ok) \d+ .*$"

# They need what is not there (a bus, systemd as the first process, devices, the network), change the machine, are no tests, or take long.
GLIB_WITHOUT = re.compile("gdbus|slow|portal|fdo|timer|performance|sleepy|server|service|helper|testprog|monitor|mount|volume|live-g-file|proxy|contexts$|thread-pool|echo|network|resources$")
SYSTEMD_WITHOUT = re.compile(
    "bus|cgroup|udev|journal|network|loop|mount|execute$|nss|namespace|install|tmpfiles|sysusers|engine|manager|resolve|device|bpf|dhcp"
    "|sleep|benchmark|daemon|watch|umount|firewall|path$|login|varlink|local-addr|netlink|ipv4ll|ndisc|lldp|compress|catalog|load-fragment"
    "|unit-file|dev-setup|oomd|chown|hostname-setup|emergency|selinux|tpm2|sched-prio|user-util|utmp|boot|hashmap|set$|fstab|\\.(sh|py)$"
)


def glib():
    found = executables(GLIB)
    return [Check("glib", path.name, [path, "--tap"], TAP) for path in found if not path.suffix and not GLIB_WITHOUT.search(path.name)]


def systemd():
    found = [path for folder in SYSTEMD for path in executables(folder)]
    return [Check("systemd", path.name, [path]) for path in found if not SYSTEMD_WITHOUT.search(path.name)]


PYTHON = """
    array ast asyncio bigmem buffer builtin bytes call capi cmath codecs collections concurrent_futures contextlib copy
    ctypes dbm dict doctest dynamicclassattribute enum eof exceptions faulthandler fcntl fileio float fork1 frame functools gc
    generators getpass glob gzip hashlib heapq httplib imp import importlib inspect int io ioctl itertools json kqueue
    largefile list locale logging long lzma mailbox marshal math memoryview mmap multiprocessing_fork multiprocessing_forkserver
    multiprocessing_spawn openpty os pathlib pickle pipes poll popen posix posixpath pty pwd pyexpat queue random re readline
    resource runpy sched select selectors set shelve shutil signal site slice socket sort sqlite3 startfile stat str strtod
    struct structseq subprocess support symtable sys syslog tarfile tempfile thread threading threadsignals time
    timeout tokenize trace traceback tracemalloc tuple types unicode unittest unpack urllib userdict uuid venv wait3 wait4
    weakref xml_etree xml_etree_c zipfile zlib
""".split()
PYTHON_TESTS = pathlib.Path("/usr/lib") / pathlib.Path("/usr/bin/python3").resolve().name / "test"
PYTHON_LINES = r"^test\w+ \([\w.<>]+\).* \.\.\. (?:ok|FAIL|ERROR|skipped .*)$"


def python():
    return [
        Check("python", name, ["/usr/bin/python3", "-m", "test", "-v", "-u", "none", f"test_{name}"], PYTHON_LINES)
        for name in PYTHON
        if (PYTHON_TESTS / f"test_{name}.py").exists() or (PYTHON_TESTS / f"test_{name}").is_dir()
    ]


# Each verifies its own work; so many operations of each.
STRESS = {
    "malloc": 20000, "brk": 2000, "mmap": 20, "mremap": 20, "fork": 300, "vfork": 300, "clone": 200, "exec": 100, "pthread": 300,
    "sigsegv": 2000, "sigfd": 500, "sigq": 500, "signest": 100, "sigsuspend": 500, "sigpending": 500, "sigrt": 200, "sigabrt": 100,
    "kill": 500, "dup": 50, "close": 200, "pipe": 2000, "poll": 500, "epoll": 200, "eventfd": 500, "fcntl": 200, "fstat": 200,
    "env": 20, "context": 500, "daemon": 20, "exit-group": 20, "hsearch": 5, "bsearch": 5, "qsort": 2, "tsearch": 2, "tree": 1, "list": 2,
    "nice": 20, "wait": 50, "zombie": 50, "session": 20, "stack": 5, "stackmmap": 5, "bad-altstack": 200, "funcret": 200, "longjmp": 2000,
    "str": 50, "wcs": 50, "matrix": 20, "vm": 2, "memfd": 20, "mlock": 20, "munmap": 5, "prctl": 20, "get": 20, "set": 20, "spawn": 50,
    "futex": 500, "sem": 500, "mutex": 500, "switch": 500, "yield": 500, "sysinfo": 50, "udp": 50, "timer": 200, "itimer": 200, "alarm": 50,
    "dynlib": 20, "forkheavy": 2, "bigheap": 200, "schedpolicy": 20, "seccomp": 20, "sigchld": 200, "sigio": 100, "sigtrap": 200, "splice": 50,
    "tee": 50, "vforkmany": 20, "vm-rw": 5, "vm-splice": 50, "xattr": 5, "userfaultfd": 2, "resources": 2, "ptrace": 50, "personality": 20,
    "msg": 500, "mq": 500, "locka": 50, "fifo": 200, "flock": 50, "rlimit": 20, "rename": 50, "open": 50, "mergesort": 2, "heapsort": 2,
}


def stress():
    checks = []
    for name, count in STRESS.items():
        words = ["stress-ng", "--quiet", "--verify", "--no-rand-seed", "--temp-path", ".", "-t", "60", f"--{name}", "1", f"--{name}-ops", count]
        checks.append(Check("stress", name, words, r"(?:fail|error).*"))
    return checks


# What runs with the tests: quick ones that are about what a profiler may disturb.
SHORT = {
    "glib": "environment unix spawn-singlethread spawn-multithreaded fileutils thread threadtests signals1 error slice mem-overflow rwlock1"
    " private1 unix-streams unix-fd logging testing overflow cond1",
    "systemd": "test-fd-util test-env-util test-signal-util test-process-util test-alloc-util test-errno-util test-async test-fileio test-strv"
    " test-exec-util test-socket-util test-rlimit-util test-sigbus test-fdset test-execve test-capability test-procfs-util"
    " test-seccomp test-io-util test-terminal-util test-barrier test-umask-util test-data-fd-util",
    "python": "fork1 posix threadsignals wait4 wait3 gc fcntl select mmap resource",
    "stress": "malloc fork vfork clone exec pthread sigsegv bad-altstack longjmp context close dup spawn sigabrt ptrace seccomp stack",
}


def short():
    wanted = {f"{suite}/{name}" for suite, names in SHORT.items() for name in names.split()}
    return [check for suite in SUITES.values() for check in suite() if str(check) in wanted]


SUITES = {suite.__name__: suite for suite in (glib, systemd, python, stress)}


def chosen(names):
    checks = [check for suite in SUITES.values() for check in suite()]
    return [check for check in checks if not names or check.suite in names or str(check) in names]


def compare_all(checks, say=print):
    """(how many were the same, [(check, what differs)], those that prove nothing)."""
    same, different, unsteady = 0, [], []
    folder = pathlib.Path(tempfile.mkdtemp(prefix="memlog-test."))
    (folder / "run").mkdir(mode=0o700)
    try:
        for check in checks:
            found = check.compare(folder)
            if found is None:
                unsteady.append(check)
            elif found:
                different.append((check, found))
            else:
                same += 1
            for way, what in (found or {}).items():
                say(f"{check} ({way}): {what}")
    finally:
        remove(folder)
    return same, different, unsteady


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="SUITE[/NAME]")
    checks = chosen(parser.parse_args().names)
    begun = time.monotonic()
    same, different, unsteady = compare_all(checks, lambda text: print(text, flush=True))
    print("differ: " + ", ".join(str(check) for check, _ in different))
    print("not the same twice without memlog: " + ", ".join(map(str, unsteady)))
    print(f"self-checks: {same} the same, {len(different)} differ, {len(unsteady)} prove nothing, {time.monotonic() - begun:.0f} s")
    return 1 if different or not checks else 0


if __name__ == "__main__":
    sys.exit(main())
