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
import tempfile
import threading
import urllib.parse

# Ten times what memlog sends unless told otherwise.
BODY_MAX_BYTES = 100 * 1000 * 1000
# What is taken, and how long is waited for it, of a body that is refused for its size.
DISCARD_BYTES_MAX = 256 << 20
DISCARD_SECONDS = 10
# A trace that unpacks to more than this is a bomb.
TRACE_MAX_BYTES = 1 << 30
FIELDS = ("prod", "ver", "guid", "type", "config", "build_id", "time", "reason", "trigger", "complete", "live_bytes",
          "peak_bytes", "processes")
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
            raise BadReport("the trace unpacks to more than a gigabyte")
        trace = json.loads(text)
        if not isinstance(trace["traceEvents"], list):
            raise BadReport("the trace has no traceEvents")
        return trace
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise BadReport(f"the trace is not gzipped JSON of memory-infra: {error}") from error


def parse(content_type, body):
    """A multipart body as ({field: text}, trace bytes)."""
    if not content_type.startswith("multipart/form-data"):
        raise BadReport("multipart/form-data is wanted")
    head = b"Content-Type: " + content_type.encode("latin-1", "replace") + b"\r\nMIME-Version: 1.0\r\n\r\n"
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
    return fields, trace


def stacks_of(trace):
    """{frames, innermost first: [bytes, blocks]} of all processes of a trace."""
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
                    while at is not None and len(frames) < len(nodes):
                        frames.append(nodes[at][0])
                        at = nodes[at][1]
                    known[node] = tuple(frames)
                total = sums.setdefault(known[node], [0, 0])
                total[0] += size
                total[1] += count
    return sums


class Store:
    """FOLDER/HASH.trace.json.gz, and FOLDER/HASH.json with the fields; a pair is whole once the second is there."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lock = threading.Lock()

    def _put(self, name, data):
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".part-", delete=False) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, self.folder / name)

    def add(self, fields, trace):
        """Keep a report; its id. The same content is kept once, with every guid that it came under."""
        unpack(trace)
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
        path = self.folder / f"{key}.json"
        return json.loads(path.read_text()) if re.fullmatch(r"[0-9a-f]{64}", key) and path.exists() else None

    def trace(self, key):
        return (self.folder / f"{key}.trace.json.gz").read_bytes()

    def all(self):
        reports = [json.loads(path.read_text()) for path in self.folder.glob("*.json") if len(path.stem) == 64]
        return sorted(reports, key=lambda report: report.get("time", ""), reverse=True)

    def merged(self, prod, build):
        """Who holds what, over all dumps of a program and build: [(mean bytes a dump, mean blocks, dumps, frames)]."""
        reports = [report for report in self.all() if report.get("prod") == prod and report.get("build_id") == build]
        sums = {}
        for report in reports:
            for frames, (size, count) in stacks_of(unpack(self.trace(report["id"]))).items():
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
    return page("memlog reports", "<table><tr><th>program<th>build<th>time<th>why<th>live<th>size<th>" + "".join(rows) + "</table>")


def report_json(prod, build, reports, rows):
    """What `memlog report --json` says of a dump, of the mean of them all: `tree` and the one process have live figures and
    stacks as there; beside them the ids of the dumps, and each stack with the number of dumps that it stands in."""
    live = {"live_bytes": sum(row[0] for row in rows), "live_blocks": sum(row[1] for row in rows)}
    stacks = [{"live_bytes": size, "live_blocks": count, "dumps": dumps, "frames": [{"function": frame} for frame in frames]}
              for size, count, dumps, frames in rows]
    return {"memlog": 1, "build_id": build,
            "dump": {"time": reports[0].get("time", ""), "reason": "merged", "merged_dumps": len(reports),
                     "complete": all(report.get("complete") == "true" for report in reports)},
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
    return page(f"{prod} {build[:12]}", f"<p>{len(reports)} dumps, {size_text(total)} live in each on average</p>"
                "<table><tr><th>share<th>mean live<th>dumps<th>stack" + "".join(lines) + "</table>")


class Handler(http.server.BaseHTTPRequestHandler):
    server_version = "memlog-collector"

    def reply(self, status, body, kind="text/plain; charset=utf-8"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
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
            self.reply(411, b"a Content-Length is wanted\n")
            return
        if length > self.server.body_max_bytes:
            self.close_connection = True
            self.reply(413, b"too large\n")
            self.discard(length)
            return
        try:
            key = self.server.store.add(*parse(self.headers.get("Content-Type", ""), self.rfile.read(length)))
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
    server = serve(words.folder, words.address, words.port, words.max_bytes)
    print(f"http://{words.address}:{server.server_address[1]}/", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
