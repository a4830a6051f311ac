"""Breaks every rule of plans once, by editing text as a hand would, and prints the line that dyna-opt refuses it with.

    break_rules.py MODULE WORK    a module behind the memory phase; a folder
"""
import os
import re
import subprocess
import sys

module, work = sys.argv[1:3]
os.makedirs(work, exist_ok=True)


def plan(options=""):
    return subprocess.run(["dyna-opt", module, f"-dyna-plan=strategy=pp=2 lengths=30,5,40,12 tokens-per-micro-batch=48 "
                           f"pipeline=1f1b {options}"], capture_output=True, text=True, check=True).stdout


def line_of(text, piece):
    """The only line with these words."""
    (line,) = [line for line in text.splitlines(keepends=True) if re.search(re.escape(piece) + r"\b", line)]
    return line


def without(text, piece):
    return text.replace(line_of(text, piece), "")


def moved(text, piece, target):
    line, before = line_of(text, piece), line_of(text, target)
    return text.replace(line, "").replace(before, line + before)


def swapped(text, one, other):
    a, b = line_of(text, one), line_of(text, other)
    return text.replace(a, "\0").replace(b, a).replace("\0", b)


def overlapping(text):
    """The output of a forward lies where its input is."""
    kept = re.search(r"do load micro_batch 0 .*\bkept (\d+)", text)[1]
    return re.sub(r"(do forward layer 0 micro_batch 0 .*\bnext) \d+", rf"\1 {kept}", text, count=1)


def unmatched(text):
    """Of a micro-batch without tokens, whose blocks have no bytes, rank 0 wants a gradient that nobody makes."""
    count = text.count("micro_batch replica")
    last = line_of(text, "micro_batch replica 0 [" + re.findall(r"micro_batch replica 0 \[(.*)\]", text)[-1])
    text = text.replace(last, last + "    micro_batch replica 0 []\n")
    ranks = re.split(r"(?m)(?=^    rank \d)", text)
    for number in range(1, len(ranks)):
        # But for the head's, work takes no room either.
        copies = [re.sub(r" (batch|kept|next) \d+|(?<!layer 3 micro_batch .) workspace \d+", "", line).replace(f"micro_batch {count - 1}", f"micro_batch {count}")
                  for line in ranks[number].splitlines() if f"micro_batch {count - 1}" in line]
        if number == 1:
            copies += [f"      do recv_grad_{end} layer 2 micro_batch {count}" for end in ("start", "wait")]
        ranks[number] = ranks[number].replace("    }\n", "".join(line + "\n" for line in copies) + "    }\n", 1)
    return "".join(ranks)


trained, recomputed, evaluated = plan(), plan("recompute=full"), plan("evaluate")
edits = {
    1: re.sub(r"model 0x[0-9A-F]*", "model 0x1", trained),
    2: trained.replace("sample 3 length 12", "sample 3 length 11"),
    3: without(trained, "do forward layer 1 micro_batch 1"),
    4: without(recomputed, "do recompute layer 1 micro_batch 0"),
    5: without(trained, "do update layer 1"),
    6: re.sub(r"(do forward layer 1 micro_batch 0) next \d+", r"\1", trained),
    7: overlapping(trained),
    8: trained,
    9: unmatched(evaluated),
    10: swapped(trained, "send_act_start layer 2 micro_batch 1", "recv_grad_start layer 2 micro_batch 0"),
    11: moved(trained, "reduce_grads_start layer 3", "send_grad_start layer 2 micro_batch 1"),
}
for rule, text in edits.items():
    path = os.path.join(work, f"P{rule}.mlir")
    with open(path, "w") as file:
        file.write(text)
    limit = "=limit=100000" if rule == 8 else ""
    done = subprocess.run(["dyna-opt", path, f"-dyna-verify-plan{limit}"], capture_output=True, text=True)
    errors = [line for line in done.stderr.splitlines() if "error: " in line]
    print(f"P{rule}: {errors[0].split('error: ')[1] if len(errors) == 1 and done.returncode else done.stderr}")
