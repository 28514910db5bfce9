"""Writes kv-rows.json: rows of KV caches as the rules of vLLM 0.33 and of NVFP4 store them, and what they read back.

    python make_kv_rows.py            writes kv-rows.json beside this file; needs torch
    python make_kv_rows.py --check    writes nothing; fails when what lies there differs

The arithmetic is written from the rules, in torch, and shares no code with the project. Sources: vLLM 0.33
v1/attention/ops/triton_reshape_and_cache_flash.py (int8, fp8), int4_per_token_head.py, triton_turboquant_store.py;
NVIDIA's NVFP4: block scale = e4m3(block_max / 6 / k_scale), code = e2m1(x / (block scale * k_scale)).

Per row: format, dim, stored (the scale that is stored with the model), x and values as the hex of float32 bits,
bytes as hex. Values are code * scales, rotated where the format is, without the stored scale.
"""

import argparse
import json
import pathlib
import struct
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def f32(x):
    return torch.tensor(x, dtype=torch.float32)


def fp8(x):
    """Codes of E4M3FN, saturating, as bytes."""
    return x.clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8)


def of_fp8(codes):
    return codes.view(torch.float8_e4m3fn).to(torch.float32)


def e2m1(x):
    """The nearest code, ties to the even one."""
    distance = (x.abs()[:, None] - E2M1[None, :]).abs()
    code = torch.zeros(len(x), dtype=torch.int64)
    for i, row in enumerate(distance):
        nearest = [c for c in range(8) if row[c] == row.min()]
        code[i] = nearest[0] if len(nearest) == 1 else min(nearest, key=lambda c: c % 2)
    return code + 8 * torch.signbit(x).to(torch.int64)


def of_e2m1(codes):
    return torch.where(codes >= 8, -E2M1[codes % 8], E2M1[codes % 8])


def pairs(codes):
    return [int(codes[i]) | int(codes[i + 1]) << 4 for i in range(0, len(codes), 2)]


def bytes_of(x):
    return list(struct.pack("<f", float(x)))


def nvfp4_block(x, top, stored):
    scale = fp8(f32([float(f32(float(f32(float(x.abs().max())) / f32(top))) / f32(stored))]))
    step = of_fp8(scale)[0] * f32(stored)
    codes = e2m1(x / step) if step > 0 else torch.zeros(len(x), dtype=torch.int64)
    error = f32(0.0)
    for value, back in zip(x, of_e2m1(codes) * step):
        error = error + (back - value) * (back - value)
    return scale, codes, error


def nvfp4(x, stored, choose):
    codes, scales, values = [], [], []
    for first in range(0, len(x), 16):
        block = x[first : first + 16]
        scale, code, error = nvfp4_block(block, 6.0, stored)
        if choose:
            other = nvfp4_block(block, 4.0, stored)
            if other[2] < error:
                scale, code = other[0], other[1]
        codes += pairs(code)
        scales.append(int(scale[0]))
        values.append(of_e2m1(code) * of_fp8(scale)[0])
    return codes + scales, torch.cat(values)


def half_away(x):
    return torch.where(x >= 0, x + 0.5, x - 0.5)


def int8(x):
    scale = torch.maximum(x.abs().max() / 127.0, f32(1e-6))
    codes = half_away(x * (1.0 / scale)).clamp(-128, 127).to(torch.int8)
    return [int(c) & 255 for c in codes] + bytes_of(scale), codes.to(torch.float32) * scale


def fp8_rows(x):
    scale = torch.maximum(x.abs().max() / 448.0, f32(1e-6))
    codes = fp8(x * (1.0 / scale))
    return [int(c) for c in codes] + bytes_of(scale), of_fp8(codes) * scale


def int4(x):
    scale = torch.maximum((x.max() - x.min()) / 15.0, f32(1e-6))
    zero = half_away(-x.min() / scale).to(torch.int32).to(torch.float32).clamp(0, 15)
    codes = half_away(x * (1.0 / scale) + zero).to(torch.int32).clamp(0, 15)
    bits = scale.view(torch.int32).item() & ~15
    packed = struct.pack("<I", bits & 0xFFFFFFFF | int(zero))
    kept = f32(struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0])
    return pairs(codes) + list(packed), (codes.to(torch.float32) - zero) * kept


def int4_values(x):
    scale = (x.max() - x.min()) / 15.0
    scale = scale if scale > 1e-8 else f32(1e-8)
    codes = ((x - x.min()) / scale + 0.5).to(torch.int32).clamp(0, 15)
    half = [scale.to(torch.float16), x.min().to(torch.float16)]
    packed = b"".join(struct.pack("<e", h.item()) for h in half)
    return pairs(codes) + list(packed), codes.to(torch.float32) * half[0].to(torch.float32) + half[1].to(torch.float32)


def hadamard(x):
    """Signs and the Walsh-Hadamard matrix, in blocks of the largest power of two in the dimension."""
    d = len(x)
    block = d & -d
    draw = torch.Generator(device="cpu")
    draw.manual_seed(0x9E3779B9)
    signs = 2.0 * torch.bernoulli(torch.full((block,), 0.5), generator=draw) - 1.0
    out = []
    for first in range(0, d, block):
        part, h = x[first : first + block] * signs, 1
        while h < block:
            view = part.view(block // (2 * h), 2, h)
            part = torch.stack([view[:, 0] + view[:, 1], view[:, 0] - view[:, 1]], dim=1).reshape(block)
            h *= 2
        out.append(part)
    return torch.cat(out)


FORMATS = {
    "nvfp4": lambda x, stored: nvfp4(x, stored, False),
    "nvfp4_4over6": lambda x, stored: nvfp4(x, stored, True),
    "int8_per_token_head": lambda x, stored: int8(x),
    "fp8_per_token_head": lambda x, stored: fp8_rows(x),
    "int4_per_token_head": lambda x, stored: int4(hadamard(x)),
    "int4_values": lambda x, stored: int4_values(x),
}


def rows():
    draw = torch.Generator().manual_seed(7)
    for dim in (16, 64, 96, 128):
        plain = torch.randn(dim, generator=draw)
        outliers = plain * torch.where(torch.arange(dim) % 17 == 3, 60.0, 1.0)
        yield plain, 0.0017
        yield outliers.to(torch.bfloat16).to(torch.float32), 0.05
        yield plain * 1e-5, 1.0
        yield plain.abs() * 300 + 5, 0.01  # exceeds the room of the stored scale
    yield torch.zeros(64), 0.1
    yield torch.full((64,), -2.5), 0.001
    yield torch.arange(64, dtype=torch.float32) / 4 - 8, 0.25  # makes ties in every format


def hexed(x):
    return x.numpy().astype("<f4").tobytes().hex()


def document():
    cases = []
    for x, stored in rows():
        for name, store in FORMATS.items():
            stored_bytes, values = store(x, stored)
            cases.append({"format": name, "dim": len(x), "stored": stored, "x": hexed(x),
                          "bytes": bytes(stored_bytes).hex(), "values": hexed(values)})
    return "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    text, path = document(), HERE / "kv-rows.json"
    if check:
        sys.exit(0 if path.read_text() == text else f"{path}: differs from what this script writes")
    path.write_text(text)


if __name__ == "__main__":
    main()
