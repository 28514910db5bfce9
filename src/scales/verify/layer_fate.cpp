#include "scales/verify/layer_fate.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "scales/rules/runtime_caches.h"
#include "scales/scale_rounding.h"

namespace fp8kv {
namespace {

const char* kNotDoubledText =
    "are not doubled for FNUZ GPUs: values above 240 times the scale saturate, where 448 were "
    "meant";

// Notes may say more about doubling than the deciding rule.
Doubling doubling_of(const RuntimeVerdict& verdict) {
  for (const RuntimeRule* note : verdict.notes) {
    if (note->doubling != Doubling::unsaid) return note->doubling;
  }
  return verdict.rule->doubling;
}

Fate fate_of(RuntimeOutcome outcome) {
  switch (outcome) {
    case RuntimeOutcome::fails:
      return Fate::fails;
    case RuntimeOutcome::misreads:
      return Fate::misread;
    case RuntimeOutcome::ignores:
      return Fate::ignored;
    case RuntimeOutcome::loads:
    case RuntimeOutcome::turns_on:
      return Fate::exact;
    case RuntimeOutcome::unknown:
    case RuntimeOutcome::note:
      break;
  }
  return Fate::unknown;
}

void round_to(DType dtype, const LayerOnDisk& layer, LayerFate& fate) {
  KvScales numbers;
  for (const NamedScale& scale : layer.scales) numbers.layers.push_back({scale.values, {}});
  const ScaleRounding found = scale_rounding(numbers, dtype);
  fate.error = found.error;
  if (found.error > 0) fate.fate = Fate::rounded;
  if (found.lost) fate.fate = Fate::vanishes;
  fate.subnormal = !found.lost && found.subnormal;
  const auto& told = found.lost ? found.lost : found.subnormal;
  if (told) fate.why = cat(layer.scales[told->layer].name, ": ", lost_number_text(*told, dtype));
}

// Sets the fate of scales that the runtime does use.
void carry_on(const LayerOnDisk& layer, std::optional<DType> dtype, const RuntimeVerdict& verdict,
              const ServingCase& serving, LayerFate& fate) {
  const Server* server = find_server(*verdict.column);
  if (!layer.unusable.empty()) {
    fate.fate = Fate::unusable;
    fate.why = layer.unusable;
    return;
  }
  const CacheFlag flag = asked_cache(serving.flag, layer.facts);
  const CacheFlag own = asked_cache(CacheFlag::of_scales, layer.facts);
  if (flag == CacheFlag::own_scales) {
    fate.fate = Fate::unused;
    fate.why = "such a cache makes its own scales, and takes none of a model";
    return;
  }
  const bool scaled = flag == CacheFlag::fp8 || flag == CacheFlag::nvfp4;
  if (scaled && flag != own) {
    fate.fate = Fate::misread;
    fate.why = cat("are for an ", own == CacheFlag::nvfp4 ? "NVFP4" : "FP8",
                   " cache, and mean something else in an ",
                   flag == CacheFlag::nvfp4 ? "NVFP4" : "FP8", " cache");
    return;
  }
  if (flag == CacheFlag::e5m2) {
    fate.fate = server ? fate_of(server->of_e5m2) : Fate::unknown;
    fate.why = server ? server->e5m2_sentence : "has no --kv-cache-dtype";
    return;
  }
  if (flag == CacheFlag::automatic && server && verdict.rule->outcome != RuntimeOutcome::turns_on) {
    fate.fate = Fate::unused;
    fate.why = cat("keeps a 16-bit cache without --kv-cache-dtype ",
                   own == CacheFlag::nvfp4 ? server->nvfp4 : server->e4m3);
    return;
  }
  if (serving.fnuz.value_or(false) && own == CacheFlag::fp8) {
    const Doubling doubling = doubling_of(verdict);
    fate.doubled = doubling == Doubling::doubled;
    if (!fate.doubled) {
      const bool known = doubling == Doubling::kept;
      fate.fate = known ? Fate::not_doubled : Fate::unknown;
      fate.why = known ? kNotDoubledText : "whether it doubles them for FNUZ GPUs is not known";
      return;
    }
  }
  if (!verdict.rule->rounded) return;
  if (dtype) return round_to(*dtype, layer, fate);
  fate.fate = Fate::rounded;
  fate.error.reset();
}

LayerFate layer_fate(const LayerOnDisk& layer, std::optional<DType> dtype,
                     const RuntimeVerdict& verdict, const ServingCase& serving) {
  LayerFate fate{.layer = layer.layer, .error = 0.0, .why = verdict.rule->sentence};
  if (verdict.rule->outcome == RuntimeOutcome::fails) {
    fate.fate = Fate::fails;
  } else if (layer.scales.empty()) {
    fate.fate = Fate::missing;
    fate.why = layer.facts.has(Fact::nvfp4_scheme)
                   ? "the layer has no scales: an NVFP4 cache runs with 1"
                   : "the layer has no scales: an FP8 cache runs with 1";
  } else if (!uses_scales(*verdict.rule)) {
    fate.fate = verdict.rule->at_one ? Fate::ignored : fate_of(verdict.rule->outcome);
  } else {
    carry_on(layer, dtype, verdict, serving, fate);
  }
  if (!arrives(fate.fate)) fate.error.reset();
  return fate;
}

// Describes the layers whose scales arrive.
std::string arrival_text(const RuntimeFate& fate) {
  const LayerFate* farthest = nullptr;
  bool rounded = false, unknown = false, doubled = false;
  for (const LayerFate& each : fate.layers) {
    if (!arrives(each.fate)) continue;
    rounded |= each.fate == Fate::rounded;
    unknown |= each.fate == Fate::rounded && !each.error;
    doubled |= each.doubled;
    if (each.error && *each.error > (farthest ? *farthest->error : 0.0)) farthest = &each;
  }
  std::string text = !rounded  ? "exact"
                     : unknown ? "rounded to the dtype that it is served in"
                               : cat("rounded by ", percent_text(*farthest->error), " (layer ",
                                     farthest->layer, ")");
  return text + (doubled ? ", then doubled" : "");
}

}  // namespace

const char* fate_name(Fate fate) {
  switch (fate) {
    case Fate::exact:
      return "exact";
    case Fate::rounded:
      return "rounded";
    case Fate::vanishes:
      return "rounded away";
    case Fate::not_doubled:
      return "not doubled";
    case Fate::unused:
      return "unused";
    case Fate::missing:
      return "missing";
    case Fate::not_needed:
      return "not needed";
    case Fate::unusable:
      return "unusable";
    case Fate::ignored:
      return "ignored";
    case Fate::misread:
      return "misread";
    case Fate::fails:
      return "fails";
    case Fate::unknown:
      break;
  }
  return "not known";
}

bool arrives(Fate fate) {
  return fate == Fate::exact || fate == Fate::rounded || fate == Fate::not_needed;
}

RuntimeFate runtime_fate(const ScalesOnDisk& scales, const RuntimeColumn& column,
                         const ServingCase& serving, std::optional<RuntimeVersion> version) {
  RuntimeFate fate{runtime_verdict(scales.facts, column, version), {}};
  const auto is_failure = [](const RuntimeVerdict& verdict) {
    return verdict.rule->outcome == RuntimeOutcome::fails;
  };
  const std::span<const int64_t> skipped = skippable({&column, "", version}, scales.skipped);
  std::vector<RuntimeVerdict> verdicts;
  for (const LayerOnDisk& layer : scales.layers) {
    verdicts.push_back(runtime_verdict(layer.facts, column, version));
    // A single layer that the runtime cannot take stops the whole model.
    if (is_failure(verdicts.back()) && !is_failure(fate.verdict)) fate.verdict = verdicts.back();
  }
  for (size_t i = 0; i < scales.layers.size(); ++i) {
    const RuntimeVerdict& verdict = is_failure(fate.verdict) ? fate.verdict : verdicts[i];
    fate.layers.push_back(layer_fate(scales.layers[i], scales.dtype, verdict, serving));
    const bool skips = std::binary_search(skipped.begin(), skipped.end(), scales.layers[i].layer);
    if (skips && !is_failure(verdict)) {
      LayerFate left;
      left.layer = scales.layers[i].layer;
      left.fate = Fate::not_needed;
      fate.layers.back() = left;
    }
  }
  fate.turns_on =
      fate.verdict.rule->outcome == RuntimeOutcome::turns_on && serving.flag != CacheFlag::e5m2;
  fate.arrives =
      !fate.layers.empty() && std::all_of(fate.layers.begin(), fate.layers.end(),
                                          [](const LayerFate& each) { return arrives(each.fate); });
  return fate;
}

std::string fate_text(const RuntimeFate& fate) {
  if (fate.layers.empty()) return fate_name(Fate::missing);
  std::map<Fate, std::vector<size_t>> layers;
  std::vector<std::string> parts;
  std::vector<size_t> subnormal;
  bool any_arrives = false;
  for (const LayerFate& each : fate.layers) {
    any_arrives |= arrives(each.fate);
    if (!arrives(each.fate)) layers[each.fate].push_back(static_cast<size_t>(each.layer));
    if (each.subnormal) subnormal.push_back(static_cast<size_t>(each.layer));
  }
  if (any_arrives) parts.push_back(arrival_text(fate));
  if (!subnormal.empty()) parts.push_back(cat("subnormal in ", layer_list(subnormal)));
  for (const auto& [kind, numbers] : layers) {
    const bool all = numbers.size() == fate.layers.size();
    parts.push_back(cat(fate_name(kind), all ? "" : cat(" in ", layer_list(numbers))));
  }
  std::string text;
  for (const std::string& part : parts) text += cat(text.empty() ? "" : "; ", part);
  return text;
}

}  // namespace fp8kv
