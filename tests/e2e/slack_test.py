"""What an allocator keeps of what was freed is its slack, whichever allocator it is: little is nobody's."""
import pathlib
import subprocess
import unittest

import harness

LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
# None of them gives freed pages back meanwhile: how much it keeps is not what is asked here.
KEEPING = {"MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1", "TCMALLOC_RELEASE_RATE": "0", "MIMALLOC_PAGE_RESET": "0", "MIMALLOC_ALLOW_DECOMMIT": "0"}
FREED_BYTES = 999999 * 100


class Slack(harness.Case):
    def memory_under(self, library):
        # The environment is the program's alone, as its user would have it.
        words = [*(f"{name}={value}" for name, value in KEEPING.items()), *([f"LD_PRELOAD={library}"] if library else [])]
        process = self.memlog_start("/usr/bin/env", *words, harness.PROGRAMS / "oracle" / "keeps_freed", stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        answer = harness.run_words([str(harness.MEMLOG), "dump"], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        process.communicate(b"\n", harness.TIMEOUT)
        (dump,) = self.folder.glob("dumps*/*.manual.pftrace")
        (entry,) = [one for one in self.report(dump)["processes"] if one["name"] == "keeps_freed"]
        return entry["memory"]

    def check(self, library):
        memory = self.memory_under(library)
        self.assertTrue(memory["heap_known"])
        private = {one["name"]: one["private_bytes"] for one in memory["components"]}
        self.assertLess(private["heap"], 16 << 10)
        self.assertGreaterEqual(private["allocator slack"], FREED_BYTES)
        self.assertLessEqual(private["other anonymous"], memory["private_bytes"] // 100)
        self.assertEqual(sum(private.values()), memory["private_bytes"])
        # Of all that slack one block keeps a page or two: the rest is the allocator's own choice.
        self.assertLess(memory["heap_pages"]["waste_bytes"], 64 << 10)

    def test_glibc(self):
        self.check(None)

    def test_jemalloc(self):
        self.check(LIBRARIES / "libjemalloc.so.2")

    def test_tcmalloc(self):
        self.check(LIBRARIES / "libtcmalloc_minimal.so.4")

    def test_mimalloc(self):
        self.check(harness.MIMALLOC)


if __name__ == "__main__":
    unittest.main()
