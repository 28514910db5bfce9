"""Writes small random models and what transformers computes with them, to check the C++ forward pass against.

    python make_goldens.py [CASE...]  writes <case>/{config.json,model.safetensors,golden.json} beside this file
    python make_goldens.py --check    compares what lies there with a float64 forward pass in numpy, written here
                                      independently (own safetensors reader, own rope); needs numpy only

golden.json: `ids` (one sequence of 48 tokens), `logits` at four positions of it, `k_amax` (after RoPE) and `v_amax`
[n_layers][n_kv_heads] over the sequence, and `greedy`: the 24 ids that follow the first 16, never stopping at EOS. All is
computed in float32 with eager attention, also where the weights are stored as F16 or BF16 (then upcast first). Models
with experts are in moe.py.
Floats are the shortest decimals that read back as the same float32.

Most config.json are written by hand in the style that most checkpoints have (`rope_theta`, `rope_scaling`,
`torch_dtype`); the case llama-linear has what transformers 5 writes (`rope_parameters`, `dtype`).
"""

import argparse
import json
import math
import pathlib
import platform
import sys

import numpy as np

import moe

HERE = pathlib.Path(__file__).resolve().parent
N_TOKENS, N_PROMPT, N_NEW = 48, 16, 24
POSITIONS = [0, 13, 30, 47]

COMMON = {"vocab_size": 96, "num_hidden_layers": 2, "hidden_act": "silu", "max_position_embeddings": 64,
          "bos_token_id": 1, "eos_token_id": 2, "rope_theta": 10000.0, "torch_dtype": "float32",
          "tie_word_embeddings": False}
LLAMA = {**COMMON, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32,
         "intermediate_size": 40, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
         "rms_norm_eps": 1e-5, "rope_scaling": None, "attention_bias": False, "mlp_bias": False}
QWEN2 = {**COMMON, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 48,
         "intermediate_size": 48, "num_attention_heads": 3, "num_key_value_heads": 1, "rms_norm_eps": 1e-6,
         "use_sliding_window": False, "sliding_window": 16, "max_window_layers": 2, "tie_word_embeddings": True}

QWEN3 = {**LLAMA, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "rms_norm_eps": 1e-6,
         "use_sliding_window": False, "sliding_window": None, "max_window_layers": 2, "tie_word_embeddings": True}
del QWEN3["mlp_bias"]

OLMO2 = {**LLAMA, "architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2", "rms_norm_eps": 1e-6, "rope_theta": 500000.0}
del OLMO2["mlp_bias"], OLMO2["head_dim"]

CASES = {
    "llama-gqa": {**LLAMA, "head_dim": 24, "intermediate_size": 24},
    "mistral-window": {**COMMON, "architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 32,
                       "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 16,
                       "rms_norm_eps": 1e-5, "sliding_window": 8},
    "qwen2": QWEN2,
    "llama3-rope": {**LLAMA, "rope_theta": 500000.0,
                    "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                                     "original_max_position_embeddings": 32, "rope_type": "llama3"}},
    "llama-linear": {**LLAMA, "rope_scaling": {"factor": 4.0, "rope_type": "linear"}},
    "qwen2-yarn": {**QWEN2, "rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 64,
                                             "rope_type": "yarn"}, "max_position_embeddings": 256},
    "llama-f16": {**LLAMA, "torch_dtype": "float16"},
    "qwen3": {**QWEN3, "head_dim": 24},
    "olmo2": {**OLMO2, "hidden_size": 40, "num_key_value_heads": 4},
    "olmo2-gqa": {**OLMO2, "head_dim": 6, "num_attention_heads": 7, "num_key_value_heads": 1, "attention_bias": True,
                  "tie_word_embeddings": True},
    "qwen2-bf16": {**QWEN2, "num_attention_heads": 6, "num_key_value_heads": 3, "torch_dtype": "bfloat16"},
}
CASES.update(moe.CASES)
NEW_STYLE = {"llama-linear"} | moe.NEW_STYLE


def shortest(values):
    """Nested lists of the shortest decimals that read back as the same float32."""
    array = np.asarray(values, dtype=np.float32)
    if array.ndim == 0:
        return float(str(array[()]))
    return [shortest(v) for v in array]


def sequence(name):
    seed = sum(name.encode())
    return np.random.default_rng(seed).integers(3, CASES[name]["vocab_size"], N_TOKENS).tolist()


# The reference, in float64 and from the files alone.


