#!/usr/bin/env python3
"""Writes src/scales/rules/runtime_models_table.cpp: in which versions each runtime has a model of its own for an architecture.

    git clone --bare https://github.com/huggingface/text-generation-inference tgi.git
    scripts/make_runtime_models.py tgi.git

Reads what each release registers: of vLLM, SGLang and transformers the files in PyPI's wheels that list their
models, by ranges, since a wheel of vLLM has 400 MB; of TGI, which PyPI does not have, the tags of its repository.
Reads only, and runs none of it. Takes some minutes. Stops where a release lists no model: the file has moved.
"""

import ast
import io
import json
import re
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "src/scales/rules/runtime_models_table.cpp"
# "architectures" and "model_type" of config.json: the models of docs/models.md, and others that
# runtimes were run with.
MODELS = """
LlamaForCausalLM llama            MistralForCausalLM mistral          Ministral3ForCausalLM ministral3
Qwen2ForCausalLM qwen2            Qwen3ForCausalLM qwen3              GemmaForCausalLM gemma
Gemma2ForCausalLM gemma2          Gemma3ForCausalLM gemma3_text       Gemma3nForCausalLM gemma3n_text
Gemma4ForCausalLM gemma4_text     Phi3ForCausalLM phi3                PhiForCausalLM phi
GlmForCausalLM glm                Glm4ForCausalLM glm4                GraniteForCausalLM granite
Olmo2ForCausalLM olmo2            Olmo3ForCausalLM olmo3              CohereForCausalLM cohere
Cohere2ForCausalLM cohere2        SmolLM3ForCausalLM smollm3          StableLmForCausalLM stablelm
Starcoder2ForCausalLM starcoder2  MixtralForCausalLM mixtral          Qwen2MoeForCausalLM qwen2_moe
Qwen3MoeForCausalLM qwen3_moe     OlmoeForCausalLM olmoe              Glm4MoeForCausalLM glm4_moe
MiniMaxM2ForCausalLM minimax_m2   GptOssForCausalLM gpt_oss           GraniteMoeForCausalLM granitemoe
DeepseekV2ForCausalLM deepseek_v2 DeepseekV3ForCausalLM deepseek_v3   DeepseekV32ForCausalLM deepseek_v32
DeepseekV4ForCausalLM deepseek_v4
Glm4MoeLiteForCausalLM glm4_moe_lite                                  GlmMoeDsaForCausalLM glm_moe_dsa
InternLM2ForCausalLM internlm2    InternLM3ForCausalLM internlm3      BaichuanForCausalLM baichuan
BaiChuanForCausalLM baichuan      MiniCPMForCausalLM minicpm          Llama4ForCausalLM llama4_text
GraniteMoeHybridForCausalLM granitemoehybrid                          NemotronHForCausalLM nemotron_h
BambaForCausalLM bamba            FalconH1ForCausalLM falcon_h1       GPT2LMHeadModel gpt2
GPTBigCodeForCausalLM gpt_bigcode OPTForCausalLM opt                  GPTNeoXForCausalLM gpt_neox
FalconForCausalLM falcon          Qwen3NextForCausalLM qwen3_next     Qwen3_5ForCausalLM qwen3_5_text
Qwen3_5MoeForCausalLM qwen3_5_moe_text          Qwen4ExpForCausalLM qwen4_exp_text
InklingForCausalLM inkling_text
ArceeForCausalLM arcee            CwmForCausalLM cwm                  Dots1ForCausalLM dots1
Ernie4_5ForCausalLM ernie4_5      Exaone4ForCausalLM exaone4          FlexOlmoForCausalLM flex_olmo
GraniteMoeSharedForCausalLM granitemoeshared                          HeliumForCausalLM helium
HyperCLOVAXForCausalLM hyperclovax                                    IQuestCoderForCausalLM iquestcoder
MinistralForCausalLM ministral    NemotronForCausalLM nemotron        SeedOssForCausalLM seed_oss
SolarOpenForCausalLM solar_open   VaultGemmaForCausalLM vaultgemma    YoutuForCausalLM youtu
GraniteSWAForCausalLM granite_swa GraniteMoeSWAForCausalLM granitemoe_swa
HunYuanDenseV1ForCausalLM hunyuan_v1_dense
HunYuanMoEV1ForCausalLM hunyuan_v1_moe
OlmoForCausalLM olmo
Jais2ForCausalLM jais2
JambaForCausalLM jamba
DiffLlamaForCausalLM diffllama
Zamba2ForCausalLM zamba2
AfmoeForCausalLM afmoe
MiMoV2ForCausalLM mimo_v2
BailingMoeV2ForCausalLM bailing_moe                                  BailingMoeV2_5ForCausalLM bailing_hybrid
BailingMoeV3ForCausalLM bailing_hybrid                               BailingHybridForCausalLM bailing_hybrid
ExaoneMoeForCausalLM exaone_moe
ExaoneMoEForCausalLM exaone_moe
GPTJForCausalLM gptj
MellumForCausalLM mellum
MiMoForCausalLM mimo
PersimmonForCausalLM persimmon
PhimoeForCausalLM phimoe
PhiMoEForCausalLM phimoe
Phi4MultimodalForCausalLM phi4_multimodal
Phi4MMForCausalLM phi4mm
MptForCausalLM mpt
MPTForCausalLM mpt
MiMoV2FlashForCausalLM mimo_v2_flash
MuseGlimmerForConditionalGeneration muse_glimmer
MuseSparkForConditionalGeneration muse_spark
OlmoHybridForCausalLM olmo_hybrid
KimiLinearForCausalLM kimi_linear
KimiK3ForConditionalGeneration kimi_k3
LagunaForCausalLM laguna
MiniMaxM3SparseForConditionalGeneration minimax_m3_vl
MiniMaxForCausalLM minimax
MiniMaxText01ForCausalLM minimax_text_01
MiniMaxM1ForCausalLM minimax_m1
Step3p5ForCausalLM step3p5
Step3p7ForConditionalGeneration step3p7
DeciLMForCausalLM nemotron-nas
HYV3ForCausalLM hy_v3
HYV4ForCausalLM hy_v4
HYV4VLForConditionalGeneration hy_v4_vl
Ernie4_5_MoeForCausalLM ernie4_5_moe
Mistral4ForCausalLM mistral4
MiniCPM3ForCausalLM minicpm3
SarvamMLAForCausalLM sarvam_mla
AXK1ForCausalLM axk1
LongcatFlashForCausalLM longcat_flash
SarvamMoEForCausalLM sarvam_moe
Cohere2MoeForCausalLM cohere2_moe
Lfm2ForCausalLM lfm2
Lfm2MoeForCausalLM lfm2_moe
Lfm3ForCausalLM lfm3
ApertusForCausalLM apertus
NanoChatForCausalLM nanochat
BloomForCausalLM bloom
Cohere2VisionForConditionalGeneration cohere2_vision
Gemma3ForConditionalGeneration gemma3           Gemma3nForConditionalGeneration gemma3n
Gemma4ForConditionalGeneration gemma4           KimiK25ForConditionalGeneration kimi_k25
Llama4ForConditionalGeneration llama4           LlavaForConditionalGeneration llava
Mistral3ForConditionalGeneration mistral3       Qwen2VLForConditionalGeneration qwen2_vl
Qwen2_5_VLForConditionalGeneration qwen2_5_vl   Qwen3VLForConditionalGeneration qwen3_vl
Qwen3_5ForConditionalGeneration qwen3_5         Qwen3_5MoeForConditionalGeneration qwen3_5_moe
Qwen4ExpForConditionalGeneration qwen4_exp
InklingForConditionalGeneration inkling_mm_model
Glm46VForConditionalGeneration glm46v           Glm4vForConditionalGeneration glm4v
Glm4vMoeForConditionalGeneration glm4v_moe      Glm5NextForConditionalGeneration glm5_next
Idefics3ForConditionalGeneration idefics3
InternVLChatModel internvl_chat                 InternVLForConditionalGeneration internvl
LlavaNextForConditionalGeneration llava_next    LlavaOnevisionForConditionalGeneration llava_onevision
Qwen3VLMoeForConditionalGeneration qwen3_vl_moe SmolVLMForConditionalGeneration smolvlm
Qwen3OmniMoeForConditionalGeneration qwen3_omni_moe
Gemma4UnifiedForConditionalGeneration gemma4_unified
Exaone4_5_ForConditionalGeneration exaone4_5
Ernie4_5_VLMoeForConditionalGeneration ernie4_5_vl_moe
Qwen2_5OmniForConditionalGeneration qwen2_5_omni
Qwen2_5OmniModel qwen2_5_omni
NemotronH_Omni_Reasoning_V3 nemotron_h_omni
NemotronH_Nano_Omni_Reasoning_V3 NemotronH_Nano_Omni_Reasoning_V3
NemotronH_Nano_VL_V2 NemotronH_Nano_VL_V2
InternS1ForConditionalGeneration interns1
LlamaForCausalLMEagle3 llama_eagle3
""".split()
PAIRS = list(zip(MODELS[::2], MODELS[1::2], strict=True))
# Models that transformers has not, though it has another model of their type.
OTHERS_TYPE = {"BailingMoeV2_5ForCausalLM"}


