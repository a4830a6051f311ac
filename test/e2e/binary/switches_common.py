# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs whose steps switch between strategies, held against one rank (strategies_common)."""

import itertools
import random
import shutil
import subprocess
import typing

import common
import strategies_common as strategies

# Samples have up to 32 tokens, most of them few.
CUTS = {2: (9,), 3: (6, 14), 4: (5, 9, 17), 5: (4, 7, 11, 19)}
ORDERS = ("dp+pp+tp", "pp+dp+tp", "tp+pp+dp", "tp+dp+pp")


class Graph(typing.NamedTuple):
    dp: int
    tp: int
    pp: int
    zero: int
    sp: int
    recompute: str
    order: str
    cut: str  # of the ten layers; "": by cost

    @property
    def strategy(self):
        text = f"dp={self.dp},tp={self.tp},pp={self.pp},recompute={self.recompute},order={self.order}"
        for key in ("zero", "sp"):
            text += f",{key}=1" if getattr(self, key) else ""
        return text + (f",layers={self.cut}" if self.cut else "")


class Case(typing.NamedTuple):
    """Graphs of one step, for ever longer samples."""

    family: str
    graphs: tuple

    @property
    def ranks(self):
        return self.graphs[0].dp * self.graphs[0].tp * self.graphs[0].pp

    @property
    def label(self):
        return f"{self.family}-{'-'.join(f'{g.dp}{g.tp}{g.pp}{g.zero}{g.sp}{g.recompute[0]}{g.order[0]}' for g in self.graphs)}"

    @property
    def flags(self):
        names = [f"s{index}" for index in range(len(self.graphs))]
        cuts = (-1, *CUTS[len(self.graphs)])
        ranges = [f"{name}: {low + 1}-{high}" for name, low, high in zip(names, cuts, (*cuts[1:], ""))]
        return [f"--strategies={'; '.join(f'{name}: {graph.strategy}' for name, graph in zip(names, self.graphs))}",
                f"--ranges={'; '.join(ranges)}", "--merge-ranges=never"]

    def factors(self):
        """Of a pair of graphs; which triples meet is for the long form."""
        first, second = self.graphs[0], self.graphs[-1]
        factors = {"family": self.family, "ranks": self.ranks, "graphs": len(self.graphs)}
        for place, graph in (("first", first), ("last", second)):
            factors.update({f"{place} zero": graph.zero, f"{place} sp": graph.sp, f"{place} recompute": graph.recompute,
                            f"{place} order": graph.order, f"{place} cut": bool(graph.cut),
                            f"{place} shape": tuple(degree > 1 for degree in graph[:3])})
        return factors

    def pairs(self):
        factors = self.factors()
        shapes = {"first shape", "last shape"}
        return {pair for pair in itertools.combinations(factors.items(), 2)
                if not {pair[0][0], pair[1][0]} <= shapes}


def triples(family, ranks):
    return [(dp, tp, ranks // dp // tp) for tp in strategies.DEGREES[family] for dp in range(1, ranks + 1)
            if ranks % (dp * tp) == 0]


def draw(generator, triple):
    dp, tp, pp = triple
    cut = ""
    if pp > 1 and generator.random() < 0.5:
        stages = [1] * pp
        for _ in range(10 - pp):
            stages[generator.randrange(pp)] += 1
        cut = "+".join(map(str, stages))
    return Graph(dp, tp, pp, generator.randrange(2) if dp > 1 else 0, generator.randrange(2) if tp > 1 else 0,
                 generator.choice(strategies.RECOMPUTE), generator.choice(ORDERS), cut)


def all_cases():
    """Every ordered pair of triples of four and of eight ranks, and sequences of three to five graphs."""
    generator = random.Random(5)
    cases = []
    for family, ranks in itertools.product(strategies.DEGREES, (4, 8)):
        for first, second in itertools.permutations(triples(family, ranks), 2):
            cases.append(Case(family, (draw(generator, first), draw(generator, second))))
        for count in (3, 4, 5) * 6:
            chosen = [generator.choice(triples(family, ranks)) for _ in range(count)]
            graphs = tuple(draw(generator, triple) for triple in chosen)
            if len({graph[:5] + graph[6:] for graph in graphs}) == count:
                cases.append(Case(family, graphs))
    return cases


class SwitchesTest(strategies.StrategiesTest):
    """Runs cases and compares them with one rank."""

    @classmethod
    def command(cls, case, stem, *flags, binary=None, steps=strategies.STEPS):
        return [binary or strategies.program(case.family), "--data", cls.corpus, f"--steps={steps}",
                f"--schedule-steps={strategies.STEPS}", "--warmup=1", "--lr=1e-3", "--clip=0.5", "--seed=3",
                f"--tokens-per-batch={strategies.TOKENS}", "--tokens-per-micro-batch=48", "--threads=1", "--no-progress",
                f"--metrics={stem}.jsonl", f"--save={stem}", *case.flags, *flags]

    def differs(self, case, stem):
        """What is wrong with a run that is over, or None."""
        # A step without samples of a range has one phase less.
        phases = [line.get("phases", 1) for line in common.lines_of(f"{stem}.jsonl")]
        if max(phases) != len(case.graphs) or min(phases) < len(case.graphs) - 1:
            return f"{case.label}: phases {phases} of {len(case.graphs)} graphs"
        for kind, (difference, where) in self.references[case.family].compare(stem).items():
            if not difference <= self.errors.get((case.family, kind), (0.0, ""))[0]:
                self.errors[case.family, kind] = (difference, f"{where} under {case.label}")
            if not difference <= strategies.TOLERANCE:
                return f"{case.family} under {case.flags}: {kind} of {where} differs by {difference:.2e}"
        return None

    def run_and_compare(self, case, launcher=(), flags=(), binary=None):
        stem = self.runs / case.label
        try:
            common.succeed([*launcher, *self.command(case, stem, *flags, binary=binary)])
            return self.differs(case, stem)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            return f"{case.family} under {case.flags}: {error}"
        finally:
            shutil.rmtree(stem, ignore_errors=True)
