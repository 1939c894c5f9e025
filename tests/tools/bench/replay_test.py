"""out/replay: it counts what the service's core was given, No time is judged."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
OUT = ROOT / os.environ.get("MEMLOG_TEST_OUT", "out")

# Three allocations at two places, one of them freed.
STREAM = b"""START pid=101
NODE id=1 address=0x401000
NODE id=2 parent=1 address=0x402000
ALLOC time=10 address=0x1000 size=100 node=1
ALLOC time=11 address=0x2000 size=200 node=2
ALLOC time=12 address=0x3000 size=300 node=2
FREE time=20 address=0x1000
"""


def replay(*words):
    return subprocess.run([OUT / "replay", *words], capture_output=True, text=True, timeout=300, check=False)


class Replay(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="memlog-test.")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "one.stream"
        packed = subprocess.run([OUT / "memlog-stream", "pack"], input=STREAM, stdout=subprocess.PIPE, timeout=60, check=True)
        self.path.write_bytes(packed.stdout)

    def test_a_stream_is_taken_whole(self):
        answer = replay(str(self.path))
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        figures = json.loads(answer.stdout)
        self.assertEqual(figures["events"], 4)
        self.assertGreaterEqual(figures["cells"], 2)
        self.assertGreater(figures["events_a_second"], 0)
        self.assertGreater(figures["bytes_a_cell"], 0)

    def test_of_several_replays_one_line_tells(self):
        answer = replay("--repeat=3", str(self.path))
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        self.assertEqual(len(answer.stdout.splitlines()), 1)
        self.assertEqual(json.loads(answer.stdout)["events"], 4)

    def test_made_streams_have_what_was_asked_for(self):
        answer = replay("--synthetic", "20000", "500", "3")
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        figures = json.loads(answer.stdout)
        self.assertGreaterEqual(figures["events"], 20000)
        self.assertLess(figures["events"], 21000)
        self.assertGreater(figures["live_blocks"], 250)
        self.assertLess(figures["live_blocks"], 1000)

    def test_what_cannot_be_replayed_is_said(self):
        gone = replay(str(self.path) + ".gone")
        self.assertNotEqual(gone.returncode, 0)
        self.assertIn("cannot open", gone.stderr)
        for words in ((), ("--repeat=0", str(self.path)), ("--synthetic", "10")):
            answer = replay(*words)
            self.assertEqual((answer.returncode, answer.stdout), (2, ""), words)
            self.assertIn("usage: replay", answer.stderr)
        self.assertNotEqual(replay("--synthetic", "10", "0", "1").returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
