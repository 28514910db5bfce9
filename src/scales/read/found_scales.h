// The KV scales that a survey found in a checkpoint or file, usable or not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/scales/scales.h"
#include "scales/diagnose.h"
#include "scales/scale_tensors.h"

namespace fp8kv {

struct FoundScales {
  std::string dialect;  // the name of its row; two rows are joined by " and "
  // Has no layers if there is a refusal. FNUZ if kv_cache_torch_dtype says so, else E4M3FN.
  KvScales scales;
  std::vector<ScaleTensor> tensors;             // by name
  std::vector<ScaleTensor> draft_tensors = {};  // draft layers' scales, by name
  std::vector<ScaleTensor> q_tensors = {};      // scales of Q that are used, by name
  std::vector<IgnoredTensor> ignored;           // tensors beside the scales, and unknown forms
  std::string kv_cache_torch_dtype;             // from config.json; "" when absent
  std::vector<std::string> notes;               // what was found but not used, with the reason
  std::vector<Diagnosis> diagnoses;
  std::optional<Error> refusal;  // why these scales cannot be used
  bool absent = false;           // nothing looks like a scale
};

}  // namespace fp8kv
