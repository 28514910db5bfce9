#!/usr/bin/env python3
"""Writes tests/golden/drafters/NAME.json: random EAGLE-3 drafters, and the maxima of what they cache.

The target is the model of tests/golden/families/TARGET.json; its hidden states and the drafter's rotation are those of transformers. The
drafter's input is [norm(embedding of the next token), norm(fc(three hidden states))], at the position of the hidden states, as vLLM 0.32
makes it (model_executor/models/llama_eagle3.py, v1/spec_decode/llm_base_proposer.py).

A file has "target", the drafter's config.json, the names and shapes of its tensors (see make_families.py for their values), ids, and the
amax of K (after RoPE) and V for each head. Needs torch, transformers, safetensors and numpy.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile

import numpy as np

from make_drafts import described, load, rms_norm
from make_families import CASES, saved_shapes, shortest, values

HERE = pathlib.Path(__file__).resolve().parent
N_TOKENS = 40
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
LAYER = {"model_type": "llama", "vocab_size": 77, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 1, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 0.02, "rope_theta": 100.0, "hidden_act": "silu",
         "torch_dtype": "float32"}

# The target, the drafter's config.json, the config of its layer, the name of the layer, whether it has an embedding, and the layers whose
# inputs it reads.
DRAFTERS = {
    "flat": ("smollm3", {"architectures": ["LlamaForCausalLMEagle3"], **LAYER, "draft_vocab_size": 20,
                         "eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 1, 2], "use_aux_hidden_state": True}},
             None, "midlayer", False, [1, 2, 3]),
    "speculators": ("gpt-oss", {"architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3", "draft_vocab_size": 20,
                                "norm_before_residual": True, "eagle_aux_hidden_state_layer_ids": [0, 1, 2], "torch_dtype": "float32"},
                    {**LAYER, "head_dim": 12, "num_attention_heads": 2, "num_key_value_heads": 1, "attention_bias": True,
                     "rope_scaling": LLAMA3}, "layers.0", True, [0, 1, 2]),
    "wider": ("gemma2", {"architectures": ["LlamaForCausalLMEagle3"], **LAYER, "hidden_size": 40, "target_hidden_size": 32,
                         "eagle_aux_hidden_state_layer_ids": [0, 2, 3]}, None, "layers.0", True, [0, 2, 3]),
    "raw-tokens": ("gemma2", {"architectures": ["LlamaForCausalLMEagle3"], **LAYER, "eagle_aux_hidden_state_layer_ids": [1, 2, 3]}, None,
                   "midlayer", False, [1, 2, 3]),
}


def shapes(layer, name, owns, target_dim):
    dim, heads = layer["hidden_size"], layer["num_attention_heads"]
    size = layer.get("head_dim", dim // heads)
    rows = {"q_proj": heads * size, "k_proj": layer["num_key_value_heads"] * size, "v_proj": layer["num_key_value_heads"] * size}
    found = {"fc.weight": [dim, 3 * target_dim], f"{name}.hidden_norm.weight": [dim], f"{name}.input_layernorm.weight": [dim],
             **{f"{name}.self_attn.{part}.weight": [n, 2 * dim] for part, n in rows.items()},
             f"{name}.self_attn.o_proj.weight": [dim, heads * size], f"{name}.post_attention_layernorm.weight": [dim],
             f"{name}.mlp.gate_proj.weight": [40, dim], f"{name}.mlp.up_proj.weight": [40, dim], f"{name}.mlp.down_proj.weight": [dim, 40],
             "norm.weight": [dim], "lm_head.weight": [20, dim]}
    if layer.get("attention_bias"):
        found.update({f"{name}.self_attn.{part}.bias": [n] for part, n in rows.items()})
        found[f"{name}.self_attn.o_proj.bias"] = [dim]
    if owns:
        found["embed_tokens.weight"] = [layer["vocab_size"], dim]
    return found


def states_of(model, ids, wanted):
    """The inputs of these layers; the number of layers stands for the output of the last."""
    import torch

    layers, kept = model.model.layers, {}
    for i in range(len(layers)):
        layers[i].register_forward_pre_hook(lambda _, args, kwargs, i=i: kept.__setitem__(i, (args or [kwargs["hidden_states"]])[0][0]),
                                            with_kwargs=True)
    layers[-1].register_forward_hook(lambda _, __, out: kept.__setitem__(len(layers), (out[0] if isinstance(out, tuple) else out).reshape(
        len(ids), -1)))
    model(input_ids=torch.tensor([ids]))
    return torch.cat([kept[i] for i in wanted], -1)


def compute(case):
    import torch
    import transformers
    from transformers.models.llama import modeling_llama as llama

    target, config, inner, name, owns, wanted = DRAFTERS[case]
    layer = inner or config
    config = {**config, "transformer_layer_config": inner} if inner else config
    target_config, seed = CASES[target], 1
    target_seed = json.loads((HERE / "families" / f"{target}.json").read_text())["seed"]
    of_target = described(saved_shapes(target_config), target_config)
    of_drafter = described(shapes(layer, name, owns, target_config["hidden_size"]), layer)
    ids = np.random.default_rng(sum(case.encode())).integers(3, layer["vocab_size"], N_TOKENS).tolist()
    weight = {key: torch.tensor(values(key, seed, **tensor)) for key, tensor in of_drafter.items()}
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model = load(target_config, {key: values(key, target_seed, **tensor) for key, tensor in of_target.items()},
                     pathlib.Path(folder) / "model")
        states = states_of(model, ids, wanted)[:-1]
        table = weight["embed_tokens.weight"] if owns else model.model.embed_tokens.weight
        tokens = table[torch.tensor(ids[1:])]
        x = torch.cat([rms_norm(tokens, weight[f"{name}.input_layernorm.weight"], layer),
                       rms_norm(states @ weight["fc.weight"].T, weight[f"{name}.hidden_norm.weight"], layer)], -1)

        def heads_of(part):
            bias = weight.get(f"{name}.self_attn.{part}.bias", 0)
            return (x @ weight[f"{name}.self_attn.{part}.weight"].T + bias).view(1, len(x), layer["num_key_value_heads"], -1).transpose(1, 2)

        rotary = llama.LlamaRotaryEmbedding(transformers.LlamaConfig(**{k: v for k, v in layer.items() if k != "torch_dtype"}))
        cos, sin = rotary(x[None], torch.arange(len(x))[None])
        k, v = heads_of("k_proj"), heads_of("v_proj")
        k, _ = llama.apply_rotary_pos_emb(k, k, cos, sin)
        k_amax, v_amax = (each.abs().amax((0, 2, 3)).tolist() for each in (k, v))
    return {"made_by": {"torch": torch.__version__, "transformers": transformers.__version__, "numpy": np.__version__},
            "target": target, "config": config, "seed": seed, "tensors": of_drafter, "ids": ids,
            "k_amax": shortest(k_amax), "v_amax": shortest(v_amax)}


def main():
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(DRAFTERS), metavar="CASE", help="default: all")
    for case in parser.parse_args().cases:
        lines = ",\n".join(f'"{key}": {json.dumps(value)}' for key, value in compute(case).items())
        (HERE / "drafters" / f"{case}.json").write_text("{\n" + lines + "\n}\n")
        print(f"{case}: written")


if __name__ == "__main__":
    sys.exit(main())
