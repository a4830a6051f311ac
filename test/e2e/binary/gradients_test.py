#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Gradients kept in bf16: near those in f32 under any strategy, the same bits again, half the bytes."""

import json

import common
import strategies_common as strategies
import switches_common as switches
from strategies_common import Case
from strategies_counts_test import CUTS, ROWS, Model, part

# Largest relative difference of any step from one rank that keeps its gradients in f32, times the root of the step's targets:
# rounding errors of single targets average out, see docs/numerics.md.
BOUNDS = {"loss": 1.2e-2, "gradient_norm": 0.5}
# The same after 60 steps, of the mean of the last ten losses.
LATE_BOUND = 1e-3
WIDE, NARROW = 4, 2


def program(family, gradients):
    return strategies.program(family, "bf16", (2,), (f"--gradients={gradients}",))


class GradientsTest(switches.SwitchesTest):
    families = ("gpt2",)  # gradients_all_test.py has all

    def differences(self, one, other):
        for kind, bound in BOUNDS.items():
            pairs = zip(common.lines_of(f"{one}.jsonl"), common.lines_of(f"{other}.jsonl"), strict=True)
            largest = max(abs(a[kind] - b[kind]) / a[kind] * a["targets"] ** 0.5 for a, b in pairs)
            print(f"{other.name}: {kind} {largest:.1e} / sqrt(targets)")
            self.assertLessEqual(largest, bound, kind)

    def test_strategies_stay_near_f32_gradients(self):
        for family in self.families:
            wide = self.runs / f"{family}-wide"
            strategies.train(program(family, "f32"), self.corpus, Case(family, 1, 1, 1, 0, 0, "none"), wide)
            for case in (Case(family, 1, 1, 1, 0, 0, "none"), Case(family, 2, 1, 1, 0, 0, "none"),
                         Case(family, 2, 1, 1, 1, 0, "full"), Case(family, 1, 2, 1, 0, 0, "none"),
                         Case(family, 1, 2, 1, 0, 1, "selective"), Case(family, 1, 1, 2, 0, 0, "none"),
                         Case(family, 2, 2, 2, 1, 1, "none")):
                with self.subTest(case=case.label):
                    stem = self.runs / f"narrow-{case.label}"
                    strategies.train(program(family, "bf16"), self.corpus, case, stem)
                    self.differences(wide, stem)
                    # The option does something.
                    self.assertNotEqual(common.losses(f"{wide}.jsonl")[1:], common.losses(f"{stem}.jsonl")[1:])

    def test_steps_that_switch_stay_near_f32_gradients(self):
        """Values move in bf16 and so do gradients that are kept in it; home adds up what comes from all phases."""
        graphs = (switches.Graph(2, 1, 2, 0, 0, "none", "dp+pp+tp", ""), switches.Graph(1, 2, 2, 0, 1, "none", "tp+pp+dp", ""),
                  switches.Graph(2, 2, 1, 1, 0, "selective", "dp+pp+tp", ""))
        for family in self.families:
            wide, losses = self.runs / f"{family}-switched-wide", set()
            strategies.train(program(family, "f32"), self.corpus, Case(family, 1, 1, 1, 0, 0, "none"), wide)
            for gradients in ("f32", "bf16"):
                with self.subTest(family=family, gradients=gradients):
                    stem = self.runs / f"{family}-switched-{gradients}"
                    common.succeed(self.command(switches.Case(family, graphs), stem, binary=program(family, gradients)))
                    self.assertEqual(max(line["phases"] for line in common.lines_of(f"{stem}.jsonl")), len(graphs))
                    self.differences(wide, stem)
                    losses.add(tuple(common.losses(f"{stem}.jsonl")))
            self.assertEqual(len(losses), 2)

    def test_steps_of_few_targets(self):
        """Their errors are larger, as fewer of them average out."""
        for family in self.families:
            for tokens in (48, 128):
                flags = (f"--tokens-per-batch={tokens}", "--tokens-per-micro-batch=32")
                wide = self.runs / f"{family}-few-{tokens}-wide"
                strategies.train(program(family, "f32"), self.corpus, Case(family, 1, 1, 1, 0, 0, "none"), wide, *flags)
                self.assertLess(max(line["targets"] for line in common.lines_of(f"{wide}.jsonl")), tokens + 1)
                for case in (Case(family, 2, 1, 1, 0, 0, "none"), Case(family, 1, 2, 2, 0, 1, "none")):
                    with self.subTest(case=case.label, tokens=tokens):
                        stem = self.runs / f"few-{tokens}-{case.label}"
                        strategies.train(program(family, "bf16"), self.corpus, case, stem, *flags)
                        self.differences(wide, stem)

    def test_repeated_runs_have_the_same_bits(self):
        case = Case("gpt2", 2, 2, 1, 1, 1, "selective")
        stems = [self.runs / f"again-{i}" for i in range(2)]
        for stem in stems:
            strategies.train(program("gpt2", "bf16"), self.corpus, case, stem)
        for name in ("model.safetensors", "optimizer.safetensors"):
            one, other = ((stem / f"step-{strategies.STEPS}" / name).read_bytes() for stem in stems)
            self.assertEqual(one, other, name)

    def test_long_runs_learn_the_same(self):
        for name in common.CONFIGS:
            with self.subTest(model=name):
                late = {}
                for gradients in ("f32", "bf16"):
                    stem = self.train(common.binary(name, "bf16", (f"--gradients={gradients}",)), f"{name}-{gradients}",
                                      "--tokens-per-micro-batch=64", steps=60)
                    losses = common.losses(f"{stem}.jsonl")
                    self.assertLess(losses[-1], 0.8 * losses[0])
                    late[gradients] = sum(losses[-10:]) / 10
                difference = abs(late["bf16"] / late["f32"] - 1)
                print(f"{name}, steps 51 to 60: loss {late['f32']:.4f}, with bf16 gradients {difference:.1e} from it")
                self.assertLessEqual(difference, LATE_BOUND)

    def counts(self, case, gradients):
        path = self.folder / f"{case.label}-{gradients}.counts"
        cut = "+".join(map(str, CUTS[case.pp]))
        common.succeed(strategies.command(program(case.family, gradients), self.corpus, case, f"--counts={path}",
                                          f"--strategy={case.strategy},layers={cut}", f"--tokens-per-micro-batch={ROWS}",
                                          # Smaller gradients take less time, after which samples would be cut.
                                          "--micro-batches=tokens", steps=1))
        return json.loads(path.read_text())["ranks"]

    def test_only_gradients_are_smaller(self):
        """And what is sent of them; every other count is what it is with f32."""
        for case in (Case("gpt2", 1, 1, 1, 0, 0, "none"), Case("gpt2", 2, 1, 1, 0, 0, "none"),
                     Case("gpt2", 2, 1, 2, 1, 0, "none"), Case("gpt2", 2, 2, 1, 1, 1, "none"),
                     Case("llama", 2, 2, 1, 1, 1, "none")):
            if case.family not in self.families:
                continue
            with self.subTest(case=case.label):
                for wide, narrow in zip(self.counts(case, "f32"), self.counts(case, "bf16"), strict=True):
                    held = Model(case, wide["rank"], case.dp).held
                    self.assertEqual(narrow["gradient_bytes"], NARROW * sum(p.rows * p.columns for p in held))
                    sent = 0
                    for p in held:
                        if case.zero:
                            sent += p.columns * (p.rows - part(p.rows, p.holders, p.index))
                        else:
                            own = part(p.rows * p.columns, p.holders, p.index)
                            sent += p.rows * p.columns - own + (p.holders - 1) * own
                    wide["gradient_bytes"] -= (WIDE - NARROW) * sum(p.rows * p.columns for p in held)
                    wide["reduce_scatter" if case.zero else "all_reduce"]["bytes"] -= (WIDE - NARROW) * sent
                    self.assertEqual(narrow, wide)

    def test_runs_touch_what_was_planned(self):
        for name in common.CONFIGS:
            plain = self.train(common.binary(name, "bf16", ("--gradients=bf16",)), f"{name}-plain",
                               "--tokens-per-micro-batch=100", steps=2)
            checked = self.train(common.binary(name, "bf16", ("--gradients=bf16",)), f"{name}-checked",
                                 "--tokens-per-micro-batch=100", "--check-memory", steps=2)
            self.assertEqual(common.losses(f"{plain}.jsonl"), common.losses(f"{checked}.jsonl"))

    def test_the_type_is_described(self):
        for gradients in ("f32", "bf16"):
            binary = common.binary("gpt2", "bf16", (f"--gradients={gradients}",))
            self.assertIn(f"gradients in {gradients}", common.succeed([binary, "--describe"]))
            self.assertEqual(common.described(binary)["gradient_type"], gradients.upper())


if __name__ == "__main__":
    common.main()
