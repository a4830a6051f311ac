#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans edited by hand as text: what is legal runs exactly as it stands, with the same numbers; what is not is refused."""

import collections
import json
import random
import re

import common
import strategies_common as strategies
from strategies_common import Case

CASE = Case("gpt2", 1, 1, 3, 0, 0, "none")
RANKS = 3
# Six layers of 32 features: three stages, and runs that are over at once.
CHANGES = (("n_layer", 4),)
WIDTH, F64 = common.GPT2["n_embd"], 8
DRAWN = 20  # edits
# Instructions of a plan that traces show too; casts of parameters are other plans.
DO = re.compile(r"^ *do (\w+)(?: layer (\d+))?(?: micro_batch (\d+))?")


def programs(text):
    """Of each rank the names, layers and micro-batches of its instructions."""
    ranks = []
    for line in text.splitlines():
        if re.match(r" *rank \d+ ", line):
            ranks.append([])
        elif found := DO.match(line):
            ranks[-1].append((found[1].upper(), *(None if number is None else int(number) for number in found.groups()[1:])))
    return ranks


def executed(trace):
    """The same of what ran."""
    ranks = [[] for _ in range(RANKS)]
    for event in common.trace_events(trace):
        if event["ph"] == "X" and event["cat"] != "exchange" and event["name"] != "CAST_PARAMS":
            ranks[event["pid"]].append((event["name"], event["args"].get("layer"), event["args"].get("micro_batch")))
    return ranks


def sent(trace):
    """Bytes that crossed each channel, a pair of ranks, in each direction, as the ranks counted them."""
    channels = collections.Counter()
    for event in common.trace_events(trace):
        if event["ph"] == "X" and event["name"] in ("SEND_ACT_START", "SEND_GRAD_START"):
            step = 1 if event["name"] == "SEND_ACT_START" else -1
            channels[event["pid"], event["pid"] + step] += event["args"]["bytes"]
    return channels


def planned_bytes(text):
    """The same from the plan's micro-batches and messages: every token is a row of the model's width."""
    tokens = [sum(map(int, re.findall(r"length (\d+)", line))) for line in text.splitlines() if "micro_batch replica" in line]
    channels = collections.Counter()
    for rank, program in enumerate(programs(text)):
        for name, _, micro_batch in program:
            if name in ("SEND_ACT_START", "SEND_GRAD_START"):
                channels[rank, rank + (1 if name == "SEND_ACT_START" else -1)] += tokens[micro_batch] * WIDTH * F64
    return channels


def edited(text, draw):
    """One slip of the hand, or a thoughtful one: a line moved, left out, doubled, or another number in it."""
    lines = text.splitlines()
    rank = draw.choice([i for i, line in enumerate(lines) if re.match(r" *rank \d+ ", line)])
    own = []
    for i in range(rank + 1, len(lines)):
        if not DO.match(lines[i]):
            break
        own.append(i)
    at = draw.choice(own)
    kind = draw.choice(["move", "move", "move", "move", "move", "move", "leave out", "double", "micro-batch", "place", "region"])
    if kind == "move":
        line = lines.pop(at)
        lines.insert(min(max(at + draw.choice([-2, -1, 1, 2]), own[0]), own[-1]), line)
    elif kind == "leave out":
        lines.pop(at)
    elif kind == "double":
        lines.insert(at, lines[at])
    elif kind == "micro-batch":
        lines[at] = re.sub(r"micro_batch \d+", f"micro_batch {draw.randrange(3)}", lines[at])
    elif kind == "place":
        lines[at] = re.sub(r"(next|workspace|gradient|kept|late) \d+", lambda found: f"{found[1]} {64 * draw.randrange(50)}", lines[at])
    else:
        lines[rank] = re.sub(r"dynamic_bytes \d+", f"dynamic_bytes {64 * draw.randrange(1000)}", lines[rank])
    return "\n".join(lines) + "\n"


