# Loads with vLLM, on its CPU platform.
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
