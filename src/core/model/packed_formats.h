// Cache formats of vLLM 0.33 that this program cannot compute: their sizes in bytes, and the models
// that they can hold. These formats make their own scales.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/model/model_description.h"

namespace fp8kv {

struct PackedFormat {
  std::string_view name;  // as in --kv-cache-dtype
  // Bytes of K and V for one token and KV head; for latents, bytes of one token.
  uint64_t (*bytes)(const LayerDescription& layer);
  // Explains why the format cannot hold layer `index`; nullopt if it can.
  std::optional<CacheMisfit> (*misfit)(const LayerDescription& layer, int64_t index);
};

std::span<const PackedFormat> packed_formats();
// Returns nullptr for an unknown name.
const PackedFormat* find_packed_format(std::string_view name);

// The layers that vLLM 0.33 always leaves in 16 bit for turboquant_* and ultraquant_4bit. These are
// the first two and the last two, unless some layers keep a state. Rising; none for other formats.
// Source: TurboQuantConfig.get_boundary_skip_layers, called in engine/arg_utils.py.
std::vector<int64_t> layers_left_by_vllm(std::string_view name, const ModelDescription& model);

}  // namespace fp8kv
