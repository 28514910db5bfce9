#!/usr/bin/env python3
"""Writes tests/golden/drafts/NAME.json: random models with a layer that drafts tokens, and the maxima of what it caches.

The model is that of tests/golden/families/NAME.json. Its last hidden states are those of transformers, and so are K and V of the
draft layer: it is the one layer of a second model, which is given the rows that this script makes. Those are product([norm(embedding
of the next token), norm(last hidden state)]), as vLLM 0.33 makes them (model_executor/models/{deepseek,glm4_moe,qwen3_5}_mtp.py), at
the position of the hidden state (v1/spec_decode/llm_base_proposer.py).

A file has the members of a family's file, without logits, and "draft": the name of the layer.
Needs torch, transformers, safetensors and numpy.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile

import numpy as np

from make_families import CASES, head_amax, model_class, save, saved_shapes, shortest, spread, text_of, values

HERE = pathlib.Path(__file__).resolve().parent
N_TOKENS = 40

# The layer's name, its two norms (of the embedding, of the hidden state), its product, and whether
# position 0 has no embedding.
BEHIND = ("model.layers.3", "{}.enorm", "{}.hnorm", "{}.eh_proj", True)
APART = ("mtp.layers.0", "mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.fc", False)
DRAFTS = {"glm4-moe": BEHIND, "deepseek-v3": BEHIND, "glm4-moe-lite": BEHIND, "qwen3-next": APART, "qwen3.5": APART, "qwen3.5-moe": APART}


def one_layer(config):
    """The config of a model that is the draft layer alone."""
    config = {**config, "num_hidden_layers": 1, "first_k_dense_replace": 0}
    config.pop("mlp_layer_types", None)
    if "full_attention_interval" in config:
        config.update(full_attention_interval=1, layer_types=["full_attention"])
    return config


def rms_norm(x, weight, config):
    plus = 1.0 if config["model_type"].startswith("qwen3") else 0.0
    return x * (x.pow(2).mean(-1, keepdim=True) + config["rms_norm_eps"]).rsqrt() * (weight + plus)


def load(config, arrays, folder):
    import torch

    folder.mkdir()
    save(folder, {name: np.ascontiguousarray(array) for name, array in arrays.items()}, config)
    model, info = model_class(config).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                      output_loading_info=True)
    assert not info["missing_keys"] and not info["mismatched_keys"], info
    return model.eval()


def described(names_and_shapes, config):
    return {name: {"shape": shape, **dict(zip(("base", "amplitude"), spread(name, shape, config)))}
            for name, shape in names_and_shapes.items()}


def compute(name):
    import torch
    import transformers

    config, seed = CASES[name], 1
    if DRAFTS[name] is APART:
        config = {**config, "mtp_num_hidden_layers": 1}
    layer, embedding_norm, hidden_norm, product, masked = (part.format(layer) if isinstance(part, str) else part
                                                           for part in DRAFTS[name] for layer in [DRAFTS[name][0]])
    dim = config["hidden_size"]
    of_model = described(saved_shapes(CASES[name]), config)
    alone = one_layer(CASES[name])
    of_layer = {key: shape for key, shape in saved_shapes(alone).items() if key.startswith("model.layers.0.")}
    draft_names = {key: layer + key[len("model.layers.0"):] for key in of_layer}
    entry = {embedding_norm + ".weight": [dim], hidden_norm + ".weight": [dim], product + ".weight": [dim, 2 * dim]}
    of_draft = described({**{draft_names[key]: shape for key, shape in of_layer.items()}, **entry}, config)
    ids = np.random.default_rng(sum(name.encode())).integers(3, config["vocab_size"], N_TOKENS).tolist()
    arrays = {key: values(key, seed, **tensor) for key, tensor in {**of_model, **of_draft}.items()}
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        folder = pathlib.Path(folder)
        model = load(CASES[name], {key: arrays[key] for key in of_model}, folder / "model")
        hidden = model.model(input_ids=torch.tensor([ids])).last_hidden_state[0, :-1]
        embedded = model.model.embed_tokens(torch.tensor(ids[1:]))
        if masked:
            embedded[0] = 0
        weight = {key: torch.tensor(arrays[key + ".weight"]) for key in (embedding_norm, hidden_norm, product)}
        both = torch.cat([rms_norm(embedded, weight[embedding_norm], config), rms_norm(hidden, weight[hidden_norm], config)], -1)
        shared = {key: array for key, array in arrays.items() if key in of_model and ".layers." not in key}
        drafting = load(alone, {**shared, **{key: arrays[draft_names[key]] for key in of_layer}}, folder / "draft")
        cache = transformers.DynamicCache(config=drafting.config)
        drafting(inputs_embeds=(both @ weight[product].T)[None], past_key_values=cache)
    latent = "kv_lora_rank" in text_of(config)
    names = ("values", "keys") if latent else ("keys", "values")
    k_amax, v_amax = (head_amax(getattr(cache.layers[0], each)[0], config) for each in names)
    return {"made_by": {"torch": torch.__version__, "transformers": transformers.__version__, "numpy": np.__version__},
            "config": config, "seed": seed, "tensors": {**of_model, **of_draft}, "ids": ids, "greedy": [], "draft": layer,
            "k_amax": shortest(k_amax), "v_amax": shortest(v_amax)}


def main():
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(DRAFTS), metavar="CASE", help="default: all")
    for name in parser.parse_args().cases:
        lines = ",\n".join(f'"{key}": {json.dumps(value)}' for key, value in compute(name).items())
        (HERE / "drafts" / f"{name}.json").write_text("{\n" + lines + "\n}\n")
        print(f"{name}: written")


if __name__ == "__main__":
    sys.exit(main())
