#!/usr/bin/python3
"""Measure how much of each module its test runs: tools/dev/check/covered.py [--kept] [FOLDER...] (all folders without one).

A module's test is the one at its mirrored path, or those that tested.txt names. Builds memlog by clang in out-coverage, runs these tests
one after another, and prints for each folder how many of its lines ran, and each module of which less than half did. Exit code 1 if there is
one. The counters lie in files that are mapped from a program's start: they outlive a kill, and need no system call of who is in a sandbox.
A test may fail there: a counted libmemlog.so opens its file in each process. What it ran up to then is counted, and the failure named.

--kept    do not run a test again whose lines an earlier run left in out-coverage/covered
What it needs is installed by tools/dev/setup fuzz.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import layers
import tree

ROOT = tree.ROOT
sys.path.insert(0, str(ROOT / "tests"))

import runner

OUT = "out-coverage"
COUNTERS = ROOT / OUT / "counters"
KEPT = ROOT / OUT / "covered"
ROOT_OF_UNITS = ROOT / OUT / "root"  # looks like the root, but its `out` is ours
ARGS = f'compiler = "clang" coverage = "{COUNTERS}"'
ENOUGH = 0.5


PROGRAM_KINDS = ("executable", "shared_library")


def path_of(target):
    return target["outputs"][0].removeprefix(f"//{OUT}/")


def programs_of(targets):
    """What is built beside the tests: every test may run it."""
    return [path_of(target) for label, target in targets.items() if target["type"] in PROGRAM_KINDS and not label.startswith("//tests/")]


def helpers_of(targets, name):
    """The programs that a unit test brings to run them."""
    label = "//tests/" + ":".join(name.rsplit("/", 1))
    deps = [dep for dep in targets[label]["deps"] if dep.startswith("//tests/")]
    return [path_of(targets[dep]) for dep in deps if targets[dep]["type"] in PROGRAM_KINDS]


def source_lines(text):
    """{file: {line: times}} of llvm-cov's lines in lcov's form."""
    files = {}
    for line in text.splitlines():
        if line.startswith("SF:"):
            # The compiler was told to leave out the way up to the root, so llvm-cov takes it for a name below OUT.
            lines = files.setdefault(line[3:].removeprefix(f"{ROOT / OUT}/"), {})
        elif line.startswith("DA:"):
            number, times = line[3:].split(",")[:2]
            lines[int(number)] = max(lines.get(int(number), 0), int(times))
    return files


def counted(objects):
    """What the counters of a test say."""
    raw = [str(path) for path in COUNTERS.glob("*.profraw") if path.stat().st_size]
    if not raw:
        return {}
    merged = COUNTERS / "merged.profdata"
    subprocess.run(["llvm-profdata", "merge", "--failure-mode=all", "-sparse", *raw, "-o", merged], check=True)
    words = ["llvm-cov", "export", "-format=lcov", f"-instr-profile={merged}", objects[0]]
    for other in objects[1:]:
        words += ["-object", other]
    told = subprocess.run(words, cwd=ROOT / OUT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return source_lines(told.stdout)


def run(name, test, objects, kept):
    """{file: {line: times}} of the product that one test runs."""
    file = KEPT / (name.replace("/", ".") + ".json")
    if not (kept and file.exists()):
        for path in COUNTERS.glob("*"):
            path.unlink()
        result = test.run()
        print(f"covered: {name}: {result.passed} passed, {result.failed} failed, {result.seconds:.0f} s", file=sys.stderr, flush=True)
        if result.failed:
            (KEPT / (file.stem + ".log")).write_text(result.output)
        files = {path: lines for path, lines in counted(objects).items() if not path.startswith("tests/")}
        file.write_text(json.dumps(files))
    return {path: {int(line): times for line, times in lines.items()} for path, lines in json.loads(file.read_text()).items()}


def all_tests(targets):
    """{test's source: (the runner's test, the programs that it may run)}."""
    objects = programs_of(targets)
    tests = {}
    for name, (path, sources) in runner.unit_programs(OUT).items():
        words = ["env", "-C", str(ROOT_OF_UNITS), str(ROOT / OUT / path)]
        test = runner.Test(name, words, runner.UNIT_TIMEOUT, runner.count_check, {"CK_DEFAULT_TIMEOUT": "20"})
        programs = [path, *helpers_of(targets, name), *objects]
        tests.update((source.removeprefix("//"), (test, programs)) for source in sources)
    for path in sorted((ROOT / "tests").rglob("*_test.py")):
        tests[str(path.relative_to(ROOT))] = (runner.script_test(path, OUT, "", 1), objects)
    return tests


class Folder:
    """What the tests of one folder's modules run."""

    def __init__(self):
        self.modules = self.by_mirror = self.lines = self.ran = 0
        self.below = []

    def add(self, module, by_mirror, lines):
        ran = sum(times > 0 for times in lines.values())
        self.modules += 1
        self.by_mirror += by_mirror
        self.lines += len(lines)
        self.ran += ran
        if ran < ENOUGH * len(lines):
            self.below.append(f"{module}: {percent(ran, len(lines))} of {len(lines)} lines")


