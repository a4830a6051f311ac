#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory: what runs touch is what the formulas say, and the manifest repeats them."""

import os
import re
import subprocess
import unittest

import common

FORMULA = re.compile(r"(\d+)(?:\*(Tq|Tkv|S))?")


def parse_formula(text):
    """'128*Tq + 16384' as the manifest's JSON writes it."""
    result = {"stream": 0, "tq": 0, "tkv": 0, "s": 0, "constant": 0}
    for part in text.split(" + "):
        match = FORMULA.fullmatch(part.strip())
        if not match:
            raise AssertionError(f"no formula: {text}")
        result[(match.group(2) or "constant").lower()] += int(match.group(1))
    return result


def parse_report(text):
    """Per layer: tiers and the workspace of each role."""
    layers, current = {}, None
    for line in text.splitlines():
        if match := re.match(r"layer @(\S+), called (\d+) times", line):
            current = layers.setdefault(match.group(1), {"calls": int(match.group(2)), "tiers": {}, "roles": {}})
        elif match := re.match(r"  tier (\w+) +(\d+)  (.+)", line):
            current["tiers"][match.group(1)] = parse_formula(match.group(3))
        elif match := re.match(r"  workspace of (\w+) +(\d+)  ([^,(]+)", line):
            current["roles"][match.group(1)] = parse_formula(match.group(3))
    return layers


