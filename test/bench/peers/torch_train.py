"""The PyTorch peer of train_step.py and cuda/steps.py: one GPT-2 training step, timed.

Needs `pip install torch numpy`. Reads a JSON job on standard input, prints one JSON
line. Not meant to be run by hand: train_step.py sets the environment in which PyTorch
is fastest (thread binding, huge pages, no trimming) and tries its variants.

Job: {"model": HF GPT-2 config, "dtype": "f32"|"bf16", "mode": "equal"|"padded"|
"packed"|"sorted"|"varlen", "batches": [[length, ...], ...] (one list of sample lengths
per step), "row": tokens of a packed row, "micro": tokens of a micro-batch (packed, sorted,
varlen), "compile": bool, "threads": n, "warmup": steps, "device": "cpu"|"cuda"}

`varlen`, on CUDA and in bf16, lays samples end to end, without rows, as
torch.nn.attention.varlen wants them: what PyTorch has that is closest to ragged
micro-batches. Compiled, a micro-batch is filled up to `micro` tokens by short segments of
padding, and the list of segments to the longest of all steps by empty ones.

The vocabulary is padded to a multiple of 128, as those do who want speed: the head's
products are then whole tiles. Compiled runs of samples of changing lengths pad their
rows to one of a few widths (WIDTHS), with as many rows for a width each time, so that
code is made for a few shapes; all of them are met before the clock starts.
"""
import bisect
import inspect
import json
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


PADDING = 128  # tokens of one segment of it
WIDTHS = (64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)


def varlen_attention(q, k, v, ends, longest):
    """Causal attention inside segments of samples laid end to end: [tokens, heads, size]."""
    from torch.nn.attention.varlen import varlen_attn
    # PyTorch 2.10 has a flag; later ones a window, which ends at the query itself.
    known = inspect.signature(varlen_attn).parameters
    causal = {"is_causal": True} if "is_causal" in known else {"window_size": (-1, 0)}
    grouped = {"enable_gqa": True} if k.shape[1] != q.shape[1] and "enable_gqa" in known else {}
    return varlen_attn(q, k, v, ends, ends, longest, longest, **causal, **grouped)


