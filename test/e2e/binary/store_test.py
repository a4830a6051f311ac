#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans in a Redis store: planned in two processes, executed in two; servers and planners that go away."""

import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest

import common

# mpirun refuses to run as root, as containers do, unless told twice.
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
MPIRUN, SERVER = shutil.which("mpirun"), shutil.which("redis-server")
PASSWORD = "only-tests-know-it"
STEPS = 12


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A redis-server with a password that keeps nothing on disk."""

    def __init__(self, password=PASSWORD):
        self.port, self.password, self.process = free_port(), password, None
        self.start()

    @property
    def address(self):
        return f"redis://127.0.0.1:{self.port}"

    def start(self):
        words = [SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        if self.password:
            words += ["--requirepass", self.password]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + common.PATIENCE
        while time.monotonic() < end:
            try:
                if self.ask("PING") == "+PONG":
                    return
            except OSError:
                time.sleep(0.02)
        raise AssertionError("redis-server does not start")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ask(self, *words):
        """The first line of an answer, or all values of a list."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=common.PATIENCE) as connection:
            stream = connection.makefile("rwb")

            def send(*sent):
                stream.write(b"*%d\r\n" % len(sent) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w)
                                                               for w in map(str.encode, sent)))
                stream.flush()
                return read()

            def read():
                line = stream.readline().decode().rstrip()
                if line.startswith("*"):
                    return [read() for _ in range(int(line[1:]))]
                if line.startswith("$") and line != "$-1":
                    return stream.read(int(line[1:]) + 2)[:-2].decode(errors="replace")
                return line

            if self.password:
                send("AUTH", self.password)
            return send(*words)


class StoreRuns(unittest.TestCase):
    """A server for every test, and one run without a store that all runs must equal."""

    GRAPHS, NAME = ("--strategy=pp=2",), "one"

    @classmethod
    def setUpClass(cls):
        if missing := common.missing_libraries("mpi,redis"):
            raise unittest.SkipTest("no mpirun or redis-server: " + missing)
        cls.binary = common.binary("gpt2", "f32", ("--with=mpi,redis",))
        cls.corpus = common.WORK / "store-corpus"
        cls.corpus.mkdir(parents=True, exist_ok=True)
        draw = random.Random(5)
        for i in range(40):
            words = ("".join(draw.choices("abcdefgh", k=draw.randint(1, 9))) for _ in range(draw.randint(1, 60)))
            (cls.corpus / f"{i}.txt").write_text(" ".join(words))
        with common.measured() as cls.took:
            cls.expected = cls.train(f"expected-{cls.NAME}")

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.kill)
        self.children = []
        self.addCleanup(lambda: [child.kill() for child in self.children if child.poll() is None])

    def deadline(self):
        """The flag for one that is to pass, but not before a run with all of its ranks has come so far."""
        return f"--timeout={self.took.times(4)}"

    @classmethod
    def words(cls, *more):
        return [str(word) for word in (cls.binary, "--data", cls.corpus, f"--steps={STEPS}", *cls.GRAPHS,
                                       "--tokens-per-batch=512", "--tokens-per-micro-batch=64", "--threads=1",
                                       "--no-progress", *more)]

    @classmethod
    def train(cls, name, *flags):
        """A run without a store; what it saved."""
        shutil.rmtree(common.WORK / name, ignore_errors=True)
        common.succeed([MPIRUN, "--oversubscribe", "-n", "2", *cls.words("--save", common.WORK / name, *flags)])
        return cls.saved(name)

    @classmethod
    def saved(cls, name):
        folder = common.WORK / name / f"step-{STEPS}"
        return [(folder / file).read_bytes() for file in ("model.safetensors", "optimizer.safetensors")]

    def start(self, name, command, password=PASSWORD):
        environment = {key: value for key, value in os.environ.items() if key != "DYNA_STORE_PASSWORD"}
        if password:
            environment["DYNA_STORE_PASSWORD"] = password
        files = [open(common.WORK / f"{name}.{end}", "w") for end in ("out", "err")]
        child = subprocess.Popen(command, stdout=files[0], stderr=files[1], env=environment)
        for file in files:
            file.close()
        child.name = name
        self.children.append(child)
        return child

    def planner(self, index, count, *flags, name=None, **options):
        return self.start(name or f"planner{index}", self.words(f"--plan-only={index}/{count}",
                                                                f"--store={self.server.address}", *flags), **options)

    def executors(self, save, *flags, **options):
        shutil.rmtree(common.WORK / save, ignore_errors=True)
        (common.WORK / f"{save}.jsonl").unlink(missing_ok=True)
        return self.start(save, [MPIRUN, "--oversubscribe", "-n", "2", *self.words(
            f"--store={self.server.address}", "--save", common.WORK / save, f"--metrics={common.WORK / save}.jsonl",
            *flags)], **options)

    def end(self, child, code=0):
        self.assertEqual(child.wait(timeout=common.PATIENCE), code, self.said(child))
        return self.said(child)

    @staticmethod
    def said(child):
        return "".join((common.WORK / f"{child.name}.{end}").read_text() for end in ("err", "out"))

    def steps_done(self, save):
        path = common.WORK / f"{save}.jsonl"
        return path.read_text().count('"loss"') if path.exists() else 0

    def wait_for_step(self, save, step, child):
        limit = time.monotonic() + common.PATIENCE
        while self.steps_done(save) < step:
            self.assertIsNone(child.poll(), self.said(child))
            self.assertLess(time.monotonic(), limit, self.said(child))
            time.sleep(0.005)

    def plans_left(self):
        keys = self.server.ask("KEYS", "dyna:*")
        return [key for key in keys if key.count(":") == 5]

    def wait_for_plans(self, count):
        limit = time.monotonic() + common.PATIENCE
        while len(self.plans_left()) < count:
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.01)

    def connected(self):
        """Connections of runs that have asked for something; questions of this test close late."""
        commands = re.findall(r" cmd=([a-z]+)", self.server.ask("CLIENT", "LIST"))
        return sum(command not in ("auth", "client", "keys") for command in commands)

    def wait_for_key(self, ending):
        self.wait_for_keys(ending, 1)

    def wait_for_keys(self, ending, count):
        limit = time.monotonic() + common.PATIENCE
        while len([key for key in self.server.ask("KEYS", "dyna:*") if key.endswith(ending)]) < count:
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.01)


