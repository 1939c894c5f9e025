"""`memlog top`: the largest processes of a running memlog, as text that no terminal acts upon."""
import os
import signal
import subprocess
import unittest

import harness

# Two processes; the larger one has a name that would clear a screen, and ends in half a character.
PROGRAM = r"""
import ctypes, os, pathlib, sys, time
libc = ctypes.CDLL(None)
child = os.fork()
kept = bytearray(9 << 20) if child == 0 else bytearray(3 << 20)
if child == 0:
    libc.prctl(15, b"\x1b[2Jx\xe6\xbc", 0, 0, 0)
pathlib.Path("child" if child == 0 else "parent").touch()
sys.stdin.read()
if child:
    os.wait()
"""


class Top(harness.Case):
    def top(self, *words):
        return subprocess.run(
            [str(harness.MEMLOG), "top", *words], env=self.environment(TERM="dumb"), capture_output=True, timeout=harness.TIMEOUT, check=False,
        )

    def test_processes_are_sorted_clean_and_have_rates_from_the_second_look(self):
        process = self.memlog_start("/usr/bin/python3", "-c", PROGRAM, stdin=subprocess.PIPE)
        self.wait_for("both processes", lambda: (self.folder / "child").exists() and (self.folder / "parent").exists())
        # Figures of the host lag behind its programs.
        self.wait_for("their heaps", lambda: b"MiB" in self.top().stdout and len(self.top().stdout.splitlines()) == 3)
        answer = self.top("-n", "2", "-d", "1")
        self.assertEqual((answer.returncode, answer.stderr), (0, b""))
        text = answer.stdout.decode()  # it is UTF-8
        self.assertTrue(all(letter == "\n" or letter.isprintable() for letter in text), text)
        self.assertIn("?[2Jx", text)
        first, second = (look.splitlines() for look in text.strip("\n").split("\n\n"))
        self.assertEqual([line.split()[0] for line in first[1:]], [line.split()[0] for line in second[1:]])
        self.assertTrue(all(" - " in line for line in first[1:]), first)
        self.assertTrue(all("/s" in look[0] and len(look) == 3 for look in (first, second)), text)
        self.assertTrue(all("+0 B" in line for line in second[1:]), second)
        pid = second[2].split()[0]
        self.assertEqual(len(self.top(pid).stdout.splitlines()), 2)
        self.assertEqual(len(self.top("--filter=nobody has it").stdout.splitlines()), 1)
        # A folder names its run, also where another one is newer.
        newer = self.memlog_start("/bin/cat", stdin=subprocess.PIPE)
        self.wait_for("the newer run", lambda: b" cat" in self.top().stdout)
        self.assertEqual(len(self.top(str(process.memlog_folder)).stdout.splitlines()), 3)
        newer.communicate(timeout=harness.TIMEOUT)
        for words, code, told in (([str(newer.memlog_folder)], 125, "no memlog that runs writes its dumps there"),
                                  (["nowhere"], 125, "nowhere: No such file or directory"),
                                  ([pid, "nowhere"], 2, "'nowhere' is not a process id")):
            answer = self.top(*words)
            self.assertEqual((answer.returncode, answer.stdout), (code, b""))
            self.assertIn(told, answer.stderr.decode())
        process.communicate(timeout=harness.TIMEOUT)
        answer = self.top()
        self.assertEqual((answer.returncode, answer.stdout), (125, b""))
        self.assertIn(b"memlog: ", answer.stderr)

    def screen(self, *words):
        answer = subprocess.run(["tmux", "-S", str(self.folder / "tmux"), "-f", "/dev/null", *words], capture_output=True, text=True,
                                env=self.environment(TERM="xterm"), timeout=harness.TIMEOUT, check=False)
        return answer.stdout

    def sees(self, text):
        self.wait_for(text, lambda: text in self.screen("capture-pane", "-p"), seen=lambda: self.screen("capture-pane", "-p"))

    def sees_no(self, text):
        self.wait_for(f"no {text}", lambda: text not in self.screen("capture-pane", "-p"), seen=lambda: self.screen("capture-pane", "-p"))

    def keys(self, *keys):
        self.screen("send-keys", *keys)

    def pids_by_heap(self):
        """As the first table has them."""
        return [int(line.split()[0]) for line in self.top().stdout.decode().splitlines()[1:]]

    def test_a_live_screen_takes_keys_and_sizes_outlives_the_host_and_leaves_the_terminal_as_it_was(self):
        process = self.memlog_start("/usr/bin/python3", "-c", PROGRAM, stdin=subprocess.PIPE)
        self.addCleanup(self.screen, "kill-server")
        self.wait_for("both processes", lambda: len(self.top().stdout.splitlines()) == 3)
        self.screen("new-session", "-d", "-x", "80", "-y", "24", "/bin/sh")
        self.screen("send-keys", f"TERM=dumb {harness.MEMLOG} top; echo left $?", "Enter")
        self.sees("cannot show a live screen")
        self.sees("left 125")
        self.screen("send-keys", f"clear; {harness.MEMLOG} top -d 1 {process.memlog_folder}; echo ended $?", "Enter")
        self.sees("?[2Jx")
        self.sees(">HEAP")
        self.keys("?")
        self.sees("these keys; Esc ends it")
        self.sees_no(">HEAP")
        self.keys("Escape")
        self.sees(">HEAP")
        self.keys("F1")
        self.sees("these keys; Esc ends it")
        self.keys("q")
        self.sees(">HEAP")
        self.keys("M")
        self.sees(">PRIVATE")
        for _ in range(3):
            self.keys(">")
        self.sees(">HEAP")
        self.keys("F3", "P", "Escape")
        self.sees("?[2Jx")
        self.keys("/", "P", "Y", "x", "BSpace")
        self.sees("filter: PY_")
        self.sees_no("?[2Jx")
        self.sees("python3")
        self.keys("Enter")
        self.sees("names with 'PY'")
        self.keys("Escape")
        self.sees("?[2Jx")
        # A host that stands still is no host that has gone.
        os.kill(process.pid, signal.SIGSTOP)
        self.sees("Z; trying again")
        os.kill(process.pid, signal.SIGCONT)
        self.sees_no("trying again")
        self.sees("h help")
        # The largest process is marked; its child has 9 of the 12 MiB.
        self.keys("Enter")
        self.sees("functions of ")
        self.sees(" s old")
        self.assertRegex(self.screen("capture-pane", "-p"), r">HEAP +GROWTH +BLOCKS +FUNCTION\n +9\.. MiB +- +\d+  \S")
        self.keys("Escape")
        self.sees("?[2Jx")
        self.keys("f")
        self.sees(" s old")
        self.assertRegex(self.screen("capture-pane", "-p"), r"FUNCTION\n +12\.. MiB +- +\d+  \S")
        self.keys(">")
        self.sees(">GROWTH")
        self.keys("/", "@", "Enter")
        self.sees_no("MiB")
        self.keys("f")
        self.sees("?[2Jx")
        self.assertEqual(list(process.memlog_folder.iterdir()), [], "a look leaves no dump behind")
        # The last line's process holds least; above it is the largest.
        self.keys("End", "Down", "Enter")
        self.sees(f"functions of {self.pids_by_heap()[-1]}, ")
        self.keys("Escape")
        self.keys("End", "Home", "Enter")
        self.sees(f"functions of {self.pids_by_heap()[0]}, ")
        self.keys("Escape")
        # Of PIDs that were named, their functions alone.
        self.keys("q")
        self.sees("ended 0")
        pids = {int(line.split()[0]) for line in self.top().stdout.decode().splitlines()[1:]}
        for named, told, heap in (((max(pids),), f"functions of {max(pids)}, ", r"9\.."), (sorted(pids), "functions of 2 PIDs, ", r"12\..")):
            self.screen("send-keys", f"clear; {harness.MEMLOG} top -d 1 {' '.join(map(str, named))}; echo named $?", "Enter")
            self.sees(">HEAP")
            self.sees("MiB")
            self.keys("f")
            self.sees(told)
            self.assertRegex(self.screen("capture-pane", "-p"), rf"FUNCTION\n +{heap} MiB +- +\d+  \S")
            self.keys("q")
            self.sees("named 0")
        self.screen("send-keys", f"clear; {harness.MEMLOG} top -d 1 {process.memlog_folder}; echo ended $?", "Enter")
        self.sees("?[2Jx")
        for columns, mark in ((60, ">PRIVATE"), (200, ">GROWTH/s")):
            self.screen("resize-window", "-x", str(columns), "-y", "10")
            self.screen("send-keys", ">")
            self.sees(mark)
        process.communicate(timeout=harness.TIMEOUT)
        self.sees("memlog answers no more")
        self.screen("send-keys", "q")
        self.sees("ended 0")
        self.screen("send-keys", "stty -a | grep -ow -e icanon -e echo; echo again $?", "Enter")
        self.sees("\nicanon")
        self.sees("again 0")


if __name__ == "__main__":
    unittest.main()
