"""A fleet that was made, and what is planted in it: the collector finds that, and nothing where nothing is."""
import collections
import json
import subprocess

import collecting
import harness

MILL = harness.OUT / "fleet_mill"


class Case(harness.Case):
    def mill(self, what, **plan):
        words = [str(MILL), what, *(f"{name}={value}" for name, value in plan.items())]
        return subprocess.run(words, stdout=subprocess.PIPE, check=True, timeout=harness.TIMEOUT).stdout

    def fleet(self, **plan):
        """A collector over a fleet of that plan, and what was planted in it."""
        store = self.folder / "fleet.db"
        self.mill("fill", store=store, spool=f"{store}.spool", batch=500, **plan)
        collector = collecting.Collector(self.folder, environment=self.environment()).start()
        self.addCleanup(collector.stop)
        return collector, json.loads(self.mill("truth", **plan))

    def differing(self, collector, program, before, after):
        told = collector.ask("diff", program=program, build=before, other=after, limit=10000)
        self.assertFalse(told["too_few"], told)
        return told, [stack for stack in told["stacks"] if stack["differs"]]


class Planted(Case):
    def test_what_is_planted_is_found_and_nothing_else(self):
        self.collector, self.truth = self.fleet(dumps=14000, hosts=300, builds=3, programs=2, stacks=30, control=0.9, seed=3)
        with self.subTest("a leak"):
            self.leak_is_found_on_its_hosts_alone()
        with self.subTest("changes"):
            self.changed_stacks_are_found()

    def leak_is_found_on_its_hosts_alone(self):
        leaking = self.truth["leaking"]
        hosts = self.collector.ask("hosts", program=leaking["program"], limit=10000)["hosts"]
        found = {one["host"] for one in hosts if one["deviates"]}
        planted = set(self.truth["leaking_hosts"])
        self.assertGreater(len(planted), 5)
        self.assertLessEqual(found, planted)
        self.assertGreaterEqual(len(found), 0.8 * len(planted), (found, planted))
        # Its stack grows with its build, and those machines are the first of the stack's, too.
        guilty = leaking["builds"][self.truth["guilty_build"]]
        means = {}
        for build in (leaking["builds"][0], guilty):
            stacks = self.collector.ask("top", program=leaking["program"], build=build, limit=10000)["stacks"]
            means[build] = {tuple(map(self.name_of, stack["frames"])): stack for stack in stacks}
        path = tuple(leaking["leaked"])
        self.assertGreater(means[guilty][path]["mean_live_bytes"], 3 * means[leaking["builds"][0]][path]["mean_live_bytes"])
        largest = self.collector.ask("hosts", program=leaking["program"], stack=means[guilty][path]["stack"], limit=3)["hosts"]
        self.assertLessEqual({one["host"] for one in largest}, planted)
        means = {one["build_id"]: one["mean_live_bytes"] for one in self.collector.ask("builds", program=leaking["program"])["builds"]}
        self.assertGreater(means[guilty], 1.2 * means[leaking["builds"][0]])

    @staticmethod
    def name_of(frame):
        return frame[0] if isinstance(frame, list) else frame

    def changed_stacks_are_found(self):
        changed, guilty = self.truth["changed"], self.truth["guilty_build"]
        before, after = changed["builds"][guilty - 1], changed["builds"][guilty]
        told, found = self.differing(self.collector, changed["program"], before, after)
        self.assertEqual(told["compared"], "hosts")
        paths = {tuple(map(self.name_of, stack["frames"])): stack for stack in found}
        self.assertIn(tuple(changed["doubled"]), paths)
        self.assertIn(tuple(changed["grown"]), paths)
        # Shares sum up to one, so all others have a little less; those two alone have more.
        self.assertEqual({path for path, stack in paths.items() if stack["z"] > 0}, {tuple(changed["doubled"]), tuple(changed["grown"])})
        doubled = paths[tuple(changed["doubled"])]
        self.assertGreater(doubled["share_after"], 1.6 * doubled["share_before"])
        # Between the builds in front of it there is nothing.
        self.assertEqual(self.differing(self.collector, changed["program"], changed["builds"][0], changed["builds"][1])[1], [])


