"""tools/dev/check/lint.py: of a small tree, with more tests than one clang-tidy looks at, each fault is found wherever it stands."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path.insert(0, str(ROOT / "tools" / "dev" / "check"))

import lint  # pylint: disable=wrong-import-position

CLEAN = "int ml_sum_{number}(int left, int right);\nint ml_sum_{number}(int left, int right) {{ return left + right; }}\n"
REPEATED = "int ml_same(int one);\nint ml_same(int one) { return one == 1 || one == 1; }\n"
LEAKING = "#include <stdlib.h>\nint ml_lost(void);\nint ml_lost(void) { char *block = malloc(3); return block != NULL; }\n"
NOT_ALONE = "size_t ml_late(void);\n"
SOURCES = 2 * lint.TESTS_AT_ONCE + 1


@unittest.skipIf(shutil.which("clang-tidy") is None, "needs clang-tidy")
class Lint(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="memlog-lint."))
        self.addCleanup(shutil.rmtree, self.root, True)
        for name in ("tools/dev/check/lint.py", "tools/dev/check/tree.py", ".clang-tidy"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.root / name)
        for name in ("base", "out", "tests"):
            (self.root / name).mkdir()
        self.write("base/clean.c", CLEAN.format(number="own"))
        for number in range(SOURCES):
            self.write(f"tests/{number}.c", CLEAN.format(number=number))
        self.write("base/news.cc", "void operator delete(void *block, unsigned long size) noexcept;\nvoid gone(long *block) { operator delete(block, sizeof(*block)); }\n")
        self.write("base/alone.h", "int ml_alone(void);\n")

    def write(self, name, text):
        (self.root / name).write_text(text)

    def lint(self, *files):
        compiled = [{"directory": str(self.root / "out"), "file": f"../{path}", "command": f"gcc -I.. -c ../{path}"}
                    for path in (path.relative_to(self.root) for path in self.root.glob("*/*.c*"))]
        (self.root / "out" / "compile_commands.json").write_text(json.dumps(compiled))
        answer = subprocess.run([self.root / "tools/dev/check/lint.py", "out", *files], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                timeout=300, check=False)
        return answer.returncode, answer.stdout

    def test_a_clean_tree_passes(self):
        self.assertEqual(self.lint(), (0, "\n"))

    def test_a_fault_in_any_file_is_found(self):
        faulty = ("base/clean.c", "base/news.cc", "tests/0.c", f"tests/{SOURCES - 1}.c")
        for name in faulty:
            self.write(name, REPEATED)
        code, text = self.lint()
        self.assertEqual(code, 1, text)
        for name in faulty:
            self.assertRegex(text, rf"(?m)/{name}:2:\d+: error: .*\[misc-redundant-expression")

    def test_what_is_shipped_is_followed_through_its_paths(self):
        self.write("base/clean.c", LEAKING)
        code, text = self.lint("base/clean.c")
        self.assertEqual(code, 1, text)
        self.assertIn("[clang-analyzer-unix.Malloc", text)

    def test_files_that_are_named_are_looked_at_alone(self):
        self.write("tests/0.c", REPEATED)
        self.assertEqual(self.lint("tests/1.c"), (0, "\n"))
        self.assertEqual(self.lint("tests/0.c")[0], 1)

    def test_a_file_that_is_no_c_is_found(self):
        for name in ("base/clean.c", "tests/7.c"):
            self.write(name, "int ml_seven(void) { return ; \n")
        code, text = self.lint()
        self.assertEqual(code, 1, text)
        for name in ("base/clean.c", "tests/7.c"):
            self.assertIn(f"/{name}:", text)

    def test_a_header_that_does_not_stand_alone_is_found(self):
        self.write("base/late.h", NOT_ALONE)
        code, text = self.lint()
        self.assertEqual(code, 1, text)
        self.assertIn("base/late.h: does not compile alone", text)

    def test_every_file_is_in_one_group(self):
        for count in (0, 1, lint.TESTS_AT_ONCE, lint.TESTS_AT_ONCE + 1, SOURCES):
            made = lint.groups(list(range(count)))
            self.assertEqual(sorted(one for group in made for one in group), list(range(count)))
            self.assertTrue(all(1 <= len(group) <= lint.TESTS_AT_ONCE for group in made), made)


if __name__ == "__main__":
    unittest.main(verbosity=2)
