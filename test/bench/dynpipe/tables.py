# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of DynPipe's results: what is published beside what is simulated."""

MARK = "<!-- Tables by test/bench/dynpipe/figures.py -->"
# Layers, GPUs: published samples a second (Megatron-LM, the better of both balancers by time) and the speedup that is printed.
TABLE2 = {(24, 2): (10.67, 12.88, 1.20), (24, 4): (20.23, 24.86, 1.22), (24, 8): (37.253, 46.939, 1.26),
          (32, 2): (8.28, 10.35, 1.25), (32, 4): (15.69, 19.76, 1.26), (32, 8): (30.809, 39.899, 1.29),
          (40, 2): (7.14, 9.13, 1.28), (40, 4): (12.84, 16.82, 1.31), (40, 8): (26.425, 35.262, 1.33),
          (48, 2): None, (48, 4): (10.89, 14.7, 1.35), (48, 8): (23.126, 31.724, 1.37),
          (56, 2): None, (56, 4): None, (56, 8): (19.126, 26.724, 1.39)}
TABLE1_POLICIES = ("time", "parameters", "diffusion", "diffusion-parameters")
# Iterations of a re-balance by these policies.
TABLE1 = {24: (25, 61, 12, 18), 32: (9, 55, 7, 20), 40: (12, 56, 11, 18), 48: (13, 54, 4, 13), 56: (14, 59, 9, 13)}


def line(cells):
    return "| " + " | ".join(map(str, cells)) + " |"


def table(names, rows):
    return [line(names), "|" + "---|" * len(names), *map(line, rows)] if rows else []


def percent(share):
    return f"{100 * share:.1f} %"


def times(gain, digits=2):
    return f"{gain:.{digits}f}x"


def table2(results):
    rows = []
    for found in results:
        own = TABLE2[(found["layers"], found["gpus"])]
        bare = found.get("without_head")
        rows.append([found["layers"], found["gpus"], found["device"], *(f"{found['rates'][name]:.1f}" for name in ("even", "dense", "time", "diffusion")),
                     times(found["gain"]), f"{times(own[2])} ({own[0]:g} to {own[1]:g})" if own else "no memory", times(found["gain_over_dense_cut"], 3),
                     times(bare["gain"], 3) if bare else "", times(found["gain_over_unpruned"]), times(bare["gain_over_unpruned"]) if bare else ""])
    return table(["layers", "GPUs", "device", "even cut", "dense cut", "by time", "diffusion", "gain", "published", "over the dense cut", "without head",
                  "over unpruned", "over unpruned, without head"], rows)


def table1(results):
    rows = []
    for found in results:
        for policy, published in zip(TABLE1_POLICIES, TABLE1[found["layers"]]):
            own = found["price"][policy]
            rows.append([found["layers"], found["device"], policy, f"{own['bytes'] / 1e6:.0f}", f"{1e3 * own['seconds']:.2f}", f"{own['iterations']:.4f}",
                         published, own["rounds"] or "", own["earned"] if own["earned"] >= 0 else "never"])
    return table(["layers", "device", "policy", "MB", "ms", "iterations", "published", "rounds", "earned after, steps"], rows)


def memory(results):
    rows = []
    for row in results:
        own = TABLE2[(row["layers"], row["gpus"])]
        rows.append([row["layers"], row["gpus"], f"{row['plan'] / 1e9:.1f}", f"{row['pruning'] / 1e9:.1f}", f"{(row['plan'] + row['pruning']) / 1e9:.1f}",
                     "ran" if own else "out of memory"])
    return table(["layers", "GPUs", "plan, GB", "Algorithm 1, GB", "together, GB", "published"], rows)


def idle(results):
    rows = [[found["layers"], found["gpus"], found["device"], name, percent(sum(found["idle"][name].values())),
             *(percent(found["idle"][name][part]) for part in ("inherent", "imbalance", "network"))]
            for found in results if found["gpus"] == max(one["gpus"] for one in results) for name in ("even", "best")]
    return table(["layers", "GPUs", "device", "cut", "idle", "inherent", "imbalance", "network"], rows)


def wider(results):
    return table(["layers", "GPUs", "device", "times as wide", "sparsest and densest block", "gain without head", "published"],
                 [[row["layers"], row["gpus"], row["device"], f"{row['factor']:g}", f"{percent(row['most'])}, {percent(row['least'])}", times(row["gain"]),
                   times(TABLE2[(row["layers"], row["gpus"])][2])] for row in results])


def figure3(results):
    return table(["layers", "device", "delay up to", "even cut, tokens/s", "by time, tokens/s", "gain", "network, even cut", "network, by time"],
                 [[row["layers"], row["device"], f"{row['delay']}x", f"{row['rates']['even']:.0f}", f"{row['rates']['time']:.0f}", times(row["gain"], 3),
                   percent(row["network"]["even"]), percent(row["network"]["best"])] for row in results])


def figure4(results):
    at = lambda step: step if step >= 0 else "never fits"
    return table(["layers", "device", "packed into", "at step", "Algorithm 3 at step", "mean GPUs", "tokens/s", "over mean GPUs", "tokens per GPU-second"],
                 [[row["layers"], row["device"], row["target"], at(row["packed_at"]), at(row["first_fit_at"]), f"{row['gpus']:.1f}", f"{row['rate']:.0f}",
                   f"{row['rate_per_gpu']:.0f}", f"{row['per_gpu_second']:.0f}"] for row in results])


PARTS = (("Table 2: samples a second of a whole run", "table2", table2), ("Memory of rank 0", "memory", memory), ("How wide the spread has to be", "wider", wider),
         ("Table 1: the dearest move of a run, on eight GPUs", "table1", table1), ("Idle time at 90 %, by cause", "table2", idle),
         ("Figure 3: eight nodes, links with normal delays", "figure3", figure3), ("Figure 4: packed into fewer GPUs", "figure4", figure4))

LISTS = sorted({name for _, name, _ in PARTS})


def write(path, lists):
    """Replaces the tables of a page, behind the mark."""
    before = path.read_text().split(MARK)[0] if path.exists() else "# DynPipe's tables, simulated\n\n"
    lines = [MARK]
    for title, name, make in PARTS:
        rows = make(lists[name])
        if rows:
            lines += ["", f"## {title}", "", *rows]
    path.write_text(before + "\n".join(lines) + "\n")
