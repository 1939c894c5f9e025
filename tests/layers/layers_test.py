"""The architecture's own tests: each breaks one rule of the tree in a scratch copy, and the build must say which.

A check that has never been seen to fail is not yet a check. A case edits the copy, names the stage that must refuse it
(`gen`: gn gen --check; `layers`: tools/dev/check/layers.py) and what that stage must say. GN ends at the first breach; layers.py tells of
all, so it is asked of as many cases at once as write to files of their own: a round of it takes three seconds of a processor.
"""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Taken(Exception):
    """Another case of this round has written to that file."""


class Tree:
    """A copy of the tree that may be broken, and mended again."""

    def __init__(self, folder):
        self.folder = folder
        self.before = {}  # path -> its bytes before it was written to, None when it was not there
        self.taken = {}  # the same of cases that stay while others are tried

    def add_include(self, path, include):
        """As the first include of a file."""
        text = self.read(path)
        at = text.index("#include")
        self.write(path, text[:at] + f"#include {include}\n" + text[at:])

    def add_dep(self, path, target, dep):
        """Another dep of a target."""
        self.add_to_target(path, target, f'  deps = [] \n  deps += [ "{dep}" ]\n', f'  deps += [ "{dep}" ]\n')

    def add_to_target(self, path, target, without_deps, with_deps=None):
        text = self.read(path)
        start = text.index(f'("{target}") {{')
        end = text.index("\n}\n", start) + 1
        has_deps = "\n  deps = " in text[start:end]
        self.write(path, text[:end] + (with_deps if has_deps and with_deps else without_deps) + text[end:])

    def append(self, path, text):
        self.write(path, self.read(path) + text)

    def read(self, path):
        if path in self.taken:
            raise Taken(path)
        return (self.folder / path).read_text()

    def write(self, path, text):
        if path in self.taken:
            raise Taken(path)
        file = self.folder / path
        self.before.setdefault(path, file.read_bytes() if file.exists() else None)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def mend(self):
        """Back to what was copied."""
        for path, content in self.before.items():
            if content is None:
                (self.folder / path).unlink()
            else:
                (self.folder / path).write_bytes(content)
        self.before.clear()

    def add(self, edit):
        """Make one more edit, to files that none before it wrote to; False: it needs another's, and nothing was done."""
        self.taken |= self.before
        self.before = {}
        try:
            edit(self)
        except Taken:
            self.mend()
            return False
        return True

    def mend_all(self):
        self.before |= self.taken
        self.taken = {}
        self.mend()

    def gen(self):
        return self.run("gn", "gen", "out", "--check")

    def layers(self):
        return self.run("tools/dev/check/layers.py", "out")

    def change_row(self, room, row, changed, path="tools/dev/check/folders.txt"):
        """Another row in the table of folders, or in the one of tests."""
        text = self.read(path)
        start = text.index(f"[{room}]\n")
        at = text.index(f"\n{row}\n", start) + 1
        self.write(path, text[:at] + changed + text[at + len(row):])

    def run(self, *words):
        answer = subprocess.run(
            words, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False
        )
        return answer.returncode, answer.stdout


TESTED = "tools/dev/check/tested.txt"


def row_of_tests(tree, folder):
    """The row of a folder in the table of tests, as it stands."""
    return next(line for line in tree.read(TESTED).splitlines() if line.startswith(f"{folder}:"))


def breach(*words):
    """A case of layers.py: the method breaks a tree, and a line with all of these words must answer."""
    def of(edit):
        def test(self):
            code, text = self.answers[test]
            self.assertEqual(code, 1, text)
            lines = [line for line in text.splitlines() if all(word in line for word in words)]
            self.assertTrue(lines, f"no line with all of {words} in:\n{text}")

        test.edit = edit
        return test
    return of


TREE = None


def setUpModule():
    """One copy for all cases, which is mended after each round: a copy for each costs ten times what gn does."""
    global TREE  # pylint: disable=global-statement
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="memlog-layers."))
    unittest.addModuleCleanup(shutil.rmtree, scratch, True)
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True,
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, scratch / name)
    # Generated headers, so that includes of them resolve as they do after a build.
    generated = ROOT / "out" / "gen"
    if generated.is_dir():
        shutil.copytree(generated, scratch / "out" / "gen", dirs_exist_ok=True)
    TREE = Tree(scratch)


