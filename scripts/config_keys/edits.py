"""Changes of one key of a config.json, that a family may read or not."""
import itertools

# Keys that are no numbers of the model: names, ids, and keys for training, generation and other
# parts.
OTHER = {"_name_or_path", "_attn_implementation", "architectures", "attn_implementation", "audio_config", "bos_token_id",
         "decoder_start_token_id", "dtype", "eos_token_id", "forced_bos_token_id", "forced_eos_token_id", "id2label", "label2id",
         "model_type", "output_attentions", "output_hidden_states", "output_router_logits", "pad_token_id", "problem_type",
         "quantization_config", "return_dict", "sep_token_id", "sub_configs", "task_specific_params", "text_config",
         "tokenizer_class", "torch_dtype", "torchscript", "transformers_version", "use_bfloat16", "use_cache", "vision_config",
         "_experts_implementation", "experts_implementation", "base_config_key", "is_encoder_decoder"}
ROPE = {"rope_theta", "rope_parameters", "rope_scaling", "rope_local_base_freq", "partial_rotary_factor", "rotary_pct",
        "rotary_emb_base", "rope_interleave"}

WORDS = [["silu", "gelu", "gelu_pytorch_tanh", "relu", "relu2"], ["softmax", "sigmoid"],
         ["greedy", "group_limited_greedy", "noaux_tc"], ["rope", "nope", "alibi", "learned", "rope_gptj"],
         ["rmsnorm", "layernorm"], ["per_layer", "per_head"]]
LAYER_WORDS = [["full_attention", "sliding_attention", "linear_attention", "chunked_attention"],
               ["attention", "mamba", "moe", "mlp"], ["dense", "sparse"], ["full", "shared"], ["hybrid"]]
# Values for keys that the family has, but leaves null.
INSTEAD_OF_NULL = [True, 1, 4, 0.5]
# Keys that choose layers with windows, heads, experts or their own rope, and keys that scale a
# product.
FOREIGN = {
    "layer_types": None, "sliding_window": 7, "sliding_window_pattern": 2, "max_window_layers": 1, "use_sliding_window": True,
    "no_rope_layers": None, "no_rope_layer_interval": 2, "attention_chunk_size": 5, "attention_bias": True, "mlp_bias": True,
    "use_bias": True, "head_dim": 4, "global_head_dim": 6, "num_kv_shared_layers": 1, "partial_rotary_factor": 0.5,
    "logit_scale": 0.3, "logits_scaling": 3.0, "embedding_multiplier": 2.0, "residual_multiplier": 0.5,
    "attention_multiplier": 0.7, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 2.0, "query_pre_attn_scalar": 3,
    "qk_norm": True, "use_qk_norm": True, "qk_layernorm": True, "attention_k_eq_v": True, "clip_qkv": 0.5, "swiglu_limit": 0.1,
    "rope_interleave": False, "rope_local_base_freq": 30.0, "rotary_pct": 0.5, "rotary_dim": 4, "scale_emb": 3.0,
    "scale_depth": 1.4, "dim_model_base": 8, "norm_topk_prob": True, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
    "first_k_dense_replace": 1, "mlp_only_layers": [0], "decoder_sparse_step": 2, "is_causal": False,
    "use_bidirectional_attention": True, "full_attention_interval": 2, "attn_layer_period": 2, "hybrid_override_pattern": None,
    "layers_block_type": None, "attn_temperature_tuning": True, "use_parallel_residual": True, "parallel_attn": True,
    "alibi": True, "position_embedding_type": "alibi", "hidden_activation": "relu", "hidden_act": "relu",
    "activation_function": "relu", "v_head_dim": 4, "multi_query": True, "num_kv_heads": 1, "tie_word_embeddings": True,
    "layer_norm_eps": 0.3, "rms_norm_eps": 0.3, "norm_eps": 0.3, "layer_norm_epsilon": 0.3, "mlp_layer_types": None,
    "per_layer_config": {"0": {"head_dim": 4}}, "moe_layers": [0], "n_group": 2, "num_experts_per_tok": 1,
}
# Keys of a model around a language model, which may affect the language model's numbers.
OUTSIDE = ["tie_word_embeddings", "is_causal", "use_bidirectional_attention"]


def without(config, *keys):
    return {key: value for key, value in config.items() if key not in keys}


def numbers(value):
    """Near and far of a number, and its null."""
    if isinstance(value, int):
        return [value + 1, value - 1, 2 * value, value // 2, 0, None]
    return [1.7 * value + 0.1, 0.6 * value, 0.0, None]


def of_word(word):
    known = [words for words in WORDS if word in words]
    return [other for words in known for other in words if other != word] or ["other"]


def of_list(values, n_layers):
    out = [None, []]
    if values and isinstance(values[0], str):
        words = next((words for words in LAYER_WORDS if values[0] in words or values[-1] in words), [])
        out += [[word, *values[1:]] for word in words if word != values[0]]
        out += [[*values[:-1], word] for word in words if word != values[-1]]
    elif values and isinstance(values[0], (int, float)):
        out += [[1 - values[0] if values[0] in (0, 1) else values[0] + 1, *values[1:]], list(reversed(values)), values[:-1]]
    else:
        out += [[0], [1] * n_layers]
    return out


def of_value(value, n_layers):
    """Other values than this one, of its kind."""
    if value is None:
        return INSTEAD_OF_NULL
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, (int, float)):
        return numbers(value)
    if isinstance(value, str):
        return [*of_word(value), None]
    if isinstance(value, list):
        return of_list(value, n_layers)
    return [None]


