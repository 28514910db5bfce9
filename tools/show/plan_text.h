// What a KV cache costs and what fits, as plan shows it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model_description.h"
#include "model/capacity.h"

namespace fp8kv {

struct MachineTime {
  std::string machine;  // "cpu: AVX2, 2 threads"
  double seconds = 0;
};

// The time that `calibrate` takes with its defaults.
struct CalibrationTime {
  uint64_t windows = 0;
  int64_t tokens = 0;  // in each
  std::vector<MachineTime> machines;
};

struct PlanSubject {
  ModelDescription model;
  std::optional<WeightBytes> weights;  // absent: the folder has only its config
  std::string lfs_pointer;             // or "": a file of git-LFS that stands for weights
  Deployment deployment;
  DType own;  // what a cache holds unless told otherwise: the model's dtype
  std::string memory_note =
      {};  // of deployment.memory: "90 % of 80 GiB"; "": all of what was given
  std::optional<CalibrationTime> calibration = {};
};

std::string plan_text(const PlanSubject& subject, const std::vector<CachePlan>& plans);
std::string plan_json(const PlanSubject& subject, const std::vector<CachePlan>& plans);

}  // namespace fp8kv
