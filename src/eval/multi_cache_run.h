// Runs several KV caches behind one forward pass: the layers of an evaluation.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/machine/thread_pool.h"
#include "calib/windows/window_plan.h"
#include "calib/windows/window_step.h"
#include "core/model/config.h"
#include "core/scales/scales.h"
#include "eval/cache_errors.h"
#include "model/cache/kv_cache.h"
#include "model/embedding.h"
#include "model/model.h"
#include "model/parts/sparse/chosen_tokens.h"

namespace fp8kv {

// One of the caches.
struct Lane {
  ModelCache dtype;
  const KvScales* scales = nullptr;  // null: 1 everywhere
};

// The errors of one lane in one layer, summed over all measured rows.
struct LaneErrors {
  std::vector<ErrorSums> k, v;  // [n_kv_heads]; empty if the layer writes no cache
  double attention_squared_error = 0;
  double attention_squared = 0;
};

// A residual stream, shared by lanes that have read back the same values so far.
struct SharedStream {
  Tensor hidden;              // [all rows, dim]
  std::vector<size_t> lanes;  // ascending
  ChosenTokens chosen = {};
};

struct MultiCacheOptions {
  // The first windows, in which the lanes are measured. A batch begins at half of these.
  size_t n_measured = 0;
  // Measuring the attention output costs one more attention for each lane. So only some batches do
  // it, spread evenly: enough for this many rows.
  int64_t attention_rows = 1;
  int threads = 0;  // 0: one per core
};

class MultiCacheRun {
 public:
  // Lane 0 is the baseline. All lanes are measured on its Q, K and V.
  MultiCacheRun(Backend& backend, const ModelConfig& config,
                const std::vector<std::vector<int32_t>>& windows, std::vector<Lane> lanes,
                const MultiCacheOptions& options);

  const WindowPlan& plan() const { return plan_; }
  const std::deque<SharedStream>& streams() const { return streams_; }
  Forward& forward() { return forward_; }
  ThreadPool& pool() { return pool_; }
  // The number of rows whose attention output is measured.
  int64_t attention_rows() const;

  // Call it first.
  void embed(Embedding embedding);
  // Call begin_layer before the batches of a layer, and end_layer after them.
  void begin_layer(int64_t index);
  std::vector<LaneErrors> end_layer();  // [lanes]
  // The magnitudes of the layer's measured rows, as RopeAppend counts them. Nothing if the layer
  // writes no cache.
  const std::optional<TensorView>& magnitudes() const { return magnitudes_; }
  // The largest values of the layer's measured rows, in first tokens of windows and in others.
  const FirstTokenAmax& first_tokens() const { return first_tokens_; }
  // Runs the rows of `batch` in every stream through the layer.
  void run(const LayerWeights& weights, const WindowBatch& batch);

  // The rows of a stream that belong to a batch.   [batch.rows, dim]
  TensorView rows_of(const SharedStream& stream, const WindowBatch& batch) const;

 private:
  bool is_measured(const WindowBatch& batch) const { return batch.first < n_measured_; }
  ChosenTokens new_choice() const;
  bool is_attention_measured(const WindowBatch& batch) const;
  LayerStep rest_of_step() const;
  void advance(size_t stream, const LayerWeights& weights, const WindowBatch& batch);
  // The results of a stream's first lane for a batch in the current layer.
  struct Lead {
    AttentionInputs inputs;
    std::optional<ConstTensorView> read;  // read from the state, if the layer has one as well
  };
  void compare(size_t stream, const Lead& lead, const LayerWeights& weights,
               const WindowBatch& batch);
  void fork(size_t from, const std::vector<size_t>& leaving);
  std::vector<std::vector<size_t>> alike(const std::vector<size_t>& lanes);

  // A job: rows [begin, end) of one KV head's K or V, for the batch that is on the host.
  struct Part {
    bool is_key;
    int64_t head;
    int64_t begin;
    int64_t end;
  };
  int64_t n_parts() const;
  int64_t kv_rows() const;  // of a layer's K and V, all windows together
  Part part_at(int64_t index) const;
  template <typename Work>
  void for_parts(const Work& work);
  std::span<const float> values_of(const Part& part, int64_t row) const;
  float scale_of(size_t lane, const Part& part) const;
  void add_lane_errors(size_t lane, const Part& part, int64_t row, ErrorSums& sums) const;

  bool same_scales(size_t a, size_t b) const;
  bool same_cache(size_t a, size_t b);
  void measure_values();
  void measure_first_tokens(const WindowBatch& batch);
  void measure_attention(const TensorView& attended, const std::vector<size_t>& lanes);
  TensorView attention_buffer(const Tensor& buffer, const WindowBatch& batch) const;
  const LayerDescription& layer() const { return config_.layer(layer_); }

  Backend& backend_;
  const ModelConfig& config_;
  const std::vector<std::vector<int32_t>>& windows_;
  size_t n_measured_;
  std::vector<Lane> lanes_;
  WindowPlan plan_;
  size_t attention_every_ = 1;  // one in so many batches is measured
  ThreadPool pool_;
  Forward forward_;
  WindowStep rows_;  // rows of the current batch; every lane's cache has the same pages
  std::optional<Embedding> embedding_;
  std::deque<SharedStream> streams_;
  std::vector<KvCache> caches_;       // [lanes]
  Tensor attended_, attended_again_;  // [rows of a batch, n_heads, v_head_dim], for any layer
  Tensor all_rows_;                   // [rows of a batch] i32: 0, 1, 2, ...
  Tensor counters_;                   // for magnitudes, sized for the layer with most heads

  // State of the current layer.
  int64_t layer_ = 0;
  std::vector<LaneErrors> errors_;
  std::optional<TensorView> magnitudes_;
  FirstTokenAmax first_tokens_;
  std::optional<ConstTensorView> input_;  // for the current batch
  std::vector<float> k_, v_;              // [rows of the batch, n_kv_heads, head_dim], on the host
  std::vector<float> exact_, lossy_;      // attention outputs of the batch, on the host
};

}  // namespace fp8kv
