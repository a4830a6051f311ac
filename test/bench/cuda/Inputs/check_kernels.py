"""What parts.py reads from ncu's output, from the benchmark of attention and from the probe."""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import activity  # noqa: E402
import floors  # noqa: E402
import parts  # noqa: E402
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

# Two steps of a millisecond behind one that warms up: a tenth of each is without work on stream 7, where what other streams do
# and a kernel within another count nothing.
PROBED = "\n".join(f"{kind} {stream} {step * 1000000 + begin * 1000 + 5} {step * 1000000 + end * 1000 + 5} {name}" for step in range(4) for kind, stream, begin, end, name in [
    ("kernel", 7, 0, 300, "block_forward_rows0"), ("copy", 9, 300, 400, "to device"), ("kernel", 9, 300, 310, "place_rows"),
    ("kernel", 7, 360, 700, "nvjet_tst_128x256"), ("kernel", 7, 400, 500, "attention_forward_bf16_64"),
    ("kernel", 7, 700, 760, "head_loss_bf16"), ("fill", 7, 760, 800, "fill"), ("kernel", 7, 840, 1000, "clip_norm")])
# CUPTI had no times of one, and lost three.
PROBED += "\nkernel 7 0 0 clip_norm\ndropped 3\n"
work, lost = activity.read(PROBED)
assert lost == 4 and len(work) == 32, (lost, len(work))
steps = activity.steps_of(work, 1)
assert len(steps) == 2, steps
for step in steps:
    assert abs(step["seconds"] - 1e-3) < 1e-12 and abs(step["gap_share"] - 0.1) < 1e-12, step
    assert abs(step["longest_gap_s"] - 60e-6) < 1e-12, step
    calls = {name: (count, round(time * 1e6)) for name, (count, time) in step["groups"].items()}
    assert calls == {"sweeps": (1, 300), "products": (1, 340), "attention": (1, 100), "head": (1, 60), "fill": (1, 40),
                     "update": (1, 160)}, calls
assert activity.calls(steps) == dict.fromkeys(["block_forward_rows0", "nvjet_tst_128x256", "attention_forward_bf16_64", "head_loss_bf16", "clip_norm"], 1)
found = activity.summary(steps)
assert found["gap_share"] == 0.1 and found["longest_gap_us"] == 60.0 and abs(found["step_s"] - 1e-3) < 1e-12, found
assert list(found["groups"])[:2] == ["products", "sweeps"] and found["groups"]["products"] == {"calls": 1, "s": 0.00034}, found
assert activity.slowest(work, 1, 2) == [{"name": "kernel nvjet_tst_128x256", "calls": 1.0, "us": 340.0},
                                        {"name": "kernel block_forward_rows0", "calls": 1.0, "us": 300.0}]
names = {"embed_update_adamw0": "update", "head_grad_norm_squares0": "update", "head_backward_weight_sum1": "sweeps",
         "embed_forward_embedding0": "tables", "product_epilogue_bf16": "products", "attention_tables": "attention",
         "sm90_xmma_gemm_bf16": "products", "cudnn_generated_fort_native_sdpa": "attention", "unheard": "other"}
assert {name: activity.group_of(name) for name in names} == names
for text, why in ((PROBED.replace("dropped 3\n", ""), "did not end"), (PROBED.replace("dropped 3", "dropped "), "did not end"), ("dropped 0\n", "fewer than 3 steps")):
    try:
        activity.steps_of(activity.read(text)[0], 1)
        raise AssertionError(text)
    except ValueError as error:
        assert why in str(error), error

# Floors of a GPT of one layer, width 2, vocabulary 10 and 8 positions, 16 tokens in samples of 4, where a second has 1,000 flops and
# 100 bytes: products of 12 x 2^2 + 10 x 2 weights, attention of 4 x 10 pairs, logits of two bytes, 12 x 4 + 18 x 2 parameters.
assert records_of('{"what": "device.ceilings"}\n{"what": "dev') == [{"what": "device.ceilings"}]
CONFIG, RATES = {"n_embd": 2, "n_layer": 1, "vocab_size": 10, "n_positions": 8}, {"product_flops": 1000, "copy_bytes_per_s": 100}
of_model = floors.of_model(CONFIG, 4, 16, RATES)
assert of_model == {"products": 6 * 16 * (48 + 20) / 1000, "attention": 14 * 2 * 40 / 1000, "head": 4 * 16 * 10 / 100,
                    "update": 30 * (48 + 36) / 100}, of_model
