#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Strategies in use: the same bits again, resuming, bf16, the order of a pipeline, and what is refused."""

import os
from unittest import mock

import common
import strategies_common as strategies
from strategies_common import Case

FILES = ("model.safetensors", "optimizer.safetensors")
# Losses and gradient norms of bf16 against f64: see docs/numerics.md.
BF16_BOUNDS = {"loss": 3e-3, "gradient_norm": 3e-2}


def passes_of(trace, rank, step):
    """The order in which a rank passes its micro-batches: ('F', 0), ('B', 0) and so on."""
    events = [event for event in trace if event["ph"] == "X" and event["pid"] == rank and event["args"]["step"] == step]
    events.sort(key=lambda event: event["ts"])
    passes = []
    for event in events:
        letter = {"FORWARD": "F", "BACKWARD": "B"}.get(event["name"])
        # The layers of a pass follow one another.
        if letter and (not passes or passes[-1] != (letter, event["args"]["micro_batch"])):
            passes.append((letter, event["args"]["micro_batch"]))
    return passes


def gpipe(count):
    return [(letter, m) for letter in "FB" for m in range(count)]


def one_forward_one_backward(count, stage, stages):
    warmup = min(stages - stage - 1, count)
    order = [("F", m) for m in range(warmup)]
    for m in range(warmup, count):
        order += [("F", m), ("B", m - warmup)]
    return order + [("B", m) for m in range(count - warmup, count)]


