#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of several strategies train to the numbers of one rank: a cover, which switches_all_test.py runs all of."""

import contextlib
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import common
import strategies_common as strategies
import strategies_mpi_test
import switches_common as switches
from switches_common import Case, Graph

# mpirun refuses to run as root, as containers do, unless told twice.
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
MPIRUN = shutil.which("mpirun")

A = Graph(2, 1, 2, 0, 0, "none", "dp+pp+tp", "")
B = Graph(2, 2, 1, 1, 0, "selective", "dp+pp+tp", "")
C = Graph(1, 4, 1, 0, 1, "none", "dp+pp+tp", "")


class EqualityTest(switches.SwitchesTest):
    def test_numbers_are_those_of_one_rank(self):
        cases = switches.all_cases()
        cover = strategies.cover_of_pairs(cases)
        self.assertLess(len(cover), len(cases) / 3)
        self.assert_equal_numbers(cover)

    def test_slices_stay_within_their_strategies(self):
        """Each strategy slices its own samples, or one of two does: the numbers are those of whole samples on one rank."""
        for family, graphs in (("gpt2", (C, A)), ("gpt2", (A, B)), ("llama", (B, A._replace(recompute="full", zero=1)))):
            case = Case(family, graphs)
            self.reference(family)
            # No sample of the first range is longer than a chunk of 20 tokens.
            for number, (slices, expected) in enumerate((("chunkflow:20", [False, True]), ("3+2", [True, True]))):
                with self.subTest(case=case.label, slices=slices):
                    plans = self.runs / f"sliced-{case.label}-{number}"
                    self.assertIsNone(self.run_and_compare(case, flags=[f"--slices={slices}", f"--dump-plans={plans}"]))
                    self.assertEqual(self.sliced_graphs(case, plans), expected)

    def sliced_graphs(self, case, plans):
        """Whether a slice is in any step's phase of each graph. The parts of a sample are in one phase, and complete."""
        found = [False] * len(case.graphs)
        for step in range(1, strategies.STEPS + 1):
            text = common.succeed([common.DYNA_TRANSLATE, "--plan-to-mlir", plans / f"step-{step}.plan"])
            phases = text.split("exec.plan @")[1:]
            self.assertGreaterEqual(len(phases), len(case.graphs) - 1)
            for phase in phases:
                strategy = re.search(r'strategy "([^"]*)"', phase).group(1)
                own = [index for index, graph in enumerate(case.graphs)
                       if strategy.startswith(f"dp={graph.dp},tp={graph.tp},pp={graph.pp}")]
                self.assertEqual(len(own), 1, strategy)
                parts = re.findall(r"sample (\d+)(?: begin (\d+))? length (\d+)", phase)
                ends = dict.fromkeys(sample for sample, _, _ in parts)
                for sample, begin, length in sorted(parts, key=lambda part: int(part[1] or 0)):
                    self.assertEqual(ends[sample] or 0, int(begin or 0), f"sample {sample} has a gap")
                    ends[sample] = int(begin or 0) + int(length)
                found[own[0]] |= len(parts) > len(ends)
        return found

    def test_the_same_bits_every_time(self):
        case = Case("gpt2", (A, B, C))
        stems = [self.runs / f"again-{turn}" for turn in range(2)]
        for stem in stems:
            common.succeed(self.command(case, stem))
        for name in ("model.safetensors", "optimizer.safetensors"):
            self.assertEqual(*((stem / f"step-{strategies.STEPS}" / name).read_bytes() for stem in stems))

    def test_any_run_resumes_any_other(self):
        """Three steps of one kind, then two of the other; checkpoints are home's."""
        case = Case("gpt2", (A, B, C))
        self.reference("gpt2")
        plain = [flag for flag in self.command(case, "{}") if not str(flag).startswith(("--strategies", "--ranges", "--merge"))]
        for first, second in ((case.flags, ["--strategy=tp=2,dp=2"]), (["--strategy=pp=2"], case.flags)):
            stem = self.runs / "resumed"
            shutil.rmtree(stem, ignore_errors=True)
            own = [str(flag).replace("{}", str(stem)) for flag in plain]
            common.succeed([*own, *first, "--steps=3"])
            common.succeed([*own, *second, f"--resume={stem}"])
            for kind, (difference, where) in self.references["gpt2"].compare(stem).items():
                self.assertLessEqual(difference, strategies.TOLERANCE, f"{kind} of {where}")

    def test_a_run_that_was_interrupted_goes_on_bit_by_bit(self):
        """Sizes of micro-batches that nobody gave are chosen again for each graph, and bind no other strategy."""
        case = Case("gpt2", (A, B, C))
        stems = [self.runs / name for name in ("whole", "interrupted")]
        whole, parts = [[word for word in self.command(case, stem) if not str(word).startswith("--tokens-per-micro-batch=")]
                        for stem in stems]
        common.succeed(whole)
        common.succeed([*parts, "--steps=3"])
        common.succeed([parts[0], f"--resume={stems[1]}", f"--steps={strategies.STEPS}", "--no-progress"])
        for name in ("model.safetensors", "optimizer.safetensors"):
            self.assertEqual(*((stem / f"step-{strategies.STEPS}" / name).read_bytes() for stem in stems))
        stored = json.loads((stems[0] / f"step-{strategies.STEPS}" / "state.json").read_text())["arguments"]
        self.assertFalse([word for word in stored if "micro-batch=" in word])

    def test_plans_come_from_files(self):
        """What was dumped runs again, and is refused where the graphs are others."""
        case = Case("gpt2", (A, B, C))
        stems = [self.runs / name for name in ("dumped", "read")]
        folder = self.runs / "plans"
        common.succeed(self.command(case, stems[0], f"--dump-plans={folder}"))
        common.succeed(self.command(case, stems[1], f"--plans={folder}"))
        for name in ("model.safetensors", "optimizer.safetensors"):
            self.assertEqual(*((stem / f"step-{strategies.STEPS}" / name).read_bytes() for stem in stems))
        plain = [flag for flag in self.command(case, self.runs / "other", f"--plans={folder}")
                 if not str(flag).startswith(("--strategies", "--ranges", "--merge"))]
        for command, words in ((self.command(Case("gpt2", (A, C)), self.runs / "other", f"--plans={folder}"),
                                "none of this run's: it has "), ([*plain, "--strategy=dp=4"], "3 phases, but this run has one")):
            done = common.run(command)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)

    def test_evaluation_goes_by_range(self):
        case = Case("gpt2", (A, B, C))
        self.reference("gpt2")
        binary = strategies.program("gpt2")
        model = f"--load={self.references['gpt2'].stem}/step-{strategies.STEPS}"
        texts = [common.succeed([binary, "--evaluate", model, "--data", self.corpus, "--threads=1", *flags])
                 for flags in ([], case.flags)]
        losses = [float(text.split("loss ")[1].split()[0].rstrip(",")) for text in texts]
        self.assertAlmostEqual(*losses, delta=1e-6)


