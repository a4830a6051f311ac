#!/usr/bin/env python3
# Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes rope.json beside it: the frequencies of rotations that transformers computes.

    pip install torch transformers
    python3 make_rope_golden.py

Each case has a configuration as LLaMA models have it, and the `inv_freq` that the rotary
embedding of transformers makes of it, in f32. Versions 4.57 and 5 make the same file. It
is committed; the tests need neither package nor this script.
"""

import json
import pathlib

from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

LLAMA_31 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192}
CASES = [  # (head size, base, scaling)
    (16, 10000.0, None),
    (16, 10000.0, {"rope_type": "linear", "factor": 2.5}),
    (128, 1000000.0, {"rope_type": "linear", "factor": 16.0}),
    (128, 500000.0, LLAMA_31),  # Llama 3.1
    (64, 500000.0, {**LLAMA_31, "factor": 32.0}),  # Llama 3.2
    (12, 100.0, {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 5.0,
                 "original_max_position_embeddings": 40}),
    (32, 10000.0, {"rope_type": "llama3", "factor": 1.5, "low_freq_factor": 0.5, "high_freq_factor": 64.0,
                   "original_max_position_embeddings": 1000}),
]


def frequencies(head_dim, theta, scaling):
    config = LlamaConfig(hidden_size=2 * head_dim, num_attention_heads=2, num_key_value_heads=2, head_dim=head_dim,
                         max_position_embeddings=131072, rope_theta=theta, rope_scaling=scaling and dict(scaling))
    embedding = LlamaRotaryEmbedding(config)
    assert embedding.attention_scaling == 1.0
    return [float(value) for value in embedding.inv_freq]


def main():
    cases = [{"head_dim": head_dim, "rope_theta": theta, "rope_scaling": scaling,
              "inv_freq": frequencies(head_dim, theta, scaling)} for head_dim, theta, scaling in CASES]
    lines = ",\n ".join(json.dumps(case) for case in cases)
    (pathlib.Path(__file__).resolve().parent / "rope.json").write_text(f"[{lines}]\n")


if __name__ == "__main__":
    main()
