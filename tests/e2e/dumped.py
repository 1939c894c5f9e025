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
NODE = {2: "id", 3: "parent", 4: "frame", 5: "module", 6: "address", 7: "string"}
NODE_DELTAS = (2, 3, 5, 6)
# Of live blocks, by stack: of their bytes what is resident, whole pages that it alone holds, its share of what pages hold beyond blocks.
CELL = {2: "node", 6: "live_bytes", 23: "resident_private_bytes", 24: "resident_shared_bytes", 25: "alone_bytes", 26: "waste_bytes"}
HOLDING = {2: "region", 3: "kind", 4: "node", 5: "string", 6: "mapped_bytes", 7: "private_bytes", 8: "shared_bytes"}


def region_of(data):
    found = message(data)
    row = {name: (found[number] or [0])[-1] for number, name in REGION.items()}
    return row | {"name": (found[7] or [b""])[-1].decode(errors="replace")}


def module_of(data):
    found = message(data)
    bias = signed((found[4] or [0])[-1])
    return {"id": found[1][0], "start": (found[2] or [0])[-1], "end": (found[3] or [0])[-1], "bias": bias, "path": (found[6] or [b""])[-1].decode(errors="replace")}


class Process:
    """What a dump has of one process, row by row."""

    def __init__(self):
        self.path = ""
        self.regions, self.holdings, self.strings, self.cells = [], [], [], []
        self.nodes, self.modules = {}, {}

    def add(self, table):
        self.modules |= {module["id"]: module for module in map(module_of, table[3])}
        self.strings += [text.decode(errors="replace") for text in table[4]]
        for piece in table[5]:
            self.nodes |= {node["id"]: node for node in columns(piece, NODE, NODE_DELTAS)}
        for piece in table[6]:
            self.cells += columns(piece, CELL, deltas=(2,))
        self.regions += [region_of(one) for one in table[7]]
        for piece in table[8]:
            self.holdings += columns(piece, HOLDING, deltas=(2, 4))

    def frames(self, node):
        """(the path of its file, an address in that file) of each frame of code, innermost first. The program's own path is not told."""
        found = []
        while node:
            row = self.nodes[node]
            if row["module"]:
                module = self.modules[row["module"]]
                found.append((module["path"] or self.path, row["address"] - module["bias"]))
            node = row["parent"]
        return found


def processes(dump):
    """pid -> what the dump has of it; of one pid the last."""
    by_id, pids = collections.defaultdict(Process), {}
    for number, packet in fields(pathlib.Path(dump).read_bytes()):
        for ours in message(packet)[OURS] if number == 1 else ():
            told = message(ours)
            kind, body = told[2][0], message(told[3][0])
            if kind == PROCESS:
                pids[body[3][0]] = body[1][0]
                by_id[body[1][0]].path = (body[14] or [b""])[-1].decode(errors="replace")
            elif kind == TABLE:
                by_id[body[1][0]].add(body)
    return {pid: by_id[number] for pid, number in pids.items()}
