#include "scales/diagnose.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "scales/diagnosis_kinds.h"

namespace fp8kv {
namespace {

using Numbers = std::vector<float>;

bool is_usable(float value) {
  return std::isnormal(value) && value > 0;
}

// The number of significant bits in the 24-bit mantissa: 1 for a power of two.
int significant_bits(float value) {
  const uint32_t mantissa = (std::bit_cast<uint32_t>(value) & 0x7FFFFF) | 0x800000;
  return 24 - std::countr_zero(mantissa);
}

// Whether at least two different values have more than `bits` significant bits. Then a pattern in
// them is no accident, and nobody wrote them by hand.
bool is_telling(const Numbers& values, int bits) {
  std::set<float> found;
  for (const float value : values) {
    if (significant_bits(value) > bits) found.insert(value);
  }
  return found.size() >= 2;
}

// The scales that are used: separate ones for K and V, if the checkpoint has any.
std::vector<ScaleTensor> finer_form(const std::vector<ScaleTensor>& tensors) {
  std::vector<ScaleTensor> apart;
  for (const ScaleTensor& tensor : tensors) {
    if (tensor.of != ScaleOf::both) apart.push_back(tensor);
  }
  return apart.empty() ? tensors : apart;
}

// The input of the rules: the case, its tensors and all their values.
struct Evidence {
  const ScaleCase& given;
  std::vector<ScaleTensor> tensors;
  Numbers values;  // every value that can be a scale
  size_t zeros = 0;
  size_t negatives = 0;

  explicit Evidence(const ScaleCase& found) : given(found), tensors(finer_form(found.tensors)) {
    for (const ScaleTensor& tensor : tensors) {
      for (const float value : tensor.values) {
        if (is_usable(value)) values.push_back(value);
        zeros += value == 0;
        negatives += value < 0;
      }
    }
  }