class Block(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.proj = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x, mask):
        b, t, d = x.shape
        if isinstance(mask, tuple):
            q, k, v = (y.view(b * t, self.heads, d // self.heads)
                       for y in self.c_attn(self.ln_1(x)).split(d, dim=2))
            x = x + self.c_proj(varlen_attention(q, k, v, *mask).reshape(b, t, d))
            return x + self.proj(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))
        q, k, v = (y.view(b, t, self.heads, d // self.heads).transpose(1, 2)
                   for y in self.c_attn(self.ln_1(x)).split(d, dim=2))
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        x = x + self.c_proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.proj(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["n_embd"]
        self.wte = nn.Embedding(-(-c["vocab_size"] // 128) * 128, width)
        self.wpe = nn.Embedding(c["n_positions"], width)
        inner = c.get("n_inner") or 4 * width
        self.h = nn.ModuleList(Block(width, c["n_head"], inner) for _ in range(c["n_layer"]))
        self.ln_f = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids, positions, targets, mask):
        x = self.wte(ids) + self.wpe(positions)
        for block in self.h:
            x = block(x, mask)
        logits = self.ln_f(x) @ self.wte.weight.t()
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), targets.view(-1),
                               ignore_index=-1, reduction="sum")


def bucket(width):
    """The least of WIDTHS, or multiple of the last, that has room."""
    at = bisect.bisect_left(WIDTHS, width)
    return WIDTHS[at] if at < len(WIDTHS) else -(-width // WIDTHS[-1]) * WIDTHS[-1]


def rows(lengths, mode, row, micro, buckets):
    """The micro-batches of one step: lists of rows, a row is a list of sample lengths."""
    size = bucket if buckets else (lambda width: width)
    if mode == "equal":
        return [[[n] for n in lengths]]
    if mode == "padded":  # in the order given, four samples at a time
        return [[[n] for n in lengths[i:i + 4]] for i in range(0, len(lengths), 4)]
    if mode == "sorted":  # by length, cut where the padded size would pass `micro` tokens
        out, current = [], []
        for n in sorted(lengths):
            if current and (len(current) + 1) * size(n) > micro:
                out.append(current)
                current = []
            current.append([n])
        return out + [current]
    if mode == "varlen":  # as Dyna's ragged ones: in the order given, one row each
        out, current = [], []
        for n in lengths:
            if current and sum(current) + n > micro:
                out.append([current])
                current = []
            current.append(n)
        return out + [[current]]
    open_rows = []
    for n in sorted(lengths, reverse=True):  # first fit decreasing
        for r in open_rows:
            if sum(r) + n <= row:
                r.append(n)
                break
        else:
            open_rows.append([n])
    each = max(1, micro // row)
    return [open_rows[i:i + each] for i in range(0, len(open_rows), each)]


def pad(micro, mode, row, tokens):
    """Rows and width of a micro-batch of a shape of which there are few."""
    if mode == "varlen":
        return micro, max(tokens, sum(micro[0]))
    if mode == "packed":
        width, count = row, max(1, tokens // row)
    else:
        width = bucket(max(sum(r) for r in micro))
        count = 4 if mode == "padded" else max(1, tokens // width)
    return micro + [[]] * (count - len(micro)), width


def tensors(micro, width, vocabulary, mode, generator):
    ids = torch.zeros(len(micro), width, dtype=torch.long)
    positions = torch.zeros_like(ids)
    targets = torch.full_like(ids, -1)
    mask = None
    if mode == "packed":
        owner = torch.full((len(micro), width), -1, dtype=torch.long)
    for i, r in enumerate(micro):
        at = 0
        for j, n in enumerate(r):
            ids[i, at:at + n] = torch.randint(vocabulary, (n,), generator=generator)
            targets[i, at:at + n] = torch.randint(vocabulary, (n,), generator=generator)
            positions[i, at:at + n] = torch.arange(n)
            if mode == "packed":
                owner[i, at:at + n] = j
            at += n
    if mode == "packed":
        same = owner[:, :, None] == owner[:, None, :]
        causal = torch.ones(width, width, dtype=torch.bool).tril()
        mask = (same & causal)[:, None]
    return ids, positions, targets, mask


def segments_of(lengths, width, count):
    """For varlen: where segments end, the rest of `width` being short ones of padding, as
    many as `count` of them; and a length that none exceeds, one of few."""
    ends = [0]
    for n in lengths:
        ends.append(ends[-1] + n)
    while ends[-1] < width:
        ends.append(min(width, ends[-1] + PADDING))
    ends += [width] * (count + 1 - len(ends))
    return torch.tensor(ends, dtype=torch.int32), 1 << (max([*lengths, PADDING]) - 1).bit_length()


def main():
    job = json.load(sys.stdin)
    device = job.get("device", "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_train.py: this PyTorch finds no GPU")
    torch.set_num_threads(job["threads"])
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(1)
    torch.set_float32_matmul_precision("highest")  # f32 is f32, on both sides
    model = Gpt2(job["model"]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    torch._dynamo.config.cache_size_limit = 64
    step_model = torch.compile(model, dynamic=False) if job["compile"] else model
    low = job["dtype"] == "bf16"
    mode, row = job["mode"], job["row"]
    steps, shapes = [], {}
    most = 1 + job["micro"] // PADDING + max(len(r) for lengths in job["batches"]
                   for m in rows(lengths, mode, row, job["micro"], job["compile"]) for r in m)

    def place(batch):
        """On the device; masks may be a tensor, none, or the segments of varlen."""
        return tuple(x.to(device) if torch.is_tensor(x) else
                     (x[0].to(device), x[1]) if x else None for x in batch)

    for lengths in job["batches"]:
        micro = []
        for m in rows(lengths, mode, row, job["micro"], job["compile"]):
            width = max(sum(r) for r in m)
            if job["compile"] and mode != "equal":
                m, width = pad(m, mode, row, job["micro"])
            batch = tensors(m, width, job["model"]["vocab_size"], mode, generator)
            if mode == "varlen":
                batch = (*batch[:3], segments_of(m[0], width, most))
            micro.append(place(batch))
            shapes[batch[0].shape, batch[3][1] if mode == "varlen" else 0] = micro[-1]
        steps.append((sum(lengths), micro))
    if job["compile"]:
        for batch in shapes.values():
            with torch.autocast(device, dtype=torch.bfloat16, enabled=low):
                loss = step_model(*batch)
            loss.backward()
    times, useful = [], []
    for number in range(job["warmup"] + len(steps)):
        tokens, micro = steps[number % len(steps)]
        if device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        for batch in micro:
            with torch.autocast(device, dtype=torch.bfloat16, enabled=low):
                loss = step_model(*batch) / tokens
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()
        if number >= job["warmup"]:
            times.append(time.perf_counter() - begin)
            useful.append(tokens)
    print(json.dumps({"tokens_per_s": sum(useful) / sum(times),
                      "median_step_s": statistics.median(times), "steps": len(times), "shapes": len(shapes),
                      "torch": torch.__version__,
                      "device": torch.cuda.get_device_name() if device == "cuda" else "cpu"}))


if __name__ == "__main__":
    main()
