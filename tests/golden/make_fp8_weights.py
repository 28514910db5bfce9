"""Writes fp8-weights.json: what llm-compressor makes of small models in FP8, as digests of every tensor.

    PYTHONPATH=... python make_fp8_weights.py

Needs torch, transformers, safetensors, llmcompressor and compressed-tensors; made with llmcompressor 0.14.0.1 and
compressed-tensors 0.20.0 on a CPU. Weights follow from a formula that tests/quantize/test_quantise_folder.cpp has too, so that
no model is stored. Models whose sizes 128 does not divide go through the functions of compressed-tensors alone: llm-compressor
0.14.0.1 ends there with "You are trying to save a non contiguous tensor".
"""

import hashlib
import json
import pathlib
import tempfile

import numpy as np
import torch
from compressed_tensors.compressors.naive_quantized import FloatQuantizationCompressor
from compressed_tensors.quantization import preset_name_to_scheme
from compressed_tensors.quantization.utils import calculate_qparams
from llmcompressor.entrypoints.model_free import model_free_ptq
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).resolve().parent
KINDS = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}
MASK = (1 << 64) - 1
INPUT_AMAX = 3.0


def mixed(at):
    """splitmix64 of an array of counters."""
    z = (at + np.uint64(0x9E3779B97F4A7C15)) & np.uint64(MASK)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def weight(index, shape, dtype):
    """Ordinary rows; every seventh row is zeros of both signs, every fifth tiny, down to the scale's rounding to 0."""
    columns = shape[-1]
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        h = mixed(np.uint64(index << 32) + np.arange(count, dtype=np.uint64))
    row = np.arange(count) // columns
    mantissa = 1 + ((h >> np.uint64(1)) & np.uint64(127)).astype(np.float64) / 128
    exponent = ((h >> np.uint64(8)) % np.uint64(8)).astype(np.int64) - 11
    exponent -= np.where(row % 5 == 4, 10 + 2 * (row % 11), 0)
    value = np.ldexp(mantissa, exponent)
    value = np.where(row % 7 == 3, 0.0, value)
    value = np.where((h & np.uint64(1)) == 1, -value, value)
    return torch.from_numpy(value.astype(np.float32)).reshape(shape).to(KINDS[dtype])


def shapes(dim, hidden, head, heads, kv_heads, vocab):
    of = {"model.embed_tokens.weight": [vocab, dim], "model.norm.weight": [dim], "lm_head.weight": [vocab, dim]}
    p = "model.layers.0."
    of |= {p + "self_attn.q_proj.weight": [heads * head, dim], p + "self_attn.k_proj.weight": [kv_heads * head, dim],
           p + "self_attn.v_proj.weight": [kv_heads * head, dim], p + "self_attn.o_proj.weight": [dim, heads * head],
           p + "mlp.gate_proj.weight": [hidden, dim], p + "mlp.up_proj.weight": [hidden, dim],
           p + "mlp.down_proj.weight": [dim, hidden], p + "input_layernorm.weight": [dim],
           p + "post_attention_layernorm.weight": [dim]}
    return of


def by_llm_compressor(model, scheme):
    with tempfile.TemporaryDirectory() as temp:
        source, out = pathlib.Path(temp) / "source", pathlib.Path(temp) / "out"
        source.mkdir()
        save_file(model, source / "model.safetensors", {"format": "pt"})
        (source / "config.json").write_text("{}")
        model_free_ptq(source, out, scheme=scheme, ignore=["lm_head", "re:.*embed_tokens$"], device="cpu")
        made = json.loads((out / "config.json").read_text())["quantization_config"]
        return load_file(out / "model.safetensors"), made


def by_compressed_tensors(model, scheme):
    of = preset_name_to_scheme(scheme, ["Linear"])
    rows, columns = of.weights.block_structure or (None, None)
    out = {}
    for name, weight in model.items():
        if not name.startswith("model.layers.0.") or weight.dim() < 2:
            out[name] = weight
            continue
        if rows is None:
            least, most = weight.min().reshape(1), weight.max().reshape(1)
        else:
            down, across = -(-weight.shape[0] // rows), -(-weight.shape[1] // columns)
            blocks = [[weight[r * rows:(r + 1) * rows, c * columns:(c + 1) * columns] for c in range(across)] for r in range(down)]
            least = torch.stack([torch.stack([b.min() for b in line]) for line in blocks])
            most = torch.stack([torch.stack([b.max() for b in line]) for line in blocks])
        scale, _ = calculate_qparams(least, most, of.weights)
        state = FloatQuantizationCompressor.compress({"weight": weight, "weight_scale": scale}, of)
        out[name] = state["weight"]
        out[name + "_scale"] = scale
        if not of.input_activations.dynamic:
            amax = torch.tensor([INPUT_AMAX], dtype=weight.dtype)
            out[name.replace("weight", "input_scale")] = calculate_qparams(-amax, amax, of.input_activations)[0]
    return out, None


def digest(tensor):
    data = tensor.contiguous().view(torch.uint8).numpy().tobytes()
    names = {torch.float8_e4m3fn: "F8_E4M3", torch.bfloat16: "BF16", torch.float16: "F16", torch.float32: "F32"}
    return {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "sha256": hashlib.sha256(data).hexdigest()}


CASES = [("even", dict(dim=128, hidden=256, head=64, heads=2, kv_heads=2, vocab=16), by_llm_compressor),
         ("uneven", dict(dim=160, hidden=272, head=40, heads=4, kv_heads=2, vocab=16), by_compressed_tensors)]


def main():
    cases = []
    for name, sizes, maker in CASES:
        of = shapes(**sizes)
        for dtype in KINDS:
            model = {n: weight(i, s, dtype) for i, (n, s) in enumerate(of.items())}
            for scheme, called in (("FP8_DYNAMIC", "fp8-dynamic"), ("FP8_BLOCK", "fp8-block"), ("FP8", "fp8-static")):
                if maker is by_compressed_tensors and scheme == "FP8_DYNAMIC":
                    continue
                made, config = (by_compressed_tensors if scheme == "FP8" else maker)(model, scheme)
                cases.append({"name": name, **sizes, "dtype": dtype, "scheme": called,
                              "group": list(config["config_groups"].values())[0] if config else None,
                              "tensors": [{"name": n, "shape": s} for n, s in of.items()],
                              "made": {n: digest(t) for n, t in sorted(made.items())}})
    text = '{"cases": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]}\n"
    (HERE / "fp8-weights.json").write_text(text)
    print(len(cases), "cases,", len(text), "bytes")


if __name__ == "__main__":
    main()