def tearDownModule():
    """Nothing that a case broke is still broken."""
    if TREE.gen()[0] != 0 or TREE.layers() != (0, ""):
        raise AssertionError("a case has left the copy broken")


class Gn(unittest.TestCase):
    """What gn refuses, because every target has include_dirs = [ "//" ], visibility, public and assert_no_deps."""

    def setUp(self):
        self.addCleanup(TREE.mend)

    def assert_gen_refuses(self, *words):
        code, text = TREE.gen()
        self.assertNotEqual(code, 0, "gn gen --check took it")
        for word in words:
            self.assertIn(word, text)
        return text

    def test_the_tree_as_it_is_passes(self):
        self.assertEqual(TREE.gen()[0], 0)
        self.assertEqual(TREE.layers(), (0, ""))

    def test_client_including_service_is_refused(self):
        TREE.add_include("client/unwind/unwind.c", '"service/session/session.h"')
        self.assert_gen_refuses("Include not allowed", "service/session/session.h")

    def test_the_page_including_the_engines_internals_is_refused(self):
        TREE.add_include("host/page/page.c", '"host/engine/state.h"')
        self.assert_gen_refuses("host/engine/state.h", "//host/page")

    def test_client_depending_on_service_is_refused(self):
        TREE.add_dep("client/unwind/BUILD.gn", "unwind", "//service/session")
        self.assert_gen_refuses("Dependency not allowed", "//client/unwind", "//service/session")

    def test_client_depending_on_the_channel_is_refused(self):
        TREE.add_dep("client/unwind/BUILD.gn", "unwind", "//ipc/channel")
        self.assert_gen_refuses("Dependency not allowed", "//ipc/channel")

    def test_wire_gaining_libev_is_refused_with_the_path_to_the_preload(self):
        TREE.add_dep("ipc/wire/BUILD.gn", "wire", "//tools/gn/libs:libev")
        text = TREE.read("tools/gn/libs/BUILD.gn")
        TREE.write("tools/gn/libs/BUILD.gn", text.replace('"//ipc/channel",', '"//ipc/*",', 1))
        # GN names whichever of those that go into other programs it comes to first.
        self.assertRegex(
            self.assert_gen_refuses("assert_no_deps"),
            r"(?s)failed\.\n.*//(client|tracer)\b.*->.*//ipc/wire.*->.*//tools/gn/libs:libev",
        )

    def test_libev_in_the_client_is_refused_though_it_is_a_system_header(self):
        TREE.add_include("client/unwind/unwind.c", "<ev.h>")
        self.assert_gen_refuses("Include not allowed", "ev.h")

    def test_service_opening_files_is_refused_by_header(self):
        TREE.add_include("service/session/session.c", "<fcntl.h>")
        self.assert_gen_refuses("Can't include this header from here", "fcntl.h")

    def test_service_making_sockets_is_refused_by_header(self):
        TREE.add_include("service/session/session.c", "<sys/socket.h>")
        self.assert_gen_refuses("Can't include this header from here", "sys/socket.h")

    def test_service_asking_for_authority_is_refused(self):
        TREE.add_dep("service/session/BUILD.gn", "session", "//tools/gn/libs:authority")
        self.assert_gen_refuses("Dependency not allowed", "//tools/gn/libs:authority")

    def test_host_including_service_is_refused(self):
        TREE.add_include("host/cli/run.c", '"service/session/session.h"')
        self.assert_gen_refuses("Include not allowed", "service/session/session.h")

    def test_a_private_header_is_refused_across_targets(self):
        TREE.add_include("host/main.c", '"host/cli/doctor_internal.h"')
        self.assert_gen_refuses("Including a private header", "host/cli/doctor_internal.h")

    def test_a_relative_path_does_not_get_round(self):
        TREE.add_include("client/unwind/unwind.c", '"../service/session/session.h"')
        self.assert_gen_refuses("Include not allowed", "service/session/session.h")

    def test_a_shipped_target_on_a_testonly_one_is_refused(self):
        TREE.add_dep("ipc/wire/BUILD.gn", "wire", "//tools/gn/libs:check")
        text = TREE.read("tools/gn/libs/BUILD.gn")
        TREE.write(
            "tools/gn/libs/BUILD.gn",
            text.replace('testonly = true\n  visibility = [ "//tests/*" ]', 'testonly = true\n  visibility = [ "*" ]', 1),
        )
        self.assert_gen_refuses("Test-only dependency not allowed")


