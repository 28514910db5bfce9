"""Cases of make_families.py for families of src/config/families/rows whose layers keep a state."""

from row_families import SEVEN, TIED, UNTIED, family, without

LINEAR, FULL = "linear_attention", "full_attention"
# Published files have no base, and nothing rotates.
OLMO_HYBRID = without(family("OlmoHybridForCausalLM", "olmo_hybrid", num_hidden_layers=4, layer_types=[LINEAR, LINEAR, LINEAR, FULL],
                             linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=10, linear_value_head_dim=6,
                             linear_conv_kernel_dim=4, linear_allow_neg_eigval=True, linear_a_log_min=0.0, linear_a_log_max=16.0,
                             linear_dt_min=0.001, linear_dt_max=0.1, linear_dt_init_floor=0.0001, rope_parameters={"rope_type": "default", "rope_theta": None}, attention_bias=False,
                             pad_token_id=0, **UNTIED), "rope_theta")

KIMI_LINEAR = without(family("KimiLinearForCausalLM", "kimi_linear", num_hidden_layers=4, num_key_value_heads=4, head_dim=18,
                             model_max_length=64, kv_lora_rank=24, q_lora_rank=None, qk_nope_head_dim=10, qk_rope_head_dim=8, v_head_dim=12,
                             mla_use_nope=True, num_experts=6, num_experts_per_token=2, num_shared_experts=2, moe_intermediate_size=24,
                             moe_layer_freq=1, moe_renormalize=True, moe_router_activation_func="sigmoid", first_k_dense_replace=1,
                             num_expert_group=1, topk_group=1, use_grouped_topk=True, routed_scaling_factor=1.5, num_nextn_predict_layers=0,
                             rope_scaling=None, pad_token_id=0,
                             linear_attn_config={"full_attn_layers": [3], "kda_layers": [1, 2, 4], "head_dim": 6, "num_heads": 4,
                                                 "short_conv_kernel_size": 4}, **UNTIED),
                      "max_position_embeddings")

K3_VISION = {"model_type": "kimi_k3_vision", "vt_hidden_size": 8, "vt_intermediate_size": 8, "vt_num_hidden_layers": 1, "vt_num_attention_heads": 1}
# A number for each row of a head's state comes before those of the heads: heads are fewer.
K3 = {**without(KIMI_LINEAR, "architectures"), "num_hidden_layers": 5, "q_lora_rank": 20, "hidden_act": "situ", "activation_situ_beta": 1.4,
      "activation_situ_linear_beta": 0.9, "mla_use_output_gate": True, "routed_expert_hidden_size": 28, "latent_moe_use_norm": True,
      "attn_res_block_size": 2, "rms_norm_eps": 0.02,
      "linear_attn_config": {**KIMI_LINEAR["linear_attn_config"], "full_attn_layers": [2, 4], "kda_layers": [1, 3, 5], "use_full_rank_gate": True,
                             "gate_lower_bound": -1.5}}


def kimi_k3(text):
    return {"architectures": ["KimiK3ForConditionalGeneration"], "model_type": "kimi_k3", "torch_dtype": "float32", "text_config": text,
            "vision_config": K3_VISION, "media_placeholder_token_id": 0, **UNTIED}


# Keys of published files, and of those that transformers saves.
LING3 = family("BailingMoeV3ForCausalLM", "bailing_hybrid", num_hidden_layers=4, num_key_value_heads=4, head_dim=12, layer_group_size=2,
               rope_theta=500.0, rotary_dim=6, partial_rotary_factor=0.5, rope_interleave=True, kv_lora_rank=24, q_lora_rank=None, qk_nope_head_dim=10,
               qk_rope_head_dim=6, qk_head_dim=16, v_head_dim=14, n_group=3, topk_group=2, num_experts=6, num_experts_per_tok=2,
               num_shared_experts=1, moe_intermediate_size=24, moe_shared_expert_intermediate_size=24, first_k_dense_replace=1,
               routed_scaling_factor=1.5, norm_topk_prob=True, score_function="sigmoid", topk_method="noaux_tc", router_dtype="fp32",
               moe_router_enable_expert_bias=True, gated_attention_proj_granularity_type="head_wise", no_kda_lora=True, kda_safe_gate=True,
               kda_lower_bound=-1.5, short_conv_kernel_size=4, linear_silu=True, group_norm_size=1, num_kv_heads_for_linear_attn=0, use_bias=False,
               use_qkv_bias=False, expert_swiglu_limit_list=None, share_expert_swiglu_limit_list=[0] * 4, use_mla_nope=False, use_qk_norm=True, use_rmsnorm=True,
               max_window_layers=20, moe_layer_freq=1, num_nextn_predict_layers=1, pad_token_id=0, **UNTIED)
