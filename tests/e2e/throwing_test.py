"""Exceptions out of operator new pass through memlog as without it: from the start, attached, and with each way to link C++'s library."""
import unittest

import attached
import harness

EXPECTED = "500 500 500 500 500 1000"
LINKED = {"shared": (), "static libstdc++": ("-static-libstdc++", "-static-libgcc"), "static": ("-static",)}


class Throwing(attached.Case):
    def programs(self):
        for kind, options in LINKED.items():
            program = self.folder / kind.replace(" ", "-")
            words = ["g++", "-O1", "-g", *options, "-o", str(program), str(attached.SOURCES / "throwing.cpp")]
            answer = harness.run_words(words, self.folder, None, b"", harness.TIMEOUT)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            yield kind, program

    def test_from_the_start(self):
        for kind, program in self.programs():
            with self.subTest(kind):
                run = self.memlog(program)
                self.assertEqual((run.code, run.out.decode().strip()), (7, EXPECTED), run.err)
                if kind == "static":
                    continue  # nothing can be preloaded there
                (entry,) = self.exit_report(run)["processes"]
                # One in each round succeeds; exceptions are blocks, too.
                self.assertGreaterEqual(entry["total_blocks"], 500)
                self.assertEqual((entry["lost_events"], entry["state"]), (0, "exited"))

    def test_attached(self):
        for kind, program in self.programs():
            with self.subTest(kind):
                target = attached.Target(self, [program, "wait"]).ready()
                session = self.begin(target.pid)
                target.process.stdin.write("\n")
                target.process.stdin.flush()
                self.assertEqual(target.line(), EXPECTED)
                self.assertEqual(target.process.wait(harness.TIMEOUT), 7)
                entry = self.entry(self.finish(session), target.pid)
                self.assertGreaterEqual(entry["total_blocks"], 500)
                self.assertEqual(entry["lost_events"], 0)


if __name__ == "__main__":
    unittest.main()
