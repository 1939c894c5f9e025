"""Fourteen programs whose dumps tools/bench/fleet makes a fleet of, each killed at the moment when it holds much; and their dumps as templates."""
import gzip
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BODY_BYTES = 14000  # of a body, gzipped: what a machine that sends often sends
HEADERS = ["algorithm", "chrono", "functional", "future", "iostream", "map", "random", "regex", "sstream", "string", "thread", "vector"]
CPP = "".join(f"#include <{name}>\n" for name in HEADERS) + "".join(
    f"bool match{i}(const char *s) {{ std::regex r(\"a+{i}\"); return std::regex_match(s, r); }}\n" for i in range(6))
SQL = [
    "create table t(a integer primary key, b text); insert into t with recursive n(i) as (select 1 union all select i + 1 from n "
    "where i < 100000) select i, hex(randomblob(40)) from n; create index x on t(b); select count(*) from t;", ".shell kill -9 $PPID"]
REDIS = """
d=$(mktemp -d); redis-server --port 0 --unixsocket $d/s --save '' >/dev/null & p=$!
until redis-cli -s $d/s ping >/dev/null 2>&1; do sleep 0.1; done
i=0; while [ $i -lt 10000 ]; do echo "hset h:$((i % 500)) f$i value$i"; echo "rpush l:$((i % 300)) $i"; i=$((i + 1)); done | redis-cli -s $d/s >/dev/null
kill -9 $p; rm -rf $d"""
NGINX = """
d=$(mktemp -d); mkdir $d/tmp; echo hello >$d/index.html; chmod -R 777 $d
cat >$d/conf <<END
daemon off; master_process off; pid $d/pid; error_log /dev/null; worker_processes 1; events {}
http { access_log off; client_body_temp_path $d/tmp; gzip on; gzip_min_length 1; server { listen unix:$d/s; root $d; } }
END
nginx -c $d/conf & p=$!
until [ -S $d/s ]; do sleep 0.1; done
i=0; while [ $i -lt 40 ]; do curl -s -m 2 --compressed --unix-socket $d/s http://x/index.html >/dev/null; i=$((i + 1)); done; kill -9 $p; rm -rf $d"""
JQ = """
d=$(mktemp -d); mkfifo $d/end
jq -n '[range(30000) | {a: ., b: "text \\(.)"}] as $all | ($all | group_by(.a % 100)) as $groups | ($groups | length), input' <$d/end >$d/out & p=$!
exec 3>$d/end; until [ -s $d/out ]; do sleep 0.1; i=$((i + 1)); [ $i -lt 100 ] || break; done; kill -9 $p; rm -rf $d"""
GDB = """gdb -q -batch -ex 'break main' -ex 'info functions ^x' -ex 'shell kill -9 $PPID' "$0" """
CMAKE = """
d=$(mktemp -d); echo 'cmake_minimum_required(VERSION 3.10)
project(x NONE)
foreach(i RANGE 20000)
list(APPEND all "value ${i}")
set(v${i} ${all})
if(i GREATER 600)
break()
endif()
endforeach()
execute_process(COMMAND sh -c "kill -9 $PPID")' >$d/CMakeLists.txt; cmake -S $d -B $d/b >/dev/null; rm -rf $d"""
COMPILE = 'printf %s "$0" > /tmp/fleet$$.cc; {} -O1 -c -o /dev/null /tmp/fleet$$.cc; rm -f /tmp/fleet$$.cc'

# Name, the process whose memory it is, its executable, and what is run.
PROGRAMS = {
    "python3": ("python3", ["/usr/bin/python3", "-c", "import asyncio, unittest, http.server, xml.dom.minidom, ctypes, decimal, email, json, os\n"
                            "keep = [json.loads('{\"a\": [1, \"%d\"]}' % i) for i in range(20000)]\nos.kill(os.getpid(), 9)"]),
    "node": ("node", ["node", "-e", "const keep = []; for (let i = 0; i < 9000; i++) keep.push(Buffer.alloc(5000)); process.kill(process.pid, 'SIGKILL')"]),
    "git": ("git", ["sh", "-c", "git -C \"$0\" log --stat -n 200 | tail -n 1 >/dev/null", str(ROOT)]),
    "sqlite3": ("sqlite3", ["sqlite3", ":memory:", *SQL]),
    "perl": ("perl", ["perl", "-e", "use POSIX; use Data::Dumper; my %h = map { $_ => [1..5] } 1..20000; kill 9, $$"]),
    "cc1plus": ("cc1plus", ["sh", "-c", COMPILE.format("g++"), CPP]),
    "clang": ("clang", ["sh", "-c", COMPILE.format("clang++"), CPP]),
    "redis-server": ("redis-server", ["sh", "-c", REDIS]),
    "nginx": ("nginx", ["sh", "-c", NGINX]),
    "php": ("php", ["php", "-r", "$kept = []; for ($i = 0; $i < 60000; $i++) { $kept[] = ['index' => $i, 'text' => \"value $i\"]; } exec('kill -9 $PPID');"]),
    "vim": ("vim", ["vim", "-n", "-u", "NONE", "-es", "-c", "for i in range(20000) | call append(0, repeat('text ', 20) . i) | endfor", "-c", "%s/text/word/g",
                    "-c", "call system('kill -9 $PPID')"]),
    "gdb": ("gdb", ["sh", "-c", GDB, "/usr/bin/python3"]),
    "cmake": ("cmake", ["sh", "-c", CMAKE]),
    "jq": ("jq", ["sh", "-c", JQ]),
}
FIGURES = ("peak_sizes", "peak_counts", "total_sizes", "total_counts")


