"""The kernel's own count of calls, process by process: uprobes with a small BPF program behind each. Needs root; standard library only.

A probe is set behind the bytes that memlog replaces at a function's entry, so that memlog and the kernel count the same calls of the same
run. A probe at the entry itself would be overwritten by memlog's jump, and with it the program would crash.

Calls of a process are told apart by how often `marker` has returned in it: a function of memlog's library, which returns when hooks are in
place, once in each image that the process executes."""
import ctypes
import os
import pathlib
import re
import struct
import subprocess

LIBC = ctypes.CDLL(None, use_errno=True)
SYS_BPF, SYS_PERF_EVENT_OPEN = 321, 298
MAP_CREATE, MAP_NEXT_KEY, MAP_LOOKUP, PROGRAM_LOAD = 0, 4, 1, 5
MAP_HASH, PROGRAM_KPROBE = 1, 2
HELPER_LOOKUP, HELPER_UPDATE, HELPER_PID, HELPER_READ_USER = 1, 2, 14, 112
ENABLE, SET_BPF = 0x2400, 0x40042408
SOURCE = pathlib.Path("/sys/bus/event_source/devices/uprobe/type")

# Integer arguments in order, as the kernel keeps registers (struct pt_regs).
ARGUMENTS = (112, 104, 96, 88)
PLACE, STACK = 128, 152


class Refused(RuntimeError):
    """The kernel does not count here."""


def system_call(number, *arguments):
    result = LIBC.syscall(number, *arguments)
    if result < 0:
        raise Refused(os.strerror(ctypes.get_errno()))
    return result


def bpf(command, form, *fields):
    attributes = struct.pack(form, *fields).ljust(128, b"\0")
    return system_call(SYS_BPF, command, ctypes.create_string_buffer(attributes, len(attributes)), len(attributes))


# ---- programs, of the instructions that they need (linux/bpf.h)


def instruction(code, to=0, source=0, offset=0, value=0):
    return struct.pack("<BBhi", code, source << 4 | to, offset, value)


def move(to, source):
    return instruction(0xBF, to, source)


def move_value(to, value):
    return instruction(0xB7, to, 0, 0, value)


def load(to, source, offset):
    return instruction(0x79, to, source, offset)


def store(to, offset, source):
    return instruction(0x7B, to, source, offset)


def call(helper):
    return instruction(0x85, 0, 0, 0, helper)


def load_map(to, descriptor):
    return instruction(0x18, to, 1, 0, descriptor) + instruction(0)


def add(to, source):
    return instruction(0x0F, to, source)


def add_to(place, offset, source):
    """All processors at once."""
    return instruction(0xDB, place, source, offset)


def add_value(to, value):
    return instruction(0x07, to, 0, 0, value)


