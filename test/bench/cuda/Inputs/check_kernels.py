"""What parts.py reads from ncu's output, and from the benchmark of attention."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
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
