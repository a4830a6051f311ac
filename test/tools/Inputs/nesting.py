"""Checks that Perfetto keeps every slice of traces: nesting.py TRACE...

The rule of its importer, as test/runtime/base/TraceNesting.h has it: times are cut off to whole nanoseconds; the slices of a track
are ordered by their begin, equal ones as in the file; open slices that end before a new one begins are ended; a new one that ends
behind the innermost open slice is dropped.
"""

import json
import sys


def dropped(events):
    """The slices that Perfetto drops, with the one that each overlaps."""
    tracks = {}
    for event in events:
        if event.get("ph") == "X":
            begin = int(event["ts"] * 1000)
            tracks.setdefault((event["pid"], event["tid"]), []).append((begin, begin + int(event["dur"] * 1000), event))
    found = []
    for slices in tracks.values():
        open_slices = []
        for one in sorted(slices, key=lambda entry: entry[0]):
            while open_slices and open_slices[-1][1] <= one[0]:
                open_slices.pop()
            if one[1] < one[0] or open_slices and one[1] > open_slices[-1][1]:
                found.append((one[2], open_slices[-1][2] if open_slices else None))
            else:
                open_slices.append(one)
    return found


def events_of(path):
    """The events of a trace; fails if Perfetto drops a slice."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    lost = dropped(events)
    if lost:
        raise AssertionError(f"{path}: Perfetto drops {len(lost)} slices, first {lost[0]}")
    return events


if __name__ == "__main__":
    for path in sys.argv[1:]:
        assert events_of(path), f"{path} has no events"