def skip_unless_zero(register, block):
    return instruction(0x55, register, 0, len(block) // 8, 0) + block


def skip_if_zero(register, block):
    return instruction(0x15, register, 0, len(block) // 8, 0) + block


FRAME, EXIT = 10, instruction(0x95)
KEY, VALUE, PROCESS, CALLER = -8, -24, -32, -40


def at_frame(to, offset):
    return move(to, FRAME) + add_value(to, offset)


def look_up(descriptor, key):
    return load_map(1, descriptor) + at_frame(2, key) + call(HELPER_LOOKUP)


def own_process():
    """Its id is in r7 and in the frame."""
    return call(HELPER_PID) + instruction(0x77, 0, 0, 0, 32) + move(7, 0) + store(FRAME, PROCESS, 7)


def set_value(descriptor, key, flags):
    return load_map(1, descriptor) + at_frame(2, key) + at_frame(3, VALUE) + move_value(4, flags) + call(HELPER_UPDATE)


def marking_program(marked):
    whole = own_process() + look_up(marked, PROCESS) + move_value(1, 0) + skip_if_zero(0, load(1, 0, 0))
    whole += add_value(1, 1) + store(FRAME, VALUE, 1) + set_value(marked, PROCESS, 0)
    return whole + move_value(0, 0) + EXIT


def if_near(text_bytes, block):
    """`block` where the function whose first instruction this is was called from within its own file."""
    read = at_frame(1, CALLER) + move_value(2, 8) + load(3, 6, STACK) + call(HELPER_READ_USER)
    distance = load(1, FRAME, CALLER) + load(2, 6, PLACE) + instruction(0x1F, 1, 2) + add_value(1, text_bytes)
    return read + distance + instruction(0x35, 1, 0, len(block) // 8, 2 * text_bytes) + block


def argument_into(to, which):
    return load(to, 6, ARGUMENTS[which])


def counting_program(counts, marked, number, probe):
    """The key is process << 32 | probe << 16 | markers << 2 | is inner << 1 | no block; the value is calls, and bytes that
    they ask for."""
    bytes_asked = move_value(8, 0)
    if probe.size is not None:
        bytes_asked = argument_into(8, probe.size)
        if probe.count is not None:
            bytes_asked += argument_into(1, probe.count) + instruction(0x2F, 8, 1)
    tally = move_value(1, 1) + add_to(0, 0, 1) + add_to(0, 8, 8)
    whole = move(6, 1) + own_process() + instruction(0x67, 7, 0, 0, 32) + add_value(7, number << 16)
    whole += look_up(marked, PROCESS) + skip_if_zero(0, load(0, 0, 0) + instruction(0x67, 0, 0, 0, 2) + add(7, 0))
    if probe.inner_bytes:
        whole += if_near(probe.inner_bytes, add_value(7, 2))
    if probe.block is not None:
        whole += argument_into(1, probe.block) + skip_unless_zero(1, add_value(7, 1))
    whole += bytes_asked + store(FRAME, KEY, 7)
    whole += look_up(counts, KEY)
    missing = move_value(1, 0) + store(FRAME, VALUE, 1) + store(FRAME, VALUE + 8, 1) + set_value(counts, KEY, 1) + look_up(counts, KEY)
    return whole + skip_unless_zero(0, missing) + skip_if_zero(0, tally) + move_value(0, 0) + EXIT


def load_program(code):
    log = ctypes.create_string_buffer(1 << 16)
    text, licence = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    try:
        return bpf(PROGRAM_LOAD, "<IIQQIIQ", PROGRAM_KPROBE, len(code) // 8, ctypes.addressof(text), ctypes.addressof(licence), 1, len(log),
                   ctypes.addressof(log))
    except Refused as refusal:
        raise Refused(f"{refusal}: {log.value.decode()[-2000:]}") from None


# ---- places in files


class Probe:
    """One function. `address` is where in the file's address space it is probed; `size` and `count` are its arguments (0-based) that are
    multiplied to the bytes it is asked for, `block` what it releases. A call whose block is 0 is told apart. So is one from within the file,
    where the probe stands at the first instruction of what an entry jumps to, which others of the file may call, too (`inner_bytes`: the
    file's)."""

    def __init__(self, name, address, inner_bytes=0, size=None, count=None, block=None):
        self.name, self.address, self.inner_bytes = name, address, inner_bytes
        self.size, self.count, self.block = size, count, block


def functions(path):
    """name -> address, of a file's symbols: exported ones and, where it has them, all others."""
    found = {}
    for table in ("-D", "-a"):
        answer = subprocess.run(["nm", table, "--defined-only", path], capture_output=True, text=True, check=False)
        for line in answer.stdout.splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in "TtWwi":
                found.setdefault(words[2].partition("@")[0], int(words[0], 16))
    return found


def loaded_parts(path):
    """(address, bytes, offset in the file) of what is executable."""
    answer = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True)
    for line in answer.stdout.splitlines():
        words = line.split()
        if words[:1] == ["LOAD"] and "E" in words[6:-1]:
            yield int(words[2], 16), int(words[5], 16), int(words[1], 16)


def file_offset(path, address):
    for start, size, offset in loaded_parts(path):
        if start <= address < start + size:
            return address - start + offset
    raise Refused(f"{path} has no code at {address:#x}")


JUMP_BYTES = 5


def behind(path, address, entries):
    """(the first instruction behind the five bytes that memlog replaces, False), by objdump. Where the entry is a jump of its own: (where that
    leads to, True), or what is behind that entry, if it is one of these. None: the function ends before."""
    answer = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", f"--start-address={address:#x}", f"--stop-address={address + 40:#x}", path],
        capture_output=True, text=True, check=True)
    first = None
    for line in answer.stdout.splitlines():
        found = re.match(r"\s+([0-9a-f]+):\s+(\S+)\s*(\S*)", line)
        if not found:
            continue
        at, word = int(found[1], 16), found[2]
        first = at if first is None else first
        if word == "endbr64":
            first = at + 4
        elif at >= first + JUMP_BYTES:
            return at, False
        elif word == "jmp":
            target = int(found[3], 16) if at == first and re.fullmatch("[0-9a-f]+", found[3]) else None
            return behind(path, target, entries) if target in entries else target and (target, True)
        elif word in ("ret", "int3"):
            return None
    return None


# What an allocator's functions are asked for, by argument: as their own headers have it.
ASKED = {
    "malloc": {"size": 0}, "calloc": {"size": 0, "count": 1}, "realloc": {"size": 1, "block": 0}, "free": {"block": 0}, "cfree": {"block": 0},
    "memalign": {"size": 1}, "aligned_alloc": {"size": 1}, "posix_memalign": {"size": 2}, "valloc": {"size": 0}, "pvalloc": {"size": 0},
    "moz_arena_malloc": {"size": 1}, "moz_arena_calloc": {"size": 1, "count": 2}, "moz_arena_realloc": {"size": 2, "block": 1},
    "moz_arena_free": {"block": 1}, "moz_arena_memalign": {"size": 2},
    "mallocx": {"size": 0}, "rallocx": {"size": 1, "block": 0}, "dallocx": {"block": 0}, "sdallocx": {"block": 0},
}
PREFIX = re.compile("^(_rjem_|jemalloc_|je_|__libc_|__)(?=[a-z])")


def passes_on(path, address, entries):
    """Whether what an entry jumps to calls another one, at which the call is counted: Firefox's moz_xmalloc."""
    answer = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", f"--start-address={address:#x}", f"--stop-address={address + 40:#x}", path],
        capture_output=True, text=True, check=True)
    body = re.split(r"\sint3|\sret", answer.stdout)[0]
    return any(int(target, 16) in entries for target in re.findall(r"\s(?:call|jmp)\s+([0-9a-f]+)", body))


def asked(name):
    if name.startswith(("_Znw", "_Zna")):
        return {"size": 0}
    if name.startswith(("_Zdl", "_Zda")):
        return {"block": 0}
    return ASKED.get(PREFIX.sub("", name))


def probes_of(path, names):
    """(probes of these functions of a file, those of them that none can be set for). Names of one place are one function."""
    known, probes, left_out = functions(path), {}, []
    entries = {known[one] for one in names}
    for name in sorted(names, key=lambda one: one not in ASKED):  # of several names the plain one is kept
        place, meaning = behind(path, known[name], entries), asked(name)
        if place is None or meaning is None:
            left_out.append(name)
        elif not (place[1] and passes_on(path, place[0], entries)):
            probes.setdefault(place, Probe(name, place[0], os.path.getsize(path) if place[1] else 0, **meaning))
    return list(probes.values()), left_out


# ---- counting


class Events:
    """Blocks that came, the bytes that were asked for, blocks that went."""

    def __init__(self):
        self.blocks = self.bytes = self.frees = 0


class Counter:
    """Counts from its making on, in every process of the machine that runs the file."""

    def __init__(self, path, probes, marker=None):
        if not SOURCE.exists():
            raise Refused("this kernel has no uprobes for perf")
        self.probes = probes
        self.open = []
        try:
            self.counts = self.kept(bpf(MAP_CREATE, "<IIIII", MAP_HASH, 8, 16, 1 << 16, 0))
            marked = self.kept(bpf(MAP_CREATE, "<IIIII", MAP_HASH, 8, 8, 1 << 14, 0))
            if marker:
                library, function = marker
                known = functions(library)
                if function not in known:
                    raise Refused(f"{library} does not name its {function}")
                self.attach(library, known[function], marking_program(marked), at_return=True)
            for number, probe in enumerate(probes):
                self.attach(path, probe.address, counting_program(self.counts, marked, number, probe))
        except BaseException:
            self.close()
            raise

    def kept(self, descriptor):
        self.open.append(descriptor)
        return descriptor

    def attach(self, path, address, code, at_return=False):
        program = self.kept(load_program(code))
        name = ctypes.create_string_buffer(os.fsencode(os.path.realpath(path)))
        # struct perf_event_attr: type, size, config, period, sample_type, read_format, flags, wakeup, breakpoint, path, offset
        kind = int(SOURCE.read_text())
        attributes = struct.pack("<IIQQQQQIIQQ", kind, 112, int(at_return), 1, 0, 0, 1, 0, 0, ctypes.addressof(name), file_offset(path, address))
        buffer = ctypes.create_string_buffer(attributes.ljust(112, b"\0"), 112)
        event = self.kept(system_call(SYS_PERF_EVENT_OPEN, buffer, -1, 0, -1, 8))
        for request, value in ((SET_BPF, program), (ENABLE, 0)):
            if LIBC.ioctl(event, ctypes.c_ulong(request), ctypes.c_ulong(value)) != 0:
                raise Refused(os.strerror(ctypes.get_errno()))

    def read(self):
        """(process, probe, markers before, is inner, has no block) -> (calls, bytes)."""
        key, after, value = (ctypes.create_string_buffer(size) for size in (8, 8, 16))
        found, first = {}, True
        while True:
            try:
                bpf(MAP_NEXT_KEY, "<IIQQ", self.counts, 0, 0 if first else ctypes.addressof(key), ctypes.addressof(after))
            except Refused:
                return found
            first = False
            key.raw = after.raw
            bpf(MAP_LOOKUP, "<IIQQQ", self.counts, 0, ctypes.addressof(key), ctypes.addressof(value), 0)
            word, = struct.unpack("<Q", key.raw)
            found[word >> 32, self.probes[word >> 16 & 0xFFFF], word >> 2 & 0x3FFF, bool(word & 2), bool(word & 1)] = struct.unpack("<QQ", value.raw)

    def events(self):
        """(process, markers before) -> Events that memlog is to record of them."""
        found = {}
        for (process, probe, markers, is_inner, has_no_block), (calls, asked_bytes) in self.read().items():
            one = found.setdefault((process, markers), Events())
            if is_inner and probe.name != "malloc":
                continue  # of another function, which is counted itself. Those of malloc are strdup's, which is not
            if probe.size is not None:
                one.blocks += calls
                one.bytes += asked_bytes
            if probe.block is not None and not has_no_block:
                one.frees += calls
        return found

    def close(self):
        while self.open:
            os.close(self.open.pop())
