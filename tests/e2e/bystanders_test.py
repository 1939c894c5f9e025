"""What memlog is put in front of runs as without it, and memlog says of each what it has seen and what not: kinds of programs (bystanders.py),
each bare and under memlog. Same output, exit code and files, and the right word on coverage. The short form runs here; all kinds by
`tests/e2e/bystanders.py`."""
import hashlib
import os
import re
import shutil
import sys
import unittest

import bystanders
import harness

sys.path.insert(0, str(harness.ROOT / "tools/bench"))
import browsers  # noqa: E402

WANTED = [name for name in os.environ.get("MEMLOG_BYSTANDERS", "").split(",") if name]


def is_wanted(kind):
    return any(name in ("all", kind.name) for name in WANTED) if WANTED else kind.short


def files_below(folder):
    """Name and content of each regular file; what a browser keeps in its own folder differs from run to run."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and "home" not in path.parts
    }


# What differs from run to run of most programs: pids, addresses, times of day.
FLEETING = re.compile(r"0x[0-9a-f]+|==\d+==|process \d+|\[\d+\]|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*|\d+\.\d+ s\b")


def lasting(text):
    return FLEETING.sub("*", text)


# What a child has of its own that only waits, or is about to become another program.
IDLE_BYTES = 8 << 20


def word_on(entry):
    """A forked child that has allocated nothing yet has nothing unseen, but for what it maps."""
    if not entry["recorded"]:
        idle = entry.get("idle") and entry["footprint_bytes"] < IDLE_BYTES
        return bystanders.SEEN if idle else bystanders.UNRECORDED
    return bystanders.UNSEEN if entry["coverage"]["unseen"] else bystanders.SEEN


# Of private memory this much is nobody's fault, and a block takes this much beyond what was asked for (service/session/coverage.h).
SMALL_BYTES = 8 << 20
BLOCK_BYTES = 32


def sizes_in(text):
    """Figures of a sentence, in bytes, as far as they are rounded."""
    return [float(number) * 1024 ** " KMGT".index(unit[0]) for number, unit in re.findall(r"([\d.]+) ([KMGT]iB)", text)]


def word_by_reading(entry):
    """The right word where nothing but a process's size can tell: unseen where the heap at its most, with what others are known to have mapped,
    what files' mappings have of their own and what a fork has made common since, does not explain half of the private memory beyond what is nobody's fault. At its most by that reading it was at least what was live then, and at most the peak of its life with
    all blocks that there ever were. Where one of them explains half and the other does not, the sentence has the figure."""
    private = entry["coverage"]["private_bytes"] or 0
    half = (private - SMALL_BYTES) / 2 - sum(entry["coverage"][name] for name in ("mapped_bytes", "files_bytes", "shared_bytes"))
    least = entry["coverage"]["heap_bytes"]
    most = entry["peak_bytes"] + entry["inherited_bytes"] + BLOCK_BYTES * (entry["total_blocks"] + entry["inherited_blocks"])
    if private <= SMALL_BYTES or least >= half:
        return bystanders.SEEN
    told = sizes_in(entry["coverage"]["unseen"])[1:]
    return bystanders.UNSEEN if most < half or any(figure < half for figure in told) else bystanders.SEEN


class Bystanders(harness.Case):
    def play(self, kind, run):
        """In a fresh folder of one name: paths in output and files are the same."""
        folder = self.folder / "work"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        folder.chmod(0o755)
        self.folder.chmod(0o755)
        if kind.before:
            kind.before(folder)
        words = [word.replace("{folder}", str(folder)) for word in kind.words]
        code, out, err = run(words, folder, self.environment(PATH=bystanders.DEBIAN, TMPDIR=str(folder), LC_ALL="C.UTF-8"))
        return {
            "code": code, "out": lasting(out.decode(errors="replace")), "err": lasting(err) if kind.same_stderr else "",
            "files": files_below(folder),
        }

    def bare(self, kind):
        def run(words, folder, env):
            answer = harness.run_words(words, folder, env, kind.stdin, kind.timeout)
            return answer.returncode, answer.stdout, answer.stderr.decode(errors="replace")

        return self.play(kind, run)

    def under_memlog(self, kind):
        def run(words, folder, env):
            self.run_ended = self.memlog(*words, cwd=folder, env=env, stdin=kind.stdin, timeout=3 * kind.timeout)
            return self.run_ended.code, self.run_ended.out, self.run_ended.err

        return self.play(kind, run), self.run_ended

    def hold_to_words(self, kind, report):
        entries = report["processes"]
        for name, word, reason in kind.sees:
            found = [entry for entry in entries if re.fullmatch(name, entry["name"])]
            self.assertTrue(found, f"{name} is not among {[entry['name'] for entry in entries]}")
            said = [(word_on(entry), entry["reason"] or entry["coverage"]["unseen"]) for entry in found]
            if word == bystanders.BY_READING:
                self.hold_to_reading([entry for entry in found if entry["recorded"]])
            else:
                self.assertTrue(any(one == word and re.search(reason, why) for one, why in said), (word, reason, said))

    def hold_to_reading(self, entries):
        self.assertTrue(entries)
        inlined = [entry for entry in entries if entry["coverage"]["unseen"] == browsers.INLINED]
        if inlined:
            self.assertGreater(browsers.places_past_malloc("/usr/lib/chromium/chromium"), 100, inlined[0]["name"])
        for entry in (one for one in entries if one not in inlined):
            self.assertEqual(word_on(entry), word_by_reading(entry), (entry["name"], entry["coverage"], entry["peak_bytes"], entry["total_blocks"]))
            if word_on(entry) == bystanders.UNSEEN:
                private = entry["coverage"]["private_bytes"]
                self.assertRegex(entry["coverage"]["unseen"], rf"^of {private / 2**20:.1f} MiB private memory the heap explains [\d.]+ [KM]?i?B: the rest is memory that the program maps itself, or that memlog does not see$")

    def hold_to_itself(self, report, text):
        """Whatever is said of the whole is what is said of its parts, and nothing was lost of any."""
        self.assertTrue(report["dump"]["complete"], report["dump"])
        for entry in report["processes"]:
            self.assertEqual((entry["trouble"], entry["lost_events"]), ("", 0), entry["name"])
        for entry in report["processes"]:
            self.assertEqual(entry["recorded"], not entry["reason"], entry["name"])
            if not entry["recorded"]:
                self.assertEqual((entry["total_bytes"], entry["stacks"]), (0, []), entry["name"])
        unseen = [entry for entry in report["processes"] if word_on(entry) != bystanders.SEEN]
        self.assertEqual(report["dump"]["covered"], not unseen, (report["dump"]["uncovered"], [entry["name"] for entry in unseen]))
        if not (report["dump"]["covered"] and report["dump"]["complete"]):
            self.assertNotIn("was recorded, none was lost", text)
        self.assertLessEqual(report["tree"]["live_bytes"], report["tree"]["peak_bytes"])

    def look_at(self, kind):
        bare = self.bare(kind)
        again = self.bare(kind)
        self.assertEqual(again, bare, "alone it does not do the same twice")
        under, run = self.under_memlog(kind)
        self.assertEqual(under, bare)
        self.assertEqual(len(run.dumps()), 1, run.folder)
        report = self.whole_report(run.dumps()[0])
        answer = harness.run_words([str(harness.MEMLOG), "report", "--full", str(run.dumps()[0])], self.folder, self.environment(), b"", harness.TIMEOUT)
        self.hold_to_words(kind, report)
        self.hold_to_itself(report, answer.stdout.decode())


def add(kind):
    def test(self):
        lacking = kind.lacks()
        if lacking:
            self.skipTest(f"{kind.name}: there is no {lacking}")
        self.look_at(kind)

    setattr(Bystanders, "test_" + re.sub(r"\W+", "_", kind.name).strip("_"), test)


for one in bystanders.KINDS:
    if is_wanted(one):
        add(one)


class Catalogue(unittest.TestCase):
    def test_it_has_the_kinds_that_it_promises(self):
        names = [kind.name for kind in bystanders.KINDS]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreaterEqual(len(names), 60)


if __name__ == "__main__":
    unittest.main()
