"""A process of the run that wants to hold up everybody else: it keeps a copy of each descriptor that it hands over, and hands over what it
should not. The others' profiles stay whole, and memlog answers."""
import contextlib
import fcntl
import glob
import os
import pathlib
import resource
import signal
import socket
import struct
import subprocess
import time
import unittest

import harness
import wire

# Allocates until a line comes.
NEIGHBOUR = """
import select, sys, time
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    kept = [bytes(1000 + i) for i in range(500)]
    time.sleep(0.005)
"""
HOSTILE_SECONDS = 3
CHILDREN = 8


class Hostile(harness.Case):
    def start(self):
        """A run, and a process that has joined it and will fork."""
        host = self.memlog_ready("/usr/bin/python3", "-c", NEIGHBOUR)
        (folder,) = glob.glob(f"/tmp/memlog.{host.pid}.*")
        (path,) = [path for path in pathlib.Path(folder).iterdir() if path.is_socket()]
        connection = wire.connect(str(path))
        self.addCleanup(connection.close)
        connection.send(wire.hello())
        _, (pipe, staging, control, lease) = wire.receive(connection)
        for fd in (pipe, staging, control, lease):
            self.addCleanup(os.close, fd)
        return host, connection, staging, control

    def child(self, play):
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            with contextlib.suppress(BaseException):
                play()
            os._exit(0)
        return pid

    def assert_unharmed(self, host, children):
        """The command socket answers while they are at it; then the neighbour's every event is there."""
        asked = time.monotonic()
        answer = subprocess.run([harness.MEMLOG, "ps"], env=self.environment(), capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertLess(time.monotonic() - asked, 20)
        for pid in children:
            os.waitpid(pid, 0)
        self.go(host)
        self.assertEqual(host.wait(timeout=60), 0)
        run = harness.Run(0, b"", "", host.memlog_folder)
        report = self.exit_report(run)
        (neighbour,) = [entry for entry in report["processes"] if entry["command_line"][:2] == ["/usr/bin/python3", "-c"]]
        self.assertEqual((neighbour["complete"], neighbour["lost_events"]), (True, 0), neighbour["trouble"])
        self.assertEqual(report["dump"]["gaps"], [])
        return report

    def test_a_read_end_that_is_made_to_block_holds_nobody_up(self):
        host, connection, staging, control = self.start()

        def play():
            ours, _writer = os.pipe()
            os.set_blocking(ours, False)
            wire.send(connection, wire.forked(os.getppid()), [ours, staging, control])
            end = time.monotonic() + HOSTILE_SECONDS
            while time.monotonic() < end:
                fcntl.fcntl(ours, fcntl.F_SETFL, 0)

        children = [self.child(play) for _ in range(CHILDREN)]
        time.sleep(HOSTILE_SECONDS / 2)
        report = self.assert_unharmed(host, children)
        self.assertGreaterEqual(len(report["processes"]), CHILDREN)

    def test_connections_that_say_nothing_give_way(self):
        host = self.memlog_ready("/usr/bin/python3", "-c", NEIGHBOUR)
        (folder,) = glob.glob(f"/tmp/memlog.{host.pid}.*")
        (path,) = [path for path in pathlib.Path(folder).iterdir() if path.is_socket()]
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        connections = []
        for _ in range(3000):
            connections.append(wire.connect(str(path)))
        late = wire.connect(str(path))
        late.send(wire.hello())
        data, fds = wire.receive(late)
        self.assertTrue(data)
        self.assertEqual(len(fds), 4)
        self.assertLess(len(os.listdir(f"/proc/{host.pid}/fd")), 1200)  # it came behind all of them
        for fd in fds:
            os.close(fd)
        for connection in [*connections, late]:
            connection.close()
        self.assert_unharmed(host, [])

    def test_descriptors_that_take_their_time_to_close_hold_nobody_up(self):
        host, _connection, staging, control = self.start()
        (folder,) = glob.glob(f"/tmp/memlog.{host.pid}.*")
        (path,) = [path for path in pathlib.Path(folder).iterdir() if path.is_socket()]
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)

        def lingering():
            """A socket whose last close waits until the other side has read what it never reads."""
            sender = socket.create_connection(listening.getsockname())
            sender.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    sender.send(bytes(1 << 16))
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 40))
            return sender

        def as_it_is(stranger, sender):
            wire.send(stranger, wire.forked(os.getpid()), [sender.fileno(), staging, control])

        def inside_of_another(stranger, sender):
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            kept.extend((ours, theirs))
            wire.send(theirs, b"x", [sender.fileno()])
            wire.send(stranger, wire.forked(os.getpid()), [ours.fileno(), staging, control])

        def more_than_any_message_has(stranger, sender):
            wire.send(stranger, wire.forked(os.getpid()), [sender.fileno()] * 200)

        def without_a_byte(stranger, sender):
            wire.send(stranger, b"", [sender.fileno()])

        def behind_the_end(stranger, sender):
            stranger.send(b"nonsense")
            wire.send(stranger, wire.forked(os.getpid()), [sender.fileno()])

        kept = []  # to the end of each child, which closes without waiting; then the host's copy is the last
        os.kill(host.pid, signal.SIGSTOP)
        for way in (as_it_is, inside_of_another, more_than_any_message_has, without_a_byte, behind_the_end):
            def play(way=way):
                kept.extend((wire.connect(str(path)), lingering()))
                way(*kept)

            os.waitpid(self.child(play), 0)
        os.kill(host.pid, signal.SIGCONT)
        self.assert_unharmed(host, [])

    def test_what_is_no_pipe_of_the_kernels_own_is_refused(self):
        host, connection, staging, control = self.start()
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        writer = os.open(fifo, os.O_RDWR)
        self.addCleanup(os.close, writer)

        def play():
            ours = os.open(fifo, os.O_RDONLY)
            wire.send(connection, wire.forked(os.getppid()), [ours, staging, control])
            time.sleep(1)

        pid = self.child(play)
        time.sleep(0.5)
        report = self.assert_unharmed(host, [pid])
        self.assertIn((pid, "its handles were not what they should be"), [(entry["pid"], entry["reason"]) for entry in report["dump"]["not_profiled"]])


if __name__ == "__main__":
    unittest.main()
