"""Checks that the compiler plans as dyna-plan does: check_passes_alike.py BINARY MODEL FOLDER CASE...

A case is `STRATEGY | BYTES | COSTS`, a strategy, the memory of a rank, and a file of costs or nothing. MODEL is what BINARY was compiled from, with the same flags. The passes
(dyna-opt --dyna-plan) and dynac --stop-after=plan must make micro-batches as small, and as many of them.
"""

import json
import pathlib
import re
import subprocess
import sys

binary, model, folder, *cases = sys.argv[1:]
folder = pathlib.Path(folder)
lengths = [(37 * i * i) % 230 + 5 for i in range(40)]
text = ",".join(map(str, lengths))


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done


def limits(text):
    return re.findall(r"micro-batches have at most (\d+) tokens, not (\d+)", text)


limited = 0
compiled = ["--compute-type", "bf16", "--strategies", "a: tp=2"]
module = folder / "memory.mlir"
run("dynac", model, *compiled, "--stop-after=memory", "-o", module)
for case in cases:
    strategy, memory, costs = (part.strip() for part in (case + "|").split("|")[:3])
    flags = ["--costs", costs] if costs else []
    planned = run("dyna-plan", binary, "--strategy", strategy, "--lengths", text, "--tokens-per-batch", sum(lengths),
                  "--rank-memory", memory, "--json", *flags)
    row = json.loads(planned.stdout)
    passes = run("dyna-opt", module, f"--dyna-plan=strategy={strategy} lengths={text} rank-memory={memory}" + (f" costs={costs}" if costs else ""))
    driver = run("dynac", model, *compiled[:2], "--strategies", f"s: {strategy}", f"--lengths={text}",
                 "--rank-memory", memory, "--stop-after=plan", *flags, "-o", "-")
    for made in (passes, driver):
        assert limits(made.stderr) == limits(planned.stderr), (case, made.stderr, planned.stderr)
        sizes = [sum(map(int, re.findall(r"length (\d+)", line))) for line in made.stdout.splitlines() if re.match(r" +micro_batch ", line)]
        assert len(sizes) == row["micro_batches"], (case, len(sizes), row)
        assert max(sizes) == row["largest_micro_batch"], (case, max(sizes), row)
    limited += len(limits(planned.stderr))
assert limited >= 3, "few cases are limited by memory"
