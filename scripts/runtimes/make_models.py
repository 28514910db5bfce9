"""Usage: make_models.py FOLDER [FAMILY...]

Makes a tiny model with random weights of each family, as FOLDER/FAMILY, with the newest transformers;
what its layers are, as FOLDER/FAMILY.json. Run by check_runtimes; prints what it could not make.
"""
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

import published_models

HEADS = dict(vocab_size=256, hidden_size=256, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=512, bos_token_id=1, eos_token_id=2, pad_token_id=0)
DENSE = dict(HEADS, intermediate_size=512, num_hidden_layers=2)
EXPERTS = dict(DENSE, head_dim=64, moe_intermediate_size=128)
HYBRID = dict(HEADS, intermediate_size=512, head_dim=64, num_hidden_layers=4, linear_key_head_dim=64, linear_value_head_dim=64,
              linear_num_key_heads=2, linear_num_value_heads=4)
OLDER = dict(vocab_size=256, n_embd=256, n_head=4, n_layer=2, n_positions=512, bos_token_id=1, eos_token_id=2)
MAMBA = dict(HEADS, intermediate_size=512, num_hidden_layers=2, mamba_n_heads=8, mamba_d_head=64, mamba_n_groups=1, mamba_d_state=16,
             mamba_expand=2)
MLA = dict(DENSE, moe_intermediate_size=128, n_routed_experts=8, num_experts_per_tok=2, n_group=1,
           topk_group=1, first_k_dense_replace=1, kv_lora_rank=64, q_lora_rank=64,
           qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64, num_key_value_heads=4)
INDEXER = dict(index_topk=256, index_head_dim=128, index_n_heads=4)
GEMMA4 = dict(DENSE, head_dim=64, global_head_dim=64, sliding_window=128, hidden_size_per_layer_input=0, num_kv_shared_layers=0,
              layer_types=["sliding_attention", "full_attention"])
