"""A small setting through all of figures.py: bounds, speedups that are quotients, and a page and a picture that have them."""

import io
import pathlib
import shutil
import sys
import tempfile
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
import figures

tool, page = pathlib.Path(shutil.which(sys.argv[1])), pathlib.Path(sys.argv[2])
figures.MODELS["small"] = (16, 5120, 40)
# Eight stages and two samples: slices fill a pipeline that whole samples leave empty.
setting = figures.Setting("(0)", "small", 2, 1, 8, 8, 3.0, 4096)


def rows(bench):
    out = io.StringIO()
    found = figures.measure(bench, setting, out)
    batches = {"setting": "(0)", **{name: figures.largest_batch(bench, setting, name, out) for name in ("gpipe", "1f1b")}}
    return found, figures.uniform_rows(bench, setting, out), batches


with tempfile.TemporaryDirectory() as work:
    folder = pathlib.Path(work)
    cluster = HERE / "v100-p3.textproto"
    first = rows(figures.Bench(folder, tool, folder, cluster))
    asked = len((folder / "terapipe.jsonl").read_text().splitlines())
    assert rows(figures.Bench(folder, tool, folder, cluster)) == first
    assert len((folder / "terapipe.jsonl").read_text().splitlines()) == asked, "asked twice"

found, uniform, batches = first
for name in ("whole", "exact", "paper_code", "uniform", "auto", "one_f_one_b"):
    assert 0 < found[name]["bound"] <= found[name]["seconds"] * (1 + 1e-9) and found[name]["fits"], found
for name in ("exact", "auto"):
    assert found[name]["speedup"] == found["whole"]["seconds"] / found[name]["seconds"] > 1, found
assert found["auto"]["seconds"] <= found["whole"]["seconds"] and found["exact"]["micro_batches"] > 2, found
assert found["one_f_one_b"]["peak_bytes"] <= found["exact"]["peak_bytes"], found
assert uniform["uniform"][1] == found["whole"]["seconds"], (uniform, found)
assert min(uniform["uniform"].values()) == found["uniform"]["seconds"], (uniform, found)
assert batches["1f1b"]["batch"] >= batches["gpipe"]["batch"] >= 2, batches

figures.write(page, (("Figure 5", figures.table([found])), ("Totals of the authors", None),
                     ("Figure 6", figures.uniform_table([uniform])), ("Largest batch", figures.batch_table([batches]))), ([found], [], []))
text = page.read_text()
assert text.count("## ") == 3 and f"{found['exact']['speedup']:.2f}x" in text, text
bars = xml.etree.ElementTree.parse(page.with_suffix(".svg")).getroot().findall("{http://www.w3.org/2000/svg}rect")
assert sum(bar.get("width") == str(figures.picture.BAR - 1) for bar in bars) == 4, len(bars)
