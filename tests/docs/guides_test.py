"""README.md and each guide of docs/: its commands run as they stand, and print what the guide shows.

A fence ```sh is run by bash in a folder of the guide's own, one after another in one shell, and must end with 0. A fence ```text
behind it is what it prints, in that order, with other lines in between: a number stands for any number, a unit of bytes or time for any,
`...` for anything, and a name of Debian 12 for that of a later suite. ```console is not run: it needs another machine, or root. A fence
```sh needs=PROGRAM is run where that is installed. A guide finds memlog in PATH and the tree in $TREE. Each port that it listens at is
another, free one here: somebody else may have its own.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

from e2e import harness, servers

DOCS = harness.ROOT / "docs"
# What explains without a program to run, and what tells of runs that take minutes.
WITHOUT_EXAMPLE = {"limits.md", "compared.md"}
# What the guides' programs call these on later suites.
LATER = (
    (r"< \(no names in _json.cpython-311-x86_64-linux-gnu.so\)", "< PyUnicode_Substring < (no names in python3...)"),
    (r"  PyUnicode_Substring  ", "  PyUnicode_New  "),
    (r"\bPyByteArray_Resize\b", "..."),
    (r"  python3\.11$", "  python3..."),
    (r"  node$", "  libnode.so..."),
)
MARK = "@@ block"
# Of a guide: some have twenty commands, and a compiler among them.
WHOLE_S = 3 * harness.TIMEOUT
PIECES = re.compile(r"\.\.\.|\d[\d,.:]*(?:\s+(?:(?:[KMG]i)?B|m?s)\b)?|\s+")


class Block:
    """A fence of commands, and the lines that it promises."""

    def __init__(self, line, text, needs):
        self.line = line
        self.is_run = needs is None or shutil.which(needs) is not None
        self.text = text if self.is_run else ":"
        self.promised = []


def blocks_of(path):
    found, fence, needs, start, lines = [], None, None, 0, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        mark = re.match(r"```(\w*)(?: needs=(\S+))?", line)
        if not mark:
            lines.append(line)
        elif fence is None:
            fence, needs, start, lines = mark[1], mark[2], number, []
        else:
            if fence == "sh":
                found.append(Block(start, "\n".join(lines), needs))
            elif fence == "text" and found and found[-1].is_run:
                found[-1].promised += lines
            fence = None
    return found


def pattern(line):
    """A promised line as an expression."""
    text, at = "", 0
    for piece in PIECES.finditer(line):
        text += re.escape(line[at:piece.start()])
        at = piece.end()
        found = piece.group(0)
        if found == "...":
            text += ".*"
        elif found.isspace():
            text += r"\s+"
        else:
            unit = {"B": r"\s+(?:[KMG]i)?B", "s": r"\s+m?s"}.get(found[-1], "")
            text += r"\d[\d,.:]*" + unit
    return re.compile(rf"\s*{text}{re.escape(line[at:])}\s*$")


def of_later_suites(line):
    for name, later in LATER:
        line = re.sub(name, later, line)
    return line


def at_free_ports(text):
    ports = {port: str(servers.free_port()) for port in sorted(set(re.findall(r"--listen=127\.0\.0\.1:(\d+)", text)))}
    for port, free in ports.items():
        text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free}")
    return text


def missing(promised, output):
    """The first promised line that the output lacks, in their order; None."""
    at, lines = 0, output.splitlines()
    for line in promised:
        if line.strip() in ("", "..."):
            continue
        wanted = [pattern(either.strip()) for either in (line, of_later_suites(line))]
        found = next((i for i in range(at, len(lines)) if any(each.match(lines[i]) for each in wanted)), None)
        if found is None:
            return line
        at = found + 1
    return None


class Guides(harness.Case):
    def follow(self, path):
        blocks = blocks_of(path)
        self.assertTrue(blocks and any(block.promised for block in blocks), f"{path.name} has no worked example")
        folder = self.folder / path.stem
        folder.mkdir()
        script = at_free_ports("exec 2>&1\n" + "".join(f"{block.text}\necho \"{MARK} $?\"\n" for block in blocks))
        # The shell's own descriptors: what stays behind in the background must not keep the test waiting.
        with open(folder / ".output", "wb+") as output:
            env = self.environment(TREE=str(harness.ROOT), PATH=f"{harness.OUT}:/usr/bin:/bin:/usr/sbin", HOME=str(folder))
            shell = subprocess.Popen(["bash", "-c", script], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=output,
                                     stderr=output, start_new_session=True)
            is_late = False
            try:
                shell.wait(WHOLE_S)
            except subprocess.TimeoutExpired:
                is_late = True
            finally:
                try:
                    os.killpg(shell.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                shell.wait()
            output.seek(0)
            text = output.read().decode(errors="replace")
        parts = re.split(rf"^{MARK} (\d+)\n", text, flags=re.M)
        told = list(zip(parts[0::2], parts[1::2]))
        if is_late:
            at = blocks[min(len(told), len(blocks) - 1)]
            self.fail(f"{path.name}:{at.line} had not ended {WHOLE_S} s after the guide's first command:\n{text[-3000:]}")
        for block, (printed, code) in zip(blocks, told):
            where = f"{path.name}:{block.line}"
            self.assertEqual(code, "0", f"{where} ended with {code}:\n{printed[-3000:]}")
            self.assertIsNone(missing(block.promised, printed), f"{where} did not print that line, but:\n{printed[-6000:]}")
        self.assertEqual(len(told), len(blocks), f"{path.name} ended early:\n{text[-3000:]}")


def add(path):
    setattr(Guides, f"test_{path.stem.replace('-', '_').lower()}", lambda self: self.follow(path))


for guide in [harness.ROOT / "README.md", *sorted(DOCS.glob("*.md"))]:
    if guide.name not in WITHOUT_EXAMPLE:
        add(guide)


class Whole(unittest.TestCase):
    """What memlog has is told somewhere."""

    # Long forms of -o and -q, and what every program has.
    WITHOUT_GUIDE = {"--help", "--output", "--quiet", "--version"}

    def help(self, *words):
        answer = subprocess.run([str(harness.MEMLOG), *words, "--help"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=harness.TIMEOUT, check=False)
        return answer.stdout

    def test_every_command_stands_in_the_readme_and_every_option_in_a_guide(self):
        readme = (harness.ROOT / "README.md").read_text()
        guides = readme + "".join(path.read_text() for path in DOCS.glob("*.md"))
        commands = re.findall(r"^  (\w+)  ", self.help(), re.M)
        self.assertGreater(len(commands), 10)
        self.assertEqual([one for one in commands if f"memlog {one}" not in readme], [])
        for command in commands:
            told = re.sub(r"(?m)^  --no-FLAG (.*\n {23})*.*\n", "", self.help(command)).replace("--no-FLAG", "")  # one guide tells of it for all
            options = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", told)) - self.WITHOUT_GUIDE
            self.assertEqual(sorted(one for one in options if not re.search(rf"{one}(?![\w-])", guides)), [], command)


class Promises(unittest.TestCase):
    """A promise that is not kept is seen."""

    def test_numbers_units_and_dots_stand_for_any(self):
        self.assertIsNone(missing(["peak  1.4 MiB  511 blocks at ..."], "peak   20 B   1,000 blocks at 06:11"))

    def test_another_word_is_none(self):
        self.assertEqual(missing(["peak 1 B"], "live 1 B"), "peak 1 B")

    def test_order_counts(self):
        self.assertEqual(missing(["two", "one"], "one\ntwo\n"), "one")

    def test_a_line_is_not_part_of_a_longer_one(self):
        self.assertEqual(missing(["lost"], "none was lost"), "lost")


if __name__ == "__main__":
    unittest.main()
