"""What memory is made of, for programs that ask a run over HTTP, for Prometheus and in a browser: the kernel's sums, each time."""
import json
import os
import pathlib
import re
import subprocess
import time
import unittest

import browsing
import harness
import pages

PROGRAM = r"""
import mmap, os, sys
kept, mapped = [], []
def grow():
    kept.append(bytearray(8 << 20))
    one = mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    one.write(b"x" * (16 << 20))
    mapped.append(one)
grow()
print("ready", flush=True)
for line in sys.stdin:
    grow()
    print("grown", flush=True)
"""

# Their pages become other processes' as well, and its own again, as those come and go.
OF_FILES = {"code", "data", "files", "memlog"}

READ = 0  # in /proc/PID/syscall, of a process that waits in it


def private_bytes(pid):
    text = pathlib.Path(f"/proc/{pid}/smaps").read_text()
    return 1024 * sum(int(kib) for kib in re.findall(r"^Private_(?:Clean|Dirty): +(\d+) kB$", text, re.M))

SLACK_BYTES = 1 << 20
# ML_MEMORY_HISTORY_SLOT_MS of host/memory/history.h.
SLOT_SECONDS = 1


def is_near(value, pair):
    """The program stands still, but the kernel may take a page back, or give a file's to another: then it is private no more."""
    return pair[0] - SLACK_BYTES <= value <= pair[1] + SLACK_BYTES


