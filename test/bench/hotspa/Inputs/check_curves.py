"""Curves of two steps, the page and its picture."""

import json
import sys
import xml.etree.ElementTree

steps, page, picture = sys.argv[1:]
with open(steps) as file:
    lines = [json.loads(line) for line in file]
assert [line["step"] for line in lines] == [1, 2], lines
for line in lines:
    # docs/numerics.md: loss in f32.
    assert abs(line["switched"] - line["alone"]) <= 1e-5 * line["alone"], line
assert lines[1]["alone"] < lines[0]["alone"], lines
with open(page) as file:
    text = file.read()
assert text.startswith("words stay\n") and "| f32 | 3 | " in text, text
root = xml.etree.ElementTree.parse(picture).getroot()
curves = [node for node in root.iter("{http://www.w3.org/2000/svg}polyline") if len(node.attrib["points"].split()) == 2]
# Two curves, their two keys, and how far they are apart.
assert len(curves) == 5, len(curves)
