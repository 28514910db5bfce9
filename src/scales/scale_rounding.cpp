#include "scales/scale_rounding.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "config/values/language_config.h"
#include "scales/scale_tensors.h"

namespace fp8kv {
namespace {

bool is_normal(float stored, DType dtype) {
  const float least_normal = dtype == DType::f16 ? 0x1p-14f : 0x1p-126f;
  return std::isfinite(stored) && stored >= least_normal;
}

std::optional<DType> dtype_of_config(const Json& config) {
  const auto name = find_dtype(config);
  if (!name || !name->is_string()) return std::nullopt;
  const std::string text = name->as_string();
  return text == "float16"    ? std::optional(DType::f16)
         : text == "bfloat16" ? std::optional(DType::bf16)
         : text == "float32"  ? std::optional(DType::f32)
                              : std::nullopt;
}

// The dtype of most weight bytes, among floats used as they are. In quantised models, norms still
// are.
std::optional<DType> dtype_of_weights(const Checkpoint& checkpoint) {
  std::map<DType, uint64_t> bytes;
  for (const auto& [name, location] : checkpoint.tensors()) {
    const TensorEntry& entry = location.entry;
    const bool is_float =
        entry.dtype == DType::f16 || entry.dtype == DType::bf16 || entry.dtype == DType::f32;
    if (is_float && name.ends_with(".weight")) bytes[entry.dtype] += entry.end - entry.begin;
  }
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == bytes.end()) return std::nullopt;
  return most->first;
}

}  // namespace

std::optional<DType> serving_dtype(const Checkpoint& checkpoint) {
  auto dtype = dtype_of_config(checkpoint.config());
  if (!dtype) dtype = dtype_of_weights(checkpoint);
  return dtype == DType::f16 || dtype == DType::bf16 ? dtype : std::nullopt;
}

ScaleRounding scale_rounding(const KvScales& scales, DType dtype) {
  ScaleRounding found;
  const auto look = [&](size_t layer, char of, const std::vector<float>& values) {
    for (const float scale : values) {
      const ScaleAt at{layer, of, scale, rounded_to(scale, dtype)};
      if (!is_normal(at.stored, dtype)) {
        auto& first = at.stored == scale ? found.subnormal : found.lost;
        if (!first) first = at;
        continue;
      }
      const double error = std::abs(double(at.stored) / scale - 1);
      if (error <= found.error) continue;
      found.error = error;
      found.farthest = at;
    }
  };
  for (size_t layer = 0; layer < scales.layers.size(); ++layer) {
    look(layer, 'K', scales.layers[layer].k);
    look(layer, 'V', scales.layers[layer].v);
  }
  return found;
}

std::string lost_number_text(const ScaleAt& lost, DType dtype) {
  const std::string name = dtype == DType::f16 ? "float16" : "bfloat16";
  if (lost.stored == lost.scale) {
    return cat(lost.scale, " is subnormal in ", name, ", which some kernels take for 0");
  }
  const std::string becomes = lost.stored == 0 ? "becomes 0"
                              : !std::isfinite(lost.stored)
                                  ? "becomes infinite"
                                  : cat("becomes ", lost.stored, ", a subnormal number,");
  return cat(lost.scale, " ", becomes, " in ", name);
}

std::string lost_text(const ScaleAt& lost, DType dtype) {
  return cat("layer ", lost.layer, " ", lost.of, ": ", lost_number_text(lost, dtype));
}

KvScales at_powers_of_two(const KvScales& scales) {
  KvScales out = scales;
  const auto raise = [](std::vector<float>& values) {
    for (float& scale : values) {
      int exponent = 0;
      const float mantissa = std::frexp(scale, &exponent);  // in [0.5, 1)
      scale = std::ldexp(1.0f, mantissa == 0.5f ? exponent - 1 : exponent);
    }
  };
  for_each_layer(out, [&](LayerScales& layer) {
    raise(layer.k);
    raise(layer.v);
    raise(layer.q);
  });
  return out;
}

}  // namespace fp8kv
