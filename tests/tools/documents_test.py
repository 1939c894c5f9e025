"""tools/dev/check/documents.py and words.py: the tree passes, and each rule is broken once in a small tree and seen refused."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUT = pathlib.Path(os.environ.get("MEMLOG_TEST_OUT", ROOT / "out")).resolve()
CHECKS = ROOT / "tools" / "dev" / "check"

README = """# A tree

Read `docs/guide.md`, or [its second part](docs/guide.md#what-else-there-is). `memlog report --json` and `--page-remote` exist.

```
out/memlog run -q -o DIR -- sh -c 'memlog nonsense --nonsense' | memlog report \\
    --by=function DIR
tools/do
```

```text
memlog nonsense --nonsense
```
"""
GUIDE = """# Guide

## What else there is

Back to the [tree](../README.md), by `client/a.c`.
"""
CODE = """/* Of ml_a_new, and of all ML_A_* there are. */
int ml_a_new(void) { return ML_A_ONE; }
"""


class Case(unittest.TestCase):
    script = "documents.py"

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="memlog-documents."))
        self.addCleanup(shutil.rmtree, self.root, True)
        self.write("README.md", README)
        self.write("docs/guide.md", GUIDE)
        self.write("client/a.c", CODE)
        self.write("tools/do", "")

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def check(self):
        words = [str(CHECKS / self.script), str(OUT), str(self.root)]
        answer = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        return answer.returncode, answer.stdout

    def refuses(self, *words):
        code, text = self.check()
        self.assertEqual(code, 1, text)
        self.assertTrue(any(all(word in line for word in words) for line in text.splitlines()), text)
        self.assertEqual(len(text.splitlines()), 2, text)

    def append(self, name, text):
        self.write(name, (self.root / name).read_text() + text)


class Documents(Case):
    def test_a_small_tree_passes_though_a_program_of_that_name_and_an_output_have_what_memlog_has_not(self):
        self.assertEqual(self.check(), (0, ""))

    def test_a_long_line_is_refused(self):
        self.append("docs/guide.md", "\n" + "long " * 32 + "!\n")
        self.refuses("docs/guide.md:7", "line", "161 characters")

    def test_results_as_they_were_measured_may_be_long(self):
        self.write("tools/bench/results/2026-11-22.md", "x" * 200 + "\n")
        self.assertEqual(self.check(), (0, ""))

    def test_a_second_title_is_refused(self):
        self.append("docs/guide.md", "\n# Another\n")
        self.refuses("docs/guide.md:7", "heading", "one title")

    def test_a_level_left_out_is_refused(self):
        self.append("README.md", "\n### Too deep\n")
        self.refuses("README.md", "heading", "level 3 below level 1")

    def test_a_heading_that_stands_twice_is_refused(self):
        self.append("docs/guide.md", "\n## What else, there is\n")
        self.refuses("docs/guide.md:7", "heading", "twice")

    def test_a_link_to_no_file_is_refused(self):
        self.append("docs/guide.md", "\n[there](nowhere.md)\n")
        self.refuses("docs/guide.md:7", "link", "nowhere.md", "no such file")

    def test_a_link_to_no_heading_is_refused(self):
        self.append("docs/guide.md", "\n[there](../README.md#nowhere)\n")
        self.refuses("docs/guide.md:7", "link", "#nowhere", "no such heading")

    def test_a_path_that_does_not_exist_is_refused(self):
        self.append("README.md", "\nSee `service/nothing.c`.\n")
        self.refuses("README.md", "path", "service/nothing.c")

    def test_a_program_of_the_tree_that_does_not_exist_is_refused(self):
        self.append("README.md", "\n```sh\ntools/undo --all\n```\n")
        self.refuses("README.md", "path", "tools/undo")

    def test_a_command_that_memlog_has_not_is_refused(self):
        self.append("README.md", "\n```\nMODE=x out/memlog nonsense\n```\n")
        self.refuses("README.md", "command", "no nonsense")

    def test_a_quoted_command_that_memlog_has_not_is_refused(self):
        self.append("docs/guide.md", "\nSay `memlog nonsense` to it.\n")
        self.refuses("docs/guide.md:7", "command", "no nonsense")

    def test_an_option_that_the_command_has_not_is_refused(self):
        self.append("README.md", "\n```console\n$ memlog ps --json && memlog ps --nonsense=1\n```\n")
        self.refuses("README.md", "option", "memlog ps has no --nonsense")

    def test_an_option_in_the_second_line_of_a_command_is_refused(self):
        self.append("README.md", "\n```\nmemlog report \\\n    --nonsense DUMP\n```\n")
        self.refuses("README.md", "option", "memlog report has no --nonsense")

    def test_an_option_alone_that_nothing_has_is_refused(self):
        self.append("docs/guide.md", "\nWith `--nonsense=SIZE` too.\n")
        self.refuses("docs/guide.md:7", "option", "--nonsense")

    def test_a_long_text_of_a_command_is_no_command(self):
        self.append("README.md", "\n```sh\ncat > x <<'END'\nmemlog nonsense\nEND\nmemlog ps\n```\n")
        self.assertEqual(self.check(), (0, ""))

    def test_a_command_behind_a_text_is_one(self):
        self.append("README.md", "\n```sh\ncat > x <<'END'\nEND\nmemlog nonsense\n```\n")
        self.refuses("README.md", "command", "no nonsense")

    def test_a_large_picture_is_refused(self):
        self.write("docs/pictures/page.png", "x" * 100_001)
        self.refuses("docs/pictures/page.png", "picture", "100000 bytes")

    def test_a_binary_file_elsewhere_is_refused(self):
        self.write("tools/thing", "\0")
        self.refuses("tools/thing", "picture", "is binary")


class Words(Case):
    script = "words.py"

    def test_a_small_tree_passes(self):
        self.assertEqual(self.check(), (0, ""))

    def test_a_symbol_in_a_comment_that_is_nowhere_is_refused(self):
        self.append("client/a.c", "\n/* as ml_a_old did */\n")
        self.refuses("client/a.c:4", "word", "ml_a_old")

    def test_a_symbol_in_a_document_that_is_nowhere_is_refused(self):
        self.append("docs/guide.md", "\nIt is `struct ml_b`.\n")
        self.refuses("docs/guide.md:7", "word", "ml_b")

    def test_a_family_without_a_member_is_refused(self):
        self.append("docs/guide.md", "\nOne of `ML_B_*`.\n")
        self.refuses("docs/guide.md:7", "word", "ML_B_")

    def test_a_file_in_a_comment_that_no_folder_has_is_refused(self):
        self.append("client/a.c", "\n/* beside a.c, stdio.h and client/a.c: old_name.c */\n")
        self.refuses("client/a.c:4", "file", "old_name.c")
        self.assertEqual(self.check()[1].count(": file: "), 1)

    def test_a_string_of_code_is_no_comment(self):
        self.append("client/a.c", '\nconst char *text = "/* ml_a_old */";\n')
        self.assertEqual(self.check(), (0, ""))


if __name__ == "__main__":
    unittest.main()
