"""The program idlc: what it writes, and what it does not when something is wrong."""
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
IDLC = pathlib.Path(os.environ.get("MEMLOG_TEST_OUT", ROOT / "out")) / "idlc"
GOLDEN = ROOT / "tests" / "mojom_like_idl" / "golden"
INCLUDE = "tests/mojom_like_idl/golden/example_mojom.h"


class IdlcTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.header = self.path / "x.h"
        self.tables = self.path / "x.c"

    def idlc(self, source, header=None):
        command = [IDLC, "tests/x.mojom", source, INCLUDE, header or self.header, self.tables]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def write(self, data):
        source = self.path / "x.mojom"
        source.write_bytes(data)
        return source

    def test_writes_header_and_tables_and_says_nothing(self):
        done = self.idlc(GOLDEN / "example.mojom")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(
            self.header.read_text().splitlines()[1:],
            (GOLDEN / "example_mojom.h.txt").read_text().splitlines()[1:],
        )

    def test_writes_nothing_when_the_contract_is_wrong(self):
        done = self.idlc(self.write(b"module m;\nstruct S {\n  string a;\n};\n"))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(
            done.stderr, "tests/x.mojom:3:10: error: expected '<' and a limit: string<BYTES>, found 'a'\n"
        )
        self.assertFalse(self.header.exists() or self.tables.exists())

    def test_names_the_file_that_it_cannot_read_or_write(self):
        done = self.idlc(self.path / "absent.mojom")
        self.assertEqual(done.returncode, 1)
        self.assertIn("absent.mojom: No such file", done.stderr)
        done = self.idlc(self.write(b"module m;"), header=self.path / "absent" / "x.h")
        self.assertEqual(done.returncode, 1)
        self.assertIn("absent/x.h: No such file", done.stderr)

    def test_a_zero_byte_is_named_and_does_not_hide_the_rest(self):
        done = self.idlc(self.write(b"module m;\n\0struct s"))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "tests/x.mojom:2:1: error: unexpected byte 0x00\n")

    def test_explains_itself(self):
        done = subprocess.run([IDLC], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage: idlc NAME INPUT", done.stderr)

    def test_no_single_wrong_byte_crashes_it(self):
        text = (GOLDEN / "example.mojom").read_bytes()
        for at in range(0, len(text), 23):
            for byte in b"{};<@?\xff":
                done = self.idlc(self.write(text[:at] + bytes([byte]) + text[at + 1 :]))
                self.assertIn(done.returncode, (0, 1), (at, byte, done.stderr))
                if done.returncode == 1:
                    self.assertRegex(done.stderr, r"^tests/x\.mojom:\d+:\d+: error: (expected|unexpected) .*\n$")


if __name__ == "__main__":
    unittest.main()
