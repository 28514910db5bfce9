"""Models whose layers have experts, for make_goldens.py: their configs, and their feed-forward part in float64 numpy.

Small on purpose, since there are three of each architecture: some 40 KB of weights each.
"""

import numpy as np

COMMON = {"vocab_size": 77, "num_hidden_layers": 2, "hidden_act": "silu", "max_position_embeddings": 64,
          "bos_token_id": 1, "eos_token_id": 2, "rope_theta": 10000.0, "torch_dtype": "float32",
          "tie_word_embeddings": False, "hidden_size": 20, "num_attention_heads": 4, "num_key_value_heads": 2,
          "rms_norm_eps": 1e-6, "num_experts_per_tok": 2}
QWEN3 = {**COMMON, "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "head_dim": 6,
         "intermediate_size": 18, "moe_intermediate_size": 7, "num_experts": 6, "norm_topk_prob": True,
         "decoder_sparse_step": 1, "mlp_only_layers": [], "attention_bias": False, "use_sliding_window": False,
         "sliding_window": None}
MIXTRAL = {**COMMON, "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "intermediate_size": 9,
           "num_local_experts": 4, "sliding_window": None, "rope_theta": 1000000.0}
QWEN2 = {**COMMON, "architectures": ["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe", "hidden_size": 24,
         "intermediate_size": 14, "moe_intermediate_size": 6, "shared_expert_intermediate_size": 11,
         "num_experts": 5, "norm_topk_prob": False, "decoder_sparse_step": 1, "use_sliding_window": False,
         "sliding_window": 32, "max_window_layers": 2}

OLMOE = {**COMMON, "architectures": ["OlmoeForCausalLM"], "model_type": "olmoe", "intermediate_size": 7,
         "num_experts": 6, "norm_topk_prob": False, "clip_qkv": None, "hidden_size": 24}
GRANITE = {**COMMON, "architectures": ["GraniteMoeForCausalLM"], "model_type": "granitemoe", "intermediate_size": 7,
           "num_local_experts": 5, "embedding_multiplier": 1.5, "attention_multiplier": 0.3,
           "residual_multiplier": 0.6, "logits_scaling": 0.5, "attention_bias": False}

ONE_KV_HEAD = {"num_attention_heads": 7, "num_key_value_heads": 1, "head_dim": 6}
CASES = {
    "qwen3-moe": {**QWEN3, **ONE_KV_HEAD, "tie_word_embeddings": True, "num_experts_per_tok": 3},
    "qwen3-moe-dense": {**QWEN3, "num_hidden_layers": 3, "mlp_only_layers": [1], "norm_topk_prob": False,
                        "attention_bias": True},
    "qwen3-moe-step": {**QWEN3, "num_hidden_layers": 3, "decoder_sparse_step": 2, "head_dim": 8},
    "mixtral": {**MIXTRAL, **ONE_KV_HEAD},
    "mixtral-window": {**MIXTRAL, "sliding_window": 8, "num_experts_per_tok": 1, "head_dim": 8},
    "mixtral-tied": {**MIXTRAL, "tie_word_embeddings": True, "num_experts_per_tok": 3, "num_local_experts": 5,
                     "hidden_size": 24},
    "qwen2-moe": QWEN2,
    "qwen2-moe-dense": {**QWEN2, **ONE_KV_HEAD, "num_hidden_layers": 3, "mlp_only_layers": [0],
                        "norm_topk_prob": True, "tie_word_embeddings": True},
    "olmoe": OLMOE,
    "olmoe-norm": {**OLMOE, "norm_topk_prob": True, "tie_word_embeddings": True, "num_key_value_heads": 4,
                   "num_experts_per_tok": 3},
    "olmoe-gqa": {**OLMOE, "hidden_size": 28, "num_attention_heads": 7, "num_key_value_heads": 1,
                  "attention_bias": True},
    "granite-moe": {**GRANITE, **ONE_KV_HEAD},
    "granite-moe-tied": {**GRANITE, "tie_word_embeddings": True, "attention_bias": True, "num_experts_per_tok": 3,
                         "head_dim": 8},
    "granite-moe-one": {**GRANITE, "num_experts_per_tok": 1, "head_dim": 6},
    "qwen2-moe-plain": {**QWEN2, "qkv_bias": False, "num_experts_per_tok": 4},
}
NEW_STYLE = {"qwen3-moe-step", "olmoe-norm", "granite-moe-one", "mixtral-tied", "qwen2-moe-plain"}

# The families whose router normalises the chosen weights, by their modeling files.
NORMALISED = {"mixtral"}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gated(x, gate, up, down):
    y = x @ gate.T
    return (y * sigmoid(y) * (x @ up.T)) @ down.T


def route(config, logits):
    """[n_experts] to the chosen ids and their weights, and how clear the choice was."""
    k = config["num_experts_per_tok"]
    if config["model_type"] == "granitemoe":
        order = np.argsort(-logits, kind="stable")
        scores = np.exp(logits[order[:k]] - logits.max())
        return order[:k], scores / scores.sum(), logits[order[k - 1]] - logits[order[k]]
    scores = np.exp(logits - logits.max())
    scores /= scores.sum()
    order = np.argsort(-scores, kind="stable")
    chosen, weights = order[:k], scores[order[:k]]
    if config["model_type"] in NORMALISED or config.get("norm_topk_prob", False):
        weights = weights / weights.sum()
    return chosen, weights, logits[order[k - 1]] - logits[order[k]]


class FeedForward:
    """The feed-forward parts of a model; `margin` is that of the least clear choice so far."""

    def __init__(self, config, weights):
        self.config, self.weights, self.margin = config, weights, np.inf

    def has_experts(self, layer):
        prefix = f"model.layers.{layer}."
        return any(name.startswith(prefix) and (".experts." in name or "input_linear" in name) for name in self.weights)

    def expert(self, prefix, index):
        if prefix + "input_linear.weight" in self.weights:  # all experts in one tensor, gate before up
            gate, up = np.split(self.weights[prefix + "input_linear.weight"][index], 2)
            return [gate, up, self.weights[prefix + "output_linear.weight"][index]]
        at = f"{prefix}experts.{index}."
        names = ("w1", "w3", "w2") if "block_sparse_moe" in prefix else ("gate_proj", "up_proj", "down_proj")
        return [self.weights[at + name + ".weight"] for name in names]

    def __call__(self, layer, x):
        prefix = f"model.layers.{layer}."
        prefix += "block_sparse_moe." if any(prefix + "block" in name for name in self.weights) else "mlp."
        router = prefix + ("router.layer.weight" if prefix + "router.layer.weight" in self.weights else "gate.weight")
        out = np.zeros_like(x)
        for token, row in enumerate(x):
            chosen, scores, margin = route(self.config, self.weights[router] @ row)
            self.margin = min(self.margin, margin)
            for index, score in zip(chosen, scores):
                out[token] += score * gated(row, *self.expert(prefix, index))
        if prefix + "shared_expert.gate_proj.weight" in self.weights:
            shared = [self.weights[f"{prefix}shared_expert.{name}_proj.weight"] for name in ("gate", "up", "down")]
            share = sigmoid(x @ self.weights[prefix + "shared_expert_gate.weight"].T)
            out += share * gated(x, *shared)
        return out
