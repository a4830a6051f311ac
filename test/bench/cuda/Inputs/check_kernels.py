"""What parts.py reads from ncu's output."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from parts import kernels_of  # noqa: E402

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
