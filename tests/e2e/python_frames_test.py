"""Python's own functions in stacks (--frames=python), held against what Python says of them: function, file and line of each frame of each
block (tests/oracle/frames.py); in threads, forked children, generators, coroutines, behind C functions, and of code that comes and goes."""
import json
import pathlib
import re
import shutil
import subprocess
import unittest

import attached
import harness

READ = (11, 13, 14)  # Python 3's
ORACLE = harness.ROOT / "tests" / "oracle" / "frames.py"
FRAMES = ("-q", "--no-page", "--frames=python")
PARTED = ("[frames left out]", "", 0)
TAKES = next(number for number, line in enumerate(ORACLE.read_text().splitlines(), 1) if "kept.append" in line)
OUTER, WHOLE, STEP = 96, 239, 64  # client/scripts/python.h

LAYOUT = r"""
#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_frame.h>
#include <stddef.h>
#include <stdio.h>
#define ROW(name, type, member) printf(#name " %zu\n", offsetof(type, member))
int main(void) {
    ROW(STATE_CFRAME, PyThreadState, cframe);
    ROW(CALL_CURRENT, _PyCFrame, current_frame);
    ROW(CALL_PREVIOUS, _PyCFrame, previous);
    ROW(FRAME_CODE, _PyInterpreterFrame, f_code);
    ROW(FRAME_PREVIOUS, _PyInterpreterFrame, previous);
    ROW(FRAME_INSTRUCTION, _PyInterpreterFrame, prev_instr);
    ROW(FRAME_IS_ENTRY, _PyInterpreterFrame, is_entry);
    ROW(OBJECT_TYPE, PyObject, ob_type);
    ROW(OBJECT_SIZE, PyVarObject, ob_size);
    ROW(CODE_FIRST_LINE, PyCodeObject, co_firstlineno);
    ROW(CODE_FILE, PyCodeObject, co_filename);
    ROW(CODE_FUNCTION, PyCodeObject, co_qualname);
    ROW(CODE_LINES, PyCodeObject, co_linetable);
    ROW(CODE_INSTRUCTIONS, PyCodeObject, co_code_adaptive);
    ROW(BYTES_DATA, PyBytesObject, ob_sval);
    ROW(TEXT_LENGTH, PyASCIIObject, length);
    ROW(TEXT_HASH, PyASCIIObject, hash);
    ROW(TEXT_STATE, PyASCIIObject, state);
    printf("TEXT_ASCII_DATA %zu\nTEXT_DATA %zu\n", sizeof(PyASCIIObject), sizeof(PyCompactUnicodeObject));
    return 0;
}
"""

