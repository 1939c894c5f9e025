"""Control groups with little memory, of either version, where this machine lets us make them."""
import itertools
import os
import pathlib
import time

CGROUPS = pathlib.Path("/sys/fs/cgroup")


def parent_of(controllers, path):
    """(where groups are made, the name of the limit) for a line of /proc/self/cgroup; None: not of memory."""
    if "memory" in controllers.split(","):
        parent = CGROUPS / "memory" / path.lstrip("/")
        return (parent if parent.is_dir() else CGROUPS / "memory"), "memory.limit_in_bytes"
    if controllers == "" and (CGROUPS / "cgroup.controllers").exists():
        return CGROUPS, "memory.max"
    return None


def remove(group):
    """Who was killed in it is in it until the kernel is done with him."""
    for _ in range(1000):
        try:
            return group.rmdir()
        except OSError:
            time.sleep(0.01)
    return group.rmdir()


_made = itertools.count(1)


def make(case, limit_bytes, with_swap=True, inside=None):
    """A group with that limit, of memory and swap together as well, removed at the end of the test; None: not permitted. `inside` of
    another such one, in which nobody is then but in groups inside of it."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        found = parent_of(*line.split(":", 2)[1:])
        if found is None:
            continue
        parent, limit = found
        group = (inside or parent) / f"memlog-test-{os.getpid()}-{next(_made)}"
        try:
            if inside and (inside / "cgroup.subtree_control").exists():
                (inside / "cgroup.subtree_control").write_text("+memory")
            group.mkdir()
            case.addCleanup(remove, group)
            (group / limit).write_text(str(limit_bytes))
            swap = group / limit.replace("memory.", "memory.memsw.") if "limit" in limit else group / "memory.swap.max"
            if with_swap and swap.exists():
                swap.write_text(str(limit_bytes) if "limit" in limit else "0")
            return group
        except OSError:
            continue
    return None


def kills(group):
    """How many the kernel has ended in it for want of memory."""
    for name in ("memory.events", "memory.oom_control"):
        if (group / name).exists():
            for line in (group / name).read_text().splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
    return 0
