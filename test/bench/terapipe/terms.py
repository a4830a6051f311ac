"""What a step of TeraPipe's settings consists of, by plans with one part of the costs taken away after another."""

import plans


def free_links(text):
    """Costs whose transfers between nodes take no time."""
    inside, between = text.split("between {")
    return inside + "between { bytes_per_second: 1e18 " + between[between.index("}"):]


def no_fixed_time(text):
    """Also without the fixed time of calls."""
    before, after = free_links(text).split("launch_seconds: ")
    return before + "launch_seconds: 1e-12" + after[after.index("\n"):]


def shared_port(text):
    """The eight devices of a node share its 25 Gbit/s."""
    return text.replace("bytes_per_second: 3.125e9", "bytes_per_second: 3.90625e8")


def with_head(text):
    """Embedding and head cost what the device needs for them."""
    return "".join(line for line in text.splitlines(True) if not line.startswith("entries"))


def pinned(row):
    """Flags for the same slices again."""
    return ("--slices", "+".join(map(str, row["cut"]))) if len(row["cut"]) > 1 else ("--slices", "none")


def before_exchange(row):
    return row["seconds"] * (1 - row["exchange"])


def terms_of(bench, setting, samples, row):
    """Seconds of work, fill, fixed time, links, and of gradients at the end; they add up to the step. None if a plan is missing."""
    parts = [bench.plan(setting, samples, *pinned(row), change=change) for change in (free_links, no_fixed_time)]
    if not all(parts):
        return None
    no_links, no_fixed = parts
    exchange = no_fixed["seconds"] * no_fixed["exchange"]
    work = no_fixed["busy_bound_seconds"]
    return {"step": row["seconds"], "work": work, "fill": no_fixed["seconds"] - exchange - work,
            "fixed": before_exchange(no_links) - before_exchange(no_fixed), "links": before_exchange(row) - before_exchange(no_links),
            "gradients": row["seconds"] * row["exchange"]}


def on_shared_ports(bench, setting, samples, row):
    """The same slices if the devices of a node share its port, as the authors' do; seconds of the step and of gradients.

    One copy of an activation still crosses the border of a node: with tp=8 each device sends an eighth of it (sp=1), and
    with tp=1 one device of a node sends alone.
    """
    more = ",sp=1" if setting.tp > 1 else ""
    found = bench.plan(setting, samples, *pinned(row), "--simulate", "links=nodes", change=shared_port, more=more)
    return found and {"seconds": found["seconds"], "gradients": found["seconds"] * found["exchange"]}


def headed(bench, setting, samples, row):
    """Seconds of the same slices with a vocabulary of 50,257 words."""
    found = bench.plan(setting, samples, *pinned(row), change=with_head, words=50257)
    return found and found["seconds"]


def stored(bench, setting):
    """Seconds of whole samples and of the exact cut if attention writes its scores to memory, as the authors' does. The same slices."""
    sides = {}
    for name, flags in (("whole", ()), ("exact", ("--slices", "exact"))):
        row = bench.plan(setting, 1, *flags)
        scores = row and bench.plan(setting, 1, *pinned(row), "--attention", "stored")
        if not scores:
            return None
        sides[name] = {"fused": row["seconds"], "stored": scores["seconds"], "peak_bytes": scores["peak_bytes"]}
    return {"stored": setting.number, "tokens": setting.tokens, "batch": setting.batch, "published": setting.published, **sides}


def measure(bench, setting, whole, exact):
    """`whole` and `exact` are pairs of a row and its samples in a micro-batch."""
    result = {"terms": setting.number, "published": setting.published}
    for name, (row, samples) in (("whole", whole), ("exact", exact)):
        result[name] = {"terms": terms_of(bench, setting, samples, row), "headed": headed(bench, setting, samples, row)}
        if setting.dp > 1:
            result[name]["shared"] = on_shared_ports(bench, setting, samples, row)
    return result


def table(results):
    lines = ["| setting | plan | step, s | work | fill | fixed time | links | gradients |", "|" + "---|" * 8]
    for result in results:
        for name in ("whole", "exact"):
            found = result[name]["terms"]
            if found:
                cells = [f"{found[part]:.3f}" for part in ("step", "work", "fill", "fixed", "links", "gradients")]
                lines.append(f"| {result['terms']} | {name} | " + " | ".join(cells) + " |")
    return lines


def ratio(result, seconds):
    """The speedup by `seconds`, a function of what is known of a plan."""
    sides = [result[name] for name in ("whole", "exact")]
    return f"{seconds(sides[0]) / seconds(sides[1]):.2f}x" if all(map(seconds, sides)) else ""


def step(side):
    return side["terms"] and side["terms"]["step"]


def shared(side):
    return side.get("shared") and side["shared"]["seconds"]


def half_gradients(side):
    return side.get("shared") and side["shared"]["seconds"] - side["shared"]["gradients"] / 2


def differences(results):
    """Speedups under what the authors' program does otherwise."""
    lines = ["| setting | published | exact | with a head | shared port | gradients there, s | also 2 bytes a gradient |", "|" + "---|" * 7]
    for result in results:
        gradients = result["exact"].get("shared")
        cells = [result["terms"], f"{result['published']:.2f}x", ratio(result, step), ratio(result, lambda side: side["headed"]), ratio(result, shared),
                 f"{gradients['gradients']:.2f}" if gradients else "", ratio(result, half_gradients)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def stored_table(results):
    lines = ["| setting | tokens | batch | whole, s | exact, s | fused | stored | published | GB whole, stored |", "|" + "---|" * 9]
    for result in results:
        whole, exact = result["whole"], result["exact"]
        cells = [result["stored"], result["tokens"], result["batch"], f"{whole['stored']:.3f}", f"{exact['stored']:.3f}",
                 *(f"{whole[name] / exact[name]:.2f}x" for name in ("fused", "stored")), f"{result['published']:.2f}x", f"{whole['peak_bytes'] / 1e9:.1f}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines
