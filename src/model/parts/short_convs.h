// Short convolutions around a layer's attention and feed-forward part: see ShortConvsConfig.
#pragma once

#include "backend/backend.h"
#include "model/parts/layer_states.h"
#include "model/weights/weights.h"

namespace fp8kv {

// A convolution over the output of a block, for the rows of a step.
struct OutputConv {
  CausalConv conv;
  Batch batch;
};

// The rows that convolutions go over, and the layer's state.
struct ConvStep {
  const Batch& batch;  // with its true positions, unlike RopeAppend::batch of rows without rotation
  const LayerState& state;
};

// The convolution with these weights [channels, 1, width], whose input is added to its result.
CausalConv short_conv(const ConstTensorView& weight, const TensorView& state);

// Projects like Backend::project_append. Where the layer has short convolutions, they come between
// the products of K and V and what follows these. REQUIRES rows x that are normalised already.
void project_convolved(Backend& backend, const ConstTensorView& x, const LayerWeights& weights,
                       const RopeAppend& args, const ConvStep& step);

}  // namespace fp8kv
