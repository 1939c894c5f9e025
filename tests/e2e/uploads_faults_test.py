"""Uploads in trouble: nothing that was promised is lost, nothing is sent twice under another id, the program notices nothing."""
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest
import urllib.parse

import harness
import servers
import uploads
from uploads import guid_of


class Faults(uploads.Case):
    """One test a fault of the receiver's."""

    def sends_again(self, *answers):
        """What a receiver with these answers got: the same report again and again under its id; nobody is asked to do so."""
        receiver = self.receiver(*answers, (200, {}))
        said = self.send(receiver.url)
        self.assertEqual({request[3] for request in receiver.requests}, {receiver.requests[0][3]})
        self.assertEqual(self.promised(), [])
        self.assertIn("again in", said)
        return receiver

    def test_down(self):
        port = servers.free_port()
        process = self.start(f"http://127.0.0.1:{port}/x")
        self.assertEqual(self.upload(process).returncode, 0)
        self.wait_for("a failed try", lambda: self.uploads()["retries"] > 0)
        (name,) = self.promised()
        told = self.command("ps").stdout
        self.assertRegex(told, r"0 sent, 1 waiting, \d+ retries, 0 given up")
        self.assertRegex(told, r"upload of /.*0001\.manual\.pftrace failed \(.*connect.*\); again in \d")
        receiver = self.receiver(port=port)
        self.wait_for("the report", lambda: self.uploads()["sent"] == 1)
        self.assertEqual([guid_of(request) for request in receiver.requests], [name])
        self.assertRegex("\n".join(self.uploads()["history"]), rf"again in [^\n]*\n(.*\n)*uploaded .* as {name}")
        self.end(process)

    def test_slow(self):
        receiver = self.receiver(uploads.trickle)
        self.send(receiver.url)
        self.assertEqual(len(receiver.requests), 1)

    def test_hanging_while_another_waits_and_people_ask(self):
        receiver = self.receiver(uploads.hang)
        process = self.start(receiver.url)
        for _ in range(2):
            self.assertEqual(self.upload(process).returncode, 0)
        self.wait_for("both in the spool", lambda: len(self.promised()) == 2)
        self.wait_for("the first one", lambda: receiver.requests)
        uploading = self.uploads()  # memlog answers while it waits
        self.assertEqual((uploading["waiting"], uploading["sent"], len(receiver.requests)), (2, 0, 1))
        self.assertIn("waits in", self.end(process))
        receiver.answers = [(200, {})]
        names = self.promised()
        self.later(receiver.url)
        self.assertEqual(len(receiver.requests), 3)
        self.assertEqual(sorted(guid_of(request) for request in receiver.requests[1:]), names)
        self.assertIn(guid_of(receiver.requests[0]), names)

    def test_two_hosts_of_a_user_send_one_at_a_time_and_each_report_once(self):
        receiver = self.receiver(uploads.hang)
        first = self.start(receiver.url)
        self.assertEqual(self.upload(first).returncode, 0)
        self.wait_for("the first one", lambda: receiver.requests)
        second = self.start(receiver.url)
        self.assertEqual(self.upload(second).returncode, 0)
        names = self.wait_for("both in the spool", lambda: (lambda all: len(all) == 2 and all)(self.promised()))
        self.assertEqual((self.uploads()["waiting"], len(receiver.requests)), (2, 1))
        for process in (first, second):
            self.end(process)
        self.assertEqual(self.promised(), names)
        receiver.answers = [(200, {})]
        before = len(receiver.requests)
        self.later(receiver.url)
        self.assertEqual(sorted(map(guid_of, receiver.requests[before:])), names)
        self.assertLessEqual({guid_of(request) for request in receiver.requests}, set(names))

    def test_cut_in_the_middle(self):
        self.assertEqual(len(self.sends_again(uploads.cut_in_the_middle).requests), 1)

    def test_cut_behind_the_body(self):
        self.assertEqual(len(self.sends_again(uploads.cut).requests), 1)

    def test_500_and_503(self):
        self.assertEqual(len(self.sends_again((500, {}), (503, {})).requests), 3)

    def test_429_with_retry_after(self):
        first, second = self.sends_again((429, {"Retry-After": "2"})).times
        self.assertGreaterEqual(second - first, 2)

    def test_413_is_pruned_harder_once(self):
        receiver = self.receiver((413, {}), (200, {}))
        self.send(receiver.url)
        first, second = receiver.requests
        self.assertEqual(guid_of(first), guid_of(second))
        receiver = self.receiver((413, {}))
        process = self.start(receiver.url)
        answer = self.upload(process, "--wait")
        self.assertEqual((answer.returncode, len(receiver.requests)), (125, 2))
        self.assertIn("413", answer.stderr)
        self.end(process)

    def test_413_and_a_host_that_dies_before_it_has_pruned(self):
        """The next run does it, from the dump."""
        port = servers.free_port()
        url = f"http://127.0.0.1:{port}/"
        process = self.start(url)
        self.assertEqual(self.upload(process).returncode, 0)
        self.wait_for("the report", self.promised)
        self.kill(process)
        (name,) = self.promised()
        job = self.spool / f"{name}.job"
        job.write_text(job.read_text().replace("harder 0", "harder 2"))
        (self.spool / f"{name}.body").write_bytes(b"the first one, which was too large")
        receiver = self.receiver(port=port)
        self.later(url)
        self.assertEqual([guid_of(request) for request in receiver.requests], [name])

    def test_refusals_and_redirects_are_given_up_and_said(self):
        elsewhere = self.receiver()
        for answer in ((400, {}), (403, {}), (302, {"Location": elsewhere.url})):
            with self.subTest(answer[0]):
                receiver = self.receiver(answer)
                process = self.start(receiver.url)
                said = self.upload(process, "--wait")
                self.assertEqual(said.returncode, 125)
                self.assertIn(str(answer[0]), said.stderr)
                self.assertEqual(self.uploads()["given_up"], 1)
                self.assertIn("given up", self.end(process))
                self.assertEqual(len(receiver.requests), 1)
        self.assertEqual(elsewhere.requests, [])
        self.assertEqual([path.name for path in self.spool.iterdir()], ["lock"])


    def test_no_kind_of_target_gets_a_report_under_another_id(self):
        """Whatever is tried again is what was tried before: address, fields and body, with the id in them."""
        keys = self.environment(AWS_ACCESS_KEY_ID="name", AWS_SECRET_ACCESS_KEY="word")
        for form in ("http", "s3+http", "pyroscope+http", "pyroscope-ingest+http", "otlp+http"):
            with self.subTest(form):
                receiver = self.receiver((500, {}), uploads.cut_in_the_middle, (503, {}), (200, {}))
                where = f"127.0.0.1:{receiver.port}/bucket" if form == "s3+http" else f"127.0.0.1:{receiver.port}/"
                self.send(f"{form}://{where}", env=keys)
                sent = {(method, path, headers.get("Content-Type"), body) for method, path, headers, body in receiver.requests}
                self.assertEqual((len(receiver.requests), len(sent)), (3, 1))
                self.assertEqual(self.promised(), [])

    def test_a_folder_that_fails_at_first_gets_the_report_once(self):
        target = self.folder / "reports"
        target.write_text("no folder")
        process = self.start(f"file://{target}")
        self.assertEqual(self.upload(process).returncode, 0)
        self.wait_for("a failed try", lambda: self.uploads()["retries"] > 0)
        (name,) = self.promised()
        target.unlink()
        self.wait_for("the report", lambda: self.uploads()["sent"] == 1)
        self.assertEqual([path.name for path in target.iterdir()], [f"memlog-{name}.trace.json.gz"])
        self.end(process)

    def test_what_a_receiver_says_does_nothing_to_a_terminal(self):
        evil = b"\x1b[2J\x1b]0;own\x07 \xff\xfe \xc2\x9b31m\nmemlog: all is well\r\n\xe2\x80\xaeesrever"
        receiver = self.receiver((400, {}, evil))
        process = self.start(receiver.url)
        answer = self.upload(process, "--wait")
        self.assertEqual(answer.returncode, 125)
        self.assertRegex(answer.stderr, r"^memlog: /\S+/0001\.manual\.pftrace was not sent: HTTP status 400: [ -~]*\n$")
        told = json.dumps(self.uploads(), ensure_ascii=False) + self.command("ps").stdout
        said = self.end(process)
        for words in (told, said):
            self.assertIn("given up after 1 try: HTTP status 400: ?[2J", words)
            self.assertNotRegex(words, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]|\nmemlog: all is well")


