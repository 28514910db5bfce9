// How each tool names KV scales inside a checkpoint: a table, one row each.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/scales.h"
#include "io/checkpoint.h"

namespace fp8kv {

// A scale tensor found in a checkpoint.
struct ScaleTensor {
  std::string name;
  int64_t layer = 0;
  char which = 'k';  // 'k', 'v', or 'b' for both
  DType dtype = DType::f32;
  Shape shape;
  std::vector<float> values;
};

struct Dialect {
  std::string name;     // "kv_scale"
  std::string summary;  // for help and README
  std::string written_by;
};

std::span<const Dialect> dialects();

// What a checkpoint carries. Reads the scale tensors only, never the weights.
struct FoundScales {
  std::string dialect;
  KvScales scales;
  std::vector<ScaleTensor> tensors;
  std::string kv_cache_torch_dtype;  // of config.json; "" when absent
};

// nullopt when the checkpoint has no scale tensor at all. Throws when it has some but they are not
// usable: a layer missing, K without V, values no runtime can use, parts that disagree.
std::optional<FoundScales> find_scales(const Checkpoint& checkpoint);

// Like find_scales, but absence is an error that says what was looked for and the ways out.
FoundScales scales_at(const Checkpoint& checkpoint);

}  // namespace fp8kv