class MemoryTest(common.BinaryTest):
    def test_runs_touch_what_was_planned(self):
        for name in ("gpt2", "llama"):
            for compute_type in ("f32", "f64", "bf16"):
                program = common.binary(name, compute_type)
                for recompute in ("none", "selective", "full"):
                    for extra in ([], ["--split-backward"]):
                        with self.subTest(model=name, type=compute_type, recompute=recompute, extra=extra):
                            flags = ["--tokens-per-micro-batch=100", "--in-flight=3", f"--recompute={recompute}", *extra]
                            plain = self.train(program, "plain", *flags, steps=2)
                            losses = common.losses(f"{plain}.jsonl")
                            self.assertGreaterEqual(common.lines_of(f"{plain}.jsonl")[0]["micro_batches"], 3)
                            metrics = self.folder / "checked.jsonl"
                            common.succeed(common.training(program, self.corpus, f"--metrics={metrics}", "--check-memory",
                                                           *flags, steps=2))
                            # Reading poison would change the numbers.
                            self.assertEqual(common.losses(metrics), losses)
                            for path in self.folder.iterdir():
                                common.shutil.rmtree(path) if path.is_dir() else path.unlink()

    def test_recomputation_saves_memory(self):
        program = common.binary("gpt2", "f32")
        peaks = {}
        for mode in ("none", "selective", "full"):
            stem = self.train(program, mode, "--tokens-per-micro-batch=100", "--in-flight=3", f"--recompute={mode}")
            peaks[mode] = max(line["peak_bytes"] for line in common.lines_of(f"{stem}.jsonl"))
        self.assertGreater(peaks["none"], peaks["selective"])
        self.assertGreater(peaks["selective"], peaks["full"])

    def test_the_manifest_is_what_the_report_says(self):
        for name in ("gpt2", "llama"):
            for compute_type in ("f32", "f64", "bf16"):
                with self.subTest(model=name, type=compute_type):
                    planned = self.folder / "planned.mlir"
                    common.succeed([common.DYNAC, common.model(name), "--stop-after=memory", f"--compute-type={compute_type}",
                                    "-o", planned])
                    done = common.run([common.DYNA_OPT, planned, "--dyna-report-memory", "-o", "/dev/null"])
                    self.assertEqual(done.returncode, 0, done.stderr)
                    report = parse_report(done.stdout + done.stderr)
                    manifest = common.described(common.binary(name, compute_type))
                    kinds = {kind["name"]: kind for kind in manifest["kinds"]}
                    self.assertEqual(set(kinds), set(report))
                    self.assertTrue(kinds)
                    for kind, facts in kinds.items():
                        self.assertEqual(facts["tiers"], report[kind]["tiers"], kind)
                        given = {role: entry["workspace"] for role, entry in facts["roles"].items()}
                        self.assertEqual(given, report[kind]["roles"], kind)
                        calls = sum(manifest["kinds"][layer["kind"]]["name"] == kind for layer in manifest["layers"])
                        self.assertEqual(calls, report[kind]["calls"], kind)

    def test_only_micro_batches_that_can_exist_are_counted(self):
        program = common.binary("gpt2", "f32")
        # Four full micro-batches make a mini-batch; 1,024 of them would take 300 MiB.
        flags = ["--tokens-per-micro-batch=100", "--memory-limit=40M"]
        common.succeed(common.training(program, self.corpus, *flags, "--in-flight=1024"))
        few, many = (self.train(program, name, *flags, f"--in-flight={name}") for name in ("16", "1024"))
        self.assertEqual(common.losses(f"{few}.jsonl"), common.losses(f"{many}.jsonl"))

    @unittest.skipIf(common.SANITIZERS, "sanitizers keep shadows and freed memory, so that a process is larger than what it took")
    def test_saving_and_resuming_take_no_copy_of_the_model(self):
        # 7.2 million parameters: masters and moments take 83 MiB, which saving and resuming once held again.
        program = common.binary("gpt2", "f32", (), (("n_embd", 384), ("n_layer", 4)))
        flags = ["--tokens-per-batch=64", "--tokens-per-micro-batch=64"]

        def peak(*words):
            process = subprocess.Popen([str(word) for word in (program, *words)], stdout=subprocess.PIPE)
            with process.stdout:
                out = process.stdout.read().decode()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status
            self.assertEqual(status, 0, out)
            value, unit = re.search(r"peak memory +([0-9.]+) (.iB)", out).groups()
            return usage.ru_maxrss / 1024, float(value) * {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}[unit]

        save = self.folder / "save"
        plain, stated = peak("--data", self.corpus, "--steps=1", "--no-progress", *flags)
        for words in (["--data", self.corpus, "--steps=1", f"--save={save}", *flags], ["--resume", save, "--steps=2"],
                      ["--data", self.corpus, "--load", save, "--steps=1", *flags]):
            with self.subTest(words=words):
                taken, counted = peak(*words, "--no-progress")
                self.assertLess(taken - plain, 24)
                # What is left is in the stated peak, and so in --memory-limit.
                self.assertGreater(counted, stated)
                self.assertLess(taken - counted, plain - stated + 4)

    def test_what_a_rank_may_take_decides_on_the_plan(self):
        """Less memory: other schedules, more recomputation, the same numbers; at last one line."""
        program = common.binary("gpt2", "f64")
        flags = ["--tokens-per-micro-batch=100", "--strategy=dp=2,pp=2", "--tokens-per-batch=1600"]

        def train(*words):
            metrics = self.folder / "metrics.jsonl"
            done = common.run(common.training(program, self.corpus, f"--metrics={metrics}", *flags, *words))
            self.assertEqual(done.returncode, 0, done.stderr)
            return done, common.lines_of(metrics)

        def least(text):
            value, unit = re.search(r"needs ([0-9.]+) (.iB) at least", text).groups()
            return int(float(value) * {"KiB": 1024, "MiB": 1 << 20}[unit]) + 60000  # what is printed is rounded

        alone = self.train(program, "alone", "--tokens-per-batch=1600", "--tokens-per-micro-batch=100")
        expected = common.losses(f"{alone}.jsonl")
        _, free = train("--recompute=auto")
        for line in free:
            # With memory to spare there is another only where a simple one is faster.
            self.assertIn(line.get("fallback", "none"), ("none", "cyclic", "1f1b"))
            # A few may still let a stage run further ahead.
            modes = line["recompute"]
            self.assertGreater(modes["none"], 4 * (modes["selective"] + modes["full"]))
        refused = common.run(common.training(program, self.corpus, *flags, "--recompute=auto", "--rank-memory=64KiB"))
        self.assert_refused(refused, "a rank may take 64.0 KiB", "rank 0 needs", "micro-batch of 100 tokens")
        # What the first rank needs is not yet enough for all.
        memory = least(refused.stderr)
        for _ in range(4):
            done = common.run(common.training(program, self.corpus, *flags, "--recompute=auto", f"--rank-memory={memory}"))
            if done.returncode == 0:
                break
            memory = least(done.stderr)
        _, short = train("--recompute=auto", f"--rank-memory={memory}")
        self.assertGreater(sum(line["recompute"]["full"] + line["recompute"]["selective"] for line in short), 0)
        done, other = train("--pipeline=gpipe", "--recompute=full", f"--rank-memory={memory}")
        self.assertEqual({line.get("fallback") in ("adaptive", "sequential") for line in other}, {True})
        self.assertRegex(done.stdout, rf"\b{len(other)} steps? had another than --pipeline")
        for lines in (free, short, other):
            for line, loss in zip(lines, expected, strict=True):
                self.assertLessEqual(abs(line["loss"] - loss), 1e-10 * abs(loss))

    def test_longer_samples_than_micro_batches_are_alone(self):
        """As long as they fit a rank's memory; what does not goes the way of --long-documents."""
        program = common.binary("gpt2", "f64", (), (("n_positions", 256),))
        small = ["--tokens-per-batch=800", "--tokens-per-micro-batch=24"]
        large = self.train(program, "large", "--tokens-per-batch=800", "--tokens-per-micro-batch=300")
        for strategy in ("dp=1", "pp=2", "dp=2"):
            with self.subTest(strategy=strategy):
                metrics = self.train(program, f"small-{strategy}", *small, f"--strategy={strategy}", "--check-memory")
                for one, other in zip(common.losses(f"{metrics}.jsonl"), common.losses(f"{large}.jsonl"), strict=True):
                    self.assertLessEqual(abs(one - other), 1e-10 * abs(other))
        refused = common.run(common.training(program, self.corpus, *small, "--rank-memory=64KiB"))
        self.assert_refused(refused, "a rank may take 64.0 KiB", "micro-batch of 24 tokens")
        value, unit = re.search(r"needs ([0-9.]+) (.iB) at least", refused.stderr).groups()
        memory = int((float(value) + 0.06) * {"KiB": 1024, "MiB": 1 << 20}[unit])
        for mode, word in (("split", "split"), ("truncate", "cut"), ("skip", "left out")):
            with self.subTest(mode=mode):
                done = common.run(common.training(program, self.corpus, *small, f"--rank-memory={memory}",
                                                  f"--long-documents={mode}"))
                self.assertEqual(done.returncode, 0, done.stderr)
                limit = int(re.search(r"samples have at most ([0-9]+) of the model's 256 positions", done.stderr)[1])
                self.assertIn(limit, range(24, 256))
                self.assertRegex(done.stdout, rf"long documents +[0-9]+ of more than {limit} tokens: [0-9]+ {word}; "
                                              r"the longest: .+, [0-9]+ tokens")
        done = common.run(common.training(program, self.corpus, *small, f"--rank-memory={memory}", "--long-documents=error"))
        self.assert_refused(done, "document", f"at most {limit} tokens in the memory of a rank", "--long-documents")

    def test_micro_batches_are_no_larger_than_fit(self):
        """Where no flag says how large they are; one that does is taken at its word."""
        program = common.binary("gpt2", "f64", (), (("n_positions", 256),))
        large = self.train(program, "large", "--tokens-per-batch=800")
        refused = common.run(common.training(program, self.corpus, "--tokens-per-batch=800", "--tokens-per-micro-batch=64",
                                             "--rank-memory=64KiB"))
        self.assert_refused(refused, "is enough, and smaller --tokens-per-micro-batch helps")
        value, unit = re.search(r"needs ([0-9.]+) (.iB) at least", refused.stderr).groups()
        memory = int((float(value) + 0.06) * {"KiB": 1024, "MiB": 1 << 20}[unit])
        done = common.run(common.training(program, self.corpus, "--tokens-per-batch=800", f"--rank-memory={memory}"))
        self.assertEqual(done.returncode, 0, done.stderr)
        tokens, usual = re.search(r"micro-batches have at most ([0-9]+) tokens, not ([0-9]+): .* \(--rank-memory\)",
                                  done.stderr).groups()
        self.assertIn(int(tokens), range(64, int(usual)))
        self.assertRegex(done.stderr, "samples have at most [0-9]+ of the model's 256 positions")
        metrics = self.folder / "small.jsonl"
        common.succeed(common.training(program, self.corpus, "--tokens-per-batch=800", f"--rank-memory={2 * memory}",
                                       f"--metrics={metrics}"))
        for one, other in zip(common.losses(metrics), common.losses(f"{large}.jsonl"), strict=True):
            self.assertLessEqual(abs(one - other), 1e-10 * abs(other))
        refused = common.run(common.training(program, self.corpus, "--tokens-per-batch=800", f"--tokens-per-micro-batch={usual}",
                                             f"--rank-memory={memory}"))
        self.assert_refused(refused, f"micro-batch of {usual} tokens")

    def test_what_short_samples_need_is_said(self):
        """To the byte: with it the run splits its documents, with less it is refused."""
        program = common.binary("gpt2", "f64", (), (("n_positions", 256),))
        run = lambda memory: common.run(common.training(program, self.corpus, "--tokens-per-batch=800", f"--rank-memory={memory}"))
        refused = run("64KiB")
        self.assert_refused(refused, "is enough", "shorter samples or more recomputation help")
        enough, least = map(int, re.search(r"--rank-memory (\d+) is enough, (\d+) where longer documents are split into samples "
                                           r"of 32 tokens", refused.stderr).groups())
        self.assertLess(least, enough)
        done = run(least)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "samples have at most 3[2-9] of the model's 256 positions")
        self.assertEqual(run(enough).returncode, 0)
        below = run(least - 4096)
        if below.returncode == 0:
            self.assertRegex(below.stderr, r"samples have at most (\d|[12]\d|3[01]) of the model's")

    def test_a_limit_is_kept(self):
        program = common.binary("gpt2", "f32")
        done = common.run(common.training(program, self.corpus, f"--memory-limit={(32 << 20) + (600 << 10)}"))
        self.assert_refused(done, "--memory-limit", "--tokens-per-micro-batch")

    @unittest.skipIf(common.SANITIZERS, "sanitizers keep shadows and freed memory, so that a process is larger than what it took")
    def test_the_stated_peak_holds_the_whole_process(self):
        """A control group of that size does not kill the run: program, libraries and data are part of it."""
        for name, compute_type, changes, flags in (
                ("gpt2", "f32", (), ["--threads=1"]),
                ("gpt2", "bf16", (), ["--strategy=dp=2", "--threads=2"]),
                ("llama", "f32", (("hidden_size", 256), ("intermediate_size", 512)), ["--strategy=pp=2", f"--save={self.folder}/s"])):
            with self.subTest(model=name, type=compute_type):
                words = common.training(common.binary(name, compute_type, (), changes), self.corpus, *flags)
                process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE)
                with process.stdout:
                    out = process.stdout.read().decode()
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = status
                self.assertEqual(status, 0, out)
                value, unit = re.search(r"peak memory +([0-9.]+) (.iB)", out).groups()
                stated = float(value) * {"KiB": 1024, "MiB": 1 << 20}[unit]
                print(f"{name} {compute_type}: {usage.ru_maxrss / 1024:.1f} MiB of {stated / (1 << 20):.1f}")
                self.assertLess(usage.ru_maxrss * 1024, stated)

    def test_large_steps_do_not_shorten_samples(self):
        """What a mini-batch takes is known before its data are: not by so much that nothing is left for a sample."""
        program = common.binary("gpt2", "f64", (), (("n_positions", 256),))
        run = common.training(program, "synthetic:equal=200:documents=300", "--tokens-per-batch=60000", "--tokens-per-micro-batch=64",
                              steps=1)
        refused = common.run([*run, "--memory-limit=1MiB"])
        enough = int(re.search(r"--memory-limit (\d+) is enough", refused.stderr)[1])
        done = common.run([*run, f"--memory-limit={2 * enough}"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("samples have at most", done.stderr)

    def test_the_limit_that_a_refusal_names_is_enough(self):
        """Ranks that need more than others, mini-batches and longer samples than micro-batches included."""
        program = common.binary("gpt2", "f64", (), (("n_positions", 256),))
        for flags in (["--strategy=pp=2"], ["--strategy=dp=1"], ["--strategy=pp=3", "--tokens-per-batch=20000"],
                      ["--strategy=dp=2", "--tokens-per-batch=20000", "--tokens-per-micro-batch=16"]):
            def limited(limit, *words, flags=flags):
                return common.run(common.training(program, self.corpus, f"--memory-limit={limit}", *flags, *words, steps=1))

            with self.subTest(flags=flags):
                refused = limited("100K")
                self.assert_refused(refused, "--memory-limit is 100.0 KiB")
                self.assertNotIn("--in-flight", refused.stderr)
                enough = int(re.search(r"--memory-limit (\d+) is enough$", refused.stderr.strip())[1])
                done = limited(enough)
                self.assertEqual(done.returncode, 0, done.stderr)
                value, unit = re.search(r"peak memory +([0-9.]+) (.iB)", done.stdout).groups()
                # With what the matrix library takes, which the limit leaves out.
                self.assertLess(float(value) * {"KiB": 1024, "MiB": 1 << 20}[unit], enough + (2 << 20))
                self.assert_refused(limited(enough - 1), f"--memory-limit {enough} is enough")
        refused = common.run(common.training(program, self.corpus, "--strategy=pp=2", "--memory-limit=38MiB", "--rank-memory=5MiB"))
        self.assert_refused(refused, "--memory-limit is 38.0 MiB: lower --rank-memory;")


if __name__ == "__main__":
    common.main()
