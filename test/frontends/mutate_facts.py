#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States every fact of a model wrongly, and every field of its configuration: dyna-opt must refuse each.

The refusal names the fact or field, what was given and what the layers say. What may be stated otherwise stands in
HARMLESS with its reason, and must be accepted: a reason that nothing needs is an error.
"""
import argparse
import json
import re
import subprocess
import sys

NUMBERS = ["vocabulary", "positions", "width", "heads", "kv_heads", "head_dim", "feed_forward"]
# (family, fact or field, change): why it does no harm. A change is "less" than the layers say, "more", or "gone".
HARMLESS = {
    ("gpt2", "vocabulary", "less"): "ids that the data may have: a table may be padded, and the config has its rows",
    ("llama", "vocabulary", "less"): "ids that the data may have: a table may be padded, and the config has its rows",
    ("gpt2", "positions", "less"): "the longest sample to train on; the config has the rows of the table",
    ("gpt2", "scale_attn_weights", "gone"): "missing means what the layers say",
    ("gpt2", "scale_attn_by_inverse_layer_idx", "gone"): "missing means what the layers say",
    ("gpt2", "add_cross_attention", "gone"): "missing means what the layers say",
    ("gpt2", "attn_pdrop", "more"): "dropout inside attention does not exist: the frontend warns of it",
    ("gpt2", "attn_pdrop", "gone"): "dropout inside attention does not exist: the frontend warns of it",
    ("llama", "attention_dropout", "more"): "dropout inside attention does not exist: the frontend warns of it",
    ("llama", "attention_dropout", "gone"): "dropout inside attention does not exist: the frontend warns of it",
    ("gpt2", "use_cache", "other"): "decides nothing in training, and nothing of what the tensors mean",
    ("gpt2", "use_cache", "gone"): "decides nothing in training, and nothing of what the tensors mean",
    ("gpt2", "hidden_size", "gone"): "another name of n_embd",
    ("gpt2", "num_hidden_layers", "gone"): "another name of n_layer",
    ("gpt2", "num_attention_heads", "gone"): "another name of n_head",
    ("gpt2", "max_position_embeddings", "gone"): "another name of n_positions",
    ("gpt2", "architectures", "gone"): "the model_type says it",
    ("gpt2", "architectures", "other"): "names of classes, of which each family has several",
    ("llama", "architectures", "gone"): "the model_type says it",
    ("llama", "architectures", "other"): "names of classes, of which each family has several",
}


def other_numbers(facts, value):
    """(what changes, the number) of all that might be mistaken for it."""
    candidates = {0, 1, value - 1, value + 1, value // 2, 2 * value, *(facts[name] for name in NUMBERS)} - {value}
    return [("less" if n < value and n > 0 else "more" if n > value else "none", n) for n in sorted(candidates)]


def other_values(value):
    if isinstance(value, bool):
        return [("other", not value), ("other", 3), ("gone", None)]
    if isinstance(value, (int, float)):
        found = [("more", 2 * value + 1), ("more", value + (1 if isinstance(value, int) else 1e-9)), ("gone", None)]
        return found + ([("less", value / 2)] if value else [])
    if isinstance(value, str):
        return [("other", other) for other in ("gpt2", "llama", "custom", "relu", "silu", "gelu", "x") if other != value] + [
            ("gone", None)]
    if isinstance(value, list):
        return [("other", ["Other"]), ("gone", None)]
    return [("gone", None)] + [("other", {**value, key: new}) for key, inner in value.items()
                               for what, new in other_values(inner) if what != "gone"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config")
    parser.add_argument("--opt", default="dyna-opt")
    parser.add_argument("--translate", default="dyna-translate")
    options = parser.parse_args()

    module = subprocess.run([options.translate, "--from-config", options.config], check=True, capture_output=True,
                            text=True).stdout
    place = re.search(r"facts<(.*)>(?= \{)", module)
    facts = {name: int(re.search(rf"\b{name} = (\d+)", place[1])[1]) for name in NUMBERS}
    facts["family"] = re.search(r'family = "(\w+)"', place[1])[1]
    config = json.loads(re.search(r'config = "((?:\\.|[^"\\])*)"', place[1])[1].replace("\\22", '"'))
    family, failures, used, refused = facts["family"], [], set(), 0

    def attempt(name, what, given, derived, changed, new_config):
        nonlocal refused
        text = (new_config if isinstance(new_config, str) else json.dumps(new_config)).replace('"', "\\22")
        written = ", ".join([f'family = "{changed["family"]}"'] + [f"{n} = {changed[n]}" for n in NUMBERS])
        run = subprocess.run([options.opt, "--dyna-check-families", "-"], capture_output=True, text=True,
                             input=f'{module[:place.start()]}facts<{written}, config = "{text}">{module[place.end():]}')
        case, label = (family, name, what), f"{family}: {name} = {given}"
        if run.returncode == 0:
            used.add(case)
            if case not in HARMLESS:
                failures.append(f"{label} is accepted")
            return
        refused += 1
        error = run.stderr.split("\n")[0]
        missing = [word for word in (f"'{name}'", given, derived) if word.strip('"') not in error]
        if run.returncode != 1 or "error: 'dyna.model'" not in error or missing:
            failures.append(f"{label} is refused without {missing}: {error}")

    attempt("config", "same", "", "", facts, config)
    if refused or failures != [f"{family}: config =  is accepted"]:
        sys.exit(f"the model itself is refused: {failures}")
    failures.clear()
    used.clear()

    for name in NUMBERS:
        for what, number in other_numbers(facts, facts[name]):
            rows = "positive" if (name, number) == ("vocabulary", 0) else str(facts[name])
            attempt(name, what, str(number), rows, {**facts, name: number}, config)
    for other in {"gpt2", "llama", "custom", "Gpt2", ""} - {family}:
        # Of a custom model the configuration is what gives it away.
        attempt("family", "other", other or '""', "custom" if other != "custom" else family, {**facts, "family": other}, config)
    for name, value in config.items():
        shown = lambda v: json.dumps(v) if not isinstance(v, (float, dict)) else ""
        for what, new in other_values(value):
            changed = {key: inner for key, inner in config.items() if key != name}
            if new is not None:
                changed[name] = new
            field = "rope_theta" if isinstance(new, dict) and new.get("rope_theta") != value.get("rope_theta") else name
            if isinstance(value, dict) and field == name:
                field = "rope_scaling" if new else "rope_theta"
            attempt(field, what, shown(new) if new is not None else "none", shown(value), facts, changed)
        # The other of two is what another reader may take.
        attempt(name, "twice", "twice", name, facts, json.dumps(config)[:-1] + f", {json.dumps(name)}: null}}")
    attempt("config", "empty", "none", family, facts, {})

    failures += [f"{case} needs no reason" for case in HARMLESS if case[0] == family and case not in used]
    print("\n".join(failures + [f"{family}: {refused} refused, {len(used)} kinds accepted with a reason"]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
