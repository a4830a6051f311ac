#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tools write, where something of somebody else may stand, and when they are stopped."""

import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import time

import common


class OutputsTest(common.BinaryTest):
    def dynac(self, *arguments, **options):
        return common.run([common.DYNAC, *arguments], **options)

    def tools(self, output):
        """Commands that write text to `output`."""
        config = common.model().with_suffix(".json")
        report = f"--dyna-report-memory=tq=8 tkv=8 s=1 output={output}"
        return {"dynac": [common.DYNAC, common.model(), "--stop-after=parse", "-o", output],
                "dyna-opt": [common.DYNA_OPT, common.model(), "-o", output],
                "dyna-translate": [common.DYNA_TRANSLATE, "--from-config", config, "-o", output],
                "report": [common.DYNA_OPT, common.model(), "--dyna-differentiate", "--dyna-memory", report, "-o", "/dev/null"]}

    def program(self, output, *flags):
        return [common.DYNAC, common.model(), "-o", output, "--isa=avx2", "-O0", *flags]

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def assert_settles(self, names):
        """What a killed dynac had begun goes away."""
        limit = time.monotonic() + common.PATIENCE
        while self.names() != names:
            self.assertLess(time.monotonic(), limit, self.names())
            time.sleep(0.02)

    def test_a_program_replaces_regular_files_only(self):
        # No device of the system: were it replaced after all, the machine would be the worse for it.
        pipe, device, link, victim = (self.folder / name for name in ("pipe", "device", "link", "victim"))
        os.mkfifo(pipe)
        victim.write_text("dear")
        link.symlink_to(victim)
        kinds = [(pipe, stat.S_ISFIFO, "pipe"), (link, stat.S_ISLNK, f"symbolic link to {victim}")]
        try:
            os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            kinds.append((device, stat.S_ISCHR, "device"))
        except PermissionError:
            print("no right to make a device here")
        before = self.names()
        for path, is_kind, word in kinds:
            with self.subTest(path=path.name):
                self.assert_refused(common.run(self.program(path)), path, word)
                self.assertTrue(is_kind(os.lstat(path).st_mode))
        self.assert_refused(common.run(self.program("-")), "standard output")
        self.assertEqual(victim.read_text(), "dear")
        self.assertEqual(self.names(), before)
        # A file that somebody put there is one.
        common.succeed(self.program(victim))
        self.assertTrue(os.access(victim, os.X_OK))

    def test_text_goes_into_streams_and_replaces_regular_files_only(self):
        victim, link = self.folder / "victim", self.folder / "link"
        link.symlink_to(victim)
        for name, command in self.tools(link).items():
            with self.subTest(tool=name):
                victim.write_text("dear")
                done = common.run(command)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"symbolic link to {victim}", done.stderr)
                self.assertEqual(victim.read_text(), "dear")
                self.assertTrue(link.is_symlink())
                common.succeed(self.tools(victim)[name])
                text = victim.read_text()
                self.assertGreater(len(text), 100)
                self.assertEqual(common.succeed(self.tools("/dev/stdout")[name]), text)
                common.succeed(self.tools("/dev/null")[name])
                pipe = self.folder / "pipe"
                os.mkfifo(pipe)
                reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
                writer = subprocess.Popen([str(word) for word in self.tools(pipe)[name]])
                read = b""
                while writer.poll() is None or not read:
                    try:
                        read += os.read(reader, 1 << 20)
                    except BlockingIOError:
                        pass
                self.assertEqual(writer.returncode, 0)
                self.assertTrue((read + os.read(reader, 1 << 20)).startswith(text[:60].encode()))
                self.assertTrue(pipe.is_fifo())
                os.close(reader)
                pipe.unlink()
        self.assertTrue(os.stat("/dev/null").st_mode & stat.S_IFCHR)
        self.assertEqual(self.names(), ["link", "victim"])

    def test_outputs_are_no_inputs(self):
        model, config, link = (self.folder / name for name in ("m.mlir", "c.json", "link"))
        shutil.copy(common.model(), model)
        shutil.copy(common.model().with_suffix(".json"), config)
        os.link(model, link)
        before = model.read_bytes(), config.read_bytes()
        for command in ([common.DYNAC, model, "-o", model], [common.DYNAC, model, "-o", link],
                        [common.DYNAC, model, "--stop-after=parse", "-o", model],
                        [common.DYNA_TRANSLATE, "--from-config", config, "-o", config]):
            with self.subTest(command=command):
                self.assert_refused(common.run(command), "it is the input", "another file")
                self.assertEqual((model.read_bytes(), config.read_bytes()), before)

    def test_a_failure_leaves_the_old_text(self):
        bad = self.folder / "bad"
        bad.write_text("no module")
        for name, command in self.tools(self.folder / "out").items():
            with self.subTest(tool=name):
                (self.folder / "out").write_text("old")
                command = [bad if word in (common.model(), common.model().with_suffix(".json")) else word for word in command]
                self.assertNotEqual(common.run(command).returncode, 0)
                self.assertEqual((self.folder / "out").read_text(), "old")

    def test_intermediate_files_are_nobody_elses(self):
        victim = self.folder / "victim"
        victim.write_text("dear")
        mine = {"m.avx2.o": "an object of somebody", "m.linking": "here too", "m.program.o": "and here"}
        for name, text in mine.items():
            (self.folder / name).write_text(text)
        (self.folder / "m.avx512.o").symlink_to(victim)
        common.succeed([common.DYNAC, common.model(), "-o", self.folder / "m", "-O0"])
        for name, text in mine.items():
            self.assertEqual((self.folder / name).read_text(), text)
        self.assertEqual(victim.read_text(), "dear")
        self.assertEqual(self.names(), ["m", "m.avx2.o", "m.avx512.o", "m.linking", "m.program.o", "victim"])
        # Objects that are asked for are outputs.
        done = common.run([common.DYNAC, common.model(), "-o", self.folder / "m", "-O0", "--keep-objects"])
        self.assert_refused(done, "m.avx512.o", "symbolic link")
        (self.folder / "m.avx512.o").unlink()
        common.succeed([common.DYNAC, common.model(), "-o", self.folder / "m", "-O0", "--keep-objects"])
        for name in ("m.avx2.o", "m.avx512.o", "m.program.o"):
            self.assertTrue((self.folder / name).read_bytes().startswith(b"\x7fELF"), name)

    def test_names_are_no_options(self):
        # As in a folder from somebody else: names that a linker or LLVM would take for
        # options, and files that would then be lists of them.
        evil = "-Wl,--version\n--linker=./evil\n"
        (self.folder / "evil").write_text("#!/bin/sh\ntouch ran\nexit 1\n")
        (self.folder / "evil").chmod(0o755)
        for name in ("@m", "-m", "--version", "@m.avx2.o", "m"):
            with self.subTest(name=name):
                source = f"{name}.mlir"
                shutil.copy(common.model(), self.folder / source)
                for file in ("m", "m.mlir", "m.avx2.o", "m.avx2.o.avx2.o", "m.program.o"):
                    if file != source:
                        (self.folder / file).write_text(evil)
                source = source if source[0] == "@" else f"./{source}"
                flags = ["--isa=avx2", "-O0"]
                done = self.dynac(source, *flags, cwd=self.folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(name, common.succeed([f"./{name}", "--version"], cwd=self.folder))
                (self.folder / name).unlink()
                done = self.dynac(source, *flags, f"-o={name}", cwd=self.folder)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(os.access(self.folder / name, os.X_OK), done.stderr)
                for tool, *more in ((common.DYNA_OPT,), (common.DYNA_TRANSLATE, "--from-config")):
                    if name[0] == "@":
                        read = common.run([tool, *more, f"{name}.mlir"], cwd=self.folder)
                        self.assertNotIn("./evil", read.stderr)
        self.assertNotIn("ran", self.names())
        # Also the runtime's folder may be called so.
        (self.folder / "@lib").symlink_to(common.pathlib.Path(common.DYNAC).parent.parent / "lib")
        common.succeed([common.DYNAC, common.model(), "-o", "m", "--isa=avx2", "-O0", "--runtime-dir=@lib"], cwd=self.folder)

    def test_a_limit_on_sizes_leaves_nothing(self):
        (self.folder / "m").write_text("old")
        for limit in (1000, 20000, 200000, 2000000):
            with self.subTest(limit=limit):
                done = common.run(self.program(self.folder / "m"),
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
                self.assert_refused(done)
                self.assertRegex(done.stderr, "size limit|File too large")
                self.assertEqual((self.folder / "m").read_text(), "old")
                self.assertEqual(self.names(), ["m"])
        for name, command in self.tools(self.folder / "m").items():
            with self.subTest(tool=name):
                done = common.run(command, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50)))
                self.assertIn(done.returncode, (1, 2), done.stderr)  # dyna-opt ends as mlir-opt does
                self.assertIn("size limit", done.stderr)
                self.assertEqual((self.folder / "m").read_text(), "old")
                self.assertEqual(self.names(), ["m"])

    def test_interruptions_leave_nothing(self):
        (self.folder / "m").write_text("old")
        begin = time.monotonic()
        common.succeed(self.program(self.folder / "whole"))
        span = time.monotonic() - begin
        (self.folder / "whole").unlink()
        generator, seen = random.Random(1), 0
        # No SIGSEGV: sent while memory is being taken, it finds LLVM's printer of stacks waiting for the same lock.
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
        for attempt in range(15):
            number = numbers[attempt % len(numbers)]
            with self.subTest(signal=number.name):
                process = subprocess.Popen([str(word) for word in self.program(self.folder / "m")],
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
                limit = time.monotonic() + span * generator.random()
                # At first as soon as the private folder is there, later anywhere.
                while process.poll() is None and (time.monotonic() < limit if attempt >= len(numbers) else len(self.names()) < 2):
                    time.sleep(0.001)
                seen += len(self.names()) > 1
                process.send_signal(number)
                process.wait(timeout=common.PATIENCE)
                self.assert_settles(["m"])
                # All or nothing; the signal may come between the rename and the end of the process.
                if process.returncode != 0 and (self.folder / "m").read_bytes() != b"old":
                    self.assertIn("Dyna", common.succeed([self.folder / "m", "--version"]))
                (self.folder / "m").write_text("old")
        self.assertGreaterEqual(seen, len(numbers), "nothing was there that could have been left behind")

    def test_two_at_once_leave_one_program(self):
        writers = [subprocess.Popen([str(word) for word in self.program(self.folder / "m")]) for _ in range(3)]
        self.assertEqual([writer.wait(timeout=common.PATIENCE) for writer in writers], [0, 0, 0])
        self.assertEqual(self.names(), ["m"])
        self.assertIn("Dyna", common.succeed([self.folder / "m", "--version"]))


if __name__ == "__main__":
    common.main()
