# Loads with transformers.
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
