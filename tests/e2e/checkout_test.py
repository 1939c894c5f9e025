"""memlog builds and works wherever its checkout lies, and for an ordinary user: below /tmp, with signs in its path that shells and lists
of paths act upon. Tests run there, too: of each kind that such a place, or a user without root's rights, has broken before."""
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
import unittest

import harness

UNITS = ("client/client_test", "client/state/region_test", "dump/formats_test", "tools/analyzer/sandbox/confine_test")
# What all of these need of a build beside the shipped programs and tools/bench.
BUILT = (*(":".join(name.rsplit("/", 1)) for name in UNITS), "oracle:grower", "oracle:sampled", "oracle:settles", "oracle:single")
SCRIPTS = (
    ("bad_input_test", "OwnTrouble.test_a_stale_preload_does_not_hold_a_program_up"),
    ("bench_test", "Bench.test_a_short_run_leaves_a_record_and_prints_its_table"),
    ("convert_test", "Convert.test_every_reader_of_gperftools_text_finds_our_totals"),
    ("hostile_words_test", "HostileWords.test_json_is_exact"),
    ("process_list_test", "Lists.test_an_image_behind_a_raw_execve_is_an_entry_of_its_own"),
    ("rate_test", "Rate.test_what_cannot_be_changed_is_said"),
    ("self_checks_test", "Leftovers.test_what_a_check_has_closed_goes_with_its_folder"),
    ("targets_test", "Targets.test_the_machines_list_holds_without_being_named"),
    ("triggers_test", "Triggers.test_each_role_of_a_tree_has_its_own_threshold"),
    ("unprofiled_test", "Unprofiled.test_a_program_with_another_loader"),
    ("what_programs_see_test", "Ending.test_sqlite3"),
)
ODD = "a folder's \"place\" $HOME; é%s"
BUILD_S = 800  # three minutes of processor time where a process costs much to start


class Checkout(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=harness.ROOT, capture_output=True, check=False)
        if listed.returncode != 0:
            raise unittest.SkipTest("no git checkout")
        cls.base = pathlib.Path(tempfile.mkdtemp(prefix="memlog-checkout.", dir="/tmp"))
        cls.addClassCleanup(shutil.rmtree, cls.base, True)
        cls.root = cls.base / ODD / "memlog"
        for name in os.fsdecode(listed.stdout).splitlines():
            if (harness.ROOT / name).is_file():
                (cls.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(harness.ROOT / name, cls.root / name)
        cls.prefix = ()
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            cls.prefix = ("setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups", "--no-new-privs")
            for path in [cls.base, *cls.base.rglob("*")]:
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
        # What a shell of that user's has, and no npm: the chart is nothing to this. Built as for a debugger, which no other test is.
        cls.env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(cls.base), "LANG": "C.UTF-8", "MEMLOG_SYMBOL_CACHE": "off",
                   "npm_config_offline": "true", "GN_ARGS": "optimize=false"}
        built = cls.words("./run", "-q", "--no-page", "-o", cls.base / "first", "--", "/bin/echo", "built", timeout=BUILD_S)
        if (built.returncode, built.stdout) != (0, b"built\n"):
            raise AssertionError(f"./run: {built.returncode}: {built.stderr.decode(errors='replace')[-4000:]}")

    @classmethod
    def words(cls, *words, timeout=harness.TIMEOUT, **env):
        return harness.run_words([*cls.prefix, *map(str, words)], cls.root, {**cls.env, **env}, b"", timeout)

    def report(self, folder):
        (dump,) = folder.glob("*.exit.pftrace")
        answer = self.words("out/memlog", "report", "--json", dump)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return json.loads(answer.stdout)

    def test_the_first_run_of_all_recorded_its_program(self):
        report = self.report(self.base / "first")
        self.assertTrue(report["dump"]["complete"], report["dump"])
        self.assertEqual([entry["name"] for entry in report["processes"]], ["echo"])

    def test_a_tree_of_programs_is_recorded_and_none_sees_memlog(self):
        folder = self.base / "tree"
        script = 'perl -e "print 6 * 7"; env | grep -c -e LD_PRELOAD -e MEMLOG_SOCKET; sort /etc/passwd >/dev/null; exit 5'
        answer = self.words("out/memlog", "run", "-q", "--no-page", "-o", folder, "--", "/bin/sh", "-c", script)
        self.assertEqual((answer.returncode, answer.stdout, answer.stderr), (5, b"420\n", b""))
        report = self.report(folder)
        self.assertTrue(report["dump"]["complete"], report["dump"])
        self.assertEqual(report["dump"]["not_profiled"], [])
        blocks = {entry["name"]: entry["total_blocks"] for entry in report["processes"]}
        self.assertGreater(blocks["perl"], 100, blocks)
        self.assertGreater(blocks["sort"], 1, blocks)

    def test_what_it_says_to_type_next_can_be_typed(self):
        folder = self.root / "its dumps"
        answer = self.words("out/memlog", "run", "--no-page", "-o", folder, "--", "/bin/true")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        (line,) = [line for line in answer.stderr.decode().splitlines() if line.startswith("memlog: next: ")]
        again = self.words("/bin/bash", "-c", line.removeprefix("memlog: next: "))
        self.assertEqual(again.returncode, 0, (line, again.stderr))
        self.assertIn("/bin/true", again.stdout.decode())

    def test_variables_for_a_program_that_is_started_elsewhere_are_taken_by_a_shell(self):
        host = subprocess.Popen(
            [*self.prefix, "out/memlog", "run", "-q", "--no-page", "-o", self.base / "joined", "--", "/bin/sh", "-c", "echo ready; read line"],
            cwd=self.root, env={**self.env, "XDG_RUNTIME_DIR": str(self.base)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )
        self.addCleanup(host.communicate)
        self.addCleanup(host.kill)
        self.assertEqual(host.stdout.readline(), b"ready\n")
        script = 'eval "$(out/memlog env)" && test -e "$MEMLOG_SOCKET" && exec perl -e "print 6 * 7"'
        answer = self.words("/bin/sh", "-c", script, XDG_RUNTIME_DIR=str(self.base))
        # The loader would complain of a library that it does not find.
        self.assertEqual((answer.returncode, answer.stdout, answer.stderr), (0, b"42", b""))
        host.communicate(b"\n", timeout=harness.TIMEOUT)

    def test_tests_run_there(self):
        targets = [f"tests/{target}" for target in BUILT]
        built = self.words("tools/dev/build", "out", "tools/bench:bench", *targets, timeout=BUILD_S)
        self.assertEqual(built.returncode, 0, built.stderr.decode(errors="replace"))
        with self.subTest(names=UNITS):
            answer = self.words("/usr/bin/python3", "tests/runner.py", *UNITS, timeout=BUILD_S)  # longer than one that hangs, which is then named
            self.assertEqual(answer.returncode, 0, answer.stdout.decode(errors="replace"))
            self.assertNotIn(b"FLAKY", answer.stdout)
        # Built from Debian's source, and nothing to this.
        there = self.root / "out" / "tests" / "pprof"
        there.write_bytes(harness.pprof().read_bytes())
        there.chmod(0o755)
        for name, case in SCRIPTS:
            with self.subTest(name=name):
                answer = self.words("/usr/bin/python3", f"tests/e2e/{name}.py", case)
                self.assertEqual(answer.returncode, 0, answer.stderr.decode(errors="replace"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
