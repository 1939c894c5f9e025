"""Debian packages and the archive (tools/dev/package): lintian finds nothing; in a fresh system they install, run, upgrade, and go without a trace.

Needs root, and a moment of the network: the fresh system is made by mmdebstrap from where apt has its packages."""
# runner: timeout=900
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
TIMEOUT = 600
# Of the runner's own words memlog would speak on the program's standard error, as of any key that it does not know.
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
# What a package may leave: dpkg's own records and caches.
RECORDS = ("var/lib/dpkg/", "var/lib/apt/", "var/cache/", "var/log/", "etc/ld.so.cache", "dev/", "proc/", "sys/", "tmp/")
# Its mounts are its own, and go with it.
MOUNTED = 'mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
PROGRAM = "x=$(head -c 3000000 /dev/zero | tr '\\0' x); echo ${#x}"


def said(*words, **how):
    answer = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT, check=False, **{"env": ENVIRONMENT, **how})
    if answer.returncode != 0:
        raise AssertionError(f"{words}: {answer.returncode}\n{answer.stdout[-4000:]}")
    return answer.stdout


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("mmdebstrap") and shutil.which("lintian"), "needs root, lintian and mmdebstrap (tools/dev/setup ci)")
class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="memlog-package-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        said(ROOT / "tools" / "dev" / "package", cls.folder)
        cls.packages = sorted(cls.folder.glob("*.deb"))
        (cls.archive,) = cls.folder.glob("*.tar.zst")

    def test_lintian_finds_nothing(self):
        self.assertEqual([package.name.split("_")[0] for package in self.packages], ["libmemlog-dev", "memlog"])
        self.assertEqual(said("lintian", "--allow-root", "--fail-on", "warning", *self.packages), "")

    def test_the_archive_runs_where_it_is_unpacked(self):
        place = self.folder / "any where"
        place.mkdir()
        said("tar", "-C", place, "-xf", self.archive)
        (tree,) = place.iterdir()
        moved = tree.rename(place / "moved")
        out = said(moved / "bin" / "memlog", "run", "-q", "--no-page", "-o", place / "dumps", "--", "sh", "-c", PROGRAM)
        self.assertEqual(out, "3000000\n")
        self.assertIn("every allocation that memlog saw was recorded", said(moved / "bin" / "memlog", "report", "--full", place / "dumps" / "0001.exit.pftrace"))
        for program in ("bin/memlog", "lib/memlog/memlog-service", "lib/memlog/memlog-analyzer", "lib/memlog/memlog-tracer", "lib/memlog/memlog-collect",
                        "lib/memlog/memlog-fleet"):
            taken = re.findall(r"=> (\S.*) \(0x", said("ldd", moved / program))
            self.assertEqual([path for path in taken if not path.startswith(str(moved)) and not re.search(r"/lib[cm]\.so\.6$", path)], [], program)
        # Of each library that it brings its terms.
        self.assertGreaterEqual(len(list((moved / "share" / "doc" / "memlog" / "libraries").iterdir())), 10)

    def fresh(self):
        root = self.folder / "system"
        sources = "\n".join(path.read_text() for path in pathlib.Path("/etc/apt/sources.list.d").glob("*.sources")) or pathlib.Path("/etc/apt/sources.list").read_text()
        options = self.folder / "apt.conf"
        options.write_text("\n".join(line for line in said("apt-config", "dump").splitlines() if line.startswith("Acquire::Check")))
        try:
            said("mmdebstrap", "--variant=apt", "--mode=root", f"--aptopt={options}", "bookworm", root, "-", input=sources)
        except AssertionError as error:
            if re.search("Could not (resolve|connect)|Temporary failure|Failed to fetch|cannot mount", str(error)):
                self.skipTest("no fresh system can be made here")
            raise
        return root

    def files(self, root):
        found = set()
        for folder, folders, names in os.walk(root):
            below = os.path.relpath(folder, root) + "/"
            if below.startswith(RECORDS):
                folders.clear()
                continue
            found.update(os.path.normpath(below + name) for name in folders + names)
        return {name for name in found if not name.startswith(RECORDS) and f"{name}/" not in RECORDS}

    def test_in_a_fresh_system_it_installs_runs_upgrades_and_goes_without_a_trace(self):
        root = self.fresh()

        def inside(*words):
            environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/tmp"}
            return said("unshare", "-m", "sh", "-c", MOUNTED, root, *words, env=environment)

        for package in self.packages:
            shutil.copy(package, root / "tmp")
        names = [f"/tmp/{package.name}" for package in self.packages]
        dependencies = sorted({name.split()[0] for name in said("dpkg-deb", "-f", self.packages[1], "Depends").split(", ")})
        inside("apt-get", "update", "-q")
        inside("apt-get", "install", "-y", "-q", "--no-install-recommends", *dependencies, "libev-dev", "libjansson-dev", "libmicrohttpd-dev")
        before = self.files(root)
        inside("apt-get", "install", "-y", "-q", "--no-install-recommends", *names)
        self.assertEqual(inside("memlog", "run", "-q", "--no-page", "-o", "/tmp/dumps", "--", "sh", "-c", PROGRAM), "3000000\n")
        self.assertIn("every allocation that memlog saw was recorded", inside("memlog", "report", "--full", "/tmp/dumps/0001.exit.pftrace"))
        # A stripped client is put into a process that runs.
        attached = inside("sh", "-c", "sh -c 'for i in 1 2 3 4 5 6 7 8; do read -t 1 x < /dev/null; sleep 0.5; done' & "
                          "sleep 0.5; memlog attach --no-page --duration=2 -o /tmp/attached $! 2>&1; ls /tmp/attached")
        self.assertRegex(attached, r"attached to (sh|dash) .* functions hooked")
        self.assertIn("0001.exit.pftrace", attached)
        self.assertIn("/usr/share/man/man1/memlog-run.1.gz", inside("dpkg", "-L", "memlog"))
        later = self.folder / "later"
        said("dpkg-deb", "-R", self.packages[1], later)
        control = later / "DEBIAN" / "control"
        control.write_text(control.read_text().replace("\nVersion: ", "\nVersion: 1:"))
        said("dpkg-deb", "--root-owner-group", "-b", later, root / "tmp" / "memlog-later.deb")
        inside("apt-get", "remove", "-y", "-q", "libmemlog-dev")
        inside("apt-get", "install", "-y", "-q", "/tmp/memlog-later.deb")
        self.assertEqual(inside("memlog", "run", "-q", "--no-page", "-o", "/tmp/dumps2", "--", "sh", "-c", PROGRAM), "3000000\n")
        inside("apt-get", "purge", "-y", "-q", "memlog")
        self.assertEqual(self.files(root), before)


if __name__ == "__main__":
    unittest.main(verbosity=2)
