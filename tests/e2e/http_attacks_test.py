"""The page's HTTP interface under attack: what it refuses, and that the run goes on meanwhile."""
import os
import re
import socket
import stat
import time
import unittest

import browsing
import harness


class Attacks(browsing.TreeCase):
    def test_strangers_are_refused(self):
        process, page = self.start_tree()
        pid = browsing.members(page)[1]["pid"]
        stop = f"/api/v1/processes/{pid}/stop"
        refused = [
            # Another name that points here (DNS rebinding), whatever else is right.
            (421, page.ask("/", host="evil.example")),
            (421, page.ask("/healthz", token=False, host="evil.example")),
            (421, page.ask("/api/v1/processes", host=f"evil.example:{page.address[1]}")),
            (421, page.ask("/api/v1/processes", host="127.0.0.1")),
            (400, page.ask("http://evil.example/api/v1/processes", host="evil.example")),
            (400, page.ask("http://evil.example/api/v1/processes")),
            (400, page.ask("/api/v1/processes", host=None)),
            # No token, a wrong one, half of it.
            (401, page.ask("/", token=False)),
            (401, page.ask("/metrics", token=False)),
            (401, page.ask("/nothing", token=False)),
            (401, page.ask(stop, "POST", token=False)),
            (401, page.ask("/api/v1/processes", token=False, authorization="token " + "0" * 32)),
            (401, page.ask("/api/v1/processes", token=False, authorization="token " + page.token[:-1])),
            (401, page.ask("/api/v1/processes", token=False, authorization=page.token)),
            (401, page.ask(f"/api/v1/processes?token={page.token}0", token=False)),
            (401, page.ask("/api/v1/processes", token=False, cookie=f"memlog={page.token}")),
            # A page of somebody else's in the same browser.
            (403, page.ask(stop, "POST", token=False, cookie=page.cookie)),
            (403, page.ask(stop, "POST", token=False, cookie=page.cookie, origin=page.base)),
            (403, page.ask(stop, "POST", origin="http://evil.example")),
            (403, page.ask(stop, "POST", origin="null")),
            (403, page.ask(stop, "POST", origin="http://127.0.0.1:1")),
            (403, page.ask(stop, "POST", sec_fetch_site="cross-site")),
            (403, page.ask("/debug/pprof/heap", token=False, cookie=page.cookie, sec_fetch_site="same-site")),
            # GET does nothing; other methods are none.
            (405, page.ask(stop)),
            (405, page.ask(stop + "?_method=POST")),
            (405, page.ask("/api/v1/processes", "POST")),
            (405, page.ask("/", "POST")),
            (405, page.ask("/api/v1/dumps", "DELETE")),
            (405, page.ask("/healthz", "OPTIONS")),
            # Paths that are none.
            (404, page.ask("/api/v1/dumps/..%2f..%2fetc%2fpasswd")),
            (404, page.ask("/api/v1/dumps/../../../../etc/passwd")),
            (404, page.ask("/../../etc/passwd")),
            (404, page.ask("//healthz")),
            (404, page.ask("/healthz%00/x")),
            (404, page.ask("/api/v1/dumps/0001%00.exit.pftrace")),
            (404, page.ask("/api/v1/dumps/9999")),
            (404, page.ask("/api/v1/processes/1/start", "POST")),
            (404, page.ask("/api/v1/processes/" + "1" * 100 + "/start", "POST")),
            (404, page.ask("/api/v1/profile?pid=1")),
            (404, page.ask("/api/v1/profile?role=gpu")),
            # Values that are none.
            (400, page.ask("/api/v1/processes/x/start", "POST")),
            (400, page.ask(f"/api/v1/processes/{pid}/start?sampling_bytes=0", "POST")),
            (400, page.ask(f"/api/v1/processes/{pid}/start?sampling_bytes=-1", "POST")),
            (400, page.ask(f"/api/v1/processes/{pid}/start?stack_mode=none", "POST")),
            (400, page.ask("/api/v1/dumps?pid=1,x", "POST")),
            (400, page.ask("/api/v1/dumps?role=boss", "POST")),
            (400, page.ask("/api/v1/dumps?reason=" + "x" * 257, "POST")),
            (409, page.ask("/api/v1/dumps?role=gpu", "POST")),
            (409, page.ask("/api/v1/upload", "POST")),
            (401, page.ask("/api/v1/upload", "POST", token=False)),
            (403, page.ask("/api/v1/upload", "POST", origin="http://evil.example")),
            (400, page.ask("/api/v1/profile?metric=nothing")),
            (400, page.ask("/api/v1/profile?pid=x")),
            (400, page.ask("/api/v1/profile?role=boss")),
            (400, page.ask("/api/v1/diff")),
            (404, page.ask("/api/v1/diff?from=0009")),
            (400, page.ask("/debug/pprof/heap?seconds=99999")),
            (409, page.ask("/api/v1/dumps?pid=1", "POST")),
        ]
        for number, (status, answer) in enumerate(refused):
            self.assertEqual(answer.status, status, (number, answer.body))
            if status != 400:
                self.assertIn("error", answer.json())
                self.assertEqual(answer.headers["x-content-type-options"], "nosniff")
        # Nothing of it has done anything.
        self.assertTrue(next(one for one in browsing.members(page) if one["pid"] == pid)["recording"])
        self.assertEqual(page.json("/api/v1/dumps")["dumps"], [])
        # The same by those who may.
        secret = page.ask("/api/v1/session", token=False, cookie=page.cookie, sec_fetch_site="same-origin").json()["page_token"]
        mine = {"token": False, "cookie": page.cookie, "origin": page.base, "sec_fetch_site": "same-origin"}
        self.assertEqual(page.ask(stop, "POST", x_memlog_page=secret, **mine).status, 200)
        self.assertEqual(page.ask(f"/api/v1/processes/{pid}/start?stack_mode=mixed&token={page.token}", "POST", token=False).status, 200)
        self.assertEqual(next(one for one in browsing.members(page) if one["pid"] == pid)["stack_mode"], "mixed")
        self.end(process)

    def test_a_head_that_can_be_read_in_two_ways_is_refused_and_ends_its_connection(self):
        process, page = self.start_tree()
        host, token = f"Host: {page.host}", f"Authorization: token {page.token}"
        second = f"GET /api/v1/processes?token={page.token} HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n"
        fine = ["GET /healthz HTTP/1.1", host]
        post = ["POST /api/v1/dumps?pid=1,x HTTP/1.1", host, token]
        for lines in (
            [*fine, "Host: evil.example"],
            [fine[0], "Host: evil.example", host],
            [*fine, host],
            [*fine, f"hOST: {page.host}"],
            [*fine, token, token],
            [*fine, "Origin: http://evil.example", f"Origin: http://{page.host}"],
            [*post, "Content-Length: 0", f"Content-Length: {len(second)}"],
            [*post, f"Content-Length: {len(second)}", "Content-Length: 0"],
            [*post, "Content-Length: 5", "Content-Length: 5"],
            [*post, "Content-Length: +5"],
            [*post, "Content-Length: 0x5"],
            [*post, f"Content-Length: {len(second)}", "Transfer-Encoding: chunked"],
            [*post, "Transfer-Encoding: identity, chunked"],
            [*post, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
            [*post, "Transfer-Encoding : chunked"],
            [f"GET http://evil.example/healthz HTTP/1.1", host],
            [f"GET {page.base}/healthz HTTP/1.1", host],
            ["GET healthz HTTP/1.1", host],
        ):
            answer = page.raw(("\r\n".join(lines) + "\r\n\r\n" + second).encode())
            self.assertIn(answer and answer.status, (400, 501), lines)
            self.assertNotIn(b"HTTP/1.1 200", answer.body, lines)
        # Folded lines: refused, or the fold is part of one value, which is then wrong.
        folded = page.raw(f"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n {page.host}\r\nConnection: close\r\n\r\n".encode())
        self.assertIn(folded and folded.status, (None, 400, 421))
        hidden = page.raw(f"GET /healthz HTTP/1.1\r\nX: a\r\n Host: evil.example\r\n{host}\r\nConnection: close\r\n\r\n".encode())
        self.assertIn(hidden and hidden.status, (None, 200, 400))
        # None of it has kept anybody out.
        self.assertEqual(page.raw(("\r\n".join([*fine, "Connection: close"]) + "\r\n\r\n").encode()).status, 200)
        self.assertEqual(page.json("/api/v1/dumps")["dumps"], [])
        self.end(process)

    def test_the_first_visit_sets_a_cookie_that_scripts_cannot_read(self):
        process, page = self.start_tree()
        visit = page.ask(f"/?token={page.token}", token=False, sec_fetch_site="cross-site")
        self.assertEqual(visit.status, 200)
        cookie = visit.headers["set-cookie"]
        self.assertTrue(cookie.startswith(page.cookie + ";"), cookie)
        self.assertIn("HttpOnly", cookie)
        self.assertIn("SameSite=Strict", cookie)
        policy = visit.headers["content-security-policy"]
        self.assertIn("default-src 'none'", policy)
        for word in ("unsafe", "http", "*", "data:"):
            self.assertNotIn(word, policy)
        self.assertEqual(visit.headers["referrer-policy"], "no-referrer")
        self.assertEqual(visit.headers["cache-control"], "no-store")
        self.assertEqual(page.ask("/", token=False, cookie=page.cookie).status, 200)
        self.assertEqual(page.ask("/", "HEAD", token=False, cookie=page.cookie).body, b"")
        # What the page is made of comes from here alone.
        text = visit.body.decode()
        for source in re.findall(r'(?:src|href)="([^"]+)"', text):
            self.assertTrue(source.startswith("/") and not source.startswith("//"), source)
            self.assertEqual(page.ask(source).status, 200, source)
        self.assertNotRegex(text, r"<script>|\son\w+=|style=")
        self.end(process)

    def test_floods_and_dawdlers_do_not_keep_others_out(self):
        process, page = self.start_tree()
        dawdlers = []
        for number in range(500):
            peer = socket.socket()
            peer.settimeout(harness.TIMEOUT)
            peer.connect(page.address)
            if number % 2:
                peer.send(b"GET / HTTP/1.1\r\nHost: " + b"x" * (number % 7))
            dawdlers.append(peer)
            if number % 100 == 99:
                self.assertEqual(page.ask("/healthz", token=False).status, 200)
                self.assertEqual(len(browsing.members(page)), 2)
        host_fds = len(os.listdir(f"/proc/{process.pid}/fd"))
        self.assertLess(host_fds, 300)
        # One that sends a byte now and then is ended all the same.
        slow = page.connect()
        slow.settimeout(harness.TIMEOUT)
        ended = False
        for _ in range(harness.TIMEOUT):
            try:
                slow.sendall(b"G")
                time.sleep(1)
                slow.setblocking(False)
                ended = slow.recv(1000) == b"" or ended
            except BlockingIOError:
                pass
            except (BrokenPipeError, ConnectionResetError):
                ended = True
            if ended:
                break
            slow.setblocking(True)
        self.assertTrue(ended)
        for peer in [*dawdlers, slow]:
            peer.close()
        # Too long a line, too many headers, too large a body: an answer or none, never more.
        long_line = page.raw(b"GET /" + b"a" * 200000 + b" HTTP/1.1\r\nHost: " + page.host.encode() + b"\r\n\r\n")
        self.assertIn(long_line and long_line.status, (None, 400, 413, 414, 431))
        headers = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 1000) for number in range(300))
        many = page.raw(b"GET / HTTP/1.1\r\nHost: " + page.host.encode() + b"\r\n" + headers + b"\r\n")
        self.assertIn(many and many.status, (None, 400, 413, 431))
        self.assertEqual(page.ask("/api/v1/dumps", "POST", content_length="100000000").status, 413)
        chunks = b"10000\r\n" + b"z" * 65536 + b"\r\n"
        endless = page.raw(
            b"POST /api/v1/dumps HTTP/1.1\r\nHost: " + page.host.encode() + b"\r\nAuthorization: token " + page.token.encode() +
            b"\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks * 10
        )
        self.assertTrue(endless is None or endless.status >= 400)
        for nonsense in (b"\0" * 100, b"HELO\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n" * 50 + b"X", os.urandom(4096)):
            with page.connect() as peer:
                try:
                    peer.sendall(nonsense)
                    peer.shutdown(socket.SHUT_WR)
                    peer.settimeout(harness.TIMEOUT)
                    while peer.recv(65536):
                        pass
                except OSError:
                    pass
        self.assertEqual(page.json("/api/v1/dumps")["dumps"], [])
        self.assertTrue(page.json("/api/v1/dumps", "POST")["complete"])
        self.end(process)

    def test_a_socket_in_the_file_system_is_ours_alone(self):
        path = self.folder / "page.sock"
        process = self.memlog_start("/bin/sleep", "60", options=("-q", f"--page=unix:{path}"))
        self.wait_for("the socket", path.exists)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        with socket.socket(socket.AF_UNIX) as peer:
            self.wait_for("somebody behind it", lambda: peer.connect_ex(str(path)) == 0)  # it is made first, then listened on
            peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            self.assertIn(b" 200 ", peer.makefile("rb").readline())
        self.assertEqual((self.folder / f"stderr{self.runs}").read_text(), "")
        process.terminate()
        self.assertEqual(process.wait(harness.TIMEOUT), 143)
        self.assertFalse(path.exists())

    def test_many_ask_at_once_and_some_hang_up(self):
        """A question that comes while a snapshot is written is answered by the next one."""
        process, page = self.start_tree()
        live = page.json("/api/v1/processes")["tree"]["live_bytes"]
        request = f"GET /api/v1/profile?token={page.token} HTTP/1.1\r\nHost: {page.host}\r\nConnection: close\r\n\r\n".encode()
        for _ in range(4):
            peers = []
            for _ in range(5):
                peers.append(page.connect())
                peers[-1].sendall(request)
                time.sleep(0.01)
            peers.pop(1).close()
            for peer in peers:
                data = browsing.Answer(peer.makefile("rb").read()).json()
                self.assertEqual(sum(data["views"][0]["values"][1::7]), live)
                peer.close()
        self.end(process)


if __name__ == "__main__":
    unittest.main(verbosity=2)
