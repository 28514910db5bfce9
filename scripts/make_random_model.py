#!/usr/bin/env python3
"""Writes a model folder of TinyLlama's shape with random weights, for benchmarks.

    scripts/make_random_model.py OUT [--layers N] [--dtype bf16|f16|f32] [--dim D ...]
                                     [--windows N] [--seq-len N] [--hybrid]

With --hybrid it is a Qwen3-Next without experts: three of four layers are gated DeltaNet, with heads
of 128, as many for V as --heads and half as many for K.

With it come windows.jsonl, random ids to calibrate with, and a tokenizer that makes one token of
every byte. Needs Python alone. Weights are drawn from one block of 2^20 normal values with deviation 0.02,
read at another offset for each tensor: random enough for timing, and made in seconds.
"""

import argparse
import json
import random
import struct
from array import array
from pathlib import Path


DTYPES = {"bf16": ("H", 2, "bfloat16"), "f16": ("H", 2, "float16"), "f32": ("I", 4, "float32")}
DELTA_HEAD, DELTA_CONV = 128, 4


def number_bits(value, dtype):
    if dtype == "f16":
        return struct.unpack("<H", struct.pack("<e", value))[0]
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return bits if dtype == "f32" else (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def delta_tensors(at, a):
    k, v = a.heads // 2 * DELTA_HEAD, a.heads * DELTA_HEAD
    yield at + "in_proj_qkvz.weight", [2 * k + 2 * v, a.dim]
    yield at + "in_proj_ba.weight", [2 * a.heads, a.dim]
    yield at + "conv1d.weight", [2 * k + v, 1, DELTA_CONV]
    yield at + "A_log", [a.heads]
    yield at + "dt_bias", [a.heads]
    yield at + "norm.weight", [DELTA_HEAD]
    yield at + "out_proj.weight", [a.dim, v]


def attention_tensors(at, a):
    q, kv = a.heads * a.head_dim, a.kv_heads * a.head_dim
    yield at + "q_proj.weight", [2 * q if a.hybrid else q, a.dim]  # and each head's gate
    yield at + "k_proj.weight", [kv, a.dim]
    yield at + "v_proj.weight", [kv, a.dim]
    yield at + "o_proj.weight", [a.dim, q]
    if a.hybrid:
        yield at + "q_norm.weight", [a.head_dim]
        yield at + "k_norm.weight", [a.head_dim]


def tensors(a):
    yield "model.embed_tokens.weight", [a.vocab, a.dim]
    for i in range(a.layers):
        at = f"model.layers.{i}."
        yield at + "input_layernorm.weight", [a.dim]
        if a.hybrid and i % 4 != 3:
            yield from delta_tensors(at + "linear_attn.", a)
        else:
            yield from attention_tensors(at + "self_attn.", a)
        yield at + "post_attention_layernorm.weight", [a.dim]
        yield at + "mlp.gate_proj.weight", [a.hidden, a.dim]
        yield at + "mlp.up_proj.weight", [a.hidden, a.dim]
        yield at + "mlp.down_proj.weight", [a.dim, a.hidden]
    yield "model.norm.weight", [a.dim]
    yield "lm_head.weight", [a.vocab, a.dim]


def byte_alphabet():
    """The character that byte-level tokenizers write for each byte: itself where it is visible."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {**{byte: chr(byte) for byte in visible},
            **{byte: chr(256 + i) for i, byte in enumerate(hidden)}}


def tokenizer(vocab_size):
    """Ids 3 to 258 are the bytes; those above decode to made-up words that no text encodes to."""
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2}
    for byte, char in sorted(byte_alphabet().items()):
        vocab[char] = 3 + byte
    for number in range(len(vocab), vocab_size):
        vocab[f"w{number}"] = number
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
             "use_regex": False}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None,
                      "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "vocab": vocab, "merges": []}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--dtype", choices=list(DTYPES), default="bf16")
    parser.add_argument("--hybrid", action="store_true")
    for name, value in [("layers", 22), ("dim", 2048), ("hidden", 5632), ("heads", 32),
                        ("kv-heads", 4), ("head-dim", 64), ("vocab", 32000), ("context", 2048),
                        ("windows", 64), ("seq-len", 512)]:
        parser.add_argument("--" + name, type=int, default=value)
    a = parser.parse_args()
    rng = random.Random(1)
    code, width, torch_dtype = DTYPES[a.dtype]
    block = array(code, (number_bits(rng.gauss(0, 0.02), a.dtype) for _ in range(1 << 20))).tobytes()
    one = struct.pack("<" + code, number_bits(1.0, a.dtype))

    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors(a):
        size = width
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
            start = width * rng.randrange(len(block) // width)
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
              "torch_dtype": torch_dtype}
    if a.hybrid:
        config.update({
            "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next",
            "full_attention_interval": 4, "partial_rotary_factor": 0.25, "attention_bias": False,
            "linear_conv_kernel_dim": DELTA_CONV, "linear_key_head_dim": DELTA_HEAD,
            "linear_value_head_dim": DELTA_HEAD, "linear_num_key_heads": a.heads // 2,
            "linear_num_value_heads": a.heads, "num_experts": 0})
    (a.out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    with open(a.out / "windows.jsonl", "w") as file:
        for _ in range(a.windows):
            ids = [rng.randrange(3, a.vocab) for _ in range(a.seq_len)]
            file.write(json.dumps({"input_ids": ids}) + "\n")
    (a.out / "tokenizer.json").write_text(json.dumps(tokenizer(a.vocab)))
    print(f"wrote {a.out}: {at / 1e9:.2f} GB, and windows.jsonl with {a.windows} x {a.seq_len} "
          "random ids")


if __name__ == "__main__":
    main()
