"""How a process's whole memory is read, as --whole says."""
import signal
import subprocess
import unittest

import harness

WAITS = "import sys; block = bytearray(8 << 20); print('ready', flush=True); sys.stdin.read()"


class Views(harness.Case):
    def dump_of(self, *options):
        process = self.memlog_start(
            "/usr/bin/python3", "-c", WAITS, options=("-q", "--no-page", "--dump-signal=USR2", *options), stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(signal.SIGUSR2)
        folder = process.memlog_folder
        self.wait_for("the dump", lambda: list(folder.glob("*.signal.pftrace")))
        process.communicate(b"", harness.TIMEOUT)
        (dump,) = folder.glob("*.signal.pftrace")
        return dump

    def text_of(self, dump):
        answer = harness.run_words([str(harness.MEMLOG), "report", str(dump)], self.folder, self.environment(), b"", harness.TIMEOUT)
        return " ".join(answer.stdout.decode().split())

    def test_off_reads_no_mapping_and_the_report_says_so(self):
        dump = self.dump_of("--whole=off")
        report = self.report(dump)
        (entry,) = report["processes"]
        self.assertEqual(report["dump"]["whole"], "off")
        self.assertIsNone(entry["memory"])
        self.assertIsNone(entry["memory_status"])
        self.assertIn("its parts were not read (--whole=off)", self.text_of(dump))

    def test_without_a_word_it_is_read_while_the_process_runs(self):
        dump = self.dump_of()
        report = self.report(dump)
        (entry,) = report["processes"]
        self.assertEqual(report["dump"]["whole"], "run")
        self.assertGreater(entry["memory"]["private_bytes"], 8 << 20)
        status = entry["memory_status"]
        self.assertFalse(status["unreadable"])
        self.assertGreater(status["anonymous_bytes"], 8 << 20)
        self.assertGreater(status["page_tables_bytes"], 0)
        self.assertEqual(status["kernel_stacks_bytes"], 16 << 10)
        self.assertEqual(status["held_ns"], 0)


if __name__ == "__main__":
    unittest.main()
