"""Scaffolds that no longer fit the tree, or touch more than the page promises, are noticed.

    source_copy_test.py ROOT     ROOT is the source tree; nothing is built
"""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from extensions import EXTENSIONS  # noqa: E402
from source_copy import Fault, SourceCopy, check_files, table  # noqa: E402

ROOT = sys.argv.pop(1)


class Careless:
    def __init__(self, edit):
        self.edit = edit


class SourceCopyTest(unittest.TestCase):
    def setUp(self):
        self.copy = SourceCopy(ROOT)
        self.rows = table(self.copy)

    def test_every_extension_fits(self):
        for extension in EXTENSIONS:
            touched, diff = self.copy.apply(extension)
            check_files(extension.kind, touched, self.rows)
            self.assertIn("+++ b/" + touched[0], diff)

    def test_every_count_of_the_page_is_tried(self):
        self.assertEqual(set(self.rows), {extension.kind for extension in EXTENSIONS})

    def test_a_file_too_many_is_noticed(self):
        for extension in EXTENSIONS:
            copy = SourceCopy(ROOT)
            touched, _ = copy.apply(extension)
            spare = self.rows[extension.kind][0] - len(touched)
            more = [f"runtime/another{index}.h" for index in range(spare + 1)]
            with self.assertRaisesRegex(Fault, f"promises that '{extension.kind}' touches"):
                check_files(extension.kind, sorted(touched + more), self.rows)

    def test_another_file_is_noticed(self):
        for extension in EXTENSIONS:
            touched, _ = SourceCopy(ROOT).apply(extension)
            with self.assertRaisesRegex(Fault, "touches runtime/another.h, but"):
                check_files(extension.kind, touched[1:] + ["runtime/another.h"], self.rows)

    def test_an_anchor_that_is_gone_is_noticed(self):
        for edit in (lambda copy: copy.after("runtime/plan/program/Plan.h", "no such line\n", "more\n"),
                     lambda copy: copy.after("runtime/plan/program/Plan.h", "int", "more\n"),
                     lambda copy: copy.after("runtime/plan/NoPlan.h", "", "more\n"),
                     lambda copy: copy.new("runtime/plan/program/Plan.h", "")):
            with self.assertRaises(Fault):
                self.copy.apply(Careless(edit))

    def test_tests_and_pages_are_not_counted(self):
        def edit(copy):
            copy.new("test/runtime/New.cpp", "")
            copy.new("docs/new.md", "")
            copy.new("runtime/New.cpp", "")
        touched, _ = self.copy.apply(Careless(edit))
        self.assertEqual(touched, ["runtime/New.cpp"])

    def test_only_what_differs_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            self.copy.files = {"a": b"1", "b/c": b"2"}
            self.copy.write(folder)
            source = pathlib.Path(folder) / "source"
            kept = (source / "a").stat().st_mtime_ns
            self.copy.files = {"a": b"1", "d": b"3"}
            self.copy.write(folder)
            self.assertEqual((source / "a").stat().st_mtime_ns, kept)
            self.assertFalse((source / "b/c").exists())
            self.assertEqual((source / "d").read_text(), "3")


unittest.main()
