#include "calib/drafts/layer_pass.h"

#include <span>

#include "base/interrupt.h"
#include "core/numbers/host_view.h"
#include "model/weights/weight_stream.h"

namespace fp8kv {

LayerPass::LayerPass(const DraftingLayer& layer, Backend& backend, const NextTokens& next)
    : layer_(layer),
      backend_(backend),
      next_(next),
      workspace_(backend, layer.config, next.plan, layer.index + 1) {}

LayerMagnitudes LayerPass::run(const Steps& steps) {
  const int64_t index = layer_.index;
  WeightStream weights(layer_.checkpoint, layer_.config, backend_, {{index, LayerPart::up_to_kv}},
                       {.buffers = 1});
  const LayerWeights& of_layer = weights.begin();
  const TensorView magnitudes = workspace_.magnitudes_of(layer_.config, index).value();
  const std::vector<uint64_t> zeros(static_cast<size_t>(magnitudes.shape.elements()));
  backend_.copy_in(magnitudes, host_view(zeros, magnitudes.shape));
  for (size_t i = 0; i < next_.plan.batches.size(); ++i) {
    check_interrupt();
    if (next_.plan.batches[i].rows > 0) {
      workspace_.rows.begin(next_.ids, next_.plan.batches[i]);
      const TensorView x = steps.input(i);
      workspace_.forward.layer(
          index, of_layer, x,
          {step().batch(), workspace_.rows.cache.layer(index), LayerPart::up_to_kv, magnitudes});
    }
    steps.done(i, magnitudes);
  }
  std::vector<uint64_t> words(zeros.size());
  backend_.download(magnitudes, std::as_writable_bytes(std::span(words)));
  weights.end();
  return magnitudes_from(words, magnitudes.shape[1], index);
}

}  // namespace fp8kv
