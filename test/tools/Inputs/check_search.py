"""Rows of dyna-plan beside each other: `search` and `stored` with their files."""
import json
import sys


def rows_of(path):
    return [json.loads(line) for line in open(path)]


def search(all_path, alone_path, name):
    """Nine, the fastest first; the one of a strategy is what dyna-plan says of it alone."""
    rows, alone = rows_of(all_path), rows_of(alone_path)
    speeds = [row["tokens_per_second"] for row in rows]
    assert len(rows) == len({row["plan"] for row in rows}) == 9, [row["plan"] for row in rows]
    assert speeds == sorted(speeds, reverse=True) and speeds[0] > speeds[-1], speeds
    found = [row for row in rows if row["plan"] == name]
    assert len(found) == len(alone) == 1, [row["plan"] for row in rows]
    assert {**found[0], "plan": ""} == {**alone[0], "plan": ""}, (found, alone)


def stored(fused_path, stored_path):
    """Scores take time and memory; made again they take more time and less memory."""
    fused, stored = rows_of(fused_path), rows_of(stored_path)
    assert [row["plan"].split()[1] for row in stored] == ["recompute=none", "recompute=selective"], stored
    for one, other in zip(fused, stored):
        assert one["seconds"] < other["seconds"] and one["rank_peak_bytes"][0] < other["rank_peak_bytes"][0], (one, other)
    assert stored[0]["seconds"] < stored[1]["seconds"], stored
    assert stored[0]["rank_peak_bytes"][0] > stored[1]["rank_peak_bytes"][0], stored


{"search": search, "stored": stored}[sys.argv[1]](*sys.argv[2:])