# From 3.13 on, of the interpreter's table of offsets: each entry's place, in words. And what the table does not have.
TABLE = r"""
#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_runtime.h>
#include <internal/pycore_frame.h>
#if PY_MINOR_VERSION >= 14
#include <internal/pycore_debug_offsets.h>
#include <internal/pycore_interpframe_structs.h>
#include <internal/pycore_stackref.h>
#endif
#include <stddef.h>
#include <stdio.h>
#define PLACE(name, member) printf("[" #name "] %zu\n", offsetof(struct _Py_DebugOffsets, member) / 8)
#define ROW(name, value) printf(#name " %zu\n", (size_t)(value))
int main(void) {
    PLACE(STATE_SIZE, thread_state.size);
    PLACE(STATE_FRAME, thread_state.current_frame);
    PLACE(FRAME_SIZE, interpreter_frame.size);
    PLACE(FRAME_CALLER, interpreter_frame.previous);
    PLACE(FRAME_EXECUTABLE, interpreter_frame.executable);
    PLACE(FRAME_AT, interpreter_frame.instr_ptr);
    PLACE(FRAME_LOCALS, interpreter_frame.localsplus);
    PLACE(FRAME_OWNER, interpreter_frame.owner);
    PLACE(CODE_SIZE, code_object.size);
    PLACE(CODE_FILE_NAME, code_object.filename);
    PLACE(CODE_NAME, code_object.name);
    PLACE(CODE_QUALIFIED_NAME, code_object.qualname);
    PLACE(CODE_LINE_TABLE, code_object.linetable);
    PLACE(CODE_LINE, code_object.firstlineno);
    PLACE(CODE_ADAPTIVE, code_object.co_code_adaptive);
    PLACE(TYPE, pyobject.ob_type);
    PLACE(BYTES_SIZE, bytes_object.size);
    PLACE(BYTES_COUNT, bytes_object.ob_size);
    PLACE(BYTES_BYTES, bytes_object.ob_sval);
    PLACE(UNICODE_SIZE, unicode_object.size);
    PLACE(UNICODE_STATE, unicode_object.state);
    PLACE(UNICODE_LENGTH, unicode_object.length);
    PLACE(UNICODE_ASCII_SIZE, unicode_object.asciiobject_size);
    ROW(TABLE_VERSION, offsetof(struct _Py_DebugOffsets, version) / 8);
    ROW(TABLE_FREE_THREADED, offsetof(struct _Py_DebugOffsets, free_threaded) / 8);
    ROW(FIRST_TRACEABLE_BEHIND, offsetof(PyCodeObject, co_code_adaptive) - offsetof(PyCodeObject, _co_firsttraceable));
    ROW(UTF8_BYTES, sizeof(PyCompactUnicodeObject) - sizeof(PyASCIIObject));
    ROW(OBJECT_SIZE, offsetof(PyVarObject, ob_size));
    ROW(TEXT_HASH, offsetof(PyASCIIObject, hash));
    ROW(LAST_FUNCTION, FRAME_OWNED_BY_FRAME_OBJECT);
#if PY_MINOR_VERSION >= 14
    ROW(NO_FUNCTION, FRAME_OWNED_BY_INTERPRETER);
    ROW(STATE_EXECUTOR_3_14, offsetof(struct _ts, current_executor));
    ROW(TAGS_3_14, Py_TAG_BITS);
#else
    ROW(NO_FUNCTION, FRAME_OWNED_BY_CSTACK);
#endif
    PyASCIIObject text = {.state = {.compact = 1}};
    unsigned bits[2] = {0, 0};
    memcpy(bits, &text.state, sizeof(text.state));
    text.state.compact = 0, text.state.ascii = 1;
    memcpy(bits + 1, &text.state, sizeof(text.state));
    printf("IS_COMPACT %d\nIS_ASCII %d\n", __builtin_ctz(bits[0]), __builtin_ctz(bits[1]));
    text.state.ascii = 0, text.state.kind = 7;
    memcpy(bits, &text.state, sizeof(text.state));
    printf("KIND_SHIFT %d\n", __builtin_ctz(bits[0]));
    return 0;
}
"""

# The interpreter in a library, in a program of somebody else's, begun and ended twice.
EMBEDS = r"""
#include <Python.h>
#include <stdio.h>
int main(int count, char **words) {
    for (int i = 0; i < 2; i++) {
        Py_Initialize();
        if (PyRun_SimpleString(words[1]) != 0) { return 1; }
        if (Py_FinalizeEx() != 0) { return 2; }
        *(volatile char *)malloc(3000017) = 1; /* no interpreter runs */
    }
    return puts("done") < 0 || count != 2;
}
"""

# The interpreter comes and goes while the program runs.
LETS_GO = r"""
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    void *library = dlopen(words[1], RTLD_NOW);
    if (count != 3 || library == NULL) { return 1; }
    while (access(words[2], F_OK) != 0) { usleep(10000); }
    dlclose(library);
    for (int i = 0; i < 1000; i++) { *(volatile char *)malloc(4000016) = 1; }
    return dlopen(words[1], RTLD_NOW | RTLD_NOLOAD) != NULL; /* it has gone */
}
"""


SUBINTERPRETERS = """\
import sys
try:
    from concurrent import interpreters
except ImportError:
    import _interpreters as interpreters
def main():
    return bytearray(4000016)
made = interpreters.create()
if sys.version_info >= (3, 14): made.exec("\\ndef inner(): return bytearray(3000016)\\ndef outer(): return inner()\\nouter()")
else: interpreters.exec(made, "\\ndef inner(): return bytearray(3000016)\\ndef outer(): return inner()\\nouter()")
main()
if sys.version_info >= (3, 14): made.close()
else: interpreters.destroy(made)
"""

