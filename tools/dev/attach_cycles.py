#!/usr/bin/python3
"""By hand: attach memlog to a program that works and take it back, a thousand times, with the tracer killed in three of ten.

    tools/dev/attach_cycles.py [--cycles=N] [--kills=SHARE] [--seed=N] TARGET...

Targets: malloc8 (tests/oracle/attached.c: eight threads that do nothing but allocate), static, musl (the same with another libc), namespace
(static, with a root, mounts and pids of its own), python3, node, java, redis (under redis-benchmark), nginx (a worker, under ab), postgres (a
backend, under queries), frames (python3 with --frames=python), chromium (a renderer behind its sandbox, of an ordinary user; its page works all
the time), chromium_root (without a sandbox); and those of tests/oracle/steady, which keep books of their own: dlclose, forks, altstack, thousand,
jumps, own_operators, waits. One memlog goes on meanwhile: a cycle is `memlog start PID` and `memlog stop PID`. Demanded is that the program
goes on, answers its load without a failure, ends as it should and has its code, mappings and descriptors as before, but for what memlog leaves
on purpose; programs with books of their own must be exact in the end. One line a target in Markdown; exit code 1 when something is not so.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
sys.path.insert(0, str(ROOT / "tools" / "bench"))
import attached  # noqa: E402  (tests/e2e/attached.py)
import browsers  # noqa: E402
import devtools  # noqa: E402
import harness  # noqa: E402
import memory_programs  # noqa: E402
import servers  # noqa: E402

TRIES = 5
TIMEOUT = 120
TARGETS = ("malloc8", "static", "musl", "namespace", "python3", "frames", "node", "java", "redis", "nginx", "postgres", "chromium", "chromium_root",
           "dlclose", "forks", "altstack", "thousand", "jumps", "own_operators", "waits")
HEAD = ("target", "cycles", "tracer killed", "failed", "stopped for, median ms", "at most ms", "load: answers", "failed", "mappings", "descriptors", "books")

PYTHON = """
import hashlib, os, threading
turns, wrong, first = 0, 0, None
def work(out, n):
    out[n] = hashlib.sha256(repr([str(i) * (i % 7) for i in range(5000)]).encode()).hexdigest()
