// How each tool names KV scales inside a checkpoint: a table, one row each.
// Scale tensors only: what config.json says of them beside is written and read elsewhere.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/scales.h"
#include "io/checkpoint.h"

namespace fp8kv {

// One scale tensor's name: anything that ends in "layers.", the layer's number, and `rest`.
struct ScalePattern {
  std::string rest;  // "self_attn.k_scale"
  char which = 'k';  // 'k', 'v', or 'b' for both
};

struct Dialect {
  std::string name;     // "kv_scale"
  std::string summary;  // for help and README
  std::string written_by;
  std::vector<ScalePattern> patterns;
};

std::span<const Dialect> dialects();

// A scale tensor found in a checkpoint.
struct ScaleTensor {
  std::string name;
  int64_t layer = 0;
  char which = 'k';  // as in ScalePattern
  DType dtype = DType::f32;
  Shape shape;                // [], [1], or one number per KV head as [n] or [n, 1, 1]
  std::vector<float> values;  // one, or one per KV head
};

// What a checkpoint carries. Reads the scale tensors only, never the weights.
struct FoundScales {
  std::string dialect;  // its name; joined by " and " where there are several
  KvScales scales;
  std::vector<ScaleTensor> tensors;  // by name
  std::string kv_cache_torch_dtype;  // of config.json; "" when absent
  std::vector<std::string> notes;    // what was there and not used, with the reason
};

// nullopt when the checkpoint has no scale tensor at all. Throws when it has some but they are not
// usable: a layer missing or too many, K without V, values no runtime can use, names of a form that
// is not read, forms that disagree. Two forms agree when kv_scale is the maximum of k_scale and
// v_scale, bit for bit or as rounded to the coarser dtype; then the finer form is taken.
// The scales are FNUZ when kv_cache_torch_dtype says so, else E4M3FN.
std::optional<FoundScales> find_scales(const Checkpoint& checkpoint);

// Like find_scales, but absence is an error that says what was looked for and the ways out.
FoundScales scales_at(const Checkpoint& checkpoint);

}  // namespace fp8kv
