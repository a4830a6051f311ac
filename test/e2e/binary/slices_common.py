# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Strategies whose micro-batches pass in token slices, and the runs they are held against."""

import itertools
import random
import typing

import strategies_common as strategies

# Equal slices; uneven ones, of which the first are single tokens; and some that a micro-batch has fewer tokens than.
SLICES = ("2", "3", "7", "1+1+9+5", "40+3")
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


class SlicesTest(strategies.StrategiesTest):
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
