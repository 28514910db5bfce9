# Loads a model folder with the loader of the vLLM, SGLang or transformers that this Python has,
# and reports the K and V scales in memory. The line REQUEST = {...} comes before this script:
#   folder, runtime ("" for the one that is installed), tensors (the names of the KV scales),
#   kv_cache_dtype ("": "auto", and if that makes neither an FP8 nor an NVFP4 cache, "fp8"),
#   python_path (entries of PYTHONPATH), answer (the descriptor that gets one JSON object).
# Runs isolated (python -I) in an empty folder: no import finds a file of the user's folders.
# Runs on the CPU, whatever devices there are. The loader sees the KV scales and no other tensor.
# Weights are not read, so a model of any size loads in the memory that its modules take without
# them. Writes no file, and runs no code of the folder.
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import re
import site
import sys
import traceback
import unittest.mock

for name, value in {
    "CUDA_VISIBLE_DEVICES": "",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "HIP_VISIBLE_DEVICES": "",
    "OMP_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
}.items():
    os.environ[name] = value


def show_only_scales():
    """Makes the safetensors package show the KV scales of a file and nothing else in it."""
    import safetensors
    import safetensors.torch

    names = set(REQUEST["tensors"])
    plain_open = safetensors.safe_open

    class OnlyScales:
        def __init__(self, *args, **kwargs):
            self.file = plain_open(*args, **kwargs)

        def __enter__(self):
            self.file = self.file.__enter__()
            return self

        def __exit__(self, *error):
            return self.file.__exit__(*error)

        def keys(self):
            return [name for name in self.file.keys() if name in names]

        offset_keys = keys

        def __getattr__(self, name):
            if name == "file":  # the object is still being constructed
                raise AttributeError(name)
            return getattr(self.file, name)

    def load_file(path, device="cpu", **kwargs):
        with OnlyScales(path, framework="pt", device=str(device)) as file:
            return {name: file.get_tensor(name) for name in file.keys()}

    safetensors.safe_open = safetensors.torch.safe_open = OnlyScales
    safetensors.torch.load_file = load_file


def numbers(value):
    """The numbers of a tensor, a number, or None."""
    if value is None:
        return None
    if isinstance(value, (int, float)):
        return [float(value)]
    return [float(number) for number in value.detach().float().flatten().tolist()]


def layer_of(module_name):
    found = re.search(r"(?:^|\.)(\d+)\.", module_name + ".")
    return int(found.group(1)) if found else None


def scales_in(model, k_name, v_name):
    """One entry for each attention module that has these attributes."""
    found = []
    names = {name for name, _ in model.named_modules()}
    for name, module in model.named_modules():
        if not hasattr(module, k_name) or re.search(r"vis(ion|ual)|audio|encoder\.", name):
            continue
        # DeepSeek in SGLang: the other module, attn_mqa, has the cache.
        if name.endswith(".attn_mha") and name[:-3] + "mqa" in names:
            continue
        layer = layer_of(name)
        if layer is None:
            continue
        k, v = numbers(getattr(module, k_name)), numbers(getattr(module, v_name, None))
        q = numbers(getattr(module, k_name.replace("k_scale", "q_scale"), None))
        found.append({"module": name, "layer": layer, "k": k, "v": v, "q": q,
                      "cache": str(getattr(module, "kv_cache_dtype", ""))})
    return found


def single_process_group():
    """A process group of this process alone, without a port."""
    import torch.distributed

    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