# Families that are not model types of transformers: the type that makes them, and the type for
# config.json.
AS = {"kimi_k2": ("deepseek_v3", "kimi_k2"), "gemma4_text_experts": ("gemma4_text", "gemma4_text"), "step3p5": ("step3p7", "step3p5")}
FAMILIES = {
    "llama": dict(DENSE, head_dim=64),
    "mistral": dict(DENSE, head_dim=64, sliding_window=None),
    "qwen2": DENSE,
    "qwen2_moe": dict(EXPERTS, num_experts=8, num_experts_per_tok=2,
                      shared_expert_intermediate_size=128),
    "qwen3": dict(DENSE, head_dim=64),
    "qwen3_moe": dict(EXPERTS, num_experts=8, num_experts_per_tok=2),
    "qwen3_5_text": HYBRID,
    "qwen3_5": dict(text_config=HYBRID),
    "qwen3_next": dict(HYBRID, moe_intermediate_size=128, num_experts=8, num_experts_per_tok=2,
                       shared_expert_intermediate_size=128),
    "gpt_oss": dict(DENSE, head_dim=64, num_local_experts=4, num_experts_per_tok=2),
    "laguna": dict(EXPERTS, num_experts=8, num_experts_per_tok=2, shared_expert_intermediate_size=128, sliding_window=128,
                   num_attention_heads_per_layer=[4, 2], layer_types=["full_attention", "sliding_attention"]),
    "mimo_v2_flash": dict(EXPERTS, head_dim=96, v_head_dim=64, n_routed_experts=8, num_experts_per_tok=2, n_group=1, topk_group=1,
                          # The keys of published files, which vLLM reads and transformers keeps.
                          swa_num_attention_heads=4, swa_num_key_value_heads=4, swa_head_dim=96, swa_v_head_dim=64, sliding_window_size=127,
                          hybrid_layer_pattern=[0, 1], moe_layer_freq=[0, 1], rope_theta=5000000.0, swa_rope_theta=10000.0,
                          partial_rotary_factor=0.334, layernorm_epsilon=1e-5, attention_value_scale=0.707, scoring_func="sigmoid",
                          topk_method="noaux_tc", add_swa_attention_sink_bias=True, add_full_attention_sink_bias=False),
    # vLLM has no experts of this kind on a CPU.
    "minimax_m3_vl": dict(
        text_config=dict(DENSE, model_type="minimax_m3_text", head_dim=128, num_local_experts=8, num_experts_per_tok=2,
                         dense_intermediate_size=512, shared_intermediate_size=128, rotary_dim=64, partial_rotary_factor=0.5,
                         hidden_act="swigluoai", layer_types=["full_attention", "minimax_m3_sparse"], mlp_layer_types=["dense", "dense"],
                         index_n_heads=2),
        vision_config=dict(hidden_size=128, intermediate_size=128, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14),
        projector_hidden_size=128, image_token_index=3, video_token_index=4),
    "step3p5": dict(
        text_config=dict(EXPERTS, n_routed_experts=8, num_experts_per_tok=2, share_expert_dim=128, sliding_window=128,
                         num_sliding_attention_heads=2, layer_types=["full_attention", "sliding_attention"],
                         mlp_layer_types=["dense", "sparse"]),
        vision_config=dict(width=128, layers=1, heads=2, image_size=28, patch_size=14), image_token_id=3),
    "muse_glimmer": dict(
        text_config=dict(DENSE, head_dim=64, sliding_window=128, layer_types=["sliding_attention", "full_attention"],
                         layer_rope_theta=[500000.0, 0], rope_parameters=dict(rope_type="default", rope_theta=500000.0)),
        vision_config=dict(hidden_size=128, intermediate_size=128, num_hidden_layers=1, num_attention_heads=2, patch_size=14,
                           pos_emb_height=4, pos_emb_width=4, output_dim=512, adapter_dim=128),  # two keys of vLLM's own
        out_hidden_size=512, projector_hidden_size=128, image_token_id=3, video_token_id=4),
    "muse_spark": dict(
        text_config=dict(DENSE, head_dim=64, sliding_window=128, layer_types=["sliding_attention", "full_attention"],
                         layer_rope_theta=[500000.0, 0], rope_parameters=dict(rope_type="default", rope_theta=500000.0),
                         moe_intermediate_size=128, num_local_experts=8, num_experts_per_tok=2, moe_hidden_size=256, mlp_layer_types=["dense", "sparse"]),
        vision_config=dict(hidden_size=128, intermediate_size=128, num_hidden_layers=1, num_attention_heads=2, patch_size=14,
                           pos_emb_height=4, pos_emb_width=4, output_dim=512, adapter_dim=128),
        audio_config=dict(patch_sizes=[2], hidden_sizes=[128], depths=[1], num_hidden_layers=1, conv_kernel_size=3, out_hidden_size=256),
        out_hidden_size=512, projector_hidden_size=128, image_token_id=3, video_token_id=4, audio_token_id=5),
    "olmo_hybrid": dict(HYBRID, num_attention_heads=4, layer_types=["linear_attention", "linear_attention", "linear_attention", "full_attention"],
                        rope_parameters=dict(rope_type="default", rope_theta=None)),
    "kimi_linear": dict(MLA, model_max_length=512, num_hidden_layers=3, q_lora_rank=None, num_experts=8, num_experts_per_token=2, num_expert_group=1,
                        num_shared_experts=1, mla_use_nope=True,
                        linear_attn_config=dict(full_attn_layers=[2], kda_layers=[1, 3], head_dim=64, num_heads=4, short_conv_kernel_size=4)),
    "axk1": dict(MLA),
    "zamba2": dict(HEADS, num_key_value_heads=4, intermediate_size=512, num_hidden_layers=4, layers_block_type=["mamba", "hybrid", "mamba", "hybrid"],
                   hybrid_layer_ids=[1, 3], num_mem_blocks=1, mamba_d_state=16, mamba_headdim=64, n_mamba_heads=8, adapter_rank=16,
                   use_shared_attention_adapter=True, use_mem_rope=True),
    "jamba": dict(HEADS, intermediate_size=512, num_hidden_layers=4, attn_layer_period=4, attn_layer_offset=1, expert_layer_period=2,
                  expert_layer_offset=1, num_experts=4, num_experts_per_tok=2, mamba_d_state=16),
    "longcat_flash": dict({**HEADS, "num_key_value_heads": 4}, num_layers=2, ffn_hidden_size=512, expert_ffn_hidden_size=128, moe_topk=2, n_routed_experts=8, zero_expert_num=4,
                          kv_lora_rank=64, q_lora_rank=64, qk_nope_head_dim=64, qk_rope_head_dim=32, head_dim=32, v_head_dim=64),
    "bailing_hybrid": dict(MLA, num_hidden_layers=4, layer_group_size=2, head_dim=64),
    "gemma3_text": dict(DENSE, head_dim=64, query_pre_attn_scalar=64),
    "mixtral": dict(DENSE, head_dim=64, num_local_experts=4, num_experts_per_tok=2,
                    sliding_window=None),
    "phi3": dict(DENSE, sliding_window=None),
    "glm4_moe": dict(EXPERTS, n_routed_experts=8, num_experts_per_tok=2, n_shared_experts=1,
                     first_k_dense_replace=1, n_group=1, topk_group=1),
    "nemotron_h": dict(HEADS, head_dim=64, intermediate_size=512, num_hidden_layers=4,
                       hybrid_override_pattern="M*-*", ssm_state_size=16, mamba_num_heads=8,
                       mamba_head_dim=64, n_groups=1),
    "granite": dict(DENSE),
    "deepseek_v2": dict(MLA),
    "deepseek_v3": dict(MLA),
    "kimi_k2": dict(MLA),
    "glm4_moe_lite": dict(MLA, n_shared_experts=1),
    "deepseek_v32": dict(MLA, **INDEXER),
    "glm_moe_dsa": dict(MLA, **INDEXER),
    "granitemoehybrid": dict(MAMBA, layer_types=["mamba", "attention"], num_local_experts=4, num_experts_per_tok=2,
                             shared_intermediate_size=128),
    "bamba": dict(MAMBA, attn_layer_indices=[1], attn_rotary_emb=32),
    "falcon_h1": dict(MAMBA, head_dim=64, mamba_d_ssm=512),
    "gemma4_text": dict(GEMMA4),
    "gemma4_text_experts": dict(GEMMA4, enable_moe_block=True, num_experts=4, top_k_experts=2, moe_intermediate_size=128),
    "gpt2": OLDER,
    "gpt_bigcode": OLDER,
    "gpt_neox": dict(DENSE, num_key_value_heads=4),
    "falcon": dict(HEADS, num_hidden_layers=2, num_kv_heads=2, new_decoder_architecture=True),
}


