#!/usr/bin/env python3
"""Writes a model folder of TinyLlama's shape with random weights, for benchmarks.

    scripts/make_random_model.py OUT [--layers N] [--dtype bf16|f16] [--dim D ...]

Needs Python alone. Weights are drawn from one block of 2^20 normal values with deviation 0.02,
read at another offset for each tensor: random enough for timing, and made in seconds.
"""

import argparse
import json
import random
import struct
from array import array
from pathlib import Path


def half_bits(value, dtype):
    if dtype == "f16":
        return struct.unpack("<H", struct.pack("<e", value))[0]
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def tensors(a):
    q, kv = a.heads * a.head_dim, a.kv_heads * a.head_dim
    yield "model.embed_tokens.weight", [a.vocab, a.dim]
    for i in range(a.layers):
        at = f"model.layers.{i}."
        yield at + "input_layernorm.weight", [a.dim]
        yield at + "self_attn.q_proj.weight", [q, a.dim]
        yield at + "self_attn.k_proj.weight", [kv, a.dim]
        yield at + "self_attn.v_proj.weight", [kv, a.dim]
        yield at + "self_attn.o_proj.weight", [a.dim, q]
        yield at + "post_attention_layernorm.weight", [a.dim]
        yield at + "mlp.gate_proj.weight", [a.hidden, a.dim]
        yield at + "mlp.up_proj.weight", [a.hidden, a.dim]
        yield at + "mlp.down_proj.weight", [a.dim, a.hidden]
    yield "model.norm.weight", [a.dim]
    yield "lm_head.weight", [a.vocab, a.dim]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--dtype", choices=["bf16", "f16"], default="bf16")
    for name, value in [("layers", 22), ("dim", 2048), ("hidden", 5632), ("heads", 32),
                        ("kv-heads", 4), ("head-dim", 64), ("vocab", 32000), ("context", 2048)]:
        parser.add_argument("--" + name, type=int, default=value)
    a = parser.parse_args()
    rng = random.Random(1)
    block = array("H", (half_bits(rng.gauss(0, 0.02), a.dtype) for _ in range(1 << 20))).tobytes()
    one = struct.pack("<H", half_bits(1.0, a.dtype))

    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors(a):
        size = 2
        for dim in shape:
            size *= dim
        header[name] = {"dtype": a.dtype.upper(), "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    a.out.mkdir(parents=True, exist_ok=True)
    with open(a.out / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in tensors(a):
            begin, end = header[name]["data_offsets"]
            left = end - begin
            if len(shape) == 1:
                file.write(one * shape[0])
                continue
            start = 2 * rng.randrange(len(block) // 2)
            while left > 0:
                piece = block[start : start + left]
                file.write(piece)
                left -= len(piece)
                start = 0
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
              "hidden_size": a.dim, "intermediate_size": a.hidden, "num_hidden_layers": a.layers,
              "num_attention_heads": a.heads, "num_key_value_heads": a.kv_heads,
              "head_dim": a.head_dim, "vocab_size": a.vocab, "max_position_embeddings": a.context,
              "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None,
              "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2,
              "torch_dtype": "bfloat16" if a.dtype == "bf16" else "float16"}
    (a.out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    with open(a.out / "windows.jsonl", "w") as file:
        for _ in range(64):
            file.write(json.dumps({"input_ids": [rng.randrange(3, a.vocab) for _ in range(512)]}) + "\n")
    print(f"wrote {a.out}: {at / 1e9:.2f} GB, and windows.jsonl with 64 x 512 random ids")


if __name__ == "__main__":
    main()
