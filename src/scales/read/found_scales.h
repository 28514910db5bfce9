// What is known of the KV scales that a checkpoint or a file carries, whether they can be used or
// not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/scales.h"
#include "scales/diagnose.h"
#include "scales/scale_tensors.h"

namespace fp8kv {

struct FoundScales {
  std::string dialect;  // the name of its row; joined by " and " where there are two
  // Without layers where there is a refusal. FNUZ when kv_cache_torch_dtype says so, else E4M3FN.
  KvScales scales;
  std::vector<ScaleTensor> tensors;             // by name
  std::vector<ScaleTensor> draft_tensors = {};  // of layers that draft tokens, by name
  std::vector<ScaleTensor> q_tensors = {};      // scales of Q that are used, by name
  std::vector<IgnoredTensor> ignored;  // what stands beside them, and what is in no known form
  std::string kv_cache_torch_dtype;    // of config.json; "" when absent
  std::vector<std::string> notes;      // what was there and not used, with the reason
  std::vector<Diagnosis> diagnoses;
  std::optional<Error> refusal;  // why these scales cannot be used
  bool absent = false;           // there is nothing that looks like a scale
};

}  // namespace fp8kv
