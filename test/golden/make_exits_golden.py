#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the golden file of a model with early exits: exits.mlir and exits.json.

    pip install torch numpy
    python3 make_exits_golden.py

The model is the GPT-2-like one of make_golden.py, and so are samples, initial values and
training. Behind its first block is a head with a norm of its own and the table of tokens,
behind the second one with a table of its own too. The loss is the weighted sum of all.
"""

import json
import re

import torch
import torch.nn.functional as F

import make_golden

WEIGHTS = {0: 0.3, 1: 0.5}


class ExitsGpt2(make_golden.Gpt2):
    name = "exits"
    exits = {0: ("exit", ["h.0.exit.ln_f.weight", "h.0.exit.ln_f.bias", "wte"], WEIGHTS[0]),
             1: ("own_exit", ["h.1.exit.ln_f.weight", "h.1.exit.ln_f.bias", "h.1.exit.lm_head.weight"], WEIGHTS[1])}

    def parameters(self):
        w, result = self.width, {}
        for name, value in super().parameters().items():
            result[name] = value
            block = name.removesuffix(".mlp.proj.bias")
            if block in ("h.0", "h.1"):
                result[f"{block}.exit.ln_f.weight"] = ((w,), 1, 0.1, False)
                result[f"{block}.exit.ln_f.bias"] = ((w,), 0, 0.05, False)
            if block == "h.1":
                result[f"{block}.exit.lm_head.weight"] = ((self.vocabulary, w), 0, 0.1, True)
        return result

    def logits(self, p, ids):
        w, heads = self.width, []
        x = F.embedding(ids, p["wte"]) + p["wpe"][: ids.shape[1]]
        for i in range(self.layers):
            g = lambda key: p[f"h.{i}.{key}"]
            lin = lambda x, key: F.linear(x, g(key + ".weight"), g(key + ".bias"))
            n = F.layer_norm(x, (w,), g("ln_1.weight"), g("ln_1.bias"), eps=1e-5)
            a = make_golden.attention(lin(n, "attn.q"), lin(n, "attn.k"), lin(n, "attn.v"), self.heads, self.heads)
            x = x + lin(a, "attn.proj")
            n = F.layer_norm(x, (w,), g("ln_2.weight"), g("ln_2.bias"), eps=1e-5)
            x = x + lin(F.gelu(lin(n, "mlp.fc"), approximate="tanh"), "mlp.proj")
            if i in self.exits:
                norm, bias, table = (p[name] for name in self.exits[i][1])
                heads.append((WEIGHTS[i], F.linear(F.layer_norm(x, (w,), norm, bias, eps=1e-5), table)))
        x = F.layer_norm(x, (w,), p["ln_f.weight"], p["ln_f.bias"], eps=1e-5)
        return [*heads, (1.0, F.linear(x, p["wte"]))]

    def layer_text(self):
        """The layers of exits are the head that also returns its input."""
        text = super().layer_text()
        a = f"tensor<?x{self.width}xf32>"
        head = text[text.index("dyna.layer @head"):]
        exit_ = head.replace("-> tensor<1xf64> {", f"-> ({a}, tensor<1xf64>) {{")
        exit_ = exit_.replace("dyna.return %loss : tensor<1xf64>", f"dyna.return %x, %loss : {a}, tensor<1xf64>")
        assert exit_.count(f"({a}, tensor<1xf64>)") == 1 and "%x, %loss" in exit_
        return "\n".join([text.removesuffix(head) + exit_.replace("@head", "@exit"), exit_.replace("@head", "@own_exit"), head])


def main():
    model = ExitsGpt2()
    torch.set_num_threads(1)
    text = make_golden.module_text(model).replace("make_golden.py", "make_exits_golden.py")
    text = re.sub(r"^dyna\.parameter @\S+\.exit\..*$", r"\g<0> added", text, flags=re.MULTILINE)
    (make_golden.HERE / "exits.mlir").write_text(text)
    golden = {"torch": torch.__version__.split("+")[0], "flags": make_golden.flags(), "samples": "gpt2",
              "zero_gradients": model.zero_gradients()}
    golden.update(make_golden.train(model, make_golden.make_documents()))
    (make_golden.HERE / "exits.json").write_text(json.dumps(golden, indent=1) + "\n")
    print("loss", golden["losses"][0], "->", golden["losses"][-1], "norms", min(golden["global_norms"]),
          "to", max(golden["global_norms"]))


if __name__ == "__main__":
    main()
