#!/usr/bin/python3
"""Close what `gn check` lets pass: tools/dev/check/layers.py OUT (a folder made by `gn gen`). Prints each violation, exit 1 on any.

Each rule answers a way round the layers that was tried and passed GN silently; tests/layers applies each of them:
  one-target    every source file stands in exactly one target (an unknown header is never checked, a shared one by its laxest owner)
  reachable     every BUILD.gn is loaded, and //:all reaches every target (what is not loaded is not checked)
  closed        library targets name their `visibility` and their `public` headers (the defaults are "everybody" and "everything")
  late-include  no #include below code (GN reads only the top of a file)
  full-path     quoted includes are paths from the root (a neighbour by its bare name resolves to no known file)
  bypass        no nogncheck, no check_includes = false
  libs          `libs` and -l only in tools/gn/libs (libraries are not deps: no layer sees them)
  length        no source file over 800 lines
  suppression   NOLINT names its check and a reason on its line
  named-path    paths named in *.md exist
  folder        a target's sources lie in the folder of its BUILD.gn; a product folder holds at most 35; no name repeats its folder's
  direction     which folders of a room include which others is listed in folders.txt: nothing else, nothing unused, no circle
  tested        each module has a test at its mirrored path (ipc/wire/reader.c: tests/ipc/wire/reader_test.c), or tested.txt names the tests that
                run it: all of them the runner's, no row unneeded; covered.py measures, by hand, how much of it they run
  struct-name   no struct, union or enum ml_* is defined twice, nor any other name in two headers: who searches for a name finds one thing
"""
import json
import pathlib
import re
import subprocess
import sys

import folders
import tested
import tree
from tree import ROOT, report

sys.path.insert(0, str(ROOT / "tests"))

import runner

ROOMS = ("base", "client", "host", "ipc", "mojom_like_idl", "service", "tests", "tools", "tracer")
PRODUCT_ROOMS = [room for room in ROOMS if room != "tests"]
SOURCE_SUFFIXES = folders.SOURCE_SUFFIXES
TEXT_SUFFIXES = SOURCE_SUFFIXES | {".py", ".sh", ".js", ".gn", ".gni"}
MAX_LINES = 800

# Inputs that tests read as data, and results as they were measured: not the tree as it is.
DATA_FOLDERS = re.compile(r"^(tests/[\w/]*(golden|bad|corpus|seeds|layers)|tools/bench/results)/")

def describe(root, out):
    """All targets as GN sees them: label -> description."""
    answer = subprocess.run(
        ["gn", "desc", out, "//*", "--format=json"], cwd=root, stdout=subprocess.PIPE, text=True, check=False
    )
    if answer.returncode != 0:
        sys.exit(f"layers.py: gn desc {out} failed: {answer.stdout.strip()}")
    return one_toolchain(json.loads(answer.stdout))


def one_toolchain(targets):
    """A target that another toolchain builds once more is the same target; one that only it builds stands for itself."""

    def plain(label):
        return label.removesuffix("(//tools/gn/toolchain:attached)")

    merged = {}
    for label, target in sorted(targets.items(), key=lambda item: plain(item[0]) != item[0]):
        for key, value in target.items():
            if isinstance(value, list):
                target[key] = [plain(one) if isinstance(one, str) and one.startswith("//") else one for one in value]
        merged.setdefault(plain(label), target)
    return merged


def listed(value):
    return value if isinstance(value, list) else []


def check_one_target(files, targets):
    owners = {}
    for label, target in targets.items():
        names = {*listed(target.get("sources")), *listed(target.get("public")), *listed(target.get("inputs"))}
        for name in names:
            owners.setdefault(name, []).append(label)
    for name in files:
        if not name.startswith(tuple(room + "/" for room in ROOMS)) or DATA_FOLDERS.match(name):
            continue
        if pathlib.PurePath(name).suffix not in SOURCE_SUFFIXES:
            continue
        found = sorted(owners.get("//" + name, []))
        if not found:
            report("one-target", name, "stands in no target: list it under sources or public")
        elif len(found) > 1:
            report("one-target", name, "stands in more than one target: " + ", ".join(found))


def check_reachable(root, out, files, targets):
    loaded_text = (root / out / "build.ninja.d").read_text()
    loaded = set(re.findall(r"(\S*BUILD\.gn)\b", loaded_text))
    loaded = {str((root / out / name).resolve()) for name in loaded}
    for name in files:
        if pathlib.PurePath(name).name == "BUILD.gn" and str((root / name).resolve()) not in loaded:
            report("reachable", name, "is not loaded: nothing that //:all reaches names it")
    reached, queue = set(), ["//:all"]
    while queue:
        label = queue.pop()
        if label not in reached and label in targets:
            reached.add(label)
            queue += targets[label].get("deps", []) + targets[label].get("public_deps", [])
            queue += targets[label].get("data_deps", [])
    for label, target in targets.items():
        # Headers of a system library compile nothing; the library is there for whoever wants it.
        if label in reached or label.startswith("//tools/gn/libs:") or label in ("//:default", "//:install"):
            continue
        # Nor is what runs only when asked for by name.
        if label.endswith("(//tools/gn/toolchain:by_name)"):
            continue
        if target.get("type") != "group" or target.get("deps"):
            report("reachable", label, "is not reached from //:all")


