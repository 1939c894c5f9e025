"""What compilers, linkers and loaders make of names, told right: tests/e2e/corpus holds the sources and, as text, the frames expected."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

import harness

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
GOLD = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []  # some suites have none any more
RUSTC = shutil.which("rustc") or shutil.which("rustc", path=str(pathlib.Path.home() / ".cargo/bin"))


class Case(harness.Case):
    symbol_cache = "off"

    def tool(self, *words):
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, cwd=self.folder, check=False)
        self.assertEqual(done.returncode, 0, (words, done.stderr))
        return done.stdout

    def build(self, name, *words):
        """Compile a source of the corpus to self.folder/NAME-without-suffix; returns its path."""
        program = self.folder / name.partition(".")[0]
        self.tool(*words, "-o", program, CORPUS / name)
        return program

    def frames(self, report, files):
        """The kept blocks' frames whose source stands in one of the files, as the corpus has them: SIZE, then a line a frame."""
        lines = []
        for stack in sorted(report["tree"]["stacks"], key=lambda stack: stack["total_bytes"]):
            frames = [(frame, pathlib.Path(frame["file"]).name) for frame in stack["frames"]]
            frames = [
                f'  {frame["function"]} {file}:{frame["line"]}{" inlined" if frame["inlined"] else ""}' for frame, file in frames if file in files
            ]
            if frames and 70000 < stack["total_bytes"] < 150000:
                lines += [str(stack["total_bytes"]), *frames]
        return "\n".join(lines) + "\n"

    def assert_frames(self, report, expected, *files):
        self.assertEqual(self.frames(report, files), (CORPUS / expected).read_text())


