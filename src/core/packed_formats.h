// Cache formats of vLLM 0.33 that are not computed here: how many bytes they take, and which models
// they can hold. They make their own scales.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/model_description.h"

namespace fp8kv {

struct PackedFormat {
  std::string_view name;  // of --kv-cache-dtype
  // Bytes of K and V of one token and KV head; of a latent, of one token.
  uint64_t (*bytes)(const LayerDescription& layer);
  // Why it cannot hold layer `index`, or nothing.
  std::optional<CacheMisfit> (*misfit)(const LayerDescription& layer, int64_t index);
};

std::span<const PackedFormat> packed_formats();
// nullptr for a name of no row.
const PackedFormat* find_packed_format(std::string_view name);

// The layers that vLLM 0.33 leaves in 16 bit for turboquant_* and ultraquant_4bit, whatever it is
// told: the first two and the last two, unless some layers keep a state. Rising; none for others.
// Source: TurboQuantConfig.get_boundary_skip_layers, called in engine/arg_utils.py.
std::vector<int64_t> layers_left_by_vllm(std::string_view name, const ModelDescription& model);

}  // namespace fp8kv
