"""The options of every sub-command, as its table tells them: help names each, a bad value is named with what is accepted, and a size is a size for all."""
import json
import subprocess
import unittest

import harness

SIZES = (("16KiB", "16K", "16k", "16KB", "16kb", "16384", "16384B"), ("16MiB", "16M", "16m", "16MB", "16mib", "16777216"))
TIMES = (("90", "90s", "1.5m", "1.5min"), ("7200", "2h", "120m"), ("1d", "24h"))
BAD = {
    "word": ("xyzzy",),
    "size": ("", "x", "-1", "1X", "16KX", "1.5M", "16 K", "99999999999G"),
    "count": ("x", "-1", "1K", "1.5", "99999999999"),
    "duration": ("x", "-1", "5x", "1.5", "99999999d"),
    "time": ("", "yesterday", "+5x", "25:00", "@x"),
    "path": ("",),
    "regex": ("[", "("),
}


def say(*words):
    return subprocess.run([str(harness.MEMLOG), *words], capture_output=True, text=True, check=False, timeout=harness.TIMEOUT)


def tables():
    """Every sub-command of memlog, as (words in front of its options, its table)."""
    lines = say("help", "--dump-options").stdout.splitlines()
    for table in map(json.loads, lines):
        if table["program"] == "memlog":
            front = ["upload", "--dry-run"] if table["usage"].startswith("--dry-run") else [table["command"]]
            yield front, table


class Options(unittest.TestCase):
    def each(self, *kinds):
        for front, table in tables():
            for option in table["options"]:
                if option["kind"] in kinds:
                    yield front, option

    def test_every_command_has_a_table_and_the_list_of_all_says_of_it_what_the_table_says(self):
        overview = say("help").stdout
        names = []
        for front, table in tables():
            if front != ["upload", "--dry-run"]:
                self.assertIn(f"  {table['command']:11} {table['summary']}\n", overview)
                names.append(table["command"])
        self.assertEqual(sorted(names), sorted(line.split()[0] for line in overview.splitlines() if line.startswith("  ") and not line.startswith("  memlog")))

    def test_help_names_each_option_in_80_columns(self):
        for front, table in tables():
            if front == ["help"]:
                continue  # its help is the list of all
            with self.subTest(command=front):
                answer = say(*front, "--help")
                self.assertEqual((answer.returncode, answer.stderr), (0, ""))
                self.assertEqual(answer.stdout, say(*front, "-h").stdout)
                for option in table["options"]:
                    name = f"{option['short']}, {option['name']}" if "short" in option else option["name"]
                    self.assertRegex(answer.stdout, rf"(?m)^  {name}([ =\[]|$)")
                self.assertEqual([line for line in answer.stdout.splitlines() if len(line) > 80], [])
                self.assertIn("\nExample:\n  ", answer.stdout)

    def test_a_bad_value_is_named_with_its_option_and_what_is_accepted(self):
        tried = 0
        for front, option in self.each(*BAD):
            for value in BAD[option["kind"]]:
                with self.subTest(command=front, option=option["name"], value=value):
                    answer = say(*front, f"{option['name']}={value}", "--help")
                    self.assertEqual((answer.returncode, answer.stdout), (2, ""))
                    self.assertIn(f"{option['name']}={value}: ", answer.stderr)
                    self.assertIn("no regular expression" if option["kind"] == "regex" else option["accepts"], answer.stderr)
                    tried += 1
        self.assertGreater(tried, 200)

    def test_a_value_that_is_missing_or_too_much_is_named(self):
        for front, option in self.each("flag"):
            if front == ["help"]:
                continue
            answer = say(*front, f"{option['name']}=1")
            self.assertEqual((answer.returncode, answer.stdout), (2, ""))
            self.assertIn(f"{option['name']} takes no value", answer.stderr)
        for front, option in self.each(*BAD, "text"):
            if not option["value_optional"]:
                answer = say(*front, option["name"])
                self.assertEqual((answer.returncode, answer.stdout), (2, ""))
                self.assertIn(f"{option['name']} needs a value: {option['accepts']}", answer.stderr)

    def answers(self, kind, groups):
        """What options say to each spelling: the same to all of a group."""
        accepted = 0
        for front, option in self.each(kind):
            for group in groups:
                codes = {say(*front, option["name"], value, "--help").returncode for value in group}
                self.assertEqual(len(codes), 1, (front, option["name"], group))
                accepted += codes == {0}
        return accepted

    def test_a_size_is_a_size_for_every_command(self):
        self.assertGreater(self.answers("size", SIZES), 12)

    def test_a_time_is_a_time_for_every_command(self):
        self.assertEqual(self.answers("duration", TIMES), 24)


if __name__ == "__main__":
    unittest.main()