@unittest.skipUnless(MPIRUN, "no mpirun")
class MpiTest(switches.SwitchesTest):
    def setUp(self):
        if missing := common.missing_libraries("mpi"):
            self.skipTest("dynac has no MPI: " + missing)

    def test_processes_have_the_numbers_of_one_rank(self):
        binary = strategies.program("gpt2", "f64", (2, 4), ("--with=mpi",))
        self.reference("gpt2")
        for graphs in ((A, B, C), (C, A), (B._replace(order="tp+pp+dp"), A, C)):
            case = Case("gpt2", graphs)
            with self.subTest(case=case.label):
                self.assertIsNone(self.run_and_compare(case, [MPIRUN, "--oversubscribe", "-n", "4"], binary=binary))

    def test_processes_and_threads_have_the_same_bits(self):
        binary = strategies.program("gpt2", "f64", (2, 4), ("--with=mpi",))
        case = Case("gpt2", (A, B, C))
        stems = [self.runs / "threads", self.runs / "processes"]
        for stem, words in zip(stems, ((), [MPIRUN, "--oversubscribe", "-n", "4"])):
            common.succeed([*words, *self.command(case, stem, binary=binary)])
        for name in ("model.safetensors", "optimizer.safetensors"):
            self.assertEqual(*((stem / f"step-{strategies.STEPS}" / name).read_bytes() for stem in stems))
        # And of all ranks is what the process of rank 0 writes.
        threads, processes = (common.lines_of(f"{stem}.jsonl") for stem in stems)
        for one, other in zip(threads, processes):
            for key in ("switch_bytes", "peak_bytes", "rank_peak_bytes", "strategies"):
                self.assertEqual(one[key], other[key], key)
            self.assertAlmostEqual(one["gflops"] * one["seconds"], other["gflops"] * other["seconds"],
                                   delta=0.01 * (one["seconds"] + other["seconds"]))

    def test_a_rank_that_stands_still_ends_all_by_the_deadline(self):
        """And what was saved loads; a step of so few tokens is mostly switches."""
        binary = strategies.program("gpt2", "f64", (2, 4), ("--with=mpi",))
        case, stem = Case("gpt2", (A, B, C)), self.runs / "still"
        with common.measured() as took:
            common.succeed([MPIRUN, "--oversubscribe", "-n", "4", *self.command(case, self.runs / "moves", binary=binary)])
        deadline = took.times(2)
        words = [str(word) for word in self.command(case, stem, f"--timeout={deadline}", "--tokens-per-batch=128",
                                                    "--save-every=20", binary=binary, steps=100000)]
        job = subprocess.Popen([MPIRUN, "--oversubscribe", "-n", "4", *words], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        pids = []
        try:
            limit = time.monotonic() + common.PATIENCE
            while not (stem / "step-20").exists():
                self.assertIsNone(job.poll(), "the run ended too early")
                self.assertLess(time.monotonic(), limit, "the run does not get on")
                time.sleep(0.02)
            pids = strategies_mpi_test.processes_of(binary)
            self.assertEqual(len(pids), 4)
            os.kill(pids[-1], signal.SIGSTOP)
            _, err = job.communicate(timeout=common.PATIENCE)
            self.assertNotEqual(job.returncode, 0)
            self.assertIn(f"not done after {deadline} second", err)
        finally:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            job.kill()
        common.succeed([binary, "--evaluate", "--load", stem, "--data", self.corpus, "--threads=1"])


class TraceTest(switches.SwitchesTest):
    def test_switches_are_tracks_of_their_own(self):
        stem, trace = self.runs / "traced", self.runs / "trace.json"
        common.succeed(self.command(Case("gpt2", (A, B, C)), stem, f"--trace={trace}", steps=2))
        events = common.trace_events(trace)
        tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        for rank in range(4):
            self.assertEqual(tracks[rank, 1], "switches: values")
            self.assertEqual(tracks[rank, 2], "switches: gradients")
            self.assertEqual(tracks[rank, 3], "phases")
        # Two graphs beside home, each fetched and returned once a step.
        for name, track in (("values come", 1), ("gradients go home", 2)):
            lives = [e for e in events if e["name"] == name and e["pid"] == 0]
            self.assertEqual([(e["args"]["step"], e["args"]["phase"], e["tid"]) for e in lives],
                             [(step, phase, track) for step in (1, 2) for phase in range(2)])
        # A slice for each phase, by its strategy, around its functions; one after another.
        names = ["s0", "s1", "s2"]
        for step, rank in itertools.product((1, 2), range(4)):
            phases = [e for e in events if e.get("cat") == "phase" and e["pid"] == rank and e["args"]["step"] == step]
            self.assertEqual([(e["args"]["phase"], e["tid"]) for e in phases], [(phase, 3) for phase in range(len(phases))])
            self.assertEqual(sorted(e["name"] for e in phases), sorted(names))
            functions = [e for e in events if e["pid"] == rank and e.get("tid") == 0 and e.get("ph") == "X" and "layer" in e["args"]
                         and e["args"]["step"] == step]
            self.assertTrue(functions)
            for phase in phases:
                own = [e for e in functions if e["args"]["phase"] == phase["args"]["phase"]]
                self.assertEqual(phase["ts"], min(e["ts"] for e in own))
                self.assertEqual(phase["ts"] + phase["dur"], max(e["ts"] + e["dur"] for e in own))
            for one, other in itertools.pairwise(phases):
                self.assertLessEqual(one["ts"] + one["dur"], other["ts"])
        starts = [e for e in events if e["name"] == "SWITCH_START" and e["pid"] == 0]
        self.assertTrue(starts and all(e["cat"] == "switch" and "bucket" in e["args"] for e in starts))
        # Bytes of all ranks are what metrics have.
        line = common.lines_of(f"{stem}.jsonl")[0]
        sent = sum(e["args"].get("bytes", 0) for e in events
                   if e.get("cat") == "switch" and e["tid"] > 0 and e["args"]["step"] == 1)
        self.assertEqual(sent, line["switch_bytes"])
        self.assertGreater(line["switch_seconds"], 0)
        # And are drawn: of two graphs, on four ranks.
        picture = self.runs / "trace.svg"
        common.succeed([sys.executable, pathlib.Path(os.environ["DYNA_SOURCE"]) / "tools" / "draw-trace.py", trace, "-o", picture])
        for name in ("values come", "gradients go home"):
            self.assertEqual(picture.read_text().count(f"<title>{name}, phase "), 8)


class SearchTest(switches.SwitchesTest):
    def test_ranges_are_found_for_a_corpus(self):
        """What is found is said, trains, and is what a resumed run has."""
        stem = self.runs / "found"
        words = [str(flag) for flag in self.command(Case("gpt2", (A, B)), stem)
                 if not str(flag).startswith(("--strategies", "--ranges", "--merge"))]
        said = [common.run([word.replace("found", turn) for word in words] + ["--ranges=search", "--ranks=4"]).stderr
                for turn in ("again", "found")]
        self.assertEqual(*said)
        found = re.search(r'of (\d+) strategies of 4 ranks, .*--strategies "([^"]*)" --ranges "([^"]*)"', said[0])
        self.assertGreater(int(found.group(1)), 5)
        for strategy in found.group(2).split("; "):
            degrees = dict(part.split("=") for part in strategy.split(": ")[1].split(","))
            self.assertEqual(int(degrees.get("dp", 1)) * int(degrees.get("tp", 1)) * int(degrees.get("pp", 1)), 4)
        self.assertIn("a step is expected to take", said[0])
        self.assertIn("expected times are estimates, not measured", said[0])
        self.reference("gpt2")
        for kind, (difference, where) in self.references["gpt2"].compare(stem).items():
            self.assertLessEqual(difference, strategies.TOLERANCE, f"{kind} of {where}")
        stored = json.loads((stem / f"step-{strategies.STEPS}" / "state.json").read_text())["arguments"]
        self.assertIn(f"--ranges={found.group(3)}", stored)
        self.assert_names_are_joined(stem, [strategy.split(":")[0] for strategy in found.group(2).split("; ")])

    def assert_names_are_joined(self, stem, stored):
        """A run of ranges that were found goes on under compiled names, and under its own."""
        binary = strategies.program("gpt2")
        own = stored[0]
        turns = (["--strategy=t4s1"], [f"--strategy={own}"], [],
                 ["--ranges=t4s0: 0-8; mine: 9-", "--strategies=mine: dp=4"])
        for more, flags in enumerate(turns):
            resumed = self.runs / f"resumed-{more}"
            shutil.copytree(stem, resumed)
            common.succeed([binary, "--resume", resumed, f"--steps={strategies.STEPS + 1}", "--no-progress", *flags])
        # Named in vain: the saved ranges are of others.
        shutil.copytree(stem, self.runs / "resumed-in-vain")
        done = common.run([binary, "--resume", self.runs / "resumed-in-vain", f"--steps={strategies.STEPS + 1}", "--no-progress", "--strategies=vain: dp=4,recompute=full"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "note: no range is of the strategies .*vain.*: the saved ranges are of .*--ranges gives others")
        done = common.run([binary, "--resume", stem, f"--steps={strategies.STEPS + 1}", "--no-progress", "--strategy=none"])
        self.assertEqual(done.returncode, 2)
        for name in (own, "t4s1"):
            self.assertIn(name, done.stderr)


class RefusalTest(common.BinaryTest):
    """One line with the numbers, exit code 2, before training."""

    def refusal(self, *flags):
        data = strategies.corpus(common.WORK / "corpus")
        done = common.run([strategies.program("gpt2"), "--data", data, "--steps=1", "--threads=1", "--no-progress",
                           "--tokens-per-batch=512", *flags])
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    STRATEGIES = "--strategies=a: dp=2; b: tp=2; c: dp=4"

    def test_ranges(self):
        for ranges, words in (("a: 0-8; b: 10-", "9"), ("a: 0-8; b: 8-", "8"), ("a: 0-8; d: 9-", "'d: 9-'"),
                              ("a: 0-8; b: 9-20", "20"), ("a: 0-8; c: 9-", "'c: dp=4,tp=1,pp=1' has 4 ranks, but strategy 'a: dp=2,tp=1,pp=1' has 2"), ("a 0-8", "a 0-8"),
                              ("a: 0-8; a: 9-", "a")):
            with self.subTest(ranges=ranges):
                self.assertIn(words, self.refusal(self.STRATEGIES, f"--ranges={ranges}"))

    def test_what_does_not_go_together(self):
        ranges = "--ranges=a: 0-8; b: 9-"
        self.assertIn("--strategy", self.refusal(self.STRATEGIES, ranges, "--strategy=dp=2"))
        self.assertIn("or leave out --ranks", self.refusal(self.STRATEGIES, ranges, "--ranks=3"))
        for word in ("never", "auto"):
            self.assertIn("--merge-ranges is about --ranges", self.refusal(f"--merge-ranges={word}"))
        profiled = common.run([strategies.program("gpt2"), self.STRATEGIES, ranges, f"--profile={common.WORK / 'none.costs'}"])
        self.assertEqual(profiled.returncode, 2)
        self.assertIn("measure one strategy of each tensor degree", profiled.stderr)
        self.assertIn("needs --ranks", self.refusal("--ranges=search"))
        self.assertIn("--strategies", self.refusal("--ranges=search", "--ranks=2", self.STRATEGIES))
        self.assertIn("strategies 'a' and 'b' are one, 'dp=2,", self.refusal("--strategies=a: dp=2; b: dp=2", ranges))

    def test_micro_batches_fit_beside_other_layouts(self):
        """Where their size is open it is chosen for the memory that the other graphs leave."""
        data = strategies.corpus(common.WORK / "corpus")
        said = common.run([strategies.program("gpt2"), "--data", data, "--steps=1", "--threads=1", "--no-progress",
                           "--tokens-per-batch=2048", "--strategies=a: dp=2; b: tp=2", "--ranges=b: 0-8; a: 9-",
                           "--rank-memory=40MiB"])
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertRegex(said.stderr, "strategy '[ab]': micro-batches have .* larger ones do not fit")

    def test_memory_for_several_layouts(self):
        said = self.refusal(self.STRATEGIES, "--ranges=a: 0-8; b: 9-", "--rank-memory=12MiB")
        self.assertRegex(said, "strategy '.', beside .* of '.', which is home: a rank may take .* needs .* at least")


if __name__ == "__main__":
    common.main()
