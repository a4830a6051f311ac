# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ways to plan a step, beside the strategies: every one that keeps samples apart trains to the numbers of one rank."""

import collections
import itertools
import json
import re
import typing

import common
import strategies_common as strategies

# `packed` attends across samples: it computes something else (PackedTest).
BATCHINGS = ("ragged", "padded", "tokens", "samples", "packed-masked")
PIPELINES = ("sequential", "gpipe", "1f1b", "cyclic", "adaptive")
RECOMPUTE = ("none", "selective", "full", "auto")


class Policy(typing.NamedTuple):
    family: str
    dp: int
    tp: int
    pp: int
    zero: int
    sp: int
    recompute: str
    batching: str
    pipeline: str
    split: int
    tight: int  # in little more memory than a rank needs at least

    @property
    def case(self):
        return strategies.Case(*self[:7])

    @property
    def ranks(self):
        return self.case.ranks

    @property
    def micro_batch(self):
        return self.case.micro_batch

    @property
    def strategy(self):
        return self.case.strategy.rsplit(",", 1)[0]

    @property
    def label(self):
        return "-".join(str(field) for field in self)

    @property
    def flags(self):
        return [f"--micro-batches={self.batching}", f"--recompute={self.recompute}",
                *([f"--pipeline={self.pipeline}"] if self.pp > 1 else []), *(["--split-backward"] if self.split else [])]

    def pairs(self):
        factors = {"triple": self[1:4], **{name: getattr(self, name) for name in self._fields if name not in ("dp", "tp", "pp")}}
        return set(itertools.combinations(factors.items(), 2))


def all_policies(families, triples):
    """Every policy under these degrees; one stage has no order."""
    return [Policy(family, *triple, zero, sp, recompute, batching, pipeline, split, tight)
            for family, triple, recompute, batching, pipeline, split, tight in itertools.product(
                families, triples, RECOMPUTE, BATCHINGS, PIPELINES, (0, 1), (0, 1))
            for zero in range(1 + (triple[0] > 1)) for sp in range(1 + (triple[1] > 1))
            if triple[2] > 1 or pipeline == PIPELINES[0]]


class PoliciesTest(strategies.StrategiesTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.modes, cls.fallbacks = collections.Counter(), collections.Counter()

    def program(self, family):
        return strategies.program(family)

    @classmethod
    def reference(cls, family):
        """One rank; its binary is that of the policies."""
        if family not in cls.references:
            stem = cls.runs / f"{family}-one"
            strategies.train(strategies.program(family), cls.corpus,
                             strategies.Case(family, 1, 1, 1, 0, 0, "none"), stem, *cls.reference_flags)
            cls.references[family] = strategies.Against(stem)
        return cls.references[family]

    reference_flags = ()

    def tight_memory(self, policy):
        """Little more than the least with which the binary starts, as it says itself."""
        limit = "64KiB"
        for _ in range(policy.ranks + 1):
            done = common.run(strategies.command(self.program(policy.family), self.corpus, policy, *policy.flags,
                                                 f"--rank-memory={limit}", steps=1))
            if done.returncode == 0:
                return limit
            needs = re.search(r"needs ([\d.]+) (\w+) at least", done.stderr)
            assert needs, done.stderr
            limit = f"{1.1 * float(needs[1]):.4f}{needs[2]}"
        raise AssertionError(f"does not start with what it asks for: {done.stderr}")

    def run_policy(self, policy):
        flags = list(policy.flags)
        try:
            if policy.tight:
                flags.append(f"--rank-memory={self.tight_memory(policy)}")
        except AssertionError as error:
            return f"{policy}: {error}"
        wrong = self.run_and_compare(policy, flags=flags, binary=self.program(policy.family))
        if wrong is None:
            for line in common.lines_of(self.runs / f"{policy.label}.jsonl"):
                self.modes.update(line.get("recompute", {}))
                self.fallbacks[line.get("fallback", "none")] += 1
        return wrong and f"{wrong} ({' '.join(flags)})"

    def assert_equal_policies(self, policies):
        strategies.two_at_a_time(self.program, sorted({policy.family for policy in policies}))
        for family in sorted({policy.family for policy in policies}):
            self.reference(family)
        wrong = [text for text in strategies.two_at_a_time(self.run_policy, policies) if text]
        print(f"{len(policies)} runs; forwards by mode where it was chosen {json.dumps(self.modes)}; "
              f"steps with another schedule {json.dumps(self.fallbacks)}")
        self.assertFalse(wrong, "\n".join(wrong[:20]))
