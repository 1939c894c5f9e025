#!/usr/bin/python3
"""Hold the stacks of real programs against libunwind: tools/dev/check/stacks.py [--out=DIR] [--every=N] [--size=N] [PROGRAM...].

Every allocation's stack is walked, and what the client's memo of stacks says is held against the walk; every Nth is walked by
libunwind too (20 us a frame: some 3,000 stacks a second). Prints a line a program, and the programs that differ to exit 1.
--size multiplies the work, for millions of stacks. What is not equal and not a difference: libunwind gives up before the
stack's end (node's generated code, and code without tables); such a stack counts as far as libunwind went, or not at all.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent

SQL = """
create table t(id integer primary key, name text, value real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows}) insert into t select i, 'name' || i, i * 1.5 from n;
create index t_name on t(name);
select count(*), sum(value), group_concat(distinct substr(name, 5, 2)) from t;
create table u as select a.id, upper(a.name) as name, b.value from t a join t b on b.id = a.id / 2 where a.id % 3 = 0;
select count(distinct json_extract(json_object('n', name, 'v', json_array(value)), '$.n')) from u;
delete from t where id % 7 = 0;
"""

PYTHON = """
import ast, json, re
source = open(ast.__file__, encoding="utf-8").read()
for _ in range({size}):
    tree = ast.parse(source)
    compile(tree, "x", "exec")
    words = re.findall(r"[A-Za-z_]+", source)
    json.loads(json.dumps({{word: [word, len(word)] for word in words}}))
    try:
        eval("1 +")
    except SyntaxError:
        pass
"""

PERL = """
for my $round (1 .. {size}) {{
    my %h; for my $i (1 .. 4000) {{ $h{{"key$i"}} = [$i, "v" x ($i % 50)]; }}
    my $text = join ",", map {{ "$_=$h{{$_}}[1]" }} sort keys %h;
    my $n = () = $text =~ /key(\\d+)=v+/g; eval {{ die {{ n => $n }} }}; my $f = sub {{ my $s = shift; sprintf "%s-%d", $s, length $s }};
    my @l = map {{ $f->($_) }} split /,/, $text;
}}
"""

CXX = """
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>
template <int N> struct Part {{
    std::map<int, std::vector<std::string>> m; std::unordered_map<std::string, std::shared_ptr<int>> u; std::function<int(int)> f;
    int go() {{ m[N].push_back(std::to_string(N)); u[m[N][0]] = std::make_shared<int>(N); f = [this](int x) {{ return x + (int)m.size(); }};
        std::sort(m[N].begin(), m[N].end()); std::ostringstream o; o << f(N); return (int)o.str().size(); }}
}};
template <int N> int all() {{ if constexpr (N > 0) return Part<N>().go() + all<N - 1>(); else return 0; }}
int main() {{ return all<{parts}>() + std::regex_match("a1", std::regex("([a-z]+)([0-9]+)")); }}
"""

NODE = """
const zlib = require('zlib'), crypto = require('crypto');
for (let i = 0; i < {size}; i++) {{
    const rows = Array.from({{length: 3000}}, (_, n) => ({{n, s: 'x'.repeat(n % 100)}}));
    const text = zlib.gunzipSync(zlib.gzipSync(JSON.stringify(rows))).toString();
    crypto.createHash('sha256').update(text).digest('hex'); new RegExp('([a-z]+)' + i).test(text); JSON.parse(text);
}}
"""


def sqlite3(folder, size):
    return ["sqlite3", ":memory:", SQL.format(rows=4000 * size)], {}


def python3(folder, size):
    return [EXECUTABLES["python3"], "-c", PYTHON.format(size=size)], {"PYTHONMALLOC": "malloc"}


def perl(folder, size):
    return ["perl", "-e", PERL.format(size=size)], {}


def compiler(name):
    def command(folder, size):
        source = folder / "a.cc"
        source.write_text(CXX.format(parts=4 * size))
        return [name, "-std=c++17", "-O1", "-c", str(source), "-o", str(folder / "a.o")], {}
    return command


def node(folder, size):
    return ["node", "-e", NODE.format(size=size)], {}


def redis(folder, size):
    socket = folder / "redis"
    script = f"""redis-server --port 0 --unixsocket {socket} --save '' --appendonly no --loglevel warning & server=$!
        for i in $(seq 200); do redis-cli -s {socket} ping >/dev/null 2>&1 && break; sleep 0.05; done
        redis-benchmark -s {socket} -q -n {2000 * size} -c 5 -P 4 -r 1000 -d 100 -t set,get,lpush,rpop,sadd,hset,zadd,mset >/dev/null
        redis-cli -s {socket} eval "for i = 1, 2000 do redis.call('set', 'k' .. i, string.rep('x', i)) end" 0
        redis-cli -s {socket} shutdown nosave; wait $server"""
    return ["/bin/sh", "-c", script], {}


PROGRAMS = {
    "sqlite3": sqlite3, "python3": python3, "perl": perl, "g++": compiler("g++"), "clang++": compiler("clang++"), "node": node,
    "redis": redis,
}
EXECUTABLES = {"redis": "redis-server", "python3": "/usr/bin/python3"}


def run(out, name, every, size):
    """(stacks in all, checked, different, not walked to their end) of the program and its children."""
    with tempfile.TemporaryDirectory(prefix="memlog-stacks.") as text:
        folder = pathlib.Path(text)
        words, changes = PROGRAMS[name](folder, size)
        env = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
        memlog = [str(out / "memlog"), "run", "-q", "--no-page", f"--unwind-check={every}", "-o", str(folder / "dumps"), "--"]
        answer = subprocess.run(
            [*memlog, *words], env=env | changes, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            check=False,
        )
        dumps = sorted((folder / "dumps").glob("*.exit.pftrace"))
        if answer.returncode != 0 or len(dumps) != 1:
            raise RuntimeError(f"{name}: exit code {answer.returncode}, {len(dumps)} dumps\n{answer.stderr.decode(errors='replace')}")
        report = json.loads(subprocess.run([out / "memlog", "report", "--json", "--limit=1", dumps[0]], env=env, stdout=subprocess.PIPE, check=True).stdout)
    figures = ("total_blocks", "unwind_checked", "unwind_differed", "broken_stacks")
    return tuple(sum(entry[figure] for entry in report["processes"]) for figure in figures)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", default="out", metavar="DIR")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--size", type=int, default=1, metavar="N")
    options = parser.parse_args()
    unknown = [name for name in options.programs if name not in PROGRAMS]
    if unknown:
        parser.error(f"{unknown[0]}: not one of {', '.join(PROGRAMS)}")
    out = (ROOT / options.out).resolve()
    print(f"{'program':10} {'stacks':>10} {'checked':>10} {'different':>10} {'not to the end':>15} {'seconds':>8}")
    wrong = 0
    for name in options.programs or PROGRAMS:
        if shutil.which(EXECUTABLES.get(name, name)) is None:
            print(f"{name:10} not installed")
            continue
        start = time.monotonic()
        stacks, checked, differed, broken = run(out, name, options.every, options.size)
        print(f"{name:10} {stacks:10,} {checked:10,} {differed:10,} {broken:15,} {time.monotonic() - start:8.1f}", flush=True)
        wrong += differed
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
