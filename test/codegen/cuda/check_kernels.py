"""Assembles PTX and checks what became of each kernel.

Usage: check_kernels.py PTXAS ARCH PTX --registers N [--wide]. Fails unless ptxas takes the
text, no kernel spills, has a stack or calls anything, each has N registers at most, and,
with --wide, most accesses of global memory are of 16 bytes. Prints the number of kernels
and the most registers.
"""
import argparse
import os
import re
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ptxas")
    parser.add_argument("arch")
    parser.add_argument("ptx")
    parser.add_argument("--registers", type=int, required=True)
    parser.add_argument("--wide", action="store_true")
    options = parser.parse_args()
    text = open(options.ptx).read()
    result = subprocess.run([options.ptxas, "-v", f"-arch={options.arch}", "-o", os.devnull, options.ptx],
                            capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{options.ptx}: ptxas refuses it: {result.stderr[:500]}")
    log = result.stderr
    names = re.findall(r"Compiling entry function '(\w+)' for '(\w+)'", log)
    frames = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    registers = [int(count) for count in re.findall(r"Used (\d+) registers", log)]
    if not names or not len(names) == len(frames) == len(registers) == text.count(".entry "):
        sys.exit(f"{options.ptx}: {len(names)} kernels, {len(frames)} frames, {len(registers)} register counts, "
                 f"{text.count('.entry ')} entries")
    for (name, arch), frame, count in zip(names, frames, registers):
        if arch != options.arch:
            sys.exit(f"{name} is for {arch}")
        if any(bytes != "0" for bytes in frame):
            sys.exit(f"{name}: stack, spill stores and loads of {', '.join(frame)} bytes")
        if count > options.registers:
            sys.exit(f"{name}: {count} registers")
    for word in (r"\.local\b", r"\bcall(\.uni)?\b", r"\.extern\b"):
        if re.search(word, text):
            sys.exit(f"{options.ptx} has {word}")
    loads = re.findall(r"ld\.global[.\w]*", text)
    wide = [load for load in loads if re.search(r"v4\.[bfu]32|v2\.[bfu]64", load)]
    if options.wide and 2 * len(wide) < len(loads):
        sys.exit(f"{options.ptx}: {len(wide)} of {len(loads)} loads are of 16 bytes")
    print(f"kernels: {len(names)}, most registers: {max(registers)}")


main()
