"""The live page in a browser, over a run that a person would have: a web server in Python whose workers leak when they are asked to."""
import json
import os
import re
import signal
import subprocess
import unittest
import urllib.request

import browsing
import harness
import pages
import pythons
import servers

PYTHON = "/usr/bin/python3"

# A parent that forks workers which all accept on its socket: /leak leaks in whoever answers, /come and /go change their number.
SERVER = pythons.named(r"""
import http.server, os, signal, socketserver, sys
kept = []
def leak_here(count):
    kept.append([bytearray(5000) for _ in range(count)])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/leak":
            leak_here(200)
        if self.path == "/come":
            os.kill(os.getppid(), signal.SIGUSR1)
        self.send_response(200)
        self.end_headers()
        if self.path == "/go":
            self.wfile.flush()
            os._exit(0)
    def log_message(self, *_):
        pass
server = socketserver.TCPServer(("127.0.0.1", int(sys.argv[1])), Handler)
def worker(*_):
    if os.fork() == 0:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        server.serve_forever()
signal.signal(signal.SIGUSR1, worker)
worker()
worker()
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
""")


# A child that has no descriptor left to be recorded by.
FORKS_IN_NEED = """
import os, resource, time
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
try:
    while True:
        os.open("/dev/null", os.O_RDONLY)
except OSError:
    pass
if os.fork() == 0:
    kept = [bytearray(1000) for _ in range(100)]
    time.sleep(600)
print("ready", flush=True)
time.sleep(600)
"""


