"""Uploads to S3: what is signed and with whose keys, a real server of Debian's, and large objects in parts."""
import datetime
import gzip
import hashlib
import hmac
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest
import urllib.parse
import urllib.request

import harness
import uploads
from uploads import MIB, Receiver, live_of

SWIFT = pathlib.Path(__file__).with_name("swift_server.py")
PART = 8 * MIB


class S3(uploads.Case):
    def check_signature(self, request, secret):
        """Signature Version 4, made again from what came."""
        method, path, headers, body = request
        path, _, query = path.partition("?")
        headers = {name.lower(): value for name, value in headers.items()}
        scheme, rest = headers["authorization"].split(" ", 1)
        fields = dict(field.strip().split("=", 1) for field in rest.split(","))
        key, day, region, service, end = fields["Credential"].split("/")
        self.assertEqual((scheme, service, end), ("AWS4-HMAC-SHA256", "s3", "aws4_request"))
        digest = hashlib.sha256(body).hexdigest()
        self.assertEqual(headers["x-amz-content-sha256"], digest)
        signed = fields["SignedHeaders"].split(";")
        for name in ("host", "x-amz-content-sha256", "x-amz-date"):
            self.assertIn(name, signed)
        canonical = "\n".join(
            [method, urllib.parse.quote(path), query, *[f"{name}:{headers[name].strip()}" for name in signed], "", ";".join(signed), digest])
        stamp = headers["x-amz-date"]
        self.assertEqual(stamp[:8], day)
        self.assertLess(abs(datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(
            tzinfo=datetime.timezone.utc).timestamp() - time.time()), 900)
        text = "\n".join([scheme, stamp, f"{day}/{region}/s3/aws4_request", hashlib.sha256(canonical.encode()).hexdigest()])
        signer = ("AWS4" + secret).encode()
        for piece in (day, region, "s3", "aws4_request"):
            signer = hmac.new(signer, piece.encode(), hashlib.sha256).digest()
        return key, region, hmac.new(signer, text.encode(), hashlib.sha256).hexdigest() == fields["Signature"]

    def bare(self, **changes):
        """An environment in which nobody has credentials but who is named."""
        env = {key: value for key, value in self.environment(HOME=str(self.folder)).items() if not key.startswith("AWS_")}
        return {**env, "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9", **changes}

    def put_in_spool(self, url, size):
        """A report that a former run has left; its id and body."""
        self.spool.mkdir(mode=0o700, exist_ok=True)
        name, body = os.urandom(16).hex(), os.urandom(MIB) * (size // MIB) + b"end"
        (self.spool / f"{name}.body").write_bytes(body)
        (self.spool / f"{name}.job").write_text(
            f"memlog-upload 1\ntarget {url}\ndump /nowhere/0001.threshold.pftrace\ntries 0\nharder 0\nnext_ms 0\n")
        return name, body


class Keys(S3):
    def test_s3_is_signed_with_keys_of_the_environment_and_of_a_file(self):
        receiver = self.receiver()
        keys = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalr/XUtn+FEMI", "AWS_SESSION_TOKEN": "tok/en=="}
        said = self.send(f"s3+http://127.0.0.1:{receiver.port}/bucket/some/prefix?region=eu-north-1", env=self.environment(**keys))
        request = receiver.requests[0]
        self.assertEqual(request[0], "PUT")
        self.assertRegex(request[1], r"^/bucket/some/prefix/memlog-[0-9a-f]{32}\.trace\.json\.gz$")
        self.assertEqual(self.check_signature(request, "wJalr/XUtn+FEMI"), ("AKIDEXAMPLE", "eu-north-1", True))
        self.assertFalse(self.check_signature(request, "another secret")[2])
        self.assertEqual({k.lower(): v for k, v in request[2].items()}["x-amz-security-token"], "tok/en==")
        for secret in ("wJalr", "tok/en"):
            self.assertNotIn(secret, said)
        gzip.decompress(request[3])
        file = self.folder / "credentials"
        file.write_text("[other]\naws_access_key_id = NO\n[default]\naws_access_key_id = FILEKEY\naws_secret_access_key=fromfile\n")
        self.send(
            "s3://bucket", env=self.environment(
                AWS_SHARED_CREDENTIALS_FILE=str(file), AWS_ENDPOINT_URL=f"http://127.0.0.1:{receiver.port}/", AWS_REGION="xy"))
        self.assertEqual(self.check_signature(receiver.requests[1], "fromfile"), ("FILEKEY", "xy", True))

    def test_s3_without_credentials_stops_the_run_before_the_program(self):
        for changes, word in (({}, "127.0.0.1:9/latest/api/token"), ({"AWS_EC2_METADATA_DISABLED": "true"}, "DISABLED"),
                              ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.org/x"}, "by https or on this machine alone")):
            run = self.memlog("touch", self.folder / "ran", options=self.options("s3://b"), env=self.bare(**changes))
            self.assertEqual(run.code, 125)
            self.assertIn("no credentials for S3", run.err)
            self.assertIn(word, run.err)
            self.assertFalse((self.folder / "ran").exists())


class Metadata(Receiver):
    """An instance's metadata service, version 2, and a container's; `lives` are how long the credentials are good, in seconds."""

    TOKEN = "AQAAAtoken=="

    def __init__(self, answers, context, port):
        super().__init__(answers, context, port)
        self.lives = [3600]
        self.broken = False
        self.lent = 0

    def credentials(self):
        self.lent += 1
        life = self.lives.pop(0) if len(self.lives) > 1 else self.lives[0]
        end = datetime.datetime.fromtimestamp(time.time() + life, datetime.timezone.utc)
        return json.dumps({
            "Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": f"ASIALENT{self.lent}", "SecretAccessKey": f"lent/secret+{self.lent}",
            "Token": f"lent/token=={self.lent}", "Expiration": end.strftime("%Y-%m-%dT%H:%M:%SZ")}).encode()

    def route(self, handler):
        headers = {name.lower(): value for name, value in handler.headers.items()}
        if self.broken:
            return 500, {}
        where = (handler.command, handler.path)
        if where == ("PUT", "/latest/api/token") and int(headers["x-aws-ec2-metadata-token-ttl-seconds"]) > 0:
            return 200, {}, self.TOKEN.encode()
        if where == ("GET", "/container/creds"):
            return (200, {}, self.credentials()) if headers.get("authorization") == "Basic c0ntainer" else (401, {})
        if headers.get("x-aws-ec2-metadata-token") != self.TOKEN:
            return 401, {}
        if where == ("GET", "/latest/meta-data/iam/security-credentials/"):
            return 200, {}, b"reporter"
        if where == ("GET", "/latest/meta-data/iam/security-credentials/reporter"):
            return 200, {}, self.credentials()
        return 404, {}


class Lent(S3):
    """Credentials that a machine lends to what runs on it."""

    def setUp(self):
        super().setUp()
        self.metadata = self.receiver(kind=Metadata)
        self.bucket = self.receiver()
        self.env = self.bare(AWS_EC2_METADATA_SERVICE_ENDPOINT=self.metadata.url + "/", http_proxy="http://127.0.0.1:9")
        self.url = f"s3+http://127.0.0.1:{self.bucket.port}/b"

    def start_one(self, env):
        process = self.start(self.url, env={**env, "no_proxy": "127.0.0.1"})
        self.wait_for("the program", self.there.exists)
        return process

    def send_one(self):
        answer = self.command("upload", "--wait")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return self.check_signature(self.bucket.requests[-1], f"lent/secret+{self.metadata.lent}")

    def test_an_instances_are_kept_while_they_are_good_and_renewed_before_they_end(self):
        self.metadata.lives = [3600, 3600, 3600]
        process = self.start_one(self.env)
        asked_at_start = self.metadata.lent  # whether there are any is said before the program starts
        for _ in range(2):
            self.assertEqual(self.send_one(), (f"ASIALENT{asked_at_start + 1}", "us-east-1", True))
        self.assertEqual(self.metadata.lent, asked_at_start + 1)
        self.end(process)
        # What ends within minutes is asked for again at each try; if nobody answers, it is used while it is good.
        self.metadata.lives = [200]
        process = self.start_one(self.env)
        before = self.metadata.lent
        for more in (1, 2):
            self.assertEqual(self.send_one(), (f"ASIALENT{before + more}", "us-east-1", True))
        lent = self.metadata.lent
        self.metadata.broken = True
        self.assertEqual(self.send_one(), (f"ASIALENT{lent}", "us-east-1", True))
        said = self.end(process)
        for secret in ("lent/secret", "lent/token", Metadata.TOKEN):
            self.assertNotIn(secret, said)

    def test_a_server_that_calls_them_expired_gets_new_ones(self):
        self.bucket.answers = [(400, {}, b"<Error><Code>ExpiredToken</Code></Error>"), (200, {})]
        process = self.start_one(self.env)
        self.assertEqual(self.send_one()[2], True)
        first, second = ({k.lower(): v for k, v in request[2].items()} for request in self.bucket.requests)
        self.assertNotEqual(first["x-amz-security-token"], second["x-amz-security-token"])
        self.assertIn("ExpiredToken", self.end(process))

    def test_a_containers_are_asked_for_with_its_token(self):
        token = self.folder / "token"
        token.write_text("Basic c0ntainer\n")
        where = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": self.metadata.url + "/container/creds"}
        for named in ({"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token)}, {"AWS_CONTAINER_AUTHORIZATION_TOKEN": "Basic c0ntainer"}):
            process = self.start_one(self.bare(**where, **named))
            self.assertEqual(self.send_one()[2], True)
            self.assertNotIn("c0ntainer", self.end(process))
        run = self.memlog("true", options=self.options(self.url), env=self.bare(**where))
        self.assertEqual(run.code, 125)
        self.assertIn("HTTP status 401", run.err)


class Parts(Receiver):
    """A server that joins objects from parts; `faults` maps what is asked ("part 3", "join") to answers that come first."""

    def __init__(self, answers, context, port):
        super().__init__(answers, context, port)
        self.faults = {}
        self.begun, self.parts, self.joined, self.abandoned = 0, {}, {}, []
        self.begins_with = "up/load="

    def what(self, path):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query, keep_blank_values=True))
        return query, f"part {query['partNumber']}" if "partNumber" in query else "begin" if "uploads" in query else "join"

    def route(self, handler):
        faults = self.faults.get(self.what(handler.path)[1], []) if handler.command != "DELETE" else []
        return faults.pop(0) if faults else None

    def after(self, handler, answer):
        """What S3 would do, unless a fault is told."""
        if answer is not None:
            return answer
        path = urllib.parse.urlsplit(handler.path).path
        query, what = self.what(handler.path)
        body = self.requests[-1][3]
        if handler.command == "DELETE":
            self.abandoned.append(query["uploadId"])
            return 204, {}
        if handler.command == "PUT" and not query:
            self.joined[path] = body
            return 200, {}
        if what == "begin":
            self.begun += 1
            self.parts = {}
            return 200, {}, f"<Result><UploadId>{self.begins_with}{self.begun}</UploadId></Result>".encode()
        if query.get("uploadId") != f"{self.begins_with}{self.begun}":
            return 404, {}, b"<Error><Code>NoSuchUpload</Code></Error>"
        if what == "join":
            self.joined[path] = b"".join(self.parts[number] for number in sorted(self.parts))
            return 200, {}, b"<CompleteMultipartUploadResult/>"
        number = int(query["partNumber"])
        self.parts[number] = body
        return 200, {"ETag": f'"{hashlib.md5(body).hexdigest()}"'}


class Large(S3):
    """Objects that are sent in parts: what has arrived is not sent twice."""

    KEYS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"}

    def asked(self, receiver):
        return [receiver.what(path)[1] if method != "DELETE" else "abandon" for method, path, _, _ in receiver.requests]

    def test_a_part_that_fails_is_sent_again_and_no_other(self):
        receiver = self.receiver(kind=Parts)
        receiver.faults = {"part 2": [(503, {}), uploads.cut_in_the_middle], "join": [(200, {}, b"<Error><Code>InternalError</Code></Error>")]}
        url = f"s3+http://127.0.0.1:{receiver.port}/b"
        name, body = self.put_in_spool(url, 20 * MIB)
        self.later(url, env=self.environment(**self.KEYS))
        self.assertEqual(self.asked(receiver), ["begin", "part 1", "part 2", "part 2", "part 3", "join", "join"])
        self.assertEqual(receiver.joined, {f"/b/memlog-{name}.trace.json.gz": body})
        self.assertEqual([len(request[3]) for request in receiver.requests[1:5]], [PART, PART, PART, 4 * MIB + 3])
        self.assertEqual({self.check_signature(request, "secret") for request in receiver.requests}, {("AKID", "us-east-1", True)})

    def test_an_id_that_some_libcurl_cannot_sign_is_not_used(self):
        receiver = self.receiver(kind=Parts)
        receiver.begins_with = "up+load"
        url = f"s3+http://127.0.0.1:{receiver.port}/b"
        name, body = self.put_in_spool(url, 20 * MIB)
        self.later(url, env=self.environment(**self.KEYS))
        self.assertEqual([(method, len(sent)) for method, _, _, sent in receiver.requests], [("POST", 0), ("PUT", len(body))])
        self.assertEqual(receiver.joined, {f"/b/memlog-{name}.trace.json.gz": body})
        self.assertEqual({self.check_signature(request, "secret") for request in receiver.requests}, {("AKID", "us-east-1", True)})

    def test_the_hosts_death_costs_the_part_that_was_under_way(self):
        receiver = self.receiver(kind=Parts)
        receiver.faults = {"part 3": [uploads.hang]}
        url = f"s3+http://127.0.0.1:{receiver.port}/b"
        name, body = self.put_in_spool(url, 20 * MIB)
        env = self.environment(**self.KEYS)
        process = self.memlog_start("sleep", "1000", options=("-q", *self.options(url)), env=env)
        self.wait_for("the third part", lambda: "part 3" in self.asked(receiver))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.later(url, env=env)
        self.assertEqual(self.asked(receiver), ["begin", "part 1", "part 2", "part 3", "part 3", "join"])
        self.assertEqual(receiver.joined, {f"/b/memlog-{name}.trace.json.gz": body})

    def test_parts_that_the_server_forgot_are_sent_anew_and_those_of_a_refused_object_are_abandoned(self):
        receiver = self.receiver(kind=Parts)
        receiver.faults = {"part 2": [(404, {}, b"<Error><Code>NoSuchUpload</Code></Error>")]}
        url = f"s3+http://127.0.0.1:{receiver.port}/b"
        _, body = self.put_in_spool(url, 17 * MIB)
        env = self.environment(**self.KEYS)
        self.later(url, env=env)
        self.assertEqual(
            self.asked(receiver), ["begin", "part 1", "part 2", "begin", "part 1", "part 2", "part 3", "join"])
        self.assertEqual(list(receiver.joined.values()), [body])
        receiver.faults = {"part 2": [(403, {}, b"<Error><Code>AccessDenied</Code></Error>")]}
        self.put_in_spool(url, 17 * MIB)
        self.later(url, env=env)
        self.assertEqual(self.asked(receiver)[8:], ["begin", "part 1", "part 2", "abandon"])
        self.assertEqual(receiver.abandoned, ["up/load=3"])
        self.assertEqual(len(receiver.joined), 1)


@unittest.skipUnless(pathlib.Path("/usr/lib/python3/dist-packages/swift").is_dir(), "python3-swift")
class Swift(S3):
    """OpenStack's object store, its S3 interface: a server that nobody here has written."""

    KEYS = {"AWS_ACCESS_KEY_ID": "test:tester", "AWS_SECRET_ACCESS_KEY": "testing"}

    def setUp(self):
        super().setUp()
        try:
            os.setxattr(self.folder, "user.test", b"x" * 100)
        except OSError as error:
            self.skipTest(f"{self.folder} has no extended attributes: {error}")
        server = subprocess.Popen(
            ["/usr/bin/python3", str(SWIFT), str(self.folder / "swift"), "reports"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        line = server.stdout.readline().split()
        self.assertEqual(len(line), 2, "swift_server.py has not started")
        self.port, self.back_door = map(int, line)
        self.url = f"s3+http://127.0.0.1:{self.port}/reports/some"

    def objects(self):
        """{name: bytes} of the bucket, read behind the S3 interface and without its signatures."""
        base = f"http://127.0.0.1:{self.back_door}/v1/AUTH_test/reports"

        def get(address):
            with urllib.request.urlopen(address, timeout=harness.TIMEOUT) as answer:
                return answer.read()
        return {name: get(f"{base}/{name}") for name in (row["name"] for row in json.loads(get(base)))}

    def test_a_good_secret_stores_what_was_sent_and_a_bad_one_nothing(self):
        bad = {**self.KEYS, "AWS_SECRET_ACCESS_KEY": "tasting"}
        process = self.start(self.url, env=self.environment(**bad))
        answer = self.upload(process, "--wait")
        self.assertEqual(answer.returncode, 125)
        self.assertIn("403: SignatureDoesNotMatch (newer libcurl", answer.stderr)
        self.assertEqual(self.uploads()["given_up"], 1)
        self.assertNotIn("tasting", answer.stderr + self.end(process))
        self.assertEqual(self.objects(), {})
        self.send(self.url, env=self.environment(**self.KEYS))
        ((name, stored),) = self.objects().items()
        self.assertRegex(name, r"^some/memlog-[0-9a-f]{32}\.trace\.json\.gz$")
        self.assertEqual(live_of(json.loads(gzip.decompress(stored)))[0], 5 * MIB)

    def test_a_large_object_arrives_in_parts_and_whole(self):
        expected = {}
        for size in (12 * MIB, 44 * MIB):
            name, body = self.put_in_spool(self.url, size)
            expected[f"some/memlog-{name}.trace.json.gz"] = hashlib.sha256(body).hexdigest()
        self.later(self.url, env=self.environment(**self.KEYS))
        self.assertEqual({name: hashlib.sha256(body).hexdigest() for name, body in self.objects().items()}, expected)


if __name__ == "__main__":
    unittest.main(verbosity=2)
