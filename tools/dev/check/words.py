#!/usr/bin/python3
"""Public symbols that comments and documents name exist: tools/dev/check/words.py OUT [ROOT]. Prints each that does not, exit 1 on any.

A symbol is a word that begins with ml_ or ML_. It exists when code of the tree, or code generated into OUT/gen, has it outside of
comments. A word that ends with an underscore (`ML_PEER_*`, `ml_reader_...`) is a family, of which one member must exist.
Tests and tools in Python count as code; results of benchmarks are as they were measured and are not read.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
C_SUFFIXES = {".c", ".h", ".cc", ".S", ".mojom", ".proto"}
CODE_SUFFIXES = C_SUFFIXES | {".py", ".js", ".gn", ".gni", ".sh", ".map"}
RESULTS = "tools/bench/results/"

WORD = re.compile(r"(?<![A-Za-z0-9_])(?:ml|ML)_[A-Za-z0-9_]*")
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.S)


def tree_files(root):
    """Every file of the tree, committed or about to be; of a copy without git, all of it but the build."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False,
    )
    names = listed.stdout.splitlines()
    if listed.returncode != 0:
        names = [str(path.relative_to(root)) for path in root.rglob("*")]
        names = [name for name in names if not name.startswith(("out", ".git/"))]
    return sorted(name for name in set(names) if (root / name).is_file())


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


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) == 3 else ROOT
    out = (ROOT / sys.argv[1]).resolve()
    names = tree_files(root)
    known = symbols(root, out, names)
    wrong = []
    for name, line, word in named(root, names):
        exists = any(one.startswith(word) for one in known) if word.endswith("_") else word in known
        if not exists:
            wrong.append(f"{name}:{line}: word: {word} is nowhere in the code")
    for line in wrong:
        print(line)
    if wrong:
        print(f"words: {len(wrong)} unknown symbols")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
