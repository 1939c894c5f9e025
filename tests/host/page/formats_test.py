"""The forms of a dump stand in four lists: of `memlog convert`, of the page's server, of its script and of its document. They are one.
So are the orders of frames (--by)."""
import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]


def words(path, pattern):
    """What the source has between the brackets of that list, in order."""
    found = re.search(pattern, (ROOT / path).read_text(), re.S)
    return re.findall(r'"(\w+)"', found.group(1)) if found else []


class Formats(unittest.TestCase):
    def setUp(self):
        self.converted = words("tools/analyzer/cli/convert.c", r"form_words\[\] = \{(.*?)\};")
        self.assertIn("perfetto", self.converted)

    def test_the_server_converts_to_each(self):
        rows = re.search(r"struct form forms\[\] = \{(.*?)\n\};", (ROOT / "host/page/dumps.c").read_text(), re.S).group(1)
        served = re.findall(r'^\s*\{"(\w+)"', rows, re.M)
        self.assertEqual(["perfetto", *served], self.converted)  # which is the dump as it is

    def test_the_script_offers_each(self):
        self.assertEqual(sorted(words("host/page/web/dumps.js", r"FORMATS = \[(.*?)\]")), sorted(self.converted))

    def test_the_document_names_each(self):
        document = json.loads((ROOT / "host/page/web/openapi.json").read_text())
        parameters = [one for methods in document["paths"].values() for method in methods.values() for one in method.get("parameters", [])]
        parameters += list(document.get("components", {}).get("parameters", {}).values())
        (told,) = {tuple(one["schema"]["enum"]) for one in parameters if one.get("name") == "format"}
        self.assertEqual(sorted(told), sorted(self.converted))


class Orders(unittest.TestCase):
    def test_all_four_lists_are_one(self):
        def listed(path, pattern, word=r'"([a-z,]+)"'):
            return re.findall(word, re.search(pattern, (ROOT / path).read_text(), re.S).group(1))

        told = listed("tools/analyzer/stacks/regroup.c", r"ml_grouping_words\[\] = \{(.*?)\};")
        self.assertIn("backtrace,type", told)
        self.assertEqual(listed("host/page/dumps.c", r"orders\[\] = \{(.*?)\};"), told)
        self.assertEqual(sorted(listed("host/page/web/profile.js", r"ORDERS = \[(.*?)\]\];", r'\["([a-z,]+)"')), sorted(told))
        document = json.loads((ROOT / "host/page/web/openapi.json").read_text())
        offered = [one["schema"]["enum"] for methods in document["paths"].values() for method in methods.values()
                   for one in method.get("parameters", []) if one["name"] == "by"]
        self.assertEqual(offered, [told] * 3)


if __name__ == "__main__":
    unittest.main()
