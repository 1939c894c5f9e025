"""A collector that is sent reports in every form memlog has: equal answers, once each, and what is forged, cut or too much."""
import base64
import datetime
import gzip
import hashlib
import hmac
import json
import os
import random
import signal
import socket
import ssl
import subprocess
import unittest
import xml.etree.ElementTree

import collecting
import harness
import uploads
from collecting import packed, trace
from uploads import MIB

FORMS = ("report", "s3", "push", "ingest", "otlp", "folder")
TOKENS = {form: {"write": f"{form}-write-0123456789", "read": f"{form}-read-0123456789"} for form in FORMS}
STACK = ("main", "serve", "leak")
# Hundreds of stacks, one for each way through left and right; a third of what they ask for is freed.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
void *volatile kept;
static void left(int depth, unsigned way);
static void right(int depth, unsigned way);
#define STEP(name) __attribute__((noinline)) static void name(int depth, unsigned way) { \\
    if (depth == 0) { void *block = malloc(70000 + 16 * way); if (way % 3 == 0) free(block); else kept = block; return; } \\
    if (way & 1u << (depth - 1)) left(depth - 1, way); else right(depth - 1, way); \\
    __asm__ volatile(""); }
STEP(left)
STEP(right)
int main(int count, char **words) {
    for (unsigned way = 0; way < 512; way++) left(9, way);
    fclose(fopen(words[count - 3], "w"));
    while (access(words[count - 2], F_OK) != 0) usleep(10000);
    fclose(fopen(words[count - 1], "w"));
    return 0;
}
"""
PUSH = "/push.v1.PusherService/Push"


def signed(method, target, body, key, secret, when=None, told=None, region="xy-1", host="127.0.0.1"):
    """Headers of Signature Version 4 as another client than memlog's makes them."""
    when = when or datetime.datetime.now(datetime.timezone.utc)
    stamp, digest = when.strftime("%Y%m%dT%H%M%SZ"), told or hashlib.sha256(body).hexdigest()
    path, _, query = target.partition("?")
    query = "&".join(sorted(one if "=" in one else one + "=" for one in query.split("&") if one))
    headers = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": stamp}
    canonical = "\n".join([method, path, query, *[f"{name}:{value}" for name, value in headers.items()], "", ";".join(headers), digest])
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    signer = ("AWS4" + secret).encode()
    for piece in (stamp[:8], region, "s3", "aws4_request"):
        signer = hmac.new(signer, piece.encode(), hashlib.sha256).digest()
    signature = hmac.new(signer, text.encode(), hashlib.sha256).hexdigest()
    return {**headers, "Authorization": f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={';'.join(headers)}, Signature={signature}"}


class Case(uploads.Case):
    def collector(self, *options, tokens=None):
        collector = collecting.Collector(self.folder, *options, environment=self.environment(), tokens=tokens)
        self.addCleanup(lambda: collector.process and collector.process.poll() is None and collector.stop(signal.SIGKILL))
        return collector.start()

    def s3(self, collector, method, target, body=b"", key="default", secret=16 * "w", **how):
        return collector.request(method, target, body, **signed(
            method, target, body, key, secret, host=f"127.0.0.1:{collector.port}", **how))

    def code_of(self, answer):
        return answer[0], xml.etree.ElementTree.fromstring(answer[2]).findtext("Code")

    def start(self, url, *options, actions=(), env=None):
        """As uploads.Case's, a program of more stacks."""
        program = self.folder / "ways"
        if not program.exists():
            source = self.folder / "ways.c"
            source.write_text(PROGRAM)
            subprocess.run(["gcc", "-g", "-O1", "-fno-optimize-sibling-calls", "-o", str(program), str(source)], check=True)
        for path in (self.there, self.go, self.after):
            path.unlink(missing_ok=True)
        return self.memlog_start(program, self.there, self.go, self.after, options=self.options(url, *options), env=env)

    def live_of(self, collector, guid):
        return collector.ask("report", guid=guid)["reports"][0]["live_bytes"]

    def stored(self, collector, count, team="default"):
        def is_there():
            figures = collector.figures(team)
            return figures["waiting"] == 0 and figures["stored"] >= count
        self.wait_for(f"{count} reports", is_there)
        return collector.figures(team)


class Forms(Case):
    def test_a_run_tells_the_same_in_every_form(self):
        inbox = self.folder / "inbox"
        inbox.mkdir()
        collector = self.collector(f"--folder=folder:{inbox}", tokens=TOKENS)
        at = f"127.0.0.1:{collector.port}"
        urls = {"report": f"http://{at}/", "s3": f"s3+http://{at}/bucket/some/prefix?region=eu-north-1", "push": f"pyroscope+http://{at}",
                "ingest": f"pyroscope-ingest+http://{at}/base", "otlp": f"otlp+http://{at}", "folder": str(inbox)}
        tops = {}
        for form in FORMS:
            token = self.folder / f"{form}.token"
            token.write_text(TOKENS[form]["write"] + "\n")
            env = self.environment(AWS_ACCESS_KEY_ID=form, AWS_SECRET_ACCESS_KEY=TOKENS[form]["write"])
            how = () if form in ("s3", "folder") else (f"--upload-token-file={token}",)
            self.send(urls[form], *how, "--memlog-keep-small-allocations", env=env)
            self.wait_for(f"the report by {form}", lambda form=form: collector.ask("top", team=form, program="ways")["dumps"] == 1)
            tops[form] = {metric: self.big(collector.ask("top", team=form, program="ways", metric=metric, limit=1000), f"{metric}_bytes")
                          for metric in ("live", "peak", "total")}
            (build,) = collector.ask("builds", team=form, program="ways")["builds"]
            self.assertRegex(build["build_id"], "^[0-9a-f]{40}$")
        self.assertEqual(len(tops["report"]["total"]), 512)
        self.assertEqual(sum(way % 3 != 0 for way in range(512)), len(tops["report"]["live"]))
        self.assertEqual(sum(tops["report"]["total"].values()), sum(70000 + 16 * way for way in range(512)))
        for form in FORMS:
            with self.subTest(form):
                for metric in ("live", "total"):
                    self.assertEqual(tops[form][metric], tops["report"][metric], metric)
        for form in ("s3", "folder"):
            self.assertEqual(tops[form]["peak"], tops["report"]["peak"])
        for form in FORMS:  # what a form does not carry is said to be missing
            has_peak = form in ("report", "s3", "folder")
            top = collector.ask("top", team=form, program="ways")
            self.assertEqual((top["dumps_without_peak"], top["dumps_without_total"]), (0 if has_peak else 1, 0), form)
            (report,) = collector.ask("reports", team=form)["reports"]
            self.assertEqual((report["peak_bytes"] is None, report["total_bytes"] is None), (not has_peak, False), form)
        for form in FORMS:
            self.assertEqual(collector.figures(form), {"waiting": 0, "stored": 1, "refused": 0}, form)
        (taken,) = (inbox / "taken").iterdir()
        self.assertEqual([path.name for path in inbox.iterdir()], ["taken"])
        self.assertRegex(taken.name, r"^memlog-[0-9a-f]{32}\.trace\.json\.gz$")

    def test_what_memlog_cost_and_who_sends_it_are_told_in_every_form(self):
        run = self.memlog(harness.PROGRAMS / "oracle" / "sampled", 1_500_000, 1, options=("-q", "--no-page", "--overhead=0.5%"), stdin=b"\n")
        self.assertEqual(run.code, 0, run.err)
        measured = [entry["overhead"] for entry in self.exit_report(run)["processes"] if entry["overhead"]["measured"]]
        cost = max(one["recording_ppm"] + one["passing_ppm"] for one in measured)
        dump = run.dumps()[-1]
        collector = self.collector()

        def send(form, *options):
            body = self.folder / f"{form}.body"
            words = ["upload", "--dry-run", f"--form={form}", "-o", body, *options, dump]
            subprocess.run([harness.MEMLOG, *words], env=self.environment(), capture_output=True, timeout=harness.TIMEOUT, check=True)
            guid = f"{form}{len(options)}"
            self.assertEqual(collector.send(body.read_bytes(), guid=guid), 200)
            collector.settle()
            (report,) = collector.ask("report", guid=guid)["reports"]
            return [report[name] for name in ("host", "version", "reason", "trigger", "promised_ppm", "cost_ppm")], body.read_bytes()

        for form in ("report", "trace", "pprof", "pyroscope", "pyroscope-ingest", "otlp"):
            with self.subTest(form):
                told, body = send(form, "--upload-host=web-1.example", "--upload-version=7.1")
                self.assertEqual(told, ["web-1.example", "7.1", "exit", "", 5000, cost])
                told, _ = send(form, "--upload-host=none")
                self.assertEqual(told, ["", "", "exit", "", 5000, cost])
                if form == "report":
                    self.assertIn(f'name="promised_ppm"\r\n\r\n5000\r\n'.encode(), body)
                    self.assertIn(f'name="cost_ppm"\r\n\r\n{cost}\r\n'.encode(), body)
                if form == "pprof":
                    self.assertIn(f"memlog: cost ppm {cost}".encode(), gzip.decompress(body))
        (build,) = collector.ask("builds", program="sampled")["builds"]
        self.assertEqual((build["mean_cost_ppm"], build["dumps_with_cost"], build["dumps_over_promise"]), (cost, 12, 12 * (cost > 5000)))

    def test_of_two_words_on_the_sender_the_first_counts_and_what_is_no_number_none(self):
        collector = self.collector()
        leak = [(STACK, MIB, MIB)]
        for guid, notes, told in (
                ("first", ("host a", "host b", "cost ppm 0", "cost ppm 900", "promised ppm 10000", "promised ppm 1", "trigger not complete"), ("a", 0, 10000, "not complete")),
                ("none", ("host", "cost ppm", "cost ppm -1", "cost ppm 1e3", "cost ppm 99999999999999999999", "promised ppm x"), ("", None, None, "")),
                ("most", ("cost ppm 9999999999999999999", "promised ppm 2000000"), ("", 1000000, 1000000, ""))):
            self.assertEqual(collector.send(collecting.pprof(leak, notes=[f"memlog: {note}" for note in notes]), guid=guid), 200)
            collector.settle()
            (report,) = collector.ask("report", guid=guid)["reports"]
            self.assertEqual((report["host"], report["cost_ppm"], report["promised_ppm"], report["trigger"]), told, guid)
            self.assertTrue(report["complete"], guid)  # whatever else a note says

    def big(self, top, figure):
        """Stacks above what a run differs by from another: its buffers."""
        return {tuple(map(str, stack["frames"])): stack[figure] for stack in top["stacks"] if stack[figure] >= MIB // 16}


    def test_what_is_too_large_is_pruned_harder_in_every_form(self):
        collector = self.collector("--max-bytes=5000")
        at = f"127.0.0.1:{collector.port}"
        token = self.folder / "token"
        token.write_text(16 * "w" + "\n")
        env = self.environment(AWS_ACCESS_KEY_ID="default", AWS_SECRET_ACCESS_KEY=16 * "w")
        urls = (f"s3+http://{at}/b", f"pyroscope+http://{at}", f"otlp+http://{at}")
        for number, url in enumerate(urls, 1):
            how = () if url.startswith("s3") else (f"--upload-token-file={token}",)
            said = self.send(url, *how, "--upload-max-bytes=20000", "--memlog-keep-small-allocations", env=env)
            with self.subTest(url):
                self.assertIn("too large for the server", said)
                self.assertEqual(self.stored(collector, number), {"waiting": 0, "stored": number, "refused": 0})


class Objects(Case):
    def test_a_forged_signature_an_old_one_and_another_body_are_refused(self):
        collector = self.collector()
        body = packed(trace([(STACK, 1000, 1000, 1000)]))
        now = datetime.datetime.now(datetime.timezone.utc)

        def put(**how):
            return self.s3(collector, "PUT", "/b/k.gz", body, **how)
        self.assertEqual(self.code_of(put(secret=16 * "x")), (403, "SignatureDoesNotMatch"))
        self.assertEqual(self.code_of(put(secret=16 * "r")), (403, "SignatureDoesNotMatch"))  # reads, no more
        self.assertEqual(self.code_of(put(key="nobody")), (403, "InvalidAccessKeyId"))
        for minutes in (-16, 16):
            self.assertEqual(self.code_of(put(when=now + datetime.timedelta(minutes=minutes))), (403, "RequestTimeTooSkewed"))
        self.assertEqual(self.code_of(put(told=hashlib.sha256(b"other").hexdigest())), (400, "XAmzContentSHA256Mismatch"))
        for told in ("UNSIGNED-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"):
            self.assertEqual(self.code_of(put(told=told)), (501, "NotImplemented"))
        headers = signed("PUT", "/b/k.gz", body, "default", 16 * "w", host=f"127.0.0.1:{collector.port}")
        self.assertEqual(self.code_of(collector.request("PUT", "/b/other.gz", body, **headers)), (403, "SignatureDoesNotMatch"))
        self.assertEqual(self.code_of(collector.request("PUT", "/b/k.gz?x-id=PutObject", body, **headers)), (403, "SignatureDoesNotMatch"))
        for wrong in ("AWS4-HMAC-SHA256 ", "AWS4-HMAC-SHA256 Credential=/////", "AWS4-HMAC-SHA256 " + "Credential=a" * 500):
            self.assertEqual(self.code_of(collector.request("PUT", "/b/k", body, **{**headers, "Authorization": wrong})),
                             (403, "AuthorizationHeaderMalformed"))
        for header in ("host", "x-amz-date", "x-amz-content-sha256"):
            unsigned = headers["Authorization"].replace(f"{header};", "").replace(f";{header}", "")
            self.assertEqual(self.code_of(collector.request("PUT", "/b/k.gz", body, **{**headers, "Authorization": unsigned})),
                             (403, "AccessDenied"))
        self.assertEqual(self.code_of(self.s3(collector, "GET", "/b/k.gz")), (405, "MethodNotAllowed"))
        self.assertEqual(collector.figures(), {"waiting": 0, "stored": 0, "refused": 0})
        # The same request once more, as who has overheard it sends it: one report.
        for _ in range(2):
            self.assertEqual(collector.request("PUT", "/b/k.gz", body, **headers)[0], 200)
        self.assertEqual(self.stored(collector, 1), {"waiting": 0, "stored": 1, "refused": 0})

    def test_curl_is_a_client(self):
        collector = self.collector()
        body = self.folder / "body.gz"
        body.write_bytes(packed(trace([(STACK, 7000, 7000, 7000)])))
        digest = hashlib.sha256(body.read_bytes()).hexdigest()

        def curl(user):
            return subprocess.run(
                ["curl", "--silent", "--write-out", "%{http_code}", "--aws-sigv4", "aws:amz:eu-north-1:s3", "--user", user,
                 "-H", f"x-amz-content-sha256: {digest}", "-T", str(body), f"http://127.0.0.1:{collector.port}/bucket/a/b%20c.gz"],
                capture_output=True, text=True, check=True, timeout=harness.TIMEOUT).stdout
        self.assertTrue(curl("default:" + 16 * "x").endswith("403"))
        self.assertEqual(curl("default:" + 16 * "w"), "200")
        self.stored(collector, 1)
        self.assertEqual(collector.ask("top", program="prog")["stacks"][0]["live_bytes"], 7000)

    def test_by_https_a_body_need_not_be_hashed(self):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=c", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", "key.pem", "-out", "cert.pem"], check=True, capture_output=True, cwd=self.folder)
        collector = collecting.Collector(
            self.folder, f"--tls-cert={self.folder}/cert.pem", f"--tls-key={self.folder}/key.pem", environment=self.environment())
        self.addCleanup(lambda: collector.process and collector.process.poll() is None and collector.stop(signal.SIGKILL))
        collector.tls = ssl.create_default_context(cafile=str(self.folder / "cert.pem"))
        collector.start()
        body = packed(trace([(STACK, 1000, 1000, 1000)]))
        self.assertEqual(self.s3(collector, "PUT", "/b/k.gz", body, told="UNSIGNED-PAYLOAD")[0], 200)
        self.assertEqual(self.code_of(self.s3(collector, "PUT", "/b/k.gz", body, told="UNSIGNED-PAYLOAD", secret="x")), (403, "SignatureDoesNotMatch"))
        self.assertEqual(self.stored(collector, 1), {"waiting": 0, "stored": 1, "refused": 0})

    def parts_of(self, collector, target, parts):
        status, _, text = self.s3(collector, "POST", target + "?uploads")
        self.assertEqual(status, 200)
        name = xml.etree.ElementTree.fromstring(text).findtext("UploadId")
        etags = []
        for number, part in enumerate(parts, 1):
            status, headers, _ = self.s3(collector, "PUT", f"{target}?partNumber={number}&uploadId={name}", part)
            self.assertEqual(status, 200)
            etags.append(headers["ETag"])
        return name, etags

    def listed(self, etags):
        rows = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>" for number, etag in etags)
        return f"<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>".encode()

    def test_an_object_comes_in_parts(self):
        collector = self.collector("--max-bytes=64K")
        body = packed(trace([((*STACK, os.urandom(20).hex()), 900, 900, 900) for _ in range(400)]))
        parts = [body[at:at + 9000] for at in range(0, len(body), 9000)]
        target = f"/b/memlog-{32 * 'c'}.trace.json.gz"
        name, etags = self.parts_of(collector, target, parts)
        status, headers, _ = self.s3(collector, "PUT", f"{target}?partNumber=1&uploadId={name}", parts[0])  # replayed
        self.assertEqual((status, headers["ETag"]), (200, etags[0]))
        join = f"{target}?uploadId={name}"
        whole = list(enumerate(etags, 1))
        for wrong, said in ((b"", "MalformedXML"), (b"<Part>", "MalformedXML"), (b"<a" * 5000, "MalformedXML"),
                            (self.listed(whole[::-1]), "InvalidPartOrder"), (self.listed([*whole[:-1], (len(whole), '"x"')]), "InvalidPart"),
                            (self.listed([("9" * 7, etags[0])]), "MalformedXML"), (self.listed([("../1", etags[0])]), "MalformedXML")):
            self.assertEqual(self.code_of(self.s3(collector, "POST", join, wrong)), (400, said))
        self.assertEqual(self.code_of(self.s3(collector, "POST", join, self.listed([*whole, (len(whole) + 1, etags[0])]))), (404, "NoSuchUpload"))
        big = os.urandom(64 << 10)
        self.assertEqual(self.code_of(self.s3(collector, "PUT", f"{target}?partNumber=99&uploadId={name}", big)), (413, "EntityTooLarge"))
        for other in (f"/b/x?partNumber=1&uploadId={name}", f"{target}?partNumber=1&uploadId={'0' * 32}", f"{target}?partNumber=1&uploadId=..%2F.."):
            self.assertEqual(self.code_of(self.s3(collector, "PUT", other, b"x")), (404, "NoSuchUpload"))
        self.assertEqual(self.code_of(self.s3(collector, "PUT", f"{target}?partNumber=0&uploadId={name}", b"x")), (400, "InvalidArgument"))
        collector.stop(signal.SIGKILL)
        collector.start()
        status, _, text = self.s3(collector, "POST", join, self.listed(whole))
        self.assertEqual((status, b"<Error" in text), (200, False))
        # Its answer was lost, and all is sent once more.
        self.assertEqual(self.code_of(self.s3(collector, "POST", join, self.listed(whole))), (404, "NoSuchUpload"))
        name, etags = self.parts_of(collector, target, parts)
        self.assertEqual(self.s3(collector, "POST", f"{target}?uploadId={name}", self.listed(enumerate(etags, 1)))[0], 200)
        self.assertEqual(self.stored(collector, 1), {"waiting": 0, "stored": 1, "refused": 0})
        self.assertEqual(self.live_of(collector, 32 * "c"), 400 * 900)
        name, _ = self.parts_of(collector, target, parts[:1])
        self.assertEqual(self.s3(collector, "DELETE", f"{target}?uploadId={name}")[0], 204)
        self.assertEqual(self.code_of(self.s3(collector, "DELETE", f"{target}?uploadId={name}")), (404, "NoSuchUpload"))
        self.assertEqual(list((collector.folder / "fleet.db.spool" / "parts").iterdir()), [])

    def test_parts_count_in_the_teams_room(self):
        """Over a restart, too; a part that is sent again counts once, and what is abandoned or joined leaves it."""
        collector = self.collector("--team-bytes=100K")

        def begin(key):
            _, _, told = self.s3(collector, "POST", f"/bucket/{key}?uploads=")
            return f"/bucket/{key}?partNumber={{}}&uploadId={xml.etree.ElementTree.fromstring(told).findtext('UploadId')}"

        def put(where, number, body):
            return self.s3(collector, "PUT", where.format(number), body)

        def used():
            _, _, text = collector.request("GET", "/metrics", token=collector.tokens["default"]["read"])
            return int(text.decode().split("\nmemlog_collect_spool_bytes ")[1].split()[0])
        whole = packed(trace([(STACK, MIB, 0, 0)]))
        piece = os.urandom(40 << 10)
        first, other = begin("a"), begin("b")
        self.assertEqual([put(first, number, piece)[0] for number in (1, 2, 3)], [200, 200, 503])
        self.assertEqual((used(), put(other, 1, piece)[0], collector.send(piece, guid="x")), (80 << 10, 503, 507))
        collector.stop()
        collector.start()
        self.assertEqual((used(), put(other, 1, piece)[0]), (80 << 10, 503))
        self.assertEqual(put(first, 1, piece[:10])[0], 200)  # in its place
        self.assertEqual(used(), (40 << 10) + 10)
        self.assertEqual(put(other, 1, piece)[0], 200)
        self.assertEqual(self.s3(collector, "DELETE", first.replace("partNumber={}&", ""))[0], 204)
        self.assertEqual(used(), 40 << 10)
        answer = put(other, 1, whole)
        self.assertEqual((answer[0], used()), (200, len(whole)))
        listed = self.listed([(1, answer[1]["ETag"])])
        filler = begin("c")
        left = (100 << 10) - used()
        self.assertEqual((put(filler, 1, os.urandom(left + 1))[0], put(filler, 1, os.urandom(left))[0]), (503, 200))
        self.assertEqual(self.s3(collector, "POST", other.replace("partNumber={}&", ""), listed)[0], 200)  # to the last byte
        self.stored(collector, 1)
        self.assertEqual(used(), 100 << 10)

    def test_memlog_sends_a_large_one_in_parts(self):
        collector = self.collector("--max-bytes=64M")
        url = f"s3+http://127.0.0.1:{collector.port}/b"
        self.spool.mkdir(mode=0o700)
        name = os.urandom(16).hex()
        body = packed(trace([(STACK, 1000, 1000, 1000)])) + os.urandom(MIB) * 20  # behind its end nothing is read
        (self.spool / f"{name}.body").write_bytes(body)
        (self.spool / f"{name}.job").write_text(
            f"memlog-upload 1\ntarget {url}\ndump /nowhere/0001.threshold.pftrace\ntries 0\nharder 0\nnext_ms 0\n")
        self.later(url, env=self.environment(AWS_ACCESS_KEY_ID="default", AWS_SECRET_ACCESS_KEY=16 * "w"))
        self.stored(collector, 1)
        self.assertEqual(self.live_of(collector, name), 1000)
        (kept,) = (path for path in (collector.folder / "fleet.db.spool" / "bodies").rglob("*") if path.is_file())
        self.assertEqual(hashlib.sha256(kept.read_bytes()).digest(), hashlib.sha256(body).digest())


