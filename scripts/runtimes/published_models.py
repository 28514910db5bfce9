"""Models of families whose published form transformers cannot save: tensors by their names and shapes."""
import json

import torch
from safetensors.torch import save_file

BASE = dict(vocab_size=256, hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0, rms_norm_eps=1e-6, rope_theta=10000.0,
            rope_scaling=None, hidden_act="silu", tie_word_embeddings=False, torch_dtype="bfloat16")
LING = dict(BASE, head_dim=64, use_qk_norm=True, use_rmsnorm=True, use_qkv_bias=False, use_bias=False, num_experts=8, num_shared_experts=1,
            num_experts_per_tok=2, moe_intermediate_size=128, moe_shared_expert_intermediate_size=128, first_k_dense_replace=1, n_group=1,
            topk_group=1, norm_topk_prob=True, routed_scaling_factor=1.5, score_function="sigmoid", router_dtype="fp32",
            moe_router_enable_expert_bias=True, embedding_dropout=0.0, output_dropout=0.0, attention_dropout=0.0, partial_rotary_factor=0.5,
            num_nextn_predict_layers=0)


def feed_forward(name, hidden, width):
    return {f"{name}.gate_proj.weight": [width, hidden], f"{name}.up_proj.weight": [width, hidden], f"{name}.down_proj.weight": [hidden, width]}


def mixture(name, config):
    hidden, width = config["hidden_size"], config["moe_intermediate_size"]
    shapes = {f"{name}.gate.weight": [config["num_experts"], hidden], f"{name}.gate.expert_bias": [config["num_experts"]],
              **feed_forward(f"{name}.shared_experts", hidden, width)}
    for expert in range(config["num_experts"]):
        shapes |= feed_forward(f"{name}.experts.{expert}", hidden, width)
    return shapes


def full_attention(name, config):
    hidden, size = config["hidden_size"], config["head_dim"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    return {f"{name}.query_key_value.weight": [(heads + 2 * kv_heads) * size, hidden], f"{name}.query_layernorm.weight": [size],
            f"{name}.key_layernorm.weight": [size], f"{name}.dense.weight": [hidden, heads * size]}


def lightning_attention(name, config):
    width = config["num_attention_heads"] * config["head_dim"]
    alike = {**config, "num_key_value_heads": config["num_attention_heads"]}
    return {**full_attention(name, alike), f"{name}.g_proj.weight": [width, config["hidden_size"]], f"{name}.g_norm.weight": [width]}


def latent_attention(name, config):
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    rank, queries, rotated, plain, value = (config[key] for key in ("kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"))
    return {f"{name}.q_a_proj.weight": [queries, hidden], f"{name}.q_a_layernorm.weight": [queries],
            f"{name}.q_b_proj.weight": [heads * (plain + rotated), queries], f"{name}.kv_a_proj_with_mqa.weight": [rank + rotated, hidden],
            f"{name}.kv_a_layernorm.weight": [rank], f"{name}.kv_b_proj.weight": [heads * (plain + value), rank],
            f"{name}.dense.weight": [hidden, heads * value]}


def ling(config, attention_of):
    """attention_of: a function for each layer's number"""
    hidden = config["hidden_size"]
    shapes = {"model.word_embeddings.weight": [config["vocab_size"], hidden], "model.norm.weight": [hidden],
              "lm_head.weight": [config["vocab_size"], hidden]}
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}"
        shapes |= {f"{name}.input_layernorm.weight": [hidden], f"{name}.post_attention_layernorm.weight": [hidden]}
        shapes |= attention_of(layer)(f"{name}.attention", config)
        shapes |= (mixture(f"{name}.mlp", config) if layer >= config["first_k_dense_replace"] else
                   feed_forward(f"{name}.mlp", hidden, config["intermediate_size"]))
    return shapes


LING2 = dict(LING, architectures=["BailingMoeV2ForCausalLM"], model_type="bailing_moe")
SARVAM = dict(LING, architectures=["SarvamMoEForCausalLM"], model_type="sarvam_moe")
LING25 = dict(LING, architectures=["BailingMoeV2_5ForCausalLM"], model_type="bailing_hybrid", num_hidden_layers=4, num_key_value_heads=4,
              layer_group_size=2, group_norm_size=2, linear_silu=False, rope_interleave=True, kv_lora_rank=64, q_lora_rank=64, qk_nope_head_dim=64,
              qk_rope_head_dim=32, qk_head_dim=96, v_head_dim=64)


def is_latent(layer):
    return (layer + 1) % LING25["layer_group_size"] == 0


# The config and tensors of each, and its layers with a cache; None for all.
MODELS = {
    "bailing_moe": (LING2, ling(LING2, lambda _: full_attention), None),
    "sarvam_moe": (SARVAM, ling(SARVAM, lambda _: full_attention), None),
    "bailing_hybrid_2_5": (LING25, ling(LING25, lambda layer: latent_attention if is_latent(layer) else lightning_attention),
                           [layer for layer in range(LING25["num_hidden_layers"]) if is_latent(layer)]),
}


def make(family, folder):
    """Returns what make_models.py writes about it."""
    config, shapes, cached = MODELS[family]
    torch.manual_seed(7)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: torch.randn(shape) * 0.02 + (len(shape) == 1) for name, shape in shapes.items()}
    save_file({name: tensor.to(torch.bfloat16) for name, tensor in tensors.items()}, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    layers, latent = config["num_hidden_layers"], "kv_lora_rank" in config
    return {"model_type": config["model_type"], "layers": layers, "cached": list(range(layers)) if cached is None else cached,
            "kv_heads": 1 if latent else config["num_key_value_heads"], "latent": latent}
