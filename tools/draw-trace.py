#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws one step of a trace as SVG: what ranks did, beside what was predicted if the trace has it, on one scale of time.

    tools/draw-trace.py trace.json -o step.svg [--step N]

Traces are those of a training binary (`--trace`, with `--costs` for the prediction) and of `dyna-plan --trace`. Every rank is a
row: what a micro-batch takes on it is a bar with its number, what stays grey is idle or waits for a message. Below the row are
the switches of a step of several graphs, a line for values that come and one for gradients that go home, and the bytes that are
alive, all ranks on one scale. Steps are numbered from 1, as metrics number them.
"""
import argparse
import json
import math
import re
import sys
from xml.sax.saxutils import escape

# Name, colour, ink; the colours of `dyna-plan --svg`.
LOOKS = {"forward": ("#4477aa", "#ffffff"), "backward": ("#ccbb44", "#000000"), "weight gradients": ("#228833", "#ffffff"),
         "computed again": ("#aa3377", "#ffffff"), "update": ("#66ccee", "#000000"), "idle": ("#e4e4e4", "#000000"),
         "values come": ("#ee6677", "#ffffff"), "gradients go home": ("#663300", "#ffffff"), "memory": ("#bbbbbb", "#000000")}
WORK = {"FORWARD": "forward", "EVALUATE": "forward", "BACKWARD": "backward", "BACKWARD_INPUT": "backward",
        "BACKWARD_WEIGHT": "weight gradients", "RECOMPUTE": "computed again", "UPDATE": "update", "GRAD_NORM": "update"}
# Slices of the tracks that switches have, whose names are those of the looks.
SWITCHES = ("values come", "gradients go home")
WIDTH, LEFT, RIGHT, ROW, SWITCH, MEMORY, GAP, TITLE, TOP = 1000, 70, 80, 20, 5, 16, 6, 24, 30


class Mistake(Exception):
    """What is wrong with the input, for people."""


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        return [event for event in events if isinstance(event, dict)]
    except OSError as error:
        raise Mistake(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Mistake(f"{path} is no trace: {error or type(error).__name__}") from error


def ranks_of(events):
    """(panel, rank) of each process: "rank 1" ran, what stands before "rank" names whoever else did."""
    places = {}
    for event in events:
        if event.get("name") == "process_name":
            found = re.fullmatch(r"(?:(.*) )?rank (\d+)", event["args"]["name"])
            if found:
                places[event["pid"]] = (found[1] or "executed", int(found[2]))
    return places


def bars_of(slices):
    """What follows one another of one micro-batch and kind of work is one bar: (work, micro-batch, phase, begin, end)."""
    bars = []
    for event in sorted(slices, key=lambda event: event["ts"]):
        if event.get("cat") == "phase":  # has the name of its strategy
            continue
        work, number, phase = WORK.get(event["name"]), event["args"].get("micro_batch"), event["args"].get("phase")
        begin, end = event["ts"], event["ts"] + event["dur"]
        if work is None or event["dur"] <= 0:
            continue
        # Between the layers of one pass nothing else is drawn, unless something was waited for.
        if bars and bars[-1][:3] == [work, number, phase] and begin - bars[-1][4] <= 0.1 * (end - bars[-1][3]):
            bars[-1][4] = end
        else:
            bars.append([work, number, phase, begin, end])
    return bars


def tick_of(span):
    """1, 2 or 5 times a power of ten, about an eighth of the whole."""
    tick = 10.0 ** math.floor(math.log10(span / 8))
    return next(tick * factor for factor in (1, 2, 5, 10) if span / (tick * factor) <= 10)


def bytes_text(count):
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def draw(events, step):
    places = ranks_of(events)
    if not places:
        raise Mistake("the trace names no ranks")
    of_step = [event for event in events if event.get("ph") == "X" and event["pid"] in places and
               event.get("cat") not in ("exchange", "transfer")]
    steps = sorted({event["args"]["step"] for event in of_step})
    if step not in steps:
        raise Mistake(f"the trace has no step {step}, only {', '.join(map(str, steps)) or 'none'}")
    of_step = [event for event in of_step if event["args"]["step"] == step]
    # Every panel begins with its own first work.
    starts, ends = {}, {}
    for event in of_step:
        panel = places[event["pid"]][0]
        starts[panel] = min(starts.get(panel, math.inf), event["ts"])
        ends[panel] = max(ends.get(panel, 0), event["ts"] + event["dur"])
    span = max(ends[panel] - starts[panel] for panel in starts)
    # Counters do not say of which step they are: they stand where instructions begin.
    begins = {(event["pid"], event["ts"]) for event in of_step}
    memory = {}
    for event in events:
        if event.get("ph") == "C" and (event["pid"], event["ts"]) in begins:
            memory.setdefault(event["pid"], []).append((event["ts"] - starts[places[event["pid"]][0]], event["args"]["bytes"]))
    most = max((size for curve in memory.values() for _, size in curve), default=0)
    switching = {places[event["pid"]][0] for event in of_step if event["name"] in SWITCHES}
    text, used, y = [], set(), TOP
    x = lambda time: LEFT + time / span * (WIDTH - LEFT - RIGHT)  # noqa: E731
    # What ran comes first.
    for panel in sorted(starts, key=lambda name: (name != "executed", min(p for p, place in places.items() if place[0] == name))):
        text.append(f'<text x="{LEFT}" y="{y + 16}" font-weight="bold">{escape(panel)}</text>')
        text.append(f'<text x="{x(ends[panel] - starts[panel]):.2f}" y="{y + 16}" text-anchor="end">'
                    f'{(ends[panel] - starts[panel]) / 1e3:.4g} ms</text>')
        y += TITLE
        for process, (_, rank) in sorted((entry for entry in places.items() if entry[1][0] == panel), key=lambda entry: entry[1][1]):
            text.append(f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">rank {rank}</text>')
            text.append(f'<rect x="{LEFT}" y="{y}" width="{WIDTH - LEFT - RIGHT}" height="{ROW}" fill="{LOOKS["idle"][0]}"/>')
            for work, number, phase, begin, end in bars_of(event for event in of_step if event["pid"] == process):
                used.add(work)
                colour, ink = LOOKS[work]
                begin, end = begin - starts[panel], end - starts[panel]
                size = x(end) - x(begin)
                label = "" if number is None else str(number)
                said = (f"{work}{' of micro-batch ' + label if label else ''}{'' if phase is None else f' in phase {phase}'}: "
                        f"{begin / 1e3:.3f} to {end / 1e3:.3f} ms")
                text.append(f'<rect x="{x(begin):.2f}" y="{y}" width="{size:.2f}" height="{ROW}" fill="{colour}" stroke="#ffffff" '
                            f'stroke-width="0.5"><title>{said}</title></rect>')
                if label and size >= 7 * len(label):
                    text.append(f'<text x="{x(begin) + size / 2:.2f}" y="{y + 14}" text-anchor="middle" font-size="11" '
                                f'fill="{ink}">{label}</text>')
            y += ROW + 2
            for name in SWITCHES if panel in switching else ():
                for event in of_step:
                    if event["pid"] == process and event["name"] == name:
                        used.add(name)
                        begin, size = event["ts"] - starts[panel], event["dur"]
                        said = (f"{name}, phase {event['args']['phase']}: {begin / 1e3:.3f} to {(begin + size) / 1e3:.3f} ms, "
                                f"{bytes_text(event['args'].get('bytes', 0))} sent")
                        text.append(f'<rect x="{x(begin):.2f}" y="{y}" width="{x(size) - LEFT:.2f}" height="{SWITCH}" '
                                    f'fill="{LOOKS[name][0]}"><title>{said}</title></rect>')
                y += SWITCH + 1
            if most > 0:
                curve = memory.get(process, [])
                path, level = f"M{LEFT} {y + MEMORY}", 0
                for time, size in curve:
                    path += f" L{x(time):.1f} {y + MEMORY * (1 - level / most):.1f} L{x(time):.1f} {y + MEMORY * (1 - size / most):.1f}"
                    level = size
                path += f" L{x(ends[panel] - starts[panel]):.1f} {y + MEMORY * (1 - level / most):.1f} V{y + MEMORY} Z"
                peak = max((size for _, size in curve), default=0)
                text.append(f'<path d="{path}" fill="{LOOKS["memory"][0]}"/>')
                text.append(f'<text x="{WIDTH - RIGHT + 6}" y="{y + MEMORY}" font-size="11">{bytes_text(peak)}</text>')
                y += MEMORY
            y += GAP
        y += GAP
    at = LEFT
    for name in [name for name in LOOKS if name in used] + ["idle"] + (["memory"] if most else []):
        text.append(f'<rect x="{at}" y="8" width="14" height="14" fill="{LOOKS[name][0]}"/><text x="{at + 19}" y="19">{name}</text>')
        at += 40 + 7 * len(name)
    tick = tick_of(span)
    text.append(f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" stroke="#000000"/>')
    for number in range(int(span / tick * (1 + 1e-9)) + 1):
        place = x(number * tick)
        text.append(f'<line x1="{place:.2f}" y1="{y}" x2="{place:.2f}" y2="{y + 5}" stroke="#000000"/>'
                    f'<text x="{place:.2f}" y="{y + 20}" text-anchor="middle">{number * tick / 1e3:g} ms</text>')
    y += 34
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" font-family="sans-serif" font-size="12">',
                      f'<rect width="{WIDTH}" height="{y}" fill="#ffffff"/>', *text, "</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    parser.add_argument("-o", dest="output", required=True)
    parser.add_argument("--step", type=int, default=1)
    options = parser.parse_args()
    try:
        events = read(options.trace)
        try:
            picture = draw(events, options.step)
        except (KeyError, TypeError, ValueError) as error:
            raise Mistake(f"{options.trace} has events that are not Dyna's: {error!r}") from error
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(picture)
    except Mistake as error:
        print(f"draw-trace: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"draw-trace: cannot write {options.output}: {error.strerror}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