assert floors.flops_of_token(CONFIG, 4) == 6 * (48 + 36) + 12 * 2 * 4

# Two layers of one kind and one of another, whose functions of other steps are not called; a kernel over parameters, which says
# nothing of rows. 16 rows of 4 bytes twice, of 10 once, and of 6 once.
LOWERED = """  llvm.func @my_block_forward_rows0(%arg0: !llvm.ptr {llvm.align = 8 : i64}) attributes {dyna.row_bytes = 4 : i64, nvvm.kernel} {
  llvm.func @my_block_backward_sum1(%arg0: !llvm.ptr) attributes {nvvm.kernel} {
  llvm.func @my_block_backward_input_rows0(%arg0: !llvm.ptr) attributes {dyna.row_bytes = 8 : i64, nvvm.kernel} {
  llvm.func @embed_forward_embedding0(%arg0: !llvm.ptr) attributes {dyna.row_bytes = 10 : i64, nvvm.kernel} {
  llvm.func @embed_forward_copy1(%arg0: !llvm.ptr) attributes {dyna.row_bytes = 6 : i64, nvvm.kernel} {
"""
PLANNED = '%0 = dyna.call "embed" @embed[@wte](%t)\n%1 = dyna.call "h.0" @my.block[@w](%0)\n%2 = dyna.call "h.1" @my.block[@v](%1)\n'
kernels = floors.kernels_of(LOWERED, PLANNED)
assert kernels == {"row_bytes": {"my_block_forward_rows0": 4, "my_block_backward_input_rows0": 8, "embed_forward_embedding0": 10,
                                 "embed_forward_copy1": 6}, "layers": {"embed": 1, "my.block": 2}}, kernels
calls = floors.calls_of_step(kernels)
assert calls == {"my_block_forward_rows0": 2, "embed_forward_embedding0": 1, "embed_forward_copy1": 1}, calls
calls["my_block_backward_sum1"] = 2
of_kernels = floors.of_kernels(calls, kernels["row_bytes"], 16, RATES)
assert of_kernels == {"my_block_forward_rows0": 1.28, "embed_forward_embedding0": 1.6, "embed_forward_copy1": 0.96}, of_kernels
of_step = floors.of_step(CONFIG, 4, 16, RATES, of_kernels)
assert of_step == {**of_model, "sweeps": 2.24, "tables": 1.6}, of_step
groups = {"update": {"s": 50.4}, "sweeps": {"s": 4.48}, "copy": {"s": 1.0}}
floors.put(groups, of_step, calls, kernels["row_bytes"])
assert groups == {"update": {"s": 50.4, "over_floor": 2.0}, "copy": {"s": 1.0, "over_floor": None},
                  "sweeps": {"s": 4.48, "over_floor": 2.0, "kernels_without_floor": ["my_block_backward_sum1"]}}, groups

# CUPTI of a Python package, and before that of the folder that was asked for.
with tempfile.TemporaryDirectory() as folder:
    libraries = [pathlib.Path(folder) / name / "libcupti.so.13" for name in ("nvidia/cu13/lib", "asked")]
    for library in libraries:
        library.parent.mkdir(parents=True)
        library.touch()
    sys.path.insert(0, folder)
    os.environ["DYNA_CUDA_LIBRARY_PATH"] = ""
    assert parts.cupti() == libraries[0], parts.cupti()
    os.environ["DYNA_CUDA_LIBRARY_PATH"] = f"/nowhere:{folder}/asked"
    assert parts.cupti() == libraries[1], parts.cupti()

# Rows of a call are those of one of the micro-batches, and steps that differ have none in common.
ALIKE = [{"tokens": 256, "micro_batches": 2}, {"tokens": 256, "micro_batches": 2}]
assert floors.rows_of(ALIKE) == 128
for other in ({"tokens": 255, "micro_batches": 2}, {"tokens": 256, "micro_batches": 1}):
    try:
        floors.rows_of([*ALIKE, other])
    except ValueError as error:
        assert "differ" in str(error), error
    else:
        raise AssertionError("steps that differ have floors")

# A part has half of what is left, the last one all.
with tempfile.TemporaryDirectory() as folder:
    machine = parts.Machine(pathlib.Path(folder), 100)
    machine.begin_part(["another"])
    assert 40 < machine.left() <= 50, machine.left()
    machine.begin_part([])
    assert 90 < machine.left() <= 100, machine.left()
