"""`ninja -C out install` puts down what runs from there, and nothing outside DESTDIR."""
import unittest

import harness


class Install(harness.Case):
    def install(self, **env):
        words = ["ninja", "-C", str(harness.OUT), "install"]
        return harness.run_words(words, self.folder, self.environment(**env), b"", harness.TIMEOUT)

    def test_an_installed_memlog_profiles(self):
        answer = self.install(DESTDIR=str(self.folder / "root"), PREFIX="/opt/x")
        self.assertEqual(answer.returncode, 0, answer.stdout)
        prefix = self.folder / "root" / "opt" / "x"
        self.assertEqual([path.name for path in (self.folder / "root").iterdir()], ["opt"])
        run = harness.run_words(
            [str(prefix / "bin" / "memlog"), "run", "-q", "--no-page", "-o", "dumps", "--", "echo", "hello"],
            self.folder, self.environment(), b"", harness.TIMEOUT,
        )
        self.assertEqual((run.returncode, run.stdout), (0, b"hello\n"), run.stderr)
        self.assertEqual(len(list((self.folder / "dumps").glob("*.exit.pftrace"))), 1)

        share = prefix / "share"
        for name in ("man/man1/memlog.1", "man/man1/memlog-run.1", "bash-completion/completions/memlog", "zsh/site-functions/_memlog",
                     "fish/vendor_completions.d/memlog.fish"):
            self.assertGreater((share / name).stat().st_size, 100, name)

    def test_the_checkout_may_move(self):
        # Whatever ninja runs, it names by where it stands to the build: an install from a copy took the original's programs.
        named = [path.name for path in harness.OUT.rglob("*.ninja") if str(harness.ROOT) in path.read_text()]
        self.assertEqual(named, [])

    def test_a_relative_prefix_is_refused(self):
        answer = self.install(PREFIX="relative")
        self.assertNotEqual(answer.returncode, 0)
        self.assertIn(b"relative", answer.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
