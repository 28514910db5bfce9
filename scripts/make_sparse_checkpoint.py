#!/usr/bin/env python3
"""Makes a model folder of the size and headers of a real one, with holes for weights.

    scripts/make_sparse_checkpoint.py FOLDER 8b|70b [--scales]

8b is 16 GB in 4 shards, 70b 141 GB in 30 (the shapes of Llama 3.1), both in BF16. On disk they
take some hundred KB. With --scales every layer has a k_scale and a v_scale in the last shard.
"""

import argparse
import json
import os
import struct

SHAPES = {
    "8b": dict(shards=4, dim=4096, hidden=14336, layers=32, heads=32, kv_heads=8),
    "70b": dict(shards=30, dim=8192, hidden=28672, layers=80, heads=64, kv_heads=8),
}
VOCABULARY = 128256


def tensors_of(shape):
    """Names and shapes, in the order in which Hugging Face fills shards."""
    dim, hidden = shape["dim"], shape["hidden"]
    kv_dim = dim // shape["heads"] * shape["kv_heads"]
    yield "model.embed_tokens.weight", [VOCABULARY, dim]
    for layer in range(shape["layers"]):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", [dim]
        yield at + "mlp.down_proj.weight", [dim, hidden]
        yield at + "mlp.gate_proj.weight", [hidden, dim]
        yield at + "mlp.up_proj.weight", [hidden, dim]
        yield at + "post_attention_layernorm.weight", [dim]
        yield at + "self_attn.k_proj.weight", [kv_dim, dim]
        yield at + "self_attn.o_proj.weight", [dim, dim]
        yield at + "self_attn.q_proj.weight", [dim, dim]
        yield at + "self_attn.v_proj.weight", [kv_dim, dim]
    yield "model.norm.weight", [dim]
    yield "lm_head.weight", [VOCABULARY, dim]


def bytes_of(shape):
    elements = 1
    for size in shape:
        elements *= size
    return 2 * elements


def split(tensors, n_shards):
    """Runs of tensors of about the same size."""
    total = sum(bytes_of(shape) for _, shape in tensors)
    shards, size = [[]], 0
    for name, shape in tensors:
        if size >= total * len(shards) / n_shards and len(shards) < n_shards:
            shards.append([])
        shards[-1].append((name, shape))
        size += bytes_of(shape)
    return shards


def write_shard(path, tensors, scales):
    header, at, values = {"__metadata__": {"format": "pt"}}, 0, b""
    for name, value in scales:
        header[name] = {"dtype": "F32", "shape": [], "data_offsets": [at, at + 4]}
        values += struct.pack("<f", value)
        at += 4
    for name, shape in tensors:
        size = bytes_of(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + values)
        file.truncate(8 + len(text) + at)


def write_config(path, shape):
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "bfloat16",
        "hidden_size": shape["dim"],
        "intermediate_size": shape["hidden"],
        "num_hidden_layers": shape["layers"],
        "num_attention_heads": shape["heads"],
        "num_key_value_heads": shape["kv_heads"],
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-05,
        "rope_theta": 500000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "bos_token_id": 128000,
        "eos_token_id": 128001,
    }
    with open(path, "w") as file:
        json.dump(config, file, indent=2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("size", choices=SHAPES)
    parser.add_argument("--scales", action="store_true")
    options = parser.parse_args()
    shape = SHAPES[options.size]
    tensors = list(tensors_of(shape))
    os.makedirs(options.folder)
    write_config(os.path.join(options.folder, "config.json"), shape)
    shards = split(tensors, shape["shards"])
    weight_map = {}
    for i, shard in enumerate(shards):
        name = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        scales = []
        if options.scales and i + 1 == len(shards):
            for layer in range(shape["layers"]):
                at = f"model.layers.{layer}.self_attn."
                scales.append((at + "k_scale", (layer + 1) / 1024))
                scales.append((at + "v_scale", (layer + 1) / 4096))
        write_shard(os.path.join(options.folder, name), shard, scales)
        weight_map.update({tensor: name for tensor, _ in shard + scales})
    index = {
        "metadata": {"total_size": sum(bytes_of(shape) for _, shape in tensors)},
        "weight_map": dict(sorted(weight_map.items())),
    }
    with open(os.path.join(options.folder, "model.safetensors.index.json"), "w") as file:
        json.dump(index, file, indent=2)


main()
