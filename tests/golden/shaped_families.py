"""Cases of make_families.py for families whose layers differ in their heads, or whose V is narrower than K."""

from row_families import LLAMA3, TIED, UNTIED, family, without

WINDOW, FULL = "sliding_attention", "full_attention"
MIMO_V2 = {**without(family("MiMoV2FlashForCausalLM", "mimo_v2_flash", num_hidden_layers=4, head_dim=12, v_head_dim=8, swa_head_dim=12,
                            swa_v_head_dim=8, swa_num_attention_heads=4, swa_num_key_value_heads=4, num_key_value_heads=2, rope_theta=5000000.0,
                            swa_rope_theta=10000.0, partial_rotary_factor=0.334, sliding_window=7, sliding_window_size=7, attention_chunk_size=7,
                            hybrid_layer_pattern=[0, 1, 1, 1], moe_layer_freq=[0, 1, 1, 1], attention_bias=False, attention_value_scale=0.6,
                            add_swa_attention_sink_bias=True, add_full_attention_sink_bias=False, layernorm_epsilon=1e-5,
                            moe_intermediate_size=24, n_routed_experts=6, n_shared_experts=None, num_experts_per_tok=2, norm_topk_prob=True,
                            scoring_func="sigmoid", topk_method="noaux_tc", n_group=1, topk_group=1, routed_scaling_factor=None,
                            pad_token_id=0, **UNTIED), "rms_norm_eps")}
# Transformers has no such model. Its V2 Flash computes it with its own names of keys.
MIMO_V25 = {**without(MIMO_V2, "hidden_act"), "architectures": ["MiMoV2ForCausalLM"], "model_type": "mimo_v2", "attention_projection_layout": "fused_qkv",
            "rope_theta": 700.0, "swa_rope_theta": 30.0, "layernorm_epsilon": 0.02, "moe_router_dtype": "bfloat16", "hybrid_block_size": None,
            "num_nextn_predict_layers": 1, "hidden_act": "silu", "rope_scaling": None}
MIMO_SAVED = without({**MIMO_V2, "rms_norm_eps": 0.02}, "rope_theta", "swa_rope_theta", "partial_rotary_factor", "swa_head_dim", "swa_v_head_dim",
                     "swa_num_attention_heads", "swa_num_key_value_heads", "sliding_window_size", "hybrid_layer_pattern", "moe_layer_freq",
                     "attention_chunk_size", "layernorm_epsilon", "add_swa_attention_sink_bias", "add_full_attention_sink_bias")
LAGUNA = without(family("LagunaForCausalLM", "laguna", num_hidden_layers=4, head_dim=12, num_attention_heads=6, num_key_value_heads=2,
                        num_attention_heads_per_layer=[6, 4, 6, 2], sliding_window=7, layer_types=[FULL, WINDOW, WINDOW, FULL], gating=True,
                        attention_bias=False, mlp_layer_types=["dense", "sparse", "sparse", "sparse"], moe_intermediate_size=24, num_experts=6,
                        num_experts_per_tok=2, shared_expert_intermediate_size=20, moe_routed_scaling_factor=1.5,
                        moe_apply_router_weight_on_input=False, moe_router_logit_softcapping=0.0, pad_token_id=0,
                        rope_parameters={FULL: {**LLAMA3, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16,
                                                "rope_theta": 500.0, "partial_rotary_factor": 0.5},
                                         WINDOW: {"rope_type": "default", "rope_theta": 20.0, "partial_rotary_factor": 1.0}},
                        **UNTIED), "rope_theta")
PLAIN_ROPES = {FULL: {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5},
               WINDOW: {"rope_type": "default", "rope_theta": 20.0}}
for _key in ("high_freq_factor", "low_freq_factor"):
    LAGUNA["rope_parameters"][FULL].pop(_key)


def block(group, width, **more):
    """A layer of DeciLM: query heads for each KV head, and the feed-forward width; None: without the part."""
    ffn = {"ffn_mult": width} if isinstance(width, float) else {"intermediate_size": width}
    return {"attention": {"n_heads_in_group": group, "no_op": group is None, "num_sink_tokens": None, "replace_with_linear": False,
                          "sparsify": None, "unshifted_sink": False, "use_prefill_window_in_sink_attention": False, "window_length": None},
            "ffn": {**ffn, "no_op": width is None, "replace_with_linear": False, "sparsify": None, **more}}


