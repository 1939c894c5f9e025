"""What a whole run promises besides figures: stacks that libunwind confirms, names of threads, allocations before main, memory that is
not malloc's, what the library takes of each thread."""
import re
import subprocess
import unittest

import harness

PYTHON = "/usr/bin/python3"

THREADS = """
import ctypes, threading
libc = ctypes.CDLL(None)
def work(name):
    libc.prctl(15, name.encode(), 0, 0, 0)
    return [bytearray(100000) for _ in range(5)]
for name in ("painter", "reader"):
    thread = threading.Thread(target=work, args=(name,))
    thread.start()
    thread.join()
"""

CXX = "#include <map>\n#include <string>\nstd::map<std::string, std::string> table;\n"

# The static TLS that a library may take of a program without being noticed; design section 6.
TLS_BOUND_BYTES = 512


class WholeRun(harness.Case):
    def text_report(self, run):
        words = [str(harness.MEMLOG), "report", "--full", str(run.dumps()[0])]
        return harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT).stdout.decode()

    def test_libunwind_confirms_the_stacks_of_a_compiler_and_an_interpreter(self):
        (self.folder / "a.cc").write_text(CXX)
        for words in (("g++", "-c", "a.cc", "-o", "a.o"), (PYTHON, "-c", "import json; json.dumps([{}] * 99)"), ("perl", "-e", "1")):
            with self.subTest(words=words):
                run = self.memlog(*words, options=("-q", "--no-page", "--unwind-check=50"))
                self.assertEqual(run.code, 0, run.err)
                processes = self.exit_report(run)["processes"]
                self.assertGreater(sum(entry["unwind_checked"] for entry in processes), 10)
                self.assertEqual([entry["unwind_differed"] for entry in processes], [0] * len(processes))
                self.assertRegex(self.text_report(run), r"checked against libunwind, 0 differed")

    def test_the_threads_name_is_the_root_of_its_stacks(self):
        run = self.memlog(PYTHON, "-c", THREADS, options=("-q", "--no-page", "--memlog-stack-mode=native-with-thread-names"))
        self.assertEqual(run.code, 0, run.err)
        process = self.exit_report(run)["processes"][0]
        total = {}
        for stack in process["stacks"]:
            total[stack["thread"]] = total.get(stack["thread"], 0) + stack["total_bytes"]
        self.assertLessEqual({"python3", "painter", "reader"}, set(total))
        for name in ("painter", "reader"):
            self.assertGreaterEqual(total[name], 5 * 100000)
        self.assertNotIn("", total)

    def test_without_thread_names_no_stack_has_one(self):
        run = self.memlog(PYTHON, "-c", THREADS)
        self.assertEqual({stack["thread"] for stack in self.exit_report(run)["processes"][0]["stacks"]}, {""})

    def test_what_a_library_allocates_before_main_is_seen(self):
        # libstdc++ keeps a pool for exceptions, which its own initializer allocates.
        run = self.memlog(harness.PROGRAMS / "oracle" / "operators")
        stacks = self.exit_report(run)["processes"][0]["stacks"]
        innermost = [stack for stack in stacks if "libstdc++" in stack["frames"][0]["module"]]
        self.assertTrue(any("main" not in {frame["function"] for frame in stack["frames"]} for stack in innermost), innermost)

    def test_the_text_says_how_much_of_a_process_is_the_heap(self):
        run = self.memlog(PYTHON, "-c", "kept = bytearray(b'x' * 5000000); import time; time.sleep(1.5)")
        self.assertRegex(self.text_report(run), r"private memory \d.* at its largest reading: heap \d.* live")
        self.assertGreater(self.exit_report(run)["processes"][0]["footprint_bytes"], 5000000)

    def test_the_library_takes_little_of_each_threads_static_storage(self):
        headers = subprocess.run(["readelf", "-lW", harness.OUT / "libmemlog.so"], stdout=subprocess.PIPE, text=True, check=True).stdout
        size = int(re.search(r"^ +TLS(?: +0x\w+){4} +(0x\w+)", headers, re.M).group(1), 16)
        self.assertLessEqual(size, TLS_BOUND_BYTES)


if __name__ == "__main__":
    unittest.main(verbosity=2)
