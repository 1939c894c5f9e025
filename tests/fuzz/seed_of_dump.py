#!/usr/bin/python3
"""A dump file as a line for tests/fuzz/seeds/tools_command.txt: tests/fuzz/seed_of_dump.py NAME LINE DUMP [PREFIX=OTHER...].

LINE is the number of the command line in tests/fuzz/tools_command_fuzz.c. Folders of this machine are replaced by others of the same
length that exist nowhere, and build ids by others, so that no file of it is opened: /usr/, /lib/ and /tmp/ always, PREFIX as told.
"""
import pathlib
import re
import sys

MEMLOG = 28012  # TracePacket.memlog, ipc/trace/trace.proto
END = 6  # MemlogKind.MEMLOG_END
SEED_MAX_BYTES = 8192  # tests/fuzz/replay.c


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of each field: bytes or a number."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            count, at = varint(data, at)
            value, at = data[at:at + count], at + count
        else:
            count = {1: 8, 5: 4}[key & 7]
            value, at = int.from_bytes(data[at:at + count], "little"), at + count
        yield key >> 3, value


def packets(dump):
    """(kind, body) of each packet of memlog's but the end, which the fuzzer makes itself; kind 0: a whole packet of Perfetto's."""
    for number, packet in fields(dump):
        found = dict(fields(packet)).get(MEMLOG) if number == 1 else None
        if found is None:
            yield 0, packet
            continue
        memlog = dict(fields(found))
        if memlog[2] != END:
            yield memlog[2], memlog[3]


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    name, line, path, *others = sys.argv[1:]
    replaced = [word.split("=", 1) for word in ("/usr/=/non/", "/lib/=/non/", "/tmp/=/non/", *others)]
    seed = bytes([int(line), 0, 0])
    dump = pathlib.Path(path).read_bytes()
    build_ids = set(re.findall(rb"\x2a\x14(.{20})", dump, re.S))  # MemlogModule.build_id
    for kind, body in packets(dump):
        for old, new in replaced:
            body = body.replace(old.encode(), new.encode())
        for build_id in build_ids:
            other = bytes(255 - byte for byte in build_id)
            body = body.replace(build_id, other).replace(build_id.hex().encode(), other.hex().encode())
        whole = bytes([kind]) + len(body).to_bytes(2, "little") + body
        if kind or len(seed) + len(whole) < SEED_MAX_BYTES // 2:
            seed += whole
    if len(seed) > SEED_MAX_BYTES:
        sys.exit(f"{path}: {len(seed)} bytes, {SEED_MAX_BYTES} is the most")
    rows = [seed[at:at + 36].hex(" ") for at in range(0, len(seed), 36)]
    print(f"{name}: " + "\n  ".join(rows))


if __name__ == "__main__":
    main()
