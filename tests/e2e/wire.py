"""The control socket's messages by hand, for tests that say what no client of ours would (mojom_like_idl/contracts/heap_client.mojom)."""
import array
import os
import pathlib
import re
import socket

CONTRACT = pathlib.Path(__file__).resolve().parent.parent.parent / "mojom_like_idl" / "contracts" / "heap_client.mojom"
VERSION = int(re.search(r"kClientVersion = (\d+);", CONTRACT.read_text()).group(1))
HELLO, FORKED, NOT_PROFILED, DUMP_ASKED, CONNECTED = 1, 2, 3, 4, 9


def number(value):
    if value < 128:
        return bytes([value])
    if value < 256:
        return b"\xcc" + bytes([value])
    return (b"\xcd" + value.to_bytes(2, "big")) if value < 65536 else (b"\xce" + value.to_bytes(4, "big"))


def packet(method, request, *fields):
    """Fields are msgpack already."""
    body = bytes([0x90 + len(fields)]) + b"".join(fields)
    return b"\x01\x01\0\0" + method.to_bytes(4, "little") + request.to_bytes(4, "little") + len(body).to_bytes(4, "little") + body


def hello():
    return packet(HELLO, 1, number(VERSION), number(os.getppid()))


def dump_asked(reason):
    return packet(DUMP_ASKED, 0, number(VERSION), b"\xc4\x00", b"\xc4" + bytes([len(reason)]) + reason, b"\0")


def not_profiled(path):
    return packet(NOT_PROFILED, 0, b"\0", bytes([0xa0 + len(path)]) + path)


def forked(parent_pid, serial=1):
    """Its three descriptors go with it: a pipe's read end, staging, control page."""
    return packet(FORKED, 0, number(VERSION), number(parent_pid), number(serial), b"\x00", b"\x01", b"\x02", b"\xc4\x01x")


def connected():
    """One end of a pair goes with it."""
    return packet(CONNECTED, 0, number(VERSION), b"\x00")


def connect(path, timeout=20):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(timeout)
    connection.connect(path)
    return connection


def receive(connection):
    """One packet and the descriptors that came with it."""
    data, extra, _, _ = connection.recvmsg(4096, 4096)
    fds = array.array("i")
    for _, kind, content in extra:
        if kind == socket.SCM_RIGHTS:
            fds.frombytes(content[:len(content) - len(content) % fds.itemsize])
    return data, list(fds)


def send(connection, message, fds):
    connection.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