LING25 = family("BailingMoeV2_5ForCausalLM", "bailing_hybrid", num_hidden_layers=4, num_key_value_heads=4, head_dim=12, layer_group_size=2,
                group_norm_size=2, linear_silu=False, rope_theta=500.0, partial_rotary_factor=0.5, rope_interleave=True, kv_lora_rank=24, q_lora_rank=20,
                qk_nope_head_dim=10, qk_rope_head_dim=6, qk_head_dim=16, v_head_dim=14, n_group=3, topk_group=2, num_experts=6, num_experts_per_tok=2,
                num_shared_experts=1, moe_intermediate_size=24, moe_shared_expert_intermediate_size=24, first_k_dense_replace=1,
                routed_scaling_factor=1.5, norm_topk_prob=True, score_function="sigmoid", scoring_func="sigmoid", topk_method="noaux_tc",
                router_dtype="fp32", moe_router_enable_expert_bias=True, seq_aux=True, use_bias=False, use_qkv_bias=False, use_qk_norm=True,
                use_rmsnorm=True, embedding_dropout=0.0, output_dropout=0.0, attention_dropout=0.0, output_router_logits=False, rope_scaling=None,
                max_window_layers=20, mtp_loss_scaling_factor=0, num_nextn_predict_layers=1, pad_token_id=0, **UNTIED)
LING3_SAVED = {**without(LING3, "max_position_embeddings", "n_group", "num_experts_per_tok", "norm_topk_prob", "num_shared_experts", "rotary_dim",
                         "partial_rotary_factor", "rope_interleave", "score_function", "topk_method", "router_dtype", "moe_router_enable_expert_bias",
                         "gated_attention_proj_granularity_type", "no_kda_lora", "linear_silu", "group_norm_size", "num_kv_heads_for_linear_attn",
                         "use_bias", "use_qkv_bias", "use_mla_nope", "use_qk_norm", "use_rmsnorm", "max_window_layers", "moe_layer_freq", "moe_shared_expert_intermediate_size", "expert_swiglu_limit_list",
                         "share_expert_swiglu_limit_list", "first_k_dense_replace", "torch_dtype"),
               "architectures": ["BailingHybridForCausalLM"], "dtype": "float32", "model_max_length": 64, "num_expert_group": 3, "moe_renormalize": True,
               "num_experts_per_token": 3, "num_shared_experts": 2, "head_dim": 6, "linear_head_dim": 10, "linear_num_heads": 4, "linear_conv_kernel_dim": 3,
               "mlp_layer_types": ["sparse", "dense", "sparse", "sparse"], "layer_types": [LINEAR, FULL] * 2, "attention_bias": False,
               "pretraining_tp": 1, "mtp_loss_scaling_factor": 0.0, "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
               "transformers_version": "5.24.0"}

CONV, WINDOW = "conv", "sliding_attention"
LFM3 = without(family("Lfm3ForCausalLM", "lfm3", norm_eps=0.02, num_hidden_layers=5, head_dim=12, conv_L_cache=7, conv_bias=False, sliding_window=7,
                      layer_types=[CONV, CONV, FULL, CONV, WINDOW], use_sandwich_norm=True, use_attention_gate=True, pad_token_id=0, **TIED),
               "rms_norm_eps", "rope_theta", "hidden_act")

# Buffers that transformers makes from the config. Files may have them.
DERIVED = ("ple_embedding.layer_multipliers", "ple_embedding.ngram_heads_vocab_sizes", "ple_embedding.ngram_heads_offsets", "self_attn.slope_rate",
           "self_attn.query_decay", "self_attn.key_decay", "self_attn.diagonal_decay")
QWEN4_EXP = without(family("Qwen4ExpForCausalLM", "qwen4_exp_text", num_hidden_layers=4, layer_types=[LINEAR, "indexed_attention", LINEAR, FULL],
                           head_dim=16, eos_token_id=[46, 2], linear_conv_kernel_dim=4, linear_key_head_dim=10, linear_value_head_dim=6,
                           linear_num_key_heads=2, linear_num_value_heads=4, moe_intermediate_size=24, shared_expert_intermediate_size=20,
                           num_experts=6, num_experts_per_tok=2, norm_topk_prob=True, attention_bias=False, attn_output_gate=True,
                           mamba_ssm_dtype="float32", hc_count=4, hc_lowrank=10, ple_layer_ids=[3], ple_embed_dim=12, ple_conv_kernel_size=4, ngram_size=3,
                           heads_per_ngram=2, ngram_vocab_size_base=50, make_ngram_vocab_size_divisible_by=8, seed=1234, split_ngram_parts=4,
                           indexer_n_heads=12, indexer_kv_heads=1, indexer_head_dim=10, indexer_budget=12, indexer_compress_ratio=4,
                           rope_parameters={"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25,
                                            "mrope_interleaved": True, "mrope_section": [1, 1, 0]}, **UNTIED), "rope_theta", "intermediate_size")