class SharedTests:
    """Of runs of one strategy and of several."""

    def test_two_plan_and_two_execute(self):
        planners = [self.planner(i, 2, "--plan-ahead=4", "--plan-threads=2") for i in range(2)]
        # So that all plans are theirs.
        self.wait_for_key(":planners")
        self.end(self.executors("two", "--plan-ahead=4", "--plan-threads=2"))
        self.assertEqual(self.saved("two"), self.expected)
        for index, planner in enumerate(planners):
            self.assertIn(f"planner {index} of 2: {STEPS // 2} plans in {self.server.address}", self.end(planner))
        self.assertEqual(self.plans_left(), [])
        # The password is in nothing that is left.
        for path in common.WORK.rglob("*"):
            if path.is_file() and path != pathlib.Path(self.binary):
                self.assertNotIn(PASSWORD.encode(), path.read_bytes(), path)

    def test_without_planners_executors_plan_in_turn(self):
        self.end(self.executors("turns"))
        self.assertEqual(self.saved("turns"), self.expected)
        self.assertEqual(self.plans_left(), [])

    def test_ranks_of_one_process_fetch_their_parts(self):
        planner = self.planner(0, 1)
        self.wait_for_key(":planners")
        shutil.rmtree(common.WORK / "threads", ignore_errors=True)
        self.end(self.start("threads", self.words(f"--store={self.server.address}", "--save", common.WORK / "threads")))
        self.assertEqual(self.saved("threads"), self.expected)
        self.assertIn(f"planner 0 of 1: {STEPS} plans", self.end(planner))
        self.assertEqual(self.plans_left(), [])

    def test_steps_are_predicted_as_without_a_store(self):
        costs = common.WORK / "store.costs"
        costs.write_text('device { name: "d" f64_flops: 1e9 f32_flops: 1e9 bf16_flops: 1e9 bytes_per_second: 1e9 }\n')
        metrics = common.WORK / "unshared.jsonl"
        metrics.unlink(missing_ok=True)
        self.train("unshared", f"--costs={costs}", f"--metrics={metrics}")
        self.end(self.executors("shared", f"--costs={costs}"))
        alone, shared = ([line["predicted_seconds"] for line in common.lines_of(path) if "loss" in line]
                         for path in (metrics, common.WORK / "shared.jsonl"))
        self.assertEqual(shared, alone)
        self.assertEqual(len(shared), STEPS)
        self.assertGreater(min(shared), 0)

    def test_a_lost_planner_changes_no_bit(self):
        planners = [self.planner(i, 2, "--store-retry=1", f"--timeout={common.PATIENCE}") for i in range(2)]
        self.wait_for_key(":planners")
        planners[1].kill()
        self.addCleanup(planners[1].wait)
        said = self.end(self.executors("lost", "--store-retry=1", f"--timeout={common.PATIENCE}"))
        self.assertEqual(self.saved("lost"), self.expected)
        self.assertIn("note: planner 1 of 2 has left no plan of step 2 in", said)
        self.end(planners[0])


