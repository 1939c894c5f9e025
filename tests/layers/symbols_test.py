"""tools/dev/check/symbols.sh refuses what it says it refuses: each case puts one built thing in the place of another."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILT = ("libmemlog.so", "libmemlog-attached.so", "memlog-service")
# Bound to glibc 2.34, as any source is that a newer machine compiles.
NEWER = "#include <pthread.h>\nint memlog_start(const char *path) { return pthread_key_create((pthread_key_t *)path, 0); }\n"
# What `ld -z pack-relative-relocs` asks of the loader, since glibc 2.36, by a version that is no number.
PACKED = "#include <stdlib.h>\nstatic int one; int *volatile kept[64] = {&one, &one, &one}; " \
         "int memlog_start(void) { return kept[1] != 0 && getenv(\"HOME\") != 0; }\n"
OUTSIDE = "#include <stdlib.h>\n__thread int own;\nint memlog_start(void) { return own + (getenv(\"HOME\") != 0); }\n"


class Symbols(unittest.TestCase):
    def setUp(self):
        self.out = pathlib.Path(tempfile.mkdtemp(prefix="memlog-symbols."))
        self.addCleanup(shutil.rmtree, self.out, True)
        for name in BUILT:
            shutil.copy(ROOT / "out" / name, self.out)

    def build(self, name, text, *words):
        (self.out / "source.c").write_text(text)
        (self.out / name).unlink()
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", self.out / name, self.out / "source.c", *words], check=True)

    def assert_refused(self, *texts):
        answer = subprocess.run(
            [ROOT / "tools" / "dev" / "check" / "symbols.sh", self.out], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        self.assertEqual(answer.returncode, 1 if texts else 0, answer.stdout)
        for text in texts:
            self.assertIn(text, answer.stdout)

    def test_what_was_built_passes(self):
        self.assert_refused()

    def test_a_version_of_a_newer_glibc(self):
        self.build("libmemlog.so", NEWER)
        self.assert_refused("libmemlog.so needs GLIBC_2.34: programs with an older glibc")

    def test_a_version_that_is_no_number(self):
        self.build("libmemlog.so", PACKED, "-Wl,-z,pack-relative-relocs")
        versions = subprocess.run(["readelf", "-V", self.out / "libmemlog.so"], stdout=subprocess.PIPE, text=True, check=True).stdout
        if "GLIBC_ABI_DT_RELR" not in versions:
            self.skipTest("this linker packs no relocations")
        self.assert_refused("libmemlog.so needs GLIBC_ABI_DT_RELR: programs with an older glibc")

    def test_another_library_and_another_name(self):
        self.build("libmemlog.so", OUTSIDE, "-Wl,--no-as-needed", "-lpthread", "-lm")
        self.assert_refused("libmemlog.so needs libm.so.6", "libmemlog.so imports getenv, which client/symbols.allow does not list",
                            "libmemlog.so does not export malloc", "libmemlog.so has no resolver behind its other relocations")

    def test_a_client_for_running_processes_that_wants_something(self):
        self.build("libmemlog-attached.so", OUTSIDE)
        self.assert_refused("libmemlog-attached.so imports getenv", "libmemlog-attached.so needs libc.so.6", "has thread-local storage")

    def test_what_is_missing(self):
        (self.out / "libmemlog.so").unlink()
        self.assert_refused("libmemlog.so was not built")


if __name__ == "__main__":
    unittest.main(verbosity=2)