DECI = {**family("DeciLMForCausalLM", "nemotron-nas", num_hidden_layers=5, intermediate_size=None, attention_bias=False, mlp_bias=False,
                 rope_scaling={**without(LLAMA3, "rope_theta"), "factor": 8.0}, rope_theta=5000.0,
                 block_configs=[block(2, 5.25), block(None, 40), block(4, 24), block(None, 13.0), block(1, None)], **UNTIED),
        "num_key_value_heads": None, "auto_map": {"AutoModelForCausalLM": "modeling_decilm.DeciLMForCausalLM"}}

STEP_VISION = {"width": 8, "layers": 1, "heads": 1, "image_size": 28, "patch_size": 14, "model_type": "step3p5_vision"}
STEP_ROPE = {"rope_type": "llama3", "factor": 2.0, "original_max_position_embeddings": 16, "low_freq_factor": 1.0, "high_freq_factor": 32.0}
# Lists have an entry for the draft layer behind the last, as published.
STEP = family("Step3p5ForCausalLM", "step3p5", num_hidden_layers=4, head_dim=12, num_attention_groups=2, sliding_window=7, sink=False,
              layer_types=[FULL, WINDOW, WINDOW, FULL, WINDOW], attention_other_setting={"attention_type": WINDOW, "num_attention_heads": 6,
                                                                                        "num_attention_groups": 2, "head_dim": 12},
              rope_theta=[500.0, 20.0, 20.0, 500.0, 20.0], partial_rotary_factors=[0.5, 1.0, 1.0, 0.5, 1.0], rope_scaling=STEP_ROPE,
              yarn_only_types=[FULL], use_rope_layers=[], moe_layers_enum="1,2,3", moe_num_experts=6, moe_top_k=2, moe_intermediate_size=24,
              share_expert_dim=20, moe_router_activation="sigmoid", moe_router_scaling_factor=1.5, use_moe_router_bias=True,
              need_fp32_gate=True, norm_expert_weight=True, use_head_wise_attn_gate=True, use_qk_norm=True, zero_centered=True,
              att_impl_type="GQA", use_moe=True, moe_every_n_layer=1, moe_layer_offset=0, num_nextn_predict_layers=1, max_seq_len=64,
              swiglu_limits=[0.0, 0.0, 0.4, 0.7, 0.0], swiglu_limits_shared=[0.3, 0.0, 0.5, 0.0, 0.0], pad_token_id=0, **UNTIED)
STEP = without(STEP, "num_key_value_heads")
STEP_SAVED = family("Step3p7ForConditionalGeneration", "step3p5", num_hidden_layers=3, head_dim=12, sliding_window=7, attention_bias=False,
                    layer_types=[WINDOW, FULL, WINDOW], mlp_layer_types=["dense", "sparse", "sparse"], moe_intermediate_size=24, mlp_bias=False,
                    n_routed_experts=6, num_experts_per_tok=2, share_expert_dim=20, num_sliding_attention_heads=6, query_pre_attn_scalar=20,
                    per_layer_config={"0": {"num_attention_heads": 6}, "2": {"num_attention_heads": 6}},
                    rope_parameters={FULL: {**STEP_ROPE, "rope_theta": 500.0, "partial_rotary_factor": 0.5},
                                     WINDOW: {"rope_type": "default", "rope_theta": 20.0, "partial_rotary_factor": 1.0}},
                    swiglu_limits=[None, 0.4, 0], pad_token_id=0, **UNTIED)
STEP_SAVED = without(STEP_SAVED, "rope_theta")
STEP_PLAIN = {**without(STEP_SAVED, "per_layer_config", "num_sliding_attention_heads", "swiglu_limits", "query_pre_attn_scalar"),
              "num_attention_heads": 7, "num_key_value_heads": 1, "head_dim": 8, "attention_bias": True, "layer_types": [FULL, FULL, FULL],
              "mlp_layer_types": ["sparse", "dense", "sparse"], "moe_router_scaling_factor": 2.5, "swiglu_limits_shared": [0.5, 0.4, 0.0],
              "rope_parameters": {FULL: {"rope_type": "default", "rope_theta": 500.0}}}


def with_images(architecture, model_type, text, vision, **more):
    """A config with a language model inside."""
    return {"architectures": [architecture], "model_type": model_type, "torch_dtype": "float32", "text_config": without(text, "architectures"),
            "vision_config": vision, **more}


