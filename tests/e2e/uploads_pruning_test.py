"""Whoever leaks is named in every body, down to the smallest that may be asked for; and nothing private is in any of them."""
import gzip
import json
import re
import shutil
import sys
import unittest

import harness
import pythons
import uploads

LEAKS = harness.PROGRAMS / "oracle" / "leaks"
SECRET = "s3kr1t"

# Far more than any of these bodies has; then ever smaller.
LIMITS = [1 << 20, 1 << 14, 12000, 9000, 6000, 1 << 12]


class Case(uploads.Case):
    def body(self, dump, limit, *options):
        """memlog's answer; the body is in the folder. One guid for all, as another one may be a byte longer once compressed."""
        return self.command(
            "upload", "--dry-run", "--form=trace", "--guid=" + 32 * "0", f"--upload-max-bytes={limit}", "-o", self.folder / "body",
            *options, dump)

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
        dump = self.dump_of(sys.executable, "-c", pythons.named(leak), env=self.environment(PYTHONMALLOC="malloc"))
        self.assert_named(dump, pythons.HOLDER)

    def test_spread_over_a_thousand_callers(self):
        """6 % of what is live, none of its stacks a ten-thousandth of it."""
        self.assert_named(self.dump_of(LEAKS, "sites"), "leaked_line")

    def test_slowly_beside_large_caches(self):
        """1 % of what is live, a third of each of thirty caches."""
        self.assert_named(self.dump_of(LEAKS, "slow"), "slow_leak")


class Ratio(Case):
    def test_a_hundredth_of_a_whole_body_accounts_for_half(self):
        """What Chromium says of its pruning; here of a program with many thousand stacks."""
        many = ("import json, email, http.client, os, unittest, asyncio, argparse, ctypes, decimal, logging.config, sqlite3, xml.dom.minidom; "
                "import asyncio, concurrent.futures, email.message, http.server, multiprocessing, pydoc, tarfile, unittest, xml.dom.minidom, zipfile; keep = [str(i) * 9 for i in range(9999)]; os._exit(0)")
        run = self.memlog(sys.executable, "-c", many, env=self.environment(PYTHONMALLOC="malloc"))
        (dump,) = run.dumps()
        self.reported.add(dump)
        live = sum(process["live_bytes"] for process in json.loads(self.command("report", "--json", "--limit=1", dump).stdout)["processes"])
        whole = int(self.size_of(self.body(dump, 1 << 30, "--memlog-keep-small-allocations").stderr))
        for ratio in (10, 100, 100000):
            said = self.body(dump, 1 << 30, f"--upload-prune={ratio}").stderr
            size = (self.folder / "body").stat().st_size
            self.assertEqual(size, int(self.size_of(said)))
            self.assertIn(f"a whole one has {whole} bytes", said)
            self.assertLessEqual(size, max(whole // ratio, 4096), ratio)
            self.assertEqual(uploads.live_of(self.trace())[0], live)
            if ratio == 100:
                self.assertGreater(whole, 300000)  # many thousand stacks
                self.assertGreater(float(re.search(r"with ([\d.]+) % of the live bytes", said)[1]), 50)
        self.assertIn("of 5000 allowed", self.body(dump, 5000, "--upload-prune=10").stderr)

    def size_of(self, said):
        return re.search(r"size: (\d+) bytes of", said)[1]

    def test_it_does_not_go_with_unpruned_bodies(self):
        said = self.command("upload", "--dry-run", "--upload-prune=10", "--memlog-keep-small-allocations", "-o", self.folder / "body", "x")
        self.assertEqual(said.returncode, 2)
        self.assertIn("--upload-prune and --memlog-keep-small-allocations exclude each other", said.stderr)


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
