# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small model through all of figures.py: the protocol, bounds, gains that are quotients, and a page and a picture."""

import pathlib
import shutil
import sys
import tempfile
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
import figures
import picture
import tables

tool, translate, page = pathlib.Path(shutil.which(sys.argv[1])), pathlib.Path(shutil.which(sys.argv[2])), pathlib.Path(sys.argv[3])

# The protocol: 10,000 steps, no zeros before step 4,000, then equation 2.
phases = figures.phases()
assert sum(steps for steps, _ in phases) == 10000 and phases[0] == (4000, 0.0), phases
assert [round(sparsity, 4) for _, sparsity in phases] == [0.0, 0.5203, 0.7875, 0.8859, 0.9], phases
assert figures.even_cut(24, 8) == "4+3+3+3+3+3+3+4" and figures.even_cut(6, 4) == "2+2+1+3"
assert all(sum(map(int, figures.even_cut(layers, gpus).split("+"))) == layers + 2 for layers, gpus in tables.TABLE2)
table = {"0.52": [0.1, 0.5, 0.6], "0.78": [0.5, 0.8, 0.9], "0.88": [0.6, 0.9, 0.95], "0.9": [0.7, 0.95, 0.97]}
for factor in (1, 2, 4):
    own = figures.Spread(table, factor).of(5, 0.5203)
    assert abs(sum(own) / 5 - 0.5203) < 1e-9 and min(own) >= 0, own
    assert factor != 1 or abs(own[-1] - own[0] - 0.5) < 1e-9, own
assert own[0] == 0 and own[-1] == figures.MOST, own
assert figures.Spread(table).of(7, 0.0) == [0.0] * 7
assert "bytes_per_second: 1.25e+10" not in figures.described("a100-40g") or "devices_per_node: 1" in figures.delayed("a100-40g", 2)

# Narrow, with few samples: ten blocks on four GPUs, and on eight.
figures.WIDTH, figures.HEADS, figures.TOKENS, figures.SAMPLES, figures.VOCABULARY = 512, 8, 256, 16, 4096
figures.TARGETS = (8, 2)
tables.TABLE2[(10, 4)], tables.TABLE2[(10, 8)], tables.TABLE1[10] = (1.0, 1.2, 1.2), (1.0, 1.2, 1.2), (1, 2, 3, 4)
spread = figures.Spread(table)


def rows(bench):
    found = figures.run(bench, 10, 4, "a100-40g", spread)
    found["without_head"] = {"gain": 1.5, "gain_over_dense_cut": 1.25, "gain_over_unpruned": 2.0}
    return found, figures.price(bench, 10, "a100-40g", spread), list(figures.figure4(bench, 10, "a100-40g", spread)), figures.memory(bench, 10, 4, "a100-40g")


with tempfile.TemporaryDirectory() as work:
    folder = pathlib.Path(work)
    first = rows(figures.Bench(folder, tool, translate, folder))
    asked = len((folder / "dynpipe.jsonl").read_text().splitlines())
    assert rows(figures.Bench(folder, tool, translate, folder)) == first
    assert len((folder / "dynpipe.jsonl").read_text().splitlines()) == asked, "asked twice"

found, price, packed, memory = first
rates = found["rates"]
assert found["gain"] == rates[found["best"]] / rates["even"] and found["gain_over_dense_cut"] == rates[found["best"]] / rates["dense"], found
assert found["gain_over_unpruned"] == rates[found["best"]] / rates["unpruned"] and rates["even"] > rates["unpruned"], found
assert rates[found["best"]] == max(rates["time"], rates["diffusion"]) >= rates["even"], found
for name in ("even", "best"):
    assert all(0 <= share < 1 for share in found["idle"][name].values()), found
for moves in found["moves"].values():
    assert all(move["bytes"] > 0 and move["seconds"] > 0 and move["earned"] >= 1 for move in moves), found
assert memory["pruning"] == 12 * 512 ** 2 * (20 * 2 + 24 * 10) and memory["plan"] > found["peak"], (memory, found)
assert set(price["price"]) == set(tables.TABLE1_POLICIES), price
assert [row["target"] for row in packed] == [8, 2] and packed[0]["gpus"] == 8 and packed[0]["packed_at"] == 0, packed
assert packed[1]["gpus"] == 8 - 6 * (10000 - packed[1]["packed_at"]) / 10000 or packed[1]["packed_at"] < 0, packed
assert all(row["first_fit_at"] < 0 or row["first_fit_at"] >= row["packed_at"] >= 0 for row in packed), packed
for row in packed:
    assert abs(row["rate_per_gpu"] * row["gpus"] / row["rate"] - 1) < 1e-9, row

page.write_text(f"# Title\n\nkept\n\n{tables.MARK}\n\nold\n")
tables.write(page, {"table2": [found], "table1": [price], "memory": [memory], "wider": [], "figure3": [], "figure4": packed})
text = page.read_text()
assert text.count("## ") == 5 and "kept" in text and "old" not in text and f"{found['gain']:.2f}x" in text, text
drawing = xml.etree.ElementTree.fromstring(picture.draw([found], packed, tables.TABLE2))
bars = [bar for bar in drawing.findall("{http://www.w3.org/2000/svg}rect") if bar.get("width") == str(picture.BAR - 1)]
assert len(bars) == 4 + len(packed), len(bars)
