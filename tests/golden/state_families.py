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

CASES = {
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
