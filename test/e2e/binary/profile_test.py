#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Costs that a binary measures of itself: what the file has, and runs that use it. No time is compared with another."""

import json
import pathlib
import re

import common

DYNA_PLAN = pathlib.Path(common.DYNAC).parent / "dyna-plan"

FUNCTIONS = {"FORWARD", "BACKWARD", "BACKWARD_INPUT", "BACKWARD_WEIGHT", "RECOMPUTE_SELECTIVE", "RECOMPUTE_FULL"}


def entries(path):
    """Directions and points by kind and degree."""
    found = {}
    for text in re.findall(r"(?ms)^entries \{\n(.*?)^\}", path.read_text()):
        head, *points = text.splitlines()
        kind, direction = re.search(r'kind: "(\w+)"', head)[1], re.search(r"direction: (\w+)", head)[1]
        tp = int((re.search(r"tp: (\d)", head) or [0, 1])[1])
        found[kind, tp, "sp: true" in head, direction] = [
            {name: float(value) for name, value in re.findall(r"(\w+): (\S+)", point)} for point in points]
    return found


class ProfileTest(common.BinaryTest):
    def program(self):
        return common.binary("gpt2", "f32", ("--strategies=t: tp=2; s: tp=2,sp=1",))

    def profile(self, path, *flags):
        # On a busy machine two seconds are not enough to see all sizes once, which the run says.
        before = path.read_text() if path.exists() else ""
        for seconds in (2, 10, 50, 250, 1250):
            path.write_text(before)
            done = common.run([self.program(), "--profile", path, f"--profile-seconds={seconds}", "--threads=2",
                               "--tokens-per-micro-batch=256", *flags])
            self.assertEqual(done.returncode, 0, done.stderr)
            if "--profile-seconds ended the first pass" not in done.stderr and "error of slices: " in done.stderr:
                break
        return done

    def test_a_pipeline_is_measured_and_predicted(self):
        costs = self.folder / "pp.costs"
        done = self.profile(costs, "--strategy=pp=2")
        self.assertRegex(done.stderr, r"error off the grid: mean \d+\.\d %, p95 \d+\.\d %, over \d+ (calls of 0.1 ms and more|shorter calls)")
        table = entries(costs)
        self.assertEqual({kind for kind, *_ in table}, {"embed", "block", "head"})
        self.assertEqual({direction for kind, *_, direction in table if kind == "block"}, FUNCTIONS | {"UPDATE", "GRAD_NORM"})
        points = [point for point in table["block", 1, False, "FORWARD"] if "context" not in point]
        sizes = {point["tokens"] for point in points}
        powers = {1 << power for power in range(9)}
        self.assertLessEqual(powers, sizes)
        # Odd sizes between them, in shorter samples; losses with more and fewer targets.
        self.assertTrue(all(size % 2 == 1 for size in sizes - powers), sizes)
        self.assertGreater(len({point["pairs"] // point["tokens"] for point in points if point["tokens"] > 128}), 1)
        loss = {point["targets"] for point in table["head", 1, False, "FORWARD"] if point["tokens"] == 256}
        self.assertEqual(loss, {64, 256})
        self.assertTrue(all(point["seconds"] > 0 for points in table.values() for point in points))
        self.assertRegex(done.stderr, r"(?m)^(noise|warning: the machine was busy with other things): ranks had no core for "
                                      r"\d+\.\d % of the time, repeats of a call differ by \d+\.\d %$")
        text = costs.read_text()
        self.assertRegex(text, r"(?m)^# tp=1: .*2 ranks at once; time of cores; typical of \d+ passes; ranks had no core for")
        self.assertIn("1 thread", text)
        self.assertIn("inside { latency_seconds: ", text)
        # One node cannot tell what goes between several.
        described = "links between nodes are those described for 'host'"
        self.assertIn(f"# links: all ranks are on one node: {described}", text)
        self.assertIn(described, done.stderr)
        self.assertIn("between { latency_seconds: ", text)
        # A run takes it, on these ranks and others.
        for name, strategy in (("pp", "pp=2"), ("dp", "dp=2,zero=1"), ("one", "dp=1")):
            metrics = self.folder / f"{name}.jsonl"
            done = common.run(common.training(self.program(), self.corpus, f"--strategy={strategy}", f"--costs={costs}",
                                              f"--metrics={metrics}"))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("lacks", done.stderr)
            self.assertRegex(done.stdout, r"error of predictions +mean \d+\.\d %, p95 \d+\.\d %, over 4 steps")
            for line in common.lines_of(metrics):
                self.assertGreater(line["predicted_seconds"], 0)
                self.assertGreater(line["seconds"], 0)

    def test_slices_are_measured_and_planned_by(self):
        costs = self.folder / "slices.costs"
        done = self.profile(costs, "--strategy=pp=2")
        slices = {key: [point for point in points if "context" in point] for key, points in entries(costs).items()}
        # Only attention sees context, in functions that run for a micro-batch.
        self.assertEqual({key[0] for key, points in slices.items() if points}, {"block"})
        self.assertEqual({key[3] for key, points in slices.items() if points}, FUNCTIONS)
        for direction in FUNCTIONS:
            points = slices["block", 1, False, direction]
            # All slices but the first ones, of samples of 64 tokens; the model has no longer ones.
            self.assertEqual([(point["tokens"], point["context"]) for point in points],
                             [(1, 16), (1, 32), (7, 25), (8, 17), (8, 33), (23, 41)])
            for point in points:
                tokens, context = point["tokens"], point["context"]
                self.assertEqual(point["pairs"], tokens * context + tokens * (tokens + 1) / 2)
                self.assertGreater(point["seconds"], 0)
            self.assertRegex(done.stderr, rf"(?m)^error of slices: block tp=1 {direction}: mean \d+\.\d %, largest \d+\.\d %, over "
                                          r"\d+ points; TeraPipe's fit: mean \d+\.\d %, largest \d+\.\d %$")
        # Plans follow them: slices that take ten times as long, and nothing else.
        slow = self.folder / "slow.costs"
        slow.write_text(re.sub(r"(context: \d+ seconds: )(\S+)", lambda found: f"{found[1]}{10 * float(found[2]):g}", costs.read_text()))
        seconds = {}
        for file in (costs, slow):
            for word in ("none", "2", "auto"):
                text = common.succeed([DYNA_PLAN, common.model(), "--strategy=pp=2", f"--lengths={','.join(['64'] * 8)}",
                                       f"--costs={file}", "--pipeline=1f1b", "--tokens-per-micro-batch=64", f"--slices={word}", "--json"])
                plan = json.loads(text)
                seconds[file, word] = plan["seconds"]
                self.assertEqual({errors["function"] for errors in plan["slice_errors"]},
                                 {f"block tp=1 {direction}" for direction in FUNCTIONS})
        self.assertEqual(seconds[costs, "none"], seconds[slow, "none"])
        self.assertGreater(seconds[slow, "2"], 1.2 * seconds[costs, "2"])
        self.assertLessEqual(seconds[slow, "auto"], seconds[slow, "none"])
        # A run takes the file too.
        done = common.run(common.training(self.program(), self.corpus, "--strategy=pp=2", f"--costs={costs}", "--slices=2"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"error of predictions +mean \d+\.\d %")

    def test_degrees_share_a_file(self):
        costs = self.folder / "all.costs"
        done = self.profile(costs)
        self.assertIn("one rank has no links", done.stderr)
        alone, text = entries(costs), costs.read_text()
        self.assertNotIn("cluster", text)
        self.assertIn('\ncompute_type: "f32"\n', text)
        # What was measured at one degree says nothing of another.
        done = common.run(common.training(self.program(), self.corpus, "--strategy=t", f"--costs={costs}", steps=1))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(re.findall(r"(?m)^.*lacks.*$", done.stderr),
                         [f"note: {costs} lacks embed tp=2, block tp=2 and head tp=2: estimated from flops and bytes of device "
                          f"'{re.search('(?s)device {.*?name: .(.*?).$', text, re.MULTILINE)[1]}'"])
        self.profile(costs, "--strategy=t")
        self.assertRegex(costs.read_text(), r"(?m)^# tp=2: .*; time of cores, on the wall where ranks exchange; ")
        self.profile(costs, "--strategy=s")
        both = entries(costs)
        self.assertEqual({key: both[key] for key in alone}, alone)
        self.assertEqual({(tp, sp) for _, tp, sp, _ in both}, {(1, False), (2, False), (2, True)})
        self.assertEqual(re.findall(r"(?m)^# (tp=\S+):", costs.read_text()), ["tp=1", "tp=2", "tp=2,sp=1"])
        # Once more replaces what is there, and nothing else.
        self.profile(costs, "--strategy=tp=2")
        again = entries(costs)
        self.assertEqual(set(again), set(both))
        self.assertEqual({key: again[key] for key in both if key[1:3] != (2, False)},
                         {key: both[key] for key in both if key[1:3] != (2, False)})
        self.assertEqual(len(re.findall(r"(?m)^# tp=2:", costs.read_text())), 1)

    def test_what_is_refused(self):
        program = self.program()
        other = self.folder / "other.costs"
        other.write_text('entries { kind: "tail" direction: FORWARD points { tokens: 1 seconds: 1 } }\n')
        note = self.folder / "note.txt"
        note.write_text("dear diary\n")
        half = self.folder / "half.costs"
        half.write_text('compute_type: "bf16" entries { kind: "head" direction: FORWARD points { tokens: 1 seconds: 1 } }\n')
        sliced = self.folder / "sliced.costs"
        sliced.write_text('entries { kind: "block" direction: FORWARD points { tokens: 4 pairs: 10 seconds: 1 } '
                          'points { tokens: 32 pairs: 2064 context: 48 seconds: 1 } }\n')
        new = self.folder / "new.costs"
        for flags, words in (
            (["--profile", self.folder], [f"{self.folder}"]),
            (["--profile", other], ["no costs of this model", "'tail'", "other.costs"]),
            (["--profile", note], ["no costs of this model", "note.txt:1:"]),
            (["--profile", half], [f"{half} was measured in bf16, this program computes in f32; name another file"]),
            (["--profile", new, "--data", self.corpus], ["nothing for --data"]),
            (["--profile", new, "--costs", other], ["nothing for --costs"]),
            (["--profile", new, "--strategy=tp=4"], ["tp=4"]),
            (["--profile", new, "--profile-seconds=0"], ["--profile-seconds"]),
            (["--profile-seconds=5", "--data", self.corpus], ["--profile-seconds needs --profile"]),
            (["--profile", new, "--memory-limit=33MiB"], ["33.0 MiB", "lower --tokens-per-micro-batch"]),
            (["--profile", program], ["this program"]),
            (["--profile", sliced], ["no costs of this model", "point 2: a slice of 32 tokens after 48 ends behind the 64 positions"]),
        ):
            with self.subTest(flags=flags):
                self.assert_refused(common.run([program, *flags]), *words)
        self.assertFalse(new.exists())
        self.assertEqual(note.read_text(), "dear diary\n")


if __name__ == "__main__":
    common.main()