print("ready", flush=True)
while not os.path.exists("stop"):
    out = {}
    threads = [threading.Thread(target=work, args=(out, n)) for n in range(3)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    first = first or out
    turns += 1
    wrong += out != first
print(turns, wrong, flush=True)
"""
FRAMES = """
import hashlib, json, os, sys, threading
sys.setswitchinterval(0.0005)
turns, wrong, first = 0, 0, None
def deep(n): return [n] + deep(n - 1) if n else []
def items(n):
    for i in range(n): yield {"n": i, "text": str(i) * (i % 9)}
def fails(n):
    try: raise ValueError("x" * n)
    except ValueError as error: return len(str(error))
def work(out, n):
    made = {}
    exec("def made(x): return [x] * %d" % (n + 3), made)
    rest = [deep(60), list(items(300)), [fails(i) for i in range(50)], made["made"](n), sorted((lambda x: x["text"])(one) for one in items(200))]
    out[n] = hashlib.sha256(json.dumps(rest).encode()).hexdigest()
print("ready", flush=True)
while not os.path.exists("stop"):
    out = {}
    threads = [threading.Thread(target=work, args=(out, n)) for n in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    first = first or out
    turns += 1
    wrong += out != first
print(turns, wrong, flush=True)
"""
NODE = """
const fs = require("fs"), crypto = require("crypto");
let turns = 0, wrong = 0, first = null;
console.log("ready");
function turn() {
    const parts = [];
    for (let i = 0; i < 5000; i++) parts.push({text: String(i).repeat(i % 7), buffer: Buffer.alloc(i % 300, i)});
    const hash = crypto.createHash("sha256").update(JSON.stringify(parts)).digest("hex");
    first = first || hash;
    turns++;
    wrong += hash !== first ? 1 : 0;
    if (fs.existsSync("stop")) { console.log(turns + " " + wrong); process.exit(0); }
    setTimeout(turn, 1);
}
turn();
"""
JAVA = """
import java.io.File;
import java.util.zip.Deflater;
public class Main {
    public static void main(String[] words) throws Exception {
        long turns = 0, wrong = 0, first = -1;
        System.out.println("ready");
        while (!new File("stop").exists()) {
            byte[] in = new byte[200000], out = new byte[400000];
            for (int i = 0; i < in.length; i++) in[i] = (byte) (i * i >> 5);
            Deflater deflater = new Deflater();
            deflater.setInput(in);
            deflater.finish();
            long sum = deflater.deflate(out);
            for (int i = 0; i < sum; i++) sum += out[i] & 1;
            deflater.end();
            if (first < 0) first = sum;
            turns++;
            if (sum != first) wrong++;
        }
        System.out.println(turns + " " + wrong);
    }
}
"""
PAGE = """<!doctype html><meta charset=utf-8><title>steady</title><body style="margin:0"><div id=work></div>
<div id=scene style="position:absolute;top:0;left:0;width:600px;height:400px;background:#fff">A scene that stays: <b>bold</b> <i>slanted</i>
<canvas id=canvas width=500 height=300></canvas></div><script>
let turns = 0, wrong = 0, first = null, over = false;
const context = canvas.getContext("2d");
for (let i = 0; i < 200; i++) { context.fillStyle = `hsl(${i * 7 % 360} 80% 50%)`; context.fillRect(i * 13 % 480, i * 29 % 280, 9, 9); }
function turn() {
    const rows = [];
    for (let i = 0; i < 200; i++) {
        const row = document.createElement("p");
        row.textContent = `${i}:` + "y".repeat(i % 31);
        row.style.width = `${100 + i}px`;
        rows.push(row);
    }
    work.replaceChildren(...rows);
    let sum = 0;
    for (const row of work.children) { sum = (sum * 31 + row.offsetWidth + row.textContent.length) % 1000003; }
    const path = new Path2D();
    for (let i = 0; i < 2000; i++) { path.lineTo(i, i * i % 99); }
    sum += context.isPointInPath(path, 3, 5) ? 1 : 0;
    work.replaceChildren();
    first = first ?? sum;
    turns++;
    wrong += sum !== first ? 1 : 0;
    if (!over) { setTimeout(turn, 1); }
}
turn();
</script>"""


class Load:
    """What asks a target all the time, in a thread of its own: answers and failures are counted."""

    def __init__(self, once):
        self.answers = self.failed = 0
        self.said = ""
        self.is_over = False
        self.thread = threading.Thread(target=self.run, args=(once,), daemon=True)
        self.thread.start()

    def run(self, once):
        while not self.is_over:
            answers, failed, said = once()
            self.answers += answers
            self.failed += failed
            self.said = said if failed else self.said

    def end(self):
        self.is_over = True
        self.thread.join(TIMEOUT)


class Play:
    """A folder, a target in it, and memlog at it."""

    def __init__(self, options):
        self.options = options
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="memlog-cycles."))
        self.folder.chmod(0o755)
        (self.folder / "run").mkdir(mode=0o700)
        self.books = False
        self.load = self.browser = None
        self.record_options = ()
        self.started = []
        self.random = random.Random(options.seed)

    def environment(self):
        env = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
        env.update(XDG_RUNTIME_DIR=str(self.folder / "run"), ORACLE_DIR=str(self.folder), MEMLOG_SYMBOL_CACHE="off")
        return env

    def start(self, words, **how):
        process = subprocess.Popen(
            list(map(str, words)), cwd=self.folder, env=self.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            bufsize=1, start_new_session=True, **how,
        )
        self.started.append(process)
        return process

    def ready(self, process):
        if process.stdout.readline() != "ready\n":
            raise SystemExit(f"{process.args} did not begin")
        return process

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    # ---- targets

    def with_books(self, kind):
        self.books = True
        self.process = self.ready(self.start([attached.build("attached.c", self.folder / "attached", kind)]))
        self.pid = self.process.pid

    def malloc8(self):
        self.with_books("glibc")

    def static(self):
        self.with_books("static glibc")

    def musl(self):
        self.with_books("musl")

    def namespace(self):
        self.books = True
        root = self.folder / "root"
        (root / "proc").mkdir(parents=True)
        attached.build("attached.c", root / "attached", "static glibc")
        self.process = self.ready(self.start(["unshare", "-mp", "--fork", f"--mount-proc={root}/proc", "chroot", root, "/attached"]))
        (self.pid,) = harness.children_of(self.process.pid)

    def script(self, name, text, *words):
        (self.folder / name).write_text(text)
        self.process = self.ready(self.start([*words, name]))
        self.pid = self.process.pid

    def python3(self):
        self.script("program.py", PYTHON, "/usr/bin/python3", "-I")

    def node(self):
        self.script("program.js", NODE, "node")

    def java(self):
        self.script("Main.java", JAVA, "java", "-Xmx256m")

    @staticmethod
    def needs(tool):
        """A load that cannot be made is no load without a failure."""
        if not shutil.which(tool):
            raise SystemExit(f"{tool} is not installed")

    def redis(self):
        self.needs("redis-benchmark")
        self.process = self.start(servers.redis(self.folder))
        self.pid = self.process.pid
        self.wait_for(lambda: (self.folder / "redis.sock").exists())
        words = ["redis-benchmark", "-s", str(self.folder / "redis.sock"), "-q", "-n", "20000", "-c", "8", "-d", "200", "-r", "5000", "-t", "set,get,lpush,lpop"]

        def once():
            answer = subprocess.run(words, capture_output=True, text=True, check=False)
            bad = answer.returncode != 0 or "rror" in answer.stdout + answer.stderr
            return 80000, int(bad), answer.stdout + answer.stderr

        self.load = Load(once)

    def nginx(self):
        self.needs("ab")
        port = servers.free_port()
        self.process = self.start(servers.nginx(self.folder / "nginx", port))
        self.pid = self.wait_for(lambda: self.worker())
        words = ["ab", "-q", "-n", "20000", "-c", "8", "-H", "Accept-Encoding: gzip", f"http://127.0.0.1:{port}/page.txt"]

        def once():
            answer = subprocess.run(words, capture_output=True, text=True, check=False)
            done, failed = (re.search(rf"{key} requests: +(\d+)", answer.stdout) for key in ("Complete", "Failed"))
            if answer.returncode != 0 or not done or not failed or "Non-2xx" in answer.stdout:
                return 0, 1, answer.stdout + answer.stderr
            return int(done[1]), int(failed[1]), answer.stdout

        self.load = Load(once)

    def worker(self):
        for child in harness.children_of(self.process.pid):
            if "worker" in pathlib.Path(f"/proc/{child}/cmdline").read_text():
                return child
        return None

    def postgres(self):
        server = servers.Postgres(self.folder)
        subprocess.run(list(map(str, server.init)), cwd="/", stdout=subprocess.DEVNULL, check=True)
        self.process = self.start(server.words)
        self.wait_for(lambda: subprocess.run(list(map(str, server.is_ready)), check=False).returncode == 0)
        client = self.start(["psql", "-qAtX", *server.login, "postgres"], stderr=subprocess.STDOUT)

        def ask(query):
            client.stdin.write(query + "\n")
            client.stdin.flush()
            return client.stdout.readline().strip()

        self.pid = int(ask("select pg_backend_pid();"))
        query = "select md5(string_agg(x::text || repeat('y', x % 50), ',' order by x desc)) from generate_series(1, 3000) x;"
        wanted = ask(query)

        def once():
            said = ask(query)
            return 1, int(said != wanted), said

        self.load = Load(once)

    def wait_for(self, condition):
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            found = condition()
            if found:
                return found
            time.sleep(0.01)
        raise SystemExit(f"{TIMEOUT} s for nothing")

    # ---- tests/oracle/steady

    def steady(self, source, *words, kind="glibc", options=()):
        """What it takes for wrong is told in the file "said"."""
        program = attached.build(f"steady/{source}", self.folder / "steady", kind, options)
        with open(self.folder / "said", "w") as said:
            self.process = self.ready(self.start([program, *words], stderr=said))
        self.pid = self.process.pid

    def dlclose(self):
        """Every other library has an allocator of its own."""
        for number in range(6):
            own = ("-DOWN_ALLOCATOR", "-Wl,-Bsymbolic") if number % 2 else ()
            attached.build("steady/library.c", self.folder / f"library{number}.so", options=("-shared", "-fPIC", *own))
        self.steady("comings.c", self.folder)

    def forks(self):
        self.steady("forks.c")

    def altstack(self):
        self.steady("ticks.c")

    def thousand(self):
        self.steady("crowd.c")

    def jumps(self):
        self.steady("jumps.cc", kind="glibc, C++")

    def own_operators(self):
        self.steady("jumps.cc", kind="glibc, C++", options=("-DOWN_OPERATORS",))

    def waits(self):
        self.steady("waits.c")

    def frames(self):
        self.record_options = ("--frames=python",)
        self.script("program.py", FRAMES, "/usr/bin/python3", "-I")

    # ---- Chromium

    def chromium(self, as_nobody=True):
        self.browser = browsers.Browser("chromium", self.folder / "browser", as_nobody=as_nobody)
        page = self.folder / "page.html"
        page.write_text(PAGE)
        words = self.browser.bare(self.browser.words("--remote-debugging-port=0", f"file://{page}"))
        with open(self.folder / "said", "w") as said:
            self.process = subprocess.Popen(words, env=self.browser.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
        self.started.append(self.process)
        self.port_file = self.browser.profile / "DevToolsActivePort"
        self.wait_for(lambda: self.port_file.exists() and self.port_file.stat().st_size > 0 and "steady" in devtools.titles(self.port_file))
        self.pid = self.wait_for(self.busiest_renderer)
        self.picture = devtools.picture(self.port_file)

    def chromium_root(self):
        self.chromium(as_nobody=False)

    def busiest_renderer(self):
        """Who works all the time: others are kept for pages to come."""
        before = self.renderers()
        time.sleep(1)
        worked = {pid: ticks - before.get(pid, ticks) for pid, ticks in self.renderers().items()}
        busiest = max(worked, key=worked.get, default=None)
        return busiest if busiest and worked[busiest] > 20 and sum(worked.values()) < 2 * worked[busiest] else None

    def renderers(self):
        """pid -> ticks of the processor."""
        found = {}
        for pid in memory_programs.below(self.process.pid):
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
                ticks = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])
            except OSError:
                continue
            if b"--type=renderer" in words:
                found[pid] = ticks
        return found

    def end_chromium(self, counts):
        """Its page's own account of its work, and its picture."""
        devtools.evaluate(self.port_file, "over = true")
        self.turns, self.wrong = (devtools.evaluate(self.port_file, what) for what in ("turns", "wrong"))
        if devtools.picture(self.port_file) != self.picture:
            counts["its picture is another one"] += 1
        if self.pid not in self.renderers():
            counts["its renderer is another one"] += 1
        for pid in [*memory_programs.below(self.process.pid), self.process.pid]:
            if memory_programs.name_of(pid) == "chromium":
                memory_programs.with_signal(pid, 9)
        self.process.wait(TIMEOUT)

    # ---- memlog

    def command(self, *words):
        return subprocess.run([str(harness.MEMLOG), *map(str, words)], env=self.environment(), cwd=self.folder, capture_output=True, text=True,
                              timeout=TIMEOUT, check=False)

    def trouble(self, word):
        answer = self.command(word, "--json", self.pid)
        try:
            (row,) = json.loads(answer.stdout)["processes"]
        except (ValueError, KeyError):
            return answer.stderr.strip() or f"exit code {answer.returncode}"
        return "" if row["done"] else row["trouble"] or "no reason"

    def begin(self, counts):
        """memlog that stays. One that could not attach is counted, and another one tried."""
        for attempt in range(TRIES):
            self.log = self.folder / f"memlog.stderr{attempt}"
            with open(self.log, "w") as log:
                self.host = subprocess.Popen(
                    [str(harness.MEMLOG), "attach", "--no-page", *self.record_options, "-o", str(self.folder / f"dumps{attempt}"), str(self.pid)],
                    env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True,
                )
            self.started.append(self.host)
            self.wait_for(lambda: "attached to " in self.log.read_text() or self.host.poll() is not None)
            if self.host.poll() is None:
                return
            counts["attach: " + re.sub("[0-9]+", "N", self.log.read_text().strip())] += 1
        raise SystemExit(self.log.read_text())

    def kill_tracer(self, moment, killed):
        """The next tracer of the host's, so long after it was seen first."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and not killed:
            for child in harness.children_of(self.host.pid):
                try:
                    if pathlib.Path(f"/proc/{child}/comm").read_text() == "memlog-tracer\n":
                        time.sleep(moment)
                        os.kill(child, signal.SIGKILL)
                        killed.append(child)
                        return
                except OSError:
                    return
            time.sleep(0.0005)

    def cycle(self, counts):
        """Start, stop; now and then with the tracer of one of them killed."""
        victim = self.random.choice(("start", "stop")) if self.random.random() < self.options.kills else ""
        for word in ("start", "stop"):
            killed = []
            killer = threading.Thread(target=self.kill_tracer, args=(self.random.uniform(0, self.options.kill_span_ms / 1000), killed))
            if word == victim:
                killer.start()
            trouble = self.trouble(word)
            if word == victim:
                killer.join()
                counts["killed"] += len(killed)
            if trouble and not killed:
                counts[f"{word}: {re.sub('[0-9]+', 'N', trouble)}"] += 1
            if trouble and word == "start":
                return  # it is not recorded: there is nothing to stop

    def alive(self):
        return self.process.poll() is None and pathlib.Path(f"/proc/{self.pid}").exists()

    def cycles(self, name):
        counts = collections.Counter()
        self.begin(counts)
        self.trouble("stop")
        before = self.look()
        done = 0
        end = time.monotonic() + self.options.seconds
        while done < self.options.cycles and time.monotonic() < end and self.alive():
            self.cycle(counts)
            done += 1
        return self.judge(name, done, counts, before)

    def look(self):
        """Mappings, descriptors, code. Libraries may go while their code is read."""
        for _ in range(TRIES * 20):
            try:
                return mappings(self.pid), attached.files_of(self.pid), attached.text_of(self.pid)
            except OSError:
                if not self.alive():
                    break
        raise SystemExit("its code cannot be read")

    def judge(self, name, done, counts, before):
        books = self.exact(counts) if self.books and self.alive() else "-"
        if self.alive():
            self.trouble("stop")
        after = self.look() if self.alive() else None
        if after is None:
            counts[f"it has ended ({self.process.poll()})"] += 1
        else:
            for (start, path), text in before[2].items():
                now = after[2].get((start, path), text)
                if now != text and not path.startswith(str(self.folder)):  # libraries that come and go: another part may lie there
                    at = next((at for at, (one, other) in enumerate(zip(text, now)) if one != other), min(len(text), len(now)))
                    counts[f"its code is not as it was: {path} at {at:#x} of {len(text):#x}"] += 1
        self.finish(counts)
        stops = [float(found) for found in re.findall(r"stopped for ([0-9.]+) ms", self.log.read_text())]
        killed = counts.pop("killed", 0)
        load = self.load or types.SimpleNamespace(answers=self.turns, failed=self.wrong)
        row = (name, done, killed, sum(counts.values()), f"{statistics.median(stops):.1f}", f"{max(stops):.1f}", load.answers, load.failed,
               f"{before[0]} to {after[0] if after else '-'}", f"{len(before[1])} to {len(after[1]) if after else '-'}", books)
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
        for reason, count in counts.most_common():
            print(f"  {count} times: {reason}", flush=True)
        if load.failed and self.load:
            print(f"  the load said: {load.said[-500:]}")
        if (self.folder / "said").exists() and not self.browser:
            print("".join(f"  {line}\n" for line in (self.folder / "said").read_text().splitlines()), end="", flush=True)
        return not counts and not load.failed

    def exact(self, counts):
        """An epoch by the books at the end of it all."""
        self.tell("quiet")
        trouble = self.trouble("start")
        if trouble and "already" not in trouble:
            counts[f"last start: {trouble}"] += 1
            return "not held"
        self.tell("epoch 5000")
        books = json.loads(self.tell("books"))
        self.host.send_signal(signal.SIGINT)
        self.host.wait(TIMEOUT)
        (dump,) = self.folder.glob("dumps*/*.exit.pftrace")
        report = json.loads(self.command("report", "--json", dump).stdout)
        (entry,) = [entry for entry in report["processes"] if entry["pid"] == self.pid and entry["state"] == "running" and entry["recorded"]]
        for index, figure in enumerate(("total_bytes", "total_blocks", "live_bytes", "live_blocks")):
            if entry[figure] != sum(books[site][index] for site in attached.SITES):
                counts[f"books: {figure} {entry[figure]} instead of {sum(books[site][index] for site in attached.SITES)}"] += 1
                return "not exact"
        return "exact"

    def finish(self, counts):
        self.turns = self.wrong = 0
        if self.load:
            self.load.end()
        (self.folder / "stop").touch()
        if self.books and self.process.poll() is None:
            self.tell("warm")
            self.process.stdin.write("end 7\n")
            self.process.stdin.flush()
            code = self.process.wait(TIMEOUT)
            if code != 7:
                counts[f"it ended with {code}"] += 1
        elif self.browser:
            self.end_chromium(counts)
        elif not self.load and self.process.poll() is None:
            self.turns, self.wrong = map(int, self.process.stdout.readline().split())
            code = self.process.wait(TIMEOUT)
            if code != 0:
                counts[f"it ended with {code}"] += 1
        if self.host.poll() is None:
            self.host.send_signal(signal.SIGINT)
            self.host.wait(TIMEOUT)

    def clean(self):
        for process in reversed(self.started):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        if not self.options.keep:
            shutil.rmtree(self.folder, ignore_errors=True)


def mappings(pid):
    return len(pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end a target's cycles after so long")
    parser.add_argument("--kills", type=float, default=0.3)
    parser.add_argument("--kill-span-ms", type=float, default=60, help="a tracer is killed within so long after it was seen first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("targets", nargs="+", choices=TARGETS)
    options = parser.parse_args()
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|", flush=True)
    all_right = True
    for name in options.targets:
        play = Play(options)
        try:
            getattr(play, name)()
            all_right = play.cycles(name) and all_right
        finally:
            play.clean()
    print(f"load: {' '.join(f'{one:.1f}' for one in os.getloadavg())}, {os.cpu_count()} processors, seed {options.seed}")
    sys.exit(0 if all_right else 1)


if __name__ == "__main__":
    main()
