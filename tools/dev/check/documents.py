#!/usr/bin/python3
"""What documents promise exists: tools/dev/check/documents.py OUT [ROOT] (a folder with the build). Prints each breach, exit 1 on any.

Of every *.md of the tree but results of benchmarks, which stay as they were measured:
  line      at most 160 characters
  heading   a title first and once, no level left out, no heading twice (its anchor would lead to the other)
  link      [text](path#anchor): the file and its heading exist
Of the tree:
  picture   docs/pictures/*.png has at most 100,000 bytes; no other file is binary
Of README.md and docs/, outside of what a fence marks as output (```text, ```json, ```c, ...) besides:
  path      what is quoted as a path of the tree exists; `tools/X` in a command is a program
  command   `memlog SUB` exists by `memlog --help`
  option    each `--x` stands in the help of its sub-command, or, quoted alone, in some help of memlog's
"""
import functools
import json
import pathlib
import re
import shlex
import subprocess
import sys

import tree
from tree import ROOT, report

ROOMS = ("base", "client", "docs", "host", "ipc", "mojom_like_idl", "service", "tests", "tools", ".ci")
RESULTS = "tools/bench/results/"
MAX_COLUMNS = 160
MAX_PICTURE_BYTES = 100_000

# Fences with these words, or none, hold commands.
COMMANDS = {"", "sh", "console"}
# `memlog` by the names that documents call it.
MEMLOG = {"memlog", "out/memlog", "./run"}
# Words that stand in front of a command.
BEFORE = re.compile(r"^(?:[A-Z_]+=\S*|sudo|exec|time|nice|\$)$")

def check_binary(root, name):
    with open(root / name, "rb") as file:
        data = file.read(MAX_PICTURE_BYTES + 1)
    if re.match(r"docs/pictures/[\w-]+\.png$", name):
        if len(data) > MAX_PICTURE_BYTES:
            report("picture", name, f"over {MAX_PICTURE_BYTES} bytes")
    elif b"\0" in data:
        report("picture", name, "is binary, and no picture of the documents")


