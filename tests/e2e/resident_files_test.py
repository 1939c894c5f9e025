"""How much more of a program's files is in memory under memlog: the tables that memlog reads of them, and nothing of their data.

Run by itself it prints a line for each program."""
import os
import re
import shutil
import unittest

import harness

PROGRAMS = {
    "cat": ("/bin/cat", "/proc/self/smaps"),
    "perl": ("/usr/bin/perl", "-e", "open F, '/proc/self/smaps'; print <F>"),
    "python3": ("/usr/bin/python3", "-c", "import json, ssl, sqlite3; print(open('/proc/self/smaps').read())"),
    "php": ("php", "-r", "echo file_get_contents('/proc/self/smaps');"),  # has ICU's 31 MB of data
    "node": ("node", "-e", "console.log(require('fs').readFileSync('/proc/self/smaps', 'utf8'))"),
}
MOST_KIB = 8 << 10


def of_files_kib(smaps):
    """Resident, of all files but memlog's own library."""
    total = 0
    path = ""
    for line in smaps.splitlines():
        mapping = re.match(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)", line)
        if mapping:
            path = mapping[1]
        elif line.startswith("Rss:") and path.startswith("/") and "libmemlog" not in path and "memfd:" not in path:
            total += int(line.split()[1])
    return total


class ResidentFiles(harness.Case):
    def test_no_more_than_tables_is_read(self):
        for name, words in PROGRAMS.items():
            if shutil.which(words[0]) is None:
                continue
            with self.subTest(name):
                alone = of_files_kib(harness.run_words(words, self.folder, dict(os.environ), b"", harness.TIMEOUT).stdout.decode())
                run = self.memlog(*words)
                self.assertEqual(run.code, 0, run.err)
                with_it = of_files_kib(run.out.decode())
                print(f"{name}: {alone} KiB of files alone, {with_it - alone} KiB more under memlog")
                self.assertGreater(alone, 0)
                self.assertLess(with_it - alone, MOST_KIB)


if __name__ == "__main__":
    unittest.main()
