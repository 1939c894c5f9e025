#!/usr/bin/python3
"""A small receiver of memlog's uploads, for tests and small teams: collector.py [--address=ADDR] [--port=N] FOLDER

`memlog run --upload=http://ADDR:PORT/report ...` sends reports to it. Each is stored in FOLDER by the hash of its trace,
once however often it comes; `GET /` lists them, `GET /report?prod=P&build=B` says who holds what over all dumps of a
program and build together, `GET /api/report?...` the same in the form of `memlog report --json`, `GET /api/reports` is the
list as JSON. Standard library only. It asks nobody who he is: put it behind something that does, or leave it on loopback.
"""
import argparse
import email.parser
import email.policy
import gzip
import hashlib
import html
import http.server
import io
import json
import os
import pathlib
import re
import sys
import tempfile
import threading
import urllib.parse
import zlib

# Ten times what memlog sends unless told otherwise.
BODY_MAX_BYTES = 100 * 1000 * 1000
# What is taken, and how long is waited for it, of a body that is refused for its size.
DISCARD_BYTES_MAX = 256 << 20
DISCARD_SECONDS = 10
# A trace that unpacks to more than this is a bomb: parsed it takes ten times as much, of one trace at a time.
TRACE_MAX_BYTES = 256 << 20
# memlog sends sixteen.
PARTS_MAX = 64
# Of a stack so many innermost frames are told apart; a process has no more stacks than that.
FRAMES_MAX = 256
STACKS_MAX = 200_000
# A connection that says nothing for so long is closed.
SILENCE_SECONDS = 60
FIELDS = ("prod", "ver", "guid", "type", "config", "build_id", "time", "reason", "trigger", "complete", "covered", "live_bytes",
          "peak_bytes", "processes")
NUMBERS = ("live_bytes", "peak_bytes", "processes")
FIELD_MAX_BYTES = 4096
STACKS_SHOWN = 30
FRAMES_SHOWN = 12


class BadReport(Exception):
    """What came is no report; its text says why."""


def unpack(data):
    """A gzipped trace, parsed."""
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            text = stream.read(TRACE_MAX_BYTES + 1)
        if len(text) > TRACE_MAX_BYTES:
            raise BadReport(f"the trace unpacks to more than {TRACE_MAX_BYTES >> 20} MiB")
        trace = json.loads(text)
        if not isinstance(trace["traceEvents"], list):
            raise BadReport("the trace has no traceEvents")
        return trace
    except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadReport(f"the trace is not gzipped JSON of memory-infra: {error}") from error


def parse(content_type, body):
    """A multipart body as ({field: text}, trace bytes)."""
    if not content_type.startswith("multipart/form-data"):
        raise BadReport("multipart/form-data is wanted")
    head = b"Content-Type: " + content_type.encode("latin-1", "replace") + b"\r\nMIME-Version: 1.0\r\n\r\n"
    boundary = email.parser.BytesHeaderParser(policy=email.policy.HTTP).parsebytes(head).get_param("boundary")
    if not boundary or body.count(b"--" + str(boundary).encode("latin-1", "replace")) > PARTS_MAX:
        raise BadReport(f"multipart/form-data with a boundary and at most {PARTS_MAX} parts is wanted")
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    fields, trace = {}, None
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        data = part.get_payload(decode=True) or b""
        if name == "trace":
            trace = data
        elif name in FIELDS:
            fields[name] = data[:FIELD_MAX_BYTES].decode("utf-8", "replace").strip()
    if trace is None:
        raise BadReport("there is no part `trace`")
    if not re.fullmatch(r"[0-9a-f]{32}", fields.get("guid", "")):
        raise BadReport("`guid` is no id of a report")
    if not fields.get("prod"):
        raise BadReport("there is no `prod`, the program's name")
    for name in NUMBERS:
        if not re.fullmatch("[0-9]{1,19}", fields.get(name) or "0"):
            raise BadReport(f"`{name}` is no number")
    return fields, trace


def stacks_in(data):
    """{frames, innermost first: [bytes, blocks]} of all processes of a gzipped trace; its maker is anybody."""
    try:
        return stacks_of(unpack(data))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise BadReport(f"the trace has heaps that are none: {error!r}") from error


def stacks_of(trace):
    sums = {}
    for event in trace["traceEvents"]:
        heap = event.get("args", {}).get("dumps", {}).get("heaps_v2") if event.get("ph") == "v" else None
        if not heap:
            continue
        names = {string["id"]: string["string"] for string in heap["maps"]["strings"]}
        nodes = {node["id"]: (names[node["name_sid"]], node.get("parent")) for node in heap["maps"]["nodes"]}
        known = {}
        for table in heap["allocators"].values():
            for node, size, count in zip(table["nodes"], table["sizes"], table["counts"]):
                if node not in known:
                    frames, at = [], node
                    while at is not None and len(frames) < FRAMES_MAX:
                        frames.append(str(nodes[at][0]))
                        at = nodes[at][1]
                    known[node] = tuple(frames)
                    if len(known) > STACKS_MAX:
                        raise ValueError(f"over {STACKS_MAX} stacks")
                total = sums.setdefault(known[node], [0, 0])
                total[0] += number(size)
                total[1] += number(count)
    return sums


