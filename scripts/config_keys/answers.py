"""Answers of transformers: what a config class fills in, and what a model in a folder computes.

    python answers.py     a line of JSON for each line of JSON on standard input

Runs in a virtual environment with transformers, torch and numpy.
"""
import json
import logging
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "tests/golden"))
import make_families  # noqa: E402


def filled(config):
    """The keys of the class of this config, without what all classes have; {} where there is no class, or no model."""
    import transformers
    from transformers import PretrainedConfig
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    models = config.get("architectures", [])
    if config["model_type"] not in CONFIG_MAPPING or not all(hasattr(transformers, name) for name in models):
        return {}
    whole = CONFIG_MAPPING[config["model_type"]](**config).to_dict()
    common = set(PretrainedConfig().to_dict()) - {"tie_word_embeddings"}
    return {key: value for key, value in whole.items() if key not in common}


def amax_of(cache):
    keys = [getattr(layer, "keys", None) for layer in cache.layers]
    return [float(each.abs().max()) for each in keys if each is not None and each.numel() > 0]


# Parts beside the language model that goldens leave out, and text does not need.
LEFT_OUT = ("embed_tokens_extend.", "vision_tower.", "vision_model.", "audio_tower.", "multi_modal_projector.", "vision_final_layernorm", *make_families.state_families.DERIVED)


def computed(folder, ids):
    """The negative log likelihood of a token of a text, and amax of K in each layer that has a cache."""
    import torch
    import transformers

    config = json.loads((Path(folder) / "config.json").read_text())
    attention = "sdpa" if config.get("alibi") else "eager"  # see make_families.py
    model, info = make_families.model_class(config).from_pretrained(
        folder, dtype=torch.float32, attn_implementation=attention, experts_implementation="eager", output_loading_info=True)
    missing = sorted(name for name in map(str, info["missing_keys"]) if not any(part in name for part in LEFT_OUT))
    if missing or info["mismatched_keys"]:
        raise ValueError(f"tensors are missing or have other shapes: {missing[:2]}")
    one_row = config["model_type"] == "deepseek_v4"
    kinds = make_families.has_layers_of_kinds(config)
    cache, seen = make_families.watched_cache(model) if one_row else (None, None)
    if not one_row:
        cache = make_families.whole_cache(model) if kinds else transformers.DynamicCache()
    with torch.no_grad():
        logits = model.eval()(input_ids=torch.tensor([ids]), past_key_values=cache).logits[0].float()
    nll = torch.nn.functional.cross_entropy(logits[:-1].double(), torch.tensor(ids[1:]), reduction="mean")
    latent = "kv_lora_rank" in make_families.text_of(config)  # its cache holds the rotated part as values
    if one_row:
        return {"nll": float(nll), "k_amax": [float(each[0]) for each in make_families.row_amax(cache, seen)[0]]}
    return {"nll": float(nll), "k_amax": [] if latent else amax_of(cache)}


def answer(question):
    try:
        if "fill" in question:
            return {"filled": filled(question["fill"])}
        return computed(question["folder"], question["ids"])
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def main():
    import torch
    import transformers

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    transformers.logging.disable_progress_bar()
    out = sys.stdout
    sys.stdout = sys.stderr  # what models print is no answer
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line)), default=str), file=out, flush=True)


if __name__ == "__main__":
    main()
