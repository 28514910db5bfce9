// Runs the product's forward pass over ids, for tests of logits at every position.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "calib/windows/model_on_backend.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "core/scales/scales.h"

namespace fp8kv::test {

struct RunSettings {
  CacheType cache_dtype = DType::f32;
  const KvScales* scales = nullptr;
  int64_t chunk = 1 << 20;  // tokens per step
  int64_t prompt = 0;       // tokens in the first step, if different; 0: like `chunk`
};

// Logits [position][vocab_size].
std::vector<std::vector<float>> run_model(const Checkpoint& checkpoint, const ModelConfig& config,
                                          Backend& backend, const std::vector<int32_t>& ids,
                                          const RunSettings& settings = {});

// Greedy continuation through generate().
std::vector<int32_t> run_greedy(const ModelOnBackend& model, const std::vector<int32_t>& prompt,
                                int count, const RunSettings& settings = {});

}  // namespace fp8kv::test
