#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the golden files beside it: what PyTorch says that training computes.

    pip install torch numpy
    python3 make_golden.py            # writes *.mlir, *.json and the samples
    python3 make_golden.py --samples  # the samples alone, for which neither is needed

Two small models, GPT-2-like and LLaMA-like, are written here with PyTorch's own
functions on padded batches and trained for 20 steps in f64. Only two things are
taken over from Dyna, by their documentation, and written again: the counter-based
initial values (runtime/abi/Random.h) and the learning-rate schedule
(runtime/train/flags/LearningRate.h). Everything else (layers, gradients, AdamW, padding)
is PyTorch's. Documents are cut and shuffled here, in a way of their own, and the
samples written in their order, as Megatron-LM's inputs and targets: how Dyna cuts
and shuffles does not matter.

The files are committed; the tests need neither PyTorch nor this script.
"""

import argparse
import itertools
import json
import math
import pathlib
import struct

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None  # --samples does without

HERE = pathlib.Path(__file__).resolve().parent
SEED = 7
STEPS = 20
TOKENS_PER_BATCH = 320
OPTIMIZER = dict(lr=3e-3, min_lr=3e-4, warmup=4, weight_decay=0.1, beta1=0.9,
                 beta2=0.95, epsilon=1e-8, clip=1.0)
IGNORE = -1
MASK64 = (1 << 64) - 1


# ---------------------------------------------------------------- random numbers


def mix64(z):
    """SplitMix64's finaliser; `z` is an int or an array of uint64."""
    if isinstance(z, int):
        z = (z + 0x9E3779B97F4A7C15) & MASK64
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
        return z ^ (z >> 31)
    u = np.uint64
    z = z + u(0x9E3779B97F4A7C15)
    z = (z ^ (z >> u(30))) * u(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> u(27))) * u(0x94D049BB133111EB)
    return z ^ (z >> u(31))


def parameter_key(seed, name):
    fnv = 0xCBF29CE484222325
    for byte in name.encode():
        fnv = ((fnv ^ byte) * 0x100000001B3) & MASK64
    return mix64(mix64(seed) ^ fnv)


def initial_value(seed, name, shape, constant, normal):
    count = math.prod(shape)
    values = np.full(count, constant, dtype=np.float64)
    if normal != 0.0:
        key = np.uint64(parameter_key(seed, name))
        index = np.arange(count, dtype=np.uint64)
        u = ((mix64(key ^ (2 * index)) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        v = (mix64(key ^ (2 * index + np.uint64(1))) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        values += normal * np.sqrt(-2.0 * np.log(u)) * np.cos(2.0 * np.pi * v)
    return torch.from_numpy(values.reshape(shape))


# -------------------------------------------------------------------------- data

WORDS = ("the graph holds a layer of tokens and every sample has its own length "
         "so no row is padded while the plan moves naïve weights").split()


def make_documents():
    """Lines of JSON of very different lengths; every fifth has an input part."""
    lines = []
    state = 12345

    def choose(n):
        nonlocal state
        state += 1
        return mix64(state) % n

    for i in range(90):
        words = [WORDS[choose(len(WORDS))] for _ in range(1 + choose(3) ** 2 + (choose(17) == 0) * 20)]
        text = " ".join(words)
        if i % 5 == 2:
            lines.append({"input": text, "target": WORDS[choose(len(WORDS))]})
        elif i % 11 == 3:
            lines.append({"text": text[0]})  # two tokens: the shortest sample
        else:
            lines.append({"text": text})
    return "".join(json.dumps(line) + "\n" for line in lines)


def permute(index, size, key):
    """Feistel network of eight rounds over the next power of four."""
    half = 1
    while (1 << (2 * half)) < size:
        half += 1
    mask = (1 << half) - 1
    while True:
        left, right = index >> half, index & mask
        for r in range(8):
            left, right = right, left ^ (mix64(mix64(key ^ r) ^ right) & mask)
        index = left << half | right
        if index < size:
            return index


def read_samples(text, positions, seed):
    """Endless samples (tokens, targets): documents in an order by Feistel, cut in pieces."""
    documents = []
    for line in text.splitlines():
        fields = json.loads(line)
        first = 1
        if "text" in fields:
            tokens = list(fields["text"].encode())
        else:
            tokens = list(fields["input"].encode())
            first = max(1, len(tokens))
            tokens += list(fields["target"].encode())
        documents.append((tokens + [256], first))
    epoch = 0
    while True:
        key = mix64(parameter_key(seed, "order of documents") ^ epoch)
        for place in range(len(documents)):
            tokens, first = documents[permute(place, len(documents), key)]
            step = positions or len(tokens)
            for begin in range(0, len(tokens) - 1, step):
                end = min(len(tokens) - 1, begin + step)
                targets = [tokens[i + 1] if i + 1 >= first else IGNORE for i in range(begin, end)]
                if any(target != IGNORE for target in targets):
                    yield tokens[begin:end], targets
        epoch += 1


def read_batches(samples, tokens):
    batch, count = [], 0
    for sample in samples:
        if batch and count + len(sample[0]) > tokens:
            yield batch
            batch, count = [], 0
        batch.append(sample)
        count += len(sample[0])


def write_samples(out, name, positions, text):
    """The samples of all steps, and of one more, as pairs of indexed documents."""
    batches = read_batches(read_samples(text, positions, SEED), TOKENS_PER_BATCH)
    parts = {"inputs": [], "targets": []}
    for tokens, targets in itertools.chain.from_iterable(itertools.islice(batches, STEPS + 1)):
        whole = tokens + targets[-1:]
        first = sum(target == IGNORE for target in targets) + 1
        parts["inputs"].append(whole[:first])
        parts["targets"].append(whole[first:])
    for part, documents in parts.items():
        lengths = [len(document) for document in documents]
        offsets = list(itertools.accumulate(lengths, initial=0))[:-1]
        count = len(documents)
        index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, count, count + 1)  # 8: u16
        index += struct.pack(f"<{count}i", *lengths) + struct.pack(f"<{count}q", *(2 * offset for offset in offsets))
        index += struct.pack(f"<{count + 1}q", *range(count + 1))
        tokens = list(itertools.chain.from_iterable(documents))
        (out / f"{name}_{part}.idx").write_bytes(index)
        (out / f"{name}_{part}.bin").write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))


