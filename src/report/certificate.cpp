#include "report/certificate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "core/numbers/dtype.h"

namespace fp8kv {
namespace {

// The evidence about K or V in one layer.
struct Evidence {
  const std::vector<float>* amax = nullptr;  // per head; null: unknown
  const OctaveCounts* octaves = nullptr;     // null: unknown
  double growth = 0;                         // of amax in the last doubling; 0 if unknown
};

ShareRange share_below(const OctaveCounts& octaves, double threshold) {
  const int exponent = std::ilogb(threshold);
  const bool exact = threshold == std::ldexp(1.0, exponent);
  const auto all = static_cast<double>(octaves.nonzero());
  const auto share = [&](int e) { return static_cast<double>(octaves.below(e)) / all; };
  return {share(exponent), share(exact ? exponent : exponent + 1)};
}

// `scales` has one entry, or one for each head.
Margins margins_of(const Evidence& evidence, const std::vector<float>& scales,
                   const Fp8Spec& spec) {
  Margins margins;
  if (!evidence.amax || largest(*evidence.amax) == 0) return margins;
  for (size_t head = 0; head < evidence.amax->size(); ++head) {
    const double amax = (*evidence.amax)[head];
    const double scale = scales[scales.size() == 1 ? 0 : head];
    if (amax == 0) continue;
    const double margin = std::log2(spec.max * scale / amax);
    margins.saturation = std::min(margins.saturation.value_or(margin), margin);
  }
  if (!evidence.octaves || evidence.octaves->nonzero() == 0) return margins;
  const double scale = largest(scales);
  margins.underflow = evidence.octaves->median_octave() - std::log2(spec.min_normal * scale);
  margins.subnormal = share_below(*evidence.octaves, spec.min_normal * scale);
  margins.flushed = share_below(*evidence.octaves, spec.min_subnormal / 2 * scale);
  return margins;
}

// Values up to half a step above the maximum round to it, with or without clamping.
bool saturates(const Margins& margins, const Fp8Spec& spec) {
  const double half_step = std::ldexp(1.0, std::ilogb(spec.max) - spec.mantissa_bits - 1);
  return margins.saturation && *margins.saturation < -std::log2(1 + half_step / spec.max);
}

// Whether the scale certainly underflows, wherever in its octave a value lies. If the scale is a
// power of two, such as 1, thresholds are bounds of octaves, and no slack is needed.
bool underflows(const Margins& margins) {
  if (!margins.underflow) return false;
  const bool exact = *margins.underflow == std::floor(*margins.underflow);
  return *margins.underflow < kLeastUnderflowMargin - (exact ? 0 : 1) ||
         margins.flushed->least > kMostFlushed;
}

// Without octaves the median is unknown, but it is no larger than amax.
bool underflows_at_amax(const Evidence& evidence, const Fp8Spec& spec) {
  const double amax = largest(*evidence.amax);
  return amax > 0 && std::log2(amax / spec.min_normal) < kLeastUnderflowMargin;
}

std::string growth_reason(const std::string& name, double growth, double margin) {
  const std::string grew = std::isinf(growth) ? cat(name, " was 0 in half of the text")
                                              : cat(name, " grew by ", fixed(growth * 100, 0),
                                                    " % when the text last doubled");
  return cat(grew, ", with ", fixed(margin, 1), " octaves of room at 1.0");
}

TensorCertificate certify_tensor(const std::string& name, const Evidence& evidence,
                                 const std::vector<float>& scales, const Fp8Spec& spec) {
  TensorCertificate tensor;
  tensor.in_force = margins_of(evidence, scales, spec);
  tensor.unit = margins_of(evidence, {1.0f}, spec);
  tensor.holds = !saturates(tensor.in_force, spec) && !underflows(tensor.in_force);
  if (!evidence.amax) {
    tensor.reason = name + " has no amax";
    return tensor;
  }
  tensor.amax = largest(*evidence.amax);
  const float best = std::max(static_cast<float>(*tensor.amax / spec.max), 0x1p-126f);
  if (*tensor.amax > 0 && underflows(margins_of(evidence, {best}, spec))) {
    tensor.verdict = Verdict::keep_16bit;
    tensor.reason = name + " has too wide a range";
  } else if (saturates(tensor.unit, spec)) {
    tensor.verdict = Verdict::needs_scale;
    tensor.reason = name + " saturates at 1.0";
  } else if (tensor.unit.saturation.value_or(kLeastUnitSaturationMargin) <
             kLeastUnitSaturationMargin) {
    tensor.verdict = Verdict::needs_scale;
    tensor.reason = name + " is close to saturation at 1.0";
  } else if (underflows(tensor.unit) || underflows_at_amax(evidence, spec)) {
    tensor.verdict = Verdict::needs_scale;
    tensor.reason = name + " underflows at 1.0";
  } else if (!evidence.octaves) {
    tensor.reason = name + " has no octaves";
  } else if (const double margin = tensor.unit.saturation.value_or(INFINITY);
             margin < TextEvidence::room_for(evidence.growth)) {
    tensor.reason = growth_reason(name, evidence.growth, margin);
  } else {
    tensor.verdict = Verdict::unit_safe;
  }
  return tensor;
}

// Withdraws `unit_safe` if the text was too short. More text can only raise amax: losses at a scale
// of 1 stay, and values that fit now may be lost later.
void withdraw_safety(TensorCertificate& tensor) {
  if (tensor.verdict != Verdict::unit_safe) return;
  tensor.verdict = Verdict::unknown;
  tensor.reason = "too little text";
}

// The rank of a verdict by how much it demands. `unknown` only outranks `unit_safe`.
int demand(Verdict verdict) {
  switch (verdict) {
    case Verdict::unit_safe:
      return 0;
    case Verdict::unknown:
      return 1;
    case Verdict::needs_scale:
      return 2;
    case Verdict::keep_16bit:
    case Verdict::no_cache:
      break;
  }
  return 3;
}

// Certifies Q with its own scale, or with the one that 'inject --q-scales' would write.
std::optional<TensorCertificate> certify_q(const KvScales& converted, size_t layer,
                                           const Fp8Spec& spec, bool enough_text) {
  const Provenance& from = converted.provenance;
  const bool known = layer < from.amax.size() && !from.amax[layer].q.empty();
  if (!known || converted.latent || is_nvfp4(converted.format)) return std::nullopt;
  Evidence q{.amax = &from.amax[layer].q};
  if (layer < from.octaves.size() && from.octaves[layer].q.nonzero() > 0) {
    q.octaves = &from.octaves[layer].q;
  }
  const float amax = largest(*q.amax);
  const std::vector<float>& own = converted.layers[layer].q;
  const std::vector<float> scale =
      own.empty() ? std::vector{scale_from_amax(amax, converted.format, 1)} : own;
  TensorCertificate certified = certify_tensor("Q", q, scale, spec);
  if (certified.verdict == Verdict::unknown) return std::nullopt;
  if (!enough_text) withdraw_safety(certified);
  return certified;
}

}  // namespace

std::vector<size_t> Certificate::layers_with(Verdict verdict) const {
  std::vector<size_t> found;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].verdict == verdict) found.push_back(i);
  }
  return found;
}

