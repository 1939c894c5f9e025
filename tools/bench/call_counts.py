"""What allocators inside executables are called for, by the kernel's count and by memlog's, of one run."""
import json
import shutil
import subprocess

import browsers
import memory_programs
import uprobes

RUST = "fn main() { let mut all: Vec<String> = (0..9).map(|i| format!(\"{i}\")).collect(); all.sort(); println!(\"{all:?}\"); }\n"


class Ended(RuntimeError):
    """It has ended with another code than 0, and said so."""


class Rustc(browsers.Browser):
    """Not a browser, and started like one."""

    @property
    def executable(self):
        return memory_programs.rustc()

    def picture_words(self, page):
        (self.folder / "a.rs").write_text(RUST)
        return [self.executable, "-O", "a.rs", "-o", "a"]


def hooked_functions(out, executable):
    told = subprocess.run([str(out / "memlog-analyzer"), "entries", "--json", executable], stdout=subprocess.PIPE, check=True).stdout
    return [name for family in json.loads(told)["families"] if family["hooked"] for name in family["functions"]]


def own_copy(out, folder):
    """Of memlog: a probe in its library stops every process of the machine that has that file."""
    folder.mkdir(mode=0o755)
    for name in ("memlog", "memlog-service", "memlog-analyzer", "libmemlog.so"):
        shutil.copy(out / name, folder / name)
    return folder


def count(browser, built, page):
    """(the report's processes, (process, markers before) -> what the kernel has counted); with a page's picture in the browser's folder."""
    out = own_copy(built, browser.folder / "memlog")
    probes, _ = uprobes.probes_of(browser.executable, hooked_functions(out, browser.executable))
    counter = uprobes.Counter(browser.executable, probes, marker=(out / "libmemlog.so", "ml_patch_all"))
    try:
        code, told = browser.run(browser.under_memlog(out / "memlog", browser.picture_words(page)))
        counted = counter.events()
    finally:
        counter.close()
    if code != 0:
        raise Ended(told)
    (dump,) = (browser.folder / "dumps").glob("*.exit.pftrace")
    answer = subprocess.run([str(out / "memlog"), "report", "--json", "--limit=1", str(dump)], stdout=subprocess.PIPE, check=True, env=browser.environment)
    return json.loads(answer.stdout)["processes"], counted


def compared(processes, counted):
    """(entry, what the kernel has counted since memlog's hooks were in place, calls before that) of each process in which there were any."""
    for pid in sorted({pid for pid, _ in counted}):
        entries = [entry for entry in processes if entry["pid"] == pid and entry["recorded"] and entry["coverage"]["hooked_functions"]]
        times = [markers for process, markers in counted if process == pid]
        if entries:  # another run's of the same file has none
            before = sum(one.blocks + one.frees for (process, markers), one in counted.items() if process == pid and markers < max(times))
            yield entries[-1], counted[pid, max(times)], before


def frees(entry):
    return entry["events"] - entry["total_blocks"]
