"""Chromium's own account of its processes' memory (memory-infra), asked by its DevTools protocol. Standard library only."""
import base64
import json
import os
import socket
import struct
import urllib.request

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class Socket:
    """A WebSocket to a server that is trusted: text messages alone."""

    def __init__(self, port, path):
        self.link = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.link.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self.link.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        if b" 101 " not in self.file.readline():
            raise RuntimeError("Chromium refuses DevTools")
        while self.file.readline().strip():
            pass

    def close(self):
        self.file.close()
        self.link.close()

    def send(self, text, kind=TEXT):
        data = text.encode()
        mask = os.urandom(4)
        size = bytes([128 | len(data)]) if len(data) < 126 else bytes([128 | 126]) + struct.pack(">H", len(data))
        self.link.sendall(bytes([128 | kind]) + size + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)))

    def receive(self):
        whole = b""
        while True:
            first, second = self.file.read(2)
            count = second & 127
            if count == 126:
                (count,) = struct.unpack(">H", self.file.read(2))
            elif count == 127:
                (count,) = struct.unpack(">Q", self.file.read(8))
            data = self.file.read(count)
            if first & 15 == PING:
                self.send(data.decode(), PONG)
            elif first & 15 == CLOSE:
                raise RuntimeError("Chromium has closed DevTools")
            else:
                whole += data
                if first & 128:
                    return whole.decode()


def call(link, number, method, **parameters):
    """Its result, and the events that came before it."""
    link.send(json.dumps({"id": number, "method": method, "params": parameters}))
    events = []
    while True:
        message = json.loads(link.receive())
        if message.get("id") == number:
            if "error" in message:
                raise RuntimeError(f"{method}: {message['error']}")
            return message["result"], events
        events.append(message)


def titles(port_file):
    """Of the pages that are open."""
    port = port_file.read_text().split()[0]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=60) as answer:
        return [page["title"] for page in json.load(answer)]


def ask_page(port_file, method, **parameters):
    """The one page that is open."""
    port = port_file.read_text().split()[0]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=60) as answer:
        (page,) = [one for one in json.load(answer) if one["type"] == "page"]
    link = Socket(int(port), "/" + page["webSocketDebuggerUrl"].split("/", 3)[3])
    result, _ = call(link, 1, method, **parameters)
    link.close()
    return result


def evaluate(port_file, expression):
    """What the page says to it, by value."""
    return ask_page(port_file, "Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")


def picture(port_file):
    """What the page looks like now, as a PNG."""
    return base64.b64decode(ask_page(port_file, "Page.captureScreenshot", format="png")["data"])


def number(attribute):
    """Of a figure of an allocator: hexadecimal text where it counts."""
    return int(attribute["value"], 16) if attribute.get("type") == "scalar" else attribute.get("value")


class Said:
    """What Chromium says of one of its processes: totals, and allocator -> its figures ("malloc/allocated_objects" -> "size")."""

    def __init__(self):
        self.totals, self.allocators = {}, {}

    def size(self, allocator, figure="size"):
        return self.allocators.get(allocator, {}).get(figure, 0)

    def add(self, dumps):
        self.totals |= {name: int(value, 16) for name, value in dumps.get("process_totals", {}).items() if isinstance(value, str)}
        for name, told in dumps.get("allocators", {}).items():
            self.allocators[name] = {figure: number(one) for figure, one in told.get("attrs", {}).items()}


def memory_dump(port_file, level="light"):
    """pid -> what it says; `level` as memory-infra has them. A dump of level "detailed" tells allocators, too."""
    port, path = port_file.read_text().split()
    link = Socket(int(port), path)
    config = {"includedCategories": ["disabled-by-default-memory-infra"], "excludedCategories": ["*"]}
    call(link, 1, "Tracing.start", traceConfig=config, transferMode="ReportEvents")
    call(link, 2, "Tracing.requestMemoryDump", levelOfDetail=level)
    _, events = call(link, 3, "Tracing.end")
    while not any(event["method"] == "Tracing.tracingComplete" for event in events):
        events.append(json.loads(link.receive()))
    link.close()
    found = {}
    for event in (one for told in events if told["method"] == "Tracing.dataCollected" for one in told["params"]["value"]):
        dumps = event.get("args", {}).get("dumps")
        if isinstance(dumps, dict):
            found.setdefault(event["pid"], Said()).add(dumps)
    return found
