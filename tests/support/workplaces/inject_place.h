// Tiny models, and scales to inject into them.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "core/numbers/half.h"
#include "json/json.h"
#include "scales/read/find_scales.h"
#include "scales/scale_file.h"
#include "scales/scale_names.h"
#include "scales/write/inject.h"
#include "support/expect_error.h"
#include "support/models/tiny_checkpoint.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

// Random positive normal floats, distinct enough to test a maximum over heads.
inline KvScales random_scales(const TinyConfig& config, Rng& rng, bool per_head) {
  const auto any = [&] {
    const uint64_t bits = rng.next();
    return float_from_bits(static_cast<uint32_t>((1 + bits % 245) << 23 | (bits >> 41)));
  };
  KvScales scales;
  scales.model_type = config.model_type;
  scales.n_kv_heads = config.n_kv_heads;
  scales.layers.resize(static_cast<size_t>(config.n_layers));
  for (LayerScales& layer : scales.layers) {
    const size_t heads = per_head ? static_cast<size_t>(config.n_kv_heads) : 1;
    for (size_t head = 0; head < heads; ++head) layer.k.push_back(any());
    for (size_t head = 0; head < heads; ++head) layer.v.push_back(any());
  }
  return scales;
}

// A tiny model in "model", and room for outputs beside it.
struct InjectPlace {
  explicit InjectPlace(const TinyConfig& model = tiny_config(), const TinyOptions& options = {})
      : config(model) {
    write_tiny_checkpoint(folder / "model", config, options);
  }

  InjectReport inject(const std::string& from, const KvScales& scales, const std::string& to,
                      const std::string& target, bool replace = false) const {
    return inject_scales(Checkpoint::open(folder / from), scales, folder / to,
                         {.target = target, .overwrite = true, .replace = replace});
  }
  KvScales scales_in(const std::string& name) const {
    if (!std::filesystem::is_directory(folder / name)) return read_scale_file(folder / name);
    return scales_at(Checkpoint::open(folder / name)).scales;
  }
  std::string error(const KvScales& scales, const std::string& target, bool replace = false) const {
    std::string text = error_of([&] { inject("model", scales, "out", target, replace); });
    const std::string path = folder.path().string() + "/";
    for (size_t at; (at = text.find(path)) != text.npos;) text.erase(at, path.size());
    return text;
  }
  // Gives the model's config.json one more member.
  void add_to_config(const std::string& key, const std::string& value) const {
    const std::string text = read_file(folder / "model/config.json");
    folder.write("model/config.json", json_with_member(text, key, value));
  }
  Json config_of(const std::string& name) const {
    return Json::read(folder / name / "config.json");
  }
  std::vector<std::string> scale_tensors(const std::string& name) const {
    return kv_scale_names(Checkpoint::open(folder / name));
  }

  TinyConfig config;
  TempDir folder;
};

inline TinyConfig one_layer() {
  TinyConfig config = tiny_config();
  config.n_layers = 1;
  return config;
}

inline KvScales one_scale(float k = 0.5f, float v = 0.25f) {
  KvScales scales;
  scales.layers = {{{k}, {v}}};
  return scales;
}

// Names and contents of a folder's files.
inline std::map<std::string, std::string> contents(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[std::filesystem::relative(entry.path(), folder).string()] = read_file(entry.path());
  }
  return files;
}

inline std::string block_of(const InjectPlace& place, const std::string& name) {
  const auto block = place.config_of(name).find("quantization_config");
  return block ? JsonWriter(JsonWriter::Layout::one_line).value(*block).text() : "";
}

// A quantization_config of a model that compressed-tensors quantised.
inline constexpr const char* kGroups =
    R"({"quant_method": "compressed-tensors", "format": "float-quantized",
        "quantization_status": "compressed", "config_groups": {"group_0": {"targets": ["Linear"]}},
        "ignore": ["lm_head"]})";

}  // namespace fp8kv::test