def write_published_step(saved, folder):
    """The language model alone, with the keys of published configs: vLLM reads no others."""
    text = saved["text_config"]
    for key in ("per_layer_config", "rope_parameters", "mlp_layer_types", "num_sliding_attention_heads"):
        text.pop(key)
    heads = dict(attention_type="sliding_attention", num_attention_heads=2, num_attention_groups=2, head_dim=64)
    text.update(architectures=["Step3p5ForCausalLM"], torch_dtype="bfloat16", num_attention_groups=text.pop("num_key_value_heads"),
                moe_num_experts=text.pop("n_routed_experts"), moe_top_k=text.pop("num_experts_per_tok"), moe_layers_enum="1",
                moe_router_activation="sigmoid", attention_other_setting=heads, rope_theta=[5000000.0, 10000.0],
                partial_rotary_factors=[0.5, 1.0], use_head_wise_attn_gate=True, use_moe_router_bias=True)
    path = folder / "model.safetensors"
    tensors = {name: tensor for name, tensor in load_file(path).items() if not name.startswith("vi")}
    save_file(tensors, path, metadata={"format": "pt"})
    return text


def write_published_m3(saved, folder):
    """With the keys of published configs: vLLM reads no others."""
    saved["text_config"].update(
        model_type="minimax_m3_text", hidden_act="swigluoai", moe_layer_freq=[0, 0], partial_rotary_factor=0.5, rope_theta=5000000.0,
        sparse_attention_config=dict(use_sparse_attention=True, sparse_index_dim=128, sparse_num_index_heads=2, sparse_topk_blocks=16,
                                     sparse_block_size=128, sparse_disable_index_value=[0, 1], sparse_score_type="max",
                                     sparse_init_block=0, sparse_local_block=1, sparse_attention_freq=[0, 1]))
    saved["vision_config"]["img_token_compression_config"] = dict(temporal_patch_size=2, spatial_merge_size=2)
    return saved


def rename_tensors(folder, renamed):
    """As published files name them: transformers saves names that vLLM does not load."""
    path = folder / "model.safetensors"
    save_file({renamed(name): tensor for name, tensor in load_file(path).items()}, path, metadata={"format": "pt"})


def write_published_olmo(saved, folder):
    rename_tensors(folder, lambda name: name.replace("attention_layer_norm", "input_layernorm")
                   .replace("feedforward_layer_norm", "post_attention_layernorm"))
    return saved


def write_published_kimi(saved, folder):
    rename_tensors(folder, lambda name: name.replace(".layers.0.block_sparse_moe.", ".layers.0.mlp."))
    return saved


