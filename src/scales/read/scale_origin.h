// Where the scales of a checkpoint come from: the row that they are of, the tool, and where it
// measured K.
#pragma once

#include <string>
#include <vector>

#include "scales/read/scale_store.h"
#include "scales/scale_tensors.h"

namespace fp8kv {

struct Origin {
  const Dialect* row = nullptr;  // of the scales that are used
  Observation observed = Observation::unknown;
  std::string producer;
  std::string version;
  std::string observer;      // as in KvConfig, where that config is the producer's
  std::string stored_dtype;  // "F32"; several are joined
};

// REQUIRES at least one tensor, with values, and that each has its row.
Origin origin_of(const ScaleStore& store, const std::vector<ScaleTensor>& tensors,
                 const KvConfig& config);

}  // namespace fp8kv
