"""What every result of figures.py holds: bounds, memory, and a page and a picture that have them all."""

import json
import pathlib
import sys
import xml.etree.ElementTree

results, page, picture = sys.argv[1:]
lines = [json.loads(line) for line in pathlib.Path(results).read_text().splitlines()]
of = {(line["figure"], line["side"]): line for line in lines if "side" in line and line["figure"] in ("13", "14")}
assert {figure for figure, _ in of} == {"13", "14"} and len(of) == 10, list(of)
for line in of.values():
    assert not line.get("out_of_memory"), line
    assert line["peak_bytes"] <= 40e9, line
    for bound in ("bound_seconds", "load_bound_seconds", "path_bound_seconds"):
        assert 0 < line[bound] <= line["seconds"] * (1 + 1e-9), (bound, line)
    assert abs(line["tokens"] / line["seconds"] - line["tokens_per_second"]) < 1e-3 * line["tokens_per_second"], line
    assert 0 <= line["padding_share"] < 1 and line["plan_seconds"] > 0, line
# Two steps of 65,536 tokens have less than that; rows of joined samples see no more than they would whole.
for figure in ("13", "14"):
    assert of[figure, "packed"]["padding_share"] > 0 == of[figure, "ragged, adaptive"]["padding_share"], of
    assert of[figure, "packed-masked"]["tokens_per_second"] >= 0.99 * of[figure, "packed"]["tokens_per_second"], of
assert all(peak == 0 for line in lines if line["figure"] == "18" for _, peak in line["errors"]), lines
text = pathlib.Path(page).read_text()
for title in ("(figure 13)", "(figure 14)", "(figure 15)", "(figure 17)", "(figure 18)"):
    assert text.count(title) == 1, title
labels = [node.text for node in xml.etree.ElementTree.parse(picture).getroot().iter("{http://www.w3.org/2000/svg}text")]
assert {"packed", "ragged, adaptive", "512"} <= set(labels), labels
