#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs that end early, in every way, and go on as if nothing had happened."""

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time

import common

FILES = ("model.safetensors", "optimizer.safetensors")


class ResumeTest(common.BinaryTest):
    def assert_same_checkpoint(self, one, other, step):
        for name in FILES:
            self.assertEqual((one / f"step-{step}" / name).read_bytes(), (other / f"step-{step}" / name).read_bytes(), name)

    def resume(self, program, stem, *flags):
        common.succeed([program, "--resume", stem, f"--metrics={stem}.jsonl", "--no-progress", *flags])

    def steps_of(self, stem):
        return sorted(int(path.name[5:]) for path in stem.iterdir() if path.name.startswith("step-"))

    def start(self, program, stem, steps, *flags):
        command = common.training(program, self.corpus, f"--save={stem}", f"--metrics={stem}.jsonl",
                                  f"--schedule-steps={steps}", "--warmup=2", *flags, steps=steps)
        return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def wait_for(self, condition, process):
        limit = time.monotonic() + common.PATIENCE
        while not condition():
            self.assertIsNone(process.poll(), "the run ended too early")
            self.assertLess(time.monotonic(), limit, "the run does not get on")
            time.sleep(0.01)

    def test_resuming_is_bitwise_the_same(self):
        for name, compute_type, more in (("gpt2", "f32", ["--in-flight=2", "--tokens-per-micro-batch=100"]),
                                         ("llama", "bf16", []), ("llama", "f64", ["--recompute=full"])):
            with self.subTest(model=name, type=compute_type):
                program = common.binary(name, compute_type)
                # Warm-up and schedule are those of the whole run from the start.
                flags = ["--schedule-steps=9", "--warmup=2", *more]
                whole = self.train(program, f"{name}-{compute_type}-whole", *flags, steps=9)
                parts = self.train(program, f"{name}-{compute_type}-parts", *flags, steps=4)
                # Extended twice: the corpus is passed several times on the way.
                self.resume(program, parts, "--steps=7")
                self.resume(program, parts, "--steps=9")
                self.assertEqual(common.losses(f"{whole}.jsonl"), common.losses(f"{parts}.jsonl"))
                self.assert_same_checkpoint(whole, parts, 9)

    def test_a_finished_run_has_nothing_left_to_do(self):
        stem = self.train(common.binary(), "run")
        # No failure: a queue that starts the run again and again must see its end.
        said = common.succeed([common.binary(), "--resume", stem])
        self.assertIn("has done 4 of 4 steps: nothing is left to do; more --steps continue it", said)
        self.assertEqual(self.steps_of(stem), [4])

    def test_halves_of_a_schedule_are_the_whole(self):
        program = common.binary()
        whole = self.train(program, "whole", steps=40)
        half = self.train(program, "half", "--schedule-steps=40", steps=20)
        self.assertEqual(common.losses(f"{whole}.jsonl")[:20], common.losses(f"{half}.jsonl"))

    def test_loading_into_a_narrower_type_is_said(self):
        wide = self.train(common.binary("gpt2", "f64"), "wide")
        for compute_type in ("f32", "bf16"):
            for flags in (["--evaluate"], ["--steps=1"]):
                done = common.run([common.binary("gpt2", compute_type), "--load", wide, "--data", self.corpus,
                                   "--no-progress", *flags])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"{wide}/step-4 holds parameters as F64", done.stderr)
                self.assertIn("rounded to F32", done.stderr)
        narrow = self.train(common.binary("gpt2", "f32"), "narrow")
        done = common.run([common.binary("gpt2", "bf16"), "--load", narrow, "--data", self.corpus, "--evaluate", "--no-progress"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_another_model_of_the_same_shapes_is_noticed(self):
        """Heads and rotations leave no trace in the shapes of tensors: the configuration beside them tells."""
        for name, change, said in (("gpt2", ("n_head", 4), "n_head is 2 there and 4 here"),
                                   ("llama", ("rms_norm_eps", 0.1), "rms_norm_eps is 1e-06 there and 0.1 here")):
            saved = self.train(common.binary(name), f"one-{name}")
            other = common.binary(name, changes=(change,))
            before = sorted(saved.rglob("*"))
            done = common.run([other, "--resume", saved, "--steps=6", "--no-progress"])
            self.assert_refused(done, "is of another model than this program", said, "--load")
            self.assertEqual(sorted(saved.rglob("*")), before)
            for task in (["--evaluate"], ["--steps=1", "--no-progress"]):
                done = common.run([other, "--load", saved, "--data", self.corpus, "--tokens-per-batch=256", *task])
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(said, done.stderr)
                # Of the same model nothing is said.
                done = common.run([common.binary(name), "--load", saved, "--data", self.corpus, "--tokens-per-batch=256", *task])
                self.assertNotIn(" there and ", done.stderr)

    def test_signals_save_and_end_well(self):
        program = common.binary()
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number.name):
                whole = self.folder / f"{number.name}-whole"
                steps = 600
                stem = self.folder / number.name
                process = self.start(program, stem, steps)
                metrics = self.folder / f"{number.name}.jsonl"
                self.wait_for(lambda: metrics.exists() and metrics.read_text().count("\n") >= 3, process)
                process.send_signal(number)
                _, err = process.communicate(timeout=common.PATIENCE)
                # What shells expect of a program that a signal has ended.
                self.assertEqual(process.returncode, 128 + number, err)
                saved = self.steps_of(stem)
                self.assertEqual(len(saved), 1)
                self.assertLess(saved[0], steps, "the signal came too late to show anything")
                self.assertEqual(len(common.losses(metrics)), saved[0])
                end = saved[0] + 3
                self.resume(program, stem, f"--steps={end}")
                common.succeed(common.training(program, self.corpus, f"--save={whole}", f"--metrics={whole}.jsonl",
                                               f"--schedule-steps={steps}", "--warmup=2", steps=end))
                self.assertEqual(common.losses(f"{whole}.jsonl"), common.losses(metrics))
                self.assert_same_checkpoint(whole, stem, end)

    def test_signals_at_any_moment_are_harmless(self):
        # The matrix library moves the stack pointer: a handler that runs on the
        # interrupted stack destroyed the heap in one of five runs.
        program = common.binary()
        for attempt in range(25):
            with self.subTest(attempt=attempt):
                process = self.start(program, self.folder / str(attempt), 100000)
                metrics = self.folder / f"{attempt}.jsonl"
                self.wait_for(lambda: metrics.exists() and metrics.stat().st_size > 0, process)
                time.sleep(random.random() * 0.05)
                process.terminate()
                _, err = process.communicate(timeout=common.PATIENCE)
                self.assertEqual(process.returncode, 128 + signal.SIGTERM, err)

    def test_kills_leave_a_loadable_checkpoint(self):
        program = common.binary()
        generator = random.Random()
        seed = generator.randrange(1 << 30)
        generator.seed(seed)
        for attempt in range(10):
            with self.subTest(attempt=attempt, seed=seed):
                stem = self.folder / str(attempt)
                process = self.start(program, stem, 100000, "--save-every=1")
                self.wait_for(lambda: stem.exists() and self.steps_of(stem), process)
                time.sleep(generator.random() * 0.15)
                process.kill()
                process.communicate(timeout=common.PATIENCE)
                saved = self.steps_of(stem)
                self.assertIn(len(saved), (1, 2, 3))
                out = common.succeed([program, "--evaluate", "--load", stem, "--data", self.corpus, "--no-progress"])
                self.assertIn("loss", out)
                # And the run goes on from there, with the numbers it would have had.
                end = saved[-1] + 2
                self.resume(program, stem, f"--steps={end}")
                self.assertEqual(self.steps_of(stem)[-1], end)
                self.assertLessEqual(len(self.steps_of(stem)), 2)
                self.assertFalse(list(stem.glob(".*")), "what the killed run had begun is still there")

    def test_killed_runs_continue_with_the_same_numbers(self):
        program = common.binary()
        stem, whole = self.folder / "killed", self.folder / "whole"
        process = self.start(program, stem, 100000, "--save-every=1")
        self.wait_for(lambda: stem.exists() and self.steps_of(stem) and self.steps_of(stem)[-1] >= 3, process)
        process.kill()
        process.communicate(timeout=common.PATIENCE)
        end = self.steps_of(stem)[-1] + 2
        self.resume(program, stem, f"--steps={end}")
        common.succeed(common.training(program, self.corpus, f"--save={whole}", "--schedule-steps=100000", "--warmup=2", steps=end))
        self.assert_same_checkpoint(whole, stem, end)

    def test_the_last_two_are_kept(self):
        stem = self.train(common.binary(), "run", "--save-every=2", steps=9)
        self.assertEqual(self.steps_of(stem), [8, 9])
        self.assertEqual({path.name for path in stem.iterdir()}, {"step-8", "step-9"})
        state = json.loads((stem / "step-9" / "state.json").read_text())
        self.assertEqual(state["step"], 9)
        more = self.train(common.binary(), "more", "--save-every=2", "--keep=3", steps=9)
        self.assertEqual(self.steps_of(more), [6, 8, 9])
        # The number is the run's own, until it is told another.
        self.resume(common.binary(), more, "--steps=10")
        self.assertEqual(self.steps_of(more), [8, 9, 10])
        self.resume(common.binary(), more, "--steps=11", "--keep=1")
        self.assertEqual(self.steps_of(more), [11])

    def on_a_small_disk(self, kib, *flags, inodes=0, kind="tmpfs"):
        """A run that saves each step to a disk of its own, the steps that are there at its end, and what else it said."""
        disk = self.folder / "disk"
        disk.mkdir(exist_ok=True)
        words = common.training(common.binary(), self.corpus, f"--save={disk}/s", "--save-every=1", *flags)
        script = 'mount -t "$1" -o size="$2"k,nr_inodes="$3" none "$4" || exit 9; disk="$4"; shift 4; "$@"; code=$?; ls -A "$disk/s" >&2; exit $code'
        done = common.run(["unshare", "-rm", "sh", "-c", script, "sh", kind, kib, inodes, disk, *words])
        lines = done.stderr.splitlines()
        return done, [line for line in lines if line.startswith("step-")], [line for line in lines if not line.startswith("step-")]

    def test_the_room_of_all_checkpoints_is_proven(self):
        done, _, said = self.on_a_small_disk(64)
        if done.returncode != 2:
            self.skipTest("no right to mount a disk here: " + done.stderr)
        count, size, unit = re.search(r"s: (\d) checkpoints of ([0-9.]+) (.iB) cannot be written: .*the disk is full; .*"
                                      r"--keep 2, a lower one or --remove-first needs less$", said[-1]).groups()
        self.assertEqual(int(count), 3)
        kib = int(float(size) * {"KiB": 1, "MiB": 1024}[unit]) + 64
        # Before the first step, not at the third save.
        done, steps, said = self.on_a_small_disk(2 * kib)
        self.assertEqual((done.returncode, steps), (2, []), done.stderr)
        done, steps, said = self.on_a_small_disk(3 * kib)
        self.assertEqual((done.returncode, steps, said), (0, ["step-3", "step-4"], []))
        done, steps, said = self.on_a_small_disk(2 * kib, "--remove-first")
        self.assertEqual((done.returncode, steps[-1], said), (0, "step-4", []), done.stderr)
        done, steps, said = self.on_a_small_disk(2 * kib, "--keep=1")
        self.assertEqual((done.returncode, steps, said), (0, ["step-4"], []))
        # One save needs no more than its own room.
        done, steps, said = self.on_a_small_disk(kib, "--save-every=0")
        self.assertEqual((done.returncode, steps, said), (0, ["step-4"], []))

    def test_a_lack_of_inodes_is_no_full_disk(self):
        def fails(inodes):
            done, steps, said = self.on_a_small_disk(1 << 16, inodes=inodes)
            if "mount" in done.stderr:
                self.skipTest("no right to mount a disk here: " + done.stderr)
            self.assertEqual((done.returncode, steps), (2, []), done.stderr)
            self.assertNotIn("the disk is full", done.stderr)
            return said[-1]

        # A disk, the folder and its lock, without a file of a checkpoint; with some, but not all that are there at once.
        self.assertRegex(fails(3), "its file system holds as many files as it may .no inode is free.; remove some files")
        self.assertRegex(fails(24), "3 checkpoints of .* cannot be written: .* has inodes for [0-9]+ more files, and 18 are needed; "
                                    "remove some files or .*--keep 2, a lower one or --remove-first needs less$")
        done, steps, said = self.on_a_small_disk(1 << 16, inodes=40)
        self.assertEqual((done.returncode, steps, said), (0, ["step-3", "step-4"], []), done.stderr)

    def test_a_file_system_without_a_size_is_not_full(self):
        done, steps, said = self.on_a_small_disk(0, kind="ramfs")
        if "mount" in done.stderr:
            self.skipTest("no right to mount a disk here: " + done.stderr)
        self.assertEqual((done.returncode, steps, said), (0, ["step-3", "step-4"], []), done.stderr)

    def test_other_causes_are_not_called_a_lack_of_room(self):
        # As few as start a program, and as a save has open.
        words = [common.binary(), "--data", self.corpus, "--steps=1", "--no-progress", f"--save={self.folder}/s"]
        said = set()
        for limit in range(4, 16):
            done = common.run(words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
            if done.returncode == 2 and "--save" in done.stderr:
                said.add(done.stderr)
                self.assert_refused(done, "this process has as many open files as it may; raise the limit (ulimit -n)")
            shutil.rmtree(self.folder / "s", ignore_errors=True)
        self.assertTrue(said)
        if os.geteuid() == 0 and not shutil.which("setpriv"):
            return  # root may write anywhere
        folder = self.folder / "locked"
        folder.mkdir()
        folder.chmod(0o555)
        words = [*words[:-1], f"--save={folder}"]
        if os.geteuid() == 0:
            words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *words]
        done = common.run(words)
        if str(folder) in done.stderr:  # else others may not enter the folders above
            self.assert_refused(done, f"--save {folder}: ", "Permission denied; check its permissions")
            self.assertNotIn("no room", done.stderr)

    def test_evaluation_of_a_saved_model(self):
        program = common.binary()
        stem = self.train(program, "run", "--held-out-fraction=0.3", steps=12)
        ends = [json.loads(line) for line in stem.with_suffix(".jsonl").read_text().splitlines() if "held_out" in line]
        self.assertLess(ends[1]["loss"], ends[0]["loss"])
        outs = [common.succeed([program, "--evaluate", "--load", path, "--data", self.corpus, "--no-progress",
                                f"--metrics={self.folder}/e{i}.jsonl"]) for i, path in enumerate((stem, stem / "step-12"))]
        self.assertIn("loss", outs[0])
        first, second = (json.loads((self.folder / f"e{i}.jsonl").read_text())["loss"] for i in (0, 1))
        self.assertEqual(first, second)
        untrained = common.run([program, "--evaluate", "--data", self.corpus, "--no-progress", f"--metrics={self.folder}/u.jsonl"])
        self.assertEqual(untrained.returncode, 0)
        self.assertIn("warning: no --load", untrained.stderr)
        self.assertGreater(json.loads((self.folder / "u.jsonl").read_text())["loss"], first)


if __name__ == "__main__":
    common.main()
