"""Processes that memlog does not attach to: each is told why, and is as it was."""
# runner: no second chance
import os
import pathlib
import shutil
import subprocess
import unittest

import attached
import filtered
import harness


# Its malloc begins two bytes before a page's end.
ON_TWO_PAGES = r"""
#include <stddef.h>
#include <string.h>
#include <unistd.h>
void *malloc(size_t size);
__attribute__((used)) void *own_malloc(size_t size) {
    static char room[1 << 20];
    static size_t used;
    used = (used + size + 15) % (sizeof(room) - size) & ~(size_t)15;
    return room + used;
}
__asm__(".section .text.malloc,\"ax\",@progbits\n.balign 4096\n.skip 4094\n"
        ".globl malloc\n.type malloc, @function\nmalloc:\nmov $1, %eax\njmp own_malloc\n.size malloc, . - malloc\n.text\n");
void free(void *block) { __asm__ volatile("movq %0, -8(%%rsp)\n" : : "r"(block)); }
void *calloc(size_t count, size_t size) { return memset(malloc(count * size), 0, count * size); }
void *realloc(void *block, size_t size) { return block ? memmove(malloc(size), block, size) : malloc(size); }
int main(void) {
    (void)!write(1, "ready\n", 6);
    for (;;) {
        free(calloc(1, 100));
        usleep(1000);
    }
}
"""


