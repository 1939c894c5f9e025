"""A program's memory at one moment: by a dump of memlog, and by the kernel beside it."""
import json
import pathlib
import re
import signal
import subprocess
import time

import memory_programs


def smaps_of(pid):
    """(private bytes, the whole text); None: it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps").read_text(errors="replace")
    except OSError:
        return None
    return 1024 * sum(int(kib) for kib in re.findall(r"^Private_(?:Clean|Dirty): +(\d+) kB$", text, re.M)), text


def is_stopped(pid):
    try:
        states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return True
    return all(state in "TtZX" for state in states)


def stop(moment):
    """Again until nobody has started another meanwhile."""
    stopped = set()
    while not set(moment.members()) <= stopped:
        for pid in moment.members():
            memory_programs.with_signal(pid, signal.SIGSTOP)
            stopped.add(pid)
        memory_programs.until(lambda: all(is_stopped(pid) for pid in stopped), 20)


def ask(moment, memlog, *words):
    answer = subprocess.run([str(memlog), *words], cwd=moment.folder, env=moment.environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if answer.returncode != 0:
        raise RuntimeError(answer.stderr.decode(errors="replace")[-500:])
    return answer.stdout


def read(moment, memlog, stops=True, keep=None):
    """(the report's running processes, pid -> private bytes by smaps before and after the dump, seconds that the dump took). A page of a
    file is shared as soon as any other process of the machine maps it."""
    if stops:
        stop(moment)
    smaps = {pid: smaps_of(pid) for pid in moment.members()}
    begun = time.monotonic()
    # By a signal: a process that asked would map libraries meanwhile, whose pages the program had for itself.
    memory_programs.with_signal(moment.process.pid, signal.SIGUSR2)
    if not memory_programs.until(lambda: list((moment.folder / "dumps").glob("*.signal.pftrace"))):
        raise RuntimeError("no dump within a minute")
    took = time.monotonic() - begun
    after = {pid: smaps_of(pid) for pid in smaps}
    (dump,) = (moment.folder / "dumps").glob("*.signal.pftrace")
    if keep:
        folder = keep / re.sub(r"\W+", "-", moment.program.name)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "dump.pftrace").write_bytes(dump.read_bytes())
        for pid, found in smaps.items():
            if found:
                (folder / f"{pid}.smaps").write_text(found[1])
    processes = json.loads(ask(moment, memlog, "report", "--json", "--limit=1", str(dump)))["processes"]
    running = [entry for entry in processes if entry["state"] == "running"]
    return running, {pid: (found[0], after[pid][0]) for pid, found in smaps.items() if found and after[pid]}, took
