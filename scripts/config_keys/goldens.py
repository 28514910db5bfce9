"""The random models of tests/golden as folders, for scripts that change their config.json."""
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "fp8kv"
ONE_FOLDER_EACH = ["mixtral", "qwen2-moe", "qwen3-moe", "olmoe", "granite-moe"]


def python_with(packages, folder):
    """The Python of a virtual environment with these packages; they are installed once."""
    python = folder / "bin/python"
    if not (folder / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
        (folder / "done").touch()
    return python


def text_of(config):
    """The config of the language model: a part of `config`, or all of it."""
    return config.get("text_config", config)


def in_folder(name):
    folder = ROOT / "tests/golden" / name
    config = json.loads((folder / "config.json").read_text())
    return {"config": config, "weights": folder / "model.safetensors"} | json.loads((folder / "golden.json").read_text())


def of_cases():
    """Every golden, by the name of its case."""
    paths = sorted((ROOT / "tests/golden/families").glob("*.json"))
    folders = [path.parent.name for path in sorted((ROOT / "tests/golden").glob("*/golden.json"))]
    return {path.stem: json.loads(path.read_text()) for path in paths} | {name: in_folder(name) for name in folders}


def of_families():
    """For each model_type of a language model the golden with the shortest name."""
    found = {}
    for path in sorted((ROOT / "tests/golden/families").glob("*.json"), key=lambda path: len(path.stem)):
        golden = json.loads(path.read_text())
        found.setdefault(text_of(golden["config"])["model_type"], golden)
    for name in ONE_FOLDER_EACH:
        golden = in_folder(name)
        found.setdefault(golden["config"]["model_type"], golden)
    return found


def values(name, seed, shape, base, amplitude):
    """Does the same as tests/golden/make_families.py."""
    mask, start = 2**64 - 1, 0xCBF29CE484222325 ^ seed
    for byte in name.encode():
        start = (start ^ byte) * 0x100000001B3 & mask
    count = 1
    for size in shape:
        count *= size
    out = []
    for i in range(1, count + 1):
        z = (start + i * 0x9E3779B97F4A7C15) & mask
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        z ^= z >> 31
        out.append(base + amplitude * (((z >> 40) + 0.5) / 2**23 - 1))
    return struct.pack(f"<{count}f", *out)


def table(shape, choices):
    """Does the same as tests/golden/make_families.py."""
    tokens, per_token = shape
    return struct.pack(f"<{tokens * per_token}q", *((3 * token + token // 5 + i) % choices
                                                    for token in range(tokens) for i in range(per_token)))


def write_weights(path, golden):
    if "weights" in golden:
        path.write_bytes(golden["weights"].read_bytes())
        return
    header, data = {}, b""
    for name, row in golden["tensors"].items():
        is_table = "choices" in row
        block = table(row["shape"], row["choices"]) if is_table else values(
            name, golden["seed"], row["shape"], row["base"], row["amplitude"])
        header[name] = {"dtype": "I64" if is_table else "F32", "shape": row["shape"],
                        "data_offsets": [len(data), len(data) + len(block)]}
        data += block
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def ids_of(golden):
    return golden["ids"] if "ids" in golden else golden["input_ids"]


def write_ids(path, golden):
    path.write_text(json.dumps({"input_ids": ids_of(golden)}) + "\n")
