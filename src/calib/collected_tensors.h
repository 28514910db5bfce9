// What was collected as tensors of a file, exactly. Internal to CalibrationState.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "calib/collected.h"
#include "core/config.h"
#include "core/tensor.h"
#include "formats/safetensors.h"

namespace fp8kv {

struct StateTensor {
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;
};

// Of the first layers of the model, as many as there are; names begin with `prefix`.
//   counted       [layers, 3, n_kv_heads, kMagnitudeWords] u64: Q, K and V
//   part_tokens   [kTextParts] u64
//   eighth, ...   [layers, 3, n_kv_heads] f32: amax of the parts that have tokens
//   reached       [layers, experts] u64, of models with experts
// Layers with fewer heads have zeros at the end.
std::vector<StateTensor> tensors_of(const CollectedMagnitudes& collected, const ModelConfig& config,
                                    const std::string& prefix);

// The same again; nothing where a tensor is missing or of another dtype or shape. Throws where a
// value that was counted is NaN or infinite, as magnitudes_from does.
std::optional<CollectedMagnitudes> collected_in(const std::filesystem::path& path,
                                                const SafetensorsHeader& header,
                                                const ModelConfig& config,
                                                const std::string& prefix);

const TensorEntry* find_entry(const SafetensorsHeader& header, const std::string& name);

}  // namespace fp8kv