class Posts(Case):
    def push_body(self):
        return json.dumps({"series": [{"labels": [], "samples": [{"ID": "x", "rawProfile": base64.b64encode(b"\x32\0").decode()}]}]}).encode()

    def test_each_form_is_answered_in_its_own_words(self):
        collector = self.collector()
        json_type = {"Content_Type": "application/json"}
        status, headers, body = collector.request("POST", PUSH, self.push_body(), 16 * "w", **json_type)
        self.assertEqual((status, headers["Content-Type"], body), (200, "application/json", b"{}"))
        self.assertEqual(collector.request("POST", PUSH, b"\x0a\0", 16 * "w", Content_Type="application/proto")[2], b"")
        for token, status, code in (("wrong", 401, "unauthenticated"), (16 * "r", 403, "permission_denied")):
            got, headers, body = collector.request("POST", PUSH, b"{}", token, **json_type)
            self.assertEqual((got, headers["Content-Type"], json.loads(body)["code"]), (status, "application/json", code))
        got, _, body = collector.request("POST", PUSH, b"{}", 16 * "w", Content_Encoding="zstd")
        self.assertEqual((got, json.loads(body)["code"]), (415, "unimplemented"))
        otlp = "/v1development/profiles"
        status, headers, body = collector.request("POST", otlp, gzip.compress(b"\x12\0"), 16 * "w", Content_Type="application/x-protobuf")
        self.assertEqual((status, headers["Content-Type"], body), (200, "application/x-protobuf", b""))
        status, headers, body = collector.request("POST", otlp, b"\x12\0", "wrong", Content_Type="application/x-protobuf")
        self.assertEqual((status, headers["Content-Type"], body[:3]), (401, "application/x-protobuf", b"\x08\x10\x12"))
        self.assertEqual(json.loads(collector.request("POST", otlp, b"{}", None, **json_type)[2])["code"], 16)
        basic = {"Authorization": "Basic " + base64.b64encode(b"anybody:" + 16 * b"w").decode()}
        self.assertEqual(collector.request("POST", "/ingest?name=x", b"--b\r\n", None, **basic)[0], 200)
        for wrong in ("Basic ?", "Basic " + base64.b64encode(b"no colon").decode(), "Basic " + "QUFB" * 500, "Basic"):
            self.assertEqual(collector.request("POST", "/ingest?name=x", b"x", None, Authorization=wrong)[0], 401)

    def test_hostile_bodies_are_refused_with_a_reason_and_harm_nobody(self):
        collector = self.collector()
        bodies = [b'{"series":' + b"[" * 5000, b'{"series":[{"samples":[{"rawProfile":"' + b"A" * 5000, b"\x0a\xff\xff\xff\xff\x0f",
                  b"\x32\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", gzip.compress(b"\x12" + b"\xff" * 9 + b"\x01"), b"--b\r\n" * 3, b"\x0b" * 99,
                  gzip.compress(b"\x32\0" * 2_000_000), gzip.compress(b"\x0a\0" * 2_000_000)]
        for number, body in enumerate(bodies):
            self.assertEqual(collector.send(body, path=(PUSH, "/ingest", "/v1development/profiles")[number % 3]), 200)
        self.assertEqual(collector.send(trace([(STACK, 5, 5, 5)]), path="/ingest"), 200)
        self.assertEqual(collector.settle(), {"waiting": 0, "stored": 1, "refused": len(bodies)})

    def test_a_body_that_is_cut_leaves_nothing_and_a_lost_answer_counts_once(self):
        collector = self.collector()
        body = self.push_body()
        head = (f"POST {PUSH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {16 * 'w'}\r\nContent-Type: application/json\r\n"
                f"Idempotency-Key: once\r\nContent-Length: {len(body)}\r\n\r\n").encode()
        with socket.create_connection(("127.0.0.1", collector.port)) as one:
            one.sendall(head + body[:-1])
        with socket.create_connection(("127.0.0.1", collector.port)) as one:
            one.sendall(head + body)  # and nobody reads the answer
            one.shutdown(socket.SHUT_WR)
            one.settimeout(harness.TIMEOUT)
            self.assertIn(b"200", one.recv(100))
        for _ in range(2):
            self.assertEqual(collector.request("POST", PUSH, body, 16 * "w", Idempotency_Key="once")[0], 200)
        self.assertEqual(collector.request("POST", PUSH, body + b" ", 16 * "w", Idempotency_Key="once", Content_Type="application/json")[0], 409)
        self.assertEqual(sum(collector.settle().values()), 1)


