"""Writes the largest magnitudes of what each matrix multiplies in models of make_families.py, as transformers computes them.

    python make_input_ranges.py     writes input-ranges.json beside this file, from families/*.json

[case][tensor]: amax over all ids of the case, in float32 with eager attention and experts. An expert's gate and up have that
of all tokens, as where each token is sent to every expert; its down that of the tokens that the router sent it, and where
it sent none the largest of the layer's experts.
"""

import json
import pathlib
import sys
import tempfile

from make_families import HERE, model_class, save, shortest, values

CASES = ["mistral-seven", "phi3", "gemma3", "cohere", "glm4-moe", "deepseek-v3", "qwen3-next", "falcon-h1"]


def amax_of_inputs(golden):
    import torch
    import torch.nn.functional as functional

    config = golden["config"]
    arrays = {name: values(name, golden["seed"], **tensor) for name, tensor in golden["tensors"].items()}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        save(folder, arrays, config)
        model = model_class(config).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                    experts_implementation="eager").eval()
    found, into_experts = {}, {}
    linear = functional.linear

    def observed(x, weight, bias=None):
        found[weight.data_ptr()] = max(found.get(weight.data_ptr(), 0.0), float(x.abs().max()) if x.numel() else 0.0)
        return linear(x, weight, bias)

    for name, module in model.named_modules():
        if name.endswith(".experts"):
            module.register_forward_pre_hook(
                lambda module, args, name=name: into_experts.update({name: float(args[0].abs().max())}))
    functional.linear = observed
    try:
        with torch.no_grad():
            model(input_ids=torch.tensor([golden["ids"]]), use_cache=False)
    finally:
        functional.linear = linear
    amax = {}
    for name, parameter in model.named_parameters():
        if name.endswith("experts.gate_up_proj"):
            for expert in range(len(parameter)):
                for part in ("gate_proj", "up_proj"):
                    amax[name.replace("gate_up_proj", f"{expert}.{part}.weight")] = into_experts[name.rsplit(".", 1)[0]]
        elif name.endswith("experts.down_proj"):
            of_each = [found.get(parameter[expert].data_ptr(), 0.0) for expert in range(len(parameter))]
            for expert, own in enumerate(of_each):
                amax[name.replace("down_proj", f"{expert}.down_proj.weight")] = own or max(of_each)
        elif parameter.data_ptr() in found and ".layers." in name:
            amax[name] = found[parameter.data_ptr()]
    assert amax.keys() <= golden["tensors"].keys(), amax.keys() - golden["tensors"].keys()
    return {name: shortest(amax[name]) for name in sorted(amax)}


def main():
    cases = {name: amax_of_inputs(json.loads((HERE / "families" / f"{name}.json").read_text())) for name in CASES}
    lines = ",\n".join(f'"{name}": {json.dumps(amax)}' for name, amax in cases.items())
    (HERE / "input-ranges.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    sys.exit(main())