std::vector<size_t> Certificate::layers_that_do_not_hold() const {
  std::vector<size_t> found;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i].k.holds || !layers[i].v.holds) found.push_back(i);
  }
  return found;
}

std::string verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::unit_safe:
      return "1.0 is safe";
    case Verdict::needs_scale:
      return "needs its scale";
    case Verdict::keep_16bit:
      return "keep in 16 bit";
    case Verdict::no_cache:
      return "no cache";
    case Verdict::unknown:
      break;
  }
  return "not known";
}

Certificate certify(const KvScales& scales, KvFormat format) {
  const KvScales converted = with_format(scales, format);
  const Provenance& from = scales.provenance;
  const Fp8Spec spec = kv_range(format);
  FP8KV_ASSERT(is_e4m3(format) || is_nvfp4(format));
  Certificate certificate;
  certificate.format = format;
  certificate.skipped = scales.skipped;
  certificate.text = text_evidence(from);
  for (size_t i = 0; i < converted.layers.size(); ++i) {
    LayerCertificate layer;
    if (!converted.layers[i].has_cache()) {
      layer.verdict = Verdict::no_cache;
      certificate.layers.push_back(layer);
      continue;
    }
    Evidence k, v;
    if (!from.amax.empty()) k.amax = &from.amax[i].k;
    if (!from.amax.empty()) v.amax = &from.amax[i].v;
    if (!from.octaves.empty()) k.octaves = &from.octaves[i].k;
    if (!from.octaves.empty()) v.octaves = &from.octaves[i].v;
    if (!certificate.text.layers.empty()) {
      k.growth = certificate.text.layers[i].k;
      v.growth = certificate.text.layers[i].v;
    }
    layer.k = certify_tensor("K", k, converted.layers[i].k, spec);
    layer.v = certify_tensor("V", v, converted.layers[i].v, spec);
    if (!certificate.text.enough) {
      withdraw_safety(layer.k);
      withdraw_safety(layer.v);
    }
    layer.q = certify_q(converted, i, spec, certificate.text.enough);
    layer.verdict =
        demand(layer.k.verdict) > demand(layer.v.verdict) ? layer.k.verdict : layer.v.verdict;
    certificate.layers.push_back(std::move(layer));
  }
  return certificate;
}

std::vector<KvFormat> formats_served(const KvScales& scales) {
  if (is_nvfp4(scales.format)) return {KvFormat::nvfp4};
  return {KvFormat::e4m3fn, KvFormat::e4m3fnuz};
}

Certificate certify(const KvScales& scales) {
  return certify(scales, formats_served(scales).front());
}

}  // namespace fp8kv
