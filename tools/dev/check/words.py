#!/usr/bin/python3
"""Public symbols and files that comments and documents name exist: tools/dev/check/words.py OUT [ROOT]. Prints each that does not, exit 1
on any.

A symbol is a word that begins with ml_ or ML_. It exists when code of the tree, or code generated into OUT/gen, has it outside of
comments. A word that ends with an underscore (`ML_PEER_*`, `ml_reader_...`) is a family, of which one member must exist.
A file is a bare x.c or x.h in a comment: some folder of the tree has it, or the system's headers.
Tests and tools in Python count as code; results of benchmarks are as they were measured and are not read.
"""
import pathlib
import re
import sys

import tree
from tree import ROOT, report

C_SUFFIXES = {".c", ".h", ".cc", ".S", ".mojom", ".proto"}
CODE_SUFFIXES = C_SUFFIXES | {".py", ".js", ".gn", ".gni", ".sh", ".map"}
RESULTS = "tools/bench/results/"

WORD = re.compile(r"(?<![A-Za-z0-9_])(?:ml|ML)_[A-Za-z0-9_]*")
FILE = re.compile(r"(?<![\w/.<-])[a-z][a-z0-9_]+\.[ch]\b(?![\w(])")
SYSTEM = (pathlib.Path("/usr/include"), *pathlib.Path("/usr/include").glob("*-linux-gnu"))
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.S)


def comments(text):
    """(line, text) of each comment."""
    for match in COMMENT.finditer(text):
        if match.group(0)[0] == "/":
            yield text.count("\n", 0, match.start()) + 1, match.group(0)


def without_comments(text):
    return COMMENT.sub(lambda match: match.group(0) if match.group(0)[0] in "\"'" else " ", text)


def symbols(root, out, names):
    """Every symbol of the tree's code and of what is generated from it."""
    found = set()
    paths = [root / name for name in names if pathlib.PurePath(name).suffix in CODE_SUFFIXES]
    paths += [path for path in (out / "gen").rglob("*") if path.suffix in (".c", ".h")]
    for path in paths:
        text = path.read_text(errors="replace")
        found.update(WORD.findall(without_comments(text) if path.suffix in C_SUFFIXES else text))
    return found


def named(root, names):
    """(file, line, word) of each symbol in a comment or a document."""
    for name in names:
        suffix = pathlib.PurePath(name).suffix
        if suffix == ".md" and not name.startswith(RESULTS):
            parts = [(1, (root / name).read_text())]
        elif suffix in C_SUFFIXES:
            parts = comments((root / name).read_text(errors="replace"))
        else:
            continue
        for first, text in parts:
            for match in WORD.finditer(text):
                yield name, first + text.count("\n", 0, match.start()), match.group(0)


def lost_files(root, names):
    """(file, line, name) of each bare file name in a comment that no folder has."""
    known = {pathlib.PurePath(name).name for name in names}
    for name in names:
        if pathlib.PurePath(name).suffix not in C_SUFFIXES:
            continue
        for first, text in comments((root / name).read_text(errors="replace")):
            for match in FILE.finditer(text):
                file = match.group(0)
                if file not in known and not any((folder / file).exists() for folder in SYSTEM):
                    yield name, first + text.count("\n", 0, match.start()), file


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) == 3 else ROOT
    out = (ROOT / sys.argv[1]).resolve()
    names = tree.files(root)
    known = symbols(root, out, names)
    for name, line, word in named(root, names):
        exists = any(one.startswith(word) for one in known) if word.endswith("_") else word in known
        if not exists:
            report("word", f"{name}:{line}", f"{word} is nowhere in the code")
    for name, line, file in lost_files(root, names):
        report("file", f"{name}:{line}", f"{file} is in no folder")
    return tree.exit_code("words: %d unknown symbols or files")


if __name__ == "__main__":
    sys.exit(main())
