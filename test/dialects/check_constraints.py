#!/usr/bin/env python3
"""Every numbered constraint of the .td files has code and a test that carry its tag.

A constraint is a list item `- (TAG1) ...` in a .td file. Code tags it with a comment
`// TAG1` (or a comment that names a range, `TAG1 to TAG5`); a test piece, between two
`// -----` lines of a `*-invalid.mlir` file, starts with a comment `// TAG1` and holds
an expected-error.
"""
import argparse
import glob
import os
import re
import sys


def read(pattern):
    return {path: open(path).read() for path in sorted(glob.glob(pattern, recursive=True))}


def expand(text):
    """Tags in `//` comments; `A1 to A5` names all five."""
    tags = set()
    for line in re.findall(r"//(.*)", text):
        for prefix, first, last in re.findall(r"\b([A-Z]+)(\d+) to \1(\d+)\b", line):
            tags |= {f"{prefix}{i}" for i in range(int(first), int(last) + 1)}
        tags |= set(re.findall(r"\b[A-Z]+\d+\b", line))
    return tags


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dialect", help="folder of the .td files; .cpp files may lie in folders of it")
    parser.add_argument("tests", help="folder of the *-invalid.mlir files")
    options = parser.parse_args()

    constraints = []
    for text in read(os.path.join(options.dialect, "*.td")).values():
        constraints += re.findall(r"- \(([A-Z]+\d+)\)", text)
    in_code = set()
    for text in read(os.path.join(options.dialect, "**", "*.cpp")).values():
        in_code |= expand(text)
    tested, faults = {}, []
    for path, text in read(os.path.join(options.tests, "*-invalid.mlir")).items():
        for piece in text.split("// -----"):
            tags = re.findall(r"^// ([A-Z]+\d+)\b", piece, re.M)
            if "expected-error" not in piece:
                faults.append(f"{path}: a piece without expected-error: {piece.strip()[:60]}")
            for tag in tags:
                tested[tag] = path

    for tag in constraints:
        if constraints.count(tag) > 1:
            faults.append(f"{tag}: stated twice")
        if tag not in in_code:
            faults.append(f"{tag}: no code carries the tag")
        if tag not in tested:
            faults.append(f"{tag}: no negative test carries the tag")
    for tag, path in tested.items():
        if tag not in constraints:
            faults.append(f"{path}: tests {tag}, which no .td file states")
    for fault in dict.fromkeys(faults):
        print(fault)
    print(f"{len(constraints)} constraints, {len(tested)} tested, {len(faults)} faults")
    return 1 if faults or not constraints else 0


if __name__ == "__main__":
    sys.exit(main())
