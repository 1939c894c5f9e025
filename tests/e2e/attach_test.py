"""memlog attached to programs that run already, with its own tracer: exact by the programs' books (tests/oracle/attached.c), and left as
they were."""
# runner: no second chance
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

import attached
import filtered
import harness

def pages_of(pid):
    """(start, end) of each writable mapping without a file, of a megabyte or more -> its pages that are there."""
    found = {}
    with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            place, rights, _, _, inode = line.split()[:5]
            start, end = (int(one, 16) for one in place.split("-"))
            if rights.startswith("rw") and inode == "0" and end - start >= 1 << 20:
                pagemap.seek(start // 4096 * 8)
                entries = pagemap.read((end - start) // 4096 * 8)
                found[start, end] = sum(entry >> 7 for entry in entries[7::8])
    return found


# At each line they do the same work, and have freed all of it that they free before they say so. What they did before is warm: their own caches
# are full. No number is made of an address:
# Debian's python3 has its heap about 1 GiB, below which a number is 28 bytes and above which it is 32.
WORK_PYTHON = """
import json, sys
print("ready", flush=True)
kept = []
for line in sys.stdin:
    rows = [{"n": i, "text": "x" * (i % 97)} for i in range(1000)]
    kept.append(json.loads(json.dumps(rows, check_circular=False)))
    print("done", flush=True)
"""
WORK_PERL = """
$| = 1; print "ready\\n"; my @kept;
while (<STDIN>) {
    {
        my %rows = map { $_ => "x" x ($_ % 97) } 1 .. 3000;
        push @kept, [map { { n => $_, text => $rows{$_} } } sort keys %rows];
    }
    print "done\\n";
}
"""
WINDOWS = {"python3": ("/usr/bin/python3", "-c", WORK_PYTHON), "perl": ("/usr/bin/perl", "-e", WORK_PERL)}

FROM_BEFORE = "what it had allocated before it was recorded is not known"


class Exact(attached.Case):
    def play(self, kind):
        """Its threads allocate while memlog comes; the epochs are by the books."""
        target = self.target(kind)
        session = self.begin(target.pid)
        target.tell("quiet")
        target.tell("epoch 20000")
        target.tell("warm")
        time.sleep(0.2)
        target.tell("quiet")
        target.tell("epoch 5000")
        books = target.books()
        report = self.finish(session)
        entry = self.entry(report, target.pid)
        self.assert_held(entry, books)
        self.assertFalse(entry["from_startup"])
        self.assertTrue(report["dump"]["complete"], report["dump"])
        self.assertEqual(entry["coverage"]["unseen"], FROM_BEFORE)
        # Of before are the blocks that the threads held, and those of the list.
        self.assertGreaterEqual(entry["unknown_frees"], books["before_freed"])
        target.tell("warm")
        target.end()

    def play_window(self, kind, frames=True):
        """Recorded while nobody allocates but by the books: the process's own sums are theirs."""
        target = self.target(kind)
        target.tell("quiet")
        session = self.begin(target.pid)
        target.tell("epoch 20000")
        books = target.books()
        report = self.finish(session)
        entry = self.entry(report, target.pid)
        self.assert_held(entry, books, whole=books["before_freed"], frames=frames)
        self.assertEqual(books["before_freed"], 56)
        target.end()

    def test_eight_threads_that_allocate_meanwhile(self):
        for kind in attached.KINDS:
            with self.subTest(kind):
                self.play(kind)

    def test_all_that_a_process_does_in_the_window(self):
        for kind in attached.KINDS:
            with self.subTest(kind):
                self.play_window(kind)

    def figures_of(self, entry):
        """(blocks, bytes) in all and alive, of each stack by its functions' names."""
        sums = {}
        for stack in entry["stacks"]:
            names = tuple(frame.get("function") or frame.get("module") for frame in stack["frames"])
            figures = [stack[figure] for figure in ("total_blocks", "total_bytes", "live_blocks", "live_bytes")]
            sums[names] = [a + b for a, b in zip(sums.get(names, [0] * 4), figures)]
        return {names: figures for names, figures in sums.items() if figures[0] > 0}

    def dumped(self, session, pid):
        self.assertEqual(self.command("dump", pid).returncode, 0)
        (dump,) = session.memlog_folder.glob("*.manual.pftrace")
        return self.figures_of(self.entry(self.report(dump), pid))

    def window_attached(self, words, env):
        target = attached.Target(self, words, env=env).ready()
        self.assertEqual(target.tell("warm"), "done")
        session = self.begin(target.pid)
        self.assertEqual(target.tell("go"), "done")
        return self.dumped(session, target.pid)

    def window_from_startup(self, words, env):
        self.runs = self.sessions  # each has a folder of dumps of its own
        self.sessions += 1
        session = self.memlog_ready(*words, options=("--no-page", "--memlog=manual"), env=env)
        (pid,) = [child for child in harness.children_of(session.pid) if child != harness.service_of(session.pid)]
        self.go(session)
        self.assertEqual(session.stdout.readline(), b"done\n")
        self.assertEqual(self.command("start", pid).returncode, 0)
        session.stdin.write(b"go\n")
        session.stdin.flush()
        self.assertEqual(session.stdout.readline(), b"done\n")
        return self.dumped(session, pid)

    def test_the_figures_of_a_run_from_startup_over_the_same_window(self):
        """Each program does the same work at a word; the window begins before it and ends behind it, by attachment and by 'memlog start'."""
        env = self.environment(PYTHONMALLOC="malloc", PYTHONHASHSEED="1", PERL_HASH_SEED="1")
        for name, words in WINDOWS.items():
            if shutil.which(words[0]) is not None:
                with self.subTest(name):
                    figures = self.window_attached(words, env), self.window_from_startup(words, env)
                    self.assertGreater(sum(one[0] for one in figures[0].values()), 5000)
                    self.assertEqual(*figures)

    @unittest.skipIf(os.geteuid() != 0, "root alone can read a filter")
    def test_one_that_a_seccomp_filter_watches(self):
        """It kills for each call of memlog's that is not on its list, now and later."""
        filter_lines = filtered.lines(filtered.PROGRAMS_OWN + filtered.MEMLOGS)
        target = attached.Target(self, filtered.under(filter_lines, [self.program()])).ready()
        for _ in range(3):
            session = self.begin(target.pid)
            target.tell("quiet")
            target.tell("epoch 20000")
            target.tell("warm")
            time.sleep(0.2)
            target.tell("quiet")
            target.tell("epoch 5000")
            self.assert_held(self.entry(self.finish(session), target.pid), target.books())
            target.tell("forget")
            target.tell("warm")
        target.end()

    def test_programs_whose_table_has_no_index(self):
        for kind in ("unindexed glibc", "unindexed musl"):
            with self.subTest(kind):
                self.play_window(kind)

    def test_programs_whose_frames_are_in_no_table(self):
        """Who calls the allocator is known, and not by whom that one was called."""
        self.play_window("frameless musl", frames=False)

    def test_stop_and_start_begin_a_clean_profile_each_time(self):
        target = self.target()
        session = self.begin(target.pid)
        for _ in range(3):
            answer = self.command("stop", target.pid)
            self.assertEqual((answer.returncode, answer.stdout), (0, f"{target.pid} stopped\n"), answer.stderr)
            target.tell("quiet")
            target.tell("epoch 3000")
            target.tell("forget")
            answer = self.command("start", target.pid)
            self.assertEqual((answer.returncode, answer.stdout), (0, f"{target.pid} started\n"), answer.stderr)
            target.tell("epoch 5000")
            books = target.books()
            target.tell("warm")
            time.sleep(0.1)
        target.tell("quiet")
        report = self.finish(session)
        self.assert_held(self.entry(report, target.pid, state="running"), books)
        target.end()


class Again(attached.Case):
    """A process is attached to once more when no thread is inside a call of before, and then alone."""

    def leave(self, target, session, word, count, sofar):
        """Its last call of the allocator was left when memlog goes."""
        self.assertEqual(target.tell(f"{word} {count}"), f"{sofar + count} {self.returned(sofar + count)}")
        entry = self.entry(self.finish(session), target.pid)
        self.assertEqual(entry["lost_events"], 0)
        return entry

    def returned(self, left):
        return left - self.times  # all but the last of each time are followed by one that comes back

    def test_one_that_leaves_malloc_by_siglongjmp(self):
        target = attached.Target(self, [harness.OUT / "tests/oracle/leaps"]).ready()
        self.times = 0
        for _ in range(4):
            session = self.begin(target.pid)
            self.times += 1
            entry = self.leave(target, session, "leap", 20, 20 * (self.times - 1))
            self.assertEqual(entry["total_blocks"], 19)
        target.end()

    def test_one_that_is_inside_a_call_all_the_time(self):
        target = attached.Target(self, [harness.OUT / "tests/oracle/leaps"]).ready()
        session = self.begin(target.pid)
        self.assertEqual(target.tell("hold"), "held")
        self.finish(session)
        answer = self.command("attach", "--no-page", "--duration=0.2", "-o", self.folder / "never", target.pid)
        self.assertEqual(answer.returncode, 125, answer.stderr)
        self.assertIn("a thread of it is still inside a call that memlog recorded: try again", answer.stderr)
        # The call comes back, and the process can be attached to.
        self.times = 1
        self.assertEqual(target.tell("leap 1"), "1 1")
        entry = self.leave(target, self.begin(target.pid), "leap", 5, 1)
        self.assertEqual(entry["total_blocks"], 4)
        target.end()


class Children(attached.Case):
    def play(self, words, kind="glibc"):
        """Its children's books against the report, by how they were made; returns [(word, entry, books)]."""
        target = self.target(kind)
        target.tell("quiet")
        session = self.begin(target.pid)
        target.tell("epoch 2000")
        parent = target.books()
        made = []
        for word in words:
            before = set(self.truth_folder.glob("*.json"))
            answer = target.tell(word)
            self.assertRegex(answer, r"^\d+$", word)
            (path,) = set(self.truth_folder.glob("*.json")) - before
            made.append((word, int(path.stem), json.loads(path.read_text())))
        report = self.finish(session)
        self.assert_held(self.entry(report, target.pid), parent)
        target.end()
        found = []
        for word, pid, books in made:
            entries = [entry for entry in report["processes"] if entry["pid"] == pid and entry["state"] != "replaced"]
            self.assertEqual(len(entries), 1, f"{word}: {[(one['pid'], one['name'], one['state']) for one in report['processes']]}, "
                             f"not recorded: {[(one['pid'], one['name'], one['reason']) for one in report['unrecorded']]}")
            found.append((word, entries[0], books, parent))
        return found

    def test_a_forked_child_that_executes_nothing(self):
        for kind in ("glibc", "static glibc", "musl"):
            for word, entry, books, parent in self.play(("fork",), kind):
                with self.subTest(f"{kind}: {word}"):
                    self.assert_held(entry, books)
                    self.assertEqual(entry["inherited_bytes"], sum(parent[site][2] for site in attached.SITES))
                    self.assertEqual((entry["state"], entry["exit_code"]), ("exited", 0))

    def test_a_fork_without_its_handlers(self):
        for word, entry, books, _ in self.play(("_Fork",)):
            self.assert_held(entry, books)

    def test_programs_that_it_executes(self):
        for word, entry, books, _ in self.play(("exec", "spawn", "system")):
            with self.subTest(word):
                self.assert_held(entry, books)
                self.assertTrue(entry["from_startup"])
                self.assertTrue(entry["complete"], entry["trouble"])



class Restored(attached.Case):
    def test_every_byte_of_code_is_as_it_was(self):
        for kind in attached.KINDS:
            with self.subTest(kind):
                target = self.target(kind)
                before = attached.text_of(target.pid)
                self.assertGreater(sum(map(len, before.values())), 10000)
                session = self.begin(target.pid)
                during = attached.text_of(target.pid)
                self.assertNotEqual({at: during.get(at) for at in before}, before, "an attachment writes jumps")
                self.command("stop", target.pid)
                self.assert_same_text(before, target.pid)
                self.command("start", target.pid)
                self.assertNotEqual({at: text for at, text in attached.text_of(target.pid).items() if at in before}, before)
                target.tell("quiet")
                self.assertEqual(self.command("stop", target.pid).returncode, 0)
                self.assertEqual(self.command("start", target.pid).returncode, 0)
                target.tell("epoch 4000")
                books = target.books()
                report = self.finish(session)
                self.assert_same_text(before, target.pid)
                wrong = self.hold(self.entry(report, target.pid, state="running"), books, whole=books["before_freed"])
                self.assertEqual(wrong, [])
                target.tell("warm")
                target.end()

    def assert_same_text(self, before, pid):
        now = attached.text_of(pid)
        for place, text in before.items():
            self.assertIn(place, now)
            if now[place] != text:
                self.fail(f"{place}: differs at {[at for at in range(len(text)) if text[at] != now[place][at]][:20]}")


class Unnoticed(attached.Case):
    WAITS = ("poll", "epoll_wait", "select", "nanosleep", "clock_nanosleep", "futex", "pthread_cond_timedwait", "sigtimedwait", "semtimedop", "recv",
             "read", "readv", "recvmmsg", "write", "io_getevents")
    # docs/attaching.md, docs/limits.md
    BEGUN_ANEW = ("epoll_wait", "sigtimedwait", "semtimedop", "recv", "read", "readv", "recvmmsg", "write", "io_getevents")
    ENDLESS = ("endless poll", "endless epoll_wait", "endless read", "endless sigwaitinfo", "endless msgrcv", "endless semop")
    WAIT_MS = 1500
    SLACK_MS = 700  # of a loaded machine; a wait that is begun anew lasts longer by up to all of it

    def play(self, kinds, rounds=3):
        """Attached and left again, at moments that lie within the waits; returns what each saw."""
        program = self.program(source="notices.c")
        stop = self.folder / "stop"
        targets = {kind: attached.Target(self, [program, kind, stop]).ready() for kind in kinds}
        for number in range(rounds):
            time.sleep(0.4 + 0.37 * number)
            session = self.begin(*(target.pid for target in targets.values()), attached=len(targets))
            time.sleep(0.6)
            self.finish(session)
        stop.touch()
        seen = {}
        for kind, target in targets.items():
            target.process.wait(harness.TIMEOUT)
            self.assertEqual(target.process.returncode, 3, kind)
            seen[kind] = json.loads(target.process.stdout.read())
            self.assertEqual(target.process.stderr.read(), "")
        return seen

    def assert_clean(self, seen):
        for kind, facts in seen.items():
            with self.subTest(kind):
                # A wait that begins anew at each stop may last until there are none.
                self.assertGreater(facts["rounds"], 0 if kind in self.BEGUN_ANEW else 1)
                self.assertEqual((facts["wrong"], facts["interrupted"]), (0, 0), facts)
                self.assertEqual((facts["mask"], facts["signal_stack"]), (True, True), facts)

    def test_waits_with_a_limit(self):
        seen = self.play(self.WAITS)
        self.assert_clean(seen)
        for kind, facts in seen.items():
            with self.subTest(kind):
                self.assertGreaterEqual(facts["shortest_ms"], self.WAIT_MS - 1, facts)

    def test_no_wait_with_a_limit_lasts_longer(self):
        exact = tuple(kind for kind in self.WAITS if kind not in self.BEGUN_ANEW)
        for kind, facts in self.play(exact, rounds=2).items():
            with self.subTest(kind):
                self.assertLess(facts["longest_ms"], self.WAIT_MS + self.SLACK_MS, facts)

    def test_waits_without_one(self):
        self.assert_clean(self.play(self.ENDLESS))

    def test_waits_on_small_stacks(self):
        """Nothing is written beside a stack."""
        self.assert_clean(self.play(("on a signal stack", "in a coroutine")))

    def test_registers_and_errno(self):
        self.assert_clean(self.play(("registers", "errno"), rounds=8))

    def test_descriptors_and_mappings(self):
        target = self.target()
        target.tell("quiet")
        before = attached.files_of(target.pid)
        session = self.begin(target.pid)
        during = attached.files_of(target.pid)
        own = {number: what for number, what in during.items() if number not in before}
        self.assertEqual({number: during[number] for number in before}, before)
        self.assertLessEqual(len(own), 2, own)
        self.assertTrue(all(number > 500 for number in own), own)
        self.finish(session)
        target.end()

    def test_stacks_that_nobody_has_used_stay_without_pages(self):
        """The look for what an earlier attachment has left had the kernel make each of their 2,000 pages. Some 64 behind a stack are read yet."""
        target = self.target()
        target.tell("quiet")
        before = pages_of(target.pid)
        # Since glibc 2.42 stacks have no guard pages of their own, and lie in one mapping.
        stacks = {place: max(1, (place[1] - place[0]) // (8 << 20)) for place in before}
        self.assertGreater(sum(stacks.values()), 3)
        session = self.begin(target.pid)
        after = pages_of(target.pid)
        self.finish(session)
        grown = {place: after[place] - pages for place, pages in before.items() if place in after and after[place] > pages + 200 * stacks[place]}
        self.assertEqual(grown, {}, "pages more than before")
        target.tell("warm")
        target.end()

    def test_a_stopped_process_stays_stopped_and_goes_on_when_told(self):
        target = self.target()
        target.tell("quiet")
        os.kill(target.pid, signal.SIGSTOP)
        state = lambda: pathlib.Path(f"/proc/{target.pid}/stat").read_text().rpartition(")")[2].split()[0]  # noqa: E731
        self.wait_for("its stop", lambda: state() == "T")
        answer = self.command("attach", "--no-page", "--duration=0.3", "-o", self.folder / "stopped", target.pid)
        self.assertIn(answer.returncode, (0, 125), answer.stderr)
        self.assertEqual(state(), "T", answer.stderr)
        os.kill(target.pid, signal.SIGCONT)
        self.assertEqual(target.tell("epoch 1000"), "ok")
        target.end()

    def test_exit_code_and_output_of_real_programs(self):
        code = ("import hashlib, sys, threading\nprint('ready', flush=True)\nrest = []\n"
                "def work(n):\n    rest.append(hashlib.sha256(repr([str(i) * 3 for i in range(n)]).encode()).hexdigest())\n"
                "for turn in range(25):\n    ts = [threading.Thread(target=work, args=(20000 + k,)) for k in range(4)]\n"
                "    [t.start() for t in ts]; [t.join() for t in ts]\nprint(hashlib.sha256(''.join(sorted(rest)).encode()).hexdigest())\nsys.exit(17)")
        words = ["/usr/bin/python3", "-I", "-c", code]
        bare = subprocess.run(words, capture_output=True, text=True, check=False)
        target = attached.Target(self, words).ready()
        while target.process.poll() is None:
            answer = self.command("attach", "-q", "--no-page", "--duration=0.05", "-o", self.folder / f"d{time.monotonic_ns()}", target.pid)
            self.assertIn(answer.returncode, (0, 125), answer.stderr)
        self.assertEqual((target.process.returncode, "ready\n" + target.process.stdout.read(), target.process.stderr.read()),
                         (17, bare.stdout, ""))


class Namespaces(attached.Case):
    """A process whose root, mounts and pids are its own: nothing of memlog is to be seen there."""

    def room(self, kind):
        """A small root with the program and what it needs."""
        root = self.folder / f"root {kind}".replace(" ", "_")
        (root / "proc").mkdir(parents=True)
        (root / "truth").mkdir()
        shutil.copy(self.program(kind), root / "program")
        for path in {"glibc": ("/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"), "musl": ("/lib/ld-musl-x86_64.so.1",)}.get(kind, ()):
            copy = root / path.lstrip("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        return root

    def play(self, kind):
        root = self.room(kind)
        target = attached.Target(
            self, ["unshare", "-mp", "--fork", f"--mount-proc={root}/proc", "chroot", root, "/program"], env={**self.environment(), "ORACLE_DIR": "/truth"})
        self.assertEqual(target.line(), "ready", target.process.poll())
        (pid,) = harness.children_of(target.pid)
        self.assertEqual(os.readlink(f"/proc/{pid}/root"), str(root))
        before = attached.text_of(pid)
        target.tell("quiet")
        session = self.begin(pid)
        target.tell("epoch 5000")
        books = target.books()
        inside = int(target.tell("fork"))
        self.assertGreater(inside, 1)
        child = json.loads((root / "truth" / f"{inside}.json").read_text())
        report = self.finish(session)
        wrong = self.hold(self.entry(report, pid), books, whole=books["before_freed"])
        (entry,) = [entry for entry in report["processes"] if entry["pid"] != pid]
        wrong += self.hold(entry, child)
        self.assertEqual(wrong, [])
        self.assertEqual([place for place, text in attached.text_of(pid).items() if before.get(place, text) != text], [])
        target.end(9)

    def test_another_root_and_pids_of_its_own(self):
        if os.geteuid() != 0:
            self.skipTest("only root makes namespaces everywhere: run it as root")
        for kind in ("glibc", "static glibc", "musl"):
            with self.subTest(kind):
                self.play(kind)


if __name__ == "__main__":
    unittest.main(verbosity=2)
