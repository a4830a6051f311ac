"""Rows of dyna-plan beside each other: `search` and `stored` with their files."""
import json
import sys


def rows_of(path):
    return [json.loads(line) for line in open(path)]


def search(all_path, alone_path, name):
    """The fastest first; the one of a strategy is what dyna-plan says of it alone, beside its estimate and flags."""
    rows, alone = rows_of(all_path), rows_of(alone_path)
    speeds = [row["tokens_per_second"] for row in rows]
    assert len(rows) == len({row["plan"] for row in rows}) > 9, [row["plan"] for row in rows]
    assert speeds == sorted(speeds, reverse=True) and speeds[0] > speeds[-1], speeds
    found = [row for row in rows if row["plan"] == name]
    assert len(found) == len(alone) == 1, [row["plan"] for row in rows]
    assert found[0].pop("of_steps") == found[0]["steps"] == 1, found
    # A pipeline may have slices, and a search has them only if asked.
    assert found[0].pop("flags") == f"--strategy {name} --slices none" and found[0].pop("estimated_seconds") > 0, found
    assert {**found[0], "plan": ""} == {**alone[0], "plan": ""}, (found, alone)


def exhaustive(found_path, all_path):
    """The answer of the search is within 3 % of the best of all strategies."""
    found, every = ([row for row in rows_of(path) if "seconds" in row] for path in (found_path, all_path))
    assert len(every) > 2 * len(found), (len(found), len(every))
    best = min(row["seconds"] for row in every)
    assert found[0]["seconds"] <= 1.03 * best, (found[0]["plan"], found[0]["seconds"], best)


def stored(fused_path, stored_path):
    """Scores take time and memory; made again they take more time and less memory."""
    fused, stored = rows_of(fused_path), rows_of(stored_path)
    assert [row["plan"].split()[1] for row in stored] == ["recompute=none", "recompute=selective"], stored
    for one, other in zip(fused, stored):
        assert one["seconds"] < other["seconds"] and one["rank_peak_bytes"][0] < other["rank_peak_bytes"][0], (one, other)
    assert stored[0]["seconds"] < stored[1]["seconds"], stored
    assert stored[0]["rank_peak_bytes"][0] > stored[1]["rank_peak_bytes"][0], stored


def slices(found_path, all_path):
    """The fastest slices in a pipeline, and takes less than all that do not slice."""
    rows = [row for row in rows_of(all_path) if "seconds" in row]
    best = rows_of(found_path)[0]
    assert best["plan"].endswith(" slices=auto") and best["flags"].endswith(" --slices auto"), best["plan"]
    assert "pp=1" not in best["plan"] and best["cuts"] and len(best["cuts"][0]["slices"]) > 1, best
    whole = [row["seconds"] for row in rows if " slices=" not in row["plan"]]
    assert whole and best["seconds"] < 0.9 * min(whole), (best["plan"], best["seconds"], whole)


{"search": search, "exhaustive": exhaustive, "slices": slices, "stored": stored}[sys.argv[1]](*sys.argv[2:])
