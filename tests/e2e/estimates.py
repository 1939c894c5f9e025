"""What a program says of its own heap (tests/oracle/sampled.c), and what a sampled report estimates of it."""
import collections

FIGURES = ("live_bytes", "live_blocks", "total_bytes", "total_blocks")
# What lies further off than this by chance alone does so once in 10^9; the figures here are a few hundred a run.
MOST_DEVIATIONS = 6


def truths(out):
    """pid -> function -> figure -> number, out of what the program prints."""
    processes = {}
    for line in out.decode().splitlines():
        name, *numbers = line.split()
        if name == "pid":
            processes[int(numbers[0])] = functions = {}
        else:
            functions[name] = dict(zip(FIGURES, map(int, numbers)))
    return processes


def sums_of(process):
    """function -> figure -> (estimate, variance); what has no function of the program's is under ""."""
    sums = collections.defaultdict(lambda: {figure: (0, 0.0) for figure in FIGURES})
    for stack in process["stacks"]:
        names = [frame["function"] for frame in stack["frames"]]
        function = next((name for name in names if name in ("keep", "churn", "resize", "large", "early")), "")
        for figure in FIGURES:
            estimate, variance = sums[function][figure]
            error = stack.get(f"{figure}_error", 0)
            sums[function][figure] = (estimate + stack[figure], variance + error**2)
    return sums


def deviations(estimate, variance, truth):
    """How many standard errors an estimate is off; 0 and infinite for an exact figure.

    The error that a report tells is estimated by the same samples: where too few were had, it is too small as well. What an estimate of
    the truth has is as much larger as the truth is (estimates_test.py)."""
    if variance == 0:
        return 0.0 if estimate == truth else float("inf")
    return (estimate - truth) / (variance * max(1.0, truth / estimate)) ** 0.5