def lines_of(text):
    """(number, line, fence): fence is None in prose, else the word behind the ```, and "```" for the marks themselves."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*```(\w*)", line)
        if mark:
            yield number, line, "```"
            fence = mark.group(1) if fence is None else None
        else:
            yield number, line, fence


def headings(text):
    """(number, level, words) of each."""
    for number, line, fence in lines_of(text):
        mark = re.match(r"(#+)\s+(.*?)\s*$", line)
        if fence is None and mark:
            yield number, len(mark.group(1)), mark.group(2)


def anchor(words):
    """As GitHub makes it of a heading."""
    return re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")


def check_lines(name, text):
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_COLUMNS:
            report("line", f"{name}:{number}", f"{len(line)} characters, {MAX_COLUMNS} at most")


def check_headings(name, text):
    seen, before = set(), 0
    for number, level, words in headings(text):
        where = f"{name}:{number}"
        if (level == 1) != (before == 0):
            report("heading", where, "a document has one title, and begins with it")
        if level > before + 1:
            report("heading", where, f"level {level} below level {before}")
        if anchor(words) in seen:
            report("heading", where, f'"{words}" stands twice')
        seen.add(anchor(words))
        before = level


def check_links(root, name, text):
    for number, line, fence in lines_of(text):
        if fence is not None:
            continue
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, wanted = target.partition("#")
            file = (root / name).parent / path if path else root / name
            if not file.exists():
                report("link", f"{name}:{number}", f"{target}: there is no such file")
            elif wanted and wanted not in {anchor(words) for _, _, words in headings(file.read_text())}:
                report("link", f"{name}:{number}", f"{target}: there is no such heading")


@functools.cache
def help_of(out, *words):
    answer = subprocess.run(
        [str(out / "memlog"), *words, "--help"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
    )
    return answer.stdout


def subcommands(out):
    return re.findall(r"^  (\w+)  ", help_of(out), re.M)


@functools.cache
def negatives(out):
    """sub-command -> the negative forms of its flags."""
    answer = subprocess.run([str(out / "memlog"), "help", "--dump-options"], stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    forms = {}
    for table in map(json.loads, answer.stdout.splitlines()):
        forms.setdefault(table["command"], set()).update(option["negative"] for option in table["options"] if "negative" in option)
    return forms


def options_of(out, subcommand):
    """Every option that the help of a sub-command names, and the negative forms of flags."""
    text = help_of(out, subcommand)
    if subcommand == "upload":
        text += help_of(out, "upload", "--dry-run")
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text)) | {"--help", "-h"} | negatives(out).get(subcommand, set())


def all_options(out):
    return {"--version"}.union(*(options_of(out, one) for one in subcommands(out)))


def split_commands(line):
    """The words of each command of a line of shell, without what is put in front; [] where it is no shell."""
    line = re.sub(r"^\$ ", "", line.strip())
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return []
    commands = [[]]
    for word in words:
        if re.match(r"[|&;()]+$", word):
            commands.append([])
        elif commands[-1] or not BEFORE.match(word):
            commands[-1].append(word)
    return [command for command in commands if command]


def check_command(root, out, where, words):
    program, rest = words[0], words[1:]
    if program not in MEMLOG:
        if re.match(r"(?:tools|tests|\.ci)/", program) and not (root / program).is_file():
            report("path", where, f"{program} does not exist")
        return
    subcommand = "run" if program == "./run" else rest.pop(0) if rest else "help"
    if subcommand.startswith("-") or not re.match(r"[a-z]+$", subcommand):
        return
    if subcommand == "config" and rest and re.match(r"[a-z]+$", rest[0]):
        subcommand = rest.pop(0)  # it is asked of another command's options
    if subcommand not in subcommands(out):
        report("command", where, f"memlog has no {subcommand}")
        return
    for word in rest:
        if word == "--":
            break
        option = re.match(r"--?[a-z][a-z-]*", word)
        if option and option.group(0) not in options_of(out, subcommand):
            report("option", where, f"memlog {subcommand} has no {option.group(0)}")


def check_quoted(root, out, where, quoted):
    """What stands in backticks: a command of ours, an option alone, or a path."""
    words = quoted.split()
    if not words:
        return
    if words[0] in MEMLOG or re.match(r"(?:tools|tests)/\S+$", words[0]) and len(words) > 1:
        for command in split_commands(quoted):
            check_command(root, out, where, command)
        return
    option = re.match(r"--[a-z][a-z-]*", words[0])
    if option and option.group(0) not in all_options(out):
        report("option", where, f"nothing of memlog's has {option.group(0)}")
    path = re.sub(r"[:,;.]+\d*$", "", words[0])
    is_path = re.match(rf"(?:{'|'.join(map(re.escape, ROOMS))})/[\w.*/-]*$", path) or re.match(r"[A-Z]+\.md$|\./\w+$", path)
    if len(words) == 1 and is_path and not (root / path).exists() and not any(root.glob(path.rstrip("/"))):
        report("path", where, f"{path} does not exist")


def check_promises(root, out, name, text):
    held = ""  # of a command that goes on in the next line
    until = ""  # the line that ends a text within the shell's words
    for number, line, fence in lines_of(text):
        where = f"{name}:{number}"
        if fence is None:
            for quoted in re.findall(r"`([^`]+)`", line):
                check_quoted(root, out, where, quoted)
        elif fence in COMMANDS:
            if until:
                until = "" if line == until else until
                continue
            held += line
            heredoc = re.search(r"<<'?(\w+)'?$", line)
            until = heredoc.group(1) if heredoc else ""
            if held.endswith("\\"):
                held = held[:-1]
                continue
            for command in split_commands(held):
                check_command(root, out, where, command)
            held = ""


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) == 3 else ROOT
    out = (ROOT / sys.argv[1]).resolve()
    if not (out / "memlog").is_file():
        sys.exit(f"documents.py: {out}/memlog is not built")
    names = tree.files(root)
    for name in names:
        check_binary(root, name)
    for name in names:
        if not name.endswith(".md") or name.startswith(RESULTS):
            continue
        text = (root / name).read_text()
        check_lines(name, text)
        check_headings(name, text)
        check_links(root, name, text)
        if name == "README.md" or name.startswith("docs/"):
            check_promises(root, out, name, text)
    return tree.exit_code("documents: %d breaches")


if __name__ == "__main__":
    sys.exit(main())
