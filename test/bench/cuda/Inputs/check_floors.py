"""Floors of the tiny GPT of pack.py, in RESULTS and its KERNELS.json, against bytes that are counted here by hand: 256 tokens, two
blocks of width 32 and 128, in bf16."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import activity  # noqa: E402
import floors  # noqa: E402

results = pathlib.Path(sys.argv[1])
kernels = json.loads(pathlib.Path(sys.argv[2]).read_text())
records = {record["what"]: record for record in map(json.loads, (results / "results.jsonl").read_text().splitlines())}
gaps, ceilings = records["gaps"], records["device.ceilings"]

ROW, WIDE = 32 * 2, 128 * 2
# A norm; bias, residual and norm behind the attention; bias and residual behind the block.
FORWARD = 2 * ROW + 4 * ROW + 3 * ROW
# Sums of the bias behind gelu; both norms' gradients, of three rows each, and the next gradient; sums of query, key and value.
BACKWARD = WIDE + 2 * 4 * ROW + 3 * ROW
# Positions added; the last norm, and its gradient.
SWEEPS = 256 * (2 * (FORWARD + BACKWARD) + 2 * ROW + 2 * ROW + 3 * ROW)
# A row of the table and of the result; what two tables' gradients add up.
TABLES = 256 * (2 * ROW + 2 * ROW)
for name, moved in (("sweeps", SWEEPS), ("tables", TABLES)):
    floor, group = moved / ceilings["copy_bytes_per_s"], gaps["groups"][name]
    assert abs(group["over_floor"] - group["s"] / floor) <= 1e-3 * (1 + group["over_floor"]), (name, group, floor)
    assert abs(records["floors"]["seconds"][name] / floor - 1) < 1e-3, (name, records["floors"], floor)

# What is called without a run is what a run calls; the rest are sums of parts, and what brings micro-batches into place.
work, _ = activity.read((results / "activity-tiny.txt").read_text())
seen = activity.calls(activity.steps_of(work, 3))
assert floors.calls_of_step(kernels) == {name: calls for name, calls in seen.items() if name in kernels["row_bytes"]}, seen
without = {name: group["kernels_without_floor"] for name, group in gaps["groups"].items() if "kernels_without_floor" in group}
sums = [f"block_backward_sum{number}" for number in (1, 3, 5, 7, 9, 11)] + ["head_backward_sum1"]
assert without == {"sweeps": sorted(sums), "tables": ["check_rows"]}, without

# Each of the slowest has its own.
for line in records["gaps.kernels"]["kernels"]:
    moved = 256 * kernels["row_bytes"].get(line["name"].removeprefix("kernel "), 0)
    over = line["us"] * 1e-6 / line["calls"] * ceilings["copy_bytes_per_s"] / moved if moved else None
    assert line["over_floor"] == over or abs(line["over_floor"] - over) <= 2e-3 * (1 + over), (line, over)
