#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every pass is named as its flag is (docs/contributing.md): --dyna-fuse-rows is FuseRows.

Usage: pass_names.py ROOT
"""
import pathlib
import re
import sys

root, wrong, count = pathlib.Path(sys.argv[1]), 0, 0
for path in sorted(root.glob("passes/*/Passes.td")) + sorted(root.glob("codegen/*/Passes.td")):
    for name, flag in re.findall(r'^def (\w+) : Pass<"([^"]*)"', path.read_text(), re.M):
        count += 1
        head, *words = flag.split("-")
        if head != "dyna" or name != "".join(map(str.capitalize, words)) or not (path.parent / f"{name}.cpp").exists():
            wrong += name != "ReportLayoutRules"  # beside the pass whose rules it prints
            print(f"{path}: {name} has the flag {flag}")
print(f"{count} passes, {wrong} misnamed")
sys.exit(1 if wrong or not count else 0)
