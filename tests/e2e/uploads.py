"""What the tests of uploads share: receivers on loopback that keep what comes and misbehave as told, and runs that send."""
import base64
import email.parser
import email.policy
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import zlib

import harness

GROWER = harness.PROGRAMS / "oracle" / "grower"
MIB = 1 << 20


def read_body(handler):
    return handler.rfile.read(int(handler.headers["Content-Length"]))


def cut(handler):
    """Take the whole body, then hang up."""
    read_body(handler)
    handler.connection.shutdown(socket.SHUT_RDWR)


def cut_in_the_middle(handler):
    """Take half of the body, then reset the connection."""
    handler.rfile.read(int(handler.headers["Content-Length"]) // 2)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    handler.connection.close()


def hang(handler):
    """Take the body, and say nothing until the other side is gone."""
    body = read_body(handler)
    handler.server.receiver.keep(handler, body)
    handler.connection.recv(1)


def trickle(handler):
    """Take the body in small pieces, answer letter by letter: slow, and alive."""
    left, body = int(handler.headers["Content-Length"]), b""
    while left > 0:
        piece = handler.rfile.read1(min(left, 64))
        body, left = body + piece, left - len(piece)
        time.sleep(0.005)
    handler.server.receiver.keep(handler, body)
    for letter in b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n":
        handler.connection.sendall(bytes((letter,)))
        time.sleep(0.005)


class Receiver:
    """Keeps every request as (method, path, headers, body); `answers` are given one after another, the last one for ever.

    An answer is (status, headers) or (status, headers, body), or one of the functions above, or what `route` returns."""

    def __init__(self, answers=((200, {}),), context=None, port=0):
        self.requests, self.times = [], []
        self.answers = list(answers)
        self.closing = False

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                receiver = self.server.receiver
                answer = receiver.route(self)
                if callable(answer):
                    answer(self)
                    self.close_connection = True
                    return
                receiver.keep(self, read_body(self) if "Content-Length" in self.headers else b"")
                answer = receiver.after(self, answer)
                status, headers, body = (*answer, b"")[:3]
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, request, client_address):
                pass  # a connection that was cut

        self.server = Server(("127.0.0.1", port), Handler)
        self.server.receiver = self
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def keep(self, handler, body):
        self.times.append(time.monotonic())
        self.requests.append((handler.command, handler.path, dict(handler.headers), body))

    def route(self, _handler):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def after(self, _handler, answer):
        """The answer, now that the request is kept."""
        return answer

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def parts(headers, body):
    """A multipart body as {name: part}."""
    text = b"Content-Type: " + headers["Content-Type"].encode() + b"\r\nMIME-Version: 1.0\r\n\r\n" + body
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(text)
    return {part.get_param("name", header="content-disposition"): part for part in message.iter_parts()}


def guid_of(request):
    return parts(*request[2:])["guid"].get_content().strip()


def unpacked(body):
    """Everything gzipped in a body, wherever it stands, plain or in base64."""
    texts = [body] + [base64.b64decode(text) for text in re.findall(rb'"rawProfile":"([^"]*)"', body)]
    for text in texts:
        at = text.find(b"\x1f\x8b\x08")
        while at >= 0:
            try:
                yield zlib.decompressobj(31).decompress(text[at:])
            except zlib.error:
                pass  # three bytes that look like a beginning
            at = text.find(b"\x1f\x8b\x08", at + 1)


def live_of(trace):
    """Live bytes of a memory-infra trace, and the names of the frames in it."""
    events = [event for event in trace["traceEvents"] if event["ph"] == "v"]
    heaps = [event["args"]["dumps"]["heaps_v2"] for event in events]
    names = {string["string"] for heap in heaps for string in heap["maps"]["strings"]}
    return sum(sum(heap["allocators"]["malloc"]["sizes"]) for heap in heaps), names


class Case(harness.Case):
    def setUp(self):
        super().setUp()
        self.spool = self.folder / "spool"
        self.there, self.go, self.after = (self.folder / name for name in ("there", "end", "after"))

    def receiver(self, *answers, context=None, port=0, kind=Receiver):
        receiver = kind(answers or ((200, {}),), context, port)
        self.addCleanup(receiver.close)
        return receiver

    def options(self, url, *options):
        """A run that ends waits for nothing: what it could not send waits in the spool."""
        return ("--no-page", f"--upload={url}", f"--upload-spool={self.spool}", "--upload-wait=0", *options)

    def start(self, url, *options, actions=(), env=None):
        """A program that waits for the file `end` with 5 MiB live, in a run with that --upload."""
        for path in (self.there, self.go, self.after):
            path.unlink(missing_ok=True)
        return self.memlog_start(
            GROWER, "--password=s3kr1t", f"guilty={5 * MIB}", *actions, f"done={self.there}", f"wait={self.go}",
            f"done={self.after}", options=self.options(url, *options), env=env,
        )

    def command(self, *words):
        return subprocess.run(
            [str(harness.MEMLOG), *map(str, words)], env=self.environment(), capture_output=True, text=True,
            timeout=harness.TIMEOUT, check=False,
        )

    def upload(self, _process, *words):
        self.wait_for("the program", self.there.exists)
        return self.command("upload", *words)

    def end(self, process):
        """The program ends well and its profile is whole, whatever became of the uploads; what memlog said."""
        self.go.touch()
        process.communicate(timeout=harness.TIMEOUT)
        self.assertEqual(process.returncode, 0)
        (dump,) = process.memlog_folder.glob("*.exit.pftrace")
        report = self.report(dump)
        self.assertTrue(report["dump"]["complete"])
        self.assertEqual([entry["accounting"]["waits"] for entry in report["processes"]], [0] * len(report["processes"]))
        process.memlog_log.seek(0)
        return process.memlog_log.read().decode()

    def send(self, url, *options, env=None):
        """One upload of a waiting program, to its end; what memlog said."""
        process = self.start(url, *options, env=env)
        answer = self.upload(process, "--wait")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return self.end(process)

    def uploads(self):
        return json.loads(self.command("ps", "--json").stdout)["uploads"]

    def promised(self):
        return sorted(path.stem for path in self.spool.glob("*.job"))

    def kill(self, process):
        """The host's death; the program goes on, and ends well."""
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        self.go.touch()
        self.wait_for("the program's end", self.after.exists)

    def later(self, url, *options, env=None):
        """A run that sends what former ones have left, and is ended once the spool is empty."""
        process = self.memlog_start("sleep", "1000", options=("-q", *self.options(url, *options)), env=env)
        self.wait_for("an empty spool", lambda: not self.promised())
        process.terminate()
        process.communicate(timeout=harness.TIMEOUT)