class UseTest(strategies.StrategiesTest):
    def files(self, stem, step=strategies.STEPS):
        return [(stem / f"step-{step}" / name).read_bytes() for name in FILES]

    def test_repeated_runs_have_the_same_bits(self):
        cases = [Case("gpt2", 2, 2, 2, 1, 1, "selective"), Case("gpt2", 2, 3, 1, 0, 1, "none"),
                 Case("llama", 1, 4, 2, 0, 0, "none"), Case("llama", 4, 2, 1, 1, 0, "full")]
        for case in cases:
            with self.subTest(case=case.label):
                stems = [self.runs / f"again-{i}-{case.label}" for i in range(2)]
                for stem in stems:
                    strategies.train(strategies.program(case.family), self.corpus, case, stem)
                self.assertEqual(*(common.losses(f"{stem}.jsonl") for stem in stems))
                self.assertEqual(*(self.files(stem) for stem in stems))

    def test_saved_under_one_strategy_resumes_under_another(self):
        ways = [("gpt2", Case("gpt2", 2, 2, 2, 1, 1, "none"), Case("gpt2", 1, 3, 2, 0, 0, "full")),
                ("gpt2", Case("gpt2", 1, 1, 1, 0, 0, "none"), Case("gpt2", 4, 2, 1, 1, 0, "none")),
                ("llama", Case("llama", 1, 4, 2, 0, 1, "selective"), Case("llama", 3, 2, 1, 1, 1, "none")),
                ("llama", Case("llama", 2, 1, 3, 1, 0, "none"), Case("llama", 1, 8, 1, 0, 1, "none"))]
        for family, before, after in ways:
            with self.subTest(before=before.label, after=after.label):
                self.reference(family)
                stem = self.runs / f"{before.label}-{after.label}"
                binary = strategies.program(family)
                strategies.train(binary, self.corpus, before, stem, steps=3)
                common.succeed([binary, "--resume", stem, f"--metrics={stem}.jsonl", "--no-progress", f"--steps={strategies.STEPS}",
                                f"--strategy={after.strategy}", f"--recompute={after.recompute}",
                                f"--tokens-per-micro-batch={after.micro_batch}"])
                self.assertIsNone(self.differences(after, stem, first=3))

    def test_the_flag_beats_the_strategy_and_says_so(self):
        def notes(strategy, *flags):
            done = common.run([strategies.program("gpt2"), "--data", self.corpus, "--steps=1", "--tokens-per-batch=512",
                               "--no-progress", f"--strategy={strategy}", *flags])
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stderr

        self.assertIn("note: --recompute full is used, not that of the strategy 'dp=2,tp=1,pp=1,recompute=none'",
                      notes("dp=2,recompute=none", "--recompute=full"))
        for agreeing in (["dp=2,recompute=full", "--recompute=full"], ["dp=2", "--recompute=full"], ["dp=2,recompute=full"]):
            self.assertNotIn("--recompute", notes(*agreeing))

    def test_bf16_stays_near_f64(self):
        binary = strategies.program("llama", "bf16", (2,))
        wide = self.reference("llama")
        for case in (Case("llama", 1, 1, 1, 0, 0, "none"), Case("llama", 2, 2, 2, 1, 1, "none"),
                     Case("llama", 4, 2, 1, 1, 0, "full"), Case("llama", 2, 2, 1, 0, 1, "selective")):
            with self.subTest(case=case.label):
                stem = self.runs / f"bf16-{case.label}"
                strategies.train(binary, self.corpus, case, stem)
                for kind, bound in BF16_BOUNDS.items():
                    pairs = zip(common.lines_of(f"{wide.stem}.jsonl"), common.lines_of(f"{stem}.jsonl"), strict=True)
                    largest = max(abs(a[kind] - b[kind]) / a[kind] for a, b in pairs)
                    print(f"bf16, {case.strategy}: {kind} {largest:.1e}")
                    self.assertLessEqual(largest, bound, kind)

    def trace(self, case, *flags):
        path = self.folder / "trace.json"
        metrics = self.folder / "metrics.jsonl"
        common.succeed(strategies.command(strategies.program(case.family), self.corpus, case, f"--trace={path}",
                                          f"--metrics={metrics}", *flags, steps=2))
        counts = [line["micro_batches"] for line in common.lines_of(metrics)]
        return common.trace_events(path), counts

    def test_traces_have_the_order_of_their_plan(self):
        for stages, tp in ((2, 1), (2, 2), (4, 1)):
            case = Case("gpt2", 1, tp, stages, 0, 0, "none")
            for pipeline in ("gpipe", "1f1b"):
                with self.subTest(stages=stages, tp=tp, pipeline=pipeline):
                    # Micro-batches of so few tokens are kept in steps of 32: as many as fit by their numbers.
                    trace, counts = self.trace(case, f"--pipeline={pipeline}", "--in-flight=100", "--micro-batches=tokens")
                    for step, count in enumerate(counts, 1):
                        self.assertGreaterEqual(count, 4)
                        for rank in range(case.ranks):
                            expected = (gpipe(count) if pipeline == "gpipe"
                                        else one_forward_one_backward(count, rank // tp, stages))
                            self.assertEqual(passes_of(trace, rank, step), expected, f"rank {rank}, step {step}")

    def test_what_is_chosen_for_a_pipeline(self):
        """Micro-batches that fill it, and for gpipe all forwards first; both give way to flags."""
        case = Case("gpt2", 1, 1, 2, 0, 0, "none")
        positions = strategies.POSITIONS
        even = self.folder / "even"
        even.mkdir()
        for i in range(32):
            (even / f"{i:02}.txt").write_text(chr(97 + i % 26) * positions)
        base = [word for word in strategies.command(strategies.program("gpt2"), even, case, steps=1)
                if "--tokens-per-" not in str(word)]

        batch = f"--tokens-per-batch={8 * positions}"

        def run(*flags):
            trace, metrics = self.folder / "t.json", self.folder / "m.jsonl"
            done = common.run([*base, f"--trace={trace}", f"--metrics={metrics}", *flags])
            self.assertEqual(done.returncode, 0, done.stderr)
            step, = common.lines_of(metrics)
            metrics.unlink()
            return step["micro_batches"], passes_of(common.trace_events(trace), 0, 1), done.stderr

        # A micro-batch is no smaller than the longest sample; 4 for each stage fill the pipeline.
        count, passes, notes = run(batch, "--pipeline=gpipe")
        self.assertEqual(count, 8)
        self.assertEqual(passes, gpipe(8))
        self.assertNotIn("as few as", notes)
        _, passes, _ = run(batch, "--pipeline=gpipe", "--in-flight=2")
        self.assertEqual(passes, sum(([("F", i), ("F", i + 1), ("B", i), ("B", i + 1)] for i in range(0, 8, 2)), []))
        count, _, notes = run(batch, f"--tokens-per-micro-batch={4 * positions}", "--micro-batches=tokens")
        self.assertEqual(count, 2)
        self.assertIn("as few as 2 micro-batches for 2 stages: if all take the same, each stage then waits for 33 %", notes)

    def test_a_cut_by_hand(self):
        case = Case("gpt2", 1, 1, 2, 0, 0, "none")
        self.reference("gpt2")
        for cut in ("1+9", "9+1", "3+7"):
            with self.subTest(cut=cut):
                # The last word of a key counts once: the case says the rest.
                self.assertIsNone(self.run_and_compare(case, flags=(f"--strategy={case.strategy},layers={cut}",)))


class RefusalTest(strategies.StrategiesTest):
    def refuse(self, strategy, *words, flags=()):
        metrics = self.folder / "metrics.jsonl"
        save = self.folder / "save"
        done = common.run([strategies.program("gpt2"), "--data", self.corpus, "--steps=2", "--no-progress",
                           f"--tokens-per-batch={strategies.TOKENS}", "--tokens-per-micro-batch=64",
                           f"--metrics={metrics}", f"--save={save}", *([f"--strategy={strategy}"] if strategy else []),
                           *flags])
        self.assert_refused(done, *words)
        self.assertFalse(metrics.exists(), "steps have begun")
        self.assertFalse(save.exists(), "files were made")

    def test_strategies_that_do_not_fit(self):
        for strategy, *words in (("pp=11", "11 stages", "10 layers"),
                                 ("pp=2,layers=4+4", "8 layers", "10"),
                                 ("pp=2,layers=10", "layers"),
                                 ("tp=5", "tp=5 was not compiled into this binary, only tp=1 or tp=2 or", "dynac --strategies"),
                                 ("tp=12", "tp=12 was not compiled"),
                                 ("dp=2,cp=2", "cp"),
                                 ("dp=2,dp=2", "dp"),
                                 ("dp=0", "dp", "0"),
                                 ("dp=two", "two"),
                                 ("dp=2,zero=3", "zero"),
                                 ("dp=2,recompute=some", "some"),
                                 ("dp=1000000", "1000000 ranks", "at most"),
                                 ("fast", "fast")):
            with self.subTest(strategy=strategy):
                self.refuse(strategy, *words)

    def test_processes_that_know_nothing_of_each_other(self):
        for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
            with mock.patch.dict(os.environ, {name: "4"}):
                self.refuse("dp=4", "one of 4 processes", "dynac --with=mpi")

    def test_ranks_are_those_of_the_strategy(self):
        self.refuse("dp=2,tp=2", "--ranks is 8", "has 4", flags=["--ranks=8"])
        self.refuse("", "--ranks is 2", "has 1", flags=["--ranks=2"])

    def test_what_dynac_refuses(self):
        module = strategies.program("gpt2").with_suffix(".mlir")
        llama = strategies.program("llama").with_suffix(".mlir")
        for source, text, words in ((module, "tp=5", ("12 heads", "tp=5")),
                                    (module, "tp=8", ("12 heads", "tp=8")),
                                    (llama, "tp=3", ("8 heads", "tp=3")),
                                    (module, "a: tp=2; a: tp=4", ("two strategies", "'a'")),
                                    (module, "a: tp=2,cp=2", ("cp",)),
                                    (module, "a: tp=-1", ("-1",))):
            with self.subTest(text=text):
                output = self.folder / "binary"
                done = common.run([common.DYNAC, source, "-o", output, f"--strategies={text}"])
                self.assertNotEqual(done.returncode, 0)
                for word in words:
                    self.assertIn(word, done.stderr)
                # The op of the module that cannot be split is shown below the one message.
                self.assertEqual(done.stderr.count("error: ") or len(done.stderr.splitlines()), 1, done.stderr)
                self.assertFalse(output.exists())

    def test_dynac_refuses_what_the_binary_would_in_the_same_words(self):
        binary = strategies.program("gpt2")
        for text, *words in (("a: pp=11", "11 stages", "10 layers"), ("pp=11,tp=2", "11 stages"),
                             ("a: layers=4+4,pp=2", "8 layers", "10")):
            with self.subTest(text=text):
                output = self.folder / "compiled"
                refused = [common.run([common.DYNAC, binary.with_suffix(".mlir"), "-o", output, f"--strategies={text}"]),
                           common.run([binary, "--data", self.corpus, "--steps=1", "--no-progress", f"--strategy={text}"])]
                for done in refused:
                    self.assert_refused(done, *words)
                self.assertEqual(*(done.stderr[done.stderr.index("strategy '"):] for done in refused))
                self.assertFalse(output.exists())


if __name__ == "__main__":
    common.main()
