#include "attest/hypotheses.h"

#include <algorithm>

#include "base/error.h"

namespace fp8kv {
namespace {

void multiply(KvScales& scales, float factor) {
  for (LayerScales& layer : scales.layers) {
    for (float& scale : layer.k) scale *= factor;
    for (float& scale : layer.v) scale *= factor;
  }
}

KvScales with_factor(KvScales scales, float factor) {
  multiply(scales, factor);
  return scales;
}

KvScales with_exchange(KvScales scales) {
  for (LayerScales& layer : scales.layers) std::swap(layer.k, layer.v);
  return scales;
}

bool is_unit(const LayerScales& layer) {
  const auto is_one = [](float scale) { return scale == 1.0f; };
  return std::all_of(layer.k.begin(), layer.k.end(), is_one) &&
         std::all_of(layer.v.begin(), layer.v.end(), is_one);
}

std::string rounding_text(const CacheArithmetic& arithmetic) {
  if (arithmetic.toward_zero) return ", rounded towards zero";
  return arithmetic.fp8_attention ? ", Q in FP8 too" : "";
}

// Collects hypotheses for one model.
class HypothesisList {
 public:
  HypothesisList(const ModelConfig& config, const std::optional<KvScales>& scales)
      : config_(config), skipped_(scales ? scales->skipped : std::vector<int64_t>()) {}

  void add(Outcome outcome, const CacheType& type, const std::optional<KvScales>& scales,
           const CacheArithmetic& arithmetic = {}) {
    Hypothesis& made = list_.emplace_back();
    made.outcome = outcome;
    made.cache = type;
    if (outcome != Outcome::sixteen_bit) {
      made.cache.left_in = config_.dtype;
      made.cache.left = skipped_;
    }
    made.cache.arithmetic = arithmetic;
    made.scales = scales;
    made.name = outcome_text(made) + rounding_text(arithmetic);
  }

  std::vector<Hypothesis> take() { return std::move(list_); }

 private:
  const ModelConfig& config_;
  std::vector<int64_t> skipped_;
  std::vector<Hypothesis> list_;
};

}  // namespace

bool same_outcome(const Hypothesis& a, const Hypothesis& b) {
  return a.outcome == b.outcome && a.layer == b.layer;
}

const char* outcome_key(Outcome outcome) {
  switch (outcome) {
    case Outcome::sixteen_bit:
      return "sixteen_bit";
    case Outcome::these_scales:
      return "these_scales";
    case Outcome::unit_scales:
      return "unit_scales";
    case Outcome::doubled:
      return "doubled";
    case Outcome::halved:
      return "halved";
    case Outcome::exchanged:
      return "exchanged";
    case Outcome::e5m2:
      return "e5m2";
    case Outcome::layer_missing:
      break;
  }
  return "layer_missing";
}

std::string outcome_text(const Hypothesis& hypothesis) {
  switch (hypothesis.outcome) {
    case Outcome::sixteen_bit:
      return "a 16-bit cache";
    case Outcome::these_scales:
      return "these scales";
    case Outcome::unit_scales:
      return "scales of 1.0";
    case Outcome::doubled:
      return "these scales times 2";
    case Outcome::halved:
      return "these scales / 2";
    case Outcome::exchanged:
      return "the scales of K and V exchanged";
    case Outcome::e5m2:
      return "an E5M2 cache";
    case Outcome::layer_missing:
      break;
  }
  return cat("these scales without layer ", hypothesis.layer);
}

std::vector<Hypothesis> main_hypotheses(const ModelConfig& config,
                                        const std::optional<KvScales>& scales,
                                        const HypothesisOptions& options) {
  HypothesisList list(config, scales);
  list.add(Outcome::sixteen_bit, config.dtype, std::nullopt);
  std::vector<CacheArithmetic> kernels = {{}};
  if (options.toward_zero) kernels.push_back({.toward_zero = true});
  const CacheType e4m3 = KvFormat::e4m3fn;
  for (const CacheArithmetic& kernel : kernels) {
    if (scales) list.add(Outcome::these_scales, e4m3, scales, kernel);
    list.add(Outcome::unit_scales, e4m3, std::nullopt, kernel);
    if (!scales) continue;
    list.add(Outcome::doubled, e4m3, with_factor(*scales, 2), kernel);
    list.add(Outcome::halved, e4m3, with_factor(*scales, 0.5f), kernel);
    if (!scales->latent) list.add(Outcome::exchanged, e4m3, with_exchange(*scales), kernel);
  }
  if (options.fp8_attention && scales) {
    list.add(Outcome::these_scales, e4m3, scales, {.fp8_attention = true});
  }
  list.add(Outcome::e5m2, KvFormat::e5m2, std::nullopt);
  return list.take();
}

std::vector<Hypothesis> missing_layers(const Hypothesis& base) {
  FP8KV_ASSERT(base.scales.has_value());
  std::vector<Hypothesis> found;
  for (size_t i = 0; i < base.scales->layers.size(); ++i) {
    const LayerScales& layer = base.scales->layers[i];
    const auto number = static_cast<int64_t>(i);
    const bool left = std::binary_search(base.cache.left.begin(), base.cache.left.end(), number);
    if (!layer.has_cache() || is_unit(layer) || left) continue;
    Hypothesis& made = found.emplace_back(base);
    made.outcome = Outcome::layer_missing;
    made.layer = number;
    LayerScales& own = made.scales->layers[i];
    own.k.assign(own.k.size(), 1.0f);
    own.v.assign(own.v.size(), 1.0f);
    made.name = outcome_text(made) + rounding_text(base.cache.arithmetic);
  }
  return found;
}

}  // namespace fp8kv
