"""What dyna-plan shows of the plans that it played: `report`, `ordered`, `trace`, `svg`, `many` and `longer` with their files."""

import collections
import json
import sys
import xml.etree.ElementTree

import nesting


def lines_of(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def report(path):
    (plan,) = lines_of(path)
    bounds = [plan[f"{bound}_bound_seconds"] for bound in ("busy", "load", "path")]
    assert min(bounds) > 0 and plan["bound_seconds"] == max(bounds) <= plan["seconds"] * (1 + 1e-9), plan
    assert abs(plan["bubble"] - 1 + plan["busy_bound_seconds"] / plan["seconds"]) < 1e-5, plan
    assert len(plan["rank_peak_bytes"]) == 4, plan
    assert 0 < plan["exchange"] <= plan["bubble"], plan
    for stage, entry in enumerate(plan["stages"]):
        assert entry["peak_bytes"] == max(plan["rank_peak_bytes"][stage::2]), plan
        assert abs(entry["busy_seconds"] / plan["seconds"] + entry["imbalance"] + plan["bubble"] - 1) < 1e-5, plan
    assert plan["padding_share"] == 0, plan


def ordered(path):
    ragged, padded = lines_of(path)
    assert ragged["padding"] == 0 < padded["padding"], (ragged, padded)
    assert ragged["seconds"] <= padded["seconds"], (ragged["seconds"], padded["seconds"])


def trace(path, reports):
    events = nesting.events_of(path)
    plans = lines_of(reports)
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names == {4 * p + rank: f"{plan['plan']} rank {rank}" for p, plan in enumerate(plans) for rank in range(4)}, names
    for p, plan in enumerate(plans):
        own = [event for event in events if event["pid"] // 4 == p]
        slices = [event for event in own if event["ph"] == "X"]
        end = max(event["ts"] + event["dur"] for event in slices)
        assert abs(end - plan["seconds"] * 1e6) < 0.07, (end, plan)
        assert {event["args"]["step"] for event in slices} == set(range(1, plan["steps"] + 1))
        arrows = collections.Counter((event["id"], event["ph"]) for event in own if event["ph"] in "sf")
        # An activation and a gradient for each micro-batch.
        assert len(arrows) == 2 * 2 * plan["micro_batches"], (len(arrows), plan)
        assert set(arrows.values()) == {1}


def svg(path, *names):
    root = xml.etree.ElementTree.parse(path).getroot()
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    for name in names:
        assert name in texts, texts
    assert texts.count("rank 3") == len(names), texts
    for word in ("forward", "backward", "update", "idle", "0"):
        assert word in texts, texts
    width = float(root.attrib["viewBox"].split()[2])
    for node in root.iter("{http://www.w3.org/2000/svg}rect"):
        assert float(node.attrib.get("x", 0)) + float(node.attrib["width"]) <= width, node.attrib


def many(path, reports):
    """Thousands of slices: ranks of a stage share a row, a row has a few bars for each unit, and colours keep their share."""
    root = xml.etree.ElementTree.parse(path).getroot()
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    plans = lines_of(reports)
    assert [text for text in texts if text.startswith("rank")] == ["ranks 0-1", "ranks 2-3"] * len(plans), texts[:9]
    rects = [node for node in root.iter("{http://www.w3.org/2000/svg}rect") if node.attrib["height"] == "22"]
    rows = {}
    for node in rects:
        rows.setdefault(int(node.attrib["y"]), []).append((node.attrib["fill"], float(node.attrib["x"]), float(node.attrib["width"])))
    span = max(plan["seconds"] for plan in plans)
    stages = [(plan, stage) for plan in plans for stage in plan["stages"]]
    assert len(rows) == len(stages), (len(rows), len(stages))
    for (plan, stage), row in zip(stages, (rows[y] for y in sorted(rows))):
        idle, left, width = row[0]
        assert idle == "#e4e4e4" and all(left <= x and x + size <= left + width + 0.02 for _, x, size in row), row[:3]
        assert len(row) <= 3 * width < 4 * plan["micro_batches"], (len(row), plan["micro_batches"])
        work = sum(size for fill, _, size in row if fill in ("#4477aa", "#ccbb44", "#66ccee"))
        assert abs(work / width - stage["busy_seconds"] / span) < 0.01, (work, width, stage)
        # No bar lies on another one.
        bars = sorted((x, size) for fill, x, size in row[1:])
        assert all(a + size <= b + 0.02 for (a, size), (b, _) in zip(bars, bars[1:]))


def longer(sooner, later):
    assert lines_of(sooner)[0]["seconds"] < lines_of(later)[0]["seconds"]


if __name__ == "__main__":
    {"report": report, "ordered": ordered, "trace": trace, "svg": svg, "many": many, "longer": longer}[sys.argv[1]](*sys.argv[2:])
