"""A small setting through all of figures.py: bounds, terms that add up, and a page and a picture that have what was found."""

import io
import pathlib
import shutil
import sys
import tempfile
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
import figures
import fit
import plans
import terms

tool, page = pathlib.Path(shutil.which(sys.argv[1])), pathlib.Path(sys.argv[2])
plans.MODELS["small"] = (16, 5120, 40)
# Eight stages and two samples: slices fill a pipeline that whole samples leave empty.
setting = plans.Setting("(0)", "small", 2, 1, 8, 8, 3.0, 4096)
out = io.StringIO()


def rows(bench):
    batches = {"setting": "(0)", **{name: figures.largest_batch(bench, setting, name, out) for name in ("gpipe", "1f1b")}}
    return figures.measure(bench, setting, out), figures.uniform_rows(bench, setting, out), figures.part_rows(bench, setting, out), batches


with tempfile.TemporaryDirectory() as work:
    folder = pathlib.Path(work)
    store = folder / "terapipe.jsonl"
    bench = plans.Bench(folder, tool, folder)
    first = rows(bench)
    assert not bench.left
    lines = store.read_text().splitlines()
    assert rows(plans.Bench(folder, tool, folder, ask=False)) == first
    assert store.read_text().splitlines() == lines, "asked twice"
    # Rows that are missing are named, not made up.
    store.write_text("\n".join(lines[:1]) + "\n")
    short = plans.Bench(folder, tool, folder, ask=False)
    assert "whole" not in figures.measure(short, setting, out) and short.left
    assert figures.largest_batch(short, setting, "1f1b", out) is None
    assert "small-4096 dp=1,tp=8,pp=8 2 samples: `gpipe`" in figures.not_made(short.left)[0], figures.not_made(short.left)
    none = plans.Bench(folder, tool, folder, most=3)
    assert none.uniform(setting, 2) is None and none.left == [("(0)@4096 uniform:2", "4 micro-batches of a replica")]
    # Of devices with 3.5 GB, GPipe keeps too much of 4 samples.
    tight = folder / "tight.textproto"
    tight.write_text(plans.COSTS.read_text().replace("memory_bytes: 16000000000", "memory_bytes: 3500000000"))
    most = figures.largest_batch(plans.Bench(folder, tool, folder, tight), setting, "gpipe", out)
    assert most["batch"] == 2 and not most["open"], most
    none_fits = folder / "none_fits.textproto"
    none_fits.write_text(plans.COSTS.read_text().replace("memory_bytes: 16000000000", "memory_bytes: 1000000"))
    assert not plans.Bench(folder, tool, folder, none_fits).plan(setting, 1)["fits"] and bench.plan(setting, 1)["fits"]
    # Two replicas whose nodes share a port reduce their gradients eight times as slowly.
    pair = setting._replace(batch=4, dp=2)
    plan = bench.plan(pair, 1)
    own, shared = (plan["seconds"] * plan["exchange"], terms.on_shared_ports(bench, pair, 1, plan)["gradients"])
    scores = terms.stored(bench, setting)
    twice = bench.plan(setting, 1, change=fit.constants(3.6e13, 1.3e-3))

found, uniform, parts, batches = first
for name in ("whole", "exact", "paper_code", "uniform", "auto", "one_f_one_b"):
    assert 0 < found[name]["bound"] <= found[name]["seconds"] * (1 + 1e-9) and found[name]["fits"], found
for name in ("exact", "auto"):
    assert found[name]["speedup"] == found["whole"]["seconds"] / found[name]["seconds"] > 1, found
assert found["auto"]["seconds"] <= found["whole"]["seconds"] and found["exact"]["micro_batches"] > 2, found
assert sum(found["exact"]["cut"]) == setting.tokens and not found["whole"]["cut"], found
assert found["one_f_one_b"]["peak_bytes"] <= found["exact"]["peak_bytes"], found
assert uniform["uniform"][1] == found["whole"]["seconds"], (uniform, found)
assert min(seconds for count, seconds in uniform["uniform"].items() if count > 1) == found["uniform"]["seconds"], (uniform, found)
assert batches["1f1b"]["batch"] >= batches["gpipe"]["batch"] >= 2, batches
assert batches["1f1b"]["open"] == (batches["1f1b"]["batch"] == 16) and batches["1f1b"]["peak_bytes"] <= 16e9, batches
for name in ("whole", "exact"):
    seconds = dict(parts[name]["terms"])
    step = seconds.pop("step")
    assert step == found[name]["seconds"] and abs(sum(seconds.values()) - step) < 1e-6 and min(seconds.values()) > 0, parts
    # Two layers on a stage, a call in each direction for each micro-batch: at least the fixed time of a stage alone.
    assert seconds["fixed"] >= 2 * 2 * 1.3e-3 * found[name]["micro_batches"] * (1 - 1e-6), parts
    assert parts[name]["headed"] > step, parts
# Whole samples write the scores of all pairs, slices those of the tokens before them.
assert scores["whole"]["stored"] - scores["whole"]["fused"] > 2 * (scores["exact"]["stored"] - scores["exact"]["fused"]) > 0, scores
assert 6 < shared / own < 9, (shared, own)
assert twice["seconds"] > 1.3 * found["whole"]["seconds"], (twice, found)

tables = {part: [] for part in figures.PARTS} | {"figure5": [found], "terms": [parts], "stored": [scores], "figure6": [uniform], "batches": [batches]}
figures.write(page, figures.tables(tables, [("(0) uniform:2", "four micro-batches")]), ([found], [], []))
text = page.read_text()
assert text.count("## ") == 7 and f"{found['exact']['speedup']:.2f}x" in text and "- (0): `uniform:2` (four micro-batches)" in text, text
bars = xml.etree.ElementTree.parse(page.with_suffix(".svg")).getroot().findall("{http://www.w3.org/2000/svg}rect")
assert sum(bar.get("width") == str(figures.picture.BAR - 1) for bar in bars) == 4, len(bars)
