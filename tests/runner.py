"""Run every test of a build and say how many passed; called by ./test and .ci/run after the build.

    tests/runner.py [--sanitize] [--ci] [--jobs N] [NAME...]

What is run (a NAME keeps those whose name contains it):
  unit    every executable that depends on Check (asked of GN, so that none can be forgotten), counted by Check's own tests
  script  tests/**/*_test.py, each a unittest module, counted by its test methods
  check   (--ci) one each for format, lint, layers, symbols, ... : see CHECKS
--sanitize (implied by --ci) runs the unit tests again under address+undefined, built in out-sanitize, and the whole of memlog,
the preload too, under undefined alone, built in out-undefined (the oracle's programs, and units that address cannot run); and
what threads share without locks, and the service on several cores, under thread, built in out-thread.
A unit or script that fails is run once more when all else is done, alone: a machine that stands still under others breaks limits that
are there against hanging. Passes it then, it counts as passed, and a line FLAKY before the last tells of it. None of that for checks, for what a
sanitizer reported, for whoever says `# runner: no second chance` in its source or in its output, nor when more than eight failed.
A script that others would notice, or that measures what they do, says `# runner: alone`, and runs when they are done.
The builds for sanitizers and the lint take what tests leave of the processors, from the start: most tests wait for most of their time.
Closes with what each failed test asserted and the line `N passed, N failed`: who sees the end of a log alone knows what happened.
Exit code 1 on a failure, 2 when nothing was run.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = "out"
SANITIZE_OUT = "out-sanitize"
UNDEFINED_OUT = "out-undefined"
THREAD_OUT = "out-thread"
CHECK = "//tools/gn/libs:check"
SANITIZE_ARGS = 'sanitizer = "address,undefined"'
UNDEFINED_ARGS = 'sanitizer = "undefined"'
THREAD_ARGS = 'sanitizer = "thread"'

# They use Check to assert, and are run by hand.
NOT_TESTS = {"client/capture_tool", "dump/dump_program"}

# Units that cannot run under address.
NOT_UNDER_ADDRESS = {
    "client/sampling/poisson_test",  # figures, for minutes: address makes only that six times slower
    # What they test is in another program: address makes only their own book-keeping ten times slower.
    "client/profile_test",
    "client/stream/lease_test",
    "client/unwind/unwind_budget_test",  # measures stack use, which address multiplies
    "client/unwind/unwind_stacks_test",  # jumps out of signal handlers, now and then while address's runtime holds a lock of its own
    "service/sandbox/sandbox_test",  # the sandbox's limit of address space leaves no room for address's shadow of it
}

# Scripts that run the whole of memlog under undefined, and what they run beside it.
UNDER_UNDEFINED = ("tests/e2e/oracle_test.py",)
RUN_UNDER_UNDEFINED = ("shipped", "tests/oracle")

# Those that take longest, the longest first: begun last, one of them would run alone while the other cores have nothing left to do.
# By the seconds that a whole run names; where a name stands costs time and nothing else.
LONGEST_FIRST = (
    "tests/e2e/self_checks_test.py",
    "tests/docs/guides_test.py",
    "tests/e2e/triggers_test.py",
    "tests/e2e/page_test.py",
    "tests/e2e/checkout_test.py",
    "tests/e2e/readers_test.py",
    "tests/e2e/uploads_pruning_test.py",
    "tests/e2e/uploads_faults_test.py",
    "tests/e2e/uploads_test.py",
    "tests/e2e/what_programs_see_test.py",
    "tests/e2e/real_programs_test.py",
    "tests/e2e/convert_test.py",
    "tests/e2e/limits_test.py",
    "tests/e2e/uploads_s3_test.py",
    "tests/e2e/pages_test.py",
    "tests/e2e/process_list_test.py",
    "tests/e2e/bystanders_test.py",
    "tests/e2e/soak_test.py",
    "tests/e2e/http_attacks_test.py",
    "tests/e2e/pressure_test.py",
    "tests/e2e/http_test.py",
    "tests/e2e/many_test.py",
    "tests/e2e/symbols_test.py",
    "tests/e2e/oracle_test.py",
    "client/stream/lease_test",
    "service/session/race_oracle_test",
    "service/session/oracle_test",
)
SANITIZED = re.compile(r"^(?:address|undefined|thread)/")

# Units whose threads share memory without locks, and those that have the service work on several cores.
UNDER_THREAD = {
    "client/sampling/sampled_set_test",
    "host/collect/server/question_queue_test",
    "host/collect/storing/store_thread_test",
    "service/session/oracle_test",
    "service/session/race_oracle_test",
    "service/session/slice_test",
    "service/workers/workers_test",
}

# Seconds for a whole executable or script; one that needs longer says so by a line `# runner: timeout=N`.
UNIT_TIMEOUT = 480
SCRIPT_TIMEOUT = 900
SANITIZE_FACTOR = 4

# More programs than that failed: something is broken, and not the machine too busy.
SECOND_CHANCES = 8
# What guards exactness says so, in a line of its source or, once it knows that a figure is wrong, of its output.
NO_SECOND_CHANCE = re.compile(r"^(?:# |/\* )runner: no second chance(?: \*/)?$", re.M)
SANITIZER_REPORT = re.compile(r"^.*(?:ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|SUMMARY: \w+Sanitizer|: runtime error: ).*$", re.M)

# Of the summary at the end: what one program may say there, the whole of it stands above.
SUMMARY_TESTS, SUMMARY_LINES, SUMMARY_COLUMNS = 5, 6, 300

# A run of so many programs says which took longest.
WHOLE_RUN, LONGEST_TOLD = 300, 30

# name, seconds, command: exit code 0 is a pass. They run in the root with the build made.
CHECKS = [
    ("check/gn", 60, ["gn", "check", OUT, "--check-generated"]),
    ("check/layers", 60, ["tools/dev/check/layers.py", OUT]),
    ("check/symbols", 60, ["tools/dev/check/symbols.sh", OUT]),
    ("check/format", 120, ["tools/dev/check/format.sh"]),
    ("check/words", 60, ["tools/dev/check/words.py", OUT]),
    ("check/documents", 60, ["tools/dev/check/documents.py", OUT]),
    ("check/lint", 4800, ["tools/dev/check/lint.py", OUT]),
]

# Minutes of all processors.
IDLE = {"check/lint"}
AS_IDLE = ("nice", "-n", "19")


class Result:
    """How one test program ended."""

    def __init__(self, name, passed, failed, skipped, output, seconds, load=0.0, processor_seconds=0.0):
        self.name = name
        self.passed = passed
        self.failed = failed
        self.skipped = skipped
        self.output = output
        self.seconds = seconds
        self.load = load  # of the machine, at its end
        self.processor_seconds = processor_seconds


def end_session(session):
    """Kill whoever is in it: Check gives each case a process group of its own, and who goes on there keeps the output open."""
    found = True
    while found:
        time.sleep(0.01)
        found = False
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            try:
                is_over = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].startswith(("Z", "X"))
                if os.getsid(pid) == session and not is_over:
                    os.kill(pid, signal.SIGKILL)
                    found = True
            except OSError:
                pass  # it has ended meanwhile, or is another user's


def run_limited(command, timeout, env):
    """Run to the end or to the timeout, then end its whole session.

    Returns (exit code or None, output, processor seconds of it and of whom it has waited for)."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    read = []
    reader = threading.Thread(target=lambda: read.append(process.stdout.read()))
    reader.start()
    end = time.monotonic() + timeout
    reader.join(timeout)
    ended, status, used = os.wait4(process.pid, os.WNOHANG)
    while not ended and time.monotonic() < end:
        time.sleep(0.01)
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
    is_late = not ended or reader.is_alive()
    if is_late:
        end_session(process.pid)
        reader.join()
    if not ended:
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    return None if is_late else process.returncode, read[0].decode(errors="replace"), used.ru_utime + used.ru_stime