class MemoryPage(browsing.Case):
    @classmethod
    def setUpClass(cls):
        pages.install()

    def start(self):
        process, page = self.open_page(browsing.PYTHON, "-c", PROGRAM, stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.wait_for_rest(page)
        return process, page

    def wait_for_rest(self, page):
        """It waits for its next line: until then it touches a page now and then."""
        (pid,) = [row["pid"] for row in browsing.members(page)]
        self.wait_for("it to wait", lambda: pathlib.Path(f"/proc/{pid}/syscall").read_text().startswith(f"{READ} "))

    def grow(self, process, page):
        process.stdin.write(b"\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), b"grown\n")
        self.wait_for_rest(page)

    def test_the_interface_adds_up_to_the_kernels_figure(self):
        process, page = self.start()
        (pid,) = [row["pid"] for row in browsing.members(page)]
        before = private_bytes(pid)
        answer = page.json("/api/v1/memory")
        reading = answer["readings"][-1]
        (entry,) = reading["processes"]
        bounds = sorted((before, private_bytes(pid)))
        self.assertTrue(is_near(entry["private_bytes"], bounds), (bounds, entry))
        self.assertEqual((sum(entry["values"]), entry["unread_bytes"], entry["pid"]), (entry["private_bytes"], 0, pid))
        self.assertEqual(reading["tree"]["values"], entry["values"])
        heap = entry["values"][reading["components"].index("heap")]
        self.assertGreaterEqual(heap, 8 << 20)
        self.assertNotIn(reading, page.json(f"/api/v1/memory?after={answer['last']}")["readings"])
        own = [place for place, name in enumerate(reading["components"]) if name not in OF_FILES]
        metrics = page.ask("/metrics").body.decode()
        values = dict(re.findall(r'^memlog_process_memory_bytes\{.*component="([^"]+)"\} (\d+)$', metrics, re.M))
        self.assertEqual([int(values[reading["components"][place]]) for place in own], [entry["values"][place] for place in own])
        self.assertEqual(values["not read"], "0")
        self.assertIn("# TYPE memlog_tree_memory_bytes gauge", metrics)
        dump = page.json("/api/v1/dumps", "POST")["id"]
        dumped = page.json(f"/api/v1/memory?dump={dump}")["processes"][0]["values"]
        self.assertEqual([dumped[place] for place in own], [entry["values"][place] for place in own])
        stacks = page.ask(f"/api/v1/memory/stacks?component=heap&pid={pid}&dump={dump}")
        self.assertEqual((stacks.status, stacks.headers["content-type"]), (200, "text/plain; charset=utf-8"))
        self.assertIn(b"MiB", stacks.body)
        for words in ("", "?component=-o", "?component=heap%00", "?component=HEAP", "?component=heap&pid=x", f"?component={'x' * 100}"):
            self.assertEqual(page.ask(f"/api/v1/memory/stacks{words}").status, 400, words)
        self.assertEqual(page.ask("/api/v1/memory/stacks?component=nothing").status, 404)
        process.communicate(b"", harness.TIMEOUT)

    def test_a_person_sees_bars_that_add_up_and_a_chart_and_asks_whose_it_is(self):
        process, page = self.start()
        first = page.json("/api/v1/memory")
        self.grow(process, page)
        self.wait_for("a second reading", lambda: page.json(f"/api/v1/memory?after={first['last']}")["readings"])
        answer = self.drive("memory.js", page.url)
        process.communicate(b"", harness.TIMEOUT)
        self.assertEqual(answer["complaints"], [])
        self.assertEqual(answer["faults"], [])
        self.assertEqual(answer["asked"], [page.base])
        # The bar is of one of the readings; the kernel may count a page of a file as another's in the next.
        entries = [reading["processes"][0] for reading in answer["readings"]]
        (entry,) = [one for one in entries if [value for value in one["values"] if value] == answer["parts"]][-1:]
        self.assertEqual(sum(answer["parts"]), entry["private_bytes"])
        self.assertIn("heap", answer["areas"])
        self.assertEqual(answer["pressed"], "true")
        self.assertIn("heap of python3", answer["title"])
        self.assertIn("MiB", answer["stacks"])

    def test_resident_and_private_memory_is_known_from_the_start_on(self):
        """Before anybody opens the page: the readings that memlog makes anyway, as the kernel's file has it."""
        process, page = self.start()
        (pid,) = [row["pid"] for row in browsing.members(page)]

        def read_since(moment):
            (one,) = page.json(f"/api/v1/memory/history?pid={pid}")["processes"]
            return one["points"][-1][0] > moment and one

        def tree_read_since(moment):
            return page.json("/api/v1/memory/history")["tree"]["points"][-1][0] > moment

        def settled():
            moment = 1000 * time.time()
            before = private_bytes(pid)
            one = self.wait_for("a reading", lambda: read_since(moment))
            self.wait_for("the sum of the tree", lambda: tree_read_since(moment))
            return sorted((before, private_bytes(pid))), one

        small, one = settled()
        begun = one["points"][0][0]
        self.assertTrue(is_near(one["points"][-1][4], small), (small, one))
        self.assertEqual((one["pid"], one["name"]), (pid, "python3"))
        # Readings of one second are one point: what comes after belongs to the next.
        time.sleep(SLOT_SECONDS + 0.1)
        self.grow(process, page)
        large, one = settled()
        self.assertTrue(is_near(one["points"][-1][4], large), (large, one))
        self.assertGreaterEqual(large[0] - small[1], 24 << 20)
        self.assertTrue(any(point[4] <= small[1] + SLACK_BYTES for point in one["points"]), (small, one))
        self.assertLess(one["points"][0][0], begun + 5000)
        for _, most_resident, resident, most_private, privately in one["points"]:
            self.assertTrue(most_resident >= resident >= privately <= most_private)
        answer = page.json("/api/v1/memory/history")
        self.assertEqual(answer["processes"], [])
        # The only process is the tree; it is added up now and then, so by another reading at times.
        self.assertLess(answer["tree"]["points"][0][0], 1000 * time.time())
        self.assertTrue(is_near(max(point[3] for point in answer["tree"]["points"]), large), (large, answer))
        self.assertEqual(page.json("/api/v1/memory/history?pid=1")["processes"], [])
        self.assertEqual(page.ask("/api/v1/memory/history?pid=x").status, 400)
        seen = self.drive("memory_past.js", page.url)
        process.communicate(b"", harness.TIMEOUT)
        self.assertEqual((seen["complaints"], seen["faults"]), ([], []))
        self.assertRegex(seen["about"], r"^What was live, private and resident, from the start on")
        for who in ("all", "one"):
            self.assertEqual(seen[who]["labels"][2:4], ["private", "resident"])
            known = [value for value in seen[who]["private"] if value]
            # A start may hold a little more than what stays of it.
            self.assertLess(known[0], large[0] - (24 << 20), (who, known))
            self.assertTrue(is_near(known[-1], large), (large, known))
            self.assertEqual(seen[who]["times"], sorted(seen[who]["times"]))
            self.assertEqual(seen[who]["gaps"], 0)

    def drive(self, script, url):
        env = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
        words = ["node", script, url, str(self.folder)]
        done = subprocess.run(words, cwd=pages.NODE, env={**env, "HOME": str(self.folder)}, stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
