"""What Perfetto's tools say of a trace, and what `memlog report --json` says of a dump, in the same words: for tools/dev/perfetto_beside.

A frame is (path, build id, address in the file, "") or, in no file, ("", "", 0, name); a stack has its frames innermost first, without those
that are inlined into another. Figures of a stack are live bytes, live blocks, total bytes, total blocks.
"""
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tests" / "e2e"))
import dumped  # noqa: E402  (tests/e2e/dumped.py)

TIMEOUT = 600
# A function of Python: Perfetto has it as one text, by the rules of perf's maps, which the report takes apart.
SCRIPTS, SCRIPT = "[script]", "{} in {}:{}"
FIGURES = ("live_bytes", "live_blocks", "total_bytes", "total_blocks")
HEAPS_MAX = 1 << 16  # heaps of a process have moments that differ by their number, in ns

# Documented in Perfetto's docs/data-sources/native-heap-profiler.md, where a semicolon too many is in the second one.
BY_CALLSITE = """
select a.callsite_id, a.ts, a.upid, f.name, f.rel_pc, m.build_id, m.name as mapping_name,
        sum(a.size) as space_size, sum(a.count) as space_count
      from heap_profile_allocation a join
           stack_profile_callsite c ON (a.callsite_id = c.id) join
           stack_profile_frame f ON (c.frame_id = f.id) join
           stack_profile_mapping m ON (f.mapping = m.id)
      group by 1, 2, 3, 4, 5, 6, 7 order by space_size desc;
"""
SUMMARY_TREE = """
INCLUDE PERFETTO MODULE android.memory.heap_profile.summary_tree;

SELECT
  -- The function name of the frame for this callstack.
  name,
  -- The name of the mapping containing the frame. This
  -- can be a native binary, library, JAR or APK.
  mapping_name AS map_name,
  -- The amount of memory allocated and *not freed* with this
  -- function appearing anywhere on the callstack.
  cumulative_size
FROM android_heap_profile_summary_tree
order by abs(cumulative_size) desc;
"""
# docs/analysis/perfetto-sql-getting-started.md and builtin.md
LARGEST = """
SELECT ts, upid, size, count
FROM heap_profile_allocation
WHERE size > 0
ORDER BY size DESC
LIMIT 10;
"""
LEAVES = """
SELECT
  a.ts,
  a.size,
  f.name AS function_name,
  m.name AS binary_name
FROM heap_profile_allocation AS a
JOIN stack_profile_callsite AS c ON a.callsite_id = c.id
JOIN stack_profile_frame AS f ON c.frame_id = f.id
JOIN stack_profile_mapping AS m ON f.mapping = m.id
WHERE a.size > 0
LIMIT 10;
"""
PROFILE = """
SELECT
  EXPERIMENTAL_PROFILE(
    CAT_STACKS(heap_name, STACK_FROM_STACK_PROFILE_CALLSITE(callsite_id)),
    'count',
    'count',
    count,
    'size',
    'bytes',
    size) AS profile
FROM heap_profile_allocation
WHERE size >= 0 AND count >= 0
"""

# What is read of a trace, each into a list of rows. Texts go in hexadecimal: trace_processor's CSV leaves quotes as they are.
TABLES = {
    "allocations": "select upid, hex(heap_name), ts, callsite_id, size, count from heap_profile_allocation",
    "profiles": "select upid, hex(heap_name), ts, ts_end from heap_profile",
    "processes": "select upid, pid, hex(name), parent_upid from process where pid != 0",
    "callsites": "select id, parent_id, frame_id from stack_profile_callsite",
    "frames": "select id, hex(name), mapping, rel_pc, symbol_set_id from stack_profile_frame",
    "mappings": "select id, hex(name), build_id from stack_profile_mapping",
    "symbols": "select symbol_set_id, hex(name), hex(source_file), line_number from stack_profile_symbol order by id",
    "stats": "select hex(name), idx, hex(severity), value from stats where value != 0",
    "clocks": "select distinct ts from clock_snapshot order by ts",
    "summary": "include perfetto module android.memory.heap_profile.summary_tree;"
               "select id, parent_id, hex(name), self_size, cumulative_size, self_alloc_size, cumulative_alloc_size from android_heap_profile_summary_tree",
    "intervals": "include perfetto module android.memory.heap_profile.intervals;"
                 "select upid, hex(heap_name), ts, ts + dur, delta, allocated from _android_heap_profile_intervals",
    "profile_files": "select distinct hpa.upid, hpa.ts, p.pid, hex(hpa.heap_name) from heap_profile_allocation hpa, process p where p.upid = hpa.upid",
}
TEXTS = {"allocations": (1,), "profiles": (1,), "processes": (2,), "frames": (1,), "mappings": (1, 2), "symbols": (1, 2), "stats": (0, 2), "summary": (2,),
         "intervals": (1,), "profile_files": (3,)}
RAW_TEXTS = {("mappings", 2)}

# Stacks are told apart by their numbers here: comparing all of their frames each time takes minutes.
NUMBERS = {}


def number_of(stack):
    return NUMBERS.setdefault(stack, len(NUMBERS))


