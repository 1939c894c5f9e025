"""examples/systemd: the units as they stand, run by a systemd of the test's own: a hardened unit is recorded, and goes on as it was."""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import unittest

import manager
from e2e import harness

EXAMPLES = harness.ROOT / "examples" / "systemd"
MEMLOG = manager.PLACE / "memlog" / "bin" / "memlog"
LIBRARY = pathlib.Path("var/lib/memlog")
# It has a worker before memlog comes, and makes another one when it is told to. Who is asked to watch it must hear of it, and not of its child.
SERVER = """
import os, signal, socket, time
kept = [bytearray(100000)]
def notify(words):
    if "NOTIFY_SOCKET" in os.environ:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.connect(os.environ["NOTIFY_SOCKET"].replace("@", chr(0), 1))
            manager.send(words)
def work(*_):
    if os.fork() == 0:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        while True:
            kept[:] = [bytearray(50000) for i in range(40)]
            time.sleep(0.01)
signal.signal(signal.SIGUSR1, work)
work()
notify(b"READY=1")
while True:
    kept[:] = [bytearray(100000) for i in range(30)]
    time.sleep(0.01)
"""
# It takes its first socket as sd_listen_fds does: where that is meant for its own process.
LISTENS = """
import os, socket
with socket.socket(fileno=3) as listening:
    connection, _ = listening.accept()
    connection.send(b"mine" if os.environ["LISTEN_PID"] == str(os.getpid()) else b"another's")
"""
# What systemd's own units and Debian's have, all at once.
HARDENED = """
User=daemon
PrivateTmp=yes
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
ProtectProc=invisible
PrivateNetwork=yes
PrivateDevices=yes
ProtectKernelTunables=yes
MemoryDenyWriteExecute=yes
RestrictNamespaces=yes
RestrictAddressFamilies=AF_UNIX
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
"""


class Units(harness.Case):
    def setUp(self):
        super().setUp()
        self.srv = self.folder / "srv"
        self.units = self.srv / "units"
        self.units.mkdir(parents=True)
        (self.srv / "logs").mkdir()
        (self.srv / "server.py").write_text(SERVER)
        for folder in (self.folder, self.srv, self.units):
            folder.chmod(0o755)
        self.command = f"/usr/bin/python3 {manager.PLACE}/server.py"
        self.unit("demo", self.command, HARDENED)

    def unit(self, name, command, words=""):
        (self.units / f"{name}.service").write_text(f"[Service]\nExecStart={command}\n{words}")

    def drop_in(self, unit, name, text):
        folder = self.units / f"{unit}.service.d"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)

    def example(self, memlog):
        """The template as it stands, and the drop-in with that memlog and the unit's command."""
        shutil.copy(EXAMPLES / "memlog@.service", self.units)
        text = (EXAMPLES / "memlog.conf").read_text()
        self.assertEqual(text.count("/usr/bin/memlog "), 1)
        self.assertEqual(text.count(" -- /usr/sbin/PROGRAM"), 1)
        text = text.replace("/usr/bin/memlog ", f"{memlog} ").replace("/usr/sbin/PROGRAM", self.command)
        self.drop_in("plain", "memlog.conf", text)
        self.unit("plain", self.command)
        # Those of its directives that are for units with such lines.
        self.drop_in("watched", "memlog.conf", re.sub("^#(?=[A-Z])", "", text, flags=re.M))
        self.unit("watched", self.command, f"Type=notify\nWatchdogSec=100ms\n{HARDENED}")

    def answer(self, *words):
        answer = subprocess.run(list(map(str, words)), env=self.environment(SYSTEMD_UNIT_PATH=f"{self.units}:/lib/systemd/system"), cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=harness.TIMEOUT, check=False)
        return answer.returncode, answer.stdout


@unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze (tools/dev/setup test)")
class Words(Units):
    def test_systemd_understands_every_line(self):
        self.example(harness.MEMLOG)
        for unit in ("memlog@demo.service", "watched.service", "plain.service"):
            self.assertEqual(self.answer("systemd-analyze", "--man=no", "verify", unit), (0, ""), unit)

    def test_the_template_is_as_hardened_as_it_says(self):
        self.example(harness.MEMLOG)
        # Ten times the exposure that systemd sees, which is 92 of a unit that says nothing; more than it is now fails.
        code, out = self.answer("systemd-analyze", "security", "--offline=yes", "--threshold=66", "--no-pager", "memlog@demo.service")
        self.assertEqual(code, 0, out)


