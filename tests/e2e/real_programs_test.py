"""Programs as people use them, with and without memlog: same output, exit code, environment and descriptor numbers, and a sane
report. They come from the packages that tools/dev/setup installs for tests."""
import json
import os
import re
import shutil
import signal
import unittest
import urllib.request

import harness
import servers

PYTHON = "/usr/bin/python3"
MIB = 1 << 20

CXX_SOURCE = """
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
int main() {
    std::map<std::string, std::vector<int>> table;
    for (int i = 0; i < 1000; i++) table[std::to_string(i % 37)].push_back(i);
    std::regex pattern("([a-z]+)([0-9]+)");
    std::smatch match;
    std::string text = "abc123";
    std::cout << table.size() << ' ' << std::regex_match(text, match, pattern) << ' ' << match[2] << '\\n';
    return 0;
}
"""

PYTHON_POOL = """
import multiprocessing, os
def work(n):
    return sum(len(str(i) * 3) for i in range(n * 1000))
if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    with multiprocessing.Pool(3) as pool:
        print(pool.map(work, range(20)))
    queue = multiprocessing.Queue()
    child = multiprocessing.Process(target=lambda: queue.put("x" * 100000))
    child.start()
    print(len(queue.get()))
    child.join()
    print(child.exitcode)
"""

PERL = """
my %h; for my $i (1..30000) { $h{"key$i"} = [$i, "v" x ($i % 50)]; }
my $n = 0; $n += length($_->[1]) for values %h; print "$n\\n";
my $pid = fork; if (!$pid) { my @a = map { $_ x 3 } 1..5000; exit(scalar(@a) % 7) } waitpid $pid, 0; print $? >> 8, "\\n";
print `echo from a shell`; exit 6;
"""

PHP = "$a = []; for ($i = 0; $i < 1000; $i++) $a[] = str_repeat('x', $i); echo count($a), PHP_EOL; exit(7);"
CHROMIUM = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
NODE = """
const crypto = require('crypto'), zlib = require('zlib'), {execFileSync} = require('child_process');
const rows = Array.from({length: 20000}, (_, i) => ({i, s: 'x'.repeat(i % 100)}));
const packed = zlib.gzipSync(JSON.stringify(rows));
console.log(JSON.parse(zlib.gunzipSync(packed)).length, crypto.createHash('sha256').update(JSON.stringify(rows)).digest('hex'));
console.log(execFileSync('/bin/echo', ['from a child']).toString().trim());
process.exitCode = 4;
"""

SQL = """
create table t(id integer primary key, name text, value real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 30000) insert into t select i, 'name' || i, i * 1.5 from n;
create index t_name on t(name);
select count(*), sum(value) from t;
select name from t where name like '%999' order by name desc limit 5;
"""


class Programs(harness.Case):
    def bare(self, *program, stdin=b"", env=None, cwd=None):
        return harness.run_words([*map(str, program)], cwd or self.folder, env or self.environment(), stdin, harness.TIMEOUT)

    def same(self, *program, stdin=b"", env=None, before=None):
        """Run without and with memlog, each in a fresh folder; compare what comes out; returns the report."""
        dumps = []

        def play():
            run = self.run_of_same(program, stdin, env, before)
            dumps[:] = run.dumps()
            return self.exit_report(run)

        report = self.undisturbed(play)
        self.sane(report, dumps[0])
        return report

    def functions_of(self, dump, entry):
        """What each function holds itself: of a large dump the report has the largest stacks alone."""
        words = [str(harness.MEMLOG), "report", "--json", "--by=function", f"--pid={entry['pid']}", str(dump)]
        answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
        return json.loads(answer.stdout)["rows"]

    def run_of_same(self, program, stdin, env, before):
        outcomes = []
        for way in ("bare", "memlog"):
            folder = self.folder / "work"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            if before:
                before(folder)
            if way == "bare":
                answer = self.bare(*program, stdin=stdin, env=env, cwd=folder)
                outcomes.append((answer.returncode, answer.stdout, answer.stderr.decode(errors="replace")))
            else:
                run = self.memlog(*program, stdin=stdin, env=env, cwd=folder, timeout=2 * harness.TIMEOUT)
                outcomes.append((run.code, run.out, run.err))
        self.assertEqual(outcomes[1][1], outcomes[0][1])
        self.assertEqual(outcomes[1], outcomes[0])
        return run

    def sane(self, report, dump):
        self.assertTrue(report["dump"]["complete"], report["dump"]["gaps"])
        for entry in report["processes"]:
            who = f"{entry['pid']} {entry['name']}"
            self.assertEqual(entry["lost_events"], 0, who)
            self.assertLessEqual(entry["live_bytes"], entry["peak_bytes"], who)
            self.assertLessEqual(entry["peak_bytes"], entry["total_bytes"], who)
            rows = self.functions_of(dump, entry) if report["limited"] else entry["stacks"]
            for figure in ("live_bytes", "total_blocks", "peak_bytes"):
                self.assertEqual(sum(row[figure] for row in rows), entry[figure], f"{who} {figure}")
            self.assertNotEqual(entry["state"], "running", who)

    def processes(self, report, name):
        return [entry for entry in report["processes"] if entry["name"] == name]

    def functions(self, entry):
        return {frame["function"] for stack in entry["stacks"] for frame in stack["frames"]}