  template <typename Holds>
  bool all(Holds holds) const {
    return !values.empty() && std::all_of(values.begin(), values.end(), holds);
  }
  bool all_ones() const {
    return all([](float value) { return value == 1; });
  }
  // The dtype in which all tensors are stored; nullopt if they have several.
  std::optional<DType> dtype() const {
    for (const ScaleTensor& tensor : tensors) {
      if (tensor.dtype != tensors[0].dtype) return std::nullopt;
    }
    return tensors.empty() ? std::nullopt : std::optional(tensors[0].dtype);
  }
  bool is_of(std::string_view family) const {
    return given.dialect && given.dialect->family == family;
  }
};

using Rule = std::optional<Diagnosis> (*)(const Evidence&);
using Found = std::optional<Diagnosis>;

Found all_ones(const Evidence& seen) {
  if (!seen.all_ones()) return std::nullopt;
  return Diagnosis{
      "all-ones",
      seen.given.floor == 1
          ? "every scale is 1, to which the tool raised all that were smaller: nothing "
            "of its calibration is left"
          : "every scale is 1: what a runtime uses when there is none, and what "
            "ModelOpt's fp8_cast means",
      "calibrate: these hold no measurement"};
}

Found floored(const Evidence& seen) {
  const float floor = seen.given.floor;
  if (floor <= 0 || seen.all_ones()) return std::nullopt;
  size_t raised = 0, total = 0;
  for (const ScaleTensor& tensor : seen.tensors) {
    for (const float value : tensor.values) {
      raised += value == rounded_to(floor, tensor.dtype);
      ++total;
    }
  }
  if (raised == 0) return std::nullopt;
  return Diagnosis{"floored",
                   cat(raised, " of ", count_of(total, "scale"), " are exactly ", floor,
                       ", to which the tool raises all that are smaller"),
                   "calibrate: where the true scale is far smaller, small values vanish"};
}

Found fused(const Evidence& seen) {
  const Dialect* const row = seen.given.dialect;
  const auto is_of_both = [](const auto& each) { return each.of == ScaleOf::both; };
  const bool one_number = std::all_of(seen.tensors.begin(), seen.tensors.end(), is_of_both);
  const bool may_be = row && (row->fused || row->carrier == Carrier::json ||
                              std::any_of(row->patterns.begin(), row->patterns.end(), is_of_both));
  std::map<int64_t, std::map<ScaleOf, Numbers>> layers;
  for (const ScaleTensor& tensor : seen.tensors) layers[tensor.layer][tensor.of] = tensor.values;
  const bool equal = std::all_of(layers.begin(), layers.end(), [](auto& layer) {
    return layer.second[ScaleOf::k] == layer.second[ScaleOf::v];
  });
  if (seen.tensors.empty() || !(one_number || (may_be && equal))) return std::nullopt;
  return Diagnosis{"kv-fused", "K and V share one scale, the larger of the two",
                   "calibrate to have both: where one is a thousand times smaller, it vanishes"};
}

Found before_rope(const Evidence& seen) {
  const Observation where = seen.given.observed;
  if (where != Observation::before_rope && where != Observation::likely_before_rope) {
    return std::nullopt;
  }
  const std::string how = where == Observation::before_rope ? "was" : "was most likely";
  if (seen.given.k_norm) {
    return Diagnosis{"k-before-rope",
                     cat("K ", how,
                         " measured at its projection, before the model's K norm and RoPE: its "
                         "scale has nothing to do with what is cached"),
                     "calibrate: 'fp8kv calibrate' and current tools measure what is cached"};
  }
  return Diagnosis{"k-before-rope",
                   cat("K ", how,
                       " measured before RoPE, which can make a value 1.41 times as large: it then "
                       "saturates"),
                   "calibrate: 'fp8kv calibrate' and current tools measure after RoPE"};
}

Diagnosis rounding(const char* id, const char* dtype, const char* error) {
  return {id, cat("the scales are rounded to ", dtype, ", which moves each by up to ", error),
          "harmless: at most the largest values saturate, by as little", true};
}

Found rounded(const Evidence& seen) {
  if (seen.all_ones() || seen.values.empty()) return std::nullopt;
  const auto fits = [&](DType dtype) {
    return seen.all([&](float value) { return rounded_to(value, dtype) == value; });
  };
  const bool stored_coarse = seen.dtype() == DType::bf16 || seen.dtype() == DType::f16;
  // Scales stored as F32 show a coarser grid only if they were rounded before they were stored.
  if (!stored_coarse && !is_telling(seen.values, 5)) return std::nullopt;
  if (seen.dtype() != DType::f16 && fits(DType::bf16)) {
    return rounding("bf16-rounded", "BF16", "0.4%");
  }
  if (fits(DType::f16)) return rounding("f16-rounded", "F16", "0.05%");
  return std::nullopt;
}

Found autofp8_rounding(const Evidence& seen) {
  if (seen.all_ones() || !is_autofp8_rounding(seen.values)) return std::nullopt;
  if (!seen.is_of("autofp8") && !is_telling(seen.values, 12)) return std::nullopt;
  return Diagnosis{"autofp8-rounding",
                   "each scale is 1 / (448 / amax) with the quotient rounded to the model's dtype, "
                   "as AutoFP8 computes it, which moves it by up to 0.05% in F16 and 0.4% in BF16",
                   "harmless: at most the largest values saturate, by as little", true};
}

Found autofp8_zero(const Evidence& seen) {
  if (seen.zeros == 0 || !seen.is_of("autofp8")) return std::nullopt;
  return Diagnosis{
      "autofp8-zero",
      cat(count_of(seen.zeros, "scale"), seen.zeros == 1 ? " is" : " are",
          " 0: AutoFP8 divides 448 by the largest value in FP16, which overflows where "
          "that is below 0.00684"),
      "calibrate again: a runtime fails on 0, or takes 1 instead"};
}

Found negative(const Evidence& seen) {
  if (seen.negatives == 0) return std::nullopt;
  return Diagnosis{"negative-sentinel",
                   cat(count_of(seen.negatives, "scale"), seen.negatives == 1 ? " is" : " are",
                       " negative, which is how runtimes mark one that was never loaded"),
                   "calibrate again: a runtime takes 1 instead"};
}

std::string tensor_name(const ScaleTensor& tensor) {
  const char* const of = tensor.of == ScaleOf::k ? "K" : tensor.of == ScaleOf::v ? "V" : "K and V";
  return cat("layer ", tensor.layer, " ", of);
}

// The message names the scale that is farthest outside the range.
Found implausible(const Evidence& seen) {
  const double doubled = seen.given.format == KvFormat::e4m3fnuz ? 2 : 1;
  size_t count = 0;
  double farthest = 0;
  std::string worst;
  for (const ScaleTensor& tensor : seen.tensors) {
    for (const float value : tensor.values) {
      if (!is_usable(value)) continue;
      const double scale = double{value} / doubled;
      const double factor = std::max(scale / kLargestScale, kLeastScale / scale);
      if (factor <= 1) continue;
      ++count;
      if (factor <= farthest) continue;
      farthest = factor;
      worst = cat("the scale of ", tensor_name(tensor), " is ", value);
    }
  }
  if (count == 0) return std::nullopt;
  const std::string others = count == 1 ? "" : cat(" (", count, " such scales in all)");
  return Diagnosis{"implausible-scale",
                   cat(worst,
                       ", expected 1.3e-10 to 9358, which magnitudes from 6e-8 to 65504 "
                       "lead to",
                       others),
                   "calibrate this model again: FP8 keeps nothing of such a layer, or the file is "
                   "damaged or of another kind",
                   false, true};
}

Found observer(const Evidence& seen) {
  const std::string& name = seen.given.observer;
  if (name == "memoryless_minmax" && seen.is_of("autoround")) {
    return Diagnosis{"last-batch-observer",
                     "the scales are those of the last calibration batch alone: AutoRound keeps "
                     "each batch's in place of those before",
                     "calibrate: 'fp8kv calibrate' takes the largest of all windows"};
  }
  const std::string remedy = "calibrate again, or set observer: static_minmax in the recipe";
  if (name == "memoryless_minmax") {
    return Diagnosis{"last-batch-observer",
                     "the scales are those of the last calibration batch alone (observer "
                     "memoryless_minmax, the default since compressed-tensors 0.14)",
                     remedy};
  }
  if (name != "minmax") return std::nullopt;
  return Diagnosis{
      "moving-average-observer",
      "the scales follow a moving average of the batches' maxima (observer minmax, the "
      "default until compressed-tensors 0.13), so that larger values saturate",
      remedy};
}

Found for_fnuz(const Evidence& seen) {
  if (seen.given.format != KvFormat::e4m3fnuz) return std::nullopt;
  return Diagnosis{
      "doubled-for-fnuz",
      "the scales are twice as large as E4M3FN needs them: kv_cache_torch_dtype says "
      "that they are for FNUZ GPUs (MI300)",
      "'fp8kv extract' halves them, exactly; runtimes double scales for FNUZ themselves"};
}

// Whether every scale is an F16 or BF16 number divided by `divisor`.
bool are_quotients(const Evidence& seen, float divisor) {
  const auto by = [&](DType dtype) {
    return seen.all([&](float value) {
      const float amax = rounded_to(value * divisor, dtype);
      return amax / divisor == value || amax * (1 / divisor) == value;
    });
  };
  return by(DType::f16) || by(DType::bf16);
}

Found by_240(const Evidence& seen) {
  if (!are_quotients(seen, 240) || are_quotients(seen, 448)) return std::nullopt;
  if (!is_telling(seen.values, 12)) return std::nullopt;
  return Diagnosis{"divided-by-240",
                   "the scales are amax / 240, the largest number of FNUZ, instead of amax / 448: "
                   "1.87 times as large as they need be",
                   "nothing saturates; calibrate for the full range, and do not double them again"};
}

Found missing(const Evidence& seen) {
  std::set<size_t> layers;
  for (const ScaleTensor& tensor : seen.tensors) layers.insert(static_cast<size_t>(tensor.layer));
  const std::vector<bool>& has_cache = seen.given.has_cache;
  size_t count = 0, all = 0;
  for (size_t layer = 0; layer < has_cache.size(); ++layer) {
    all += has_cache[layer];
    count += has_cache[layer] && !layers.contains(layer);
  }
  if (count == 0) return std::nullopt;
  return Diagnosis{
      "missing-layer",
      cat(count, " of ", count_of(all, "layer"), all < has_cache.size() ? " with a KV cache" : "",
          count == 1 ? " has" : " have", " no scale: a runtime uses 1 there",
          seen.given.layers_unclear ? ", if the model writes a KV cache there" : ""),
      "calibrate again"};
}

Found extra(const Evidence& seen) {
  std::set<int64_t> layers;
  for (const ScaleTensor& tensor : seen.tensors) {
    if (tensor.layer >= std::ssize(seen.given.has_cache)) layers.insert(tensor.layer);
  }
  if (layers.empty()) return std::nullopt;
  return Diagnosis{"extra-layer",
                   cat("there are scales for ",
                       layers.size() == 1 ? cat("layer ", *layers.begin())
                                          : cat(count_of(layers.size(), "layer"), " from ",
                                                *layers.begin(), " on"),
                       ", but the model has ", seen.given.has_cache.size()),
                   "calibrate this model: the scales are those of another, or it was pruned since"};
}

// The gravest rules first.
constexpr Rule kRules[] = {missing,  extra,    negative, implausible,     autofp8_zero,
                           all_ones, floored,  for_fnuz, by_240,          before_rope,
                           fused,    observer, rounded,  autofp8_rounding};

}  // namespace

std::vector<Diagnosis> diagnose(const ScaleCase& found) {
  const Evidence evidence(found);
  std::vector<Diagnosis> diagnoses;
  for (const Rule rule : kRules) {
    if (auto diagnosis = rule(evidence)) diagnoses.push_back(known(*std::move(diagnosis)));
  }
  return diagnoses;
}

Diagnosis diagnose_absence(const std::string& said, bool modelopt) {
  return known({"cast-without-scales",
                cat(said, " says that the cache is FP8, but there are no scales",
                    modelopt ? " (ModelOpt's fp8_cast writes none)" : "", ": a runtime uses 1"),
                "calibrate, and inject what you get"});
}

Diagnosis diagnose_q(const std::string& tensor, float value) {
  Diagnosis found{"q-not-measured",
                  cat(quote(tensor), " is ", value,
                      ", which no Q leads to: the scales of Q were never set, and attention in FP8 "
                      "would compute with them"),
                  "calibrate, and inject with --replace, which takes them out"};
  found.grave = true;
  return known(found);
}

std::optional<Diagnosis> diagnose_gaps(const std::vector<bool>& has_cache) {
  std::vector<size_t> gaps;
  for (size_t layer = 0; layer < has_cache.size(); ++layer) {
    if (!has_cache[layer]) gaps.push_back(layer);
  }
  if (gaps.empty()) return std::nullopt;
  return known({"unnamed-layers",
                cat("no scale is given for ", layer_list(gaps),
                    ", which is right where the model writes no KV cache there"),
                "harmless: 'fp8kv inject' checks it against the model", true});
}

bool is_autofp8_rounding(const Numbers& values) {
  const auto by = [&](DType dtype) {
    bool any = false;
    for (const float value : values) {
      if (!is_usable(value)) continue;
      any = true;
      if (1 / rounded_to(1 / value, dtype) != value) return false;
    }
    return any;
  };
  return by(DType::f16) || by(DType::bf16);
}

}  // namespace fp8kv
