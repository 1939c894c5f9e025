"""What memlog promises to reach, beside what it reached."""
import statistics

import figures
import replays

REAL = ("sqlite3", "python3", "cc1plus", "clang++", "redis")
# With frees and new stacks together.
BYTES_AN_EVENT = 8
CLIENT_BYTES, CLIENT_NODE_BYTES = 8e6, 16
SERVICE_BLOCK_BYTES, SERVICE_CELL_BYTES = 24, 100
SERVICE_RATE, SERVICE_RANDOM_RATE = 25, 12  # million events a second
# With fewer a table's least size is what is measured.
LEAST_BLOCKS, LEAST_CELLS = 10_000, 1_000
LATENCY_NS = 20e3


class Row:
    """One target; `reached`: a number or None (not measured)."""

    def __init__(self, what, limit, reached, unit="×", at_least=False):
        self.what = what
        self.limit = limit
        self.reached = reached
        self.unit = unit
        self.at_least = at_least
        self.limit_text = f"{'≥' if at_least else '≤'} {limit:g} {unit}"

    def reached_text(self):
        return "–" if self.reached is None else f"{self.reached:.3g} {self.unit}"

    def verdict(self):
        if self.reached is None:
            return "not measured"
        good = self.reached >= self.limit if self.at_least else self.reached <= self.limit
        return "reached" if good else "missed"


def median(spread):
    return spread.median if spread else None


def cpu(results, program, name):
    return median(results.ratio(program, name, figures.target_cpu))


def wall(results, program, name):
    return median(results.ratio(program, name, figures.wall))


EXACT_CPU = {"sqlite3": 1.35, "python3": 1.6, "clang++": 1.25, "redis": 1.25}
EXACT_WALL = {**{program: 1.5 for program in REAL}, "threads": 2, "deep": 3}
EXACT_NS = {"sqlite3": 35, "python3": 35, "redis": 35, "clang++": 100}
SAMPLED = {"memlog-512k": ("512 KiB", 1.02), "memlog-4k": ("4 KiB", 1.08)}


def client_memory(results, program):
    """What the target's own memory (not that of mapped files) grew by, less 16 bytes for each stack node. The client gives nothing
    back, so what it has at the end is the most that it had."""
    found = []
    for run, bare in results.beside(program, "memlog-exact"):
        nodes, own = run.get("stack_nodes"), run.get("target_own_bytes", -1)
        bare_own = [one.get("target_own_bytes", -1) for one in bare]
        if nodes is not None and min(own, *bare_own) >= 0:
            found.append(own - statistics.mean(bare_own) - CLIENT_NODE_BYTES * nodes)
    return median(figures.spread(found))


def replayed(results, program):
    """What the replay of its stream has shown, of several the one in the middle by speed, or None."""
    runs = [run for run in results.of(program, replays.CONFIGURATION) if run["ended"] == "ok"]
    size = "full" if any(run["size"] == "full" for run in runs) else "small"
    runs = [run["replay"] for run in runs if run["size"] == size]
    return sorted(runs, key=lambda run: run["events_a_second"])[(len(runs) - 1) // 2] if runs else None


def replay_rate(results, program):
    shown = replayed(results, program)
    return None if shown is None else shown["events_a_second"] / 1e6


def most(results, key, count, least):
    """The largest over all replays that have so many of them."""
    shown = [replayed(results, program) for program in replays.PROGRAMS]
    return max((one[key] for one in shown if one and one[count] >= least), default=None)


def service_rows(results):
    """The service's core, on one core."""
    unit = "million events a second"
    rows = [Row(f"service, replayed stream, {name}", SERVICE_RATE, replay_rate(results, name), unit, True) for name in REAL]
    random = replay_rate(results, replays.RANDOM)
    rows.append(Row("service, random addresses among a million blocks", SERVICE_RANDOM_RATE, random, unit, True))
    blocks = most(results, "bytes_a_block", "live_blocks", LEAST_BLOCKS)
    rows.append(Row("service's memory, blocks of any stream", SERVICE_BLOCK_BYTES, blocks, "bytes a live block"))
    cells = most(results, "bytes_a_cell", "cells", LEAST_CELLS)
    rows.append(Row("service's memory, cells of any stream", SERVICE_CELL_BYTES, cells, "bytes a counter cell"))
    return rows


def bytes_an_event(results):
    means = []
    for program in (*REAL, "deep", "threads", "tight"):
        means.append(median(results.spread(program, "memlog-exact", lambda run: per_event(run))))
    means = [mean for mean in means if mean is not None]
    return sum(means) / len(means) if means else None


def per_event(run):
    return run["stream_bytes"] / run["events"] if run.get("stream_bytes") and run.get("events") else None


def added_latency(results, program):
    """The worse of malloc's and free's 99.99th percentiles, in microseconds."""
    worst = None
    for call in ("malloc", "free"):
        profiled, bare = (results.latency(program, name, call) for name in ("memlog-exact", "nothing"))
        if profiled and bare:
            added = figures.Added(profiled, bare, 99.99).difference_ns / 1e3
            worst = added if worst is None else max(worst, added)
    return worst


def judged(results):
    rows = [Row(f"exact, target's CPU, {name}", limit, cpu(results, name, "memlog-exact")) for name, limit in EXACT_CPU.items()]
    rows += [Row(f"exact, wall, {name}", limit, wall(results, name, "memlog-exact")) for name, limit in EXACT_WALL.items()]
    rows += [
        Row(f"exact, client's cost, {name}", limit, median(results.ns_an_event(name, "memlog-exact")), "ns an event")
        for name, limit in EXACT_NS.items()
    ]
    for configuration, (rate, limit) in SAMPLED.items():
        rows += [Row(f"sampled at {rate}, target's CPU, {name}", limit, cpu(results, name, configuration)) for name in REAL]
    rows.append(Row("event stream, mean over programs", BYTES_AN_EVENT, bytes_an_event(results), "bytes an event"))
    for name in ("sqlite3", "clang++", "deep"):
        value = client_memory(results, name)
        reached = None if value is None else value / 1e6
        rows.append(Row(f"client's memory without its stack nodes, {name}", CLIENT_BYTES / 1e6, reached, "MB"))
    rows += service_rows(results)
    for name in ("latency-steady", "latency-flood"):
        rows.append(Row(f"added to 99.99 % of calls, {name}", LATENCY_NS / 1e3, added_latency(results, name), "us"))
    return rows
