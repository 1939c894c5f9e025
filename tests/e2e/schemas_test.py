"""docs/schemas: every JSON that memlog writes is as a schema says, and none has a member that its schema does not describe."""
import copy
import json
import re
import subprocess
import unittest

import browsing
import harness

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMAS = harness.ROOT / "docs" / "schemas"
ANALYZER = harness.OUT / "memlog-analyzer"
# Every command that has --json, and its schema.
COMMANDS = {
    "memlog": {"report": "report", "components": "components", "diff": "diff", "timeline": "timeline", "suspects": "suspects", "ps": "ps",
               "start": "control", "stop": "control", "rate": "control", "env": "env", "doctor": "doctor", "fleet": "fleet"},
    "memlog-analyzer": {"report": "report", "components": "components", "diff": "diff", "timeline": "timeline", "suspects": "suspects", "entries": "entries"},
}
OTHERS = {"leaks", "page", "fleet_watch"}  # memlog diff --leaks, HTTP, and a webhook: fleet_watch_test.py
BY = ("function", "module", "thread", "size", "process", "type", "heap", "scope", "file", "line")
PROGRAM = """
import subprocess
kept = [bytes(1000) for _ in range(1000)]
subprocess.run(["/bin/true"])
print("ready", flush=True)
input()
"""
LINES = 5


def read(name):
    return json.loads((SCHEMAS / f"{name}.json").read_text())


def objects(schema, path=""):
    """Every schema of an object inside of it, and where."""
    if isinstance(schema, dict):
        if "properties" in schema and schema.get("type") == "object":
            yield path, schema
        for key, value in schema.items():
            yield from objects(value, f"{path}/{key}")


def whole(name):
    """A schema with what it refers to in report.json, and without leave to have other members than those that it describes."""
    schema = json.loads((SCHEMAS / f"{name}.json").read_text().replace('"report.json#/$defs/', '"#/$defs/report '))
    definitions = json.loads(json.dumps(read("report")["$defs"]).replace('"#/$defs/', '"#/$defs/report '))
    schema["$defs"] = {**schema.get("$defs", {}), **{f"report {key}": value for key, value in definitions.items()}}
    for _, one in objects(schema):
        one["additionalProperties"] = False
    return schema


