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

RUNTIMES = ("vllm", "sglang", "transformers")

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


class Refused(Exception):
    """What this Python lacks; args: the kind, and the details for the answer."""


def end_with_parent():
    """Lets the system end this process when the program that started it is gone (Linux)."""
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)


def find_installed_packages():
    """Adds the packages that isolated mode hides: of the user, and of PYTHONPATH before others."""
    if sys.prefix == sys.base_prefix:
        site.addsitedir(site.getusersitepackages())
    packages = [at for at, path in enumerate(sys.path) if path.endswith("-packages")]
    first = min(packages, default=len(sys.path))
    sys.path[first:first] = REQUEST["python_path"]


def answer(content):
    with os.fdopen(REQUEST["answer"], "w") as out:
        json.dump(content, out)


def choose_runtime():
    found = [name for name in RUNTIMES if importlib.util.find_spec(name)]
    # vLLM and SGLang bring transformers with them.
    wanted = REQUEST["runtime"]
    if wanted and wanted not in found or not found:
        raise Refused("absent", {"found": found, "wanted": wanted})
    servers = [name for name in found if name != "transformers"]
    if not wanted and len(servers) > 1:
        raise Refused("several", {"found": servers})
    return wanted or found[0]


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


def stub_missing_ops(prefixes):
    """Compiled ops that this installation lacks do nothing: loading scales calls none of them."""
    import torch._ops

    plain = torch._ops._OpNamespace.__getattr__

    def lenient(self, name):
        try:
            return plain(self, name)
        except AttributeError:
            if not self.name.startswith(prefixes):
                raise

            def op(*args, **kwargs):
                return None

            op.default = op
            return op

    torch._ops._OpNamespace.__getattr__ = lenient


