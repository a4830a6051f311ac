"""What lines of `dyna-plan --switch --json` say of one switch fits together: check_switch.py FILE [MOST].

With MOST: switches take at most so many times their bound."""

import json
import sys

if len(sys.argv) > 2:
    for line in open(sys.argv[1]):
        row = json.loads(line)
        assert row["seconds"] <= float(sys.argv[2]) * row["bound"], row
    sys.exit()

for line in open(sys.argv[1]):
    row = json.loads(line)
    nodes = row["node_bytes"]
    between = sum(count for i, counts in enumerate(nodes) for j, count in enumerate(counts) if i != j)
    assert between == row["between_bytes"], row
    assert sum(nodes[i][i] for i in range(len(nodes))) == row["inside_bytes"], row
    assert row["bound"] == max(row["bounds"].values()), row
    assert row["seconds"] >= row["port_seconds"] >= 0.999 * row["bound"], row
    for name, baseline in row["baselines"].items():
        assert baseline["port_seconds"] >= 0.999 * row["bound"], (name, row)
    # Into a node goes what it lacks, once: what Algorithm 1 sends between nodes, or less.
    assert row["between_bytes"] <= row["baselines"]["algorithm1"]["between_bytes"], row
    lines = json.dumps(row)
assert "dp=4,tp=2" in lines and " -> " in lines
