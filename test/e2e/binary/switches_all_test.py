#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every ordered pair of triples of four and eight ranks, and longer sequences, train to the numbers of one rank."""

import contextlib
import pathlib
import subprocess
import time

import common
import switches_common as switches


class AllSwitchesTest(switches.SwitchesTest):
    def test_numbers_are_those_of_one_rank(self):
        self.assert_equal_numbers(switches.all_cases())

    def test_memory_stays_what_it_is(self):
        """A thousand steps, each with the phases that its samples ask for."""
        A, B, C = (switches.Graph(*degrees, "none", "dp+pp+tp", "")
                   for degrees in ((2, 1, 2, 0, 0), (2, 2, 1, 1, 0), (1, 4, 1, 0, 1)))
        stem = self.runs / "long"
        words = self.command(switches.Case("gpt2", (A, B, C)), stem, "--tokens-per-batch=64", "--save-every=1000000",
                             steps=1000)
        job = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        resident = {}
        metrics = pathlib.Path(f"{stem}.jsonl")
        while job.poll() is None:
            with contextlib.suppress(OSError, IndexError):
                steps = metrics.read_text().count("\n")
                resident[steps] = int(pathlib.Path(f"/proc/{job.pid}/statm").read_text().split()[1])
            time.sleep(0.1)
        self.assertEqual(job.returncode, 0)
        lines = common.lines_of(metrics)
        self.assertEqual(len(lines), 1000)
        self.assertGreater(len({line.get("phases", 1) for line in lines}), 1)
        early = max(pages for steps, pages in resident.items() if 100 <= steps < 300)
        late = max(pages for steps, pages in resident.items() if steps >= 700)
        # Pages of 4 KiB; metrics and lists of steps grow by less than a megabyte.
        self.assertLess(late - early, 512)


if __name__ == "__main__":
    common.main()
