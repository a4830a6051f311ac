"""PyTorch's varlen_attn on the sizes of bench_cuda_attention, in bf16, timed by the device's events.

Needs `pip install torch`. Reads {"sizes": [text, ...]} on standard input, each as that benchmark prints it ("16384 tokens by
128, heads 32/8 of 128"), and prints its JSON lines: forward, and the gradients of query, key and value.
"""
import json
import math
import re
import statistics
import sys

import torch

from torch_train import varlen_attention

WARM, REPEATS = 3, 20


def median_ms(work):
    for _ in range(WARM):
        work()
    times = []
    for _ in range(REPEATS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def run(size):
    tokens, length, heads, shared, width = map(int, re.fullmatch(r"(\d+) tokens by (\d+), heads (\d+)/(\d+) of (\d+)", size).groups())
    random = {"device": "cuda", "dtype": torch.bfloat16}
    q, out = (torch.randn(tokens, heads, width, **random) for _ in range(2))
    k, v = (torch.randn(tokens, shared, width, **random) for _ in range(2))
    for tensor in (q, k, v):
        tensor.requires_grad_()
    rows = math.ceil(tokens / length)
    ends = torch.tensor([min(i * length, tokens) for i in range(rows + 1)], dtype=torch.int32, device="cuda")
    with torch.no_grad():
        yield "attention", median_ms(lambda: varlen_attention(q, k, v, ends, length))
    result = varlen_attention(q, k, v, ends, length)
    yield "attention_grad", median_ms(lambda: torch.autograd.grad(result, (q, k, v), out, retain_graph=True))


def main():
    for size in json.load(sys.stdin)["sizes"]:
        try:
            for what, time in run(size):
                print(json.dumps({"what": what, "path": "varlen", "size": size, "median_ms": round(time, 4)}), flush=True)
        except (ImportError, RuntimeError, TypeError, ValueError, AssertionError) as error:
            print(json.dumps({"what": "attention", "path": "varlen", "size": size, "error": (str(error) or type(error).__name__).splitlines()[0]}), flush=True)


if __name__ == "__main__":
    main()