QWEN4_EXP_SEVEN = {**without(QWEN4_EXP, "layer_types"), **SEVEN, "hidden_size": 35, "head_dim": 8, "num_hidden_layers": 4, "full_attention_interval": 2, "hc_count": 3,
                   "hc_lowrank": 7, "ple_layer_ids": [3, 1], "ple_embed_dim": 9, "ple_conv_kernel_size": 2, "ngram_size": 4, "heads_per_ngram": 1,
                   "ngram_vocab_size_base": 30, "make_ngram_vocab_size_divisible_by": 3, "seed": 77, "split_ngram_parts": 3, "output_gate_type": "sigmoid",
                   "norm_topk_prob": False, "indexer_n_heads": 11, "indexer_head_dim": 8, "indexer_budget": 15, "indexer_compress_ratio": 5,
                   "linear_num_key_heads": 1, "linear_num_value_heads": 3, "num_experts_per_tok": 3}
QWEN4_EXP_PLAIN = {**without(QWEN4_EXP, "torch_dtype", "ple_layer_ids", "norm_topk_prob", "attn_output_gate", "mamba_ssm_dtype", "hc_count"), "dtype": "float32",
                   "num_hidden_layers": 2, "layer_types": [LINEAR, "qwen_sparse_attention"], "num_key_value_heads": 4, "hidden_size": 24, "head_dim": 12,
                   "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5}, "indexer_head_dim": 6,
                   "indexer_budget": 4, "indexer_compress_ratio": 2, **TIED}

LOCAL, WHOLE = "hybrid_sliding", "hybrid"
INKLING = without(family("InklingForCausalLM", "inkling_text", num_hidden_layers=4, layer_types=[LOCAL, WHOLE, LOCAL, WHOLE], head_dim=12,
                         mlp_layer_types=["dense", "sparse", "sparse", "sparse"], swa_num_attention_heads=6, swa_num_key_value_heads=3, swa_head_dim=8,
                         sliding_window_size=7, d_rel=5, rel_extent=16, log_scaling_n_floor=8, log_scaling_alpha=0.4, conv_kernel_size=4,
                         moe_intermediate_size=24, n_routed_experts=6, num_experts_per_tok=2, n_shared_experts=2, route_scale=1.5,
                         logits_mup_width_multiplier=1.7, unpadded_vocab_size=None, pad_token_id=0, **UNTIED), "rope_theta")
# Keys of published files.
INKLING_SEVEN = {**without(INKLING, "layer_types", "mlp_layer_types", "conv_kernel_size", "moe_intermediate_size", "max_position_embeddings",
                           "log_scaling_n_floor", "log_scaling_alpha", "num_hidden_layers"),
                 **SEVEN, "num_hidden_layers": 3, "hidden_size": 35, "vocab_size": 83, "unpadded_vocab_size": 77, "local_layer_ids": [1], "dense_mlp_idx": 1,
                 "dense_intermediate_size": 40, "intermediate_size": 18, "sconv_kernel_size": 3, "model_max_length": 64, "swa_num_attention_heads": 3,
                 "swa_num_key_value_heads": 1, "swa_head_dim": 10, "d_rel": 3, "rel_extent": 25, "n_shared_experts": 1, "num_experts_per_tok": 3,
                 "route_scale": 0.8, "shared_expert_sink": True}
# The defaults of transformers.
INKLING_PLAIN = {**without(INKLING, "torch_dtype", "layer_types", "mlp_layer_types", "sliding_window_size", "d_rel", "rel_extent", "log_scaling_alpha",
                           "conv_kernel_size", "unpadded_vocab_size", "hidden_act"),
                 "dtype": "float32", "num_hidden_layers": 6, "hidden_size": 24, "num_key_value_heads": 4, "swa_num_attention_heads": 4,
                 "log_scaling_n_floor": 3, "swa_num_key_value_heads": 2, "moe_intermediate_size": 20, "n_routed_experts": 4}