class Languages(Case):
    def test_cpp_whatever_form_its_dwarf_has(self):
        forms = {
            "5": ["-gdwarf-5"],
            "4": ["-gdwarf-4"],
            "compressed": ["-gz"],
            "split": ["-gsplit-dwarf"],
            "split 4": ["-gdwarf-4", "-gsplit-dwarf"],
            "sections": ["-ffunction-sections", "-Wl,--gc-sections"],
            "not pie": ["-no-pie"],
        }
        if GOLD:
            forms["gold"] = GOLD
        for form, words in forms.items():
            with self.subTest(form):
                program = self.build("shop.cc", "g++", "-g", "-O2", *words)
                self.assert_frames(self.exit_report(self.memlog(program)), "shop.expected", "shop.cc")

    def test_cpp_whose_debug_file_is_elsewhere(self):
        program = self.build("shop.cc", "g++", "-g", "-O2")
        debug = self.folder / "shop.debug"
        self.tool("objcopy", "--only-keep-debug", "--compress-debug-sections", program, debug)
        self.tool("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program)
        self.assert_frames(self.exit_report(self.memlog(program)), "shop.expected", "shop.cc")

    @unittest.skipUnless(RUSTC, "no rustc here")
    def test_rust_of_both_manglings(self):
        # "legacy" is what older compilers write by themselves, newer ones want it asked for as unstable.
        for mangling in ("v0", "legacy"):
            with self.subTest(mangling):
                words = [RUSTC, "-g", "-O", "--crate-name=stall", f"-Csymbol-mangling-version={mangling}"]
                if mangling == "legacy":
                    words[1:1] = ["-Zunstable-options"]
                environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
                done = subprocess.run(
                    [*words, "-o", "stall", CORPUS / "stall.rs"], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
                )
                if done.returncode != 0 and "unknown codegen option" in done.stderr:
                    continue
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assert_frames(self.exit_report(self.memlog(self.folder / "stall")), f"stall.{mangling}.expected", "stall.rs")


class Loading(Case):
    """Libraries more than once, of other files than the name says, and of none."""

    def setUp(self):
        super().setUp()
        self.shelf = self.folder / "libshelf.so"
        self.tool("gcc", "-g", "-O1", "-shared", "-fPIC", "-o", self.shelf, CORPUS / "shelf.c")
        self.program = self.build("loads.c", "gcc", "-g", "-O1")

    def test_a_library_several_times_in_one_process(self):
        copy = self.folder / "copy.so"
        shutil.copy(self.shelf, copy)
        report = self.exit_report(self.memlog(self.program, self.shelf, copy, f"+{self.shelf}"))
        self.assert_frames(report, "loads.expected", "loads.c", "shelf.c")
        stacks = {stack["live_bytes"]: stack for stack in report["tree"]["stacks"]}
        # What is one place of one file is one, wherever it was mapped.
        self.assertEqual((stacks[70002]["frames"][0]["module"], stacks[70002]["live_blocks"]), (str(copy), 1))
        self.assertEqual((stacks[70001 + 70003]["frames"][0]["module"], stacks[70001 + 70003]["live_blocks"]), (str(self.shelf), 2))

    def test_a_library_that_was_loaded_by_a_relative_path(self):
        """It is there where the program ran; elsewhere a folder to search, or names that were kept, stand in."""
        (dump,) = self.memlog(self.program, "./libshelf.so").dumps()
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()

        def report(folder, **environment):
            env = self.environment(MEMLOG_SYMBOL_CACHE="off", **environment)
            done = harness.run_words([str(harness.MEMLOG), "report", "--json", str(dump)], folder, env, b"", harness.TIMEOUT)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)

        self.assert_frames(report(self.folder), "one_load.expected", "loads.c", "shelf.c")
        self.assert_frames(report(elsewhere, MEMLOG_BINARY_PATH=str(self.folder)), "one_load.expected", "loads.c", "shelf.c")
        self.assertNotIn("quietly", self.frames(report(elsewhere), ["shelf.c"]))
        env = self.environment(MEMLOG_SYMBOL_CACHE="off")
        done = harness.run_words([str(harness.MEMLOG), "report", "--full", str(dump)], elsewhere, env, b"", harness.TIMEOUT)
        self.assertRegex(done.stdout.decode(), r"(?m)^  ./libshelf.so \(build id [0-9a-f]{40}\): 2 of 2 places, the file is not here \(its path begins where the program ran\)$")

    def test_a_library_laid_out_for_a_fixed_address(self):
        for linker in (["-Wl,-Ttext-segment=0x7000000"], GOLD, ["-Wl,-z,noseparate-code"], ["-Wl,-z,max-page-size=0x200000"]):
            with self.subTest(linker):
                self.tool("gcc", "-g", "-O1", "-shared", "-fPIC", *linker, "-o", self.shelf, CORPUS / "shelf.c")
                report = self.exit_report(self.memlog(self.program, self.shelf))
                self.assert_frames(report, "one_load.expected", "loads.c", "shelf.c")

    def running_dump(self, library, change):
        """A program that runs on while `change` makes something else of its files; the dump taken then, and a way to end it."""
        run = self.memlog_start(self.program, "-w", library)
        self.assertEqual(run.stdout.readline(), b"kept\n")
        change()
        done = harness.run_words([str(harness.MEMLOG), "dump"], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        dump = pathlib.Path(done.stdout.decode().strip())

        def end():
            os.kill(self.report(dump)["processes"][0]["pid"], signal.SIGTERM)
            run.wait(harness.TIMEOUT)

        return dump, end

    def nameless(self, dump):
        """What `memlog symbolize` says that it has no names for."""
        words = [str(harness.MEMLOG), "symbolize", "-o", str(self.folder / "named"), str(dump)]
        done = harness.run_words(words, self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line.partition(": no names for ")[2] for line in done.stderr.decode().splitlines() if "no names for" in line]

    def assert_named_for_good(self, change):
        """Names while the process lives, whatever became of its files; the dump has them, so they are there behind its end."""
        dump, end = self.running_dump(self.shelf, change)
        for is_over in (False, True):
            if is_over:
                end()
            self.assert_frames(self.report(dump), "one_load.expected", "loads.c", "shelf.c")
            self.assertEqual(self.nameless(dump), [])

    # Which file a mapping is of tells the kernel only who may administrate.
    AS_ROOT = unittest.skipUnless(os.geteuid() == 0, "only root may follow /proc/PID/map_files")

    @AS_ROOT
    def test_a_library_replaced_while_it_runs(self):
        def replace():
            other = self.folder / "other.so"
            self.tool("gcc", "-g", "-O2", "-DOTHER", "-shared", "-fPIC", "-Wl,--build-id=0x1234", "-o", other, CORPUS / "shelf.c")
            other.rename(self.shelf)

        self.assert_named_for_good(replace)

    @AS_ROOT
    def test_a_library_and_a_program_deleted_while_they_run(self):
        def delete():
            self.shelf.unlink()
            self.program.unlink()

        self.assert_named_for_good(delete)

    def test_a_program_deleted_while_it_runs(self):
        dump, _ = self.running_dump(self.shelf, self.program.unlink)
        self.assert_frames(self.report(dump), "one_load.expected", "loads.c", "shelf.c")

    @AS_ROOT
    def test_a_library_in_another_mount_namespace(self):
        inside = self.folder / "inside"
        inside.mkdir()
        library = inside / "libshelf.so"
        script = f"mount -t tmpfs none {inside} && cp {self.shelf} {library} && exec {self.program} -w {library}"
        probe = subprocess.run(["unshare", "-m", "sh", "-c", f"mount -t tmpfs none {inside}"], capture_output=True, check=False)
        if probe.returncode != 0:
            self.skipTest("no mount namespaces here")
        run = self.memlog_start("unshare", "-m", "sh", "-c", script)
        self.assertEqual(run.stdout.readline(), b"kept\n")
        self.assertFalse(library.exists())
        done = harness.run_words([str(harness.MEMLOG), "dump"], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_frames(self.report(done.stdout.decode().strip()), "one_load.expected", "loads.c", "shelf.c")


if __name__ == "__main__":
    unittest.main(verbosity=2)
