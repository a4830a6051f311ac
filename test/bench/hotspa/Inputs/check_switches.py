"""What switches.py wrote of four strategies."""

import json
import sys
import xml.dom.minidom

rows = [json.loads(line) for line in open(sys.argv[1])]
assert len(rows) == len({(row["order"], row["from"], row["to"]) for row in rows}) == 2 * 4 * 3, len(rows)
for row in rows:
    assert row["seconds"] >= 0.999 * row["bound"], row
    for name, baseline in row["baselines"].items():
        assert baseline["port_seconds"] >= 0.999 * row["bound"], (name, row)
    assert row["baselines"]["unfused"]["seconds"] >= row["baselines"]["algorithm1"]["seconds"], row
page = open(sys.argv[2]).read()
assert page.startswith("words stay") and page.count("| from |") == 10 and "| all | pp outermost |" in page, page
assert xml.dom.minidom.parse(sys.argv[3]).getElementsByTagName("rect").length == 1 + 8 * 16