@unittest.skipUnless(MPIRUN and SERVER, "no mpirun or redis-server")
class StoreTest(SharedTests, StoreRuns):
    def test_planners_that_have_gone_are_not_waited_for(self):
        planners = [self.planner(i, 2) for i in range(2)]
        self.wait_for_key(":planners")
        self.end(self.executors("before"))
        for planner in planners:
            self.end(planner)
        # At once, not when what they said of themselves is forgotten.
        self.end(self.executors("behind", self.deadline()))
        self.assertEqual(self.saved("behind"), self.expected)

    def test_runs_that_are_alike_share_a_server(self):
        """Equal ones, and one of another learning rate, whose plans are equal; some with planners, some without."""
        other = self.train("rate-alone", "--lr=0.01")
        self.assertNotEqual(other, self.expected)
        planners = [self.planner(i, 2, f"--timeout={common.PATIENCE}") for i in range(2)]
        self.wait_for_key(":planners")
        runs = [self.executors(name, f"--timeout={common.PATIENCE}", *flags)
                for name, flags in (("first", ()), ("second", ()), ("rate", ("--lr=0.01",)))]
        for run in runs:
            self.end(run)
        self.assertEqual([self.saved(run.name) for run in runs], [self.expected, self.expected, other])
        for index, planner in enumerate(planners):
            self.assertIn(f"planner {index} of 2: {STEPS // 2} plans in", self.end(planner))
        self.assertEqual(self.plans_left(), [])

    def test_values_are_not_fetched_before_their_size_is_known(self):
        planner = self.planner(0, 1, f"--timeout={common.PATIENCE}")
        self.wait_for_key(":planners")
        slot = self.server.ask("KEYS", "dyna:*:planners")[0].replace(":planners", ":run:0")
        planner.kill()
        self.server.ask("SETRANGE", slot, "300000000", "x")
        said = self.end(self.executors("large", self.deadline()), 2)
        self.assertIn(f"plan of step 1: the store {self.server.address} has a value of 300000001 bytes under {slot}, "
                      "but values have at most 67108864", said)
        sent = re.search(r"total_net_output_bytes:(\d+)", self.server.ask("INFO", "stats"))
        self.assertLess(int(sent[1]), 1 << 20)

    def test_damage_in_a_store_names_store_and_step(self):
        planner = self.planner(0, 1, f"--timeout={common.PATIENCE}", "--steps=100000", "--plan-ahead=6")
        self.wait_for_key(":planners")
        executors = self.executors("damaged", f"--timeout={common.PATIENCE}", "--steps=100000", "--plan-ahead=1")
        self.wait_for_step("damaged", 2, executors)
        ranks = subprocess.run(["pgrep", "-P", str(executors.pid)], capture_output=True, text=True).stdout.split()
        for rank in ranks:
            os.kill(int(rank), signal.SIGSTOP)
        self.wait_for_plans(4)
        planner.kill()
        planner.wait()
        for key in self.plans_left():
            self.server.ask("SET", key, "DYNAPLAN" + "x" * 100)
        for rank in ranks:
            os.kill(int(rank), signal.SIGCONT)
        self.assertRegex(self.end(executors, 2), rf"the plan of step \d+ in {self.server.address}: it is of format ")

    def test_planners_of_a_killed_run_serve_the_next(self):
        planner = self.planner(0, 1, f"--timeout={common.PATIENCE}")
        self.wait_for_key(":planners")
        first = self.executors("dead", f"--timeout={common.PATIENCE}", "--steps=100000")
        self.wait_for_step("dead", 2, first)
        for rank in subprocess.run(["pgrep", "-P", str(first.pid)], capture_output=True, text=True).stdout.split():
            os.kill(int(rank), signal.SIGKILL)
        first.wait(timeout=common.PATIENCE)
        slot, = [key for key in self.server.ask("KEYS", "dyna:*") if key.endswith(":run:0")]
        self.server.ask("DEL", slot)  # as the server does after 30 seconds
        self.end(self.executors("next", f"--timeout={common.PATIENCE}"))
        self.assertEqual(self.saved("next"), self.expected)
        self.assertIn("planner 0 of 1: ", self.end(planner))

    def test_planners_that_look_less_far_ahead_than_the_run_serve_it(self):
        planner = self.planner(0, 1, f"--timeout={common.PATIENCE}", "--plan-ahead=1")
        self.wait_for_key(":planners")
        self.end(self.executors("further", f"--timeout={common.PATIENCE}", "--plan-ahead=6"))
        self.assertEqual(self.saved("further"), self.expected)
        self.end(planner)

    def test_planners_join_samples_as_executors_do(self):
        # Several of which fill a row.
        short = common.WORK / "short-corpus"
        short.mkdir(exist_ok=True)
        for i in range(80):
            (short / f"{i}.txt").write_text("abcdefgh"[i % 8] * (5 + i % 20))
        flags = ("--data", short, "--micro-batches=packed", f"--timeout={common.PATIENCE}")
        metrics = common.WORK / "joined.metrics"
        metrics.unlink(missing_ok=True)
        expected = self.train("joined-alone", *flags, "--metrics", metrics)
        self.assertLess(max(line["samples"] for line in common.lines_of(metrics)), 20)
        planner = self.planner(0, 1, *flags)
        self.wait_for_key(":planners")
        self.end(self.executors("joined", *flags))
        self.assertEqual(self.saved("joined"), expected)
        self.assertIn(f"planner 0 of 1: {STEPS} plans", self.end(planner))

    def test_planners_run_no_further_ahead(self):
        planner = self.planner(0, 1, "--plan-ahead=3", f"--timeout={common.PATIENCE}")
        executors = self.executors("ahead", "--plan-ahead=3", f"--timeout={common.PATIENCE}")
        most = 0
        while executors.poll() is None:
            most = max(most, len({key.split(":")[3] for key in self.plans_left()}))
        self.end(executors)
        self.end(planner)
        # The step that runs may not have been removed yet, and the next three wait.
        self.assertLessEqual(most, 4)

    def test_a_killed_server_ends_the_run(self):
        planner = self.planner(0, 1, "--steps=100000", self.deadline())
        executors = self.executors("killed", "--steps=100000", self.deadline())
        self.wait_for_step("killed", 3, executors)
        self.server.kill()
        for child in (executors, planner):
            self.assertIn(f"the store {self.server.address} ", self.end(child, 2))
        # What was trained is saved.
        self.assertTrue(list((common.WORK / "killed").glob("step-*")))

    def test_a_server_that_starts_again_changes_no_bit(self):
        planner = self.planner(0, 1, "--store-retry=60")
        self.wait_for_key(":planners")
        planner.send_signal(signal.SIGSTOP)  # so that the run cannot be over too soon
        executors = self.executors("again", "--store-retry=60")
        self.wait_for_key(":run:0")
        # The planner and both processes that execute: a store that is not there at the start is a wrong address.
        limit = time.monotonic() + common.PATIENCE
        while self.connected() < 3:
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.01)
        self.server.kill()
        time.sleep(0.3)
        self.server.start()
        planner.send_signal(signal.SIGCONT)
        self.end(executors)
        self.assertEqual(self.saved("again"), self.expected)
        self.assertIn(f"planner 0 of 1: {STEPS} plans", self.end(planner))

    def test_a_server_that_takes_nothing_is_said(self):
        """By the process that it refuses, though others wait for its plan as long as it waits for them."""
        self.server.ask("CONFIG", "SET", "maxmemory", "1")
        try:
            said = self.end(self.executors("full", self.deadline()), 2)
        finally:
            self.server.ask("CONFIG", "SET", "maxmemory", "0")
        self.assertIn(f"the store {self.server.address} refuses: OOM", said)

    def test_a_planner_that_never_comes_ends_the_run(self):
        planner = self.planner(0, 2, f"--timeout={common.PATIENCE}")
        self.wait_for_key(":planners")
        said = self.end(self.executors("never", self.deadline()), 2)
        self.assertIn("planner 1 of 2 has left no plan of step 2 in redis://", said)
        self.end(planner)

    def test_planners_without_executors_end(self):
        said = self.end(self.planner(0, 1, self.deadline()), 2)
        self.assertIn("no executors with these flags and data have come to", said)

    def test_bad_stores_are_refused_on_one_line(self):
        def refusal(address, password=PASSWORD, flags=("--plan-only=0/1",)):
            done = subprocess.run(self.words(f"--store={address}", self.deadline(), *flags), stderr=subprocess.PIPE,
                                  text=True, timeout=common.PATIENCE,
                                  env={**os.environ, "DYNA_STORE_PASSWORD": password} if password else os.environ)
            self.assertEqual(done.returncode, 2, done.stderr)
            lines = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
            self.assertEqual(len(lines), 1, done.stderr)
            self.assertNotIn(password or PASSWORD, lines[0])
            return lines[0]

        good = self.server.address
        self.assertIn("refuses the password of DYNA_STORE_PASSWORD", refusal(good, "wrong-password"))
        self.assertIn("needs a password: give it in the variable", refusal(good, None))
        self.assertIn("cannot be reached: ", refusal("redis://no-such-host.invalid:6379"))
        self.assertIn("Connection refused", refusal(f"redis://127.0.0.1:{free_port()}"))
        self.assertIn("from 1 to 65535", refusal("redis://host:99999"))
        self.assertIn("names no host", refusal("redis://"))
        self.assertIn("knows only redis://", refusal("http://host:80"))
        self.assertIn("expects an address such as", refusal("host:80"))
        self.assertIn("DYNA_STORE_PASSWORD alone", refusal(f"redis://:{PASSWORD}@127.0.0.1:{self.server.port}"))
        for number in ("2/2", "-1/2", "1", "a/b", "0/0", "0/5000"):
            self.assertIn(f"planner I from 0 to N-1 of N, at most 1024, but got '{number}'",
                          refusal(good, flags=(f"--plan-only={number}",)))
        self.assertIn("needs --store", common.run(self.words("--plan-only=0/1")).stderr)
        self.assertIn("--save is for the processes that do", refusal(good, flags=("--plan-only=0/1", "--save=x")))
        self.assertIn("--plans has none to share", refusal(good, flags=("--plans=x",)))
        self.server.ask("SET", "dyna:format", "7")
        self.assertIn("holds plans of format 7, but this program's are of format 4", refusal(good))