class Layers(unittest.TestCase):
    """What gn lets pass, and layers.py does not."""

    @classmethod
    def setUpClass(cls):
        cls.answers = {}
        waiting = [test for name, test in vars(cls).items() if name.startswith("test_")]
        while waiting:
            made = [test for test in waiting if TREE.add(test.edit)]
            code, text = TREE.gen()
            if code != 0 or not made:
                raise AssertionError(f"gn refuses one of these by itself: {[test.edit.__name__ for test in made]}:\n{text}")
            cls.answers |= dict.fromkeys(made, TREE.layers())
            TREE.mend_all()
            waiting = [test for test in waiting if test not in made]

    @breach("ipc/stray.h", "one-target", "stands in no target")
    def test_a_header_in_no_target_is_refused(tree):
        tree.write("ipc/stray.h", "#ifndef X\n#define X\n#endif\n")
        tree.add_include("client/unwind/unwind.c", '"ipc/stray.h"')

    @breach("host/process/events.h", "one-target", "more than one target")
    def test_a_file_in_two_targets_is_refused(tree):
        text = tree.read("host/BUILD.gn")
        tree.write("host/BUILD.gn", text.replace('sources = [ "main.c" ]', 'sources = [ "main.c", "process/events.h" ]'))

    @breach("host/cli/below.c", "folder", "//host:memlog", "host/cli/BUILD.gn")
    def test_a_source_of_a_folder_below_is_refused(tree):
        tree.write("host/cli/below.c", "int below;\n")
        text = tree.read("host/BUILD.gn")
        tree.write("host/BUILD.gn", text.replace('sources = [ "main.c" ]', 'sources = [ "main.c", "cli/below.c" ]'))

    @breach("tests/host/above_test.c", "folder", "//tests/host/lib:", "tests/host/BUILD.gn")
    def test_a_source_of_the_folder_above_is_refused(tree):
        tree.write("tests/host/above_test.c", "int above;\n")
        text = tree.read("tests/host/lib/BUILD.gn")
        text = text.replace('sources = [ "memlog_host_test.c" ]', 'sources = [ "memlog_host_test.c", "../above_test.c" ]')
        tree.write("tests/host/lib/BUILD.gn", text)

    @breach("client/sampling", "folder", "sources, 35 at most")
    def test_a_folder_of_36_sources_is_refused(tree):
        for number in range(36):
            tree.write(f"client/sampling/part{number}.c", "int part;\n")

    @breach("client/unwind/unwind_twice.c", "folder", "call it twice.c")
    def test_a_name_that_repeats_its_folder_is_refused(tree):
        tree.write("client/unwind/unwind_twice.c", "int twice;\n")

    @breach("tools/bench/replay.c", "direction", "tools/bench may not include tools/dev/stream")
    def test_an_include_that_the_table_of_folders_does_not_list_is_refused(tree):
        tree.add_include("tools/bench/replay.c", '"tools/dev/stream/text.h"')
        tree.add_dep("tools/bench/BUILD.gn", "replay", "//tools/dev/stream:text")

    @breach("folders.txt", "direction", "nothing in client/symbols includes client/sampling")
    def test_a_direction_that_nothing_goes_is_refused(tree):
        tree.change_row("client", "symbols:", "symbols: sampling")

    @breach("folders.txt", "direction", "circle", "client/symbols -> client/unwind -> client/symbols")
    def test_a_circle_of_folders_is_refused(tree):
        tree.change_row("client", "symbols:", "symbols: unwind")

    @breach("folders.txt", "direction", "no row for ipc/trace")
    def test_a_folder_without_a_row_is_refused(tree):
        tree.change_row("ipc", "trace: wire", "")

    @breach("folders.txt", "direction", "ipc/gone is no folder")
    def test_a_row_for_no_folder_is_refused(tree):
        tree.change_row("ipc", "wire:", "wire:\ngone:")

    @breach("ipc/wire/event_decode", "tested", "no test at tests/ipc/wire/event_decode_test.c")
    def test_a_module_without_a_test_is_refused(tree):
        tree.change_row("ipc", row_of_tests(tree, "wire"), "", TESTED)

    @breach("ipc/wire/event_decode", "tested", "no test at tests/ipc/wire/event_decode_test.c")
    def test_a_mirrored_test_that_nothing_builds_is_no_test(tree):
        tree.write("tests/ipc/wire/event_decode_test.c", "int main(void);\n")
        tree.change_row("ipc", row_of_tests(tree, "wire"), "", TESTED)

    @breach("tested.txt", "tested", "tests/ipc/wire/gone_test.c is none of the tests")
    def test_a_test_that_is_gone_is_refused(tree):
        tree.change_row("ipc", row_of_tests(tree, "wire"), "wire: ipc/wire/gone_test.c", TESTED)

    @breach("tested.txt", "tested", "tests/client/capture_tool.c is none of the tests")
    def test_a_source_that_the_runner_does_not_run_is_refused_as_a_test(tree):
        tree.change_row("ipc", row_of_tests(tree, "wire"), "wire: client/capture_tool.c", TESTED)

    @breach("tested.txt", "tested", "ipc/gone is neither a folder of sources nor a module")
    def test_a_row_of_tests_for_no_module_is_refused(tree):
        tree.change_row("ipc", row_of_tests(tree, "wire"), "wire: ipc/wire/event_test.c\ngone: ipc/wire/event_test.c", TESTED)

    @breach("tested.txt", "tested", "nothing needs the row of host/lib")
    def test_a_row_of_tests_that_no_module_needs_is_refused(tree):
        tree.append(TESTED, "\n[host]\nlib: host/lib/memlog_host_test.c\n")

    @breach("client/unwind/unwind.c", "bypass", "nogncheck")
    def test_nogncheck_is_refused(tree):
        tree.add_include("client/unwind/unwind.c", '"service/session/session.h"  // nogncheck')

    @breach("client/unwind/BUILD.gn", "bypass", "check_includes")
    def test_check_includes_false_is_refused(tree):
        tree.add_to_target("client/unwind/BUILD.gn", "unwind", "  check_includes = false\n")

    @breach("client/unwind/unwind.c", "late-include")
    def test_an_include_below_code_is_refused(tree):
        lines = "".join(f"extern int late_{i};\n" for i in range(30))
        tree.append("client/unwind/unwind.c", lines + '#include "service/session/session.h"\n')

    @breach("tools/forgotten/BUILD.gn", "reachable", "not loaded")
    def test_an_unreachable_build_file_is_refused(tree):
        tree.write("tools/forgotten/BUILD.gn", 'source_set("x") {\n}\n')

    @breach("//ipc/wire:lonely", "reachable")
    def test_a_target_that_nothing_needs_is_refused(tree):
        tree.append("ipc/wire/BUILD.gn", '\nsource_set("lonely") {\n  visibility = [ ":*" ]\n  public = []\n  deps = [ ":wire" ]\n}\n')

    @breach("client/unwind/BUILD.gn", "libs", "tools/gn/libs")
    def test_a_library_by_its_bare_name_is_refused(tree):
        tree.add_to_target("client/unwind/BUILD.gn", "unwind", '  libs = [ "ev" ]\n')

    @breach("//ipc/wire", "closed", "visibility")
    def test_a_library_open_to_everybody_is_refused(tree):
        text = tree.read("ipc/wire/BUILD.gn")
        start = text.index("visibility = [")
        end = text.index("]\n", start) + 2
        tree.write("ipc/wire/BUILD.gn", text[:start] + text[end:].lstrip())

    @breach("ipc/wire/reader.c", "full-path", "reader.h")
    def test_a_neighbours_bare_name_is_refused(tree):
        tree.add_include("ipc/wire/reader.c", '"reader.h"')

    @breach("struct-name", "ml_tracker is defined in host/page/page.h")
    def test_a_struct_name_of_two_headers_is_refused(tree):
        tree.append("host/page/page.h", "struct ml_tracker {\n    int other;\n};\n")

    @breach("struct-name", "ml_page_claim is defined in host/page/page.c")
    def test_a_struct_name_of_a_header_and_a_source_is_refused(tree):
        tree.append("host/page/page.c", "struct ml_page_claim {\n    int other;\n};\n")

    @breach("ipc/wire/reader.c", "length")
    def test_a_file_over_800_lines_is_refused(tree):
        tree.append("ipc/wire/reader.c", "\n" * 800)

    @breach("ipc/wire/reader.c", "suppression")
    def test_a_suppression_without_a_reason_is_refused(tree):
        tree.append("ipc/wire/reader.c", "// NOLINT\n")

    @breach("ipc/LOST.md:1", "named-path", "ipc/gone.c")
    def test_a_paper_naming_a_lost_file_is_refused(tree):
        tree.write("ipc/LOST.md", "See `ipc/gone.c`.\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
