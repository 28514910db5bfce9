"""Writes tiny checkpoints with KV scales in the form of every tool that writes any, and what is to be read from them.

    python make_dialects.py            writes dialects/<case>/ and dialects/expected.json beside this file; numpy only
    python make_dialects.py --check    writes nothing; fails when what lies there differs

The names, shapes, dtypes and configs are those that the tools write; the numbers come from each tool's own arithmetic
(amax in the dtype of the activations, the division in the dtype and order in which the tool does it). What real tools
wrote on this machine is kept apart: see make_dialects_from_producers.py.

expected.json, per case:
    path          of the folder or file, relative to expected.json
    refusal       where there are no scales to be had: the whole message, with {path} for the path, and
    help          the way out; or
    dialect, format, observation, producer, producer_version, stored_dtype
    k, v          per layer a list of one scale, or of one per KV head, or of none where there is no cache: the shortest decimals that read back
    k_bits, v_bits   the same as the float32's bits in hex
    diagnoses     the ids that must be reported, no others, in alphabetical order; also where it is refused
"""

import argparse
import io
import json
import pathlib
import struct
import sys
import zipfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "dialects"
F32 = np.float32
LAYERS, HEADS = 3, 2

# Numbers as the tools compute them.


def bf16(x):
    """Nearest bfloat16, as float32."""
    bits = np.asarray(x, F32).view(np.uint32).astype(np.uint64)
    bits = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32)
    return bits.view(F32)


def f16(x):
    with np.errstate(over="ignore"):
        return np.asarray(x, F32).astype(np.float16).astype(F32)


def same(x):
    return np.asarray(x, F32)


ROUND = {"F32": same, "F16": f16, "BF16": bf16}


def amax(seed, shape, dtype="F16"):
    """Maxima of activations: what a model of that dtype could have shown."""
    rng = np.random.default_rng(seed)
    return ROUND[dtype](np.exp(rng.uniform(np.log(3), np.log(30), shape)))


def per_448(a):
    """AMMO: PyTorch on a GPU multiplies by the float32 reciprocal."""
    return same(same(a) * (F32(1) / F32(448)))


def divided(a, dtype="F32"):
    """ModelOpt, compressed-tensors, Quark: a division, rounded to the dtype of the scale."""
    return ROUND[dtype](same(a) / F32(448))


def autofp8(a, dtype):
    """448 / amax in the dtype of the activations, then the reciprocal in float32."""
    with np.errstate(divide="ignore", over="ignore"):
        inverse = ROUND[dtype](F32(448) / np.maximum(same(a), ROUND[dtype](F32(1e-12))))
        return same(F32(1) / inverse)


# Files.


def tensor(dtype, shape, values):
    values = np.asarray(values).reshape(-1)
    if dtype == "BF16":
        raw = (values.astype(F32).view(np.uint32) >> 16).astype("<u2").tobytes()
    else:
        kind = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I8": "i1", "F8_E4M3": "u1", "I32": "<i4"}[dtype]
        raw = values.astype(kind).tobytes()
    return dtype, list(shape), raw


def safetensors(tensors, metadata={"format": "pt"}):
    header, offset = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(raw)]}
        offset += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(raw for _, _, raw in tensors.values())


def npz(arrays, compress):
    """As numpy.savez writes it, but with fixed times so that the bytes are always the same."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in arrays.items():
            data = io.BytesIO()
            np.lib.format.write_array(data, np.asanyarray(array))
            entry = zipfile.ZipInfo(name + ".npy")
            entry.compress_type = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
            archive.writestr(entry, data.getvalue())
    return out.getvalue()


def llama(**extra):
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4, "head_dim": 2,
              "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "num_hidden_layers": LAYERS,
              "torch_dtype": "float16"}
    config.update(extra)
    return {key: value for key, value in config.items() if value is not None}


def weights(layers=LAYERS, prefix="model.", block="self_attn", dtype="F16", extra=()):
    """Enough of a model's names to make it one: nothing reads the values."""
    out = {}
    for n in range(layers):
        for part in ("k_proj.weight", "v_proj.weight", *extra):
            shape = (2,) if "norm" in part else (4, 4)
            out[f"{prefix}layers.{n}.{block}.{part}"] = tensor(dtype, shape, np.ones(shape))
    return out


# Cases.

CASES = {}


def case(name, files, **expected):
    assert name not in CASES, name
    CASES[name] = (files, expected)


def checkpoint(config, scales, base=None, **more):
    """The files of a folder with one model.safetensors; what is not bytes is JSON."""
    files = {"config.json": config, "model.safetensors": safetensors({**(weights() if base is None else base), **scales})}
    files.update({name.replace("__", "."): content for name, content in more.items()})
    return files


def named(pattern, values, dtype="F32", shape=(), prefix="model."):
    """One tensor per layer: `pattern` is what follows the layer's number."""
    return {f"{prefix}layers.{n}.{pattern}": tensor(dtype, shape, values[n]) for n in range(len(values))}


def rows(values):
    return [np.atleast_1d(row).tolist() for row in same(values)]


