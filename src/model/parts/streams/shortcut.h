// Experts whose output joins the residual stream one layer later: see ExpertsConfig::shortcut. In
// between it waits beside the stream, in the second half of each row.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "core/model/config.h"
#include "model/parts/forward_memory.h"

namespace fp8kv {

// Rows x are [n, 2 * dim]. Results are scratch, valid until the next call that returns one.
class ShortcutForward {
 public:
  // REQUIRES config.has_shortcut().
  ShortcutForward(ForwardMemory& memory, const ModelConfig& config);

  TensorView stream(const ConstTensorView& x);              // [n, dim]
  void put(const ConstTensorView& y, const TensorView& x);  // replaces the stream by y [n, dim]

  void keep(const ConstTensorView& made, const TensorView& x);  // made [n, dim] waits from now on
  TensorView kept(const ConstTensorView& x);                    // [n, dim]

  // Takes the stream of those rows of x that `rows` [n] i32 names.   out [n, dim]
  void merge(const ConstTensorView& x, const ConstTensorView& rows, const TensorView& out);

 private:
  Backend& backend_;
  Tensor stream_, kept_;  // [max_rows, dim]
  Tensor chosen_;         // [max_rows, 2 * dim]
};

}  // namespace fp8kv