ZAMBA2 = family("Zamba2ForCausalLM", "zamba2", num_hidden_layers=4, num_key_value_heads=4, hidden_act="gelu", intermediate_size=40, num_mem_blocks=2,
                layers_block_type=["hybrid", "mamba", "hybrid", "hybrid"], hybrid_layer_ids=[0, 2, 3], attention_head_dim=16,
                attention_hidden_size=64, use_shared_attention_adapter=True, adapter_rank=5, use_mem_rope=True, use_long_context=False,
                rope_theta=500.0, add_bias_linear=False, use_conv_bias=True, n_mamba_heads=4, mamba_d_state=6, mamba_ngroups=2, mamba_expand=2,
                mamba_headdim=16, mamba_d_conv=4, chunk_size=256, time_step_min=0.001, time_step_max=0.1, time_step_floor=0.0001,
                use_mem_eff_path=False, num_logits_to_keep=1, pad_token_id=0, **TIED)
JAMBA = without(family("JambaForCausalLM", "jamba", num_hidden_layers=4, attn_layer_period=4, attn_layer_offset=2, expert_layer_period=2, expert_layer_offset=1,
                       num_experts=5, num_experts_per_tok=2, mamba_d_state=5, mamba_d_conv=4, mamba_expand=2, mamba_dt_rank="auto", mamba_conv_bias=True,
                       mamba_proj_bias=False, hidden_act="silu", rms_norm_eps=0.03, pad_token_id=0, **UNTIED), "rope_theta")
SLIDING, SPARSE, HEAVY = "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"
# Keys that transformers saves.
DEEPSEEK_V4 = {**without(family("DeepseekV4ForCausalLM", "deepseek_v4", num_hidden_layers=4, num_key_value_heads=1, head_dim=14, q_lora_rank=20,
                                partial_rotary_factor=6 / 14, qk_rope_head_dim=6, o_groups=2, o_lora_rank=5, n_routed_experts=6, num_experts_per_tok=2,
                                n_shared_experts=1, moe_intermediate_size=24, routed_scaling_factor=1.5, norm_topk_prob=True, scoring_func="sqrtsoftplus",
                                swiglu_limit=0.8, layer_types=[SLIDING, SPARSE, HEAVY, SPARSE], compress_rates={SPARSE: 4, HEAVY: 6},
                                mlp_layer_types=["hash_moe", "moe", "moe", "moe"], sliding_window=7, index_n_heads=12, index_head_dim=10, index_topk=3,
                                hc_mult=4, hc_sinkhorn_iters=20, hc_eps=0.01, compress_rope_theta=300.0, num_nextn_predict_layers=1,
                                attention_bias=False, mlp_bias=False, rope_parameters={
                                    "main": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 6 / 14},
                                    "compress": {"rope_type": "yarn", "rope_theta": 300.0, "partial_rotary_factor": 6 / 14, "factor": 4.0,
                                                 "original_max_position_embeddings": 16, "beta_fast": 32.0, "beta_slow": 1.0,
                                                 "attention_factor": 1.2}}, pad_token_id=0, **UNTIED), "intermediate_size")}
