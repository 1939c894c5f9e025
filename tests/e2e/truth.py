"""Hold `memlog report --json` against what the programs of tests/oracle know of themselves, to the byte."""
import collections
import json

FIGURES = ("live_bytes", "live_blocks", "total_bytes", "total_blocks")
PEAKS = ("peak_bytes", "peak_blocks")

# Entered by the C library's start code, no function of the program.
NOT_OURS = {"_start", "__libc_start_main", "__libc_csu_init"}


def load(folder):
    """Every truth written to a folder."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def chain_of(stack, modules):
    """The chain of the program's own functions, innermost first; "" where the allocator's caller is not one of them."""
    frames = stack["frames"]
    if not frames or module_name(frames[0]) not in modules:
        return ""
    names = [frame["function"] for frame in frames if module_name(frame) in modules]
    return "<".join(name for name in names if name not in NOT_OURS)


def module_name(frame):
    return (frame.get("module") or "").rsplit("/", 1)[-1]


def own_modules(truth):
    return {truth["argv"][0].rsplit("/", 1)[-1], *truth["modules"]}


def sums_by_chain(stacks, modules):
    """chain -> figures, summed; allocations of libc itself are under ""."""
    sums = collections.defaultdict(collections.Counter)
    for stack in stacks:
        for figure in FIGURES + PEAKS:
            sums[chain_of(stack, modules)][figure] += stack[figure]
    return sums


def truth_by_chain(truth):
    sums = collections.defaultdict(collections.Counter)
    for site in truth["sites"]:
        for figure in FIGURES + PEAKS:
            sums[site["chain"]][figure] += site[figure]
    return sums


def find_process(report, truth):
    """The process entry that a truth speaks of: by pid, and by command line where exec gave a pid several entries."""
    entries = [entry for entry in report["processes"] if entry["pid"] == truth["pid"]]
    if len(entries) > 1:
        entries = [entry for entry in entries if entry["command_line"][1:] == truth["argv"][1:]] or entries
    return entries[0] if len(entries) == 1 else None


def compare_process(entry, truth):
    """Every difference as a line; none: equal to the byte."""
    problems = []
    who = f"pid {truth['pid']} ({truth['label']}, {' '.join(truth['argv'])})"

    def differs(what, said, true):
        if said != true:
            problems.append(f"{who}: {what}: memlog says {said}, the truth is {true} ({said - true:+d})")

    said, true = sums_by_chain(entry["stacks"], own_modules(truth)), truth_by_chain(truth)
    figures = FIGURES + (PEAKS if truth["peak_known"] else ())
    for chain in sorted(true):
        for figure in figures:
            differs(f"{chain}: {figure}", said[chain][figure], true[chain][figure])
    if not truth["partial"]:
        for chain in sorted(set(said) - set(true) - {""}):
            if any(said[chain].values()):
                problems.append(f"{who}: {chain}: memlog says {dict(said[chain])}, the program has no such call path")
    if truth["exact"]:
        for figure in figures:
            everything = sum(figures_of[figure] for figures_of in true.values())
            differs(f"whole process: {figure}", entry[figure], everything)
    if truth["inherited_known"]:
        differs("inherited_bytes", entry["inherited_bytes"], truth["inherited_bytes"])
        differs("inherited_blocks", entry["inherited_blocks"], truth["inherited_blocks"])
    for figure in FIGURES + PEAKS:
        differs(f"sum of stacks' {figure}", sum(stack[figure] for stack in entry["stacks"]), entry[figure])
    differs("lost_events", entry["lost_events"], 0)
    differs("truncated_stacks", entry["truncated_stacks"], 0)
    return problems


def compare(report, truths):
    """All truths against one report."""
    problems = []
    for truth in truths:
        entry = find_process(report, truth)
        if entry is None:
            pids = [other["pid"] for other in report["processes"]]
            problems.append(f"pid {truth['pid']} ({truth['label']}): not one entry in the report; it has {pids}")
        else:
            problems += compare_process(entry, truth)
    for figure in FIGURES:
        everything = sum(entry[figure] for entry in report["processes"])
        told = report["tree"][figure] + report["tree"].get(figure.replace("live", "left"), 0) * figure.startswith("live")
        if told != everything:
            problems.append(f"tree {figure}: {told}, its processes sum to {everything}")
    if not report["dump"]["complete"]:
        problems.append(f"the dump calls itself incomplete; gaps: {report['dump']['gaps']}")
    return problems
