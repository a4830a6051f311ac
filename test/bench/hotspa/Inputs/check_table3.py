"""Table 3 on a player that is a formula, so that what is fitted and made is known; and rows as a small model plays them."""

import math
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import steps
import table3


class Formula(steps.Player):
    """A row takes 1 / reach per token and fixed time for a call, on a pipeline of equal stages."""

    def __init__(self):
        self.reach, self.call_seconds = 0.5, 1e-3
        self.asked = 0

    def _rows(self, degrees, end, count):
        self.asked += 1
        dp, tp, pp = degrees
        row = end * (1 + end / 65536) / (self.reach * 1000 * tp * pp) + 100 * self.call_seconds / pp
        return (math.ceil(count / dp) + pp - 1) * row


def near(one, other, part=1e-6):
    return abs(one - other) <= part * max(abs(one), abs(other))


player = Formula()
# Rows: whole ones, between them, and far more than are played.
assert player.rows((2, 1, 4), 100, 0) == 0
assert near(player.rows((2, 1, 4), 100, 3), player._rows((2, 1, 4), 100, 3))
assert near(player.rows((1, 1, 4), 100, 3.25), 0.75 * player._rows((1, 1, 4), 100, 3) + 0.25 * player._rows((1, 1, 4), 100, 4))
assert near(player.rows((2, 1, 4), 100, 1001), player._rows((2, 1, 4), 100, 1001))

# What a column was made with is found again.
player.reach, player.call_seconds = 0.4, 5e-3
tokens = [1e5, 3e5, 2e5, 2e5, 4e5]
column = [player.rows(table3.STATIC, end, count / end) for end, count in zip(table3.ENDS, tokens)]
assert all(near(*pair, 1e-3) for pair in zip(table3.fit(player, tokens, column), column))
assert near(player.reach, 0.4, 1e-2) and near(player.call_seconds, 5e-3, 1e-2), (player.reach, player.call_seconds)
for end, seconds, count in zip(table3.ENDS, column, tokens):
    assert near(table3.tokens_for(player, end, seconds), count, 1e-3)

# Lengths have the tokens that they are made of, in their ranges.
lengths = table3.make_lengths([140000, 87000, 22000, 27000, 33000])
assert len(lengths) == table3.SAMPLES and max(lengths) <= 32768 and min(lengths) >= 1
for part, count in zip(steps.split(lengths, table3.ENDS), [140000, 87000, 22000, 27000, 33000]):
    assert near(sum(part), count, 0.25), (sum(part), count)
assert steps.pack([5, 5, 4, 3, 3], 10) == 2 and steps.pack([6, 6, 6], 10) == 3
assert steps.quantiles(range(100), 4) == [12, 37, 62, 87]
assert table3.groups(table3.CASES["C1"]) == [(0, 4096, (4, 2, 4)), (4096, 16384, (2, 8, 2)), (16384, 32768, (1, 16, 2))]

# Tables: a merged range stands once, relative figures are those of its columns.
found = {"Static": [10.0, 20.0, 5.0, 6.0, 7.0], "C1": [15.0, 5.5, 7.0, 0.5], "C2": [15.0, 2.5, 3.0, 7.0, 0.5], "C3": [4.0, 8.0, 2.5, 3.0, 7.0, 0.5]}
lines, totals = table3.compare("GitHub", found)
assert lines[2] == "| 0-1K | 10.0 (34.9) | 15.0 (26.3), 2.00 (2.79) | 15.0 (26.3), 2.00 (2.79) | 4.0 (8.6), 2.50 (4.06) |", lines[2]
assert lines[3].startswith('| 1-4K | 20.0 (38.4) | " | " | 8.0 (17.1)'), lines[3]
assert totals == {"Static": 48.0, "C1": 28.0, "C2": 28.0, "C3": 25.0}

# The text of people stays, in front and behind.
page = pathlib.Path(sys.argv[2])
page.write_text("before\n")
table3.write(page, ["one"])
page.write_text(page.read_text() + "behind\n")
table3.write(page, ["two", "three"])
text = page.read_text()
assert text.startswith("before\n") and text.endswith("behind\n") and "one" not in text and "two\nthree" in text, text

# Equal rows take a line's time in dyna-plan, too.
real = steps.Player(pathlib.Path(shutil.which(sys.argv[1])), steps.Size("tiny", 4, 64, 128, 4), 8)
assert near(real.rows((2, 1, 4), 64, 48), real._rows((2, 1, 4), 64, 48), 1e-3)
answer = real.search([60] * 40 + [500] * 4)
# Estimates may favour another one, but what is played decides.
assert answer["seconds"] <= answer["single_seconds"] or answer["played_alone_seconds"] < answer["played_seconds"], answer
