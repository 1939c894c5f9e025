"""What leaves the machine, and in what shape: receivers that look at every field."""
import base64
import gzip
import json
import os
import re
import subprocess
import sys
import time
import unittest
import urllib.parse
import urllib.request

import browsing
import harness
import uploads
from uploads import GROWER, MIB, live_of, parts

# Of the field numbers that are published for OTLP's profiles; protoc holds ours against them.
OTLP = """
syntax = "proto3";
message Request { repeated ResourceProfiles resource_profiles = 1; Dictionary dictionary = 2; }
message ResourceProfiles { Resource resource = 1; repeated ScopeProfiles scope_profiles = 2; }
message Resource { repeated KeyValue attributes = 1; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; } }
message Scope { string name = 1; }
message ScopeProfiles { Scope scope = 1; repeated Profile profiles = 2; }
message Profile {
  ValueType sample_type = 1; repeated Sample samples = 2; fixed64 time_unix_nano = 3; uint64 duration_nano = 4;
  ValueType period_type = 5; int64 period = 6; bytes profile_id = 7;
}
message ValueType { int32 type_strindex = 1; int32 unit_strindex = 2; }
message Sample { int32 stack_index = 1; repeated int32 attribute_indices = 2; int32 link_index = 3; repeated int64 values = 4; }
message Dictionary {
  repeated Mapping mapping_table = 1; repeated Location location_table = 2; repeated Function function_table = 3;
  repeated Link link_table = 4; repeated string string_table = 5; repeated Attribute attribute_table = 6;
  repeated Stack stack_table = 7;
}
message Mapping {
  uint64 memory_start = 1; uint64 memory_limit = 2; uint64 file_offset = 3; int32 filename_strindex = 4;
  repeated int32 attribute_indices = 5;
}
message Location { int32 mapping_index = 1; uint64 address = 2; repeated Line lines = 3; }
message Line { int32 function_index = 1; int64 line = 2; int64 column = 3; }
message Function { int32 name_strindex = 1; int32 system_name_strindex = 2; int32 filename_strindex = 3; int64 start_line = 4; }
message Link { bytes trace_id = 1; bytes span_id = 2; }
message Attribute { int32 key_strindex = 1; AnyValue value = 2; int32 unit_strindex = 3; }
message Stack { repeated int32 location_indices = 1; }
"""


def largest_of(trace):
    """The stack that holds most: its bytes, and its innermost function."""
    rows = []
    for event in trace["traceEvents"]:
        if event["ph"] == "v":
            heap = event["args"]["dumps"]["heaps_v2"]
            strings = {string["id"]: string["string"] for string in heap["maps"]["strings"]}
            names = {node["id"]: strings[node["name_sid"]] for node in heap["maps"]["nodes"]}
            rows += [(size, names[node]) for size, node in zip(*(heap["allocators"]["malloc"][key] for key in ("sizes", "nodes")))]
    return max(rows)


