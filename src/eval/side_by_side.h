// Several KV caches behind one forward pass: the layers of an evaluation.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/thread_pool.h"
#include "calib/window_plan.h"
#include "calib/window_step.h"
#include "core/config.h"
#include "core/scales.h"
#include "eval/cache_errors.h"
#include "model/embedding.h"
#include "model/kv_cache.h"
#include "model/model.h"

namespace fp8kv {

// A cache that takes part.
struct Lane {
  ModelCache dtype;
  const KvScales* scales = nullptr;  // null: 1 everywhere
};

// What one layer does to the values of one lane, over all measured rows.
struct LaneErrors {
  std::vector<ErrorSums> k, v;  // [n_kv_heads]; none where the layer writes no cache
  double attention_squared_error = 0;
  double attention_squared = 0;
};

// A residual stream, shared by the lanes that have read back the same values so far.
struct Stream {
  Tensor hidden;              // [all rows, dim]
  std::vector<size_t> lanes;  // rising
};

class SideBySide {
 public:
  // Lane 0 is the baseline: all lanes are measured on its Q, K and V, in the first `n_measured`
  // windows. A batch begins at half of these. Errors of the attention output cost one more
  // attention for every lane, so they are measured on some batches only, spread evenly: as many as
  // have `attention_rows` rows together.
  SideBySide(Backend& backend, const ModelConfig& config,
             const std::vector<std::vector<int32_t>>& windows, size_t n_measured,
             int64_t attention_rows, std::vector<Lane> lanes, int threads);

  const WindowPlan& plan() const { return plan_; }
  const std::deque<Stream>& streams() const { return streams_; }
  Forward& forward() { return forward_; }
  ThreadPool& pool() { return pool_; }
  // Rows whose attention output is measured.
  int64_t attention_rows() const;

  // To be called first.
  void embed(Embedding embedding);
  // To be called before the batches of a layer, and after them.
  void begin_layer(int64_t index);
  std::vector<LaneErrors> end_layer();  // [lanes]
  // Magnitudes of the measured rows of the layer, as RopeAppend counts them; nothing where it
  // writes no cache.
  const std::optional<TensorView>& magnitudes() const { return magnitudes_; }
  // Takes every stream's rows of `batch` through the layer.
  void run(const LayerWeights& weights, const WindowBatch& batch);

  // The rows of a stream that belong to a batch.   [batch.rows, dim]
  TensorView rows_of(const Stream& stream, const WindowBatch& batch) const;

 private:
  bool is_measured(const WindowBatch& batch) const { return batch.first < n_measured_; }
  bool is_attention_measured(const WindowBatch& batch) const;
  void advance(size_t stream, const LayerWeights& weights, const WindowBatch& batch);
  // What a stream's first lane made of a batch on its way through the layer.
  struct Lead {
    AttentionInputs inputs;
    std::optional<ConstTensorView> read;  // from the state, where the layer keeps one as well
  };
  void compare(size_t stream, const Lead& lead, const LayerWeights& weights,
               const WindowBatch& batch);
  void fork(size_t from, const std::vector<size_t>& leaving);
  std::vector<std::vector<size_t>> alike(const std::vector<size_t>& lanes);

  // Rows [begin, end) of one KV head's K or V of the batch that is on the host: a job.
  struct Part {
    bool is_key;
    int64_t head;
    int64_t begin;
    int64_t end;
  };
  int64_t n_parts() const;
  Part part_at(int64_t index) const;
  template <typename Work>
  void for_parts(const Work& work);
  std::span<const float> values_of(const Part& part, int64_t row) const;
  float scale_of(size_t lane, const Part& part) const;
  void add_lane_errors(size_t lane, const Part& part, int64_t row, ErrorSums& sums) const;

  bool same_scales(size_t a, size_t b) const;
  bool same_cache(size_t a, size_t b);
  void measure_values();
  void measure_attention(const TensorView& attended, const std::vector<size_t>& lanes);
  void fetch(const TensorView& from, std::vector<float>& to);
  TensorView attention_buffer(const Tensor& buffer, const WindowBatch& batch) const;
  const LayerDescription& layer() const { return config_.layer(layer_); }

  Backend& backend_;
  const ModelConfig& config_;
  const std::vector<std::vector<int32_t>>& windows_;
  size_t n_measured_;
  std::vector<Lane> lanes_;
  WindowPlan plan_;
  size_t attention_every_ = 1;  // of so many batches one is measured
  ThreadPool pool_;
  Forward forward_;
  WindowStep rows_;  // of the batch that is being run; every lane's cache has the same pages
  std::optional<Embedding> embedding_;
  std::deque<Stream> streams_;
  std::vector<KvCache> caches_;       // [lanes]
  Tensor attended_, attended_again_;  // [rows of a batch, n_heads, v_head_dim], of any layer
  Tensor all_rows_;                   // [rows of a batch] i32: 0, 1, 2, ...
  Tensor counters_;                   // of magnitudes, for the layer with most heads

  // Of the layer that is being run.
  int64_t layer_ = 0;
  std::vector<LaneErrors> errors_;
  std::optional<TensorView> magnitudes_;
  std::optional<ConstTensorView> input_;  // of the batch that is being run
  std::vector<float> k_, v_;              // [rows of the batch, n_kv_heads, head_dim], on the host
  std::vector<float> exact_, lossy_;      // attention outputs of the batch, on the host
  std::vector<uint16_t> half_;
};

}  // namespace fp8kv
