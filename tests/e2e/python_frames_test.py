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

PYTHON = "/usr/bin/python3.11"
HEADERS = pathlib.Path("/usr/include/python3.11")
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
        (line,) = self.run_as(("--frames=python",), "python3.13", "python3.12")
        self.assertRegex(line, r"^memlog: --frames=python reads Python 3\.11 alone, not \S+/python3\.13 \(\d+\): its functions have no names; python -X perf names them$")

    def test_an_older_one(self):
        (line,) = self.run_as(("--frames=python",), "python3.9")
        self.assertRegex(line, "run it by python3.11$")

    def test_nothing_where_it_is_read_or_was_not_asked_for(self):
        self.assertEqual(self.run_as(("--frames=python",), "python3.11", "python3", "python3-config"), [])
        self.assertEqual(self.run_as((), "python3.13"), [])


@unittest.skipUnless(pathlib.Path(PYTHON).exists(), f"needs {PYTHON}")
class PythonFrames(attached.Case):
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
                if names and names[0][0] == "take" and any(frame["function"] == "PyByteArray_Resize" for frame in stack["frames"]):
                    entry = seen.setdefault(tuple(names), [0, 0])
                    entry[0] += stack["total_bytes"]
                    entry[1] += stack["total_blocks"]
            self.maxDiff = 4000
            self.assertEqual({names: tuple(entry) for names, entry in seen.items()}, {names: tuple(entry) for names, entry in by_stack.items()})

    def run_oracle(self, *options):
        run = self.memlog(PYTHON, str(ORACLE), str(self.folder), options=(*FRAMES, *options), env=self.environment(PYTHONDONTWRITEBYTECODE="1"))
        self.assertEqual((run.code, run.err), (0, ""))
        return run

    def test_the_layout_is_that_of_the_interpreters_headers(self):
        if not HEADERS.exists():
            self.skipTest(f"needs {HEADERS}")
        source = self.folder / "layout.c"
        source.write_text(LAYOUT)
        subprocess.run(["gcc", f"-I{HEADERS}", f"-I{HEADERS}/internal", "-o", source.with_suffix(""), source], check=True)
        told = subprocess.run([source.with_suffix("")], check=True, stdout=subprocess.PIPE, text=True).stdout
        text = "".join((harness.ROOT / "client" / "scripts" / name).read_text() for name in ("python.c", "python_layout.c"))
        for line in told.splitlines():
            name, offset = line.split()
            self.assertEqual(re.search(rf"\b{name} = (\d+)", text).group(1), offset, name)

    def test_each_block_has_the_functions_files_and_lines_that_python_tells(self):
        self.hold(self.whole_report(self.run_oracle().dumps()[0]), self.folder)

    def test_they_stand_among_scopes_and_behind_thread_names(self):
        for mode in ("mixed", "native-with-thread-names"):
            with self.subTest(mode):
                for old in self.folder.glob("*.json"):
                    old.unlink()
                self.hold(self.whole_report(self.run_oracle(f"--memlog-stack-mode={mode}").dumps()[-1]), self.folder)


    def test_a_process_that_runs_already_has_them_too(self):
        with subprocess.Popen([PYTHON, str(ORACLE), str(self.folder), "waits"], env=self.environment(), stdout=subprocess.DEVNULL) as process:
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
        library = next(iter(pathlib.Path("/usr/lib").glob("*/libpython3.11.so.1*")), None)
        if not HEADERS.exists() or library is None:
            self.skipTest("needs libpython3.11-dev")
        subprocess.run(["gcc", f"-I{HEADERS}", "-o", program, program.with_suffix(".c"), library], check=True)
        run = self.memlog(str(program), "def outer(): return inner()\ndef inner(): return bytearray(2000016)\nouter()", options=FRAMES)
        self.assertEqual((run.code, run.out, run.err), (0, b"done\n", ""))
        (process,) = self.whole_report(run.dumps()[0])["processes"]
        by_size = {stack["total_bytes"]: (stack["total_blocks"], scripts(stack)) for stack in process["stacks"]}
        self.assertEqual(by_size[2 * 2000017], (2, [("inner", "<string>", 2), ("outer", "<string>", 1), ("<module>", "<string>", 3)]))
        self.assertEqual(by_size[2 * 3000017], (2, []))

    def test_an_interpreter_that_goes_is_never_asked(self):
        program = self.folder / "lets_go"
        program.with_suffix(".c").write_text(LETS_GO)
        library = next(iter(pathlib.Path("/usr/lib").glob("*/libpython3.11.so.1*")), None)
        if library is None:
            self.skipTest("needs libpython3.11")
        subprocess.run(["gcc", "-o", program, program.with_suffix(".c")], check=True)
        with subprocess.Popen([program, library, self.folder / "go"], env=self.environment()) as process:
            session = self.begin("--frames=python", process.pid)
            (self.folder / "go").touch()
            self.assertEqual(process.wait(harness.TIMEOUT), 0)
        (entry,) = self.finish(session)["processes"]
        self.assertGreaterEqual(entry["total_blocks"], 1000)

    def test_without_the_option_and_with_scopes_alone_there_are_none(self):
        for options in ((), ("--frames=native",), ("--frames=python", "--memlog-stack-mode=pseudo")):
            run = self.memlog(PYTHON, "-c", "x = bytearray(5000016)", options=("-q", "--no-page", *options))
            (process,) = self.whole_report(run.dumps()[-1])["processes"]
            self.assertEqual([stack for stack in process["stacks"] if scripts(stack)], [], options)
        wrong = harness.run_words([str(harness.MEMLOG), "run", "--frames=perl", "--", "true"], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual((wrong.returncode, b"native or python" in wrong.stderr), (2, True), wrong.stderr)


if __name__ == "__main__":
    unittest.main()
