// Stores collected magnitudes as tensors of a file, without loss. Internal to CalibrationState.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "calib/measure/collected.h"
#include "core/model/config.h"
#include "core/numbers/tensor.h"
#include "formats/safetensors.h"

namespace fp8kv {

struct StateTensor {
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;
};

// Returns tensors for the layers collected so far, the first ones of the model. Names begin with
// `prefix`.
// - counted       [layers, 3, n_kv_heads, kMagnitudeWords] u64: Q, K and V
// - part_tokens   [kTextParts] u64
// - eighth, ...   [layers, 3, n_kv_heads] f32: amax of the parts that have tokens
// - reached       [layers, experts] u64, for models with experts
// Layers with fewer heads are padded with zeros.
std::vector<StateTensor> tensors_of(const CollectedMagnitudes& collected, const ModelConfig& config,
                                    const std::string& prefix);

// Reads the tensors back. Returns nothing if one is missing or has another dtype or shape. Throws
// if a counted value is NaN or infinite, as magnitudes_from does.
std::optional<CollectedMagnitudes> collected_in(const std::filesystem::path& path,
                                                const SafetensorsHeader& header,
                                                const ModelConfig& config,
                                                const std::string& prefix);

const TensorEntry* find_entry(const SafetensorsHeader& header, const std::string& name);

}  // namespace fp8kv
