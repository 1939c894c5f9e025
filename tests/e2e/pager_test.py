"""Long answers in the reader's pager: only before a terminal, with the command's exit code, and as wide as the terminal."""
import fcntl
import os
import pty
import struct
import subprocess
import termios
import unittest

import harness



class Pager(harness.Case):
    def setUp(self):
        super().setUp()
        (self.dump,) = self.memlog("/bin/true").dumps()

    def before_a_terminal(self, *words, columns=70, **changes):
        """(exit code, what stood on the screen) of memlog before a terminal of its own."""
        env = self.environment(TERM="xterm", **changes)
        for key in ("PAGER", "LESS", "COLUMNS", "NO_COLOR", "CLICOLOR_FORCE"):
            if key not in changes:
                env.pop(key, None)
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([harness.MEMLOG, *map(str, words)], stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True)
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # nobody has it open any more
                break
            seen += part
            if not part:
                break
        os.close(ours)
        return process.wait(harness.TIMEOUT), seen.decode().replace("\r\n", "\n")

    def test_the_readers_own_pager_gets_the_answer_as_wide_as_the_terminal(self):
        code, seen = self.before_a_terminal("report", "--full", self.dump, MEMLOG_PAGER="sed 's/^/> /'", PAGER="false")
        self.assertEqual(code, 0)
        lines = seen.splitlines()
        self.assertTrue(all(line.startswith("> ") for line in lines), seen)
        self.assertIn("\x1b[1m", seen)
        code, seen = self.before_a_terminal("report", self.dump, PAGER="tr a-z A-Z", NO_COLOR="1")
        self.assertEqual(code, 0)
        self.assertIn("1 PROCESS", seen)
        self.assertNotIn("\x1b", seen)

    def test_without_one_it_is_as_before(self):
        plain = subprocess.run([harness.MEMLOG, "report", self.dump], capture_output=True, check=True, env=self.environment(COLUMNS="70")).stdout.decode()
        for changes in ({"MEMLOG_PAGER": ""}, {"PAGER": "cat"}, {"MEMLOG_PAGER": "cat", "PAGER": "false"}):
            code, seen = self.before_a_terminal("report", self.dump, NO_COLOR="1", **changes)
            self.assertEqual((code, seen), (0, plain))
        # Not before a terminal.
        piped = subprocess.run([harness.MEMLOG, "report", self.dump], capture_output=True, check=True,
                               env=self.environment(MEMLOG_PAGER="sed s/^/x/", COLUMNS="70")).stdout.decode()
        self.assertEqual(piped, plain)

    def test_the_exit_code_is_the_commands(self):
        for words, code in ((("report", "--pid=99999999", self.dump), 3), (("report", self.folder / "none"), 1), (("report", "--nonsense"), 2)):
            self.assertEqual(self.before_a_terminal(*words, PAGER="cat > /dev/null; exit 7")[0], code, words)

    def test_a_reader_who_leaves_in_the_middle_breaks_nothing(self):
        code, seen = self.before_a_terminal("report", "--json", self.dump, PAGER="head -c 10")
        self.assertEqual(code, 0, seen)
        self.assertTrue(seen.startswith("{"), seen)

    def test_a_pager_that_is_not_there_is_named(self):
        code, seen = self.before_a_terminal("report", self.dump, MEMLOG_PAGER="no-such-pager")
        self.assertEqual(code, 1)
        self.assertIn("memlog: the pager 'no-such-pager' cannot be run; MEMLOG_PAGER= shows the answer without", seen)

    def test_what_is_no_text_has_none(self):
        code, seen = self.before_a_terminal("timeline", "--html", self.dump, PAGER="sed s/^/x/")
        self.assertEqual(code, 2)
        self.assertIn("not for a terminal", seen)


if __name__ == "__main__":
    unittest.main()
