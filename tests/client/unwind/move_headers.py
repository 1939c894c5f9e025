"""Writes a library anew as BOLT writes programs: with its program headers in a segment of their own, far behind the rest.

move_headers.py FROM TO"""
import struct
import sys

PAGE = 4096
FAR = 4 << 20
PT_LOAD, PT_PHDR = 1, 6
READ = 4
HEADER = struct.Struct("<IIQQQQQQ")
PHOFF_AT, PHNUM_AT = 32, 56


def main():
    source, target = sys.argv[1:]
    with open(source, "rb") as file:
        data = bytearray(file.read())
    (offset,) = struct.unpack_from("<Q", data, PHOFF_AT)
    (count,) = struct.unpack_from("<H", data, PHNUM_AT)
    rows = [HEADER.unpack_from(data, offset + i * HEADER.size) for i in range(count)]
    end = max(len(data), max(row[3] + row[6] for row in rows if row[0] == PT_LOAD)) + FAR
    at = -(-end // PAGE) * PAGE  # in the file and in memory
    rows = [row for row in rows if row[0] != PT_PHDR]
    size = (len(rows) + 2) * HEADER.size
    own = [(PT_PHDR, READ, at, at, at, size, size, 8)]
    loads = [row for row in rows if row[0] == PT_LOAD] + [(PT_LOAD, READ, at, at, at, size, size, PAGE)]
    others = [row for row in rows if row[0] != PT_LOAD]
    struct.pack_into("<Q", data, PHOFF_AT, at)
    struct.pack_into("<H", data, PHNUM_AT, len(own + loads + others))
    data += bytes(at - len(data))
    for row in own + loads + others:
        data += HEADER.pack(*row)
    with open(target, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main()
