"""A trace and a picture of steps that switch: check_ranges_pictures.py TRACE SVG."""

import re
import sys

import nesting

events = nesting.events_of(sys.argv[1])
with open(sys.argv[2]) as file:
    svg = file.read()
switches = [event for event in events if event.get("cat") == "switch"]
assert {event["name"] for event in switches} == {"values come", "gradients go home"}, {e["name"] for e in switches}
# Four ranks of two schedules, each with processes of their own.
assert {event["pid"] for event in switches} == set(range(8)), switches[:3]
# Starts and waits of a switch lie in its slice. Ports move its buckets in that time, and ranks compute in some of it.
hidden = 0
for pid in range(8):
    own = [event for event in events if event.get("pid") == pid and event.get("ph") == "X"]
    spans = {(event["args"]["step"], event["args"]["phase"], event["name"]): (event["ts"], event["ts"] + event["dur"])
             for event in own if event["cat"] == "switch"}
    ports = [event for event in own if event["cat"] == "transfer" and "bucket" in event["args"]]
    functions = [event for event in own if event["cat"] not in ("switch", "step", "phase", "transfer")]
    assert spans and ports and functions, pid
    for event in ports:
        name = {"values": "values come", "gradients": "gradients go home"}[event["name"]]
        begin, end = spans[event["args"]["step"], event["args"]["phase"], name]
        assert begin <= event["ts"] and event["ts"] + event["dur"] <= end, (event, begin, end)
        hidden += any(other["ts"] < event["ts"] + event["dur"] and event["ts"] < other["ts"] + other["dur"] for other in functions)
assert hidden > 0, "no bucket moves while a rank computes"

# A track has one name, told once, and what is on it is of that kind; so has a process.
named = [(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"]
assert len(named) == len(set(named)), named
names = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
words = {"switches: ": ("switch",), "phases": ("phase",), "activations": ("transfer",), "gradients to": ("transfer",), "parameters": ("transfer",),
         "switch port: ": ("transfer",)}
for event in events:
    if event.get("ph") == "X" and event["tid"] != 0:
        name = names[event["pid"], event["tid"]]
        wanted = [kinds for begin, kinds in words.items() if name.startswith(begin)]
        assert len(wanted) == 1 and event["cat"] in wanted[0], (name, event)
processes = [event["pid"] for event in events if event["name"] == "process_name"]
assert len(processes) == len(set(processes)), processes

# A track of phases, by their strategies: each has all functions of its own, and they do not overlap.
tracks = {event["args"]["name"] for event in events if event["name"] == "thread_name" and event["tid"] == 3}
assert tracks == {"phases"}, tracks
for pid in range(8):
    phases = [event for event in events if event.get("cat") == "phase" and event["pid"] == pid]
    assert {event["name"] for event in phases} == {"short", "long"}, phases
    places = {(event["args"]["step"], event["args"]["phase"]): (event["ts"], event["ts"] + event["dur"]) for event in phases}
    assert len(places) == len(phases), phases
    for event in events:
        if event.get("pid") == pid and event.get("ph") == "X" and {"layer", "phase"} <= event.get("args", {}).keys():
            begin, end = places[event["args"]["step"], event["args"]["phase"]]
            assert begin <= event["ts"] and event["ts"] + event["dur"] <= end, (event, begin, end)
    spans = sorted(places.values())
    assert all(one[1] <= other[0] for one, other in zip(spans, spans[1:])), spans

assert svg.count('font-weight="bold"') == 2, "a panel for each schedule"
bars = re.findall(r"<title>switches(?:, \d+ bars together)?: ([0-9.e-]+) to ([0-9.e-]+) s</title>", svg)
assert len(bars) >= 2 * 4, bars
assert all(float(begin) < float(end) for begin, end in bars), bars
assert re.search(r"<title>\w+: stage 0 of replica 0; \w+: stage 0 of replica 0</title>", svg), "rows name both places"