def step3p7(text, **more):
    return with_images("Step3p7ForConditionalGeneration", "step3p7", text, STEP_VISION, image_token_id=0, **more)


M3_VISION = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "image_size": 28, "patch_size": 14,
             "spatial_merge_size": 1, "temporal_patch_size": 1, "model_type": "minimax_m3_vl_vision"}
M3 = family("MiniMaxM3SparseForConditionalGeneration", "minimax_m3_text", num_hidden_layers=4, head_dim=12, rotary_dim=6, partial_rotary_factor=0.5,
            rope_theta=500.0, hidden_act="swigluoai", swiglu_alpha=1.3, swiglu_beta=1.0, swiglu_limit=0.5, use_gemma_norm=True, use_qk_norm=True,
            qk_norm_type="per_head", attention_output_gate=False, num_local_experts=6, num_experts_per_tok=2, n_shared_experts=1,
            scoring_func="sigmoid", use_routing_bias=True, routed_scaling_factor=1.5, num_mtp_modules=1, dense_intermediate_size=36,
            shared_intermediate_size=20, moe_layer_freq=[0, 1, 1, 1], pad_token_id=0,
            sparse_attention_config={"use_sparse_attention": True, "sparse_index_dim": 8, "sparse_num_index_heads": 2, "sparse_topk_blocks": 3,
                                     "sparse_block_size": 4, "sparse_disable_index_value": [0, 1, 1, 1], "sparse_score_type": "max",
                                     "sparse_init_block": 0, "sparse_local_block": 1, "sparse_attention_freq": [0, 1, 1, 1]}, **UNTIED)
