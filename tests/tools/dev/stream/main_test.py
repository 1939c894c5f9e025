"""memlog-stream: a text becomes a stream and the stream the same text; what is no line of it is refused by its number."""
import os
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[4]
OUT = ROOT / os.environ.get("MEMLOG_TEST_OUT", "out")

TEXT = b"""frame lane=0
START pid=101
NODE id=1 address=0x401000
ALLOC time=10 address=0x1000 size=100 node=1
FREE time=20 address=0x1000
END time=30
"""


def stream(word, text):
    return subprocess.run([OUT / "memlog-stream", *word.split()], input=text, capture_output=True, timeout=60, check=False)


class Stream(unittest.TestCase):
    def test_what_is_packed_is_unpacked_to_the_same_text(self):
        packed = stream("pack", b"# a comment\n" + TEXT)
        self.assertEqual((packed.returncode, packed.stderr), (0, b""))
        self.assertLess(len(packed.stdout), len(TEXT))
        self.assertEqual(stream("unpack", packed.stdout).stdout, TEXT)

    def test_a_stream_of_many_reads_comes_whole(self):
        lines = [b"START pid=101", b"NODE id=1 address=0x401000"]
        for number in range(60000):
            if number % 200 == 199:
                lines.append(b"frame lane=0")
            lines.append(b"ALLOC time=%d address=0x%x size=100 node=1" % (number + 1, 0x1000 + 4096 * number))
        packed = stream("pack", b"\n".join(lines))
        self.assertEqual(packed.returncode, 0, packed.stderr)
        self.assertGreater(len(packed.stdout), 200_000)
        events = [line for line in stream("unpack", packed.stdout).stdout.splitlines() if not line.startswith(b"frame")]
        self.assertEqual(events, [line for line in lines if not line.startswith(b"frame")])

    def test_a_wrong_line_is_refused_by_its_number(self):
        packed = stream("pack", TEXT + b"ALLOC time=ten\n")
        self.assertEqual((packed.returncode, packed.stdout), (1, b""))
        self.assertIn(b"memlog-stream: line 7: ", packed.stderr)

    def test_nothing_is_an_empty_stream(self):
        for word in ("pack", "unpack"):
            done = stream(word, b"")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""), word)

    def test_without_a_known_word_it_says_how_it_is_used(self):
        for words in ("", "repack", "pack more"):
            done = stream(words, b"")
            self.assertEqual((done.returncode, done.stdout), (2, b""), words)
            self.assertIn(b"usage: memlog-stream pack < TEXT > STREAM", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
