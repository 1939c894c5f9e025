"""Programs that a seccomp filter watches: it kills for each call that is not on its list."""
import json
import sys

# What a C program does that has threads, and what memlog does in one: no call of memlog's that is not here may be made where a filter is seen.
PROGRAMS_OWN = (
    "read write close fstat newfstatat lseek mmap mprotect munmap brk mremap madvise rt_sigaction rt_sigprocmask rt_sigreturn pread64 access "
    "execve exit exit_group openat arch_prctl set_tid_address set_robust_list rseq prlimit64 getrandom futex clone3 clone clock_nanosleep "
    "nanosleep sched_yield gettid getpid tgkill readlink"
).split()
MEMLOGS = "poll clock_gettime sigaltstack getppid socketpair sendmsg recvmsg shutdown prctl".split()
# Of fcntl and mmap a filter such as Chromium's knows some words: F_DUPFD_CLOEXEC, F_GETFL and F_SETFL, F_GETFD and F_SETFD; not MAP_FIXED_NOREPLACE.
FCNTL, MMAP = 72, 9
FCNTL_WORDS = (1030, 1, 2, 3, 4)
NOREPLACE = 0x100000

NUMBERS = {
    "read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13,
    "rt_sigprocmask": 14, "rt_sigreturn": 15, "pread64": 17, "access": 21, "sched_yield": 24, "mremap": 25, "madvise": 28, "nanosleep": 35,
    "getpid": 39, "sendmsg": 46, "recvmsg": 47, "shutdown": 48, "socketpair": 53, "clone": 56, "execve": 59, "exit": 60, "readlink": 89,
    "getppid": 110, "sigaltstack": 131, "prctl": 157, "arch_prctl": 158, "gettid": 186, "futex": 202, "set_tid_address": 218,
    "clock_gettime": 228, "clock_nanosleep": 230, "exit_group": 231, "tgkill": 234, "openat": 257, "newfstatat": 262, "set_robust_list": 273,
    "prlimit64": 302, "getrandom": 318, "rseq": 334, "clone3": 435,
}

LOAD, EQUAL, ANY_BIT, ANSWER = 0x20, 0x15, 0x45, 0x06
NR, WORD_1, WORD_3 = 0, 16 + 8, 16 + 24
ALLOW, KILL = 0x7fff0000, 0x80000000


def lines(calls):
    """(code, jump if it holds, if not, operand): those calls, fcntl and mmap with the words above; death for all others."""
    found = [(LOAD, 0, 0, NR)]
    for name in calls:
        if NUMBERS[name] != MMAP:
            found += [(EQUAL, 0, 1, NUMBERS[name]), (ANSWER, 0, 0, ALLOW)]
    found += [(EQUAL, 0, 3, MMAP), (LOAD, 0, 0, WORD_3), (ANY_BIT, 1, 0, NOREPLACE), (ANSWER, 0, 0, ALLOW)]
    found += [(LOAD, 0, 0, NR), (EQUAL, 0, 1 + 2 * len(FCNTL_WORDS), FCNTL), (LOAD, 0, 0, WORD_1)]
    for word in FCNTL_WORDS:
        found += [(EQUAL, 0, 1, word), (ANSWER, 0, 0, ALLOW)]
    return [*found, (ANSWER, 0, 0, KILL)]


# Of Python: puts `filter` before whoever runs it.
INSTALL = """
import ctypes, struct
libc = ctypes.CDLL(None)
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in filter))
program = struct.pack("HxxxxxxP", len(filter), ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program, 0, 0) == 0
"""
LAUNCHER = f"""
import json, os, sys
filter = json.loads(sys.argv[1])
{INSTALL}
os.execv(sys.argv[2], sys.argv[2:])
"""


def installing(filter_lines):
    """Of Python: from here on it is under that filter."""
    return f"filter = {filter_lines!r}\n{INSTALL}"


def under(filter_lines, words):
    """The command that runs these words under that filter."""
    return [sys.executable, "-I", "-c", LAUNCHER, json.dumps(filter_lines), *map(str, words)]
