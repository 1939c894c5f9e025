"""docs/schemas: what memlog report, components and suspects write as JSON is as the schemas say, exact, sampled, running and ended."""
import copy
import json
import unittest

import harness

try:
    import jsonschema
except ImportError:
    jsonschema = None

SCHEMAS = harness.ROOT / "docs" / "schemas"
PROGRAM = """
import subprocess
kept = [bytes(1000) for _ in range(1000)]
subprocess.run(["/bin/true"])
print("ready", flush=True)
input()
"""


@unittest.skipUnless(jsonschema, "needs python3-jsonschema")
class Schemas(harness.Case):
    def schema(self, name):
        schema = json.loads((SCHEMAS / f"{name}.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        return jsonschema.Draft202012Validator(schema)

    def say(self, *words):
        answer = harness.run_words([str(harness.MEMLOG), *map(str, words)], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return answer.stdout

    def valid(self, validator, *words):
        told = json.loads(self.say(*words))
        self.assertEqual([f"{list(error.absolute_path)}: {error.message[:200]}" for error in validator.iter_errors(told)][:5], [], words)
        return told

    def dumps(self, *options):
        """One while it runs, with the memory of its processes, and one of its end."""
        process = self.memlog_ready("/usr/bin/python3", "-c", PROGRAM, options=("-q", "--no-page", *options))
        self.say("dump")
        self.go(process)
        process.wait(harness.TIMEOUT)
        return sorted(process.memlog_folder.glob("*.pftrace"))

    def test_reports_and_components_are_as_the_schemas_say(self):
        report, components, suspects = map(self.schema, ("report", "components", "suspects"))
        for options in ((), ("--memlog-sampling-rate=4096",)):
            running, ended = self.dumps(*options)
            for dump in (running, ended):
                told = self.valid(report, "report", "--json", "--limit=50", dump)
                self.assertTrue(told["processes"])
                self.valid(suspects, "suspects", "--json", dump)
                for by in ("function", "type", "heap"):
                    self.valid(report, "report", "--json", f"--by={by}", "--limit=5", dump)
            self.valid(components, "components", "--json", running)
            self.assertIsNotNone(json.loads(self.say("report", "--json", "--limit=1", running))["processes"][0]["memory"])
        self.breaks(report, told)

    def breaks(self, validator, told):
        """The schema is not one that takes anything."""
        for change in (lambda one: one.pop("tree"), lambda one: one["tree"].update(live_bytes="1"), lambda one: one["processes"][0].update(state="asleep"),
                       lambda one: one["processes"][0]["stacks"][0]["frames"][0].pop("function"), lambda one: one["dump"].update(time="today")):
            wrong = copy.deepcopy(told)
            change(wrong)
            self.assertFalse(validator.is_valid(wrong))


if __name__ == "__main__":
    unittest.main(verbosity=2)
