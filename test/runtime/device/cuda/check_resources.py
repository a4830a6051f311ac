"""Checks what ptxas made of the kernels written by hand.

Usage: check_resources.py FOLDER LIMITS. FOLDER has kernels.ptx and a log of `ptxas -v` for
each architecture; LIMITS has lines `PATTERN REGISTERS [spilled=BYTES] [products=RATIO]`, of
which the first whose pattern matches all of a kernel's name is that kernel's. Fails unless
every log names every kernel of the text, each has at most these registers, reads or writes
no stack beyond these bytes, and has at least so many products of tensor cores for each load
of matrices; where a pattern matches no kernel; and where one with products has no ratio.
"""
import pathlib
import re
import sys


class Limits:
    def __init__(self, line):
        self.pattern, registers, *others = line.split()
        known = dict(word.split("=") for word in others)
        self.registers, self.spilled = int(registers), int(known.pop("spilled", 0))
        self.products = float(known.pop("products", 0))
        if known:
            raise ValueError(f"{line}: what is {', '.join(known)}?")


def products_per_load(text):
    """Of each kernel that multiplies by tensor cores: products for each load of four matrices. Loops are unrolled."""
    bodies = {part.split("(")[0].strip(): part for part in text.split(".entry ")[1:]}
    return {name: body.count("mma.sync") / max(1, body.count("ldmatrix")) for name, body in bodies.items() if "mma.sync" in body}


def main(folder, limits):
    text = (folder / "kernels.ptx").read_text()
    names = set(re.findall(r"\.entry (\w+)", text))
    rows = [Limits(line) for line in limits.read_text().splitlines() if line and not line.startswith("#")]
    faults = [f"{limits.name}: {row.pattern} matches no kernel" for row in rows
              if not any(re.fullmatch(row.pattern, name) for name in names)]
    faults += [f"kernels.ptx has {word}" for word in (r"\.local\b", r"\bcall(\.uni)?\b") if re.search(word, text)]

    def limits_of(name):
        return next((row for row in rows if re.fullmatch(row.pattern, name)), Limits(". 0"))

    for name, ratio in products_per_load(text).items():
        least = limits_of(name).products
        if ratio < least or not least:
            faults.append(f"{name}: {ratio:.2f} products for each load, {least or 'a number'} is asked for")
    logs = sorted(folder.glob("kernels.*.cubin.log"))
    most = 0
    for log in logs:
        said = log.read_text()
        kernels = re.findall(r"Compiling entry function '(\w+)' for '(\w+)'", said)
        frames = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", said)
        registers = [int(count) for count in re.findall(r"Used (\d+) registers", said)]
        if {name for name, _ in kernels} != names or not len(kernels) == len(frames) == len(registers):
            faults.append(f"{log.name}: {len(kernels)} kernels, {len(frames)} frames, {len(registers)} counts, "
                          f"but the text has {len(names)}")
        for (name, architecture), frame, count in zip(kernels, frames, registers):
            row = limits_of(name)
            most = max(most, count)
            if any(int(number) > row.spilled for number in frame):
                faults.append(f"{name}, {architecture}: stack, spill stores and loads of {', '.join(frame)} bytes, "
                              f"{row.spilled} are allowed")
            if count > row.registers:
                faults.append(f"{name}, {architecture}: {count} registers, {row.registers} are allowed")
    if not logs or not names:
        faults.append(f"{folder}: {len(logs)} logs of {len(names)} kernels")
    print(*faults, sep="\n")
    print(f"{len(names)} kernels, {len(logs)} architectures, most registers: {most}, {len(faults)} faults")
    return 1 if faults else 0


sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