@unittest.skipUnless(MPIRUN and SERVER, "no mpirun or redis-server")
class RangesTest(SharedTests, StoreRuns):
    """Steps of two graphs: what is stored has all phases."""

    GRAPHS = ("--strategies=short: dp=2,zero=1; long: pp=2", "--ranges=short: 0-50; long: 51-; home=short", "--merge-ranges=never")
    NAME = "ranges"

    def test_steps_have_both_phases(self):
        """Or the others would say nothing."""
        metrics = common.WORK / "phases.jsonl"
        metrics.unlink(missing_ok=True)
        self.train("phases", f"--metrics={metrics}")
        self.assertEqual({line["phases"] for line in common.lines_of(metrics)}, {2})

    def test_other_ranges_meet_nobody(self):
        """Where only the cut, the strategy of the short samples or merging is another."""
        strategies, ranges, never = self.GRAPHS
        others = ((strategies, ranges.replace("50", "40").replace("51", "41"), never),
                  (strategies.replace(",zero=1", ""), ranges, never), (strategies, ranges))
        planners = [self.start(f"other{index}", [word for word in self.words(
            "--plan-only=0/1", f"--store={self.server.address}", self.deadline()) if word not in self.GRAPHS] + list(other))
            for index, other in enumerate(others)]
        self.wait_for_keys(":planners", len(others))
        self.end(self.executors("nobody"))
        self.assertEqual(self.saved("nobody"), self.expected)
        for planner in planners:
            self.assertIn("no executors with these flags and data have come to", self.end(planner, 2))

    def test_what_is_searched_is_found_by_planners_too(self):
        plain = [word for word in self.words() if word not in self.GRAPHS] + ["--ranges=search"]
        for name in ("searched", "sought"):
            shutil.rmtree(common.WORK / name, ignore_errors=True)
        mpirun = [MPIRUN, "--oversubscribe", "-n", "2"]
        common.succeed([*mpirun, *plain, "--save", common.WORK / "searched"])
        planner = self.start("searcher", [*plain, "--ranks=2", "--plan-only=0/1", f"--store={self.server.address}"])
        self.wait_for_key(":planners")
        executors = self.start("seeker", [*mpirun, *plain, f"--store={self.server.address}",
                                          f"--save={common.WORK / 'sought'}"])
        self.end(executors)
        self.assertEqual(self.saved("sought"), self.saved("searched"))
        self.assertIn(f"planner 0 of 1: {STEPS} plans", self.end(planner))


if __name__ == "__main__":
    unittest.main()
