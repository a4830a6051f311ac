"""Where a switch breaks even, on a player that is a formula."""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import break_even
from break_even import MOST, first_worth

# The fewest from which on all are worth it, not the fewest that happen to be.
assert first_worth(lambda count: 0.25 * count, 1) == 4
assert first_worth(lambda count: 0.25 * count if count != 6 else 0, 1) == 7
assert first_worth(lambda count: -count, 1) is None
assert first_worth(lambda count: 0.25 * count if count < MOST else 0, 1) is None
assert first_worth(lambda count: 0, 0) == 1


class Formula(break_even.Player):
    """A row takes a second for 1,024 tokens on all shards of a stage; switches half a second a way, twice that by Algorithm 1."""

    def __init__(self):
        self.asked = []

    def ways(self, home, guest, side):
        self.asked.append((home, guest))
        return 1 if side == "ours" else 2

    def rows(self, degrees, end, count):
        dp, tp, _ = degrees
        if end > 4096 * tp:
            raise RuntimeError("rows do not fit")
        # More shards are less than so many times as fast.
        return math.ceil(count / dp) * end / 1024 / math.sqrt(tp)


lines = break_even.page(Formula(), [(1, 4, 1), (4, 1, 1)], [1024, 8192])
table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| (")]
# A row of 1K takes half a second on four shards, and four rows one on four replicas: what more gain depends on whether they
# fill the replicas.
worth = {cost: min(n for n in range(1, 100) if all(m / 2 - math.ceil(m / 4) >= cost for m in range(n, 200))) for cost in (1, 2)}
assert worth[1] != worth[2]
assert table == [["(1,4,1)", "(4,1,1)", "1.00 (2.00)", f"{worth[1]} ({worth[2]})", "no room"],
                 ["(4,1,1)", "(1,4,1)", "1.00 (2.00)", "-", "no room"]], (table, worth)