class Forms(uploads.Case):
    def test_a_report_has_every_field_of_chromiums_and_nothing_private(self):
        receiver = self.receiver()
        self.send(f"http://127.0.0.1:{receiver.port}/cr/report")
        ((method, path, headers, body),) = receiver.requests
        self.assertEqual((method, path), ("POST", "/cr/report"))
        fields = parts(headers, body)
        text = {name: part.get_content().strip() for name, part in fields.items() if name != "trace"}
        self.assertEqual(text["prod"], "grower")
        self.assertRegex(text["ver"], r"^[0-9a-f]{40}-trace$")
        self.assertEqual(text["ver"], text["build_id"] + "-trace")
        self.assertRegex(text["guid"], r"^[0-9a-f]{32}$")
        self.assertEqual((text["type"], text["should_process"]), ("trace", "false"))
        config = json.loads(text["config"])
        self.assertEqual(config["mode"], "SAMPLING_1")
        self.assertEqual(config["configs"][0]["trigger_name"], "MEMLOG_MANUAL_TRIGGER")
        self.assertEqual((text["reason"], text["complete"], text["processes"]), ("manual", "true", "1"))
        self.assertEqual(int(text["live_bytes"]), 5 * MIB)
        self.assertEqual(fields["trace"].get_filename(), "trace.json.gz")
        self.assertEqual(fields["trace"].get_content_type(), "application/gzip")
        trace = gzip.decompress(fields["trace"].get_content())
        live, names = live_of(json.loads(trace))
        self.assertEqual(live, 5 * MIB)
        self.assertIn("guilty", names)
        for secret in (b"s3kr1t", str(self.folder).encode(), str(harness.OUT).encode(), b"/lib/"):
            self.assertNotIn(secret, trace + body, secret)

    def dry_run(self, body, guid, form, *options):
        """What a dry run of the last run's dump shows: the body that a receiver got, and on stderr what was cut for it."""
        (dump,) = self.folder.glob(f"dumps{self.runs}/*.manual.pftrace")
        answer = subprocess.run(
            [str(harness.MEMLOG), "upload", "--dry-run", f"--guid={guid}", f"--form={form}", *options, str(dump)],
            capture_output=True, check=True)
        self.assertEqual(answer.stdout, body, f"{form} {options}")
        said = answer.stderr.decode()
        self.assertRegex(said, r"cut: \d+ paths to their base names, [1-9]\d* arguments left out, \d+ names replaced\n")
        self.assertRegex(said, r"cut: .* \d+ of \d+ left, with [\d.]+ % of the live bytes")
        self.assertIn(f"size: {len(body)} bytes of ", said)
        return said

    def test_a_dry_run_is_the_body_byte_for_byte_for_every_kind_of_target(self):
        """Against what a receiver of each kind really got; a guid is found in each where that kind has it."""
        hexadecimal = r"([0-9a-f]{32})"
        keys = self.environment(AWS_ACCESS_KEY_ID="name", AWS_SECRET_ACCESS_KEY="word")
        kinds = {  # URL, form, where the guid stands in path, headers and body
            "report": ("http://{}/cr/report", lambda path, headers, body: parts(headers, body)["guid"].get_content().strip()),
            "trace": ("s3+http://{}/bucket?region=here", lambda path, headers, body: re.search(hexadecimal, path)[1]),
            "pyroscope": ("pyroscope+http://{}/", lambda path, headers, body: json.loads(body)["series"][0]["samples"][0]["ID"].replace("-", "")),
            "pyroscope-ingest": ("pyroscope-ingest+http://{}/", lambda path, headers, body: re.search(hexadecimal, headers["Content-Type"])[1]),
            "otlp": ("otlp+http://{}/", self.otlps_guid),
        }
        for form, (url, guid_in) in kinds.items():
            with self.subTest(form):
                receiver = self.receiver()
                self.send(url.format(f"127.0.0.1:{receiver.port}"), env=keys)
                ((_, path, headers, body),) = receiver.requests
                self.dry_run(body, guid_in(path, headers, body), form)
                self.assertEqual(len(receiver.requests), 1, "nothing is sent")

    def otlps_guid(self, _path, _headers, body):
        (self.folder / "otlp.proto").write_text(OTLP)
        found = subprocess.run(
            ["protoc", f"-I{self.folder}", "--decode=Request", "otlp.proto"], input=gzip.decompress(body), capture_output=True, check=True)
        # protoc writes bytes as C does: octal and the like.
        (first, *_) = re.findall(rb'profile_id: "((?:[^"\\]|\\.)*)"', found.stdout)
        return first.decode("unicode_escape").encode("latin-1").hex()

    def test_a_dry_run_is_the_body_of_a_folder_and_of_settings_that_cut(self):
        folder = self.folder / "reports"
        cases = {"": (), "small": ("--upload-max-bytes=4096",), "names": ("--upload-names=none",), "prune": ("--upload-prune=20",), "all": ("--memlog-keep-small-allocations",)}
        for name, options in cases.items():
            with self.subTest(name):
                self.send(f"file://{folder}", *options)
                ((report),) = folder.iterdir()
                said = self.dry_run(report.read_bytes(), re.search("[0-9a-f]{32}", report.name)[0], "trace", *options)
                if name == "small":
                    self.assertIn("bytes of 4096 allowed", said)
                report.unlink()

    def test_harder_pruning_keeps_every_sum_and_the_stack_that_leaks(self):
        """A program with many stacks beside one that leaks: the figures of every level are the dump's."""
        leak = "import ctypes; libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p; libc.malloc(20 << 20); "
        many = "import json, email, http.client, os, unittest; keep = [str(i) * 9 for i in range(9999)]; os._exit(0)"
        run = self.memlog(sys.executable, "-c", leak + many, env=self.environment(PYTHONMALLOC="malloc"))
        (dump,) = run.dumps()
        self.reported.add(dump)  # all of its stacks are more than a gigabyte of JSON
        whole = json.loads(self.command("report", "--json", "--limit=1", dump).stdout)
        live = sum(process["live_bytes"] for process in whole["processes"])
        sizes = []
        for limit in (1 << 20, 20000, 10000, 6000, 4096):
            path = self.folder / f"body{limit}"
            answer = self.command("upload", "--dry-run", "--form=trace", f"--upload-max-bytes={limit}", "-o", path, dump)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            sizes.append(path.stat().st_size)
            self.assertLessEqual(sizes[-1], limit)
            trace = json.loads(gzip.decompress(path.read_bytes()))
            self.assertEqual(live_of(trace)[0], live)
            size, function = largest_of(trace)
            self.assertGreaterEqual(size, 20 << 20)
            self.assertNotEqual(function, "<other>")
        self.assertGreater(sizes[0], sizes[-1])
        answer = self.command("upload", "--dry-run", "--upload-max-bytes=4095", "-o", self.folder / "none", dump)
        self.assertEqual(answer.returncode, 2)
        self.assertIn("from 4K on", answer.stderr)
        self.assertFalse((self.folder / "none").exists())

    def test_a_report_calls_live_what_runs_and_says_whether_all_was_seen(self):
        """A receiver has no other word on what went unseen, and at the end of a run nothing lives."""
        source = self.folder / "keeps.c"
        source.write_text("#include <stdlib.h>\nvoid *volatile kept;\nint main(void) { kept = malloc(3 << 20); return 0; }\n")
        for options, covered in (((), "true"), (("-static",), "false")):
            program = self.folder / f"keeps{len(options)}"
            subprocess.run(["gcc", *options, "-o", program, source], check=True)
            run = self.memlog("/bin/sh", "-c", '"$0"; exit 0', program)
            (dump,) = run.dumps()
            tree = self.report(dump)["tree"]
            answer = self.command("upload", "--dry-run", "-o", self.folder / "body", dump)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            body = (self.folder / "body").read_bytes()
            boundary = body.partition(b"\r\n")[0].removeprefix(b"--").decode()
            fields = parts({"Content-Type": f"multipart/form-data; boundary={boundary}"}, body)
            text = {name: fields[name].get_content().strip() for name in ("complete", "covered", "live_bytes", "left_bytes")}
            self.assertEqual(text, {"complete": "true", "covered": covered, "live_bytes": "0", "left_bytes": str(tree["left_bytes"])})

    def test_only_what_triggers_and_people_ask_for_leaves(self):
        receiver = self.receiver()
        process = self.start(f"http://127.0.0.1:{receiver.port}/", "--threshold=browser=1M", "--trigger-interval=1")
        self.wait_for("the triggered report", lambda: receiver.requests)
        self.assertEqual(self.command("dump").returncode, 0)
        self.end(process)
        self.assertEqual(len(receiver.requests), 1)
        config = json.loads(parts(*receiver.requests[0][2:])["config"].get_content())
        self.assertEqual(config["configs"][0]["trigger_name"], "MEMLOG_BACKGROUND_TRIGGER")

    def test_metrics_tell_of_decisions_and_uploads(self):
        receiver = self.receiver()
        process = self.memlog_start(
            GROWER, "-", f"guilty={5 * MIB}", f"wait={self.folder}/end", options=(
                "--page", f"--upload=http://127.0.0.1:{receiver.port}/", f"--upload-spool={self.folder}/spool",
                "--threshold=browser=1M", "--trigger-interval=1"))
        log = self.folder / "stderr1"
        found = self.wait_for("the page", lambda: re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)", log.read_text()))

        def metrics():
            address = f"http://127.0.0.1:{found[1]}/metrics?token={found[2]}"
            with urllib.request.urlopen(address, timeout=harness.TIMEOUT) as answer:
                return dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if line[0] != "#")

        told = self.wait_for("the upload in the metrics", lambda: (now := metrics())["memlog_uploads_sent_total"] == "1" and now)
        self.assertEqual(told['memlog_trigger_decisions_total{trigger="footprint",dump="yes"}'], "1")
        self.assertEqual((told["memlog_trigger_dumps_total"], told["memlog_uploads_waiting"]), ("1", "0"))
        self.assertGreater(int(told["memlog_uploads_sent_bytes_total"]), 100)
        self.end(process)

    def test_the_page_sends_what_the_command_sends_and_tells_how_it_went(self):
        receiver = self.receiver((503, {"Retry-After": "1"}), (200, {}), (200, {}), (404, {}))
        process = self.memlog_start(
            GROWER, "-", f"guilty={5 * MIB}", f"done={self.folder}/there", f"wait={self.folder}/end",
            options=("--page", f"--upload=http://127.0.0.1:{receiver.port}/", f"--upload-spool={self.folder}/spool"))
        log = self.folder / "stderr1"
        page = browsing.Page(self.wait_for("the page", lambda: re.search(r"^memlog: page: (http\S+)$", log.read_text(), re.M))[1])
        self.wait_for("the program", (self.folder / "there").exists)
        self.assertTrue(page.json("/api/v1/session")["uploads"])
        # A GET sends nothing, nor does anybody else's page.
        self.assertEqual(page.ask("/api/v1/upload").status, 405)
        self.assertEqual(page.ask("/api/v1/upload", "POST", token=False, cookie=page.cookie, origin="http://evil.example").status, 403)
        self.assertEqual(page.json("/api/v1/uploads")["history"], [])
        sent = page.ask("/api/v1/upload?reason=secret+words", "POST")
        self.assertEqual(sent.status, 202)
        self.assertRegex(sent.json()["file"], r"^0001\.manual\.pftrace$")
        told = self.wait_for("the second try", lambda: (now := page.json("/api/v1/uploads"))["sent"] == 1 and now)
        self.assertEqual((told["retries"], told["waiting"], told["refused"]), (1, 0, 0))
        self.assertIn("503", " ".join(told["history"]))
        self.assertEqual(told["target"], f"http://127.0.0.1:{receiver.port}/")
        self.assertEqual(page.json("/api/v1/upload?wait=1", "POST")["file"], "0002.manual.pftrace")
        refused = page.ask("/api/v1/upload?wait=1", "POST")
        self.assertEqual(refused.status, 502)
        self.assertRegex(refused.json()["error"], r"0003\.manual\.pftrace was not sent: .*404")
        told = page.json("/api/v1/uploads")
        self.assertEqual((told["sent"], told["given_up"]), (2, 1))
        self.assertIn("404", told["last_error"])
        self.assertEqual(len(receiver.requests), 4)
        for _, _, headers, body in receiver.requests:
            trace = gzip.decompress(parts(headers, body)["trace"].get_content())
            self.assertFalse(b"secret words" in trace or b"secret words" in body)
        self.end(process)

    def test_the_page_of_a_run_without_upload_says_so(self):
        process = self.memlog_start(GROWER, "-", f"guilty={MIB}", f"wait={self.folder}/end", options=("--page",))
        log = self.folder / "stderr1"
        page = browsing.Page(self.wait_for("the page", lambda: re.search(r"^memlog: page: (http\S+)$", log.read_text(), re.M))[1])
        self.assertFalse(page.json("/api/v1/session")["uploads"])
        answer = page.ask("/api/v1/upload", "POST")
        self.assertEqual(answer.status, 409)
        self.assertIn("nothing leaves this machine", answer.json()["error"])
        self.assertEqual(page.json("/api/v1/uploads")["target"], "")
        self.assertEqual(page.json("/api/v1/dumps")["dumps"], [])
        self.end(process)

    def test_nothing_leaves_without_upload(self):
        process = self.memlog_start(GROWER, "-", f"done={self.folder}/there", f"wait={self.folder}/end")
        answer = self.upload(process)
        self.assertEqual(answer.returncode, 125)
        self.assertIn("without --upload", answer.stderr)
        self.end(process)

    def test_a_folder_takes_whole_traces(self):
        target = self.folder / "reports"
        self.send(f"file://{target}")
        (report,) = target.iterdir()
        live, _ = live_of(json.loads(gzip.decompress(report.read_bytes())))
        self.assertEqual(live, 5 * MIB)
        self.assertRegex(report.name, r"^memlog-[0-9a-f]{32}\.trace\.json\.gz$")

    def pprof(self, data):
        path = self.folder / "profile.pb.gz"
        path.write_bytes(data)
        env = dict(os.environ, PPROF_BINARY_PATH=str(self.folder), HOME=str(self.folder))
        return subprocess.run(
            ["go", "tool", "pprof", "-symbolize=none", "-sample_index=inuse_space", "-unit=B", "-top", str(path)],
            capture_output=True, text=True, check=True, env=env).stdout

    def test_pyroscopes_push(self):
        receiver = self.receiver()
        self.send(f"pyroscope+http://127.0.0.1:{receiver.port}/")
        ((method, path, headers, body),) = receiver.requests
        self.assertEqual((method, path), ("POST", "/push.v1.PusherService/Push"))
        self.assertEqual(headers["Content-Type"], "application/json")
        (series,) = json.loads(body)["series"]
        labels = {label["name"]: label["value"] for label in series["labels"]}
        self.assertEqual((labels["__name__"], labels["service_name"]), ("memory", "grower"))
        (sample,) = series["samples"]
        self.assertRegex(sample["ID"], r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        self.assertIn("guilty", self.pprof(base64.b64decode(sample["rawProfile"], validate=True)))

    def test_pyroscopes_ingest(self):
        receiver = self.receiver()
        self.send(f"pyroscope-ingest+http://127.0.0.1:{receiver.port}/base/")
        ((_, path, headers, body),) = receiver.requests
        address = urllib.parse.urlsplit(path)
        query = dict(urllib.parse.parse_qsl(address.query))
        self.assertEqual((address.path, query["name"], query["format"]), ("/base/ingest", "grower", "pprof"))
        self.assertLess(abs(int(query["until"]) - time.time()), 60)
        self.assertLess(int(query["from"]), int(query["until"]))
        fields = parts(headers, body)
        types = json.loads(fields["sample_type_config"].get_content())
        self.assertEqual(set(types), {"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"})
        self.assertEqual((types["inuse_space"]["aggregation"], types["alloc_space"]["aggregation"]), ("average", "sum"))
        self.assertIn("guilty", self.pprof(fields["profile"].get_content()))

    def test_otlps_profiles(self):
        receiver = self.receiver()
        self.send(f"otlp+http://127.0.0.1:{receiver.port}")
        ((_, path, headers, body),) = receiver.requests
        self.assertEqual(path, "/v1development/profiles")
        self.assertEqual((headers["Content-Type"], headers["Content-Encoding"]), ("application/x-protobuf", "gzip"))
        (self.folder / "otlp.proto").write_text(OTLP)
        text = subprocess.run(
            ["protoc", f"-I{self.folder}", "--decode=Request", "otlp.proto"], input=gzip.decompress(body), capture_output=True,
            check=True).stdout.decode()
        self.assertNotRegex(text, r"(?m)^\s*\d+(:| \{)")  # nothing that the published shape does not have
        self.assertEqual(text.count("sample_type {"), 5)
        for name in ("memlog.component", "private_memory", "heap", "allocator slack", "service.name", "inuse_space", "alloc_objects", "allocated_bytes", "guilty", "process.pid"):
            self.assertIn(f'"{name}"', text)
        *heaps, memory = text.split("dictionary {")[0].split("  profiles {")
        self.assertEqual("".join(heaps).count(f"values: {5 * MIB}\n"), 2)  # inuse_space and alloc_space
        parts_of = [int(value) for value in re.findall(r"values: (\d+)", memory)]
        self.assertGreater(sum(parts_of), 5 * MIB)
        self.assertGreater(len(parts_of), 3)
        self.assertNotIn("stack_index", memory)
        dictionary = text[text.index("dictionary {"):]
        for table in ("mapping_table", "location_table", "function_table", "link_table", "attribute_table", "stack_table"):
            self.assertRegex(dictionary, table + r" \{\s*\}", f"{table} begins with an empty entry")

    def test_a_token_comes_from_a_file_and_is_said_nowhere(self):
        receiver = self.receiver((401, {}))
        token = self.folder / "token"
        token.write_text("t0psecret\n")
        process = self.start(f"http://127.0.0.1:{receiver.port}/", f"--upload-token-file={token}")
        answer = self.upload(process, "--wait")
        self.assertEqual(answer.returncode, 125)
        self.assertIn("401", answer.stderr)
        said = self.end(process)
        self.assertEqual(receiver.requests[0][2]["Authorization"], "Bearer t0psecret")
        self.assertNotIn("t0psecret", said + answer.stderr + answer.stdout)
        for spooled in (self.folder / "spool").iterdir():
            self.assertNotIn(b"t0psecret", spooled.read_bytes())

    def test_a_password_in_the_address_is_refused_and_not_repeated(self):
        run = self.memlog("true", options=("--upload=https://me:hunter2@host/x",))
        self.assertEqual(run.code, 2)
        self.assertNotIn("hunter2", run.err)
        self.assertIn("--upload-token-file", run.err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
