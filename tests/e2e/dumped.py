"""The rows of a dump that this tree adds to Perfetto's format, read by the field numbers of ipc/trace/trace.proto and by nothing of the tree."""
import collections
import pathlib

# TracePacket's field, and the kinds of what it holds.
OURS, PROCESS, TABLE = 28012, 2, 3

# What an owner other than live blocks is (MemlogHoldings.kind).
HOLDING_KINDS = ("mapped", "allocator", "stack", "memlog")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """Every (number, value) of a message; a value is an int or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            count, at = varint(data, at)
            value, at = data[at:at + count], at + count
        elif kind in (1, 5):
            count = 8 if kind == 1 else 4
            value, at = int.from_bytes(data[at:at + count], "little"), at + count
        else:
            raise AssertionError(f"wire type {kind}")
        yield number, value


def message(data):
    """number -> its values."""
    found = collections.defaultdict(list)
    for number, value in fields(data):
        found[number].append(value)
    return found


def numbers(data):
    """A packed list."""
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def signed(value):
    return (value >> 1) ^ -(value & 1)


def columns(data, names, deltas=()):
    """Rows of a piece of a table; `names`: column number -> name."""
    found = message(data)
    (count,) = found[1]
    rows = [dict.fromkeys(names.values(), 0) for _ in range(count)]
    for number, name in names.items():
        value = 0
        for row, told in zip(rows, numbers(b"".join(found[number])), strict=False):
            value = (value + signed(told)) % (1 << 64) if number in deltas else told
            row[name] = value
    return rows


REGION = {
    1: "start", 2: "end", 3: "permissions", 6: "inode", 8: "size_kb", 9: "resident_kb", 10: "proportional_kb", 11: "private_clean_kb",
    12: "private_dirty_kb", 13: "shared_clean_kb", 14: "shared_dirty_kb", 15: "anonymous_kb", 16: "swap_kb", 17: "heap_blocks",
    19: "heap_private_bytes", 20: "heap_shared_bytes", 21: "heap_pages_private_bytes", 22: "heap_pages_shared_bytes",
}
HOLDING = {2: "region", 3: "kind", 4: "node", 5: "string", 6: "mapped_bytes", 7: "private_bytes", 8: "shared_bytes"}


def region_of(data):
    found = message(data)
    row = {name: (found[number] or [0])[-1] for number, name in REGION.items()}
    return row | {"name": (found[7] or [b""])[-1].decode(errors="replace")}


def processes(dump):
    """pid -> {"regions", "holdings"} of the processes of a dump that still run; of one pid the last."""
    by_id, pids = {}, {}
    for number, packet in fields(pathlib.Path(dump).read_bytes()):
        for ours in message(packet)[OURS] if number == 1 else ():
            told = message(ours)
            kind, body = told[2][0], message(told[3][0])
            if kind == PROCESS:
                pids[body[3][0]] = body[1][0]
            elif kind == TABLE:
                entry = by_id.setdefault(body[1][0], {"regions": [], "holdings": []})
                entry["regions"] += [region_of(one) for one in body[7]]
                for piece in body[8]:
                    entry["holdings"] += columns(piece, HOLDING, deltas=(2, 4))
    return {pid: by_id.get(number, {"regions": [], "holdings": []}) for pid, number in pids.items()}
