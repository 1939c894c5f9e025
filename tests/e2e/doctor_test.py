"""memlog doctor says why nothing is recorded; memlog env lets a program that was started elsewhere join."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import harness

PROGRAM = "import ctypes, sys; keep = ctypes.CDLL(None).malloc(%d); print('joined', flush=True); sys.stdin.read()"
SIZE = 45_678_901
ORACLE = harness.PROGRAMS / "oracle"


class Commands(harness.Case):
    def say(self, *words, code=0, **environment):
        answer = harness.run_words(
            [str(harness.MEMLOG), *map(str, words)], self.folder, self.environment(**environment), b"", harness.TIMEOUT
        )
        self.assertEqual(answer.returncode, code, (words, answer.stdout, answer.stderr))
        return answer


class Doctor(Commands):
    def findings(self, *words, code=0, **environment):
        answer = self.say("doctor", "--json", *words, code=code, **environment)
        self.assertEqual(answer.stderr, b"")
        return json.loads(answer.stdout)["findings"]

    def one(self, findings, check):
        return [(one["verdict"], one["text"]) for one in findings if one["check"] == check]

    def test_where_all_is_well_it_says_so_and_leaves_nothing(self):
        (self.folder / "tmp").mkdir()
        findings = self.findings(TMPDIR=str(self.folder / "tmp"))
        self.assertEqual([one for one in findings if one["verdict"] == "fail"], [])
        self.assertEqual(self.one(findings, "trial"), [("ok", "a run of memlog over itself was recorded")])
        self.assertEqual(len(self.one(findings, "parts")), 3)
        self.assertEqual(list((self.folder / "tmp").iterdir()), [])
        text = self.say("doctor").stdout.decode()
        self.assertRegex(text, r"(?m)^  ok +trial +a run of memlog")

    def test_a_triggers_file_is_checked_and_a_wrong_key_named_with_the_nearest(self):
        path = self.folder / "rules.json"
        path.write_text('{"footprint": {"browser": "1G"}, "limit": {"percent": 90}, "pressure": {"some_percent": 10}}')
        told = self.one(self.findings(f"--triggers={path}"), "triggers")
        self.assertEqual(told[0][0], "ok")
        self.assertIn("looked at every 900 s, at most 20 dumps in 3600 s", told[0][1])
        self.assertIn("every second", told[1][1])
        self.assertEqual([verdict for verdict, _ in told[2:]], [] if os.path.exists("/proc/pressure/memory") else ["note"])
        for wrong, words in (
                ('{"limit": {"precent": 90}}', 'unknown key "limit.precent"; did you mean "limit.percent"?'),
                ('{"presure": {}}', 'unknown key "presure"; did you mean "pressure"?'),
                ('{"growth": {"bytes": "many"}}', '"growth.bytes": a size'), ('{"peak": ', f"{path}:1:")):
            path.write_text(wrong)
            ((verdict, text),) = self.one(self.findings(f"--triggers={path}", code=1), "triggers")
            self.assertEqual(verdict, "fail")
            self.assertIn(words, text)
        ((verdict, text),) = self.one(self.findings(f"--triggers={path}.not", code=1), "triggers")
        self.assertEqual((verdict, str(path) + ".not" in text), ("fail", True))

    def test_where_names_are_kept_is_told(self):
        """The folder that it names is the one that a report writes to."""
        home = self.folder / "home"
        home.mkdir()
        mine = {"HOME": str(home), "XDG_CACHE_HOME": "", "MEMLOG_SYMBOL_CACHE": ""}

        def told(**environment):
            ((verdict, text),) = self.one(self.findings(**{**mine, **environment}), "symbol cache")
            return verdict, text

        dump = self.memlog("/bin/ls").dumps()[0]
        for where, environment, source in (
            (home / ".cache" / "memlog", {}, "HOME"),
            (home / "xdg" / "memlog", {"XDG_CACHE_HOME": str(home / "xdg")}, "XDG_CACHE_HOME"),
            (home / "mine", {"MEMLOG_SYMBOL_CACHE": str(home / "mine")}, "MEMLOG_SYMBOL_CACHE"),
        ):
            self.assertEqual(told(**environment), ("ok", f"{where}, made when the first names are looked up (from {source})"))
            self.say("report", dump, **{**mine, **environment})
            kept = list(where.glob("*.names"))
            self.assertTrue(kept)
            verdict, text = told(**environment)
            self.assertEqual(verdict, "ok")
            self.assertRegex(text, rf"^{where}: names of {len(kept)} files in [\d.]+ (B|KiB|MiB)$")
        self.assertIn("off, as MEMLOG_SYMBOL_CACHE says", told(MEMLOG_SYMBOL_CACHE="off")[1])
        self.assertIn("set MEMLOG_SYMBOL_CACHE to a folder", told(HOME="")[1])

    def test_a_folder_where_no_names_can_be_kept_is_named_with_the_next_step(self):
        place = self.folder / "place"

        def told():
            ((verdict, text),) = self.one(self.findings(MEMLOG_SYMBOL_CACHE=str(place)), "symbol cache")
            self.assertEqual(verdict, "note")
            self.assertIn("set MEMLOG_SYMBOL_CACHE to a folder of your own", text)
            return text

        place.write_text("")
        self.assertIn(f"{place}: Not a directory", told())
        place.unlink()
        place.mkdir()
        place.chmod(0o777)
        self.assertIn(f"{place}: others may write there", told())
        place.chmod(0o700)
        if os.geteuid() == 0:
            os.chown(place, 1, 1)
            self.assertIn(f"{place}: it is another user's", told())

    def test_a_missing_part_is_named(self):
        out = self.folder / "elsewhere"
        out.mkdir()
        for name in ("memlog", "memlog-analyzer", "libmemlog.so"):
            os.link(harness.OUT / name, out / name) if os.stat(harness.OUT).st_dev == os.stat(out).st_dev else self.copy(name, out)
        answer = harness.run_words([str(out / "memlog"), "doctor", "--json"], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 1)
        findings = json.loads(answer.stdout)["findings"]
        self.assertTrue([text for verdict, text in self.one(findings, "parts") if verdict == "fail" and "memlog-service" in text])
        self.assertEqual([verdict for verdict, _ in self.one(findings, "trial")], ["fail"])
        (out / "memlog-analyzer").unlink()
        answer = harness.run_words([str(out / "memlog"), "doctor", "--json", "true"], self.folder, self.environment(), b"", harness.TIMEOUT)
        ((verdict, text),) = self.one(json.loads(answer.stdout)["findings"], "allocator")
        self.assertEqual((verdict, "could not be told" in text and "memlog-analyzer" in text), ("note", True), text)

    def copy(self, name, out):
        (out / name).write_bytes((harness.OUT / name).read_bytes())
        (out / name).chmod(0o755)

    def test_a_program_is_judged_without_being_run(self):
        source = self.folder / "witness.c"
        source.write_text('#include <stdio.h>\nint main(void) { fclose(fopen("witness", "w")); return 0; }\n')
        for name, flags, verdict, text in (("dynamic", [], "ok", "can be profiled"), ("static", ["-static"], "fail", "statically linked")):
            program = self.folder / name
            subprocess.run(["gcc", *flags, "-o", program, source], check=True)
            findings = self.findings(program, code=0 if verdict == "ok" else 1)
            [(said, why)] = self.one(findings, "program")
            self.assertEqual(said, verdict)
            self.assertIn(text, why)
            self.assertEqual([said for said, _ in self.one(findings, "allocator")], ["ok"] if verdict == "ok" else [])
            self.assertFalse((self.folder / "witness").exists())
        self.assertIn("no such program", str(self.one(self.findings("/nonexistent", code=1), "program")))
        self.assertIn("PYTHONMALLOC=malloc", str(self.one(self.findings("python3"), "program")))

    def allocator(self, *words, code=0):
        ((verdict, text),) = self.one(self.findings(*words, code=code), "allocator")
        return verdict, text

    def test_an_allocator_inside_a_program_is_told_beforehand(self):
        verdict, text = self.allocator(ORACLE / "inside_own")
        self.assertEqual(verdict, "ok")
        self.assertRegex(text, r"its own allocator inside the executable is recorded: \d functions \([a-z_, ]*(malloc|free)[a-z_, .]*\)")
        self.assertIn("no allocator is known inside", self.allocator(ORACLE / "inside_pool")[1])
        verdict, text = self.allocator("--allocator=pool=pool_", ORACLE / "inside_pool")
        self.assertEqual((verdict, "pool_malloc" in text), ("ok", True))
        verdict, text = self.allocator("--allocator=pool=pool_", ORACLE / "inside_refused")
        self.assertEqual(verdict, "note")
        self.assertIn("(pool) is not recorded: pool_free: an instruction at its entry", text)
        self.assertIn("its memory is NOT COVERED", text)
        verdict, text = self.allocator("/bin/true")
        self.assertEqual((verdict, "no allocator is known inside the executable (it is stripped" in text), ("ok", True))
        chromium = pathlib.Path("/usr/lib/chromium/chromium")
        if chromium.exists():
            self.assertIn("is recorded: 15 functions", self.allocator(chromium)[1])
        self.assertIn("--allocator=x: it is not NAME=PREFIX", self.say("doctor", "--allocator=x", "true", code=2).stderr.decode())

    def test_of_a_script_the_program_that_runs_it_is_told(self):
        script = self.folder / "script"
        script.write_text(f"#!{ORACLE / 'inside_own'}\n")
        script.chmod(0o755)
        self.assertRegex(self.allocator(script)[1], r"^/.*/inside_own runs it: its own allocator inside the executable is recorded")
        link = self.folder / "link"
        link.symlink_to(ORACLE / "inside_own")
        self.assertRegex(self.allocator(link)[1], r"^its own allocator")

    def test_what_is_told_beforehand_is_what_a_run_hooks(self):
        for name, allocator in (("inside_own", "none=none_"), ("inside_pool", "pool=pool_"), ("inside_refused", "pool=pool_"),
                                ("inside_jemalloc", "none=none_"), ("inside_tcmalloc", "none=none_")):
            with self.subTest(name=name):
                words = [harness.OUT / "memlog-analyzer", "entries", "--json", f"--allocator={allocator}", ORACLE / name]
                (family,) = json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)["families"]
                run = self.memlog(ORACLE / name, options=("-q", "--no-page", f"--allocator={allocator}"))
                coverage = self.exit_report(run)["processes"][0]["coverage"]
                self.assertEqual(len(family["functions"]), coverage["hooked_functions"])
                self.assertEqual(family["hooked"], coverage["unseen"] == "", coverage)
                self.assertIn(family["reason"], coverage["unseen"])

    def test_what_cannot_be_profiled_is_told_with_the_true_reason(self):
        source = self.folder / "witness.c"
        source.write_text('#include <stdio.h>\nint main(void) { fclose(fopen("witness", "w")); return 0; }\n')
        script = self.folder / "script"
        for words, text in ((("gcc", "-fsanitize=address"), "sanitizer's run-time is in it"), (("musl-gcc",), "not glibc's")):
            if shutil.which(words[0]) is None:
                continue
            program = self.folder / "unable"
            subprocess.run([*words, "-o", program, source], check=True)
            script.write_text(f"#!{program}\n")
            script.chmod(0o755)
            for path in (program, script):
                ((said, why),) = self.one(self.findings(path, code=1), "program")
                self.assertEqual(said, "fail")
                self.assertIn(text, why)
            self.assertFalse((self.folder / "witness").exists())
        library = subprocess.run(["gcc", "-print-file-name=libasan.so"], stdout=subprocess.PIPE, text=True).stdout.strip()
        if os.path.exists(library):
            told = self.one(self.findings("true", code=1, LD_PRELOAD=os.path.realpath(library)), "program")
            self.assertIn("sanitizer", told[0][1])

    @unittest.skipIf(os.geteuid() != 0, "needs root to be somebody else")
    def test_another_users_process_is_there_and_not_to_be_looked_at(self):
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", harness.MEMLOG, "doctor", "--json", f"--pid={os.getpid()}"]
        answer = subprocess.run(words, stdout=subprocess.PIPE, env=self.environment(XDG_RUNTIME_DIR=""), cwd="/")
        told = self.one(json.loads(answer.stdout)["findings"], "process")
        self.assertIn("another user's", str(told))
        if pathlib.Path("/proc/2/comm").exists() and pathlib.Path("/proc/2/maps").read_text() == "":
            self.assertIn("a thread of the kernel", str(self.one(self.findings("--pid=2", code=1), "process")))

    def test_a_process_is_told_why_it_is_not_recorded(self):
        with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as stranger:
            findings = self.findings(f"--pid={stranger.pid}")
            [(said, why)] = self.one(findings, "process")
            self.assertEqual(said, "ok")
            self.assertIn(f"'memlog attach {stranger.pid}' records it from then on", why)
            self.assertEqual(self.one(self.findings(str(stranger.pid)), "process"), [(said, why)])
            self.assertIn("no allocator is known inside", str(self.one(findings, "allocator")))
            stranger.stdin.close()
        self.assertIn("no such process", str(self.one(self.findings(f"--pid={stranger.pid}", code=1), "process")))

    def test_a_process_of_a_run_is_told_of(self):
        program = [sys.executable, "-c", "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"]
        for options, verdict, text, code in (
            (("-q", "--no-page"), "ok", "it is being recorded", 0),
            (("-q", "--no-page", "--memlog=manual"), "fail", "memlog start", 1),
        ):
            words, _ = self.memlog_command(program, options)
            with subprocess.Popen(words, cwd=self.folder, env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
                pid = int(run.stdout.readline())
                [(said, why)] = self.one(self.findings(f"--pid={pid}", code=code), "process")
                self.assertEqual(said, verdict)
                self.assertIn(text, why)
                run.stdin.write(b"\n")
                run.stdin.close()

    def test_what_cannot_be_meant_is_refused(self):
        for words, text in ((["--jsn"], "did you mean '--json'?"), (["--pid=x"], "--pid=x: a process id is wanted"), (["--pid=1", "ls"], "one of them"), (["--repair=1", "--pid=1"], "one of them")):
            self.assertIn(text, self.say("doctor", *words, code=2).stderr.decode())


class Env(Commands):
    def setUp(self):
        super().setUp()
        words, self.dumps = self.memlog_command([sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()"], ("-q", "--no-page"))
        self.run_of = subprocess.Popen(words, cwd=self.folder, env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(self.end)
        self.assertEqual(self.run_of.stdout.readline(), b"up\n")

    def end(self):
        if self.run_of.poll() is None:
            self.run_of.stdin.close()
        self.run_of.wait(timeout=harness.TIMEOUT)
        self.run_of.stdout.close()

    def join(self, words, env):
        """Start it, see it hold its block, then end the run: (its pid, the exit report)."""
        with subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.folder) as joined:
            self.assertEqual(joined.stdout.readline(), b"joined\n")
            listed = json.loads(self.say("ps", "--json").stdout)
            dump = self.say("dump").stdout.decode().strip()
            joined.stdin.write(b"\n")
            joined.stdin.close()
        self.assertEqual(joined.returncode, 0)
        return listed, self.report(dump)

    def assert_joined(self, listed, report):
        self.assertEqual(len([row for row in listed["processes"] if row["live_bytes"] >= SIZE]), 1)
        sizes = [stack["live_bytes"] for entry in report["processes"] for stack in entry["stacks"]]
        self.assertIn(SIZE, sizes)

    def test_a_shell_takes_it(self):
        script = 'eval "$("$MEMLOG" env)" && exec "$0" -c "$1"'
        words = ["sh", "-c", script, sys.executable, PROGRAM % SIZE]
        self.assert_joined(*self.join(words, self.environment(MEMLOG=str(harness.MEMLOG))))

    def test_plain_and_json_are_the_same_variables(self):
        plain = dict(line.split("=", 1) for line in self.say("env", "--plain").stdout.decode().splitlines())
        self.assertEqual(plain, json.loads(self.say("env", "--json").stdout))
        self.assertEqual(set(plain), {"LD_PRELOAD", "MEMLOG_SOCKET"})
        self.assert_joined(*self.join([sys.executable, "-c", PROGRAM % SIZE], self.environment(**plain)))

    def test_behind_the_run_a_program_runs_by_itself(self):
        plain = json.loads(self.say("env", "--json").stdout)
        if any(sign in str(harness.OUT) for sign in " :"):
            self.skipTest("a path that the loader cannot read has another name for the run's time alone: docs/limits.md")
        self.end()
        answer = subprocess.run(
            [sys.executable, "-c", "print('alone')"], env=self.environment(**plain), capture_output=True, check=False, cwd=self.folder
        )
        self.assertEqual((answer.returncode, answer.stdout, answer.stderr), (0, b"alone\n", b""))
        self.assertIn(b"no memlog of this user runs", self.say("env", code=125).stderr)
        self.assertIn(b"did you mean '--plain'?", self.say("env", "--plan", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
