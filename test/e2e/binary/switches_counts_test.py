#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Switches send what a rank needs and does not have, and nothing else.

Of two ranks there is no choice: who lacks something gets it from the other one.
The formulas here are written from the model's shapes and the strategies alone
(docs/strategies-counts.md); whole tensors sent around fail.
"""

import json

import common
import strategies_common as strategies
import strategies_counts_test as counts
import switches_common as switches
from strategies_counts_test import F64, SPLIT_COLUMNS, WHOLE, part
from switches_common import Case, Graph

TP = Graph(1, 2, 1, 0, 0, "none", "dp+pp+tp", "")
DP = Graph(2, 1, 1, 0, 0, "none", "dp+pp+tp", "")
ZERO = DP._replace(zero=1)


def parameters():
    table = counts.Parameter(counts.VOCABULARY, counts.WIDTH, counts.SPLIT_VOCABULARY)
    return [table, counts.Parameter(counts.LENGTH, counts.WIDTH, WHOLE), *[counts.Parameter(counts.WIDTH, 1, WHOLE)] * 2,
            *counts.block_parameters("gpt2") * counts.BLOCKS]


def held(p, graph, rank):
    """Rows and columns that a rank has of a parameter, as ranges."""
    if graph.tp == 1 or p.split == WHOLE:
        return range(p.rows), range(p.columns)
    size = p.columns if p.split == SPLIT_COLUMNS else p.rows
    mine = range(rank * -(-size // 2), rank * -(-size // 2) + part(size, 2, rank))
    return (range(p.rows), mine) if p.split == SPLIT_COLUMNS else (mine, range(p.columns))


def updated(p, graph, rank):
    """What a rank has up to date of a parameter, or reduced of its gradient."""
    rows, columns = held(p, graph, rank)
    if graph.zero:
        begin = rank * -(-p.rows // 2)
        rows = range(begin, begin + part(p.rows, 2, rank))
    return rows, columns


def lacking(needed, had):
    both = [len(range(max(n.start, h.start), min(n.stop, h.stop))) for n, h in zip(needed, had)]
    return F64 * (len(needed[0]) * len(needed[1]) - both[0] * both[1])


def value_bytes(home, graph, to):
    return sum(lacking(held(p, graph, to), updated(p, home, to)) for p in parameters())


def gradient_bytes(graph, home, to):
    """Replicas of home sum theirs anyway: each adds what it has. Others need all that they update."""
    if home.dp > 1:
        return 0
    return sum(lacking(held(p, home, to), updated(p, graph, to)) for p in parameters())


class CountsTest(switches.SwitchesTest):
    def test_bytes_between_ranks_are_those_that_lack(self):
        binary = strategies.program("gpt2")
        something = 0
        for graphs in ((TP, ZERO), (ZERO, TP), (DP, TP), (TP, DP), (TP, DP, ZERO)):
            case = Case("gpt2", graphs)
            with self.subTest(case=case.label):
                stem = self.runs / f"counts-{case.label}"
                path = stem.with_suffix(".counts")
                common.succeed(self.command(case, stem, f"--counts={path}", binary=binary, steps=1))
                step, = common.lines_of(f"{stem}.jsonl")
                self.assertEqual(step["phases"], len(graphs))
                ranks = json.loads(path.read_text())["ranks"]
                home, others = self.home(graphs, ranks)
                for rank in ranks:
                    to = 1 - rank["rank"]
                    if len(others) == 1:
                        values = [value_bytes(home, others[0], to), gradient_bytes(others[0], home, to)]
                        expected = {kind: [0, 0] for kind in ("values", "gradients")}
                        expected["values"][to], expected["gradients"][to] = values
                        self.assertEqual(rank["switches"], expected)
                    something += rank["switches"]["values"][to] + rank["switches"]["gradients"][to]
                    # None of these strategies sends anything else; what the transport counts is all of it.
                    sent = sum(sum(of) for of in rank["switches"].values())
                    self.assertEqual(rank["messages"]["bytes"], sent)
                    self.assertEqual(rank["matrix_flops"], rank["formula_flops"])
        self.assertGreater(something, 0)

    def home(self, graphs, ranks):
        """The graph whose state the ranks have, by the formulas of its own; the others."""
        found = []
        for graph in graphs:
            one = counts.Case("gpt2", graph.dp, graph.tp, graph.pp, graph.zero, graph.sp, "none")
            models = [counts.Model(one, rank, 2) for rank in range(2)]
            if all(rank["master_bytes"] == rank["gradient_bytes"] == model.parameter_bytes() and
                   rank["first_moment_bytes"] == rank["second_moment_bytes"] == model.moment_bytes()
                   for rank, model in zip(ranks, models)):
                found.append(graph)
        self.assertEqual(len(found), 1, "whose memory is it?")
        return found[0], [graph for graph in graphs if graph != found[0]]


if __name__ == "__main__":
    common.main()
