"""Frames by type, heap and scope, outside of the functions or inside of them (--by=ORDER): without the frames that an order adds, flame graphs
and collapsed stacks are the plain ones, to the byte."""
import collections
import json
import os
import re
import subprocess
import unittest

import browsing
import harness
import pages

FIGURES = [f"{what}_{unit}" for what in ("live", "peak", "total") for unit in ("bytes", "blocks")]
METRICS = ("live", "peak", "total")
QUIET = ("-q", "--no-page")


def less(sums, drop):
    """The sums of the stacks without the frames that `drop` takes away."""
    found = collections.Counter()
    for stack, figure in sums.items():
        found[tuple(drop(list(stack)))] += figure
    return found


class Case(harness.Case):
    def say(self, *words, code=0):
        answer = harness.run_words([str(harness.MEMLOG), *map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, code, answer.stderr)
        return (answer.stdout if code == 0 else answer.stderr).decode()

    def collapsed(self, dump, *options):
        """{(process, outermost, ..., innermost): bytes}"""
        sums = collections.Counter()
        for line in self.say("convert", "--to=collapsed", *options, dump).splitlines():
            stack, _, count = line.rpartition(" ")
            self.assertNotIn(stack, sums)
            sums[tuple(stack.split(";"))] = int(count)
        return sums

    def drawn(self, dump, *options):
        """{view: {(outermost, ..., innermost): [figures]}} of the page; what is thin is in <other>."""
        page = self.say("flamegraph", *options, "-o", "/dev/stdout", dump)
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
        paths = [()]
        for at in range(0, len(data["frames"]), 3):
            caller, name, _ = data["frames"][at:at + 3]
            paths.append(paths[caller] + (data["names"][name],))
        return {view["title"]: {paths[view["values"][at]]: view["values"][at + 1:at + 7] for at in range(0, len(view["values"]), 7)}
                for view in data["views"]}

    def dump_of(self, *program, options=QUIET):
        run = self.memlog(*program, options=options)
        self.assertEqual(run.code, 0, run.err)
        (dump,) = run.dumps()
        return dump


class Heaps(Case):
    def setUp(self):
        super().setUp()
        self.dump = self.dump_of(harness.PROGRAMS / "oracle" / "heaps", "2000", "21")
        self.report_ = json.loads(self.say("report", "--json", self.dump))

    def test_types_are_frames_outside_or_inside(self):
        for metric in METRICS:
            for options in ((f"--metric={metric}", "--heap=handles"), (f"--metric={metric}",)):
                plain = self.collapsed(self.dump, *options)
                outside = self.collapsed(self.dump, *options, "--by=type")
                self.assertEqual(less(outside, lambda stack: stack[:1] + stack[2:]), less(plain, self.no_stack))
                inside = self.collapsed(self.dump, *options, "--by=backtrace,type")
                self.assertEqual(less(inside, lambda stack: stack[:-1]), plain)
                self.assertEqual(less(outside, lambda stack: stack[:2]), less(inside, lambda stack: [stack[0], stack[-1]]))
        types = less(self.collapsed(self.dump, "--heap=handles", "--by=type", "--metric=total"), lambda stack: stack[:2])
        truth = collections.Counter()
        for process in self.report_["processes"]:
            for stack in process["stacks"]:
                if stack["heap"] == "handles":
                    truth[f"{process['name']} ({process['pid']})", stack["type"] or "[no type]"] += stack["total_bytes"]
        self.assertEqual(types, truth)
        self.assertEqual({name for _, name in types}, {"[no type]", "Node", "std::vector<Edge>"})

    def no_stack(self, stack):
        """What is outside of nothing has nothing in it."""
        return stack[:-1] if stack[-1] == "[no stack]" else stack

    def test_heaps_are_frames_outside_or_inside(self):
        pids = [process["pid"] for process in self.report_["processes"]]
        for metric in METRICS:
            for narrow in ([], [f"--pid={pids[0]}"], ["--ended=no"], ["--prune=2K"]):
                options = [f"--metric={metric}", *narrow]
                plain = {heap: self.collapsed(self.dump, *options, f"--heap={heap}") for heap in ("malloc", "pool", "handles")}
                outside = self.collapsed(self.dump, *options, "--by=heap")
                inside = self.collapsed(self.dump, *options, "--by=backtrace,heap")
                self.assertEqual(less(outside, lambda stack: stack[:2]), less(inside, lambda stack: [stack[0], stack[-1]]))
                for heap, sums in plain.items():
                    own = {stack: figure for stack, figure in outside.items() if stack[1] == heap}
                    behind = {stack: figure for stack, figure in inside.items() if stack[-1] == heap}
                    if narrow == ["--prune=2K"]: # what is folded of one heap is not what is folded of all
                        self.assertEqual(sum(own.values()), sum(sums.values()), (options, heap))
                        continue
                    self.assertEqual(less(own, lambda stack: stack[:1] + stack[2:]), less(sums, self.no_stack), (options, heap))
                    self.assertEqual(less(behind, lambda stack: stack[:-1]), sums, (options, heap))
                by_both = self.collapsed(self.dump, *options, "--by=heap,type")
                self.assertEqual(less(by_both, lambda stack: stack[:2] + stack[3:]), outside)

    def test_flame_graphs_hold_the_same_sums(self):
        def sums_of(view, at):
            found = collections.defaultdict(lambda: [0] * len(FIGURES))
            for path, figures in view.items():
                key = path[at] if path else ""
                found[key] = [a + b for a, b in zip(found[key], figures)]
            return dict(found)

        plain = {heap: self.drawn(self.dump, f"--heap={heap}") for heap in ("malloc", "pool", "handles")}
        whole = {heap: {title: [sum(column) for column in zip(*view.values())] for title, view in views.items()} for heap, views in plain.items()}
        outside, inside = self.drawn(self.dump, "--by=heap"), self.drawn(self.dump, "--by=heap,type")
        self.assertEqual(len(outside), 1 + len(self.report_["processes"]))
        for title, view in outside.items():
            self.assertEqual(sums_of(view, 0), {heap: whole[heap][title] for heap in whole}, title)
            self.assertEqual(sums_of(inside[title], 0), {heap: whole[heap][title] for heap in whole}, title)
        for order, at in (("type", 0), ("backtrace,type", -1)):
            for title, view in self.drawn(self.dump, "--heap=pool", f"--by={order}").items():
                sums = sums_of(view, at)
                self.assertEqual(set(sums) - {"<other>"}, {"[no type]", "Node", "std::vector<Edge>"}, (order, title))
                self.assertEqual([sum(column) for column in zip(*sums.values())], whole["pool"][title], (order, title))

    def test_a_flame_graph_of_a_change_has_them_too(self):
        other = self.dump_of(harness.PROGRAMS / "oracle" / "heaps", "500", "21")
        self.say("diff", "--html", "--by=heap", "-o", "diff.html", self.dump, other)
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', (self.folder / "diff.html").read_text(), re.S)[1])
        for side, dump in (("before", self.dump), ("values", other)):
            whole = [sum(heap["total_bytes"] for process in json.loads(self.say("report", "--json", dump))["processes"] for heap in process["heaps"])]
            self.assertEqual([sum(data["views"][0][side][5::7])], whole)
        self.assertIn("--by goes with --html only", self.say("diff", "--by=heap", self.dump, other, code=2))

    def told(self, *words):
        return json.loads(self.say("report", "--json", *words, self.dump))

    def figures_of(self, one):
        return [one[figure] for figure in (*FIGURES, "temporary_blocks")]

    def assert_sum(self, one, parts):
        self.assertEqual([sum(column) for column in zip(*map(self.figures_of, parts))], self.figures_of(one))

    def test_json_has_types_below_stacks_and_stacks_below_types(self):
        whole = self.told("--heap=handles")
        ways = [{}, {}]
        for stack in whole["tree"]["stacks"]:
            self.assert_sum(stack, stack["types"])
            for one in stack["types"]:
                ways[0][stack["thread"], json.dumps(stack["frames"]), one["type"]] = self.figures_of(one)
        for row in self.told("--heap=handles", "--by=type")["rows"]:
            self.assert_sum(row, row["stacks"])
            for stack in row["stacks"]:
                ways[1][stack["thread"], json.dumps(stack["frames"]), row["name"]] = self.figures_of(stack)
        self.assertEqual(*ways)
        self.assertEqual({way[2] for way in ways[0]}, {"[no type]", "Node", "std::vector<Edge>"})
        self.assertEqual([len(row["stacks"]) for row in self.told("--heap=handles", "--by=type", "--limit=1")["rows"]], [1])
        self.assertEqual(json.loads(self.say("convert", "--to=json", "--heap=handles", self.dump)), whole)
        self.assertNotIn("stacks", self.told("--by=size")["rows"][0])

    def test_json_has_stacks_below_heaps(self):
        rows = {row["name"]: row for row in self.told("--by=heap")["rows"]}
        self.assertEqual(set(rows), {"malloc", "pool", "handles"})
        for name, row in rows.items():
            self.assert_sum(row, row["stacks"])
            own = [stack for process in self.report_["processes"] for stack in process["stacks"] if stack["heap"] == name]
            self.assert_sum(row, own)
            self.assertEqual({json.dumps(stack["frames"]) for stack in row["stacks"]}, {json.dumps(stack["frames"]) for stack in own})

    def test_a_dump_without_types_has_none_below_its_stacks(self):
        self.dump = self.dump_of("/usr/bin/python3", "-c", "x = list(range(9999))")
        self.assertNotIn("types", self.told()["tree"]["stacks"][0])
        (row,) = self.told("--by=type")["rows"]
        self.assertEqual(row["name"], "[no type]")
        self.assert_sum(row, row["stacks"])

    def test_what_is_not_an_order_is_refused(self):
        for words in (("flamegraph",), ("convert", "--to=collapsed"), ("convert", "--to=html")):
            for order in ("backtrace", "type,backtrace", "heap,scope", "", "function"):
                said = self.say(*words, f"--by={order}", self.dump, code=2)
                self.assertIn("type, heap, scope, heap,type, backtrace,type, backtrace,heap or backtrace,scope", said)
        for form in ("pprof", "chrome", "sqlite", "json", "heap", "perfetto"):
            self.assertIn("--by goes with --to=collapsed and html only", self.say("convert", f"--to={form}", "--by=type", self.dump, code=2))


class Scopes(Case):
    def test_scopes_are_frames_outside_or_inside(self):
        """A scope may be called as a function is: the report tells them from each other."""
        dump = self.dump_of(harness.PROGRAMS / "oracle" / "scopes", "300", "5", options=(*QUIET, "--memlog-stack-mode=mixed"))
        expected = {metric: (collections.Counter(), collections.Counter(), collections.Counter()) for metric in ("live", "total")}
        for process in json.loads(self.say("report", "--json", dump))["processes"]:
            for stack in process["stacks"]:
                frames = [(frame["function"] or f"{os.path.basename(frame['module'])}+{frame['offset']}", frame.get("kind") == "scope")
                          for frame in reversed(stack["frames"])]
                frames = [(stack["thread"], False)] * bool(stack["thread"]) + frames
                root = [f"{process['name']} ({process['pid']})"]
                scopes = [name for name, is_scope in frames if is_scope] or ["[no scope]"]
                rest = [name for name, is_scope in frames if not is_scope]
                for metric, (plain, outside, inside) in expected.items():
                    figure = stack[f"{metric}_bytes"]
                    plain[tuple(root + ([name for name, _ in frames] or ["[no stack]"]))] += figure
                    outside[tuple(root + scopes + rest)] += figure
                    inside[tuple(root + (rest or ["[no stack]"]) + scopes)] += figure
        for metric, sums in expected.items():
            for order, truth in zip(([], ["--by=scope"], ["--by=backtrace,scope"]), sums):
                self.assertEqual(self.collapsed(dump, f"--metric={metric}", *order), +truth, (metric, order))
        self.assertGreater(len({stack[1] for stack in expected["total"][1]}), 2)


class Page(Case):
    """The page over the folder of a run that has ended: figures over HTTP, and what a person sees."""
    @classmethod
    def setUpClass(cls):
        pages.install()

    def setUp(self):
        super().setUp()
        self.dump = self.dump_of(harness.PROGRAMS / "oracle" / "heaps", "2000", "22")
        log = open(self.folder / "page.err", "wb+")
        self.addCleanup(log.close)
        served = subprocess.Popen([harness.MEMLOG, "page", self.dump.parent], stdin=subprocess.DEVNULL, stderr=log, env=self.environment())
        self.addCleanup(served.kill)
        found = self.wait_for("the address", lambda: re.search(rb"page: (http\S+)", (self.folder / "page.err").read_bytes()))
        self.page = browsing.Page(found[1].decode())

    def test_the_page_answers_by_each_order(self):
        plain = self.page.json("/api/v1/profile?dump=0001")["views"][0]["values"]
        heaps = {row["name"]: row for row in json.loads(self.say("report", "--json", "--by=heap", self.dump))["rows"]}
        for order in ("type", "scope", "backtrace,type", "backtrace,scope", "heap", "heap,type", "backtrace,heap"):
            values = self.page.json(f"/api/v1/profile?dump=0001&by={order}")["views"][0]["values"]
            for figure in (1, 2, 5, 6):
                name = FIGURES[figure - 1]
                truth = sum(row[name] for row in heaps.values()) if "heap" in order else sum(plain[figure::7])
                self.assertEqual(sum(values[figure::7]), truth, (order, name))
            diff = self.page.json(f"/api/v1/diff?from=0001&to=0001&by={order}")["views"][0]
            self.assertEqual((diff["values"], diff["before"]), (values, values))
            text = self.page.ask(f"/api/v1/dumps/0001?format=collapsed&by={order}").body.decode()
            self.assertEqual(text, self.say("convert", "--to=collapsed", f"--by={order}", self.dump))
        self.assertEqual(self.page.json("/api/v1/profile?dump=0001&by=")["views"][0]["values"], plain)
        for path in ("profile?dump=0001&by=backtrace", "diff?from=0001&to=0001&by=x", "dumps/0001?format=html&by=x", "dumps/0001?format=pprof&by=heap"):
            self.assertEqual(self.page.ask("/api/v1/" + path).status, 400, path)

    def test_a_person_sees_heaps_and_types(self):
        shots = self.folder / "shots"
        shots.mkdir()
        env = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
        looked = harness.run_words(["node", "two_ways.js", self.page.url, str(shots)], pages.NODE, {**env, "HOME": str(self.folder)}, b"", 240)
        self.assertEqual(looked.returncode, 0, looked.stderr)
        seen = json.loads(looked.stdout)
        self.assertEqual((seen["complaints"], seen["faults"], seen["overflow"]), ([], [], 0))
        orders = seen["orders"]
        self.assertEqual(set(orders), {"", "type", "heap", "scope", "heap,type", "backtrace,type", "backtrace,heap", "backtrace,scope"})
        for order, title in (("type", "Type"), ("heap", "Heap"), ("heap,type", "Heap and type"), ("", "Function"), ("scope", "Function")):
            one = orders[order]
            self.assertEqual(one["title"], title)
            if title != "Function":
                self.assertEqual(dict(one["rows"]), {name: text for name, (_, text) in one["told"].items()})
                figures = [one["told"][name][0] for name, _ in one["rows"]]
                self.assertEqual(figures, sorted(figures, reverse=True))
        self.assertEqual([name for name, _ in orders["type"]["rows"]], ["[no type]"])
        self.assertEqual(orders["backtrace,heap"]["rows"], orders["heap"]["rows"])
        self.assertEqual({name for name, _ in orders["heap"]["rows"]}, {"malloc", "pool", "handles"})
        self.assertIn("pool / Node", {name for name, _ in orders["heap,type"]["rows"]})
        self.assertEqual(orders["heap"]["below"], orders["heap"]["rows"][0][0])
        self.assertIn("by=heap%2Ctype", orders["heap,type"]["hash"])
        self.assertRegex(seen["zoomed"], "pool.*Node")
        self.assertEqual(len(list(shots.glob("*.png"))), 17)


if __name__ == "__main__":
    unittest.main(verbosity=2)
