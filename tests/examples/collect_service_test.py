"""examples/systemd/memlog-collect.service: the unit as it stands, run by a systemd of the test's own."""
import os
import re
import shutil
import subprocess
import sys
import unittest

import manager
from e2e import harness

sys.path.insert(0, str(harness.ROOT / "tests" / "e2e"))
import collecting  # noqa: E402 pylint: disable=wrong-import-position

NOBODY = "65534"
UNIT = harness.ROOT / "examples" / "systemd" / "memlog-collect.service"
MEMLOG = manager.PLACE / "memlog" / "bin" / "memlog"


class Units(harness.Case):
    def setUp(self):
        super().setUp()
        self.srv = self.folder / "srv"
        self.units = self.srv / "units"
        self.units.mkdir(parents=True)
        (self.srv / "logs").mkdir()
        for folder in (self.folder, self.srv, self.units):
            folder.chmod(0o755)

    def example(self, memlog, tokens):
        """As it stands, but for where memlog and its tokens are."""
        text = UNIT.read_text(encoding="utf-8")
        for path, place in (("/usr/bin/memlog ", f"{memlog} "), ("/etc/memlog/collect.tokens\n", f"{tokens}\n")):
            self.assertEqual(len(re.findall("^[A-Z].*" + re.escape(path), text, re.M)), 1)
            text = text.replace(path, place)
        (self.units / UNIT.name).write_text(text, encoding="utf-8")

    def answer(self, *words):
        answer = subprocess.run(list(map(str, words)), env=self.environment(SYSTEMD_UNIT_PATH=f"{self.units}:/lib/systemd/system"), cwd=self.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=harness.TIMEOUT, check=False)
        return answer.returncode, answer.stdout


@unittest.skipUnless(shutil.which("systemd-analyze"), "needs systemd-analyze (tools/dev/setup test)")
class Words(Units):
    def test_systemd_understands_every_line(self):
        self.example(harness.MEMLOG, "/etc/memlog/collect.tokens")
        self.assertEqual(self.answer("systemd-analyze", "--man=no", "verify", UNIT.name), (0, ""))

    def test_it_is_as_hardened_as_it_says(self):
        self.example(harness.MEMLOG, "/etc/memlog/collect.tokens")
        # Ten times the exposure that systemd sees, which is 92 of a unit that says nothing; more than it is now fails.
        code, out = self.answer("systemd-analyze", "security", "--offline=yes", "--threshold=18", "--no-pager", UNIT.name)
        self.assertEqual(code, 0, out)


@unittest.skipIf(manager.lacks(), manager.lacks())
class Running(Units):
    def setUp(self):
        super().setUp()
        answer = harness.run_words(["ninja", "-C", str(harness.OUT), "install"], self.folder, self.environment(PREFIX=str(self.srv / "memlog")), b"",
                                   harness.TIMEOUT)
        self.assertEqual(answer.returncode, 0, answer.stdout)
        self.collector = collecting.Collector(self.srv)  # what speaks to it; systemd starts it
        self.example(MEMLOG, manager.PLACE / "tokens")
        folder = self.units / f"{UNIT.name}.d"
        folder.mkdir()
        # There is no journal. And a systemd in namespaces shows its services an empty folder of credentials: here it is one that looks like
        # systemd's, where they are root's, and a service may read its own by more than a file's owner could.
        os.chmod(self.collector.tokens_file, 0o440)
        unit = self.units / UNIT.name
        unit.write_text(unit.read_text(encoding="utf-8").replace("--tokens=%d/tokens", f"--tokens={manager.PLACE}/tokens"), encoding="utf-8")
        (folder / "test.conf").write_text(
            f"[Service]\nLoadCredential=\nSupplementaryGroups=root\nEnvironment=CREDENTIALS_DIRECTORY={manager.PLACE}\n"
            f"Environment=OPTIONS=--listen=127.0.0.1:{self.collector.port}\nStandardError=append:{manager.PLACE}/logs/collect\n", encoding="utf-8")
        self.manager = manager.Manager(self.srv)
        self.addCleanup(self.manager.end)
        wrong = self.manager.start()
        if wrong:
            self.skipTest(f"no systemd of one's own runs here: {wrong}")

    def log(self):
        path = self.srv / "logs" / "collect"
        return (path.read_text(errors="replace") if path.exists() else "") + self.manager.log()

    def systemctl(self, *words):
        answer = self.manager.call("systemctl", *words)
        self.assertEqual(answer.returncode, 0, f"{words}: {answer.stdout}\n{self.log()}")
        return answer.stdout.strip()

    def test_it_takes_reports_in_and_comes_back_when_it_is_killed(self):
        self.systemctl("start", "memlog-collect")
        self.wait_for("the collector", self.collector.is_up, seen=self.log)
        report = collecting.trace([(("main", "leak"), 1 << 20, 0, 0)])
        self.assertEqual(self.collector.send(report, guid="one"), 200)
        self.wait_for("the report", lambda: self.collector.figures() == {"waiting": 0, "stored": 1, "refused": 0},
                      seen=lambda: f"{self.collector.figures()} {self.log()}")
        first = self.systemctl("show", "--property=MainPID", "--value", "memlog-collect")
        owners = self.manager.call("stat", "-c", "%u %a", f"/proc/{first}", "/var/lib/private/memlog-collect/fleet.db").stdout.splitlines()
        (service, _), (owner, mode) = (line.split() for line in owners)
        self.assertNotEqual(service, "0")
        self.assertIn((owner, mode), {(service, "600"), (NOBODY, "600")})  # systemd from 257 on maps the service's user onto nobody's files
        self.systemctl("kill", "--signal=KILL", "memlog-collect")
        self.wait_for("the next one", lambda: self.systemctl("show", "--property=MainPID", "--value", "memlog-collect") not in ("0", first), seen=self.log)
        self.wait_for("its answer", self.collector.is_up, seen=self.log)
        self.assertEqual(self.collector.send(report, guid="one"), 200)
        self.assertEqual(self.collector.ask("top")["dumps"], 1)
        self.systemctl("stop", "memlog-collect")
        self.assertEqual(self.systemctl("show", "--property=ActiveState,Result", "--value", "memlog-collect").split(), ["success", "inactive"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
