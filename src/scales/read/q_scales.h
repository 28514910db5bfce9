// The scales of Q that stand beside those of K and V, for runtimes whose attention computes in FP8.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scales/diagnose.h"
#include "scales/read/scale_store.h"
#include "scales/scale_tensors.h"

namespace fp8kv {

// The tensors that are one by their name, without values.
std::vector<ScaleTensor> q_tensors(const ScaleStore& store);

struct QScales {
  std::vector<float> by_layer;  // one for each layer; 0 in a layer without a cache; or none at all
  std::string why_not;          // why the tensors are left alone; "" where they are used
  std::optional<Diagnosis> diagnosis = {};
};

// REQUIRES tensors with values. Throws where two names of one layer disagree.
QScales q_scales(const std::vector<ScaleTensor>& tensors, const StoredModel& model);

}  // namespace fp8kv
