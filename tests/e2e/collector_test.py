"""tools/collector: takes memlog's reports, keeps each once, and adds up what they say."""
import json
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
    def serve(self, **settings):
        server = collector.serve(self.folder / "store", **settings)
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
