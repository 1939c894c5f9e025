"""Which test runs which module, as layers.py holds it and covered.py measures it. A module is a source with its header."""
import pathlib

import folders

TABLE = "tools/dev/check/tested.txt"
MODULE_SUFFIXES = {".c", ".cc"}


class Row:
    """One line of the table: where it stands, the tests that it names, and the modules that need it."""

    def __init__(self, number, tests):
        self.number = number
        self.tests = tests
        self.needed_by = []


class Tested:
    def __init__(self, root, files, rooms, tests):
        """`rooms` are the product's, `tests` the sources of all that tests/runner.py runs."""
        self.root = root
        self.tests = tests
        self.errors = []
        sources = [pathlib.PurePath(name) for name in files]
        self.modules = sorted(str(path.with_suffix("")) for path in sources if path.parts[0] in rooms and path.suffix in MODULE_SUFFIXES)
        self.sections = set()
        self.rows = self.read_table({str(parent) for path in sources if path.parts[0] in rooms for parent in path.parents})
        self.by_module = {module: self.find(module) for module in self.modules}

    def report(self, where, text):
        self.errors.append(("tested", where, text))

    def read_table(self, known_folders):
        rows = {}
        for number, section, first, words in folders.rows_of((self.root / TABLE).read_text()):
            where = f"{TABLE}:{number}"
            if not words:
                self.report(where, "is neither [room] nor FOLDER: TEST... nor MODULE: TEST...")
                continue
            self.sections.add(section)
            place = folders.path_in(section, first)
            if place in rows:
                self.report(where, f"{place} has a row already")
            if place not in known_folders and place not in self.modules:
                self.report(where, f"{place} is neither a folder of sources nor a module")
            rows[place] = Row(number, ["tests/" + word for word in words])
            for test in rows[place].tests:
                if test not in self.tests:
                    self.report(where, f"{test} is none of the tests that tests/runner.py runs")
        return rows

    def mirrored(self, module):
        return [test for test in (f"tests/{module}_test.c", f"tests/{module}_test.py") if test in self.tests]

    def row_above(self, module):
        """The nearest folder's. A room's own row is for what lies in the room itself."""
        folder, *further = (str(parent) for parent in pathlib.PurePath(module).parents)
        return self.rows.get(folder) or next((self.rows[above] for above in further if above in self.rows and above not in self.sections), None)

    def find(self, module):
        """Its tests: at the mirrored path, of its own row, of the nearest folder's."""
        own = self.mirrored(module)
        row = self.rows.get(module) or (None if own else self.row_above(module))
        if row:
            row.needed_by.append(module)
        return own + (row.tests if row else [])

    def check(self):
        for module, tests in self.by_module.items():
            if not tests:
                self.report(module, f"has no test at tests/{module}_test.c, and {TABLE} names none for it or its folder")
        for place, row in self.rows.items():
            if not row.needed_by:
                self.report(f"{TABLE}:{row.number}", f"nothing needs the row of {place}: take it out")