def read_as(dialect, k, v, diagnoses=(), *, format="float8_e4m3fn", observation="", producer="", version="",
            stored="F32"):
    row_of = lambda row: np.atleast_1d(same(row))  # [] for a layer without a cache
    hexes = lambda values: [[f"{int(np.asarray(x, F32).view(np.uint32)):08x}" for x in row_of(row)] for row in values]
    exact = lambda values: [[float(str(x)) for x in row_of(row)] for row in values]
    return {"dialect": dialect, "format": format, "observation": observation, "producer": producer,
            "producer_version": version, "stored_dtype": stored, "k": exact(k), "k_bits": hexes(k),
            "v": exact(v), "v_bits": hexes(v), "diagnoses": sorted(diagnoses)}


def refused(message, help, diagnoses=()):
    return {"refusal": message, "help": help, "diagnoses": sorted(diagnoses)}


K, V = amax(1, LAYERS), amax(2, LAYERS)
BOTH = np.maximum(K, V)
FN = {"kv_cache_torch_dtype": "float8_e4m3fn"}
CALIBRATE = "a runtime would use 1 there without a word: calibrate again"


def tgi_cases():
    s = per_448(BOTH)
    case("f1-kv_scale", checkpoint(llama(**FN), named("self_attn.kv_scale", s)),
         **read_as("kv_scale", s, s, ["k-before-rope", "kv-fused"]))
    case("f1-fnuz", checkpoint(llama(kv_cache_torch_dtype="float8_e4m3fnuz"), named("self_attn.kv_scale", 2 * s)),
         **read_as("kv_scale", 2 * s, 2 * s, ["doubled-for-fnuz", "k-before-rope", "kv-fused"],
                   format="float8_e4m3fnuz"))
    # The branch's own script wrote a key that its loader ignores.
    case("f1-own-script", checkpoint(llama(kv_cache_dtype="float8_e4m3fn"), named("self_attn.kv_scale", s)),
         **read_as("kv_scale", s, s, ["k-before-rope", "kv-fused"], observation="pre_rope",
                   producer="TGI pull request 2028"))
    shard = "model-00001-of-00001.safetensors"
    index = {"metadata": {"total_size": 204},
             "weight_map": {**{name: shard for name in weights()},
                            **{name: "model-kv-scales.safetensors" for name in named("self_attn.kv_scale", s)}}}
    case("f1-sharded", {"config.json": llama(**FN), "model.safetensors.index.json": index, shard: safetensors(weights()),
                        "model-kv-scales.safetensors": safetensors(named("self_attn.kv_scale", s))},
         **read_as("kv_scale", s, s, ["k-before-rope", "kv-fused"]))

    k, v = per_448(K), per_448(V)
    apart = lambda dtype="F32", shape=(): {**named("self_attn.k_scale", k, dtype, shape),
                                           **named("self_attn.v_scale", v, dtype, shape)}
    case("f2-k_scale", checkpoint(llama(), apart()), **read_as("k_scale/v_scale", k, v))
    case("f2-shape-1", checkpoint(llama(), apart(shape=(1,))), **read_as("k_scale/v_scale", k, v))
    case("f2-f64", checkpoint(llama(), apart("F64")), **read_as("k_scale/v_scale", k, v, stored="F64"))
    case("f2-fused-bf16", checkpoint(llama(), named("self_attn.kv_scale", bf16(s), "BF16", (1,))),
         **read_as("kv_scale", bf16(s), bf16(s), ["bf16-rounded", "k-before-rope", "kv-fused"], stored="BF16"))
    parameters = {**named("self_attn.attn.k_scale", k, "F32", (1,)), **named("self_attn.attn.v_scale", v, "F32", (1,))}
    case("union-parameters", checkpoint(llama(), {**apart(shape=(1,)), **parameters}), **read_as("k_scale/v_scale", k, v))
    fused = np.maximum(k, v)
    case("union-agrees", checkpoint(llama(**FN), {**apart(), **named("self_attn.kv_scale", fused)}),
         **read_as("kv_scale and k_scale/v_scale", k, v))
    case("union-agrees-as-bf16", checkpoint(llama(), {**apart(), **named("self_attn.kv_scale", bf16(fused), "BF16")}),
         **read_as("kv_scale and k_scale/v_scale", k, v))
    wrong = fused.copy()
    wrong[1] *= F32(1.5)
    case("union-disagrees", checkpoint(llama(), {**apart(), **named("self_attn.kv_scale", wrong)}), **refused(
        "'{path}': 'model.layers.1.self_attn.kv_scale' is %s, '%s' is %s: expected the same, as kv_scale is the maximum of "
        "K and V" % (wrong[1], "model.layers.1.self_attn." + ("k_scale" if k[1] >= v[1] else "v_scale"), fused[1]),
        "they are from two calibrations: inject the right ones into the original model again"))
    case("union-doubled", checkpoint(llama(), {**apart(), **named("self_attn.kv_scale", 2 * fused)}), **refused(
        "'{path}': 'model.layers.0.self_attn.kv_scale' is %s, '%s' is %s: expected the same, as kv_scale is the maximum of "
        "K and V" % (2 * fused[0], "model.layers.0.self_attn." + ("k_scale" if k[0] >= v[0] else "v_scale"), fused[0]),
        "the one is exactly twice the other: it was made for FNUZ, and no config says so; inject the original scales again"))
    over = same(K) / F32(240)
    case("divided-by-240", checkpoint(llama(), {**named("self_attn.k_scale", over),
                                                **named("self_attn.v_scale", same(V) / F32(240))}),
         **read_as("k_scale/v_scale", over, same(V) / F32(240), ["divided-by-240"]))
    heads = amax(3, (LAYERS, HEADS)), amax(4, (LAYERS, HEADS))
    case("f2-per-head", checkpoint(llama(), {**named("self_attn.k_scale", per_448(heads[0]), shape=(HEADS,)),
                                             **named("self_attn.v_scale", per_448(heads[1]), shape=(HEADS,))}),
         **read_as("k_scale/v_scale", per_448(heads[0]), per_448(heads[1])))