# Keys of published files.
DEEPSEEK_V4_PUBLISHED = {**without(DEEPSEEK_V4, "layer_types", "mlp_layer_types", "compress_rates", "partial_rotary_factor", "rope_parameters"),
                         "num_attention_heads": 6, "hidden_size": 36, "num_hidden_layers": 3, "compress_ratios": [4, 4, 0, 0], "num_hash_layers": 2,
                         "num_experts_per_tok": 3, "o_groups": 3, "hc_mult": 3, "hc_sinkhorn_iters": 4, "index_topk": 5, "index_n_heads": 11,
                         "topk_method": "noaux_tc", "rope_theta": 10000.0, "rope_scaling": {
                             "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 32, "beta_slow": 1}}
# The defaults of transformers.
DEEPSEEK_V4_PLAIN = {**without(DEEPSEEK_V4, "torch_dtype", "layer_types", "mlp_layer_types", "compress_rates", "partial_rotary_factor", "rope_parameters",
                               "norm_topk_prob", "scoring_func", "hc_sinkhorn_iters", "hidden_act"),
                     "dtype": "float32", "num_hidden_layers": 5, "num_attention_heads": 7, "head_dim": 12, "o_groups": 7, "o_lora_rank": 3, "num_hash_layers": 0,
                     "compress_rate_csa": 2, "compress_rate_hca": 9, "sliding_window": 11, "hc_mult": 2, "index_head_dim": 8, "index_topk": 40,
                     "swiglu_limit": 10.0, "rope_theta": 20.0, **TIED}
MINIMAX = family("MiniMaxForCausalLM", "minimax", num_hidden_layers=4, layer_types=[LINEAR, FULL, LINEAR, FULL], head_dim=12, num_local_experts=5,
                 num_experts_per_tok=2, block_size=16, full_attn_alpha_factor=1.7, full_attn_beta_factor=0.8, linear_attn_alpha_factor=1.3,
                 linear_attn_beta_factor=1.4, mlp_alpha_factor=1.5, mlp_beta_factor=0.7, sliding_window=None, pad_token_id=0, **UNTIED)
# Keys of published files, and those of transformers for the same numbers.
MINIMAX_FACTORS = {"layernorm_full_attention_alpha": "full_attn_alpha_factor", "layernorm_full_attention_beta": "full_attn_beta_factor",
                   "layernorm_linear_attention_alpha": "linear_attn_alpha_factor", "layernorm_linear_attention_beta": "linear_attn_beta_factor",
                   "layernorm_mlp_alpha": "mlp_alpha_factor", "layernorm_mlp_beta": "mlp_beta_factor"}
MINIMAX_TEXT_01 = family("MiniMaxText01ForCausalLM", "minimax_text_01", num_hidden_layers=4, attn_type_list=[0, 0, 0, 1], head_dim=16, rotary_dim=8,
                         num_local_experts=4, num_experts_per_tok=2, layernorm_full_attention_alpha=3.5565588200778455, layernorm_full_attention_beta=1.0,
                         layernorm_linear_attention_alpha=3.5565588200778455, layernorm_linear_attention_beta=1.0,
                         layernorm_mlp_alpha=3.5565588200778455, layernorm_mlp_beta=1.0, postnorm=True, shared_intermediate_size=0,
                         shared_moe_mode="sigmoid", sliding_window=None, router_aux_loss_coef=0.001, router_jitter_noise=0.0, **UNTIED)
MINIMAX_M1 = {**MINIMAX_TEXT_01, "architectures": ["MiniMaxM1ForCausalLM"], "model_type": "minimax_m1", "num_hidden_layers": 3, "attn_type_list": [1, 0, 1],
              "head_dim": 10, "rotary_dim": 6, "num_attention_heads": 8, "num_local_experts": 6, "num_experts_per_tok": 3}

INDEXED = "indexed_attention"
GLM5_NEXT = family("Glm5NextForConditionalGeneration", "glm5_next_text", num_hidden_layers=4, num_key_value_heads=4, layer_types=[LINEAR, INDEXED] * 2,
                   kv_lora_rank=24, q_lora_rank=20, qk_rope_head_dim=0, qk_nope_head_dim=10, v_head_dim=14, hidden_act="silu", rms_norm_eps=0.03,
                   mlp_layer_types=["dense", "sparse", "sparse", "sparse"], n_shared_experts=1, n_routed_experts=6, num_experts_per_tok=2,
                   moe_intermediate_size=24, routed_scaling_factor=1.5, norm_topk_prob=True, n_group=1, topk_group=1, attention_bias=False,
                   index_topk=12, index_head_dim=10, index_n_heads=12, index_kpool=4, index_kpool_always_select_tail=True, linear_head_dim=6,
                   linear_num_heads=4, linear_conv_kernel_dim=4, linear_lower_bound=-1.5, hc_mult=4, hc_eps=0.01, hc_sinkhorn_iters=20,
                   swiglu_limit=0.8, pad_token_id=0, **UNTIED)
GLM5_NEXT_SEVEN = {**GLM5_NEXT, "num_attention_heads": 7, "num_key_value_heads": 7, "hidden_size": 35, "layer_types": [LINEAR, FULL, LINEAR, INDEXED],
                   "mlp_layer_types": ["sparse"] * 3 + ["dense"], "n_shared_experts": 2, "num_experts_per_tok": 3, "n_group": 3, "topk_group": 2,
                   "norm_topk_prob": False, "attention_bias": True, "index_topk": 15, "index_head_dim": 8, "index_n_heads": 11, "index_kpool": 5,
                   "linear_head_dim": 10, "linear_num_heads": 3, "linear_conv_kernel_dim": 3, "linear_lower_bound": None, "hc_mult": 3,
                   "hc_sinkhorn_iters": 4, "swiglu_limit": 10.0}
# Keys of published files, and the defaults of transformers.
GLM5_NEXT_TIED = {**without(GLM5_NEXT, "layer_types", "linear_head_dim", "linear_num_heads", "linear_conv_kernel_dim", "linear_lower_bound",
                            "norm_topk_prob", "index_kpool_always_select_tail", "swiglu_limit", "hidden_act", "hc_sinkhorn_iters"),
                  "hidden_size": 24, "index_topk": 6, "index_kpool": 2, "hc_mult": 2, "mla_use_nope": True, "mhc": True, "num_nextn_predict_layers": 1,
                  "scoring_func": "sigmoid", "topk_method": "noaux_tc", "first_k_dense_replace": 1,
                  "linear_attn_config": {"head_dim": 8, "num_heads": 2, "short_conv_kernel_size": 2, "gate_lower_bound": -3.0, "safe_gate": True}, **TIED}
GLM5_EYE = {"model_type": "glm5_next_vision", "depth": 1, "hidden_size": 8, "num_heads": 1, "intermediate_size": 8, "image_size": 4, "patch_size": 4,
            "projection_intermediate_size": 8, "spatial_merge_size": 1}


def as_minimax(config):
    """A published config in the keys of transformers, which rotates whole heads: see rotate_part."""
    kinds = [FULL if each else LINEAR for each in config["attn_type_list"]]
    kept = {MINIMAX_FACTORS.get(key, key): value for key, value in config.items()}
    return {**without(kept, "attn_type_list", "rotary_dim", "postnorm", "shared_intermediate_size", "shared_moe_mode"),
            "architectures": ["MiniMaxForCausalLM"], "model_type": "minimax", "layer_types": kinds}


def as_ling25(config):
    """In the keys of Ling 3, which transformers has, with the defaults of Ling 2.5."""
    group, n_layers = config["layer_group_size"], config["num_hidden_layers"]
    full = [(i + 1) % group == 0 or i >= n_layers // group * group for i in range(n_layers)]
    usual = {"routed_scaling_factor": 1.0, "rope_theta": 600000.0, "num_shared_experts": 1, "use_qk_norm": True, "group_norm_size": 4,
             "q_lora_rank": None, "num_key_value_heads": config["num_attention_heads"], "norm_topk_prob": True, "rope_interleave": True}
    return {**usual, **without(config, "partial_rotary_factor"), "layer_types": [FULL if each else LINEAR for each in full]}


def rotate_part(model, config):
    """Rotates the first rotary_dim elements of a head, like the models' own code."""
    import torch
    from transformers.models.glm4_moe import modeling_glm4_moe
    from transformers.models.minimax import modeling_minimax

    size = config.get("rotary_dim", config["head_dim"])
    modeling_minimax.apply_rotary_pos_emb = modeling_glm4_moe.apply_rotary_pos_emb
    model.model.rotary_emb.inv_freq = 1.0 / config["rope_theta"] ** (torch.arange(0, size, 2, dtype=torch.float) / size)


CASES = {
    "deepseek-v4": DEEPSEEK_V4,
    "deepseek-v4-published": DEEPSEEK_V4_PUBLISHED,
    "deepseek-v4-plain": DEEPSEEK_V4_PLAIN,
    "inkling": INKLING,
    "inkling-seven": INKLING_SEVEN,
    "inkling-plain": INKLING_PLAIN,
    "qwen4-exp": QWEN4_EXP,
    "qwen4-exp-seven": {**QWEN4_EXP_SEVEN, "eos_token_id": 69},
    "qwen4-exp-plain": {**QWEN4_EXP_PLAIN, "layer_types": [LINEAR, "indexed_attention"]},
    "olmo-hybrid": OLMO_HYBRID,
    "olmo-hybrid-rope": {**OLMO_HYBRID, "num_hidden_layers": 3, "layer_types": [FULL, LINEAR, FULL], "num_attention_heads": 7,
                         "num_key_value_heads": 1, "hidden_size": 42, "linear_num_key_heads": 3, "linear_num_value_heads": 3,
                         "linear_value_head_dim": 34, "linear_conv_kernel_dim": 2,
                         "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
    "olmo-hybrid-positive": {**without(OLMO_HYBRID, "torch_dtype"), "dtype": "float32", "num_hidden_layers": 2, "layer_types": [LINEAR, FULL],
                             "num_attention_heads": 2, "linear_num_value_heads": 2, "linear_key_head_dim": 12, "linear_num_key_heads": 2, "linear_value_head_dim": 12, "transformers_version": "5.24.0",
                             "linear_allow_neg_eigval": False, "num_key_value_heads": 2, **TIED},
    "lfm3": LFM3,
    "lfm3-seven": {**LFM3, **SEVEN, "hidden_size": 32, "head_dim": 10, "num_hidden_layers": 3, "layer_types": [WINDOW, FULL, CONV], "conv_bias": True,
                   "conv_L_cache": 2, "attention_bias": True, "rope_parameters": {
                       WINDOW: {"rope_type": "default", "rope_theta": 20.0},
                       FULL: {"rope_type": "proportional", "rope_theta": 500.0, "partial_rotary_factor": 0.25}}, **UNTIED},
    "lfm3-plain": {**without(LFM3, "torch_dtype"), "dtype": "float32", "num_hidden_layers": 3, "layer_types": [CONV, FULL, CONV], "num_key_value_heads": 4,
                   "use_sandwich_norm": False, "use_attention_gate": False,
                   "rope_parameters": {FULL: {"rope_type": "default", "rope_theta": 500.0}}},
    "zamba2": ZAMBA2,
    "zamba2-seven": {**without(ZAMBA2, "rope_theta", "attention_head_dim", "attention_hidden_size", "hybrid_layer_ids", "mamba_headdim"), "num_hidden_layers": 3,
                     "num_attention_heads": 7, "num_key_value_heads": 1, "hidden_size": 42, "layers_block_type": ["hybrid", "mamba", "hybrid"], "num_mem_blocks": 1,
                     "use_shared_attention_adapter": False, "use_mem_rope": False, "add_bias_linear": True, "n_mamba_heads": 7, "mamba_ngroups": 1, "mamba_d_state": 10},
    "zamba2-new-keys": {**without(ZAMBA2, "rope_theta", "torch_dtype", "attention_head_dim", "attention_hidden_size", "hybrid_layer_ids", "mamba_headdim", "intermediate_size"),
                        "dtype": "float32", "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0}, "num_key_value_heads": 2,
                        "layers_block_type": ["linear_attention", "hybrid", "hybrid", "hybrid"], "num_mem_blocks": 2,
                        "use_shared_attention_adapter": False, "hidden_act": "silu", "mamba_d_conv": 3},
    "jamba": JAMBA,
    "jamba-seven": {**JAMBA, **SEVEN, "hidden_size": 36, "num_hidden_layers": 3, "attn_layer_period": 2, "attn_layer_offset": 0, "num_experts": 1,
                    "mamba_dt_rank": 7, "mamba_conv_bias": False, "mamba_proj_bias": True, "mamba_d_state": 16, "mamba_d_conv": 2, **TIED},
    "jamba-new-keys": {**without(JAMBA, "torch_dtype", "mamba_dt_rank"), "dtype": "float32", "num_hidden_layers": 3, "attn_layer_period": 3,
                       "attn_layer_offset": 1, "expert_layer_period": 1, "expert_layer_offset": 0, "mamba_dt_rank": 4, "mamba_expand": 1, "num_experts_per_tok": 1,
                       "num_key_value_heads": 4, "use_mambapy": False, "use_associative_scan": True},
    "minimax-01": MINIMAX,
    "minimax-01-seven": {**without(MINIMAX, "layer_types", "full_attn_alpha_factor", "linear_attn_beta_factor", "mlp_beta_factor", "block_size"), **SEVEN,
                         "hidden_size": 36, "num_hidden_layers": 3, "num_experts_per_tok": 1, **TIED},
    "minimax-01-new-keys": {**without(MINIMAX, "torch_dtype", "rope_theta"), "dtype": "float32", "num_hidden_layers": 3, "layer_types": [LINEAR, LINEAR, FULL],
                            "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 34, "num_experts_per_tok": 3,
                            "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}},
    "minimax-text-01": MINIMAX_TEXT_01,
    "minimax-text-01-one": {**without(MINIMAX_TEXT_01, "rotary_dim", "layernorm_mlp_beta"), "num_hidden_layers": 3, "attn_type_list": [1, 0, 1],
                            "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 6, "layernorm_linear_attention_alpha": 1.3,
                            "layernorm_full_attention_alpha": 0.7, "layernorm_full_attention_beta": 1.6, **TIED},
    "minimax-text-01-wide": {**MINIMAX_TEXT_01, "num_hidden_layers": 2, "attn_type_list": [0, 1], "num_attention_heads": 1, "num_key_value_heads": 1,
                             "head_dim": 66, "rotary_dim": 34, "num_experts_per_tok": 1},
    "minimax-m1": MINIMAX_M1,
    "minimax-m1-one": {**without(MINIMAX_M1, "rotary_dim"), "num_hidden_layers": 4, "attn_type_list": [0, 1, 0, 1], "num_key_value_heads": 1,
                       "layernorm_mlp_alpha": 1.2, "layernorm_mlp_beta": 0.6, **TIED},
    "minimax-m1-two": {**MINIMAX_M1, "num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 2, "attn_type_list": [1, 0], "head_dim": 18,
                       "rotary_dim": 18, "layernorm_linear_attention_beta": 0.5},
    "ling2.5": LING25,
    "ling2.5-behind": {**without(LING25, "group_norm_size", "num_shared_experts", "routed_scaling_factor", "use_qk_norm", "partial_rotary_factor",
                                 "num_key_value_heads", "rope_interleave", "norm_topk_prob", "rope_theta", "moe_shared_expert_intermediate_size"),
                       "num_attention_heads": 8, "hidden_size": 35, "num_hidden_layers": 5, "layer_group_size": 3, "q_lora_rank": None, "n_group": 1,
                       "topk_group": 1, "num_experts_per_tok": 3,
                       "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 32, "beta_slow": 1,
                                        "mscale": 0.7, "mscale_all_dim": 1.3}},
    "ling2.5-wide": {**without(LING25, "torch_dtype"), "dtype": "float32", "num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 3,
                     "layer_group_size": 3, "head_dim": 34, "partial_rotary_factor": 1.0, "qk_rope_head_dim": 34, "qk_head_dim": 44, "use_qk_norm": False,
                     "group_norm_size": 1, "first_k_dense_replace": 0, "num_shared_experts": 2},
    "ling3": LING3,
    "ling3-seven": {**without(LING3, "partial_rotary_factor"), "num_attention_heads": 7, "num_key_value_heads": 7, "hidden_size": 36, "num_hidden_layers": 3, "layer_group_size": 3,
                    "q_lora_rank": 20, "n_group": 1, "topk_group": 1, "num_shared_experts": 2,
                    "short_conv_kernel_size": 2, "share_expert_swiglu_limit_list": None,
                    "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 32, "beta_slow": 1,
                                     "mscale": 0.7, "mscale_all_dim": 1.3}},
    "ling3-free-decay": {**LING3, "num_hidden_layers": 2, "first_k_dense_replace": 0, "kda_safe_gate": False, "head_dim": 34, "rotary_dim": None,
                         "partial_rotary_factor": None, "num_attention_heads": 2, "num_key_value_heads": 2, "share_expert_swiglu_limit_list": None},
    "ling3-saved": LING3_SAVED,
    "ling3-saved-seven": {**LING3_SAVED, "num_attention_heads": 7, "num_key_value_heads": 7, "linear_num_heads": 7, "hidden_size": 36,
                          "num_hidden_layers": 2, "layer_types": [LINEAR, FULL], "mlp_layer_types": ["dense", "sparse"], "kda_lower_bound": -4.0,
                          "num_experts": 8, "num_expert_group": 4, "attention_bias": True},
    "ling3-saved-dense": {**without(LING3_SAVED, "linear_num_heads"), "num_hidden_layers": 3, "layer_group_size": 3, "layer_types": [LINEAR, LINEAR, FULL],
                          "mlp_layer_types": ["dense"] * 3, "q_lora_rank": 16, "kda_safe_gate": False, "linear_head_dim": 16},
    "kimi-k3": kimi_k3(K3),
    "kimi-k3-seven": kimi_k3({**K3, "num_hidden_layers": 3, "num_attention_heads": 7, "num_key_value_heads": 7, "hidden_size": 42,
                              "attn_res_block_size": 3, "first_k_dense_replace": 0, "num_experts_per_token": 3, "latent_moe_use_norm": False,
                              "linear_attn_config": {"full_attn_layers": [3], "kda_layers": [1, 2], "head_dim": 10, "num_heads": 3,
                                                     "short_conv_kernel_size": 3, "use_full_rank_gate": True}}),
    "kimi-k3-plain": kimi_k3({**without(K3, "activation_situ_beta", "activation_situ_linear_beta"), "num_hidden_layers": 2, "hidden_act": "silu",
                              "mla_use_output_gate": False, "routed_expert_hidden_size": None, "latent_moe_use_norm": False,
                              "attn_res_block_size": None, "moe_renormalize": False,
                              "linear_attn_config": {**K3["linear_attn_config"], "full_attn_layers": [1], "kda_layers": [2], "num_heads": 6}}),
    "kimi-linear": KIMI_LINEAR,
    "kimi-linear-seven": {**without(KIMI_LINEAR, "linear_attn_config", "first_k_dense_replace"), "num_hidden_layers": 3,
                          "layer_types": [FULL, LINEAR, LINEAR], "mlp_layer_types": ["sparse", "sparse", "dense"], "num_attention_heads": 7,
                          "num_key_value_heads": 7, "linear_num_heads": 3, "linear_head_dim": 10, "linear_conv_kernel_dim": 2,
                          "num_experts": 8, "num_expert_group": 4, "topk_group": 2, "moe_renormalize": False, "num_shared_experts": 1,
                          "hidden_size": 32, "transformers_version": "5.24.0"},
    "kimi-linear-q-rank": {**without(KIMI_LINEAR, "torch_dtype"), "dtype": "float32", "num_hidden_layers": 2, "q_lora_rank": 20, "attention_bias": True,
                           "linear_attn_config": {"full_attn_layers": [1], "kda_layers": [2], "head_dim": 34, "num_heads": 1,
                                                  "short_conv_kernel_size": 3}},
}
