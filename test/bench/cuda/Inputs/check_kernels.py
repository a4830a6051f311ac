"""What parts.py reads from ncu's output, from the benchmark of attention and from the probe."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import activity  # noqa: E402
from parts import faster_paths, kernels_of, records_of  # noqa: E402

TEXT = """==PROF== Connected to process 12
step 1
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","12","adamw","gpu__time_duration.sum","us","1,000.5"
"0","12","adamw","dram__bytes.sum","Mbyte","2.5"
"1","12","adamw","gpu__time_duration.sum","ns","500"
"1","12","adamw","dram__bytes.sum","byte","1,000"
"2","12","block.forward.rows0","gpu__time_duration.sum","ms","0.25"
"""
found = kernels_of(TEXT)
assert list(found) == ["adamw", "block.forward.rows0"], found
assert found["adamw"]["calls"] == 2 and abs(found["adamw"]["seconds"] - 1.001e-3) < 1e-12, found
assert found["adamw"]["bytes"] == 2.501e6, found
assert found["block.forward.rows0"] == {"calls": 1, "seconds": 0.25e-3, "bytes": 0.0}, found
assert kernels_of("==ERROR== no permission\n") == {}

LINES = """device 0, by own kernels
{"what":"attention","path":"own","size":"64 tokens","median_ms":3.0}
{"what":"attention","path":"cudnn","error":"attention by own kernels (no library)"}
{"what":"attention_grad","path":"own","size":"64 tokens","median_ms":3.0}
{"what":"attention_grad","path":"cudnn","size":"64 tokens","median_ms":2.0}
"""
records = records_of(LINES)
assert len(records) == 4, records
assert list(faster_paths(records)) == [
    {"what": "attention.fastest", "size": "64 tokens", "path": "own", "times": {"own": 1.0}},
    {"what": "attention_grad.fastest", "size": "64 tokens", "path": "cudnn", "times": {"cudnn": 1.0, "own": 1.5}}]

# Two steps of 1,000 ns behind one that warms up: 100 ns of each without work on stream 7, where a copy of another stream
# and a kernel within another count nothing.
PROBED = "\n".join(f"{kind} {stream} {step * 1000 + begin} {step * 1000 + end} {name}" for step in range(4) for kind, stream, begin, end, name in [
    ("kernel", 7, 0, 300, "block_forward_rows0"), ("copy", 9, 300, 400, "to device"), ("kernel", 7, 360, 700, "nvjet_tst_128x256"),
    ("kernel", 7, 400, 500, "attention_forward_bf16_64"), ("kernel", 7, 700, 760, "head_loss_bf16"), ("fill", 7, 760, 800, "fill"),
    ("kernel", 7, 840, 1000, "clip_norm")]) + "\ndropped 3\n"
work, lost = activity.read(PROBED)
assert lost == 3 and len(work) == 28, (lost, len(work))
steps = activity.steps_of(work, 1)
assert len(steps) == 2, steps
for step in steps:
    assert abs(step["seconds"] - 1e-6) < 1e-15 and abs(step["gap_share"] - 0.1) < 1e-12, step
    assert abs(step["longest_gap_s"] - 60e-9) < 1e-15, step
    calls = {name: (count, round(time * 1e9)) for name, (count, time) in step["groups"].items()}
    assert calls == {"sweeps": (1, 300), "products": (1, 340), "attention": (1, 100), "head": (1, 60), "fill": (1, 40),
                     "update": (1, 160)}, calls
found = activity.summary(steps)
assert found["gap_share"] == 0.1 and list(found["groups"])[:2] == ["products", "sweeps"], found
assert activity.slowest(work, 1, 1) == [{"name": "kernel nvjet_tst_128x256", "calls": 1.0, "us": 0.3}]
names = {"embed_update_adamw0": "update", "head_grad_norm_squares0": "update", "head_backward_weight_sum1": "sweeps",
         "embed_forward_embedding0": "tables", "product_epilogue_bf16": "products", "attention_tables": "attention",
         "sm90_xmma_gemm_bf16": "products", "cudnn_generated_fort_native_sdpa": "attention", "unheard": "other"}
assert {name: activity.group_of(name) for name in names} == names
for text, why in ((PROBED.replace("dropped 3\n", ""), "did not end"), ("dropped 0\n", "fewer than 3 steps")):
    try:
        activity.steps_of(activity.read(text)[0], 1)
        raise AssertionError(text)
    except ValueError as error:
        assert why in str(error), error
