"""Pure arithmetic on measurements: medians, ratios of paired runs, percentiles of histograms."""
import statistics


class Spread:
    """Several measurements of one thing: their median (or what stands for it), least and greatest."""

    def __init__(self, values, median=None):
        self.count = len(values)
        self.median = statistics.median(values) if median is None else median
        self.least = min(values)
        self.greatest = max(values)


def spread(values):
    """A Spread, or None when nothing was measured."""
    values = [value for value in values if value is not None]
    return Spread(values) if values else None


def pair_key(run):
    """Runs of the same program at the same size in the same round were made next to each other."""
    return run["series"], run["program"], run["size"], run["round"]


def beside(runs, configuration, names):
    """[(run, [the runs of `names` in its round])], all ended well, and at least one of them."""
    rounds = {}
    for run in runs:
        if run["configuration"] in names and run["ended"] == "ok":
            rounds.setdefault(pair_key(run), []).append(run)
    return [
        (run, rounds[pair_key(run)])
        for run in runs
        if run["configuration"] == configuration and run["ended"] == "ok" and pair_key(run) in rounds
    ]


def medians(groups, value):
    """(of the runs, of all that stand beside them, [(a run, the mean beside it)]) of what beside() has found; None when nothing
    was measured."""
    groups = [(value(run), [value(one) for one in bare]) for run, bare in groups]
    groups = [(own, bare) for own, bare in groups if own is not None and bare and None not in bare]
    if not groups:
        return None
    own = statistics.median(own for own, _ in groups)
    return own, statistics.median(one for _, bare in groups for one in bare), [(own, statistics.mean(bare)) for own, bare in groups]


def ratios(groups, value):
    """A Spread, or None: the median of the runs over that of all that stand beside them, and the least and the greatest ratio in
    a round. Medians first: where a machine's speed changes between two neighbours, the ratio of them is as wrong as either."""
    found = medians(groups, value)
    if not found or not found[1]:
        return None
    own, below, rounds = found
    return Spread([above / beside_it for above, beside_it in rounds if beside_it], own / below)


def target_cpu(run):
    return run["target_user_s"] + run["target_system_s"]


def recorder_cpu(run):
    return run["recorder_cpu_s"]


def all_cpu(run):
    return target_cpu(run) + run["recorder_cpu_s"]


def wall(run):
    return run["wall_s"]


def ns_an_event(groups, events):
    """A Spread as above of what the target needed longer, shared among `events`; None without events."""
    found = medians(groups, target_cpu) if events else None
    if not found:
        return None
    own, below, rounds = found
    return Spread([(above - beside_it) * 1e9 / events for above, beside_it in rounds], (own - below) * 1e9 / events)


def merged(histograms):
    """One histogram of many of the same clock: {"ticks_a_ns", "buckets": [[end, count]], "longest_ticks"}."""
    counts = {}
    for histogram in histograms:
        for end, count in histogram["buckets"]:
            counts[end] = counts.get(end, 0) + count
    return {
        "ticks_a_ns": statistics.median(histogram["ticks_a_ns"] for histogram in histograms),
        "buckets": [[end, counts[end]] for end in sorted(counts)],
        "longest_ticks": max(histogram["longest_ticks"] for histogram in histograms),
    }


def percentile_ns(histogram, percent):
    """The least figure that at least `percent` of all do not exceed, as exact as its bucket (3 %); 100: the longest."""
    total = sum(count for _, count in histogram["buckets"])
    if total == 0:
        return None
    longest_ns = histogram["longest_ticks"] / histogram["ticks_a_ns"]
    seen = 0
    for end, count in histogram["buckets"]:
        seen += count
        # Not seen / total: 99.99 of a hundred million must not be lost in rounding.
        if seen * 100 >= total * percent and seen < total:
            return (end - 1) / histogram["ticks_a_ns"]
    return longest_ns


def least_ns(histogram):
    """The end of the first bucket: no call was shorter by more than the bucket's width."""
    return (histogram["buckets"][0][0] - 1) / histogram["ticks_a_ns"]


class Added:
    """What a profiler adds to a call, from two distributions that nobody can subtract call by call.

    difference_ns: the profiled percentile less the bare one of the same rank: exact if the profiler delays every call
    alike. limit_ns: the profiled percentile less the shortest bare call: the added time's percentile cannot be
    more, whichever call met which delay."""

    def __init__(self, profiled, bare, percent):
        self.profiled_ns = percentile_ns(profiled, percent)
        self.bare_ns = percentile_ns(bare, percent)
        self.difference_ns = self.profiled_ns - self.bare_ns
        self.limit_ns = max(self.profiled_ns - least_ns(bare), 0.0)