@unittest.skipIf(manager.lacks(), manager.lacks())
class Running(Units):
    none_runs = ""

    def setUp(self):
        super().setUp()
        if self.none_runs:
            self.skipTest(self.none_runs)
        answer = harness.run_words(["ninja", "-C", str(harness.OUT), "install"], self.folder, self.environment(PREFIX=str(self.srv / "memlog")), b"",
                                   harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stdout)
        self.example(MEMLOG)
        # There is no journal.
        for unit in ("memlog@", "watched", "plain"):
            self.drop_in(unit, "test.conf", f"[Service]\nEnvironment=PATH={MEMLOG.parent}:/usr/bin:/bin\nStandardError=append:{manager.PLACE}/logs/%p\n")
        self.manager = manager.Manager(self.srv)
        self.addCleanup(self.manager.end)
        wrong = self.manager.start()
        if wrong:
            Running.none_runs = f"no systemd of one's own runs here: {wrong}"
            self.skipTest(self.none_runs)

    def systemctl(self, *words):
        answer = self.manager.call("systemctl", *words)
        self.assertEqual(answer.returncode, 0, f"{words}: {answer.stdout}\n{self.log('memlog')}{self.log('watched')}{self.manager.log()}")
        return answer.stdout.strip()

    def log(self, name):
        path = self.srv / "logs" / name
        return path.read_text(errors="replace") if path.exists() else ""

    def processes(self, unit):
        return [int(line.split()[0]) for line in self.manager.call("ps", "-e", "-o", "pid=,unit=").stdout.splitlines() if line.split()[1:] == [unit]]

    def state(self, unit):
        return self.systemctl("show", "--property=ActiveState,Result", "--value", unit).split()

    def dumps(self, unit):
        """Those of the unit's last start, copied to where they can be read, with who may read the originals."""
        root = pathlib.Path(f"/proc/{self.manager.pid}/root") / LIBRARY / unit
        (folder,) = root.iterdir()
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
        copies = self.folder / f"dumps.{unit}"
        shutil.copytree(folder, copies, dirs_exist_ok=True)
        return {path.name: path for path in copies.glob("*.pftrace")}

    def test_a_hardened_unit_that_runs_is_recorded_and_left_as_it_was(self):
        self.systemctl("start", "demo")
        before = self.wait_for("its worker", lambda: len(self.processes("demo.service")) == 2 and self.processes("demo.service"))
        self.systemctl("start", "memlog@demo")
        self.wait_for("memlog", lambda: self.log("memlog").count("attached to python3") == 2, seen=lambda: self.log("memlog"))
        shown = self.manager.call("env", "XDG_RUNTIME_DIR=/run/memlog/memlog@demo", MEMLOG, "ps").stdout
        self.assertEqual([len(re.findall(rf"^ +{pid} .* running .*python3$", shown, re.M)) for pid in before], [1, 1], shown)
        os_pid = self.systemctl("show", "--property=MainPID", "--value", "demo")
        self.manager.call("kill", "-USR1", os_pid)  # its next worker
        self.wait_for("a new worker", lambda: len(self.processes("demo.service")) == 3)
        self.wait_for("its record", lambda: self.manager.call("env", "XDG_RUNTIME_DIR=/run/memlog/memlog@demo", MEMLOG, "ps").stdout.count("python3") == 3)
        self.systemctl("stop", "memlog@demo")
        self.assertEqual(self.state("memlog@demo"), ["success", "inactive"], self.log("memlog"))
        dumps = self.dumps("memlog@demo")
        self.assertEqual(list(dumps), ["0001.exit.pftrace"])
        report = self.report(dumps["0001.exit.pftrace"])
        self.assertEqual([len(report["processes"]), report["unrecorded"]], [3, []])
        self.assertTrue(all(process["complete"] and process["total_blocks"] > 30 for process in report["processes"]), report)
        self.assertNotIn("does not permit all", self.log("memlog"))
        self.assertEqual(self.state("demo"), ["success", "active"])
        self.assertEqual(self.processes("demo.service")[:2], before)

        # A directive that systemd keeps by a filter takes the sight of filters away.
        self.drop_in("memlog@", "filter.conf", "[Service]\nLockPersonality=yes\n")
        self.systemctl("daemon-reload")
        self.manager.call("systemctl", "start", "memlog@demo")
        self.wait_for("the refusal", lambda: "its seccomp filter cannot be read" in self.log("memlog"), seen=lambda: self.log("memlog"))

    def test_units_start_under_memlog_by_the_drop_in(self):
        self.systemctl("start", "watched", "plain")  # the one says that it is ready
        for unit in ("watched", "plain"):
            self.wait_for("its worker", lambda unit=unit: len(self.processes(f"{unit}.service")) == 4, seen=lambda unit=unit: self.log(unit))
            self.systemctl("kill", "--kill-whom=main", "--signal=USR2", unit)
            self.wait_for("a dump", lambda unit=unit: "0001.signal.pftrace" in self.log(unit), seen=lambda unit=unit: self.log(unit))
        self.systemctl("stop", "watched", "plain")
        for unit in ("watched", "plain"):
            self.assertEqual(self.state(unit), ["success", "inactive"], self.log(unit))
            dumps = self.dumps(unit)
            self.assertEqual(sorted(dumps), ["0001.signal.pftrace", "0002.exit.pftrace"])
            for dump in dumps.values():
                report = self.report(dump)
                self.assertEqual([len(report["processes"]), report["unrecorded"]], [2, []])
                self.assertTrue(all(process["complete"] and process["from_startup"] for process in report["processes"]), report["processes"])

    def test_a_promise_of_what_it_costs_holds_for_each_process_of_a_unit(self):
        # As docs/services.md and the drop-in say it: a percent sign is systemd's own, too.
        self.assertIn("`OPTIONS=--overhead=1%`", (harness.ROOT / "docs" / "services.md").read_text())
        self.drop_in("memlog@", "options.conf", '[Service]\nEnvironment="OPTIONS=--overhead=1% --dump-interval=1h"\n')
        text = (EXAMPLES / "memlog.conf").read_text()
        self.assertIn("memlog run --overhead=1% ...", text)
        text = text.replace("/usr/bin/memlog run ", f"{MEMLOG} run --overhead=1% ").replace("/usr/sbin/PROGRAM", self.command)
        self.drop_in("plain", "memlog.conf", text)
        self.systemctl("daemon-reload")
        self.systemctl("start", "demo", "plain")
        self.wait_for("its worker", lambda: len(self.processes("demo.service")) == 2)
        self.systemctl("start", "memlog@demo")
        for unit, sockets in (("memlog@demo", "XDG_RUNTIME_DIR=/run/memlog/memlog@demo"), ("plain", "UNUSED=")):
            def costs(sockets=sockets):
                answer = self.manager.call("env", sockets, MEMLOG, "ps", "--json").stdout
                return [row.get("promised_ppm") for row in json.loads(answer)["processes"] if "cost_ppm" in row] if answer.startswith("{") else []

            self.wait_for("what they cost", lambda costs=costs: costs() == [10000, 10000], seen=lambda unit=unit: self.log("memlog") + self.log(unit))
            self.systemctl("stop", unit)
            self.assertEqual(self.state(unit), ["success", "inactive"], self.log(unit))
            (dump,) = self.dumps(unit).values()
            entries = self.report(dump)["processes"]
            self.assertEqual([(one["overhead"]["promised_ppm"], one["overhead"]["measured"]) for one in entries], [(10000, True)] * 2)
            self.assertEqual([one["sampling"][0]["bytes"] for one in entries], [512 << 10] * 2)
        self.assertEqual(self.state("demo"), ["success", "active"])

    def test_sockets_that_systemd_made_are_handed_on(self):
        (words,) = re.findall(r"`-- (sh -c .*) PROGRAM` hands them on", (harness.ROOT / "docs" / "services.md").read_text())
        (self.srv / "listens.py").write_text(LISTENS)
        (self.units / "listens.socket").write_text(f"[Socket]\nListenStream={manager.PLACE}/socket\n")
        self.unit("listens", f"{MEMLOG} run --no-page -o %S/memlog/%N/1 -- {words} /usr/bin/python3 {manager.PLACE}/listens.py", "StateDirectory=memlog/%N")
        self.systemctl("daemon-reload")
        self.systemctl("start", "listens.socket")
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(harness.TIMEOUT)
            client.connect(str(self.srv / "socket"))
            self.assertEqual(client.recv(100), b"mine")
        self.wait_for("its end", lambda: self.state("listens") == ["success", "inactive"])
        (dump,) = self.dumps("listens").values()
        self.assertTrue(all(process["complete"] for process in self.report(dump)["processes"]))

    def test_without_the_unit_there_is_nothing_to_attach_to(self):
        answer = self.manager.call("systemctl", "start", "memlog@demo")
        self.assertNotEqual(answer.returncode, 0)
        self.assertEqual(self.log("memlog"), "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
