#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where programs look for libraries, and what the loader protects: of all that is built, and of what dynac makes."""

import os
import pathlib
import struct
import unittest

import common

NEEDED, RPATH, BIND_NOW, RUNPATH, FLAGS, FLAGS_1, STRTAB = 1, 15, 24, 29, 30, 0x6FFFFFFB, 5
# The function that a failed assertion of libstdc++ calls.
ASSERTION = "_ZSt21__glibcxx_assert_failPKciS0_S0_"
LOAD, DYNAMIC, STACK, RELRO = 1, 2, 0x6474E551, 0x6474E552


class Elf:
    """The program headers and the dynamic section of a 64-bit file."""

    def __init__(self, path):
        self.data = data = pathlib.Path(path).read_bytes()
        self.type, = struct.unpack_from("<H", data, 16)
        place, = struct.unpack_from("<Q", data, 32)
        size, count = struct.unpack_from("<HH", data, 54)
        self.segments = {}
        loads, self.entries = [], {}
        for i in range(count):
            kind, flags, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, place + i * size)
            self.segments[kind] = flags
            if kind == LOAD:
                loads.append((address, offset, length))
            if kind == DYNAMIC:
                dynamic = [struct.unpack_from("<qQ", data, offset + at) for at in range(0, length, 16)]
        for tag, value in dynamic:
            if tag == 0:
                break
            self.entries.setdefault(tag, []).append(value)
        address, = self.entries[STRTAB]
        strings = next(address - begin + offset for begin, offset, length in loads if begin <= address < begin + length)
        self.text = lambda at: data[strings + at:data.index(b"\0", strings + at)].decode()

    def names(self, word):
        """Whether the file has a symbol or a string of this name."""
        return word.encode() + b"\0" in self.data

    @property
    def paths(self):
        """Elements of RPATH and RUNPATH."""
        lists = [self.text(at) for tag in (RPATH, RUNPATH) for at in self.entries.get(tag, [])]
        return [element for one in lists for element in one.split(":")]

    @property
    def binds_at_start(self):
        flags, flags_1 = (self.entries.get(tag, [0])[0] for tag in (FLAGS, FLAGS_1))
        return BIND_NOW in self.entries or bool(flags & 8) or bool(flags_1 & 1)


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(5) == b"\x7fELF\x02"


class HardeningTest(unittest.TestCase):
    def check(self, path):
        elf = Elf(path)
        # An empty element is the working folder, and a relative one is below it.
        for element in elf.paths:
            self.assertTrue(element.startswith(("/", "$ORIGIN")), f"{path} looks for libraries in '{element}'")
        self.assertEqual(elf.type, 3, f"{path} is not position-independent")
        self.assertIn(RELRO, elf.segments, path)
        self.assertTrue(elf.binds_at_start, f"{path} binds late, so its table of addresses stays writable")
        self.assertEqual(elf.segments.get(STACK, 1) & 1, 0, f"{path} has a stack that can be run")

    def test_what_is_built(self):
        programs = [path for path in sorted((pathlib.Path(os.environ["DYNA_BUILD"]) / "bin").iterdir())
                    if path.is_file() and os.access(path, os.X_OK) and is_elf(path)]
        self.assertTrue(programs)
        for path in programs:
            with self.subTest(path.name):
                self.check(path)

    def check_code(self, path, isPlain=False):
        """Compiled so that faults of memory end the program: stacks, buffers of known size, containers."""
        elf = Elf(path)
        self.assertTrue(elf.names("__stack_chk_fail"), f"{path} has no stack protector")
        # Not every program copies into a buffer whose size is known.
        self.assertTrue(isPlain or elf.names("__memcpy_chk"), f"{path} has no fortified functions")
        self.assertTrue(elf.names(ASSERTION), f"{path} does not check containers")

    @unittest.skipIf(common.SANITIZERS, "sanitizers notice more")
    def test_code_checks_itself(self):
        for path, isPlain in ((common.DYNAC, False), (common.binary("gpt2"), False), (common.DYNA_OPT, True),
                              (common.DYNA_TRANSLATE, True)):
            with self.subTest(str(path)):
                self.check_code(path, isPlain)

    def test_what_dynac_makes(self):
        self.check(common.DYNAC)
        self.check(common.DYNA_OPT)
        self.check(common.binary("gpt2"))
        self.check(common.binary("gpt2", flags=("--linker=clang++-22",)))

    def test_libraries_of_the_working_folder_are_not_loaded(self):
        folder = common.WORK / "foreign"
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("libm.so.6", "libc.so.6", "libstdc++.so.6"):
            (folder / name).write_text("no library")
        for program in (common.DYNAC, common.DYNA_OPT, common.DYNA_TRANSLATE, common.binary("gpt2")):
            done = common.run([program, "--help"], cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
