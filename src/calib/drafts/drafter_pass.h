// Runs the windows of a calibration through a drafter that has a checkpoint of its own. Its input
// at a position is the target's hidden states there and the next token, as in the first step of
// speculative decoding. The last token of a window has no next one, and is left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "backend/backend.h"
#include "base/log.h"
#include "calib/windows/window_plan.h"
#include "checkpoint/checkpoint.h"
#include "core/model/config.h"
#include "policy/magnitudes.h"

namespace fp8kv {

// REQUIRES a config of read_drafter_config, and a target that passed check_target.
struct Drafter {
  const Checkpoint& checkpoint;
  const ModelConfig& config;
};

// The hidden states of all windows that a drafter reads, in host memory.
class HiddenStates {
 public:
  // `layers`: the layers whose inputs are kept. The states have `dim` elements in `dtype`.
  HiddenStates(std::vector<int64_t> layers, const WindowPlan& plan, int64_t dim, DType dtype);

  bool wants(int64_t layer) const { return place_of(layer) < layers_.size(); }
  // Keeps the rows of a batch, which go into `layer`; waits for them.
  void keep(Backend& backend, int64_t layer, const WindowBatch& batch, const TensorView& rows);
  // These rows of a batch, all states side by side.   [rows, layers * dim]
  void take(const WindowBatch& batch, const std::vector<int32_t>& rows,
            std::vector<std::byte>& out) const;

  int64_t width() const { return std::ssize(layers_) * dim_; }
  DType dtype() const { return dtype_; }

 private:
  size_t place_of(int64_t layer) const;

  std::vector<int64_t> layers_;
  int64_t dim_;
  DType dtype_;
  size_t row_bytes_;               // of one state
  std::vector<std::byte> states_;  // [total_rows, layers, dim]
  std::vector<std::byte> batch_;   // [most_rows, dim]
};

// The device memory of a drafter, without its layer's weights and scratch.
uint64_t drafter_bytes(const ModelConfig& drafter, const Backend& backend, const WindowPlan& plan);

struct DrafterPass {
  const Drafter& drafter;
  const Checkpoint& target;
  const ModelConfig& target_config;
  Backend& backend;
  const std::vector<std::vector<int32_t>>& windows;
  const WindowPlan& plan;  // the plan of `windows`
  const HiddenStates& hidden;
};

// Counts the magnitudes that the drafter caches. `done` is called after each batch of the plan,
// with what is counted so far. Throws if no window has two tokens.
LayerMagnitudes collect_drafter(
    const DrafterPass& pass, Progress& progress,
    const std::function<void(const WindowBatch& batch, const TensorView& magnitudes)>& done);

}  // namespace fp8kv
