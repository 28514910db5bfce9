"""Has producers quantise small models, and writes what transformers computes with what the producers say the weights are worth.

    PYTHONPATH=... python make_quantised_by_producers.py PRODUCER [CASE...]     llmcompressor or modelopt

Writes quantised/<case>/ as make_quantised.py does, with the config.json and the tensors of the producer, from a model in F32.
Needs torch, transformers, safetensors and the producer: llmcompressor with what it asks for, or nvidia-modelopt with accelerate,
datasets and requests.
Made with llmcompressor 0.14.0.1, compressed-tensors 0.19.0 and nvidia-modelopt 0.47.0 on a CPU.
What weights are worth: of llm-compressor what compressed-tensors decodes as transformers loads the folder; of ModelOpt what
its quantisers make of the weights in memory, before anything is packed; of NVFP4 these want CUDA (0.47).
"""

import json
import pathlib
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

import make_goldens

HERE = pathlib.Path(__file__).resolve().parent / "quantised"
LLAMA = {**make_goldens.LLAMA, "hidden_size": 64, "intermediate_size": 128, "tie_word_embeddings": True}


def windows():
    generator = torch.Generator().manual_seed(9)
    return [torch.randint(3, LLAMA["vocab_size"], (1, 32), generator=generator) for _ in range(4)]


def load(folder, **more):
    import transformers

    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **more)


# Each writes what a producer makes of the model in `plain` to `out`, and returns what its weights are worth, by name.


def llmcompressor(plain, out, modifier):
    import tokenizers
    import transformers
    from llmcompressor import oneshot

    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({str(i): i for i in range(96)}, unk_token="0"))
    rows = torch.utils.data.DataLoader([{"input_ids": w[0], "attention_mask": torch.ones_like(w[0])} for w in windows()],
                                       batch_size=1)
    oneshot(model=load(plain), dataset=rows, num_calibration_samples=4, recipe=modifier(), pipeline="basic", output_dir=out,
            processor=transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="0"))
    return load(out, quantization_config=transformers.CompressedTensorsConfig(dequantize=True)).state_dict()


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
    }),
    "modelopt": (modelopt, {
        "modelopt-fp8": lambda mtq: mtq.FP8_DEFAULT_CFG,
        "modelopt-fp8-channel": lambda mtq: mtq.FP8_PER_CHANNEL_PER_TOKEN_CFG,
    }),
}


def make(producer, name, seed):
    golden, folder = f"quantised/{name}", HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    make_goldens.CASES[golden] = LLAMA
    make_goldens.make(golden, seed)
    run, cases = PRODUCERS[producer]
    plain = load_file(folder / "model.safetensors")
    with tempfile.TemporaryDirectory() as out:
        worth = run(folder, out, cases[name])
        config = json.loads((pathlib.Path(out) / "config.json").read_text())
        stored = load_file(pathlib.Path(out) / "model.safetensors")
    save_file({key: worth[key].detach().float().contiguous() for key in plain}, folder / "model.safetensors",
              metadata={"format": "pt"})
    make_goldens.write_golden(golden, seed)
    clear = make_goldens.check(golden)
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    return clear


def main():
    producer = sys.argv[1]
    for name in sys.argv[2:] or PRODUCERS[producer][1]:
        for seed in range(1, 100):  # the first seed without a greedy step that is nearly a tie
            if make(producer, name, seed) > 0.05:
                break


if __name__ == "__main__":
    sys.exit(main())