def stack_of(number):
    return next(stack for stack, one in NUMBERS.items() if one == number)


def cell_of(text):
    if text == '"[NULL]"':
        return None
    return text[1:-1] if text.startswith('"') else float(text) if "." in text else int(text)


class Tools:
    """Perfetto's two programs."""

    def __init__(self, options, folder):
        self.trace_processor, self.traceconv, self.folder = options.trace_processor, options.traceconv, folder

    def run(self, *words, **environment):
        answer = subprocess.run(list(map(str, words)), cwd=self.folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                                capture_output=True, timeout=TIMEOUT, check=False)
        if answer.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, words))}: exit code {answer.returncode}: {answer.stderr.decode(errors='replace')[-2000:]}")
        return answer.stdout

    def sql(self, trace, query):
        """What the shell prints of the query as it stands: result sets of lines of cells."""
        path = self.folder / "query.sql"
        path.write_text(query)
        return self.run(self.trace_processor, "-q", path, trace).decode(errors="replace")

    def ask(self, trace, queries):
        """{name: rows} of {name: query}, each with one result set."""
        sets = self.sql(trace, ";\n".join(queries.values()) + ";\n").split("\n\n")
        found = {}
        for name, text in zip(queries, sets, strict=True):
            rows = []
            for line in text.strip("\n").splitlines()[1:]:
                row = [cell_of(one) for one in line.split(",")]
                for at in TEXTS.get(name, ()):
                    if row[at] is not None and (name, at) not in RAW_TEXTS:
                        row[at] = bytes.fromhex(row[at]).decode(errors="replace")
                rows.append(tuple(row))
            found[name] = rows
        return found

    def symbolize(self, trace, target):
        """The trace, and behind it what Perfetto's symbolizer finds where the mappings say that their files are."""
        symbols = self.run(self.traceconv, "symbolize", trace, PERFETTO_BINARY_PATH=str(self.folder), PERFETTO_SYMBOLIZER_MODE="find")
        target.write_bytes(trace.read_bytes() + symbols)
        return target

    def profiles(self, trace):
        """Sums of the four figures of each profile.proto that it writes, in the order in which it writes them."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="pprof.", dir=self.folder))
        self.run(self.traceconv, "profile", "--alloc", "--output-dir", folder, trace)
        sums = {}
        for path in folder.iterdir():
            number = int(path.name.split(".")[1])
            columns = [0] * 4
            for sample in dumped.message(path.read_bytes())[2]:
                values = dumped.numbers(b"".join(dumped.message(sample)[2]))
                columns = [one + value for one, value in zip(columns, values, strict=True)]
            sums[number] = columns
        return [sums[number] for number in sorted(sums)]


class Trace:
    """What trace_processor made of a file."""

    def __init__(self, tools, path):
        self.path = path
        self.rows = tools.ask(path, TABLES)
        self.pids = {upid: pid for upid, pid, *_ in self.rows["processes"]}
        self.names = {pid: name for _, pid, name, _ in self.rows["processes"]}
        self.parents = {pid: self.pids.get(parent) for _, pid, _, parent in self.rows["processes"]}
        self.mappings = {number: (name or "", build_id or "") for number, name, build_id in self.rows["mappings"]}
        self.symbols = collections.defaultdict(list)
        for number, *symbol in self.rows["symbols"]:
            self.symbols[number].append(tuple(symbol))
        self.frames = {number: self.frame(*frame) for number, *frame in self.rows["frames"]}
        self.places = {number: ((parent,), frame) for number, parent, frame in self.rows["callsites"]}
        self.stacks, self.numbers = {None: ()}, {}
        # Moments of the dumps: each begins with the clocks as they stood.
        self.moments = [ts for (ts,) in self.rows["clocks"]]

    def frame(self, name, mapping, address, symbols):
        path, build_id = self.mappings[mapping]
        script = re.fullmatch(r"py::(.+?):(<.*?>|[^:]*)(?::(\d+))?", name or "")
        if script and not path:
            name = SCRIPT.format(script[1], script[2], script[3] or 0)
        return (path, build_id, address, "") if path else ("", "", 0, name), tuple(self.symbols.get(symbols, ()))

    def stack(self, callsite):
        """Its frames, innermost first, as report_stack has them."""
        waiting = []
        while callsite not in self.stacks:
            waiting.append(callsite)
            callsite = self.places[callsite][0][0]
        for number in reversed(waiting):
            (parent,), frame = self.places[number]
            self.stacks[number] = (self.frames[frame][0], *self.stacks[parent])
        return self.stacks[waiting[0] if waiting else callsite]

    def figures(self, until):
        """{(pid, heap): {number of a stack: figures}} of all until a moment."""
        found = collections.defaultdict(lambda: collections.defaultdict(lambda: [0] * 4))
        for upid, heap, ts, callsite, size, count in self.rows["allocations"]:
            if ts < until + HEAPS_MAX:
                if callsite not in self.numbers:
                    self.numbers[callsite] = number_of(self.stack(callsite))
                sums = found[self.pids[upid], heap][self.numbers[callsite]]
                sums[0] += size
                sums[1] += count
                if size > 0:
                    sums[2] += size
                    sums[3] += count
        return found

    def errors(self):
        """Whatever was lost or not understood."""
        return {(name, index): value for name, index, severity, value in self.rows["stats"] if severity in ("error", "data_loss")}


def report_frames(stack):
    """The frames of a stack in a trace: its own, and innermost the allocator's function."""
    frames = []
    if stack["thread"]:
        frames.append(("", "", 0, f"[thread {stack['thread']}]"))
    for frame in reversed(stack["frames"]):
        if not frame["inlined"]:
            if frame["module"] == SCRIPTS:
                frames.append(("", "", 0, SCRIPT.format(frame["function"], frame["file"], frame["line"])))
            elif frame["module"] and frame.get("kind", "") != "scope":
                frames.append((frame["module"], frame["build_id"], int(frame["offset"], 16), ""))
            else:
                frames.append(("", "", 0, frame["function"] or frame["offset"]))
    allocator = "malloc" if stack["heap"] == "malloc" else "memlog_alloc"
    return (("", "", 0, allocator), *(reversed(frames or [("", "", 0, "[no stack]")])))