GREENLETS = """\
import functools
import greenlet


def take(number):
    main.switch()
    bytearray(3000016 + 64 * number)


def deep(number, depth):
    if depth == 0:
        return take(number)
    return deep(number, depth - 1)
def run(number):
    sorted([0], key=lambda _: main.switch())
    deep(number, number % 5)


main = greenlet.getcurrent()
ones = [greenlet.greenlet(functools.partial(run, number)) for number in range(20)]
while True:
    left = [one for one in ones if not one.dead]
    if not left:
        break
    # Each goes on where another one's stack lay.
    for one in left:
        one.switch()
    list(map(len, ["a"]))
bytearray(5000016)
"""

# What allocates in machine code, and how often that ran.
HOT = """\
import os, sys
SOURCE = bytearray(100000)
active = [0]
def inner(i):
    return SOURCE[:50000 + i % 7]
def hot():
    for i in range(5000):
        a = i * 1.5
        c = a + 2.5
        b = inner(i)
        d = SOURCE[:60000]
        e = (i, d)
        f = SOURCE[:70000]
        active[0] += sys._jit.is_active()
        x = len(f)
hot()
print(active[0], flush=True)
os._exit(0)
"""


def scripts(stack):
    return [(frame["function"], frame["file"], frame["line"]) for frame in stack["frames"]
            if frame.get("kind") == "script" or frame["function"] == PARTED[0]]


def parted(wanted):
    """What memlog keeps of a stack that is too deep."""
    if len(wanted) <= WHOLE:
        return wanted
    inner = len(wanted) - (len(wanted) - 79) // STEP * STEP
    return wanted[:inner] + [PARTED] + wanted[-OUTER:]


class Said(attached.Case):
    """What is said at the start, by the name of the program's file."""

    def run_as(self, name, *programs):
        """The lines on --frames of a run of these programs, twice, by a shell."""
        files = [self.folder / one for one in programs]
        for file in files:
            shutil.copy("/bin/true", file)
        words = "; ".join(map(str, [*files, *files, "true"]))
        run = self.memlog("/bin/sh", "-c", words, options=("--no-page", *name))
        self.assertEqual(run.code, 0, run.err)
        return [line for line in run.err.splitlines() if "--frames=python" in line and "reads" in line]

    def test_a_version_that_is_not_read_once_a_run_with_the_next_step(self):
        (line,) = self.run_as(("--frames=python",), "python3.15", "python3.12")
        self.assertRegex(line, r"^memlog: --frames=python reads Python 3\.11, 3\.13 and 3\.14, not \S+/python3\.15 \(\d+\): its functions have no names; python -X perf names them$")

    def test_one_without_the_interpreters_lock(self):
        (line,) = self.run_as(("--frames=python",), "python3.14t", "python3.13-nogil")
        self.assertRegex(line, r"not \S+/python3\.14t \(\d+\): .*python -X perf names them$")

    def test_an_older_one(self):
        (line,) = self.run_as(("--frames=python",), "python3.9")
        self.assertRegex(line, "run it by one of those$")

    def test_nothing_where_it_is_read_or_was_not_asked_for(self):
        self.assertEqual(self.run_as(("--frames=python",), "python3.11", "python3.13", "python3.14", "python3", "python3-config"), [])
        self.assertEqual(self.run_as((), "python3.15"), [])


