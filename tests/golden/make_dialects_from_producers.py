"""Has the tools themselves write scales of a tiny Llama, for tests that read them.

    python make_dialects_from_producers.py PRODUCER...    under a Python that has the tool; on a CPU, without network

Writes dialects/real-<case>/ beside this file, and what is to be read from it into dialects/producers.json, in the form
of expected.json (see make_dialects.py). The values there come from the file by way of the safetensors library; dialect,
observation and diagnoses are stated here by hand.

Of what a tool writes, only the tensors of attention layers are kept, and of those none above 512 bytes (weights are
never read); of Quark's quantization_config the details of weights and inputs are left out, and so is the name of the
folder the model came from. Everything else is as the tool wrote it.

PRODUCER and what it was run with (Python 3.11):
    modelopt      nvidia-modelopt 0.47.0 and 0.33.1 (transformers 5.23.0 and 4.48.3), 0.25.0 (transformers 4.48.3,
                  torch 2.5.1; its CUDA kernel for simulated FP8 is replaced by the identity, which does not touch the
                  maxima)
    llmcompressor      llmcompressor 0.14.0.1 with compressed-tensors 0.20.0
    llmcompressor-old  llmcompressor 0.2.0 with compressed-tensors 0.6.0 (transformers 4.48.3)
    quark         amd-quark 0.13
    autoround     auto-round 0.16.1 with compressed-tensors 0.20.0 (transformers before 5.24)
"""

import copy
import importlib.metadata
import json
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

OUT = pathlib.Path(__file__).resolve().parent / "dialects"
LARGEST = 512


def model(dtype, head_dim=8):
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(5)
    config = LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
                         num_key_value_heads=2, head_dim=head_dim, max_position_embeddings=64, tie_word_embeddings=False,
                         architectures=["LlamaForCausalLM"])
    made = LlamaForCausalLM(config).to(dtype).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() == 2:
                parameter.copy_((torch.randn(parameter.shape) * 0.4).to(dtype))
    return made


def batches():
    generator = torch.Generator().manual_seed(9)
    return [torch.randint(3, 64, (1, 24), generator=generator) for _ in range(4)]


def keep(folder, name, k, v, **expected):
    """Copies what matters of `folder`; `k` and `v` are what follows "model.layers.N.self_attn."."""
    target = OUT / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with safe_open(folder / "model.safetensors", "pt") as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}
        metadata = file.metadata()
    scales = {which: [tensors[f"model.layers.{n}.self_attn.{end}"] for n in range(2)] for which, end in (("k", k), ("v", v))}
    small = {key: value.contiguous() for key, value in tensors.items()
             if ".self_attn." in key and value.numel() * value.element_size() <= LARGEST}
    save_file(small, target / "model.safetensors", metadata)
    config = json.loads((folder / "config.json").read_text())
    config.pop("_name_or_path", None)
    quantization = config.get("quantization_config", {})
    if quantization.get("quant_method") == "quark":
        quantization.pop("global_quant_config")
        for part in ("kv_cache_quant_config", "layer_quant_config"):
            for layer in quantization[part].values():
                layer.pop("weight")
                layer.pop("input_tensors")
    (target / "config.json").write_text(json.dumps(config) + "\n")
    if (folder / "hf_quant_config.json").exists():
        shutil.copy(folder / "hf_quant_config.json", target)
    result = {"path": name, "format": "float8_e4m3fn", "made_with": made_with(), **expected}
    result["diagnoses"] = sorted(result["diagnoses"])
    result["stored_dtype"] = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}[scales["k"][0].dtype]
    for which, values in scales.items():
        rows = [value.float().numpy().reshape(-1) for value in values]
        result[which] = [[float(str(x)) for x in row] for row in rows]
        result[which + "_bits"] = [[f"{int(x.view(np.uint32)):08x}" for x in row] for row in rows]
    path = OUT / "producers.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    known[name] = result
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(known.items())]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(name, result)


