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

CASES = {
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
    "laguna": LAGUNA,
    "laguna-elements": {**without(LAGUNA, "num_attention_heads_per_layer", "mlp_layer_types"), "num_attention_heads": 7, "num_key_value_heads": 1,
                        "head_dim": 8, "num_hidden_layers": 3, "layer_types": [WINDOW, FULL, WINDOW], "gating": "per-element",
                        "attention_bias": True, "rope_parameters": PLAIN_ROPES},
    "laguna-full": {**without(LAGUNA, "layer_types", "moe_routed_scaling_factor", "gating"), "num_hidden_layers": 2, "rope_parameters": PLAIN_ROPES,
                    "num_attention_heads_per_layer": [4, 8], "num_attention_heads": 4, "num_key_value_heads": 4, "num_experts_per_tok": 3,
                    "mlp_layer_types": ["sparse", "dense"], **TIED},
}
