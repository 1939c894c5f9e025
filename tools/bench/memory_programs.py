"""The programs whose memory tools/bench/components divides among its owners: how each is prepared, brought to its moment, and found."""
import os
import pathlib
import shutil
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ["algorithm", "chrono", "functional", "future", "iostream", "map", "random", "regex", "sstream", "string", "thread", "vector"]
CPP = "".join(f"#include <{name}>\n" for name in HEADERS) + "".join(
    f"bool match{i}(const char *s) {{ std::regex r(\"a+{i}\"); return std::regex_match(s, r); }}\n" for i in range(12))
NUMPY = """
import json, numpy, sys
arrays = [numpy.ones((2000, 2000)) for _ in range(5)]
objects = [json.loads('{"a": [1, "%d"]}' % i) for i in range(200000)]
del objects[::3]
"""
NODE = """
const kept = []; for (let i = 0; i < 300000; i++) kept.push({index: i, text: 'value ' + i, list: [i, i + 1]});
const buffers = []; for (let i = 0; i < 2000; i++) buffers.push(Buffer.alloc(20000, 1));
const code = []; for (let i = 0; i < 400; i++) code.push(new Function('x', 'return x * ' + i + ' + 1')(i));
console.log(JSON.stringify(process.memoryUsage())); console.log('ready'); process.stdin.once('data', () => process.exit(0));
"""
JAVA = """
import java.util.*;
class Keeps {
    public static void main(String[] words) throws Exception {
        Map<Integer, String> kept = new HashMap<>();
        for (int i = 0; i < 500000; i++) { kept.put(i, "value " + i); }
        java.nio.ByteBuffer direct = java.nio.ByteBuffer.allocateDirect(20 << 20);
        for (int i = 0; i < direct.capacity(); i += 4096) { direct.put(i, (byte) 1); }
        System.out.println("ready");
        System.in.read();
        System.out.println(kept.size());
    }
}
"""
PHP = """<?php
$kept = []; for ($i = 0; $i < 1000000; $i++) { $kept[] = ['index' => $i, 'text' => "value $i"]; }
echo "ready\\n"; fgets(STDIN);
"""
RUBY = """
$kept = (0...600000).map { |i| { index: i, text: "value #{i} of a longer text than fits into one slot" } }
$kept.select!.with_index { |_, i| i % 3 != 0 }
puts 'ready'; $stdout.flush; gets
"""
GO = """package main

// #include <stdlib.h>
// #include <string.h>
// static void *keep(size_t bytes) { return memset(malloc(bytes), 1, bytes); }
import "C"
import (
\t"fmt"
\t"strings"
)

var kept [][]byte

func main() {
\tfor i := 0; i < 20000; i++ {
\t\tkept = append(kept, []byte(strings.Repeat("x", 3000)))
\t\tC.keep(500)
\t}
\tfmt.Println("ready")
\tfmt.Scanln()
}
"""
RUST = "".join(
    f"pub mod m{i} {{ use std::collections::*; pub fn f(n: u64) -> String {{ let m: BTreeMap<u64, Vec<String>> = (0..n).map(|i| (i, vec![format!(\"{{}}\", i); 3]))"
    f".collect(); format!(\"{{:?}}\", m) }} }}\n" for i in range(60)) + "fn main() {" + " ".join(f"println!(\"{{}}\", m{i}::f(3));" for i in range(60)) + "}\n"
PAGE = "<!doctype html><script>kept = []; for (let i = 0; i < 300000; i++) kept.push({i, t: 'text ' + i});\ndocument.write(kept.length);</script><p>" + "word " * 20000
NGINX = """
daemon off; master_process on; worker_processes 2; pid {folder}/pid; error_log {folder}/error;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u;
scgi_temp_path {folder}/s; server {{ listen unix:{folder}/socket; root {folder}; }} }}
"""
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
POSTGRES_BIN = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), default=pathlib.Path("/usr/bin"))


