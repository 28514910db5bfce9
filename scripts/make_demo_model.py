"""Trains the demo model in datasets/demo and gives its KV cache awkward ranges. Users never need to run this.

Three stages, all with fixed seeds:

1. `train`: a byte-level BPE tokenizer and a small Llama (6 layers, grouped queries, tied embeddings) on the text of
   make_demo_text.py, in two rounds. Each document starts with BOS and ends with EOS; windows of 512 tokens start at a
   document.
2. `move_ranges`: multiplies weights by exact powers of two such that the function stays the same and the ranges of K
   and V become as in the wild: a K far beyond 448 (the largest E4M3), a K a little beyond it, and a V that is zero in
   E4M3 unless it is scaled. The weights are first rounded to a grid, so that no bit is lost; the script asserts that
   undoing the moves gives the original FP16 weights, bit for bit.
3. `report`: simulates the FP8 cache (E4M3FN, saturating, ties to even, per-tensor scales; K after RoPE) and prints
   perplexities on held-out text and greedy texts for an FP16 cache, calibrated scales, scales of 1.0 and one shared
   scale per layer.

    python scripts/make_demo_model.py [--checkpoint FILE]

--checkpoint keeps the trained weights in FILE, or takes them from there and skips training. Training is the slow part,
about 22 minutes on two CPU cores; another machine or another version of PyTorch gives other weights (float addition
is not associative), so compare figures, not bits.
"""

import argparse
import json
import math
import pathlib
import platform
import time

import numpy
import tokenizers
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

import make_demo_text as text

BOS, EOS = "<|begin_of_text|>", "<|end_of_text|>"
WINDOW, BATCH, WARM_UP, LEARNING_RATE = 512, 4, 100, 2e-3
# Seed of the text, the generator's preference for one form of a sentence, and steps. The first
# round has no preference, to show all forms.
ROUNDS = [(1, 0.0, 1800), (2, 0.6, 1500)]
E4M3_MAX = 448.0

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 2048,
    "hidden_size": 192,
    "intermediate_size": 512,
    "num_hidden_layers": 6,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "hidden_act": "silu",
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "rope_scaling": None,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "torch_dtype": "float16",
    "use_cache": True,
}


