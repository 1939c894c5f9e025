"""A program that is sent without its names, and reports of it: frames are places in a build, loaded somewhere else each time."""
import random
import re
import subprocess

from collecting import trace

PROGRAM = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *volatile kept;
__attribute__((noinline)) static void leak(void) { kept = malloc(MORE << 20); memset(kept, 1, MORE << 20); }
__attribute__((noinline)) void serve(void) { leak(); __asm__ volatile(""); }
int main(void) { serve(); sleep(4); return 0; }
"""
NAMED = ("main", "serve", "leak")


def build(folder, name, more=20):
    """A program with names, the same without, its build id, and the addresses of its functions."""
    source, whole, bare = (folder / f"{name}{suffix}" for suffix in (".c", ".whole", ""))
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", f"-DMORE={more}", "-o", str(whole), str(source)], check=True)
    subprocess.run(["strip", "-o", str(bare), str(whole)], check=True)
    notes = subprocess.run(["readelf", "-n", str(whole)], check=True, capture_output=True, text=True).stdout
    symbols = subprocess.run(["nm", str(whole)], check=True, capture_output=True, text=True).stdout
    addresses = {line.split()[2]: int(line.split()[0], 16) for line in symbols.splitlines() if len(line.split()) == 3}
    return whole, bare, re.search("Build ID: ([0-9a-f]+)", notes)[1], addresses


def placed(build_id, addresses, rows, **how):
    """A report whose frames of the program are places: "leak" is one in that function, "leak+5" another."""
    base = 0x550000000000 + random.Random(str(how)).randrange(1 << 20) * 4096

    def frame(name):
        function, _, offset = name.partition("+")
        return f"pc:{base + addresses[function] + int(offset or 3):x}" if function in addresses else name

    report = trace([(tuple(map(frame, frames)), *values) for frames, *values in rows], **{"build": build_id, **how})
    report["traceEvents"][1]["args"]["dumps"]["process_mmaps"] = {"vm_regions": [
        {"sa": f"{base:x}", "sz": "100000", "lb": f"{base:x}", "mf": "/opt/prog", "id": build_id}]}
    return report
