"""tools/dev/fuzz: every decoder that it lists has named seeds, a dictionary, and is replayed by the unit tests."""
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FUZZ = ROOT / "tests" / "fuzz"
WORD = re.compile(r'\w+="(?:[ !#-\[\]-~]|\\x[0-9a-f]{2})+"')


def run(*words):
    return subprocess.run([str(ROOT / "tools/dev/fuzz"), *words], capture_output=True, text=True, timeout=60, check=False)


class Targets(unittest.TestCase):
    def setUp(self):
        self.names = run().stdout.split()

    def test_every_decoder_is_listed(self):
        self.assertEqual(self.names, sorted(path.name.removesuffix("_fuzz.c") for path in FUZZ.glob("*_fuzz.c")))
        self.assertGreater(len(self.names), 10)

    def test_each_has_seeds_a_dictionary_and_a_replay(self):
        build = (FUZZ / "BUILD.gn").read_text()
        for name in self.names:
            seeds = (FUZZ / "seeds" / f"{name}.txt").read_text().split("\n")
            titles = [line.partition(":")[0] for line in seeds if line and line[0] not in "# "]
            self.assertGreater(len(titles), 2, name)
            self.assertEqual(len(titles), len(set(titles)), f"{name}: two seeds of one name")
            self.assertIn(f'":{name}_fuzz"', build)
            words = (FUZZ / "dictionaries" / f"{name}.dict").read_text().split("\n")
            words = [line for line in words if line and not line.startswith("#")]
            self.assertGreater(len(words), 2, name)
            for word in words:
                self.assertRegex(word, WORD, name)

    def test_no_seed_and_no_dictionary_is_left_over(self):
        for path in (*FUZZ.glob("seeds/*"), *FUZZ.glob("dictionaries/*")):
            self.assertIn(path.stem, self.names)

    def test_what_is_no_target_is_refused(self):
        answer = run("nonsense", "1")
        self.assertEqual(answer.returncode, 2)
        self.assertIn("ROOM_MODULE", answer.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
