"""Whose the memory of real programs is: every resident byte has its owner, and hardly any private one is without.

The programs are those of tools/bench/components, as far as they are installed; each is stopped while it is read."""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import harness

sys.path.insert(0, str(harness.ROOT / "tools/bench"))
import memory_programs  # noqa: E402
import memory_reading  # noqa: E402

UNEXPLAINED = "other anonymous"
UNEXPLAINED_PART = 100  # at most one of so many
# Pages of a file become shared when another program of the machine maps it, and private when it ends. The test has neighbours.
NEIGHBOURS_BYTES = 1 << 20


def resident(smaps):
    return 1024 * sum(int(kib) for kib in re.findall(r"^Rss: +(\d+) kB$", smaps, re.M))


class MemoryPrograms(harness.Case):
    def check(self, name, when=None):
        program = memory_programs.BY_NAME[name]
        if program.missing():
            self.skipTest(program.missing())
        if when:
            program.when = when
        place = self.folder / "place"
        place.mkdir(mode=0o755)
        self.folder.chmod(0o755)  # servers run as somebody else
        (place / "run").mkdir(mode=0o700)
        if program.prepare:
            program.prepare(place)
        moment = memory_programs.Moment(program, place, harness.MEMLOG)
        try:
            self.assertTrue(moment.arrive(), (place / "stderr").read_text(errors="replace")[-500:])
            processes, private, _ = memory_reading.read(moment, harness.MEMLOG, keep=self.folder / "kept")
        finally:
            moment.end()
        (kept,) = (self.folder / "kept").iterdir()
        found = [entry for entry in processes if entry["pid"] in private and entry["memory"]]
        self.assertGreater(len(found), 0)
        for entry in found:
            with self.subTest(entry["name"], pid=entry["pid"]):
                self.check_sums(entry["memory"], private[entry["pid"]], pathlib.Path(kept / f"{entry['pid']}.smaps").read_text())
        for label, part in program.rows.items():
            with self.subTest(label):
                fitting = [entry for entry in found if part in " ".join(entry["command_line"])]
                self.check_unexplained(max(fitting, key=lambda entry: private[entry["pid"]])["memory"])

    def check_sums(self, memory, private, smaps):
        sums = {figure: sum(one[figure] for one in memory["components"]) for figure in ("private_bytes", "shared_bytes")}
        self.assertEqual(sums["private_bytes"] + sums["shared_bytes"], resident(smaps))
        self.assertEqual(sums["private_bytes"], memory["private_bytes"])
        self.assertGreaterEqual(sums["private_bytes"], min(private) - NEIGHBOURS_BYTES)
        self.assertLessEqual(sums["private_bytes"], max(private) + NEIGHBOURS_BYTES)

    def check_unexplained(self, memory):
        (unexplained,) = [one["private_bytes"] for one in memory["components"] if one["name"] == UNEXPLAINED]
        self.assertLessEqual(unexplained * UNEXPLAINED_PART, memory["private_bytes"], memory["components"])

    def test_cc1plus(self):
        self.check("cc1plus", when=60)

    def test_clang(self):
        self.check("clang++", when=30)

    def test_python_with_numpy(self):
        program = memory_programs.BY_NAME["python3 + numpy"]
        if not list(pathlib.Path("/usr/lib/python3/dist-packages").glob("numpy")):
            self.skipTest(f"no {program.packages[0]}")
        self.check("python3 + numpy")

    def test_node(self):
        self.check("node")

    def test_java(self):
        self.check("java")

    def test_php(self):
        self.check("php")

    def test_ruby(self):
        self.check("ruby")

    def test_sqlite3_with_mmap(self):
        self.check("sqlite3 with mmap")

    def test_git(self):
        self.check("git pack-objects")

    def test_redis_with_jemalloc(self):
        self.check("redis (jemalloc)")

    def test_redis_with_the_c_librarys_malloc(self):
        version = subprocess.run(["redis-server", "--version"], capture_output=True, text=True, check=False).stdout if shutil.which("redis-server") else ""
        if re.search(r"v=([89]|\d\d)\.", version):
            self.skipTest("its Lua asks jemalloc by name from version 8 on, and dies of another allocator")
        self.check("redis (libc's malloc)")

    def test_postgresql(self):
        self.check("PostgreSQL")

    def test_nginx(self):
        self.check("nginx")

    def test_rustc(self):
        self.check("rustc", when=50)

    def test_go_with_cgo(self):
        self.check("Go with cgo")

    def test_chromium(self):
        self.check("Chromium")


if __name__ == "__main__":
    unittest.main()
