"""A collector under test, the reports that it is sent, and what it is asked."""
import contextlib
import gzip
import hashlib
import http.client
import json
import os
import re
import signal
import sqlite3
import subprocess
import time
import urllib.parse

import harness
import servers


def trace(rows, program="prog", build="b1", host="h1", time_ns=None, control=False, process="prog", role="main", version="", **told):
    """A report as memlog's: rows are (frames, live, peak, total); blocks are as many as kilobytes."""
    strings, nodes, columns, ours = {}, {}, {"nodes": [], "types": [], "sizes": [], "counts": []}, {}
    figures = ("peak_sizes", "peak_counts", "total_sizes", "total_counts")
    ours = {"nodes": [], "types": [], **{name: [] for name in figures}}

    def node(frames):
        if not frames:
            return None
        if frames not in nodes:
            parent = node(frames[:-1])
            nodes[frames] = (len(nodes) + 1, strings.setdefault(frames[-1], len(strings) + 1), parent)
        return nodes[frames][0]

    for frames, live, peak, total in rows:
        number = node(tuple(frames))
        columns["nodes"].append(number)
        columns["types"].append(0)
        columns["sizes"].append(live)
        columns["counts"].append(live // 1024)
        ours["nodes"].append(number)
        ours["types"].append(0)
        for name, value in zip(figures, (peak, peak // 1024, total, total // 1024)):
            ours[name].append(value)
    maps = {
        "nodes": [{"id": number, "name_sid": string, **({"parent": parent} if parent else {})} for number, string, parent in nodes.values()],
        "types": [], "strings": [{"id": number, "string": text} for text, number in strings.items()]}
    return {
        "traceEvents": [
            {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": process}},
            {"ph": "v", "pid": 1, "args": {"dumps": {
                "heaps_v2": {"maps": maps, "allocators": {"malloc": columns}},
                "memlog": {"version": 1, "role": role, "left_bytes": 0, "left_blocks": 0, "heaps": {"malloc": ours}}}}}],
        "metadata": {"memlog": {
            "version": 1, "program": program, "build_id": build, "host": host, "program_version": version,
            "time_ns": time_ns or time.time_ns(), "reason": "threshold", "trigger": "control" if control else "growth",
            "complete": True, "covered": True, "sampling_bytes": 1, "processes": 1, **told}}}


def bare(report):
    """The same report as others than memlog make it: no peak, no totals, and nothing of whether it is complete."""
    report = json.loads(json.dumps(report))
    for event in report["traceEvents"]:
        event["args"].get("dumps", {}).pop("memlog", None)
    return report


def varint(number):
    encoded = b""
    while number > 127:
        encoded += bytes([number & 127 | 128])
        number >>= 7
    return encoded + bytes([number])


def pprof(rows, program="prog", build="b1", comment="memlog: complete, nothing was lost", totals=True, notes=()):
    """A profile of pprof's with (frames, live, total): it says no peak."""
    strings = {"": 0}

    def text(word):
        return strings.setdefault(word, len(strings))

    def piece(tag, *fields):
        body = b"".join(varint(number << 3 | 2 * isinstance(value, bytes)) + (varint(len(value)) + value if isinstance(value, bytes) else varint(value))
                        for number, value in fields)
        return varint(tag << 3 | 2) + varint(len(body)) + body

    kinds = ("inuse_space", "alloc_space") if totals else ("inuse_space",)
    body = b"".join(piece(1, (1, text(kind)), (2, text("bytes"))) for kind in kinds)
    names = sorted({name for frames, *_ in rows for name in frames})
    for number, name in enumerate(names, 1):
        body += piece(5, (1, number), (2, text(name))) + piece(4, (1, number), (4, varint(8) + varint(number)))
    for frames, *values in rows:
        places = b"".join(varint(names.index(name) + 1) for name in reversed(frames))
        body += piece(2, (1, places), (2, b"".join(varint(value) for value in values[:len(kinds)])))
    for word in (comment, program, f"memlog: build id {build}", *notes) if comment else ():
        body += varint(13 << 3) + varint(text(word))
    body += b"".join(varint(6 << 3 | 2) + varint(len(word.encode())) + word.encode() for word in strings)
    return gzip.compress(body, 1, mtime=0)


def packed(value):
    return gzip.compress(json.dumps(value).encode(), 1, mtime=0)


def name_of(body):
    return hashlib.sha256(body).hexdigest()[:32]


class Collector:
    """One process of it over a folder that stays."""

    def __init__(self, folder, *options, tokens=None, environment=None, place=None):
        self.folder, self.options, self.environment = folder, options, environment
        self.port = servers.free_port()
        self.store = folder / "fleet.db"
        self.place = place or f"sqlite:{self.store}"  # of the reports
        self.tokens_file = folder / "tokens"
        if tokens is None:
            tokens = {"default": {"write": 16 * "w", "read": 16 * "r", "admin": 16 * "a"}}
        self.tokens = tokens
        with open(os.open(self.tokens_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            for team, rights in tokens.items():
                for right, token in rights.items():
                    file.write(f"{team} {right} {token}\n")
        self.process = self.log = None
        self.command, self.before_exec = [str(harness.MEMLOG), "collect"], None
        self.tls = None  # an ssl.SSLContext: what speaks to it does so by TLS

    def start(self, *options):
        self.close_log()
        self.log = open(self.folder / "collect.log", "ab")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            [*self.command, f"--store={self.place}", f"--tokens={self.tokens_file}",
             f"--listen=127.0.0.1:{self.port}", *self.options, *options],
            stdout=self.log, stderr=self.log, env=self.environment, preexec_fn=self.before_exec)
        deadline = time.monotonic() + harness.TIMEOUT
        while not self.is_up():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.close_log()
                raise AssertionError(f"no collector: {self.said()}")
            time.sleep(0.02)
        return self

    def is_up(self):
        try:
            return self.request("GET", "/health")[0] == 200
        except OSError:
            return False

    def said(self):
        return (self.folder / "collect.log").read_text(encoding="utf-8")

    def stop(self, number=signal.SIGTERM):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(harness.TIMEOUT)
        self.close_log()
        return code

    def close_log(self):
        if self.log is not None:
            self.log.close()
            self.log = None

    def request(self, method, path, body=None, token=None, **headers):
        """(status, headers, body)."""
        if self.tls:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=harness.TIMEOUT, context=self.tls)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=harness.TIMEOUT)
        try:
            if token:
                headers["Authorization"] = f"Bearer {token}"
            try:
                connection.request(method, path, body, {key.replace("_", "-"): value for key, value in headers.items()})
            except BrokenPipeError:
                pass  # it was answered before all of it was sent
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def send(self, body, guid=None, team="default", path="/report", **headers):
        if isinstance(body, dict):
            body = packed(body)
        headers.setdefault("Idempotency_Key", guid or name_of(body))
        return self.request("POST", path, body, self.tokens[team]["write"], **headers)[0]

    def ask(self, question, team="default", **words):
        words = {key: value for key, value in words.items() if value not in (None, "")}
        status, _, body = self.request(
            "GET", f"/api/v1/fleet/{question}?{urllib.parse.urlencode(words)}", token=self.tokens[team]["read"])
        if status != 200:
            raise AssertionError(f"{status}: {body.decode()}")
        return json.loads(body)

    def figures(self, team="default"):
        _, _, text = self.request("GET", "/metrics", token=self.tokens[team]["read"])
        return {state: int(count) for state, count in re.findall(r'state="(\w+)"} (\d+)', text.decode())}

    def reasons(self):
        """Why reports were refused, as the ledger has it: (reason, how many, one of them)."""
        spool = next((word.removeprefix("--spool=") for word in self.options if word.startswith("--spool=")), f"{self.store}.spool")
        with contextlib.closing(sqlite3.connect(f"{spool}/ledger.db", timeout=harness.TIMEOUT)) as ledger:
            return ledger.execute("SELECT reason, count(*), min(guid) FROM reports WHERE state = 2 GROUP BY reason").fetchall()

    def settle(self):
        """Wait until the store has all that was accepted."""
        deadline = time.monotonic() + harness.TIMEOUT
        while True:
            figures = self.figures()
            if figures["waiting"] == 0:
                return figures
            if time.monotonic() > deadline:
                raise AssertionError(f"{figures}: {self.said()}")
            time.sleep(0.05)
