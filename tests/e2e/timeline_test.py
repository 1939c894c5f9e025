"""What was live when: the series in dumps, as Perfetto's counter tracks, and `memlog timeline`."""
import csv
import io
import json
import re
import subprocess
import time
import unittest

import harness

GROWER = harness.PROGRAMS / "oracle" / "grower"
MIB = 1 << 20

# Of the field numbers that Perfetto publishes; protoc holds ours against them.
PERFETTO = """
syntax = "proto2";
message Trace { repeated TracePacket packet = 1; }
message TracePacket {
  optional uint64 timestamp = 8;
  optional uint32 trusted_packet_sequence_id = 10;
  optional TrackEvent track_event = 11;
  optional uint32 sequence_flags = 13;
  optional TrackDescriptor track_descriptor = 60;
}
message TrackDescriptor {
  optional uint64 uuid = 1;
  optional string name = 2;
  optional ProcessDescriptor process = 3;
  optional uint64 parent_uuid = 5;
  optional CounterDescriptor counter = 8;
}
message ProcessDescriptor { optional int32 pid = 1; repeated string cmdline = 2; optional string process_name = 6; }
message CounterDescriptor {
  enum Unit { UNIT_UNSPECIFIED = 0; UNIT_TIME_NS = 1; UNIT_COUNT = 2; UNIT_SIZE_BYTES = 3; }
  optional Unit unit = 3;
}
message TrackEvent {
  enum Type { TYPE_UNSPECIFIED = 0; TYPE_SLICE_BEGIN = 1; TYPE_SLICE_END = 2; TYPE_INSTANT = 3; TYPE_COUNTER = 4; }
  optional Type type = 9;
  optional uint64 track_uuid = 11;
  optional int64 counter_value = 30;
}
"""


def ms_now():
    return int(time.time() * 1000)


