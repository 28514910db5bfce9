"""What transformers computes with a model, for real_models. Run by the environment's own Python.

    reference.py windows MODEL TEXT.txt SEQ_LEN COUNT OUT.jsonl   token ids, cut into windows
    reference.py ids MODEL TEXT.txt                               token ids of the whole text
    reference.py forward MODEL WINDOWS.jsonl [SCALES.json]        perplexity, amax, KLD of FP8 caches
    reference.py greedy MODEL PROMPTS.jsonl TOKENS                the likeliest tokens
    reference.py maxima MODEL WINDOWS.jsonl                       amax of each window

Prints JSON. The FP8 cache is a cache class of this file: K and V of each layer divided by the scale,
rounded by torch to E4M3, and multiplied again. It shares no code with fp8kv.
"""
import json
import math
import os
import sys
import warnings

import torch
import transformers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from bench_transformers import Observer  # noqa: E402

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
warnings.simplefilter("ignore", FutureWarning)  # newer releases call past_key_values cache


class Fp8Cache(transformers.DynamicCache):
    """Returns what a cache in E4M3 with one scale for each layer's K and V holds."""

    def __init__(self, config, scales):
        super().__init__(config=config)
        self.scales = scales

    def update(self, key_states, value_states, layer_idx, *args, **kwargs):
        return tuple((x / scale).clamp(-448, 448).to(torch.float8_e4m3fn).to(x.dtype) * scale
                     for x, scale in zip((key_states, value_states), self.scales[layer_idx]))


def load(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    return model.eval()


def encode(folder, text):
    return transformers.AutoTokenizer.from_pretrained(folder).encode(open(text).read())


def windows(folder, text, length, count):
    """Equal windows, evenly over the text; each begins as a text of its own does."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    start = tokenizer.encode("")
    ids = tokenizer.encode(open(text).read(), add_special_tokens=False)
    size = length - len(start)
    step = (len(ids) - size) // max(1, count - 1)
    if step < size:
        sys.exit(f"{text} has {len(ids)} tokens; {count} windows need {count * size}")
    return [start + ids[at * step:at * step + size] for at in range(count)]


def read_lines(path):
    return [json.loads(line)["input_ids"] for line in open(path)]


def maxima_of(observer):
    """The largest |K| and |V| of each layer."""
    return [observer.maxima[layer].tolist() for layer in sorted(observer.maxima)]


def log_probabilities(model, ids, cache):
    return torch.log_softmax(model(ids, past_key_values=cache, use_cache=True).logits[0, :-1].double(), -1)


@torch.inference_mode()
def forward(folder, path, scales_file):
    model = load(folder)
    caches = {}
    if scales_file:
        found = json.load(open(scales_file))["kv_cache"]
        caches = {"amax": found, "unit": [(1.0, 1.0)] * len(found)}
    nll, count, divergence = 0.0, 0, {name: [] for name in caches}
    observer = Observer(model.config)
    for ids in read_lines(path):
        ids = torch.tensor([ids])
        base = log_probabilities(model, ids, observer)
        nll -= base.gather(1, ids[0, 1:, None]).sum().item()
        count += ids.shape[1] - 1
        for name, scales in caches.items():
            other = log_probabilities(model, ids, Fp8Cache(model.config, scales))
            divergence[name].append((base.exp() * (base - other)).sum().item())
    return {"perplexity": math.exp(nll / count), "tokens": count,
            "amax": maxima_of(observer),
            "kld": {name: sum(each) / count for name, each in divergence.items()}}


@torch.inference_mode()
def greedy(folder, path, tokens):
    model = load(folder)
    out = []
    for ids in read_lines(path):
        ids = torch.tensor([ids])
        done = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens,
                              min_new_tokens=tokens, do_sample=False, pad_token_id=0)
        out.append(done[0, ids.shape[1]:].tolist())
    return out


@torch.inference_mode()
def maxima(folder, path):
    model = load(folder)
    out = []
    for ids in read_lines(path):
        observer = Observer(model.config)
        model.model(torch.tensor([ids]), past_key_values=observer, use_cache=True)
        out.append(maxima_of(observer))
    return out


def main():
    what, folder, *rest = sys.argv[1:]
    if what == "windows":
        with open(rest[3], "w") as file:
            for ids in windows(folder, rest[0], int(rest[1]), int(rest[2])):
                print(json.dumps({"input_ids": ids}), file=file)
        return
    answer = {"ids": lambda: encode(folder, rest[0]),
              "forward": lambda: forward(folder, rest[0], rest[1] if len(rest) > 1 else None),
              "greedy": lambda: greedy(folder, rest[0], int(rest[1])),
              "maxima": lambda: maxima(folder, rest[0])}[what]()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