class RangeFile(io.RawIOBase):
    """A file behind a URL, of which only the blocks that are read are fetched."""
    BLOCK = 1 << 19

    def __init__(self, url, size):
        self.url, self.size, self.at, self.blocks = url, size, 0, {}

    def seekable(self):
        return True

    def readable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=io.SEEK_SET):
        self.at = {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.size}[whence] + offset
        return self.at

    def block(self, index):
        if index not in self.blocks:
            first = index * self.BLOCK
            last = min(first + self.BLOCK, self.size) - 1
            request = urllib.request.Request(self.url, headers={"Range": f"bytes={first}-{last}"})
            with urllib.request.urlopen(request, timeout=120) as answer:
                if answer.status != 206:
                    sys.exit(f"{self.url}: the server gives no ranges")
                self.blocks[index] = answer.read()
        return self.blocks[index]

    def readinto(self, buffer):
        index, offset = divmod(self.at, self.BLOCK)
        part = self.block(index)[offset:offset + len(buffer)] if self.at < self.size else b""
        buffer[:len(part)] = part
        self.at += len(part)
        return len(part)


def numbers(version):
    """[major, minor, patch], or None for what is no plain release."""
    return [*map(int, (version + ".0").split(".")[:3])] if re.fullmatch(r"\d+(\.\d+){1,2}", version) else None


