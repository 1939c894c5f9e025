"""A systemd of the test's own: process 1 of namespaces made by bubblewrap, over this machine's files, which it cannot write to.

It has units of its folder alone, no journal and no bus. Or it runs over the files of another system, and writes to them and has its units, too.
Needs root and control groups that can be written to."""
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import time

SYSTEMD = pathlib.Path("/lib/systemd/systemd")
GROUPS = pathlib.Path("/sys/fs/cgroup")
# As units find it, inside.
PLACE = pathlib.Path("/srv")
STARTS_SECONDS = 60
# What every unit wants, and none of this machine's.
TARGETS = ("sysinit", "basic", "shutdown", "umount", "first")


def lacks():
    """What a systemd of one's own lacks here; "": nothing."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [name for name in ("bwrap", "nsenter", "systemctl") if not shutil.which(name)]
    if missing or not SYSTEMD.exists():
        return f"needs {', '.join(missing) or SYSTEMD} (tools/dev/setup test)"
    return ""


class Manager:
    """`folder` is /srv there: units lie in folder/units. `system`: the root of another system, which has systemd."""

    def __init__(self, folder, system=None):
        self.folder = folder
        self.system = system
        self.groups = []
        self.process = None
        self.pid = None
        for name in TARGETS:
            (folder / "units" / f"{name}.target").write_text("[Unit]\nDefaultDependencies=no\n")

    def make_groups(self):
        """A control group in each tree that systemd asks for: one of version 2, or its own of version 1, and version 2 beside it."""
        trees = [GROUPS] if (GROUPS / "cgroup.procs").exists() else [tree for tree in (GROUPS / "systemd", GROUPS / "unified") if tree.exists()]
        for tree in trees:
            group = tree / f"memlog-test.{os.getpid()}"
            group.mkdir()
            self.groups.append(group)
        return bool(trees)

    def enter_groups(self):
        for group in self.groups:
            (group / "cgroup.procs").write_text("0")

    def start(self):
        """What went wrong; "": it runs."""
        try:
            if not self.make_groups():
                return "there are no control groups"
        except OSError as error:
            return f"control groups cannot be made: {error}"
        words = ["--bind", self.system, "/"] if self.system else ["--ro-bind", "/", "/"]
        words += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", GROUPS]
        for group in self.groups:
            words += ["--bind", group, group.parent]
        words += ["--tmpfs", "/run", "--tmpfs", "/tmp"] + ([] if self.system else ["--tmpfs", "/var/lib"])
        units = f"{PLACE}/units" + (":/etc/systemd/system:/lib/systemd/system" if self.system else "")
        inside, outside = os.pipe()
        log = os.open(self.folder / "systemd.log", os.O_WRONLY | os.O_CREAT, 0o600)
        self.process = subprocess.Popen(
            ["bwrap", "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup", "--as-pid-1", "--cap-add", "ALL", "--info-fd", str(outside),
             *words, "--bind", self.folder, PLACE, "--clearenv", "--setenv", "container", "test", "--setenv", "SYSTEMD_UNIT_PATH", units,
             SYSTEMD, "--system", "--unit=first.target", "--log-target=console", "--show-status=no"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[outside],
            preexec_fn=self.enter_groups, start_new_session=True,
        )
        os.close(outside)
        os.close(log)
        with open(inside, "rb") as info:
            ready, _, _ = select.select([info], [], [], STARTS_SECONDS)
            told = info.read() if ready else b""
        if not told:
            return f"bwrap: {self.log()}"
        self.pid = json.loads(told)["child-pid"]
        deadline = time.monotonic() + STARTS_SECONDS
        while self.call("systemctl", "is-active", "first.target").stdout.strip() != "active":
            if self.process.poll() is not None or time.monotonic() > deadline:
                return f"systemd did not start: {self.log()}"
            time.sleep(0.05)
        return ""

    def log(self):
        return (self.folder / "systemd.log").read_text(errors="replace")[-2000:]

    def call(self, *words, timeout=120):
        """A command beside its units."""
        return subprocess.run(["nsenter", f"--target={self.pid}", "--all", *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False)

    def end(self):
        """The kernel ends all others with process 1 of their namespace."""
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
                if self.pid:
                    os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
        deadline = time.monotonic() + STARTS_SECONDS
        for group in self.groups:
            while group.exists() and time.monotonic() < deadline:
                for below in sorted(group.rglob("*/"), reverse=True):
                    try_remove(below)
                try_remove(group)


def try_remove(group):
    try:
        group.rmdir()
    except OSError:
        time.sleep(0.01)  # somebody in it is still ending
