"""What dyna-plan shows of the plans that it played: `report`, `ordered`, `trace`, `svg` and `longer` with their files."""

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


def longer(sooner, later):
    assert lines_of(sooner)[0]["seconds"] < lines_of(later)[0]["seconds"]


if __name__ == "__main__":
    {"report": report, "ordered": ordered, "trace": trace, "svg": svg, "longer": longer}[sys.argv[1]](*sys.argv[2:])
