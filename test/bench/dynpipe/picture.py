# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A picture of DynPipe's table 2 and figure 4: what is published beside what is simulated."""

import xml.sax.saxutils

# Told apart by those who see no red, and by their brightness in grey.
SIDES = (("published", "#000000"), ("over even stages", "#0072b2"), ("over even stages, no head", "#56b4e9"), ("over the dense cut", "#e69f00"))
TARGETS = {8: "#000000", 6: "#0072b2", 4: "#56b4e9", 2: "#e69f00"}
BAR, GAP, HEIGHT, LEFT, TOP = 10, 16, 150, 56, 54


def text(x, y, words, anchor="middle", size=10):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{xml.sax.saxutils.escape(str(words))}</text>'


def panel(y, title, groups, least, colours, unit):
    """`groups`: names and values, one for each colour. Bars begin at `least`."""
    most = max(value for _, values in groups for value in values if value) * 1.05
    count = len(colours)
    width = len(groups) * (count * BAR + GAP) + GAP
    place = lambda value: y + HEIGHT * (1 - (value - least) / (most - least))
    out = [text(LEFT, y - 8, title, "start", 12), f'<rect x="{LEFT}" y="{y}" width="{width}" height="{HEIGHT}" fill="none" stroke="#bbbbbb"/>']
    for part in range(5):
        value = least + part * (most - least) / 5
        out.append(f'<line x1="{LEFT}" y1="{place(value):.1f}" x2="{LEFT + width}" y2="{place(value):.1f}" stroke="#999999" stroke-dasharray="2 3"/>')
        out.append(text(LEFT - 5, place(value) + 3, f"{value:.4g}{unit}", "end", 9))
    for number, (name, values) in enumerate(groups):
        x = LEFT + GAP + number * (count * BAR + GAP)
        for side, value in enumerate(values):
            if value:
                top = place(max(value, least))
                out.append(f'<rect x="{x + side * BAR}" y="{top:.1f}" width="{BAR - 1}" height="{y + HEIGHT - top:.1f}" fill="{colours[side]}"/>')
        out.append(text(x + count * BAR / 2, y + HEIGHT + 13, name, size=8))
    return out, width


def gains(found, published):
    own = published[(found["layers"], found["gpus"])]
    return [own[2] if own else None, found["gain"], found.get("without_head", {}).get("gain"), found["gain_over_dense_cut"]]


def draw(results, packed, published):
    panels = []
    for device in dict.fromkeys(found["device"] for found in results):
        panels.append((f"Table 2 on {device}: tokens a second of stages that are cut again, over those of a fixed cut (layers/GPUs)",
                       [(f"{found['layers']}/{found['gpus']}", gains(found, published)) for found in results if found["device"] == device],
                       1.0, [colour for _, colour in SIDES], "x"))
    for device in dict.fromkeys(row["device"] for row in packed):
        own = [row for row in packed if row["device"] == device]
        panels.append((f"Figure 4 on {device}: tokens a second per GPU, packed into 8, 6, 4 and 2 (layers)",
                       [(layers, [row["rate_per_gpu"] for row in own if row["layers"] == layers]) for layers in dict.fromkeys(row["layers"] for row in own)],
                       0.0, list(TARGETS.values()), ""))
    out, widest = [], 0
    for number, (title, groups, least, colours, unit) in enumerate(panels):
        lines, width = panel(TOP + number * (HEIGHT + 54), title, groups, least, colours, unit)
        out += lines
        widest = max(widest, width, 560)
    for side, (name, colour) in enumerate(SIDES):
        x = LEFT + side * widest / len(SIDES)
        out.append(f'<rect x="{x:.1f}" y="10" width="10" height="10" fill="{colour}"/>' + text(x + 14, 19, name, "start"))
    width, height = LEFT + widest + 30, TOP + len(panels) * (HEIGHT + 54)
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif">',
                      f'<rect width="{width}" height="{height}" fill="#ffffff"/>', *out, "</svg>", ""])
