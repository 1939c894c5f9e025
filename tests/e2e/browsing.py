"""A run with its page, spoken to by sockets of our own: what a browser would never send can be sent, too."""
import json
import pathlib
import re
import socket
import subprocess
import urllib.parse

import harness
import pythons

PYTHON = "/usr/bin/python3"
OPENAT = 257  # in /proc/PID/syscall, of a process that sleeps in it; "running" otherwise

# A parent and a child of its own program, each of which allocates a little more whenever it is told.
TREE = pythons.named(r"""
import os, sys
kept = []
def leak_here(count):
    kept.append([bytearray(3000) for _ in range(count)])
child = os.fork()
name = sys.argv[1] + ("/parent" if child else "/child")
os.mkfifo(name)
leak_here(100)
print("ready", flush=True)
while True:
    with open(name) as orders:
        count = int(orders.read())
    if count == 0:
        break
    leak_here(count)
    open(name + ".done", "a").write("x")
if child:
    os.waitpid(child, 0)
""")


class Answer:
    def __init__(self, raw):
        head, _, body = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        self.body = dechunk(body) if self.headers.get("transfer-encoding") == "chunked" else body

    def json(self):
        return json.loads(self.body)


def dechunk(body):
    out, at = bytearray(), 0
    while at < len(body):
        end = body.find(b"\r\n", at)
        count = int(body[at:end if end >= 0 else len(body)] or b"0", 16)
        if not count or end < 0:
            break
        out += body[end + 2:end + 2 + count]
        at = end + 2 + count + 2
    return bytes(out)


class Page:
    """The page of a run, by the address that memlog printed."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.url = url
        self.base = f"{parts.scheme}://{parts.netloc}"
        self.address = (parts.hostname, parts.port)
        self.host = parts.netloc
        self.token = urllib.parse.parse_qs(parts.query)["token"][0]
        self.cookie = f"memlog-{parts.port}={self.token}"

    def connect(self, timeout=harness.TIMEOUT):
        return socket.create_connection(self.address, timeout)

    def raw(self, data, timeout=harness.TIMEOUT):
        """Send bytes, take all that comes until the other side closes; None: it closed without a word."""
        with self.connect(timeout) as peer:
            try:
                peer.sendall(data)
            except OSError:
                pass  # refused before it was all there
            got = bytearray()  # some are of many megabytes: bytes would be copied anew for each piece
            try:
                while piece := peer.recv(1 << 20):
                    got += piece
            except ConnectionResetError:
                pass
        return Answer(bytes(got)) if got else None

    def ask(self, path, method="GET", token=True, timeout=harness.TIMEOUT, **headers):
        """`headers`: host_="x" sends Host: x; a header that is None is left out."""
        lines = {"Host": self.host, "Connection": "close"}
        if token:
            lines["Authorization"] = f"token {self.token}"
        for name, value in headers.items():
            lines[name.strip("_").replace("_", "-").title()] = value
        if method == "POST":
            lines.setdefault("Content-Length", "0")
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
        return self.raw(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1"), timeout)

    def json(self, path, method="GET"):
        answer = self.ask(path, method)
        if answer.status not in (200, 201):
            raise AssertionError((path, answer.status, answer.body))
        return answer.json()


def members(page):
    """The processes that run, as the page says."""
    return [one for one in page.json("/api/v1/processes")["processes"] if one["state"] == "running"]


class Case(harness.Case):
    """Tests of a page over a run of their own."""

    def open_page(self, *program, options=(), env=None, stdin=subprocess.DEVNULL):
        """Start it, and read where its page is; (process, page)."""
        process = self.memlog_start(*program, options=options, env=env, stdin=stdin)
        log = self.folder / f"stderr{self.runs}"
        found = self.wait_for("the page's address", lambda: re.search(r"^memlog: page: (http\S+)$", log.read_text(), re.M))
        return process, Page(found[1])


class TreeCase(Case):
    """Over a parent and its child that allocate when they are told to and not else: figures stand still meanwhile."""

    def start_tree(self, *options):
        self.place = self.folder / f"orders{self.runs}"
        self.place.mkdir()
        env = self.environment(PYTHONMALLOC="malloc")
        process, page = self.open_page(PYTHON, "-c", TREE, self.place, options=options, env=env)
        both = self.wait_for("both", lambda: len(found := members(page)) == 2 and found)
        self.pids = dict(zip(("parent", "child"), (one["pid"] for one in both)))
        for who in self.pids:
            self.wait_for_rest(who)
        return process, page

    def wait_for_rest(self, who):
        """It waits for its next order: until then even opening a file allocates a little, and figures are compared to the byte."""
        call = pathlib.Path(f"/proc/{self.pids[who]}/syscall")
        self.wait_for(f"the {who} to wait", lambda: (self.place / who).exists() and call.read_text().startswith(f"{OPENAT} "))

    def order(self, who, count):
        done = self.place / f"{who}.done"
        before = done.stat().st_size if done.exists() else 0
        (self.place / who).write_text(str(count))
        if count:
            self.wait_for("it is done", lambda: done.exists() and done.stat().st_size > before)
            self.wait_for_rest(who)

    def end(self, process):
        self.order("child", 0)
        self.order("parent", 0)
        self.assertEqual(process.wait(harness.TIMEOUT), 0)