class Spool(uploads.Case):
    """Faults on this side."""

    def test_the_host_is_killed_with_a_full_spool(self):
        port = servers.free_port()
        url = f"http://127.0.0.1:{port}/x"
        process = self.start(url)
        self.assertEqual(self.upload(process).returncode, 0)
        (name,) = self.wait_for("the report", self.promised)
        body, job = ((self.spool / f"{name}.{suffix}").read_bytes() for suffix in ("body", "job"))
        for _ in range(63):
            other = os.urandom(16).hex()
            (self.spool / f"{other}.body").write_bytes(body.replace(name.encode(), other.encode()))
            (self.spool / f"{other}.job").write_bytes(job)
        refused = self.command("upload", "--wait")
        self.assertEqual(refused.returncode, 125)
        self.assertIn("the spool is full", refused.stderr)
        self.kill(process)
        names = self.promised()
        self.assertEqual(len(names), 64)
        receiver = self.receiver(port=port)
        # Another address is not what was agreed to: nothing of it leaves.
        elsewhere = self.receiver()
        self.memlog("true", options=("-q", *self.options(elsewhere.url)))
        self.assertEqual((elsewhere.requests, receiver.requests), ([], []))
        self.later(url)
        self.assertEqual(sorted(map(guid_of, receiver.requests)), names)

    def test_a_report_that_another_run_sends_is_still_of_its_own_program_and_time(self):
        port = servers.free_port()
        url = f"pyroscope-ingest+http://127.0.0.1:{port}/"
        before = int(time.time())
        process = self.start(url)
        self.assertEqual(self.upload(process).returncode, 0)
        self.wait_for("the report", self.promised)
        after = int(time.time())
        self.kill(process)
        self.wait_for("another second", lambda: int(time.time()) > after)
        receiver = self.receiver(port=port)
        self.later(url)  # of the program sleep
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(receiver.requests[0][1]).query))
        self.assertEqual(query["name"], "grower")
        self.assertIn(int(query["until"]), range(before, after + 1))

    def test_a_run_that_ends_says_what_still_waits(self):
        target = self.folder / "file"
        target.write_text("no folder")
        process = self.start(f"file://{target}/below")
        self.assertEqual(self.upload(process).returncode, 0)
        self.wait_for("a failed try", lambda: self.uploads()["retries"] > 0)
        said = self.end(process)
        self.assertIn("again in", said)
        self.assertIn(f"what is not sent yet waits in {self.spool} for the next run with this --upload", said)
        self.assertEqual(len(self.promised()), 1)

    def test_the_end_of_a_run_waits_for_a_second_try(self):
        receiver = self.receiver((503, {"Retry-After": "2"}), (200, {}))
        process = self.start(receiver.url, "--upload-wait=100")
        self.assertEqual(self.upload(process).returncode, 0)
        self.wait_for("the first try", lambda: self.uploads()["retries"] == 1)
        said = self.end(process)
        self.assertEqual(len(receiver.requests), 2)
        self.assertEqual(self.promised(), [])
        self.assertRegex(said, r"(?s)again in .*uploaded ")
        self.assertNotIn("waits in", said)

    def disk(self):
        """A small disk of its own for the spool; a function that fills it, and one that empties it."""
        if os.geteuid() != 0:
            self.skipTest("needs root to mount a small file system")
        self.spool.mkdir()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"none", str(self.spool).encode(), b"tmpfs", 0, b"size=256k,mode=700") != 0:
            self.skipTest(f"cannot mount: {os.strerror(ctypes.get_errno())}")
        self.addCleanup(lambda: libc.umount2(str(self.spool).encode(), 2))
        filler = self.spool / "filler"

        def fill():
            with open(filler, "wb", buffering=0) as file:
                try:
                    while file.write(b"x" * 4096):
                        pass
                except OSError:
                    pass

        return fill, filler.unlink

    def test_the_spools_disk_is_full(self):
        fill, empty = self.disk()
        receiver = self.receiver((503, {}))
        process = self.start(receiver.url)
        self.assertEqual(self.upload(process).returncode, 0)
        (name,) = self.wait_for("the report", self.promised)
        fill()
        refused = self.command("upload", "--wait")
        self.assertEqual(refused.returncode, 125)
        self.assertRegex(refused.stderr, "No space left on device|disk is full")
        self.assertEqual(self.promised(), [name])
        self.assertEqual(len(list(process.memlog_folder.glob("*.manual.pftrace"))), 2)
        # What cannot be written down is not tried again at once, for ever.
        self.wait_for("two tries more", lambda before=len(receiver.requests): len(receiver.requests) >= before + 2)
        gaps = [after - before for before, after in zip(receiver.times, receiver.times[1:])]
        self.assertGreater(min(gaps), 0.4)
        self.assertIn("cannot be written", "\n".join(self.uploads()["history"]))
        empty()
        receiver.answers = [(200, {})]
        self.wait_for("the report's arrival", lambda: self.uploads()["sent"] == 1)
        self.assertEqual({guid_of(request) for request in receiver.requests}, {name})
        self.assertEqual(self.promised(), [])
        self.end(process)

    def test_secrets_stand_in_no_core_and_on_no_command_line(self):
        plain = self.folder / "plain"
        plain.mkdir()
        script = 'ulimit -c unlimited; exec "$@"'
        subprocess.run(["sh", "-c", script, "sh", "sh", "-c", "kill -SEGV $$"], cwd=plain, check=False)
        if not list(plain.iterdir()):
            self.skipTest("cores are not written into the current folder here")
        receiver = self.receiver(uploads.hang)
        (self.folder / "token").write_text("t0psecret")
        url = receiver.url
        process = subprocess.Popen(
            ["sh", "-c", script, "sh", str(harness.MEMLOG), "run", "-q", "-o", str(self.folder / "dumps1"),
             *self.options(url, f"--upload-token-file={self.folder}/token"), "--", str(uploads.GROWER), "-", f"done={self.there}",
             f"wait={self.go}"], cwd=self.folder, env=self.environment())
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(self.upload(process).returncode, 0)
        self.wait_for("a request", lambda: receiver.requests)
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                self.assertFalse(b"t0psecret" in path.read_bytes(), path)
            except OSError:
                pass
        os.kill(process.pid, signal.SIGSEGV)
        process.wait()
        self.go.touch()
        self.assertEqual(process.returncode, -signal.SIGSEGV)
        for core in self.folder.glob("core*"):
            self.assertFalse(b"t0psecret" in core.read_bytes(), core)


if __name__ == "__main__":
    unittest.main(verbosity=2)
