#!/usr/bin/env python3
"""What Hugging Face transformers takes for what `calibrate` and `run` do, on the same model folder.

    scripts/bench_transformers.py MODEL calibrate [--device D] [--samples N] [--seq-len N]
                                  [--amax FILE]
    scripts/bench_transformers.py MODEL run [--device D] [--batch N] [--context N] [--tokens N]

calibrate is a plain forward pass with a cache that keeps the largest |K| and |V| of each layer, in
batches as large as memory takes, without the logits; reading the weights counts. run generates
greedily over a static cache in the model's dtype, compiled where the device is a GPU. Both print a
row like those of scripts/bench, and calibrate can write what it found, and its seconds, to compare. Needs torch and
transformers, which nothing else of this project does.
"""

import argparse
import json
import os
import statistics
import time

import torch
import transformers


class Observer(transformers.DynamicCache):
    """Sees K after RoPE and V as attention gets them, and keeps nothing but their maxima."""

    def __init__(self, config):
        super().__init__(config=config)  # layers with a state create it here
        self.maxima = {}

    def update(self, key_states, value_states, layer_idx, *args, **kwargs):
        found = torch.stack([key_states.abs().amax(), value_states.abs().amax()])
        known = self.maxima.get(layer_idx)
        self.maxima[layer_idx] = found if known is None else torch.maximum(known, found)
        return key_states, value_states


def row(name, seconds, amount, unit, more=""):
    print(f"{name:56} {seconds:9.2f} s  {amount:9.1f} {unit:8} {more}".rstrip(), flush=True)


def load(options):
    model = transformers.AutoModelForCausalLM.from_pretrained(options.model, dtype="auto")
    return model.to(options.device).eval()


def windows_of(options):
    with open(os.path.join(options.model, "windows.jsonl")) as file:
        ids = [json.loads(line)["input_ids"][: options.seq_len] for line in file]
    if len(ids) < options.samples:
        raise SystemExit(f"windows.jsonl has {len(ids)} windows, {options.samples} are asked for")
    return torch.tensor(ids[: options.samples])


def forward_all(body, ids, batch, observer):
    for part in ids.split(batch):
        # Skips the logits, which nobody needs here, and which take more memory than the rest.
        body(part, past_key_values=observer, use_cache=True)


@torch.inference_mode()
def calibrate(options):
    ids = windows_of(options)
    start = time.perf_counter()
    model = load(options)
    ids = ids.to(options.device)
    for batch in (16, 8, 4, 2, 1):
        try:
            observer = Observer(model.config)
            forward_all(model.model, ids, batch, observer)
            break
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            start = time.perf_counter()  # leaves failed tries out of the time
    maxima = [observer.maxima[layer].tolist() for layer in sorted(observer.maxima)]  # waits
    seconds = time.perf_counter() - start
    row(f"transformers {transformers.__version__} calibrate, {ids.shape[0]} x {ids.shape[1]}",
        seconds, ids.numel() / seconds, "tokens/s", f"batches of {batch}")
    if options.amax:
        with open(options.amax, "w") as file:
            json.dump({"k": [k for k, _ in maxima], "v": [v for _, v in maxima],
                       "seconds": seconds}, file)


@torch.inference_mode()
def run(options):
    model = load(options)
    on_gpu = options.device != "cpu"
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(3, model.config.vocab_size, (options.batch, options.context),
                        generator=generator).to(options.device)

    def generate(tokens):
        start = time.perf_counter()
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens,
                       min_new_tokens=tokens, do_sample=False, pad_token_id=0,
                       cache_implementation="static", disable_compile=not on_gpu)
        return time.perf_counter() - start

    generate(2)
    generate(options.tokens)  # compiles
    # Both runs include the prompt's time, which cancels.
    times = [generate(options.tokens) - generate(2) for _ in range(3)]
    step = statistics.median(times) / (options.tokens - 2)
    row(f"transformers {transformers.__version__} run, {options.batch} x {options.context}",
        statistics.median(times), options.batch / step, "tokens/s", f"{1000 * step:.2f} ms a step")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("what", choices=["calibrate", "run"])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--seq-len", type=int, default=2048)
    parser.add_argument("--amax")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--tokens", type=int, default=64)
    options = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    {"calibrate": calibrate, "run": run}[options.what](options)


if __name__ == "__main__":
    main()
