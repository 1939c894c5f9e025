"""Measurements as text that people read: Markdown tables, as tools/bench/results holds them."""
import configurations
import figures
import replays
import targets
import workloads

PERCENTS = (50, 99, 99.99, 100)


def table(heads, rows):
    """A Markdown table whose source is aligned too."""
    cells = [heads, *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def number(value):
    """Three digits that matter, or as many as stand before the point."""
    if value is None:
        return "–"
    size = abs(value)
    digits = 2 if size < 10 else 1 if size < 100 else 0
    return f"{value:,.{digits}f}"


def spread_text(spread):
    """median (least–greatest); one figure alone has no spread."""
    if spread is None:
        return "–"
    text = number(spread.median)
    return text if spread.count == 1 else f"{text} ({number(spread.least)}–{number(spread.greatest)})"


def bytes_text(value):
    if value is None:
        return "–"
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(value) >= size:
            return f"{number(value / size)} {unit}"
    return f"{value:.0f} B"


def duration_text(ns):
    if ns is None:
        return "–"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            return f"{number(ns / size)} {unit}"
    return f"{ns:.0f} ns"


class Results:
    """The runs of a record, asked by program and configuration."""

    def __init__(self, record):
        self.runs = record["runs"]
        self.series = record["machines"]

    def programs(self):
        known = {run["program"] for run in self.runs}
        return [name for name in workloads.BY_NAME if name in known]

    def configurations(self, program=None):
        known = {run["configuration"] for run in self.runs if program in (None, run["program"])}
        return [name for name in configurations.BY_NAME if name in known]

    def of(self, program, configuration, size=None):
        return [
            run for run in self.runs
            if (run["program"], run["configuration"]) == (program, configuration) and size in (None, run["size"])
        ]

    def full_size(self, program, configuration):
        """The size its figures are told at: the larger of those it ran at."""
        sizes = {run["size"] for run in self.of(program, configuration)}
        return "full" if "full" in sizes else "small"

    def events(self, program, size):
        """As memlog counted them when it lost none; None when it did not run at this size."""
        for run in self.of(program, "memlog-exact", size):
            if run["ended"] == "ok" and run.get("events") and not run.get("lost_events"):
                return run["events"]
        return None

    def spread(self, program, configuration, value):
        size = self.full_size(program, configuration)
        runs = [run for run in self.of(program, configuration, size) if run["ended"] == "ok"]
        return figures.spread([value(run) for run in runs])

    def beside(self, program, configuration):
        """Its runs, each with those of the same round that it is compared with: a program alone runs twice a round, and both
        count."""
        baseline = configurations.BY_NAME[configuration].baseline
        names = {baseline, "nothing-again"} if baseline == "nothing" and configuration != "nothing-again" else {baseline}
        size = self.full_size(program, configuration)
        return figures.beside([run for run in self.runs if run["program"] == program and run["size"] == size], configuration, names)

    def ratio(self, program, configuration, value):
        return figures.ratios(self.beside(program, configuration), value)

    def ns_an_event(self, program, configuration):
        events = self.events(program, self.full_size(program, configuration))
        return figures.ns_an_event(self.beside(program, configuration), events)

    def failure(self, program, configuration):
        """How it ended when it never ended well; ""."""
        size = self.full_size(program, configuration)
        ends = [run["ended"] for run in self.of(program, configuration, size)]
        return ends[-1] if ends and "ok" not in ends else ""

    def latency(self, program, configuration, call):
        """All rounds' histograms as one."""
        size = self.full_size(program, configuration)
        found = [run["latency"] for run in self.of(program, configuration, size) if "latency" in run]
        histograms = [{"ticks_a_ns": one["ticks_a_ns"], **one[call]} for one in found]
        return figures.merged(histograms) if histograms else None


def latency_programs(results):
    return [program for program in results.programs() if program.startswith("latency-")]


def timed_programs(results):
    return [program for program in results.programs() if not program.startswith(("latency-", "live-"))]


def overview(results, value):
    programs = timed_programs(results)
    rows = []
    for name in results.configurations():
        if name == "nothing":
            continue
        cells = []
        for program in programs:
            failure = results.failure(program, name)
            cells.append(failure.split(":")[0] if failure else spread_text(results.ratio(program, name, value)))
        small = any(results.of(program, name) and results.full_size(program, name) == "small" for program in programs)
        if any(cell != "–" for cell in cells):
            rows.append([name + (" (small)" if small else ""), *cells])
    return table(["", *programs], rows)


def bare_line(results):
    """What the programs are, and what they take alone."""
    rows = []
    for program in results.programs():
        size = results.full_size(program, "nothing")
        events = results.events(program, size)
        wall = results.spread(program, "nothing", lambda run: run["wall_s"])
        cpu = results.spread(program, "nothing", figures.target_cpu)
        rows.append([
            program, workloads.BY_NAME[program].says, size, f"{events / 1e6:.2f} M" if events else "–",
            spread_text(wall), spread_text(cpu), f"{events / 1e6 / cpu.median:.1f} M" if events and cpu else "–",
        ])
    return table(["program", "what it does", "size", "events", "wall, s", "CPU, s", "events a second of CPU"], rows)


def recorder_ns(run, events):
    """None where nobody but the program ran."""
    return run["recorder_cpu_s"] * 1e9 / events if events and run["recorder_peak_rss_bytes"] else None


def details(results, program):
    rows = []
    for name in results.configurations(program):
        failure = results.failure(program, name)
        if failure:
            rows.append([name, failure] + [""] * 9)
            continue

        def median(key, text, name=name):
            spread = results.spread(program, name, lambda run: run.get(key))
            return text(spread.median) if spread else "–"

        events = results.events(program, results.full_size(program, name))
        recorder = results.spread(program, name, lambda run, events=events: recorder_ns(run, events))
        stream = results.spread(program, name, lambda run: targets.per_event(run))
        rows.append([
            name,
            spread_text(results.ratio(program, name, figures.wall)) if name != "nothing" else "1",
            spread_text(results.ratio(program, name, figures.target_cpu)) if name != "nothing" else "1",
            spread_text(results.ratio(program, name, figures.all_cpu)) if name != "nothing" else "1",
            median("recorder_cpu_s", number) if results.spread(program, name, lambda run: run["recorder_peak_rss_bytes"]) else "–",
            median("target_peak_rss_bytes", bytes_text),
            median("recorder_peak_rss_bytes", bytes_text),
            spread_text(results.ns_an_event(program, name)) if name != "nothing" else "–",
            number(recorder.median) if recorder else "–",
            number(stream.median) if stream else "–",
            median("lost_events", lambda value: f"{value:.0f}"),
        ])
    heads = ["", "wall ×", "target CPU ×", "all CPU ×", "recorder CPU, s", "target RSS", "recorder RSS", "target ns an event", "recorder ns an event",
             "bytes an event", "lost"]
    return f"**{program}**: {workloads.BY_NAME[program].says}\n\n" + table(heads, rows)


def latency_table(results, program):
    rows = []
    for call in ("malloc", "free"):
        bare = results.latency(program, "nothing", call)
        for name in results.configurations(program):
            profiled = results.latency(program, name, call)
            if not profiled:
                continue
            cells = []
            for percent in PERCENTS:
                if name == "nothing" or not bare:
                    cells.append(duration_text(figures.percentile_ns(profiled, percent)))
                else:
                    added = figures.Added(profiled, bare, percent)
                    cells.append(f"{duration_text(added.profiled_ns)} (+{duration_text(max(added.difference_ns, 0))})")
            rows.append([f"{call}, {name}", *cells])
    return f"**{program}**: {workloads.BY_NAME[program].says}\n\n" + table(["", "50 %", "99 %", "99.99 %", "longest"], rows)


def machine_lines(machine):
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items() if version)
    memory = f"{(machine['memory_bytes'] or 0) / 2**30:.0f} GiB"
    return [
        f"* {machine['cpu']}, {machine['cores']} cores, {memory}; virtualised: {machine['virtualised']}; governor: {machine['governor']}; "
        f"clock: {machine['clock']}; huge pages: {machine['huge_pages']}",
        f"* {machine['distribution']}, Linux {machine['kernel']}; {packages}",
    ]