class Refused(attached.Case):
    def refused(self, pid, *reasons, env=None):
        """Not attached, with these words; returns them."""
        answer = self.command("attach", "--no-page", "--duration=0.2", "-o", self.folder / "never", pid)
        self.assertEqual((answer.returncode, answer.stdout), (125, ""), answer.stderr)
        self.assertIn(f"{pid} is not recorded: ", answer.stderr)
        for reason in reasons:
            self.assertIn(reason, answer.stderr)
        return answer.stderr

    def works(self, target):
        """It is as it was, and can be told to do things."""
        target.tell("quiet")
        target.tell("epoch 1000")
        target.tell("warm")
        target.end()

    def test_one_that_another_tracer_has(self):
        if not shutil.which("strace"):
            self.skipTest("no strace")
        target = self.target()
        strace = subprocess.Popen(["strace", "-f", "-o", "/dev/null", "-p", str(target.pid)], stderr=subprocess.DEVNULL)
        self.addCleanup(strace.wait)
        self.addCleanup(strace.terminate)
        status = pathlib.Path(f"/proc/{target.pid}/status")
        self.wait_for("strace", lambda: f"TracerPid:\t{strace.pid}\n" in status.read_text())
        self.refused(target.pid, "strace", "traces it already")
        strace.terminate()
        strace.wait()
        self.works(target)

    def test_one_of_which_a_debugger_has_a_thread(self):
        """The process itself says nothing of it."""
        if not shutil.which("strace"):
            self.skipTest("no strace")
        target = self.target()
        thread = next(one for one in sorted(map(int, os.listdir(f"/proc/{target.pid}/task"))) if one != target.pid)
        strace = subprocess.Popen(["strace", "-o", "/dev/null", "-p", str(thread)], stderr=subprocess.DEVNULL)
        self.addCleanup(strace.wait)
        self.addCleanup(strace.terminate)
        status = pathlib.Path(f"/proc/{target.pid}/task/{thread}/status")
        self.wait_for("strace", lambda: f"TracerPid:\t{strace.pid}\n" in status.read_text())
        self.refused(target.pid, f"process {strace.pid} traces a thread of it ({thread})", "end that first")
        strace.terminate()
        strace.wait()
        self.works(target)

    def test_a_static_program_without_symbols(self):
        program = self.program("static glibc")
        subprocess.run(["strip", program], check=True)
        target = attached.Target(self, [program]).ready()
        self.refused(target.pid, "symbols")
        self.works(target)

    def test_a_program_in_go(self):
        if not shutil.which("go"):
            self.skipTest("no go")
        source = self.folder / "program.go"
        source.write_text('package main\nimport ("fmt"; "time")\nfunc main() { fmt.Println("ready"); time.Sleep(1000 * time.Second) }\n')
        harness.go_build(self.folder / "program", source, CGO_ENABLED="0")
        target = attached.Target(self, [self.folder / "program"]).ready()
        self.refused(target.pid, "Go")
        self.assertIsNone(target.process.poll())

    def test_a_function_whose_first_bytes_lie_on_two_pages(self):
        """A tracer that is killed between the two would leave half a jump. The others are recorded, and the one is named."""
        source = self.folder / "program.c"
        source.write_text(ON_TWO_PAGES)
        program = self.folder / "program"
        subprocess.run([*attached.BUILDS["glibc"], *attached.AS_WRITTEN, "-o", program, source], check=True)
        target = attached.Target(self, [program]).ready()
        session = self.begin(target.pid)
        entry = self.entry(self.finish(session), target.pid)
        self.assertIn("malloc: its entry lies on two pages", entry["trouble"])
        self.assertFalse(entry["complete"])
        self.assertIsNone(target.process.poll())

    def test_parts_of_memlog(self):
        target = self.target()
        session = self.begin(target.pid)
        self.refused(session.pid, "memlog itself")
        self.refused(harness.service_of(session.pid), "memlog itself")
        self.finish(session)
        self.works(target)

    def test_one_under_memlog_run(self):
        program = self.memlog_start(self.program(), stdin=subprocess.PIPE)
        self.assertEqual(program.stdout.readline(), b"ready\n")
        pid = next(pid for pid in harness.children_of(program.pid)
                   if harness.comm_of(pid).startswith("attached"))
        self.refused(pid, "memlog")
        program.stdin.write(b"quiet\nend 5\n")
        program.stdin.flush()
        self.assertEqual(program.wait(harness.TIMEOUT), 5)

    def test_one_that_another_memlog_is_attached_to(self):
        target = self.target()
        session = self.begin(target.pid)
        answer = self.command("attach", "--no-page", "--duration=0.2", "-o", self.folder / "never", target.pid)
        self.assertEqual(answer.returncode, 125, answer.stderr)
        self.assertIn("memlog", answer.stderr)
        target.tell("quiet")
        target.tell("epoch 500")
        books = target.books()
        self.assert_held(self.entry(self.finish(session), target.pid), books)
        target.end()

    def filtered(self, calls):
        return attached.Target(self, filtered.under(filtered.lines(calls), [self.program()])).ready()

    def test_one_whose_seccomp_filter_cannot_be_read(self):
        """Root alone can."""
        target = self.filtered(filtered.PROGRAMS_OWN + filtered.MEMLOGS)
        if os.geteuid() != 0:
            self.refused(target.pid, "seccomp", "root")
        self.works(target)

    @unittest.skipIf(os.geteuid() != 0, "root alone can read a filter")
    def test_one_whose_seccomp_filter_forbids_what_memlog_needs(self):
        """The filter kills; that memlog would make the call is told, and it is not made."""
        for call in ("sendmsg", "recvmsg", "socketpair", "poll", "sigaltstack"):
            with self.subTest(call):
                target = self.filtered([*filtered.PROGRAMS_OWN, *(one for one in filtered.MEMLOGS if one != call)])
                told = self.refused(target.pid, "its seccomp filter forbids ", "memlog run")
                self.assertIn("that recording needs" if call == "sigaltstack" else f"forbids {call}", told)
                self.works(target)

    def test_one_that_takes_its_own_system_calls(self):
        """What memlog called on its threads would end it."""
        target = attached.Target(self, [attached.build("dispatches.c", self.folder / "dispatches")])
        if target.line() != "ready":
            self.skipTest("the kernel has no dispatch of system calls")
        version = tuple(map(int, os.uname().release.split(".")[:2]))
        if version < (6, 4):
            self.skipTest("the kernel does not tell of it")
        self.refused(target.pid, "PR_SET_SYSCALL_USER_DISPATCH")
        self.refused(target.pid, "PR_SET_SYSCALL_USER_DISPATCH")
        target.end()

    def test_one_in_vfork_is_waited_for_while_it_works(self):
        """A thread that waits for the child of its vfork stops for nobody."""
        target = attached.Target(self, [attached.build("waits_in_vfork.c", self.folder / "waits_in_vfork")]).ready()
        self.refused(target.pid, "sleeps where nothing stops it", "try again")
        target.end()

    def test_one_without_descriptors(self):
        code = ("import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\nkept = []\n"
                "try:\n    while True: kept.append(os.dup(0))\nexcept OSError: pass\nprint('ready', flush=True)\ninput()\n"
                "os.close(kept.pop())\nopen('/dev/null').close()\nprint(len(kept))")
        target = attached.Target(self, ["/usr/bin/python3", "-I", "-c", code]).ready()
        before = attached.files_of(target.pid)
        self.refused(target.pid, "descriptors")
        self.assertEqual(attached.files_of(target.pid), before)
        self.assertEqual(int(target.tell("")), len(before) - 4)

    def test_one_without_address_space(self):
        target = self.target()
        size = int(pathlib.Path(f"/proc/{target.pid}/statm").read_text().split()[0]) * 4096
        for room in (0, 1 << 19, 1 << 20, 2 << 20, 3 << 20):
            subprocess.run(["prlimit", f"--pid={target.pid}", f"--as={size + room}:"], check=True)
            answer = self.command("attach", "--no-page", "--duration=0.2", "-o", self.folder / f"dumps-{room}", target.pid)
            # With more room it may be attached; it is alive in any case.
            self.assertIn(answer.returncode, (0, 125), answer.stderr)
            if room == 0:
                self.assertEqual(answer.returncode, 125, answer.stderr)
                self.assertIn("is not recorded: ", answer.stderr)
            self.assertIsNone(target.process.poll(), f"room {room}: {answer.stderr}")
        subprocess.run(["prlimit", f"--pid={target.pid}", "--as=unlimited:"], check=True)
        self.works(target)

    def test_anothers_process(self):
        """As a user who may not: root may attach to all."""
        if os.geteuid() != 0:
            self.skipTest("this needs two users: run it as root")
        target = self.target()
        self.folder.chmod(0o755)
        copy = pathlib.Path(f"/tmp/memlog-attach-{os.getpid()}")
        copy.mkdir(mode=0o755)
        self.addCleanup(shutil.rmtree, copy)
        for name in ("memlog", "memlog-service", "memlog-analyzer", "memlog-tracer", "libmemlog.so", "libmemlog-attached.so"):
            shutil.copy(harness.OUT / name, copy / name)
        (copy / "work").mkdir()
        os.chown(copy / "work", 65534, 65534)
        env = self.environment(XDG_RUNTIME_DIR=str(copy / "work"))
        answer = subprocess.run(
            [copy / "memlog", "attach", "--no-page", "--duration=0.2", "-o", copy / "work" / "dumps", str(target.pid)], env=env,
            cwd=copy / "work", capture_output=True, text=True, timeout=harness.TIMEOUT, check=False, user=65534, group=65534, extra_groups=[],
        )
        self.assertEqual((answer.returncode, answer.stdout), (125, ""), answer.stderr)
        self.assertRegex(answer.stderr, "another user|belongs to|user root|permission|root's")
        self.works(target)


if __name__ == "__main__":
    unittest.main()