class MissingPackages(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in for packages of kernels that this installation lacks: loading scales calls none of them."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path, target=None):
        if name.split(".")[0] not in self.names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return unittest.mock.MagicMock(__spec__=spec, __name__=spec.name, __path__=[])

    def exec_module(self, module):
        pass


class NoStream:
    """Stands in for streams and events of a GPU, which some models make early: nothing runs on one here."""

    def __init__(self, *args, **kwargs):
        pass


class Vllm:
    tells_cache = True  # its attention modules name the dtype of the cache

    def __init__(self):
        import vllm.platforms

        from vllm.platforms.cpu import CpuPlatform

        vllm.platforms._current_platform = CpuPlatform()
        import vllm
        import vllm.model_executor.models.registry as registry

        # vLLM would start a process for this, and write to a file of its cache.
        registry._run_in_subprocess = lambda work: work()
        if hasattr(registry, "_LazyRegisteredModel"):
            registry._LazyRegisteredModel._save_modelinfo_to_cache = lambda *rest: None
        import vllm._custom_ops
        import vllm.engine.arg_utils
        import vllm.model_executor.model_loader

        stub_missing_ops(("_C", "_moe"))
        sys.meta_path.append(MissingPackages({"cutlass"}))
        import torch.cpu
        import torch.cuda

        torch.cuda.Stream = torch.cuda.Event = NoStream
        # Without AMX vLLM refuses FP8 in blocks, but this script computes no product.
        torch.cpu._is_amx_tile_supported = lambda: True
        for name in ("vllm.v1.attention.backends.cpu_attn", "vllm.attention.backends.torch_sdpa"):
            with contextlib.suppress(ImportError):
                backend = importlib.import_module(name)
                if hasattr(backend, "is_quantized_kv_cache"):
                    backend.is_quantized_kv_cache = lambda *rest: False
        with contextlib.suppress(ImportError):
            from vllm.triton_utils import triton

            # Without a GPU this is a placeholder, which lacks a function that some models call.
            if not hasattr(triton, "set_allocator"):
                triton.set_allocator = lambda allocate: None
        self.version = vllm.__version__
        self._patch_loader()
        self._distributed = False

    def _patch_loader(self):
        """The model's own code gets the scales; weights that are not there are not missed."""

        def without_tracking(make):
            def made(*args, **kwargs):
                model = make(*args, **kwargs)
                load = model.load_weights
                model.load_weights = lambda weights: (load(weights), None)[1]
                return model

            return made

        def process_attention(model, model_config, *rest):
            for module in model.modules():
                if not hasattr(module, "_k_scale"):
                    continue
                method = getattr(module, "quant_method", None)
                if method is not None:
                    method.process_weights_after_loading(module)
            for module in model.modules():
                # MLA's method would split its weights.
                if hasattr(module, "_k_scale") and "MLA" not in type(module).__name__:
                    finish = getattr(module, "process_weights_after_loading", None)
                    if finish is not None:
                        finish(model_config.dtype)

        for name, module in list(sys.modules.items()):
            if not name.startswith("vllm.model_executor.model_loader"):
                continue
            for made in ("initialize_model", "_initialize_model"):
                if hasattr(module, made):
                    setattr(module, made, without_tracking(getattr(module, made)))
            for done in ("process_weights_after_loading", "_process_weights_after_loading"):
                if hasattr(module, done):
                    setattr(module, done, process_attention)

    def _config(self, kv_cache_dtype):
        from vllm.engine.arg_utils import EngineArgs

        asked = {"model": REQUEST["folder"], "skip_tokenizer_init": True, "enforce_eager": True,
                 "max_model_len": 256, "kv_cache_dtype": kv_cache_dtype}
        if "device" in EngineArgs.__dataclass_fields__:
            asked["device"] = "cpu"
        try:
            config = EngineArgs(**asked).create_engine_config()
        except Exception:
            # Some CPU backends refuse an FP8 cache, but the loader still works with "auto".
            if kv_cache_dtype == "auto":
                raise
            asked["kv_cache_dtype"] = "auto"
            config = EngineArgs(**asked).create_engine_config()
        if kv_cache_dtype != "auto":
            config.cache_config.cache_dtype = kv_cache_dtype
        return config

    def load(self, kv_cache_dtype):
        import vllm.config
        from vllm.distributed import init_distributed_environment, initialize_model_parallel
        from vllm.model_executor.model_loader import get_model

        config = self._config(kv_cache_dtype)
        current = getattr(vllm.config, "set_current_vllm_config", lambda _: contextlib.nullcontext())
        with current(config):
            if not self._distributed:
                single_process_group()
                init_distributed_environment(1, 0, "env://", 0, "gloo")
                initialize_model_parallel(1, 1)
                self._distributed = True
            return scales_in(get_model(vllm_config=config), "_k_scale", "_v_scale")


class Stubs:
    """Imports packages of compiled kernels as empty ones: they need a GPU, and loading does not."""

    packages = ("deep_ep", "deep_gemm", "flash_mla", "flashinfer", "sgl_deep_gemm",
                "sgl_flash_mla", "sgl_kernel", "vllm")

    def find_spec(self, name, path=None, target=None):
        import importlib.machinery

        if name.split(".")[0] in self.packages:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        from unittest.mock import MagicMock

        module = MagicMock(name=spec.name)
        module.__spec__, module.__path__, module.__name__ = spec, [], spec.name
        module.__all__, module.__version__ = [], "99.0.0"
        return module

    def exec_module(self, module):
        pass


class Sglang:
    tells_cache = False

    def __init__(self):
        sys.meta_path.insert(0, Stubs())
        import torch

        torch.cuda.get_device_capability = lambda *rest, **more: (9, 0)
        import sglang
        from sglang.srt.model_loader.loader import DefaultModelLoader

        def load_weights(model, weights, target_device, *rest, **more):
            model.load_weights(weights)
            for module in model.modules():
                if getattr(module, "k_scale", None) is not None:
                    module.quant_method.process_weights_after_loading(module)

        DefaultModelLoader.load_weights_and_postprocess = staticmethod(load_weights)
        with contextlib.suppress(ImportError):
            # Its rotations for CPUs refuse models that those for GPUs take. Nothing rotates here.
            from sglang.srt.layers.rotary_embedding import factory

            factory.get_rope_cpu = lambda *rest: factory.get_rope(*rest[:8])
        self.version = sglang.__version__
        self._distributed = False

    def load(self, kv_cache_dtype):
        try:
            return self._load(kv_cache_dtype, "torch_native")
        except AssertionError as error:  # gpt-oss needs another backend; none is called here
            if "attention backend" not in str(error):
                raise
        return self._load(kv_cache_dtype, "triton")

    def _load(self, kv_cache_dtype, backend):
        import sglang.srt.server_args as server_args
        from sglang.srt.configs.device_config import DeviceConfig
        from sglang.srt.configs.load_config import LoadConfig
        from sglang.srt.configs.model_config import ModelConfig
        from sglang.srt.model_loader import get_model

        asked = server_args.ServerArgs(
            model_path=REQUEST["folder"], device="cpu", attention_backend=backend,
            kv_cache_dtype={"fp8": "fp8_e4m3"}.get(kv_cache_dtype, kv_cache_dtype),
            disable_cuda_graph=True, disable_radix_cache=True, mem_fraction_static=0.5)
        with contextlib.suppress(AttributeError):
            server_args.set_global_server_args_for_scheduler(asked)
        config = ModelConfig.from_server_args(asked)
        with self._parallel(asked, config):
            model = get_model(model_config=config, load_config=LoadConfig(),
                              device_config=DeviceConfig("cpu"))
        return scales_in(model, "k_scale", "v_scale")

    def _parallel(self, asked, config):
        """One process that is all ranks of every kind."""
        from sglang.srt.distributed import init_distributed_environment, initialize_model_parallel

        if not self._distributed:
            single_process_group()
            init_distributed_environment(world_size=1, rank=0, local_rank=0, backend="gloo")
            initialize_model_parallel()
            self._distributed = True
            with contextlib.suppress(Exception):
                from sglang.srt.layers.dp_attention import initialize_dp_attention

                initialize_dp_attention(asked, config)
        try:
            from sglang.srt.runtime_context import get_parallel
        except ImportError:
            return contextlib.nullcontext()
        context, unset = get_parallel(), {}
        for name in dir(type(context)):
            if name.endswith(("_size", "_rank")):
                try:
                    getattr(context, name)
                except Exception:
                    unset[name] = 1 if name.endswith("_size") else 0
        return context.override(**unset)


def single_process_group():
    """A process group of this process alone, without a port."""
    import torch.distributed

    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)


