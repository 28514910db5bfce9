#include "calib/scale_policy.h"

#include <algorithm>

#include "base/text.h"

namespace fp8kv {
namespace {

std::vector<float> amax_of(const std::vector<MagnitudeCounts>& heads) {
  std::vector<float> amax;
  for (const MagnitudeCounts& head : heads) amax.push_back(head.amax);
  return amax;
}

std::vector<float> scales_of(const std::vector<float>& amax, const ScalePolicy& policy) {
  const auto scale = [&](float a) {
    return scale_from_amax(a, Fp8Format::e4m3fn, policy.headroom);
  };
  if (policy.granularity == Granularity::tensor) {
    return {scale(*std::max_element(amax.begin(), amax.end()))};
  }
  std::vector<float> scales;
  for (const float a : amax) scales.push_back(scale(a));
  return scales;
}

OctaveCounts octaves_over(const std::vector<MagnitudeCounts>& heads) {
  OctaveCounts octaves;
  for (const MagnitudeCounts& head : heads) octaves.add(octaves_of(head.bins));
  return octaves;
}

void warn_of_zeros(const std::vector<float>& amax, const char* tensor, size_t layer,
                   Granularity granularity, Log& log) {
  const auto zeros = std::count(amax.begin(), amax.end(), 0.0f);
  const auto all = static_cast<std::ptrdiff_t>(amax.size());
  if (zeros == all) {
    log.warn(cat("layer ", layer, ": ", tensor, " is zero throughout; its scale is 1"));
  } else if (zeros > 0 && granularity == Granularity::head) {
    log.warn(cat("layer ", layer, ": ", tensor, " is zero throughout in ",
                 count_of(static_cast<uint64_t>(zeros), "KV head"), "; scale 1 there"));
  }
}

}  // namespace

LayerScales scales_from(const LayerAmax& amax, const ScalePolicy& policy) {
  return {scales_of(amax.k, policy), scales_of(amax.v, policy)};
}

std::vector<LayerScales> scales_of(const std::vector<LayerAmax>& amax, const ScalePolicy& policy,
                                   Log& log) {
  std::vector<LayerScales> scales;
  for (size_t i = 0; i < amax.size(); ++i) {
    warn_of_zeros(amax[i].k, "K", i, policy.granularity, log);
    warn_of_zeros(amax[i].v, "V", i, policy.granularity, log);
    scales.push_back(scales_from(amax[i], policy));
  }
  return scales;
}

KvScales make_scales(const std::vector<LayerMagnitudes>& layers, const ScalePolicy& policy,
                     Log& log) {
  KvScales scales;
  scales.provenance.headroom = policy.headroom;
  for (size_t i = 0; i < layers.size(); ++i) {
    LayerAmax amax{amax_of(layers[i].k), amax_of(layers[i].v), amax_of(layers[i].q)};
    scales.provenance.amax.push_back(std::move(amax));
    scales.provenance.octaves.push_back({octaves_over(layers[i].k), octaves_over(layers[i].v)});
  }
  scales.layers = scales_of(scales.provenance.amax, policy, log);
  return scales;
}

}  // namespace fp8kv
