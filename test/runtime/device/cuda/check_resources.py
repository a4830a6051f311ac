"""Checks what ptxas made of the kernels written by hand.

Usage: check_resources.py FOLDER LIMITS. FOLDER has kernels.ptx and a log of `ptxas -v` for
each architecture; LIMITS has lines `PATTERN REGISTERS`. Fails unless every log names every
kernel of the text, none has a stack or spills, and each has at most the registers of the
first pattern that matches all of its name; and where a pattern matches none.
"""
import pathlib
import re
import sys


def main(folder, limits):
    text = (folder / "kernels.ptx").read_text()
    names = set(re.findall(r"\.entry (\w+)", text))
    rows = [line.split() for line in limits.read_text().splitlines() if line and not line.startswith("#")]
    faults = [f"{limits.name}: {pattern} matches no kernel" for pattern, _ in rows
              if not any(re.fullmatch(pattern, name) for name in names)]
    faults += [f"kernels.ptx has {word}" for word in (r"\.local\b", r"\bcall(\.uni)?\b") if re.search(word, text)]
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
            limit = next((int(limit) for pattern, limit in rows if re.fullmatch(pattern, name)), 0)
            most = max(most, count)
            if any(number != "0" for number in frame):
                faults.append(f"{name}, {architecture}: stack, spill stores and loads of {', '.join(frame)} bytes")
            if count > limit:
                faults.append(f"{name}, {architecture}: {count} registers, {limit} are allowed")
    if not logs or not names:
        faults.append(f"{folder}: {len(logs)} logs of {len(names)} kernels")
    print(*faults, sep="\n")
    print(f"{len(names)} kernels, {len(logs)} architectures, most registers: {most}, {len(faults)} faults")
    return 1 if faults else 0


sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
