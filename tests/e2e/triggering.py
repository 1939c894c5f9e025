"""What the tests of triggers share: programs that grow on command, the log of decisions, and what every triggered dump must be."""
import datetime
import json
import pathlib
import re
import subprocess
import time

import groups
import harness

GROWER = harness.PROGRAMS / "oracle" / "grower"
MIB = 1 << 20
NS = 1_000_000_000
MEMINFO = pathlib.Path("/proc/meminfo")


def first_number(path, pattern):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


def seconds_of(line):
    """When a line of the log was written."""
    return datetime.datetime.fromisoformat(line.split()[0].replace("Z", "+00:00")).timestamp()


def machine_stood_still_ns():
    """What anybody's processor was given to other machines, and what anybody waited for a disk, since this one was started."""
    steal = first_number("/proc/stat", r"^cpu +(?:\d+ +){7}(\d+)")
    return steal * (NS // 100) + first_number("/proc/pressure/io", r"some .*total=(\d+)") * 1000


def in_line_ns(pid):
    """How long the threads of a process have stood in line for a processor."""
    return sum(first_number(path, r"\d+ (\d+)") for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.hosts = {}
        self.still_ns = machine_stood_still_ns()

    def rules(self, **rules):
        """A triggers file with nothing on but what is named."""
        off = {role: "off" for role in ("browser", "renderer", "gpu", "utility", "other")}
        path = self.folder / f"rules{time.monotonic_ns()}.json"
        path.write_text(json.dumps({"interval_seconds": 1, "killed": False, "footprint": off, **rules}))
        return f"--triggers={path}"

    def memlog_start(self, *program, **more):
        process = super().memlog_start(*program, **more)
        self.hosts[process.memlog_folder] = process
        return process

    def in_folder(self, words):
        """Paths in actions lie in the test's folder."""
        return [word.replace("=@", f"={self.folder}/") for word in words]

    def grow(self, *actions, options=(), role="-", before=()):
        """The program in the background, stopped by its waits."""
        return self.memlog_start(GROWER, role, *self.in_folder(actions), options=("-q", "--no-page", *options), before=before)

    def go(self, name):
        (self.folder / name).touch()

    def there(self, name="there"):
        self.wait_for("the program", (self.folder / name).exists)

    def log(self, process):
        path = process.memlog_folder / "triggers.log"
        return path.read_text().splitlines() if path.exists() else []

    def told(self, process, what, kind, word=""):
        """Lines of the log: `what` ("dump", "no dump", "written") of that trigger, with that word in the reason."""
        return [line for line in self.log(process) if line.split(" ", 1)[1].startswith(f"{what} {kind}: ") and word in line]

    def looks(self, process, more=2):
        """Wait until the triggers have looked so many times more."""
        def count():
            return sum(" no dump " in line or " dump " in line for line in self.log(process))
        before = count()
        self.wait_for("looks of the triggers", lambda: count() >= before + more)

    def below(self, process, kind, word="", more=2, dumps=0):
        """So many looks more at that threshold, and none crosses it: each says so, and there are no more dumps than there were."""
        before, taken = (len(self.told(process, what, kind, word)) for what in ("no dump", "dump"))
        self.wait_for(f"looks at {kind}", lambda: len(self.told(process, "no dump", kind, word)) >= before + more)
        self.assertEqual(len(self.told(process, "dump", kind, word)), taken)
        self.assertEqual(len(self.triggered(process)), dumps)

    def triggered(self, process):
        return sorted(process.memlog_folder.glob("*.threshold.pftrace"))

    def wait_triggered(self, process, count):
        self.wait_for(f"{count} triggered dumps", lambda: len(self.triggered(process)) >= count)
        return self.triggered(process)[count - 1]

    def end(self, process, go="end"):
        self.go(go)
        process.communicate(timeout=harness.TIMEOUT)

    def rows(self, **wanted):
        """What `memlog ps` tells of the processes whose members are such."""
        words = [str(harness.MEMLOG), "ps", "--json"]
        answer = subprocess.run(words, capture_output=True, text=True, check=False, env=self.environment())
        rows = json.loads(answer.stdout)["processes"] if answer.returncode == 0 else []  # it is not there yet
        return [row for row in rows if all(row[key] == value for key, value in wanted.items())]

    def check_prompt(self, dump, trigger):
        """The dump is of the moment of the check that decided for it: within a second, or as much longer as memlog was kept from going on,
        which a slow machine may do and memlog does not."""
        host = self.hosts[dump.parent]
        held_up = machine_stood_still_ns() - self.still_ns
        for pid in (host.pid, harness.service_of(host.pid)):
            held_up += in_line_ns(pid)
        self.assertLessEqual(trigger["after_check_ns"], NS + held_up)

    def check(self, dump, kind, function="guilty"):
        """What a dump of a run that goes on says of itself; the report names the guilty stack."""
        report = self.report(dump)
        trigger = report["dump"]["trigger"]
        self.assertEqual(report["dump"]["reason"], "threshold")
        self.assertEqual(trigger["kind"], kind, trigger)
        self.check_prompt(dump, trigger)
        if function:
            self.assertIn(function, [frame["function"] for frame in trigger["frames"]][:3])
            self.assertIn(trigger["process_id"], [entry["id"] for entry in report["processes"]])
        text = subprocess.run([str(harness.MEMLOG), "report", str(dump)], capture_output=True, text=True, check=True).stdout
        self.assertIn(f" taken for {kind}: {trigger['reason']} ", " ".join(text.split()))  # in the text it is wrapped
        return report, trigger

    def guilty_of(self, report):
        """The process that the dump's trigger names."""
        (found,) = [one for one in report["processes"] if one["id"] == report["dump"]["trigger"]["process_id"]]
        return found


class Figures:
    """A file of numbers that stands in the place of the kernel's: each change is one write, and none is shorter than another."""

    def __init__(self, path, form, **values):
        self.path, self.form, self.values = path, form, values
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self.set()

    def set(self, **values):
        self.values.update(values)
        text = self.form.format(**self.values).encode().ljust(512, b"\n")
        with open(self.path, "r+b", buffering=0) as file:  # in place: another file would not be the one that is mounted
            file.write(text)


def pressure(path):
    return Figures(
        path, "some avg10={some:05.2f} avg60=0.00 avg300=0.00 total=0\nfull avg10={full:05.2f} avg60=0.00 avg300=0.00 total=0", some=0, full=0)


def machine(path):
    """One with 16 GiB, of which that many hundredths are in use."""
    return Figures(path, "MemTotal: {total} kB\nMemFree: 1000 kB\nMemAvailable: {available} kB", total=16 << 20, available=16 << 20)


class MemoryCase(Case):
    def mounts(self, **files):
        """Words before memlog's: for it and its programs alone these files are the kernel's own."""
        mounts = " && ".join(f"mount --bind {file} {path}" for path, file in files.items())
        return ("unshare", "-m", "sh", "-c", f'{mounts} && exec "$@"', "sh")

    def calm(self):
        """A machine that has all of its memory, whatever others do: nothing is dumped for its sake."""
        return self.mounts(**{str(MEMINFO): machine(self.folder / "calm").path})

    def group(self, limit_bytes, **more):
        group = groups.make(self, limit_bytes, **more)
        if group is None:
            self.skipTest("no control group can be made here")
        return group

    def in_group(self, group, *words, options):
        return self.memlog_start(
            "/bin/sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh", *words, options=("-q", "--no-page", *options),
            before=self.calm())

    def once(self, process, kind, word=""):
        """One dump of that kind, which names the guilty stack; no second one while nothing changes."""
        found = self.check(self.wait_triggered(process, 1), kind)
        self.below(process, kind, word, dumps=1)
        return found