def write_published_ling(saved, folder):
    """With the keys and names of published files: vLLM reads no others."""
    saved.update(architectures=["BailingMoeV3ForCausalLM"], n_group=saved.pop("num_expert_group"), norm_topk_prob=saved.pop("moe_renormalize"),
                 num_experts_per_tok=saved.pop("num_experts_per_token"), max_position_embeddings=saved.pop("model_max_length"),
                 head_dim=saved.pop("linear_head_dim"), no_kda_lora=True, gated_attention_proj_granularity_type="head_wise",
                 score_function="sigmoid", moe_shared_expert_intermediate_size=saved["moe_intermediate_size"], use_bias=False, use_qkv_bias=False)
    rename_tensors(folder, lambda name: name.replace("attention.dense", "attention.o_proj") if ".layers.0." in name or ".layers.2." in name else name)
    return saved


def write_published_longcat(saved, folder):
    """With keys of published files, and without the matrices of experts that have none there."""
    saved.update(zero_expert_type="identity", mla_scale_q_lora=True, mla_scale_kv_lora=True)
    path = folder / "model.safetensors"
    idle = tuple(f".mlp.experts.{number}." for number in range(8, 12))
    save_file({name: tensor for name, tensor in load_file(path).items() if not any(part in name for part in idle)}, path, metadata={"format": "pt"})
    return saved


def write_published_spark(saved, folder):
    """With a key that vLLM reads and transformers does not save."""
    saved["text_config"]["num_shared_experts"] = 0
    return saved


PUBLISHED = {"muse_spark": write_published_spark, "longcat_flash": write_published_longcat, "bailing_hybrid": write_published_ling, "step3p5": write_published_step, "minimax_m3_vl": write_published_m3, "olmo_hybrid": write_published_olmo,
             "kimi_linear": write_published_kimi}


def make(family, folder):
    torch.manual_seed(7)
    values = FAMILIES[family]
    made_as, model_type = AS.get(family, (family, family))
    config = AutoConfig.for_model(made_as, **values)
    auto = AutoModelForImageTextToText if hasattr(config, "text_config") else AutoModelForCausalLM
    model = auto.from_config(config).to(torch.bfloat16)
    model.save_pretrained(folder)
    # Adds the keys of configs from before transformers 5 to those that it writes.
    path = folder / "config.json"
    saved = json.loads(path.read_text())
    if family in PUBLISHED:
        saved = PUBLISHED[family](saved, folder)
    saved["model_type"] = model_type
    for part in [saved, saved.get("text_config")]:
        if part is None:
            continue
        if "dtype" in part:
            part.setdefault("torch_dtype", part["dtype"])
        if "linear_key_head_dim" in part:
            part.setdefault("full_attention_interval", 4)
        rope = part.get("rope_parameters") or {}
        if isinstance(rope.get("rope_theta"), (int, float)):
            part.setdefault("rope_theta", rope["rope_theta"])
    path.write_text(json.dumps(saved, indent=2))
    names = {name for name, _ in model.named_modules()}
    text = getattr(config, "text_config", config)
    # Modules of attention. Nemotron-H has a mixer in every layer, so its name alone is not enough.
    latent = "kv_lora_rank" in values
    ends = ("self_attn.kv_b_proj",) if latent else ("self_attn", "mixer.k_proj", "attn", "attention", "self_attention")
    cached = [layer for layer in range(text.num_hidden_layers)
              if any(name.endswith(f".{stack}.{layer}.{end}")
                     for name in names for stack in ("layers", "h") for end in ends)]
    if family == "longcat_flash":  # two caches for each of its layers
        cached = list(range(text.num_hidden_layers))
    if family == "zamba2":  # the blocks that layers share have one name
        cached = values["hybrid_layer_ids"]
    one_head = latent or getattr(text, "multi_query", False) and family == "gpt_bigcode"
    kv_heads = 1 if one_head else values.get("num_kv_heads") or getattr(
        text, "num_key_value_heads", None) or text.num_attention_heads
    Path(str(folder) + ".json").write_text(
        json.dumps({"model_type": model_type, "layers": text.num_hidden_layers, "cached": cached,
                    "kv_heads": kv_heads, "latent": latent}))


def main():
    out = Path(sys.argv[1])
    for family in sys.argv[2:] or [*FAMILIES, *published_models.MODELS]:
        try:
            if family in published_models.MODELS:
                described = published_models.make(family, out / family)
                (out / f"{family}.json").write_text(json.dumps(described))
            else:
                make(family, out / family)
        except Exception as error:
            print(f"{family}: {type(error).__name__}: {str(error)[:300]}", flush=True)


if __name__ == "__main__":
    main()
