"""A picture of TeraPipe's speedups: those published beside ours, a group of bars for each setting."""

import xml.sax.saxutils

# Told apart by those who see no red, and by their brightness in grey.
SIDES = (("published", "#000000"), ("exact cut, GPipe", "#0072b2"), ("auto, GPipe", "#56b4e9"), ("exact cut, 1F1B", "#e69f00"))
BAR, GAP, HEIGHT, LEFT, TOP = 10, 16, 150, 40, 54


def text(x, y, words, anchor="middle", size=10):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{xml.sax.saxutils.escape(str(words))}</text>'


def speedups(result):
    """One for each side; None if there is none."""
    ours = [result[name]["speedup"] if name in result else None for name in ("exact", "auto", "one_f_one_b")]
    return [result["published"] or None, *ours]


def panel(y, title, groups):
    """`groups`: for each setting its name and its speedups. Bars begin at zero, and a line is at 1."""
    most = max(value for _, values in groups for value in values if value) * 1.1
    width = len(groups) * (len(SIDES) * BAR + GAP) + GAP
    out = [text(LEFT, y - 8, title, "start", 12), f'<rect x="{LEFT}" y="{y}" width="{width}" height="{HEIGHT}" fill="none" stroke="#bbbbbb"/>']
    for level in range(0, int(most) + 1):
        height = y + HEIGHT * (1 - level / most)
        dash = "" if level == 1 else ' stroke-dasharray="2 3"'
        out.append(f'<line x1="{LEFT}" y1="{height:.1f}" x2="{LEFT + width}" y2="{height:.1f}" stroke="#999999"{dash}/>')
        out.append(text(LEFT - 5, height + 3, f"{level}x", "end", 9))
    for place, (name, values) in enumerate(groups):
        x = LEFT + GAP + place * (len(SIDES) * BAR + GAP)
        for side, value in enumerate(values):
            if value:
                height = HEIGHT * value / most
                out.append(f'<rect x="{x + side * BAR}" y="{y + HEIGHT - height:.1f}" width="{BAR - 1}" height="{height:.1f}" fill="{SIDES[side][1]}"/>')
        out.append(text(x + len(SIDES) * BAR / 2, y + HEIGHT + 13, name, size=9))
    return out


def draw(figure5, figure7, longer):
    panels = [(title, [(name(result), speedups(result)) for result in results]) for title, results, name in (
        ("Figure 5: time without slices over time with them", figure5, lambda result: result["setting"]),
        ("Figure 7: setting (5), by tokens of a sample", figure7, lambda result: result["tokens"]),
        ("Setting (5) with 65,536 tokens or one sample a step, by tokens of a sample", longer, lambda result: result["tokens"])) if results]
    width = LEFT + 30 + max([10, *(len(groups) for _, groups in panels)]) * (len(SIDES) * BAR + GAP)
    height = TOP + len(panels) * (HEIGHT + 54)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif">',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    for side, (name, colour) in enumerate(SIDES):
        x = LEFT + side * (width - LEFT) / len(SIDES)
        out.append(f'<rect x="{x:.1f}" y="10" width="10" height="10" fill="{colour}"/>' + text(x + 14, 19, name, "start"))
    for place, (title, groups) in enumerate(panels):
        out += panel(TOP + place * (HEIGHT + 54), title, groups)
    return "\n".join(out + ["</svg>", ""])
