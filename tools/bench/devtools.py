"""Chromium's own account of its processes' memory (memory-infra), asked by its DevTools protocol. Standard library only."""
import base64
import json
import os
import socket
import struct

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


def memory_dump(port_file):
    """pid -> its totals in bytes."""
    port, path = port_file.read_text().split()
    link = Socket(int(port), path)
    config = {"includedCategories": ["disabled-by-default-memory-infra"], "excludedCategories": ["*"]}
    call(link, 1, "Tracing.start", traceConfig=config, transferMode="ReportEvents")
    call(link, 2, "Tracing.requestMemoryDump", levelOfDetail="light")
    _, events = call(link, 3, "Tracing.end")
    while not any(event["method"] == "Tracing.tracingComplete" for event in events):
        events.append(json.loads(link.receive()))
    found = {}
    for event in (one for told in events if told["method"] == "Tracing.dataCollected" for one in told["params"]["value"]):
        totals = event.get("args", {}).get("dumps", {}).get("process_totals") if isinstance(event.get("args", {}).get("dumps"), dict) else None
        if totals:
            found[event["pid"]] = {name: int(value, 16) for name, value in totals.items() if isinstance(value, str)}
    return found
