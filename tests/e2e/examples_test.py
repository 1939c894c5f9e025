"""The programs of examples/, built as their readers would build them: by the installed headers and pkg-config."""
import collections
import json
import os
import pathlib
import re
import shlex
import subprocess
import unittest

import browsing
import harness

EXAMPLES = harness.ROOT / "examples"
PYTHON = "/usr/bin/python3"
FLAGS = ("-O1", "-g", "-Wall", "-Wextra", "-Werror")

# 50 MiB and more of small objects, of one size and by one function, and some that are gone.
OBJECTS = """
import sys, memlog_objects
import json
kept = [("%d" % i).encode().ljust(100) for i in range(400000)]
gone = [str(i) for i in range(100000)]
del gone
print(len(kept), sys.getsizeof(kept[0]))
sys.stdout.flush()
"""

# What two renderers of the browser have of their documents: elements and texts.
DOCUMENTS_BYTES = 2 * 2000 * (120 + 40)


class Examples(harness.Case):
    def install(self):
        self.prefix = self.folder / "prefix"
        answer = harness.run_words(["ninja", "-C", str(harness.OUT), "install"], self.folder, self.environment(PREFIX=str(self.prefix)), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stdout)

    def words(self, *words):
        answer = subprocess.run(words, env=self.environment(PKG_CONFIG_PATH=str(self.prefix / "lib" / "pkgconfig"), PATH=os.environ["PATH"]),
                                stdout=subprocess.PIPE, text=True, check=True)
        return shlex.split(answer.stdout)

    def build(self, compiler, name, *words, output=None):
        source = EXAMPLES / name
        program = self.folder / (output or source.stem)
        subprocess.run([compiler, *FLAGS, "-o", program, *words[:-1], source, *words[-1]], check=True)
        return program

    def record(self, *words, options=("-q", "--no-page")):
        dumps = self.folder / "dumps"
        run = harness.run_words([str(self.prefix / "bin" / "memlog"), "run", *options, "-o", str(dumps), "--", *map(str, words)],
                                self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(run.returncode, 0, run.stderr)
        (dump,) = dumps.glob("*.exit.pftrace")
        return run.stdout.decode(), dump

    def told(self, dump, *options):
        answer = subprocess.run([self.prefix / "bin" / "memlog", "report", "--json", *options, dump], env=self.environment(), stdout=subprocess.PIPE, check=True)
        return json.loads(answer.stdout)

    def by_type(self, dump, heap):
        return {row["name"]: (row["live_blocks"], row["live_bytes"]) for row in self.told(dump, f"--heap={heap}", "--by=type")["rows"] if row["live_blocks"]}

    def assert_types(self, out, dump, heap):
        truth = {words[0]: (int(words[1]), int(words[2])) for words in (line.split() for line in out.splitlines())}
        self.assertEqual(self.by_type(dump, heap), truth)
        (process,) = self.told(dump, f"--heap={heap}")["processes"]
        self.assertEqual([one["unknown_frees"] for one in process["heaps"]], [0])
        self.assertTrue(process["complete"])

    def bare(self, *words):
        return subprocess.run(list(map(str, words)), env=self.environment(), stdout=subprocess.PIPE, check=True, timeout=harness.TIMEOUT).stdout.decode()

    def test_an_arena_by_type(self):
        self.install()
        program = self.build("g++", "arena.cc", "-std=c++17", *self.words("pkg-config", "--cflags", "memlog"), ())
        out, dump = self.record(program, 5000)
        self.assertEqual(out, self.bare(program, 5000))
        self.assert_types(out, dump, "arena")

    def test_a_pool_of_trees(self):
        self.install()
        program = self.build("gcc", "pool.c", *self.words("pkg-config", "--cflags", "memlog"), ())
        out, dump = self.record(program, 3000)
        self.assertEqual(out, self.bare(program, 3000))
        self.assert_types(out, dump, "pool")
        functions = collections.Counter()
        for stack in self.told(dump, "--heap=pool")["processes"][0]["stacks"]:
            functions[stack["type"], stack["frames"][1]["function"]] += stack["live_blocks"]
        self.assertEqual({key: count for key, count in functions.items() if count},
                         {("session", "main"): 1, ("request", "main"): 300, ("body", "answer"): 300, ("header", "answer"): 300})

    def test_python_objects_as_a_heap_of_their_own(self):
        self.install()
        include = self.words(PYTHON, "-c", "import sysconfig; print('-I' + sysconfig.get_path('include'))")
        self.build("gcc", "python/memlog_objects.c", "-shared", "-fPIC", *self.words("pkg-config", "--cflags", "memlog"), *include, (),
                   output="memlog_objects.so")
        source = self.folder / "objects.py"
        source.write_text(OBJECTS)
        alone = self.bare(PYTHON, source)
        out, dump = self.record(PYTHON, source)
        self.assertEqual(out, alone)
        count, size = map(int, out.split())
        (process,) = self.told(dump)["processes"]
        self.assertTrue(process["complete"])
        heaps = {heap["name"]: heap for heap in process["heaps"]}
        self.assertGreaterEqual(heaps["python objects"]["peak_bytes"], count * size)
        self.assertGreaterEqual(heaps["python objects"]["total_blocks"], 2 * count + 100000)
        # malloc's own sums are those of the arenas and of what is too large for them.
        self.assertLess(heaps["malloc"]["total_blocks"], 100000)
        # By several stacks: the interpreter has other instructions for what it has done a few times.
        kept = [stack for stack in process["stacks"] if stack["heap"] == "python objects" and stack["peak_bytes"] == size * stack["peak_blocks"] > 0]
        self.assertLess(sum(stack["peak_blocks"] for stack in kept) - count, 100)
        self.assertGreaterEqual(max(stack["peak_blocks"] for stack in kept), count - 100)
        self.assertGreaterEqual(sum(stack["peak_blocks"] for stack in kept), count)

    def live_by(self, page, order):
        """What is live in all processes, by the frame that the order names last."""
        data = page.json(f"/api/v1/profile?by={order}")
        paths = [()]
        for at in range(0, len(data["frames"]), 3):
            caller, name, _ = data["frames"][at:at + 3]
            paths.append(paths[caller] + (data["names"][name],))
        values = data["views"][0]["values"]
        live = collections.Counter()
        for at in range(0, len(values), 7):
            path = paths[values[at]]
            live[path[order.count(",")] if len(path) > order.count(",") else ""] += values[at + 1]
        return live

    def look_at_browser(self, page, pid):
        """Its live page: all processes with their roles, and what they hold by heap and by type."""
        # Its dump is of the first large renderer: the other processes may not have begun yet.
        self.wait_for("both documents", lambda: self.live_by(page, "heap")["dom"] >= DOCUMENTS_BYTES)
        processes = page.json("/api/v1/processes")["processes"]
        self.assertEqual(collections.Counter(one["role"] for one in processes), {"browser": 1, "renderer": 2, "gpu": 1})
        self.assertEqual({one["parent_pid"] for one in processes if one["role"] != "browser"}, {pid})
        self.assertEqual([one["live_bytes"] > 40 << 20 for one in processes if one["role"] == "renderer"], [True, False])
        heaps = self.live_by(page, "heap")
        self.assertEqual(set(heaps), {"malloc", "dom"})
        self.assertEqual(heaps["dom"], DOCUMENTS_BYTES)
        self.assertGreater(heaps["malloc"], (40 << 20) + (3 << 20))
        types = self.live_by(page, "heap,type")
        self.assertEqual((types["Element"], types["Text"]), (2 * 2000 * 120, 2 * 2000 * 40))

    def test_a_browser_that_profiles_itself(self):
        self.install()
        (service,) = self.words("pkg-config", "--variable=service", "memlog-host")
        self.assertTrue(pathlib.Path(service).exists(), service)
        program = self.build("gcc", "browser/browser.c", *self.words("pkg-config", "--cflags", "memlog-host"), f'-DSERVICE="{service}"',
                             (*self.words("pkg-config", "--libs", "memlog-client", "memlog-host"), "-lpthread"))
        dumps = self.folder / "dumps"
        run = subprocess.Popen([program, dumps], cwd=self.folder, env=self.environment(),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        page = browsing.Page(run.stdout.readline().strip())
        self.wait_for("the dump of a large renderer", lambda: page.json("/api/v1/dumps")["dumps"])
        self.look_at_browser(page, run.pid)
        said, trouble = run.communicate("\n", harness.TIMEOUT)
        self.assertEqual(run.returncode, 0, trouble)
        self.assertEqual([pathlib.Path(line).name for line in said.splitlines()], ["0002.manual.pftrace", "0003.exit.pftrace"])
        self.assertEqual(sorted(path.name for path in dumps.glob("*.pftrace")), ["0001.threshold.pftrace", "0002.manual.pftrace", "0003.exit.pftrace"])
        self.assertRegex(trouble, r"renderer browser \(\d+\) has 40\.\d MiB of live heap, over 20\.0 MiB")
        self.assertEqual(len(list((dumps / "inbox").glob("memlog-*.trace.json.gz"))), 1)
        report = self.told(dumps / "0002.manual.pftrace") # what its host starts for itself is none of it
        self.assertEqual(collections.Counter(process["role"] for process in report["processes"]), {"browser": 1, "renderer": 2, "gpu": 1})
        for process in report["processes"]:
            self.assertTrue(process["complete"], process["trouble"])
            # It had blocks before it had a host; its children are linked to be recorded from the start.
            self.assertEqual(process["from_startup"], process["role"] != "browser")
            if process["role"] == "browser":
                self.assertEqual(process["coverage"]["unseen"], "what it had allocated before it was recorded is not known")
            if process["role"] == "renderer":
                types = collections.Counter()
                for stack in process["stacks"]:
                    scopes = [frame["function"] for frame in reversed(stack["frames"]) if frame.get("kind") == "scope"]
                    if stack["heap"] == "dom":
                        self.assertEqual(scopes, ["load", "parse"])
                        types[stack["type"]] += stack["live_bytes"]
                    if stack["total_bytes"] == 100_000:
                        self.assertEqual((scopes, stack["thread"]), (["layout"], "layout of the page in front"))
                    if stack["live_bytes"] == 40 << 20:
                        self.assertEqual(scopes, ["script"])
                self.assertEqual(types, {"Element": 2000 * 120, "Text": 2000 * 40})
        grown = [stack for process in report["processes"] for stack in process["stacks"] if stack["live_bytes"] == 40 << 20]
        self.assertEqual(len(grown), 1)
        self.assertTrue(re.search(r"main", " ".join(frame["function"] for frame in grown[0]["frames"])))

    def test_programs_that_link_the_client(self):
        self.install()
        source = self.folder / "linked.c"
        source.write_text('#include <memlog.h>\n#include <stdio.h>\nint main(void) { return printf("%d %d\\n", memlog_start(NULL), memlog_recording()) < 0; }\n')
        flags = self.words("pkg-config", "--cflags", "--libs", "memlog-client")
        subprocess.run(["gcc", *FLAGS, "-o", self.folder / "linked", source, *flags], check=True)
        self.assertEqual(self.bare(self.folder / "linked"), "-1 0\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