def machines_text(record):
    """Of the series whose runs are shown; what they have in common is told once."""
    ran = {}
    for run in record["runs"]:
        ran.setdefault(run["series"], set()).add(run["configuration"])
    known = [machine for series, machine in sorted(record["machines"].items()) if series in ran]
    dates = sorted(machine["date"] for machine in known)
    # Whose binaries took part, not merely which checkout the harness stood in.
    commits = {
        record["machines"][run["series"]]["commit"] for run in record["runs"]
        if run["configuration"].startswith("memlog") and run["series"] in record["machines"]
    }
    lines = [f"* {' to '.join(dict.fromkeys([dates[0], dates[-1]]))}; memlog {', '.join(sorted(commits))}"] if known else []
    for machine in known:
        lines += [line for line in machine_lines(machine) if line not in lines]
    measured = set().union(*ran.values()) if ran else set()
    left_out = {name: reason for machine in known for name, reason in machine.get("left_out", {}).items()}
    lines += [f"* left out: {name}: {reason}" for name, reason in left_out.items() if name not in measured]
    return "\n".join(lines)


def targets_table(results):
    rows = [[row.what, row.limit_text, row.reached_text(), row.verdict()] for row in targets.judged(results)]
    return table(["what", "to reach", "reached", ""], rows)


def replays_table(results):
    """Each replayed stream; at the moment of most live blocks."""
    rows = []
    for program in (*replays.PROGRAMS, replays.RANDOM):
        shown = targets.replayed(results, program)
        if shown is not None:
            cell = number(shown["bytes_a_cell"]) if shown["cells"] > 0 else "–"
            rows.append([
                program, f"{shown['events'] / 1e6:.2f} M", number(shown["events_a_second"] / 1e6), f"{shown['live_blocks']:,}",
                number(shown["bytes_a_block"]), f"{shown['cells']:,}", cell,
            ])
    heads = ["stream", "events", "million events a second", "live blocks at most", "bytes a block", "cells", "bytes a cell"]
    return table(heads, rows) if rows else "Not measured."


def everything(record):
    results = Results(record)
    parts = [
        "### Machine", machines_text(record),
        "### Programs", bare_line(results),
        "### Wall time, × the program alone (medians; least–greatest of a round)", overview(results, figures.wall),
        "### CPU time of the target, × the program alone", overview(results, figures.target_cpu),
        "### The service's core alone, one core: streams recorded in this run, replayed", replays_table(results),
        "### Targets", targets_table(results),
        "### Each program", *(details(results, program) for program in results.programs() if not program.startswith("latency-")),
    ]
    if latency_programs(results):
        parts += ["### Latency of each call, all rounds together; in brackets: less the same percentile without a profiler"]
        parts += [latency_table(results, program) for program in latency_programs(results)]
    return "\n\n".join(parts)