class CommandLine(Programs):
    def test_descriptors_under_a_low_limit(self):
        code = "import os; print(os.open('/dev/null', 0)); print([n for n in map(int, os.listdir('/proc/self/fd')) if n < 60])"
        self.same("/bin/sh", "-c", f'ulimit -n 80; exec {PYTHON} -c "{code}"')

    def test_cxx_compiler(self):
        def write_source(folder):
            (folder / "a.cc").write_text(CXX_SOURCE)

        report = self.same(
            "/bin/sh", "-c", "g++ -std=c++17 -O1 -c a.cc -o a.o && sha256sum < a.o && g++ a.o -o a && ./a", before=write_source
        )
        compiler = self.processes(report, "cc1plus")
        self.assertEqual(len(compiler), 1)
        self.assertGreater(compiler[0]["total_bytes"], 20 * MIB)
        # Newer ones call it by the machine's name.
        self.assertEqual(len([entry for entry in report["processes"] if re.search(r"[/-]as$", "/" + entry["command_line"][0])]), 1)
        self.assertTrue(any(entry["command_line"][0].endswith("a") for entry in self.processes(report, "a")))

    def test_python_multiprocessing(self):
        def write_script(folder):
            (folder / "pool.py").write_text(PYTHON_POOL)

        report = self.same(PYTHON, "pool.py", before=write_script)
        self.assertGreaterEqual(len(self.processes(report, "python3")), 5)

    def test_perl(self):
        report = self.same("perl", "-e", PERL)
        self.assertEqual(self.processes(report, "perl")[0]["exit_code"], 6)
        self.assertTrue(any(name.startswith("Perl_") for name in self.functions(self.processes(report, "perl")[0])))

    def test_git(self):
        script = """set -e
            export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z' HOME=$PWD
            export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
            git init -q -b main repo; cd repo
            for i in $(seq 60); do seq $i 300 > file$i; done
            git add .; git commit -q -m one; seq 9 > file9; git commit -q -am two
            git log --oneline --stat; git gc -q; git fsck; git diff HEAD~ | tail -3; git clone -q . ../copy; ls ../copy | wc -l
            git status --porcelain nowhere; git no-such-command"""
        report = self.same("/bin/sh", "-c", script)
        self.assertGreater(len(self.processes(report, "git")), 8)

    def test_sqlite3(self):
        report = self.same("sqlite3", "data.db", stdin=SQL.encode())
        entry = self.processes(report, "sqlite3")[0]
        self.assertGreater(entry["total_blocks"], 1000)  # Debian 13's allocates a thirtieth of 12's

    def test_node(self):
        report = self.same("node", "-e", NODE)
        self.assertEqual(report["processes"][0]["exit_code"], 4)


    @unittest.skipIf(shutil.which("php") is None, "needs php")
    def test_php_with_its_extensions(self):
        """Before 8.3 they are loaded with RTLD_DEEPBIND: their blocks come and go past memlog, which is a word on coverage and no lost event."""
        is_deep = int(harness.run_words(["php", "-r", "echo PHP_VERSION_ID;"], self.folder, self.environment(), b"", harness.TIMEOUT).stdout) < 80300
        report = self.same("php", "-r", PHP)
        (entry,) = report["processes"]
        self.assertEqual((entry["exit_code"], entry["complete"], entry["trouble"], report["dump"]["covered"]), (7, True, "", not is_deep))
        self.assertNotRegex(json.dumps(report), "given out (twice|again)")
        if not is_deep:
            return
        past = "the allocator calls of opcache.so and other libraries go past memlog (opened with RTLD_DEEPBIND?): they are not seen"
        self.assertEqual(entry["coverage"]["unseen"], past)
        self.assertTrue(report["dump"]["uncovered"].startswith(f"php: {past}"), report["dump"]["uncovered"])


