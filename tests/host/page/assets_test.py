"""The page's files become C also where npm brings nothing: memlog is built, and says what its page goes without."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent


class Assets(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="memlog-test.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def make(self, npm):
        """Run it with `npm` (a shell script) and compile what comes: (its text, what was said)."""
        tools = self.folder / "bin"
        tools.mkdir()
        (tools / "npm").write_text(f"#!/bin/sh\n{npm}\n")
        (tools / "npm").chmod(0o755)
        output = self.folder / "assets.c"
        words = [sys.executable, ROOT / "host/page/web/assets.py", output, self.folder / "packages"]
        pairs = ["/chart.js=npm:uplot/dist/uPlot.iife.min.js", f"/index.html={ROOT / 'host/page/web/index.html'}"]
        done = subprocess.run([*words, *pairs], env={**os.environ, "PATH": f"{tools}:/bin"}, capture_output=True, text=True, check=True)
        subprocess.run(["gcc", "-fsyntax-only", "-I", ROOT, output], check=True)
        return output.read_text(), done.stderr

    def assert_without_chart(self, made, why):
        text, said = made
        self.assertIn('{"/chart.js", "text/javascript; charset=utf-8", asset_0, 0}', text)
        self.assertIn(f'asset_1, {(ROOT / "host/page/web/index.html").stat().st_size}}}', text)
        self.assertIn("built without its chart", said)
        self.assertIn(why, said)
        self.assertIn("To try again: rm ", said)
        self.assertFalse((self.folder / "packages" / ".installed").exists(), "the next time it is tried again")

    def test_npm_that_fails_is_told_of(self):
        self.assert_without_chart(self.make("echo no route to anywhere >&2; exit 1"), "no route to anywhere")

    def test_what_npm_brings_is_in_it(self):
        text, said = self.make("mkdir -p node_modules/uplot/dist && printf 12345 >node_modules/uplot/dist/uPlot.iife.min.js")
        self.assertEqual(said, "")
        self.assertIn("asset_0, 5}", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
