"""examples/containers: what the recipe and the pod say, read out of them and done by bubblewrap over a root that has libc, sh and python3 alone."""
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from e2e import harness, pythons

try:
    import yaml
except ImportError:
    yaml = None

EXAMPLES = harness.ROOT / "examples" / "containers"
BUNDLE = harness.ROOT / "tools" / "dev" / "bundle.py"
PYTHON = os.path.realpath("/usr/bin/python3")
MODULES = f"/usr/lib/{os.path.basename(PYTHON)}"
# What images of programs have.
PROGRAMS = {"/bin/sh": "/bin/dash", **{f"/usr/bin/{name}": f"/usr/bin/{name}" for name in ("date", "grep", "cut")}, "/usr/bin/python3": PYTHON}
NEEDED = ("bwrap", "patchelf", "unshare", "nsenter")
SMALL_BYTES = 1 << 20


def lacks():
    missing = [name for name in NEEDED if not shutil.which(name)] + ([] if yaml else ["python3-yaml"])
    return "" if not missing else f"needs {', '.join(missing)} (tools/dev/setup test)"


def instructions(path):
    """Those of a recipe, in their order; a line ends each."""
    lines = (line for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return [tuple(line.split(" ", 1)) for line in lines]


@unittest.skipIf(lacks(), lacks())
class Containers(harness.Case):
    @classmethod
    def setUpClass(cls):
        """Memlog's tree as the archive has it, and a root without its libraries, once."""
        super().setUpClass()
        tried = subprocess.run(["bwrap", "--ro-bind", "/", "/", "--unshare-user", "--unshare-pid", "--unshare-net", "--proc", "/proc", "true"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if tried.returncode != 0:
            raise unittest.SkipTest(f"bubblewrap cannot wall in here: {tried.stdout}")
        folder = tempfile.TemporaryDirectory(prefix="memlog-containers.")
        cls.addClassCleanup(folder.cleanup)
        cls.place = pathlib.Path(folder.name)
        cls.place.chmod(0o755)
        cls.tree = cls.place / "memlog"
        env = {key: value for key, value in os.environ.items() if not key.startswith("MEMLOG_")}
        for words in (["ninja", "-C", harness.OUT, "install"], [BUNDLE, cls.tree, harness.OUT / "memlog-starter"]):
            subprocess.run(list(map(str, words)), env={**env, "PREFIX": str(cls.tree)}, stdout=subprocess.DEVNULL, check=True, timeout=harness.TIMEOUT)
        cls.root = cls.place / "root"
        for name, path in PROGRAMS.items():
            cls.copy(path, name)
            for line in subprocess.run(["ldd", path], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
                for library in re.findall(r"/\S+", line)[:1]:
                    cls.copy(library, library)
        for name in ("proc", "dev", "tmp", "dumps", "opt/memlog", MODULES[1:]):
            (cls.root / name).mkdir(parents=True, exist_ok=True)
        (cls.root / "dev" / "null").touch()
        cls.steps = instructions(EXAMPLES / "Containerfile")
        cls.pod = yaml.safe_load((EXAMPLES / "sidecar.yaml").read_text())["spec"]

    @classmethod
    def copy(cls, path, name):
        target = cls.root / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(os.path.realpath(path), target)
        target.chmod(0o755)

    def setUp(self):
        super().setUp()
        self.volume = self.folder / "volume"
        self.volume.mkdir()
        self.volume.chmod(0o777)

    def only(self, name):
        """What the one instruction of that name says; the last stage's."""
        (words,) = [words for one, words in self.steps if one == name]
        return words

    def box(self, *more):
        """A container: a root that nobody can write to, a small /tmp, no /dev/shm, no network, no capability."""
        return ["bwrap", "--die-with-parent", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--ro-bind", self.root, "/", "--ro-bind", MODULES, MODULES,
                "--proc", "/proc", "--dev-bind", "/dev/null", "/dev/null", "--size", SMALL_BYTES, "--tmpfs", "/tmp", "--clearenv",
                "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOSTNAME", "box", "--setenv", "PYTHONUNBUFFERED", "1", *more]

    def with_memlog(self):
        """As the recipe copies it, with its volume."""
        source, target = re.fullmatch(r"--from=memlog (\S+) (\S+)", self.only("COPY")).groups()
        (volume,) = json.loads(self.only("VOLUME"))
        self.assertEqual(f"{source}.tar.zst /", self.only("ADD").join(("/", "")), "the stage unpacks one archive, and the image takes its folder")
        return ["--ro-bind", self.tree, target, "--bind", self.volume, volume]

    def start(self, *words):
        self.said = self.folder / f"said.{len(list(self.folder.glob('said.*')))}"
        with open(self.said, "wb") as said:
            process = subprocess.Popen(list(map(str, words)), stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def told(self):
        return self.said.read_text(errors="replace")

    def inside(self, box, name):
        """The pid, as we see it, of a process in a container that has such a command line."""
        self.assertIsNone(box.poll(), self.told())
        for pid in itertools.chain.from_iterable(below(box.pid)):
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[0].endswith(name[0].encode()) and name[1].encode() in words:
                return pid
        return None

    def dump(self, reason):
        (folder,) = self.volume.iterdir()
        (dump,) = folder.glob(f"*.{reason}.pftrace")
        return self.report(dump)

    def test_the_recipe_takes_the_archive_that_is_made(self):
        version = subprocess.run([harness.MEMLOG, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[1]
        self.assertIn("name=memlog-$version-x86_64\n", (harness.ROOT / "tools" / "dev" / "package").read_text())
        self.assertEqual(self.only("ADD"), f"memlog-{version}-x86_64.tar.zst /")

    def test_the_recipe_records_its_program_and_hands_the_end_on(self):
        words = json.loads(self.only("ENTRYPOINT")) + json.loads(self.only("CMD"))
        box = self.start(*self.box("--unshare-user", "--uid", 1000, "--gid", 1000, "--unshare-pid", "--as-pid-1", *self.with_memlog()), *words)
        memlog = self.wait_for("memlog", lambda: self.inside(box, ("memlog", "run")), seen=self.told)
        self.wait_for("its program", lambda: self.inside(box, ("memlog", "run")) and "Serving HTTP" in self.told(), seen=self.told)
        os.kill(memlog, signal.SIGUSR2)
        self.wait_for("a dump", lambda: "0001.signal.pftrace" in self.told(), seen=self.told)
        os.kill(memlog, signal.SIGTERM)
        self.assertEqual(box.wait(harness.TIMEOUT), 128 + signal.SIGTERM, self.told())
        self.assertRegex(next(self.volume.iterdir()).name, r"^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.box$")
        for reason in ("signal", "exit"):
            (process,) = self.dump(reason)["processes"]
            self.assertTrue(process["complete"] and process["from_startup"] and process["total_blocks"] > 100, process["trouble"])

    def test_the_image_reads_its_dumps(self):
        entry = json.loads(self.only("ENTRYPOINT"))
        done = self.start(*self.box("--unshare-pid", "--cap-drop", "ALL", *self.with_memlog()), *entry, "python3", "-c", pythons.named("print(len(bytearray(3000000)))"))
        self.assertEqual(done.wait(harness.TIMEOUT), 0, self.told())
        self.assertIn("3000000\n", self.told())
        (folder,) = self.volume.iterdir()
        box = self.start(*self.box("--unshare-pid", "--cap-drop", "ALL", *self.with_memlog()), "/opt/memlog/bin/memlog", "report",
                         f"/dumps/{folder.name}/0001.exit.pftrace")
        self.assertEqual(box.wait(harness.TIMEOUT), 0, self.told())
        self.assertIn(pythons.HOLDER, self.told())

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_a_sidecar_attaches_to_the_other_container(self):
        server, sidecar = self.pod["containers"]
        self.assertTrue(self.pod["shareProcessNamespace"])
        keeper = self.start("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sleep", "infinity")
        (first,) = self.wait_for("the namespace", lambda: [pid for generation in below(keeper.pid) for pid in generation])
        join = ["nsenter", f"--target={first}", "--pid", "--mount"]
        user = server["securityContext"]["runAsUser"]
        # One with a user of its own and no capability; bubblewrap alone would have it in a user namespace.
        program = self.start(*join, *self.box("--cap-drop", "ALL", "--cap-add", "CAP_SETUID"), "python3", "-c",
                             f"import os, sys; os.setuid({user}); os.execvp(sys.argv[1], sys.argv[1:])", *server["command"])
        pid = self.wait_for("its program", lambda: "Serving HTTP" in self.told() and self.inside(program, ("python3", "http.server")), seen=self.told)
        rights = sidecar["securityContext"]
        self.assertEqual((rights["runAsUser"], rights["capabilities"]["drop"], rights["readOnlyRootFilesystem"]), (0, ["ALL"], True))
        self.assertEqual({mount["mountPath"] for mount in sidecar["volumeMounts"]}, {"/dumps", "/tmp"})
        given = [word for name in rights["capabilities"]["add"] for word in ("--cap-add", f"CAP_{name}")]
        environment = [word for one in sidecar["env"] for word in ("--setenv", one["name"], one["value"])]
        box = self.start(*join, *self.box("--cap-drop", "ALL", *given, *environment, *self.with_memlog()), *sidecar["command"])
        self.wait_for("the attach", lambda: self.inside(box, ("memlog", "attach")) and "attached to python3" in self.told(), seen=self.told)
        memlog = self.inside(box, ("memlog", "attach"))
        os.kill(memlog, signal.SIGTERM)
        self.assertEqual(box.wait(harness.TIMEOUT), 0, self.told())
        # The walls that bubblewrap is have the program's words in their command lines, too.
        (process,) = [process for process in self.dump("exit")["processes"] if process["name"] == "python3"]
        self.assertEqual((process["complete"], process["from_startup"]), (True, False), process["trouble"])
        self.assertEqual((program.poll(), os.path.exists(f"/proc/{pid}")), (None, True))


def below(pid):
    """The pids of a process's children, of their children, and so on, as lists; who ends meanwhile is left out."""
    generation = [pid]
    while generation:
        children = []
        for one in generation:
            try:
                children += harness.children_of(one)
            except OSError:
                continue
        generation = children
        yield generation


if __name__ == "__main__":
    unittest.main(verbosity=2)
