"""A trace's heap profiles as Perfetto's trace_processor takes them in: the rules of its profile packets, written down again.

They are those of its importer: numbers hold from the packet that clears their sequence's state; a packet's samples wait until one
comes that is not `continued`; figures are cumulative by stack, and a number that is new for a stack begins at what the stack had.
"""
import collections

import published

CLEARED, NEEDS_STATE = 1, 2
KINDS = ("function_names", "frames", "callstacks", "build_ids", "mapping_paths", "mappings")
ART = "com.android.art"

Row = collections.namedtuple("Row", "ts pid heap stack count size")


def value(message, name, missing=0):
    return (message.all(name) or [missing])[-1]


class Sequence:
    """What trace_processor keeps of one trusted_packet_sequence_id since its state was cleared."""

    def __init__(self):
        self.interned = {kind: {} for kind in KINDS}
        self.before = collections.defaultdict(lambda: (0, 0, 0, 0))  # of a stack: count, size, freed count, freed size
        self.base = {}  # of a number of a stack: where it began
        self.seen = set()
        self.waiting = []
        self.index = None


class Imported:
    def __init__(self, data):
        self.rows = []
        self.profiles = []  # (pid, heap, start, end)
        self.stats = collections.Counter()
        self.sequences = {}
        packets = self.packets = published.trace(data).all("packet")
        self.clocks = [self.clock(packet) for packet in packets if packet.all("clock_snapshot")]
        self.names = {}  # of a pid: the process's, by the tree, which goes before tracks
        self.tracks = collections.defaultdict(list)  # of a track: its values
        self.smaps = collections.Counter()
        # Interned data count as they are read, the rest as its time has come.
        for packet in packets:
            self.intern(packet)
        for packet in sorted(packets, key=lambda one: value(one, "timestamp")):
            self.take(packet)

    @staticmethod
    def clock(packet):
        clocks = {one.one("clock_id"): one.one("timestamp") for one in packet.all("clock_snapshot", "clocks")}
        return clocks[4]

    def intern(self, packet):
        number = value(packet, "trusted_packet_sequence_id")
        if value(packet, "sequence_flags") & CLEARED:
            self.sequences[number] = Sequence()
        for interned in packet.all("interned_data"):
            if number not in self.sequences:
                self.stats["interned_data_tokenizer_errors"] += 1
                continue
            for kind in KINDS:
                for entry in interned.all(kind):
                    self.sequences[number].interned[kind].setdefault(entry.one("iid"), entry)
        packet.sequence = self.sequences.get(number)

    def take(self, packet):
        for process in packet.all("process_tree", "processes"):
            first, *others = process.all("cmdline")
            self.names[process.one("pid")] = first if others else first.split(" ")[0]
        for event in packet.all("track_event"):
            self.tracks[event.one("track_uuid")].append((value(packet, "timestamp"), value(event, "counter_value", None)))
        for smaps in packet.all("smaps_packet"):
            for entry in smaps.all("entries"):
                self.smaps[value(packet, "timestamp"), smaps.one("pid"), entry.one("start_address")] += 1
        for profile in packet.all("profile_packet"):
            self.profile(packet.sequence, profile)

    def profile(self, sequence, profile):
        index = value(profile, "index")
        if index != (0 if sequence.index is None else sequence.index + 1):
            self.stats["heapprofd_missing_packet"] += 1
        sequence.index = index
        for dump in profile.all("process_dumps"):
            pid, heap, end = dump.one("pid"), value(dump, "heap_name", "unknown"), dump.one("timestamp")
            window = (pid, heap, value(dump, "start_timestamp", end), end)
            if window not in self.profiles:
                self.profiles.append(window)
            self.stats["heapprofd_buffer_overran", pid] += value(dump, "buffer_overran", False)
            self.stats["heapprofd_client_disconnected", pid] += value(dump, "disconnected", False)
            self.stats["heapprofd_unwind_samples", pid] += sum(dump.all("stats", "heap_samples"))
            for sample in dump.all("samples"):
                sequence.waiting.append((end, pid, heap, sample))
        if not value(profile, "continued", False):
            for waiting in sequence.waiting:
                self.add(sequence, *waiting)
            sequence.waiting = []

    def mapping(self, sequence, number):
        mapping = sequence.interned["mappings"][number]
        texts = [sequence.interned["mapping_paths"][path].all("str")[0] for path in mapping.all("path_string_ids")]
        build_id = value(mapping, "build_id")
        return (
            sequence.interned["build_ids"][build_id].all("str")[0] if build_id else "", "/".join(texts),
            *(value(mapping, name) for name in ("start", "end", "exact_offset", "start_offset", "load_bias")))

    def stack(self, sequence, number):
        frames = []
        for frame in sequence.interned["callstacks"][number].all("frame_ids"):
            entry = sequence.interned["frames"][frame]
            name = value(entry, "function_name_id")
            frames.append((
                self.mapping(sequence, entry.one("mapping_id")) if entry.all("mapping_id") else None, value(entry, "rel_pc", None),
                (sequence.interned["function_names"][name].all("str") or [""])[0] if name else ""))
        return tuple(frames)

    def add(self, sequence, ts, pid, heap, sample):
        number = sample.one("callstack_id")
        try:
            stack = self.stack(sequence, number)
        except KeyError:
            self.stats["stackprofile_invalid_callstack_id"] += 1
            return
        before = sequence.before[pid, stack]
        if (pid, number, heap, stack) not in sequence.seen:
            sequence.seen.add((pid, number, heap, stack))
            sequence.base[number] = before
        told = (value(sample, "alloc_count"), value(sample, "self_allocated"), -value(sample, "free_count"), -value(sample, "self_freed"))
        now = tuple(one + base for one, base in zip(told, sequence.base[number]))
        count, size, freed_count, freed_size = (one - other for one, other in zip(now, before))
        if count < 0 or size < 0 or freed_count > 0 or freed_size > 0:
            self.stats["heapprofd_malformed_packet"] += 1
            return
        if count or size:
            self.rows.append(Row(ts, pid, heap, stack, count, size))
        if heap != ART and (freed_count or freed_size):
            self.rows.append(Row(ts, pid, heap, stack, freed_count, freed_size))
        sequence.before[pid, stack] = now

    def live(self, pid, until, heap="libc.malloc"):
        return sum(row.size for row in self.rows if (row.pid, row.heap) == (pid, heap) and row.ts <= until)

    def total(self, pid, until, heap="libc.malloc"):
        return sum(row.size for row in self.rows if (row.pid, row.heap) == (pid, heap) and row.ts <= until and row.size > 0)