class LivePage(browsing.Case):
    @classmethod
    def setUpClass(cls):
        pages.install()

    def ask_server(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=harness.TIMEOUT) as answer:
            answer.read()

    def drive(self, script, url, obey=None):
        """Run a script that gives orders, to the web server if nobody else obeys; its last line is what it saw."""
        obey = obey or (lambda order: self.ask_server("/" + order))
        shots = self.folder / "shots"
        said = pages.drive(script, url, shots, self.folder, obey)
        self.assertGreaterEqual(len(list(shots.glob("*.png"))), 5)
        return said

    def test_a_person_finds_a_leak_with_it(self):
        self.port = servers.free_port()
        env = self.environment(PYTHONMALLOC="malloc")
        _, page = self.open_page(PYTHON, "-c", SERVER, self.port, env=env)
        self.wait_for("the workers", lambda: self.is_serving() and len(page.json("/api/v1/processes")["processes"]) == 3)
        seen = self.drive("live.js", page.url)
        self.assertEqual(seen["complaints"], [])
        self.assertEqual(seen["asked"], [page.base])
        self.assertEqual(seen["faults"], [])
        self.assertNotIn("token", seen["address"])
        self.assertIn("python3", seen["title"])
        self.assertEqual(len(seen["rows"]), 3)
        for row in seen["rows"]:
            self.assertRegex(row, r"python3.*iB")
        self.assertRegex(seen["saved"], r"^Saved .*0001\.page\.pftrace, [\d.]+ .iB$")
        self.assertEqual(seen["download"], "0001.page.collapsed.txt")
        self.assertRegex(seen["about"], r"^What changed from \d{4}-\d\d-\d\d [\d:]+ GMT\+5:30 to \d{4}-\d\d-\d\d [\d:]+ GMT\+5:30")
        # The leak is what changed most: 200 blocks of 5,001 bytes, or 5,041.
        leak = next(row for row in seen["changed"] if pythons.HOLDER in row)
        self.assertIn("+984.6 KiB" if pythons.IS_LATE else "+976.8 KiB", leak)
        self.assertRegex(seen["selected"], r"^python3 \d+$")
        self.assertEqual(seen["again"]["title"], seen["selected"])
        self.assertRegex(seen["found"], r"\d %$")
        # One worker got the request; the innermost function that is no allocator's.
        self.assertRegex(seen["span"][0], rf"^\+(9\d\d\.\d KiB|1\.\d MiB) {pythons.HOLDER} in python3 \d+$")
        self.assertGreater(seen["remembered"], 5000)
        self.assertRegex(seen["marks"], r"^\+ (python3 \d+|\d processes)")
        self.assertEqual(seen["together"], "dump 1 asked, + 2 processes, \u2212 c 3")
        self.assertEqual(seen["overflow"], 0)
        self.assertGreater(seen["ended"], 3)
        self.assertEqual([seen["overflow400light"], seen["overflow400dark"], seen["overflow1280dark"]], [0, 0, 0])

    def test_somebody_starts_one_process_saves_a_dump_and_sends_one(self):
        self.port = servers.free_port()
        options = ("--memlog=manual", f"--upload={self.folder}/out", f"--upload-spool={self.folder}/spool")
        (self.folder / "out").mkdir()
        _, page = self.open_page(PYTHON, "-c", SERVER, self.port, options=options, env=self.environment(PYTHONMALLOC="malloc"))
        processes = lambda: page.json("/api/v1/processes")["processes"]
        self.wait_for("the workers", lambda: self.is_serving() and len(processes()) == 3)

        def leak():
            """In the one worker that is recorded, or in any: who accepts is the kernel's choice."""
            (chosen,) = [one for one in processes() if one["recording"]] or [None]
            for _ in range(1000):
                self.ask_server("/leak")
                if chosen is None or {one["pid"]: one for one in processes()}[chosen["pid"]]["live_bytes"] > 900000:
                    return
            self.fail("the kernel never gave that worker a request")

        workers = [one["pid"] for one in processes() if one["role"] == "other"]
        orders = {"leak": leak, "who": lambda: str(workers[1])}
        seen = self.drive("manual.js", page.url, lambda order: orders[order]())
        self.assertEqual((seen["complaints"], seen["faults"], seen["asked"]), ([], [], [page.base]))
        self.assertTrue(all("Record" in row and "Stop" not in row for row in seen["before"]), seen["before"])
        self.assertEqual(seen["asks"], f"Record python3 {workers[1]} from now on, in a new, empty profile.")
        self.assertRegex(seen["saved"], r"^Saved .*0001\.page\.pftrace, [\d.]+ .iB$")
        self.assertRegex(seen["opened"], r"^Dump of .*\(page\), 1 process")
        # What leaked before the start is nobody's; what leaked since is all there is.
        leaks = [row for row in seen["functions"] if pythons.HOLDER in row]
        self.assertTrue(leaks and "iB" in leaks[0], seen["functions"])
        dump = self.report(next(iter((self.folder / "dumps1").glob("0001.page.pftrace"))))
        self.assertEqual([one["pid"] for one in dump["processes"]], [workers[1]])
        self.assertEqual(len(list((self.folder / "out").iterdir())), 1)
        self.assertRegex(seen["uploads"], rf"^to {self.folder}/out, ")

    def test_what_is_not_there_or_goes_wrong_is_said(self):
        self.port = servers.free_port()
        process, page = self.open_page(PYTHON, "-c", SERVER, self.port, options=("--memlog=manual",), env=self.environment(PYTHONMALLOC="malloc"))
        self.wait_for("the workers", lambda: self.is_serving() and len(page.json("/api/v1/processes")["processes"]) == 3)
        workers = {one["pid"] for one in page.json("/api/v1/processes")["processes"] if one["role"] == "other"}

        def obey(order):
            word, _, pid = order.partition(" ")
            if word == "end":
                self.assertIn(int(pid), workers)
                os.kill(int(pid), signal.SIGKILL)
            else:
                os.killpg(process.pid, signal.SIGKILL)  # the program, too: who is left would hold our pipe

        seen = self.drive("states.js", page.url, obey)
        self.assertEqual(seen["faults"], [])
        # The browser's own words for what was refused or gone, nothing of ours.
        self.assertEqual([one for one in seen["complaints"] if "Failed to load resource" not in one], [])
        self.assertIn("Open the address that memlog printed", seen["stranger"])
        self.assertEqual(seen["unrecorded"], f"python3 {seen['pid']} is not recorded (not taken by --memlog=manual): Record beside it (s) shows what it allocates from then on.")
        self.assertFalse(seen["drawn"])
        self.assertEqual(seen["ended"], f"python3 {seen['pid']} has ended: there is nothing to record or stop.")
        self.assertIn("nobody is called so", seen["none"])
        (left,) = workers - {int(seen["pid"])}
        self.assertIn(f" {left} ", " ".join(seen["narrow"]))
        self.assertEqual(seen["hidden"], 0)
        since = r"does not answer,? since \d\d:\d\d:\d\d \S+"
        self.assertRegex(seen["gone"], rf"^The run has ended, or memlog {since}\. What was seen stays here and is live no more; memlog page {process.memlog_folder} shows the dumps\.$")
        self.assertEqual([name for name, _, _ in seen["lost"] if name in ("save", "refresh", "follow", "send")], ["save", "follow", "refresh", "send"])
        self.assertGreater(len(seen["lost"]), 4)  # and those of the rows
        for name, disabled, title in seen["lost"]:
            self.assertTrue(disabled, name)
            self.assertRegex(title, rf"^memlog {since}$", name)
        self.assertEqual(seen["dots"], 0)
        self.assertRegex(seen["dotTitle"], rf"^memlog {since}$")
        self.assertTrue(seen["stays"])

    def test_it_says_what_nobody_saw_and_who_made_the_peak(self):
        (self.folder / "static.c").write_text("#include <unistd.h>\nint main(void) { sleep(600); return 0; }\n")
        subprocess.run(["gcc", "-static", "-o", self.folder / "static", self.folder / "static.c"], check=True)
        # A shell that becomes python: two program images, one process.
        holds = "import sys; kept = [bytearray(5000) for _ in range(1000)]; print('ready', flush=True); import time; time.sleep(600)"
        process, page = self.open_page("/bin/sh", "-c", '"$0" & exec /usr/bin/python3 -c "$1"', self.folder / "static", holds, env=self.environment(PYTHONMALLOC="malloc"))
        self.assertEqual(process.stdout.readline(), b"ready\n")
        answer = lambda: page.json("/api/v1/processes")
        unrecorded = lambda: [one for one in answer()["processes"] if one["name"] == "static" and one["footprint_bytes"]]
        (static,) = self.wait_for("the static program's memory", unrecorded)
        self.assertEqual((static["recorded"], static["complete"], static["coverage"]["private_bytes"]), (False, None, static["footprint_bytes"]))
        self.assertEqual(static["coverage"]["unseen"], static["reason"])
        live = answer()["dump"]
        self.assertEqual(live["covered"], False)
        made = page.json("/api/v1/dumps", "POST")
        report = self.whole_report(process.memlog_folder / made["path"].split("/")[-1])
        # The same words as the report's.
        self.assertEqual(live["uncovered"], report["dump"]["uncovered"])
        self.assertRegex(live["uncovered"], r"^1 process was not recorded \([\d.]+ KiB private memory\): static: statically linked: there is no dynamic loader that could load memlog$")
        seen = self.drive("missing.js", page.url)
        self.assertEqual((seen["complaints"], seen["overflow"]), ([], [0] * 5))
        self.assertEqual((seen["uncovered"], seen["incomplete"]), (f"NOT COVERED {live['uncovered']}", ""))
        self.assertEqual(seen["totals"]["running"], "2")
        self.assertEqual(seen["ended"], "ended (0)")  # the shell goes on as python
        rows = {re.search(r"^(python3|static|sh)", row["Process"])[1]: row for row in seen["rows"]}
        self.assertRegex(rows["python3"]["At peak"], r"^\d\.\d MiB$")
        self.assertRegex(rows["python3"]["Process"], r"^python3\d+ main$")
        document = page.json("/openapi.json")["paths"]
        self.assertIn("uncovered", json.dumps(document["/api/v1/processes"]))
        self.assertIn("uncovered", json.dumps(document["/api/v1/events"]))
        self.assertEqual(page.json("/api/v1/profile")["views"][0]["title"], "All processes (2)")  # the fork that became static has a heap, too
        self.assertEqual((rows["static"]["Live"], rows["static"]["At peak"]), ("", ""))
        self.assertRegex(rows["static"]["Process"], r"statically linked.*; private memory [\d.]+ KiB$")
        over = self.drive("missing.js", self.page_over(process.memlog_folder))
        self.assertEqual((over["complaints"], over["uncovered"]), ([], f"NOT COVERED {live['uncovered']}"))
        images = {one["id"] for one in report["processes"]}
        self.assertEqual(over["totals"][f"processes, in {len(images)} program images"], "2")

    def page_over(self, folder):
        """The address of a page over the dumps there."""
        log = open(self.folder / "page.err", "wb+")
        self.addCleanup(log.close)
        served = subprocess.Popen([harness.MEMLOG, "page", folder], stdin=subprocess.DEVNULL, stderr=log, env=self.environment())
        self.addCleanup(served.kill)
        return self.wait_for("the address", lambda: re.search(rb"page: (http\S+)", (self.folder / "page.err").read_bytes()))[1].decode()

    def test_it_says_that_a_forked_child_could_not_be_recorded(self):
        process, page = self.open_page("/usr/bin/python3", "-c", FORKS_IN_NEED)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        told = self.wait_for("the child's word", lambda: (found := page.json("/api/v1/processes")["dump"])["lost_forks"] and found)
        self.assertEqual((told["lost_forks"], told["covered"]), (1, False))
        made = page.json("/api/v1/dumps", "POST")
        self.assertEqual((made["complete"], made["trouble"]), (False, "1 forked child could not be recorded"))
        for url in (page.url, self.page_over(process.memlog_folder)):
            seen = self.drive("missing.js", url)
            self.assertEqual((seen["complaints"], seen["overflow"]), ([], [0] * 5))
            self.assertEqual(seen["incomplete"], "NOT COMPLETE 1 forked child could not be recorded: what it allocated and freed is missing")
            self.assertRegex(seen["uncovered"], r"^NOT COVERED 1 process was not recorded.*: python3: .*ulimit")

    def test_postgresql_under_pgbench_comes_and_goes_on_it(self):
        postgres = servers.Postgres(self.folder)
        client = lambda *words: subprocess.run(
            list(map(str, words)), cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=harness.TIMEOUT, check=False)
        made = client(*postgres.init)
        self.assertEqual(made.returncode, 0, made.stderr)
        process, page = self.open_page(*postgres.words)
        self.wait_for("the server", lambda: client(*postgres.is_ready).returncode == 0)
        pgbench = (*postgres.prefix, servers.POSTGRES / "pgbench", *postgres.login)
        filled = client(*pgbench, "-q", "-i", "-s", "1", "postgres")
        self.assertEqual(filled.returncode, 0, filled.stderr)
        self.wait_for("its backends' ends", lambda: not any(
            "[local]" in " ".join(one["command_line"]) for one in page.json("/api/v1/processes")["processes"] if one["state"] == "running"))
        running = []

        def bench():
            words = [*pgbench, "-c", "4", "-T", "600", "postgres"]
            running.append(subprocess.Popen(
                list(map(str, words)), cwd=self.folder, env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            self.addCleanup(running[0].kill)

        def rest():
            running[0].terminate()
            running[0].wait(harness.TIMEOUT)

        seen = self.drive("postgres.js", page.url, lambda order: {"bench": bench, "rest": rest}[order]())
        self.assertEqual((seen["complaints"], seen["faults"], seen["asked"]), ([], [], [page.base]))
        self.assertGreaterEqual(len(seen["busy"]), len(seen["idle"]) + 3)
        self.assertTrue(any("AllocSet" in row or "palloc" in row or "Memory" in row for row in seen["functions"]), seen["functions"])
        self.assertGreaterEqual(seen["ended"], 3)
        os.kill(postgres.pid(), signal.SIGINT)
        process.communicate(timeout=harness.TIMEOUT)
        self.assertEqual(process.returncode, 0)

    def is_serving(self):
        try:
            self.ask_server("/")
            return True
        except OSError:
            return False


if __name__ == "__main__":
    unittest.main(verbosity=2)
