"""Bad input, and trouble on our own side: each ends in an error that names the thing, and nothing that was there is lost."""
import json
import os
import pathlib
import random
import signal
import subprocess
import unittest

import harness

PYTHON = "/usr/bin/python3"


class Inputs(harness.Case):
    def memlog_words(self, *words, prefix=(), cwd=None):
        answer = harness.run_words(
            [*prefix, str(harness.MEMLOG), *map(str, words)], cwd or self.folder, self.environment(), b"", harness.TIMEOUT
        )
        self.assertLess(answer.returncode, 128, (words, answer.stderr))
        self.assertGreaterEqual(answer.returncode, 0, (words, answer.stderr))
        return answer.returncode, answer.stdout, answer.stderr.decode(errors="replace")

    def assert_refused(self, code, named, *words, **options):
        """The exit code, one thing named on stderr, nothing on stdout."""
        said, out, err = self.memlog_words(*words, **options)
        self.assertEqual(said, code, err)
        self.assertIn(named, err)
        self.assertEqual(out, b"")


class Dumps(Inputs):
    def dump(self):
        run = self.memlog(harness.PROGRAMS / "oracle" / "single")
        return run.dumps()[0]

    def test_a_dump_cut_anywhere_still_opens_with_what_it_has(self):
        dump = self.dump()
        whole = dump.read_bytes()
        cut = self.folder / "cut.pftrace"
        chooser = random.Random(1)
        for length in [len(whole) - 1, len(whole) // 2] + [chooser.randrange(64, len(whole)) for _ in range(20)]:
            cut.write_bytes(whole[:length])
            code, out, err = self.memlog_words("report", "--json", cut)
            if code != 0 and length < 1000:
                self.assertIn("cut.pftrace", err)  # before the first process there is nothing to show
                continue
            self.assertEqual(code, 0, f"cut at {length} of {len(whole)}: {err}")
            self.assertFalse(json.loads(out)["dump"]["complete"], f"cut at {length} of {len(whole)}")

    def test_a_dump_cut_in_its_first_packet_is_survived_by_every_command_and_form(self):
        whole = self.dump().read_bytes()
        cut = self.folder / "cut.pftrace"
        forms = [[f"--to={form}"] for form in ("perfetto", "pprof", "heap", "chrome", "collapsed", "sqlite", "json", "html")]
        commands = [["convert", *form] for form in forms]
        commands += [["report"], ["report", "--csv"], ["report", "--by=thread"], ["flamegraph"], ["timeline"], ["suspects"], ["symbolize"], ["diff", cut],
                     ["components"], ["components", "--html"], ["expand", "heap"], ["list"]]
        for length in (4, 16, 53):
            cut.write_bytes(whole[:length])
            for words in commands:
                with self.subTest(words=words, length=length):
                    code, _, err = self.memlog_words(*words, cut)
                    self.assertIn(code, (0, 1, 3), err)  # 3: the dump lacks what was asked for
                    self.assertIn("cut.pftrace", err)

    def test_a_dump_with_flipped_bits_is_read_or_refused_by_name(self):
        whole = bytearray(self.dump().read_bytes())
        flipped = self.folder / "flipped.pftrace"
        chooser = random.Random(2)
        for _ in range(60):
            at, bit = chooser.randrange(len(whole)), 1 << chooser.randrange(8)
            whole[at] ^= bit
            flipped.write_bytes(whole)
            whole[at] ^= bit
            code, out, err = self.memlog_words("report", "--json", flipped)
            if code == 0:
                json.loads(out)
            else:
                self.assertIn("flipped.pftrace", err, f"byte {at}, bit {bit}")

    def test_what_is_no_dump_is_refused_by_name(self):
        empty = self.folder / "empty.pftrace"
        empty.touch()
        text = self.folder / "text.pftrace"
        text.write_text("this is no dump at all, but some words\n" * 10)
        for path in (empty, text, self.folder / "missing.pftrace", self.folder):
            for command in (["report"], ["report", "--json"], ["convert", "--to=pprof"]):
                code, _, err = self.memlog_words(*command, path)
                self.assertNotEqual(code, 0, (command, path))
                self.assertIn(path.name, err)

    def test_what_is_no_file_holds_nobody_up(self):
        dump = self.dump()
        fifo = self.folder / "fifo.pftrace"
        os.mkfifo(fifo)
        os.symlink(fifo, self.folder / "fifo.json")
        for path, why in ((fifo, "nobody writes"), ("/dev/zero", "device"), ("/dev/null", "device"), (self.folder, "directory")):
            for words in (["report"], ["diff", dump], ["convert", "--to=chrome"], ["convert", "--to=perfetto"], ["flamegraph"], ["symbolize", "-o", "x"],
                          ["timeline"], ["suspects"], ["components"], ["list"], ["upload", "--dry-run"], ["convert", "--to=pprof", "--before=" + str(dump)]):
                with self.subTest(path=path, words=words):
                    self.assert_refused(1, why, *words, path)
        self.assert_refused(1, "fifo.json", "symbolize", "-o", "x", self.folder / "fifo.json")
        for option in ("--triggers", "--never-list", "--upload-ca"):
            with self.subTest(option=option):
                code, _, err = self.memlog_words("run", "--no-page", f"{option}={fifo}", "--", "true")
                self.assertIn(code, (2, 125), err)
                self.assertIn("fifo.pftrace", err)

    def test_a_dump_may_come_through_a_pipe(self):
        dump = self.dump()
        for words, works in (("report", True), ("report --json", True), ("convert --to=collapsed", True), ("convert --to=chrome -o c.json", True),
                             ("flamegraph -o f.html", True), ("symbolize --symbols-only -o s", True), ("symbolize -o d.pftrace", False),
                             ("convert --to=perfetto -o p.pftrace", False)):
            with self.subTest(words=words):
                script = f'exec "$0" {words} <(cat "$1")'
                answer = harness.run_words(["bash", "-c", script, harness.MEMLOG, dump], self.folder, self.environment(), b"", harness.TIMEOUT)
                self.assertEqual(answer.returncode, 0 if works else 1, answer.stderr)
                self.assertEqual(b"can be read once" in answer.stderr, not works, answer.stderr)

    def test_a_file_that_a_dump_names_is_looked_at_before_it_is_opened(self):
        """A FIFO in a program's place: who looks for names does not wait for it."""
        program = self.folder / "program"
        program.write_bytes((harness.PROGRAMS / "oracle" / "single").read_bytes())
        program.chmod(0o755)
        run = self.memlog(program)
        program.unlink()
        os.mkfifo(program)
        self.report(run.dumps()[0])

    def test_convert_to_an_unknown_format_names_it_and_the_nearest(self):
        code, _, err = self.memlog_words("convert", "--to=pproff", self.dump())
        self.assertEqual(code, 2)
        self.assertIn("pproff", err)
        self.assertIn("pprof", err.replace("pproff", ""))

    def test_what_is_converted_is_its_users_alone_and_goes_through_no_link_beside_it(self):
        dump, victim = self.dump(), self.folder / "victim"
        victim.write_text("as it was")
        before = os.umask(0)
        try:
            for words in (("convert", "--to=pprof"), ("flamegraph",)):
                out = self.folder / f"{words[0]}.out"
                (self.folder / f"{words[0]}.out.part").symlink_to(victim)
                code, _, err = self.memlog_words(*words, "-o", out, dump)
                self.assertEqual(code, 0, err)
                self.assertFalse(out.is_symlink())
                self.assertEqual(out.stat().st_mode & 0o777, 0o600)
        finally:
            os.umask(before)
        self.assertEqual(victim.read_text(), "as it was")

    def test_convert_never_leaves_half_a_file(self):
        text = self.folder / "text.pftrace"
        text.write_text("no dump\n")
        kept = self.folder / "kept.pb"
        kept.write_text("what was there")
        self.memlog_words("convert", "--to=pprof", "-o", kept, text)
        self.assertEqual(kept.read_text(), "what was there")


class Folders(Inputs):
    def test_a_folder_that_holds_dumps_is_never_overwritten(self):
        folder = self.folder / "kept"
        self.assertEqual(self.memlog_words("run", "-q", "--no-page", "-o", folder, "--", "true")[0], 0)
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.assertTrue(before)
        self.memlog_words("run", "-q", "--no-page", "-o", folder, "--", "true")
        after = {path.name: path.read_bytes() for path in folder.iterdir()}
        for name, content in before.items():
            self.assertEqual(after[name], content, name)

    def test_a_link_for_a_folder_is_refused_before_the_program_runs(self):
        mark = self.folder / "mark"
        (self.folder / "real").mkdir()
        (self.folder / "link").symlink_to("real")
        self.assert_refused(125, "is a link", "run", "--no-page", "-o", self.folder / "link", "--", "touch", mark)
        self.assertFalse(mark.exists())
        self.assertEqual(list((self.folder / "real").iterdir()), [])

    @unittest.skipIf(os.geteuid() != 0, "needs root to be two users")
    def test_a_folder_that_somebody_else_has_prepared_is_refused_by_root(self):
        folder, mark = self.folder / "prepared", self.folder / "mark"
        folder.mkdir()
        folder.chmod(0o777)
        (folder / "triggers.log").symlink_to(self.folder / "victim")
        os.chown(folder, 65534, 65534)
        self.assert_refused(125, "belongs to another user", "run", "--no-page", "-o", folder, "--", "touch", mark)
        self.assertFalse(mark.exists())

    def test_a_link_in_the_folder_is_not_followed_and_all_files_are_private(self):
        folder, victim = self.folder / "own", self.folder / "victim"
        folder.mkdir()
        victim.write_text("as it was")
        (folder / "triggers.log").symlink_to(victim)
        words = ("run", "-q", "--no-page", "--threshold=browser=1M", "--trigger-interval=1")
        program = ("/usr/bin/python3", "-c", "import time; kept = bytes(9000000); time.sleep(2.5)")
        before = os.umask(0)
        try:
            self.assertEqual(self.memlog_words(*words, "-o", folder, "--", *program)[0], 0)
            self.assertEqual(self.memlog_words(*words, "-o", self.folder / "new", "--", *program)[0], 0)
        finally:
            os.umask(before)
        self.assertEqual(victim.read_text(), "as it was")
        self.assertEqual((self.folder / "new").stat().st_mode & 0o777, 0o700)
        files = [path for path in (*folder.iterdir(), *(self.folder / "new").iterdir()) if not path.is_symlink()]
        self.assertIn("triggers.log", {path.name for path in files})
        self.assertTrue(any(path.name.endswith(".threshold.pftrace") for path in files), files)
        self.assertEqual({path.stat().st_mode & 0o777 for path in files}, {0o600})

    def test_an_unwritable_folder_is_named_before_the_program_runs(self):
        mark = self.folder / "mark"
        self.assert_refused(125, "/proc/nowhere", "run", "--no-page", "-o", "/proc/nowhere", "--", "touch", mark)
        self.assertFalse(mark.exists())

    @unittest.skipIf(os.geteuid() != 0, "needs root to become somebody else")
    def test_a_user_without_rights_is_told_which_folder(self):
        os.chmod(self.folder, 0o755)
        prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        target = self.folder / "dumps"
        self.assert_refused(125, str(target), "run", "--no-page", "-o", target, "--", "true", prefix=prefix)

    @unittest.skipIf(os.geteuid() != 0, "needs root to become somebody else")
    def test_an_ordinary_user_profiles(self):
        os.chmod(self.folder, 0o755)
        home = self.folder / "home"
        home.mkdir()
        os.chown(home, 65534, 65534)
        prefix = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        code, out, err = self.memlog_words(
            "run", "-q", "--no-page", "-o", home / "dumps", "--", "perl", "-e", "print 6 * 7", prefix=prefix, cwd=home
        )
        self.assertEqual((code, out), (0, b"42"), err)
        report = self.report(next((home / "dumps").glob("*.exit.pftrace")))
        self.assertTrue(report["dump"]["complete"])
        self.assertGreater(report["processes"][0]["total_blocks"], 100)


class Options(Inputs):
    """What is not understood is named, with the nearest that would be."""

    def test_an_unknown_option_or_value_is_named_with_the_nearest_valid_one(self):
        for words, unknown, nearest in (
            (("run", "--memlgo=all", "--", "true"), "--memlgo", "--memlog"),
            (("run", "--memlog=rendrer-sampling", "--", "true"), "rendrer-sampling", "renderer-sampling"),
            (("run", "--memlog-stack-mode=nativ", "--", "true"), "nativ", "native"),
            (("run", "--sandbox=strickt", "--", "true"), "strickt", "strict"),
            (("run", "--memlog-role=rendrer=x", "--", "true"), "rendrer", "renderer"),
            (("ps", "--jsn"), "--jsn", "--json"),
            (("dump", "--hots=x"), "--hots", "--host"),
            (("report", "--jsn", "x"), "--jsn", "--json"),
            (("convert", "--too=pprof", "x"), "--too", "--to"),
            (("diff", "--jsno", "a", "b"), "--jsno", "--json"),
            (("repotr", "x"), "repotr", "report"),
        ):
            with self.subTest(words=words):
                code, out, err = self.memlog_words(*words)
                self.assertEqual((code, out), (2, b""), err)
                self.assertIn(unknown, err)
                self.assertRegex(err, f"did you mean '?{nearest}'?\\?")
                self.assertEqual(list(self.folder.glob("memlog.*")), [], "nothing was run")

    def test_nonsense_numbers_are_named_with_what_is_wanted(self):
        for option in ("--memlog-sampling-rate=0", "--memlog-sampling-rate=x", "--unwind-check=-1", "--dump-interval=x"):
            with self.subTest(option=option):
                code, out, err = self.memlog_words("run", option, "--", "true")
                self.assertEqual((code, out), (2, b""), err)
                self.assertIn(option.partition("=")[0], err)
                self.assertIn("is wanted", err)


class FullDisk(Inputs):
    def small_disk(self):
        """A folder with 64 KiB of room."""
        if os.geteuid() != 0:
            self.skipTest("needs root to mount a small disk")
        disk = self.folder / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], stderr=subprocess.PIPE, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"cannot mount: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=True)
        return disk

    def test_a_dump_that_finds_no_room_is_named_keeps_what_it_has_and_costs_the_program_nothing(self):
        disk = self.small_disk()
        (disk / "kept").write_bytes(bytes(40000))
        code, out, err = self.memlog_words(
            "run", "--no-page", "-o", disk / "dumps", "--", "perl", "-e", "$h{$_} = [$_] for 1..5000; print 'out'; exit 3"
        )
        self.assertEqual((code, out), (3, b"out"))
        self.assertIn("No space left on device", err)
        self.assertIn(str(disk / "dumps"), err)
        self.assertEqual((disk / "kept").stat().st_size, 40000)
        report = self.report(next((disk / "dumps").glob("*.pftrace.cut")))
        self.assertFalse(report["dump"]["complete"])

    def test_a_conversion_that_finds_no_room_leaves_what_was_there(self):
        dump = self.memlog("perl", "-e", "$h{$_} = [$_] for 1..5000").dumps()[0]
        disk = self.small_disk()
        target = disk / "heap.pb.gz"
        target.write_bytes(b"what was there")
        (disk / "filler").write_bytes(bytes((64 - 8) * 1024))
        code, _, err = self.memlog_words("convert", "--to=pprof", "-o", target, dump)
        self.assertEqual(code, 1, err)
        self.assertIn("heap.pb.gz: No space left on device", err)
        self.assertEqual(target.read_bytes(), b"what was there")
        self.assertEqual({path.name for path in disk.iterdir()}, {"heap.pb.gz", "filler"})

    def test_an_output_that_takes_nothing_is_an_error_of_every_command(self):
        dump = self.memlog("perl", "-e", "$x = 'x' x 1000").dumps()[0]
        for words in (("report", dump), ("report", "--json", dump), ("diff", dump, dump), ("convert", "--to=json", dump),
                      ("help",), ("run", "--help"), ("--version",)):
            with self.subTest(words=words), open("/dev/full", "wb") as full:
                answer = subprocess.run(
                    [str(harness.MEMLOG), *map(str, words)], env=self.environment(), stdout=full, stderr=subprocess.PIPE
                )
                self.assertNotEqual(answer.returncode, 0)
                self.assertRegex(answer.stderr, b"stdout( cannot be written|: No space left on device)")


