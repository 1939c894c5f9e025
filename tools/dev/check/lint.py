#!/usr/bin/python3
"""clang-tidy by .clang-tidy over every compiled file, and every header compiled alone: tools/dev/check/lint.py OUT [FILE...].

Headers that do not stand alone compile by luck of the order in which they are included.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

import tree
from tree import ROOT

# The analyzer gives a function up after so many states, a tenth of its default: it has seen the same blocks by then, in fewer combinations.
# With a third it takes twice as long: 10.6 s of processor time for eight files of what is shipped, and 5.1 s.
ANALYZER_NODES = 20000

# Tests of which one clang-tidy looks at so many: it takes longer to start than most of them do (24 files: 9.0 s of processor time one by one,
# 3.6 s so). Without its analyzer: that one keeps names of the first file for the others, and finds what is not there. They run under
# sanitizers; what is shipped goes through it, file by file.
TESTS_AT_ONCE = 16


def compiled(out):
    """path from the root -> compile command, for files of the tree (not generated ones)."""
    commands = {}
    for entry in json.loads((out / "compile_commands.json").read_text()):
        path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        if path.is_relative_to(ROOT) and not path.is_relative_to(out):
            commands[str(path.relative_to(ROOT))] = entry
    return commands


def run(command, cwd):
    answer = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return answer.returncode, answer.stdout


def groups(paths):
    """So that no group is of one folder alone, whose files take long together."""
    count = -(-len(paths) // TESTS_AT_ONCE)
    return [paths[first::count] for first in range(count)]


def tidy(out, paths, *options):
    """What it finds in files of one language."""
    # Options and attributes of gcc alone are no finding, and what gcc's C++ has by itself must be asked of clang.
    command = ["clang-tidy", "-p", str(out), "--quiet", "--warnings-as-errors=*", *options, *paths]
    command += ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-unknown-attributes"]
    for word in ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={ANALYZER_NODES}"):
        command.append(f"--extra-arg={word}")
    if paths[0].endswith(".cc"):
        command.append("--extra-arg=-fsized-deallocation")
    code, text = run(command, ROOT)
    return ["clang-tidy:", text] if code else []


def compile_alone(entry, header):
    """The flags of a neighbour, the header as the whole file."""
    words = shlex.split(entry["command"])
    flags = [word for word in words if word.startswith(("-I", "-D", "-std", "-W", "-f", "-O", "-m"))]
    command = [words[0], *flags, "-Wno-unused", "-fsyntax-only", "-x", "c", str(ROOT / header)]
    code, text = run(command, entry["directory"])
    return [header + ": does not compile alone", text] if code else []


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    out = (ROOT / sys.argv[1]).resolve()
    chosen = set(sys.argv[2:])
    commands = compiled(out)
    neighbours = [entry for path, entry in sorted(commands.items()) if path.endswith(".c")]
    problems = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        wanted = [path for path in sorted(commands) if not chosen or path in chosen]
        jobs = [pool.submit(tidy, out, [path]) for path in wanted if not path.startswith("tests/")]
        for suffix in (".c", ".cc"):
            tests = [path for path in wanted if path.startswith("tests/") and path.endswith(suffix)]
            jobs += [pool.submit(tidy, out, group, "--checks=-clang-analyzer-*") for group in groups(tests)]
        for header in (name for name in tree.files(ROOT) if name.endswith(".h") and "/golden/" not in name):
            if neighbours and (not chosen or header in chosen):
                beside = [entry for path, entry in commands.items() if path.endswith(".c")
                          and pathlib.PurePath(path).parent == pathlib.PurePath(header).parent]
                jobs.append(pool.submit(compile_alone, (beside or neighbours)[0], header))
        for job in jobs:
            problems += job.result()
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
