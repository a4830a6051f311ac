"""The rows of a search: nine, the fastest first; the one of a strategy is what dyna-plan says of it alone."""
import json
import sys

search, alone = ([json.loads(line) for line in open(path)] for path in sys.argv[1:3])
speeds = [row["tokens_per_second"] for row in search]
assert len(search) == len({row["plan"] for row in search}) == 9, [row["plan"] for row in search]
assert speeds == sorted(speeds, reverse=True) and speeds[0] > speeds[-1], speeds
found = [row for row in search if row["plan"] == sys.argv[3]]
assert len(found) == len(alone) == 1, [row["plan"] for row in search]
assert {**found[0], "plan": ""} == {**alone[0], "plan": ""}, (found, alone)
