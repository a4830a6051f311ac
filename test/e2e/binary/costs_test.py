#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One file of costs, the same cut everywhere; plans that go from the tools into binaries."""

import os
import re

import common

LAYERS = ["embed", "h.0", "h.1", "h.2", "h.3", "head"]


def table(**seconds):
    """Costs of a micro-batch, forward and backward together, by kind."""
    text = "# Written by a test.\n"
    for kind, value in seconds.items():
        for direction, part in (("FORWARD", value / 3), ("BACKWARD", value * 2 / 3)):
            text += f'entries {{ kind: "{kind}" direction: {direction} points {{ tokens: 4096 seconds: {part} }} }}\n'
    return text


# The same blocks under heads of different weight, and where two stages part.
CUTS = {"light": (table(embed=0, block=1, head=0.1), [3, 3]),
        "head": (table(embed=0, block=1, head=4), [5, 1]),
        "embedding": (table(embed=5, block=1, head=0.1), [1, 5])}


class CostsTest(common.BinaryTest):
    def write(self, name, text):
        path = self.folder / f"{name}.costs"
        path.write_text(text)
        return path

    def program(self):
        return common.binary("gpt2", "f64", (), (("n_layer", 4),))

    def memory_phase(self, *flags):
        """What dynac has before it makes code: what dyna-opt plans for."""
        path = self.folder / "memory.mlir"
        common.succeed([common.DYNAC, common.model("gpt2", n_layer=4), "--stop-after=memory", "-o", path, *flags])
        return path

    def stages_of_opt(self, module, flags):
        text = common.succeed([common.DYNA_OPT, module, f"--dyna-plan=lengths=20,30 {flags}"])
        return [re.findall(r'"([^"]+)"', line) for line in re.findall(r"(?m)^ +stage (\[.*\])$", text)]

    def stages_of_run(self, trace, ranks):
        events = common.trace_events(trace)
        stages = [set() for _ in range(ranks)]
        for event in events:
            # Behind the ranks come those of the prediction.
            if event["ph"] == "X" and event["name"] == "FORWARD":
                stages[event["pid"] % ranks].add(event["args"]["layer"])
        return [sorted(stage) for stage in stages]

    def train_traced(self, program, name, *flags):
        stem = self.folder / name
        done = common.run(common.training(program, self.corpus, f"--metrics={stem}.jsonl", f"--save={stem}",
                                          f"--trace={stem}.trace", *flags))
        self.assertEqual(done.returncode, 0, done.stderr)
        notes = [line for line in done.stderr.splitlines() if "stage cut" in line or "--costs" in line]
        return stem, notes

    def test_traces_show_what_was_predicted_beside_what_ran(self):
        costs = self.write("shown", CUTS["head"][0])
        for name, flags, times in (("beside", (f"--costs={costs}",), 2), ("alone", (), 1)):
            stem, _ = self.train_traced(self.program(), f"trace-{name}", "--strategy=pp=2", *flags)
            events = common.trace_events(stem.with_suffix(".trace"))
            names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
            expected = ["rank 0", "rank 1"] + ["predicted rank 0", "predicted rank 1"] * (times - 1)
            self.assertEqual(sorted(set(names)), sorted(expected))
            instructions = [sorted((event["args"]["step"], event["name"], event["args"].get("layer", -1),
                                    event["args"].get("micro_batch", -1))
                                   for event in events if event["ph"] == "X" and event["pid"] == process
                                   and event["cat"] not in ("exchange", "transfer")) for process in range(2 * times)]
            self.assertGreater(len(instructions[0]), 20)
            for rank in range(2):
                self.assertEqual(instructions[rank], instructions[2 * times - 2 + rank])
            # One after another on each, although these costs say that steps take much longer than they do.
            for process in range(2 * times):
                spans = sorted((event["ts"], event["ts"] + event["dur"]) for event in events if event["ph"] == "X" and
                               event["pid"] == process and event["cat"] not in ("exchange", "transfer"))
                for (_, end), (begin, _) in zip(spans, spans[1:]):
                    self.assertLessEqual(end, begin)
            # What ran says what it had of a core; a prediction and parts of instructions do not.
            for event in events:
                ran = event["ph"] == "X" and event["pid"] < 2 and event["cat"] != "exchange"
                self.assertEqual("tdur" in event, ran, event)

    def assert_equal_runs(self, one, other):
        for a, b in zip(common.losses(f"{one}.jsonl"), common.losses(f"{other}.jsonl"), strict=True):
            self.assertLessEqual(abs(a - b), 1e-10 * abs(a))
        self.assertLess(common.largest_difference(*(stem / "step-4" / "model.safetensors" for stem in (one, other))), 1e-10)

    def test_the_same_cut_in_all_tools_and_the_same_numbers(self):
        program, module = self.program(), self.memory_phase("--compute-type=f64")
        alone, notes = self.train_traced(program, "alone")
        self.assertEqual(notes, [])
        for name, (text, cut) in CUTS.items():
            with self.subTest(table=name):
                costs = self.write(name, text)
                stages = [LAYERS[:cut[0]], LAYERS[cut[0]:]]
                self.assertEqual(self.stages_of_opt(module, f"strategy=pp=2 costs={costs}"), stages)
                stem, notes = self.train_traced(program, name, "--strategy=pp=2", f"--costs={costs}")
                self.assertEqual(notes, [f"note: stage cut {cut[0]}+{cut[1]}: costs from {costs}"])
                self.assertEqual(self.stages_of_run(stem.with_suffix(".trace"), 2),
                                 [list(range(cut[0])), list(range(cut[0], 6))])
                self.assert_equal_runs(alone, stem)

    def test_estimates_are_the_same_everywhere_too(self):
        stem, notes = self.train_traced(self.program(), "estimated", "--strategy=pp=2")
        self.assertEqual(len(notes), 1)
        self.assertIn("estimated from flops and bytes of device 'host'", notes[0])
        stages = self.stages_of_opt(self.memory_phase("--compute-type=f64"), "strategy=pp=2")
        self.assertEqual(self.stages_of_run(stem.with_suffix(".trace"), 2),
                         [[LAYERS.index(layer) for layer in stage] for stage in stages])

    def test_dynac_stores_the_cut_with_the_name(self):
        costs = self.write("head\x1b[1m", CUTS["head"][0])  # a name from somewhere else
        program = self.folder / "program"
        done = common.run([common.DYNAC, common.model("gpt2", n_layer=4), "-o", program, "--isa=avx2", f"--costs={costs}",
                           "--strategies=a: pp=2; b: dp=2; c: pp=2,layers=2+4"])
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = str(costs).replace("\x1b", "\\x1b")
        self.assertEqual(done.stderr, f"note: strategy 'a': stage cut 5+1: costs from {shown}\n")
        manifest = common.described(program)
        self.assertEqual(manifest["strategies"], ["a: dp=1,tp=1,pp=2,layers=5+1", "b: dp=2,tp=1,pp=1",
                                                  "c: dp=1,tp=1,pp=2,layers=2+4"])
        os.remove(costs)
        stem, notes = self.train_traced(program, "stored", "--strategy=a")
        self.assertEqual(notes, [])
        self.assertEqual(self.stages_of_run(stem.with_suffix(".trace"), 2), [[0, 1, 2, 3, 4], [5]])
        # With a cut that is given, they still order the pipeline.
        costs = self.write("light", CUTS["light"][0])
        self.assertEqual(self.train_traced(program, "a", "--strategy=a", f"--costs={costs}")[1], [])

    def test_a_resumed_run_keeps_its_costs(self):
        costs = self.write("head", CUTS["head"][0])
        stem, _ = self.train_traced(self.program(), "begun", "--strategy=pp=2", f"--costs={costs}", "--steps=2")
        done = common.run([self.program(), "--resume", stem, "--steps=4", "--no-progress"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"stage cut 5+1: costs from {costs}", done.stderr)
        self.assertNotIn("the costs are not those", done.stderr)
        costs.write_text(CUTS["light"][0])
        done = common.run([self.program(), "--resume", stem, "--steps=5", "--no-progress"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: the costs are not those of the saved run", done.stderr)

    def test_steps_are_predicted(self):
        costs = self.write("head", CUTS["head"][0])
        done = common.run(common.training(self.program(), self.corpus, f"--metrics={self.folder}/one.jsonl", f"--costs={costs}"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"error of predictions +mean \d+\.\d %, p95 \d+\.\d %, over 4 steps\n")
        for line in common.lines_of(self.folder / "one.jsonl"):
            # Four blocks of 1 s and a head of 4 s for 4096 tokens; updates are estimated.
            self.assertAlmostEqual(line["predicted_seconds"], 8 * line["tokens"] / 4096, delta=1e-3)
            self.assertGreater(line["seconds"], 0)
            self.assertGreaterEqual(line["core_wait_seconds"], 0)
        self.assertRegex(done.stdout, r"ranks without a core +\d+\.\d % of the time\n")
        # Replicas share them; estimates alone predict nothing.
        self.train_traced(self.program(), "two", "--strategy=dp=2", f"--costs={costs}")
        for one, two in zip(*(common.lines_of(self.folder / f"{name}.jsonl") for name in ("one", "two")), strict=True):
            self.assertLess(two["predicted_seconds"], 0.9 * one["predicted_seconds"])
            self.assertGreaterEqual(two["predicted_seconds"], 0.5 * one["predicted_seconds"])
        self.train_traced(self.program(), "none")
        self.assertNotIn("predicted_seconds", common.lines_of(self.folder / "none.jsonl")[0])

    def test_what_costs_lack_is_said_once(self):
        """Of a strategy that cuts nothing, too; and that they were measured in another compute type."""
        estimate = "estimated from flops and bytes of device 'host'"
        text = "".join(f'entries {{ kind: "{kind}" direction: {direction} points {{ tokens: 4096 seconds: 1 }} }}\n'
                       for kind in ("embed", "block", "head") for direction in ("FORWARD", "BACKWARD", "UPDATE"))
        part = self.write("part", text.replace('entries { kind: "block" direction: BACKWARD', "#"))
        lacks = f"{part} lacks block tp=1 BACKWARD: {estimate}"
        for flags, notes in ((["--strategy=dp=2"], [lacks]),
                             (["--strategy=pp=2,layers=3+3"], [lacks]),
                             # Smaller micro-batches are a second choice, of which nothing new is to be said.
                             (["--strategy=dp=2", "--rank-memory=4MiB"], [lacks]),
                             (["--strategies=a: dp=2; b: pp=2,layers=3+3", "--ranges=a: 0-20; b: 21-"],
                              [f"strategy 'a': {lacks}", f"strategy 'b': {lacks}"]),
                             (["--strategy=pp=2"], ["it lacks block tp=1 BACKWARD"])):
            with self.subTest(flags=flags):
                done = common.run(common.training(self.program(), self.corpus, *flags, f"--costs={part}", steps=1))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual("micro-batches have at most" in done.stderr, "--rank-memory=4MiB" in flags, done.stderr)
                said = [line for line in done.stderr.splitlines() if "lacks" in line]
                self.assertEqual(len(said), len(notes), done.stderr)
                for line, note in zip(said, notes):
                    self.assertIn(note, line)
        for kind, notes in (("f64", []), ("f32", ["costs were measured in f32, this program computes in f64: measure again with --profile"])):
            costs = self.write(kind, f'{text}compute_type: "{kind}"\n')
            done = common.run(common.training(self.program(), self.corpus, "--strategy=dp=2", f"--costs={costs}", steps=1))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("lacks", done.stderr)
            self.assertEqual([line for line in done.stderr.splitlines() if "measured in" in line],
                             [f"note: {costs}: {note}" for note in notes])

    def test_bad_files(self):
        program, module = self.program(), self.memory_phase("--compute-type=f64")
        good = CUTS["head"][0]
        for name, text, words in (
            ("syntax", good + "entries { kind: }", [f"{self.folder}/syntax.costs:{good.count(chr(10)) + 1}:"]),
            ("kind", good.replace('"head"', '"tail"'), ["no kind of layer 'tail'", "embed, block, head"]),
            ("negative", table(embed=0, block=-1, head=1), ["entry 3 (block tp=1 FORWARD)", "seconds", "-0.33"]),
            ("nan", good + 'entries { kind: "head" tp: 2 direction: FORWARD points { seconds: nan } }', ["entry 7", "nan"]),
            ("empty", 'entries { kind: "head" direction: FORWARD }', ["entry 1", "has no points"]),
            ("binary", "\x00\x01\x02", [f"{self.folder}/binary.costs:1:1"]),
            ("void", "", ["void.costs: has no entries and no device"]),
            ("none", None, ["none.costs", "No such file"]),
        ):
            with self.subTest(file=name):
                costs = self.folder / f"{name}.costs"
                if text is not None:
                    costs.write_text(text)
                self.assert_refused(common.run(common.training(program, self.corpus, "--strategy=pp=2", f"--costs={costs}")), *words)
                done = common.run([common.DYNA_OPT, module, f"--dyna-plan=lengths=20 strategy=pp=2 costs={costs}"])
                self.assertEqual(done.returncode, 1)
                output = self.folder / "binary"
                compiled = common.run([common.DYNAC, common.model("gpt2", n_layer=4), "-o", output, "--strategies=pp=2",
                                       f"--costs={costs}"])
                self.assert_refused(compiled, *words)
                self.assertFalse(output.exists())
                for word in words:
                    self.assertIn(word, done.stderr)

    def test_costs_without_strategies(self):
        costs = self.write("head", CUTS["head"][0])
        done = common.run([common.DYNAC, common.model("gpt2", n_layer=4), "-o", self.folder / "no", f"--costs={costs}"])
        self.assert_refused(done, "--costs", "--strategies")


class PlansTest(common.BinaryTest):
    """Plans of dyna-opt and dynac, against what a binary says of itself."""

    LENGTHS = ["30", "5", "17"]

    def compile(self, name, strategies, *flags, **changes):
        program = self.folder / name
        common.succeed([common.DYNAC, common.model("gpt2", **changes), "-o", program, "--isa=avx2", *flags,
                        *([f"--strategies={strategies}"] if strategies else [])])
        manifest = self.folder / f"{name}.manifest"
        # Bytes, not text.
        with open(manifest, "wb") as file:
            common.subprocess.run([program, "--describe=proto"], stdout=file, check=True)
        return manifest, common.described(program)

    def plan(self, strategies, strategy):
        """As a user of dyna-opt makes one: nothing but the model and the strategy."""
        text, message = self.folder / "plan.mlir", self.folder / "plan.pb"
        phases = ["--dyna-differentiate", f"--dyna-distribute=strategy='{strategies}'", "--dyna-memory"]
        common.succeed([common.DYNA_OPT, common.model("gpt2"), *phases,
                        f"--dyna-plan=strategy={strategy} lengths={','.join(self.LENGTHS)} tokens-per-micro-batch=32", "-o", text])
        common.succeed([common.DYNA_TRANSLATE, "--mlir-to-plan", text, "-o", message])
        return text, message

    def check(self, manifest, message, strategy):
        return common.run([os.environ["DYNA_CHECK_PLAN"], manifest, message, strategy, *self.LENGTHS])

    def test_plans_run_in_binaries_of_the_same_model(self):
        manifests = [self.compile("one", "a: dp=2,tp=2; b: pp=2", "--matmul=generated"),
                     self.compile("other", "fast: tp=2,pp=2; odd: dp=3; last: pp=2,layers=1+3")]
        # Another degree, another width: other places, other plans.
        other_degrees, _ = self.compile("degrees", "")
        other_width, _ = self.compile("width", "tp=2", n_embd=64)
        for strategy in ("pp=2", "dp=2,tp=2,zero=1", "tp=2,pp=2,recompute=full"):
            with self.subTest(strategy=strategy):
                text, message = self.plan("tp=2", strategy)
                for manifest, description in manifests:
                    named = re.search(r"exec\.plan @\S+ of @\S+ model 0x([0-9A-F]+)", text.read_text())[1]
                    self.assertEqual(int(named, 16), description["hash"])
                    done = self.check(manifest, message, strategy)
                    self.assertEqual(done.returncode, 0, done.stderr)
                for manifest in (other_degrees, other_width):
                    done = self.check(manifest, message, "pp=2")
                    self.assertEqual(done.returncode, 1)
                    self.assertIn("made for model", done.stderr)
        # The check itself finds a plan of another strategy.
        _, message = self.plan("tp=2", "pp=2")
        self.assertEqual(self.check(manifests[0][0], message, "dp=2").returncode, 1)

    def test_dynac_stops_after_the_plan(self):
        flags = ["--stop-after=plan", "--lengths=30,5,17", "--strategies=a: dp=2,tp=2; b: pp=2"]
        text = common.succeed([common.DYNAC, common.model("gpt2"), *flags])
        graphs = re.findall(r"exec\.graph @(\S+) ", text)
        self.assertEqual(graphs, ["a", "b"])
        self.assertEqual(re.findall(r"exec\.plan @(\S+) of @(\S+) ", text), [("a.plan", "a"), ("b.plan", "b")])
        self.assertIn("lengths [30, 5, 17]", text)
        # dyna-opt reads it, proves it, and makes the same of the memory phase.
        common.succeed([common.DYNA_OPT, "--dyna-verify-executable", "--dyna-verify-plan"], input=text)
        memory = common.succeed([common.DYNAC, common.model("gpt2"), "--stop-after=memory", *flags[2:]])
        walked = common.succeed([common.DYNA_OPT, "--dyna-plan=strategy='a: dp=2,tp=2' lengths=30,5,17",
                                 "--dyna-plan=strategy='b: pp=2' lengths=30,5,17"], input=memory)
        self.assertEqual(walked.rstrip(), text.rstrip())
        # The same word for what micro-batches are made of.
        padded = common.succeed([common.DYNAC, common.model("gpt2"), *flags, "--micro-batches=padded"])
        self.assertNotEqual(padded, text)
        walked = common.succeed([common.DYNA_OPT, "--dyna-plan=strategy='a: dp=2,tp=2' lengths=30,5,17 micro-batches=padded",
                                 "--dyna-plan=strategy='b: pp=2' lengths=30,5,17 micro-batches=padded"], input=memory)
        self.assertEqual(walked.rstrip(), padded.rstrip())
        # One rank, where no strategy is given.
        self.assertIn("exec.plan @strategy.plan", common.succeed([common.DYNAC, common.model("gpt2"), *flags[:2]]))
        costs = self.folder / "costs"
        costs.write_text(CUTS["head"][0])
        text = common.succeed([common.DYNAC, common.model("gpt2"), *flags, f"--costs={costs}"])
        self.assertIn('stage ["embed", "h.0", "h.1"]\n    stage ["head"]', text)

    def test_lengths_and_phase_go_together(self):
        for flags, words in ((["--stop-after=plan"], ["--stop-after=plan needs --lengths"]),
                             (["--micro-batches=padded"], ["--micro-batches goes with --stop-after=plan"]),
                             (["--lengths=3"], ["--lengths goes with --stop-after=plan"])):
            done = common.run([common.DYNAC, common.model("gpt2"), "-o", self.folder / "no", *flags])
            self.assert_refused(done, *words)
        for lengths, word in (("0", "a sample of 0 tokens"), ("5000", "got 5000")):
            done = common.run([common.DYNAC, common.model("gpt2"), "--stop-after=plan", f"--lengths={lengths}"])
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(word, done.stderr)


if __name__ == "__main__":
    common.main()
