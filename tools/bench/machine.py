"""What the figures were measured on."""
import datetime
import functools
import os
import pathlib
import platform
import re
import subprocess


def read(path):
    try:
        return pathlib.Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""


def first_line(words):
    try:
        answer = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    except OSError:
        return ""
    return answer.stdout.strip().split("\n")[0]


def package_version(package):
    return first_line(["dpkg-query", "-W", "-f", "${Version}", package])


PACKAGES = (
    "heaptrack", "libgoogle-perftools4", "libjemalloc2", "valgrind", "sqlite3", "python3", "g++", "clang", "redis-server", "libc6",
)


def cpu_model(cpuinfo):
    """Of the first processor in /proc/cpuinfo."""
    found = re.search(r"^model name\s*:\s*(.*)$", cpuinfo, re.M)
    return found.group(1).strip() if found else platform.machine()


def virtualised(cpuinfo):
    """What the CPU says, and systemd's name of the machine or container."""
    by_cpu = "yes, the CPU says" if re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.M) else "no"
    named = first_line(["systemd-detect-virt"])
    return f"{by_cpu} ({named})" if named not in ("", "none") else by_cpu


def memory_bytes(meminfo):
    found = re.search(r"^MemTotal:\s*(\d+) kB$", meminfo, re.M)
    return int(found.group(1)) * 1024 if found else None


# What a run's figures come from.
MEASURED = (
    "client", "host", "ipc", "mojom_like_idl", "service", "tests/client", "tools/gn", "tools/bench/programs", "tools/bench/workloads.py",
    "tools/bench/configurations.py", "tools/bench/measure.py", "tools/bench/replay.c", "tools/bench/replays.py",
)


@functools.cache
def measured(commit):
    """The same text for commits between which nothing of that has changed; of one that is not known here, or was changed in
    the working tree ("+"), its own name."""
    if not re.fullmatch("[0-9a-f]{7,40}", commit):
        return commit
    root = str(pathlib.Path(__file__).resolve().parents[2])
    return " ".join(first_line(["git", "-C", root, "rev-parse", "-q", "--verify", f"{commit}:{path}"]) or commit for path in MEASURED)


def describe(root):
    cpuinfo = read("/proc/cpuinfo")
    distribution = re.search(r'^PRETTY_NAME="(.*)"$', read("/etc/os-release"), re.M)
    commit = first_line(["git", "-C", str(root), "rev-parse", "--short=10", "HEAD"])
    changed = first_line(["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no"])
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu_model(cpuinfo),
        "cores": os.cpu_count(),
        "memory_bytes": memory_bytes(read("/proc/meminfo")),
        "virtualised": virtualised(cpuinfo),
        "governor": read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "none visible",
        "huge_pages": read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "clock": read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "kernel": platform.release(),
        "distribution": distribution.group(1) if distribution else "",
        "commit": commit + ("+" if commit and changed else ""),
        "packages": {package: package_version(package) for package in PACKAGES},
    }
