"""The live page in a browser, over a run that a person would have: a web server in Python whose workers leak when they are asked to."""
# runner: timeout=900
import json
import os
import subprocess
import unittest
import urllib.request

import browsing
import harness
import pages
import servers

PYTHON = "/usr/bin/python3"

# A parent that forks workers which all accept on its socket: /leak leaks in whoever answers, /come and /go change their number.
SERVER = r"""
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
"""


class LivePage(browsing.Case):
    @classmethod
    def setUpClass(cls):
        pages.install()

    def ask_server(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=harness.TIMEOUT) as answer:
            answer.read()

    def drive(self, script, url):
        """Run a script that gives orders; its last line is what it saw."""
        env = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
        shots = self.folder / "shots"
        shots.mkdir()
        driver = subprocess.Popen(
            ["node", script, url, str(shots)], cwd=pages.NODE, env={**env, "HOME": str(self.folder)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        self.addCleanup(driver.kill)
        for line in driver.stdout:
            said = json.loads(line)
            if "order" not in said:
                break
            self.ask_server("/" + said["order"])
            driver.stdin.write("done\n")
            driver.stdin.flush()
        _, err = driver.communicate(timeout=harness.TIMEOUT)
        self.assertEqual(driver.returncode, 0, err)
        self.assertGreaterEqual(len(list(shots.glob("*.png"))), 8)
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
        # The leak is what changed most: 200 blocks of 5,001 bytes.
        leak = next(row for row in seen["changed"] if "PyByteArray_Resize" in row)
        self.assertIn("+976.8 KiB", leak)
        self.assertRegex(seen["selected"], r"^python3 \d+$")
        self.assertEqual(seen["again"]["title"], seen["selected"])
        self.assertRegex(seen["found"], r"\d %$")
        self.assertRegex(seen["span"][0], r"^python3 \d+ \+(9\d\d\.\d KiB|1\.\d MiB)")
        self.assertGreater(seen["ended"], 3)
        self.assertEqual([seen["overflow400light"], seen["overflow400dark"], seen["overflow1280dark"]], [0, 0, 0])

    def is_serving(self):
        try:
            self.ask_server("/")
            return True
        except OSError:
            return False


if __name__ == "__main__":
    unittest.main(verbosity=2)
