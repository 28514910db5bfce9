// How much room the values that were seen leave at both ends of an E4M3 format, with the scales in
// force and with none, and what follows for each layer. Exact statements about what was counted:
// nothing is estimated, and nothing is said where there is no evidence.
//
// With x the values of K or V in one layer, s a scale, and max and min_normal of the format:
//   saturation margin = log2(max * s / amax), the smallest over the heads. Negative when values
//     saturate; the next octave of values would still fit when it is 1 or more.
//   underflow margin = log2(m / (min_normal * s)), where 2 m > median(|x|, x != 0) >= m and m is a
//     power of two. From 0 on, at least half of the values keep all bits of the mantissa; each
//     octave below costs them one bit. With a scale per head, s is the largest of them.
//   flushed = share of the nonzero values below half the smallest subnormal times s: they round to
//     zero (as does that half itself, which is not counted).
// Values below 2^-39 count as zero here (core/octaves.h); FP16 has no such values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/scales.h"
#include "report/evidence.h"

namespace fp8kv {

// A scale of 1 must leave this much for values that were not seen.
inline constexpr double kLeastUnitSaturationMargin = 1;
// A relative RMS error of 5.0 % for values of a normal distribution, where 2.65 % is the least that
// E4M3 can do and 5.3 % what E5M2 does at any scale: measured with PyTorch's casts.
inline constexpr double kLeastUnderflowMargin = -1;
// Values of a normal distribution lose 7 % at that margin. More than a quarter means that a part
// of the tensor, such as some of the channels, is lost as a whole.
inline constexpr double kMostFlushed = 0.25;

// What is known of a share that lies somewhere inside an octave.
struct ShareRange {
  double least = 0;
  double most = 0;
  bool operator==(const ShareRange&) const = default;
};

// Of one tensor under one scale. Absent where there is no evidence, or no value but zero.
struct Margins {
  std::optional<double> saturation;
  std::optional<double> underflow;
  std::optional<ShareRange> subnormal;  // below min_normal * s, flushed ones included
  std::optional<ShareRange> flushed;
};

enum class Verdict {
  unit_safe,    // a scale of 1 loses nothing that matters, and leaves room
  needs_scale,  // 1 saturates or underflows, and the scale from amax does not
  keep_16bit,   // underflows even with the largest value at the format's maximum
  unknown,      // the evidence does not decide, or amax still grows too fast for the room it has
  no_cache      // the layer writes no KV cache; of a layer alone
};

struct TensorCertificate {
  std::optional<float> amax;  // over all heads
  Margins in_force;
  Margins unit;
  Verdict verdict = Verdict::unknown;
  std::string reason;  // for any verdict but unit_safe: "K saturates at 1.0"
  // The scale in force neither saturates nor underflows, as far as was seen; true without evidence.
  bool holds = true;
};

struct LayerCertificate {
  TensorCertificate k;  // nothing, like v, where there is no cache
  TensorCertificate v;
  // Q in E4M3, for attention that computes in FP8: absent where its magnitudes are not known, and
  // for caches of latents and of NVFP4. No part of the layer's verdict.
  std::optional<TensorCertificate> q;
  Verdict verdict = Verdict::unknown;  // that of the tensor that demands more
};

struct Certificate {
  KvFormat format = KvFormat::e4m3fn;
  std::vector<int64_t> skipped;  // KvScales::skipped
  std::vector<LayerCertificate> layers;
  TextEvidence text;

  // In rising order.
  std::vector<size_t> layers_with(Verdict verdict) const;
  std::vector<size_t> layers_that_do_not_hold() const;
};

// "1.0 is safe", "needs its scale", "keep in 16 bit", "not known", "no cache".
std::string verdict_name(Verdict verdict);

// With too little text no layer is called safe. With enough, a layer is safe at 1.0 only if the
// room above its amax holds kDoublingsAhead more doublings of the text at the last one's growth.
// REQUIRES an E4M3 format or NVFP4; scales for the other E4M3 format are converted.
Certificate certify(const KvScales& scales, KvFormat format);

// The formats that scales can serve, the first of them where they are at home: E4M3FN and FNUZ, or
// NVFP4 alone.
std::vector<KvFormat> formats_served(const KvScales& scales);
// certify for the first of these.
Certificate certify(const KvScales& scales);

}  // namespace fp8kv
