"""Life of one allocation, as ARCHITECTURE.md tells it: every file of every step exists, and has the function that the step names."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FILE = re.compile(r"`((?:client|ipc|service|tools|host)/[\w/]+\.[ch])`")
SYMBOL = re.compile(r"`(ml_\w+)`")


def steps():
    """(name, text) of each."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    life = text[text.index("## Life of one allocation"):]
    life = life[:life.index("\n## ", 3)]
    return re.findall(r"^\d+\. \*\*(\w+)\*\*(.*?)(?=^\d+\. |\Z)", life, re.M | re.S)


class Life(unittest.TestCase):
    def test_it_goes_from_the_hook_to_the_answer(self):
        names = [name for name, _ in steps()]
        self.assertEqual(names, ["Hook", "Stack", "Event", "Pipe", "Order", "Track", "Snapshot", "Dump", "Answer"])

    def test_each_step_names_files_and_a_function_of_theirs(self):
        for name, text in steps():
            files, symbols = FILE.findall(text), SYMBOL.findall(text)
            self.assertTrue(files and symbols, name)
            sources = {file: (ROOT / file).read_text() for file in files}
            for symbol in symbols:
                self.assertTrue(any(re.search(rf"\b{symbol}\b", source) for source in sources.values()), f"{name}: {symbol} is in none of {files}")
            for file, source in sources.items():
                self.assertTrue(any(re.search(rf"\b{symbol}\b", source) for symbol in symbols), f"{name}: {file} has none of {symbols}")

    def test_each_step_hands_on_to_the_next(self):
        """The rooms follow the data: client, service, tools; ipc lies between."""
        order = ["client", "service", "tools"]
        rooms = [FILE.findall(text)[0].split("/")[0] for _, text in steps()]
        places = [order.index(room) for room in rooms]
        self.assertEqual(places, sorted(places), rooms)
        self.assertEqual(set(places), {0, 1, 2})


if __name__ == "__main__":
    unittest.main()
