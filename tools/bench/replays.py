"""The service's core alone: streams of the measured programs, recorded in this run, replayed from memory on one core (out/replay)."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import measure
import workloads

# Of live-1m its memory alone is asked: a million blocks and nothing else.
PROGRAMS = ("sqlite3", "python3", "cc1plus", "clang++", "redis", "live-1m")
# Random addresses among a million live blocks, out of nowhere.
RANDOM = "random"
RANDOM_WORDS = {"full": ("5000000", "1000000", "1"), "small": ("500000", "100000", "1")}
CONFIGURATION = "memlog-replay"
REPEAT = 5
CAPTURE = workloads.OUT / "capture_tool"
REPLAY = workloads.OUT / "replay"
MOST_S = 300


class Failed(Exception):
    """What went wrong, in words."""


def checked(words, **settings):
    try:
        answer = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=MOST_S, check=False, **settings,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(str(error)) from error
    if answer.returncode != 0:
        said = answer.stderr.decode(errors="replace").strip().splitlines()
        raise Failed(f"{pathlib.Path(words[0]).name}: exit code {answer.returncode}" + (f": {said[-1][:160]}" if said else ""))
    return answer.stdout


def replay(*words):
    return json.loads(checked([str(REPLAY), f"--repeat={REPEAT}", *map(str, words)]))


def record(workload, size, folder):
    """The largest stream of the program's processes, as a file in the folder."""
    if workload.prepare:
        workload.prepare(workload, size, folder)
    streams = pathlib.Path(folder, "streams")
    streams.mkdir()
    words = workload.words(size, folder)
    program = shutil.which(words[0])
    if program is None:
        raise Failed(f"{words[0]} is not there")
    loader = measure.Loader(workload, size, folder) if workload.load else None
    if loader:
        loader.start()
    checked([str(CAPTURE), f"--streams={streams}", program, *words[1:]], env=os.environ | workload.environment, cwd=workloads.ROOT)
    if loader:
        loader.join()
        if loader.error:
            raise Failed(loader.error)
    found = sorted(streams.glob("*.stream"), key=lambda path: path.stat().st_size)
    if not found:
        raise Failed("capture_tool kept no stream")
    return found[-1]


def one_run(program, size):
    """As measure.one_run's: what goes into the JSON file, without who and when."""
    folder = tempfile.mkdtemp(prefix="memlog-bench.")
    try:
        if program == RANDOM:
            return {"ended": "ok", "replay": replay("--synthetic", *RANDOM_WORDS[size])}
        return {"ended": "ok", "replay": replay(record(workloads.BY_NAME[program], size, folder))}
    except Failed as failed:
        return {"ended": str(failed)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def plan(programs, quick):
    """(program, size) to be replayed beside those that are measured."""
    sizes = {program: "small" if quick and "small" in workloads.BY_NAME[program].sizes else "full" for program in programs}
    chosen = [(program, sizes[program]) for program in PROGRAMS if program in programs]
    return [*chosen, (RANDOM, "small" if quick else "full")] if chosen else []
