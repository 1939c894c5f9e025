"""What stands before a program: nothing, memlog, or a peer from Debian."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

from workloads import OUT

LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
JEMALLOC = LIBRARIES / "libjemalloc.so.2"
TCMALLOC = LIBRARIES / "libtcmalloc.so.4"
PASS = OUT / "libbench-pass.so"
HEAPTRACK = pathlib.Path("/usr/lib/heaptrack")
HEAPTRACK_PRELOAD = HEAPTRACK / "libheaptrack_preload.so"
HEAPTRACK_INTERPRETER = HEAPTRACK / "libexec/heaptrack_interpret"
MEMLOG = OUT / "memlog"
METER = OUT / "bench-meter"
NEVER_METER = "--never=^" + re.sub(r"[][\\.^$*+?(){}|]", r"\\\g<0>", str(METER)) + " "


class Launch:
    """How one run is started: the whole command, and helpers that must be there before it (each its own command)."""

    def __init__(self, words, helpers=()):
        self.words = words
        self.helpers = helpers


def metered(folder, settings, words):
    return [str(METER), f"{folder}/meter.json", *(f"{key}={value}" for key, value in settings.items()), "--", *words]


class Configuration:
    """`baseline`: whose neighbouring run its ratios are taken of. `size`: slow ones run the small size beside a small bare run."""

    def __init__(self, name, says, baseline="nothing", size="full", exact=False):
        self.name = name
        self.says = says
        self.baseline = baseline
        self.size = size
        self.exact = exact

    def missing(self):
        """Why it cannot run here, or ""."""
        return ""

    def launch(self, words, settings, folder):
        return Launch(metered(folder, settings, words))


class Memlog(Configuration):
    def __init__(self, name, says, options=(), exact=False, memlog=MEMLOG):
        super().__init__(name, says, exact=exact)
        self.options = list(options)
        self.memlog = memlog

    def command(self, folder, words):
        return [str(self.memlog), "run", "-q", "--no-page", "-o", f"{folder}/dumps", *self.options, NEVER_METER, "--", *words]

    def missing(self):
        if not self.options:
            return ""
        with tempfile.TemporaryDirectory() as folder:
            answer = subprocess.run(
                self.command(folder, ["true"]), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
            )
        return "" if answer.returncode == 0 else answer.stderr.strip()

    def launch(self, words, settings, folder):
        return Launch(self.command(folder, metered(folder, settings, words)))


class Preloaded(Configuration):
    """An allocator in front of the program, with settings of its own."""

    def __init__(self, name, says, library, settings=None, **rest):
        super().__init__(name, says, **rest)
        self.library = library
        self.settings = settings or {}

    def missing(self):
        return "" if self.library.exists() else f"{self.library} is not there"

    def launch(self, words, settings, folder):
        own = {key: value.format(folder=folder) for key, value in self.settings.items()}
        # The loader takes no path with a blank, and ours may have one.
        library = pathlib.Path(folder) / self.library.name
        library.symlink_to(self.library)
        return Launch(metered(folder, {**settings, "LD_PRELOAD": str(library), **own}, words))


class Heaptrack(Configuration):
    """As its script does it: a fifo, the interpreter and a compressor behind it, the library in front of the program."""

    def missing(self):
        if not shutil.which("zstd"):
            return "zstd is not there"
        return "" if HEAPTRACK_PRELOAD.exists() else f"{HEAPTRACK_PRELOAD} is not there"

    def launch(self, words, settings, folder):
        fifo = f"{folder}/heaptrack.fifo"
        os.mkfifo(fifo)
        kept = f"{folder}/heaptrack.zst"
        behind = f"exec {HEAPTRACK_INTERPRETER} < {shlex.quote(fifo)} | zstd -q -c > {shlex.quote(kept)}"
        own = {**settings, "LD_PRELOAD": str(HEAPTRACK_PRELOAD), "DUMP_HEAPTRACK_OUTPUT": fifo}
        return Launch(metered(folder, own, words), helpers=[["/bin/sh", "-c", behind]])


class Massif(Configuration):
    def missing(self):
        return "" if shutil.which("valgrind") else "valgrind is not there"

    def launch(self, words, settings, folder):
        before = ["valgrind", "-q", "--tool=massif", f"--massif-out-file={folder}/massif.out"]
        return Launch(metered(folder, settings, [*before, *words]))


PROFILED_JEMALLOC = "prof:true,prof_prefix:{{folder}}/jemalloc,lg_prof_sample:{}"

CONFIGURATIONS = [
    Configuration("nothing", "the program alone"),
    Configuration("nothing-again", "the same once more: what the machine's noise makes of 1.00"),
    Memlog("memlog-exact", "memlog, every allocation", exact=True),
    Memlog("memlog-512k", "memlog, sampled at 512 KiB", ["--memlog-sampling-rate=512K"]),
    Memlog("memlog-4k", "memlog, sampled at 4 KiB", ["--memlog-sampling-rate=4K"]),
    Heaptrack("heaptrack", "heaptrack, every allocation", exact=True),
    Preloaded("jemalloc", "jemalloc alone", JEMALLOC),
    Preloaded(
        "jemalloc-512k", "jemalloc, sampled at 512 KiB, over jemalloc alone", JEMALLOC,
        {"MALLOC_CONF": PROFILED_JEMALLOC.format(19)}, baseline="jemalloc",
    ),
    Preloaded("tcmalloc", "tcmalloc alone", TCMALLOC),
    Preloaded(
        "tcmalloc-512k", "tcmalloc, sampled at 512 KiB, over tcmalloc alone", TCMALLOC,
        {"TCMALLOC_SAMPLE_PARAMETER": "524288"}, baseline="tcmalloc",
    ),
    Preloaded(
        "jemalloc-exact", "jemalloc, every allocation (rate 1)", JEMALLOC, {"MALLOC_CONF": PROFILED_JEMALLOC.format(0)},
        size="small", exact=True,
    ),
    Preloaded(
        "tcmalloc-exact", "tcmalloc's heap profiler, every allocation", TCMALLOC,
        # An interval that is never reached: no file is written but at the end.
        {"HEAPPROFILE": "{folder}/tcmalloc", "HEAP_PROFILE_ALLOCATION_INTERVAL": str(1 << 50), "HEAP_PROFILE_INUSE_INTERVAL": str(1 << 50)},
        size="small", exact=True,
    ),
    Massif("massif", "valgrind massif, every allocation", size="small", exact=True),
]

# What sampling consists of, one thing more in each; run by --floor, or when they are named.
FLOOR = [
    Preloaded("pass", "a preloaded library that does nothing but go on to libc", PASS),
    Memlog("memlog-dormant", "memlog, there and asked to record nothing", ["--memlog=manual"]),
    Memlog("memlog-rarest", "memlog, sampled at 4 GiB, the most there is: what it passes over", ["--memlog-sampling-rate=4G"]),
]

BY_NAME = {configuration.name: configuration for configuration in [*CONFIGURATIONS, *FLOOR]}


def add_before(out):
    """Another build of memlog, to be compared with this one in the same rounds; its configurations' names."""
    pairs = (("memlog-before", "memlog-exact"), ("memlog-before-512k", "memlog-512k"))
    for name, today in pairs:
        own = BY_NAME[today]
        BY_NAME[name] = Memlog(name, f"{own.says}, the build in {out}", own.options, own.exact, pathlib.Path(out).resolve() / "memlog")
    return [name for name, _ in pairs]
