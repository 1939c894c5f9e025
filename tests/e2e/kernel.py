"""A process's memory as the kernel tells it: what a dump is held against."""
import collections
import pathlib
import re
import struct

PAGE = 4096
FIGURES = ("Size", "Rss", "Pss", "Private_Clean", "Private_Dirty", "Shared_Clean", "Shared_Dirty", "Anonymous", "Swap")
PRESENT, EXCLUSIVE = 1 << 63, 1 << 56
HEAD = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ (\d+) *(.*)")


class Region:
    """One mapping of smaps; figures in KiB."""

    def __init__(self, line):
        start, end, self.permissions, inode, self.name = HEAD.match(line).groups()
        self.start, self.end, self.inode = int(start, 16), int(end, 16), int(inode)
        self.kb = collections.Counter()

    @property
    def private_kb(self):
        return self.kb["Private_Clean"] + self.kb["Private_Dirty"]

    @property
    def shared_kb(self):
        return self.kb["Shared_Clean"] + self.kb["Shared_Dirty"]

    def __repr__(self):
        return f"{self.start:x}-{self.end:x} {self.permissions} {self.name!r} {dict(self.kb)}"


def smaps(pid):
    regions = []
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text(errors="replace").splitlines():
        if HEAD.match(line):
            regions.append(Region(line))
        else:
            key, _, value = line.partition(":")
            if key in FIGURES:
                regions[-1].kb[key] = int(value.split()[0])
    return regions


def totals(regions):
    """The names of the report's JSON, in bytes."""
    return {
        "private_bytes": 1024 * sum(region.private_kb for region in regions),
        "shared_bytes": 1024 * sum(region.shared_kb for region in regions),
        "proportional_bytes": 1024 * sum(region.kb["Pss"] for region in regions),
        "swapped_bytes": 1024 * sum(region.kb["Swap"] for region in regions),
    }


def resident(pid, start, size):
    """Bytes of whole pages from there: (private, shared)."""
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as file:
        file.seek(start // PAGE * 8)
        data = file.read(-(-size // PAGE) * 8)
    private = shared = 0
    for (entry,) in struct.iter_unpack("<Q", data):
        if entry & PRESENT:
            private += PAGE if entry & EXCLUSIVE else 0
            shared += 0 if entry & EXCLUSIVE else PAGE
    return private, shared
