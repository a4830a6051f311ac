"""A picture of figure 8: matrices of switch times, darker where they take longer."""

import math
import xml.sax.saxutils

CELL, LEFT, TOP = 46, 58, 46


def text(x, y, words, anchor="middle", size=10, colour="#000000"):
    words = xml.sax.saxutils.escape(str(words))
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{words}</text>'


def shade(value, least, most):
    """From white to blue by the logarithm, and the colour of the words on it."""
    part = 0 if value <= least or most <= least else math.log(value / least) / math.log(most / least)
    red, green, blue = (round(255 + part * (end - 255)) for end in (0, 70, 140))
    return f"#{red:02x}{green:02x}{blue:02x}", "#ffffff" if part > 0.55 else "#000000"


def draw(names, panels, across):
    """`panels`: for each a title and rows of seconds; None is left empty."""
    seconds = [value for _, rows in panels for row in rows for value in row if value]
    least, most = (min(seconds), max(seconds)) if seconds else (0, 0)
    step_x, step_y = LEFT + len(names) * CELL + 14, TOP + len(names) * CELL + 10
    width, height = across * step_x + 6, -(-len(panels) // across) * step_y + 8
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif">',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    for index, (title, rows) in enumerate(panels):
        x, y = LEFT + index % across * step_x, TOP + index // across * step_y
        out.append(text(x + len(names) * CELL / 2, y - 26, title + ", ms", size=11))
        for i, one in enumerate(names):
            out.append(text(x + (i + 0.5) * CELL, y - 7, one, size=8))
            out.append(text(x - 5, y + (i + 0.5) * CELL + 3, one, "end", 8))
        for i, row in enumerate(rows):
            for j, value in enumerate(row):
                fill, colour = ("#eeeeee", "") if value is None else shade(value, least, most)
                out.append(f'<rect x="{x + j * CELL}" y="{y + i * CELL}" width="{CELL}" height="{CELL}" fill="{fill}" stroke="#bbbbbb"/>')
                if value is not None:
                    out.append(text(x + (j + 0.5) * CELL, y + (i + 0.5) * CELL + 3, f"{1e3 * value:.0f}", size=10, colour=colour))
    return "\n".join(out + ["</svg>", ""])
