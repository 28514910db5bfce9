// Runs one layer that drafts tokens up to its K and V over all windows, and counts what it caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/drafts/next_tokens.h"
#include "calib/windows/workspace.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "policy/magnitudes.h"

namespace fp8kv {

// A layer that drafts. `index` is its number in `config`.
struct DraftingLayer {
  const Checkpoint& checkpoint;
  const ModelConfig& config;
  int64_t index = 0;
};

class LayerPass {
 public:
  // `next` has at least one row, and outlives this, as does `layer`.
  LayerPass(const DraftingLayer& layer, Backend& backend, const NextTokens& next);

  struct Steps {
    // Computes the layer's input for a batch; REQUIRES a batch with rows, which step() describes.
    // [rows, dim]
    std::function<TensorView(size_t batch)> input;
    // Called after each batch of the model, with what is counted so far.
    std::function<void(size_t batch, const TensorView& magnitudes)> done;
  };
  LayerMagnitudes run(const Steps& steps);

  const Step& step() const { return workspace_.rows.step; }

 private:
  const DraftingLayer layer_;
  Backend& backend_;
  const NextTokens& next_;
  Workspace workspace_;
};

}  // namespace fp8kv