M3_SPARSE = "minimax_m3_sparse"
M3_SAVED = {**without(M3, "sparse_attention_config", "moe_layer_freq", "partial_rotary_factor", "rope_theta", "swiglu_beta", "use_gemma_norm",
                      "use_qk_norm", "qk_norm_type", "attention_output_gate", "n_shared_experts", "scoring_func", "use_routing_bias",
                      "num_mtp_modules"), "model_type": "minimax_m3_vl_text", "hidden_act": "silu", "num_hidden_layers": 3,
            "num_attention_heads": 7, "num_key_value_heads": 1, "head_dim": 8, "rotary_dim": 4, "index_n_heads": 1, "index_head_dim": 6,
            "index_block_size": 5, "index_topk_blocks": 3, "index_local_blocks": 2, "layer_types": [M3_SPARSE, FULL, M3_SPARSE],
            "mlp_layer_types": ["sparse", "dense", "sparse"],
            "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5}}
M3_FULL = {**M3_SAVED, "num_hidden_layers": 2, "layer_types": [FULL, FULL], "mlp_layer_types": ["sparse", "sparse"], "num_attention_heads": 4,
           "num_key_value_heads": 4, "head_dim": 6, "rotary_dim": 6, "routed_scaling_factor": 2.0, "num_experts_per_tok": 3,
           "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 1.0}}


def minimax_m3(text, **more):
    return with_images("MiniMaxM3SparseForConditionalGeneration", "minimax_m3_vl", text, M3_VISION, projector_hidden_size=8,
                       image_token_index=0, video_token_index=0, **more)


# Published files name no_rope_layers beside layer_rope_theta for other runtimes.
MUSE_VISION = {"patch_size": 2, "pos_emb_height": 2, "pos_emb_width": 2, "num_attention_heads": 1, "num_hidden_layers": 1, "hidden_size": 8,
               "intermediate_size": 8, "patch_temporal": 1, "merge_size": 1, "model_type": "muse_glimmer_vision"}
MUSE = without(family("MuseGlimmerForConditionalGeneration", "muse_glimmer_text", num_hidden_layers=4, head_dim=12, hidden_activation="silu",
                      sliding_window=7, layer_types=[WINDOW, WINDOW, WINDOW, FULL], layer_rope_theta=[500.0, 500.0, 500.0, 0],
                      rope_parameters={"rope_type": "default", "rope_theta": 500.0}, qk_scale_factor=2.3, output_multiplier=0.4,
                      final_logit_softcapping=3.0, post_norm_eps=0.1, attention_bias=False, pad_token_id=0, **UNTIED), "rope_theta", "hidden_act")


def muse(text, **more):
    return with_images("MuseGlimmerForConditionalGeneration", "muse_glimmer", text, MUSE_VISION, out_hidden_size=8, projector_hidden_size=8,
                       image_token_id=0, video_token_id=0, **more)


# The parts beside the language model are as small as they can be.
SPARK_AUDIO = {"patch_sizes": [2], "hidden_sizes": [8], "depths": [1], "num_hidden_layers": 1, "mlp_ratio": 1.0, "conv_kernel_size": 3,
               "model_type": "muse_spark_audio"}
SPARK = {**without(MUSE, "hidden_activation"), "architectures": ["MuseSparkForConditionalGeneration"], "model_type": "muse_spark_text",
         "hidden_act": "silu", "moe_intermediate_size": 24, "num_local_experts": 6, "num_experts_per_tok": 3, "routed_scaling_factor": 1.5,
         "moe_hidden_size": 20, "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"], "residual_gate_temperature": 0.5}


def spark(text, **more):
    return with_images("MuseSparkForConditionalGeneration", "muse_spark", text, {**MUSE_VISION, "model_type": "muse_spark_vision"},
                       audio_config={**SPARK_AUDIO, "out_hidden_size": text["hidden_size"]}, out_hidden_size=8, projector_hidden_size=8,
                       image_token_id=0, video_token_id=0, audio_token_id=0, **more)


CASES = {
    "muse-spark": spark(SPARK, **UNTIED),
    "muse-spark-seven": spark({**SPARK, "num_hidden_layers": 3, "num_attention_heads": 7, "num_key_value_heads": 1, "head_dim": 6,
                               "hidden_size": 42, "layer_types": [FULL, WINDOW, FULL], "layer_rope_theta": [500.0, 500.0, 0],
                               "mlp_layer_types": ["sparse", "sparse", "dense"], "num_experts_per_tok": 2, "post_norm_eps": 1e-8,
                               "residual_gate_temperature": 0.1}, **UNTIED),
    "muse-spark-dense": spark({**SPARK, "num_hidden_layers": 2, "layer_types": [WINDOW, FULL], "layer_rope_theta": [0, 500.0],
                               "mlp_layer_types": ["dense", "dense"], "num_key_value_heads": 4, "output_multiplier": 1.3}, **UNTIED),
    "muse-glimmer": muse(MUSE, **UNTIED),
    "muse-glimmer-seven": muse({**without(MUSE, "layer_types", "layer_rope_theta"), "num_hidden_layers": 5, "num_attention_heads": 7,
                                "num_key_value_heads": 1, "head_dim": 6, "hidden_size": 42, "attention_bias": True, **TIED}, **TIED),
    "muse-glimmer-turning": muse({**MUSE, "num_hidden_layers": 3, "layer_types": [FULL, WINDOW, FULL], "layer_rope_theta": [0, 500.0, 0],
                                  "no_rope_layers": [0, 1, 0], "post_norm_eps": 1e-8, "num_key_value_heads": 4}, **UNTIED),
    "minimax-m3": minimax_m3(M3, **UNTIED),
    "minimax-m3-seven": minimax_m3(M3_SAVED, **UNTIED),
    "minimax-m3-full": minimax_m3({**M3_FULL, **TIED}, **TIED),
    "step3.5": STEP,
    "step3.5-seven": {**STEP, "num_hidden_layers": 2, "num_attention_heads": 7, "num_attention_groups": 1, "attention_bias": True,
                      "layer_types": [WINDOW, FULL, WINDOW], "attention_other_setting": {"num_attention_heads": 3}, "rope_theta": 500.0,
                      "partial_rotary_factors": [1.0, 0.5, 1.0], "moe_layers_enum": [0], "swiglu_limits": [0.4, 0.0, 0.0],
                      "swiglu_limits_shared": [0.3, 0.4, 0.0]},
    "step3.5-full": {**without(STEP, "attention_other_setting", "rope_scaling", "yarn_only_types", "swiglu_limits", "swiglu_limits_shared",
                               "partial_rotary_factors"), "num_hidden_layers": 2, "layer_types": [FULL, FULL], "num_nextn_predict_layers": 0,
                     "rope_theta": 500.0, "moe_layers_enum": "1", "moe_top_k": 3, "num_attention_groups": 4, **TIED},
    "step3.7": step3p7(STEP_SAVED),
    "step3.7-seven": step3p7({**STEP_PLAIN, **TIED}, **TIED),
    "step3.7-published": step3p7({**without(STEP, "torch_dtype"), "num_hidden_layers": 3, "layer_types": [WINDOW, FULL, FULL, WINDOW],
                                  "rope_theta": [20.0, 500.0, 500.0, 20.0], "partial_rotary_factors": [1.0, 0.5, 0.5, 1.0],
                                  "moe_layers_enum": "0,2", "swiglu_limits": [0.4, 0.0, 0.0, 0.0],
                                  "swiglu_limits_shared": [0.0, 0.3, 0.2, 0.0]}),
    "deci": DECI,
    "deci-seven": {**without(DECI, "rope_scaling"), "num_attention_heads": 7, "hidden_size": 42, "num_hidden_layers": 3, "attention_bias": True, "mlp_bias": True,
                   "block_configs": [block(7, 30), block(7, 20, hidden_act="silu"), block(None, 40)]},
    "deci-new-keys": {**without(DECI, "torch_dtype", "rope_theta", "rope_scaling", "auto_map"), "dtype": "float32", "num_hidden_layers": 3, "head_dim": 12,
                      "rope_parameters": LLAMA3, "block_configs": [block(2, 24), block(2, None), block(4, 36)], **TIED},
    "mimo-v2": MIMO_V2,
    "mimo-v2-seven": {**MIMO_SAVED, "num_attention_heads": 6, "num_key_value_heads": 1, "head_dim": 18, "v_head_dim": 10, "num_hidden_layers": 3,
                      "layer_types": [WINDOW, FULL, WINDOW], "mlp_layer_types": ["sparse", "dense", "sparse"], "attention_bias": True,
                      "n_group": 3, "topk_group": 2, "routed_scaling_factor": 1.5, "norm_topk_prob": False,
                      "rope_parameters": {FULL: {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.334},
                                          WINDOW: {"rope_type": "default", "rope_theta": 20.0, "partial_rotary_factor": 0.45}}},
    "mimo-v2-whole": {**MIMO_SAVED, "num_hidden_layers": 2, "layer_types": [FULL, FULL], "num_attention_heads": 7, "num_key_value_heads": 1,
                      "hidden_size": 32, "v_head_dim": 12, "attention_value_scale": None,
                      "mlp_layer_types": ["sparse", "sparse"],
                      "rope_parameters": {FULL: {"rope_type": "default", "rope_theta": 500.0}, WINDOW: {"rope_type": "default", "rope_theta": 20.0}},
                      **TIED},
    "mimo-v2.5": MIMO_V25,
    "mimo-v2.5-bias": {**MIMO_V25, "num_hidden_layers": 3, "hybrid_layer_pattern": [1, 0, 1], "moe_layer_freq": [1, 0, 1], "num_attention_heads": 6,
                       "swa_num_attention_heads": 6, "num_key_value_heads": 1, "swa_num_key_value_heads": 2, "attention_bias": True,
                       "n_group": 3, "topk_group": 2, "routed_scaling_factor": 1.5, "v_head_dim": 10, "swa_v_head_dim": 10,
                       "attention_value_scale": 0.5},
    "mimo-v2.5-split": {**without(MIMO_V25, "torch_dtype", "attention_chunk_size", "sliding_window", "sliding_window_size"), "sliding_window_size": 7, "dtype": "float32", "attention_projection_layout": "split", "num_hidden_layers": 2,
                        "hybrid_layer_pattern": [0, 0], "moe_layer_freq": [0, 1], "rope_theta": 500.0, "swa_rope_theta": 20.0,
                        "num_attention_heads": 7, "swa_num_attention_heads": 7, "num_key_value_heads": 1, "swa_num_key_value_heads": 2,
                        "partial_rotary_factor": 0.5, **TIED},
    "laguna": LAGUNA,
    "laguna-elements": {**without(LAGUNA, "num_attention_heads_per_layer", "mlp_layer_types"), "num_attention_heads": 7, "num_key_value_heads": 1,
                        "head_dim": 8, "num_hidden_layers": 3, "layer_types": [WINDOW, FULL, WINDOW], "gating": "per-element",
                        "attention_bias": True, "rope_parameters": PLAIN_ROPES},
    "laguna-full": {**without(LAGUNA, "layer_types", "moe_routed_scaling_factor", "gating"), "num_hidden_layers": 2, "rope_parameters": PLAIN_ROPES,
                    "num_attention_heads_per_layer": [4, 8], "num_attention_heads": 4, "num_key_value_heads": 4, "num_experts_per_tok": 3,
                    "mlp_layer_types": ["sparse", "dense"], **TIED},
}
