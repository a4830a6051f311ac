#!/usr/bin/env python3
"""Runs damaged modules through dyna-opt: each must parse or be refused, never crash.

Mutations work on tokens, so that most results get past the lexer into the parsers,
type inference and verifiers of the dialect: tokens are deleted, doubled, swapped,
or replaced by another of the file or by a hostile one.
"""
import argparse
import random
import re
import subprocess
import sys

HOSTILE = ["-1", "0", "9223372036854775807", "99999999999999999999", "1.0e400", "0x7FF8000000000000", "f16", "i32",
           "tensor<*xf32>", "tensor<?x?xf32>", "tensor<0x0xf32>", "tensor<f32>", "tensor<?xi32>", "none", "index",
           "!dyna.segments", "@nowhere", "%nowhere", "\"\"", "[]", "{}", "()", "()[]", "<", "unit", "true"]
TOKEN = re.compile(r'"[^"]*"|[@%#!^][\w.$-]+|tensor<[^<>]*>|[\w.]+|\s+|.', re.S)


def mutate(tokens, chance):
    tokens = list(tokens)
    words = [i for i, token in enumerate(tokens) if not token.isspace()]
    for _ in range(chance.choice((1, 1, 2, 4))):
        i, j = chance.choice(words), chance.choice(words)
        what = chance.randrange(5)
        if what == 0:
            tokens[i] = ""
        elif what == 1:
            tokens[i] += " " + tokens[i]
        elif what == 2:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        elif what == 3:
            tokens[i] = tokens[j]
        else:
            tokens[i] = chance.choice(HOSTILE)
    return "".join(tokens)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="+")
    parser.add_argument("--opt", default="dyna-opt")
    parser.add_argument("--count", type=int, default=100, help="mutations of each module and form")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    chance, crashes, refused, total = random.Random(options.seed), 0, 0, 0
    for path in options.modules:
        custom = "".join(re.sub(r"^\s*//.*$", "", line, flags=re.M) for line in open(path))
        generic = subprocess.run([options.opt, "-mlir-print-op-generic", "-split-input-file", path],
                                 check=True, capture_output=True, text=True).stdout
        for form in (custom, generic):
            tokens = TOKEN.findall(form)
            for _ in range(options.count):
                text = mutate(tokens, chance)
                run = subprocess.run([options.opt, "-allow-unregistered-dialect", "-canonicalize", "-cse", "-"],
                                     input=text, capture_output=True, text=True)
                total += 1
                refused += run.returncode == 1
                silent = run.returncode == 1 and "error:" not in run.stderr
                if run.returncode not in (0, 1) or silent:
                    crashes += 1
                    print(f"{path}: {'refused without a diagnostic' if silent else f'exit status {run.returncode}'}"
                          f" on\n{text}\n{run.stderr[:3000]}")
    print(f"{total} modules, {refused} refused, {crashes} crashes or silent failures")
    return 1 if crashes or not refused else 0


if __name__ == "__main__":
    sys.exit(main())