def number(value):
    """A size: of chrome's traces some are hexadecimal words."""
    value = int(value, 16) if isinstance(value, str) else value
    if not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise ValueError("a size is no number")
    return value


class Store:
    """FOLDER/HASH.trace.json.gz, and FOLDER/HASH.json with the fields; a pair is whole once the second is there."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lock = threading.Lock()
        self.parsing = threading.Lock()  # one trace at a time is in memory
        for part in self.folder.glob(".part-*"):
            part.unlink()  # of a collector that was ended

    def _put(self, name, data):
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".part-", delete=False) as file:
            try:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                os.replace(file.name, self.folder / name)
            except OSError:
                os.unlink(file.name)
                raise
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)  # the answer is a promise
        finally:
            os.close(folder)

    def stacks(self, data):
        with self.parsing:
            return stacks_in(data)

    def add(self, fields, trace):
        """Keep a report; its id. The same content is kept once, with every guid that it came under."""
        self.stacks(trace)  # what cannot be added up later is refused now
        key = hashlib.sha256(trace).hexdigest()
        with self.lock:
            known = self.read(key)
            guids = sorted({*known["guids"], fields["guid"]}) if known else [fields["guid"]]
            if not known:
                self._put(f"{key}.trace.json.gz", trace)
            kept = known or {**fields, "id": key, "trace_bytes": len(trace)}
            self._put(f"{key}.json", json.dumps({**kept, "guids": guids}).encode())
        return key

    def read(self, key):
        """The fields of a report; None: there is no such one that is whole."""
        if not re.fullmatch(r"[0-9a-f]{64}", key):
            return None
        try:
            return json.loads((self.folder / f"{key}.json").read_text())
        except (OSError, ValueError):
            return None

    def trace(self, key):
        return (self.folder / f"{key}.trace.json.gz").read_bytes()

    def all(self):
        reports = [report for path in self.folder.glob("*.json") if (report := self.read(path.stem))]
        return sorted(reports, key=lambda report: report.get("time", ""), reverse=True)

    def merged(self, prod, build):
        """Who holds what, over all dumps of a program and build: [(mean bytes a dump, mean blocks, dumps, frames)]."""
        reports = [report for report in self.all() if report.get("prod") == prod and report.get("build_id") == build]
        sums = {}
        for report in reports:
            for frames, (size, count) in self.stacks(self.trace(report["id"])).items():
                total = sums.setdefault(frames, [0, 0, 0])
                total[0] += size
                total[1] += count
                total[2] += 1
        rows = [(size // len(reports), count // len(reports), dumps, frames) for frames, (size, count, dumps) in sums.items()]
        return reports, sorted(rows, reverse=True)


def size_text(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.1f} {unit}" if unit != "B" else f"{count} B"
        count /= 1024
    return ""


def page(title, body):
    return ("<!doctype html><meta charset=utf-8><title>" + html.escape(title) + "</title><style>body{font:14px sans-serif;margin:2em}"
            "td,th{padding:.2em .8em;text-align:left;vertical-align:top}.n{text-align:right}</style><h1>" + html.escape(title) + "</h1>"
            + body).encode()


def list_page(store):
    rows = []
    for report in store.all():
        query = urllib.parse.urlencode({"prod": report.get("prod", ""), "build": report.get("build_id", "")})
        cells = [report.get("time", ""), report.get("trigger") or report.get("reason", ""),
                 size_text(int(report.get("live_bytes") or 0)), size_text(report["trace_bytes"])]
        rows.append(
            f"<tr><td><a href='/report?{html.escape(query)}'>{html.escape(report.get('prod', ''))}</a>"
            f"<td>{html.escape(report.get('build_id', '')[:12])}" + "".join(f"<td>{html.escape(cell)}" for cell in cells)
            + f"<td><a href='/trace/{report['id']}'>trace.json.gz</a>")
    if not rows:
        return page("memlog reports", "<p>None yet: <code>memlog run --upload=http://THIS-ADDRESS/report -- PROGRAM</code> sends them.")
    return page("memlog reports", "<table><tr><th>program<th>build<th>time<th>why<th>live<th>size<th>" + "".join(rows) + "</table>")


def report_json(prod, build, reports, rows):
    """What `memlog report --json` says of a dump, of the mean of them all: `tree` and the one process have live figures and
    stacks as there; beside them the ids of the dumps, and each stack with the number of dumps that it stands in."""
    live = {"live_bytes": sum(row[0] for row in rows), "live_blocks": sum(row[1] for row in rows)}
    stacks = [{"live_bytes": size, "live_blocks": count, "dumps": dumps, "frames": [{"function": frame} for frame in frames]}
              for size, count, dumps, frames in rows]
    return {"memlog": 1, "build_id": build,
            "dump": {"time": reports[0].get("time", ""), "reason": "merged", "merged_dumps": len(reports),
                     "complete": all(report.get("complete") == "true" for report in reports),
                     "covered": all(report.get("covered") == "true" for report in reports)},
            "tree": {**live, "stacks": stacks},
            "processes": [{"id": 1, "name": prod, **live, "stacks": stacks}],
            "dumps": [report["id"] for report in reports], **live,
            "stacks": [{"live_bytes": size, "live_blocks": count, "dumps": dumps, "frames": list(frames)}
                       for size, count, dumps, frames in rows]}


def report_page(prod, build, reports, rows):
    total = sum(row[0] for row in rows) or 1
    lines = [
        f"<tr><td class=n>{100 * size / total:.1f} %<td class=n>{size_text(size)}<td class=n>{dumps}"
        f"<td>{' &lt; '.join(html.escape(frame) for frame in frames[:FRAMES_SHOWN])}"
        for size, _, dumps, frames in rows[:STACKS_SHOWN]]
    query = html.escape(urllib.parse.urlencode({"prod": prod, "build": build}))
    return page(f"{prod} {build[:12]}", f"<p><a href='/'>all reports</a>, <a href='/api/report?{query}'>this as JSON</a>"
                f"<p>{len(reports)} dump{'s' if len(reports) != 1 else ''}, {size_text(total)} live in each on average</p>"
                "<table><tr><th>share<th>mean live<th>dumps<th>stack" + "".join(lines) + "</table>")


class Handler(http.server.BaseHTTPRequestHandler):
    server_version = "memlog-collector"
    timeout = SILENCE_SECONDS

    def reply(self, status, body, kind="text/plain; charset=utf-8"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        self.end_headers()
        self.wfile.write(body)

    def discard(self, length):
        """Take what is still coming, within bounds: closed upon it, the answer would be lost on its way."""
        self.connection.settimeout(DISCARD_SECONDS)
        left = min(length, DISCARD_BYTES_MAX)
        try:
            while left > 0 and (piece := self.rfile.read(min(left, 1 << 16))):
                left -= len(piece)
        except OSError:
            pass

    def do_POST(self):
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            length = -1
        if length < 0:
            self.reply(411, b"a Content-Length is wanted\n")
            return
        if length > self.server.body_max_bytes:
            self.close_connection = True
            self.reply(413, b"too large\n")
            self.discard(length)
            return
        body = self.rfile.read(length)
        if len(body) < length:
            return  # who sends it is gone
        try:
            key = self.server.store.add(*parse(self.headers.get("Content-Type", ""), body))
        except BadReport as error:
            self.reply(400, f"{error}\n".encode())
        except OSError as error:
            self.reply(507, f"cannot be stored: {error}\n".encode())
        else:
            self.reply(200, key.encode() + b"\n")

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(address.query))
        store = self.server.store
        if address.path == "/":
            self.reply(200, list_page(store), "text/html; charset=utf-8")
        elif address.path == "/api/reports":
            self.reply(200, json.dumps(store.all()).encode(), "application/json")
        elif address.path in ("/report", "/api/report"):
            prod, build = query.get("prod", ""), query.get("build", "")
            reports, rows = store.merged(prod, build)
            if not reports:
                self.reply(404, b"there is no dump of that program and build\n")
            elif address.path == "/report":
                self.reply(200, report_page(prod, build, reports, rows), "text/html; charset=utf-8")
            else:
                self.reply(200, json.dumps(report_json(prod, build, reports, rows)).encode(), "application/json")
        elif address.path.startswith("/trace/") and store.read(address.path[7:]):
            self.reply(200, store.trace(address.path[7:]), "application/gzip")
        else:
            self.reply(404, b"there is nothing here\n")

    def log_message(self, *_):
        pass


def serve(folder, address="127.0.0.1", port=0, body_max_bytes=BODY_MAX_BYTES):
    """A server that is ready to serve_forever()."""
    server = http.server.ThreadingHTTPServer((address, port), Handler)
    server.store = Store(folder)
    server.body_max_bytes = body_max_bytes
    return server


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--max-bytes", type=int, default=BODY_MAX_BYTES)
    parser.add_argument("folder")
    words = parser.parse_args()
    try:
        server = serve(words.folder, words.address, words.port, words.max_bytes)
    except (OSError, OverflowError) as error:
        sys.exit(f"collector: {words.folder}, {words.address}:{words.port}: {error}")
    print(f"http://{words.address}:{server.server_address[1]}/", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
