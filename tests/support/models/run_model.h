// Runs the product's forward pass over ids, for tests of logits at every position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "calib/windows/model_on_backend.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "core/scales/scales.h"
#include "model/embedding.h"
#include "model/model.h"
#include "model/parts/layer_states.h"
#include "model/parts/sparse/chosen_tokens.h"
#include "model/step.h"
#include "model/weights/weight_loader.h"

namespace fp8kv::test {

struct RunSettings {
  CacheType cache_dtype = DType::f32;
  const KvScales* scales = nullptr;
  int64_t chunk = 1 << 20;  // tokens per step
  int64_t prompt = 0;       // tokens in the first step, if different; 0: like `chunk`
};

// One sequence that goes through the forward pass step by step.
class SteppedRun {
 public:
  // Uses only the cache and scales of `settings`. All arguments but `settings` outlive this.
  SteppedRun(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
             const std::vector<int32_t>& ids, const RunSettings& settings);

  // Runs the next `count` ids through all layers.   [count, stream_dim]
  TensorView step(size_t count, StepSize computed_as);

  size_t done() const { return done_; }  // ids of all steps so far
  Forward& forward() { return forward_; }
  const LayerStates& states() const { return states_; }

 private:
  const ModelConfig& config_;
  const std::vector<int32_t>& ids_;
  int64_t n_;  // ids in all
  KvCache cache_;
  WeightLoader loader_;
  Embedding embedding_;
  Forward forward_;
  LayerStates states_;
  ChosenTokens choice_;
  Step step_;
  Tensor x_;  // [n, stream_dim]
  KvCache::Sequence sequence_;
  size_t done_ = 0;
};

// Logits [position][vocab_size].
std::vector<std::vector<float>> run_model(const Checkpoint& checkpoint, const ModelConfig& config,
                                          Backend& backend, const std::vector<int32_t>& ids,
                                          const RunSettings& settings = {});

// Greedy continuation through generate().
std::vector<int32_t> run_greedy(const ModelOnBackend& model, const std::vector<int32_t>& prompt,
                                int count, const RunSettings& settings = {});

}  // namespace fp8kv::test
