#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of a step have memory in turn: what does not fit at once trains where neighbours fit, to the same numbers."""

import re

import common
import strategies_common as strategies
import switches_common as switches
import switches_counts_test as counts
from switches_common import Case, Graph

PIPELINE = Graph(2, 1, 2, 0, 0, "none", "dp+pp+tp", "")
MIXED = Graph(2, 2, 1, 1, 0, "selective", "dp+pp+tp", "")
SHARDS = Graph(1, 4, 1, 0, 1, "none", "dp+pp+tp", "")
REPLICAS = Graph(4, 1, 1, 1, 0, "full", "dp+pp+tp", "")


class MemoryTest(switches.SwitchesTest):
    def enough(self, case, binary=None):
        """What a refusal says is enough, and that it has the numbers."""
        done = common.run(self.command(case, self.runs / "refused", "--rank-memory=1MiB", binary=binary))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        return int(re.search(r"--rank-memory (\d+) is enough", done.stderr)[1])

    def peak(self, stem):
        return max(line["peak_bytes"] for line in common.lines_of(f"{stem}.jsonl"))

    def test_phases_that_take_turns_have_the_numbers_of_one_rank(self):
        """With what is enough, and not with less."""
        shrank = False
        for graphs in ((PIPELINE, SHARDS), (PIPELINE, MIXED, SHARDS), (REPLICAS, MIXED, PIPELINE, SHARDS)):
            case = Case("gpt2", graphs)
            with self.subTest(case=case.label):
                self.reference("gpt2")
                enough = self.enough(case)
                self.assertIsNone(self.run_and_compare(case, flags=(f"--rank-memory={enough}",)))
                tight = self.peak(self.runs / case.label)
                self.assertLessEqual(tight, case.ranks * enough)
                self.assertIsNone(self.run_and_compare(case))
                shrank |= tight < self.peak(self.runs / case.label)
                done = common.run(self.command(case, self.runs / "less", f"--rank-memory={enough - 4096}"))
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"--rank-memory {enough} is enough", done.stderr)
        self.assertTrue(shrank)

    def test_nothing_touches_what_another_graph_has(self):
        """The memory check, which takes 30 times as long as the step."""
        case = Case("gpt2", (PIPELINE, MIXED, SHARDS))
        common.succeed(self.command(case, self.runs / "checked", f"--rank-memory={self.enough(case)}", "--check-memory", steps=2))

    def test_any_number_of_bytes_will_do(self):
        """What is said need be no multiple of anything: a pipeline uses all it gets."""
        for graphs in ((PIPELINE, MIXED), (PIPELINE, MIXED, SHARDS)):
            case = Case("gpt2", graphs)
            enough = self.enough(case)
            for more in (1, 63, 100001):
                with self.subTest(case=case.label, more=more):
                    common.succeed(self.command(case, self.runs / f"odd-{case.label}-{more}",
                                                f"--rank-memory={enough + more}", steps=1))

    def test_what_is_enough_where_sizes_are_open(self):
        """Micro-batches become as small as memory asks, down to single samples, before a run is refused."""
        case = Case("gpt2", (PIPELINE, SHARDS))
        said = self.enough(case)
        command = [word for word in self.command(case, self.runs / "open", steps=2) if not str(word).startswith("--tokens-per-micro-batch=")]
        done = common.run([*command, "--rank-memory=1MiB"])
        self.assertEqual(done.returncode, 2, done.stderr)
        enough = int(re.search(r"--rank-memory (\d+) is enough", done.stderr)[1])
        self.assertLess(enough, said)
        trained = common.run([word for word in command if word != "--no-progress"] + [f"--rank-memory={enough}"])
        self.assertEqual(trained.returncode, 0, trained.stderr)
        self.assertIn("micro-batches have at most", trained.stderr)
        self.assertNotIn("samples have at most", trained.stderr)

    def test_layouts_that_do_not_fit_at_once(self):
        """Parameters, gradients and state of all graphs are more than what there is."""
        case = Case("gpt2", (REPLICAS, PIPELINE, MIXED, SHARDS))
        all_bytes = 8 * sum(p.rows * p.columns for p in counts.parameters())
        # Of each graph values and gradients on some rank; home has two moments more.
        layouts = sum(2 * all_bytes // (graph.tp * graph.pp) for graph in case.graphs)
        self.assertLess(self.enough(case), layouts)


if __name__ == "__main__":
    common.main()