class Program:
    """`words` run under memlog. Its moment: `when(run)` returns; a number: a process of it has so many MiB of private memory. `feed`
    goes to its standard input, which stays open; None: it is closed. `rows`: label -> a part of a command line, of which the process with
    most private memory is shown; "" matches any."""

    def __init__(self, name, needs, words, when="ready", rows=None, prepare=None, feed=b"", environment=None, packages=None):
        self.name = name
        self.needs = needs
        self.words = words
        self.when = when
        self.rows = rows or {name: ""}
        self.prepare = prepare
        self.feed = feed
        self.environment = environment or {}
        self.packages = packages or [needs]

    def missing(self):
        return None if shutil.which(self.needs) or pathlib.Path(self.needs).exists() else f"no {self.needs}"


def writes(name, text):
    return lambda folder: (folder / name).write_text(text)


def run(folder, *words, **how):
    subprocess.run(words, cwd=folder, check=True, **{**QUIET, **how})


def cc1plus():
    return subprocess.run(["g++", "-print-prog-name=cc1plus"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip() if shutil.which("g++") else "cc1plus"


def rustc():
    """Not rustup's, which looks into the user's own folder."""
    if not shutil.which("rustc"):
        return "rustc"
    return subprocess.run(["rustc", "--print", "sysroot"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip() + "/bin/rustc"


def preprocess(folder):
    (folder / "a.cc").write_text(CPP)
    run(folder, "g++", "-std=c++17", "-E", "a.cc", "-o", "a.ii")


def compile_java(folder):
    (folder / "Keeps.java").write_text(JAVA)
    run(folder, "javac", "Keeps.java")


def build_go(folder):
    (folder / "keeps.go").write_text(GO)
    run(folder, "go", "build", "-o", "keeps", "keeps.go", env={**os.environ, "GO111MODULE": "off", "GOCACHE": str(folder / "cache"), "CGO_ENABLED": "1"})


def make_database(folder):
    sql = "create table t(a integer primary key, b text); insert into t with recursive n(i) as (select 1 union all select i + 1 from n where i < 400000) select i, hex(randomblob(60)) from n;"
    run(folder, "sqlite3", "t.db", sql)


SQL = "pragma mmap_size=1000000000; select count(*), max(b) from t; create temp table k as select b from t where a % 3 = 0; create index temp.x on k(b);\n.print ready\n"


def make_sheet(folder):
    (folder / "sheet.csv").write_text("\n".join(",".join(f"cell {row}.{column}" for column in range(12)) for row in range(6000)))


def nobody():
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []


def make_cluster(folder):
    folder.chmod(0o777)
    run(folder, *nobody(), str(POSTGRES_BIN / "initdb"), "-D", str(folder / "base"), "-A", "trust", "-U", "bench")


def until(answers, seconds=60):
    """Until it returns something; False: it has not in that time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answers():
            return True
        time.sleep(0.02)
    return False


def succeeds(*words):
    return lambda: subprocess.run(words, check=False, **QUIET).returncode == 0


def bench_postgres(moment):
    ask = ["-h", str(moment.folder), "-U", "bench"]
    psql, pgbench = str(POSTGRES_BIN / "psql"), str(POSTGRES_BIN / "pgbench")
    until(succeeds(psql, *ask, "-c", "select 1", "postgres"))
    run(moment.folder, pgbench, *ask, "-i", "-s", "5", "-q", "postgres")
    moment.beside(pgbench, *ask, "-c", "4", "-T", "60", "postgres")
    time.sleep(4)


def fill_redis(moment):
    socket = str(moment.folder / "socket")
    until(succeeds("redis-cli", "-s", socket, "ping"))
    run(moment.folder, "redis-benchmark", "-s", socket, "-q", "-n", "200000", "-r", "100000", "-d", "200", "-P", "16", "-t", "set,lpush,hset,zadd")
    run(moment.folder, "redis-cli", "-s", socket, "eval", "for i=1,60000 do redis.call('del', 'key:' .. string.format('%012d', i)) end", "0")


def ask_nginx(moment):
    words = ["curl", "-s", "--unix-socket", str(moment.folder / "socket"), "http://localhost/page.html"]
    until(succeeds(*words))
    for _ in range(50):
        run(moment.folder, *words)


def settles(seconds):
    """So long after each of its rows has a process: on a machine that is busy, a browser's second one comes late."""
    def when(moment):
        until(lambda: moment.process.poll() is not None or all(
            any(part in command_line(pid) for pid in moment.members()) for part in moment.program.rows.values()))
        time.sleep(seconds)
    return when


def command_line(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def ticks_of(pid):
    try:
        return sum(int(ticks) for ticks in pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])
    except OSError:
        return 0


def rests(least, most=180):
    """After `least` seconds: until all its processes together have had hardly a hundredth of a processor for 3 s, or `most` have passed."""
    def when(moment):
        time.sleep(least)
        end = time.monotonic() + most
        while time.monotonic() < end:
            before = sum(ticks_of(pid) for pid in moment.members())
            time.sleep(3)
            if sum(ticks_of(pid) for pid in moment.members()) - before <= 3:
                return
    return when


REDIS = ["redis-server", "--port", "0", "--unixsocket", "{folder}/socket", "--save", "", "--daemonize", "no", "--dir", "{folder}"]
CHROMIUM = [
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync",
    "--user-data-dir={folder}/profile", "--remote-debugging-port=0", "file://{folder}/page.html",
]
FIREFOX = ["firefox-esr", "--headless", "--no-remote", "--profile", "{folder}/home", "file://{folder}/page.html"]


def prepare_nginx(folder):
    folder.chmod(0o755)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder))
    (folder / "page.html").write_text(PAGE)


def prepare_firefox(folder):
    (folder / "home").mkdir()
    (folder / "page.html").write_text(PAGE)


PROGRAMS = [
    Program("cc1plus", "g++", [cc1plus(), "-quiet", "-std=c++17", "-O2", "-fpreprocessed", "a.ii", "-o", "a.s"], when=200, prepare=preprocess),
    Program("clang++", "clang++", ["clang++", "-std=c++17", "-O2", "-c", "a.cc", "-o", "a.o"], when=60, prepare=writes("a.cc", CPP), packages=["clang"]),
    Program("python3 + numpy", "/usr/bin/python3", ["/usr/bin/python3", "-c", NUMPY + "print('ready', flush=True)\nsys.stdin.readline()"],
            packages=["python3-numpy"]),
    Program("node", "node", ["node", "a.js"], prepare=writes("a.js", NODE), packages=["nodejs"]),
    Program("java", "java", ["java", "-Xmx300m", "-cp", "{folder}", "Keeps"], prepare=compile_java, packages=["default-jdk-headless"]),
    Program("php", "php", ["php", "-d", "memory_limit=-1", "a.php"], prepare=writes("a.php", PHP), packages=["php-cli"]),
    Program("ruby", "ruby", ["ruby", "a.rb"], prepare=writes("a.rb", RUBY)),
    Program("sqlite3 with mmap", "sqlite3", ["sqlite3", "t.db"], prepare=make_database, feed=SQL.encode()),
    Program("git pack-objects", "git", ["git", "-C", str(ROOT), "pack-objects", "--all", "--revs", "--no-reuse-delta", "--window=50", "-q", "{folder}/pack"],
            when=25, rows={"git pack-objects": "pack-objects"}, feed=None),
    Program("redis (jemalloc)", "redis-server", REDIS, when=fill_redis),
    Program("redis (libc's malloc)", "redis-server", REDIS, when=fill_redis, environment={"LD_PRELOAD": "/lib/x86_64-linux-gnu/libc.so.6"}),
    Program("PostgreSQL", str(POSTGRES_BIN / "postgres"), [*nobody(), str(POSTGRES_BIN / "postgres"), "-D", "{folder}/base", "-k", "{folder}", "-h", ""],
            when=bench_postgres, prepare=make_cluster, rows={"PostgreSQL, a backend": "bench postgres", "PostgreSQL, checkpointer": "checkpointer"},
            packages=["postgresql-15"]),
    Program("nginx", "nginx", ["nginx", "-p", "{folder}", "-c", "{folder}/nginx.conf"], when=ask_nginx, prepare=prepare_nginx,
            rows={"nginx, a worker": "worker"}, packages=["nginx-light", "curl"]),
    Program("LibreOffice", "soffice", ["soffice", "--headless", "-env:UserInstallation=file://{folder}/home", "--convert-to", "pdf", "--outdir", "{folder}", "sheet.csv"],
            when=130, prepare=make_sheet, rows={"LibreOffice": "soffice.bin"}, packages=["libreoffice-calc-nogui"]),
    Program("rustc", "rustc", [rustc(), "-O", "-C", "codegen-units=4", "a.rs", "-o", "a"], when=90, prepare=writes("a.rs", RUST)),
    Program("Go with cgo", "go", ["{folder}/keeps"], prepare=build_go, packages=["golang-go"]),
    Program("Chromium", "chromium", CHROMIUM, when=settles(8), prepare=writes("page.html", PAGE),
            rows={"Chromium, browser": "file://", "Chromium, renderer": "--type=renderer"}),
    Program("Firefox", "firefox-esr", FIREFOX, when=settles(12), prepare=prepare_firefox, environment={"MOZ_DISABLE_CONTENT_SANDBOX": "1"},
            rows={"Firefox": "--no-remote", "Firefox, web content": "-contentproc"}),
]
BY_NAME = {program.name: program for program in PROGRAMS}


class Moment:
    """A program that runs under memlog, up to its moment."""

    def __init__(self, program, folder, memlog):
        self.program = program
        self.folder = folder
        self.others = []
        self.said = []  # lines before "ready"
        words = [word.replace("{folder}", str(folder)) for word in program.words]
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
        self.environment = {**inherited, **program.environment, "XDG_RUNTIME_DIR": str(folder / "run"), "HOME": str(folder)}
        self.process = subprocess.Popen(
            [str(memlog), "run", "-q", "--no-page", "--dump-signal=USR2", "-o", str(folder / "dumps"), "--", *words], cwd=folder, env=self.environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(folder / "stderr", "wb"), start_new_session=True)

    def beside(self, *words):
        self.others.append(subprocess.Popen(words, cwd=self.folder, **QUIET))

    def arrive(self):
        """False: it ended before, or never came there."""
        when = self.program.when
        if self.program.feed is None:
            self.process.stdin.close()
        else:
            self.process.stdin.write(self.program.feed)
            self.process.stdin.flush()
        if when == "ready":
            for line in self.process.stdout:
                if line.strip() == b"ready":
                    return True
                self.said.append(line.decode(errors="replace").strip())
            return False
        if callable(when):
            when(self)
        elif when is not None:
            until(lambda: self.process.poll() is not None or any(private_kb(pid) >= when << 10 for pid in self.members()))
        return self.process.poll() is None

    def members(self):
        """Every process below memlog but its service and its readers."""
        return [pid for pid in below(self.process.pid) if not name_of(pid).startswith("memlog-")]

    def end(self):
        for other in self.others:
            other.kill()
            other.wait()
        for pid in self.members():
            with_signal(pid, signal.SIGCONT)
            with_signal(pid, signal.SIGKILL)
        if not self.process.stdin.closed:
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def with_signal(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def below(pid):
    try:
        children = [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    except OSError:
        return []
    return [found for child in children for found in (child, *below(child))]


def private_kb(pid):
    """statm's anonymous part: cheap, and near enough to choose a moment."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        return 0
    return 4 * (int(fields[1]) - int(fields[2]))
