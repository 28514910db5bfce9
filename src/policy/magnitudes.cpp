#include "policy/magnitudes.h"

#include <algorithm>

#include "base/error.h"
#include "core/numbers/half.h"
#include "core/numbers/histogram.h"

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

}  // namespace

void MagnitudeCounts::add(const MagnitudeCounts& other) {
  amax = std::max(amax, other.amax);
  nonfinite += other.nonfinite;
  bins.resize(kMagnitudeBins);
  for (size_t i = 0; i < other.bins.size(); ++i) bins[i] += other.bins[i];
  losses.resize(std::max(losses.size(), other.losses.size()));
  for (size_t i = 0; i < other.losses.size(); ++i) losses[i] += other.losses[i];
}

void LayerMagnitudes::add(const LayerMagnitudes& other) {
  FP8KV_ASSERT(k.size() == other.k.size());
  for (size_t head = 0; head < k.size(); ++head) {
    q[head].add(other.q[head]);
    k[head].add(other.k[head]);
    v[head].add(other.v[head]);
  }
}

void add_up(std::vector<LayerMagnitudes>& sum, const std::vector<LayerMagnitudes>& other) {
  if (sum.empty()) {
    sum = other;
    return;
  }
  FP8KV_ASSERT(sum.size() == other.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i].add(other[i]);
}

LayerAmax layer_amax(const LayerMagnitudes& layer) {
  const auto amax = [](const std::vector<MagnitudeCounts>& heads) {
    std::vector<float> values;
    for (const MagnitudeCounts& head : heads) values.push_back(head.amax);
    return values;
  };
  return {amax(layer.k), amax(layer.v), amax(layer.q)};
}

void add_up(LayerAmax& amax, const LayerAmax& other) {
  const auto raise = [](std::vector<float>& to, const std::vector<float>& from) {
    FP8KV_ASSERT(to.size() == from.size());
    for (size_t head = 0; head < to.size(); ++head) to[head] = std::max(to[head], from[head]);
  };
  raise(amax.k, other.k);
  raise(amax.v, other.v);
  raise(amax.q, other.q);
}

void add_up(AmaxAfter& sum, const AmaxAfter& other) {
  sum.tokens += other.tokens;
  if (sum.layers.empty()) {
    sum.layers = other.layers;
    return;
  }
  for (size_t layer = 0; layer < other.layers.size(); ++layer) {
    add_up(sum.layers[layer], other.layers[layer]);
  }
}

std::vector<LayerMagnitudes> magnitudes_of(const std::vector<LayerAmax>& layers) {
  const auto counts = [](const std::vector<float>& heads) {
    std::vector<MagnitudeCounts> of;
    for (const float head : heads) of.push_back({head, 0, {}});
    return of;
  };
  std::vector<LayerMagnitudes> found;
  for (const LayerAmax& amax : layers) {
    found.push_back({counts(amax.q), counts(amax.k), counts(amax.v)});
  }
  return found;
}

LayerMagnitudes magnitudes_from(std::span<const uint64_t> words, int64_t n_kv_heads,
                                int64_t layer) {
  LayerMagnitudes found;
  const uint64_t* next = words.data();
  for (std::vector<MagnitudeCounts>* heads : {&found.q, &found.k, &found.v}) {
    for (int64_t head = 0; head < n_kv_heads; ++head, next += kMagnitudeWords) {
      heads->push_back(counts_from(next));
    }
  }
  check_finite(found.k, "K", layer);
  check_finite(found.v, "V", layer);
  check_finite(found.q, "Q", layer);
  return found;
}

std::vector<uint64_t> words_of(const LayerMagnitudes& layer) {
  std::vector<uint64_t> words;
  for (const std::vector<MagnitudeCounts>* heads : {&layer.q, &layer.k, &layer.v}) {
    for (const MagnitudeCounts& head : *heads) {
      words.push_back(float_bits(head.amax));
      words.push_back(head.nonfinite);
      words.insert(words.end(), head.bins.begin(), head.bins.end());
    }
  }
  return words;
}

}  // namespace fp8kv