def validator(name, definition=None):
    schema = whole(name)
    if definition:
        schema = {"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]}
    return jsonschema.Draft202012Validator(schema)


class Described(unittest.TestCase):
    def test_every_command_with_json_has_a_schema(self):
        for program, schemas in COMMANDS.items():
            run = lambda *words: harness.run_words([str(harness.OUT / program), *words], "/", None, b"", harness.TIMEOUT).stdout.decode()
            commands = re.findall(r"^  ([a-z-]+)  ", run("--help"), re.M)
            self.assertGreater(len(commands), 10)
            self.assertEqual({name for name in commands if re.search(r"^  --json\b", run(name, "--help"), re.M)}, set(schemas), program)
        used = {name for schemas in COMMANDS.values() for name in schemas.values()} | OTHERS
        self.assertEqual({path.stem for path in SCHEMAS.glob("*.json")}, used)
        guide = (harness.ROOT / "docs" / "api.md").read_text()
        self.assertEqual([name for name in sorted(used) if f"(schemas/{name}.json)" not in guide], [], "docs/api.md leads to them")

    def test_every_member_is_described(self):
        for path in sorted(SCHEMAS.glob("*.json")):
            if jsonschema:
                jsonschema.Draft202012Validator.check_schema(read(path.stem))
            for where, schema in objects(read(path.stem)):
                self.assertEqual([name for name, one in schema["properties"].items() if "description" not in one], [], f"{path.name}{where}")
                self.assertLessEqual(set(schema.get("required", [])), set(schema["properties"]), f"{path.name}{where}")


@unittest.skipUnless(jsonschema, "needs python3-jsonschema")
class Schemas(browsing.Case):
    @classmethod
    def setUpClass(cls):
        cls.validators = {name: validator(name) for name in {path.stem for path in SCHEMAS.glob("*.json")} - {"page"}}

    def say(self, *words, program=harness.MEMLOG, code=0):
        answer = harness.run_words([str(program), *map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, code, answer.stderr)
        return answer.stdout

    def hold(self, one, told, what):
        self.assertEqual([f"{list(error.absolute_path)}: {error.message[:200]}" for error in one.iter_errors(told)][:LINES], [], what)
        return told

    def valid(self, name, *words, **how):
        return self.hold(self.validators[name], json.loads(self.say(*words, **how)), words)

    def hold_dumps(self, earlier, later):
        """All that is said of a dump and of two; the last report."""
        for dump in {earlier, later}:
            told = self.valid("report", "report", "--json", "--limit=10", dump)
        for by in BY:
            self.assertEqual(self.valid("report", "report", "--json", f"--by={by}", "--limit=3", later)["by"], by)
        self.valid("timeline", "timeline", "--json", "--limit=3", later)
        self.valid("diff", "diff", "--json", "--limit=10", earlier, later)
        self.valid("leaks", "diff", "--leaks", "--limit=10", later)
        (self.folder / "known").write_text("leak:^main$\nleak:libc.so*\nleak:^none$\n")
        known = f"--suppressions={self.folder / 'known'}"
        self.assertIn("suppressed", self.valid("report", "report", "--json", known, later)["dump"])
        self.assertIn("suppressed", self.valid("diff", "diff", "--json", known, earlier, later)["to"]["dump"])
        return told

    def dumps(self, *options):
        """One while it runs, with the memory of its processes, and one of its end."""
        process = self.memlog_ready("/usr/bin/python3", "-c", PROGRAM, options=("-q", "--no-page", *options))
        self.say("dump")
        self.go(process)
        process.wait(harness.TIMEOUT)
        return sorted(process.memlog_folder.glob("*.pftrace"))

    def test_dumps_are_as_the_schemas_say(self):
        for options in ((), ("--memlog-sampling-rate=4096",)):
            running, ended = self.dumps(*options)
            told = self.hold_dumps(running, ended)
            self.assertTrue(told["processes"])
            self.valid("components", "components", "--json", running)
            self.assertTrue(self.valid("suspects", "suspects", "--json", ended)["processes"])
            self.assertIsNotNone(self.valid("report", "report", "--json", "--limit=1", running)["processes"][0]["memory"])
        self.breaks(self.validators["report"], told)

    def test_heaps_and_types_are_as_the_schemas_say(self):
        (dump,) = self.memlog(harness.PROGRAMS / "oracle" / "heaps", 200, 1, 64).dumps()
        told = self.hold_dumps(dump, dump)
        self.assertEqual([heap["name"] for heap in told["processes"][0]["heaps"]], ["malloc", "pool", "handles"])
        self.assertIn("registered", {stack["type_known_by"] for stack in told["processes"][0]["stacks"]})
        self.assertTrue(self.valid("diff", "diff", "--json", dump, dump)["types"])

    def test_a_dump_of_nothing_is_as_the_schemas_say(self):
        (dump,) = self.memlog("/bin/true", options=("-q", "--no-page", "--memlog=manual")).dumps()
        self.valid("report", "convert", "--to=json", dump)
        told = self.hold_dumps(dump, dump)
        self.assertFalse(any(one["recorded"] for one in told["processes"]))

    def test_a_running_memlog_answers_as_the_schemas_say(self):
        process, page = self.open_page("/usr/bin/python3", "-c", PROGRAM, stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        told = self.valid("ps", "ps", "--json")
        pid = told["processes"][0]["pid"]
        self.valid("env", "env", "--json")
        self.valid("control", "rate", "--json", "--memlog-sampling-rate=8192", pid)
        self.valid("control", "stop", "--json", pid)
        self.valid("control", "start", "--json", pid)
        self.hold_page(page, pid)

    def hold_page(self, page, pid):
        def ask(definition, path, method="GET", name="page"):
            return self.hold(validator(name, definition), page.ask(f"/api/v1/{path}", method).json(), path)

        ask("session", "session")
        ask("processes", "processes")
        made = ask("dump", "dumps", "POST")
        ask("dumps", "dumps")
        ask("uploads", "uploads")
        ask("profile", "profile")
        ask("profile", f"diff?from={made['id']}")
        ask("memory", "memory")
        ask("history", "memory/history")
        ask("history", f"memory/history?pid={pid}")
        self.hold(validator("page", "event"), self.first_event(page), "events")
        ask("controlled", f"processes/{pid}/stop", "POST")
        ask("error", "processes/1/stop", "POST")
        ask(None, "timeline", name="timeline")
        ask(None, "suspects", name="suspects")
        ask(None, f"suspects?dump={made['id']}", name="suspects")
        ask(None, f"processes?dump={made['id']}", name="report")

    def first_event(self, page):
        with page.connect() as peer:
            peer.sendall(f"GET /api/v1/events?token={page.token} HTTP/1.1\r\nHost: {page.host}\r\n\r\n".encode())
            got = b""
            while not (found := re.search(rb"^data: (.*)\n\n", browsing.dechunk(got.partition(b"\r\n\r\n")[2]), re.M)):
                piece = peer.recv(1 << 20)
                self.assertTrue(piece, got[-500:])
                got += piece
        return json.loads(found[1])

    def test_doctor_and_entries_are_as_the_schemas_say(self):
        self.valid("doctor", "doctor", "--json")
        for program in ("inside_refused", "heaps"):
            self.valid("entries", "entries", "--json", harness.PROGRAMS / "oracle" / program, program=ANALYZER)

    def breaks(self, one, told):
        """The schema is not one that takes anything."""
        for change in (lambda it: it.pop("tree"), lambda it: it["tree"].update(live_bytes="1"), lambda it: it["processes"][0].update(state="asleep"),
                       lambda it: it["processes"][0]["stacks"][0]["frames"][0].pop("function"), lambda it: it["dump"].update(time="today"),
                       lambda it: it["processes"][0]["coverage"].update(news=1)):
            wrong = copy.deepcopy(told)
            change(wrong)
            self.assertFalse(one.is_valid(wrong))


if __name__ == "__main__":
    unittest.main(verbosity=2)