def made_with():
    packages = ("nvidia-modelopt", "llmcompressor", "compressed-tensors", "amd-quark", "auto-round", "transformers",
                "torch")
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def modelopt():
    import modelopt
    import modelopt.torch.quantization as mtq
    from modelopt.torch.export import export_hf_checkpoint
    version = modelopt.__version__
    era = tuple(map(int, version.split(".")[:2]))
    config = copy.deepcopy(mtq.FP8_DEFAULT_CFG)
    if era >= (0, 40):
        from modelopt.torch.quantization.utils import update_quant_cfg_with_kv_cache_quant
        config = update_quant_cfg_with_kv_cache_quant(config, mtq.FP8_KV_CFG["quant_cfg"])
    elif era >= (0, 27):
        config["quant_cfg"].update(mtq.FP8_KV_CFG["quant_cfg"])
    else:
        import modelopt.torch.quantization.tensor_quant as tensor_quant
        tensor_quant.scaled_e4m3_impl = lambda inputs, amax: inputs
        config["quant_cfg"]["*output_quantizer"] = {"num_bits": (4, 3), "axis": None, "enable": True}
    quantized = model(torch.bfloat16)
    mtq.quantize(quantized, config, lambda m: [m(batch) for batch in batches()])
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        export_hf_checkpoint(quantized, export_dir=folder)
        old = era <= (0, 25)
        clamped = era <= (0, 42)
        keep(pathlib.Path(folder), f"real-modelopt-{version}", "k_proj.k_scale", "v_proj.v_scale",
             dialect="modelopt-0.23" if old else "modelopt-0.27" if clamped else "modelopt",
             observation="pre_rope" if old else "post_rope", producer="modelopt", producer_version=version,
             diagnoses=(["all-ones"] if clamped else []) + (["k-before-rope"] if old else []))


def tokenizer():
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast
    words = Tokenizer(models.WordLevel({str(i): i for i in range(64)}, unk_token="0"))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="1", unk_token="0", eos_token="2")


KV = {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False, "symmetric": True}


def recipe(**modifier):
    return json.dumps({"quant_stage": {"quant_modifiers": {"QuantizationModifier": modifier}}})


def compress(name, dtype, save, **modifier):
    """Runs llm-compressor and gives the folder to `save`."""
    from datasets import Dataset
    try:
        from llmcompressor import oneshot
        argument = "processor"
    except ImportError:
        from llmcompressor.transformers import oneshot
        argument = "tokenizer"
    with tempfile.TemporaryDirectory() as base, tempfile.TemporaryDirectory() as folder:
        compressed = model(dtype)
        compressed.save_pretrained(base)
        compressed.config._name_or_path = compressed.name_or_path = base
        data = Dataset.from_dict({"input_ids": [b[0].tolist() for b in batches()], "attention_mask": [[1] * 24] * 4})
        if argument == "tokenizer":
            modifier["output_dir"] = folder
        out = {"output_dir": modifier.pop("output_dir")} if argument == "tokenizer" else {}
        oneshot(model=compressed, dataset=data, recipe=recipe(**modifier), max_seq_length=64, num_calibration_samples=4,
                **{argument: tokenizer()}, **out)
        if argument == "tokenizer":
            from llmcompressor.transformers.sparsification.compressed_tensors_utils import modify_save_pretrained
            modify_save_pretrained(compressed)
        compressed.save_pretrained(folder, save_compressed=True)
        save(pathlib.Path(folder), f"real-llmcompressor-{importlib.metadata.version('llmcompressor')}-{name}")


def llmcompressor():
    version = importlib.metadata.version("compressed-tensors")
    common = {"dialect": "compressed-tensors", "observation": "post_rope", "producer": "compressed-tensors",
              "producer_version": version}
    save = lambda *diagnoses: lambda folder, name: keep(folder, name, "k_scale", "v_scale", diagnoses=diagnoses, **common)
    static = {**KV, "observer": "static_minmax"}
    compress("default", torch.bfloat16, save("bf16-rounded", "last-batch-observer"), kv_cache_scheme=KV)
    compress("f16", torch.float16, save("f16-rounded"), kv_cache_scheme=static)
    compress("attn_head", torch.bfloat16, save("bf16-rounded"), kv_cache_scheme={**static, "strategy": "attn_head"})
    # Its scales of Q are uninitialised memory.
    compress("attention", torch.bfloat16, save("bf16-rounded", "q-not-measured"),
             config_groups={"group_0": {"targets": ["LlamaAttention"], "input_activations": static}})


