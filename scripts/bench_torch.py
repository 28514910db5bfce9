#!/usr/bin/env python3
"""What PyTorch takes for the ops of `scripts/bench ops`, in rows of the same names.

    scripts/bench_torch.py [--threads N] [linear|attention ...]

Needs torch, which nothing else of this project does. Each figure is the best of several runs within
a second, as those of fp8kv are.
"""

import argparse
import time

import torch
from torch.nn import functional


def best_time(work, seconds=1.0):
    work()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - begin)
    return best


def row(name, amount, unit):
    print(f"{name:44} {amount:9.1f} {unit}", flush=True)


def linear():
    out_dim, in_dim = 11008, 4096
    for name, dtype in (("bf16", torch.bfloat16), ("f16", torch.float16), ("f32", torch.float32)):
        weight = (torch.rand(out_dim, in_dim) - 0.5).to(dtype)
        for rows in (1, 4, 16, 64, 512):
            x = (torch.rand(rows, in_dim) - 0.5).to(dtype)
            seconds = best_time(lambda: functional.linear(x, weight))
            what = f"linear {name} {out_dim} x {in_dim}, {rows} rows"
            if rows < 64:
                row(what, weight.nbytes / seconds / 1e9, "GB/s")
            if rows >= 16:
                row(what, 2.0 * rows * in_dim * out_dim / seconds / 1e9, "GFLOP/s")


def attention():
    tokens, heads, size = 2048, 32, 128
    for name, dtype in (("bf16", torch.bfloat16), ("f16", torch.float16), ("f32", torch.float32)):
        q, k, v = ((torch.rand(1, heads, tokens, size) - 0.5).to(dtype) for _ in range(3))
        seconds = best_time(
            lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=True), 3.0)
        flop = 2.0 * 2 * heads * size * tokens * (tokens + 1) / 2
        row(f"attention prompt {tokens} x {heads} heads of {size}, {name}", flop / seconds / 1e9,
            "GFLOP/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"linear": linear, "attention": attention}
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("parts", nargs="*", metavar="|".join(parts), default=[])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(f"PyTorch {torch.__version__}, {args.threads} threads")
    with torch.inference_mode():
        for part in args.parts or parts:
            parts[part]()


if __name__ == "__main__":
    main()
