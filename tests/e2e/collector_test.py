"""tools/collector: takes memlog's reports, keeps each once, and adds up what they say."""
import concurrent.futures
import ctypes
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import unittest
import urllib.error
import urllib.parse
import urllib.request

import harness

sys.path.insert(0, str(harness.ROOT / "tools" / "collector"))
import collector  # pylint: disable=wrong-import-position

GROWER = harness.PROGRAMS / "oracle" / "grower"
MIB = 1 << 20


class Collector(harness.Case):
    @property
    def store(self):
        return self.folder / "store"

    def serve(self, **settings):
        server = collector.serve(self.store, **settings)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.address = f"http://127.0.0.1:{server.server_address[1]}"
        return server

    def get(self, path):
        with urllib.request.urlopen(self.address + path, timeout=harness.TIMEOUT) as answer:
            return answer.read()

    def post(self, body, content_type="multipart/form-data; boundary=b"):
        request = urllib.request.Request(self.address + "/report", data=body, headers={"Content-Type": content_type})
        try:
            with urllib.request.urlopen(request, timeout=harness.TIMEOUT) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def run_program(self, size, *options):
        for name in ("end", "there"):
            (self.folder / name).unlink(missing_ok=True)
        process = self.memlog_start(
            GROWER, "-", f"guilty={size}", f"done={self.folder}/there", f"wait={self.folder}/end",
            options=("-q", "--no-page", f"--upload={self.address}/report", f"--upload-spool={self.folder}/spool", *options))
        self.wait_for("the program", (self.folder / "there").exists)
        answer = subprocess.run(
            [str(harness.MEMLOG), "upload", "--wait"], env=self.environment(), capture_output=True, text=True,
            timeout=harness.TIMEOUT, check=False)
        (self.folder / "end").touch()
        process.communicate(timeout=harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)

    def test_reports_of_one_build_are_listed_and_added_up(self):
        self.serve()
        self.assertIn(b"memlog run --upload=", self.get("/"))
        self.run_program(4 * MIB)
        self.run_program(8 * MIB)
        reports = json.loads(self.get("/api/reports"))
        self.assertEqual(sorted(int(report["live_bytes"]) for report in reports), [4 * MIB, 8 * MIB])
        self.assertEqual({report["prod"] for report in reports}, {"grower"})
        (build,) = {report["build_id"] for report in reports}
        query = urllib.parse.urlencode({"prod": "grower", "build": build})
        merged = json.loads(self.get("/api/report?" + query))
        self.assertEqual(len(merged["dumps"]), 2)
        self.assertEqual(merged["live_bytes"], 6 * MIB)
        self.assertEqual((merged["stacks"][0]["live_bytes"], merged["stacks"][0]["dumps"]), (6 * MIB, 2))
        self.assertIn("guilty", merged["stacks"][0]["frames"][:2])
        # In the form of `memlog report --json`, for the same scripts.
        (dump,) = self.folder.glob("dumps1/*.manual.pftrace")
        one = self.report(dump)
        for key in ("memlog", "dump", "tree", "processes"):
            self.assertEqual(type(merged[key]), type(one[key]), key)
        self.assertEqual(merged["tree"]["live_bytes"], 6 * MIB)
        self.assertEqual(merged["processes"][0]["name"], one["processes"][0]["name"])
        self.assertLessEqual(set(merged["tree"]["stacks"][0]) - {"dumps"}, set(one["tree"]["stacks"][0]))
        self.assertIn("guilty", [frame["function"] for frame in merged["processes"][0]["stacks"][0]["frames"]][:2])
        self.assertTrue(merged["dump"]["complete"])
        self.assertTrue(merged["dump"]["covered"])
        self.assertIn(b"guilty", self.get("/report?" + query))
        self.assertIn(b"grower", self.get("/"))
        trace = self.get("/trace/" + reports[0]["id"])
        self.assertEqual(trace[:2], b"\x1f\x8b")

    def test_what_comes_twice_is_kept_once_and_what_is_no_report_is_refused(self):
        self.serve(body_max_bytes=1 << 20)
        self.run_program(MIB)
        (dump,) = self.folder.glob("dumps1/*.manual.pftrace")
        guid = "0123456789abcdef" * 2
        body = subprocess.run(
            [str(harness.MEMLOG), "upload", "--dry-run", f"--guid={guid}", str(dump)], capture_output=True, check=True).stdout
        kind = f"multipart/form-data; boundary=memlog-{guid}"
        for _ in range(2):
            self.assertEqual(self.post(body, kind)[0], 200)
        (report,) = json.loads(self.get("/api/reports"))
        self.assertEqual(len(report["guids"]), 2)
        for wrong, content_type in (
                (b"", kind), (b"x", "text/plain"), (body[:200], kind), (body.replace(guid.encode(), b"../../etc" + b"x" * 23), kind),
                (body.replace(b"\x1f\x8b", b"\x1f\x8c"), kind)):
            self.assertEqual(self.post(wrong, content_type)[0], 400)
        self.assertEqual(self.post(b"x" * ((1 << 20) + 1), kind)[0], 413)
        for path in ("/trace/../../etc/passwd", "/trace/" + "0" * 64, "/report?prod=nobody", "/x"):
            with self.assertRaises(urllib.error.HTTPError):
                self.get(path)
        self.assertEqual(len(json.loads(self.get("/api/reports"))), 1)

    # ---- what comes from anybody

    GUID = "0123456789abcdef" * 2

    def trace(self, frames=("guilty", "main"), size=1000, **more):
        """A trace of one process with one stack."""
        strings = [{"id": place, "string": frame} for place, frame in enumerate(frames)]
        nodes = [{"id": place, "name_sid": place, **({"parent": place + 1} if place + 1 < len(frames) else {})} for place in range(len(frames))]
        table = {"nodes": [0], "sizes": [size], "counts": [1], "types": [0]}
        heap = {"version": 1, "maps": {"strings": strings, "nodes": nodes, "types": []}, "allocators": {"malloc": table}}
        return {"traceEvents": [{"ph": "v", "pid": 1, "args": {"dumps": {"heaps_v2": {**heap, **more}}}}]}

    def form(self, trace, **fields):
        """A multipart body with that trace: an object, or bytes as they are."""
        data = trace if isinstance(trace, bytes) else gzip.compress(json.dumps(trace).encode())
        fields = {"guid": self.GUID, "prod": "p", "build_id": "b", "live_bytes": "1000", **fields}
        parts = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields.items()]
        head = b'--b\r\nContent-Disposition: form-data; name="trace"; filename="t"\r\nContent-Type: application/gzip\r\n\r\n'
        return b"".join(parts) + head + data + b"\r\n--b--\r\n"

    def raw(self, data):
        """What is answered to bytes that are no proper request; b"": the connection is closed."""
        with socket.create_connection(("127.0.0.1", int(self.address.rsplit(":", 1)[1])), timeout=harness.TIMEOUT) as client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: client.recv(65536), b""))

    def test_hostile_reports_are_refused_and_do_no_harm_to_the_others(self):
        self.serve()
        self.assertEqual(self.post(self.form(self.trace()))[0], 200)
        nested = gzip.compress(b'{"traceEvents":' + b"[" * 200_000)
        ring = self.trace()
        ring["traceEvents"][0]["args"]["dumps"]["heaps_v2"]["maps"]["nodes"][1]["parent"] = 0
        wrong = {
            "no number": self.form(self.trace(), live_bytes="many"),
            "a huge number": self.form(self.trace(), live_bytes="9" * 3000),
            "no program": self.form(self.trace(), prod=""),
            "a frame that is none": self.form(self.trace(maps={"strings": [], "nodes": [{"id": 0, "name_sid": 7}], "types": []})),
            "no maps": self.form(self.trace(maps=[])),
            "a negative size": self.form(self.trace(size=-5)),
            "a size that is a list": self.form(self.trace(size=[1])),
            "events of another kind": self.form({"traceEvents": [1, "v", None]}),
            "no events": self.form({"traceEvents": 5}),
            "too deep": self.form(nested),
            "half of a gzip": self.form(gzip.compress(json.dumps(self.trace()).encode())[:40]),
            "a broken gzip": self.form(b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + b"\xff" * 100),
            "many parts": b"--b\r\n\r\n\r\n" * 100_000,
        }
        for name, body in wrong.items():
            with self.subTest(name):
                self.assertEqual(self.post(body)[0], 400)
        self.assertEqual(self.post(self.form(self.trace()), "multipart/form-data")[0], 400)
        self.assertEqual(self.post(self.form(ring, prod="ring"))[0], 200)
        for head, status in ((b"Content-Length: -1", b" 411 "), (b"Content-Length: x", b" 411 "), (b"X: y", b" 411 "),
                             (b"Content-Length: 99999999999999", b" 413 ")):
            self.assertIn(status, self.raw(b"POST /report HTTP/1.1\r\n" + head + b"\r\n\r\nbody").split(b"\r\n")[0])
        self.assertEqual(self.raw(b"POST /report HTTP/1.1\r\nContent-Length: 1000\r\n\r\ncut"), b"")
        self.assertEqual(len(json.loads(self.get("/api/reports"))), 2)
        self.assertIn(b"guilty", self.get("/report?prod=p&build=b"))
        self.assertEqual(list(self.store.glob(".part-*")), [])

    def test_words_of_a_report_are_no_markup(self):
        self.serve()
        evil = "'><script>alert(1)</script>\""
        self.assertEqual(self.post(self.form(self.trace(frames=(evil,)), prod=evil, trigger=evil, time=evil, build_id=evil))[0], 200)
        query = urllib.parse.urlencode({"prod": evil, "build": evil})
        for path in ("/", "/report?" + query):
            self.assertNotIn(b"<script", self.get(path))
            self.assertNotIn(b"'><", self.get(path).replace(b"'>trace", b""))
        (row,) = json.loads(self.get("/api/reports"))
        self.assertEqual(row["prod"], evil)

    def test_many_at_once_are_all_kept_and_survive_a_restart(self):
        self.serve()
        bodies = [self.form(self.trace(size=1000 + index), guid=f"{index:032x}") for index in range(20)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual({status for status, _ in pool.map(self.post, bodies * 2)}, {200})
        before = self.get("/api/report?prod=p&build=b")
        (self.store / ".part-abandoned").write_text("half")
        (self.store / ("0" * 64 + ".json")).write_text('{"half')
        self.serve()
        self.assertEqual(json.loads(self.get("/api/report?prod=p&build=b")), json.loads(before))
        reports = json.loads(self.get("/api/reports"))
        self.assertEqual((len(reports), sorted(guid for one in reports for guid in one["guids"])), (20, [f"{index:032x}" for index in range(20)]))
        self.assertFalse((self.store / ".part-abandoned").exists())
        self.assertEqual(json.loads(before)["live_bytes"], 1000 + 9)

    @unittest.skipIf(os.geteuid() != 0, "needs root to mount a small file system")
    def test_a_full_disk_is_said_and_leaves_nothing_half(self):
        self.store.mkdir()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"none", str(self.store).encode(), b"tmpfs", 0, b"size=64k") != 0:
            self.skipTest(f"cannot mount: {os.strerror(ctypes.get_errno())}")
        self.addCleanup(lambda: libc.umount2(str(self.store).encode(), 2))
        self.serve()
        self.assertEqual(self.post(self.form(self.trace()))[0], 200)
        noise = self.form(self.trace(frames=[os.urandom(50_000).hex()]))
        status, words = self.post(noise)
        self.assertEqual(status, 507)
        self.assertIn(b"No space left on device", words)
        self.assertEqual(len(json.loads(self.get("/api/reports"))), 1)
        self.assertEqual(list(self.store.glob(".part-*")), [])

    def test_the_program_says_what_is_wrong_and_where_it_listens(self):
        program = [sys.executable, str(harness.ROOT / "tools" / "collector" / "collector.py")]
        (self.folder / "file").write_text("")
        answer = subprocess.run([*program, str(self.folder / "file")], capture_output=True, text=True, timeout=harness.TIMEOUT, check=False)
        self.assertEqual((answer.returncode, answer.stderr.count("\n")), (1, 1))
        self.assertIn("file", answer.stderr)
        process = subprocess.Popen([*program, "--port=0", str(self.store)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.address = process.stdout.readline().strip().rstrip("/")
        self.assertEqual(self.post(self.form(self.trace()))[0], 200)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)
        self.assertEqual(process.stderr.read(), "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
