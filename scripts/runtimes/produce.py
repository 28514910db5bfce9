"""Usage: produce.py PRODUCER FOLDER [FAMILY...]

Has a producer quantise the KV cache of tiny models with random weights, as FOLDER/FAMILY-CASE, and
prints a line of JSON for each: the scales as the safetensors library reads them, what fp8kv is to
call their producer, and the remarks that it must make; or the error that the producer stopped with.
Run by check_producers, under a Python that has the producer; on a CPU, without network.
"""
import copy
import importlib.metadata
import json
import os
import shutil
import sys
import traceback
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from safetensors import safe_open  # noqa: E402

VOCABULARY, WINDOW, WINDOWS, LAYERS, KV_HEADS = 256, 32, 4, 2, 2
SHAPE = dict(vocab_size=VOCABULARY, hidden_size=128, intermediate_size=256, num_hidden_layers=LAYERS,
             num_attention_heads=4, num_key_value_heads=KV_HEADS, max_position_embeddings=256,
             bos_token_id=1, eos_token_id=2, pad_token_id=0, tie_word_embeddings=False)
FAMILIES = {"llama": dict(SHAPE, head_dim=32), "qwen2": SHAPE, "qwen3": dict(SHAPE, head_dim=32)}


def model(family, folder=None):
    """In BF16. With a folder: written there, and loaded from there, as a user would, with all that a config has."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(5)
    made = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **FAMILIES[family]))
    made = made.to(torch.bfloat16).eval()
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if parameter.dim() == 2:
                parameter.copy_((torch.randn(parameter.shape) * 0.3).to(torch.bfloat16))
    if folder is None:
        return made
    made.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)


def tokenizer():
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({str(i): i for i in range(VOCABULARY)}, unk_token="0"))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="0", unk_token="0", eos_token="2")


def windows():
    generator = torch.Generator().manual_seed(9)
    return [torch.randint(3, VOCABULARY, (1, WINDOW), generator=generator) for _ in range(WINDOWS)]


def version(package):
    return importlib.metadata.version(package)


def bits(folder, end):
    """The scales of every layer as the bits of F32 numbers, from whichever file has them."""
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            found.update({name: file.get_tensor(name) for name in file.keys() if name.endswith("scale")})
    tensors = [found[f"model.layers.{layer}.self_attn.{end}"] for layer in range(LAYERS)]
    return [[f"{int(x.view(np.uint32)):08x}" for x in tensor.float().numpy().reshape(-1)] for tensor in tensors]


# Each function makes (case, names of the scales of K and V, expected messages of fp8kv, function
# that writes a folder).

KV = {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False, "symmetric": True}


def llmcompressor():
    from datasets import Dataset
    from llmcompressor import oneshot
    from llmcompressor.modifiers.quantization import QuantizationModifier

    def produce(scheme=None, **modifier):
        def run(family, folder):
            quantized = model(family, folder.parent / f"{family}-base")
            rows = Dataset.from_list([{"input_ids": w[0].tolist(), "attention_mask": [1] * WINDOW} for w in windows()])
            oneshot(model=quantized, tokenizer=tokenizer(), dataset=rows, max_seq_length=WINDOW,
                    num_calibration_samples=WINDOWS,
                    recipe=QuantizationModifier(ignore=["lm_head"], kv_cache_scheme=scheme or KV, **modifier))
            quantized.save_pretrained(folder, save_compressed=True)
        return run

    says = {"form": "compressed-tensors", "producer": "compressed-tensors",
            "producer_version": version("compressed-tensors")}
    last, static = {**says, "remark": "last-batch-observer"}, {**KV, "observer": "static_minmax"}
    names = ("k_scale", "v_scale")
    yield "default", names, last, produce()
    yield "static_minmax", names, says, produce(static)
    yield "per head", names, says, produce({**static, "strategy": "attn_head"})
    yield "with FP8 weights", names, last, produce(
        config_groups={"group_0": {"targets": ["Linear"], "weights": KV, "input_activations": KV}})


def modelopt():
    import modelopt.torch.quantization as mtq
    from modelopt.torch.export import export_hf_checkpoint
    from modelopt.torch.quantization.utils import update_quant_cfg_with_kv_cache_quant

    def produce(config):
        def run(family, folder):
            quantized = model(family, folder.parent / f"{family}-base")
            mtq.quantize(quantized, copy.deepcopy(config), lambda each: [each(window) for window in windows()])
            with torch.inference_mode():
                export_hf_checkpoint(quantized, export_dir=folder)
        return run

    says = {"form": "modelopt", "producer": "modelopt", "producer_version": version("nvidia-modelopt")}
    names = ("k_proj.k_scale", "v_proj.v_scale")
    weights = update_quant_cfg_with_kv_cache_quant(copy.deepcopy(mtq.FP8_DEFAULT_CFG), mtq.FP8_KV_CFG["quant_cfg"])
    yield "with FP8 weights", names, says, produce(weights)
    yield "cache alone", names, says, produce({**mtq.FP8_KV_CFG, "algorithm": "max"})
    if hasattr(mtq, "NVFP4_KV_CFG"):
        weights = update_quant_cfg_with_kv_cache_quant(copy.deepcopy(mtq.FP8_DEFAULT_CFG),
                                                       mtq.NVFP4_KV_CFG["quant_cfg"])
        yield "NVFP4 cache", names, {**says, "form": "modelopt-nvfp4"}, produce(weights)


def quark():
    from quark.torch import LLMTemplate, ModelQuantizer, export_safetensors

    def produce(mode, post_rope=False):
        def run(family, folder):
            config = LLMTemplate.get(family).get_config(scheme="fp8", kv_cache_scheme="fp8")
            if post_rope:
                config.kv_cache_post_rope = True
            quantizer = ModelQuantizer(config)
            frozen = quantizer.freeze(quantizer.quantize_model(model(family), windows()))
            with torch.no_grad():
                export_safetensors(frozen, str(folder), custom_mode=mode)
        return run

    says = {"producer": "Quark", "producer_version": ""}
    before = {**says, "remark": "k-before-rope"}
    names = ("k_proj.output_scale", "v_proj.output_scale")
    yield "mode quark", names, {**before, "form": "quark"}, produce("quark")
    yield "mode fp8", ("k_scale", "v_scale"), {**before, "form": "quark-fp8"}, produce("fp8")
    yield "kv_cache_post_rope", names, {**says, "form": "quark"}, produce("quark", True)


def autoround():
    from auto_round import AutoRound

    def produce(form, scheme, granularity="tensor", dtype="fp8"):
        def run(family, folder):
            base, out = folder.parent / f"{family}-base", folder.parent / f"{folder.name}-out"
            model(family, base)
            AutoRound(str(base), scheme=scheme, iters=0, disable_opt_rtn=True, nsamples=WINDOWS, seqlen=WINDOW,
                      batch_size=1, dataset=windows(), device_map="cpu", static_kv_dtype=dtype,
                      static_kv_granularity=granularity).quantize_and_save(str(out), format=form)
            shutil.move(next(out.rglob("config.json")).parent, folder)
        return run

    says = {"form": "autoround", "producer": "AutoRound", "producer_version": version("auto-round"),
            "remark": "last-batch-observer"}
    unversioned, names = {**says, "producer_version": ""}, ("k_scale", "v_scale")
    yield "auto_round", names, says, produce("auto_round", "FP8_STATIC")
    yield "auto_gptq", names, says, produce("auto_gptq", "W4A16")
    yield "auto_awq", names, says, produce("auto_awq", "W4A16")
    yield "fp8", names, says, produce("fp8", "FP8_BLOCK")
    yield "llm_compressor", names, unversioned, produce("llm_compressor", "FP8_STATIC")
    yield "per head", names, unversioned, produce("llm_compressor", "FP8_STATIC", "head")
    nvfp4 = {**unversioned, "form": "autoround-nvfp4", "remark": ""}  # the largest values of all batches
    yield "NVFP4 cache", ("k_global_scale", "v_global_scale"), nvfp4, produce("llm_compressor", "NVFP4", dtype="nvfp4")


PRODUCERS = {"llmcompressor": llmcompressor, "modelopt": modelopt, "quark": quark, "autoround": autoround}


def result(family, case, names, says, run, out):
    folder = out / f"{family}-{case.replace(' ', '-')}"
    found = {"family": family, "case": case, "folder": str(folder), **says}
    try:
        run(family, folder)
        return {**found, "k": bits(folder, names[0]), "v": bits(folder, names[1])}
    except Exception as error:
        traceback.print_exc()
        lines = str(error).strip().splitlines() or [""]
        return {**found, "error": f"{type(error).__name__}: {lines[0][:200]}"}


def without_others_words():
    """Standard output for the answers alone: producers log there, by handles that they took early."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def main():
    answers = without_others_words()
    producer, out, families = sys.argv[1], Path(sys.argv[2]), sys.argv[3:] or list(FAMILIES)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for family in families:
        for case in PRODUCERS[producer]():
            print(json.dumps(result(family, *case, out)), file=answers, flush=True)


if __name__ == "__main__":
    main()
