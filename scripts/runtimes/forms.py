"""Makes folders of every form in which scales may stand in a model, for check_runtimes: those that
inject and quantize write, and others of them by renaming tensors and by another config."""
import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

SHARD, INDEX = "model-kv-scales.safetensors", "model.safetensors.index.json"

# Names in tests/runtimes/observed.json, and the value of inject's --for.
INJECTED = {"tgi": "tgi", "tgi-2028": "tgi-2028", "A": "vllm", "vllm-rocm": "vllm-rocm",
            "vllm-per-head": "vllm", "portable": "portable"}


def renamed(name, of):
    return re.sub(r"([kv])_scale$", of, name)


# Names of a form's tensors, derived from each tensor of form A.
DERIVED = {
    "B": lambda name: [renamed(name, r"attn.\1_scale")],
    "C": lambda name: [name, renamed(name, r"attn.\1_scale")],
    "P": lambda name: [renamed(name, r"\1_proj.\1_scale")],
    "M": lambda name: [renamed(name, r"\1_proj.\1_scale")],
    "vllm, shape []": lambda name: [name],
    "A, no strategy": lambda name: [name],
    "A, not symmetric": lambda name: [name],
    "gptq": lambda name: [name],
    "awq": lambda name: [name],
    "auto-round": lambda name: [name],
    "auto-round fp8": lambda name: [name],
    "auto-round blocks": lambda name: [name],
}

# Configs of these forms that differ from form A's, as ModelOpt, GPTQModel, AutoAWQ and AutoRound
# write them. Loaders never see the weights, so the weights stay unchanged.
AUTOROUND = {"quant_method": "auto-round", "autoround_version": "0.16.1", "static_kv_dtype": "fp8",
             "static_kv_granularity": "tensor", "sym": True}
FP8 = {**AUTOROUND, "bits": 8, "data_type": "fp", "fmt": "e4m3", "act_bits": 8, "act_data_type": "fp",
       "act_sym": True}
CONFIGS = {
    "M": {"quant_method": "modelopt", "quant_algo": "FP8",
          "kv_cache_scheme": {"type": "float", "num_bits": 8, "dynamic": False}},
    "gptq": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True,
             "lm_head": False, "true_sequential": True, "checkpoint_format": "gptq",
             "meta": {"quantizer": ["gptqmodel:7.7.0"]}},
    "awq": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm",
            "modules_to_not_convert": None},
    "auto-round": {**AUTOROUND, "bits": 4, "group_size": 128, "data_type": "int",
                   "packing_format": "auto_round:auto_gptq"},
    "auto-round fp8": {**FP8, "group_size": -1, "act_dynamic": False, "act_group_size": 0,
                       "activation_scheme": "static", "packing_format": "auto_round:fp8_static"},
    "auto-round blocks": {**FP8, "group_size": [128, 128], "act_dynamic": True, "act_group_size": 128,
                          "activation_scheme": "dynamic", "packing_format": "auto_round:fp8",
                          "weight_block_size": [128, 128]},
}
# Keys removed from the kv_cache_scheme of form A.
LEFT_OUT = {"A, no strategy": "strategy", "A, not symmetric": "symmetric"}
# Forms with FP8 weights, made by 'fp8kv quantize'.
QUANTISED = ["fp8-dynamic", "fp8-block", "fp8-static"]
FORMS = [*INJECTED, *DERIVED, *QUANTISED]


def read_safetensors(path):
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__", None)
    at = 8 + size
    tensors = {name: (entry["dtype"], entry["shape"],
                      data[at + entry["data_offsets"][0]:at + entry["data_offsets"][1]])
               for name, entry in header.items()}
    return tensors, metadata


def write_safetensors(path, tensors, metadata):
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))


