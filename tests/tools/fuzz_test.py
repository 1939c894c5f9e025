"""tools/dev/fuzz: every decoder that it lists has named seeds, a dictionary, and is replayed by the unit tests."""
import pathlib
import re
import shutil
import subprocess
import tempfile
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


class Run(unittest.TestCase):
    """A run in a tree of its own, whose setup and build are quick, and whose fuzzer says what it was given."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="memlog-test.")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("tools/dev", "tests/fuzz/seeds", "out-fuzz"):
            (self.root / name).mkdir(parents=True)
        shutil.copy(ROOT / "tools/dev/fuzz", self.root / "tools/dev/fuzz")
        (self.root / "tests/fuzz/room_module_fuzz.c").touch()
        (self.root / "tests/fuzz/seeds/room_module.txt").write_text('one: "a"\ntwo: 62 63\n')
        self.script("tools/dev/setup", 'echo "setup $*" >> said')
        self.script("tools/dev/build", 'echo "build $2 $GN_ARGS" >> said')

    def script(self, name, text):
        path = self.root / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def fuzz(self):
        words = [str(self.root / "tools/dev/fuzz"), "room_module", "7"]
        return subprocess.run(words, cwd=self.root, capture_output=True, text=True, timeout=60, check=False)

    def test_installs_builds_and_feeds_its_seeds(self):
        self.script("out-fuzz/room_module_fuzz", 'echo "ran $*" >> said; for seeds; do :; done; cat "$seeds/0" "$seeds/1" >> said')
        answer = self.fuzz()
        self.assertEqual((answer.returncode, answer.stdout), (0, "fuzz: room_module: ok\n"), answer.stderr)
        setup, build, ran, fed = (self.root / "said").read_text().splitlines()
        self.assertEqual(setup, "setup fuzz")
        self.assertRegex(build, "^build room_module_fuzz .*fuzzer-no-link.*fuzz=true")
        self.assertIn("-max_total_time=7", ran)
        self.assertEqual(fed, "abc")

    def test_what_it_finds_is_printed_as_a_seed(self):
        self.script("out-fuzz/room_module_fuzz", 'case "$*" in *minimize*) ;; *) printf xyz > out-fuzz/found/room_module/crash-1; esac; exit 77')
        answer = self.fuzz()
        self.assertEqual(answer.returncode, 1, answer.stderr)
        self.assertIn("found crash-1: 78 79 7a\n", answer.stdout)
        self.assertIn("fuzz: room_module: exit code 77", answer.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