def heap_names(entry):
    """{a heap's name in the report: its name in a trace} (ipc/trace/heap_name.h)"""
    names = {"malloc": "libc.malloc"}
    for number, heap in enumerate(entry["heaps"]):
        taken = heap["name"] in ("libc.malloc", "com.android.art")
        names.setdefault(heap["name"], f"[{heap['name']}, as reported]" if taken else heap["name"] or f"heap {number}")
    return names


def report_heaps(entry):
    """{heap: {number of a stack: figures}} of a process, as a trace can have them: without what has no bytes."""
    if "by_heap" in entry:
        return entry["by_heap"]
    merged = collections.defaultdict(lambda: collections.defaultdict(lambda: [0] * 4))
    names = heap_names(entry)
    for stack in entry["stacks"]:
        sums = merged[names[stack["heap"]]][number_of(report_frames(stack))]
        for at, figure in enumerate(FIGURES):
            sums[at] += stack[figure]
    for stacks in merged.values():
        for key, (live, live_blocks, total, total_blocks) in list(stacks.items()):
            if total == 0:
                del stacks[key]
            elif total <= live:
                stacks[key] = [live, live_blocks, total, live_blocks]
            else:
                stacks[key] = [live, live_blocks, total, total_blocks]
    entry["by_heap"] = merged
    return merged


def names_of(report):
    """{frame: (function, file, line) of it and of what is inlined into it, innermost first}"""
    found = {}
    for entry in report["processes"]:
        for stack in entry["stacks"]:
            inlined = []
            for frame in stack["frames"]:
                inlined.append((frame["function"], frame["file"], frame["line"]))
                if not frame["inlined"]:
                    if frame["module"] not in ("", SCRIPTS) and frame.get("kind", "") != "scope":
                        found[frame["module"], frame["build_id"], int(frame["offset"], 16), ""] = tuple(inlined)
                    inlined = []
    return found


def plain(name):
    """A function's name without its parameters, and without what symbolizers write in more than one way."""
    name = re.sub(r"\[abi:\w+\]|\(anonymous namespace\)::|\.(part|constprop|isra|cold|lto_priv|llvm)\b[.\d]*|@.*$| ?\[(clone [^\]]*|merged)\]", "", name)
    name = re.sub(r"'lambda\d*'|\{lambda\(.*?\)#\d+\}|\$_\d+", "lambda", name)
    depth, kept = 0, []
    for piece in re.split(r"(operator\(\)|operator[<>=-]+|[<>()])", name):
        if piece in ("<", "("):
            depth += 1
        elif piece in (">", ")"):
            depth -= 1
        elif depth == 0:
            kept.append(piece)
    text = re.sub(r"\bconst$", "", "".join(kept).strip()).strip()
    return text.rpartition(" ")[2] if "operator" not in text else text


class Symbols:
    """The symbol tables of files and of their debug files: of one address there may be several names."""

    def __init__(self):
        self.tables = {}

    def table(self, path, build_id):
        """{plain name: [(start, size)]}"""
        if path not in self.tables:
            self.tables[path] = collections.defaultdict(list)
            debug = f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
            for words in (("nm", "-CS", path), ("nm", "-CSD", path), ("nm", "-CS", debug)):
                text = subprocess.run(words, capture_output=True, text=True, check=False).stdout
                for start, size, name in re.findall(r"^([0-9a-f]{16}) (?:([0-9a-f]{16}) )?[a-zA-Z] (.+)$", text, re.M):
                    self.tables[path][plain(name)].append((int(start, 16), int(size or "0", 16)))
        return self.tables[path]

    def have_both(self, frame, ours, theirs):
        """Whether the symbol of one name, and one of the other inside of it, lie before the frame's address."""
        path, build_id, address, _ = frame
        table = self.table(path, build_id)
        for start, size in table.get(ours, ()):
            if start <= address <= start + size and any(start <= other <= address for other, _ in table.get(theirs, ())):
                return True
        return False
