// Scales of Q beside those of K and V, for runtimes whose attention computes in FP8.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scales/diagnose.h"
#include "scales/read/stores/scale_store.h"
#include "scales/scale_tensors.h"

namespace fp8kv {

// The tensors that are named as scales of Q, without values.
std::vector<ScaleTensor> q_tensors(const ScaleStore& store);

struct QScales {
  std::vector<float> by_layer;  // one per layer, 0 without a cache; or none at all
  std::string why_not;          // why the tensors are left alone; "" if they are used
  std::optional<Diagnosis> diagnosis = {};
};

// REQUIRES tensors with values. Throws where two names of one layer disagree.
QScales q_scales(const std::vector<ScaleTensor>& tensors, const StoredModel& model);

}  // namespace fp8kv
