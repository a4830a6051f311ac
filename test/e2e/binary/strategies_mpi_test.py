#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks as processes: the numbers of one rank, too few processes, and one that is killed."""

import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest

import common
import strategies_common as strategies
from strategies_common import Case

# mpirun refuses to run as root, as containers do, unless told twice.
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
MPIRUN = shutil.which("mpirun")


def launcher(processes):
    return [MPIRUN, "--oversubscribe", "-n", str(processes)]


def processes_of(binary):
    """Ids of the living processes that run a program."""
    found = []
    for path in pathlib.Path("/proc").iterdir():
        try:
            words = (path / "cmdline").read_bytes().split(b"\0") if path.name.isdigit() else []
            state = (path / "stat").read_text().rsplit(")", 1)[1].split()[0] if words else "Z"
        except OSError:
            continue
        if words and words[0].decode() == str(binary) and state != "Z":
            found.append(int(path.name))
    return found


@unittest.skipUnless(MPIRUN, "no mpirun")
class MpiTest(strategies.StrategiesTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if missing := common.missing_libraries("mpi"):
            raise unittest.SkipTest("dynac has no MPI: " + missing)

    def binary(self, family="gpt2"):
        return strategies.program(family, "f64", (2, 4), ("--with=mpi",))

    def test_numbers_are_those_of_one_rank(self):
        cases = [Case("gpt2", 2, 2, 1, 1, 1, "selective"), Case("gpt2", 1, 2, 2, 0, 0, "none"),
                 Case("gpt2", 2, 1, 2, 1, 0, "full"), Case("llama", 1, 4, 1, 0, 1, "none"),
                 Case("llama", 2, 2, 2, 1, 1, "full"),
                 # Without ZeRO: sums that all replicas get.
                 Case("gpt2", 2, 1, 1, 0, 0, "none"), Case("gpt2", 2, 1, 2, 0, 0, "selective")]
        for case in cases:
            with self.subTest(case=case.label):
                self.reference(case.family)
                self.assertIsNone(self.run_and_compare(case, launcher(case.ranks), binary=self.binary(case.family)))

    def test_processes_and_threads_have_the_same_bits(self):
        case = Case("llama", 2, 2, 1, 1, 0, "none")
        binary = self.binary("llama")
        stems = [self.runs / "threads", self.runs / "processes"]
        for stem, words in zip(stems, ((), launcher(4))):
            strategies.train(binary, self.corpus, case, stem, launcher=words)
        for name in ("model.safetensors", "optimizer.safetensors"):
            self.assertEqual(*((stem / f"step-{strategies.STEPS}" / name).read_bytes() for stem in stems))

    def test_layers_move_between_processes(self):
        """Rank 0 decides, and all processes move. One stage has nine of ten layers, so there is much to move."""
        stays, moves = self.folder / "stays", self.folder / "moves"
        words = [self.binary(), "--data", self.corpus, "--steps=12", "--strategy=pp=2,layers=1+9", "--clip=0",
                 "--micro-batches=tokens", "--pipeline=1f1b", "--tokens-per-batch=512", "--tokens-per-micro-batch=64",
                 "--threads=1", "--no-progress"]
        common.succeed([*words, f"--save={stays}"])
        done = common.run([*launcher(2), *words, f"--save={moves}", f"--metrics={moves}.jsonl",
                           "--rebalance=time,every=3,margin=-1,slower=1000"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('"answer": "move"', pathlib.Path(f"{moves}.jsonl").read_text())
        for name in ("model.safetensors", "optimizer.safetensors"):
            self.assertEqual(*((stem / "step-12" / name).read_bytes() for stem in (stays, moves)))

    def test_processes_are_as_many_as_ranks(self):
        for processes in (1, 2, 3, 5):
            with self.subTest(processes=processes):
                save = self.folder / "save"
                case = Case("gpt2", 2, 2, 1, 0, 0, "none")
                done = common.run([*launcher(processes), *strategies.command(self.binary(), self.corpus, case,
                                                                             f"--save={save}")])
                self.assertEqual(done.returncode, 2, done.stderr + done.stdout)
                # Of every process the same line; mpirun adds its own.
                said = {line for line in done.stderr.splitlines() if "4 ranks need as many processes" in line}
                self.assertEqual(len(said), 1, done.stderr)
                self.assertIn(f" {processes}", said.pop())
                self.assertFalse(save.exists())

    def together(self, *commands):
        """One process of each command, as one job."""
        words = launcher(1)[:-2]
        for i, command in enumerate(commands):
            words = [*words, *([":"] if i else []), "-n", "1", *command]
        return common.run(words)

    def test_processes_do_the_same_or_nothing(self):
        other = self.folder / "other"
        other.mkdir()
        (other / "a.txt").write_text("something else to learn from, long enough for a few samples " * 20)
        binary, llama = self.binary(), self.binary("llama")

        def run(*flags, binary=binary, data=self.corpus, strategy="dp=2"):
            return [binary, "--data", data, "--steps=2", "--tokens-per-batch=512", "--tokens-per-micro-batch=64",
                    "--no-progress", f"--strategy={strategy}", *flags]

        costs = {}
        for name, seconds, comment in (("one", 1, ""), ("same", 1, "# Comments are no costs.\n"), ("other", 2, "")):
            costs[name] = self.folder / f"{name}.costs"
            costs[name].write_text(f'{comment}entries {{ kind: "block" direction: FORWARD points {{ tokens: 64 seconds: {seconds} }} }}\n')

        for first, second, word in ((run(strategy="pp=2,layers=5+5"), run(strategy="pp=2,layers=4+6"), "strategy"),
                                    (run(), run(strategy="pp=2"), "strategy"),
                                    (run(), run(data=other), "data"),
                                    (run(), run("--seed=4"), "--seed"),
                                    (run(), run("--steps=3"), "--steps"),
                                    (run(), run("--clip=7"), "--clip"),
                                    (run("--costs", costs["one"]), run("--costs", costs["other"]), "costs"),
                                    (run("--costs", costs["one"]), run(), "costs"),
                                    (run(), run(binary=llama), "compiled model")):
            with self.subTest(word=word):
                done = self.together(first, second)
                self.assertEqual(done.returncode, 2, done.stderr + done.stdout)
                self.assertIn(f"rank 1 differs from rank 0 in its {word} (", done.stderr)
        # Names of strategies are not what they mean; threads and outputs are everybody's own.
        self.assertEqual(self.together(run("--threads=1"), run("--threads=2", f"--metrics={self.folder / 'm'}")).returncode, 0)
        # So are files with the same contents.
        self.assertEqual(self.together(run("--costs", costs["one"]), run("--costs", costs["same"])).returncode, 0)

    def test_processes_start_from_one_checkpoint(self):
        stem, save = self.folder / "start", self.folder / "save"
        flags = ["--tokens-per-batch=512", "--tokens-per-micro-batch=64", "--no-progress"]
        common.succeed([self.binary(), "--data", self.corpus, *flags, "--steps=2", "--strategy=dp=2", f"--save={stem}",
                        "--save-every=1"])

        def load(*words):
            return [self.binary(), "--data", self.corpus, *flags, "--steps=1", "--strategy=dp=2", f"--save={save}", *words]

        def resume(step):  # of two steps: one of them has nothing left to do
            return [self.binary(), "--resume", stem / f"step-{step}", "--no-progress", "--steps=2", f"--save={save}"]

        for commands in ((load("--load", stem / "step-1"), load("--load", stem / "step-2")), (load("--load", stem), load()),
                         (resume(1), resume(2)), (resume(2), resume(1))):
            with self.subTest(commands=commands):
                done = self.together(*commands)
                self.assertEqual(done.returncode, 2, done.stderr + done.stdout)
                self.assertIn("rank 1 differs from rank 0 in its checkpoint (", done.stderr)
                self.assertFalse(save.exists())
        done = self.together(resume(2), resume(2))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("nothing is left to do"), 1)
        copy = self.folder / "copy"
        shutil.copytree(stem / "step-1", copy / "step-1")
        self.assertEqual(self.together(load("--load", stem / "step-1"), load("--load", copy)).returncode, 0)

    def start(self, words, processes, stem):
        """A job that has written metrics of a few steps, and the ids of its processes."""
        job = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        limit = time.monotonic() + common.PATIENCE
        while not (stem.exists() and stem.read_text().count("\n") > 3):
            self.assertIsNone(job.poll(), "the run ended too early")
            self.assertLess(time.monotonic(), limit, "the run does not get on")
            time.sleep(0.02)
        pids = processes_of(self.binary())
        self.assertEqual(len(pids), processes)
        return job, pids

    def rank_of(self, pid):
        for word in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if word.startswith(b"OMPI_COMM_WORLD_RANK="):
                return int(word.split(b"=")[1])
        return self.fail("Open MPI says no rank")

    def end(self, job, pids):
        for pid in set(pids) & set(processes_of(self.binary())):
            os.kill(pid, signal.SIGKILL)
        if job.poll() is None:
            job.kill()

    def test_a_rank_that_stands_still_is_given_up_at_its_deadline(self):
        metrics, case = self.folder / "m.jsonl", Case("gpt2", 2, 1, 1, 0, 0, "none")
        # Far longer than a whole run takes.
        with common.measured() as took:
            common.succeed([*launcher(2), *strategies.command(self.binary(), self.corpus, case)])
        deadline = took.times(2)
        words = strategies.command(self.binary(), self.corpus, case, f"--timeout={deadline}", f"--metrics={metrics}", steps=100000)
        job, pids = self.start([*launcher(2), *words], 2, metrics)
        try:
            stopped = self.rank_of(pids[1])
            os.kill(pids[1], signal.SIGSTOP)
            _, err = job.communicate(timeout=common.PATIENCE)
            # No fault of Dyna itself, which would be 1.
            self.assertEqual(job.returncode, 2, err)
            self.assertRegex(err, rf"not done after {deadline} seconds?; rank {stopped} stands still")
            self.assertNotRegex(err, r"rank (\d+): rank \1\b")
        finally:
            self.end(job, pids)

    def test_what_one_rank_cannot_read_ends_all(self):
        # Both have the same data; that of rank 1 is cut off during the run.
        lines = 400 * '{"text": "both ranks read these, each from a file of its own"}\n'
        files = [self.folder / f"{rank}.jsonl" for rank in (0, 1)]
        for path in files:
            path.write_text(lines)
        metrics, save = self.folder / "m.jsonl", self.folder / "save"
        words = launcher(1)[:-2]
        for rank, path in enumerate(files):
            words += [*([":"] if rank else []), "-n", "1", self.binary(), "--data", path, "--steps=100000", "--no-progress",
                      "--tokens-per-batch=512", "--strategy=dp=2", f"--save={save}", *([] if rank else [f"--metrics={metrics}"])]
        job, pids = self.start(words, 2, metrics)
        try:
            os.truncate(files[1], 100)
            _, err = job.communicate(timeout=common.PATIENCE)
            self.assertNotEqual(job.returncode, 0)
            self.assertIn("1.jsonl has become shorter while it was in use", err)
            # After all have saved what they had.
            self.assertIn(f"(the run up to step {len(common.lines_of(metrics))} is in {save})", err)
            self.assertTrue((save / f"step-{len(common.lines_of(metrics))}" / "checkpoint.json").exists())
        finally:
            self.end(job, pids)

    def test_metrics_that_cannot_be_written_cost_no_training(self):
        save = self.folder / "save"
        words = strategies.command(self.binary(), self.corpus, Case("gpt2", 2, 1, 1, 0, 0, "none"), "--metrics=/dev/full",
                                   f"--save={save}")
        done = common.run([*launcher(2), *words])
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("warning: cannot write /dev/full", done.stderr)
        self.assertIn("all steps were done", done.stderr)
        self.assertTrue((save / f"step-{strategies.STEPS}" / "checkpoint.json").exists())

    def test_one_that_never_starts_is_given_up_at_the_deadline(self):
        # The second process of the job is none of ours, and never calls MPI (limit-is-tested).
        command = common.training(self.binary(), self.corpus, "--strategy=dp=2", "--timeout=5")
        began = time.monotonic()
        done = common.run([MPIRUN, "--oversubscribe", "-n", "1", *command, ":", "-n", "1", "sleep", "600"])
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("not all processes of the job have started after 5 seconds", done.stderr)
        self.assertGreaterEqual(time.monotonic() - began, 5)

    def test_one_that_fails_before_it_has_met_the_others_ends_all(self):
        command = [self.binary(), "--data", self.corpus, "--steps=3", "--no-progress", "--tokens-per-batch=512", "--strategy=dp=2"]
        for flags, word in ((["--data=/none"], "/none"), (["--load=/none"], "/none"), (["--memory-limit=1K"], "--memory-limit")):
            with self.subTest(flags=flags):
                done = self.together(command, [*command, *flags])
                self.assertEqual(done.returncode, 2, done.stderr + done.stdout)
                self.assertIn(word, done.stderr)

    def test_divergence_is_everybodys(self):
        case = Case("gpt2", 2, 1, 2, 1, 0, "none")
        save, metrics = self.folder / "save", self.folder / "m.jsonl"
        flags = ["--lr=1e6", "--min-lr=1e6", "--weight-decay=1e6", f"--save={save}", f"--metrics={metrics}"]
        words = strategies.command(self.binary(), self.corpus, case, *flags, steps=100)
        done = common.run([*launcher(case.ranks), *words])
        self.assertEqual(done.returncode, 2, done.stderr)
        lines = common.lines_of(metrics)
        self.assertIn(f"step {len(lines)}: the ", done.stderr)
        self.assertIsNone(lines[-1]["gradient_norm"])
        self.assertIn(f"the run up to step {len(lines) - 1} is in {save}", done.stderr)
        numbers = common.tensors(save / f"step-{len(lines) - 1}" / "optimizer.safetensors")
        self.assertTrue(all(math.isfinite(x) for values in numbers.values() for x in values))

    def test_processes_of_a_machine_share_its_cores(self):
        def threads(done):
            self.assertEqual(done.returncode, 0, done.stderr)
            return [int(n) for n in re.findall(r"host, (\d+) thread", done.stderr)]

        run = [self.binary(), "--data", self.corpus, "--steps=1", "--tokens-per-batch=512"]
        cores = threads(common.run(run))[0]
        words = [*launcher(2), "--bind-to", "none"]
        self.assertEqual(threads(common.run([*words, *run, "--strategy=dp=2"])), [max(1, cores // 2)])
        self.assertEqual(threads(common.run([*words, *run, "--strategy=dp=2", "--threads=3"])), [3])
        # Ranks as threads share them too.
        self.assertEqual(threads(common.run([*run, "--strategy=dp=2"])), [max(1, cores // 2)])

    def test_a_signal_to_one_process_ends_all_after_a_save(self):
        metrics, save = self.folder / "m.jsonl", self.folder / "save"
        words = strategies.command(self.binary(), self.corpus, Case("gpt2", 2, 1, 1, 0, 0, "none"), f"--metrics={metrics}",
                                   f"--save={save}", steps=100000)
        job, pids = self.start([*launcher(2), *words], 2, metrics)
        try:
            os.kill(pids[1], signal.SIGTERM)
            out, err = job.communicate(timeout=common.PATIENCE)
            self.assertEqual(job.returncode, 128 + signal.SIGTERM, err)
            self.assertIn("stopped by a signal after step", out)
            self.assertEqual(len([path for path in save.iterdir() if path.name.startswith("step-")]), 1)
        finally:
            self.end(job, pids)

    def test_a_signal_to_one_process_drops_the_step_of_all(self):
        """In a long step: every rank leaves out what is left of it, and the state before it is saved."""
        for case, process in ((Case("gpt2", 2, 1, 1, 1, 0, "none"), 1), (Case("gpt2", 1, 2, 2, 0, 1, "full"), 3)):
            with self.subTest(case=case.label):
                metrics, save = self.folder / f"{case.label}.jsonl", self.folder / case.label
                # A step of more than a hundred micro-batches takes a second or more.
                data = "synthetic:equal=30:documents=4000"
                flags = ["--tokens-per-batch=4000", "--tokens-per-micro-batch=32", "--schedule=constant", "--warmup=0", "--threads=1"]
                words = strategies.command(self.binary(), data, case, *flags, f"--metrics={metrics}", f"--save={save}", steps=1000)
                job = subprocess.Popen([str(word) for word in [*launcher(case.ranks), *words]], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
                pids = []
                try:
                    limit = time.monotonic() + common.PATIENCE
                    while not (metrics.exists() and metrics.read_text().count("\n") > 0):
                        self.assertIsNone(job.poll(), "the run ended too early")
                        self.assertLess(time.monotonic(), limit, "the run does not get on")
                        time.sleep(0.02)
                    time.sleep(0.2)  # into the next step
                    pids = sorted(processes_of(self.binary()), key=self.rank_of)
                    os.kill(pids[process], signal.SIGUSR2)
                    out, err = job.communicate(timeout=common.PATIENCE)
                finally:
                    self.end(job, pids)
                self.assertEqual(job.returncode, 128 + signal.SIGUSR2, err)
                steps = len(common.lines_of(metrics))
                self.assertIn(f"after step {steps}; the step under way was dropped", out)
                whole = self.folder / f"{case.label}-whole"
                common.succeed(strategies.command(self.binary(), data, case, *flags, f"--save={whole}", steps=steps))
                for name in ("model.safetensors", "optimizer.safetensors"):
                    self.assertEqual(*((folder / f"step-{steps}" / name).read_bytes() for folder in (save, whole)), name)

    def test_a_signal_to_one_process_during_the_evaluation_ends_all(self):
        def catches(pid):
            mask = re.search(r"SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)
            return int(mask, 16) >> (signal.SIGTERM - 1) & 1

        words = strategies.command(self.binary(), self.corpus, Case("gpt2", 2, 1, 1, 0, 0, "none"), f"--save={self.folder / 'save'}",
                                   "--held-out=synthetic:multitask:documents=100000", "--held-out-tokens=1000000000")
        job = subprocess.Popen([str(word) for word in [*launcher(2), *words]], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
        pids = []
        try:
            limit = time.monotonic() + common.PATIENCE
            while len(pids) < 2 or not all(catches(pid) for pid in pids):
                self.assertIsNone(job.poll(), "the run ended too early")
                self.assertLess(time.monotonic(), limit, "the run does not get on")
                time.sleep(0.02)
                pids = processes_of(self.binary())
            os.kill(pids[1], signal.SIGTERM)
            out, err = job.communicate(timeout=common.PATIENCE)
            self.assertEqual(job.returncode, 128 + signal.SIGTERM, err)
            self.assertIn("before a step was done", out)
        finally:
            self.end(job, pids)

    def test_processes_need_a_strategy(self):
        done = common.run([*launcher(2), self.binary(), "--data", self.corpus, "--steps=1", "--no-progress"])
        self.assertEqual(done.returncode, 2, done.stderr + done.stdout)
        self.assertIn("2 processes were started, but no --strategy says", done.stderr)
        self.assertIn("--strategy dp=2", done.stderr)

    def test_a_killed_process_ends_the_job(self):
        case = Case("gpt2", 2, 1, 2, 1, 0, "none")
        binary = self.binary()
        save = self.folder / "save"
        words = strategies.command(binary, self.corpus, case, f"--save={save}", "--save-every=1", steps=100000)
        job = subprocess.Popen([str(word) for word in [*launcher(case.ranks), *words]], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        try:
            limit = time.monotonic() + common.PATIENCE
            while not (save.exists() and any(path.name.startswith("step-") for path in save.iterdir())):
                self.assertIsNone(job.poll(), "the run ended too early")
                self.assertLess(time.monotonic(), limit, "the run does not get on")
                time.sleep(0.02)
            pids = processes_of(binary)
            self.assertEqual(len(pids), case.ranks)
            os.kill(pids[2], signal.SIGKILL)
            _, err = job.communicate(timeout=common.PATIENCE)
            self.assertNotEqual(job.returncode, 0, err)
            limit = time.monotonic() + common.PATIENCE
            while set(pids) & set(processes_of(binary)):
                self.assertLess(time.monotonic(), limit, "processes stay")
                time.sleep(0.1)
        finally:
            if job.poll() is None:
                job.terminate()
                job.communicate(timeout=common.PATIENCE)
        last = max(int(re.sub(r"\D", "", path.name)) for path in save.iterdir() if path.name.startswith("step-"))
        # Under another strategy, in one process: the checkpoint is whole.
        common.succeed([binary, "--resume", save, "--no-progress", f"--steps={last + 1}", "--strategy=dp=1,tp=2"])
        self.assertTrue((save / f"step-{last + 1}").exists())


if __name__ == "__main__":
    common.main()
