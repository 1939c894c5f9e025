"""tools/dev/setup where packages have other names, where some are not to be had, and where there is no apt at all."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
TABLE = ROOT / "tools/dev/packages.txt"

# Stand-ins: `installed` and `known` beside them are lists of names, `known-after-update` is what an update brings; each says what it was asked.
DPKG_QUERY = 'cd "$FAKE"; for name in "$@"; do grep -qx -- "$name" installed && echo "$name installed"; done; exit 1'
APT_CACHE = """cd "$FAKE"; shift; for name in "$@"; do
    if grep -qx -- "$name" known; then printf '%s:\\n  Installed: (none)\\n  Candidate: 1.0\\n  Version table:\\n     1.0 500\\n' "$name"; fi
done"""
APT_GET = """cd "$FAKE"; echo "$*" >> asked; case " $* " in
    *" update "*) cat known-after-update >> known;;
    *) while [ "$1" != -o ]; do shift; done; while [ "$1" = -o ]; do shift 2; done
       for name in "$@"; do grep -qx -- "$name" known || { echo "E: no $name"; exit 100; }; echo "$name" >> installed; done;;
esac"""


class Setup(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="memlog-setup-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tree = self.folder / "tree"
        (self.tree / "tools/dev").mkdir(parents=True)
        for name in ("setup", "packages.txt"):
            shutil.copy(ROOT / "tools/dev" / name, self.tree / "tools/dev")
        self.fake = self.folder / "bin"
        self.fake.mkdir()

    def stand_in(self, **programs):
        for name, text in programs.items():
            file = self.fake / name.replace("_", "-")
            file.write_text(f"#!/bin/sh\n{text}\n")
            file.chmod(0o755)

    def suite(self, known, installed=(), known_after_update=()):
        """A Debian with these packages. Root is not needed, and nobody is asked for a password."""
        self.stand_in(dpkg_query=DPKG_QUERY, apt_cache=APT_CACHE, apt_get=APT_GET, sudo='[ "$1" != -n ] || shift; exec "$@"', npm="")
        for name, names in (("known", known), ("installed", installed), ("known-after-update", known_after_update)):
            (self.fake / name).write_text("".join(f"{word}\n" for word in names))
        self.forget()

    def forget(self):
        """That packages were looked up before."""
        shutil.rmtree(self.tree / "out", ignore_errors=True)

    def setup_says(self, level="run", path=None, **environment):
        ran = subprocess.run(
            [self.tree / "tools/dev/setup", level], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
            env={"PATH": path or f"{self.fake}:{os.environ['PATH']}", "FAKE": str(self.fake), **environment})
        self.assertEqual(ran.stdout, "")
        return ran.returncode, ran.stderr

    def entries(self, level="run"):
        """What the script wants, as it says when it can have nothing."""
        self.suite(known=())
        code, said = self.setup_says(level)
        self.assertEqual(code, 125)
        return re.search(r"Debian's names: (.*)", said)[1].split()

    def installed(self):
        return (self.fake / "installed").read_text().split()

    def test_of_several_names_the_one_that_the_suite_has_is_installed_and_then_nothing_is_asked(self):
        entries = self.entries()
        self.assertIn("libmsgpack-c-dev|libmsgpack-dev", entries)
        plain = [entry for entry in entries if "|" not in entry]
        for name in ("libmsgpack-dev", "libmsgpack-c-dev"):
            with self.subTest(name=name):
                self.suite(known=[*plain, name])
                code, said = self.setup_says()
                self.assertEqual((code, said.count("\n")), (0, 1), said)
                self.assertIn(name, self.installed())
                (self.fake / "asked").unlink()
                self.forget()
                self.assertEqual(self.setup_says(), (0, ""))
                self.assertFalse((self.fake / "asked").exists(), "apt-get was asked although nothing was missing")

    def test_what_a_suite_need_not_have_is_left_out_and_named(self):
        wanted = self.entries("test")
        self.assertIn("clickhouse-server?", wanted)
        self.suite(known=[entry.split("|")[-1] for entry in wanted if not entry.endswith("?")])
        code, said = self.setup_says("test")
        self.assertEqual(code, 0, said)
        self.assertRegex(said, "has no .*clickhouse-server")
        self.assertNotIn("clickhouse-server", self.installed())
        self.assertIn("sqlite3", self.installed())

    def test_old_package_lists_are_fetched_and_what_they_do_not_have_either_is_named(self):
        every = [entry.split("|")[0] for entry in self.entries()]
        self.suite(known=every[:4], known_after_update=every[4:])
        code, said = self.setup_says()
        self.assertEqual(code, 0, said)
        self.assertIn("updating the package lists", said)
        self.assertEqual(sorted(self.installed()), sorted(every))
        self.suite(known=[], known_after_update=[name for name in every if name not in ("gcc", "libmsgpack-c-dev")])
        code, said = self.setup_says()
        self.assertEqual(code, 125)
        self.assertIn("apt-get knows no gcc libmsgpack-c-dev or libmsgpack-dev", said)

    def test_what_apt_cannot_install_is_told_with_its_own_words(self):
        every = [entry.split("|")[0] for entry in self.entries()]
        self.suite(known=every)
        self.stand_in(apt_get='echo "E: Unable to fetch some archives"; exit 100')
        code, said = self.setup_says()
        self.assertEqual(code, 125)
        self.assertIn("E: Unable to fetch some archives", said)

    def without_apt(self, text):
        """What it says on a system that calls itself so."""
        release = self.folder / "os-release"
        release.write_text(text)
        for name in ("bash", "dirname", "env"):
            if not (self.fake / name).exists():
                (self.fake / name).symlink_to(shutil.which(name))
        code, said = self.setup_says(path=str(self.fake), OS_RELEASE=str(release))
        self.assertEqual(code, 125)
        return said

    def test_without_apt_the_names_are_those_of_the_system(self):
        for text, column, brings in (
            ("NAME=Fedora Linux\nID=fedora\n", 1, "dnf install"),
            ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', 1, "dnf install"),
            ("ID=arch\n", 2, "pacman -S --needed"),
            ("ID=manjaro\nID_LIKE=arch\n", 2, "pacman -S --needed"),
            ('ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n', 3, "zypper install"),
            ("ID=alpine\n", 4, "apk add"),
        ):
            with self.subTest(text=text):
                said = self.without_apt(text)
                self.assertIn("none of it was tried here", said)
                names = re.search(rf"{re.escape(brings)} (.*)", said)[1].split()
                rows = [line.split("|") for line in TABLE.read_text().splitlines() if not line.startswith("#")]
                self.assertLessEqual({word for row in rows for word in row[column].split()}, set(names))
                self.assertEqual("musl" in said.replace("musl-dev", ""), column == 4)

    def test_a_system_that_nobody_has_names_for_gets_debians(self):
        for text in ("ID=plan9\n", ""):
            self.assertRegex(self.without_apt(text), "Debian's names: gcc g\\+\\+")

    def test_each_package_that_building_needs_has_its_names_elsewhere(self):
        rows = [line.split("|") for line in TABLE.read_text().splitlines() if not line.startswith("#")]
        self.assertEqual([row for row in rows if len(row) != 5 or not all(row)], [])
        self.assertEqual({row[0] for row in rows} - {"npm"}, {entry.split("|")[0] for entry in self.entries()})


if __name__ == "__main__":
    unittest.main()