def check_closed(targets):
    for label, target in targets.items():
        if target.get("type") not in ("source_set", "static_library") or label.startswith("//tests/"):
            continue
        # What bundles other targets for those outside the tree (libmemlog.a) is there for everybody.
        if target.get("sources") and "*" in target.get("visibility", ["*"]):
            report("closed", label, "has no visibility: name who may use it")
        headers = [name for name in listed(target.get("sources")) if name.endswith(".h")]
        if headers and target.get("public", "*") == "*":
            report("closed", label, "has no public: every header of it, internal ones too, would be public")


def strip_comments(text):
    """Comments become blanks, line numbers stay; strings are kept (no include hides in one)."""
    def blank(match):
        return match.group(0) if match.group(0)[0] in "\"'" else re.sub(r"[^\n]", " ", match.group(0))

    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', blank, text, flags=re.S)


def check_includes(root, out, name, text):
    code_line = 0
    continued = False
    for number, line in enumerate(strip_comments(text).splitlines(), 1):
        bare = line.strip()
        include = re.match(r'#\s*include\s+(["<])([^">]+)[">]', bare)
        if include and code_line:
            report("late-include", f"{name}:{number}", f"#include below code (line {code_line}): GN reads only the top of a file")
        if include and include.group(1) == '"':
            path = include.group(2)
            if not (root / path).is_file() and not (root / out / "gen" / path).is_file():
                report("full-path", f"{name}:{number}", f'"{path}" is no path from the root or of a generated file')
        directive = bare.startswith("#") or continued
        continued = directive and bare.endswith("\\")
        if bare and not directive and not code_line:
            code_line = number


def check_text(root, out, name, text):
    suffix = pathlib.PurePath(name).suffix
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        report("length", name, f"{len(lines)} lines, {MAX_LINES} at most: look for the second module")
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}"
        if suffix in (".c", ".h", ".cc") and "nogncheck" in line:
            report("bypass", where, "nogncheck hides an include from the layers")
        if suffix in (".gn", ".gni"):
            code = line.split("#", 1)[0]
            if re.search(r"\bcheck_includes\s*=\s*false", code):
                report("bypass", where, "check_includes = false hides a target from the layers")
            if not name.startswith("tools/gn/libs/") and re.search(r'\blibs\s*\+?=|"-l\w', code):
                report("libs", where, "a library is a target of //tools/gn/libs, nothing else names it")
        if suffix in (".c", ".h", ".cc") and re.search(r"NOLINT(?!\w*\([\w.,-]+\): \S)", line):
            report("suppression", where, "write NOLINT(check): reason")
    if suffix in (".c", ".h", ".cc"):
        check_includes(root, out, name, text)


def check_struct_names(root, files):
    """A name of ours means one thing in the whole tree; a file's own helper may be called what it is in that file."""
    places = {}
    for name in files:
        if pathlib.PurePath(name).suffix in (".c", ".h"):
            text = (root / name).read_text()
            for found in re.finditer(r"^(?:typedef )?(?:struct|union|enum) (\w+)\s*\{", text, flags=re.M):
                places.setdefault(found.group(1), []).append(f"{name}:{text.count(chr(10), 0, found.start()) + 1}")
    for struct, where in sorted(places.items()):
        known = where if struct.startswith("ml_") else [place for place in where if ".h:" in place]
        if len(known) > 1:
            report("struct-name", known[-1], f"{struct} is defined in {known[0]} too: another name for one of them")


def check_folders(root, files, targets):
    tree = folders.Folders(root, files, PRODUCT_ROOMS)
    tree.check_owners(targets)
    tree.check_names_and_sizes()
    tree.check_directions()
    for error in tree.errors:
        report(*error)


def tests_of_modules(root, out, files, targets):
    """Who tests what."""
    tests = {name for name in files if name.startswith("tests/") and name.endswith("_test.py")}
    for _, sources in runner.unit_programs_among(targets, out).values():
        tests.update(source.removeprefix("//") for source in sources if source.endswith(("_test.c", "_fuzz.c")))
    return tested.Tested(root, files, PRODUCT_ROOMS, tests)


def check_tested(root, out, files, targets):
    modules = tests_of_modules(root, out, files, targets)
    modules.check()
    for error in modules.errors:
        report(*error)


def check_named_paths(root, name, text):
    """Paths in backticks that begin with a room must exist, as a file, a folder or a glob that matches."""
    for number, line in enumerate(text.splitlines(), 1):
        for quoted in re.findall(r"`([^`]+)`", line):
            for word in quoted.split():
                path = re.sub(r"[:,;.]+(\d+)?$", "", word.removeprefix("./"))
                if not re.match(rf"(?:{'|'.join(ROOMS)}|\.ci)/[\w.*/-]+$", path):
                    continue
                if not (root / path).exists() and not any(root.glob(path.rstrip("/"))):
                    report("named-path", f"{name}:{number}", f"`{path}` does not exist")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    out = sys.argv[1]
    root = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) == 3 else ROOT
    files = tree.files(root)
    targets = describe(root, out)
    check_one_target(files, targets)
    check_reachable(root, out, files, targets)
    check_closed(targets)
    check_folders(root, files, targets)
    check_tested(root, out, files, targets)
    check_struct_names(root, [name for name in files if not DATA_FOLDERS.match(name)])
    for name in files:
        suffix = pathlib.PurePath(name).suffix
        if DATA_FOLDERS.match(name):
            continue
        if suffix in TEXT_SUFFIXES:
            check_text(root, out, name, (root / name).read_text())
        elif suffix == ".md":
            check_named_paths(root, name, (root / name).read_text())
    return tree.exit_code("layers: %d violations")


if __name__ == "__main__":
    sys.exit(main())