def derive(source, folder, form):
    """A copy of a folder of form A in which the scales have other names or shapes."""
    shutil.copytree(source, folder, copy_function=os.link)
    old, metadata = read_safetensors(source / SHARD)
    tensors = {}
    for name, (dtype, shape, data) in old.items():
        for new in DERIVED[form](name):
            tensors[new] = (dtype, [] if form == "vllm, shape []" else shape, data)
    for name in (SHARD, INDEX, "config.json"):  # these were links
        (folder / name).unlink()
    config = json.loads((source / "config.json").read_text())
    config["quantization_config"] = CONFIGS.get(form, config["quantization_config"])
    if form in LEFT_OUT:
        del config["quantization_config"]["kv_cache_scheme"][LEFT_OUT[form]]
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    write_safetensors(folder / SHARD, tensors, metadata)
    index = json.loads((source / INDEX).read_text())
    index["weight_map"] = {name: shard for name, shard in index["weight_map"].items() if shard != SHARD}
    index["weight_map"].update({name: SHARD for name in tensors})
    (folder / INDEX).write_text(json.dumps(index))


def scale_file(model, per_head):
    """Scales that differ by layer and tensor, none of them a number of bfloat16."""
    layers, cached = model["layers"], model["cached"]
    heads = range(model["kv_heads"] if per_head else 1)

    def scales(of):
        return [[(3 + 10 * layer + 2 * head + of) / 97 for head in heads] if layer in cached else []
                for layer in range(layers)]

    def in_f32(lists):
        return [[struct.unpack("<f", struct.pack("<f", x))[0] for x in each] for each in lists]

    # A latent vector is one tensor, and has one scale.
    k, v = in_f32(scales(0)), in_f32(scales(0 if model.get("latent") else 0.3))
    return {
        "model_type": model["model_type"],
        "kv_cache": {"dtype": "float8_e4m3fn", "scaling_factor": {
            "0": {str(layer): max(k[layer] + v[layer]) for layer in cached}}},
        "fp8kv": {"schema": f"fp8kv.scales/{1 if len(cached) == layers else 2}",
                  "format": "float8_e4m3fn", "granularity": "head" if per_head else "tensor",
                  "model": {"n_layers": layers, **({"n_kv_heads": model["kv_heads"]} if per_head else {})},
                  "k_scale": k, "v_scale": v},
    }


def make_form(fp8kv, models, family, form, out):
    """Returns the folder; raises CalledProcessError with what inject said."""
    folder = out / family / re.sub(r"\W+", "-", form).strip("-")
    if folder.exists():
        shutil.rmtree(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if form in DERIVED:
        source = out / family / "A"
        if not source.exists():
            make_form(fp8kv, models, family, "A", out)
        derive(source, folder, form)
        return folder
    beside = Path(str(folder) + ".json")
    if form == "fp8-static":  # the inputs of its matrices have scales too
        beside.write_text(json.dumps({"input_ids": [3 + i * i % 250 for i in range(64)]}))
        command = ["quantize", models / family, "--scheme", form, "--data", beside, "--seq-len", "64"]
    else:
        described = json.loads((models / f"{family}.json").read_text())
        beside.write_text(json.dumps(scale_file(described, form == "vllm-per-head")))
        command = (["quantize", models / family, "--scheme", form] if form in QUANTISED else
                   ["inject", models / family, "--for", INJECTED[form]]) + ["--scales", beside]
    subprocess.run([fp8kv, *command, "-o", folder, "-q"], check=True, capture_output=True, text=True)
    return folder


def form_of_portable(folder):
    """Which names the portable form has for this family."""
    tensors, _ = read_safetensors(folder / SHARD)

    def has(rest):  # after the layer's number; Zamba 2's layers share blocks
        return any(re.search(r"\.\d+\.(shared_transformer\.)?" + rest + "$", name) for name in tensors)

    if has(r"\w+\.k_proj\.k_scale"):
        return "P"
    if not has(r"\w+\.attn\.k_scale"):
        return "A"
    return "C" if has(r"\w+\.k_scale") else "B"
