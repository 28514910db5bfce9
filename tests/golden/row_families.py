"""Cases of make_families.py for the families of src/config/families/rows: three or more small models each."""

SIZES = {"vocab_size": 77, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32"}
SEVEN = {"num_attention_heads": 7, "num_key_value_heads": 1, "head_dim": 6, "hidden_size": 42}
TIED, UNTIED = {"tie_word_embeddings": True}, {"tie_word_embeddings": False}


def family(architecture, model_type, **more):
    return {"architectures": [architecture], "model_type": model_type, **SIZES, "rms_norm_eps": 0.02, "rope_theta": 10000.0,
            "hidden_act": "silu", **more}


def without(config, *keys):
    return {k: v for k, v in config.items() if k not in keys}


def new_keys(config, **rope):
    """As transformers 5 saves it."""
    return {**without(config, "torch_dtype", "rope_theta"), "dtype": "float32",
            "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, **rope}}


LLAMA3 = {"rope_type": "llama3", "rope_theta": 5000.0, "factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
          "original_max_position_embeddings": 32}
AFMOE = family("AfmoeForCausalLM", "afmoe", head_dim=12, num_hidden_layers=5, sliding_window=7, global_attn_every_n_layers=4, num_dense_layers=1,
               moe_intermediate_size=24, num_experts=6, num_experts_per_tok=2, num_shared_experts=1, route_scale=1.7, route_norm=True,
               score_func="sigmoid", mup_enabled=True, n_group=1, topk_group=1, num_expert_groups=1, num_limited_groups=1, **UNTIED)
ARCEE = family("ArceeForCausalLM", "arcee", hidden_act="relu2", head_dim=12, attention_bias=False, mlp_bias=False, **UNTIED)
DIFFLLAMA = family("DiffLlamaForCausalLM", "diffllama", head_dim=12, attention_bias=False, lambda_std_dev=0.1, **UNTIED)
COHERE2_MOE = without(family("Cohere2MoeForCausalLM", "cohere2_moe", head_dim=12, num_hidden_layers=4, layer_norm_eps=0.02, logit_scale=0.5,
                             sliding_window=7, attention_bias=False, num_experts=6, num_experts_per_tok=2, num_shared_experts=1,
                             shared_expert_combination_strategy="average", expert_selection_fn="softmax", prefix_dense_intermediate_size=36,
                             layer_types=["full_attention", "sliding_attention", "full_attention", "sliding_attention"], intermediate_size=24,
                             mlp_layer_types=["dense", "sparse", "sparse", "sparse"], pad_token_id=0, **UNTIED), "rms_norm_eps")
CWM = {**without(family("CwmForCausalLM", "cwm", head_dim=12, num_hidden_layers=5, sliding_window=7, mlp_bias=False, **UNTIED),
                 "rope_theta"), "rope_parameters": LLAMA3}
DOTS1 = family("Dots1ForCausalLM", "dots1", head_dim=8, attention_bias=False, num_hidden_layers=3, moe_intermediate_size=24,
               n_routed_experts=6, num_experts_per_tok=2, n_shared_experts=1, first_k_dense_replace=1, n_group=1, topk_group=1,
               norm_topk_prob=True, routed_scaling_factor=1.5, sliding_window=None, max_window_layers=3, scoring_func="noaux_tc",
               **UNTIED)
ERNIE4_5 = family("Ernie4_5ForCausalLM", "ernie4_5", head_dim=12, use_bias=False, pad_token_id=0, **TIED)
ERNIE4_5_MOE = {**family("Ernie4_5_MoeForCausalLM", "ernie4_5_moe", use_bias=False, pad_token_id=0, num_hidden_layers=3, moe_intermediate_size=24,
                         moe_num_experts=6, moe_k=2, moe_num_shared_experts=1, moe_layer_start_index=1, moe_layer_end_index=-1,
                         moe_layer_interval=1, moe_norm_min=1e-12), "head_dim": 12, **TIED}
EXAONE4 = family("Exaone4ForCausalLM", "exaone4", num_hidden_layers=4, sliding_window=7, sliding_window_pattern=4, **UNTIED)
EXAONE_MOE = family("ExaoneMoEForCausalLM", "exaone_moe", head_dim=12, num_hidden_layers=5, sliding_window=7, sliding_window_pattern=4,
                    first_k_dense_replace=1, moe_intermediate_size=24, num_experts=6, num_experts_per_tok=2, num_shared_experts=1,
                    norm_topk_prob=True, routed_scaling_factor=1.5, scoring_func="sigmoid", topk_method="noaux_tc", n_group=1, topk_group=1,
                    pad_token_id=0, **UNTIED)
FLEX_OLMO = family("FlexOlmoForCausalLM", "flex_olmo", num_experts=5, num_experts_per_tok=2, norm_topk_prob=False,
                   attention_bias=False, pad_token_id=0, **UNTIED)
GPTJ = {"architectures": ["GPTJForCausalLM"], "model_type": "gptj", "vocab_size": 77, "n_embd": 32, "n_layer": 2, "n_head": 4,
        "n_positions": 64, "n_inner": None, "rotary": True, "rotary_dim": 4, "activation_function": "gelu_new", "layer_norm_epsilon": 0.02,
        "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "float32", **UNTIED}
GRANITE_SHARED = family("GraniteMoeSharedForCausalLM", "granitemoeshared", embedding_multiplier=1.5, attention_multiplier=0.2,
                        residual_multiplier=0.6, logits_scaling=0.7, attention_bias=False, num_local_experts=5,
                        num_experts_per_tok=2, shared_intermediate_size=20, **UNTIED)
APERTUS = {**without(family("ApertusForCausalLM", "apertus", hidden_act="xielu", head_dim=12, attention_bias=False, pad_token_id=0, **UNTIED), "rope_theta"),
           "rope_theta": 5000.0, "rope_scaling": {**without(LLAMA3, "rope_theta", "rope_type"), "type": "llama3"}, "qk_norm": True,
           "post_norm": False, "mlp_bias": False}
BLOOM = {"architectures": ["BloomForCausalLM"], "model_type": "bloom", "vocab_size": 77, "hidden_size": 32, "n_layer": 2, "n_head": 4,
         "layer_norm_epsilon": 0.02, "apply_residual_connection_post_layernorm": False, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3,
         "seq_length": 64, "slow_but_exact": False, "pretraining_tp": 1, "torch_dtype": "float32", **UNTIED}
NANOCHAT = family("NanoChatForCausalLM", "nanochat", hidden_act="relu2", head_dim=12, attention_bias=False, final_logit_softcapping=3.0, pad_token_id=0,
                  **UNTIED)
LFM2 = {**without(family("Lfm2ForCausalLM", "lfm2", norm_eps=0.02, num_hidden_layers=4, full_attn_idxs=[1, 3], conv_L_cache=3, conv_bias=False,
                         block_multiple_of=8, block_ffn_dim_multiplier=1.3, block_auto_adjust_ff_dim=True, pad_token_id=0),
                  "rms_norm_eps", "hidden_act", "tie_word_embeddings", "intermediate_size"), "block_ff_dim": 60, "tie_embedding": False}
LFM2_MOE = without(family("Lfm2MoeForCausalLM", "lfm2_moe", norm_eps=0.02, num_hidden_layers=4, conv_L_cache=3, conv_bias=False,
                          layer_types=["conv", "full_attention", "conv", "full_attention"], num_dense_layers=1, moe_intermediate_size=24,
                          num_experts=6, num_experts_per_tok=2, use_expert_bias=True, norm_topk_prob=True, routed_scaling_factor=1.5,
                          pad_token_id=0, **UNTIED), "rms_norm_eps", "hidden_act")
HELIUM = family("HeliumForCausalLM", "helium", head_dim=8, attention_bias=False, mlp_bias=False, pad_token_id=0, **UNTIED)
HUNYUAN_ALPHA = {"type": "dynamic", "alpha": 1000.0, "factor": 1.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}
HUNYUAN_DENSE = family("HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", head_dim=12, attention_head_dim=12, attention_bias=False, mlp_bias=False,
                       use_qk_norm=True, use_cla=False, use_rotary_pos_emb=True, norm_type="rms", num_experts=1,
                       rope_scaling=HUNYUAN_ALPHA, pad_token_id=0, **UNTIED)
HUNYUAN_MOE = {**HUNYUAN_DENSE, "architectures": ["HunYuanMoEV1ForCausalLM"], "model_type": "hunyuan_v1_moe", "intermediate_size": 24,
               "num_experts": 6, "moe_topk": [2, 2], "moe_intermediate_size": [24, 24], "num_shared_expert": [1, 1],
               "use_mixed_mlp_moe": True, "moe_layer_num_skipped": 0, "norm_topk_prob": True, "n_group": False, "topk_group": False,
               "routed_scaling_factor": False, "group_limited_greedy": False}
HY_V3 = family("HYV3ForCausalLM", "hy_v3", head_dim=12, num_hidden_layers=3, first_k_dense_replace=1, moe_intermediate_size=24, expert_hidden_dim=24,
               num_experts=6, num_experts_per_tok=2, num_shared_experts=1, router_scaling_factor=1.5, route_norm=True, qk_norm=True,
               attention_bias=False, mlp_bias=False, enable_moe_fp32_combine=False, **UNTIED)
HYPERCLOVAX = family("HyperCLOVAXForCausalLM", "hyperclovax", head_dim=12, attention_bias=False, mlp_bias=False,
                     embedding_multiplier=1.5, attention_multiplier=0.2, residual_multiplier=0.6, logits_scaling=0.7,
                     use_post_norm=True, **UNTIED)
MIMO = family("MiMoForCausalLM", "mimo", attention_bias=True, num_nextn_predict_layers=1, use_sliding_window=False, sliding_window=32,
              max_window_layers=2, **UNTIED)
IQUEST = family("IQuestCoderForCausalLM", "iquestcoder", head_dim=12, attention_bias=False, mlp_bias=False, **UNTIED)
JAIS2 = without(family("Jais2ForCausalLM", "jais2", hidden_act="relu2", head_dim=12, layer_norm_eps=0.02, attention_bias=True, mlp_bias=True,
                       **UNTIED), "rms_norm_eps")
MELLUM = without(family("MellumForCausalLM", "mellum", head_dim=12, num_hidden_layers=4, sliding_window=7, attention_bias=False,
                        layer_types=["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
                        mlp_layer_types=["sparse", "dense", "sparse", "sparse"], moe_intermediate_size=24, num_experts=5,
                        num_experts_per_tok=2, norm_topk_prob=False,
                        rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 500.0},
                                         "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}}, **UNTIED), "rope_theta")
LATENT = {"num_key_value_heads": 4, "q_lora_rank": 20, "kv_lora_rank": 24, "qk_nope_head_dim": 10, "qk_rope_head_dim": 6, "v_head_dim": 14}
MINICPM3 = family("MiniCPM3ForCausalLM", "minicpm3", attention_bias=False, scale_emb=1.5, scale_depth=1.4, dim_model_base=24, pad_token_id=0,
                  **{**LATENT, **UNTIED})
MISTRAL4 = without(family("Mistral4ForCausalLM", "mistral4", attention_bias=False, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=1,
                          first_k_dense_replace=1, n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=2.5,
                          moe_intermediate_size=24, rope_interleave=True, head_dim=16, qk_head_dim=16, pad_token_id=0,
                          rope_parameters={"type": "yarn", "rope_type": "yarn", "rope_theta": 30.0, "factor": 4.0, "beta_fast": 32.0,
                                           "original_max_position_embeddings": 16, "max_position_embeddings": 64, "beta_slow": 1.0,
                                           "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.3,
                                           "partial_rotary_factor": 0.375}, **{**LATENT, **UNTIED, "num_hidden_layers": 3}), "rope_theta")
MINISTRAL = family("MinistralForCausalLM", "ministral", head_dim=12, sliding_window=7, **UNTIED)
NEMOTRON = {**without(family("NemotronForCausalLM", "nemotron", hidden_act="relu2", head_dim=12, norm_eps=0.02, attention_bias=False,
                             mlp_bias=False, partial_rotary_factor=0.5, **UNTIED), "rms_norm_eps")}
OLMO = without(family("OlmoForCausalLM", "olmo", head_dim=12, attention_bias=False, clip_qkv=None, pad_token_id=0, **UNTIED), "rms_norm_eps")
PHIMOE = family("PhimoeForCausalLM", "phimoe", rms_norm_eps=0.03, rope_theta=10000.0, hidden_act="silu", num_local_experts=4,
                num_experts_per_tok=2, router_jitter_noise=0.15, input_jitter_noise=0.1, attention_bias=True, lm_head_bias=True,
                sliding_window=None, **UNTIED)
PHIMOE_PUBLISHED = {**PHIMOE, "architectures": ["PhiMoEForCausalLM"]}
PERSIMMON = without(family("PersimmonForCausalLM", "persimmon", hidden_act="relu2", layer_norm_eps=0.02, qk_layernorm=True, pad_token_id=0,
                           **UNTIED), "rms_norm_eps", "num_key_value_heads")
SARVAM_MOE = without(family("SarvamMoEForCausalLM", "sarvam_moe", head_dim=12, use_qk_norm=True, use_qkv_bias=False, use_bias=False, num_experts=6,
                            num_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=24, first_k_dense_replace=1, n_group=1, topk_group=1,
                            norm_topk_prob=True, routed_scaling_factor=1.5, score_function="sigmoid", moe_router_enable_expert_bias=True,
                            pad_token_id=0, **{**UNTIED, "num_hidden_layers": 3}))
LING2 = family("BailingMoeV2ForCausalLM", "bailing_moe", head_dim=12, partial_rotary_factor=0.5, use_qk_norm=True, use_rmsnorm=True, use_qkv_bias=False,
               use_bias=False, num_experts=6, num_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=24,
               moe_shared_expert_intermediate_size=24, first_k_dense_replace=1, n_group=3, topk_group=2, norm_topk_prob=True, routed_scaling_factor=1.5,
               score_function="sigmoid", router_dtype="fp32", moe_router_enable_expert_bias=True, embedding_dropout=0.0, output_dropout=0.0,
               attention_dropout=0.0, output_router_logits=False, rope_scaling=None, num_nextn_predict_layers=1, mtp_loss_scaling_factor=0,
               max_window_layers=20, pad_token_id=0, **{**UNTIED, "num_hidden_layers": 3})
SARVAM_MLA = without(family("SarvamMLAForCausalLM", "sarvam_mla", head_dim=30, q_head_dim=16, num_experts=6, num_shared_experts=1,
                            num_experts_per_tok=2, moe_intermediate_size=24, first_k_dense_replace=1, n_group=1, topk_group=1, norm_topk_prob=True,
                            routed_scaling_factor=1.5, score_function="sigmoid", moe_router_enable_expert_bias=True, pad_token_id=0,
                            rope_scaling={"type": "deepseek_yarn", "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 32,
                                          "beta_slow": 1, "mscale": 0.7, "mscale_all_dim": 1.3},
                            **{**LATENT, **UNTIED, "num_hidden_layers": 3, "q_lora_rank": None}))
AXK1 = without(family("AXK1ForCausalLM", "axk1", n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=3, moe_intermediate_size=24,
                      first_k_dense_replace=1, moe_layer_freq=1, n_group=4, topk_group=2, norm_topk_prob=True, routed_scaling_factor=2.5,
                      scoring_func="sigmoid", attention_bias=False, pad_token_id=0, **{**LATENT, **UNTIED, "num_hidden_layers": 3,
                                                                                        "rms_norm_eps": 0.03}))
HY_V4 = {**family("HYV4ForCausalLM", "hy_v4", n_routed_experts=6, n_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=24,
                  layer_types=["deepseek_sparse_attention"] * 3, mlp_layer_types=["dense", "sparse", "sparse"], norm_topk_prob=True,
                  routed_scaling_factor=1.7, attention_bias=False, index_topk=16, index_head_dim=10, index_n_heads=12,
                  indexer_types=["full", "shared", "full"], hc_mult=4, hc_magnitude=1.5, hc_eps=0.05, swiglu_limit=0.6, learnable_sink_init=0.0,
                  enable_ihc=True, gated_mla=True, gating_type="elementwise", learnable_sink=True, enable_lm_head_fp32=True, mtp_loss_factor=0.1,
                  num_nextn_predict_layers=1, pad_token_id=0), **LATENT, **UNTIED, "num_hidden_layers": 3, "rms_norm_eps": 0.03}
HY_V4_SAVED = {**new_keys(without(HY_V4, "enable_ihc", "gated_mla", "gating_type", "learnable_sink", "enable_lm_head_fp32", "mtp_loss_factor",
                                  "num_nextn_predict_layers")),
               "layer_types": ["indexed_attention"] * 3, "n_group": 1, "topk_group": 1, "head_dim": 6, "qk_head_dim": 16,
               "output_router_logits": False, "transformers_version": "5.24.0"}
HY_V4_TEXT = {**new_keys(HY_V4, mrope_section=[1, 1, 1]), "model_type": "hy_v4_vl_text", "layer_types": ["indexed_attention"] * 3}
LONGCAT_FLASH = without(family("LongcatFlashForCausalLM", "longcat_flash", num_layers=2, ffn_hidden_size=40, expert_ffn_hidden_size=24, moe_topk=3,
                               n_routed_experts=6, zero_expert_num=3, zero_expert_type="identity", routed_scaling_factor=1.5, router_bias=False,
                               attention_bias=False, attention_method="MLA", mla_scale_q_lora=True, mla_scale_kv_lora=True, head_dim=6,
                               hidden_act="silu", **{**LATENT, **UNTIED, "rms_norm_eps": 0.03}), "num_hidden_layers", "intermediate_size")
SEED_OSS = family("SeedOssForCausalLM", "seed_oss", head_dim=12, attention_bias=True, attention_out_bias=False, mlp_bias=False,
                  pad_token_id=0, **UNTIED)
SOLAR_OPEN = family("SolarOpenForCausalLM", "solar_open", head_dim=12, attention_bias=False, moe_intermediate_size=24,
                    n_routed_experts=6, num_experts_per_tok=2, n_shared_experts=1, n_group=1, topk_group=1, norm_topk_prob=True,
                    routed_scaling_factor=1.5, **UNTIED)
VAULT_GEMMA = without(family("VaultGemmaForCausalLM", "vaultgemma", head_dim=12, num_hidden_layers=3, hidden_activation="gelu_pytorch_tanh",
                             query_pre_attn_scalar=20, sliding_window=7, attn_logit_softcapping=2.0, final_logit_softcapping=30.0,
                             pad_token_id=0), "hidden_act")

MPT = {"architectures": ["MptForCausalLM"], "model_type": "mpt", "vocab_size": 77, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64,
       "expansion_ratio": 4, "layer_norm_epsilon": 0.02, "no_bias": True, "norm_type": "low_precision_layernorm", "learned_pos_emb": True,
       "attn_config": {"alibi": True, "alibi_bias_max": 8, "attn_type": "multihead_attention", "attn_impl": "torch", "clip_qkv": None,
                       "prefix_lm": False, "qk_ln": False, "softmax_scale": None, "attn_pdrop": 0}, "logit_scale": None, "emb_pdrop": 0,
       "resid_pdrop": 0, "init_device": "cpu", "embedding_fraction": 1.0, "torch_dtype": "float32", "bos_token_id": 1, "eos_token_id": 2, **TIED}
PHI4 = {**family("Phi4MultimodalForCausalLM", "phi4_multimodal", sliding_window=None, original_max_position_embeddings=64, pad_token_id=0, **UNTIED),
        "vision_config": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "crop_size": 28, "image_size": 28},
        "audio_config": {"hidden_size": 8, "intermediate_size": 8, "num_blocks": 1, "num_attention_heads": 1, "ext_pw_out_channel": 8,
                         "nemo_conv_channels": 8}}
PHI4_LONG = {"type": "longrope", "short_factor": [1.0, 1.1, 1.3, 1.7], "long_factor": [1.5, 2.5, 4.0, 9.0]}


def phi4mm(config):
    """As published: by its own code."""
    return {**config, "architectures": ["Phi4MMForCausalLM"], "model_type": "phi4mm"}



def as_sarvam(config):
    """Ling 2 in the keys of Sarvam 30B, whose code in transformers is that of GLM-4.5: with the defaults of Ling."""
    size = config.get("rotary_dim", config["head_dim"] * config.get("partial_rotary_factor", 1.0))
    usual = {"routed_scaling_factor": 1.0, "rope_theta": 600000.0, "num_shared_experts": 1, "use_qk_norm": True, "norm_topk_prob": True}
    return {**usual, **without(config, "rotary_dim", "num_nextn_predict_layers"), "architectures": ["Glm4MoeForCausalLM"], "model_type": "sarvam_moe",
            "partial_rotary_factor": size / config["head_dim"]}


CASES = {
    "mpt": MPT,
    "mpt-six": {**MPT, "n_heads": 6, "d_model": 48, "attn_config": {**MPT["attn_config"], "softmax_scale": 0.5}, **UNTIED},
    "mpt-plain": {**without(MPT, "torch_dtype", "attn_config", "tie_word_embeddings"), "dtype": "float32", "n_layers": 3},
    "mpt-published": {**MPT, "architectures": ["MPTForCausalLM"], "verbose": 0},
    "mpt-published-six": {**MPT, "architectures": ["MPTForCausalLM"], "n_heads": 6, "d_model": 48, **UNTIED},
    "mpt-published-seven": {**MPT, "architectures": ["MPTForCausalLM"], "n_heads": 7, "d_model": 42},
    "phi4-multimodal": PHI4,
    "phi4-multimodal-longrope": {**PHI4, "rope_scaling": PHI4_LONG, "max_position_embeddings": 256, "original_max_position_embeddings": 8, **TIED},
    "phi4-multimodal-seven": {**PHI4, "num_attention_heads": 7, "num_key_value_heads": 1, "head_dim": 6, "sliding_window": 7},
    "phi4mm": phi4mm(PHI4),
    "phi4mm-longrope": phi4mm({**PHI4, "rope_scaling": PHI4_LONG, "max_position_embeddings": 256, **TIED}),
    "phi4mm-seven": phi4mm({**PHI4, "num_attention_heads": 7, "num_key_value_heads": 1, "head_dim": 6, "sliding_window": 7}),
    "afmoe": AFMOE,
    "afmoe-seven": {**without(AFMOE, "num_dense_layers"), **SEVEN, "hidden_size": 32, "num_hidden_layers": 3, "mup_enabled": False,
                    "num_shared_experts": 2, "num_experts_per_tok": 3, "layer_types": ["full_attention", "sliding_attention", "full_attention"]},
    "afmoe-new-keys": {**without(new_keys(AFMOE, **LLAMA3), "route_scale"), "num_hidden_layers": 3, "num_dense_layers": 0,
                       "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], **TIED},
    "arcee": ARCEE,
    "arcee-bias": {**ARCEE, **SEVEN, "attention_bias": True, "mlp_bias": True},
    "arcee-new-keys": {**new_keys(ARCEE, **LLAMA3), "num_key_value_heads": 4, **TIED},
    "diffllama": DIFFLLAMA,
    "diffllama-seven": {**DIFFLLAMA, "num_attention_heads": 14, "num_key_value_heads": 2, "head_dim": 6, "num_hidden_layers": 3, "attention_bias": True},
    "diffllama-new-keys": {**new_keys(DIFFLLAMA, **LLAMA3), "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 18, **TIED},
    "cohere2-moe": COHERE2_MOE,
    "cohere2-moe-sigmoid": {**without(COHERE2_MOE, "mlp_layer_types", "logit_scale", "prefix_dense_intermediate_size"), **SEVEN,
                            "hidden_size": 32, "num_hidden_layers": 3, "first_k_dense_replace": 1, "prefix_dense_sliding_window_pattern": 4,
                            "layer_types": ["full_attention", "sliding_attention", "full_attention"], "expert_selection_fn": "sigmoid",
                            "rms_norm_eps": 0.02, "shared_expert_combination_strategy": "sum", "num_shared_experts": 2, "attention_bias": True},
    "cohere2-moe-new-keys": {**without(new_keys(COHERE2_MOE), "mlp_layer_types"), "num_hidden_layers": 2, "norm_topk_prob": False,
                             "layer_types": ["sliding_attention", "full_attention"], "expert_selection_fn": "sigmoid", "num_shared_experts": 0,
                             "num_experts_per_tok": 3, **TIED},
    "cwm": CWM,
    "cwm-seven": {**CWM, **SEVEN, "mlp_bias": True, "num_hidden_layers": 3},
    "cwm-types": {**CWM, "num_hidden_layers": 3, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], **TIED},
    "dots1": DOTS1,
    "dots1-window": {**DOTS1, **SEVEN, "hidden_size": 32, "sliding_window": 7, "max_window_layers": 1, "attention_bias": True, "n_group": 3,
                     "topk_group": 2, "n_shared_experts": 2},
    "dots1-new-keys": {**new_keys(DOTS1), "norm_topk_prob": False, "first_k_dense_replace": 0, "sliding_window": 7,
                       "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], **TIED},
    "ernie4_5": ERNIE4_5,
    "ernie4_5-bias": {**ERNIE4_5, **SEVEN, "use_bias": True, **UNTIED},
    "ernie4_5-new-keys": {**new_keys(ERNIE4_5), "num_key_value_heads": 4},
    "ernie4_5-moe": ERNIE4_5_MOE,
    "ernie4_5-moe-seven": {**without(ERNIE4_5_MOE, "moe_num_shared_experts", "moe_layer_start_index"), **SEVEN, "hidden_size": 32, "num_hidden_layers": 5,
                           "moe_layer_interval": 2, "moe_layer_end_index": 3, "moe_k": 3, **UNTIED},
    "ernie4_5-moe-new-keys": {**without(new_keys(ERNIE4_5_MOE), "head_dim"), "num_hidden_layers": 2, "moe_layer_start_index": 0, "num_key_value_heads": 4,
                              "moe_num_shared_experts": 0},
    "exaone4": EXAONE4,
    "exaone4-full": {**EXAONE4, **SEVEN, "sliding_window": None, "sliding_window_pattern": None, "num_hidden_layers": 2,
                     "layer_types": ["full_attention"] * 2},
    "exaone4-types": {**new_keys(EXAONE4, **LLAMA3), "head_dim": 12, "num_hidden_layers": 3,
                      "layer_types": ["full_attention", "sliding_attention", "full_attention"], **TIED},
    "exaone-moe": EXAONE_MOE,
    "exaone-moe-groups": {**without(EXAONE_MOE, "first_k_dense_replace", "routed_scaling_factor"), **SEVEN, "hidden_size": 32,
                          "num_hidden_layers": 3, "n_group": 3, "topk_group": 2, "num_shared_experts": 2,
                          "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]},
    "exaone-moe-types": {**new_keys(EXAONE_MOE, **LLAMA3), "num_hidden_layers": 3, "norm_topk_prob": False,
                         "mlp_layer_types": ["sparse", "dense", "sparse"],
                         "layer_types": ["full_attention", "sliding_attention", "full_attention"], **TIED},
    "flex-olmo": FLEX_OLMO,
    "flex-olmo-bias": {**FLEX_OLMO, "num_attention_heads": 7, "num_key_value_heads": 1, "hidden_size": 28, "attention_bias": True,
                       "norm_topk_prob": True},
    "flex-olmo-new-keys": {**new_keys(FLEX_OLMO), "head_dim": 12, "num_experts": 4, "num_experts_per_tok": 3, **TIED},
    "gptj": GPTJ,
    "gptj-whole-head": {**GPTJ, "n_embd": 56, "n_head": 7, "n_inner": 40, "rotary_dim": 8, "activation_function": "gelu"},
    "gptj-tied": {**without(GPTJ, "torch_dtype"), "dtype": "float32", "n_layer": 3, "n_head": 2, "rotary_dim": 6, **TIED},
    "granite-moe-shared": GRANITE_SHARED,
    "granite-moe-shared-none": {**GRANITE_SHARED, "head_dim": 12, "shared_intermediate_size": 0, "attention_bias": True, **TIED},
    "granite-moe-shared-new-keys": {**new_keys(GRANITE_SHARED), "num_attention_heads": 7, "num_key_value_heads": 1,
                                    "hidden_size": 28, "num_experts_per_tok": 3},
    "apertus": APERTUS,
    "apertus-seven": {**APERTUS, **SEVEN, "attention_bias": True},
    "apertus-new-keys": {**without(new_keys(APERTUS), "rope_scaling", "qk_norm", "post_norm", "mlp_bias"), "num_hidden_layers": 3,
                         "num_key_value_heads": 4, **TIED},
    "bloom": BLOOM,
    "bloom-seven": {**without(BLOOM, "hidden_size", "n_head", "tie_word_embeddings"), "n_embed": 42, "num_attention_heads": 7},
    "bloom-first-names": {**BLOOM, "n_layer": 3, "n_head": 2, **TIED},
    "nanochat": NANOCHAT,
    "nanochat-seven": {**without(NANOCHAT, "final_logit_softcapping"), **SEVEN, "attention_bias": True},
    "nanochat-new-keys": {**new_keys(NANOCHAT, rope_type="yarn", factor=4.0, original_max_position_embeddings=16, attention_factor=3.0),
                          "num_hidden_layers": 3, "final_logit_softcapping": None, **TIED},
    "lfm2": LFM2,
    "lfm2-seven": {**LFM2, **SEVEN, "head_dim": 10, "conv_bias": True, "conv_L_cache": 4, "block_auto_adjust_ff_dim": False,
                   "num_hidden_layers": 3, "full_attn_idxs": [2]},
    "lfm2-new-keys": {**without(new_keys(LFM2), "block_ff_dim", "tie_embedding", "full_attn_idxs", "block_multiple_of",
                                "block_ffn_dim_multiplier", "block_auto_adjust_ff_dim", "conv_L_cache"), "intermediate_size": 30,
                      "layer_types": ["conv", "full_attention", "conv"], "num_hidden_layers": 3, "conv_bias": True, **TIED},
    "lfm2-moe": LFM2_MOE,
    "lfm2-moe-seven": {**without(LFM2_MOE, "routed_scaling_factor"), **SEVEN, "head_dim": 10, "conv_bias": True, "conv_L_cache": 2,
                       "use_expert_bias": False, "num_dense_layers": 2},
    "lfm2-moe-new-keys": {**without(new_keys(LFM2_MOE), "num_dense_layers", "use_expert_bias"), "norm_topk_prob": False, "num_experts_per_tok": 3,
                          **TIED},
    "helium": HELIUM,
    "helium-bias": {**HELIUM, **SEVEN, "attention_bias": True, "mlp_bias": True},
    "helium-new-keys": {**new_keys(HELIUM), "num_key_value_heads": 4, **TIED},
    "hunyuan-dense": HUNYUAN_DENSE,
    "hunyuan-dense-bias": {**without(HUNYUAN_DENSE, "attention_head_dim", "rope_scaling"), **SEVEN, "attention_bias": True},
    "hunyuan-dense-new-keys": {**without(new_keys(HUNYUAN_DENSE, rope_type="dynamic", alpha=50.0, factor=1.0), "rope_scaling"), "num_key_value_heads": 4,
                               **TIED},
    "hunyuan-moe": HUNYUAN_MOE,
    "hunyuan-moe-bias": {**without(HUNYUAN_MOE, "attention_head_dim", "rope_scaling", "moe_intermediate_size", "num_shared_expert"), **SEVEN,
                         "hidden_size": 32, "attention_bias": True, "moe_topk": 3},
    "hunyuan-moe-new-keys": {**without(new_keys(HUNYUAN_MOE, rope_type="dynamic", alpha=50.0, factor=1.0), "rope_scaling"),
                             "num_key_value_heads": 4, "moe_topk": 1, **TIED},
    "hy-v3": HY_V3,
    "hy-v3-bias": {**without(HY_V3, "first_k_dense_replace", "expert_hidden_dim", "rope_theta"), **SEVEN, "hidden_size": 32, "attention_bias": True,
                   "mlp_layer_types": ["sparse", "dense", "sparse"], "num_shared_experts": 2, "num_experts_per_tok": 3},
    "hy-v3-new-keys": {**without(new_keys(HY_V3, **LLAMA3), "first_k_dense_replace", "expert_hidden_dim", "router_scaling_factor", "route_norm"),
                       "num_hidden_layers": 2, "num_key_value_heads": 4, **TIED},
    "hyperclovax": HYPERCLOVAX,
    "hyperclovax-plain": {**HYPERCLOVAX, **SEVEN, "use_post_norm": False, "attention_bias": True, "mlp_bias": True},
    "hyperclovax-new-keys": {**without(new_keys(HYPERCLOVAX), "attention_multiplier"), "num_key_value_heads": 4, **TIED},
    "iquest-coder": IQUEST,
    "iquest-coder-bias": {**IQUEST, **SEVEN, "attention_bias": True, "mlp_bias": True},
    "iquest-coder-new-keys": {**new_keys(IQUEST, **LLAMA3), "num_key_value_heads": 4, **TIED},
    "mimo": MIMO,
    "mimo-windows": {**MIMO, **SEVEN, "num_hidden_layers": 3, "use_sliding_window": True, "sliding_window": 7, "max_window_layers": 1},
    "mimo-new-keys": {**without(new_keys(MIMO, **LLAMA3), "attention_bias"), "head_dim": 12, "num_key_value_heads": 4, **TIED},
    "jais2": JAIS2,
    "jais2-no-bias": {**JAIS2, **SEVEN, "attention_bias": False, "mlp_bias": False},
    "jais2-new-keys": {**without(new_keys(JAIS2, **LLAMA3), "mlp_bias"), "num_key_value_heads": 4, "attention_bias": False, **TIED},
    "mellum": MELLUM,
    "mellum-yarn": {**without(MELLUM, "mlp_layer_types"), **SEVEN, "hidden_size": 32, "num_hidden_layers": 2, "attention_bias": True,
                    "norm_topk_prob": True, "layer_types": ["full_attention", "sliding_attention"],
                    "rope_parameters": {"full_attention": {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0,
                                                           "original_max_position_embeddings": 16, "beta_fast": 2.0, "beta_slow": 0.5},
                                        "sliding_attention": {"rope_type": "default", "rope_theta": 20.0}}},
    "mellum-new-keys": {**without(MELLUM, "torch_dtype", "rope_parameters", "mlp_layer_types", "norm_topk_prob"), "dtype": "float32",
                        "num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"], "num_experts_per_tok": 3, **TIED},
    "minicpm3": MINICPM3,
    "minicpm3-longrope": {**without(MINICPM3, "q_lora_rank", "v_head_dim"), "q_lora_rank": None, "num_attention_heads": 7, "num_key_value_heads": 7,
                          "hidden_size": 56, "attention_bias": True, "mlp_bias": True, "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.3, 1.7],
                                                                               "long_factor": [1.5, 2.5, 4.0],
                                                                               "original_max_position_embeddings": 8}},
    "minicpm3-new-keys": {**new_keys(MINICPM3, rope_type="yarn", rope_theta=30.0, factor=4.0, original_max_position_embeddings=16, mscale=0.7,
                                     mscale_all_dim=1.3), "num_hidden_layers": 3, **TIED},
    "mistral4": MISTRAL4,
    "mistral4-halves": {**without(MISTRAL4, "first_k_dense_replace", "n_group", "topk_group", "head_dim", "qk_head_dim", "routed_scaling_factor"),
                         "num_attention_heads": 7, "num_key_value_heads": 7, "hidden_size": 56, "attention_bias": True, "norm_topk_prob": False,
                         "num_hidden_layers": 2, "rope_interleave": False,
                         "rope_parameters": {**without(MISTRAL4["rope_parameters"], "partial_rotary_factor"), "mscale": 0.7}},
    "mistral4-tied": {**MISTRAL4, "n_shared_experts": 2, "kv_lora_rank": 18, "num_hidden_layers": 2, "dtype": "float32", **TIED},
    "ministral": MINISTRAL,
    "ministral-full": {**MINISTRAL, **SEVEN, "layer_types": ["full_attention"] * 2},
    "ministral-types": {**new_keys(MINISTRAL), "num_hidden_layers": 3,
                        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"], **TIED},
    "nemotron": NEMOTRON,
    "nemotron-bias": {**NEMOTRON, **SEVEN, "head_dim": 8, "partial_rotary_factor": 0.25, "attention_bias": True, "mlp_bias": True},
    "nemotron-new-keys": {**without(new_keys(NEMOTRON, partial_rotary_factor=0.5), "partial_rotary_factor"), **TIED},
    "olmo": OLMO,
    "olmo-bias": {**OLMO, **SEVEN, "attention_bias": True},
    "olmo-new-keys": {**without(new_keys(OLMO, **LLAMA3), "clip_qkv"), "num_key_value_heads": 4, **TIED},
    "phimoe": PHIMOE,
    "phimoe-seven": {**PHIMOE, **SEVEN, "num_local_experts": 6, "router_jitter_noise": 0.4, "attention_bias": False, "sliding_window": 9},
    "phimoe-tied": {**PHIMOE, "head_dim": 12, "num_key_value_heads": 4, "lm_head_bias": False, **TIED},
    "phimoe-published": {**PHIMOE_PUBLISHED, "head_dim": 12},
    "phimoe-published-seven": {**without(PHIMOE_PUBLISHED, "router_jitter_noise"), **SEVEN, "sliding_window": 9, "attention_bias": True},
    "phimoe-longrope": {**PHIMOE_PUBLISHED, "router_jitter_noise": 0.0, **TIED,
                        "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.5, 2.0, 2.5], "long_factor": [2.0, 3.0, 4.0, 5.0],
                                         "short_mscale": 1.2, "long_mscale": 1.2, "original_max_position_embeddings": 48}},
    "persimmon": PERSIMMON,
    "persimmon-plain": {**PERSIMMON, "num_attention_heads": 7, "hidden_size": 56, "qk_layernorm": False, "rope_theta": 500.0,
                        "partial_rotary_factor": 0.25},
    "persimmon-new-keys": {**without(new_keys(PERSIMMON, partial_rotary_factor=1.0), "qk_layernorm"), "num_hidden_layers": 3, **TIED},
    "ling2": LING2,
    "ling2-seven": {**without(LING2, "use_qk_norm", "use_rmsnorm", "partial_rotary_factor", "routed_scaling_factor", "num_shared_experts", "rope_theta",
                              "moe_router_enable_expert_bias", "norm_topk_prob", "moe_shared_expert_intermediate_size"),
                    **SEVEN, "hidden_size": 35, "model_type": "bailing_moe_v2", "use_qkv_bias": True, "n_group": 1, "topk_group": 1,
                    "num_experts_per_tok": 3},
    "ling2-rotary-dim": {**without(LING2, "partial_rotary_factor", "use_qkv_bias", "torch_dtype"), "dtype": "float32", "rotary_dim": 4, "use_qk_norm": False,
                         "num_shared_experts": 2, "first_k_dense_replace": 0, "num_hidden_layers": 2, "num_experts": 8, "n_group": 4, "head_dim": 10,
                         "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}, "rope_theta": 500.0, **TIED},
    "sarvam-moe": SARVAM_MOE,
    "sarvam-moe-seven": {**without(SARVAM_MOE, "use_qk_norm", "first_k_dense_replace", "routed_scaling_factor", "num_shared_experts", "rope_theta"),
                         **SEVEN, "hidden_size": 32, "use_qkv_bias": True, "n_group": 3, "topk_group": 2, "norm_topk_prob": False},
    "sarvam-moe-new-keys": {**without(new_keys(SARVAM_MOE, partial_rotary_factor=0.5), "num_experts", "num_shared_experts", "use_qkv_bias"),
                            "n_routed_experts": 8, "n_shared_experts": 2, "use_qk_norm": False, "attention_bias": False, **TIED},
    "sarvam-mla": SARVAM_MLA,
    "sarvam-mla-seven": {**without(SARVAM_MLA, "first_k_dense_replace", "routed_scaling_factor", "num_shared_experts", "num_key_value_heads", "rope_scaling"),
                         "num_attention_heads": 7, "hidden_size": 56, "attention_bias": True, "n_group": 3, "topk_group": 2, "head_dim": 6},
    "sarvam-mla-new-keys": {**without(new_keys(SARVAM_MLA, rope_type="yarn", rope_theta=30.0, factor=4.0, original_max_position_embeddings=16),
                                      "num_experts", "num_shared_experts", "rope_scaling", "q_head_dim"), "n_routed_experts": 8, "n_shared_experts": 2,
                            "q_lora_rank": 20, "rope_interleave": False, **TIED},
    "axk1": AXK1,
    "axk1-seven": {**without(AXK1, "first_k_dense_replace", "moe_layer_freq", "scoring_func"), "num_attention_heads": 7, "num_key_value_heads": 7,
                   "hidden_size": 56, "attention_bias": True, "num_hidden_layers": 4, "mlp_layer_types": ["dense", "sparse", "dense", "sparse"],
                   "n_group": 1, "topk_group": 1, "topk_method": "none", "norm_topk_prob": False, "routed_scaling_factor": 1.3},
    "axk1-new-keys": {**new_keys(AXK1, rope_type="yarn", rope_theta=30.0, factor=4.0, original_max_position_embeddings=16, beta_fast=32, beta_slow=1,
                                 mscale=0.7, mscale_all_dim=1.3), "first_k_dense_replace": 0, "topk_method": "noaux_tc", "rope_interleave": False,
                      "n_shared_experts": 2, "num_hidden_layers": 2, "v_head_dim": 12, **TIED},
    "hy-v4": HY_V4,
    "hy-v4-seven": {**without(HY_V4, "indexer_types"), "num_attention_heads": 7, "num_key_value_heads": 7, "hidden_size": 56, "hc_mult": 3,
                    "num_hidden_layers": 4, "layer_types": ["deepseek_sparse_attention"] * 4, "mlp_layer_types": ["sparse"] * 4, "hc_magnitude": 2.0,
                    "hc_eps": 1e-6, "v_head_dim": 26, "n_shared_experts": 2, "rope_theta": 30.0},
    "hy-v4-saved": {**HY_V4_SAVED, "hc_mult": 2, "swiglu_limit": 0.9},
    "hy-v4-saved-dense": {**HY_V4_SAVED, "num_hidden_layers": 2, "layer_types": ["indexed_attention"] * 2, "mlp_layer_types": ["dense"] * 2,
                          "indexer_types": ["full", "full"], "index_topk": 64, **TIED},
    "longcat-flash": LONGCAT_FLASH,
    "longcat-flash-seven": {**LONGCAT_FLASH, "num_attention_heads": 7, "num_key_value_heads": 7, "hidden_size": 56, "num_layers": 1,
                            "attention_bias": True, "n_routed_experts": 4, "zero_expert_num": 7, "moe_topk": 4, "routed_scaling_factor": 0.7},
    "longcat-flash-new-keys": {**without(new_keys(LONGCAT_FLASH, rope_type="yarn", rope_theta=30.0, factor=4.0, original_max_position_embeddings=16,
                                                  beta_fast=32, beta_slow=1, mscale=0.7, mscale_all_dim=1.3), "zero_expert_type", "router_bias",
                                         "attention_method", "mla_scale_q_lora", "mla_scale_kv_lora"), "num_layers": 2, "zero_expert_num": 0,
                               "v_head_dim": 12, "kv_lora_rank": 26, "qk_head_dim": 16, "moe_topk": 2, **TIED},
    "seed-oss": SEED_OSS,
    "seed-oss-no-bias": {**SEED_OSS, **SEVEN, "attention_bias": False, "attention_out_bias": True, "mlp_bias": True},
    "seed-oss-new-keys": {**new_keys(SEED_OSS), "num_key_value_heads": 4, **TIED},
    "solar-open": SOLAR_OPEN,
    "solar-open-seven": {**SOLAR_OPEN, **SEVEN, "hidden_size": 32, "n_group": 3, "topk_group": 2, "n_shared_experts": 2, "attention_bias": True},
    "solar-open-new-keys": {**new_keys(SOLAR_OPEN), "norm_topk_prob": False, **TIED},
    "vault-gemma": VAULT_GEMMA,
    "vault-gemma-seven": {**VAULT_GEMMA, **SEVEN, "final_logit_softcapping": None, "attn_logit_softcapping": 1.0, "attention_bias": True},
    "vault-gemma-types": {**new_keys(VAULT_GEMMA), "layer_types": ["full_attention", "sliding_attention", "full_attention"],
                          "attn_logit_softcapping": None, **UNTIED},
}

# Models with more parts, whose language model is a row.
TINY_VISION = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "image_size": 4,
               "patch_size": 4}
SIGLIP, CLIP = {**TINY_VISION, "model_type": "siglip_vision_model"}, {**TINY_VISION, "model_type": "clip_vision_model", "projection_dim": 8}
NO_IMAGES = {"image_token_index": 0, "image_token_id": 0, "video_token_id": 0, "video_token_index": 0}
GLM_VISION = {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 1, "patch_size": 4, "image_size": 8,
              "spatial_merge_size": 1, "temporal_patch_size": 1}
QWEN_VISION = {"depth": 1, "hidden_size": 8, "out_hidden_size": 32, "intermediate_size": 8, "num_heads": 1, "patch_size": 4,
               "spatial_merge_size": 1, "temporal_patch_size": 1, "num_position_embeddings": 4, "deepstack_visual_indexes": [],
               "model_type": "qwen3_vl_moe_vision"}
LLAMA = family("LlamaForCausalLM", "llama", **UNTIED)
QWEN2 = family("Qwen2ForCausalLM", "qwen2", use_sliding_window=False, **UNTIED)
QWEN3 = family("Qwen3ForCausalLM", "qwen3", head_dim=12, attention_bias=True, use_sliding_window=False, **UNTIED)
GLM4V = family("Glm4vForConditionalGeneration", "glm4v_text", partial_rotary_factor=0.5, attention_bias=True,
               rope_scaling={"type": "default", "mrope_section": [1, 1, 0]}, pad_token_id=0, **UNTIED)
GLM4V_MOE = family("Glm4vMoeForConditionalGeneration", "glm4v_moe_text", partial_rotary_factor=0.5, attention_bias=True,
                   rope_scaling={"type": "default", "mrope_section": [1, 1, 0]}, moe_intermediate_size=24, n_routed_experts=6,
                   num_experts_per_tok=2, n_shared_experts=1, first_k_dense_replace=1, n_group=1, topk_group=1, norm_topk_prob=True,
                   routed_scaling_factor=1.5, num_hidden_layers=3, pad_token_id=0, **UNTIED)
QWEN3_VL_MOE = family("Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe_text", head_dim=16, attention_bias=False,
                      rope_scaling={"rope_type": "default", "mrope_section": [4, 2, 2], "mrope_interleaved": True},
                      decoder_sparse_step=1, mlp_only_layers=[], moe_intermediate_size=24, num_experts=5, num_experts_per_tok=2, **UNTIED)


OMNI_VISION = {"depth": 1, "hidden_size": 8, "intermediate_size": 8, "num_heads": 1, "patch_size": 4, "spatial_merge_size": 1,
               "temporal_patch_size": 1, "window_size": 4, "fullatt_block_indexes": [0]}
QWEN2_OMNI = family("Qwen2_5OmniForConditionalGeneration", "qwen2_5_omni_text", use_sliding_window=False, sliding_window=7, max_window_layers=2,
                    rope_scaling={"type": "mrope", "rope_type": "default", "mrope_section": [2, 1, 1]}, **UNTIED)
QWEN3_OMNI = without(family("Qwen3OmniMoeForConditionalGeneration", "qwen3_omni_moe_text", head_dim=16, attention_bias=False, num_experts=5,
                            rope_scaling={"rope_type": "default", "mrope_section": [4, 2, 2], "mrope_interleaved": True}, decoder_sparse_step=1,
                            num_experts_per_tok=2, moe_intermediate_size=24, norm_topk_prob=True, mlp_only_layers=[], **UNTIED))
COHERE2_TEXT = without(family("Cohere2ForCausalLM", "cohere2", layer_norm_eps=0.03, logit_scale=0.25, attention_bias=False, sliding_window=7,
                              num_hidden_layers=4, sliding_window_pattern=3, **UNTIED), "rms_norm_eps")
GEMMA4_UNIFIED = without(family("Gemma4UnifiedForConditionalGeneration", "gemma4_unified_text", head_dim=10, global_head_dim=14, num_hidden_layers=4,
                                hidden_activation="gelu_pytorch_tanh", sliding_window=7, attention_bias=False,
                                rope_parameters={"full_attention": {"rope_type": "proportional", "rope_theta": 500.0, "partial_rotary_factor": 0.5},
                                                 "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}},
                                layer_types=["sliding_attention", "full_attention"] * 2, num_kv_shared_layers=0, attention_k_eq_v=False,
                                use_double_wide_mlp=False, pad_token_id=0, **UNTIED), "hidden_act", "rope_theta")


def wrapper(architecture, model_type, text, vision, **more):
    return {"architectures": [architecture], "model_type": model_type, "torch_dtype": "float32", **NO_IMAGES,
            "tie_word_embeddings": text.get("tie_word_embeddings", True), **more,
            "text_config": without(text, "architectures", "torch_dtype"), "vision_config": vision}


def three(name, architecture, model_type, text, vision, seven=None, wide=False, **more):
    """A wrapper around `text`, around the same with seven heads, and around one that is tied."""
    small = {**text, **(seven or SEVEN)}
    return {name: wrapper(architecture, model_type, text, vision(text), **more),
            f"{name}-seven": wrapper(architecture, model_type, small, vision(small), **more),
            f"{name}-tied": wrapper(architecture, model_type, {**text, "num_key_value_heads": 4, **TIED, **({"head_dim": 12} if wide else {})},
                                    vision(text), **more)}


def omni(name, architecture, model_type, text):
    """The thinker of a model that also speaks: as it is, with seven heads, and tied."""
    texts = {name: text, f"{name}-seven": {**text, **SEVEN, "hidden_size": 56, "head_dim": 8}, f"{name}-tied": {**text, "num_key_value_heads": 4, **TIED}}
    return {each: {"architectures": [architecture], "model_type": model_type, "torch_dtype": "float32", "thinker_config": {
        "model_type": f"{model_type}_thinker", "tie_word_embeddings": of["tie_word_embeddings"],
        "text_config": without(of, "architectures", "torch_dtype")}} for each, of in texts.items()}


SEVEN_WIDE = {**SEVEN, "head_dim": 8, "hidden_size": 56}
ERNIE_VL, ERNIE_VL_VISION = "Ernie4_5_VLMoeForConditionalGeneration", {**GLM_VISION, "model_type": "ernie4_5_vl_moe_vision"}
ERNIE_VL_TEXT = {**without(new_keys(ERNIE4_5_MOE, mrope_section=[2, 2, 2]), "moe_layer_start_index", "moe_layer_end_index", "moe_layer_interval", "dtype"),
                 "model_type": "ernie4_5_vl_moe_text", "moe_intermediate_size": [24, 12]}
# Published keys: for each number of experts one for text and one for images.
ERNIE_VL_FLAT = {**ERNIE4_5_MOE, "architectures": [ERNIE_VL], "model_type": "ernie4_5_moe_vl", "head_dim": 8, "num_key_value_heads": 4,
                 "num_hidden_layers": 4, "moe_intermediate_size": [24, 12], "moe_num_experts": [6, 6], "moe_layer_start_index": [1, 1],
                 "moe_layer_end_index": [4, 3], "moe_layer_interval": 2, "moe_num_shared_experts": 2, "moe_use_aux_free": True, "freq_allocation": 2,
                 "rope_3d": True, "vision_config": ERNIE_VL_VISION, **UNTIED}


def as_ernie_vl(flat):
    """A published config of ERNIE 4.5 VL in the keys of transformers."""
    first, last = flat["moe_layer_start_index"][0], flat["moe_layer_end_index"][0]
    sparse = [first <= i <= last and (i + 1) % flat["moe_layer_interval"] == 0 for i in range(flat["num_hidden_layers"])]
    angles, time = flat["head_dim"] // 2, flat["freq_allocation"]
    text = {**without(flat, "moe_layer_start_index", "moe_layer_end_index", "moe_layer_interval", "moe_use_aux_free", "freq_allocation", "rope_3d",
                      "vision_config", "rope_theta"),
            "model_type": "ernie4_5_vl_moe_text", "moe_num_experts": flat["moe_num_experts"][0],
            "mlp_layer_types": ["sparse" if each else "dense" for each in sparse],
            "rope_parameters": {"rope_type": "default", "rope_theta": flat["rope_theta"],
                                "mrope_section": [(angles - time) // 2, (angles - time) // 2, time]}}
    return wrapper(ERNIE_VL, "ernie4_5_vl_moe", text, flat["vision_config"])


WRAPPERS = {
    "ernie4_5-vl": wrapper(ERNIE_VL, "ernie4_5_vl_moe", ERNIE_VL_TEXT, ERNIE_VL_VISION),
    "ernie4_5-vl-seven": wrapper(ERNIE_VL, "ernie4_5_vl_moe", {
        **ERNIE_VL_TEXT, **SEVEN, "hidden_size": 32, "num_hidden_layers": 4, "mlp_layer_types": ["sparse", "dense", "dense", "sparse"], "moe_k": 3,
        "rope_parameters": {"rope_type": "default", "rope_theta": 300.0, "mrope_section": [1, 1, 1]}, "moe_num_shared_experts": 0, **UNTIED},
        ERNIE_VL_VISION),
    "ernie4_5-vl-published": ERNIE_VL_FLAT,
    **three("glm4v", "Glm4vForConditionalGeneration", "glm4v", GLM4V, lambda text: {**GLM_VISION, "model_type": "glm4v_vision",
            "out_hidden_size": text["hidden_size"]}, {**SEVEN_WIDE, "rope_scaling": {"type": "default", "mrope_section": [1, 1, 0]}}),
    **three("glm4v-moe", "Glm4vMoeForConditionalGeneration", "glm4v_moe", GLM4V_MOE, lambda text: {**GLM_VISION,
            "model_type": "glm4v_moe_vision", "out_hidden_size": text["hidden_size"]}, {**SEVEN_WIDE, "hidden_size": 32}),
    **three("glm46v", "Glm46VForConditionalGeneration", "glm46v", GLM4V_MOE, lambda text: {**GLM_VISION, "model_type": "glm4v_moe_vision",
            "out_hidden_size": text["hidden_size"]}, {**SEVEN_WIDE, "hidden_size": 32}),
    **three("idefics3", "Idefics3ForConditionalGeneration", "idefics3", {**LLAMA, "pad_token_id": 0}, lambda _: {**TINY_VISION,
            "model_type": "idefics3_vision"}, scale_factor=1, wide=True),
    **three("internvl", "InternVLForConditionalGeneration", "internvl", QWEN2, lambda _: {**TINY_VISION, "model_type": "internvl_vision",
            "image_size": [4, 4], "patch_size": [4, 4]}, {**without(SEVEN, "head_dim")}, downsample_ratio=1.0, wide=True),
    **three("llava-next", "LlavaNextForConditionalGeneration", "llava_next", LLAMA, lambda _: CLIP, image_grid_pinpoints=[[4, 4]], wide=True),
    **three("llava-onevision", "LlavaOnevisionForConditionalGeneration", "llava_onevision", QWEN2, lambda _: SIGLIP,
            {**without(SEVEN, "head_dim")}, image_grid_pinpoints=[[4, 4]], wide=True),
    **three("qwen3-vl-moe", "Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe", QWEN3_VL_MOE, lambda text: {**QWEN_VISION,
            "out_hidden_size": text["hidden_size"]}, {**SEVEN, "hidden_size": 32, "rope_scaling": {"rope_type": "default",
            "mrope_section": [1, 1, 1], "mrope_interleaved": True}}),
    **three("smolvlm", "SmolVLMForConditionalGeneration", "smolvlm", {**LLAMA, "pad_token_id": 0}, lambda _: {**TINY_VISION,
            "model_type": "smolvlm_vision"}, scale_factor=1, wide=True),
    **three("mistral4-vision", "Mistral3ForConditionalGeneration", "mistral3", MISTRAL4, lambda _: {**TINY_VISION, "model_type": "pixtral",
            "head_dim": 8}, {"num_attention_heads": 7, "hidden_size": 28, "num_key_value_heads": 7}, vision_feature_layer=-1, spatial_merge_size=1),
    **three("hy-v4-vision", "HYV4VLForConditionalGeneration", "hy_v4_vl", HY_V4_TEXT, lambda text: {"model_type": "hy_v4_vl_vision", "hidden_size": 8,
            "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "patch_size": 4, "spatial_merge_size": 1, "max_image_size": 8,
            "out_hidden_size": text["hidden_size"]}, {"num_attention_heads": 7, "num_key_value_heads": 7, "hidden_size": 56, "hc_mult": 3}),
    "hy-v4-vision-saved": {**wrapper("HYV4VLForConditionalGeneration", "hy_v4_vl", {**HY_V4_TEXT, "num_hidden_layers": 2, "hc_mult": 2,
                           "layer_types": ["indexed_attention"] * 2, "mlp_layer_types": ["dense", "sparse"], "indexer_types": ["full", "shared"]},
                           {"model_type": "hy_v4_vl_vision", "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1,
                            "patch_size": 4, "spatial_merge_size": 1, "max_image_size": 8, "out_hidden_size": 32}), "transformers_version": "5.24.0"},
    **three("exaone4.5", "Exaone4_5_ForConditionalGeneration", "exaone4_5", EXAONE4, lambda text: {**OMNI_VISION, "model_type": "exaone4_5_vision",
            "num_key_value_heads": 1, "out_hidden_size": text["hidden_size"]}, wide=True),
    **three("cohere2-vision", "Cohere2VisionForConditionalGeneration", "cohere2_vision", COHERE2_TEXT, lambda _: {**TINY_VISION,
            "model_type": "siglip_vision_model"}, {**SEVEN, "attention_bias": True}, wide=True, downsample_factor=1,
            alignment_intermediate_size=16),
    **three("gemma4-unified", "Gemma4UnifiedForConditionalGeneration", "gemma4_unified", GEMMA4_UNIFIED, lambda _: {"model_type": "gemma4_unified_vision",
            "patch_size": 2, "mm_embed_dim": 8, "mm_posemb_size": 4, "num_soft_tokens": 4}, audio_config=None),
    **omni("qwen2.5-omni", "Qwen2_5OmniForConditionalGeneration", "qwen2_5_omni", QWEN2_OMNI),
    **omni("qwen2.5-omni-model", "Qwen2_5OmniModel", "qwen2_5_omni", QWEN2_OMNI),  # in published files
    **omni("qwen3-omni", "Qwen3OmniMoeForConditionalGeneration", "qwen3_omni_moe", QWEN3_OMNI),
    **three("intern-s1", "InternS1ForConditionalGeneration", "interns1", {**QWEN3, "num_hidden_layers": 3}, lambda _: {**TINY_VISION,
            "model_type": "interns1_vision", "image_size": [4, 4], "patch_size": [4, 4]}, downsample_ratio=1.0),
    # Code that the models bring along: the language model is one of transformers'.
    "internvl-chat": {"architectures": ["InternVLChatModel"], "model_type": "internvl_chat", "torch_dtype": "float32", "llm_config": QWEN2},
    "internvl-chat-seven": {"architectures": ["InternVLChatModel"], "model_type": "internvl_chat", "torch_dtype": "float32",
                            "llm_config": {**QWEN3, **SEVEN}},
    "internvl-chat-tied": {"architectures": ["InternVLChatModel"], "model_type": "internvl_chat", "torch_dtype": "float32",
                           "llm_config": {**QWEN2, **TIED, "num_key_value_heads": 4, "head_dim": 12}},
}
GRANITE_SWA = family("GraniteSWAForCausalLM", "granite_swa", embedding_multiplier=1.5, attention_multiplier=0.2, residual_multiplier=0.6,
                     logits_scaling=0.7, attention_bias=False, mlp_bias=False, num_hidden_layers=5, sliding_window=7, **UNTIED)
GRANITE_MOE_SWA = {**GRANITE_SHARED, "architectures": ["GraniteMoeSWAForCausalLM"], "model_type": "granitemoe_swa", "num_hidden_layers": 3,
                   "sliding_window": 7, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
YOUTU = {**without(family("YoutuForCausalLM", "youtu", attention_bias=False, kv_lora_rank=24, q_lora_rank=20, qk_rope_head_dim=6,
                          qk_nope_head_dim=10, v_head_dim=12, rope_interleave=True), "num_key_value_heads"), "num_key_value_heads": 4}
CASES.update({
    "granite-swa": GRANITE_SWA,
    "granite-swa-thetas": {**GRANITE_SWA, "head_dim": 12, "num_hidden_layers": 4, "layer_rope_theta": [0, 500.0, 10000.0, 500.0], "attention_bias": True,
                           "mlp_bias": True, "num_key_value_heads": 4, **TIED},
    "granite-swa-seven": {**new_keys(GRANITE_SWA), "num_attention_heads": 7, "num_key_value_heads": 1, "hidden_size": 42,
                          "num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]},
    "granite-moe-swa": GRANITE_MOE_SWA,
    "granite-moe-swa-thetas": {**GRANITE_MOE_SWA, "head_dim": 12, "layer_rope_theta": [10000.0, 0, 200.0], "attention_bias": True,
                               "shared_intermediate_size": 0, **TIED},
    "granite-moe-swa-seven": {**new_keys(GRANITE_MOE_SWA), "num_attention_heads": 7, "num_key_value_heads": 1, "hidden_size": 28},
    "youtu": {**YOUTU, **TIED},
    "youtu-plain-q": {**YOUTU, **UNTIED, "q_lora_rank": None, "rope_interleave": False, "num_attention_heads": 7, "num_key_value_heads": 7},
    "youtu-bias": {**new_keys(YOUTU), **UNTIED, "attention_bias": True, "v_head_dim": 16},
})
# Transformers saves the models of K-EXAONE with another name.
CASES.update({f"{name}-saved": {**CASES[name], "architectures": ["ExaoneMoeForCausalLM"]}
              for name in ("exaone-moe", "exaone-moe-groups", "exaone-moe-types")})
CASES.update(WRAPPERS)
CASES["qwen3-vl-moe-turned"] = {**WRAPPERS["qwen3-vl-moe"], "transformers_version": "4.57.0"}
