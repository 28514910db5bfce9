// A model folder, and what it carries, as inspect shows it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "core/model_description.h"
#include "scales/read/found_scales.h"

namespace fp8kv {

struct CheckpointView {
  const Checkpoint& checkpoint;
  ModelDescription model;
  std::optional<std::string> fingerprint;  // absent: no K and V projections of their own
  std::optional<Error> not_runnable;
  std::vector<std::string> unknown_keys;  // of config.json; of one that is runnable
  FoundScales found;
  std::string stored_as = {};  // ModelConfig::stored_as, of one that is runnable
  std::string compute_dtype = {};
};

std::string checkpoint_description(const CheckpointView& view);
std::string checkpoint_json(const CheckpointView& view);

}  // namespace fp8kv
