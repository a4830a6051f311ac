"""What `dyna-plan --ranges --json` says of steps fits together: check_ranges.py STEPS ONE_STRATEGY."""

import json
import sys


def near(a, b):
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1e-30)


row, short = (json.load(open(path)) for path in sys.argv[1:3])
phases = row["phases"]
assert sorted(phase["plan"] for phase in phases) == ["long", "short"], row
for key in ["samples", "tokens", "micro_batches"]:
    assert row[key] == sum(phase[key] for phase in phases), (key, row)
assert row["samples"] == 308, row
for key in ["switch_seconds", "switch_bytes"]:
    assert row[key] > 0 and near(row[key], sum(phase.get(key, 0) for phase in phases)), (key, row)
assert near(row["switch_alone_seconds"], sum(phase.get("switch_alone_seconds", 0) for phase in phases)) and row["switch_alone_seconds"] > 0, row
# Phases overlap where ranks go on before others. Waits for switches are in them.
assert max(phase["seconds"] for phase in phases) <= row["seconds"] <= sum(phase["seconds"] for phase in phases) * (1 + 1e-6), row
assert row["seconds"] >= row["bound_seconds"] > 0 and row["plan_seconds"] > 0, row
for phase in phases:
    assert phase["seconds"] >= phase["load_bound_seconds"] > 0, phase
    assert len(phase["rank_peak_bytes"]) == 4, phase
assert row["rank_peak_bytes"] == [max(bytes) for bytes in zip(*(phase["rank_peak_bytes"] for phase in phases))], row
# Home has nothing to fetch and nothing to send.
assert [("switch_bytes" in phase) for phase in phases].count(False) == 1, row

alone = {one["strategy"]: one for one in row["alone"]}
assert sorted(alone) == ["long", "short"] and all(one["fits"] for one in alone.values()), row
for one in alone.values():
    assert near(one["gain"] * row["seconds"], one["seconds"]), row
# A strategy alone is a run with one range, whose steps have one phase and no switches.
assert near(alone["short"]["seconds"], short["seconds"]), (row, short)
assert not {"phases", "switch_seconds", "switch_bytes"} & set(short) and short["stages"], short
assert near(short["alone"][0]["gain"], 1), short
