"""Real programs' dumps, one of each, read by those whom the formats are for: every total is the report's."""
import collections
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.request

import harness
import pages
import published
import servers

PYTHON = ("/usr/bin/env", "PYTHONMALLOC=malloc", "/usr/bin/python3", "-c",
          "import json, os; kept = [json.loads(json.dumps({str(i): ['x' * 50] * 9})) for i in range(2000)]; os._exit(0)")
CXX = ("g++", "-x", "c++", "-O1", "-c", "-o", "/dev/null", "-")
NODE = ("node", "-e", "const kept = []; for (let i = 0; i < 3000; i++) kept.push(Buffer.alloc(5000)); process.reallyExit(0)")
SQL = ("create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000) "
       "insert into t select i, hex(randomblob(40)) from n; create index x on t(b); select count(*) from t;")

FIGURES = ["total_blocks", "total_bytes", "live_blocks", "live_bytes"]


class Readers(harness.Case):
    """Every test reads the same dumps."""

    @classmethod
    def setUpClass(cls):
        cls.pprof = harness.pprof()
        cls.shared = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.shared.cleanup)
        maker = cls()
        maker.setUp()
        try:
            maker.make_dumps()
        finally:
            maker.doCleanups()

    def make_dumps(self):
        postgres = servers.Postgres(self.folder)
        programs = {"python3": (PYTHON, b""), "g++": (CXX, b"int main() { return 0; }"), "node": (NODE, b""),
                    "PostgreSQL": (postgres.init, b""), "sqlite3": (("sqlite3", ":memory:", SQL), b"")}
        type(self).dumps = {}
        type(self).reports = {}
        for name, (program, stdin) in programs.items():
            (dump,) = self.memlog(*program, stdin=stdin).dumps()
            self.dumps[name] = dump.rename(f"{self.shared.name}/{name}.pftrace")
            self.reports[name] = self.report(self.dumps[name])

    def words(self, *words):
        env = self.environment(HOME=str(self.folder), PPROF_TMPDIR=str(self.folder))
        answer = harness.run_words([*map(str, words)], self.folder, env, b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, (words, answer.stderr))
        return answer.stdout.decode(errors="replace")

    def convert(self, name, form, *options):
        target = self.folder / f"{name}.{form}"
        self.words(harness.MEMLOG, "convert", f"--to={form}", "-o", target, *options, self.dumps[name])
        return target

    def each(self):
        for name, report in self.reports.items():
            with self.subTest(program=name):
                yield name, report

    def test_the_dumps_are_of_real_work(self):
        expected = {"python3": "python3", "g++": "cc1plus", "node": "node", "PostgreSQL": "postgres", "sqlite3": "sqlite3"}
        for name, report in self.each():
            self.assertTrue(any(entry["name"].startswith(expected[name]) for entry in report["processes"]), name)
            self.assertTrue(report["dump"]["complete"])
            self.assertGreater(report["tree"]["total_bytes"], 1 << 20)

    def test_pprof(self):
        for name, report in self.each():
            raw = self.words(self.pprof, "-raw", self.convert(name, "pprof"))
            rows = re.findall(r"^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+\d+\s+\d+:", raw.partition("Samples:\n")[2].partition("Locations")[0], re.M)
            self.assertEqual([sum(map(int, column)) for column in zip(*rows)], [harness.shown(report, figure) for figure in FIGURES])

    def test_pprofs_own_page(self):
        """-http: its top table, of a profile taken from another."""
        port = servers.free_port()
        base, after = self.convert("sqlite3", "pprof"), self.convert("python3", "pprof")
        words = [str(self.pprof), f"-http=127.0.0.1:{port}", "-no_browser", f"-diff_base={base}", str(after)]
        env = self.environment(HOME=str(self.folder), PPROF_TMPDIR=str(self.folder))
        with subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            try:
                def top():
                    try:
                        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ui/top?si=alloc_space", timeout=30) as answer:
                            return answer.read().decode()
                    except OSError:
                        return None
                page = self.wait_for("pprof's page", top)
            finally:
                server.kill()
        self.assertIn("PyEval_EvalCode", page)
        self.assertIn("sqlite3", page)

    def test_gperftools_text(self):
        for name, report in self.each():
            heap = self.convert(name, "heap")
            for reader in harness.gperftools_readers():
                text = self.words(reader, "--text", "--show_bytes", "/bin/true", heap)
                self.assertIn(f"Total: {harness.shown(report, 'live_bytes')} B", text, reader)

    def test_sqlite3(self):
        query = "select coalesce(sum(size), 0), coalesce(sum(count), 0) from heap_profile_allocation join process using (upid)"
        for name, report in self.each():
            row = self.words("sqlite3", self.convert(name, "sqlite"), query).strip()
            self.assertEqual(row, f"{harness.shown(report, 'live_bytes')}|{harness.shown(report, 'live_blocks')}")

    def test_collapsed(self):
        for name, report in self.each():
            lines = self.convert(name, "collapsed", "--metric=total").read_text().splitlines()
            self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in lines), report["tree"]["total_bytes"])

    def test_perfettos_packets(self):
        """The standard packets alone, as protoc finds them: {pid: (allocated, freed)}."""
        for name, report in self.each():
            sums = collections.Counter()
            trace = published.trace(self.dumps[name].read_bytes())
            self.assertEqual({field for field in trace.names() if field[0].isdigit()}, set())
            for dump in trace.all("packet", "profile_packet", "process_dumps"):
                sums["total"] += sum(dump.all("samples", "self_allocated"))
                sums["live"] += sum(dump.all("samples", "self_allocated")) - sum(dump.all("samples", "self_freed"))
            self.assertEqual(dict(sums), {"total": report["tree"]["total_bytes"], "live": harness.shown(report, "live_bytes")})

    def test_catapults_viewer(self):
        """All of them in one trace, as dumps of one run would be: a browser is started once."""
        pages.install()
        site, together = self.folder / "site", self.folder / "together.pftrace"
        pages.catapult(site)
        together.write_bytes(b"".join(dump.read_bytes() for dump in self.dumps.values()))
        self.words(harness.MEMLOG, "convert", "--to=chrome", "-o", site / "trace.json.gz", together)
        answer = pages.look("catapult.js", site, "catapult.html")
        self.assertEqual((answer["complaints"], answer["warnings"]), ([], []))
        self.assertEqual(len(answer["dumps"]), len(self.dumps))
        for (_, report), dump in zip(self.each(), answer["dumps"]):
            self.assertEqual(sum(one["bytes"] for one in dump.values()), harness.shown(report, "live_bytes"))
            self.assertEqual(sum(one["blocks"] for one in dump.values()), harness.shown(report, "live_blocks"))
            self.assertEqual(len(dump), len(report["processes"]))

    def test_speedscope(self):
        """Its list of functions, what each holds itself; frames without a name and inlined ones it leaves out."""
        pages.install()
        site = self.folder / "site"
        shutil.copytree(pages.NODE / "node_modules" / "speedscope" / "dist" / "release", site)
        for name, report in self.each():
            held = collections.Counter()
            for stack in report["tree"]["stacks"]:
                held[next((frame["function"] for frame in stack["frames"] if frame["function"] and not frame["inlined"]), "")] += stack["live_bytes"]
            self.convert(name, "pprof").rename(site / f"{name}.pb.gz")
            answer = pages.look("speedscope.js", site, f"index.html#profileURL={name}.pb.gz&title={name}")
            self.assertIn(name, answer["title"])
            del held[""]
            for function, most in held.most_common(3):
                size = f"{most / 2**20:.2f} MB" if most >= 2**20 else f"{most / 2**10:.2f} KB" if most >= 2**10 else f"{most} B"
                self.assertRegex(answer["text"], rf"\s{re.escape(size)} \([<\d.]+%\)\s+{re.escape(function)}\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