def body_of(out, words, folder):
    """The report of the program's last dump, as a machine would send it."""
    subprocess.run([str(out / "memlog"), "run", "-q", "--no-page", "-o", str(folder / "dumps"), "--", *words],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=False, timeout=60)
    dump = max((folder / "dumps").glob("*.pftrace"))
    subprocess.run([str(out / "memlog"), "upload", "--dry-run", "--form=trace", f"--upload-max-bytes={BODY_BYTES}", "--upload-names=all", "-o", str(folder / "body"), str(dump)],
                   stderr=subprocess.DEVNULL, check=True, timeout=60)
    return json.loads(gzip.decompress((folder / "body").read_bytes()))


class Template:
    """Frames, stacks and rows of all processes of one name, numbered from 1."""

    def __init__(self, body, process):
        self.frames, self.stacks, self.rows = {}, {}, {}
        names = {event["pid"]: event["args"]["name"] for event in body["traceEvents"] if event["ph"] == "M" and event["name"] == "process_name"}
        for event in body["traceEvents"]:
            if event["ph"] == "v" and names.get(event["pid"], "").startswith(process[:15]) and "heaps_v2" in event["args"]["dumps"]:
                self.take(event["args"]["dumps"])

    def frame(self, text, regions):
        """As a collector's analyzer reads it: a function, or a place in a module."""
        told = (text, "", "", 0)
        if text.startswith("pc:"):
            address = int(text[3:], 16)
            for start, size, bias, module, build in regions:
                if start <= address < start + size:
                    told = ("", module, build, address - bias)
        return self.frames.setdefault(told, len(self.frames) + 1)

    def take(self, dumps):
        regions = [(int(one["sa"], 16), int(one["sz"], 16), int(one.get("lb", "0"), 16), one.get("mf", ""), one.get("id", ""))
                   for one in dumps.get("process_mmaps", {}).get("vm_regions", [])]
        maps = dumps["heaps_v2"]["maps"]
        texts = {one["id"]: one["string"] for one in maps["strings"]}
        stacks = {0: 0}
        for node in maps["nodes"]:
            text = texts[node["name_sid"]]
            key = (stacks[node.get("parent", 0)], self.frame(text, regions))
            stacks[node["id"]] = 0 if text == "[no stack]" else self.stacks.setdefault(key, len(self.stacks) + 1)
        for heap in dumps["heaps_v2"]["allocators"].values():
            self.add(stacks, heap["nodes"], 0, (heap["sizes"], heap["counts"]))
        for heap in dumps["memlog"]["heaps"].values():
            self.add(stacks, heap["nodes"], 2, [heap[name] for name in FIGURES])

    def add(self, stacks, nodes, first, columns):
        for i, node in enumerate(nodes):
            row = self.rows.setdefault(stacks[node], [0] * 6)
            for number, column in enumerate(columns):
                row[first + number] += int(column[i])

    def write(self, path, name):
        modules = [module for _, module, _, _ in self.frames if module and ".so" not in module]
        module = max(set(modules), key=modules.count, default=name)
        clean = str.maketrans("\t\n", "  ")
        with open(path, "w", encoding="utf-8") as file:
            print("program", name, module, sep="\t", file=file)
            for function, place, build, offset in self.frames:
                # The contract's limits; more than that the analyzer cuts, too.
                print("frame", function.translate(clean)[:120], place.translate(clean)[:120], build[:64], offset, sep="\t", file=file)
            for parent, frame in self.stacks:
                print("stack", parent, frame, sep="\t", file=file)
            for stack, figures in self.rows.items():
                print("row", stack, *figures, sep="\t", file=file)


def record(out, folder):
    """A template of each program that is here, in `folder`; what is there already stays."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (process, words) in PROGRAMS.items():
        path = folder / f"{name}.template"
        if path.exists():
            continue
        with tempfile.TemporaryDirectory() as temporary:
            try:
                template = Template(body_of(out, words, pathlib.Path(temporary)), process)
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                print(f"{name:13} was not recorded: {error}", flush=True)
                continue
        if not template.rows:
            print(f"{name:13} was not recorded: no process is named {process}", flush=True)
            continue
        template.write(path, name)
        live = sum(row[0] for row in template.rows.values())
        print(f"{name:13} {len(template.rows):6} stacks {len(template.frames):6} frames {live:10} bytes live, {os.path.getsize(path)} bytes", flush=True)
