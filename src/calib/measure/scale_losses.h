// Measures what rounding K and V costs at each mantissa of their scales.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "calib/measure/output_error.h"
#include "calib/windows/window_plan.h"
#include "core/model/config.h"
#include "model/model.h"
#include "model/step.h"
#include "policy/magnitudes.h"

namespace fp8kv {

// Throws a usage Error unless losses can be measured: a cache of latents has one scale for K and V.
void check_losses_measurable(const ModelConfig& config);

// The device memory that ScaleLosses allocates.
uint64_t loss_bytes(const ModelConfig& config, const Backend& backend, const WindowPlan& plan);

// For each KV head and mantissa, K is stored in E4M3FN while V stays the same, and V is stored
// while K stays the same. The loss of a token is its OutputError, at most 1. Losses are summed over
// tokens, in units of kLossUnit.
//
// Each window is measured by itself, at scales under which none of its values saturates. So the
// sums have the same bits for any batches, threads and shards. Of each 128 positions, the last 16
// are measured; they see all tokens before them.
//
// A layer that reads another layer's cache is not measured.
class ScaleLosses {
 public:
  // `backend` and `config` outlive this. REQUIRES check_losses_measurable.
  ScaleLosses(Backend& backend, const ModelConfig& config, const WindowPlan& plan);

  // Call it for each layer with a cache, before its first batch. `weights` live until end_layer.
  void begin_layer(int64_t index, const LayerWeights& weights);
  // Call it for each batch, between Forward::project and the rest of the layer.
  //   lengths: the rows of each window
  void measure(Forward& forward, const AttentionInputs& inputs, std::span<const int64_t> lengths);
  // Stores the losses in the layer's K and V.
  void end_layer(LayerMagnitudes& layer);

 private:
  enum Pool { exact, base, other };
  enum Tensors { keys, values };
  struct Sums {
    std::vector<uint64_t> k, v;  // [n_kv_heads, kScaleMantissas]
  };

  PagedKv cache(Pool k, Pool v) const;
  // The window's rows, first among those of `inputs`.
  void measure_window(Forward& forward, const AttentionInputs& inputs, int64_t first, int64_t rows);
  void choose_rows(int64_t first, int64_t rows);
  void find_least(int64_t first, int64_t rows);
  void set_scales(Pool pool, int mantissa);
  TensorView attend(Forward& forward, const AttentionInputs& inputs, const PagedKv& kv,
                    const Tensor& out);
  void add(Forward& forward, const TensorView& attended, const TensorView& from, int mantissa,
           std::vector<uint64_t>& sums);

  Backend& backend_;
  const ModelConfig& config_;
  int64_t index_ = 0;
  Sums sums_;
  std::vector<float> k_, v_;  // of one batch
  std::vector<float> least_;  // [2, n_kv_heads]: K's and V's smallest scales for the window
  Step all_, measured_;       // rows of one window
  OutputError error_;
  Tensor chosen_;                               // [most measured] i32: rows of the batch
  std::array<std::array<Tensor, 2>, 3> pools_;  // [Pool][Tensors]: rows of one window
  std::array<Tensor, 3> scales_;                // [Pool]: [2, n_kv_heads] f32
  Tensor q_, x_;                                // [most measured, ..]
  std::array<Tensor, 3> attended_;              // [most measured, n_heads * v_head_dim]
};

}  // namespace fp8kv