class Browsers(Programs):
    """Their allocator is in their executable, and they close and watch descriptors more thoroughly than others."""

    # The least functions of it that are hooked.
    CHROMIUM_FUNCTIONS, FIREFOX_FUNCTIONS = 10, 15
    EVENTS = 1000

    def once(self, way, words):
        """Bare or under memlog, at home in a fresh folder: exit code, what stands on stderr, the report."""
        home = self.folder / way
        home.mkdir()
        env = self.environment(HOME=str(home))
        words = [word.replace("{home}", str(home)) for word in words]
        if way == "bare":
            answer = self.bare(*words, env=env)
            return answer.returncode, answer.stderr.decode(errors="replace"), None
        run = self.memlog(*words, env=env, timeout=2 * harness.TIMEOUT)
        return run.code, run.err, self.whole_report(run.dumps()[0])

    def assert_nothing_lost(self, report):
        self.assertEqual((report["dump"]["complete"], report["dump"]["lost_forks"], report["dump"]["gaps"]), (True, 0, []))
        for entry in report["processes"]:
            self.assertEqual((entry["lost_events"], entry["trouble"]), (0, ""), entry["name"])

    def assert_hooked(self, report, functions, roles):
        """Each process of the browser's own image is; of these roles there is one that allocates, and stacks go to their ends."""
        own = [entry for entry in report["processes"] if entry["recorded"] and entry["coverage"]["allocator"] == "inside the executable"]
        for entry in own:
            self.assertGreaterEqual(entry["coverage"]["hooked_functions"], functions, entry["command_line"])
            self.assertLessEqual(entry["broken_stacks"], entry["total_blocks"] // 100, entry["command_line"])
        for role in roles:
            self.assertTrue(any(entry["role"] == role and entry["total_blocks"] > self.EVENTS for entry in own), role)
        return own

    @unittest.skipIf(shutil.which("firefox-esr") is None, "needs firefox-esr")
    def test_firefox_is_as_bare_and_loses_nothing(self):
        words = ("firefox-esr", "--headless", "--no-remote", "--profile", "{home}", "--screenshot", "{home}/s.png", "data:text/html,hello")
        code, err, _ = self.once("bare", words)
        self.assertEqual(code, 0, err)
        code_under, err_under, report = self.once("memlog", words)
        self.assertEqual((code_under, err_under), (code, err))
        self.assertEqual((self.folder / "memlog" / "s.png").read_bytes(), (self.folder / "bare" / "s.png").read_bytes())
        self.assert_nothing_lost(report)
        self.assertGreaterEqual(len(self.assert_hooked(report, self.FIREFOX_FUNCTIONS, ["browser"])), 4)
        for entry in report["processes"]:
            self.assertTrue(entry["recorded"] or entry["idle"], entry["name"])  # forks that have not called malloc yet

    @unittest.skipIf(shutil.which("chromium") is None, "needs chromium")
    def test_chromium_loses_nothing_and_its_crash_reporter_alone_says_more(self):
        """It closes all descriptors that it finds, and memlog's two cannot be closed: docs/limits.md."""
        words = (*CHROMIUM, "--user-data-dir={home}/data", "--screenshot={home}/s.png", "data:text/html,hello")
        told = {}
        for way in ("bare", "memlog"):
            code, err, report = self.once(way, words)
            self.assertEqual(code, 0, err)
            told[way] = re.findall(r"^.*crashpad.*?\] (.*)$", err, re.M)
        self.assertEqual(told, {"bare": [], "memlog": 2 * ["close: Bad file descriptor (9)"]})
        self.assertEqual((self.folder / "memlog" / "s.png").read_bytes(), (self.folder / "bare" / "s.png").read_bytes())
        self.assert_nothing_lost(report)
        self.assert_hooked(report, self.CHROMIUM_FUNCTIONS, ["browser", "renderer", "utility"])


    @unittest.skipIf(os.geteuid() != 0, "needs root to become somebody else")
    @unittest.skipIf(shutil.which("chromium") is None, "needs chromium")
    def test_chromiums_own_sandbox_hides_nothing(self):
        """As an ordinary user it has one: its renderers live in namespaces of their own, behind a filter of system calls."""
        os.chmod(self.folder, 0o755)
        home = self.folder / "home"
        home.mkdir()
        os.chown(home, 65534, 65534)
        browser = [word for word in CHROMIUM if word != "--no-sandbox"]
        words = [
            "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", harness.MEMLOG, "run", "-q", "--no-page", "-o", home / "dumps", "--",
            *browser, f"--user-data-dir={home}/data", f"--screenshot={home}/s.png", "data:text/html,hello"]
        env = self.environment(HOME=str(home), XDG_RUNTIME_DIR=str(home), TMPDIR=str(home))
        answer = harness.run_words([str(word) for word in words], home, env, b"", 2 * harness.TIMEOUT)
        told = answer.stderr.decode(errors="replace")
        if "No usable sandbox" in told:
            self.skipTest("an ordinary user may make no namespace here")
        self.assertEqual(answer.returncode, 0, told)
        self.assertTrue((home / "s.png").stat().st_size > 0)
        report = self.whole_report(next((home / "dumps").glob("*.exit.pftrace")))
        self.assert_nothing_lost(report)
        own = self.assert_hooked(report, self.CHROMIUM_FUNCTIONS, ["browser", "renderer", "utility"])
        self.assertFalse(any("--no-sandbox" in entry["command_line"] for entry in own))


class Servers(Programs):
    """Servers are started under memlog, worked by clients without it, and asked to end."""

    def end(self, process, pid, sig, code=0):
        os.kill(pid, sig)
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), code, self.log_of(process))
        run = harness.Run(process.returncode, b"", "", process.memlog_folder)
        report = self.exit_report(run)
        self.sane(report, run.dumps()[0])
        return report

    def log_of(self, process):
        process.memlog_log.seek(0)
        return process.memlog_log.read().decode(errors="replace")[-3000:]

    def client(self, *words, **options):
        answer = self.bare(*words, **options)
        self.assertEqual(answer.returncode, 0, (words, answer.stdout, answer.stderr))
        return answer.stdout.decode(errors="replace")

    def is_up(self, *words):
        return lambda: self.bare(*words).returncode == 0

    def test_redis_under_benchmark_with_a_background_save(self):
        sock = self.folder / "redis.sock"
        server = self.memlog_start(*servers.redis(self.folder))
        cli = ("redis-cli", "-s", sock)
        self.wait_for("redis", self.is_up(*cli, "ping"))
        self.client("redis-benchmark", "-s", sock, "-q", "-n", "5000", "-c", "10", "-t", "set,get,lpush,sadd,hset")
        self.client(*cli, "bgsave")
        self.client("redis-benchmark", "-s", sock, "-q", "-n", "5000", "-c", "10", "-d", "200", "-r", "1000", "-t", "set")
        self.wait_for("the save", lambda: "rdb_bgsave_in_progress:0" in self.client(*cli, "info", "persistence"))
        info = self.client(*cli, "info")
        self.assertIn("mem_allocator:jemalloc", info)
        self.assertIn("rdb_last_bgsave_status:ok", info)
        pid = int(re.search(r"process_id:(\d+)", info).group(1))
        report = self.end(server, pid, signal.SIGTERM)
        children = [entry for entry in report["processes"] if entry["parent_pid"] == pid]
        self.assertEqual(len(children), 1, "the background save is a process of its own")
        self.assertGreater(children[0]["inherited_bytes"], 0)
        main = next(entry for entry in report["processes"] if entry["pid"] == pid)
        self.assertGreater(main["total_blocks"], 5000)

    def test_nginx_with_workers(self):
        folder = self.folder / "nginx"
        port = servers.free_port()
        server = self.memlog_start(*servers.nginx(folder, port))
        address = f"http://127.0.0.1:{port}/page.txt"

        def fetch():
            request = urllib.request.Request(address, headers={"Accept-Encoding": "gzip"})
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return answer.read()
            except OSError:
                return b""

        self.wait_for("nginx", fetch)
        for _ in range(200):
            self.assertGreater(len(fetch()), 50)
        report = self.end(server, int((folder / "pid").read_text()), signal.SIGQUIT)
        self.assertEqual(len(self.processes(report, "nginx")), 3, "a master and two workers")
        self.assertGreater(sum(entry["total_blocks"] for entry in self.processes(report, "nginx")), 300)

    def test_postgresql_under_pgbench(self):
        postgres = servers.Postgres(self.folder)
        self.client(*postgres.init, cwd=postgres.data)
        server = self.memlog_start(*postgres.words)
        self.wait_for("postgres", self.is_up(*postgres.is_ready))
        pgbench = (servers.POSTGRES / "pgbench", *postgres.login)
        self.client(*pgbench, "-q", "-i", "-s", "1", "postgres")
        done = self.client(*pgbench, "-c", "4", "-t", "50", "postgres")
        self.assertIn("number of transactions actually processed: 200/200", done)
        pid = postgres.pid()
        report = self.end(server, pid, signal.SIGINT)
        backends = [entry for entry in report["processes"] if entry["parent_pid"] == pid]
        self.assertGreater(len(backends), 8, "background processes and one backend a connection")
        self.assertGreater(max(entry["total_blocks"] for entry in backends), 500)


if __name__ == "__main__":
    unittest.main(verbosity=2)
