"""Times fp8kv and transformers in turns on the same models and windows, for real_models.

Run by the environment's own Python as speed.py MODEL WINDOWS.jsonl PROMPT.jsonl it times transformers, and
prints seconds: calibrate is the forward pass alone, without loading and without logits.
"""
import json
import re
import statistics
import subprocess
import sys
import time

WINDOWS, WINDOW = 16, 512
PROMPT, NEW = 1024, 64
CASES = ("calibrate", "prompt", "decode")
ROUNDS = 2
RUNS = 2  # the least counts, on both sides


def fp8kv_seconds(program, model, windows, prompt, out):
    """Of each case: the whole of calibrate, the prompt's tokens, and one step of decoding."""
    start = time.perf_counter()
    subprocess.run([program, "calibrate", model, "--data", windows, "--samples", str(WINDOWS), "--seq-len",
                    str(WINDOW), "-o", out, "--force", "-q"], check=True, stdout=subprocess.DEVNULL)
    calibrate = time.perf_counter() - start
    runs = []
    for _ in range(RUNS):
        done = subprocess.run([program, "run", model, "--prompts", prompt, "-n", str(NEW), "--temperature", "0",
                               "--kv-cache-dtype", "bfloat16", "--json"], check=True, capture_output=True, text=True)
        runs.append([float(re.search(name + r" [\d,]+ tokens? at ([\d.,]+) tokens/s", done.stderr).group(1)
                           .replace(",", "")) for name in ("prompt", "decode")])
    rates = [max(each) for each in zip(*runs)]
    return [calibrate, PROMPT / rates[0], 1 / rates[1]]


def transformers_seconds(model, windows, prompt):
    import torch
    import transformers
    transformers.utils.logging.set_verbosity_error()
    model = transformers.AutoModelForCausalLM.from_pretrained(model, dtype="auto").eval()

    def read(path):
        return torch.tensor([json.loads(line)["input_ids"] for line in open(path)])

    def timed(work):
        work()
        times = []
        for _ in range(RUNS):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return min(times)

    def generate(tokens):
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, min_new_tokens=tokens,
                       do_sample=False, pad_token_id=0)

    with torch.inference_mode():
        batch = read(windows)[:WINDOWS]
        ids = read(prompt)
        calibrate = timed(lambda: [model.model(part) for part in batch.split(4)])
        first = timed(lambda: model(ids, logits_to_keep=1))
        step = (timed(lambda: generate(NEW)) - timed(lambda: generate(2))) / (NEW - 2)
    return [calibrate, first, step]


def compare(program, python, model, windows, prompt, out):
    """The medians of fp8kv and of transformers, in seconds, case by case; they ran in turns."""
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(fp8kv_seconds(program, model, windows, prompt, out))
        done = subprocess.run([python, __file__, model, windows, prompt], check=True, capture_output=True, text=True)
        theirs.append(json.loads(done.stdout.splitlines()[-1]))
    return [[statistics.median(each[i] for each in side) for i in range(len(CASES))] for side in (ours, theirs)]


if __name__ == "__main__":
    print(json.dumps(transformers_seconds(*sys.argv[1:])))