class PlansTest(strategies.StrategiesTest):
    def setUp(self):
        super().setUp()
        self.program = common.binary("gpt2", "f64", (), CHANGES)
        self.good = self.folder / "good"
        stem = self.run_plans("reference", f"--dump-plans={self.good}", "--pipeline=1f1b")
        self.reference_run = strategies.Against(stem, step=2)
        self.texts = [self.text_of(self.good / f"step-{step}.plan") for step in (1, 2)]

    def command(self, name, *flags):
        stem = self.folder / name
        return stem, strategies.command(self.program, self.corpus, CASE, "--tokens-per-batch=256", "--tokens-per-micro-batch=64", f"--metrics={stem}.jsonl", f"--save={stem}",
                                        f"--trace={stem}.trace", f"--counts={stem}.counts", "--trace-steps=1", *flags, steps=2)

    def run_plans(self, name, *flags):
        stem, command = self.command(name, *flags)
        common.succeed(command)
        return stem

    def text_of(self, plan):
        return common.succeed([common.DYNA_TRANSLATE, "--plan-to-mlir", plan])

    def folder_of(self, name, first, second=None):
        """Plans of two steps, written from text."""
        folder = self.folder / f"{name}-plans"
        folder.mkdir()
        for step, text in ((1, first), (2, second or self.texts[1])):
            source = self.folder / f"{name}-{step}.mlir"
            source.write_text(text)
            common.succeed([common.DYNA_TRANSLATE, "--mlir-to-plan", source, "-o", folder / f"step-{step}.plan"])
        return folder

    def assert_equal_numbers(self, stem):
        for kind, (difference, where) in self.reference_run.compare(stem).items():
            self.assertLessEqual(difference, strategies.TOLERANCE, f"{kind} of {where}")

    def assert_runs_as_it_stands(self, stem, text):
        order = executed(stem.with_suffix(".trace"))
        self.assertEqual(order, programs(text))
        channels = sent(stem.with_suffix(".trace"))
        self.assertEqual(channels, planned_bytes(text))
        # The transport has counted as much, of both steps.
        both = planned_bytes(text) + planned_bytes(self.texts[1])
        for rank in json.loads(stem.with_suffix(".counts").read_text())["ranks"]:
            self.assertEqual(rank["messages"]["bytes"],
                             sum(size for (sender, _), size in both.items() if sender == rank["rank"]))
        self.assert_equal_numbers(stem)

    def peak(self, stem):
        """What the first step took: the plan's regions and what does not change from step to step."""
        return common.lines_of(f"{stem}.jsonl")[0]["peak_bytes"]

    def regions(self, text):
        return sum(map(int, re.findall(r"rank \d+ dynamic_bytes (\d+)", text)))

    def test_other_schedules_of_one_mini_batch(self):
        orders, peaks = set(), set()
        for pipeline in ("1f1b", "gpipe", "cyclic", "adaptive", "sequential"):
            with self.subTest(pipeline=pipeline):
                dumped = self.folder / f"{pipeline}-dumped"
                self.run_plans(f"{pipeline}-made", f"--pipeline={pipeline}", f"--dump-plans={dumped}")
                text = self.text_of(dumped / "step-1.plan")
                # gpipe keeps most, so that all of them fit its memory.
                stem = self.run_plans(pipeline, "--pipeline=gpipe", "--in-flight=100",
                                      f"--plans={self.folder_of(pipeline, text)}",
                                      *(["--check-memory"] if pipeline == "adaptive" else []))
                self.assert_runs_as_it_stands(stem, text)
                orders.add(str(programs(text)))
                # A step's peak is what its plan says, beside what is there anyway.
                peaks.add(self.peak(stem) - self.regions(text))
        # That of adaptive may be a simple one.
        self.assertGreaterEqual(len(orders), 4)
        self.assertEqual(len(peaks), 1)

    def test_edits_run_or_are_refused(self):
        draw, legal, rules = random.Random(4), 0, collections.Counter()
        for number in range(DRAWN):
            text = edited(self.texts[0], draw)
            with self.subTest(edit=number):
                folder = self.folder_of(f"edit{number}", text)
                stem, command = self.command(f"edit{number}", f"--plans={folder}", "--pipeline=gpipe", "--in-flight=100")
                done = common.run(command)
                if done.returncode == 0:
                    self.assert_runs_as_it_stands(stem, text)
                    legal += text != self.texts[0]
                    continue
                self.assert_refused(done, "step-1.plan: plan: ")
                rules[re.search(r"\((P\d+)\)$", done.stderr.strip())[1]] += 1
                # Before the step.
                self.assertEqual(common.lines_of(f"{stem}.jsonl"), [])
        print(f"{legal} edits ran, {dict(rules)} were refused")
        self.assertGreaterEqual(legal, 3)
        self.assertGreaterEqual(len(rules), 3)

    def test_the_steps_before_a_bad_plan_are_trained(self):
        text = self.texts[1].replace("do forward layer 1 micro_batch 0", "do forward layer 1 micro_batch 1", 1)
        stem, command = self.command("late", f"--plans={self.folder_of('late', self.texts[0], text)}")
        self.assert_refused(common.run(command), "step-2.plan: plan: rank 0", "(P", "the run up to step 1 is in")
        self.assertEqual([line["step"] for line in common.lines_of(f"{stem}.jsonl")], [1])

    def test_plans_of_other_runs(self):
        def refuse(*words, flags=(), program=None):
            stem, command = self.command("other", f"--plans={self.good}", *flags)
            self.assert_refused(common.run([program or self.program, *command[1:]]), *words)
            self.assertFalse((self.folder / "other").exists() and list((self.folder / "other").iterdir()))

        refuse("a plan for ", "samples of", "but step 1 has", flags=["--tokens-per-batch=150"])
        refuse("a plan for ", "but step 1 has", flags=["--seed=5", "--tokens-per-batch=200"])
        refuse("made for strategy 'dp=1,tp=1,pp=3", flags=["--strategy=dp=3"])
        refuse("expects 2 ranks, but has 3", flags=["--strategy=pp=2"])
        refuse("made for model ", "but this is", program=common.binary("gpt2", "f64", (), (("n_layer", 5),)))
        # Damaged, empty, no plans at all, too large.
        plan = self.good / "step-1.plan"
        bytes_of = plan.read_bytes()
        for name, content, word in (("cut", bytes_of[:-7], "step-1.plan: these bytes are no plan"),
                                    ("half", bytes_of[:len(bytes_of) // 2], "step-1.plan: these bytes are no plan"),
                                    ("empty", b"", "a plan for 0 samples of 0 tokens, but step 1 has"),
                                    ("junk", bytes(random.Random(2).randbytes(5000)), "these bytes are no plan"),
                                    ("text", b"exec.plan @p model 0x1 target_tokens 3 {}\n", "these bytes are no plan")):
            with self.subTest(file=name):
                plan.write_bytes(content)
                refuse(word)
        plan.unlink()
        refuse("there is no ", "step-1.plan, the plan of step 1")
        plan.mkdir()
        refuse("step-1.plan", "directory")
        refuse("nowhere", flags=[f"--plans={self.folder / 'nowhere'}"])


if __name__ == "__main__":
    common.main()