def read_safetensors(path):
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    out = {}
    for name, entry in header.items():
        begin, end = (8 + size + o for o in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            data = (np.frombuffer(raw[begin:end], "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            data = np.frombuffer(raw[begin:end], {"F32": "<f4", "F16": "<f2"}[entry["dtype"]])
        out[name] = data.astype(np.float64).reshape(entry["shape"])
    return out


def inverse_frequencies(config, head_dim):
    rope = config.get("rope_parameters") or {"rope_theta": config["rope_theta"], **(config.get("rope_scaling") or {})}
    inv = rope["rope_theta"] ** (-np.arange(0, head_dim, 2) / head_dim)
    kind = rope.get("rope_type", "default")
    if kind == "linear":
        return inv / rope["factor"]
    if kind == "llama3":
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        turns = rope["original_max_position_embeddings"] * inv / (2 * math.pi)
        smooth = np.clip((turns - low) / (high - low), 0, 1)
        return inv * (smooth + (1 - smooth) / rope["factor"])
    if kind == "yarn":
        turns = np.array([rope.get("beta_fast", 32), rope.get("beta_slow", 1)])
        edges = head_dim / 2 * np.log(rope["original_max_position_embeddings"] / (2 * math.pi * turns)) \
            / math.log(rope["rope_theta"])
        low, high = max(math.floor(edges[0]), 0), min(math.ceil(edges[1]), head_dim - 1)
        slowed = np.clip((np.arange(head_dim // 2) - low) / (high - low), 0, 1)
        return inv * (1 - slowed) + inv / rope["factor"] * slowed
    assert kind == "default", kind
    return inv


def attention_factor(config):
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    return 0.1 * math.log(rope["factor"]) + 1 if rope.get("rope_type") == "yarn" else 1.0


def rotate(x, angles):
    """x: [n_tokens, n_heads, head_dim]; the first half pairs with the second."""
    half = x.shape[-1] // 2
    cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def reference_forward(config, weights, ids):
    """Returns logits [n_tokens, vocab_size] and K after RoPE and V, each [n_layers, n_tokens, n_kv_heads, head_dim];
    and how clear the least clear choice of experts was."""
    n, heads, kv_heads = len(ids), config["num_attention_heads"], config["num_key_value_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    window = config.get("sliding_window") if config.get("use_sliding_window", True) else None
    distance = np.arange(n)[:, None] - np.arange(n)[None, :]
    visible = (distance >= 0) & (distance < (window or n))
    angles = np.arange(n)[:, None] * inverse_frequencies(config, head_dim)[None, :]

    experts = moe.FeedForward(config, weights)
    norms_follow = config["model_type"] == "olmo2"
    heads_together = norms_follow or config["model_type"] == "olmoe"
    scale = config.get("attention_multiplier", 1 / math.sqrt(head_dim))
    added = config.get("residual_multiplier", 1)  # multiplies a block's output

    def norm(x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + config["rms_norm_eps"]) * weights[name]

    def linear(x, name):
        y = x @ weights[name + ".weight"].T
        return y + weights[name + ".bias"] if name + ".bias" in weights else y

    x, keys, values = weights["model.embed_tokens.weight"][ids] * config.get("embedding_multiplier", 1), [], []
    for layer in range(config["num_hidden_layers"]):
        p = f"model.layers.{layer}."
        h = x if norms_follow else norm(x, p + "input_layernorm.weight")
        q, k = linear(h, p + "self_attn.q_proj"), linear(h, p + "self_attn.k_proj")
        if heads_together:
            q, k = norm(q, p + "self_attn.q_norm.weight"), norm(k, p + "self_attn.k_norm.weight")
        q, k = q.reshape(n, heads, head_dim), k.reshape(n, kv_heads, head_dim)
        if p + "self_attn.k_norm.weight" in weights and not heads_together:
            q, k = norm(q, p + "self_attn.q_norm.weight"), norm(k, p + "self_attn.k_norm.weight")
        q, k = (rotate(x, angles) * attention_factor(config) for x in (q, k))
        v = linear(h, p + "self_attn.v_proj").reshape(n, kv_heads, head_dim)
        keys.append(k)
        values.append(v)
        out = np.zeros_like(q)
        for head in range(heads):
            group = head // (heads // kv_heads)
            scores = np.where(visible, q[:, head] @ k[:, group].T * scale, -np.inf)
            weight = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, head] = weight / weight.sum(-1, keepdims=True) @ v[:, group]
        attention = linear(out.reshape(n, heads * head_dim), p + "self_attn.o_proj")
        x = x + (norm(attention, p + "post_attention_layernorm.weight") if norms_follow else attention * added)
        h = x if norms_follow else norm(x, p + "post_attention_layernorm.weight")
        if experts.has_experts(layer):
            mlp = experts(layer, h)
        else:
            gate = linear(h, p + "mlp.gate_proj")
            mlp = linear(gate / (1 + np.exp(-gate)) * linear(h, p + "mlp.up_proj"), p + "mlp.down_proj")
        x = x + (norm(mlp, p + "post_feedforward_layernorm.weight") if norms_follow else mlp * added)
    head = weights.get("lm_head.weight", weights["model.embed_tokens.weight"])
    return norm(x, "model.norm.weight") @ head.T / config.get("logits_scaling", 1), np.array(keys), np.array(values), experts.margin


def check(name):
    """Throws unless golden and reference agree, relative to the largest value of a kind. Returns the smallest distance
    between the two largest logits of a greedy step."""
    folder = HERE / name
    golden = json.loads((folder / "golden.json").read_text())
    config = json.loads((folder / "config.json").read_text())
    weights = read_safetensors(folder / "model.safetensors")
    logits, keys, values, clear = reference_forward(config, weights, golden["ids"])
    pairs = [(golden["logits"][str(p)], logits[p]) for p in POSITIONS]
    pairs += [(golden["k_amax"], np.abs(keys).max(axis=(1, 3))), (golden["v_amax"], np.abs(values).max(axis=(1, 3)))]
    worst = max(np.abs(np.array(a) - b).max() / max(1.0, np.abs(b).max()) for a, b in pairs)
    ids, margin = golden["ids"][:N_PROMPT], math.inf
    for expected in golden["greedy"]:
        logits, _, _, choice = reference_forward(config, weights, ids)
        last, clear = logits[-1], min(clear, choice)
        top = np.sort(last)
        margin = min(margin, top[-1] - top[-2])
        assert int(last.argmax()) == expected, f"{name}: greedy"
        ids = ids + [expected]
    choice = f", clearest-cut choice of experts by {clear:.4f}" if clear < math.inf else ""
    print(f"{name}: largest relative difference {worst:.1e}, smallest greedy margin {margin:.3f}{choice}")
    assert worst < 1e-5, name
    return margin if clear > 1e-3 else 0  # float32 and 16 bits must choose the same experts


# The makers: transformers.


def make(name, seed):
    import torch
    import transformers
    from safetensors.torch import save_file

    old = CASES[name]
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(old, indent=2, sort_keys=True) + "\n")
    config = transformers.AutoConfig.from_pretrained(folder)
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config).float()
    with torch.no_grad():
        for key, p in model.named_parameters():
            if key.endswith("norm.weight"):
                p.copy_(1 + 0.25 * torch.randn_like(p))
            elif key.endswith(".bias"):
                p.copy_(0.5 * torch.randn_like(p))
            elif key == "model.embed_tokens.weight":
                p.copy_(torch.randn_like(p) * (0.3 if old["tie_word_embeddings"] else 1.0))
            else:
                p.copy_(torch.randn_like(p) * 1.5 / math.sqrt(p.shape[-1]))
        for key, p in model.named_buffers():
            if key.endswith("e_score_correction_bias"):
                p.copy_(0.3 * torch.randn_like(p))
    if name in moe.CASES:  # writes the names of files, which differ from those in memory
        model.save_pretrained(folder)
        if name not in NEW_STYLE:
            (folder / "config.json").write_text(json.dumps(old, indent=2, sort_keys=True) + "\n")
        (folder / "generation_config.json").unlink(missing_ok=True)
        return write_golden(name, seed)
    dtype = getattr(torch, old["torch_dtype"])
    weights = {k: w.detach().to(dtype).contiguous() for k, w in model.state_dict().items()}
    if old["tie_word_embeddings"]:
        weights.pop("lm_head.weight", None)
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    if name in NEW_STYLE:
        config.save_pretrained(folder)
        written = json.loads((folder / "config.json").read_text())
        assert "rope_parameters" in written and "rope_theta" not in written
    write_golden(name, seed)


def write_golden(name, seed):
    import torch
    import transformers

    folder = HERE / name
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                              attn_implementation="eager",
                                                              experts_implementation="eager").eval()
    cache = transformers.DynamicCache()  # without a config it keeps all tokens, so the amax covers the sequence
    ids = sequence(name)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]), past_key_values=cache).logits[0]
        running = ids[:N_PROMPT]
        for _ in range(N_NEW):
            running = running + [int(model(input_ids=torch.tensor([running]), use_cache=False).logits[0, -1].argmax())]
    assert all(layer.keys.shape[2] == N_TOKENS for layer in cache.layers)
    golden = {
        "made_by": {"python": platform.python_version(), "torch": torch.__version__,
                    "transformers": transformers.__version__, "numpy": np.__version__, "seed": seed},
        "ids": ids,
        "logits": {str(p): shortest(logits[p].numpy()) for p in POSITIONS},
        "k_amax": shortest([layer.keys[0].abs().amax(dim=(1, 2)).numpy() for layer in cache.layers]),
        "v_amax": shortest([layer.values[0].abs().amax(dim=(1, 2)).numpy() for layer in cache.layers]),
        "greedy": running[N_PROMPT:],
    }
    lines = ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in golden.items())
    (folder / "golden.json").write_text("{\n" + lines + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only compare the files with the float64 reference")
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE", help="default: all")
    args = parser.parse_args()
    for name in args.cases:
        if args.check:
            check(name)
            continue
        for seed in range(1, 100):  # the first seed without a greedy step that is nearly a tie
            make(name, seed)
            if check(name) > 0.05:
                break


if __name__ == "__main__":
    sys.exit(main())