def prefix_cases():
    k, v = per_448(K), per_448(V)
    text = llama()
    wrapped = {"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "text_config": text,
               "torch_dtype": "float16"}
    for prefix in ("language_model.model.", "model.language_model."):
        scales = {**named("self_attn.k_scale", k, prefix=prefix), **named("self_attn.v_scale", v, prefix=prefix)}
        case("prefix-" + prefix.strip("."), checkpoint(wrapped, scales, weights(prefix=prefix)),
             **read_as("k_scale/v_scale", k, v))


def json_cases():
    s = per_448(BOTH)
    ranks = lambda *maps: {"model_type": "llama", "kv_cache": {"dtype": "float8_e4m3fn", "scaling_factor": {
        str(rank): {str(n): float(x) for n, x in enumerate(values)} for rank, values in enumerate(maps)}}}
    plain = ["k-before-rope", "kv-fused"]
    name = "kv_cache_scales.json"
    case("f3-one-rank", {name: ranks(s)}, **read_as("vllm-json", s, s, plain))
    case("f3-two-ranks", {name: ranks(s, s)}, **read_as("vllm-json", s, s, plain))
    other = s.copy()
    other[2] *= F32(2)
    case("f3-ranks-disagree", {name: ranks(s, other)}, **refused(
        "'{path}': kv_cache.scaling_factor: layer 2 is %s in rank 0 and %s in rank 1, expected the same in every rank"
        % (s[2], other[2]), "scales of one tensor-parallel split serve no other: keep a single rank, with the largest "
        "scale of each layer"))
    ones = np.ones(LAYERS, F32)
    case("f3-all-ones", {name: ranks(ones)}, **read_as("vllm-json", ones, ones, plain + ["all-ones"]))


