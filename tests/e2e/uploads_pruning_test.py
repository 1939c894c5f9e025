"""Whoever leaks is named in every body, down to the smallest that may be asked for; and nothing private is in any of them."""
import gzip
import json
import shutil
import sys
import unittest

import harness
import uploads

LEAKS = harness.PROGRAMS / "oracle" / "leaks"
SECRET = "s3kr1t"

# Far more than any of these bodies has; then ever smaller.
LIMITS = [1 << 20, 1 << 14, 12000, 9000, 6000, 1 << 12]


class Case(uploads.Case):
    def body(self, dump, limit, *options):
        """memlog's answer; the body is in the folder."""
        return self.command("upload", "--dry-run", "--form=trace", f"--upload-max-bytes={limit}", "-o", self.folder / "body", *options, dump)

    def trace(self):
        return json.loads(gzip.decompress((self.folder / "body").read_bytes()))

    def bodies(self, dump, *options):
        """Every body of the dump, as {limit: trace}."""
        found = {}
        path = self.folder / "body"
        self.assertEqual(self.command("symbolize", dump).returncode, 0)  # once, and not for each body
        for limit in LIMITS:
            answer = self.body(dump, limit, *options)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            self.assertLessEqual(path.stat().st_size, limit)
            found[limit] = self.trace()
        return found


class Leaks(Case):
    """The programs hold little beside: a body of all of it is some hundred kilobytes."""

    def dump_of(self, *program, env=None):
        (dump,) = self.memlog(*program, env=env).dumps()
        self.reported.add(dump)
        return dump

    def assert_named(self, dump, function):
        """That function is in every body, and every body's sum is the dump's."""
        report = json.loads(self.command("report", "--json", "--limit=1", dump).stdout)
        live = sum(process["live_bytes"] for process in report["processes"])
        for limit, trace in self.bodies(dump).items():
            told, names = uploads.live_of(trace)
            self.assertEqual(told, live, f"at {limit}")
            self.assertTrue(any(function in name for name in names), f"at {limit}: {sorted(names)}")

    def test_sixty_calls_down(self):
        self.assert_named(self.dump_of(LEAKS, "deep"), "deep_leak")

    def test_through_containers(self):
        self.assert_named(self.dump_of(LEAKS, "containers"), "leaking_sessions")

    def test_by_one_child_of_four(self):
        self.assert_named(self.dump_of(LEAKS, "child"), "child_leak")

    def test_of_a_python_program(self):
        """What leaks there is Python's; the function of the interpreter that its objects come from is named."""
        leak = "import json, email, unittest; keep = [bytearray(1000) for i in range(5000)]; import os; os.kill(os.getpid(), 9)"
        dump = self.dump_of(sys.executable, "-c", leak, env=self.environment(PYTHONMALLOC="malloc"))
        self.assert_named(dump, "PyByteArray_Resize")

    def test_spread_over_a_thousand_callers(self):
        """6 % of what is live, none of its stacks a ten-thousandth of it."""
        self.assert_named(self.dump_of(LEAKS, "sites"), "leaked_line")

    def test_slowly_beside_large_caches(self):
        """1 % of what is live, a third of each of thirty caches."""
        self.assert_named(self.dump_of(LEAKS, "slow"), "slow_leak")


class Private(Case):
    def test_no_body_of_any_size_or_form_has_what_is_private(self):
        folder = self.folder / SECRET
        folder.mkdir()
        program = shutil.copy(LEAKS, folder / "leaks")
        run = self.memlog(
            program, "thread", f"p={SECRET}", f"t={SECRET}", f"--password={SECRET}", options=("-q", "--no-page", "--memlog-stack-mode=native-with-thread-names"),
            env=self.environment(TOKEN=SECRET), cwd=folder)
        (dump,) = run.dumps()
        self.reported.add(dump)
        self.assertIn(SECRET.encode(), dump.read_bytes())
        for limit, trace in self.bodies(dump).items():
            self.assertNotIn(SECRET, json.dumps(trace), f"at {limit}")
        for form in ("report", "pprof", "pyroscope", "pyroscope-ingest", "otlp"):
            for limit in ("10M", "20K", "4K"):
                path = self.folder / form
                answer = self.command("upload", "--dry-run", f"--form={form}", f"--upload-max-bytes={limit}", "-o", path, dump)
                if answer.returncode == 0:
                    self.assertNotIn(SECRET.encode(), self.opened(path), f"{form} at {limit}")
        whole = self.folder / "whole"
        self.command("upload", "--dry-run", "--form=trace", "--upload-names=all", "-o", whole, dump)
        self.assertIn(SECRET, gzip.decompress(whole.read_bytes()).decode(), "the policy was asked for all names")

    def test_no_name_is_in_any_body_when_none_may_be(self):
        run = self.memlog(
            LEAKS, "thread", "plainprocess", "plainthread", options=("-q", "--no-page", "--memlog-stack-mode=native-with-thread-names"))
        (dump,) = run.dumps()
        self.reported.add(dump)
        self.assertEqual(self.body(dump, LIMITS[0]).returncode, 0)
        self.assertIn("plainthread", json.dumps(self.trace()), "it is there when it may be")
        for limit, trace in self.bodies(dump, "--upload-names=none").items():
            for name in ("plainprocess", "plainthread"):
                self.assertNotIn(name, json.dumps(trace), f"at {limit}")

    def opened(self, path):
        """The body and all that is compressed or in base64 within it."""
        body = path.read_bytes()
        return body + b"".join(uploads.unpacked(body))


if __name__ == "__main__":
    unittest.main()
