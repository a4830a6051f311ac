"""What a GPU did in training steps, from the lines of KernelProbe.cpp: gaps between kernels, and what steps went on."""
import re
import statistics

# Kernels by what they are for, first match: generated ones have names of their layer, direction, op and number.
GROUPS = [("attention", r"^attention_|sdpa|flash|fmha|cudnn"),
          ("update", r"_(adamw|sgd|cast|squares|total)\d+$|^clip_norm$|^note_losses$"),
          ("head", r"^head_(list|rows|loss|sum|split)(_f32|_f64|_bf16|_wide)?$"),
          ("tables", r"^(place|check)_rows$|_(embedding|table)\d+$"),
          ("sweeps", r"_(rows|sum|copy)\d+$"),
          ("products", r"^product_|^standin_product$|gemm|nvjet|cutlass|xmma|splitk|cublas")]
# Once a step, behind all gradients.
LAST_OF_STEP = "clip_norm"


class Work:
    def __init__(self, line):
        self.kind, stream, begin, end, self.name = line.split(" ", 4)
        self.stream, self.begin, self.end = int(stream), int(begin), int(end)


def read(text):
    """All work in the order of its beginning, and how many records were lost. Those that CUPTI has no times of count as lost."""
    lines = text.splitlines()
    if not lines or not re.fullmatch(r"dropped \d+", lines[-1]):
        raise ValueError("the end is missing: the program did not end by itself, or CUPTI recorded nothing")
    work = [Work(line) for line in lines[:-1]]
    timed = [one for one in work if 0 < one.begin <= one.end]
    return sorted(timed, key=lambda one: one.begin), int(lines[-1].split()[1]) + len(work) - len(timed)


def group_of(name):
    return next((group for group, pattern in GROUPS if re.search(pattern, name, re.IGNORECASE)), "other")


def step_windows(work, warm):
    """(begin, end) in nanoseconds from the end of one step's gradients to that of the next, behind `warm` steps."""
    ends = [one.end for one in work if one.kind == "kernel" and one.name == LAST_OF_STEP]
    return [(begin, end) for begin, end in zip(ends, ends[1:]) if begin < end][warm:]


def covered(work, begin, end):
    """Nanoseconds of a window in which some of the work ran, and the longest time between in which none did."""
    busy, longest, at = 0, 0, begin
    for one in work:
        first, last = max(one.begin, begin), min(one.end, end)
        if last <= first:
            continue
        longest = max(longest, first - at)
        busy += max(0, last - max(first, at))
        at = max(at, last)
    return busy, max(longest, end - at)


def steps_of(work, warm):
    """Of each step behind the warm ones: its seconds, the share without a kernel, copy or fill on the stream that has most of
    the kernels, the longest gap, seconds by group, and calls by kernel."""
    windows = step_windows(work, warm)
    if not windows:
        raise ValueError(f"fewer than {warm + 2} steps")
    per_stream = {}
    for one in work:
        if one.kind == "kernel":
            per_stream[one.stream] = per_stream.get(one.stream, 0) + one.end - one.begin
    main = max(per_stream, key=per_stream.get)
    own = [one for one in work if one.stream == main]
    steps = []
    for begin, end in windows:
        inside = [one for one in own if one.end > begin and one.begin < end]
        busy, longest = covered(inside, begin, end)
        groups, kernels = {}, {}
        for one in inside:
            if one.kind == "kernel":
                kernels[one.name] = kernels.get(one.name, 0) + 1
            group = group_of(one.name) if one.kind == "kernel" else one.kind
            spent = groups.setdefault(group, [0, 0.0])
            spent[0] += 1
            spent[1] += (min(one.end, end) - max(one.begin, begin)) * 1e-9
        steps.append({"seconds": (end - begin) * 1e-9, "gap_share": 1 - busy / (end - begin), "longest_gap_s": longest * 1e-9,
                      "groups": groups, "kernels": kernels})
    return steps


def summary(steps):
    """Medians over steps."""
    names = sorted({name for step in steps for name in step["groups"]},
                   key=lambda name: -statistics.median(step["groups"].get(name, [0, 0])[1] for step in steps))
    return {"steps": len(steps), "step_s": statistics.median(step["seconds"] for step in steps),
            "gap_share": round(statistics.median(step["gap_share"] for step in steps), 4),
            "longest_gap_us": round(max(step["longest_gap_s"] for step in steps) * 1e6, 1),
            "groups": {name: {"calls": round(statistics.median(step["groups"].get(name, [0, 0])[0] for step in steps)),
                              "s": round(statistics.median(step["groups"].get(name, [0, 0])[1] for step in steps), 6)}
                       for name in names}}


def calls(steps):
    """Of each kernel, medians over steps."""
    names = sorted({name for step in steps for name in step["kernels"]})
    return {name: statistics.median(step["kernels"].get(name, 0) for step in steps) for name in names}


def slowest(work, warm, count):
    """The kernels, copies and fills that take most time: name, calls and microseconds a step."""
    windows = step_windows(work, warm)
    if not windows:
        return []
    found = {}
    for one in work:
        if windows[0][0] < one.end and one.begin < windows[-1][1]:
            spent = found.setdefault(f"{one.kind} {one.name}", [0, 0])
            spent[0] += 1
            spent[1] += one.end - one.begin
    return [{"name": name, "calls": round(calls / len(windows), 1), "us": round(time * 1e-3 / len(windows), 1)}
            for name, (calls, time) in sorted(found.items(), key=lambda item: -item[1][1])[:count]]
