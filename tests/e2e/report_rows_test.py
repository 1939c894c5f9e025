"""What a collector's analyzer says of a report, against the report itself; and of what is none."""
import collections
import gzip
import json
import os
import socket
import struct
import subprocess
import unittest

import harness
import uploads_merging_test as merging

BEGIN, FRAMES, STACKS, ROWS, END, REFUSED = range(1, 7)
LIVE, PEAK, TOTAL, COMPLETE = 1, 2, 4, 8
FIGURES = ("live_bytes", "live_blocks", "peak_bytes", "peak_blocks", "total_bytes", "total_blocks")


class Unpacker:
    """MessagePack as mojom_like_idl/runtime/codec.h writes it."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, size):
        return int.from_bytes(self.take(size), "big")

    def value(self):
        kind = self.number(1)
        if kind < 0x80:
            return kind
        if kind & 0xf0 == 0x90:
            return [self.value() for _ in range(kind & 15)]
        if kind & 0xe0 == 0xa0:
            return self.take(kind & 31).decode()
        if kind in (0xc2, 0xc3):
            return kind == 0xc3
        if 0xcc <= kind <= 0xcf:
            return self.number(1 << (kind - 0xcc))
        if 0xd9 <= kind <= 0xda:
            return self.take(self.number(kind - 0xd8)).decode()
        if kind == 0xdc:
            return [self.value() for _ in range(self.number(2))]
        raise AssertionError(hex(kind))


def messages_of(body):
    """(exit code, [(number, fields)]) of the analyzer for that body."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with subprocess.Popen(
            [str(harness.OUT / "memlog-analyzer"), "report-rows"], stdin=subprocess.PIPE, close_fds=False,
            preexec_fn=lambda: os.dup2(its.fileno(), 3)) as process:
        its.close()
        try:
            process.stdin.write(body)
            process.stdin.close()
        except BrokenPipeError:
            pass
        messages = []
        while True:
            packet = ours.recv(1 << 17)
            if not packet:
                break
            (number,) = struct.unpack_from("<I", packet, 4)
            messages.append((number, Unpacker(packet[16:]).value()))
        ours.close()
    return process.returncode, messages


def rows_of(messages):
    """As uploads_merging_test.rows_of says them of a trace."""
    frames, stacks, rows = [None], [()], collections.Counter()
    for number, fields in messages:
        if number == FRAMES:
            frames += [function or (module, build_id, offset) for function, module, build_id, offset in fields[0]]
        elif number == STACKS:
            for parent, frame in fields[0]:
                stacks.append(stacks[parent] + (frames[frame],))
        elif number == ROWS:
            for _, _, heap, _, stack, figures in fields[0]:
                for figure, value in zip(FIGURES, figures):
                    rows[heap, stacks[stack], figure] += value
    return rows, len(frames) - 1, len(stacks) - 1


