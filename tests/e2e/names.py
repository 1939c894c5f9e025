"""Functions of the oracle's programs by their symbols, read by nm: what a dump's addresses are held against without memlog's own names."""
import bisect
import functools
import subprocess

import harness

ORACLE = harness.PROGRAMS / "oracle"
PROGRAMS = {"maps": ORACLE / "maps", "maps_early": ORACLE / "maps_early", "libmaps_early.so": ORACLE / "libmaps_early.so"}
# Entered by the C library's start code, no function of the program.
NOT_OURS = {"_start"}


@functools.cache
def functions(path):
    """(addresses, names) in order."""
    lines = subprocess.run(["nm", "-n", path], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    rows = [(int(line.split()[0], 16), line.split()[2]) for line in lines if len(line.split()) == 3 and line.split()[1] in "tT"]
    return [row[0] for row in rows], [row[1].partition(".")[0] for row in rows]


def name(path, address):
    addresses, found = functions(path)
    at = bisect.bisect_right(addresses, address) - 1
    return found[at] if at >= 0 else ""


def chain(frames):
    """The chain of the program's own functions that call mmap, innermost first; "": another library's function does. A frame is
    (path of its file, address behind a call in that file)."""
    own = [(PROGRAMS.get(path.rpartition("/")[2]), address) for path, address in frames]
    if not own or own[0][0] is None:
        return ""
    return "<".join(word for word in (name(path, address - 1) for path, address in own if path) if word not in NOT_OURS)


def routine(frames):
    """The function of the program that a thread begins with: the innermost frame of its stack's node, of which the address itself is told."""
    own = [(PROGRAMS.get(path.rpartition("/")[2]), address) for path, address in frames[:1]]
    return name(*own[0]) if own and own[0][0] else ""
