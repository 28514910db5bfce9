// The output of plan: the size of a KV cache, and what fits into memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model/model_description.h"
#include "model/cache/capacity.h"

namespace fp8kv {

struct MachineTime {
  std::string machine;  // "cpu: AVX2, 2 threads"
  double seconds = 0;
};

// The time of a `calibrate` run with default options.
struct CalibrationTime {
  uint64_t windows = 0;
  int64_t tokens = 0;  // tokens in each window
  std::vector<MachineTime> machines;
};

struct PlanSubject {
  ModelDescription model;
  std::optional<WeightBytes> weights;  // nullopt: the folder has only its config
  std::string lfs_pointer;             // a git-LFS pointer in place of weights; "": none
  Deployment deployment;
  DType own;  // the model's dtype, which a cache holds by default
  std::string memory_note =
      {};  // names deployment.memory: "90 % of 80 GiB"; "": all of the given memory
  std::optional<CalibrationTime> calibration = {};
};

std::string plan_text(const PlanSubject& subject, const std::vector<CachePlan>& plans);
std::string plan_json(const PlanSubject& subject, const std::vector<CachePlan>& plans);

}  // namespace fp8kv
