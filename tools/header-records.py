#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cuts the C++ headers below a folder into records, one JSON line each:

    tools/header-records.py /usr/lib/llvm-22/include records.jsonl

A record is a comment, a function or a class with what belongs to it: it begins at a
line that is not indented and follows an empty one. Equal records are written once
(licences, guards). Their lengths are as mixed as those of real training data.
"""

import json
import os
import sys


def headers(root):
    """Paths in a fixed order; links to folders are followed, as set-up makes them."""
    for folder, folders, files in os.walk(root, followlinks=True):
        folders.sort()
        for name in sorted(files):
            if name.endswith(".h"):
                yield os.path.join(folder, name)


def records(text):
    lines, follows_empty = [], False
    for line in text.splitlines():
        begins = follows_empty and line and not line[0].isspace() and line[0] != "}"
        if begins and lines:
            yield "\n".join(lines).strip("\n")
            lines = []
        lines.append(line)
        follows_empty = not line.strip()
    if lines:
        yield "\n".join(lines).strip("\n")


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: tools/header-records.py FOLDER OUT.jsonl")
    root, out = sys.argv[1:]
    seen = set()
    with open(out, "w", encoding="utf-8") as file:
        for path in headers(root):
            with open(path, encoding="utf-8", errors="replace") as header:
                for record in records(header.read()):
                    if record and record not in seen:
                        seen.add(record)
                        file.write(json.dumps({"text": record}) + "\n")
    if not seen:
        sys.exit(f"header-records: no C++ header in '{root}'")


if __name__ == "__main__":
    main()
