"""Changes instructions of a printed plan. Each is named by a piece of its line, which
must occur once.

    edit.py swap FILE A B [number]   A and B change places; `number`: only their micro-batches
    edit.py move FILE A B            A goes in front of B
"""
import re
import sys

action, path, first, second = sys.argv[1:5]
lines = open(path).read().split("\n")


def find(piece):
    found = [index for index, line in enumerate(lines) if re.search(re.escape(piece) + r"\b", line)]
    assert len(found) == 1, f"{piece}: {len(found)} lines"
    return found[0]


a, b = find(first), find(second)
if action == "move":
    line = lines.pop(a)
    lines.insert(find(second), line)
elif "number" in sys.argv[5:]:
    number = re.compile(r"micro_batch \d+")
    texts = [number.search(lines[a])[0], number.search(lines[b])[0]]
    lines[a] = number.sub(texts[1], lines[a])
    lines[b] = number.sub(texts[0], lines[b])
else:
    lines[a], lines[b] = lines[b], lines[a]
print("\n".join(lines))
