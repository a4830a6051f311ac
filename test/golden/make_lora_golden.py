#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the golden file of a frozen model with low-rank adapters: lora.mlir and lora.json.

    pip install torch numpy
    python3 make_lora_golden.py

The model is the LLaMA-like one of make_golden.py, and so are samples, initial values and
training. All of its parameters are frozen but the last norm. Beside `q`, `v` and `o`
lie adapters that compute what PEFT's `LoraLayer` does, written out here in PyTorch's own
functions: `base(x) + B(A(x)) * (alpha / rank)`. `B` does not begin at zero, so that every
gradient of the first step is one.
"""

import json

import torch
import torch.nn.functional as F

import make_golden

RANK, ALPHA = 4, 6.0
TARGETS = ("q", "v", "o")
TRAINED = ("norm.weight",)


def lora_linear(x, weight, a, b):
    """The forward of PEFT's `lora.Linear` without dropout."""
    result = F.linear(x, weight)
    return result + F.linear(F.linear(x, a), b) * (ALPHA / RANK)


class LoraLlama(make_golden.Llama):
    name = "lora"

    def parameters(self):
        result = {}
        for name, (shape, constant, normal, decay) in super().parameters().items():
            result[name] = (shape, constant, normal, decay)
            stem = name.removesuffix(".weight")
            if stem.split(".")[-1] in TARGETS:
                result[f"{stem}.lora_A.weight"] = ((RANK, shape[1]), 0, 0.2, True)
                result[f"{stem}.lora_B.weight"] = ((shape[0], RANK), 0, 0.1, True)
        return result

    def is_trained(self, name):
        return ".lora_" in name or name in TRAINED

    def logits(self, p, ids):
        w = self.width
        x = F.embedding(ids, p["embed_tokens.weight"])
        for i in range(self.layers):
            g = lambda key: p[f"layers.{i}.{key}.weight"]
            lora = lambda x, key: lora_linear(x, g(key), g(key + ".lora_A"), g(key + ".lora_B"))
            n = F.rms_norm(x, (w,), g("input_norm"), eps=1e-6)
            q = self.rotate(lora(n, "attn.q"), self.heads)
            k = self.rotate(F.linear(n, g("attn.k")), self.kv_heads)
            a = make_golden.attention(q, k, lora(n, "attn.v"), self.heads, self.kv_heads)
            x = x + lora(a, "attn.o")
            n = F.rms_norm(x, (w,), g("post_norm"), eps=1e-6)
            x = x + F.linear(F.silu(F.linear(n, g("mlp.gate"))) * F.linear(n, g("mlp.up")), g("mlp.down"))
        x = F.rms_norm(x, (w,), p["norm.weight"], eps=1e-6)
        return F.linear(x, p["lm_head.weight"])

    def layer_text(self):
        text = super().layer_text()
        w, qw, kw = self.width, self.heads * self.head_dim, self.kv_heads * self.head_dim
        small = f"tensor<?x{RANK}xf32>"
        # target: input, result, sizes, the name that the ops behind read.
        for key, x, result, out, inner in (("q", "%n", "%q0", qw, w), ("v", "%n", "%v", kw, w), ("o", "%o", "%p", w, qw)):
            matrix, a, b = f"tensor<{out}x{inner}xf32>", f"tensor<{RANK}x{inner}xf32>", f"tensor<{out}x{RANK}xf32>"
            given, made = f"tensor<?x{inner}xf32>", f"tensor<?x{out}xf32>"
            parameter = f"%w{key}: {matrix},"
            line = f"  {result} = dyna.linear {x}, %w{key} : {given}, {matrix}\n"
            assert parameter in text and line in text
            text = text.replace(parameter, f"{parameter} %a{key}: {a}, %b{key}: {b},")
            text = text.replace(line, f"""  %{key}_base = dyna.linear {x}, %w{key} : {given}, {matrix}
  %{key}_down = dyna.linear {x}, %a{key} : {given}, {a}
  %{key}_up = dyna.linear %{key}_down, %b{key} : {small}, {b}
  %{key}_scaled = dyna.scale %{key}_up {{factor = {ALPHA / RANK!r} : f64}} : {made}
  {result} = dyna.add %{key}_base, %{key}_scaled : {made}
""")
        return text


def module_text(model):
    lines = []
    for line in make_golden.module_text(model).replace("make_golden.py", "make_lora_golden.py").splitlines():
        if line.startswith("dyna.parameter @"):
            name = line.split()[1][1:]
            line += " added" if ".lora_" in name else "" if model.is_trained(name) else " frozen"
        lines.append(line)
    return "\n".join(lines) + "\n"


def train(model, text):
    """As make_golden.train, of what is trained."""
    plans = model.parameters()
    p = {name: make_golden.initial_value(make_golden.SEED, name, shape, constant, normal)
         for name, (shape, constant, normal, _) in plans.items()}
    trained = [name for name in p if model.is_trained(name)]
    for name in trained:
        p[name].requires_grad_()
    o = make_golden.OPTIMIZER
    groups = [{"params": [p[n] for n in trained if plans[n][3] == decay],
               "weight_decay": o["weight_decay"] if decay else 0.0} for decay in (True, False)]
    optimizer = torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["epsilon"])
    samples = make_golden.read_samples(text, model.positions, make_golden.SEED)
    batches = make_golden.read_batches(samples, make_golden.TOKENS_PER_BATCH)
    result = {"losses": [], "targets": [], "tokens": [], "global_norms": []}
    for step in range(make_golden.STEPS):
        batch = next(batches)
        ids, targets = make_golden.pad(batch)
        count = int((targets != make_golden.IGNORE).sum())
        optimizer.zero_grad()
        logits = model.logits(p, ids)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=make_golden.IGNORE,
                               reduction="sum") / count
        loss.backward()
        norms = {name: float(p[name].grad.norm()) for name in trained}
        total = sum(norm**2 for norm in norms.values()) ** 0.5
        if step == 0:
            result["gradient_norms"] = norms
        result["losses"].append(float(loss.detach()))
        result["targets"].append(count)
        result["tokens"].append(sum(len(tokens) for tokens, _ in batch))
        result["global_norms"].append(total)
        if total > o["clip"]:
            for name in trained:
                p[name].grad *= o["clip"] / total
        for group in optimizer.param_groups:
            group["lr"] = make_golden.learning_rate(step)
        optimizer.step()
    result["final_norms"] = {name: float(tensor.detach().norm()) for name, tensor in p.items()}
    return result


def main():
    model = LoraLlama()
    torch.set_num_threads(1)
    (make_golden.HERE / "lora.mlir").write_text(module_text(model))
    golden = {"torch": torch.__version__.split("+")[0], "flags": make_golden.flags(), "samples": "llama",
              "zero_gradients": model.zero_gradients()}
    golden.update(train(model, make_golden.make_documents()))
    (make_golden.HERE / "lora.json").write_text(json.dumps(golden, indent=1) + "\n")
    print("loss", golden["losses"][0], "->", golden["losses"][-1], "norms", min(golden["global_norms"]),
          "to", max(golden["global_norms"]))


if __name__ == "__main__":
    main()
