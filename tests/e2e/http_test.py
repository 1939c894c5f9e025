"""The page's HTTP interface from outside: what it answers."""
import contextlib
import json
import os
import pathlib
import queue
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

import browsing
import convert_test
import harness
import pythons


def state_of(pid):
    """As the kernel tells it; X: it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def grandchildren_of(pid):
    found = []
    for child in harness.children_of(pid):
        with contextlib.suppress(OSError):  # it has ended
            found += harness.children_of(child)
    return found


class Http(browsing.TreeCase):
    def test_figures_are_the_reports_and_control_works(self):
        process, page = self.start_tree()
        self.assertEqual(page.ask("/healthz", token=False).body, b"ok\n")
        session = page.json("/api/v1/session")
        self.assertTrue(session["live"])
        self.assertEqual(session["program"][0], browsing.PYTHON)
        parent, child = browsing.members(page)
        self.assertEqual(child["parent_pid"], parent["pid"])
        self.assertEqual((parent["role"], child["role"]), ("browser", "other"))

        # A dump, and the same figures before and behind it: nobody allocates meanwhile.
        made = page.json("/api/v1/dumps", "POST")
        self.assertTrue(made["complete"])
        dump = pathlib.Path(process.memlog_folder) / made["file"]
        report = self.report(dump)
        before = {one["id"]: one for one in page.json("/api/v1/processes")["processes"]}
        same = ("pid", "parent_pid", "name", "command_line", "role", "from_startup", "live_bytes", "live_blocks", "peak_bytes", "total_bytes", "events")
        for entry in report["processes"]:
            self.assertEqual({key: before[entry["id"]][key] for key in same}, {key: entry[key] for key in same})
        again = {one["id"]: one for one in page.json(f"/api/v1/processes?dump={made['id']}")["processes"]}
        for entry in report["processes"]:
            self.assertEqual(again[entry["id"]], {key: value for key, value in entry.items() if key != "stacks"})

        # Every form of it, and the dump itself.
        self.assertEqual(page.json("/api/v1/dumps")["dumps"][0]["id"], made["id"])
        self.assertEqual(page.ask(f"/api/v1/dumps/{made['id']}").body, dump.read_bytes())
        for form in ("perfetto", "pprof", "heap", "chrome", "collapsed", "sqlite", "json", "html"):
            answer = page.ask(f"/api/v1/dumps/{made['id']}?format={form}")
            self.assertEqual(answer.status, 200, form)
            self.assertGreater(len(answer.body), 100, form)
            self.assertIn("filename=", answer.headers["content-disposition"])
        collapsed = page.ask(f"/api/v1/dumps/{made['id']}?format=collapsed&pid={child['pid']}&metric=total").body.decode()
        total = sum(int(line.rpartition(" ")[2]) for line in collapsed.splitlines())
        self.assertEqual(total, next(one["total_bytes"] for one in report["processes"] if one["pid"] == child["pid"]))

        # The flame graph adds up, of the tree, a process and a role.
        def sums(path):
            data = page.json(path)
            self.assertLessEqual(len(data["frames"]) // 3, 8000)
            values = data["views"][0]["values"]
            return [sum(values[figure::7]) for figure in (1, 2, 5)]

        def figures(entry):
            return [entry["live_bytes"], entry["live_blocks"], entry["total_bytes"]]

        self.assertEqual(sums(f"/api/v1/profile?dump={made['id']}"), figures(report["tree"]))
        self.assertEqual(sums("/api/v1/profile"), figures(report["tree"]))
        self.assertEqual(sums(f"/api/v1/profile?pid={child['pid']}&metric=total"), figures(before[child["id"]]))
        self.assertEqual(sums("/api/v1/profile?role=other"), figures(before[child["id"]]))

        # What a leak adds is in the difference, and under its name.
        self.order("child", 50)
        diff = page.json(f"/api/v1/diff?from={made['id']}")
        views = diff["views"][0]
        grown = sum(views["values"][1::7]) - sum(views["before"][1::7])
        self.assertGreaterEqual(grown, 50 * 3000)
        self.assertLess(grown, 50 * 3000 + 100000)
        child_now = next(one for one in browsing.members(page) if one["pid"] == child["pid"])
        self.assertEqual(child_now["live_bytes"] - child["live_bytes"], grown)

        # Stop really stops, start begins a clean profile at the rate that was asked for.
        pid = child["pid"]
        self.assertEqual(page.json(f"/api/v1/processes/{pid}/stop", "POST"), {"done": True})
        self.order("child", 50)
        stopped = next(one for one in browsing.members(page) if one["pid"] == pid)
        self.assertFalse(stopped["recording"])
        self.assertEqual(stopped["live_bytes"], child_now["live_bytes"])
        self.assertEqual(page.ask(f"/api/v1/processes/{pid}/stop", "POST").status, 409)
        self.assertEqual(page.json(f"/api/v1/processes/{pid}/start?sampling_bytes=1", "POST"), {"done": True})
        self.order("child", 50)
        started = next(one for one in browsing.members(page) if one["pid"] == pid)
        self.assertTrue(started["recording"])
        self.assertGreaterEqual(started["live_bytes"], 50 * 3000)
        self.assertLess(started["live_bytes"], 50 * 3000 + 100000)
        self.end(process)

    def test_events_tell_what_changes(self):
        process, page = self.start_tree()
        with page.connect() as peer:
            peer.sendall(f"GET /api/v1/events?token={page.token} HTTP/1.1\r\nHost: {page.host}\r\n\r\n".encode())
            stream = peer.makefile("rb")

            def event(name):
                while True:
                    line = stream.readline().decode()
                    self.assertTrue(line, "the stream ended")
                    if line == f"event: {name}\n":
                        return json.loads(stream.readline()[len("data: "):])

            first = event("all")
            running = {one["pid"]: one for one in first["processes"] if one["state"] == "running"}
            self.assertEqual(len(running), 2)
            self.order("child", 100)
            parent, child = sorted(running)
            live = 0
            while live < running[child]["live_bytes"] + 100 * 3000:
                update = event("update")
                for one in update["processes"]:
                    if one["pid"] == parent:
                        self.assertEqual(one["live_bytes"], running[parent]["live_bytes"])
                live = max([live, *(one["live_bytes"] for one in update["processes"] if one["pid"] == child)])
            self.order("child", 0)
            while not [one for one in event("update")["processes"] if one["pid"] == child and one["state"] == "exited"]:
                pass
        self.order("parent", 0)
        self.assertEqual(process.wait(harness.TIMEOUT), 0)

    def test_the_timeline_says_what_grew_without_a_second_dump(self):
        process, page = self.start_tree()
        parent, child = sorted(browsing.members(page), key=lambda one: one["id"])

        def moment():
            # Asking notes how it stands; a moment counts as the nearest that is known, stacks each second.
            time.sleep(1.1)
            page.json("/api/v1/timeline")
            time.sleep(0.7)
            now = int(time.time() * 1000)
            time.sleep(0.7)
            return now

        moments = [moment()]
        for who in ("child", "parent"):
            self.order(who, 1000)
            moments.append(moment())
        for grown, idle, begin in ((child, parent, 0), (parent, child, 1)):
            answer = page.json(f"/api/v1/timeline?from={moments[begin]}&to={moments[begin + 1]}")
            by_pid = {}
            for one in answer["changed"]:
                by_pid[one["pid"]] = by_pid.get(one["pid"], 0) + one["grown_bytes"]
            self.assertGreater(by_pid[grown["pid"]], 3000 * 1000)
            self.assertLess(by_pid.get(idle["pid"], 0), 100000)
            self.assertTrue(answer["changed"][0]["frames"])
        whole = page.json("/api/v1/timeline?points=5")
        self.assertEqual({one["pid"] for one in whole["processes"]} & {parent["pid"], child["pid"]}, {parent["pid"], child["pid"]})
        for one in [*whole["processes"], whole["tree"]]:
            self.assertLessEqual(len(one["points"]), 5)
        one = page.json(f"/api/v1/timeline?pid={child['pid']}&stacks=1")
        self.assertEqual([row["pid"] for row in one["processes"]], [child["pid"]])
        self.assertTrue(one["processes"][0]["stacks"][0]["points"])
        for words, status in (("from=5&to=4", 400), ("from=x", 400), ("stacks=2", 400), ("pid=1", 404), ("from=1&to=2", 404), ("dump=7777", 404)):
            self.assertEqual(page.ask(f"/api/v1/timeline?{words}").status, status, words)
        self.end(process)

    def has_snapshot(self, host):
        """The host holds one that the service has written, as between the halves of a difference."""
        for entry in pathlib.Path(f"/proc/{host}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                if os.readlink(entry).startswith("/memfd:memlog-snapshot") and entry.stat().st_size > 0:
                    return True
        return False

    def test_pprof_reads_the_endpoints(self):
        convert_test.Convert.setUpClass()
        pprof = convert_test.Convert.pprof
        process, page = self.start_tree()

        def run_pprof(path, *options):
            env = self.environment(HOME=str(self.folder), PPROF_TMPDIR=str(self.folder))
            url = f"{page.base}{path}{'&' if '?' in path else '?'}token={page.token}"
            answer = harness.run_words([str(pprof), *options, url], self.folder, env, b"", harness.TIMEOUT)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            return answer.stdout.decode()

        def total(text):
            return int(re.search(r"of ([-\d]+)B total", text)[1])

        report = page.json("/api/v1/processes")
        child = browsing.members(page)[1]
        top = ("-top", "-unit=B", "-nodecount=0", "-nodefraction=0")
        self.assertEqual(total(run_pprof("/debug/pprof/heap", *top)), harness.shown(report, "live_bytes"))
        self.assertEqual(total(run_pprof("/debug/pprof/allocs", *top)), report["tree"]["total_bytes"])
        mine = run_pprof(f"/debug/pprof/heap?pid={child['pid']}", *top)
        self.assertEqual(total(mine), child["live_bytes"])
        self.assertIn(pythons.HOLDER, mine)
        # A difference: what the child leaks while pprof waits.
        url = f"{page.base}/debug/pprof/heap?pid={child['pid']}&seconds=5&token={page.token}"
        env = self.environment(HOME=str(self.folder), PPROF_TMPDIR=str(self.folder))
        delta = subprocess.Popen([str(pprof), *top, url], cwd=self.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.wait_for("the first half", lambda: self.has_snapshot(process.pid))
        self.order("child", 70)
        out, err = delta.communicate(timeout=harness.TIMEOUT)
        self.assertEqual(delta.returncode, 0, err)
        # Rows are added up: pprof's own total counts what a stack gave back as if it had grown by that.
        grown = sum(int(own) for own in re.findall(r"^\s*(-?\d+)B?\s+\S+%\s+\S+%", out.decode(), re.M))
        now = next(one for one in browsing.members(page) if one["pid"] == child["pid"])
        self.assertEqual(grown, now["live_bytes"] - child["live_bytes"])
        self.assertTrue(page.ask("/debug/pprof/heap?debug=1").body.startswith(b"heap profile:"))
        self.end(process)

    def test_prometheus_reads_the_figures(self):
        def parse(kind, text):
            """By Debian's parser, in Debian's Python: [name, type, [[labels, value], ...]] of each family."""
            program = (
                f"import json, sys; from prometheus_client{kind}.parser import text_string_to_metric_families as parse; "
                "print(json.dumps([[one.name, one.type, [[s.labels, s.value] for s in one.samples]] for one in parse(sys.stdin.read())]))"
            )
            answer = harness.run_words([browsing.PYTHON, "-c", program], self.folder, self.environment(), text, harness.TIMEOUT)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            return {name: (kind, samples) for name, kind, samples in json.loads(answer.stdout)}

        process, page = self.start_tree()
        tree = page.json("/api/v1/processes")["tree"]
        running = {str(one["pid"]): one for one in browsing.members(page)}
        for accept, parser, kind in (
            (None, "", "text/plain; version=0.0.4"), ("application/openmetrics-text", ".openmetrics", "application/openmetrics-text; version=1.0.0"),
        ):
            answer = page.ask("/metrics", accept=accept)
            self.assertTrue(answer.headers["content-type"].startswith(kind), answer.headers)
            found = parse(parser, answer.body)
            self.assertEqual(found["memlog_tree_live_bytes"][1][0][1], tree["live_bytes"])
            live = {labels["pid"]: value for labels, value in found["memlog_process_live_bytes"][1]}
            self.assertEqual(live, {pid: one["live_bytes"] for pid, one in running.items()})
            self.assertEqual(found["memlog_process_events"][0], "counter")
            events = {labels["pid"]: value for labels, value in found["memlog_process_events"][1]}
            self.assertEqual(events, {pid: one["events"] for pid, one in running.items()})
        self.end(process)

    def test_the_document_tells_the_truth(self):
        """Every path of the OpenAPI document is there by its method, and answers as it says; no path is there that it does not tell."""
        process, page = self.start_tree(f"--upload={self.folder}", f"--upload-spool={self.folder}/spool")
        document = page.json("/openapi.json")
        moments = [one for one in document["paths"]["/api/v1/timeline"]["get"]["parameters"] if one["name"] in ("from", "to")]
        self.assertEqual([[kind["type"] for kind in one["schema"]["oneOf"]] for one in moments], [["integer", "string"]] * 2)
        self.assertEqual(page.ask("/api/v1/timeline?from=2000-01-01T00:00:00.5Z").status, 200)
        pid = browsing.members(page)[1]["pid"]
        made = page.json("/api/v1/dumps", "POST")["id"]
        seen = set()
        samples = {"pid": pid, "id": made}
        queries = {"/api/v1/diff": f"?from={made}", "/api/v1/memory/stacks": "?component=heap", "/api/v1/upload": "?wait=1"}
        bad = {
            400: {"/api/v1/processes": "?dump=now&x=", "/api/v1/profile": "?metric=x", "/api/v1/diff": "", "/api/v1/timeline": "?points=1", "/api/v1/memory": "?after=x", "/api/v1/memory/stacks": "?component=--x", "/api/v1/dumps/{id}": "?format=x", "/api/v1/upload": "?wait=x"},
        }
        for path, methods in document["paths"].items():
            for method, entry in methods.items():
                told = {int(code) for code in entry["responses"]}
                real = re.sub(r"{(\w+)}", lambda name: str(samples[name[1]]), path)
                if real.endswith("/start"):
                    page.ask(real.replace("start", "stop"), "POST")
                where = real + queries.get(path, "")
                if path == "/api/v1/events":
                    with page.connect() as peer:
                        peer.sendall(f"GET {path} HTTP/1.1\r\nHost: {page.host}\r\nAuthorization: token {page.token}\r\n\r\n".encode())
                        answers = [browsing.Answer(peer.recv(200).split(b"\r\n\r\n")[0] + b"\r\n\r\n")]
                else:
                    answers = [page.ask(where, method.upper())]
                self.assertEqual(min(told), answers[0].status, (method, path, answers[0].body))
                kind = answers[0].headers["content-type"].split(";")[0]
                self.assertIn(kind, entry["responses"][str(answers[0].status)]["content"], path)
                answers.append(page.ask(where, method.upper(), host="evil.example"))
                if path != "/healthz":
                    answers.append(page.ask(where, method.upper(), token=False))
                    answers.append(page.ask(where, method.upper(), token=False, cookie=page.cookie, sec_fetch_site="cross-site"))
                if "{pid}" in path:
                    answers += [page.ask(path.format(pid=1), "POST"), page.ask(path.format(pid="x"), "POST")]
                if "{id}" in path:
                    answers.append(page.ask(path.format(id="9999")))
                if path in bad[400]:
                    answers.append(page.ask(real + bad[400][path], method.upper()))
                for answer in answers:
                    self.assertIn(answer.status, told, (method, path, answer.body))
                    seen.add((path, method, answer.status))
                    if answer.status >= 400:
                        self.assertEqual(set(answer.json()), {"error"})
        self.assertGreater(len(seen), 60)
        # The table of routes in the source is the document's list.
        source = (harness.ROOT / "host" / "page" / "page.c").read_text()
        routes = {(method.lower(), path) for method, path in re.findall(r'^\s+{"(GET|POST)", "([^"]+)"', source, re.M)}
        told = {(method, re.sub(r"{\w+}", "*", path)) for path, methods in document["paths"].items() for method in methods}
        self.assertEqual(routes | {("get", "/"), ("get", "/openapi.json")}, told)
        page.ask(f"/api/v1/processes/{pid}/start", "POST")
        self.end(process)

    def test_where_it_listens_is_said_or_refused(self):
        def run(*options):
            words, _ = self.memlog_command(["/bin/echo", "ran"], options)
            answer = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
            return answer.returncode, answer.stdout, answer.stderr.decode()

        code, out, err = run("--page")
        self.assertEqual((code, out), (0, b"ran\n"))
        self.assertRegex(err, r"(?m)^memlog: page: http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{32}$")
        self.assertNotIn("page:", run("--no-page")[2])
        self.assertEqual(run("-q")[2], "")
        code, out, err = run("--page=0.0.0.0:0")
        self.assertEqual((code, out), (2, b""))
        self.assertIn("--page-remote", err)
        self.assertIn("http://0.0.0.0:", run("--page=0.0.0.0:0", "--page-remote")[2])
        self.assertIn("http://[::1]:", run("--page=[::1]:0")[2])
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            code, out, err = run(f"--page={port}")
            self.assertEqual((code, out), (125, b""))
            self.assertIn(str(port), err)

    def test_an_ended_run_has_its_page(self):
        run = self.memlog(harness.PROGRAMS / "oracle" / "fork", "fork")
        report = self.report(run.dumps()[0])
        log = open(self.folder / "page.err", "wb+")
        self.addCleanup(log.close)
        served = subprocess.Popen([harness.MEMLOG, "page", run.folder], stdin=subprocess.DEVNULL, stderr=log, env=self.environment())
        self.addCleanup(served.kill)
        found = self.wait_for("the address", lambda: re.search(rb"page: (http\S+)", (self.folder / "page.err").read_bytes()))
        page = browsing.Page(found[1].decode())
        self.assertFalse(page.json("/api/v1/session")["live"])
        self.assertEqual([one["id"] for one in page.json("/api/v1/dumps")["dumps"]], ["0001"])
        entries = page.json("/api/v1/processes?dump=0001")["processes"]
        self.assertEqual([one["live_bytes"] for one in entries], [one["live_bytes"] for one in report["processes"]])
        values = page.json("/api/v1/profile?dump=0001")["views"][0]["values"]
        self.assertEqual(sum(values[1::7]), harness.shown(report, "live_bytes"))
        for path, method, status in (
            ("/api/v1/profile", "GET", 400), ("/api/v1/timeline?dump=0001", "GET", 200), ("/api/v1/events", "GET", 409), ("/metrics", "GET", 409), ("/api/v1/dumps", "POST", 409),
            (f"/api/v1/processes/{entries[0]['pid']}/stop", "POST", 409), ("/api/v1/diff?from=0001&to=0001", "GET", 200),
        ):
            self.assertEqual(page.ask(path, method).status, status, path)
        served.terminate()
        self.assertEqual(served.wait(harness.TIMEOUT), 0)
        empty = harness.run_words([str(harness.MEMLOG), "page", str(self.truth_folder)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(empty.returncode, 1)
        self.assertIn(b"no dumps", empty.stderr)

    def held_analyzer(self, host, ask):
        """An analyzer that the page has started for a question and that stands still, and who waits for the answer. One that was quicker than
        we were has answered; then the question is asked again."""
        for _ in range(100):
            answers = queue.SimpleQueue()
            asking = threading.Thread(target=lambda: answers.put(ask()))
            asking.start()
            while asking.is_alive():
                # The first of it watches the one that works.
                for pid in grandchildren_of(host):
                    with contextlib.suppress(OSError):
                        if harness.comm_of(pid) == "memlog-analyzer":
                            os.kill(pid, signal.SIGSTOP)
                            if self.wait_for("it to stand still or end", lambda pid=pid: state_of(pid) in "TZX" and state_of(pid)) == "T":
                                self.addCleanup(asking.join)
                                return pid, answers
            asking.join()
        return self.fail("no analyzer was ever met")

    def test_a_killed_analyzer_costs_its_own_question_alone(self):
        process, page = self.start_tree()
        made = page.json("/api/v1/dumps", "POST")
        # Of a dump that is there, of a live run, and of a form.
        for path in (f"/api/v1/profile?dump={made['id']}", "/api/v1/profile", f"/api/v1/dumps/{made['id']}?format=pprof"):
            with self.subTest(path):
                pid, answers = self.held_analyzer(process.pid, lambda path=path: page.ask(path))
                waiting = queue.SimpleQueue()
                behind = threading.Thread(target=lambda path=path: waiting.put(page.ask(path)))
                behind.start()
                self.addCleanup(behind.join)
                # The page itself goes on meanwhile.
                self.assertEqual(page.ask("/api/v1/session").status, 200)
                os.kill(pid, signal.SIGKILL)
                answer = answers.get(timeout=harness.TIMEOUT)
                self.assertEqual(answer.status, 503)
                # Of the first of it, which may be the one that was met, not every kernel tells the signal.
                self.assertRegex(answer.json()["error"], "^memlog-analyzer was killed( by signal 9)?$")
                # Who asked behind it, and who asks now.
                self.assertEqual(waiting.get(timeout=harness.TIMEOUT).status, 200)
                again = page.ask(path)
                self.assertEqual(again.status, 200)
                self.assertGreater(len(again.body), 100)
        self.end(process)
        (dump,) = process.memlog_folder.glob("*.exit.pftrace")
        self.assertTrue(self.report(dump)["dump"]["complete"])

    def test_the_program_sees_nothing_of_it(self):
        """Nor does it inherit a descriptor; and its own server on every address is not in the way."""
        program = "import os; print(sorted(fd for fd in os.listdir('/proc/self/fd') if int(fd) < 900)); print([key for key in os.environ if 'MEMLOG' in key])"
        alone = subprocess.run([browsing.PYTHON, "-c", program], capture_output=True, check=True, stdin=subprocess.DEVNULL, env=self.environment())
        run = self.memlog(browsing.PYTHON, "-c", program, options=())
        self.assertEqual(run.out, alone.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
