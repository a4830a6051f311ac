"""Breaks the rules of steps of several graphs, by editing text as a hand would, and prints where and how dyna-opt refuses it.

    break_steps.py MODULE WORK    a module with a step; a folder
"""
import os
import re
import subprocess
import sys

module, work = sys.argv[1:3]
os.makedirs(work, exist_ok=True)
whole = open(module).read()


def section(plan):
    """Where the program of the first rank of a plan is: begin and end."""
    begin = whole.index(f"exec.plan @{plan}.plan")
    begin = whole.index("    rank 0 ", begin)
    return begin, whole.index("    rank 1 ", begin)


def edited(plan, edit):
    """With another list of lines in that program."""
    begin, end = section(plan)
    lines = whole[begin:end].splitlines(keepends=True)
    edit(lines)
    return whole[:begin] + "".join(lines) + whole[end:]


def find(lines, piece):
    """The first line with it."""
    return next(number for number, line in enumerate(lines) if re.search(re.escape(piece) + r"\b", line))


def drop(piece):
    return lambda lines: lines.pop(find(lines, piece))


def gradients_early(lines):
    """All their starts come before the first reduction ends, without the last one's wait."""
    starts = [line for line in lines if "switch_grads_start" in line]
    waits = [line for line in lines if "reduce_grads_wait" in line]
    rest = [line for line in lines if line not in starts and line not in waits]
    lines[:] = rest[:-1] + starts + waits + rest[-1:]


def norm_early(lines):
    waits = [line for line in lines if "switch_grads_wait" in line]
    last = find(lines, "do grad_norm")
    rest = [line for line in lines[:last] if line not in waits] + [lines[last]]
    lines[:] = rest + waits + [line for line in lines[last + 1:] if line not in waits]


phases = re.search(r"( +phase @s.plan.*\n)( +phase @l.plan.*\n)", whole)
edits = {
    "as planned": whole,
    "sample in two phases": whole.replace("phase @l.plan samples [2]", "phase @l.plan samples [1]"),
    "sample that there is not": whole.replace("phase @s.plan samples [0, 1]", "phase @s.plan samples [0, 3]"),
    "home first": whole.replace(phases[0], phases[2] + phases[1]),
    "other targets": re.sub(r"(@s.plan of @s model \w+ target_tokens) 235", r"\1 234", whole),
    "update before home": edited("s", lambda lines: lines.insert(find(lines, "do switch_grads_start"), "      do update layer 0\n")),
    "dropped switch_wait": edited("s", drop("do switch_wait phase 0 bucket 0")),
    "dropped switch_start": edited("s", drop("do switch_start phase 0 bucket 0")),
    "switch of no phase": edited("s", lambda lines: lines.insert(find(lines, "do switch_wait"), "      do switch_wait phase 1 bucket 0\n")),
    "gradients before their reduction": edited("s", gradients_early),
    "norm before gradients are home": edited("l", norm_early),
    "no update at all": re.sub(r" +do update .*\n", "", whole),
    "an update twice": edited("l", lambda lines: lines.insert(find(lines, "do update"), lines[find(lines, "do update")])),
}
for what, text in edits.items():
    path = os.path.join(work, what.replace(" ", "-") + ".mlir")
    with open(path, "w") as file:
        file.write(text)
    done = subprocess.run(["dyna-opt", path, "--dyna-verify-plan"], capture_output=True, text=True)
    errors = re.findall(r":(\d+):\d+: error: (.*)", done.stderr)
    if not errors:
        print(f"{what}: {done.returncode}")
        continue
    (line, message), = errors
    place = text.splitlines()[int(line) - 1].strip()
    place = re.sub(r"exec\.(\w+) .*", r"exec.\1", place)
    print(f"{what}: {place}: {message}")