def percent(part, whole):
    return f"{100 * part // whole} %" if whole else "-"


def union(tests, name):
    """{line: times at most} of one file over several tests."""
    lines = {}
    for files in tests:
        for number, times in files.get(name, {}).items():
            lines[number] = max(lines.get(number, 0), times)
    return lines


def table_of(modules, wanted, ran):
    """{folder: Folder} of the wanted modules; `ran` is what each test ran."""
    table = {}
    for module in wanted:
        lines = union([ran[test] for test in modules.by_module[module]], module + ".c")
        table.setdefault(str(pathlib.PurePath(module).parent), Folder()).add(module, bool(modules.mirrored(module)), lines)
    return table


def show(table):
    print("| folder | modules | at the mirrored path | lines | of them run |\n|---|---|---|---|---|")
    for name, folder in sorted(table.items()):
        print(f"| `{name}` | {folder.modules} | {folder.by_mirror} | {folder.lines} | {percent(folder.ran, folder.lines)} |")
    total = {field: sum(getattr(folder, field) for folder in table.values()) for field in ("modules", "by_mirror", "lines", "ran")}
    print(f"| all | {total['modules']} | {total['by_mirror']} | {total['lines']} | {percent(total['ran'], total['lines'])} |")
    below = [line for _, folder in sorted(table.items()) for line in folder.below]
    print("\n".join(["", "Less than half of their lines:", *below] if below else ["", "No module below half of its lines."]))
    return 1 if below else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("folders", nargs="*", metavar="FOLDER")
    options = parser.parse_args()
    runner.take_signals()
    COUNTERS.mkdir(parents=True, exist_ok=True)
    COUNTERS.chmod(0o777)  # some tests run programs as somebody else
    KEPT.mkdir(exist_ok=True)
    ROOT_OF_UNITS.mkdir(exist_ok=True)
    for name, place in (("out", ROOT / OUT), ("tests", ROOT / "tests")):
        if not (ROOT_OF_UNITS / name).exists():
            (ROOT_OF_UNITS / name).symlink_to(place)
    runner.build(OUT, ARGS, ["default"])
    targets = layers.describe(ROOT, OUT)
    modules = layers.tests_of_modules(ROOT, OUT, tree.files(ROOT), targets)
    wanted = [name for name in modules.modules if not options.folders or str(pathlib.PurePath(name).parent) in options.folders]
    wanted = [name for name in wanted if (ROOT / (name + ".c")).exists()]
    tests = all_tests(targets)
    ran = {source: run(source, *tests[source], options.kept) for source in sorted({test for name in wanted for test in modules.by_module[name]})}
    return show(table_of(modules, wanted, ran))


if __name__ == "__main__":
    sys.exit(main())
