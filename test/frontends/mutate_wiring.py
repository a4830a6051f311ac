#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wires the layers of a family's model otherwise, one change at a time: dyna-opt must refuse each.

All sizes that may be equal are, so that types catch as little as they can. Every operand becomes each other value of
its type, every op is left out, operands and parameters are exchanged, and what ops say beside their operands is
changed. What computes the same is accepted: the models of all options of the front end, with their ops, parameters and
layers in any order that they can have, and both operands of sums and products exchanged.
"""
import argparse
import bisect
import itertools
import json
import random
import re
import subprocess
import sys

COMMUTATIVE = ("dyna.add", "dyna.mul")
CONFIGS = {
    "gpt2": {"model_type": "gpt2", "vocab_size": 24, "n_positions": 24, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_inner": 16,
             "attn_pdrop": 0},
    "llama": {"model_type": "llama", "vocab_size": 24, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2,
              "num_attention_heads": 4, "max_position_embeddings": 32}}
OPTIONS = {
    "gpt2": {"tie_word_embeddings": (True, False), "activation_function": ("gelu", "gelu_new", "silu", "relu"),
             "resid_pdrop": (0, 0.25), "embd_pdrop": (0, 0.5), "n_inner": (None, 40), "n_layer": (1, 3)},
    "llama": {"tie_word_embeddings": (True, False), "hidden_act": ("silu", "relu"), "attention_bias": (False, True),
              "mlp_bias": (False, True), "num_key_value_heads": (4, 2, 1), "head_dim": (None, 6), "rope_theta": (500.5,),
              "num_hidden_layers": (1, 3)}}
OP = re.compile(r'^ *(?:(%\w+)(?::\d+)? = )?"(dyna\.\w+)"\(([^)]*)\) ?(<\{.*\}>)? : \((.*)\) -> (.*)$')


class Op:
    def __init__(self, line):
        self.result, self.name, operands, properties, ins, outs = OP.match(line).groups()
        self.operands = operands.split(", ") if operands else []
        self.properties, self.ins, self.outs = properties or "", ins.split(", "), outs
        self.type = outs.strip("()").split(", ")[0]

    def text(self, operands=None, properties=None):
        several = ":2" if self.outs.startswith("(") and ", " in self.outs else ""
        return (f'    {f"{self.result}{several} = " if self.result else ""}"{self.name}"({", ".join(operands or self.operands)})'
                f' {self.properties if properties is None else properties} : ({", ".join(self.ins)}) -> {self.outs}')


class Module:
    """The generic form, in pieces: lines of text, with the ops of each layer, and of the model, apart."""

    def __init__(self, text):
        # Results are named, not numbered by their op: %3#0 is %3.
        lines, self.bodies, self.arguments, self.pieces = text.replace("#0", "").splitlines(), [], [], []
        body = None
        for line in lines:
            start = re.match(r" *\^bb0\((.*)\):$", line)
            if start:
                body = []
                self.pieces.append(line)
                self.pieces.append(body)
                self.bodies.append(body)
                self.arguments.append([tuple(a.split(": ")) for a in start[1].split(", ")])
            elif body is not None and OP.match(line):
                body.append(Op(line))
            else:
                body = None
                self.pieces.append(line)
        self.layers, self.model = self.bodies[:-1], self.bodies[-1]

    def text(self, changed=None, to=None):
        """With the lines `to` in place of a body."""
        return "\n".join(piece if isinstance(piece, str) else
                         "\n".join(to if piece is changed else [op.text() for op in piece]) for piece in self.pieces)


def lines(body, index, op):
    return [op if i == index else other.text() for i, other in enumerate(body)]


def mutations(module):
    """(what, text, whether it computes the same)"""
    for body, arguments in zip(module.layers, module.arguments):
        known = list(arguments)
        for i, op in enumerate(body):
            for k, operand in enumerate(op.operands):
                kind = dict(known)[operand]
                for other, other_kind in known:
                    if other != operand and other_kind == kind:
                        operands = op.operands[:k] + [other] + op.operands[k + 1:]
                        yield f"{op.name}: {other} as operand {k}", module.text(body, lines(body, i, op.text(operands))), False
            for k, m in itertools.combinations(range(len(op.operands)), 2):
                if op.ins[k] == op.ins[m]:
                    operands = list(op.operands)
                    operands[k], operands[m] = operands[m], operands[k]
                    yield (f"{op.name}: operands {k} and {m} exchanged", module.text(body, lines(body, i, op.text(operands))),
                           op.name in COMMUTATIVE)
            for operand in dict.fromkeys(op.operands):
                if op.result and dict(known)[operand] == op.type:
                    rest = [re.sub(rf"{op.result}(?!\w)", operand, other.text()) for other in body if other is not op]
                    yield f"{op.name} left out, {operand} in its place", module.text(body, rest), False
            for before, after in (("head_dim = 4", "head_dim = 2"), ("head_dim = 4", "inverse, head_dim = 4"),
                                  ("heads = 4", "heads = 2"), ("theta = 1.000000e+04", "theta = 1.000000e+03"),
                                  ("#dyna<gelu_form tanh>", "#dyna<gelu_form erf>"), (", causal", ""), ("causal, ", "")):
                if before in op.properties:
                    yield (f"{op.name}: {after} for {before}",
                           module.text(body, lines(body, i, op.text(properties=op.properties.replace(before, after)))), False)
            if op.result:
                known.append((op.result, op.type))
    declared = dict(re.findall(r'"dyna.parameter"\(\).*sym_name = "([^"]*)".*type = (tensor<[^>]*>)', module.text()))
    for i, op in enumerate(module.model[:-1]):
        own = re.findall(r'@"?([\w.]+)"?', re.search(r"parameters = \[([^\]]*)\]", op.properties)[1])
        for name, other in itertools.product(own, declared):
            # Exchanged in this call, or that of another layer.
            is_near = other in own or name.split(".")[2:] == other.split(".")[2:]
            if name != other and is_near and declared[name] == declared[other]:
                swap = {name: other, other: name}
                changed = ", ".join(f'@"{swap.get(n, n)}"' for n in own)
                properties = re.sub(r"parameters = \[[^\]]*\]", f"parameters = [{changed}]", op.properties)
                yield (f"{op.name}: @{other} for @{name}", module.text(module.model, lines(module.model, i, op.text(
                    properties=properties))), False)
    for first, second in itertools.combinations(range(1, len(module.model) - 2), 2):
        a, b = module.model[first], module.model[second]
        body = lines(module.model, first, a.text(properties=b.properties))
        body[second] = b.text(properties=a.properties)
        yield "blocks exchanged", module.text(module.model, body), False
    for first, second in itertools.product(range(1, len(module.model) - 1), repeat=2):
        if second > first:
            left = [op.text() for op in module.model[:first]]
            left += [re.sub(rf"{module.model[second - 1].result}(?!\w)", module.model[first - 1].result, op.text())
                     for op in module.model[second:]]
            yield "blocks left out", module.text(module.model, left), False


def reorder(module, chance):
    """The same model, written by somebody else."""
    text = module.text()
    for body, arguments in zip(module.layers, module.arguments):
        left, known, order = list(body[:-1]), {name for name, _ in arguments}, []
        while left:
            ready = [op for op in left if known.issuperset(operand.split("#")[0] for operand in op.operands)]
            op = chance.choice(ready)
            left.remove(op)
            known.add(op.result)
            operands = list(op.operands)
            if op.name in COMMUTATIVE and chance.random() < 0.5:
                operands.reverse()
            order.append(op.text(operands))
        text = text.replace("\n".join(op.text() for op in body), "\n".join(order + [body[-1].text()]))
    other = "l" + str(chance.randrange(10**6))
    # Kinds and calls of layers have any names.
    text = re.sub(r'(@|sym_name = ")(embed|block|head)\b(?![_.])', rf"\1{other}_\2", text)
    return re.sub(r'layer_name = "', f'layer_name = "{other}.', text)


def judge(opt, texts):
    """The first error of each text, or None."""
    if len(texts) > 64:  # each error looks for its line in all of the input
        return judge(opt, texts[:64]) + judge(opt, texts[64:])
    starts, line = [], 1
    for text in texts:
        starts.append(line)
        line += text.count("\n") + 3  # and the separator
    run = subprocess.run([opt, "--dyna-check-families", "-split-input-file", "-o", "/dev/null", "-"],
                         input="\n\n// -----\n".join(texts), text=True, capture_output=True)
    errors = {}
    for at, message in re.findall(r"^<stdin>:(\d+):\d+: (error: .*)$", run.stderr, re.M):
        errors.setdefault(bisect.bisect(starts, int(at)) - 1, message)
    if run.returncode not in (0, 1) or bool(run.returncode) != bool(errors):
        sys.exit(f"exit code {run.returncode}: {run.stderr[:2000]}")
    return [errors.get(i) for i in range(len(texts))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", choices=CONFIGS)
    parser.add_argument("--opt", default="dyna-opt")
    parser.add_argument("--translate", default="dyna-translate")
    parser.add_argument("--show", action="store_true", help="print every refusal")
    options = parser.parse_args()
    family, failures = options.family, []

    def model(config):
        text = subprocess.run([options.translate, "--from-config", "-"], input=json.dumps(config), check=True, text=True,
                              capture_output=True).stdout
        run = subprocess.run([options.opt, "--dyna-check-families", "--mlir-print-op-generic", "-"], input=text, text=True, capture_output=True)
        if run.returncode != 0:
            sys.exit(f"{config} is refused: {run.stderr}")
        return Module(run.stdout)

    base = CONFIGS[family]
    drop = {"resid_pdrop": 0.1, "embd_pdrop": 0.1} if family == "gpt2" else {}
    cases, wirings, accepted = [], 0, 0
    for config in ({**base, **drop, "tie_word_embeddings": True}, {**base, "tie_word_embeddings": False}):
        cases += list(mutations(model(config)))
    for (what, _, is_same), error in zip(cases, judge(options.opt, [text for _, text, _ in cases])):
        if (error is None) != is_same:
            failures.append(f"{family}: {what}: {error or 'is accepted'}")
        accepted += error is None
        if error and "compute what" in error:
            wirings += 1
            if options.show:
                print(f"{what}: {error}")
            if not re.search(rf'in "[\w.]+" (\'dyna\.\w+\' (takes|has) .+ where .*{family} |two |there is )', error):
                failures.append(f"{family}: {what} is refused without a place or a reason: {error}")
    chance, same = random.Random(1), []
    for changes in chance.sample(list(itertools.product(*OPTIONS[family].values())), 24):
        options_given = {name: value for name, value in zip(OPTIONS[family], changes) if value is not None}
        same.append((options_given, reorder(model({**base, **options_given}), chance)))
    for (changes, _), error in zip(same, judge(options.opt, [text for _, text in same])):
        if error:
            failures.append(f"{family}: {changes}, written in another order: {error}")
    print("\n".join(failures[:40] + [f"{family}: {len(cases) - accepted} refused, {wirings} of them as wired otherwise; "
                                     f"{accepted} exchanges and {len(same)} models accepted"]))
    return 1 if failures or wirings < 300 or not accepted else 0


if __name__ == "__main__":
    sys.exit(main())
