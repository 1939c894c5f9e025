"""Debian packages and the archive (tools/dev/package): lintian finds nothing; in a fresh system they install, run, upgrade, and go without a trace.

Needs root, and a moment of the network: the fresh system is made by mmdebstrap from where apt has its packages."""
# runner: timeout=1200
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "examples"), str(ROOT / "tests" / "e2e")]
import collecting  # noqa: E402 pylint: disable=wrong-import-position
import manager  # noqa: E402 pylint: disable=wrong-import-position

TIMEOUT = 600
# Of the runner's own words memlog would speak on the program's standard error, as of any key that it does not know.
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
# What a package may leave: dpkg's own records and caches.
RECORDS = ("var/lib/dpkg/", "var/lib/apt/", "var/cache/", "var/log/", "etc/ld.so.cache", "dev/", "proc/", "sys/", "tmp/")
# Its mounts are its own, and go with it.
MOUNTED = 'mount --rbind /proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"'
INSIDE = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/tmp"}
APT = ("apt-get", "-y", "-q", "--no-install-recommends", "install")
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
        cls.packages = {package.name.split("_")[0]: package for package in sorted(cls.folder.glob("*.deb"))}
        (cls.archive,) = cls.folder.glob("*.tar.zst")

    def test_lintian_finds_nothing(self):
        self.assertEqual(list(self.packages), ["libmemlog-dev", "memlog-collect", "memlog"])
        self.assertEqual(said("lintian", "--allow-root", "--fail-on", "warning", *self.packages.values()), "")

    def test_the_archive_runs_where_it_is_unpacked(self):
        place = self.folder / "any where"
        place.mkdir()
        said("tar", "-C", place, "-xf", self.archive)
        (tree,) = place.iterdir()
        moved = tree.rename(place / "moved")
        out = said(moved / "bin" / "memlog", "run", "--no-page", "-o", place / "dumps", "--", "sh", "-c", PROGRAM)
        self.assertIn("3000000\n", out)
        self.assertIn(f"memlog: next: '{moved}/bin/memlog' report", out)
        self.assertIn("every allocation that memlog saw was recorded", said(moved / "bin" / "memlog", "report", "--full", place / "dumps" / "0001.exit.pftrace"))
        for program in ("bin/memlog", *(f"lib/memlog/memlog{part}" for part in ("", "-service", "-analyzer", "-tracer", "-collect", "-fleet"))):
            taken = re.findall(r"=> (\S.*) \(0x", said("ldd", moved / program))
            self.assertEqual([path for path in taken if not path.startswith(str(moved)) and not re.search(r"/lib[cm]\.so\.6$", path)], [], program)
        # A system that is too old is told so in one line, by a program that runs there.
        versions = re.findall(r"Name: GLIBC_([\d.]+)", said("readelf", "--version-info", moved / "bin" / "memlog"))
        self.assertLess(max(tuple(map(int, version.split("."))) for version in versions), (2, 17))
        floor = moved / "lib" / "memlog" / "glibc"
        self.assertRegex(floor.read_text(), r"^2\.3\d\n$")
        floor.write_text("2.100\n")
        old = subprocess.run([moved / "bin" / "memlog", "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(old.returncode, 125)
        self.assertRegex(old.stdout, r"^memlog: this archive needs glibc 2\.100 or later, as .*; this system has 2\.\d+\n$")
        # Of each library that it brings its terms.
        self.assertGreaterEqual(len(list((moved / "share" / "doc" / "memlog" / "libraries").iterdir())), 10)

    def test_the_archive_runs_in_a_bare_system(self):
        root = self.bare()
        said("tar", "-C", root / "opt", "-xf", self.archive)
        self.addCleanup(shutil.rmtree, root / "opt" / "memlog")
        (tree,) = (root / "opt").iterdir()
        tree.rename(root / "opt" / "memlog")
        memlog = "/opt/memlog/bin/memlog"
        out = self.inside(root, memlog, "run", "--no-page", "-o", "/tmp/bare", "--", "/bin/sh", "-c", "ls / > /dev/null")
        self.assertIn("complete: no event lost", out)
        self.assertIn(f"memlog: next: {memlog} report", out)
        self.assertIn("in ls ", self.inside(root, memlog, "report", "/tmp/bare/0001.exit.pftrace"))
        self.inside(root, memlog, "flamegraph", "-o", "/tmp/bare/heap.html", "/tmp/bare/0001.exit.pftrace")
        self.assertGreater((root / "tmp" / "bare" / "heap.html").stat().st_size, 10_000)
        answered = self.inside(root, "sh", "-c", f"{memlog} collect -q --store=sqlite:/tmp/bare/store --listen=unix:/tmp/bare/socket & "
                               "for i in $(seq 600); do [ ! -S /tmp/bare/socket ] || break; sleep 0.1; done; "
                               "kill $! && wait $!; echo ended with $?; ls /tmp/bare/store")
        self.assertIn("ended with 0\n/tmp/bare/store", answered)

    @classmethod
    def bare(cls):
        """A system with hardly more than apt."""
        root = cls.folder / "bare"
        if root.exists():
            return root
        sources = "\n".join(path.read_text() for path in pathlib.Path("/etc/apt/sources.list.d").glob("*.sources")) or pathlib.Path("/etc/apt/sources.list").read_text()
        options = cls.folder / "apt.conf"
        options.write_text("\n".join(line for line in said("apt-config", "dump").splitlines() if line.startswith("Acquire::Check")))
        try:
            said("mmdebstrap", "--variant=apt", "--mode=root", f"--aptopt={options}", "bookworm", root, "-", input=sources)
        except AssertionError as error:
            if re.search("Could not (resolve|connect)|Temporary failure|Failed to fetch|cannot mount", str(error)):
                raise unittest.SkipTest("no fresh system can be made here") from error
            raise
        return root

    @classmethod
    def fresh(cls):
        """With what the packages depend on, too, and systemd, which one of them has a unit for."""
        root = cls.folder / "system"
        if root.exists():
            return root
        said("cp", "-a", cls.bare(), root)
        needed = {name.split()[0] for package in cls.packages.values() for name in said("dpkg-deb", "-f", package, "Depends").split(", ")}
        cls.inside(root, "apt-get", "update", "-q")
        cls.inside(root, *APT, *sorted(needed - set(cls.packages)), "systemd", "libcurl4")
        return root

    @staticmethod
    def inside(root, *words):
        return said("unshare", "-m", "sh", "-c", MOUNTED, root, *words, env=INSIDE)

    def later(self, name, folder):
        """The name of the same package's file, of a later version."""
        tree = folder / f"{name}-later"
        said("dpkg-deb", "-R", self.packages[name], tree)
        control = tree / "DEBIAN" / "control"
        version = said("dpkg-deb", "-f", self.packages[name], "Version").strip()
        control.write_text(control.read_text().replace("\nVersion: ", "\nVersion: 1:").replace(f"memlog (= {version})", f"memlog (= 1:{version})"))
        said("dpkg-deb", "--root-owner-group", "-b", tree, f"{tree}.deb")
        return f"{name}-later.deb"

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
            return self.inside(root, *words)

        names = [f"/tmp/{pathlib.Path(shutil.copy(self.packages[name], root / 'tmp')).name}" for name in ("memlog", "libmemlog-dev")]
        before = self.files(root)
        inside(*APT, *names)
        self.assertEqual(inside("memlog", "run", "-q", "--no-page", "-o", "/tmp/dumps", "--", "sh", "-c", PROGRAM), "3000000\n")
        self.assertIn("every allocation that memlog saw was recorded", inside("memlog", "report", "--full", "/tmp/dumps/0001.exit.pftrace"))
        # A stripped client is put into a process that runs.
        attached = inside("sh", "-c", "sh -c 'for i in 1 2 3 4 5 6 7 8; do read -t 1 x < /dev/null; sleep 0.5; done' & "
                          "sleep 0.5; memlog attach --no-page --duration=2 -o /tmp/attached $! 2>&1; ls /tmp/attached")
        self.assertRegex(attached, r"attached to (sh|dash) .* functions hooked")
        self.assertIn("0001.exit.pftrace", attached)
        self.assertIn("/usr/share/man/man1/memlog-run.1.gz", inside("dpkg", "-L", "memlog"))
        inside("apt-get", "remove", "-y", "-q", "libmemlog-dev")
        inside(*APT, f"/tmp/{self.later('memlog', root / 'tmp')}")
        self.assertEqual(inside("memlog", "run", "-q", "--no-page", "-o", "/tmp/dumps2", "--", "sh", "-c", PROGRAM), "3000000\n")
        # What another package has is named.
        self.assertIn("memlog-collect is neither in /usr/bin nor in /usr/bin/../lib/memlog; Debian's package memlog-collect has it",
                      inside("sh", "-c", "memlog collect --store=sqlite:/tmp/store 2>&1 || [ $? = 125 ]"))
        self.assertIn("Usage: memlog collect", inside("memlog", "collect", "--help"))
        inside("apt-get", "purge", "-y", "-q", "memlog")
        self.assertEqual(self.files(root), before)

    @unittest.skipIf(manager.lacks(), manager.lacks())
    def test_the_collector_s_unit_waits_for_its_start_takes_a_report_lives_through_an_upgrade_and_goes_without_a_trace(self):
        root, place = self.fresh(), self.folder / "place"
        dropin = place / "units" / "memlog-collect.service.d"
        dropin.mkdir(parents=True)
        for name in ("memlog", "memlog-collect"):
            shutil.copy(self.packages[name], place)
        collector = collecting.Collector(place)
        # As in tests/examples/collect_service_test.py: a systemd in namespaces shows its services no credentials.
        collector.tokens_file.chmod(0o440)
        (dropin / "test.conf").write_text(
            f"[Service]\nLoadCredential=\nSupplementaryGroups=root\nEnvironment=CREDENTIALS_DIRECTORY=/srv\nStandardError=append:/srv/log\n"
            f"ExecStart=\nExecStart=/usr/bin/memlog --no-config collect -q --store=sqlite:%S/memlog-collect/fleet.db --tokens=/srv/tokens "
            f"--listen=127.0.0.1:{collector.port}\n")
        for path in (self.folder, place, place / "units", dropin):
            path.chmod(0o755)
        system = manager.Manager(place, root)
        self.addCleanup(system.end)
        wrong = system.start()
        if wrong:
            self.skipTest(f"no systemd of one's own runs here: {wrong}")

        def inside(*words, code=0):
            answer = system.call("env", "-i", *(f"{key}={value}" for key, value in INSIDE.items()), *words, timeout=TIMEOUT)
            self.assertEqual(answer.returncode, code, f"{words}: {answer.stdout[-3000:]}\n{(place / 'log').read_text() if (place / 'log').exists() else ''}")
            return answer.stdout

        def wait_for_the_collector():
            deadline = time.monotonic() + TIMEOUT
            while not collector.is_up():
                self.assertLess(time.monotonic(), deadline, system.log())
                time.sleep(0.05)

        inside("sh", "-c", "systemctl is-system-running --wait || true")
        before = self.files(root)
        inside(*APT, *(f"/srv/{self.packages[name].name}" for name in ("memlog", "memlog-collect")))
        self.assertEqual(inside("systemctl", "is-enabled", "memlog-collect", code=1), "disabled\n")
        self.assertEqual(inside("systemctl", "is-active", "memlog-collect", code=3), "inactive\n")
        inside("systemctl", "enable", "--now", "memlog-collect")
        wait_for_the_collector()
        first = inside("systemctl", "show", "--property=MainPID", "--value", "memlog-collect")
        (place / "token").write_text(collector.tokens["default"]["write"] + "\n")
        (place / "triggers.json").write_text('{"interval_seconds": 1, "live": {"browser": "2M"}}')
        inside("memlog", "run", "-q", "--no-page", "-o", "/srv/run", "--triggers=/srv/triggers.json", f"--upload=http://127.0.0.1:{collector.port}/",
               "--upload-token-file=/srv/token", "--upload-spool=/srv/outbox", "--", "sh", "-c", PROGRAM + "; sleep 4")
        self.assertEqual(collector.settle(), {"waiting": 0, "stored": 1, "refused": 0})
        (report,) = collector.ask("reports")["reports"]
        self.assertEqual(report["trigger"], "live")
        self.assertGreater(report["live_bytes"], 2_000_000)

        inside(*APT, *(f"/srv/{self.later(name, place)}" for name in ("memlog", "memlog-collect")))
        wait_for_the_collector()
        self.assertNotIn(inside("systemctl", "show", "--property=MainPID", "--value", "memlog-collect"), (first, "0\n"))
        self.assertEqual(collector.ask("reports")["reports"], [report])
        # Removed it stops, and keeps what it has; purged it has nothing.
        inside("apt-get", "remove", "-y", "-q", "memlog-collect")
        self.assertFalse(collector.is_up())
        self.assertTrue((root / "var/lib/private/memlog-collect/fleet.db").exists())
        inside("apt-get", "purge", "-y", "-q", "memlog-collect", "memlog")
        self.assertEqual(self.files(root), before)


if __name__ == "__main__":
    unittest.main(verbosity=2)
