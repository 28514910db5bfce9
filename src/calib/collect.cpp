#include "calib/collect.h"

#include <algorithm>

#include "base/error.h"
#include "calib/window_plan.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "model/step.h"

namespace fp8kv {
namespace {

MagnitudeCounts counts_from(const uint64_t* words) {
  MagnitudeCounts counts;
  counts.amax = float_from_bits(static_cast<uint32_t>(words[kMagnitudeAmax]));
  counts.nonfinite = words[kMagnitudeNonfinite];
  counts.bins.assign(words + kMagnitudeFirstBin, words + kMagnitudeWords);
  return counts;
}

void check_finite(const std::vector<MagnitudeCounts>& heads, const char* tensor, int64_t layer) {
  for (size_t head = 0; head < heads.size(); ++head) {
    if (heads[head].nonfinite == 0) continue;
    throw Error(cat("layer ", layer, ", KV head ", head, ": ", tensor, " has ",
                    count_of(heads[head].nonfinite, "value"), " that ",
                    heads[head].nonfinite == 1 ? "is" : "are", " NaN or infinite"),
                "no scale can be made from that; look for NaN in the weights up to this layer, or "
                "for an overflow of float16 (a bfloat16 or float32 checkpoint has more range)");
  }
}

class Collector {
 public:
  Collector(const Checkpoint& checkpoint, const ModelConfig& config, Backend& backend,
            const std::vector<std::vector<int32_t>>& windows, Log& log)
      : config_(config),
        backend_(backend),
        windows_(windows),
        plan_(plan_windows(windows)),
        loader_(checkpoint, config, backend),
        progress_(log, "calibrating",
                  static_cast<uint64_t>(config.n_layers) * plan_.batches.size()),
        forward_(backend, config, plan_.most_rows, plan_.longest_window),
        step_(backend, plan_.most_rows, plan_.most_windows,
              KvCache::pages_for(plan_.longest_window)),
        // One layer's K and V of one batch, in the model's dtype: exact, since they are rounded to
        // it before they get here.
        cache_(backend, config, {config.dtype, 1, plan_.most_pages}, nullptr),
        hidden_(
            backend.allocate(forward_.activation_dtype(), Shape{plan_.total_rows, config.dim})) {}

  std::vector<LayerMagnitudes> run() {
    embed();
    std::vector<LayerMagnitudes> layers;
    for (int64_t index = 0; index < config_.n_layers; ++index) layers.push_back(layer(index));
    return layers;
  }

 private:
  TensorView rows_of(const WindowBatch& batch) const {
    const TensorView& all = hidden_.view();
    const size_t row_bytes = static_cast<size_t>(config_.dim) * dtype_bytes(all.dtype);
    return {all.data + static_cast<size_t>(batch.first_row) * row_bytes, all.dtype,
            Shape{batch.rows, config_.dim}};
  }

  // Fills step_ with the rows of a batch; every window is a sequence of its own.
  void begin(const WindowBatch& batch) {
    for (KvCache::Sequence& sequence : sequences_) cache_.release(sequence);
    sequences_.assign(batch.count, {});
    step_.clear(kPromptStep);
    for (size_t i = 0; i < batch.count; ++i) {
      const std::vector<int32_t>& window = windows_[batch.first + i];
      const bool extended = cache_.extend(sequences_[i], static_cast<int64_t>(window.size()));
      FP8KV_ASSERT(extended);
      step_.add(window, sequences_[i]);
    }
    step_.upload();
  }

  void embed() {
    const Tensor embedding = loader_.embedding();
    for (const WindowBatch& batch : plan_.batches) {
      begin(batch);
      forward_.embed(embedding.view(), step_.ids(), rows_of(batch));
    }
  }

  LayerMagnitudes layer(int64_t index) {
    const LayerWeights weights = loader_.layer(index);
    const LayerPart part = index + 1 == config_.n_layers ? LayerPart::up_to_kv : LayerPart::whole;
    const Tensor magnitudes =
        backend_.allocate(DType::u64, Shape{3, config_.n_kv_heads, kMagnitudeWords});
    for (const WindowBatch& batch : plan_.batches) {
      begin(batch);
      forward_.layer(index, weights, rows_of(batch), step_.batch(), cache_.layer(0),
                     magnitudes.view(), part);
      progress_.advance();
    }
    return download_magnitudes(backend_, magnitudes.view(), index);
  }

  const ModelConfig& config_;
  Backend& backend_;
  const std::vector<std::vector<int32_t>>& windows_;
  WindowPlan plan_;
  WeightLoader loader_;
  Progress progress_;
  Forward forward_;
  Step step_;
  KvCache cache_;
  std::vector<KvCache::Sequence> sequences_;
  Tensor hidden_;  // [all rows, dim]: the residual stream between layers
};

}  // namespace

void MagnitudeCounts::add(const MagnitudeCounts& other) {
  amax = std::max(amax, other.amax);
  nonfinite += other.nonfinite;
  bins.resize(kMagnitudeBins);
  for (size_t i = 0; i < other.bins.size(); ++i) bins[i] += other.bins[i];
}

void LayerMagnitudes::add(const LayerMagnitudes& other) {
  for (size_t head = 0; head < k.size(); ++head) {
    q[head].add(other.q[head]);
    k[head].add(other.k[head]);
    v[head].add(other.v[head]);
  }
}

LayerAmax layer_amax(const LayerMagnitudes& layer) {
  const auto amax = [](const std::vector<MagnitudeCounts>& heads) {
    std::vector<float> values;
    for (const MagnitudeCounts& head : heads) values.push_back(head.amax);
    return values;
  };
  return {amax(layer.k), amax(layer.v), amax(layer.q)};
}

LayerMagnitudes download_magnitudes(Backend& backend, const ConstTensorView& magnitudes,
                                    int64_t layer) {
  std::vector<uint64_t> words(static_cast<size_t>(magnitudes.shape.elements()));
  backend.download(magnitudes, std::as_writable_bytes(std::span(words)));
  LayerMagnitudes found;
  const uint64_t* next = words.data();
  for (std::vector<MagnitudeCounts>* heads : {&found.q, &found.k, &found.v}) {
    for (int64_t head = 0; head < magnitudes.shape[1]; ++head, next += kMagnitudeWords) {
      heads->push_back(counts_from(next));
    }
  }
  check_finite(found.k, "K", layer);
  check_finite(found.v, "V", layer);
  check_finite(found.q, "Q", layer);
  return found;
}

std::vector<LayerMagnitudes> collect_magnitudes(const Checkpoint& checkpoint,
                                                const ModelConfig& config, Backend& backend,
                                                const std::vector<std::vector<int32_t>>& windows,
                                                Log& log) {
  FP8KV_ASSERT(!windows.empty());
  return Collector(checkpoint, config, backend, windows, log).run();
}

}  // namespace fp8kv
