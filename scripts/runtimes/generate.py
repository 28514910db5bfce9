"""Has vLLM generate with several caches, and holds its perplexity to that of fp8kv eval.

Imported by check_runtimes, and run by the runtime's own Python: generate.py FOLDER DTYPE WINDOWS
prints the perplexity and the greedy text of the windows, as JSON on the last line; generate.py
--windows FOLDER TEXT OUT writes them; generate.py --codes says how its CPU kernel rounds.
"""
import json
import math
import os
import subprocess
import sys

WINDOW, WINDOWS, PROMPT, NEW = 200, 8, 24, 24


def write_windows(folder, text, out):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    start = tokenizer.encode("")
    ids = tokenizer.encode(open(text).read(), add_special_tokens=False)
    size = WINDOW - len(start)
    with open(out, "w") as file:
        for at in range(0, size * WINDOWS, size):
            print(json.dumps({"input_ids": start + ids[at:at + size]}), file=file)


def generate(folder, dtype, windows):
    os.environ.update({"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1",
                       "VLLM_CPU_OMP_THREADS_BIND": "nobind", "HF_HUB_OFFLINE": "1",
                       "VLLM_NO_USAGE_STATS": "1", "TORCHDYNAMO_DISABLE": "1"})
    from vllm import LLM, SamplingParams

    texts = [json.loads(line)["input_ids"] for line in open(windows)]
    model = LLM(model=folder, kv_cache_dtype=dtype, enforce_eager=True, max_model_len=256,
                max_num_seqs=4, gpu_memory_utilization=0.5, seed=0, enable_prefix_caching=False)
    prompts = [{"prompt_token_ids": ids} for ids in texts]
    total = 0
    for ids, done in zip(texts, model.generate(
            prompts, SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=0))):
        total += sum(each[ids[i + 1]].logprob for i, each in enumerate(done.prompt_logprobs[1:]))
    starts = [{"prompt_token_ids": ids[:PROMPT]} for ids in texts]
    greedy = model.generate(starts, SamplingParams(temperature=0, max_tokens=NEW, ignore_eos=True))
    count = sum(len(ids) - 1 for ids in texts)
    print(json.dumps({"perplexity": math.exp(-total / count),
                      "ids": [list(each.outputs[0].token_ids) for each in greedy]}))


def codes():
    """Which codes the kernel that fills an FP8 cache on this processor makes of known numbers."""
    import torch
    import vllm._custom_ops as ops

    torch.manual_seed(3)
    tokens, heads, dim, block = 4096, 2, 32, 32
    x = torch.randn(tokens, heads, dim).half()
    scale = x.float().abs().max().item() / 448
    cache = torch.zeros(tokens // block, heads, 2 * block, dim, dtype=torch.uint8)
    keys, values = cache.chunk(2, dim=2)
    ops.cpu_attn_reshape_and_cache(x, x, keys, values, torch.arange(tokens), "vec", k_scale=scale,
                                   v_scale=scale, kv_cache_dtype="fp8")
    seen = values.permute(0, 2, 1, 3).reshape(x.shape).view(torch.float8_e4m3fn)
    scaled = x.float() * (1 / scale)
    nearest = scaled.to(torch.float8_e4m3fn)
    numbers = seen.float()
    print(json.dumps({"to_nearest": (numbers == nearest.float()).float().mean().item(),
                      "beyond": (numbers.abs() > scaled.abs()).float().mean().item(),
                      "error": ((numbers - scaled).norm() / (nearest.float() - scaled).norm()).item()}))


def last_json(command):
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1][:300])
    return json.loads(lines[-1])


def print_rounding(python):
    try:
        seen = last_json([python, __file__, "--codes"])
    except RuntimeError as error:
        print(f"  FP8 codes        vLLM: {error}", flush=True)
        return
    print(f"  FP8 codes        {seen['to_nearest']:.1%} are those of rounding to nearest, {seen['beyond']:.1%} are of "
          f"larger numbers than were to be stored; errors {seen['error']:.2f} times those of nearest", flush=True)


def measure(fp8kv, python, model, text, out, flags=()):
    """Yields a row for each cache: its name, the perplexity in vLLM (or why there is none), the perplexities in
    fp8kv by rounding to nearest and towards zero, and how many greedy texts stay as with 16 bits, of how many.

    flags: more flags of calibrate.
    """
    out.mkdir(parents=True, exist_ok=True)
    windows, scales, folder = out / "windows.jsonl", out / "scales.json", out / "folder"
    subprocess.run([python, __file__, "--windows", model, text, windows], check=True, capture_output=True)
    quiet = dict(check=True, capture_output=True)
    subprocess.run([fp8kv, "calibrate", model, "--data", text, "--seq-len", "256", "-o", scales,
                    "--force", "-q", *flags], **quiet)
    subprocess.run([fp8kv, "inject", model, "-s", scales, "-o", folder, "--force", "-q"], **quiet)
    perplexities = []
    for which in (["--scales", scales], ["--unit-scales"]):
        measured = json.loads(subprocess.run(
            [fp8kv, "eval", model, "--data", windows, "--seq-len", str(WINDOW), *which, "--fp8-rounding",
             "toward-zero", "--greedy-tokens", "0", "--json", "-q"], check=True, capture_output=True, text=True).stdout)
        perplexities.append([each["total"]["perplexity"] for each in measured["candidates"]])
    perplexities.insert(0, [measured["baseline"]["total"]["perplexity"]] * 2)
    first = None
    caches = [("16-bit", model, "auto"), ("FP8 with scales", folder, "fp8"), ("FP8 at 1.0", model, "fp8")]
    for (name, served, dtype), by_fp8kv in zip(caches, perplexities):
        try:
            seen = last_json([python, __file__, served, dtype, windows])
        except RuntimeError as error:
            yield name, str(error), by_fp8kv, 0, 0
            continue
        first = first or seen
        same = sum(a == b for a, b in zip(seen["ids"], first["ids"]))
        yield name, seen["perplexity"], by_fp8kv, same, len(first["ids"])


def compare(fp8kv, python, model, text, out):
    """Prints how vLLM rounds, and a line for each cache."""
    print_rounding(python)
    for name, by_vllm, (by_fp8kv, cut_off), same, count in measure(fp8kv, python, model, text, out):
        if isinstance(by_vllm, str):
            print(f"  {name:16} vLLM: {by_vllm}", flush=True)
        else:
            print(f"  {name:16} perplexity {by_vllm:.3f}, fp8kv eval {by_fp8kv:.3f}, "
                  f"towards zero {cut_off:.3f}; "
                  f"{same} of {count} greedy texts as with 16 bits", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--windows":
        write_windows(*sys.argv[2:])
    elif sys.argv[1] == "--codes":
        codes()
    else:
        generate(*sys.argv[1:])