def pad(batch):
    longest = max(len(tokens) for tokens, _ in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    targets = torch.full((len(batch), longest), IGNORE, dtype=torch.long)
    for i, (tokens, wanted) in enumerate(batch):
        ids[i, : len(tokens)] = torch.tensor(tokens)
        targets[i, : len(tokens)] = torch.tensor(wanted)
    return ids, targets


# ------------------------------------------------------------------------ models


def attention(q, k, v, heads, kv_heads):
    """[batch, length, heads * size]; later keys, padding among them, are hidden."""
    batch, length, _ = q.shape
    split = lambda x, n: x.view(batch, length, n, -1).transpose(1, 2)
    q, k, v = split(q, heads), split(k, kv_heads), split(v, kv_heads)
    k = k.repeat_interleave(heads // kv_heads, dim=1)
    v = v.repeat_interleave(heads // kv_heads, dim=1)
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out.transpose(1, 2).reshape(batch, length, -1)


class Gpt2:
    name, family = "gpt2", "gpt2"
    vocabulary, positions, width, layers, heads, hidden = 257, 64, 48, 3, 4, 192
    kv_heads, head_dim = heads, width // heads

    def parameters(self):
        """name -> (shape, constant, normal, decay)."""
        w, h = self.width, self.hidden
        result = {"wte": ((self.vocabulary, w), 0, 0.1, True), "wpe": ((self.positions, w), 0, 0.05, True)}
        for i in range(self.layers):
            layer = {
                "ln_1.weight": ((w,), 1, 0.1, False), "ln_1.bias": ((w,), 0, 0.05, False),
                "attn.q.weight": ((w, w), 0, 0.15, True), "attn.q.bias": ((w,), 0, 0.05, False),
                "attn.k.weight": ((w, w), 0, 0.15, True), "attn.k.bias": ((w,), 0, 0.05, False),
                "attn.v.weight": ((w, w), 0, 0.1, True), "attn.v.bias": ((w,), 0, 0.05, False),
                "attn.proj.weight": ((w, w), 0, 0.1, True), "attn.proj.bias": ((w,), 0, 0.05, False),
                "ln_2.weight": ((w,), 1, 0.1, False), "ln_2.bias": ((w,), 0, 0.05, False),
                "mlp.fc.weight": ((h, w), 0, 0.1, True), "mlp.fc.bias": ((h,), 0, 0.05, False),
                "mlp.proj.weight": ((w, h), 0, 0.05, True), "mlp.proj.bias": ((w,), 0, 0.05, False),
            }
            result.update({f"h.{i}.{key}": value for key, value in layer.items()})
        result.update({"ln_f.weight": ((w,), 1, 0.1, False), "ln_f.bias": ((w,), 0, 0.05, False)})
        return result

    def logits(self, p, ids):
        w = self.width
        x = F.embedding(ids, p["wte"]) + p["wpe"][: ids.shape[1]]
        for i in range(self.layers):
            g = lambda key: p[f"h.{i}.{key}"]
            lin = lambda x, key: F.linear(x, g(key + ".weight"), g(key + ".bias"))
            n = F.layer_norm(x, (w,), g("ln_1.weight"), g("ln_1.bias"), eps=1e-5)
            a = attention(lin(n, "attn.q"), lin(n, "attn.k"), lin(n, "attn.v"), self.heads, self.heads)
            x = x + lin(a, "attn.proj")
            n = F.layer_norm(x, (w,), g("ln_2.weight"), g("ln_2.bias"), eps=1e-5)
            x = x + lin(F.gelu(lin(n, "mlp.fc"), approximate="tanh"), "mlp.proj")
        x = F.layer_norm(x, (w,), p["ln_f.weight"], p["ln_f.bias"], eps=1e-5)
        return F.linear(x, p["wte"])

    def layer_text(self):
        w, h, v, n = self.width, self.hidden, self.vocabulary, self.positions
        a, m, u, r = f"tensor<?x{w}xf32>", f"tensor<{w}x{w}xf32>", f"tensor<{w}xf32>", f"tensor<?x{h}xf32>"
        return f"""
dyna.layer @embed[%wte: tensor<{v}x{w}xf32>, %wpe: tensor<{n}x{w}xf32>](%ids: tensor<?xi32>, %s: !dyna.segments) -> {a} {{
  %tokens = dyna.embedding %ids, %wte : tensor<?xi32>, tensor<{v}x{w}xf32>
  %places = dyna.positions %wpe, %s : tensor<{n}x{w}xf32>
  %x = dyna.add %tokens, %places : {a}
  dyna.return %x : {a}
}}

dyna.layer @block[%g1: {u}, %b1: {u}, %wq: {m}, %bq: {u}, %wk: {m}, %bk: {u},
                  %wv: {m}, %bv: {u}, %wo: {m}, %bo: {u}, %g2: {u}, %b2: {u},
                  %wf: tensor<{h}x{w}xf32>, %bf: tensor<{h}xf32>, %wp: tensor<{w}x{h}xf32>, %bp: {u}]
                 (%x: {a}, %s: !dyna.segments) -> {a} {{
  %n = dyna.layer_norm %x, %g1, %b1 {{epsilon = 1.0e-5 : f64}} : {a}, {u}
  %q = dyna.linear %n, %wq, %bq : {a}, {m}, {u}
  %k = dyna.linear %n, %wk, %bk : {a}, {m}, {u}
  %v = dyna.linear %n, %wv, %bv : {a}, {m}, {u}
  %o, %lse = dyna.attention %q, %k, %v, %s {{causal, heads = {self.heads} : i64, kv_heads = {self.heads} : i64, scale = {self.head_dim ** -0.5!r} : f64}} : {a}, {a}, {a}
  %p = dyna.linear %o, %wo, %bo : {a}, {m}, {u}
  %r = dyna.add %x, %p : {a}
  %m = dyna.layer_norm %r, %g2, %b2 {{epsilon = 1.0e-5 : f64}} : {a}, {u}
  %f = dyna.linear %m, %wf, %bf : {a}, tensor<{h}x{w}xf32>, tensor<{h}xf32>
  %g = dyna.gelu %f tanh : {r}
  %d = dyna.linear %g, %wp, %bp : {r}, tensor<{w}x{h}xf32>, {u}
  %y = dyna.add %r, %d : {a}
  dyna.return %y : {a}
}}

dyna.layer @head[%g: {u}, %b: {u}, %wte: tensor<{v}x{w}xf32>](%x: {a}, %targets: tensor<?xi32>) -> tensor<1xf64> {{
  %n = dyna.layer_norm %x, %g, %b {{epsilon = 1.0e-5 : f64}} : {a}, {u}
  %loss = dyna.linear_cross_entropy %n, %wte, %targets : {a}, tensor<{v}x{w}xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}}
"""

    embed, head, block = ["wte", "wpe"], ["ln_f.weight", "ln_f.bias", "wte"], "h."
    embed_takes_segments = True

    def zero_gradients(self):
        """A key bias shifts all scores of a query alike: softmax does not see it."""
        return [f"h.{i}.attn.k.bias" for i in range(self.layers)]


class Llama:
    name, family = "llama", "llama"
    vocabulary, positions, width, layers, heads, hidden = 257, 96, 40, 2, 6, 104
    kv_heads, head_dim = 2, 16

    def parameters(self):
        w, h, q, kv = self.width, self.hidden, self.heads * self.head_dim, self.kv_heads * self.head_dim
        result = {"embed_tokens.weight": ((self.vocabulary, w), 0, 0.3, True)}
        for i in range(self.layers):
            layer = {
                "input_norm.weight": ((w,), 1, 0.1, False),
                "attn.q.weight": ((q, w), 0, 0.15, True), "attn.k.weight": ((kv, w), 0, 0.15, True),
                "attn.v.weight": ((kv, w), 0, 0.1, True), "attn.o.weight": ((w, q), 0, 0.1, True),
                "post_norm.weight": ((w,), 1, 0.1, False),
                "mlp.gate.weight": ((h, w), 0, 0.1, True), "mlp.up.weight": ((h, w), 0, 0.1, True),
                "mlp.down.weight": ((w, h), 0, 0.1, True),
            }
            result.update({f"layers.{i}.{key}": value for key, value in layer.items()})
        result.update({"norm.weight": ((w,), 1, 0.1, False),
                       "lm_head.weight": ((self.vocabulary, w), 0, 0.05, True)})
        return result

    def rotate(self, x, heads):
        """The form of LLaMA checkpoints: x * cos + rotate_half(x) * sin."""
        batch, length, _ = x.shape
        frequencies = 1.0 / 1e4 ** (torch.arange(0, self.head_dim, 2, dtype=torch.float64) / self.head_dim)
        angles = torch.outer(torch.arange(length, dtype=torch.float64), frequencies)
        angles = torch.cat([angles, angles], dim=-1)[:, None, :]
        x = x.view(batch, length, heads, self.head_dim)
        first, second = x.chunk(2, dim=-1)
        turned = x * angles.cos() + torch.cat([-second, first], dim=-1) * angles.sin()
        return turned.reshape(batch, length, -1)

    def logits(self, p, ids):
        w = self.width
        x = F.embedding(ids, p["embed_tokens.weight"])
        for i in range(self.layers):
            g = lambda key: p[f"layers.{i}.{key}.weight"]
            n = F.rms_norm(x, (w,), g("input_norm"), eps=1e-6)
            q = self.rotate(F.linear(n, g("attn.q")), self.heads)
            k = self.rotate(F.linear(n, g("attn.k")), self.kv_heads)
            a = attention(q, k, F.linear(n, g("attn.v")), self.heads, self.kv_heads)
            x = x + F.linear(a, g("attn.o"))
            n = F.rms_norm(x, (w,), g("post_norm"), eps=1e-6)
            x = x + F.linear(F.silu(F.linear(n, g("mlp.gate"))) * F.linear(n, g("mlp.up")), g("mlp.down"))
        x = F.rms_norm(x, (w,), p["norm.weight"], eps=1e-6)
        return F.linear(x, p["lm_head.weight"])

    def layer_text(self):
        w, h, v = self.width, self.hidden, self.vocabulary
        qw, kw = self.heads * self.head_dim, self.kv_heads * self.head_dim
        a, u, r = f"tensor<?x{w}xf32>", f"tensor<{w}xf32>", f"tensor<?x{h}xf32>"
        tq, tk, th, td = f"tensor<{qw}x{w}xf32>", f"tensor<{kw}x{w}xf32>", f"tensor<{h}x{w}xf32>", f"tensor<{w}x{h}xf32>"
        q, k = f"tensor<?x{qw}xf32>", f"tensor<?x{kw}xf32>"
        turn = f"{{head_dim = {self.head_dim} : i64, theta = 1.0e4 : f64}}"
        return f"""
dyna.layer @embed[%table: tensor<{v}x{w}xf32>](%ids: tensor<?xi32>) -> {a} {{
  %x = dyna.embedding %ids, %table : tensor<?xi32>, tensor<{v}x{w}xf32>
  dyna.return %x : {a}
}}

dyna.layer @block[%g1: {u}, %wq: {tq}, %wk: {tk}, %wv: {tk}, %wo: tensor<{w}x{qw}xf32>,
                  %g2: {u}, %wg: {th}, %wu: {th}, %wd: {td}](%x: {a}, %s: !dyna.segments) -> {a} {{
  %n = dyna.rms_norm %x, %g1 {{epsilon = 1.0e-6 : f64}} : {a}, {u}
  %q0 = dyna.linear %n, %wq : {a}, {tq}
  %k0 = dyna.linear %n, %wk : {a}, {tk}
  %v = dyna.linear %n, %wv : {a}, {tk}
  %q = dyna.rotary %q0, %s {turn} : {q}
  %k = dyna.rotary %k0, %s {turn} : {k}
  %o, %lse = dyna.attention %q, %k, %v, %s {{causal, heads = {self.heads} : i64, kv_heads = {self.kv_heads} : i64, scale = {self.head_dim ** -0.5!r} : f64}} : {q}, {k}, {k}
  %p = dyna.linear %o, %wo : {q}, tensor<{w}x{qw}xf32>
  %r = dyna.add %x, %p : {a}
  %m = dyna.rms_norm %r, %g2 {{epsilon = 1.0e-6 : f64}} : {a}, {u}
  %gate = dyna.linear %m, %wg : {a}, {th}
  %up = dyna.linear %m, %wu : {a}, {th}
  %act = dyna.silu %gate : {r}
  %f = dyna.mul %act, %up : {r}
  %d = dyna.linear %f, %wd : {r}, {td}
  %y = dyna.add %r, %d : {a}
  dyna.return %y : {a}
}}

dyna.layer @head[%g: {u}, %w: tensor<{v}x{w}xf32>](%x: {a}, %targets: tensor<?xi32>) -> tensor<1xf64> {{
  %n = dyna.rms_norm %x, %g {{epsilon = 1.0e-6 : f64}} : {a}, {u}
  %loss = dyna.linear_cross_entropy %n, %w, %targets : {a}, tensor<{v}x{w}xf32>, tensor<?xi32>
  dyna.return %loss : tensor<1xf64>
}}
"""

    embed, head, block = ["embed_tokens.weight"], ["norm.weight", "lm_head.weight"], "layers."
    embed_takes_segments = False

    def zero_gradients(self):
        return []


def module_text(model):
    """The model in the dyna dialect."""
    parameters = model.parameters()
    lines = ["// Made by make_golden.py.",
             "// RUN: dyna-opt %s --dyna-convert-compute-type=type=f64 --dyna-differentiate | FileCheck %s",
             f"// CHECK: dyna.model @{model.name}(", ""]
    for name, (shape, constant, normal, decay) in parameters.items():
        type_ = f"tensor<{'x'.join(map(str, shape))}xf32>"
        line = f"dyna.parameter @{name} : {type_}"
        line += f" constant {constant:.1f}" if constant else ""
        line += f" normal {normal!r}" if normal else ""
        lines.append(line + (" decay" if decay else ""))
    lines.append(model.layer_text())
    a = f"tensor<?x{model.width}xf32>"
    facts = (f'family = "{model.family}", vocabulary = {model.vocabulary}, positions = {model.positions}, '
             f"width = {model.width}, heads = {model.heads}, kv_heads = {model.kv_heads}, "
             f'head_dim = {model.head_dim}, feed_forward = {model.hidden}, config = ""')
    lines.append(f"dyna.model @{model.name}(%ids: tensor<?xi32>, %targets: tensor<?xi32>, %s: !dyna.segments)\n    facts<{facts}> {{")
    symbols = lambda names: "[" + ", ".join("@" + name for name in names) + "]"
    more, more_type = (", %s", ", !dyna.segments") if model.embed_takes_segments else ("", "")
    lines.append(f'  %0 = dyna.call "embed" @embed{symbols(model.embed)}(%ids{more}) : (tensor<?xi32>{more_type}) -> {a}')
    x, losses = "%0", []
    for i in range(model.layers):
        names = [name for name in parameters if name.startswith(f"{model.block}{i}.") and ".exit." not in name]
        lines.append(f'  %{i + 1} = dyna.call "{model.block}{i}" @block{symbols(names)}({x}, %s) : ({a}, !dyna.segments) -> {a}')
        x = f"%{i + 1}"
        if i in getattr(model, "exits", {}):
            kind, names, weight = model.exits[i]
            lines.append(f'  %x{i}, %early{i} = dyna.call "{model.block}{i}.exit" @{kind}{symbols(names)}({x}, %targets) '
                         f"weight {weight!r} : ({a}, tensor<?xi32>) -> ({a}, tensor<1xf64>)")
            x = f"%x{i}"
            losses.append(f"%early{i}")
    losses.append("%loss")
    lines.append(f'  %loss = dyna.call "head" @head{symbols(model.head)}({x}, %targets) : ({a}, tensor<?xi32>) -> tensor<1xf64>')
    lines += [f"  dyna.return {', '.join(losses)} : {', '.join(['tensor<1xf64>'] * len(losses))}", "}", ""]
    return "\n".join(lines)


# ---------------------------------------------------------------------- training


def learning_rate(step):
    o = OPTIMIZER
    if step < o["warmup"]:
        return o["lr"] * (step + 1) / o["warmup"]
    done = min(1.0, (step - o["warmup"]) / max(1, STEPS - o["warmup"]))
    return o["min_lr"] + (o["lr"] - o["min_lr"]) * 0.5 * (1 + math.cos(math.pi * done))


def loss_sum(model, p, ids, targets):
    """The sum of token losses. A model with several heads gives logits with weights."""
    heads = model.logits(p, ids)
    return sum(weight * F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="sum")
               for weight, logits in (heads if isinstance(heads, list) else [(1.0, heads)]))


def train(model, text):
    plans = model.parameters()
    p = {name: initial_value(SEED, name, shape, constant, normal).requires_grad_()
         for name, (shape, constant, normal, _) in plans.items()}
    o = OPTIMIZER
    groups = [{"params": [p[n] for n in p if plans[n][3] == decay], "weight_decay": o["weight_decay"] if decay else 0.0}
              for decay in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["epsilon"])
    batches = read_batches(read_samples(text, model.positions, SEED), TOKENS_PER_BATCH)
    result = {"losses": [], "targets": [], "tokens": [], "global_norms": []}
    for step in range(STEPS):
        batch = next(batches)
        ids, targets = pad(batch)
        count = int((targets != IGNORE).sum())
        optimizer.zero_grad()
        loss = loss_sum(model, p, ids, targets) / count
        loss.backward()
        norms = {name: float(tensor.grad.norm()) for name, tensor in p.items()}
        total = math.sqrt(sum(norm**2 for norm in norms.values()))
        if step == 0:
            result["gradient_norms"] = norms
        result["losses"].append(float(loss.detach()))
        result["targets"].append(count)
        result["tokens"].append(sum(len(tokens) for tokens, _ in batch))
        result["global_norms"].append(total)
        if total > o["clip"]:
            for tensor in p.values():
                tensor.grad *= o["clip"] / total
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        optimizer.step()
    result["final_norms"] = {name: float(tensor.detach().norm()) for name, tensor in p.items()}
    return result


def flags():
    o = OPTIMIZER
    return [f"--steps={STEPS}", f"--tokens-per-batch={TOKENS_PER_BATCH}", f"--seed={SEED}", f"--lr={o['lr']}",
            f"--min-lr={o['min_lr']}", f"--warmup={o['warmup']}", "--schedule=cosine",
            f"--weight-decay={o['weight_decay']}", f"--beta1={o['beta1']}", f"--beta2={o['beta2']}",
            f"--epsilon={o['epsilon']}", f"--clip={o['clip']}", "--shuffle=none"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=HERE, help="where to write (default: beside this script)")
    parser.add_argument("--samples", action="store_true", help="write the samples alone")
    arguments = parser.parse_args()
    out = arguments.out
    text = make_documents()
    for model in (Gpt2(), Llama()):
        write_samples(out, model.name, model.positions, text)
        if arguments.samples:
            continue
        torch.manual_seed(0)
        torch.set_num_threads(1)
        (out / f"{model.name}.mlir").write_text(module_text(model))
        golden = {"torch": torch.__version__.split("+")[0], "flags": flags(), "zero_gradients": model.zero_gradients()}
        golden.update(train(model, text))
        (out / f"{model.name}.json").write_text(json.dumps(golden, indent=1) + "\n")
        print(model.name, "loss", golden["losses"][0], "->", golden["losses"][-1],
              "largest norm", max(golden["global_norms"]), "smallest", min(golden["global_norms"]))


if __name__ == "__main__":
    main()
