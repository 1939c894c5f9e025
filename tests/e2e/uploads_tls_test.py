"""Uploads through nginx as a TLS front: to whom memlog speaks, to whom it does not, and what it says then."""
import datetime
import shutil
import socket
import subprocess
import unittest

import harness
import servers
import uploads
from uploads import guid_of

DAY = datetime.timedelta(days=1)


@unittest.skipUnless(shutil.which("nginx") and shutil.which("openssl"), "nginx and openssl")
class Tls(uploads.Case):
    def openssl(self, *words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, cwd=self.folder)

    def authority(self, name):
        """Somebody who signs certificates: name.pem is to be trusted."""
        self.openssl(
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", 2, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem",
            "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
        folder = self.folder / f"{name}.d"
        folder.mkdir()
        (folder / "index").touch()
        (folder / "serial").write_text("01\n")
        (self.folder / f"{name}.conf").write_text(
            f"[ca]\ndefault_ca = us\n[us]\ndatabase = {folder}/index\nserial = {folder}/serial\nnew_certs_dir = {folder}\n"
            f"certificate = {name}.pem\nprivate_key = {name}.key\ndefault_md = sha256\npolicy = any\ncopy_extensions = copy\n"
            "unique_subject = no\n[any]\ncommonName = supplied\n")

    def certificate(self, name, authority, host="localhost", begin=-DAY, end=DAY):
        """name.pem for that host, signed by that authority, good between these two, counted from now."""
        now = datetime.datetime.now(datetime.timezone.utc)
        dates = [(now + delta).strftime("%Y%m%d%H%M%SZ") for delta in (begin, end)]
        self.openssl(
            "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}",
            "-keyout", f"{name}.key", "-out", f"{name}.csr")
        self.openssl(
            "ca", "-batch", "-config", f"{authority}.conf", "-startdate", dates[0], "-enddate", dates[1], "-in", f"{name}.csr", "-out", f"{name}.pem")

    def nginx(self, name, backend):
        """nginx as a TLS front with that certificate; its port."""
        port = servers.free_port()
        folder = self.folder / f"nginx-{name}"
        folder.mkdir()
        (folder / "conf").write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error;\nevents {{}}\nhttp {{ access_log off;"
            f" client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u;"
            f" scgi_temp_path {folder}/s;\nserver {{ listen 127.0.0.1:{port} ssl; ssl_certificate {self.folder}/{name}.pem;"
            f" ssl_certificate_key {self.folder}/{name}.key; client_max_body_size 20m;"
            f" location / {{ proxy_pass http://127.0.0.1:{backend}; }} }} }}\n")
        server = subprocess.Popen(["nginx", "-c", str(folder / "conf"), "-p", str(folder)], stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)

        def answers():
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", port)) == 0

        self.wait_for("nginx", answers)
        return port

    def test_a_good_certificate(self):
        receiver = self.receiver()
        self.authority("ours")
        self.certificate("good", "ours")
        port = self.nginx("good", receiver.port)
        self.send(f"https://localhost:{port}/reports", f"--upload-ca={self.folder}/ours.pem")
        ((method, path, _, _),) = receiver.requests
        self.assertEqual((method, path), ("POST", "/reports"))

    def test_bad_certificates_get_nothing_and_what_is_wrong_is_said(self):
        """The report waits; it is sent once the server's certificate is mended, under its id."""
        receiver = self.receiver()
        self.authority("ours")
        self.authority("theirs")
        bad = {  # whose certificate, what is trusted, what is said of it
            "expired": ({"authority": "ours", "begin": -3 * DAY, "end": -DAY}, "ours", "certificate has expired"),
            "early": ({"authority": "ours", "begin": DAY, "end": 3 * DAY}, "ours", "certificate is not yet valid"),
            "host": ({"authority": "ours", "host": "other.example"}, "ours", "no alternative certificate subject name matches.*'localhost'"),
            "unknown": ({"authority": "ours"}, None, r"unable to get local issuer certificate(?: \(20\))?; --upload-ca=FILE"),
            "another": ({"authority": "ours"}, "theirs", r"unable to get local issuer certificate(?: \(20\))?; --upload-ca=FILE"),
        }
        for name, (certificate, trusted, words) in bad.items():
            with self.subTest(name):
                self.certificate(name, **certificate)
                url = f"https://localhost:{self.nginx(name, receiver.port)}/"
                process = self.start(url, *([f"--upload-ca={self.folder}/{trusted}.pem"] if trusted else []))
                self.assertEqual(self.upload(process).returncode, 0)
                self.wait_for("a failed try", lambda: self.uploads()["retries"] > 0)
                self.assertRegex(self.uploads()["last_error"], rf"^upload of /\S+manual.pftrace failed \(SSL.*{words}.*\); again in ")
                self.assertRegex(self.command("ps").stdout, words)
                said = self.end(process)
                self.assertRegex(said, words)
                self.assertIn("what is not sent yet waits in ", said)
                self.assertEqual(receiver.requests, [])
        # Mended: the same front, whose certificate was somebody's whom nobody had named.
        waiting = self.promised()
        self.assertEqual(len(waiting), len(bad))
        self.later_of(url, waiting, receiver)

    def later_of(self, url, waiting, receiver):
        """A run that trusts whom it should sends the one report for that address, under its id; the others go nowhere."""
        process = self.memlog_start("sleep", "1000", options=("-q", *self.options(url, f"--upload-ca={self.folder}/ours.pem")))
        self.wait_for("the report", lambda: len(self.promised()) == len(waiting) - 1)
        process.terminate()
        process.communicate(timeout=harness.TIMEOUT)
        self.assertEqual([guid_of(request) for request in receiver.requests], sorted(set(waiting) - set(self.promised())))

    def test_a_file_of_certificates_that_is_not_there_is_named(self):
        process = self.start("https://localhost:1/", f"--upload-ca={self.folder}/missing.pem")
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 125)
        process.memlog_log.seek(0)
        self.assertIn(f"--upload-ca={self.folder}/missing.pem: No such file or directory", process.memlog_log.read().decode())
        self.assertFalse(self.there.exists(), "nothing was started")


if __name__ == "__main__":
    unittest.main(verbosity=2)
