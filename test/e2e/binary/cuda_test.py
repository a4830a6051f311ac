#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Binaries of --target=cuda, on the stand-ins of CUDA's libraries: kernels run on the processor, device memory is
out of the host's reach, and work runs late, in an order drawn from a seed. Their numbers are those of the host's
binary, within what docs/numerics.md says of each type."""

import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import time

import common

STANDINS = pathlib.Path(os.environ["DYNA_BUILD"]) / "standins"
EMULATED = ("--target=cuda", "--arch=emulated")
# Of losses, relative to them, over a few steps: as in test/e2e/golden/compare_golden.py.
BOUNDS = {"f64": 1e-10, "f32": 1e-5, "bf16": 3e-3}
# Few tokens: a thread of a kernel is a fiber here.
SHORT = ("--tokens-per-batch=120", "--tokens-per-micro-batch=70")


class CudaTest(common.BinaryTest):
    def setUp(self):
        super().setUp()
        for name in list(os.environ):
            if name.startswith("DYNA_STANDIN_"):
                del os.environ[name]
        os.environ["DYNA_CUDA_LIBRARY_PATH"] = str(STANDINS / "cuda")

    def emulated(self, name="gpt2", compute_type="f32"):
        return common.binary(name, compute_type, EMULATED)

    def run_short(self, program, name, *flags, steps=3):
        return self.train(program, name, *SHORT, *flags, steps=steps)

    def refuse(self, command, *words, **settings):
        environment = {**os.environ, **{key: str(value) for key, value in settings.items()}}
        self.assert_refused(common.run(command, env=environment), *words)

    def assert_close(self, given, wanted, bound):
        self.assertEqual(len(given), len(wanted))
        for step, (one, other) in enumerate(zip(given, wanted)):
            self.assertLessEqual(abs(one - other), bound * abs(other), f"the loss of step {step}: {one!r}, not {other!r}")

    def test_losses_are_those_of_the_host(self):
        for name in ("gpt2", "llama"):
            for compute_type, bound in BOUNDS.items():
                with self.subTest(model=name, type=compute_type):
                    label = f"{name}-{compute_type}"
                    host = self.run_short(common.binary(name, compute_type), f"{label}-host")
                    device = self.run_short(self.emulated(name, compute_type), f"{label}-cuda")
                    wanted = common.losses(f"{host}.jsonl")
                    self.assertNotEqual(wanted[0], wanted[-1])
                    self.assert_close(common.losses(f"{device}.jsonl"), wanted, bound)

    def test_padded_micro_batches(self):
        """Padding is rows of token 0, without targets, beside real ones."""
        flags = ("--micro-batches=padded", "--tokens-per-batch=160")
        host = self.run_short(common.binary("gpt2", "f64"), "host", *flags)
        device = self.run_short(self.emulated("gpt2", "f64"), "cuda", *flags)
        self.assertGreater(sum(line["padding"] for line in common.lines_of(f"{device}.jsonl")), 0)
        self.assert_close(common.losses(f"{device}.jsonl"), common.losses(f"{host}.jsonl"), BOUNDS["f64"])

    def test_tables_of_micro_batches_are_in_plans(self):
        """The manifest says what code reads beside segments; who plans without the binary counts the same bytes."""
        token_runs, position_runs, target_rows = 2, 4, 8
        self.assertEqual(common.described(common.binary())["batch_tables"], 0)
        self.assertEqual(common.described(self.emulated("llama"))["batch_tables"], token_runs | target_rows)
        self.assertEqual(common.described(self.emulated())["batch_tables"], token_runs | position_runs | target_rows)
        plans, bytes_of = {}, re.compile(r"rank 0 dynamic_bytes (\d+)")
        for target, program in (("cpu", common.binary()), ("cuda", self.emulated())):
            folder = self.folder / target
            self.run_short(program, f"run-{target}", f"--dump-plans={folder}", "--check-memory", steps=1)
            made = common.succeed([common.DYNA_TRANSLATE, "--plan-to-mlir", folder / "step-1.plan"])
            samples = {int(sample): length for sample, length in re.findall(r"sample (\d+) length (\d+)", made)}
            lengths = ",".join(samples[sample] for sample in range(len(samples)))
            module = common.succeed([common.DYNAC, common.model(), f"--target={target}", "--stop-after=memory"])
            planned = common.succeed([common.DYNA_OPT, f"--dyna-plan=lengths={lengths} tokens-per-batch=120 tokens-per-micro-batch=70"],
                                     input=module)
            self.assertEqual(bytes_of.findall(planned), bytes_of.findall(made))
            plans[target] = folder
        # Plans of one are none of the other's.
        run = common.training(self.emulated(), self.corpus, *SHORT, f"--plans={plans['cpu']}", steps=1)
        self.refuse(run, "step-1.plan: plan: made for model", "(P")
        common.succeed(common.training(self.emulated(), self.corpus, *SHORT, f"--plans={plans['cuda']}", steps=1))

    def test_token_slices(self):
        """Losses and norms are those of whole samples. No order of streams changes a bit."""
        for name, compute_type, slices in (("gpt2", "f64", "3"), ("llama", "f64", "1+1+30"), ("gpt2", "f32", "2"), ("llama", "bf16", "4")):
            with self.subTest(model=name, type=compute_type, slices=slices):
                program, label = self.emulated(name, compute_type), f"{name}-{compute_type}"
                whole = self.run_short(program, f"{label}-whole", steps=2)
                flags = (f"--slices={slices}", "--in-flight=3", "--check-memory")
                runs = []
                for seed in (0, 3):
                    os.environ["DYNA_STANDIN_SEED"] = str(seed)
                    stem = self.run_short(program, f"{label}-sliced-{seed}", *flags, steps=2)
                    runs.append((common.lines_of(f"{stem}.jsonl"), (stem / "step-2" / "model.safetensors").read_bytes()))
                del os.environ["DYNA_STANDIN_SEED"]
                sliced, wanted = runs[0][0], common.lines_of(f"{whole}.jsonl")
                for number in ("loss", "gradient_norm"):
                    self.assertEqual([line[number] for line in sliced], [line[number] for line in runs[1][0]])
                    self.assert_close([line[number] for line in sliced], [line[number] for line in wanted], BOUNDS[compute_type])
                self.assertEqual(runs[0][1], runs[1][1])
                for line, other in zip(sliced, wanted):
                    self.assertGreaterEqual(line["micro_batches"], 2 * other["micro_batches"])

    def test_no_order_of_streams_changes_a_bit(self):
        program = self.emulated()
        runs = []
        for seed in (0, 1, 2):
            os.environ["DYNA_STANDIN_SEED"] = str(seed)
            stem = self.run_short(program, f"seed-{seed}", "--held-out-fraction=0.2", steps=2)
            runs.append((common.losses(f"{stem}.jsonl"), (stem / "step-2" / "model.safetensors").read_bytes()))
        self.assertEqual(runs[0], runs[1])
        self.assertEqual(runs[0], runs[2])

    def test_runs_go_on_on_the_other_device(self):
        """Saved on one, resumed on the other, the curve is that of a run on one alone."""
        for compute_type in ("f64", "bf16"):
            programs = {"host": common.binary("llama", compute_type), "cuda": self.emulated("llama", compute_type)}
            flags = ["--schedule-steps=4", "--warmup=1"]
            whole = self.run_short(programs["host"], f"{compute_type}-whole", *flags, steps=4)
            for first, second in (("host", "cuda"), ("cuda", "host")):
                with self.subTest(type=compute_type, first=first):
                    stem = self.run_short(programs[first], f"{compute_type}-{first}", *flags, steps=2)
                    done = common.run([programs[second], "--resume", stem, f"--metrics={stem}.jsonl", "--no-progress", "--steps=4"])
                    # Not even a warning: it is the same model.
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    self.assert_close(common.losses(f"{stem}.jsonl"), common.losses(f"{whole}.jsonl"), BOUNDS[compute_type])

    def test_evaluation(self):
        saved = self.run_short(common.binary("gpt2", "f64"), "saved", steps=1)
        found = {}
        for label, program in (("host", common.binary("gpt2", "f64")), ("cuda", self.emulated("gpt2", "f64"))):
            common.succeed([program, "--evaluate", "--load", saved, "--data", self.corpus, "--no-progress",
                            "--held-out-tokens=300", f"--metrics={self.folder}/{label}.jsonl"])
            found[label] = common.json.loads((self.folder / f"{label}.jsonl").read_text())["loss"]
        self.assert_close([found["cuda"]], [found["host"]], BOUNDS["f64"])

    def test_the_rest_of_a_run(self):
        """Files that a run writes, memory checked after every instruction, recomputation."""
        trace, norms, counts = (self.folder / name for name in ("trace.json", "norms.json", "counts.json"))
        flags = [f"--trace={trace}", f"--print-grad-norms={norms}", f"--counts={counts}", "--recompute=selective",
                 "--in-flight=2", "--check-memory"]
        device = self.run_short(self.emulated("gpt2", "f64"), "cuda", *flags, steps=2)
        # When the device did it: each piece of work takes the stand-in a millisecond.
        slices = [event for event in common.trace_events(trace) if event["ph"] == "X"]
        self.assertTrue(slices)
        for event in slices:
            self.assertAlmostEqual(event["dur"] % 1000, 0 if event["dur"] % 1000 < 500 else 1000, delta=0.13)
        self.assertTrue(all(event["dur"] >= 1000 for event in slices if event["name"] == "FORWARD"))
        on_device = common.json.loads(norms.read_text()), common.json.loads(counts.read_text())
        host = self.run_short(common.binary("gpt2", "f64"), "host", *flags, steps=2)
        self.assert_close(common.losses(f"{device}.jsonl"), common.losses(f"{host}.jsonl"), BOUNDS["f64"])
        wanted = common.json.loads(norms.read_text()), common.json.loads(counts.read_text())
        self.assertEqual(set(on_device[0]["gradient_norms"]), set(wanted[0]["gradient_norms"]))
        for parameter, norm in wanted[0]["gradient_norms"].items():
            self.assertLessEqual(abs(on_device[0]["gradient_norms"][parameter] - norm), 1e-10 * max(norm, 1e-2), parameter)

    def outcome(self, program, stem, *flags, resume=False):
        """A run that may fail: how it ended and what it said, its metrics, and what it saved."""
        command = [program, "--resume", stem, f"--metrics={stem}.jsonl", "--no-progress"] if resume else \
            common.training(program, self.corpus, *SHORT, f"--save={stem}", f"--metrics={stem}.jsonl", steps=12)
        done = common.run([*command, *flags])
        lines = common.lines_of(f"{stem}.jsonl")
        told = [[line[name] for name in ("step", "loss", "gradient_norm", "learning_rate", "micro_batches")] for line in lines]
        saved = {file.relative_to(stem): file.read_bytes() for file in stem.glob("step-*/*.safetensors")}
        states = [common.json.loads(file.read_text()) for file in sorted(stem.glob("step-*/state.json"))]
        self.assertTrue(saved)
        return (done.returncode, done.stderr.replace(str(stem), "DIR"), told,
                [[state[name] for name in ("step", "skipped", "cursor")] for state in states], saved), lines

    def test_a_step_is_launched_before_the_one_before_is_read(self):
        """And nobody can tell by its numbers. Without plans that are made ahead none is."""
        program = self.emulated()
        ahead, lines = self.outcome(program, self.folder / "ahead")
        by_turns, others = self.outcome(program, self.folder / "by-turns", "--plan-ahead=0")
        self.assertEqual(ahead, by_turns)
        # A plan may be late once.
        self.assertFalse(lines[0]["launched_ahead"])
        self.assertGreaterEqual(sum(line["launched_ahead"] for line in lines), len(lines) // 2)
        self.assertFalse(any(line["launched_ahead"] for line in others))
        self.assertTrue(all(line["seconds"] > 0 for line in lines))
        # What is saved on the way is what was trained until then.
        flags = ("--save-every=5", "--keep=9")
        ahead, lines = self.outcome(program, self.folder / "saves", *flags)
        by_turns, _ = self.outcome(program, self.folder / "saves-by-turns", "--plan-ahead=0", *flags)
        self.assertEqual(ahead, by_turns)
        self.assertEqual([state[0] for state in ahead[3]], [10, 12, 5])
        self.assertFalse(any(lines[step]["launched_ahead"] for step in (0, 5, 10)))
        self.assertGreaterEqual(sum(line["launched_ahead"] for line in lines), len(lines) // 2)
        # The host does one after the other, and says nothing of it.
        host = self.run_short(common.binary(), "host", steps=1)
        self.assertNotIn("launched_ahead", common.lines_of(f"{host}.jsonl")[0])
        # The host knows how long functions took that it called, not those that it launched.
        self.assertGreaterEqual(common.lines_of(f"{host}.jsonl")[0]["bubble"], 0)
        self.assertIn("stages", common.lines_of(f"{host}.jsonl")[0])
        for line in lines:
            self.assertIsNone(line["bubble"])
            self.assertNotIn("stages", line)
            self.assertEqual(len(line["rank_peak_bytes"]), 1)

    def test_steps_of_several_strategies(self):
        """Their gradients come home on the device, in the order of its stream: as on the host, and launched ahead, too."""
        ranges = ("--strategies=s: dp=1; m: dp=1,recompute=selective; l: dp=1,recompute=full", "--merge-ranges=never",
                  "--ranges=s: 0-12; m: 13-40; l: 41-")
        for compute_type, bound in BOUNDS.items():
            with self.subTest(type=compute_type):
                host = self.run_short(common.binary("gpt2", compute_type), f"host-{compute_type}", *ranges)
                device = self.run_short(self.emulated("gpt2", compute_type), f"cuda-{compute_type}", *ranges)
                self.assert_close(common.losses(f"{device}.jsonl"), common.losses(f"{host}.jsonl"), bound)
                lines = common.lines_of(f"{device}.jsonl")
                self.assertGreater(max(line["phases"] for line in lines), 2)
        trace = self.folder / "trace.json"
        ahead, lines = self.outcome(self.emulated(), self.folder / "ahead", *ranges, f"--trace={trace}", "--trace-steps=4")
        by_turns, others = self.outcome(self.emulated(), self.folder / "by-turns", *ranges, "--plan-ahead=0")
        self.assertEqual([part for part in ahead if not isinstance(part, str)], [part for part in by_turns if not isinstance(part, str)])
        self.assertGreaterEqual(sum(line["launched_ahead"] for line in lines), len(lines) // 2)
        self.assertFalse(any(line["launched_ahead"] for line in others))
        # Every traced step has its phases, one behind the other.
        events = [event for event in common.trace_events(trace) if event["ph"] == "X"]
        end = 0
        for step in range(4):
            phases = [event for event in events if event["cat"] == "phase" and event["args"]["step"] == step + 1]
            self.assertEqual(len(phases), lines[step]["phases"], f"of step {step + 1}")
            for phase in phases:
                self.assertGreaterEqual(phase["ts"], end)
                end = phase["ts"] + phase["dur"]

    def test_divergence_is_as_if_steps_were_read_at_once(self):
        """The step behind one that is not finite is launched already: it changes nothing."""
        program = self.emulated()
        wild = ("--lr=1e5", "--clip=0", "--weight-decay=1e5", "--warmup=0", "--schedule=constant")
        stems = {"ahead": (self.folder / "ahead", ()), "by-turns": (self.folder / "by-turns", ("--plan-ahead=0",))}
        for skips in (0, 2):
            ends = {}
            for label, (stem, flags) in stems.items():
                common.shutil.rmtree(stem, ignore_errors=True)
                ends[label], lines = self.outcome(program, stem, *wild, *flags, f"--skip-nonfinite={skips}")
            self.assertEqual(ends["ahead"], ends["by-turns"])
            code, said, told, states, _ = ends["ahead"]
            self.assertEqual(code, 2)
            self.assertIn("training diverged", said)
            self.assertEqual(said.count("is skipped"), skips)
            self.assertLess(len(told), 12)
            self.assertEqual([state[1] for state in states], [skips])
        # The number is the run's, however often it is resumed.
        for skips, said_again in ((3, ["(3 of 3)"]), (1, [])):
            ends = {}
            for label, (stem, flags) in stems.items():
                ends[label], _ = self.outcome(program, stem, *flags, f"--skip-nonfinite={skips}", resume=True)
            self.assertEqual(ends["ahead"], ends["by-turns"])
            code, said, _, _, _ = ends["ahead"]
            self.assertEqual(code, 2)
            self.assertEqual(re.findall(r"\(\d of \d\)", said), said_again)

    def test_a_step_that_hangs_behind_one_that_is_not_finite(self):
        """It is dropped, but waited for, with the run's patience: what saves copies to memory for which a driver waits for ever."""
        run = common.training(self.emulated(), self.corpus, *SHORT, "--lr=1e5", "--clip=0", "--weight-decay=1e5", "--warmup=0",
                              "--schedule=constant", steps=12)

        def ends(*flags, **settings):
            done = common.run([*run, *flags], env={**os.environ, **{key: str(value) for key, value in settings.items()}})
            self.assertNotEqual(done.returncode, 0)
            return done.stderr

        with common.measured() as took:
            ends()
        # About the first piece of work of that step, which has many: those before it fail a step that counts.
        before, behind = 0, 1 << 12
        while behind - before > 16:
            middle = (before + behind) // 2
            if "training diverged" in ends(DYNA_STANDIN_FAULT=middle):
                behind = middle
            else:
                before = middle
        said = ends(f"--save={self.folder}/run", f"--timeout={took.times(2)}", DYNA_STANDIN_HANG=behind)
        self.assertIn("training diverged", said)
        self.assertNotIn("for ever", said)

    def test_a_fault_while_saving_is_told_at_once(self):
        """A disk may have room a moment later; a device that failed answers no more."""
        run = common.training(self.emulated(), self.corpus, *SHORT, f"--save={self.folder}/faulty", steps=1)

        def ends(*flags, **settings):
            shutil.rmtree(self.folder / "faulty", ignore_errors=True)
            return common.run([*run, *flags], env={**os.environ, **{key: str(value) for key, value in settings.items()}})

        with common.measured() as took:
            ends()
        # The last piece of work of a run is a copy for what is saved.
        works, last = 1 << 12, 1
        while works - last > 1:
            middle = (works + last) // 2
            if ends(DYNA_STANDIN_FAULT=middle).returncode == 0:
                works = middle
            else:
                last = middle
        for done in (ends(DYNA_STANDIN_FAULT=last), ends(f"--timeout={took.times(2)}", DYNA_STANDIN_HANG=last),
                     ends("--save-every=1", "--steps=2", DYNA_STANDIN_FAULT=last)):
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr.count("nothing was saved after step 1: CUDA device 0 (stand-in)"), 1, done.stderr)
            self.assertNotIn("tried again", done.stderr)

    def test_one_step_that_is_not_finite_behind_and_before_others(self):
        """A row of the embedding is no number: steps with its token are not finite, all others are."""
        program = self.emulated("llama")
        corpus = common.corpus(self.folder / "corpus")
        (corpus / "document-5.txt").write_text("the ragged Z of text", encoding="utf-8")
        file = self.run_short(program, "start", steps=1) / "step-1" / "model.safetensors"
        content = bytearray(file.read_bytes())
        size = struct.unpack("<Q", content[:8])[0]
        entry = common.json.loads(content[8:8 + size])["model.embed_tokens.weight"]
        width = common.LLAMA["hidden_size"]
        begin = 8 + size + entry["data_offsets"][0] + 4 * width * ord("Z")
        content[begin:begin + 4 * width] = struct.pack("<f", float("nan")) * width
        broken = self.folder / "broken.safetensors"
        broken.write_bytes(content)
        for skips, code in ((0, 2), (9, 0)):
            ends = {}
            for label, flags in (("ahead", ()), ("by-turns", ("--plan-ahead=0",))):
                ends[label], lines = self.outcome(program, self.folder / f"{label}-{skips}", *flags, f"--data={corpus}", f"--load={broken}",
                                                  f"--skip-nonfinite={skips}", "--seed=4")
            self.assertEqual(ends["ahead"], ends["by-turns"])
            self.assertEqual(ends["ahead"][0], code)
        # What such a step would have made of parameters and moments is nowhere in what the run has saved.
        for label in ("ahead", "by-turns"):
            files = list((self.folder / f"{label}-9").glob("step-*/*.safetensors"))
            self.assertGreater(len(files), 1, "moments lie beside the model")
            for saved in files:
                for name, values in common.tensors(saved).items():
                    lost = sum(value != value for value in values)
                    self.assertEqual(lost, width if (saved.name, name) == ("model.safetensors", "model.embed_tokens.weight") else 0,
                                     f"{saved.name}: {name}")
        # It was about something: finite steps come behind the first that is not.
        finite = [line["gradient_norm"] is not None for line in lines]
        self.assertTrue(finite[0])
        self.assertIn(True, finite[finite.index(False):])

    def test_a_signal_ends_a_run_whole(self):
        """What is in flight is finished and saved, and the rest comes when it is resumed."""
        program = self.emulated()
        stem = self.folder / "stopped"
        flags = ("--schedule-steps=40", "--warmup=2")
        run = subprocess.Popen([str(word) for word in common.training(
            program, self.corpus, *SHORT, *flags, f"--save={stem}", f"--metrics={stem}.jsonl", steps=40)],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        metrics = pathlib.Path(f"{stem}.jsonl")
        while run.poll() is None and (not metrics.exists() or metrics.read_text().count("\n") < 3):
            time.sleep(0.01)
        run.send_signal(signal.SIGINT)
        said = run.communicate(timeout=common.PATIENCE)[1]
        self.assertEqual(run.returncode, 130, said)
        steps = len(common.losses(metrics))
        self.assertGreaterEqual(steps, 3)
        self.assertLess(steps, 40)
        self.assertEqual([file.name for file in stem.glob("step-*")], [f"step-{steps}"])
        common.succeed([program, "--resume", stem, f"--metrics={metrics}", "--no-progress", f"--steps={steps + 3}"])
        whole = self.run_short(program, "whole", *flags, steps=steps + 3)
        self.assertEqual(common.losses(metrics), common.losses(f"{whole}.jsonl"))
        name = f"step-{steps + 3}/model.safetensors"
        self.assertEqual((stem / name).read_bytes(), (whole / name).read_bytes())

    def test_a_trace_shows_that_the_device_goes_on(self):
        """From one step to the next it has a few pieces of work, a millisecond each; the host needs far longer."""
        trace = self.folder / "trace.json"
        stem = self.run_short(self.emulated(), "traced", f"--trace={trace}", "--trace-steps=5", steps=6)
        slices = [event for event in common.trace_events(trace) if event["ph"] == "X"]
        steps = [[event for event in slices if event["args"]["step"] == step + 1] for step in range(5)]
        self.assertTrue(all(steps))
        self.assertEqual(sum(map(len, steps)), len(slices))
        ahead = [line["launched_ahead"] for line in common.lines_of(f"{stem}.jsonl")]
        self.assertIn(True, ahead[:5])
        for step in range(1, 5):
            pause = steps[step][0]["ts"] - steps[step - 1][-1]["ts"] - steps[step - 1][-1]["dur"]
            self.assertGreaterEqual(pause, 0)
            if ahead[step]:
                self.assertLessEqual(pause, 20000, f"before step {step}")

    def test_costs_are_times_of_the_device(self):
        """Each launch takes a millisecond of the stand-in: that of functions is known, and traces of runs have the same."""
        program, costs, trace = self.emulated(), self.folder / "gpu.costs", self.folder / "trace.json"
        for seconds in (15, 75, 375, 1875):
            costs.unlink(missing_ok=True)
            said = common.run([program, "--profile", costs, f"--profile-seconds={seconds}", "--tokens-per-micro-batch=32", "--no-progress"])
            self.assertEqual(said.returncode, 0, said.stderr)
            if "--profile-seconds ended the first pass" not in said.stderr:
                break
        self.assertRegex(said.stderr, r"(?m)^noise: repeats of a call differ by \d+\.\d %$")
        text = costs.read_text()
        self.assertRegex(text, r"(?m)^# tp=1: CUDA device 0 .*; 1 rank at once; time of the device; typical of ")
        # What is like no device that is described has the links of one; none were measured.
        self.assertIn("# links: one rank has no links: none were measured; the file has those described for 'h100'", text)
        self.assertIn("between { latency_seconds: 1.5e-05  bytes_per_second: 5e+10 }", text)
        for direction in ("FORWARD", "BACKWARD", "BACKWARD_INPUT", "BACKWARD_WEIGHT", "RECOMPUTE_FULL", "UPDATE"):
            points = re.search(rf'(?s)kind: "block"  direction: {direction}\n(.*?)\n}}', text)[1]
            seconds = [float(value) for value in re.findall(r"seconds: (\S+)", points)]
            self.assertTrue(all(value > 0 and abs(1000 * value - round(1000 * value)) < 1e-6 for value in seconds), seconds)
        stem = self.run_short(program, "predicted", f"--costs={costs}", f"--trace={trace}", "--tokens-per-micro-batch=32")
        self.assertGreater(common.lines_of(f"{stem}.jsonl")[-1]["predicted_seconds"], 0)
        events = common.trace_events(trace)
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        spent = {}
        for event in events:
            if event["ph"] == "X" and event["cat"] in ("embed", "block", "head") and event["name"] in ("FORWARD", "BACKWARD"):
                both = spent.setdefault((event["name"], event["cat"]), [0, 0])
                both[names[event["pid"]].startswith("predicted")] += event["dur"]
        self.assertEqual(len(spent), 6)
        for (name, kind), (ran, predicted) in spent.items():
            # A head launches three more where some rows have no target, as a fourth of its grid.
            self.assertLessEqual(abs(predicted - ran), (0.15 if kind == "head" else 0.05) * ran, (name, kind))

    def test_algorithms_in_a_file(self):
        """Timed after the first steps, kept, and taken from then on: what the library proposes first here adds parts."""
        program, file = self.emulated(), self.folder / "algorithms"
        plain = common.losses(f"{self.run_short(program, 'plain')}.jsonl")
        first = common.losses(f"{self.run_short(program, 'first', f'--algorithms={file}')}.jsonl")
        # Behind the first step and the second there is timed, with nothing in flight.
        lines = common.lines_of(f"{self.folder}/first.jsonl")
        self.assertEqual([line["launched_ahead"] for line in lines], [False, False, False])
        self.assertEqual(first[0], plain[0])
        self.assertNotEqual(first[1:], plain[1:])
        self.assert_close(first, plain, BOUNDS["f32"])
        text = file.read_text()
        self.assertRegex(text, r"^dyna products 1\ndevice stand-in, compute capability 0.0\nlibrary 130000\n")
        runs = [common.losses(f"{self.run_short(program, name, f'--algorithms={file}')}.jsonl") for name in ("second", "third")]
        self.assertEqual(runs[0], runs[1])
        self.assertNotEqual(runs[0][0], plain[0])
        self.assert_close(runs[0], plain, BOUNDS["f32"])
        self.assertEqual(file.read_text(), text, "nothing was new")

        run = [word for word in common.training(program, self.corpus, *SHORT, f"--algorithms={file}", steps=2) if word != "--no-progress"]
        self.refuse([*run, f"--metrics={file}"], "--metrics and --algorithms both write")
        # Of another device, or another library: timed again, and replaced.
        for name, value, line in (("NAME", "other", "device other,"), ("BLAS", "130100", "library 130100\n")):
            self.assertNotIn(line, file.read_text())
            done = common.run(run, env={**os.environ, f"DYNA_STANDIN_{name}": value})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, r"algorithms of \d+ more classes of products timed in \d+\.\d s")
            self.assertIn(line, file.read_text())
        file.write_text(text.replace(":", "."))
        self.refuse(run, f"{file}:", "remove the file")
        self.refuse([*run, f"--algorithms={self.folder}/no/such/file"], "no/such/file")

    def test_deterministic(self):
        """Nothing is timed, whatever the order of streams; a file is only read."""
        program, file = self.emulated(), self.folder / "algorithms"
        flags = ("--deterministic", f"--algorithms={file}")
        run = common.training(program, self.corpus, *SHORT, steps=2)
        self.refuse([*run, *flags], "no such file", "run once without")
        runs = []
        for seed in (0, 5):
            os.environ["DYNA_STANDIN_SEED"] = str(seed)
            stem = self.run_short(program, f"bare-{seed}", "--deterministic", steps=2)
            runs.append((common.losses(f"{stem}.jsonl"), (stem / "step-2" / "model.safetensors").read_bytes()))
        self.assertEqual(runs[0], runs[1])
        self.run_short(program, "timed", flags[1], steps=1)
        text, runs = file.read_text(), []
        for seed in (0, 5, 6):
            os.environ["DYNA_STANDIN_SEED"] = str(seed)
            # The second step has classes of products that the file has not.
            stem = self.run_short(program, f"fixed-{seed}", *flags, steps=3)
            runs.append((common.losses(f"{stem}.jsonl"), (stem / "step-3" / "model.safetensors").read_bytes()))
            self.assertEqual(file.read_text(), text)
        self.assertEqual(runs[0], runs[1])
        self.assertEqual(runs[0], runs[2])
        self.refuse([*run, *flags, "--tf32"], "setting of TF32")
        self.refuse([*run, *flags], "another device", DYNA_STANDIN_NAME="other")
        # What is free may not decide on plans.
        limited = [*run, "--deterministic", "--recompute=auto", "--in-flight=4"]
        os.environ["DYNA_STANDIN_MEMORY"] = "7000000"
        self.refuse(limited, "--deterministic", "the memory that happens to be free", "--rank-memory")
        common.succeed([*limited, "--rank-memory=6350KiB"])

    def test_what_is_accepted_fits(self):
        """Steps on their way to the device, too: the least memory that is not refused is enough for all steps."""
        missing = re.compile(r"([0-9.]+) (B|KiB|MiB) are missing")
        units = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
        # Many short samples have the most bytes beside their tokens.
        short = self.folder / "short.jsonl"
        short.write_text("".join('{"text": "%s"}\n' % ("abcdefgh"[: 1 + i % 3]) for i in range(3000)))
        for data, flags in ((self.corpus, ("--tokens-per-batch=120", "--tokens-per-micro-batch=70")),
                            (short, ("--tokens-per-batch=2000", "--tokens-per-micro-batch=70"))):
            run = common.training(self.emulated(), data, *flags, steps=4)
            memory, refusals = 1 << 20, 0
            while True:
                done = common.run(run, env={**os.environ, "DYNA_STANDIN_MEMORY": str(memory)})
                if done.returncode == 0:
                    break
                self.assert_refused(done, "of device memory", "are missing")
                number, unit = missing.search(done.stderr).groups()
                # Of what is there a part stays free, and what is missing is said in tenths.
                memory += int((float(number) + 0.05) * units[unit] * 1.002) + 1024
                refusals += 1
                self.assertLess(refusals, 20)
            self.assertGreater(refusals, 0)

    def test_attention_by_cudnn(self):
        """Its plans, made by the library for a GPU, train as own kernels do, within a rounding of other sums."""
        if not (STANDINS / "cudnn" / "libcudnn.so.9").exists():
            self.skipTest("no cuDNN in this build")
        os.environ["DYNA_CUDA_LIBRARY_PATH"] = f"{STANDINS}/cudnn:{STANDINS}/cuda"
        # The workspace of a GPU's plans is taken from the device.
        os.environ["DYNA_STANDIN_MEMORY"] = str(3 << 30)
        # Heads of 8 values: cuDNN has none of another multiple.
        program = common.binary("gpt2", "bf16", EMULATED, (("n_head", 4),))
        own = common.losses(f"{self.run_short(program, 'own', steps=2)}.jsonl")
        dnn = common.losses(f"{self.run_short(program, 'dnn', '--attention=cudnn', steps=2)}.jsonl")
        self.assertNotEqual(own, dnn)
        self.assert_close(dnn, own, BOUNDS["bf16"])

    def test_tf32(self):
        program, flags = self.emulated(), ("--schedule-steps=4", "--warmup=1")
        plain = common.losses(f"{self.run_short(program, 'plain', *flags)}.jsonl")
        rounded = common.losses(f"{self.run_short(program, 'tf32', *flags, '--tf32')}.jsonl")
        self.assertNotEqual(rounded[0], plain[0])
        # Operands with ten bits of mantissa, where bf16 has seven.
        self.assert_close(rounded, plain, BOUNDS["bf16"])
        # The checkpoint knows nothing of it: any program goes on.
        done = common.run([common.binary(), "--resume", self.folder / "tf32", f"--metrics={self.folder}/tf32.jsonl", "--no-progress", "--steps=4"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        run = common.training(self.emulated("gpt2", "bf16"), self.corpus, *SHORT, "--tf32")
        self.refuse(run, "--tf32 is about products of f32", "computes in bf16")
        # Neither is anything to products of own kernels, and nobody is to believe that it is.
        mixed = self.folder / "mixed"
        mixed.mkdir()
        for name, source in (("libcuda.so.1", "cuda"), ("libcublasLt.so.13", "old")):
            (mixed / name).symlink_to(STANDINS / source / name)
        os.environ["DYNA_CUDA_LIBRARY_PATH"] = str(mixed)
        for flag in ("--tf32", f"--algorithms={self.folder}/none"):
            self.refuse(common.training(program, self.corpus, *SHORT, flag), f"{flag.split('=')[0]} is for products by cuBLASLt: ", "is of version 11.4.2 and lacks")

    def test_what_a_binary_says_of_itself(self):
        os.environ["DYNA_CUDA_LIBRARY_PATH"] = f"{STANDINS}/cuda:{STANDINS}/dnn"
        said = common.succeed([self.emulated(), "--describe"])
        self.assertRegex(said, r"cuda\n  kernels for: emulated\n  driver: CUDA 13.0 \(.*libcuda.so.1\)\n"
                               r"  library: cuBLASLt 13.0.0 \(.*libcublasLt.so.13\)\n"
                               r"  (library: cuDNN 9.19.0 \(.*libcudnn.so.9\), for --attention=cudnn|no cuDNN, attention by own kernels alone: compiled without .*)\n"
                               r"  device 0: stand-in, sm_0, 1.0 GiB: runs this program")
        os.environ["DYNA_STANDIN_CAPABILITY"] = "90"
        self.assertRegex(common.succeed([self.emulated(), "--describe"]), r"sm_90, 1.0 GiB: has no code here")
        del os.environ["DYNA_STANDIN_CAPABILITY"]
        self.assertEqual(common.described(self.emulated())["target"], "cuda")
        self.assertEqual(common.described(common.binary())["target"], "cpu")
        os.environ["DYNA_CUDA_LIBRARY_PATH"] = str(self.folder)
        said = common.succeed([self.emulated(), "--describe"])
        self.assertIn("no CUDA driver", said)
        os.environ["DYNA_CUDA_LIBRARY_PATH"] = str(STANDINS / "old")
        said = common.succeed([self.emulated(), "--describe"])
        self.assertRegex(said, r"no cuBLASLt, products by own kernels: .* is of version 11.4.2 and lacks")

    def test_it_needs_no_library(self):
        """Neither CUDA's nor the host's matrix library: what is used is opened when it runs."""
        needed = subprocess.run(["readelf", "-d", self.emulated()], stdout=subprocess.PIPE, text=True, check=True).stdout
        libraries = re.findall(r"\(NEEDED\).*\[(.*)\]", needed)
        self.assertTrue(libraries)
        for library in libraries:
            self.assertRegex(library, r"^(lib(c|m|dl|pthread|stdc\+\+|gcc_s|atomic)\.so|ld-linux)")

    def test_code_for_gpus(self):
        program = common.binary("gpt2", "bf16", ("--target=cuda", "--arch=sm_80,sm_90"))
        self.assertRegex(common.succeed([program, "--describe"]), r"kernels for: (sm_80, sm_90, )?compute_80 \(PTX\) \(toolkit of CUDA \d+, for drivers of CUDA \d+.0 or newer\)\n")
        os.environ.update(DYNA_CUDA_LIBRARY_PATH=f"{STANDINS}/cuda", DYNA_STANDIN_CAPABILITY="90")
        for driver, said in (("13000", "runs this program"), ("12000", "needs a newer driver")):
            os.environ["DYNA_STANDIN_DRIVER"] = driver
            self.assertRegex(common.succeed([program, "--describe"]), f"device 0: .*: {said}\n")
        del os.environ["DYNA_STANDIN_DRIVER"], os.environ["DYNA_STANDIN_CAPABILITY"]
        run = common.training(program, self.corpus, steps=1)
        self.refuse(run, "no CUDA driver", DYNA_CUDA_LIBRARY_PATH=self.folder)
        self.refuse(run, "too old", DYNA_CUDA_LIBRARY_PATH=STANDINS / "old")
        self.refuse(run, "its driver is of CUDA 12.0", "update the driver", DYNA_STANDIN_CAPABILITY=90, DYNA_STANDIN_DRIVER=12000)
        self.refuse(run, "architecture sm_70", "it has sm_80, sm_90, compute_80", "before compute capability 8.0 are not supported", DYNA_STANDIN_CAPABILITY=70)

    def test_bad_input_is_one_line(self):
        program = self.emulated()
        run = common.training(program, self.corpus, *SHORT, steps=2)
        self.refuse(run, "architecture sm_90", "it has emulated", DYNA_STANDIN_CAPABILITY=90)
        self.refuse([*run, "--device=1"], "there is no CUDA device 1: the driver has 1")
        self.refuse(run, "finds no device", DYNA_STANDIN_DEVICES=0)
        self.refuse([*run, "--strategy=dp=2"], "has 2 ranks", "one device and 1 rank")
        self.refuse(run, "of device memory", "are missing", DYNA_STANDIN_MEMORY=1 << 20)
        self.refuse(run, "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA device 0 (stand-in)", DYNA_STANDIN_FAULT=200)
        with common.measured() as took:
            common.succeed(run)
        self.refuse([*run, f"--timeout={took.times(2)}"], "not done by its deadline", DYNA_STANDIN_HANG=200)
        self.refuse([*run, "--attention=fast"], "--attention", "own", "cudnn")
        self.refuse([*run, "--attention=cudnn"], "--attention=cudnn is for attention in bf16", "computes in f32")
        small = common.binary("gpt2", "bf16", EMULATED, (("n_head", 8),))
        size = common.described(small)["facts"]["head_dim"]
        self.assertNotEqual(int(size) % 8, 0)
        run = common.training(small, self.corpus, *SHORT, steps=2)
        self.refuse([*run, "--attention=cudnn"], "--attention=cudnn takes heads of a multiple of 8", f"have {size}: leave it out")
        run = common.training(common.binary("gpt2", "bf16", EMULATED, (("n_head", 4),)), self.corpus, *SHORT, steps=2)
        self.refuse([*run, "--attention=cudnn"], "--attention=cudnn: ", "; --attention=own needs no library")
        for flag in ("--device=0", "--tf32", "--deterministic", f"--algorithms={self.folder}/algorithms"):
            self.refuse(common.training(common.binary(), self.corpus, flag), f"{flag.split('=')[0]} is for programs of dynac --target=cuda")


if __name__ == "__main__":
    common.main()
