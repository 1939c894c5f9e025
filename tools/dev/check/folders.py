"""The folders of the tree as layers.py holds them: a folder is what a BUILD.gn stands in. See the rules there."""
import pathlib
import re

TABLE = "tools/dev/check/folders.txt"
SOURCE_SUFFIXES = {".c", ".h", ".cc", ".S", ".proto", ".mojom"}
MAX_SOURCES = 35


class Row:
    """One line of the table: where it stands, and the folders that its folder may include."""

    def __init__(self, number, may_include):
        self.number = number
        self.may_include = may_include


def path_in(section, word):
    return section if word == "." else f"{section}/{word}"


def rows_of(text):
    """(line, section, first word, words behind its colon) of each row below a [section]; None instead of the words where a line is no row."""
    section = None
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#", 1)[0].strip()
        heading = re.fullmatch(r"\[([\w/]+)\]", line)
        row = re.fullmatch(r"([\w./-]+):((?: [\w./-]+)*)", line)
        if heading:
            section = heading.group(1)
        elif line:
            yield number, section, row and row.group(1), row.group(2).split() if row and section else None


class Folders:
    def __init__(self, root, files, rooms):
        """`files` are those of the tree, `rooms` its product rooms."""
        self.root = root
        self.with_build = {str(pathlib.PurePath(name).parent) for name in files if pathlib.PurePath(name).name == "BUILD.gn"}
        sources = [name for name in files if pathlib.PurePath(name).suffix in SOURCE_SUFFIXES]
        self.product = [name for name in sources if name.split("/")[0] in rooms]
        self.names = sorted(name for name in self.with_build if name.split("/")[0] in rooms)
        self.errors = []

    def report(self, rule, where, text):
        self.errors.append((rule, where, text))

    def of(self, name):
        """The folder that a file belongs to: the nearest one above it with a BUILD.gn."""
        for parent in pathlib.PurePath(name).parents:
            if str(parent) in self.with_build:
                return str(parent)
        return "."

    def check_owners(self, targets):
        """A target lists the sources of its own folder alone."""
        for label, target in targets.items():
            folder = label[2:].split(":", 1)[0] or "."
            named = set()
            for field in ("sources", "public"):
                value = target.get(field)
                named.update(value if isinstance(value, list) else [])
            for name in sorted(named):
                path = name.removeprefix("//")
                if pathlib.PurePath(path).suffix not in SOURCE_SUFFIXES or not (self.root / path).is_file():
                    continue
                if path.startswith("out/") or name.startswith("/" + "usr"):
                    continue
                if self.of(path) != folder:
                    self.report("folder", path, f"is listed by {label}, but lies in the folder of {self.of(path)}/BUILD.gn")

    def check_names_and_sizes(self):
        held = {}
        for name in self.product:
            held.setdefault(self.of(name), []).append(name)
            path = pathlib.PurePath(name)
            if path.stem.startswith(path.parent.name + "_"):
                shorter = path.name.removeprefix(path.parent.name + "_")
                self.report("folder", name, f"repeats the name of its folder: call it {shorter}")
        for folder, names in sorted(held.items()):
            if len(names) > MAX_SOURCES:
                self.report("folder", folder, f"holds {len(names)} sources, {MAX_SOURCES} at most: look for the second folder")

    def read_table(self):
        rows = {}
        for number, section, first, words in rows_of((self.root / TABLE).read_text()):
            where = f"{TABLE}:{number}"
            if words is None:
                self.report("direction", where, "is neither [room] nor FOLDER: FOLDER...")
                continue
            folder, *others = [path_in(section, word) for word in (first, *words)]
            if folder in rows:
                self.report("direction", where, f"{folder} has a row already")
            rows[folder] = Row(number, others)
            for name in (folder, *others):
                if name not in self.names:
                    self.report("direction", where, f"{name} is no folder with a BUILD.gn")
        return rows

    def includes(self):
        """What product code includes of its own room's other folders: (folder, other) -> the first place."""
        found = {}
        for name in self.product:
            if pathlib.PurePath(name).suffix not in (".c", ".h", ".cc"):
                continue
            folder = self.of(name)
            for number, line in enumerate((self.root / name).read_text().splitlines(), 1):
                include = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
                if include and include.group(1).split("/")[0] == folder.split("/")[0]:
                    other = self.of(include.group(1))
                    if other != folder:
                        found.setdefault((folder, other), f"{name}:{number}")
        return found

    def check_directions(self):
        rows = self.read_table()
        found = self.includes()
        for folder in self.names:
            if folder not in rows:
                self.report("direction", TABLE, f"has no row for {folder}")
        for (folder, other), where in sorted(found.items()):
            if folder in rows and other not in rows[folder].may_include:
                self.report("direction", where, f"{folder} may not include {other}: {TABLE}:{rows[folder].number} does not list it")
        for folder, row in rows.items():
            for other in row.may_include:
                if (folder, other) not in found:
                    self.report("direction", f"{TABLE}:{row.number}", f"nothing in {folder} includes {other}: take it out")
        self.check_circles({folder: row.may_include for folder, row in rows.items()})

    def check_circles(self, edges):
        done = set()

        def walk(folder, way):
            if folder in way:
                self.report("direction", TABLE, "has a circle: " + " -> ".join([*way[way.index(folder):], folder]))
            elif folder not in done:
                for other in edges.get(folder, []):
                    walk(other, [*way, folder])
                done.add(folder)

        for folder in edges:
            walk(folder, [])