def llmcompressor_old():
    linear = {"group_0": {"weights": KV, "input_activations": KV, "targets": ["Linear"]}}
    compress("default", torch.bfloat16, lambda folder, name: keep(
        folder, name, "k_scale", "v_scale", dialect="compressed-tensors-0.6", observation="pre_rope",
        producer="compressed-tensors", producer_version="",  # written since 0.7
        diagnoses=["bf16-rounded", "k-before-rope", "moving-average-observer"]),
        ignore=["lm_head"], config_groups=linear, kv_cache_scheme=KV)


def quark():
    from quark.torch import LLMTemplate, ModelQuantizer, export_safetensors
    version = importlib.metadata.version("amd-quark")
    for mode, dtype, end in (("quark", torch.bfloat16, "{}_proj.output_scale"), ("fp8", torch.float16, "{}_scale")):
        quantizer = ModelQuantizer(LLMTemplate.get("llama").get_config(scheme="fp8", kv_cache_scheme="fp8"))
        frozen = quantizer.freeze(quantizer.quantize_model(model(dtype), batches()))
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            export_safetensors(frozen, folder, custom_mode=mode)
            rounded = "bf16-rounded" if dtype == torch.bfloat16 else "f16-rounded"
            keep(pathlib.Path(folder), f"real-quark-{version}-{mode}", end.format("k"), end.format("v"),
                 dialect="quark" if mode == "quark" else "quark-fp8", observation="pre_rope", producer="Quark",
                 producer_version="", diagnoses=["k-before-rope", "kv-fused", rounded])


def autoround():
    from auto_round import AutoRound
    version = importlib.metadata.version("auto-round")
    # Form, scheme of the weights, granularity of the scales, and the cache's format. llm-compressor's
    # form does not name the version.
    for name, form, scheme, granularity, cache in (("auto_round", "auto_round", "FP8_STATIC", "tensor", "fp8"),
                                                   ("gptq", "auto_gptq", "W4A16", "tensor", "fp8"),
                                                   ("fp8", "fp8", "FP8_BLOCK", "tensor", "fp8"),
                                                   ("llm_compressor", "llm_compressor", "FP8_STATIC", "tensor", "fp8"),
                                                   ("head", "llm_compressor", "FP8_STATIC", "head", "fp8"),
                                                   ("nvfp4", "llm_compressor", "NVFP4", "tensor", "nvfp4")):
        four = cache == "nvfp4"
        with tempfile.TemporaryDirectory() as base, tempfile.TemporaryDirectory() as out:
            model(torch.bfloat16, head_dim=16 if four else 8).save_pretrained(base)
            tokenizer().save_pretrained(base)
            AutoRound(base, scheme=scheme, iters=0, disable_opt_rtn=True, nsamples=4, seqlen=24, batch_size=1,
                      dataset=batches(), device_map="cpu", static_kv_dtype=cache,
                      static_kv_granularity=granularity).quantize_and_save(out, format=form)
            folder = next(pathlib.Path(out).rglob("config.json")).parent
            ends = ("k_global_scale", "v_global_scale") if four else ("k_scale", "v_scale")
            more = {"format": "nvfp4"} if four else {}
            keep(folder, f"real-autoround-{version}-{name}", *ends, dialect="autoround-nvfp4" if four else "autoround",
                 observation="post_rope", producer="AutoRound",
                 producer_version="" if form == "llm_compressor" else version,
                 diagnoses=[] if four else ["last-batch-observer"], **more)


if __name__ == "__main__":
    for producer in sys.argv[1:]:
        {"modelopt": modelopt, "llmcompressor": llmcompressor, "llmcompressor-old": llmcompressor_old,
         "quark": quark, "autoround": autoround}[producer]()
