"""Browsers over pages whose contents are known: how they are started, bare and under memlog."""
import os
import pathlib
import re
import shutil
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODES = 20_000
LEAK_BYTES = 50 << 20
NOBODY = 65534

# In a box of one screen: a browser that takes all of a page into its picture refuses a long one.
PAGE = "<!doctype html><meta charset=utf-8><title>{title}</title><body style='margin:0'><div style='height:500px;overflow:hidden'>{body}</div>{script}"
# What each adds is written to, to the last page: a path's points are in blocks of the renderer's malloc (9 bytes a point, and spare room),
# a buffer is in a partition of Chromium's that malloc has nothing to do with.
LEAKING = """<script>
const kept = [], each = 1 << 20, most = %d;
function leak() {
    if (kept.length * each >= most) { document.title = 'leaked'; return; }
    %s
    setTimeout(leak, 5);
}
setTimeout(leak, 500);
</script>"""
LEAKS = {
    "buffers": "kept.push(new Uint8Array(each).fill(1));",
    "paths": "const path = new Path2D(); for (let i = 0; i < each / 9; i++) path.lineTo(i, i * i % 99); kept.push(path);",
}


def nodes_page():
    """NODES elements of its own, and text in each of all but html, head and body's own."""
    others = 6  # html, head, meta, title, body, div
    return PAGE.format(title="nodes", body="".join(f"<p>{i}" for i in range(NODES - others)), script="")


def leaking_page(kind, most=LEAK_BYTES):
    return PAGE.format(title="leaking", body="leaks", script=LEAKING % (most, LEAKS[kind]))


CHROMIUM = [
    "chromium", "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync", "--disable-component-update",
    "--disable-features=PreloadTopChromeWebUI,InitialWebUI,WebUIInProcessResourceLoading",
]
FIREFOX = ["firefox-esr", "--headless", "--no-remote"]
EXECUTABLES = {"chromium": "/usr/lib/chromium/chromium", "firefox-esr": "/usr/lib/firefox-esr/firefox-esr"}


class Browser:
    """One that runs in a folder of its own: as whoever runs this, or `as_nobody` with the sandbox that an ordinary user has."""

    def __init__(self, name, folder, as_nobody=False):
        self.name, self.folder, self.as_nobody = name, folder, as_nobody
        folder.mkdir(mode=0o755)
        if as_nobody:
            os.chown(folder, NOBODY, NOBODY)
        self.profile = folder / "profile"
        self.profile.mkdir()
        (folder / "run").mkdir(mode=0o700)
        for place in (self.profile, folder / "run"):
            if as_nobody:
                os.chown(place, NOBODY, NOBODY)
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
        self.environment = {**inherited, "HOME": str(folder), "TMPDIR": str(folder), "XDG_RUNTIME_DIR": str(folder / "run"), "MEMLOG_SYMBOL_CACHE": "off"}

    @property
    def executable(self):
        return EXECUTABLES[self.name]

    def words(self, *further):
        if self.name == "chromium":
            sandbox = [] if self.as_nobody or os.geteuid() != 0 else ["--no-sandbox"]
            return [*CHROMIUM, *sandbox, f"--user-data-dir={self.profile}", *further]
        return [*FIREFOX, "--profile", str(self.profile), *further]

    def picture_words(self, page):
        picture = self.folder / "picture.png"
        taken = f"--screenshot={picture}" if self.name == "chromium" else ["--screenshot", str(picture)]
        return self.words(*([taken] if isinstance(taken, str) else taken), f"file://{page}")

    def under_memlog(self, memlog, words, *options):
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if self.as_nobody else []
        return [*user, str(memlog), "run", "-q", "--no-page", "-o", str(self.folder / "dumps"), *options, "--", *words]

    def bare(self, words):
        return [*(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if self.as_nobody else []), *words]

    def run(self, words, timeout=600):
        """Exit code, what stands on stderr."""
        with open(self.folder / "stderr", "wb+") as told:
            process = subprocess.Popen(words, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=told, start_new_session=True)
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
            told.seek(0)
            return code, told.read().decode(errors="replace")


# A load of a 64-bit register from where the instruction says, relative to itself.
LOAD = re.compile(rb"[\x48\x4c]\x8b[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](.{4})", re.DOTALL)
SCANNED_BYTES = 32 << 20
# What memlog says of an executable where there are such places.
INLINED = "the compiler has put functions of the allocator inside the executable into their callers: blocks of these calls are not seen"


def places_past_malloc(executable):
    """How often Chromium's code, in its first part, reads what its malloc reads first: the pointer to the table through which the functions
    of its allocator call. Who reads it elsewhere has them put into him by the compiler, and calls none of them."""
    told = subprocess.run(["readelf", "--wide", "--sections", "--dyn-syms", executable], capture_output=True, text=True, check=True).stdout
    rows = [row.replace("[ ", "[").split() for row in told.splitlines()]
    (start, offset), = [(int(row[3], 16), int(row[4], 16)) for row in rows if len(row) > 5 and row[1] == ".text"]
    functions = {row[7]: (int(row[1], 16), int(row[2])) for row in rows if len(row) == 8 and row[3] == "FUNC" and row[6] != "UND"}

    def read_from(code, address):
        return [address + load.end() + int.from_bytes(load[1], "little", signed=True) for load in LOAD.finditer(code)]

    with open(executable, "rb") as file:
        address, count_bytes = functions["malloc"]
        file.seek(address - start + offset)
        pointer = read_from(file.read(count_bytes), address)[0]
        file.seek(offset)
        return read_from(file.read(SCANNED_BYTES), start).count(pointer)


def missing(name):
    return None if shutil.which(name) else f"needs {name}"


def has_no_sandbox(told):
    """An ordinary user may make no namespace here, says Chromium."""
    return "No usable sandbox" in told
