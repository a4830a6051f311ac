"""A picture of figure 13: useful tokens a second by maximum length, a panel for each size and setting."""

import xml.sax.saxutils

# Told apart by those who see no red, and by their dashes in grey.
COLOURS = ["#000000", "#777777", "#0072b2", "#e69f00", "#009e73"]
DASHES = ["6 3", "2 2", "", "8 2 2 2", ""]
WIDTH, HEIGHT, LEFT, TOP = 190, 130, 52, 46


def text(x, y, words, anchor="middle", size=10):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{xml.sax.saxutils.escape(str(words))}</text>'


def panel(x, y, title, lines):
    """`lines`: for each side [(length, tokens a second or None)]."""
    lengths = sorted({length for points in lines for length, _ in points})
    most = max([speed for points in lines for _, speed in points if speed] + [1]) * 1.08
    across = {length: x + (i + 0.5) * WIDTH / len(lengths) for i, length in enumerate(lengths)}
    out = [f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#bbbbbb"/>', text(x + WIDTH / 2, y - 5, title)]
    for length in lengths:
        out.append(text(across[length], y + HEIGHT + 12, length, size=8))
    for part in (0, 0.5, 1):
        out.append(text(x - 4, y + HEIGHT * (1 - part / 1.08) + 3, f"{most / 1.08 * part / 1000:.1f}k", "end", 8))
    for index, points in enumerate(lines):
        there = [(across[length], y + HEIGHT * (1 - speed / most)) for length, speed in points if speed]
        style = f'stroke="{COLOURS[index]}" stroke-dasharray="{DASHES[index]}" stroke-width="1.6" fill="none"'
        out.append(f'<polyline points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in there)}" {style}/>')
        out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2" fill="{COLOURS[index]}"/>' for a, b in there]
    return out


def draw(speeds, settings, sides):
    """`speeds[setting, size, side]`: [(length, row or None)]; missing points are out of memory."""
    names = [(key, words) for key, words in settings.items() if any(setting == key for setting, _, _ in speeds)]
    sizes = list(dict.fromkeys(size for _, size, _ in speeds))
    step_x, step_y = WIDTH + LEFT, HEIGHT + TOP + 14
    width, height = len(sizes) * step_x + 12, len(names) * step_y + 34
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif">',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    for index, side in enumerate(sides):
        x = LEFT + index * (width - LEFT) / len(sides)
        out.append(f'<line x1="{x:.1f}" y1="14" x2="{x + 24:.1f}" y2="14" stroke="{COLOURS[index]}" stroke-dasharray="{DASHES[index]}" stroke-width="1.6"/>')
        out.append(text(x + 28, 17, side, "start"))
    for row, (setting, words) in enumerate(names):
        for column, size in enumerate(sizes):
            lines = [[(length, found["tokens_per_second"] if found else None) for length, found in speeds.get((setting, size, side), [])]
                     for side in sides]
            out += panel(LEFT + column * step_x, 34 + TOP / 2 + row * step_y, f"{size}, {words.lower()}", lines)
    return "\n".join(out + ["</svg>", ""])