class Rows(merging.Reports):
    def check(self, dump, *options):
        trace = self.trace(dump, *options)
        for form in ("trace", "report"):
            code, messages = messages_of(self.body(dump, form, *options))
            self.assertEqual(code, 0)
            rows, frames, stacks = rows_of(messages)
            wanted = collections.Counter({key: value for key, value in merging.rows_of(trace).items() if value})
            self.assertEqual(collections.Counter({key: value for key, value in rows.items() if value}), wanted)
            self.assertEqual([number for number, _ in messages if number in (BEGIN, END)], [BEGIN, END])
            self.assertEqual(messages[-1][1][:2], [frames, stacks])
        return messages

    def test_rows_are_those_of_the_trace(self):
        dump = self.dump(self.program(merging.FREED))
        head = dict(self.check(dump, "--memlog-keep-small-allocations", "--upload-host=h", "--upload-version=v"))[BEGIN]
        self.assertEqual(head[:5], [3, "program", self.trace(dump)["metadata"]["memlog"]["build_id"], "h", "v"])
        self.check(dump)

    def test_frames_without_names(self):
        self.check(self.dump(self.stripped()))

    def test_processes_of_one_name_and_role_are_one(self):
        dump = self.dump("sh", "-c", "for i in 1 2 3 4; do ls / > /dev/null; done; python3 -c 'x = [str(i) for i in range(9999)]'")
        messages = self.check(dump)
        keys = [tuple(map(str, row[:5])) for number, fields in messages if number == ROWS for row in fields[0]]
        self.assertEqual(len(keys), len(set(keys)))
        self.assertIn("ls", {key[1] for key in keys})

    def check_profiles(self, dump, *options):
        """The forms without a peak, against the trace: the same frames, live bytes with those that ended processes left, and totals."""
        trace = self.trace(dump, *options)
        wanted = collections.Counter({
            key: value for key, value in merging.rows_of(trace, ended=True).items()
            if value and key[0] == "malloc" and "peak" not in key[2]})
        self.assertTrue(any(figure == "total_bytes" for _, _, figure in wanted))
        told = trace["metadata"]["memlog"]
        for form in ("pprof", "pyroscope", "pyroscope-ingest", "otlp"):
            with self.subTest(form):
                code, messages = messages_of(self.body(dump, form, *options))
                self.assertEqual(code, 0, messages)
                rows, _, _ = rows_of(messages)
                self.assertEqual(collections.Counter({key: value for key, value in rows.items() if value}), wanted)
                head = dict(messages)[BEGIN]
                self.assertEqual(head[:3], [3, told["program"], told["build_id"]])
                self.assertEqual(head[5] // 10**6, told["time_ns"] // 10**6)
                self.assertEqual(head[11], told["sampling_bytes"])
                self.assertEqual(head[15] & PEAK, 0)
                self.assertEqual(head[15] & (LIVE | TOTAL), LIVE | TOTAL)
                if form != "otlp":
                    self.assertEqual((head[9], head[10]), (told["complete"], told["covered"]))
                    self.assertTrue(head[15] & COMPLETE)
        return messages

    def test_profiles_of_other_forms_have_the_rows_of_the_trace(self):
        self.check_profiles(self.dump(self.program(merging.FREED)), "--memlog-keep-small-allocations")
        self.check_profiles(self.dump(self.stripped()))

    def test_profiles_of_many_processes_threads_and_types(self):
        dump = self.dump(
            "sh", "-c", "for i in 1 2 3; do ls / > /dev/null; done; python3 -c 'import threading\n"
            "t = threading.Thread(target=lambda: print(len([str(i) for i in range(9999)])), name=\"worker\")\nt.start(); t.join()'")
        self.check_profiles(dump, "--upload-names=all", "--memlog-keep-small-allocations")
        roles = {(row[0], row[1]) for number, fields in messages_of(self.body(dump, "trace"))[1] if number == ROWS for row in fields[0]}
        for form in ("pprof", "otlp"):
            rows = [row for number, fields in messages_of(self.body(dump, form))[1] if number == ROWS for row in fields[0]]
            self.assertEqual({(row[0], row[1]) for row in rows}, roles)

    def test_what_is_no_report_is_refused_with_a_reason(self):
        def packed(value):
            return gzip.compress(json.dumps(value).encode())

        cases = {
            b"": "no report", b"hello": "no report", b"\x1f\x8b\x08": "no report", gzip.compress(b"{"): "no report",
            packed({}): "no heap", packed({"traceEvents": [{"ph": "v"}]}): "no heap", packed([1]): "no heap",
            b"--b\r\nContent-Disposition: form-data; name=\"prod\"\r\n\r\nx\r\n--b--\r\n": "no heap",
            gzip.compress(b"[" * 100000): "no report", packed({"series": [{}]}): "no heap",
            b'{"series":[{"samples":[{"rawProfile":"?"}]}]}': "no report", b'{"series":[{"samples":[{"rawProfile":"CgIIAQ=="}]}]}': "no heap",
            bytes.fromhex("3200"): "no heap", bytes.fromhex("0a0208013200"): "no heap", bytes.fromhex("32ff"): "no report",
            bytes.fromhex("1200"): "no heap", bytes.fromhex("1203220a00"): "no report", gzip.compress(b" " * (300 << 20)): "too large",
        }
        for body, reason in cases.items():
            with self.subTest(body[:40]):
                code, messages = messages_of(body)
                self.assertEqual([number for number, _ in messages], [REFUSED])
                self.assertIn(reason, messages[0][1][0])
                self.assertEqual(code, 1)


if __name__ == "__main__":
    unittest.main()
