"""What a live process was given: its descriptors by number and kind, and its environment as it lies in its own memory, where
getenv looks. As a module: look(pid). As a program, `witness.py [COMMAND...]`: prints what it sees of its parent and of itself, then
becomes COMMAND. Standard library only.

Ours (at most four, close-on-exec, between 900 and 1023 or just under a lower limit) are held to that and left out."""
import os
import pathlib
import re
import struct
import subprocess
import sys

OURS_MAX = 4
OURS_LOWEST, OURS_HIGHEST = 900, 1023
LIMIT_MARGIN = 16


def kind_of(target):
    """What a descriptor leads to, without what differs from run to run."""
    return re.sub(r":\[.*", "", re.sub(r"\d+", "N", target))


def is_ours(pid, number):
    limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
    soft = int(re.search(r"Max open files\s+(\d+)", limits).group(1))
    if soft <= OURS_LOWEST:
        return number >= soft - LIMIT_MARGIN
    return OURS_LOWEST <= number <= OURS_HIGHEST


def descriptors(pid):
    """number -> kind of what the program was given or opened; AssertionError where ours are not as promised."""
    found, ours = {}, []
    folder = pathlib.Path(f"/proc/{pid}/fd")
    for entry in sorted(folder.iterdir(), key=lambda path: int(path.name)):
        try:
            target = os.readlink(entry)
            flags = int(re.search(r"flags:\s*(\d+)", pathlib.Path(f"/proc/{pid}/fdinfo/{entry.name}").read_text()).group(1), 8)
        except OSError:
            continue  # closed meanwhile
        if is_ours(pid, int(entry.name)):
            assert flags & os.O_CLOEXEC, f"{entry.name} of {pid} is not close-on-exec: {target}"
            ours.append(target)
        else:
            found[int(entry.name)] = kind_of(target)
    assert len(ours) <= OURS_MAX, ours
    return found


def symbol_address(path, names):
    """The first of the names that a file defines, as an address in the file; None if it has none."""
    listing = subprocess.run(["nm", "-D", "--defined-only", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    defined = {fields[2].partition("@")[0]: int(fields[0], 16) for fields in map(str.split, listing.stdout.splitlines()) if len(fields) == 3}
    return next((defined[name] for name in names if name in defined), None)


def load_address(pid, path):
    """Where the file's first page is mapped; 0 for an executable that is linked to a fixed place."""
    with open(path, "rb") as file:
        header = file.read(18)
    if struct.unpack_from("<H", header, 16)[0] == 2:  # ET_EXEC
        return 0
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[5] == path and int(fields[2], 16) == 0:
            return int(fields[0].partition("-")[0], 16)
    raise LookupError(path)


def environment(pid):
    """The strings that `environ` of a process points at, sorted. None where we may not read its memory."""
    program = os.readlink(f"/proc/{pid}/exe")
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
    libc = next(line.split(None, 5)[5] for line in maps.splitlines() if line.endswith("/libc.so.6"))
    for path in (program, libc):  # a program that has copied the variable has it for everybody
        at = symbol_address(path, ("environ", "__environ"))
        if at is not None:
            break
    try:
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    except PermissionError:
        return None
    try:
        def word(address):
            return struct.unpack("<Q", os.pread(memory, 8, address))[0]

        def string(address):
            text = b""
            while b"\0" not in text:
                text += os.pread(memory, 64, address + len(text))
            return text.partition(b"\0")[0]

        strings = []
        vector = word(load_address(pid, path) + at)
        while word(vector):
            strings.append(string(word(vector)))
            vector += 8
        return sorted(strings)
    finally:
        os.close(memory)


def look(pid):
    return {"descriptors": descriptors(pid), "environment": environment(pid)}


def main():
    parent = os.getppid()
    print("parent's descriptors", descriptors(parent))
    print("parent's environment", environment(parent))
    print("own descriptors", descriptors(os.getpid()))
    print("own environment", sorted(os.environb.items()))
    sys.stdout.flush()
    if len(sys.argv) > 1:
        os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