def autofp8_cases():
    config = llama(quantization_config={"quant_method": "fp8", "activation_scheme": "static",
                                        "ignored_layers": ["lm_head"], "kv_cache_scheme": "static"})
    base = weights(dtype="F8_E4M3")
    common = {"observation": "pre_rope", "producer": "AutoFP8"}
    seen = ["autofp8-rounding", "k-before-rope"]
    k, v = autofp8(K, "F16"), autofp8(V, "F16")
    both = np.maximum(k, v)
    case("f4a-kv_scale", checkpoint(config, named("self_attn.kv_scale", both), base),
         **read_as("autofp8-kv_scale", both, both, seen + ["kv-fused"], **common))
    case("f4b-output_scale", checkpoint(config, {**named("self_attn.k_proj.output_scale", k),
                                                 **named("self_attn.v_proj.output_scale", v)}, base),
         **read_as("autofp8-output_scale", k, v, seen, **common))
    apart = lambda k, v: {**named("self_attn.k_scale", k), **named("self_attn.v_scale", v)}
    case("f4c-f16", checkpoint(config, apart(k, v), base), **read_as("autofp8", k, v, seen, **common))
    kb, vb = autofp8(amax(5, LAYERS, "BF16"), "BF16"), autofp8(amax(6, LAYERS, "BF16"), "BF16")
    case("f4c-bf16", checkpoint(config, apart(kb, vb), base), **read_as("autofp8", kb, vb, seen, **common))
    small = K.copy()
    small[1] = F32(0.005)
    zero = autofp8(small, "F16")
    assert zero[1] == 0
    case("f4c-zero", checkpoint(config, apart(zero, v), base), **refused(
        "'{path}': 'model.layers.1.self_attn.k_scale': is 0, expected a positive, finite, normal number",
        "AutoFP8 divides 448 by the largest value in FP16, and where that value was below 0.00684 it wrote 0: calibrate "
        "again", seen + ["autofp8-zero"]))
    case("negative-sentinel", checkpoint(config, apart(same([-1, k[1], k[2]]), same([-1, v[1], v[2]])), base), **refused(
        "'{path}': 'model.layers.0.self_attn.k_scale': is -1, expected a positive, finite, normal number",
        "a negative scale is how runtimes mark one that was never loaded, so it was never calibrated either: calibrate "
        "again", seen + ["negative-sentinel"]))
    qwen3 = {**config, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"}
    case("k-norm", checkpoint(qwen3, apart(k, v), weights(dtype="F8_E4M3", extra=("k_norm.weight",))),
         **read_as("autofp8", k, v, seen, **common))
    case("r10-prob_output_scale", checkpoint(config, {
        **apart(k, v), **named("self_attn.q_proj.output_scale", k), **named("self_attn.prob_output_scale", v)}, base),
         **read_as("autofp8", k, v, seen, **common))
    few = {name: value for name, value in apart(k, v).items() if ".1." not in name}
    case("missing-layer", checkpoint(config, few, base), **refused(
        "'{path}': has KV scales for 2 layers, but none for layer 1", CALIBRATE, seen + ["missing-layer"]))
    more = apart(np.append(k, k[0]), np.append(v, v[0]))
    case("extra-layer", checkpoint(config, more, base), **refused(
        "'{path}': 'model.layers.3.self_attn.k_scale': there is no such layer, the model has 3",
        "the scales are those of another model, or of one that was pruned since: calibrate this one",
        seen + ["extra-layer"]))
    lone = {name: value for name, value in apart(k, v).items() if name != "model.layers.2.self_attn.v_scale"}
    case("k-without-v", checkpoint(config, lone, base), **refused(
        "'{path}': 'model.layers.2.self_attn.k_scale': the scale of V for it is missing", "", seen))


def compressed_cases():
    def config(key="quantization_config", version=None, scheme={}, dtype="bfloat16", **more):
        kv = {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False, "symmetric": True, **scheme}
        block = {"quant_method": "compressed-tensors", "format": "dense", "quantization_status": "frozen",
                 "config_groups": {}, "ignore": [], "kv_cache_scheme": kv, **more}
        if version:
            block["version"] = version
        return llama(torch_dtype=dtype, **{key: block})

    base = weights(dtype="BF16")
    a = amax(7, LAYERS, "BF16"), amax(8, LAYERS, "BF16")
    k, v = divided(a[0], "BF16"), divided(a[1], "BF16")
    ct = lambda version: {"producer": "compressed-tensors", "version": version, "stored": "BF16"}
    out = lambda dtype="BF16": {**named("self_attn.k_proj.output_scale", k, dtype, (1,)),
                                **named("self_attn.v_proj.output_scale", v, dtype, (1,))}
    apart = lambda k, v, dtype="BF16", shape=(1,): {**named("self_attn.k_scale", k, dtype, shape),
                                                    **named("self_attn.v_scale", v, dtype, shape)}
    # Before 0.6 the key was compression_config, and there was no version.
    old = config("compression_config", scheme={"observer": "minmax"})
    zero = {f"model.layers.{n}.self_attn.{x}_proj.output_zero_point": tensor("F8_E4M3", (1,), [0])
            for n in range(LAYERS) for x in "kv"}
    case("f5a-output_scale", checkpoint(old, {**out(), **zero}, base),
         **read_as("compressed-tensors-0.5", k, v, ["bf16-rounded", "k-before-rope", "moving-average-observer"],
                   observation="pre_rope", **ct("")))
    case("f5b-k_scale", checkpoint(old, apart(k, v), base),
         **read_as("compressed-tensors-0.6", k, v, ["bf16-rounded", "k-before-rope", "moving-average-observer"],
                   observation="pre_rope", **ct("")))
    case("f5b-static", checkpoint(config("compression_config", scheme={"observer": "static_minmax"}), apart(k, v), base),
         **read_as("compressed-tensors-0.6", k, v, ["bf16-rounded", "k-before-rope"], observation="pre_rope", **ct("")))
    post = {"observation": "post_rope"}
    case("f5c-bf16", checkpoint(config(version="0.9.4", scheme={"observer": "static_minmax"}), apart(k, v), base),
         **read_as("compressed-tensors", k, v, ["bf16-rounded"], **post, **ct("0.9.4")))
    h = amax(9, LAYERS), amax(10, LAYERS)
    kh, vh = divided(h[0], "F16"), divided(h[1], "F16")
    case("f5c-f16-last-batch", checkpoint(config(version="0.14.0", dtype="float16"), apart(kh, vh, "F16"), weights()),
         **read_as("compressed-tensors", kh, vh, ["f16-rounded", "last-batch-observer"], **post,
                   **{**ct("0.14.0"), "stored": "F16"}))
    case("f5c-moving-average", checkpoint(config(version="0.13.0"), apart(k, v), base),
         **read_as("compressed-tensors", k, v, ["bf16-rounded", "moving-average-observer"], **post, **ct("0.13.0")))
    case("f5c-no-version", checkpoint(config(), apart(k, v), base),
         **read_as("compressed-tensors", k, v, ["bf16-rounded"], **ct("")))
    many = amax(11, (LAYERS, HEADS), "BF16"), amax(12, (LAYERS, HEADS), "BF16")
    km, vm = divided(many[0], "BF16"), divided(many[1], "BF16")
    static = {"observer": "static_minmax"}
    case("f5c-attn_head", checkpoint(config(version="0.15.0", scheme={**static, "strategy": "attn_head"}),
                                     apart(km, vm, shape=(HEADS, 1, 1)), base),
         **read_as("compressed-tensors", km, vm, ["bf16-rounded"], **post, **ct("0.15.0")))
    group = {"group_0": {"targets": ["LlamaAttention"], "input_activations": {
        "num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False, "symmetric": True, **static}}}
    zeros = {f"model.layers.{n}.self_attn.{x}_zero_point": tensor("F8_E4M3", (1,), [0]) for n in range(LAYERS) for x in "qkv"}
    case("f5c-attention", checkpoint(config(version="0.15.0", scheme=static, config_groups=group),
                                     {**apart(k, v), **named("self_attn.q_scale", k, "BF16", (1,)), **zeros}, base),
         **read_as("compressed-tensors", k, v, ["bf16-rounded"], **post, **ct("0.15.0")))
    attention_only = config(version="0.15.0", config_groups=group)
    del attention_only["quantization_config"]["kv_cache_scheme"]
    case("f5c-attention-only", checkpoint(attention_only, {**apart(k, v), **zeros}, base),
         **read_as("compressed-tensors", k, v, ["bf16-rounded"], **post, **ct("0.15.0")))
    offset = {**zeros, "model.layers.1.self_attn.k_zero_point": tensor("I8", (1,), [3])}
    case("f5c-zero-point", checkpoint(config(version="0.15.0", scheme=static), {**apart(k, v), **offset}, base), **refused(
        "'{path}': 'model.layers.1.self_attn.k_zero_point': is not 0: scales with an offset cannot be used", "",
        ["bf16-rounded"]))
    four = {"num_bits": 4, "strategy": "tensor_group", **static}
    case("f5c-nvfp4", checkpoint(config(version="0.15.0", scheme=four), apart(k, v), base), **refused(
        "'{path}/config.json': quantization_config.kv_cache_scheme: is for 4-bit floats, so "
        "'model.layers.0.self_attn.k_scale' is the scale of neither an FP8 nor an NVFP4 cache",
        "scales for another type do not convert: calibrate again"))
    eight = {"type": "int", **static}
    case("f5c-int8", checkpoint(config(version="0.15.0", scheme=eight), apart(k, v), base), **refused(
        "'{path}/config.json': quantization_config.kv_cache_scheme: is for 8-bit integers, so "
        "'model.layers.0.self_attn.k_scale' is the scale of neither an FP8 nor an NVFP4 cache",
        "scales for another type do not convert: calibrate again"))


def modelopt_cases():
    def hf_quant(version, kv="FP8", algo="FP8"):
        return {"producer": {"name": "modelopt", "version": version},
                "quantization": {"quant_algo": algo, "kv_cache_quant_algo": kv, "exclude_modules": ["lm_head"]}}

    def block(version, bits=8, algo="FP8"):
        return {"quant_method": "modelopt", "quant_algo": algo, "ignore": ["lm_head"], "config_groups": {},
                "kv_cache_scheme": {"dynamic": False, "num_bits": bits, "type": "float"},
                "producer": {"name": "modelopt", "version": version}}

    base = weights(dtype="F8_E4M3")
    names = lambda k, v, block="self_attn", prefix="model.": {**named(block + ".k_proj.k_scale", k, prefix=prefix),
                                                              **named(block + ".v_proj.v_scale", v, prefix=prefix)}
    made = lambda version: {"producer": "modelopt", "version": version}
    k, v, ones = divided(K), divided(V), np.ones(LAYERS, F32)
    case("f6a-all-ones", checkpoint(llama(), names(ones, ones), base, hf_quant_config__json=hf_quant("0.23.2")),
         **read_as("modelopt-0.23", ones, ones, ["all-ones", "k-before-rope"], observation="pre_rope", **made("0.23.2")))
    huge = np.maximum(divided(K * F32(50)), F32(1))
    huge[1] = F32(1)
    case("f6b-floored", checkpoint(llama(quantization_config=block("0.29.0")), names(huge, ones), base,
                                   hf_quant_config__json=hf_quant("0.29.0")),
         **read_as("modelopt-0.27", huge, ones, ["floored"], observation="post_rope", **made("0.29.0")))
    case("f6c-unclamped", checkpoint(llama(quantization_config=block("0.43.0")), names(k, v), base,
                                     hf_quant_config__json=hf_quant("0.43.0")),
         **read_as("modelopt", k, v, observation="post_rope", **made("0.43.0")))
    case("f6c-nvfp4-weights", checkpoint(llama(quantization_config=block("0.45.0", algo="NVFP4")), names(k, v), base,
                                         hf_quant_config__json=hf_quant("0.45.0", algo="NVFP4")),
         **read_as("modelopt", k, v, observation="post_rope", **made("0.45.0")))
    case("f6c-cast", checkpoint(llama(quantization_config=block("0.43.0")), {}, base,
                                hf_quant_config__json=hf_quant("0.43.0")), **refused(
        "'{path}': has no KV scales, though '{path}/hf_quant_config.json' says that the cache is FP8 (ModelOpt's fp8_cast "
        "writes none): a runtime would use 1", "make some with 'fp8kv calibrate', and put them in with 'fp8kv inject'",
        ["cast-without-scales"]))
    four = checkpoint(llama(quantization_config=block("0.43.0", bits=4)), names(k, v), base,
                      hf_quant_config__json=hf_quant("0.43.0", kv="NVFP4"))
    case("f6-nvfp4", four, **{**read_as("modelopt-nvfp4", k, v, observation="post_rope", **made("0.43.0")),
                              "format": "nvfp4"})
    case("f6-configs-disagree", checkpoint(llama(quantization_config=block("0.43.0", bits=4)), names(k, v), base,
                                           hf_quant_config__json=hf_quant("0.43.0")), **refused(
        "'{path}/hf_quant_config.json': quantization.kv_cache_quant_algo: is 'FP8', but "
        "'{path}/config.json': quantization_config.kv_cache_scheme: is for 4-bit floats",
        "one of the two was edited: make them agree"))
    case("f6-no-config", checkpoint(llama(), names(k, v), base), **refused(
        "'{path}': 'model.layers.0.self_attn.k_proj.k_scale' is named as ModelOpt names the scales of FP8 and of NVFP4 caches "
        "alike, and neither config.json nor hf_quant_config.json says which",
        "bring the checkpoint's hf_quant_config.json along"))
    crossed = {**named("self_attn.k_proj.v_scale", k), **named("self_attn.v_proj.k_scale", v)}
    case("f6-crossed", checkpoint(llama(quantization_config=block("0.43.0")), crossed, base), **refused(
        "'{path}': 'model.layers.0.self_attn.k_proj.v_scale': is a scale of V at the projection of K",
        "the export went wrong: export or calibrate again"))

    case("f7-llama", checkpoint(llama(), {**named("self_attn.k_scale", ones, shape=(1,)),
                                          **named("self_attn.v_scale", ones, shape=(1,))}, base,
                                hf_quant_config__json=hf_quant("0.43.0")),
         **read_as("modelopt-megatron", ones, ones, ["all-ones"], observation="post_rope", **made("0.43.0")))
    nemotron = llama(architectures=["NemotronHForCausalLM"], model_type="nemotron_h", hybrid_override_pattern="***")
    mixer = weights(prefix="backbone.", block="mixer", dtype="F8_E4M3")
    case("f7-nemotron", checkpoint(nemotron, {**named("mixer.k_scale", huge, shape=(1,), prefix="backbone."),
                                              **named("mixer.v_scale", huge, shape=(1,), prefix="backbone.")}, mixer,
                                   hf_quant_config__json=hf_quant("0.43.0")),
         **read_as("modelopt-megatron", huge, huge, ["floored"], observation="post_rope", **made("0.43.0")))
    r5 = names(k, v, "mixer", "backbone.")
    case("r5-nemotron-h", checkpoint(nemotron, r5, mixer, hf_quant_config__json=hf_quant("0.43.0")),
         **read_as("modelopt", k, v, observation="post_rope", **made("0.43.0")))
    hybrid = {name: value for name, value in r5.items() if ".1." not in name}
    case("r5-hybrid", checkpoint({**nemotron, "hybrid_override_pattern": "*M*"}, hybrid, mixer,
                                 hf_quant_config__json=hf_quant("0.43.0")),
         **read_as("modelopt", [k[0], [], k[2]], [v[0], [], v[2]], observation="post_rope", **made("0.43.0")))
    case("r5-incomplete", checkpoint({**nemotron, "hybrid_override_pattern": "**M"}, hybrid, mixer,
                                     hf_quant_config__json=hf_quant("0.43.0")), **refused(
        "'{path}': has KV scales for 1 layer, but none for layer 1", CALIBRATE, ["missing-layer"]))
    cache = {**named("self_attn.k_cache.scale", k), **named("self_attn.v_cache.scale", v), **named("self_attn.q.scale", k)}
    case("r6-hy-v3", checkpoint(llama(architectures=["HYV3ForCausalLM"], model_type="hy_v3"), cache),
         **read_as("hy-v3", k, v))


def trtllm_cases():
    def config(tp=1, pp=1, kv="FP8", **more):
        return {"architecture": "LlamaForCausalLM", "dtype": "float16", "num_hidden_layers": LAYERS,
                "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "hidden_size": 4,
                "mapping": {"world_size": tp * pp, "tp_size": tp, "pp_size": pp},
                "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": kv, "exclude_modules": ["lm_head"]}, **more}

    at = lambda what, values: {f"transformer.layers.{n}.attention.{what}cache_scaling_factor":
                               tensor("F32", (1,), values[n]) for n in range(LAYERS)}
    base = {f"transformer.layers.{n}.attention.qkv.weight": tensor("F16", (12, 4), np.ones(48)) for n in range(LAYERS)}
    k, v = per_448(K), per_448(V)
    s = np.maximum(k, v)
    rank = lambda tensors: safetensors({**base, **tensors}, None)
    case("f8-tp1", {"config.json": config(), "rank0.safetensors": rank(at("kv_", s))},
         **read_as("trtllm", s, s, ["kv-fused"]))
    case("f8-tp2", {"config.json": config(2), **{f"rank{r}.safetensors": rank(at("kv_", s)) for r in range(2)}},
         **read_as("trtllm", s, s, ["kv-fused"]))
    other = s.copy()
    other[1] += F32(0.25)
    case("f8-ranks-disagree", {"config.json": config(2), "rank0.safetensors": rank(at("kv_", s)),
                               "rank1.safetensors": rank(at("kv_", other))}, **refused(
        "'{path}': 'transformer.layers.1.attention.kv_cache_scaling_factor' is %s in rank0.safetensors and %s in "
        "rank1.safetensors, expected the same in every rank" % (s[1], other[1]),
        "scales of one tensor-parallel split serve no other: calibrate again"))
    case("f8-missing-rank", {"config.json": config(2), "rank0.safetensors": rank(at("kv_", s))}, **refused(
        "'{path}': has no rank1.safetensors, though mapping.tp_size in config.json is 2", "copy the whole folder"))
    case("f8-pipeline", {"config.json": config(1, 2), **{f"rank{r}.safetensors": rank(at("kv_", s)) for r in range(2)}},
         **refused("'{path}/config.json': mapping.pp_size: is 2, expected 1",
                   "layers are numbered anew in each pipeline rank: convert the checkpoint with pp_size 1"))
    apart = {**at("kv_", np.maximum(k, v)), **at("k_", k), **at("v_", v)}
    modelopt = {"producer": {"name": "modelopt", "version": "0.27.1"}}
    case("f8-k-and-v", {"config.json": config(**modelopt), "rank0.safetensors": rank(apart)},
         **read_as("trtllm", k, v, observation="post_rope", producer="modelopt", version="0.27.1"))
    case("f8-int8", {"config.json": config(kv="INT8"), "rank0.safetensors": rank(at("kv_", s))}, **refused(
        "'{path}/config.json': quantization.kv_cache_quant_algo: is 'INT8', so "
        "'transformer.layers.0.attention.kv_cache_scaling_factor' is the scale of neither an FP8 nor an NVFP4 cache",
        "scales for another type do not convert: calibrate again"))
    model = {"version": "0.7.1", "dtype": "float16", "tensor_parallel": 1, "num_attention_heads": HEADS, "num_kv_heads": HEADS,
             "layers": [{"decoder_type": "llama"} for _ in range(LAYERS)]}
    arrays = {**{f"_np:layers:{n}:attention:qkv:weight": np.ones((4, 4), np.float16) for n in range(LAYERS)},
              **{f"_np:layers:{n}:attention:kv_cache_scaling_factor": same([s[n]]) for n in range(LAYERS)}}
    before = {"observation": "pre_rope", "producer": "AMMO"}
    for name, compress in (("stored", False), ("deflated", True)):
        case("f8-npz-" + name, {"llama_tp1.json": model, "llama_tp1_rank0.npz": npz(arrays, compress)},
             **read_as("ammo-npz", s, s, ["k-before-rope", "kv-fused"], **before))
    two = {**model, "tensor_parallel": 2}
    case("f8-npz-tp2", {"llama_tp2.json": two, **{f"llama_tp2_rank{r}.npz": npz(arrays, True) for r in range(2)}},
         **read_as("ammo-npz", s, s, ["k-before-rope", "kv-fused"], **before))


def quark_cases():
    spec = {"dtype": "fp8_e4m3", "qscheme": "per_tensor", "is_dynamic": False, "observer_cls": "PerTensorMinMaxObserver"}

    def config(floor=0.0, post=False):
        return llama(torch_dtype="bfloat16", quantization_config={
            "quant_method": "quark", "exclude": ["lm_head"], "kv_cache_post_rope": post,
            "export": {"kv_cache_group": ["*k_proj", "*v_proj"], "min_kv_scale": floor, "pack_method": "reorder",
                       "weight_format": "real_quantized"},
            "layer_quant_config": {pattern: {"output_tensors": spec} for pattern in ("*k_proj", "*v_proj")}})

    base = weights(dtype="F8_E4M3")
    s = divided(np.maximum(amax(13, LAYERS, "BF16"), amax(14, LAYERS, "BF16")), "BF16")
    names = lambda s, dtype="BF16", shape=(): {**named("self_attn.k_proj.output_scale", s, dtype, shape),
                                               **named("self_attn.v_proj.output_scale", s, dtype, shape)}
    made = {"producer": "Quark", "stored": "BF16"}
    case("f9a-output_scale", checkpoint(config(), names(s), base),
         **read_as("quark", s, s, ["bf16-rounded", "k-before-rope", "kv-fused"], observation="pre_rope", **made))
    case("f9a-post-rope", checkpoint(config(post=True), names(s, shape=(1,)), base),
         **read_as("quark", s, s, ["bf16-rounded", "kv-fused"], observation="post_rope", **made))
    ones = np.ones(LAYERS, F32)
    case("f9a-floor-1", checkpoint(config(floor=1.0), names(ones), base),
         **read_as("quark", ones, ones, ["all-ones", "k-before-rope", "kv-fused"], observation="pre_rope", **made))
    floor = bf16(F32(0.045))
    floored = np.maximum(s, floor)
    assert (floored == floor).any() and (floored > floor).any()
    case("f9a-floored", checkpoint(config(floor=0.045), names(floored), base),
         **read_as("quark", floored, floored, ["bf16-rounded", "floored", "k-before-rope", "kv-fused"],
                   observation="pre_rope", **made))
    fp8 = llama(quantization_config={"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": ["lm_head"],
                                     "kv_cache_scheme": "static", "export": {"kv_cache_group": ["*k_proj", "*v_proj"],
                                                                            "min_kv_scale": 0.0}})
    h = divided(BOTH, "F16")
    case("f9b-k_scale", checkpoint(fp8, {**named("self_attn.k_scale", h, "F16"), **named("self_attn.v_scale", h, "F16")},
                                   base),
         **read_as("quark-fp8", h, h, ["f16-rounded", "k-before-rope", "kv-fused"], observation="pre_rope",
                   producer="Quark", stored="F16"))


def conflicts():
    k, v = per_448(K), per_448(V)
    out = {**named("self_attn.k_proj.output_scale", k), **named("self_attn.v_proj.output_scale", v)}
    case("output_scale-no-config", checkpoint(llama(), out), **refused(
        "'{path}': 'model.layers.0.self_attn.k_proj.output_scale' could be of autofp8-output_scale, compressed-tensors-0.5 "
        "or quark, and config.json has no quantization_config that says which",
        "bring the checkpoint's own config.json along"))
    quark = llama(quantization_config={"quant_method": "quark", "kv_cache_post_rope": False,
                                       "export": {"kv_cache_group": ["*k_proj", "*v_proj"], "min_kv_scale": 0.0}})
    apart = {**named("self_attn.k_scale", k), **named("self_attn.v_scale", v)}
    proj = {**named("self_attn.k_proj.k_scale", k), **named("self_attn.v_proj.v_scale", v)}
    case("names-and-config-disagree", checkpoint(quark, proj), **refused(
        "'{path}': 'model.layers.0.self_attn.k_proj.k_scale' is a name of modelopt or compressed-tensors, but config.json says that "
        "quantization_config.quant_method is 'quark'", "the config is not that of these tensors: bring the right one along"))
    modelopt = llama(quantization_config={
        "quant_method": "modelopt", "quant_algo": "FP8", "producer": {"name": "modelopt", "version": "0.43.0"},
        "kv_cache_scheme": {"dynamic": False, "num_bits": 8, "type": "float"}})
    mixed = {name: value for name, value in {**apart, **proj}.items() if (".0." in name) == ("_proj." in name)}
    case("two-dialects", checkpoint(modelopt, mixed), **refused(
        "'{path}': 'model.layers.0.self_attn.k_proj.k_scale' is a name of modelopt, "
        "'model.layers.1.self_attn.k_scale' one of modelopt-megatron: expected one form",
        "keep the tensors of the form that the runtime reads"))
    case("unknown-form", checkpoint(llama(), named("self_attn.kv_cache.key_scale", k)), **refused(
        "'{path}': 'model.layers.0.self_attn.kv_cache.key_scale' (and 2 others) looks like a KV scale, but is in a form that "
        "is not read", "'fp8kv extract --help' lists the forms that are; calibrate the original model again, or rename the "
        "tensors"))
    case("no-scales", checkpoint(llama(), {}), **refused(
        "'{path}': has no KV scales", "make some with 'fp8kv calibrate', and put them in with 'fp8kv inject'"))


def build():
    for make in (tgi_cases, prefix_cases, json_cases, autofp8_cases, compressed_cases, modelopt_cases, trtllm_cases,
                 quark_cases, conflicts):
        make()
    files, expected = {}, {}
    for name, (contents, result) in CASES.items():
        single = list(contents) == ["kv_cache_scales.json"]
        for file, content in contents.items():
            path = f"{name}.json" if single else f"{name}/{file}"
            files[path] = content if isinstance(content, bytes) else (json.dumps(content) + "\n").encode()
        expected[name] = {"path": f"{name}.json" if single else name, **result}
    lines = [f"{json.dumps(name)}: {json.dumps(result)}" for name, result in expected.items()]
    files["expected.json"] = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    files = build()
    if parser.parse_args().check:
        differing = [path for path, data in files.items()
                     if not (OUT / path).exists() or (OUT / path).read_bytes() != data]
        if differing:
            sys.exit("differs: " + ", ".join(differing))
        return
    for path, data in files.items():
        (OUT / path).parent.mkdir(parents=True, exist_ok=True)
        (OUT / path).write_bytes(data)
    print(f"{len(CASES)} cases, {sum(map(len, files.values())):,} bytes, the largest file "
          f"{max(len(d) for p, d in files.items() if p != 'expected.json'):,}")


if __name__ == "__main__":
    main()