def count_check(output):
    """Check's closing line, e.g. `95%: Checks: 20, Failures: 1, Errors: 0`; several runners in one program add up."""
    passed = failed = 0
    for checks, failures, errors in re.findall(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", output, re.M):
        failed += int(failures) + int(errors)
        passed += int(checks) - int(failures) - int(errors)
    return passed, failed, 0


def count_unittest(output):
    """unittest's closing lines: `Ran N tests in ...` and `OK` or `FAILED (failures=1, errors=2, skipped=3)`."""
    ran = re.search(r"^Ran (\d+) tests? in", output, re.M)
    if not ran:
        return 0, 0, 0
    close = re.search(r"^(?:OK|FAILED)(?: \((.*)\))?\s*$", output[ran.end():], re.M)
    numbers = dict(re.findall(r"(\w+)=(\d+)", close.group(1) or "")) if close else {}
    failed = int(numbers.get("failures", 0)) + int(numbers.get("errors", 0))
    skipped = int(numbers.get("skipped", 0))
    return max(int(ran.group(1)) - failed - skipped, 0), failed, skipped


def count_exit_code(_output):
    return 1, 0, 0


def unittest_failures(output):
    """(test, where and what it asserted) of each; unittest closes a traceback by the exception, which may have many lines."""
    blocks = re.split(r"^={70}\n", output, flags=re.M)[1:]
    for block in blocks:
        head, _, trace = block.partition("\n" + "-" * 70 + "\n")
        lines = re.split(r"^-{70}$", trace, flags=re.M)[0].rstrip().splitlines()
        last = max((i for i, line in enumerate(lines) if re.match(r"\s+File .*, line \d+", line)), default=-1)
        here = [line.strip() for line in lines if re.match(r"\s+File .*_test\.py., line \d+", line)][-1:]
        said = [line for line in lines[last + 1:] if not line.startswith("    ")]
        yield head.splitlines()[0], here + said


def failures(output):
    """[(test, lines)] of what failed in a program's output: by unittest, by Check, by a sanitizer, or how it ended at all."""
    found = list(unittest_failures(output))
    for path, test, text in re.findall(r"^(\S+:\d+):[FE]:[^:]*:([^:]*):\d+: (.*(?:\n(?!\S+:\d+:[PFE]:).+){0,5})", output, re.M):
        found.append((test, [path, *text.splitlines()]))
    for line in SANITIZER_REPORT.findall(output):
        found.append(("sanitizer", [line]))
    # A script that hung has said where it was (harness.py); its main thread comes last, and begins with where it is.
    hung = re.split(r"Timeout \(\d+:\d\d:[\d.]+\)!$", output, flags=re.M)[1:]
    if hung:
        frames = hung[-1].rpartition("(most recent call first):")[2].splitlines()
        found.append(("hangs", [line.strip() for line in frames if "/tests/" in line]))
    return found or [("its end", output.rstrip().splitlines()[-SUMMARY_LINES:])]


def asserted(result, head):
    """What failed in a program, short; each begins with `head`."""
    lines = []
    found = failures(result.output)
    for test, said in found[:SUMMARY_TESTS]:
        lines.append(f"{head}: {test}")
        lines += ["    " + line[:SUMMARY_COLUMNS] for line in said[:SUMMARY_LINES]]
    if len(found) > SUMMARY_TESTS:
        lines.append(f"{head}: and {len(found) - SUMMARY_TESTS} more")
    return lines


def longest(results):
    """Where the time goes, of a whole run: the programs to make shorter, and LONGEST_FIRST's next order."""
    if len(results) < WHOLE_RUN:
        return []
    lines = []
    for head, seconds_of in (("longest", lambda one: one.seconds), ("most processor time", lambda one: one.processor_seconds)):
        ordered = sorted(results, key=lambda one: -seconds_of(one))
        told = ", ".join(f"{one.name} {seconds_of(one):.0f}" for one in ordered[:LONGEST_TOLD])
        lines.append(f"{head}, in seconds of {sum(map(seconds_of, ordered)):.0f} in all: {told}")
    return lines


def closing(results, flaky):
    """The last thing in a log: all failures, what passed at its second chance alone, and the sums."""
    lines = longest(results)
    failed = sorted((result for result in results if result.failed), key=lambda one: one.name)
    for result in failed:
        lines += asserted(result, f"FAILED {result.name}")
    if failed:
        lines.append("failed: " + ", ".join(result.name for result in failed))
    for result in sorted(flaky, key=lambda one: one.name):
        lines.append(f"FLAKY {result.name}: failed beside others (load {result.load:.1f}), passed alone")
        lines += ["    " + line for line in asserted(result, "it had failed")]
    skipped = sum(result.skipped for result in results)
    lines.append(
        f"{sum(result.passed for result in results)} passed, {sum(result.failed for result in results)} failed"
        + (f", {skipped} skipped" if skipped else "")
    )
    return lines


class Test:
    """One program to run: how, how long, and how its output is counted."""

    def __init__(self, name, command, timeout, count, env=None, once=False):
        self.name = name
        self.once = once  # its failure is final
        self.alone = False  # nothing runs beside it
        self.idle = False  # it takes what the others leave, and begins with the first of them
        self.build = None  # without which it cannot be run; None: it is there
        self.command = command
        self.timeout = timeout
        self.count = count
        self.env = env or {}

    def run(self):
        """None: what it needs was not built, which is a failure of the build."""
        if self.build and not self.build.is_there():
            return None
        start = time.monotonic()
        # Nobody's own defaults are read, and what a browser keeps there goes with the folder.
        with tempfile.TemporaryDirectory(prefix="memlog-config.", ignore_cleanup_errors=True) as folder:
            os.chmod(folder, 0o755)
            command = [*AS_IDLE, *self.command] if self.idle else self.command
            code, output, used = run_limited(command, self.timeout, {**os.environ, "XDG_CONFIG_HOME": folder, **self.env})
        passed, failed, skipped = self.count(output) if code == 0 or self.count is not count_exit_code else (0, 0, 0)
        if code is None:
            output += f"\nended after {self.timeout} s"
        elif code < 0:
            output += f"\nkilled by {signal.Signals(-code).name}"
        elif code > 0 and not failed:
            output += f"\nexit code {code}"
        # A program that crashed, hung or ran nothing is a failure that it could not count itself.
        if not failed and (code != 0 or not passed + skipped):
            failed = 1
            output += "" if code != 0 else "\nno test was run"
        return Result(self.name, passed, failed, skipped, output, time.monotonic() - start, os.getloadavg()[0], used)

    def deserves_another(self, result):
        """Its failure may be the machine's."""
        return not self.once and not SANITIZER_REPORT.search(result.output) and not NO_SECOND_CHANCE.search(result.output)


def unit_programs(out):
    answer = subprocess.run(
        ["gn", "desc", out, "//tests/*", "--format=json"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return unit_programs_among(json.loads(answer.stdout), out)


def unit_programs_among(targets, out):
    """Every executable of tests that depends on Check: name (tests' label, as host/options_test) -> (path below `out`, its source files).

    `targets` is what GN says of them. What is named NAME_tool is used by hand: it wants arguments."""

    def uses_check(label):
        deps = targets.get(label, {}).get("deps", [])
        return CHECK in deps or any(uses_check(dep) for dep in deps)

    def sources(label, seen):
        """Its own, and those of the sets of sources below tests that it is made of."""
        seen.add(label)
        found = list(targets[label].get("sources", []))
        for dep in targets[label].get("deps", []):
            if dep not in seen and targets.get(dep, {}).get("type") == "source_set":
                found += sources(dep, seen)
        return found

    programs = {}
    for label, target in targets.items():
        if target["type"] == "executable" and label.startswith("//tests/") and not label.endswith("_tool") and uses_check(label):
            name = label.removeprefix("//tests/").replace(":", "/")
            if name in NOT_TESTS:
                continue
            programs[name] = (target["outputs"][0].removeprefix(f"//{out}/"), sources(label, set()))
    return dict(sorted(programs.items()))


def wants_no_second_chance(sources):
    files = [ROOT / source.removeprefix("//") for source in sources]
    return any(NO_SECOND_CHANCE.search(file.read_text()) for file in files if file.suffix in (".c", ".py") and file.exists())


def unit_tests(out, prefix, factor):
    env = {
        "CK_DEFAULT_TIMEOUT": "20",
        # A case's time limit is there against endless loops; a busy machine is not one.
        "CK_TIMEOUT_MULTIPLIER": str(3 * factor),
        "CK_VERBOSITY": "normal",
        "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=1:handle_abort=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    return [
        Test(prefix + name, [str(ROOT / out / path)], UNIT_TIMEOUT * factor, count_check, env, wants_no_second_chance(sources))
        for name, (path, sources) in unit_programs(out).items()
    ]


def script_test(path, out, prefix, factor, cache=""):
    source = path.read_text()
    limit = re.search(r"^# runner: timeout=(\d+)$", source, re.M)
    timeout = int(limit.group(1)) if limit else SCRIPT_TIMEOUT
    timeout *= factor
    env = {"PYTHONPATH": str(ROOT / "tests"), "MEMLOG_TEST_OUT": str(ROOT / out), "MEMLOG_TEST_SECONDS": str(timeout)}
    if cache:
        env["MEMLOG_TEST_SYMBOL_CACHE"] = cache
    name = prefix + str(path.relative_to(ROOT))
    test = Test(name, ["/usr/bin/python3", str(path)], timeout, count_unittest, env, bool(NO_SECOND_CHANCE.search(source)))
    test.alone = re.search(r"^# runner: alone$", source, re.M) is not None
    return test


def script_tests(cache=""):
    """The shipped programs' own; they share what they have read of names in the folder `cache`."""
    return [script_test(path, OUT, "", 1, cache) for path in sorted((ROOT / "tests").rglob("*_test.py"))]


def longest_first(tests):
    """What is in no list keeps its order, and so comes last: short programs fill the cores to the end. What waits for a build comes later."""
    place = {name: number for number, name in enumerate(LONGEST_FIRST)}
    return sorted(tests, key=lambda test: (test.build is not None, place.get(SANITIZED.sub("", test.name), len(place))))


def wanted(tests, names):
    return [test for test in tests if not names or any(name in test.name for name in names)]


def generate(out, args):
    subprocess.run(["gn", "gen", "-q", out, "--args=" + args], cwd=ROOT, check=True)


class Build:
    """What some tests are to be built by, beside those that are there. Whoever waits for one that failed is not run."""

    def __init__(self, out, args, targets):
        self.out = out
        self.args = args
        self.targets = targets
        self.done = threading.Event()
        self.failed = True

    def run(self):
        """None: it is there."""
        start = time.monotonic()
        try:
            words = [*AS_IDLE, "tools/dev/build", self.out, *self.targets]
            built = subprocess.run(words, cwd=ROOT, env={**os.environ, "GN_ARGS": self.args}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, errors="replace", check=False)
            print(built.stdout, end="", flush=True)
            self.failed = built.returncode != 0
        finally:
            self.done.set()
        return Result(f"build/{self.out}", 0, 1, 0, built.stdout, time.monotonic() - start, os.getloadavg()[0]) if self.failed else None

    def is_there(self):
        self.done.wait()
        return not self.failed


def built(tests, out, args, targets):
    """The same tests; they wait for their build."""
    build = Build(out, args, targets) if tests else None
    for test in tests:
        test.build = build
    return tests


def sanitized_tests(names):
    """The units under address and undefined."""
    generate(SANITIZE_OUT, SANITIZE_ARGS)
    tests = wanted(unit_tests(SANITIZE_OUT, "address/", SANITIZE_FACTOR), names)
    tests = [test for test in tests if test.name.removeprefix("address/") not in NOT_UNDER_ADDRESS]
    programs = [os.path.relpath(test.command[0], ROOT / SANITIZE_OUT) for test in tests]
    return built(tests, SANITIZE_OUT, SANITIZE_ARGS, programs)


def undefined_tests(names):
    """Everything that is shipped, and the units that the other build leaves out, under undefined."""
    generate(UNDEFINED_OUT, UNDEFINED_ARGS)
    tests = unit_tests(UNDEFINED_OUT, "undefined/", SANITIZE_FACTOR)
    tests = [test for test in tests if test.name.removeprefix("undefined/") in NOT_UNDER_ADDRESS]
    tests += [script_test(ROOT / path, UNDEFINED_OUT, "undefined/", SANITIZE_FACTOR) for path in UNDER_UNDEFINED]
    tests = wanted(tests, names)
    programs = [os.path.relpath(test.command[0], ROOT / UNDEFINED_OUT) for test in tests if test.count is count_check]
    return built(tests, UNDEFINED_OUT, UNDEFINED_ARGS, [*programs, *RUN_UNDER_UNDEFINED])


def thread_tests(names):
    """What several threads do at once, under thread."""
    generate(THREAD_OUT, THREAD_ARGS)
    tests = wanted(unit_tests(THREAD_OUT, "thread/", SANITIZE_FACTOR), names)
    tests = [test for test in tests if test.name.removeprefix("thread/") in UNDER_THREAD]
    programs = [os.path.relpath(test.command[0], ROOT / THREAD_OUT) for test in tests]
    return built(tests, THREAD_OUT, THREAD_ARGS, programs)


def checks():
    tests = [Test(name, command, limit, count_exit_code, once=True) for name, limit, command in CHECKS]
    for test in tests:
        test.idle = test.name in IDLE
    return tests


def collect(options, cache):
    tests = wanted(unit_tests(OUT, "", 1) + script_tests(cache), options.names)
    if options.sanitize:
        tests += sanitized_tests(options.names) + undefined_tests(options.names)
        tests += thread_tests(options.names)
    if options.ci:
        tests += wanted(checks(), options.names)
    return longest_first(tests)


def show(result, done, total):
    count = result.passed + result.failed + result.skipped
    verdict = "FAILED" if result.failed else "ok"
    tail = f", {result.skipped} skipped" if result.skipped else ""
    print(f"[{done}/{total}] {verdict:6} {result.name} ({count} tests{tail}, {result.seconds:.1f} s, {result.processor_seconds:.1f} of a processor)", flush=True)
    if result.failed:
        print("\n".join("    " + line for line in result.output.splitlines()[-200:]), flush=True)
        print(f"    load of the machine then: {result.load:.1f}", flush=True)
    elif result.skipped:
        for reason in re.findall(r"skipped ['\"](.*)['\"]", result.output):
            print(f"    skipped: {reason}", flush=True)


def default_jobs(cores):
    """More than cores: most programs wait for more than half of their time, for looks at memory, servers and browsers."""
    return 2 * cores


def run_together(tests, jobs, results, count):
    """As many beside each other as there are jobs; builds, and what is idle, one behind the other in what these leave."""
    builds = list(dict.fromkeys(test.build for test in tests if test.build))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool, concurrent.futures.ThreadPoolExecutor(1) as rest:
        pending = [rest.submit(build.run) for build in builds]
        pending += [(rest if test.idle else pool).submit(test.run) for test in tests]
        for future in concurrent.futures.as_completed(pending):
            result = future.result()
            if result:
                results[result.name] = result
                show(result, len(results), count)


def run_all(tests, jobs):
    """Result of each, by name; those that run alone come last."""
    results = {}
    run_together([test for test in tests if not test.alone], jobs, results, len(tests))
    run_together([test for test in tests if test.alone], 1, results, len(tests))
    return results


def give_second_chances(tests, results):
    """Run who failed once more, alone. Puts who passes into the results; returns how those had ended before."""
    failed = [test for test in tests if test.name in results and results[test.name].failed]
    flaky = []
    if len(failed) > SECOND_CHANCES:
        return flaky
    for test in failed:
        before = results[test.name]
        if not test.deserves_another(before):
            continue
        print(f"once more, alone: {test.name}", flush=True)
        again = test.run()
        show(again, len(results), len(results))
        if not again.failed:
            results[test.name] = again
            flaky.append(before)
    return flaky


def take_signals():
    """Under nohup and the like some signals come ignored, and a shell under test cannot trap them."""
    for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(ignored) == signal.SIG_IGN:
            signal.signal(ignored, signal.SIG_DFL)


def main():
    parser = argparse.ArgumentParser(prog="./test", description="Build and run every test.")
    parser.add_argument("--sanitize", action="store_true", help="unit tests under address+undefined as well")
    parser.add_argument("--ci", action="store_true", help="all of it: --sanitize and the checks of style and layers")
    parser.add_argument("--jobs", type=int, default=default_jobs(os.cpu_count() or 1), help="programs at once (default: twice as many as cores)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="run only what contains NAME")
    options = parser.parse_args()
    options.sanitize = options.sanitize or options.ci

    take_signals()
    with tempfile.TemporaryDirectory(prefix="memlog-symbols.", ignore_cleanup_errors=True) as cache:
        tests = collect(options, cache)
        results = run_all(tests, max(options.jobs, 1))
        flaky = give_second_chances(tests, results)
    print("\n".join(closing(list(results.values()), flaky)))
    if not results:
        print("no test has such a name" if options.names else "no test was found", file=sys.stderr)
        return 2
    return 1 if any(result.failed for result in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
