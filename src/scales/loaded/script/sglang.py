# Loads with SGLang. Its compiled kernels need a GPU, so empty packages stand in for them.
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
