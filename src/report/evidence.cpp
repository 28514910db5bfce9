#include "report/evidence.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "draw/numbers.h"

namespace fp8kv {
namespace {

// Nothing where `part` is far from half of `whole`: a small step would be taken for the growth of
// a whole doubling.
std::optional<AmaxGrowth> last_doubling(const AmaxAfter& part, const AmaxAfter& whole) {
  const bool usable = part.tokens >= whole.tokens / 4 && part.tokens <= whole.tokens / 4 * 3;
  if (part.tokens == 0 || !usable || part.layers.size() != whole.layers.size()) return std::nullopt;
  return amax_growth(part, whole, GrowthOf::layer);
}

// How often the text must double until a doubling brings no more than kMostGrowth, where each
// doubling adds as much to amax as the last one did. In units of what half of the text reached,
// amax is 1 + share * (1 + d) after d more: share / (1 + share * d) = kMostGrowth.
double doublings_needed(double share) {
  return share <= kMostGrowth ? 0 : 1 / kMostGrowth - 1 / share;
}

// Two digits, rounded up.
uint64_t about(double number) {
  const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(number)) - 1));
  return static_cast<uint64_t>(std::ceil(number / unit) * unit);
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

TextEvidence text_evidence(const Provenance& from) {
  TextEvidence evidence;
  if (from.windows == 0) return evidence;
  evidence.tokens = from.tokens;
  evidence.growth = last_doubling(from.parts.back(), {from.tokens, from.amax});
  for (size_t i = kTextParts - 1; i > 0; --i) {
    const auto earlier = last_doubling(from.parts[i - 1], from.parts[i]);
    if (!earlier || std::isinf(earlier->share)) break;
    evidence.earlier.push_back(*earlier);
  }
  const auto tokens = static_cast<double>(from.tokens);
  double more = std::max(0.0, static_cast<double>(kLeastTokens) - tokens);
  if (evidence.growth) {
    more = std::max(more, tokens * (std::exp2(doublings_needed(evidence.growth->share)) - 1));
  }
  evidence.enough = more <= 0;
  if (!evidence.enough) evidence.more_tokens = about(std::max(1.0, more));
  return evidence;
}

std::string too_little_text(const TextEvidence& evidence) {
  FP8KV_ASSERT(!evidence.enough);
  if (!evidence.tokens) return "it is not known how much text was counted";
  std::string text = count_of(*evidence.tokens, "token");
  if (evidence.growth && evidence.growth->share > 0) {
    const AmaxGrowth& growth = *evidence.growth;
    text += cat("; amax of ", growth.where(),
                std::isinf(growth.share) ? " was 0 in half of it"
                                         : cat(" grew by ", fixed(growth.share * 100, 0),
                                               " % when the text last doubled"));
  }
  return cat(text, "; about ", grouped(evidence.more_tokens), " more are needed");
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
