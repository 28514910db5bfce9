// The feed-forward part of layers with experts: its scratch memory, and its ops in their order.
#pragma once

#include <cstdint>
#include <optional>

#include "core/model/config.h"
#include "model/parts/feed_forward/each_expert.h"
#include "model/parts/forward_memory.h"
#include "model/parts/wide_rows.h"
#include "model/weights/weights.h"

namespace fp8kv {

class ExpertsForward {
 public:
  // REQUIRES config.experts; `config` outlives this.
  ExpertsForward(ForwardMemory& memory, const ModelConfig& config);

  // Chooses experts for rows [n, dim], which are normalised already.
  //   given: see RouterTerms; REQUIRED in layers with a table
  void choose(const LayerExperts& weights, const ConstTensorView& x,
              const std::optional<ConstTensorView>& given = {});

  // Computes the experts chosen last on rows x [n, dim], which are normalised already, into out
  // [n, dim].
  void run(const LayerExperts& weights, const ConstTensorView& x, const TensorView& out);

  // From now on, adds the number of rows sent to each expert to `counts` [choices] u64.
  void count(const std::optional<TensorView>& counts) { counts_ = counts; }

 private:
  Routed chosen(int64_t rows) const;
  void sum(const LayerExperts& weights, const ConstTensorView& x, const TensorView& out);
  void add_shared(const LayerExperts& weights, const ConstTensorView& x, const TensorView& out);

  Backend& backend_;
  const ExpertsConfig& experts_;
  const Activation activation_;
  const bool gated_;
  Tensor logits_;                     // [max_rows, choices] f32
  Tensor ids_, chosen_weights_;       // [max_rows, per_token] i32, f32
  std::optional<WideRows> wide_;      // [dim]; with f32_router
  Tensor inner_, inner_made_;         // [max_rows, inner_dim]; empty without inner_dim
  std::optional<EachExpert> each_;    // with each_norm
  Tensor shared_gate_, shared_up_;    // [max_rows, shared_hidden_dim]; empty without such one
  Tensor shared_weights_;             // [max_rows, 1] f32
  std::optional<TensorView> counts_;  // [choices] u64
};

}  // namespace fp8kv
