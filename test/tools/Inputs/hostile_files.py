"""Gives tools files that nobody means well with: hostile_files.py FOLDER CONFIG MODULE PLAN.

CONFIG is a config.json, MODULE what it was translated to, and PLAN the bytes of a plan. Each is mutated, and swollen to megabytes, always
in the same way. Whatever a file holds, a tool ends with 0, 1 or 2, within an address space that would hold the file a few dozen times, and
says at most a screen: few lines, none longer than 2,300 bytes.
"""

import pathlib
import random
import resource
import subprocess
import sys

folder, config, module, plan = map(pathlib.Path, sys.argv[1:])
MEGABYTE = 1 << 20
# Libraries of the compiler take 400 MB of address space, and one file has at most 2 MB.
ADDRESS_SPACE = 1200 * MEGABYTE
LONGEST_LINE, MOST_LINES = 2300, 24
WORDS = [b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"\n", b"\\u0000", b"null", b"-", b"1e999", b"9223372036854775807", b'"a"', b'{"a":', b"\x1b[31m",
         b"\xed\xa0\x80", b"\x00", b"\xff", b"tensor<?x0xf32>", b"micro_batch ", b"// ", b"#", b"%x", b"loc("]


def mutated(text, chance):
    """A few changes of bytes, words and pieces."""
    text = bytearray(text)
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(text))
        kind = chance.randrange(5)
        if kind == 0 and at < len(text):
            text[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del text[at:at + chance.randint(1, 16)]
        elif kind == 2:
            text[at:at] = chance.choice(WORDS)
        elif kind == 3:
            other = chance.randint(0, len(text))
            text[at:at] = text[other:other + chance.randint(1, 64)]
        else:
            del text[at:]
    return bytes(text)


def swollen(text, chance):
    """A piece or a word, repeated to a megabyte or two."""
    at = chance.randint(0, len(text))
    piece = chance.choice(WORDS) if chance.randrange(2) else text[at:at + chance.choice([1, 2, 8, 64])] or b"x"
    size = chance.choice([1 << 14, 1 << 18, 2 * MEGABYTE])
    return text[:at] + (piece * (size // len(piece) + 1))[:size] + text[at:]


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def check(name, command):
    done = subprocess.run([str(word) for word in command], capture_output=True, preexec_fn=limit)
    lines = done.stderr.split(b"\n")
    assert done.returncode in (0, 1, 2), (name, command, done.returncode, done.stderr[:2000])
    assert done.returncode == 0 or done.stderr.strip(), (name, command, "says nothing")
    assert len(lines) <= MOST_LINES, (name, command, len(lines), done.stderr[:2000])
    longest = max(map(len, lines))
    assert longest <= LONGEST_LINE, (name, command, longest, done.stderr[:300])
    return done.returncode


tools = {
    config: [["dyna-translate", "--from-config"], ["dyna-translate", "--gpt2"], ["dyna-plan", "--lengths", "30", "--strategy", "dp=2"]],
    module: [["dyna-opt"], ["dynac", "--stop-after=parse"], ["dyna-translate", "--mlir-to-plan"]],
    plan: [["dyna-translate", "--plan-to-mlir"]],
}
ends = {0: 0, 1: 0, 2: 0}
for source, commands in tools.items():
    text = source.read_bytes()
    for number in range(36):
        chance = random.Random(1000 + number)
        name = folder / f"hostile-{number}{source.suffix}"
        name.write_bytes((mutated, swollen)[number % 3 == 2](text, chance))
        for command in commands if number % 6 < 3 else commands[:1]:
            output = [] if command[0] == "dyna-plan" else ["-o", "/dev/null"]
            ends[check(name, [command[0], name, *command[1:], *output])] += 1
        name.unlink()
# Names and flags are quoted, too.
for name in ("x" * 4000, "y/" * 2000, "\x1b[31m" * 500):
    for tool in ("dynac", "dyna-opt", "dyna-plan", "dyna-translate"):
        ends[check(name, [tool, name])] += 1
for flags in (["--strategies", "a" * 90000], ["--strategies", "a: dp=2; " * 9000], ["--strategies", "dp=2", "--ranges", "b" * 90000],
              ["--stop-after", "c" * 90000], ["--cluster", "d" * 90000], ["--" + "e" * 90000], ["--isa", "f" * 90000], ["--costs", "g" * 4000]):
    ends[check(flags[0][:40], ["dynac", module, *flags])] += 1
for flags in (["--strategy", "a" * 90000], ["--strategies", "dp=2; tp=2", "--ranges", "b" * 90000], ["--cluster", "d" * 90000], ["--lengths", "9," * 45000 + "x"],
              ["--micro-batches", "e" * 90000], ["--compare", "f" * 90000], ["--simulate", "g" * 90000]):
    ends[check(flags[0], ["dyna-plan", config, "--lengths", "30", *flags])] += 1
assert ends[0] > 10 and ends[2] > 100, ends