class Frames:
    """Of one version."""
    minor = 0

    def setUp(self):
        super().setUp()
        self.python = f"/usr/bin/python3.{self.minor}"
        self.headers = pathlib.Path(f"/usr/include/python3.{self.minor}")
        self.library = next(iter(pathlib.Path("/usr/lib").glob(f"*/libpython3.{self.minor}.so.1*")), None)
        if not pathlib.Path(self.python).exists():
            self.skipTest(f"needs {self.python}")

    def stacks_of(self, report, pid):
        (process,) = [entry for entry in report["processes"] if entry["pid"] == pid]
        self.assertTrue(process["complete"], process)
        return process["stacks"]

    def hold(self, report, folder):
        """Each block of the books has its stack, and no stack of those sizes is another's."""
        for file in folder.glob("*.json"):
            books = {int(size): [(function.replace(":", "."), path, line) for function, path, line in names] for size, names in json.loads(file.read_text()).items()}
            self.assertGreater(len(books), 150)
            by_stack = {}
            for size, names in books.items():
                entry = by_stack.setdefault(tuple(parted(names)), [0, 0])
                entry[0] += size + 1  # bytearray's own 0
                entry[1] += 1
            seen = {}
            for stack in self.stacks_of(report, int(file.stem)):
                names = scripts(stack)
                if names and names[0][0] == "take" and any(frame["function"] == "PyByteArray_FromStringAndSize" for frame in stack["frames"]):
                    entry = seen.setdefault(tuple(names), [0, 0])
                    entry[0] += stack["total_bytes"]
                    entry[1] += stack["total_blocks"]
            self.maxDiff = 4000
            self.assertEqual({names: tuple(entry) for names, entry in seen.items()}, {names: tuple(entry) for names, entry in by_stack.items()})

    def run_oracle(self, *options, **variables):
        run = self.memlog(self.python, str(ORACLE), str(self.folder), options=(*FRAMES, *options), env=self.environment(PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="ignore", **variables))
        self.assertEqual((run.code, run.err), (0, ""))
        return run

    def test_the_layout_is_that_of_the_interpreters_headers(self):
        if not self.headers.exists():
            self.skipTest(f"needs {self.headers}")
        source = self.folder / "layout.c"
        source.write_text(LAYOUT if self.minor == 11 else TABLE)
        subprocess.run(["gcc", f"-I{self.headers}", f"-I{self.headers}/internal", "-o", source.with_suffix(""), source], check=True)
        told = subprocess.run([source.with_suffix("")], check=True, stdout=subprocess.PIPE, text=True).stdout
        text = "".join((harness.ROOT / "client" / "scripts" / name).read_text() for name in ("python.c", "python_layout.c"))
        places = text.partition(f"places_3_{self.minor}[ENTRIES]")[2].partition("};")[0]
        self.assertGreater(len(told.splitlines()), 15)
        for line in told.splitlines():
            name, offset = line.split()
            self.assertEqual(re.search(rf"{re.escape(name)} = (?:1 << )?(\d+)", places if name[0] == "[" else text).group(1), offset, name)

    def test_each_block_has_the_functions_files_and_lines_that_python_tells(self):
        self.hold(self.whole_report(self.run_oracle().dumps()[0]), self.folder)

    def test_they_stand_among_scopes_and_behind_thread_names(self):
        for mode in ("mixed", "native-with-thread-names"):
            with self.subTest(mode):
                for old in self.folder.glob("*.json"):
                    old.unlink()
                self.hold(self.whole_report(self.run_oracle(f"--memlog-stack-mode={mode}").dumps()[-1]), self.folder)


    def test_a_process_that_runs_already_has_them_too(self):
        with subprocess.Popen([self.python, str(ORACLE), str(self.folder), "waits"], env=self.environment(PYTHONWARNINGS="ignore"), stdout=subprocess.DEVNULL) as process:
            session = self.begin("--frames=python", process.pid)
            (self.folder / "go").touch()
            self.assertEqual(process.wait(harness.TIMEOUT), 0)
        report = self.finish(session)
        self.hold(report, self.folder)

    def test_stacks_are_those_that_libunwind_walks(self):
        report = self.whole_report(self.run_oracle("--unwind-check=1").dumps()[0])
        checked = [(entry["unwind_checked"], entry["unwind_differed"]) for entry in report["processes"]]
        self.assertEqual([differed for _, differed in checked], [0] * len(checked), checked)
        self.assertTrue(all(count > 500 for count, _ in checked), checked)
        self.hold(report, self.folder)

    def test_of_a_sample_each_stack_is_one_of_the_programs(self):
        report = self.whole_report(self.run_oracle("--memlog-sampling-rate=64K").dumps()[0])
        for file in self.folder.glob("*.json"):
            true = {tuple(parted([(function.replace(":", "."), path, line) for function, path, line in names])) for names in json.loads(file.read_text()).values()}
            seen = {tuple(names) for names in map(scripts, self.stacks_of(report, int(file.stem))) if names and names[0][0] == "take"}
            self.assertGreater(len(seen), 20)
            strangers = {names for names in seen - true if names[0][2] == TAKES}
            self.assertEqual(strangers, set())

    def test_an_interpreter_in_a_library_begins_and_ends_twice(self):
        program = self.folder / "embeds"
        program.with_suffix(".c").write_text(EMBEDS)
        if not self.headers.exists() or self.library is None:
            self.skipTest(f"needs libpython3.{self.minor}-dev")
        subprocess.run(["gcc", f"-I{self.headers}", "-o", program, program.with_suffix(".c"), self.library], check=True)
        run = self.memlog(str(program), "def outer(): return inner()\ndef inner(): return bytearray(2000016)\nouter()", options=FRAMES)
        self.assertEqual((run.code, run.out, run.err), (0, b"done\n", ""))
        (process,) = self.whole_report(run.dumps()[0])["processes"]
        by_size = {stack["total_bytes"]: (stack["total_blocks"], scripts(stack)) for stack in process["stacks"]}
        self.assertEqual(by_size[2 * 2000017], (2, [("inner", "<string>", 2), ("outer", "<string>", 1), ("<module>", "<string>", 3)]))
        self.assertEqual(by_size[2 * 3000017], (2, []))

    def test_an_interpreter_that_goes_is_never_asked(self):
        program = self.folder / "lets_go"
        program.with_suffix(".c").write_text(LETS_GO)
        if self.library is None:
            self.skipTest(f"needs libpython3.{self.minor}")
        subprocess.run(["gcc", "-o", program, program.with_suffix(".c")], check=True)
        with subprocess.Popen([program, self.library, self.folder / "go"], env=self.environment()) as process:
            session = self.begin("--frames=python", process.pid)
            (self.folder / "go").touch()
            self.assertEqual(process.wait(harness.TIMEOUT), 0)
        (entry,) = self.finish(session)["processes"]
        self.assertGreaterEqual(entry["total_blocks"], 1000)

    def test_without_the_option_and_with_scopes_alone_there_are_none(self):
        for options in ((), ("--frames=native",), ("--frames=python", "--memlog-stack-mode=pseudo")):
            run = self.memlog(self.python, "-c", "x = bytearray(5000016)", options=("-q", "--no-page", *options))
            (process,) = self.whole_report(run.dumps()[-1])["processes"]
            self.assertEqual([stack for stack in process["stacks"] if scripts(stack)], [], options)
        wrong = harness.run_words([str(harness.MEMLOG), "run", "--frames=perl", "--", "true"], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual((wrong.returncode, b"native or python" in wrong.stderr), (2, True), wrong.stderr)


class Python311(Frames, attached.Case):
    minor = 11


class WithTable(Frames):
    """A version whose interpreter says itself where it keeps what."""

    def odd(self, name, word, value):
        """A copy of the interpreter, with another word in its table of offsets."""
        program = self.folder / name
        data = bytearray(pathlib.Path(self.python).read_bytes())
        at = [found.start() for found in re.finditer(b"xdebugpy", data) if data[found.start() + 8:][2:8] == bytes((self.minor, 3, 0, 0, 0, 0))]
        self.assertEqual(len(at), 1)
        place = at[0] + 8 * word
        data[place:place + 8] = value(int.from_bytes(data[place:place + 8], "little")).to_bytes(8, "little")
        program.write_bytes(data)
        program.chmod(0o755)
        return program

    def scripts_of(self, program, options=FRAMES):
        run = self.memlog(str(program), "-c", "x = bytearray(5000016); print(len(x))", options=options)
        self.assertEqual((run.code, run.out), (0, b"5000016\n"), run.err)
        (process,) = self.whole_report(run.dumps()[-1])["processes"]
        self.assertTrue(process["complete"])
        return run, [names for names in map(scripts, process["stacks"]) if names]

    def test_an_interpreter_whose_table_is_odd_is_not_read(self):
        frame = {13: 23, 14: 26}[self.minor]  # of the thread's state: the current frame
        self.assertNotEqual(self.scripts_of(self.odd("same", frame, lambda word: word))[1], [])
        for what, word, value in (("cookie", 0, lambda word: word + 1), ("version", 1, lambda word: word + (1 << 8)), ("threads", 2, lambda word: 1),
                                  ("unaligned", frame, lambda word: word + 4), ("far", frame, lambda word: word + 4096), ("beyond", frame, lambda word: 1 << 63)):
            with self.subTest(what):
                self.assertEqual(self.scripts_of(self.odd(what, word, value))[1], [])

    def test_of_another_python_it_is_said_that_its_functions_are_not_read(self):
        run, names = self.scripts_of(self.odd("python3.12", 1, lambda word: word - (1 << 16)), ("--no-page", "--frames=python"))
        self.assertEqual(names, [])
        self.assertRegex(run.err, r"--frames=python reads Python 3\.11, 3\.13 and 3\.14, not \S+/python3\.12 ")
        answer = harness.run_words([str(harness.MEMLOG), "report", "--full", str(run.dumps()[-1])], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertRegex(answer.stdout.decode(), r"python3\.12: Python functions: python -X perf \(--frames=python does not read this one\)")

    def books_of(self, text):
        """The bytes of a program's larger stacks, by their functions."""
        program = self.folder / "program.py"
        program.write_text(text)
        run = self.memlog(self.python, str(program), options=FRAMES)
        self.assertEqual((run.code, run.err), (0, ""), run.out)
        (process,) = self.whole_report(run.dumps()[-1])["processes"]
        self.assertTrue(process["complete"])
        books = {}
        for stack in process["stacks"]:
            if stack["total_bytes"] >= 3000000:
                books[tuple(scripts(stack))] = books.get(tuple(scripts(stack)), 0) + stack["total_bytes"]
        return books, str(program)

    def test_subinterpreters_have_theirs(self):
        books, program = self.books_of(SUBINTERPRETERS)
        where = "<script>" if self.minor > 13 else "<string>"
        (inner,) = [names for names, total in books.items() if total == 3000017]
        self.assertEqual([name for name in inner if name[1] != program and "interpreters" not in name[1]], [("inner", where, 2), ("outer", where, 3), ("<module>", where, 4)])
        self.assertEqual(books[("main", program, 7), ("<module>", program, 11)], 4000017)

    def test_greenlets_have_their_own(self):
        if subprocess.run([self.python, "-c", "import greenlet"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("needs greenlet")
        books, program = self.books_of(GREENLETS)
        for depth in range(5):  # four greenlets each
            names = (("take", program, 7), ("deep", program, 12), *[("deep", program, 13)] * depth, ("run", program, 16))
            self.assertEqual(books.pop(names), 4 * 3000017 + 64 * (4 * depth + 30))
        self.assertEqual(books, {(("<module>", program, 29),): 5000017})


class Python313(WithTable, attached.Case):
    minor = 13


class Python314(WithTable, attached.Case):
    minor = 14

    def test_machine_code_has_its_functions_and_no_line_that_may_be_old(self):
        if subprocess.run([self.python, "-c", "import sys; sys.exit(not sys._jit.is_available())"], check=False).returncode != 0:
            self.skipTest("the interpreter makes no machine code")
        program = self.folder / "hot.py"
        program.write_text(HOT)
        seen = {}
        for wanted in ("0", "1"):
            run = self.memlog(self.python, str(program), options=FRAMES, env=self.environment(PYTHON_JIT=wanted))
            self.assertEqual((run.code, run.err), (0, ""))
            report = self.whole_report(run.dumps()[-1])
            counts = seen[wanted] = {}
            for stack in report["processes"][0]["stacks"]:
                names = tuple((name, line) for name, _, line in scripts(stack))
                if any(frame["function"] == "PyByteArray_FromStringAndSize" for frame in stack["frames"]):
                    counts[names] = counts.get(names, 0) + stack["total_blocks"]
            self.assertEqual(int(run.out) > 0, wanted == "1")
        self.assertEqual(seen["0"], {(("inner", 5), ("hot", 10), ("<module>", 16)): 5000, (("hot", 11), ("<module>", 16)): 5000, (("hot", 13), ("<module>", 16)): 5000})
        whole = {}
        for names, count in seen["1"].items():
            where = (names[0][0], *names[1:])
            whole[where] = whole.get(where, 0) + count
            self.assertIn(names[0], (("inner", 5), ("hot", 11), ("hot", 13), ("inner", 0), ("hot", 0)))
        self.assertEqual(whole, {("inner", ("hot", 10), ("<module>", 16)): 5000, ("hot", ("<module>", 16)): 10000})
        self.assertTrue(any(names[0][1] == 0 for names in seen["1"]))


if __name__ == "__main__":
    unittest.main()
