// The output of inspect for a model folder and its contents.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "core/model/model_description.h"
#include "scales/read/found_scales.h"

namespace fp8kv {

struct CheckpointView {
  const Checkpoint& checkpoint;
  ModelDescription model;
  std::optional<std::string> fingerprint;  // nullopt: no separate K and V projections
  std::optional<Error> not_runnable;
  std::vector<std::string> unknown_keys;  // unknown keys of config.json; for runnable models
  FoundScales found;
  std::string stored_as = {};  // ModelConfig::stored_as, for runnable models
  std::string compute_dtype = {};
  bool is_drafter = false;  // it drafts for another model: read_drafter_config
};

std::string checkpoint_description(const CheckpointView& view);
std::string checkpoint_json(const CheckpointView& view);

}  // namespace fp8kv
