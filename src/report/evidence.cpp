#include "report/evidence.h"

#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "draw/numbers.h"

namespace fp8kv {
namespace {

// Whether `part` is about half of `whole`. The growth of a smaller step must not pass for that of a
// doubling.
bool is_half(const AmaxAfter& part, const AmaxAfter& whole) {
  const bool usable = part.tokens >= whole.tokens / 4 && part.tokens <= whole.tokens / 4 * 3;
  return part.tokens > 0 && usable && part.layers.size() == whole.layers.size();
}

std::string growth_words(const TextEvidence& evidence) {
  if (!evidence.growth) return "";
  const AmaxGrowth& growth = *evidence.growth;
  if (std::isinf(growth.share)) return cat("; amax of ", growth.where(), " was 0 in half of it");
  std::string text = "; when the text last doubled, amax grew ";
  text += growth.share == 0 ? "nowhere"
                            : cat("by ", short_number(growth.octaves(), 2), " octaves at most (",
                                  growth.where(), ")");
  if (evidence.earlier.empty()) return text;
  std::vector<std::string> before;
  for (const AmaxGrowth& each : evidence.earlier) {
    before.push_back(short_number(each.octaves(), 2));
  }
  return cat(text, ", before that by ", join(before));
}

}  // namespace

double TextEvidence::room_for(double share) {
  return kDoublingsAhead * std::log2(1 + share);
}

TextEvidence text_evidence(const Provenance& from) {
  TextEvidence evidence;
  if (from.windows == 0) return evidence;
  evidence.tokens = from.tokens;
  const AmaxAfter whole{from.tokens, from.amax};
  if (is_half(from.parts.back(), whole)) {
    evidence.growth = amax_growth(from.parts.back(), whole, GrowthOf::layer);
    evidence.layers = layer_growth(from.parts.back(), whole, GrowthOf::layer);
  }
  for (size_t i = kTextParts - 1; i > 0; --i) {
    if (!is_half(from.parts[i - 1], from.parts[i])) break;
    const AmaxGrowth earlier = amax_growth(from.parts[i - 1], from.parts[i], GrowthOf::layer);
    if (std::isinf(earlier.share)) break;
    evidence.earlier.push_back(earlier);
  }
  evidence.enough = from.tokens >= kLeastTokens;
  if (!evidence.enough) evidence.more_tokens = kLeastTokens - from.tokens;
  return evidence;
}

std::string too_little_text(const TextEvidence& evidence) {
  FP8KV_ASSERT(!evidence.enough);
  if (!evidence.tokens) return "it is not known how much text was counted";
  return cat(count_of(*evidence.tokens, "token"), "; ", grouped(evidence.more_tokens),
             " more are needed");
}

std::string missing_evidence(const Provenance& from) {
  const TextEvidence evidence = text_evidence(from);
  return evidence.enough ? "" : "too little text: " + too_little_text(evidence);
}

std::string evidence_words(const Provenance& from) {
  if (from.tokens == 0) return "no tokens counted";
  std::string text = cat(count_of(from.tokens, "token"), " in ", count_of(from.windows, "window"),
                         " of ", count_of(from.documents, "document"));
  if (from.shards.of > 0) {
    text += cat(", ", from.shards.taken.size(), " of ", count_of(from.shards.of, "shard"));
  }
  text += growth_words(text_evidence(from));
  if (from.observation == Observation::after_rope) text += "; K after RoPE";
  if (from.observation == Observation::before_rope) text += "; K before RoPE";
  if (!from.compute_dtype.empty()) text += ", computed in " + from.compute_dtype;
  return text;
}

std::string decoded_words(const std::string& stored_as, const std::string& compute_dtype) {
  if (stored_as.empty()) return "";
  return cat("decoded from ", stored_as, "; activations in ", compute_dtype,
             ", which runtimes may quantise too");
}

}  // namespace fp8kv
