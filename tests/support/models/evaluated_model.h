// A tiny model, and evaluations of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "calib/collect.h"
#include "checkpoint/model/read_model_config.h"
#include "eval/evaluate.h"
#include "policy/make_scales.h"
#include "support/models/tiny_checkpoint.h"
#include "support/temp_dir.h"

namespace fp8kv::test {

struct EvaluatedModel {
  TempDir folder;
  Checkpoint checkpoint;
  ModelConfig config;

  static TinyConfig shape(DType dtype) {
    TinyConfig config = tiny_config();
    config.dtype = dtype;
    return config;
  }
  explicit EvaluatedModel(DType dtype = DType::f32)
      : checkpoint([&] {
          write_tiny_checkpoint(folder / "m", shape(dtype));
          return Checkpoint::open(folder / "m");
        }()),
        config(read_model_config(checkpoint)) {}
};

// A cache to evaluate.
inline CandidateReport candidate(const std::string& name, DType dtype,
                                 std::optional<KvScales> scales = std::nullopt) {
  CandidateReport made;
  made.name = name;
  made.dtype = dtype;
  if (scales) made.scales = with_format(*scales, kv_format(dtype));
  return made;
}

// The scales that a policy makes of these windows.
inline KvScales scales_by(const std::string& policy, const EvaluatedModel& model,
                          const std::vector<std::vector<int32_t>>& windows) {
  Log log(Verbosity::quiet);
  const auto backend = make_cpu_backend(2);
  return make_scales(collect_magnitudes({model.checkpoint, model.config, *backend}, windows, log),
                     parse_policy(policy));
}

// Evaluates the candidates on these windows.
inline EvalReport run(const EvalReference& model, const std::vector<std::vector<int32_t>>& windows,
                      std::vector<CandidateReport> candidates, EvalOptions options,
                      int threads = 2) {
  Log log(Verbosity::quiet);
  const auto backend = make_cpu_backend(threads);
  EvalReport report;
  report.candidates = std::move(candidates);
  options.threads = threads;
  evaluate({model.checkpoint, model.config, *backend}, windows, options, report, log);
  return report;
}

}  // namespace fp8kv::test