def instead(key, value, n_layers):
    """A value for a key that a family may not know."""
    lists = {"layer_types": ["full_attention", "sliding_attention"], "layers_block_type": ["attention", "mamba"],
             "mlp_layer_types": ["dense", "sparse"], "no_rope_layers": [0, 1]}
    if key in lists:
        return [each for each, _ in zip(itertools.cycle(lists[key]), range(n_layers))]
    return "*-"[:n_layers].ljust(n_layers, "*") if key == "hybrid_override_pattern" else value


def ropes(head_dim):
    """Ropes of every type, by name, in the spelling of transformers 5."""
    factors = [1.0 + 0.1 * i for i in range(max(head_dim // 2, 1))]
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
    return {
        "default": {"rope_type": "default", "rope_theta": 70.0},
        "part": {"rope_type": "default", "rope_theta": 70.0, "partial_rotary_factor": 0.5},
        "linear": {"rope_type": "linear", "factor": 2.0},
        "dynamic": {"rope_type": "dynamic", "factor": 2.0},
        "llama3": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                   "original_max_position_embeddings": 16},
        "yarn": yarn,
        "yarn with a factor": yarn | {"attention_factor": 1.3, "beta_fast": 8.0, "beta_slow": 2.0, "truncate": False},
        "yarn with mscale": yarn | {"mscale": 0.7, "mscale_all_dim": 0.4},
        "longrope": {"rope_type": "longrope", "short_factor": factors, "long_factor": factors, "factor": 4.0,
                     "original_max_position_embeddings": 16},
        "proportional": {"rope_type": "proportional", "partial_rotary_factor": 0.5},
    }


def rope_edits(text, head_dim):
    """(label, text config) of every spelling of a rope; beside what the config has, or in its place."""
    bare = without(text, *ROPE)
    theta = {"rope_theta": 50.0}
    plain = {"rope_type": "default", "rope_theta": 60.0}
    for name, rope in ropes(head_dim).items():
        old = {"type" if key == "rope_type" else key: value for key, value in rope.items()}
        yield f"rope_parameters: {name}", bare | {"rope_parameters": theta | rope}
        yield f"rope_parameters without a base: {name}", bare | {"rope_parameters": without(rope, "rope_theta")}
        yield f"rope_parameters beside: {name}", text | {"rope_parameters": rope}
        yield f"rope_scaling: {name}", bare | theta | {"rope_scaling": without(rope, "rope_theta")}
        yield f"rope_scaling with type: {name}", bare | theta | {"rope_scaling": without(old, "rope_theta")}
        yield f"rope_scaling beside: {name}", text | {"rope_scaling": without(rope, "rope_theta")}
        yield f"both: {name}", bare | {"rope_parameters": theta, "rope_scaling": without(rope, "rope_theta")}
        for kind in ("full_attention", "sliding_attention"):
            by_type = {"full_attention": plain, "sliding_attention": plain | {"rope_theta": 20.0}, kind: theta | rope}
            yield f"{kind}: {name}", bare | {"rope_parameters": by_type}
        by_type = {"full_attention": plain, "sliding_attention": plain | {"rope_theta": 20.0}}
        yield (f"by type of layer, and rope_scaling: {name}",
               bare | {"rope_parameters": by_type, "rope_scaling": without(rope, "rope_theta")})
        bases = {kind: {"rope_theta": each["rope_theta"]} for kind, each in by_type.items()}
        yield (f"bases by type of layer, and rope_scaling: {name}",
               bare | {"rope_parameters": bases, "rope_scaling": without(rope, "rope_theta")})
    only_full = {"full_attention": plain}
    yield "full_attention alone", bare | {"rope_parameters": only_full}
    yield "full_attention alone, and a base", bare | theta | {"rope_parameters": only_full}
    yield "by type of layer, and a base", bare | theta | {"rope_parameters": {"full_attention": {"rope_type": "default"},
                                                                             "sliding_attention": {"rope_type": "default"}}}
    yield "rope_local_base_freq alone", bare | {"rope_local_base_freq": 20.0}
    yield "rope_local_base_freq", bare | theta | {"rope_local_base_freq": 20.0}
    yield "rope_local_base_freq and rope_parameters", bare | {"rope_local_base_freq": 20.0, "rope_parameters": plain}
    yield "two bases", bare | theta | {"rope_parameters": plain}
    yield "a part", text | {"partial_rotary_factor": 0.5}
    yield "no rope", bare


def text_edits(text, known):
    """(label, text config) for each change of a language model's config; `known` is what its class fills in."""
    counts = [text.get("num_hidden_layers"), text.get("n_layer"), text.get("n_layers"), 2 * text.get("num_layers", 0), len(text.get("layer_types", text.get("layers_block_type", [])))]
    n_layers = next(count for count in counts if count)
    for key, value in sorted((known | text).items()):
        if key in OTHER or key in ROPE:
            continue
        for other in of_value(value, n_layers):
            yield f"{key}: {str(other)[:60]}", text | {key: other}
    for key, value in FOREIGN.items():
        if key not in known and key not in text:
            other = instead(key, value, n_layers)
            yield f"{key}: {str(other)[:60]} (of other families)", text | {key: other}
    heads = text.get("num_attention_heads") or text.get("n_head") or text["n_heads"]
    dim = text.get("hidden_size") or text.get("n_embd") or text["d_model"]
    yield from rope_edits(text, text.get("head_dim") or text.get("qk_rope_head_dim") or dim // heads)


def edits(config, known):
    """(label, config) for each change of a config.json, at its language model where it has more parts."""
    if "text_config" not in config:
        yield from text_edits(config, known)
        return
    for label, text in text_edits(config["text_config"], known):
        yield label, config | {"text_config": text}
    for key in OUTSIDE:
        for other in (True, False, None):
            yield f"{key}: {other} (outside)", config | {key: other}
