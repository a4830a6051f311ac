"""Checks that dyna-plan plans as a run does: check_plans_alike.py BINARY COSTS FOLDER CASE...

A case is `STRATEGY | FLAG...`, whose flags both programs take. The run predicts its first step from its own plan; dyna-plan must
report the same numbers for the same samples. What both are told of the data is the file that --write-lengths writes.
"""

import json
import pathlib
import subprocess
import sys

binary, costs, folder, *cases = sys.argv[1:]
folder = pathlib.Path(folder)
data, lengths, metrics = (folder / name for name in ("data.jsonl", "lengths.csv", "metrics.jsonl"))


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done


# The longest sample is not in the first step, but a run keeps room for it.
sizes = [(37 * i * i) % 230 + 5 for i in range(60)] + [900]
data.write_text("".join(json.dumps({"text": "x" * size}) + "\n" for size in sizes))
limited = 0
for case in cases:
    strategy, flags = (part.split() for part in case.split("|"))
    common = ["--strategy", *strategy, "--costs", costs, "--tokens-per-batch", 2048, *flags]
    memory = flags[flags.index("--rank-memory"):][:2] if "--rank-memory" in flags else []
    run(binary, "--data", data, "--write-lengths", lengths, "--strategy", *strategy, *memory)
    ran = run(binary, "--data", data, "--shuffle", "none", "--steps", 1, "--no-progress", "--metrics", metrics, *common)
    planned = run("dyna-plan", binary, "--lengths", lengths, "--steps", 1, "--simulate", "host", "--json", *common)
    with metrics.open() as file:
        predicted = json.loads(file.readline())["predicted"]
    row = json.loads(planned.stdout)
    del row["plan"], row["fits"]
    assert predicted == row, (case, predicted, row)
    notes = [{line for line in text.splitlines() if "micro-batches have at most" in line} for text in (ran.stdout + ran.stderr, planned.stderr)]
    assert notes[0] == notes[1], (case, notes)
    limited += len(notes[0])
assert limited > 0, "no case is limited by memory"
