"""The programs that are measured: how each is prepared and started at each size.

A size is "full" (a second or so un-profiled) or "small" (a fifth of it: for peers that would take minutes)."""
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "out"
INPUTS = OUT / "bench"
# As sqlite3's own commands read a word: between quotes, as C writes it.
QUERIES = '"' + str(INPUTS / "queries.sql").replace("\\", "\\\\").replace('"', '\\"') + '"'
PLACES = {"out": OUT, "inputs": INPUTS, "queries": QUERIES}


class Workload:
    """One program. `arguments[size]` fill its command; `real` ones are what users run."""

    def __init__(self, name, says, command, sizes, real=False, environment=None, prepare=None, load=None):
        self.name = name
        self.says = says
        self.command = command
        self.sizes = sizes
        self.real = real
        self.environment = environment or {}
        self.prepare = prepare
        self.load = load

    def words(self, size, folder):
        """The command, with {size}, {folder} and PLACES filled in. `folder` is this run's own."""
        return [word.format(size=self.sizes[size], folder=folder, **PLACES) for word in self.command]


class Compiler(Workload):
    """Compiles containers.cc; a size is (number of parts, optimisation)."""

    def words(self, size, folder):
        parts, level = self.sizes[size]
        return [word.format(parts=parts, level=level, folder=folder, **PLACES) for word in self.command]


def preprocess(workload, size, folder):
    """cc1plus is measured alone: g++ is a driver, and heaptrack would leave its children out."""
    parts, _ = workload.sizes[size]
    subprocess.run(
        ["g++", "-std=c++17", "-E", f"-DPARTS={parts}", str(INPUTS / "containers.cc"), "-o", f"{folder}/containers.ii"],
        check=True,
    )


def cc1plus():
    answer = subprocess.run(["g++", "-print-prog-name=cc1plus"], stdout=subprocess.PIPE, text=True, check=False)
    return answer.stdout.strip()


REDIS_TESTS = "set,get,incr,lpush,rpop,sadd,hset,zadd"


def load_redis(workload, size, folder):
    """Wait until the server answers, put the load on it, end it; seconds that the load took."""
    socket = f"{folder}/redis.sock"
    ask = ["redis-cli", "-s", socket]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    deadline = time.monotonic() + 20
    while not os.path.exists(socket) or subprocess.run([*ask, "ping"], check=False, **quiet).returncode != 0:
        if time.monotonic() > deadline:
            raise RuntimeError("redis-server does not answer")
        time.sleep(0.02)
    requests = str(workload.sizes[size])
    words = ["redis-benchmark", "-s", socket, "-q", "-n", requests, "-r", "100000", "-d", "64", "-c", "50", "-P", "8"]
    start = time.monotonic()
    subprocess.run([*words, "-t", REDIS_TESTS], check=True, **quiet)
    seconds = time.monotonic() - start
    subprocess.run([*ask, "shutdown", "nosave"], check=False, **quiet)
    return seconds


LATENCY = "{folder}/latency.json"

WORKLOADS = [
    Workload(
        "tight", "malloc and free from one place, random victims among 2,000", ["{out}/bench-tight", "{size}"],
        {"full": 16_000_000, "small": 2_000_000},
    ),
    Workload(
        "deep", "malloc 45 frames deep by one of 5,000 paths, drawn anew each time", ["{out}/bench-deep", "{size}"],
        {"full": 3_000_000, "small": 400_000},
    ),
    Workload(
        "threads", "4 threads send each other blocks, the receiver frees", ["{out}/bench-threads", "{size}"],
        {"full": 16_000_000, "small": 2_000_000},
    ),
    Workload(
        "maps", "mmap, a page touched, munmap; every 64th time a thread that ends at once", ["{out}/bench-maps", "{size}"],
        {"full": 100_000, "small": 20_000},
    ),
    Workload(
        "sqlite3", "tables in memory, joins, sorting, text functions",
        ["sqlite3", ":memory:", ".param set :rounds {size}", ".read {queries}"],
        {"full": 1500, "small": 300}, real=True,
    ),
    Workload(
        "python3", "objects, JSON, text; PYTHONMALLOC=malloc", ["/usr/bin/python3", "{inputs}/objects.py", "{size}"],
        {"full": 40, "small": 8}, real=True, environment={"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"},
    ),
    Compiler(
        "cc1plus", "g++'s compiler proper, STL-heavy C++",
        [cc1plus(), "-quiet", "-std=c++17", "-O{level}", "-fpreprocessed", "{folder}/containers.ii", "-o", "{folder}/out.s"],
        {"full": (1, 1), "small": (0, 0)}, real=True, prepare=preprocess,
    ),
    Compiler(
        "clang++", "clang's compiler proper (it runs inside the driver), STL-heavy C++",
        ["clang++", "-std=c++17", "-O{level}", "-DPARTS={parts}", "-c", "{inputs}/containers.cc", "-o", "{folder}/out.o"],
        {"full": (1, 1), "small": (0, 0)}, real=True,
    ),
    Workload(
        "redis", f"redis-server under redis-benchmark: {REDIS_TESTS}",
        ["redis-server", "--port", "0", "--unixsocket", "{folder}/redis.sock", "--save", "", "--appendonly", "no",
         "--loglevel", "warning", "--daemonize", "no"],
        {"full": 250_000, "small": 40_000}, real=True, load=load_redis,
    ),
    Workload("live-1m", "1 million small blocks live at once", ["{out}/bench-live", "{size}"], {"full": 1_000_000}),
    Workload("live-4m", "4 million small blocks live at once", ["{out}/bench-live", "{size}"], {"full": 4_000_000}),
    Workload(
        "latency-steady", "each call timed; one thread that waits 1 us after each pair",
        ["{out}/bench-latency", LATENCY, "{size}", "1", "1000"], {"full": 1_000_000, "small": 200_000},
    ),
    Workload(
        "latency-flood", "each call timed; one thread that does nothing else",
        ["{out}/bench-latency", LATENCY, "{size}", "1", "0"], {"full": 3_000_000, "small": 500_000},
    ),
    Workload(
        "latency-threads", "each call timed; 4 threads that do nothing else",
        ["{out}/bench-latency", LATENCY, "{size}", "4", "0"], {"full": 4_000_000, "small": 800_000},
    ),
]

BY_NAME = {workload.name: workload for workload in WORKLOADS}