class Folders(Case):
    def test_what_is_put_into_a_folder_is_taken_once_when_it_is_whole(self):
        inbox = self.folder / "inbox"
        inbox.mkdir()
        outside = self.folder / "outside.gz"
        outside.write_bytes(packed(trace([(STACK, 1, 1, 1)])))
        (inbox / f"memlog-{32 * 'd'}.trace.json.gz").symlink_to(outside)
        (inbox / "linked.gz").hardlink_to(outside)
        os.mkfifo(inbox / f"memlog-{32 * 'e'}.trace.json.gz")
        (inbox / f".memlog-{32 * 'a'}.part").write_bytes(b"not yet")
        (inbox / f"memlog-{32 * 'f'}.trace.json.gz").mkdir()
        (inbox / f"memlog-{32 * '0'}.trace.json.gz").touch()
        collector = self.collector(f"--folder={inbox}")
        name = f"memlog-{32 * 'a'}.trace.json.gz"
        (inbox / f".memlog-{32 * 'a'}.part").write_bytes(packed(trace([(STACK, 300, 300, 300)])))
        (inbox / f".memlog-{32 * 'a'}.part").rename(inbox / name)
        other = inbox / "somebody's.json.gz"  # grows for a while
        body = packed(trace([(STACK, 400, 400, 400)]))
        other.write_bytes(body[:50])
        self.stored(collector, 1)
        with open(other, "ab") as file:
            file.write(body[50:])
        self.stored(collector, 2)
        self.assertEqual(collector.ask("top", program="prog")["stacks"][0]["live_bytes"], 700)
        self.assertEqual(sorted(path.name for path in (inbox / "taken").iterdir()), sorted([name, other.name]))
        self.assertEqual([path.name for path in (inbox / "refused").iterdir()], [f"memlog-{32 * '0'}.trace.json.gz"])
        for stays in ("linked.gz", *(f"memlog-{32 * letter}.trace.json.gz" for letter in "def")):
            self.assertTrue(os.path.lexists(inbox / stays), stays)
        # A collector that died between its ledger and the move finds the file again.
        collector.stop(signal.SIGKILL)
        (inbox / "taken" / name).rename(inbox / name)
        collector.start()
        self.wait_for("the move", lambda: (inbox / "taken" / name).exists())
        (inbox / name).write_bytes(packed(trace([(STACK, 301, 300, 300)])))
        self.wait_for("the refusal", lambda: (inbox / "refused" / name).exists())
        self.assertEqual(collector.settle(), {"waiting": 0, "stored": 2, "refused": 0})
        self.assertIn("refused", collector.said())

    def test_killed_at_any_moment_each_file_counts_once(self):
        inbox = self.folder / "inbox"
        inbox.mkdir()
        collector = self.collector(f"--folder={inbox}")
        chance, put = random.Random(3), []
        for turn in range(6):
            for _ in range(15):
                put.append(f"memlog-{len(put):032x}.trace.json.gz")
                part = inbox / f".{put[-1]}.part"
                part.write_bytes(packed(trace([(STACK, 1 << chance.randrange(10), 1, 1)], host=f"h{len(put)}")))
                part.rename(inbox / put[-1])
            self.wait_for("some to be taken", lambda turn=turn: len(self.taken(inbox)) > 15 * turn + chance.randrange(15) - 15)
            collector.stop(signal.SIGKILL)
            if chance.randrange(2) and self.taken(inbox):  # it had not come to the move
                again = chance.choice(self.taken(inbox))
                (inbox / "taken" / again).rename(inbox / again)
            collector.start()
        self.wait_for("all to be taken", lambda: self.taken(inbox) == put)
        self.assertEqual(self.stored(collector, len(put)), {"waiting": 0, "stored": len(put), "refused": 0})
        sums = sum(json.loads(gzip.decompress((inbox / "taken" / name).read_bytes()))["traceEvents"][1]["args"]["dumps"]["heaps_v2"][
            "allocators"]["malloc"]["sizes"][0] for name in put)
        self.assertEqual(collector.ask("top", program="prog")["stacks"][0]["live_bytes"], sums)

    def taken(self, inbox):
        return sorted(path.name for path in (inbox / "taken").glob("memlog-*"))

    def test_a_folder_that_is_none_stops_it(self):
        for option, said in ((f"--folder={self.folder}/none", "No such file"), ("--folder=team:", "TEAM:DIR")):
            collector = collecting.Collector(self.folder, option, environment=self.environment())
            with self.assertRaisesRegex(AssertionError, said):
                collector.start()


if __name__ == "__main__":
    unittest.main()
