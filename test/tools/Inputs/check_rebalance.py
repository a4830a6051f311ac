# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that the numbers of --rebalance and --repack agree with each other: check_rebalance.py ROWS.json PLAN.json"""

import json
import math
import sys

with open(sys.argv[1]) as file:
    rows = [json.loads(line) for line in file]
with open(sys.argv[2]) as file:
    plan = json.loads(file.readline())
present, time, published, packed = rows[:4]
assert (present["present"], time["rebalance"], published["rebalance"], packed["repack"]) == ("present", "time", "algorithm2", "2"), rows


def near(one, other, share=1e-6):
    return abs(one - other) <= share * max(abs(one), abs(other))


# The exact cut is that of plans without --rebalance, and it is faster.
assert near(time["step_seconds"], plan["seconds"], 0.01), (time, plan)
assert max(time["loads"]) < max(present["loads"]) and time["step_seconds"] < present["step_seconds"], (present, time)
for row in (present, time, packed):
    # The same work on other ranks, and what is idle is all else.
    assert near(sum(row["loads"]), sum(present["loads"]), 1e-3), row
    idle = sum(row["idle"].values())
    assert all(share >= 0 for share in row["idle"].values()), row
    assert near(1 - sum(row["loads"]) / len(row["loads"]) / row["step_seconds"], idle, 1e-3), row
    assert near(row["tokens_per_second"] * row["step_seconds"], 16 * 512, 1e-4), row
    assert row["fits"] and row["simulated"], row
    assert sum(row["cut"]) == 18 and len(row["cut"]) == row["ranks"], row
# Sixteen micro-batches, four stages: the pipeline fills and drains for three of them.
mean = sum(present["loads"]) / 4
assert near(present["idle"]["inherent"] * present["step_seconds"], mean * 3 / 16, 1e-3), present
assert present["idle"]["network"] > 0 and present["idle"]["imbalance"] > 0, present
assert time["idle"]["imbalance"] < present["idle"]["imbalance"], (present, time)
assert packed["idle"]["inherent"] < present["idle"]["inherent"], (present, packed)
# Fewer ranks take longer, so they never earn their move.
assert packed["step_seconds"] > present["step_seconds"] and packed["steps_to_earn"] == -1, packed
for row in (time, published):
    saved = present["step_seconds"] - row["step_seconds"]
    assert abs(math.ceil(row["move_seconds"] / saved) - row["steps_to_earn"]) <= 1, row
    assert row["moved_bytes"] > 0 and row["move_seconds"] > 0, row
assert present["moved_bytes"] == 0 and present["move_seconds"] == 0, present
assert not published["simulated"] and published["cut"] == [] and "idle" not in published, published
# The move sends each byte once over links of 300 GB/s, from one rank at least.
assert time["move_seconds"] >= time["moved_bytes"] / 3e11 / 4, time
assert {row["policy"] for row in rows[4:]} == {"first-fit", "best-fit", "round-robin"}, rows
