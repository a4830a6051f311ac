"""Seconds that parts of a training step take at least: of a model's sizes, of what its kernels move, of a device's rates."""
import collections
import re

import activity

# Of an H200, as its maker publishes them: dense bf16, and bytes read and written. Nothing reaches these.
PUBLISHED = {"product_flops": 989e12, "copy_bytes_per_s": 4.8e12}
# Groups of activity.py whose kernels are made with the bytes that they move.
OF_KERNELS = ("sweeps", "tables")


def kernels_of(lowered, planned):
    """From what `dynac --dump-dir` writes behind code generation and the memory phase: the bytes that a kernel moves at least for
    each row of a micro-batch (dialects/dyna/RowBytes.h), by name, and how many layers of each kind the model has."""
    row_bytes = re.findall(r"llvm\.func @(\w+)\(.*\bdyna\.row_bytes = (\d+) : i64", lowered)
    layers = collections.Counter(re.findall(r'= dyna\.call "[^"]*" @([\w.]+)', planned))
    return {"row_bytes": {name: int(count) for name, count in row_bytes}, "layers": dict(layers)}


def parameters_of(config):
    width, layers = config["n_embd"], config["n_layer"]
    return 12 * layers * width**2 + (config["vocab_size"] + config["n_positions"]) * width


def flops_of_token(config, length):
    """As published utilisations count them: 6 per parameter, 12 per layer, width and position seen on average
    without the mask."""
    return 6 * parameters_of(config) + 12 * config["n_layer"] * config["n_embd"] * length


def of_model(config, context, tokens, rates):
    """By group: products and causal attention by flops, the head's logits read and written once (bf16), of each parameter master,
    moments and gradient read (f32) and all but the latter written, and its bf16 copy."""
    width, layers, vocab = config["n_embd"], config["n_layer"], config["vocab_size"]
    pairs = tokens // context * context * (context + 1) // 2
    flops, copy = rates["product_flops"], rates["copy_bytes_per_s"]
    return {"products": 6 * tokens * (12 * layers * width**2 + vocab * width) / flops, "attention": 14 * width * layers * pairs / flops,
            "head": 4 * tokens * vocab / copy, "update": 30 * parameters_of(config) / copy}


def rows_of(steps):
    """Of a call, from the metrics of steps that are alike: each kernel runs once in each micro-batch or once a step, so that its rows
    are those of a micro-batch on average."""
    sizes = {(line["tokens"], line["micro_batches"]) for line in steps}
    if len(sizes) != 1:
        raise ValueError("steps differ in tokens or micro-batches: there is no floor of all")
    tokens, micro_batches = sizes.pop()
    return tokens / micro_batches


def of_kernels(calls, row_bytes, rows, rates):
    """By kernel, of those whose bytes are known: `calls` of each, with `rows` on average."""
    return {name: count * row_bytes[name] * rows / rates["copy_bytes_per_s"] for name, count in calls.items() if name in row_bytes}


def of_step(config, context, tokens, rates, kernels):
    """By group, with the floors of its kernels."""
    found = {**of_model(config, context, tokens, rates), **dict.fromkeys(OF_KERNELS, 0.0)}
    for name, seconds in kernels.items():
        found[activity.group_of(name)] += seconds
    return found


def calls_of_step(kernels):
    """Of a step of one micro-batch on one rank, which recomputes nothing: each layer runs its functions forward and backward."""
    found = {}
    for kind, count in kernels["layers"].items():
        pattern = re.compile(re.escape(kind.replace(".", "_")) + r"_(forward|backward)_[a-z]+\d+")
        found.update({name: count for name in kernels["row_bytes"] if pattern.fullmatch(name)})
    return found


def put(groups, floors, calls, row_bytes):
    """Into groups of `activity.summary`: how far each is over its floor, and whose kernels' bytes the floor lacks."""
    for name, group in groups.items():
        group["over_floor"] = round(group["s"] / floors[name], 3) if floors.get(name) else None
        if name in OF_KERNELS:
            group["kernels_without_floor"] = [kernel for kernel in calls if activity.group_of(kernel) == name and kernel not in row_bytes]