class Equal(Case):
    def trials(self, **plan):
        """Of a hundred pairs of equal builds, those of which anything is called different, and what was compared."""
        collector, truth = self.fleet(changes=0, leaks=0, programs=1, builds=200, **plan)
        builds = truth["changed"]["builds"]
        called, compared = {}, collections.Counter()
        for i in range(0, len(builds), 2):
            told, found = self.differing(collector, truth["changed"]["program"], builds[i], builds[i + 1])
            compared[told["compared"]] += 1
            if found:
                called[i] = [(stack["z"], stack["q"]) for stack in found]
        self.assertEqual(sum(compared.values()), 100)
        return called, compared

    def test_equal_builds_one_after_the_other_are_called_equal(self):
        called, compared = self.trials(dumps=8000, hosts=1000, stacks=30, control=1)
        self.assertEqual(called, {})
        self.assertGreater(compared["hosts"], 90)

    def test_machines_that_differ_by_themselves_are_no_difference_of_builds(self):
        """Each machine has one build for ever, and is like itself."""
        called, compared = self.trials(dumps=14000, hosts=7000, stacks=20, control=1, by_host=1, host_noise=1)
        self.assertEqual(called, {})
        self.assertGreater(compared["hosts"], 90)

    def test_too_few_are_said_to_be(self):
        collector, truth = self.fleet(dumps=60, hosts=50, builds=4, programs=1, control=1)
        builds = truth["changed"]["builds"]
        told = collector.ask("diff", program=truth["changed"]["program"], build=builds[2], other=builds[3])
        self.assertLess(told["dumps_before"], told["dumps_least"])
        self.assertTrue(told["too_few"])
        self.assertEqual(told["stacks"], [])


class Made(Case):
    def test_what_is_sent_and_what_is_stored_are_the_same(self):
        """Bodies over HTTP and dumps that go straight into a store are answered alike, each question."""
        plan = {"dumps": 60, "hosts": 20, "builds": 2, "programs": 3, "stacks": 30, "seed": 8}
        stored, truth = self.fleet(**plan)
        questions = [("programs", {}), ("top", {"limit": 10000}), ("builds", {"program": truth["changed"]["program"]}),
                     ("hosts", {"program": truth["leaking"]["program"]}), ("reports", {"limit": 100})]
        told = [self.without_ids(stored.ask(question, **words)) for question, words in questions]
        stored.stop()
        folder = self.folder / "sent"
        folder.mkdir()
        sent = collecting.Collector(folder, environment=self.environment()).start()
        self.addCleanup(sent.stop)
        bodies = self.mill("bodies", **plan)
        count = 0
        while bodies:
            line, _, bodies = bodies.partition(b"\n")
            size, guid = line.split()
            self.assertEqual(sent.send(collecting.gzip.compress(bodies[:int(size)], 1, mtime=0), guid=guid.decode()), 200)
            bodies = bodies[int(size):]
            count += 1
        self.assertEqual(sent.settle(), {"waiting": 0, "stored": count, "refused": 0})
        self.assertEqual(count, plan["dumps"])
        self.assertEqual([self.without_ids(sent.ask(question, **words)) for question, words in questions], told)

    @classmethod
    def without_ids(cls, told):
        """Two ledgers have two keys, and so two ids of a stack; which build stands for equal names hangs on them."""
        if isinstance(told, dict):
            return {key: cls.without_ids(value) for key, value in told.items() if key != "stack"}
        if isinstance(told, list) and len(told) == 3 and isinstance(told[2], int):
            return told[0]
        return [cls.without_ids(one) for one in told] if isinstance(told, list) else told


if __name__ == "__main__":
    harness.unittest.main()
