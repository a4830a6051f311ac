"""A trace and a picture of steps that switch: check_ranges_pictures.py TRACE SVG."""

import json
import re
import sys

trace, svg = (open(path).read() for path in sys.argv[1:3])
events = json.loads(trace)
events = events["traceEvents"] if isinstance(events, dict) else events
switches = [event for event in events if event.get("cat") == "switch"]
assert {event["name"] for event in switches} == {"values come", "gradients go home"}, {e["name"] for e in switches}
# Four ranks of two schedules, each with processes of their own; nobody computes while a switch goes on.
assert {event["pid"] for event in switches} == set(range(8)), switches[:3]
for pid in range(8):
    own = [event for event in switches if event["pid"] == pid]
    functions = [event for event in events if event.get("pid") == pid and event.get("ph") == "X"
                 and event.get("cat") not in ("switch", "step") and "phase" in event.get("args", {})]
    assert own and functions, pid
    for one in own:
        for other in functions:
            begin, end = max(one["ts"], other["ts"]), min(one["ts"] + one["dur"], other["ts"] + other["dur"])
            assert end - begin < 0.01, (one, other)

assert svg.count('font-weight="bold"') == 2, "a panel for each schedule"
bars = re.findall(r"<title>switches: ([0-9.e-]+) to ([0-9.e-]+) s</title>", svg)
assert len(bars) == 2 * 4 * 2, bars
assert all(float(begin) < float(end) for begin, end in bars), bars
assert re.search(r"<title>\w+: stage 0 of replica 0; \w+: stage 0 of replica 0</title>", svg), "rows name both places"
