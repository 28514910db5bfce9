#include "config/describe/window_keys.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "config/values/config_values.h"

namespace fp8kv {
namespace {

struct WindowKey {
  std::string_view name;
  bool WindowReader::*read;
};

constexpr std::array<WindowKey, 4> kKeys = {{
    {"layer_types", &WindowReader::layer_types},
    {"sliding_window_pattern", &WindowReader::pattern},
    {"max_window_layers", &WindowReader::first},
    {"use_sliding_window", &WindowReader::switched},
}};

// Source: the config classes and the models of transformers 5.24 and 4.57. Mistral counts as a
// reader of layer_types: transformers ignores the key, but vLLM reads it, and contradictions are
// refused.
constexpr WindowReader kReaders[] = {
    {.model_type = "afmoe",
     .architecture = "AfmoeForCausalLM",
     .layer_types = true,
     .usual_window = 1024,
     .usual_period = 4},
    {.model_type = "cohere2",
     .architecture = "Cohere2ForCausalLM",
     .layer_types = true,
     .pattern = true,
     .usual_window = 4096,
     .usual_period = 4},
    {.model_type = "cohere2_moe",
     .architecture = "Cohere2MoeForCausalLM",
     .layer_types = true,
     .usual_window = 4096},
    {.model_type = "cohere2_vision",
     .architecture = "Cohere2VisionForConditionalGeneration",
     .layer_types = true,
     .pattern = true,
     .usual_window = 4096,
     .usual_period = 4},
    {.model_type = "cwm",
     .architecture = "CwmForCausalLM",
     .layer_types = true,
     .usual_window = 8192,
     .usual_period = 4,
     .full_first = true},
    {.model_type = "deepseek_v4",
     .architecture = "DeepseekV4ForCausalLM",
     .layer_types = true,
     .usual_window = 128},
    {.model_type = "dots1", .architecture = "Dots1ForCausalLM", .layer_types = true, .first = true},
    {.model_type = "exaone4",
     .architecture = "Exaone4ForCausalLM",
     .layer_types = true,
     .pattern = true,
     .usual_window = 4096,
     .usual_period = 4},
    {.model_type = "exaone4_5_text",
     .architecture = "",
     .layer_types = true,
     .pattern = true,
     .usual_window = 4096,
     .usual_period = 4},
    {.model_type = "exaone_moe",
     .architecture = "ExaoneMoeForCausalLM",
     .layer_types = true,
     .pattern = true,
     .usual_window = 4096,
     .usual_period = 4},
    {.model_type = "exaone_moe",
     .architecture = "ExaoneMoEForCausalLM",
     .layer_types = true,
     .pattern = true,
     .usual_window = 4096,
     .usual_period = 4},
    {.model_type = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .layer_types = true,
     .usual_window = 4096,
     .usual_period = 2},
    {.model_type = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .layer_types = true,
     .pattern = true,
     .usual_window = 4096,
     .usual_period = 6},
    {.model_type = "gemma3n_text",
     .architecture = "Gemma3nForCausalLM",
     .layer_types = true,
     .usual_window = 512,
     .usual_period = 5},
    {.model_type = "gemma4_text",
     .architecture = "Gemma4ForCausalLM",
     .layer_types = true,
     .usual_window = 512,
     .usual_period = 6},
    {.model_type = "gemma4_unified",
     .architecture = "Gemma4UnifiedForConditionalGeneration",
     .layer_types = true,
     .usual_window = 1024,
     .usual_period = 6},
    {.model_type = "gemma4_unified_text",
     .architecture = "",
     .layer_types = true,
     .usual_window = 1024,
     .usual_period = 6},
    {.model_type = "gpt_oss",
     .architecture = "GptOssForCausalLM",
     .layer_types = true,
     .usual_period = 2},
    {.model_type = "granite_swa",
     .architecture = "GraniteSWAForCausalLM",
     .layer_types = true,
     .usual_window = 128,
     .usual_period = 4,
     .full_first = true},
    {.model_type = "granitemoe_swa",
     .architecture = "GraniteMoeSWAForCausalLM",
     .layer_types = true,
     .usual_window = 128,
     .usual_period = 4,
     .full_first = true},
    {.model_type = "inkling_text",
     .architecture = "InklingForCausalLM",
     .layer_types = true,
     .usual_window = 512},
    {.model_type = "laguna",
     .architecture = "LagunaForCausalLM",
     .layer_types = true,
     .usual_window = 512},
    {.model_type = "lfm3",
     .architecture = "Lfm3ForCausalLM",
     .layer_types = true,
     .usual_window = 256},
    {.model_type = "mimo",
     .architecture = "MiMoForCausalLM",
     .layer_types = true,
     .first = true,
     .switched = true,
     .usual_window = 4096},
    {.model_type = "mimo_v2", .architecture = "MiMoV2ForCausalLM"},
    {.model_type = "mimo_v2_flash", .architecture = "MiMoV2FlashForCausalLM", .layer_types = true},
    {.model_type = "mellum",
     .architecture = "MellumForCausalLM",
     .layer_types = true,
     .usual_window = 1024},
    {.model_type = "muse_glimmer",
     .architecture = "MuseGlimmerForConditionalGeneration",
     .layer_types = true,
     .usual_window = 2048,
     .usual_period = 4,
     .full_last = true},
    {.model_type = "muse_glimmer_text",
     .architecture = "",
     .layer_types = true,
     .usual_window = 2048,
     .usual_period = 4,
     .full_last = true},
    {.model_type = "muse_spark",
     .architecture = "MuseSparkForConditionalGeneration",
     .layer_types = true,
     .usual_window = 2048,
     .usual_period = 4,
     .full_last = true},
    {.model_type = "muse_spark_text",
     .architecture = "",
     .layer_types = true,
     .usual_window = 2048,
     .usual_period = 4,
     .full_last = true},
    {.model_type = "step3p5", .architecture = "Step3p5ForCausalLM", .layer_types = true},
    {.model_type = "step3p7",
     .architecture = "Step3p7ForConditionalGeneration",
     .layer_types = true},
    {.model_type = "ministral", .architecture = "MinistralForCausalLM", .layer_types = true},
    {.model_type = "ministral3", .architecture = "Ministral3ForCausalLM"},
    {.model_type = "mistral", .architecture = "MistralForCausalLM", .layer_types = true},
    {.model_type = "mixtral", .architecture = "MixtralForCausalLM"},
    {.model_type = "olmo3",
     .architecture = "Olmo3ForCausalLM",
     .layer_types = true,
     .usual_window = 4096,
     .usual_period = 4},
    {.model_type = "phi3", .architecture = "Phi3ForCausalLM"},
    {.model_type = "phi4_multimodal", .architecture = "Phi4MultimodalForCausalLM"},
    {.model_type = "phi4mm", .architecture = "Phi4MMForCausalLM"},
    {.model_type = "phimoe", .architecture = "PhimoeForCausalLM"},
    {.model_type = "phimoe", .architecture = "PhiMoEForCausalLM"},
    {.model_type = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .layer_types = true,
     .first = true,
     .switched = true,
     .usual_window = 4096},
    {.model_type = "qwen2_5_omni_text",
     .architecture = "",
     .layer_types = true,
     .first = true,
     .switched = true,
     .usual_window = 32768},
    {.model_type = "qwen2_5_vl",
     .architecture = "",
     .layer_types = true,
     .first = true,
     .switched = true,
     .usual_window = 4096},
    {.model_type = "qwen2_5_vl_text",
     .architecture = "",
     .layer_types = true,
     .first = true,
     .switched = true,
     .usual_window = 4096},
    {.model_type = "qwen2_vl",
     .architecture = "",
     .layer_types = true,
     .first = true,
     .switched = true,
     .usual_window = 4096},
    {.model_type = "qwen2_vl_text",
     .architecture = "",
     .layer_types = true,
     .first = true,
     .switched = true,
     .usual_window = 4096},
    {.model_type = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .layer_types = true,
     .first = true,
     .switched = true,
     .usual_window = 4096},
    {.model_type = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .layer_types = true,
     .switched = true},
    {.model_type = "starcoder2", .architecture = "Starcoder2ForCausalLM"},
    {.model_type = "vaultgemma",
     .architecture = "VaultGemmaForCausalLM",
     .layer_types = true,
     .usual_window = 4096,
     .usual_period = 2},
};

const WindowReader* reader_of(const Json& text) {
  const std::string type = text.get_string("model_type", "");
  const std::string architecture = type.empty() ? architecture_name(text) : "";
  if (type.empty() && architecture.empty()) return nullptr;
  const auto* found =
      std::find_if(std::begin(kReaders), std::end(kReaders), [&](const WindowReader& row) {
        return type.empty() ? row.architecture == architecture : row.model_type == type;
      });
  return found == std::end(kReaders) ? nullptr : found;
}

}  // namespace

std::span<const WindowReader> window_readers() {
  return kReaders;
}

bool reads_window_key(const Json& text, std::string_view key) {
  const WindowReader* reader = reader_of(text);
  if (reader == nullptr) return true;
  return std::none_of(kKeys.begin(), kKeys.end(), [&](const WindowKey& each) {
    return each.name == key && !(reader->*each.read);
  });
}

int64_t usual_window(const Json& text) {
  const WindowReader* reader = reader_of(text);
  return reader == nullptr || mentions(text, "sliding_window") ? 0 : reader->usual_window;
}

WindowPattern usual_pattern(const Json& text) {
  const WindowReader* reader = reader_of(text);
  if (reader == nullptr || reader->usual_period == 0) return {};
  const int64_t last = reader->full_last ? layer_count(text) - 1 : reader->usual_period - 1;
  return {reader->usual_period, reader->full_first ? 0 : last % reader->usual_period};
}

std::vector<std::string> unread_window_keys(const Json& text) {
  std::vector<std::string> unread;
  const bool windowed = text.has("sliding_window") || usual_window(text) > 0;
  for (const WindowKey& key : kKeys) {
    // SmolLM3's published config has max_window_layers without any window.
    if (!windowed && key.name != "layer_types") continue;
    if (text.has(key.name) && !reads_window_key(text, key.name)) unread.emplace_back(key.name);
  }
  return unread;
}

}  // namespace fp8kv
