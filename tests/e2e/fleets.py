"""Reports of a small fleet: three programs, builds of one of them, machines of which two leak, and names that mean harm."""
import random
import time

from collecting import trace

MIB = 1 << 20
DAY_NS = 86400 * 10**9

# Markup, an order of the text, a line's end, and very long.
MARKUP = "<img src=x onerror=\"document.title='spoilt'\"><script>document.title='spoilt'</script>"
BIDI = "safe\u202egnp.exe\u202c\u0007\nnext line"
LONG = "very_long_name_" * 30
HOSTILE = (MARKUP, BIDI, LONG)

SERVER = ("_start", "main", "serve(Listener&)", "http::handle(Request&)")
STACKS = {
    "cache": (*SERVER, "Cache::fill(Key const&)", "std::vector<char>::reserve(unsigned long)", "operator new(unsigned long)"),
    "parse": (*SERVER, "json::parse(Reader&)", "json::Value::push_back(json::Value)", "operator new(unsigned long)"),
    "session": (*SERVER, "Sessions::open(Request&)", "Session::Session(User)"),
    "tls": (*SERVER, "SSL_read", "[libssl.so.3]"),
    "log": ("_start", "main", "log_start", "log_buffer"),
    "leak": (*SERVER, "Upload::begin(Request&)", "Upload::keep(Part&)"),
}
MEANS = {"cache": 46 * MIB, "parse": 18 * MIB, "session": 9 * MIB, "tls": 4 * MIB, "log": MIB}
BUILDS = {"a1f0e5a77c0de001": "4.0", "b2f0e5a77c0de002": "4.1", "c3f0e5a77c0de003": "4.2"}
YOUNG = "d4f0e5a77c0de004"  # of which there are hardly any reports yet
YOUNG_CONTROL = 3


def server_rows(chance, build, leaks):
    rows = []
    for name, mean in MEANS.items():
        live = int(mean * chance.uniform(0.85, 1.15) * (1.6 if name == "parse" and build == 2 else 1))
        rows.append((STACKS[name], live, int(live * 1.2), live * 9))
    if leaks:
        live = int(900 * MIB * chance.uniform(1, 1.2))
        rows.append((STACKS["leak"], live, live, live))
    return rows


def reports(control=25, machines=30):
    """(report, guid) of all of it."""
    chance = random.Random(7)
    now = time.time_ns()
    for build, (build_id, version) in enumerate(BUILDS.items()):
        for number in range(control):
            host = f"web{number % machines:02}.example"
            yield trace(server_rows(chance, build, False), program="shopd", build=build_id, version=version, host=host, control=True, process="shopd",
                        role="browser", time_ns=now - (30 - 10 * build) * DAY_NS - number * 10**9), f"shopd-{build}-{number}"
    for number in range(YOUNG_CONTROL):
        yield trace(server_rows(chance, 2, False), program="shopd", build=YOUNG, version="4.3", host=f"web{number:02}.example", control=True,
                    process="shopd", time_ns=now - number * 10**9), f"shopd-young-{number}"
    for number, host in enumerate(("web03.example", "web11.example")):
        yield trace(server_rows(chance, 2, True), program="shopd", build=list(BUILDS)[2], version="4.2", host=host, process="shopd",
                    time_ns=now - DAY_NS - number * 10**9, promised_ppm=10000, cost_ppm=6000 * (number + 1)), f"shopd-leak-{number}"
    for number in range(6):
        rows = [(("_start", "main", "PostmasterMain", "BackendStartup", "exec_simple_query", "AllocSetAlloc"), 12 * MIB + number, 15 * MIB, 80 * MIB),
                (("_start", "main", "PostmasterMain", "CreateSharedMemoryAndSemaphores", "PGSharedMemoryCreate"), 130 * MIB, 130 * MIB, 130 * MIB)]
        yield trace(rows, program="postgres", build="15a0", version="15.3", host=f"db{number}.example", process="postgres", time_ns=now - number * DAY_NS), f"db-{number}"


def hostile_reports():
    for number, name in enumerate(HOSTILE):
        rows = [((name, name + "2", name), MIB, 2 * MIB, 3 * MIB), (("main", name), 4096, 4096, 4096)]
        # A machine tells its host's name and its version as it likes.
        yield trace(rows, program=name, build=f"bad{number}", version=name, host=name, process=name, role="main"), f"bad-{number}"
