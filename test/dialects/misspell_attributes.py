#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Misspells each attribute of each kind of op, and states wrong facts: dyna-opt must refuse all of it.

What is misspelt in the generic form must be refused by name, with the right one beside it where no other is
nearer; a misspelt fact or one of another number in any other way.
"""
import argparse
import random
import re
import subprocess
import sys

OP = re.compile(r'"((?:dyna|dist|exec)\.[\w.]+)"\([^()]*\)\s*(?:\[[^\]]*\])?<\{')


def keys(text, begin):
    """Where the names at the top level of the dictionary behind `begin` are."""
    depth, at, word = 0, begin, None
    while depth >= 0:
        c = text[at]
        if c == '"':
            at = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, at).end()
            continue
        if depth == 0 and (at == begin or text[at - 1] in ", "):
            name = re.compile(r"[A-Za-z_][\w.$]*(?=\s*[=,}])").match(text, at)
            before = text[begin:at].rstrip()
            if name and (not before or before[-1] == ","):
                yield name.span()
        depth += (c in "([{<") - (c in ")]}>" and text[at - 1:at + 1] != "->")
        at += 1


def misspell(name, chance):
    head, dot, tail = name.rpartition(".")
    while True:
        letters = list(tail)
        i = chance.randrange(len(letters))
        how = chance.randrange(3)
        if how == 0 and len(letters) > 3:
            del letters[i]
        elif how == 1:
            letters.insert(i, chance.choice("abcdefghijklmnopqrstuvwxyz"))
        elif i + 1 < len(letters):
            letters[i], letters[i + 1] = letters[i + 1], letters[i]
        if (wrong := "".join(letters)) != tail:
            return head + dot + wrong


def mutations(text, chance):
    """(what, the damaged text, the right name or None), one per kind of op and attribute."""
    seen = set()
    places = [(match[1], span) for match in OP.finditer(text) for span in keys(text, match.end())]
    places += [("discardable", match.span()) for match in re.finditer(r"\bdist\.\w+(?= = |[,}])", text)]
    for op, (begin, end) in places:
        name = text[begin:end]
        if (op, name) in seen:
            continue
        seen.add((op, name))
        wrong = misspell(name, chance)
        yield f"{op}: {name} as {wrong}", text[:begin] + wrong + text[end:], name
    facts = re.search(r"#dyna\.facts<(.*?)config", text)
    if not facts:
        return
    for number in re.finditer(r"(\w+) = (\d+)", facts[1]):
        if number[1] == "positions" and '"dyna.positions"' not in text:
            continue  # without a table any limit is right
        begin, end = (facts.start(1) + i for i in number.span(2))
        for value in (int(number[2]) + 1, 60000000, 9223372036854775807):
            yield f"fact {number[1]} = {value}", text[:begin] + str(value) + text[end:], None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("module")
    parser.add_argument("--passes", default="", help="what is to run first, such as '--dyna-differentiate --dyna-memory'")
    parser.add_argument("--opt", default="dyna-opt")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--least", type=int, default=1, help="how many attributes there have to be")
    options = parser.parse_args()

    chance, faults, total, misspelt, near = random.Random(options.seed), [], 0, 0, 0
    text = subprocess.run([options.opt, "-mlir-print-op-generic", options.module, *options.passes.split()],
                          check=True, capture_output=True, text=True).stdout
    for what, damaged, name in mutations(text, chance):
        total += 1
        misspelt += name is not None
        done = subprocess.run([options.opt, "-"], input=damaged, capture_output=True, text=True)
        named = "does not know the attribute" in done.stderr
        near += f"nearest that it knows is '{name}'" in done.stderr
        if done.returncode != 1 or "error:" not in done.stderr or (name and not named):
            faults.append(f"{what}: exit status {done.returncode}\n{done.stderr[:500]}")
    for fault in faults:
        print(fault)
    print(f"{misspelt} misspelt attributes, {near} of them corrected, {total - misspelt} wrong facts; "
          f"{len(faults)} accepted, or refused without cause")
    return 1 if faults or misspelt < options.least or near < 0.6 * misspelt else 0


if __name__ == "__main__":
    sys.exit(main())