def train_tokenizer():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=CONFIG["vocab_size"], min_frequency=2, special_tokens=[BOS, EOS],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(text.take(text.documents(1, "train", favour=0.0), 1_500_000), trainer)
    assert tokenizer.get_vocab_size() == CONFIG["vocab_size"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A {BOS} $B", special_tokens=[(BOS, CONFIG["bos_token_id"])])
    return tokenizer


def make_config():
    fields = {k: v for k, v in CONFIG.items() if k not in ("architectures", "model_type", "torch_dtype", "rope_theta",
                                                           "rope_scaling")}
    return LlamaConfig(**fields, rope_parameters={"rope_type": "default", "rope_theta": CONFIG["rope_theta"]},
                       attn_implementation="sdpa")


def windows(tokenizer, documents):
    """Windows of WINDOW tokens, each from the start of a document; the rest of a cut document is left out."""
    window = []
    for document in documents:
        window += tokenizer.encode(document).ids + [CONFIG["eos_token_id"]]
        if len(window) >= WINDOW:
            yield window[:WINDOW]
            window = []


def held_out(favour):
    """Of the held-out split: the documents that perplexity is measured on, and those of the calibration text."""
    return text.take(text.documents(99, "held_out", favour), 120_000), text.take(
        text.documents(7, "held_out", favour), 125_000)


def training_documents(seed, favour):
    measured, calibration = held_out(favour)
    known = set(measured) | set(calibration)
    return (d for d in text.documents(seed, "train", favour) if d not in known)


def held_out_documents():
    """Those of the last round's form that the earlier rounds have not seen: short facts can turn up in both."""
    seen = set()
    for seed, favour, n_steps in ROUNDS[:-1]:
        seen.update(text.take(training_documents(seed, favour), 5 * WINDOW * BATCH * n_steps))  # under 5 bytes a token
    return [d for d in held_out(ROUNDS[-1][1])[0] if d not in seen]


def train_round(weights, stream, n_steps):
    """One warm-up and cosine decay with a fresh optimiser, from FP16 weights (None: random) to FP16 weights."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(make_config()) if weights is None else load(weights).train()
    decayed = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() == 1]
    optimiser = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
                                  lr=LEARNING_RATE, betas=(0.9, 0.95))
    started, mean = time.time(), 0.0
    for step in range(n_steps):
        rate = min(1.0, (step + 1) / WARM_UP) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / n_steps)))
        for group in optimiser.param_groups:
            group["lr"] = LEARNING_RATE * rate
        ids = torch.tensor([next(stream) for _ in range(BATCH)])
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        mean += loss.item() / 100
        if (step + 1) % 100 == 0:
            print(f"step {step + 1}: loss {mean:.4f}, {time.time() - started:.0f} s", flush=True)
            mean = 0.0
    return {name: p.detach().half() for name, p in model.state_dict().items() if name != "lm_head.weight"}


def train(tokenizer):
    weights = None
    for seed, favour, n_steps in ROUNDS:
        weights = train_round(weights, windows(tokenizer, training_documents(seed, favour)), n_steps)
    return weights


# Exponents of two per layer. "k": K up, by W_k up and W_q down. "v": V down, by W_v down and W_o
# up. "gain": the input norm's gain down, and W_q, W_k and W_v up. The gain only keeps the reduced
# weights clear of FP16 subnormals.
# Chosen by trial. Without V in layer 1 this model answers "Iran" to "London is the capital of".
# Without V in layers 2 to 5 it still answers "England". K of layer 1 ends a little above 448, so
# that a scale shared with V loses V.
MOVES = {0: {"k": 10, "v": 0, "gain": 4}, 1: {"k": 7, "v": 14, "gain": 8}}


def exponents():
    """Name of a weight -> exponent of the power of two that it is multiplied by."""
    out = {}
    for layer, move in MOVES.items():
        prefix = f"model.layers.{layer}."
        out[prefix + "input_layernorm.weight"] = -move["gain"]
        out[prefix + "self_attn.q_proj.weight"] = move["gain"] - move["k"]
        out[prefix + "self_attn.k_proj.weight"] = move["gain"] + move["k"]
        out[prefix + "self_attn.v_proj.weight"] = move["gain"] - move["v"]
        out[prefix + "self_attn.o_proj.weight"] = move["v"]
    return {name: e for name, e in out.items() if e != 0}


def round_to_grid(weight, exponent):
    """Rounds so that weight * 2^exponent is a multiple of 2^-24, the smallest FP16, hence exact in FP16."""
    step = 2.0 ** (-24 - exponent)
    return (torch.round(weight.double() / step) * step).half()


def move_ranges(trained):
    """Returns the weights before (rounded to the grid) and after the moves; both compute the same function."""
    before, after = dict(trained), dict(trained)
    for name, exponent in exponents().items():
        before[name] = round_to_grid(trained[name], exponent)
        after[name] = (before[name].double() * 2.0**exponent).half()
        undone = (after[name].double() * 2.0**-exponent).half()
        assert torch.isfinite(after[name]).all(), name
        assert torch.equal(undone.view(torch.int16), before[name].view(torch.int16)), name
        lost = (before[name].double() - trained[name].double()).abs().max() / trained[name].double().abs().max()
        tiny = ((after[name] != 0) & (after[name].abs() < 2.0**-14)).float().mean()
        print(f"  {name}: 2^{exponent:+d}, largest {after[name].abs().max():.4g}, rounding to the grid at most "
              f"{lost:.1e} of the largest, {100 * tiny:.2f} % FP16 subnormals; undone: bit for bit equal")
    return before, after


def load(weights):
    """The model with FP16 weights, computing in float32."""
    model = LlamaForCausalLM(make_config()).eval()
    full = {name: w.float() for name, w in weights.items()}
    full["lm_head.weight"] = full["model.embed_tokens.weight"]
    model.load_state_dict(full)
    return model


class SimulatedCache(DynamicCache):
    """A KV cache that stores what an FP16 or FP8 cache would give back, and notes the largest |K| and |V|."""

    def __init__(self, scales=None):  # per layer (k_scale, v_scale); None means an FP16 cache
        super().__init__()
        self.scales = scales
        self.amax = [[0.0, 0.0] for _ in range(CONFIG["num_hidden_layers"])]

    @staticmethod
    def fp8(x, scale):
        return (x / scale).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn).float() * scale

    def update(self, key_states, value_states, layer_idx, *args, **kwargs):
        for i, x in enumerate((key_states, value_states)):
            self.amax[layer_idx][i] = max(self.amax[layer_idx][i], x.abs().max().item())
        if self.scales is None:
            key_states, value_states = key_states.half().float(), value_states.half().float()
        else:
            k_scale, v_scale = self.scales[layer_idx]
            key_states, value_states = self.fp8(key_states, k_scale), self.fp8(value_states, v_scale)
        return super().update(key_states, value_states, layer_idx, *args, **kwargs)


def encode(tokenizer, document):
    return torch.tensor([tokenizer.encode(document).ids + [CONFIG["eos_token_id"]]])


@torch.no_grad()
def measure_amax(model, tokenizer, documents):
    amax = numpy.zeros((CONFIG["num_hidden_layers"], 2))
    for document in documents:
        cache = SimulatedCache()
        model.model(input_ids=encode(tokenizer, document), past_key_values=cache)
        amax = numpy.maximum(amax, cache.amax)
    return amax


@torch.no_grad()
def perplexity(model, tokenizer, documents, scales):
    """Per token, EOS included, each document by itself."""
    total, count = 0.0, 0
    for document in documents:
        ids = encode(tokenizer, document)
        logits = model(input_ids=ids, past_key_values=SimulatedCache(scales)).logits[0, :-1].double()
        total += torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="sum").item()
        count += ids.shape[1] - 1
    return math.exp(total / count), count


@torch.no_grad()
def greedy(model, tokenizer, prompt, scales, n_tokens=48):
    """The text, and the smallest distance of the two best logits of a step: near 0 the text depends on rounding."""
    ids, cache, out, margin = tokenizer.encode(prompt).ids, SimulatedCache(scales), [], math.inf
    step = torch.tensor([ids])
    for _ in range(n_tokens):
        logits = model(input_ids=step, past_key_values=cache).logits[0, -1]
        best = logits.topk(2)
        out.append(int(best.indices[0]))
        margin = min(margin, float(best.values[0] - best.values[1]))
        if out[-1] == CONFIG["eos_token_id"]:
            break
        step = torch.tensor([[out[-1]]])
    return tokenizer.decode(out, skip_special_tokens=True), margin


def report(before, model, tokenizer, amax, documents):
    separate = [(k / E4M3_MAX, v / E4M3_MAX) for k, v in amax]
    modes = {
        "FP16 cache": None,
        "FP8, calibrated scales": separate,
        "FP8, scales of 1.0": [(1.0, 1.0)] * len(separate),
        "FP8, one scale per layer for K and V": [(max(pair), max(pair)) for pair in separate],
    }
    value, _ = perplexity(load(before), tokenizer, documents, None)
    print(f"  before the moves, FP16 cache: perplexity {value:.5f}")
    largest = measure_amax(model, tokenizer, documents)[:, 1].min()
    print(f"  largest V of the moved layer on held-out documents: {largest:.4g}, must be below {2.0**-10:.4g}")
    assert largest < 2.0**-10
    for name, scales in modes.items():
        value, count = perplexity(model, tokenizer, documents, scales)
        print(f"  {name}: perplexity {value:.5f} on {len(documents)} held-out documents, {count} tokens")
    for prompt in text.PROMPTS:
        texts = {name: greedy(model, tokenizer, prompt, scales) for name, scales in modes.items()}
        print(f"  prompt {prompt!r}")
        for name, (continuation, margin) in texts.items():
            same = " (as FP16)" if name != "FP16 cache" and continuation == texts["FP16 cache"][0] else ""
            print(f"    {name}: {continuation!r}{same} (margin {margin:.3f})")


def write_model(folder, weights, tokenizer):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file({name: w.contiguous() for name, w in weights.items()}, str(folder / "model.safetensors"),
              metadata={"format": "pt"})
    special = {"bos_token": BOS, "eos_token": EOS}
    files = {
        "config.json": CONFIG,
        "generation_config.json": {"bos_token_id": 0, "eos_token_id": 1, "do_sample": False},
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", **special, "add_bos_token": True,
                                  "add_eos_token": False, "clean_up_tokenization_spaces": False,
                                  "model_max_length": CONFIG["max_position_embeddings"]},
        "special_tokens_map.json": special,
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")


@torch.no_grad()
def check_written(folder, before, tokenizer, documents):
    """What transformers reads from the folder computes what the weights before the moves compute."""
    written = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    hub = transformers.AutoTokenizer.from_pretrained(folder)
    original, worst = load(before), 0.0
    for document in documents[:50]:
        ids = encode(tokenizer, document)
        assert hub(document)["input_ids"] == ids[0, :-1].tolist()
        worst = max(worst, (written(input_ids=ids).logits - original(input_ids=ids).logits).abs().max().item())
    print(f"  largest difference of a float32 logit, before and after the moves: {worst:.2e}")
    assert worst < 1e-4


def print_amax(title, amax):
    print(f"  {title}")
    for layer, (k, v) in enumerate(amax):
        print(f"    layer {layer}: K {k:.6g}, V {v:.6g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=pathlib.Path, help="keeps the trained weights, or takes them from here")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(f"Python {platform.python_version()}, PyTorch {torch.__version__}, transformers {transformers.__version__}, "
          f"tokenizers {tokenizers.__version__}")

    tokenizer = train_tokenizer()
    if args.checkpoint and args.checkpoint.exists():
        trained = torch.load(args.checkpoint)
    else:
        trained = train(tokenizer)
        if args.checkpoint:
            torch.save(trained, args.checkpoint)
    print(f"{sum(w.numel() for w in trained.values())} parameters")

    print("moves")
    before, after = move_ranges(trained)
    print("largest magnitudes over datasets/calibration.txt")
    calibration = text.calibration_documents()
    print_amax("before the moves", measure_amax(load(before), tokenizer, calibration))
    model = load(after)
    amax = measure_amax(model, tokenizer, calibration)
    print_amax("after the moves", amax)

    folder = pathlib.Path(__file__).resolve().parent.parent / "datasets" / "demo"
    write_model(folder, after, tokenizer)
    print("as written")
    documents = held_out_documents()
    check_written(folder, before, tokenizer, documents)
    report(before, model, tokenizer, amax, documents)


if __name__ == "__main__":
    main()
