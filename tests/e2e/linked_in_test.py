"""libmemlog.a is for programs that are linked dynamically: the linker refuses others, which would die at their first allocation."""
import subprocess
import unittest

import harness

# Whatever of it a program uses. Without an allocation of its own the second one has those of libc.
ASKS = '#include "client/memlog.h"\nint main(void) { return memlog_recording(); }\n'
ALLOCATES = "#include <stdlib.h>\nint main(void) { char *volatile block = malloc(10); free(block); return block == 0; }\n"


class LinkedIn(harness.Case):
    def link(self, source, *options):
        """(exit code, what the linker says, the program)"""
        text, program = self.folder / "program.c", self.folder / "program"
        text.write_text(source)
        library = harness.OUT / "obj" / "client" / "libmemlog.a"
        words = ["gcc", *options, "-I", harness.ROOT, "-o", program, text, library]
        linked = subprocess.run(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return linked.returncode, linked.stdout, program

    def test_a_dynamically_linked_program_runs(self):
        for source in (ASKS, ALLOCATES):
            for option in ("-pie", "-no-pie"):
                code, said, program = self.link(source, option)
                self.assertEqual(code, 0, said)
                self.assertEqual(subprocess.run([program], check=False, timeout=harness.TIMEOUT).returncode, 0, option)

    def test_a_statically_linked_one_is_refused_by_the_linker(self):
        for source in (ASKS, ALLOCATES):
            for option in ("-static", "-static-pie"):
                code, said, _ = self.link(source, option)
                self.assertNotEqual(code, 0, option)
                self.assertIn("memlog_needs_a_dynamically_linked_program", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
