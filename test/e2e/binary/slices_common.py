# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Strategies whose micro-batches pass in token slices, and the runs they are held against."""

import itertools
import random
import typing

import common
import strategies_common as strategies

# Equal slices; uneven ones, of which the first are single tokens; and some that small micro-batches have fewer tokens than.
SLICES = ("2", "3", "7", "1+1+9+5", "27+3")
PIPELINES = ("1f1b", "gpipe", "adaptive", "cyclic", "sequential")


class SlicedCase(typing.NamedTuple):
    base: strategies.Case
    slices: str
    pipeline: str
    split: int

    @property
    def label(self):
        return f"{self.base.label}-{self.slices}-{self.pipeline}-{self.split}".replace("+", "_")

    def own_factors(self):
        """Those whose pairs the short test covers; degrees and families go round."""
        factors = {"slices": self.slices, "split": self.split, "recompute": self.base.recompute, "zero": self.base.zero,
                   "sp": self.base.sp}
        if self.base.pp > 1:
            factors["pipeline"] = self.pipeline
        return factors

    def pairs(self):
        return set(itertools.combinations(sorted(self.own_factors().items()), 2))

    @property
    def flags(self):
        flags = [f"--slices={self.slices}"]
        if self.base.pp > 1:
            flags.append(f"--pipeline={self.pipeline}")
        return [*flags, *(["--split-backward"] if self.split else [])]


class FullCase(SlicedCase):
    """Covered with its degrees and its family too."""

    def pairs(self):
        return set(itertools.combinations(sorted({**self.base.factors(), **self.own_factors()}.items()), 2))


def all_cases(kind):
    return [kind(base, slices, pipeline, split)
            for base in strategies.all_cases()
            for slices, pipeline, split in itertools.product(SLICES, PIPELINES if base.pp > 1 else ("1f1b",), (0, 1))]


def cover(kind):
    # Of some ten thousand cases, enough to choose from.
    return strategies.cover_of_pairs(random.Random(2).sample(all_cases(kind), 3000))


# Largest relative differences of any step from one rank without slices that computes in the same type: docs/numerics.md.
# Those of bf16 are for one target in the step, and fall with the root of their number.
TYPES = {"f32": {"loss": 1e-5, "gradient_norm": 1e-4}, "bf16": {"loss": 1.2e-2, "gradient_norm": 0.5}}


def typed_cases(family):
    """One rank, a pipeline, and all axes; even and uneven slices, single tokens among them."""
    case = strategies.Case
    return (SlicedCase(case(family, 1, 1, 1, 0, 0, "selective"), "1+1+9+5", "1f1b", 0),
            SlicedCase(case(family, 1, 1, 3, 0, 0, "none"), "3", "1f1b", 1),
            SlicedCase(case(family, 2, 2, 2, 1, 1, "full"), "7", "adaptive", 0))


class SlicesTest(strategies.StrategiesTest):
    def assert_near_in_type(self, family, compute_type, cases):
        """Losses and gradient norms of sliced runs of a type that rounds."""
        binary = strategies.program(family, compute_type, (2,))
        whole = self.runs / f"{family}-{compute_type}-whole"
        strategies.train(binary, self.corpus, strategies.Case(family, 1, 1, 1, 0, 0, "none"), whole)
        wanted = common.lines_of(f"{whole}.jsonl")

        def differences(case):
            stem = self.runs / f"{compute_type}-{case.label}"
            strategies.train(binary, self.corpus, case.base, stem, *case.flags)
            given, found = common.lines_of(f"{stem}.jsonl"), {}
            for kind in TYPES[compute_type]:
                pairs = zip(given, wanted, strict=True)
                found[kind] = max(abs(a[kind] / b[kind] - 1) * (a["targets"] ** 0.5 if compute_type == "bf16" else 1)
                                  for a, b in pairs)
            return found

        all_found = strategies.two_at_a_time(differences, cases)
        for kind, bound in TYPES[compute_type].items():
            largest = max(found[kind] for found in all_found)
            print(f"{family}, {compute_type}: {kind} {largest:.1e} of {bound:.1e}, {len(cases)} runs")
            self.assertLessEqual(largest, bound, kind)
            # Slices add up in another order: the same bits would be no slices.
            self.assertGreater(largest, 0)

    def run_sliced(self, case):
        stem = self.runs / case.label
        try:
            strategies.train(strategies.program(case.base.family), self.corpus, case.base, stem, *case.flags)
            return self.differences(case.base, stem)
        except AssertionError as error:
            return f"{case.base.family} under {case.base.strategy} {' '.join(case.flags)}: {error}"

    def assert_equal_sliced(self, cases):
        strategies.two_at_a_time(self.reference, sorted({case.base.family for case in cases}))
        wrong = [text for text in strategies.two_at_a_time(self.run_sliced, cases) if text]
        print(f"{len(cases)} runs of {strategies.STEPS} steps")
        self.assertFalse(wrong, "\n".join(wrong[:20]))