def releases(package, oldest):
    """(version, its smallest wheel that runs here) of each release since then, the oldest first."""
    request = urllib.request.Request(f"https://pypi.org/simple/{package}/",
                                     headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(request, timeout=120) as answer:
        listed = json.load(answer)
    wheels = {}
    for file in listed["files"]:
        name, version, *_, platform = file["filename"].removesuffix(".whl").split("-") + [""] * 2
        usable = file["filename"].endswith(("any.whl", "x86_64.whl")) and not file.get("yanked")
        if usable and numbers(version) and numbers(version) >= oldest:
            wheels.setdefault(version, []).append(file)
    for version in sorted(wheels, key=numbers):
        file = min(wheels[version], key=lambda each: each["size"])
        yield version, zipfile.ZipFile(io.BufferedReader(RangeFile(file["url"], file["size"])))


def assigned(text):
    """(name, value) of each name that a module sets."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value


def strings(values):
    return {value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)}


def vllm(wheel):
    """What its registry lists, also where transformers' code is what runs."""
    text = wheel.read("vllm/model_executor/models/registry.py").decode()
    # Models map to (module, class). Lists of removed models have other values.
    return {key.value for name, value in assigned(text) if name.endswith("_MODELS") and isinstance(value, ast.Dict)
            for key, model in zip(value.keys, value.values)
            if isinstance(key, ast.Constant) and isinstance(model, ast.Tuple)}


def sglang(wheel):
    found = set()
    for path in wheel.namelist():
        if not re.fullmatch(r"sglang/srt/models/\w+\.py", path):
            continue
        text = wheel.read(path).decode("utf-8-sig")
        if "EntryClass" in text:
            for name, value in assigned(text):
                if name == "EntryClass":
                    found |= {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
    return found


def transformers(wheel):
    """Types that have a configuration."""
    found = set()
    for path in ("configuration_auto.py", "auto_mappings.py"):
        if f"transformers/models/auto/{path}" in wheel.namelist():
            for name, value in assigned(wheel.read(f"transformers/models/auto/{path}").decode()):
                if name == "CONFIG_MAPPING_NAMES":
                    for node in ast.walk(value):
                        if isinstance(node, ast.Dict):
                            found |= strings(node.keys)
                        elif isinstance(node, ast.Tuple):
                            found |= strings(node.elts[:1])
    return found


def tgi_releases(repository, oldest):
    tags = subprocess.run(["git", "-C", repository, "tag"], check=True, capture_output=True, text=True).stdout.split()
    versions = [tag[1:] for tag in tags if numbers(tag[1:]) and numbers(tag[1:]) >= oldest]
    for version in sorted(versions, key=numbers):
        path = f"v{version}:server/text_generation_server/models/__init__.py"
        yield version, subprocess.run(["git", "-C", repository, "show", path], check=True, capture_output=True,
                                      text=True).stdout


def tgi(text):
    """Types of ModelType; those beside it are other names, or have no paged cache."""
    return {value.value for name, entry in assigned(text) if isinstance(entry, ast.Dict)
            for key, value in zip(entry.keys, entry.values)
            if isinstance(key, ast.Constant) and key.value == "type" and isinstance(value, ast.Constant)}


def literal(version):
    parts = numbers(version)
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return "{" + ", ".join(map(str, parts)) + "}"


def span(name, listed):
    """Of the releases, each with what it lists: the last of them in a row that have the name, as C++."""
    has = [name in each for _, each in listed]
    if not any(has):
        return "never"
    last = len(has) - 1 - has[::-1].index(True)
    first = last
    while first > 0 and has[first - 1]:
        first -= 1
    if any(has[:first]):
        print(f"{name}: also in some before {listed[first][0]}, but not in all since", file=sys.stderr)
    text = "always" if first == 0 else f"from({literal(listed[first][0])})"
    return text if last == len(has) - 1 else f"{text}.until({literal(listed[last + 1][0])})"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sources = {"vLLM": (releases("vllm", [0, 7, 2]), vllm, "model_executor/models/registry.py"),
               "SGLang": (releases("sglang", [0, 4, 0]), sglang, "EntryClass in srt/models"),
               "TGI": (tgi_releases(sys.argv[1], [2, 4, 0]), tgi, "ModelType in models/__init__.py"),
               "transformers": (releases("transformers", [4, 45, 0]), transformers, "models/auto/configuration_auto.py")}
    listed, read = {}, []
    for runtime, (found, models_of, place) in sources.items():
        listed[runtime] = []
        for version, files in found:
            models = models_of(files)
            if not models:
                sys.exit(f"{runtime} {version}: no models in {place}")
            print(f"{runtime} {version}: {len(models)} models", flush=True)
            listed[runtime].append((version, models))
        versions = [version for version, _ in listed[runtime]]
        read.append(f'    {{"{runtime}", "{len(versions)} releases, {versions[0]} to {versions[-1]}", "{place}"}},\n')
    rows = []
    for architecture, model_type in PAIRS:
        of_type = architecture if architecture in OTHERS_TYPE else model_type
        by_name = {"vLLM": architecture, "SGLang": architecture, "TGI": of_type, "transformers": of_type}
        spans = ", ".join(span(by_name[runtime], listed[runtime]) for runtime in listed)
        rows.append(f'    {{"{architecture}", "{model_type}", {{{spans}}}}},\n')
    OUT.write_text("".join([
        "// Made by scripts/make_runtime_models.py: see there and runtime_models.h.\n",
        '#include "scales/rules/runtime_models.h"\n\nnamespace fp8kv {\nnamespace {\n\n',
        "constexpr KnownVersions always = {}, never = {.ever = false};\n\n",
        "constexpr KnownVersions from(RuntimeVersion first) {\n  return {.since = first};\n}\n\n",
        "// clang-format off\n",
        f"constexpr RuntimeSource kSources[] = {{\n{''.join(read)}}};\n\n",
        f"// In the order of kSources.\nconstexpr RuntimeModel kModels[] = {{\n{''.join(rows)}}};\n",
        "// clang-format on\n\n}  // namespace\n\n",
        "std::span<const RuntimeSource> runtime_model_sources() {\n  return kSources;\n}\n\n",
        "std::span<const RuntimeModel> runtime_models() {\n  return kModels;\n}\n\n}  // namespace fp8kv\n"]))


if __name__ == "__main__":
    main()