class Transformers:
    tells_cache = False

    def __init__(self):
        import transformers

        self.version = transformers.__version__

    def load(self, kv_cache_dtype):
        import torch
        import transformers
        from transformers import AutoModelForCausalLM

        transformers.PreTrainedModel._init_weights = lambda *rest: None
        for name in ("initialize_weights", "_initialize_missing_keys"):
            if hasattr(transformers.PreTrainedModel, name):
                setattr(transformers.PreTrainedModel, name, lambda *rest, **more: None)
        with torch.no_grad():
            model, report = AutoModelForCausalLM.from_pretrained(
                REQUEST["folder"], torch_dtype="auto", output_loading_info=True)
        modules = scales_in(model, "k_scale", "v_scale")
        for module in modules:  # missing in the files: memory holds no valid number
            for of in ("k", "v"):
                if f"{module['module']}.{of}_scale" in report["missing_keys"]:
                    module[of] = [float("nan")]
        return modules


def load():
    chosen = choose_runtime()
    show_only_scales()
    runtime = {"vllm": Vllm, "sglang": Sglang, "transformers": Transformers}[chosen]()
    result = {"runtime": chosen, "version": runtime.version, "turns_on": None,
              "python": sys.version.split()[0]}
    try:
        asked = REQUEST["kv_cache_dtype"]
        if not asked and runtime.tells_cache:
            modules = runtime.load("auto")
            made = {module["cache"] for module in modules if re.search("fp8|fp4", module["cache"])}
            result["turns_on"], result["cache"] = bool(made), min(made, default="")
            result["modules"] = modules if result["turns_on"] else runtime.load("fp8")
        else:
            result["modules"] = runtime.load(asked or "fp8")
    except MemoryError:
        raise
    except Exception as error:
        if re.search("can't allocate memory|out of memory", str(error)):
            raise MemoryError from error
        traceback.print_exc()
        result["failure"] = f"{type(error).__name__}: {error}"
    return result


def main():
    end_with_parent()
    find_installed_packages()
    try:
        answer(load())
    except Refused as refused:
        answer({"refused": refused.args[0], **refused.args[1]})
    except MemoryError:
        answer({"refused": "memory"})


if __name__ == "__main__":
    main()