class TimelineTest(harness.Case):
    def grow(self):
        """A run whose `guilty` grows between two moments and is dropped behind them; its dump, and the moments."""
        files = {name: self.folder / name for name in ("begun", "go", "grown", "drop", "dropped", "end")}
        actions = [f"innocent={5 * MIB}", f"done={files['begun']}", f"wait={files['go']}"]
        actions += [f"guilty={MIB}"] * 8 + [f"done={files['grown']}", f"wait={files['drop']}", "drop"]
        actions += [f"done={files['dropped']}", f"wait={files['end']}"]
        run = self.memlog_start(GROWER, "-", *actions)

        def pause():
            # A dump notes how it stands; a slot of a stack is a second long, and a moment is its nearest end. A clock's text leaves out less
            # than a second of it.
            time.sleep(1.1)
            subprocess.run([harness.MEMLOG, "dump"], env=self.environment(), check=True, capture_output=True, timeout=harness.TIMEOUT)
            time.sleep(1.4)
            moments.append(ms_now())
            time.sleep(0.7)

        self.wait_for("the program", files["begun"].exists)
        moments = []
        pause()
        for step, done in (("go", "grown"), ("drop", "dropped")):
            files[step].touch()
            self.wait_for(done, files[done].exists)
            pause()
        files["end"].touch()
        self.assertEqual(run.wait(timeout=harness.TIMEOUT), 0)
        dumps = sorted(run.memlog_folder.glob("*.exit.pftrace"))
        self.assertEqual(len(dumps), 1)
        return dumps[0], moments

    def timeline(self, *words, code=0):
        answer = subprocess.run(
            [harness.MEMLOG, "timeline", *map(str, words)], capture_output=True, check=False, env=self.environment(),
            timeout=harness.TIMEOUT)
        self.assertEqual(answer.returncode, code, answer.stderr.decode())
        return answer.stdout.decode() if code == 0 else answer.stderr.decode()

    def check_tracks(self, dump):
        (self.folder / "perfetto.proto").write_text(PERFETTO)
        text = subprocess.run(
            ["protoc", f"-I{self.folder}", "--decode=Trace", "perfetto.proto"], input=dump.read_bytes(), capture_output=True,
            check=True).stdout.decode()
        process = re.search(r"uuid: (\d+)\s+process \{\s+pid: \d+", text)[1]
        tracks = {
            match[2]: match[1]
            for match in re.finditer(
                r'uuid: (\d+)\s+name: "([^"]+)"\s+parent_uuid: ' + process + r"\s+counter \{\s+unit: UNIT_SIZE_BYTES", text)
        }
        values = {}
        for match in re.finditer(
                r"timestamp: (\d+)\s+trusted_packet_sequence_id: (\d+)\s+(?:sequence_flags: 1\s+)?"
                r"track_event \{\s+type: TYPE_COUNTER\s+track_uuid: (\d+)\s+counter_value: (\d+)", text):
            values.setdefault(match[3], []).append((int(match[1]), int(match[4])))
        live = values[tracks["live bytes"]]
        self.assertEqual(live, sorted(live, key=lambda one: one[0]))
        self.assertGreaterEqual(max(value for _, value in live), 13 * MIB)
        self.assertLess(live[-1][1], 6 * MIB)
        allocated = [value for _, value in values[tracks["allocated bytes"]]]
        self.assertEqual(allocated, sorted(allocated))
        stacks = [name for name in tracks if name.startswith("live bytes of stack ") and "grower+0x" in name]
        self.assertTrue(any(max(value for _, value in values[tracks[name]]) == 8 * MIB for name in stacks), tracks)
        # By the trace's clock, BOOTTIME: within this run.
        now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self.assertTrue(all(now_ns - 10 ** 9 * harness.TIMEOUT * 3 < at <= now_ns for at, _ in live), live)

    def check_span(self, dump, moments):
        def changed(first, last):
            answer = json.loads(self.timeline("--json", f"--from=@{moments[first]}", f"--to=@{moments[last]}", dump))
            return {one["function"]: one for one in answer["changed"]}

        grown = changed(0, 1)
        self.assertEqual(grown["guilty"]["grown_bytes"], 8 * MIB)
        self.assertEqual((grown["guilty"]["from_bytes"], grown["guilty"]["at_least"]), (0, False))
        self.assertIn("act", [frame["function"] for frame in grown["guilty"]["frames"]])
        self.assertNotIn("innocent", grown)
        self.assertEqual(changed(1, 2)["guilty"]["grown_bytes"], -8 * MIB)
        self.assertNotIn("guilty", changed(0, 2))

    def check_data(self, dump):
        data = json.loads(self.timeline("--json", dump))
        report = self.report(dump)
        [process] = data["processes"]
        points = process["points"]
        self.assertEqual(points[-1][3:], [report["processes"][0][name] for name in ("live_bytes", "total_bytes", "total_blocks")])
        self.assertLessEqual(max(point[2] for point in points), report["processes"][0]["peak_bytes"])
        for before, after in zip(points, points[1:]):
            self.assertLess(before[0], after[0])
            self.assertTrue(after[1] <= after[3] <= after[2] and after[1] <= before[3] <= after[2], (before, after))
            self.assertLessEqual(before[4], after[4])
        few = json.loads(self.timeline("--json", "--points=4", "--no-stacks", dump))["processes"][0]
        self.assertLessEqual(len(few["points"]), 4)
        self.assertNotIn("stacks", few)
        self.assertEqual(max(point[2] for point in few["points"]), max(point[2] for point in points))
        rows = list(csv.DictReader(io.StringIO(self.timeline("--csv", dump))))
        self.assertEqual({row["series"] for row in rows}, {"tree", "process", "stack"})
        self.assertEqual(len([row for row in rows if row["series"] == "process"]), len(points))
        self.assertIn("guilty", {row["function"] for row in rows})

    def test_it_says_what_grew_between_two_moments(self):
        dump, moments = self.grow()
        self.check_tracks(dump)
        self.check_span(dump, moments)
        self.check_data(dump)
        clock = [time.strftime("%H:%M:%S", time.gmtime(at // 1000)) for at in moments[:2]]
        text = self.timeline(f"--from={clock[0]}", f"--to={clock[1]}", dump)
        self.assertRegex(text, r"(?s)What grew.*\+8\.0 MiB +guilty +in grower")
        self.assertTrue(all(len(line) <= 130 for line in text.splitlines()), text)
        page = self.folder / "page.html"
        self.timeline("--html", "-o", page, dump)
        html = page.read_text()
        self.assertIn("<svg", html)
        self.assertNotRegex(html, r"<script|https?:|\bnan\b|\binf\b")

    def test_bad_words_and_dumps_without_one_end_in_a_clear_word(self):
        quick = self.memlog("/bin/true")
        dump = quick.dumps()[0]
        said = self.timeline(dump)
        self.assertRegex(said, r"(?m)nothing is known of so short a time|^  true \d+ ")  # a slow machine may have looked
        for words, wanted in (
                (("--from=yesterday",), "--from=yesterday: a time ("), (("--to=+5x",), "--to=+5x: a time ("),
                (("--json", "--csv"), "one of them"), (("--points=1",), "--points=1: a whole number from 2")):
            with self.subTest(words=words):
                self.assertIn(wanted, self.timeline(*words, dump, code=2))
        for words, wanted in ((("--from=-0s",), "nothing is known of that time"), (("--pid=1",), "no process 1 in it")):
            with self.subTest(words=words):
                self.assertIn(wanted, self.timeline(*words, dump, code=3))
        self.assertIn("--help'", self.timeline("--wrong", dump, code=2))


if __name__ == "__main__":
    unittest.main()
