#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bad input to a training binary: one clear line, exit code 2, nothing half written."""

import json
import os
import re
import resource
import struct
import unittest

import common

MAGIC = b"MMIDIDX\x00\x00"


def megatron(stem, documents, token_type=8):
    """Writes .idx and .bin of documents of uint16 (8) or int32 (4) tokens."""
    letter, size = {8: ("H", 2), 4: ("i", 4)}[token_type]
    lengths = [len(document) for document in documents]
    offsets = [sum(lengths[:i]) * size for i in range(len(lengths))]
    index = MAGIC + struct.pack("<QBQQ", 1, token_type, len(documents), len(documents) + 1)
    index += struct.pack(f"<{len(lengths)}i", *lengths) + struct.pack(f"<{len(offsets)}q", *offsets)
    index += struct.pack(f"<{len(documents) + 1}q", *range(len(documents) + 1))
    tokens = [token for document in documents for token in document]
    stem.with_suffix(".idx").write_bytes(index)
    stem.with_suffix(".bin").write_bytes(struct.pack(f"<{len(tokens)}{letter}", *tokens))
    return index


class BadInputTest(common.BinaryTest):
    def setUp(self):
        super().setUp()
        self.program = common.binary()

    def refuse(self, data, *words, flags=()):
        """A run on `data` is refused, and leaves no file that it was to write."""
        outputs = [self.folder / name for name in ("run.jsonl", "trace.json", "norms.json", "model")]
        done = common.run(common.training(self.program, data, f"--metrics={outputs[0]}", f"--trace={outputs[1]}",
                                          f"--print-grad-norms={outputs[2]}", f"--save={outputs[3]}", *flags))
        self.assert_refused(done, *words)
        for path in outputs:
            if path.is_dir():
                self.assertEqual(list(path.iterdir()), [])
                path.rmdir()
            elif path.exists():
                self.assertEqual(path.stat().st_size, 0)
                path.unlink()
        return done

    def test_missing_and_empty_data(self):
        self.refuse(self.folder / "none", "none", "No such file", "give an existing directory")
        empty = self.folder / "empty"
        empty.mkdir()
        self.refuse(empty, empty)
        (empty / "empty.txt").touch()
        self.refuse(empty, empty)
        self.refuse(empty / "empty.txt", "empty.txt")
        (self.folder / "empty.jsonl").touch()
        self.refuse(self.folder / "empty.jsonl", "empty.jsonl")
        self.refuse("/dev/null", "/dev/null")
        self.assert_refused(common.run([self.program]), "--data")

    def test_what_was_meant_otherwise_is_said(self):
        folder = self.folder / "folder"
        folder.mkdir()
        (folder / "a.jsonl").write_bytes(20 * b'{"text": "read as bytes, braces and all"}\n')
        done = common.run(common.training(self.program, folder))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("a.jsonl is read as plain text", done.stderr)
        done = common.run(common.training(self.program, folder / "a.jsonl"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_json_lines(self):
        good = b'{"text": "fine"}\n'
        for name, line, words in (
            ("utf8", b'{"text": "\xff\xfe"}', ["UTF-8"]),
            ("overlong", b'{"text": "\xc0\xaf"}', ["UTF-8"]),
            ("key", b'{"txt": "fine"}', ["text"]),
            ("half", b'{"input": "fine"}', ["target"]),
            ("type", b'{"text": 7}', ["text"]),
            ("syntax", b'{"text": "fine"', []),
            ("array", b'["text"]', []),
            ("rest", b'{"text": "fine"} x', []),
        ):
            with self.subTest(case=name):
                path = self.folder / f"{name}.jsonl"
                path.write_bytes(2 * good + line + b"\n" + good)
                self.refuse(path, f"{name}.jsonl:3", *words)

    def test_a_bad_line_late_in_a_file_is_found_before_training(self):
        path = self.folder / "late.jsonl"
        path.write_bytes(20000 * b'{"text": "fine and long enough for many steps"}\n' + b'{"text": 7}\n')
        self.refuse(path, "late.jsonl:20001", "text", flags=["--steps=1"])

    def test_tokens_beyond_the_vocabulary(self):
        for token_type, token in ((8, 257), (8, 65535), (4, -1), (4, 1 << 30)):
            with self.subTest(token=token):
                stem = self.folder / f"tokens{token}"
                megatron(stem, [[1, 2, 3], [4, token, 6], [7, 8]], token_type)
                self.refuse(stem, stem.name, token, 257)
        # The largest token there is, on the other hand, is fine.
        stem = self.folder / "good"
        megatron(stem, [[1, 2, 3], [4, 256, 6], [7, 8]])
        common.succeed(common.training(self.program, stem))

    def test_truncated_and_inconsistent_indices(self):
        stem = self.folder / "tokens"
        index = megatron(stem, [[1, 2, 3], [4, 5, 6], [7, 8]])
        path = stem.with_suffix(".idx")
        for cut in (0, 5, 9, 20, 33, 34, 40, len(index) - 1):
            with self.subTest(cut=cut):
                path.write_bytes(index[:cut])
                self.refuse(stem, "tokens.idx")
        for name, changed, words in (
            ("magic", b"XX" + index[2:], "MMIDIDX"),
            ("version", index[:9] + struct.pack("<Q", 9) + index[17:], "version 1"),
            ("type", index[:17] + b"\x63" + index[18:], "token type 99"),
            ("count", index[:18] + struct.pack("<Q", 1 << 60) + index[26:], "truncated or damaged"),
            ("length", index[:34] + struct.pack("<i", -3) + index[38:], "negative length -3"),
            # Of the last sequence: no other check would miss it.
            ("last", index[:42] + struct.pack("<i", -3) + index[46:], "negative length -3"),
            ("long", index[:34] + struct.pack("<i", 1 << 30) + index[38:], "the .bin file has 16 bytes"),
            ("offset", index[:46] + struct.pack("<q", -8) + index[54:], "starts at byte -8"),
        ):
            with self.subTest(case=name):
                path.write_bytes(changed)
                self.refuse(stem, "tokens.", words)
        path.write_bytes(index)
        stem.with_suffix(".bin").write_bytes(b"\1\0")
        self.refuse(stem, "tokens.idx", ".bin", "truncated")
        stem.with_suffix(".bin").unlink()
        self.refuse(stem, "tokens.bin")

    def test_pairs_that_do_not_match(self):
        one, other = self.folder / "inputs", self.folder / "targets"
        megatron(one, [[1, 2, 3], [4, 5, 6]])
        megatron(other, [[1, 2, 3]])
        self.refuse(f"{one},{other}", "inputs", "targets")

    def test_checkpoints_of_another_model(self):
        stem = self.train(self.program, "trained", steps=2)
        wide = common.binary("gpt2", "f32", (), (("n_embd", 48),))
        deep = common.binary("gpt2", "f32", (), (("n_layer", 3),))
        llama = common.binary("llama", "f32")
        for program in (wide, deep, llama):
            for flag in ("--load", "--resume"):
                with self.subTest(program=program.name, flag=flag):
                    flags = [flag, stem, "--no-progress", "--steps=4", *(["--data", self.corpus] if flag == "--load" else [])]
                    before = sorted(path.name for path in stem.iterdir())
                    done = common.run([program, *flags])
                    self.assert_refused(done, stem)
                    self.assertEqual(sorted(path.name for path in stem.iterdir()), before)

    def test_damaged_checkpoints(self):
        stem = self.train(self.program, "trained", steps=2)
        model = stem / "step-2" / "model.safetensors"
        content = model.read_bytes()
        load = [self.program, "--load", stem, "--data", self.corpus, "--no-progress", "--evaluate"]
        for name, changed in (("cut", content[:-4]), ("empty", b""), ("header", b"\xff" * 8 + content[8:]),
                              ("json", content[:8] + b"[" + content[9:])):
            with self.subTest(case=name):
                model.write_bytes(changed)
                self.assert_refused(common.run(load), "step-2")
        model.write_bytes(content)
        self.assertEqual(common.run(load).returncode, 0)
        (stem / "step-2" / "state.json").write_text("{")
        self.assert_refused(common.run([self.program, "--resume", stem, "--steps=4"]), "step-2", "state.json")
        model.unlink()
        self.assert_refused(common.run(load), stem)
        self.assert_refused(common.run([self.program, "--load", self.corpus, "--data", self.corpus, "--evaluate"]),
                            self.corpus, "checkpoint")

    def test_dynac_refuses_what_no_binary_would_run(self):
        source = self.folder / "long.mlir"
        text = common.model("llama").read_text()  # no table bounds its positions
        changed = re.sub(r"positions = \d+", "positions = 16777217", text)
        self.assertNotEqual(changed, text)
        changed = re.sub(r'family = "llama"', 'family = "custom"', changed)
        changed = re.sub(r'config = "(\\.|[^"\\])*"', 'config = ""', changed)
        source.write_text(changed)
        done = common.run([common.DYNAC, source, "-o", self.folder / "long"])
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("error: no binary can run this model: manifest: positions 16777217 are out of range", done.stderr)
        self.assertFalse((self.folder / "long").exists())

    def test_a_full_disk(self):
        stem = self.train(self.program, "trained", steps=2)
        before = {path.relative_to(stem): path.read_bytes() for path in stem.rglob("*") if path.is_file()}
        limit = len(before[next(path for path in before if path.name == "model.safetensors")]) // 2

        def full():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        done = common.run([self.program, "--resume", stem, "--steps=4", "--no-progress"], preexec_fn=full)
        self.assert_refused(done, stem, "size limit", "another directory")
        # The last checkpoint is still there, and nothing of the new one.
        after = {path.relative_to(stem): path.read_bytes() for path in stem.rglob("*") if path.is_file()}
        self.assertEqual(before, after)
        self.assertEqual({path.name for path in stem.iterdir()}, {"step-2"})
        # A log costs no training: said when it happens, and the code is of the end.
        done = common.run(common.training(self.program, self.corpus, "--metrics=/dev/full"))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("warning: cannot write /dev/full", done.stderr)
        self.assertIn("all steps were done", done.stderr)
        # Neither does a trace, which is written at the end: the result is told first.
        done = common.run(common.training(self.program, self.corpus, f"--trace={self.folder}/trace.json"),
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("trace.json", done.stderr)
        self.assertIn("all steps were done", done.stderr)
        self.assertIn("peak memory", done.stdout)
        done = common.run(["sh", "-c", f"{self.program} --describe > /dev/full"])
        self.assert_refused(done, "standard output", "No space left")
        # More than a buffer holds fails before the end, which is not to hide the cause.
        for flags in (["--describe=json"], ["--help"]):
            done = common.run(["sh", "-c", f"{self.program} {flags[0]} > /dev/full"])
            self.assert_refused(done, "cannot write to standard output: No space left on device")
        # What is renamed when complete must not replace what is no file: a pipe here,
        # so that a failure harms nothing outside this folder.
        for flag in ("--trace", "--print-grad-norms"):
            pipe = self.folder / f"pipe{flag}"
            os.mkfifo(pipe)
            reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            done = common.run(common.training(self.program, self.corpus, f"{flag}={pipe}", steps=1))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(pipe.is_fifo(), "the pipe was replaced")
            self.assertTrue(os.read(reader, 100).startswith((b"{", b"[")))
            os.close(reader)

    def test_a_full_file_system(self):
        size = sum(path.stat().st_size for path in (self.train(self.program, "size", steps=1) / "step-1").iterdir())
        disk = self.folder / "disk"
        disk.mkdir()
        command = common.training(self.program, self.corpus, f"--save={disk}/model", "--save-every=2", steps=400)

        def run_with_room(room):
            # Others take what is left once the first checkpoint is there, and whatever becomes free.
            script = f"""
              mount -t tmpfs -o size={room} none '{disk}' || exit 99
              (until [ -e '{disk}/model/step-2' ]; do sleep 0.002; done
               while true; do cat /dev/zero >> '{disk}/full' 2> /dev/null; sleep 0.002; done) &
              "$@"; code=$?
              kill $!
              echo "left: $(ls -A '{disk}/model')"
              exit $code
            """
            done = common.run(["unshare", "-rm", "/bin/bash", "-c", script, "bash", *command])
            if done.returncode == 99 or "unshare:" in done.stderr:
                self.skipTest("this machine allows no mount namespaces")
            self.assert_refused(done, disk, "the disk is full", "free some space")
            return done

        done = run_with_room(size * 4)
        # Neither the failure on the way ended the run, nor the first ones of the end.
        self.assertRegex(done.stderr, "warning: nothing was saved after step [0-9]+, which is tried again")
        self.assertEqual(done.stderr.count("warning: nothing was saved, which is tried again in"), 2)
        self.assertIn("left: step-", done.stdout)
        # Where not even the first one fits, it is said before anything is trained.
        done = run_with_room(size // 2)
        self.assert_refused(done, "--save", "3 checkpoints of", "cannot be written")
        self.assertNotIn("step", done.stdout)
        self.assertNotIn("tmp", done.stdout)

    def test_paths_that_cannot_be_written(self):
        for flag in ("--metrics", "--trace", "--print-grad-norms", "--save"):
            with self.subTest(flag=flag):
                self.assert_refused(common.run(common.training(self.program, self.corpus, f"{flag}=/proc/no/such")), "/proc/no/such")
        (self.folder / "file").write_text("x")
        self.assert_refused(common.run(common.training(self.program, self.corpus, f"--save={self.folder}/file")), "file")

    def test_what_is_no_file_is_not_replaced(self):
        victim = self.folder / "victim"
        victim.write_text("dear")
        link = self.folder / "link"
        link.symlink_to(victim)
        for flag in ("--metrics", "--trace", "--print-grad-norms", "--counts"):
            with self.subTest(flag=flag):
                done = common.run(common.training(self.program, self.corpus, f"{flag}={link}"))
                self.assert_refused(done, link, f"symbolic link to {victim}", "name the file itself")
                self.assert_refused(common.run(common.training(self.program, self.corpus, f"{flag}={self.folder}")), self.folder, "directory")
                self.assertEqual(victim.read_text(), "dear")
                self.assertTrue(link.is_symlink())
                # The system's own links stand for descriptors.
                out = common.succeed(common.training(self.program, self.corpus, f"{flag}=/dev/stdout", steps=1))
                self.assertIn("{", out)
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"victim", "link"})

    def test_a_directory_of_another_run(self):
        stem = self.train(self.program, "mine", steps=2)
        self.assert_refused(common.run(common.training(self.program, self.corpus, f"--save={stem}")), stem, "--resume")
        self.assertEqual([path.name for path in stem.iterdir()], ["step-2"])
        self.assert_refused(common.run([self.program, f"--resume={stem}", f"--load={stem}", "--steps=4"]), "--resume", "--load")

    def test_absurd_flags(self):
        for flags, words in (
            (["--steps=0"], ["--steps", "'0'"]),
            (["--steps=ten"], ["--steps", "'ten'"]),
            (["--steps=99999999999999999999"], ["--steps"]),
            (["--steps"], ["--steps"]),
            (["--steps="], ["--steps"]),
            (["--stepps=3"], ["--stepps", "--steps"]),
            (["--tokens-per-batch=-1"], ["--tokens-per-batch", "'-1'"]),
            (["--tokens-per-micro-batch=0"], ["--tokens-per-micro-batch"]),
            (["--in-flight=100000"], ["--in-flight"]),
            (["--recompute=some"], ["--recompute", "some", "selective"]),
            (["--recompute=full*99"], ["--recompute"]),
            (["--lr=nan"], ["--lr", "'nan'"]),
            (["--lr=-1"], ["--lr"]),
            (["--lr=1e-3", "--min-lr=1"], ["--min-lr", "--lr"]),
            (["--beta1=1"], ["--beta1"]),
            (["--threads=0"], ["--threads"]),
            (["--threads=1000000"], ["--threads"]),
            (["--threads=1000"], ["--threads is 1000", "cores"]),
            (["--memory-limit=lots"], ["--memory-limit", "lots", "4GiB"]),
            (["--memory-limit=1K"], ["--memory-limit"]),
            (["--isa=quantum"], ["--isa", "quantum"]),
            (["--describe=poem"], ["--describe", "poem"]),
            (["--progress"], ["--progress", "--no-progress"]),
            (["--save-every=3"], ["--save-every", "--save"]),
            (["--long-documents=burn"], ["--long-documents", "split"]),
            (["--long-documents=error"], ["document", "64", "--long-documents"]),
            (["--held-out-fraction=1"], ["--held-out-fraction"]),
            (["--no-progress=1"], ["--no-progress"]),
            (["corpus"], ["corpus", "--data"]),
        ):
            with self.subTest(flags=flags):
                done = common.run([*map(str, common.training(self.program, self.corpus)), *flags])
                self.assert_refused(done, *words)

    def test_enormous_runs_are_refused_before_they_start(self):
        done = common.run(common.training(self.program, self.corpus, "--tokens-per-batch=200000000",
                                          "--tokens-per-micro-batch=16000000", "--in-flight=64"))
        self.assert_refused(done, "this machine has only", "--tokens-per-micro-batch", "--recompute full")
        done = common.run(common.training(self.program, self.corpus, "--tokens-per-batch=200000000", "--memory-limit=1GiB"))
        self.assert_refused(done, "--memory-limit is 1.0 GiB", "lower --tokens-per-batch")
        # Whatever would take minutes and then the machine is refused at once: without more work than a step of few tokens is.
        def work(*flags):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = common.run(common.training(self.program, self.corpus, "--steps=1", *flags))
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        _, small = work()
        for tokens in (10**9, 10**12, 2**63 - 1):
            done, refusal = work(f"--tokens-per-batch={tokens}")
            self.assert_refused(done, "--tokens-per-batch expects", tokens)
            self.assertLess(refusal, 10 * small)

    @unittest.skipUnless(resource.getrlimit(resource.RLIMIT_STACK)[1] == resource.RLIM_INFINITY, "stacks are limited here")
    @unittest.skipIf(common.SANITIZERS, "sanitizers place their own memory by the stack's limit, and do not start under this one")
    def test_threads_that_cannot_be_started_are_messages(self):
        def no_threads():
            # Their stacks have no place.
            resource.setrlimit(resource.RLIMIT_STACK, (1 << 50, 1 << 50))

        lines = self.folder / "lines.jsonl"
        lines.write_bytes(200000 * b'{"text": "so many lines that several threads read them once"}\n')
        text, ranks = common.training(self.program, self.corpus), common.training(self.program, self.corpus, "--strategy=dp=2")
        self.assert_refused(common.run(text, preexec_fn=no_threads), "starting thread 2 of 2 failed", "fewer threads")
        self.assert_refused(common.run([*ranks, "--threads=1"], preexec_fn=no_threads), "no thread for rank 1", "ulimit -u")
        # One thread is enough for one rank: it reads, plans and computes in turn.
        for command in (text, common.training(self.program, lines)):
            done = common.run([*command, "--threads=1"], preexec_fn=no_threads)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_table_of_cases_starts_from_a_good_run(self):
        stem = self.train(self.program, "good")
        self.assertEqual(len(common.losses(f"{stem}.jsonl")), 4)
        path = self.folder / "good.jsonl"
        path.write_text("\n".join(json.dumps(line) for line in ({"text": "fine"}, {"input": "a", "target": "b"})) + "\n")
        megatron(self.folder / "tokens", [[1, 2, 3], [4, 5, 6]], 4)
        for data in (path, self.folder / "tokens"):
            common.succeed(common.training(self.program, data))


if __name__ == "__main__":
    common.main()
