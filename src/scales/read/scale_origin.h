// The origin of a checkpoint's scales: their dialect, the tool, and where it measured K.
#pragma once

#include <string>
#include <vector>

#include "scales/read/stores/scale_store.h"
#include "scales/scale_tensors.h"

namespace fp8kv {

struct Origin {
  const Dialect* row = nullptr;  // the dialect of the scales in use
  Observation observed = Observation::unknown;
  std::string producer;
  std::string version;
  std::string observer;      // as in KvConfig, if the producer wrote that config
  std::string stored_dtype;  // "F32"; several dtypes are joined
};

// REQUIRES at least one tensor. Every tensor must have values and a row.
Origin origin_of(const ScaleStore& store, const std::vector<ScaleTensor>& tensors,
                 const KvConfig& config);

}  // namespace fp8kv
