"""tools/bench/run: measure memlog beside its peers and beside nothing, on the same programs, in turns."""
import argparse
import os
import sys
import time

import configurations
import machine
import measure
import records
import replays
import tables
import workloads

STANDARD = [configuration.name for configuration in configurations.CONFIGURATIONS]
QUICK_CONFIGURATIONS = ("nothing", "nothing-again", "memlog-exact", "memlog-512k", "memlog-4k", "heaptrack")
QUICK_PROGRAMS = ("tight", "deep", "threads", "sqlite3", "python3", "cc1plus", "clang++", "redis", "latency-steady")

# For these a peer says nothing: what is measured is memlog's own.
MEMLOG_ALONE = ("live-1m", "live-4m")
# From nothing to everything, one thing more in each.
FLOOR_CONFIGURATIONS = (
    "nothing", "nothing-again", "pass", "memlog-dormant", "memlog-rarest", "memlog-512k", "memlog-4k", "memlog-exact",
)
# Beside an older build.
BEFORE_CONFIGURATIONS = ("nothing", "nothing-again", "memlog-exact", "memlog-512k")
# Peers whose added latency is worth a comparison.
LATENCY_CONFIGURATIONS = ("nothing", "memlog-exact", "memlog-512k", "memlog-4k", "heaptrack")


def arguments(words):
    parser = argparse.ArgumentParser(
        prog="tools/bench/run", description=__doc__,
        epilog="example: tools/bench/run --programs=sqlite3,redis --peers=heaptrack --repeat=3 --json out/bench.json",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, fast peers, twice: under three minutes")
    parser.add_argument("--programs", metavar="A,B", help=f"of {' '.join(workloads.BY_NAME)}")
    parser.add_argument("--peers", metavar="A,B", help="who runs beside nothing and memlog; 'none' for nobody")
    parser.add_argument("--floor", action="store_true", help="what sampling consists of: an interposer that does nothing, then one thing more each")
    parser.add_argument("--configurations", metavar="A,B", help=f"exactly these, of {' '.join(configurations.BY_NAME)}")
    parser.add_argument("--before", metavar="OUT", help="beside the folder of another build: nothing, that memlog and this one, in turns")
    parser.add_argument("--repeat", type=int, metavar="N", help="rounds (default: 5, quick: 2)")
    parser.add_argument("--json", metavar="FILE", help="put the runs into FILE; what it holds already stays and is shown too")
    parser.add_argument("--show", nargs="+", metavar="FILE", help="measure nothing: the table of what these files hold")
    options = parser.parse_args(words)
    options.repeat = options.repeat or (2 if options.quick else 5)
    options.programs = chosen(parser, options.programs, workloads.BY_NAME, QUICK_PROGRAMS if options.quick else None)
    if options.before:
        before = configurations.add_before(options.before)
        options.configurations = chosen(parser, options.configurations, configurations.BY_NAME, [*BEFORE_CONFIGURATIONS, *before])
    elif options.peers is not None:
        peers = [] if options.peers == "none" else chosen(parser, options.peers, configurations.BY_NAME, None)
        own = [name for name in STANDARD if name.startswith(("nothing", "memlog"))]
        wanted = {*own, *peers, *(configurations.BY_NAME[peer].baseline for peer in peers)}
        options.configurations = [name for name in configurations.BY_NAME if name in wanted]
    else:
        standard = FLOOR_CONFIGURATIONS if options.floor else QUICK_CONFIGURATIONS if options.quick else STANDARD
        options.configurations = chosen(parser, options.configurations, configurations.BY_NAME, standard)
    return options


def chosen(parser, text, known, standard):
    names = text.split(",") if text else list(standard or known)
    for name in names:
        if name not in known:
            parser.error(f"there is no '{name}'; there are: {' '.join(known)}")
    return [name for name in known if name in names]


def say(text):
    print(text, file=sys.stderr, flush=True)


def runs_of_a_round(program, names, quick, round_number=0):
    """(size, configuration) in the order of the round: neighbours in time are compared. Every second round goes backwards, so that
    what a machine gives to whoever comes first is not always the same one's."""
    workload = workloads.BY_NAME[program]
    if program in MEMLOG_ALONE:
        names = [name for name in names if name.startswith(("nothing", "memlog"))]
    if program.startswith("latency-"):
        names = [name for name in names if name in LATENCY_CONFIGURATIONS]
    full = [name for name in names if configurations.BY_NAME[name].size == "full"]
    small = [name for name in names if configurations.BY_NAME[name].size == "small"]
    first = "small" if quick and "small" in workload.sizes else "full"
    plan = [(first, name) for name in full]
    if small and "small" in workload.sizes and not (quick and not full):
        beside = [] if first == "small" else ["nothing", "memlog-exact"]
        plan += [("small", name) for name in [*beside, *small]]
    return plan if round_number % 2 == 0 else plan[::-1]


def measure_all(options, record, series):
    names = []
    for name in options.configurations:
        reason = configurations.BY_NAME[name].missing()
        if reason:
            say(f"left out: {name}: {reason}")
            record["machines"][series].setdefault("left_out", {})[name] = reason
        else:
            names.append(name)
    stopped = set()
    for round_number in range(options.repeat):
        for program in options.programs:
            for size, name in runs_of_a_round(program, names, options.quick, round_number):
                # Who was stopped once is not waited for again.
                if (program, size, name) in stopped:
                    continue
                run = measure.one_run(workloads.BY_NAME[program], size, configurations.BY_NAME[name])
                if run["ended"].startswith("stopped"):
                    stopped.add((program, size, name))
                head = {"series": series, "round": round_number, "program": program, "size": size, "configuration": name}
                record["runs"].append(head | run)
                took = f"{run['wall_s']:.2f} s" if run["ended"] == "ok" else run["ended"]
                say(f"round {round_number + 1}/{options.repeat} {program} ({size}) {name}: {took}")
                if options.json:
                    records.save(options.json, record)


def replay_all(options, record, series):
    """Once a call: what is measured is on one core, and repeated there."""
    if "memlog-exact" not in options.configurations:
        return
    for program, size in replays.plan(options.programs, options.quick):
        run = replays.one_run(program, size)
        head = {"series": series, "round": 0, "program": program, "size": size, "configuration": replays.CONFIGURATION}
        record["runs"].append(head | run)
        took = f"{run['replay']['events_a_second'] / 1e6:.1f} million events a second" if run["ended"] == "ok" else run["ended"]
        say(f"replay {program} ({size}): {took}")
        if options.json:
            records.save(options.json, record)


def main():
    options = arguments(sys.argv[1:])
    if options.show:
        record = records.merge([records.load(path) for path in options.show])
    else:
        record = records.load(options.json) if options.json and os.path.exists(options.json) else records.empty()
        series = f"{time.time():.3f}"
        record["machines"][series] = machine.describe(workloads.ROOT)
        measure.become_subreaper()
        measure_all(options, record, series)
        replay_all(options, record, series)
    print(tables.everything(records.newest(record, machine.measured)))


if __name__ == "__main__":
    sys.exit(main())