LONG_PROGRAM = """
import os, sys, time
open("started", "w").write(str(os.getpid()))
total = 0
while not os.path.exists("go"):
    total += len([bytes(2000) for _ in range(200)])
    time.sleep(0.002)
for _ in range(200):
    total += len([bytes(3000) for _ in range(300)])
os.system("true")
open("done", "w").write("done")
print("finished")
sys.exit(5)
"""


class OwnTrouble(harness.Case):
    """Our side dies; the program goes on, unharmed."""

    def start(self):
        process = self.memlog_start(PYTHON, "-c", LONG_PROGRAM)
        self.wait_for("the program", lambda: (self.folder / "started").exists())
        return process

    def children_of(self, pid):
        """pid -> name of a process's children."""
        found = {}
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                text = stat.read_text()
            except OSError:
                continue
            name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
            if int(rest[1]) == pid:
                found[int(text.split()[0])] = name
        return found

    def test_the_service_killed_leaves_the_program_unharmed_and_a_gap(self):
        process = self.start()
        service = [pid for pid, name in self.children_of(process.pid).items() if name.startswith("memlog-service")]
        self.assertEqual(len(service), 1, self.children_of(process.pid))
        os.kill(service[0], signal.SIGKILL)
        (self.folder / "go").touch()
        out, _ = process.communicate(timeout=harness.TIMEOUT)
        self.assertEqual((process.returncode, out), (5, b"finished\n"))
        (dump,) = process.memlog_folder.glob("*.exit.pftrace")
        report = self.report(dump)
        self.assertFalse(report["dump"]["complete"])
        self.assertTrue(report["dump"]["gaps"])

    def test_the_host_killed_leaves_the_program_unharmed(self):
        process = self.start()
        os.kill(process.pid, signal.SIGKILL)
        (self.folder / "go").touch()
        self.wait_for("the program to finish", lambda: (self.folder / "done").exists())

    def test_nothing_of_ours_outlives_a_killed_host(self):
        process = self.start()
        ours = [pid for pid, name in self.children_of(process.pid).items() if name.startswith("memlog")]
        self.assertTrue(ours)
        os.kill(process.pid, signal.SIGKILL)
        (self.folder / "go").touch()
        self.wait_for("the program to finish", lambda: (self.folder / "done").exists())
        self.wait_for("our processes to end", lambda: not any(os.path.exists(f"/proc/{pid}/exe") for pid in ours))

    def test_a_stale_preload_does_not_hold_a_program_up(self):
        # The loader takes no path with a blank.
        library = self.folder / "libmemlog.so"
        library.symlink_to(harness.OUT / "libmemlog.so")
        env = self.environment(LD_PRELOAD=str(library), MEMLOG_SOCKET="/nonexistent/memlog.sock")
        answer = harness.run_words(["/bin/sh", "-c", "echo fine; exit 3"], self.folder, env, b"", harness.TIMEOUT)
        self.assertEqual((answer.returncode, answer.stdout, answer.stderr), (3, b"fine\n", b""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
