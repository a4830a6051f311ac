#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/header-records.py: where headers are cut, and what is left out."""

import json
import os
import pathlib

import common

SCRIPT = pathlib.Path(os.environ["DYNA_SOURCE"]) / "tools" / "header-records.py"

ONE = """// A licence.

/// What f does.
int f();

class C {
  int a;

  int b;

};

namespace n {

"""
TWO = """// A licence.

int g() {

  return 1;
}
"""


class HeaderRecordsTest(common.BinaryTest):
    def records(self, folder):
        out = self.folder / "records.jsonl"
        common.succeed([SCRIPT, folder, out])
        return [json.loads(line)["text"] for line in out.read_text().splitlines()]

    def test_cuts_before_what_is_not_indented(self):
        tree = self.folder / "tree"
        (tree / "deep").mkdir(parents=True)
        (tree / "a.h").write_text(ONE)
        (tree / "deep" / "b.h").write_text(TWO)
        (tree / "c.txt").write_text("no header")
        (self.folder / "elsewhere").mkdir()
        (self.folder / "elsewhere" / "d.h").write_text("int linked;\n")
        (tree / "link").symlink_to(self.folder / "elsewhere")
        self.assertEqual(self.records(tree), [
            "// A licence.", "/// What f does.\nint f();", "class C {\n  int a;\n\n  int b;\n\n};", "namespace n {",
            "int g() {\n\n  return 1;\n}", "int linked;"])

    def test_bytes_that_are_no_text(self):
        tree = self.folder / "tree"
        tree.mkdir()
        (tree / "a.h").write_bytes(b"int \xff;\n")
        self.assertEqual(self.records(tree), ["int \ufffd;"])

    def test_says_what_is_missing(self):
        self.assert_refused(common.run([SCRIPT, self.folder, self.folder / "out"]), "no C++ header", self.folder, code=(1,))
        self.assert_refused(common.run([SCRIPT]), "usage", code=(1,))


if __name__ == "__main__":
    common.main()
