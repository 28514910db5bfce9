"""Has producers quantise small models, and writes what transformers computes with what the producers say the weights are worth.

    PYTHONPATH=... python make_quantised_by_producers.py PRODUCER PYTHON [CASE...]     PRODUCER: one of PRODUCERS below

Writes quantised/<case>/ as make_quantised.py does, with the config.json and the tensors of the producer, from a model in F32.
Needs torch, transformers and safetensors; the producer is run by PYTHON, another Python that may have older ones of these.
Made on a CPU with llmcompressor 0.14.0.1, compressed-tensors 0.19.0, nvidia-modelopt 0.47.0, gptqmodel 7.7.0, amd-quark 0.13,
auto-round 0.16.1 and autoawq 0.2.9 with transformers 4.51.3.
What weights are worth: of llm-compressor what compressed-tensors decodes as transformers loads the folder (FP4 in F32); of ModelOpt,
Quark and AutoRound what their quantisers make of the weights in memory, before anything is packed; of GPTQModel, AutoAWQ and
ModelOpt's blocks, NVFP4 and MX what their own functions that run on a CPU decode, with scales in F32.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

import make_goldens

HERE = pathlib.Path(__file__).resolve().parent / "quantised"
LLAMA = {**make_goldens.LLAMA, "hidden_size": 64, "intermediate_size": 128, "tie_word_embeddings": True}
CHANGES = {
    "llmcompressor-fp8-block": {"intermediate_size": 160},  # blocks of 128 x 128, some of them partial
    "autoawq": {"num_key_value_heads": 4},  # it needs a multiple of 64 rows
    "modelopt-fp8-blocks": {"intermediate_size": 160},
}


def windows():
    generator = torch.Generator().manual_seed(9)
    return [torch.randint(3, LLAMA["vocab_size"], (1, 32), generator=generator) for _ in range(4)]


def tokenizer():
    import tokenizers
    import transformers

    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({str(i): i for i in range(96)}, unk_token="0"))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="0", eos_token="0")


def load(folder, **more):
    import transformers

    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **more)


# Each function writes a producer's version of the model `plain` to `out`, and returns the decoded
# weights by name.


def llmcompressor(plain, out, modifier):
    import transformers
    from llmcompressor import oneshot

    rows = torch.utils.data.DataLoader([{"input_ids": w[0], "attention_mask": torch.ones_like(w[0])} for w in windows()],
                                       batch_size=1)
    oneshot(model=load(plain), dataset=rows, num_calibration_samples=4, recipe=modifier(), pipeline="basic", output_dir=out,
            processor=tokenizer())
    worth = load(out, quantization_config=transformers.CompressedTensorsConfig(dequantize=True)).state_dict()
    return {**worth, **fp4_in_f32(load_file(out + "/model.safetensors"))}


def fp4_in_f32(stored):
    """Loaded, such weights are rounded to BF16, whatever the type of the model."""
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
    from compressed_tensors.quantization.lifecycle.forward import dequantize
    from compressed_tensors.quantization.quant_scheme import NVFP4A16

    worth = {}
    for name in [key for key in stored if stored[key].dtype == torch.uint8]:
        weight, (rows, packed) = name.removesuffix("_packed"), stored[name].shape
        codes = unpack_fp4_from_uint8(stored[name], rows, 2 * packed, dtype=torch.float32)
        worth[weight] = dequantize(codes, stored[weight + "_scale"].float(), args=NVFP4A16["weights"], dtype=torch.float32,
                                   global_scale=stored[weight + "_global_scale"])
    return worth


def modelopt(plain, out, config):
    import modelopt.torch.quantization as mtq
    from modelopt.torch.export import export_hf_checkpoint

    model = load(plain)
    mtq.quantize(model, config(mtq), lambda each: [each(window) for window in windows()])
    worth = dict(model.state_dict())
    for name, module in model.named_modules():
        if getattr(module, "weight_quantizer", None) is not None and module.weight_quantizer.is_enabled:
            worth[f"{name}.weight"] = module.weight_quantizer(module.weight.detach())
    with torch.inference_mode():
        export_hf_checkpoint(model, export_dir=out)
    return worth


def modelopt_packed(plain, out, config):
    """Of codes that it makes with CUDA alone while in memory, or with other scales than when it packs."""
    import modelopt.torch.quantization as mtq
    from modelopt.torch.export import export_hf_checkpoint
    from modelopt.torch.quantization import qtensor

    model = load(plain)
    mtq.quantize(model, getattr(mtq, config))  # running it would need CUDA
    worth = dict(model.state_dict())
    with torch.inference_mode():
        export_hf_checkpoint(model, export_dir=out)
    stored = load_file(out + "/model.safetensors")
    for name in [key for key in stored if key + "_scale" in stored]:
        codes, scale, overall = stored[name], stored[name + "_scale"], stored.get(name + "_scale_2")
        is_fp4 = codes.dtype == torch.uint8
        shape = (codes.shape[0], codes.shape[1] * (2 if is_fp4 else 1))
        if scale.dtype == torch.float32:
            decoder, blocks = qtensor.FP8QTensor, {-1: 128, -2: 128} if scale.dim() == 4 else None
            scale = scale[:, 0, :, 0] if blocks else scale
        else:
            decoder = qtensor.MXFP8QTensor if not is_fp4 else qtensor.MXFP4QTensor if overall is None else qtensor.NVFP4QTensor
            blocks = {-1: shape[1] // scale.shape[1]}
        worth[name] = decoder(shape, torch.float32, codes).dequantize(
            torch.float32, scale=scale, double_scale=overall, block_sizes=blocks)
    return worth


def gptqmodel(plain, out, settings):
    os.environ["GPTQMODEL_CPU_WORKERS"] = "2"  # on two cores it makes one, and then asks for two
    from gptqmodel import BACKEND, GPTQModel, QuantizeConfig

    source = shutil.copytree(plain, f"{out}-source")
    tokenizer().save_pretrained(source)
    model = GPTQModel.load(source, QuantizeConfig(bits=4, group_size=32, **settings), device="cpu", dtype=torch.float32)
    model.quantize([{"input_ids": w[0].tolist(), "attention_mask": [1] * 32} for w in windows()], backend=BACKEND.TORCH)
    model.save(out)
    worth = load_file(out + "/model.safetensors")
    decoded = GPTQModel.load(out, device="cpu", backend=BACKEND.TORCH, dtype=torch.float16).model  # it loads none in F32
    for name, module in decoded.named_modules():
        if hasattr(module, "qweight"):
            module.scales = worth[f"{name}.scales"].float()
            worth[f"{name}.weight"] = module.dequantize_weight().T
    return worth


def autoawq(plain, out, settings):
    from awq import AutoAWQForCausalLM
    from awq.utils.packing_utils import dequantize_gemm

    model = AutoAWQForCausalLM.from_pretrained(str(plain), torch_dtype=torch.float32, device_map="cpu", use_cache=False)
    model.quantize(quant_config={"w_bit": 4, "q_group_size": 32, "zero_point": True, "version": "GEMM", **settings},
                   calib_data=[w[0].tolist() for w in windows()], max_calib_seq_len=32)
    model.save_quantized(out)
    worth = dict(model.model.state_dict())
    for name, module in model.model.named_modules():
        if hasattr(module, "qweight"):
            worth[f"{name}.weight"] = dequantize_gemm(module.qweight, module.qzeros, module.scales.float(), 4, 32).T
    return worth


def autoround(plain, out, settings):
    from auto_round import AutoRound

    def maker():
        return AutoRound(load(plain), tokenizer(), iters=0, disable_opt_rtn=True, nsamples=4, seqlen=32, device_map="cpu",
                         amp=False, dataset=windows(), **settings)

    maker().quantize_and_save(f"{out}-made", format="auto_round")
    shutil.move(next(pathlib.Path(f"{out}-made").rglob("config.json")).parent, out)
    return dict(maker().quantize()[0].state_dict())


def quark(plain, out, scheme):
    from quark.torch import LLMTemplate, ModelQuantizer, export_safetensors

    quantizer = ModelQuantizer(LLMTemplate.get("llama").get_config(scheme=scheme))
    rows = torch.utils.data.DataLoader([w[0] for w in windows()], batch_size=1)
    model = quantizer.freeze(quantizer.quantize_model(load(plain), rows))
    worth = dict(model.state_dict())
    for name, module in model.named_modules():
        if hasattr(module, "get_quant_weight"):
            worth[f"{name}.weight"] = module.get_quant_weight(module.weight.detach())
    with torch.no_grad():
        export_safetensors(model, str(out))
    return worth


def rounded(scheme):
    def make():
        from llmcompressor.modifiers.quantization import QuantizationModifier

        return QuantizationModifier(targets="Linear", scheme=scheme, ignore=["lm_head"])
    return make


def by_gptq(**settings):
    def make():
        from llmcompressor.modifiers.gptq import GPTQModifier

        return GPTQModifier(targets="Linear", ignore=["lm_head"], config_groups={"group_0": {
            "targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32, **settings}}})
    return make


PRODUCERS = {
    "llmcompressor": (llmcompressor, {
        "llmcompressor-w4a16": by_gptq(symmetric=False, actorder="weight"),
        "llmcompressor-w8a8": rounded("W8A8"),
        "llmcompressor-fp8-block": rounded("FP8_BLOCK"),
        "llmcompressor-nvfp4": rounded("NVFP4A16"),
    }),
    "modelopt": (modelopt, {
        "modelopt-fp8": lambda mtq: mtq.FP8_DEFAULT_CFG,
        "modelopt-fp8-channel": lambda mtq: mtq.FP8_PER_CHANNEL_PER_TOKEN_CFG,
    }),
    "modelopt-packed": (modelopt_packed, {
        "modelopt-nvfp4": "W4A16_NVFP4_CFG",
        "modelopt-fp8-blocks": "FP8_2D_BLOCKWISE_WEIGHT_ONLY_CFG",
        "modelopt-mxfp8": "MXFP8_DEFAULT_CFG",
        "modelopt-mxfp4": "MXFP4_DEFAULT_CFG",
    }),
    "gptqmodel": (gptqmodel, {
        "gptqmodel-ordered": {"desc_act": True, "act_group_aware": False, "sym": True},
        "gptqmodel-zero": {"desc_act": False, "sym": False},
    }),
    "autoawq": (autoawq, {"autoawq": {}}),
    "autoround": (autoround, {
        "autoround-gptq": {"scheme": "W4A16", "group_size": 32},
        "autoround-awq": {"scheme": "W4A16", "group_size": 32, "sym": False},
    }),
    "quark": (quark, {"quark-fp8": "fp8", "quark-fp8-rows": "ptpc_fp8", "quark-int8": "int8", "quark-mxfp4": "mxfp4_weight_only"}),
}


def write(producer, name, plain, out):
    """Runs in the Python that has the producer."""
    run, cases = PRODUCERS[producer]
    worth = run(pathlib.Path(plain), out, cases[name])
    save_file({key: value.detach().float().contiguous().clone() for key, value in worth.items() if value.is_floating_point()},
              pathlib.Path(out).parent / "worth.safetensors")


def make(producer, python, name, seed):
    golden, folder = f"quantised/{name}", HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    make_goldens.CASES[golden] = {**LLAMA, **CHANGES.get(name, {})}
    make_goldens.make(golden, seed)
    plain = load_file(folder / "model.safetensors")
    with tempfile.TemporaryDirectory() as temp:
        out = pathlib.Path(temp) / "out"
        subprocess.run([python, __file__, "--write", producer, name, folder, out], cwd=temp, check=True)  # logs are left there
        config = json.loads((out / "config.json").read_text())
        stored = load_file(out / "model.safetensors")
        worth = load_file(pathlib.Path(temp) / "worth.safetensors")
    save_file({key: worth[key] for key in plain}, folder / "model.safetensors", metadata={"format": "pt"})
    make_goldens.write_golden(golden, seed)
    clear = make_goldens.check(golden)
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    return clear


def main():
    if sys.argv[1] == "--write":
        return write(*sys.argv[2:])
    producer, python, *names = sys.argv[1:]
    for name in names or PRODUCERS[producer][1]:
        for seed in range(1, 100):  # the first seed without a greedy step that is nearly a tie
            if make(producer, python, name, seed) > 0.05:
                break


if __name__ == "__main__":
    sys.exit(main())
